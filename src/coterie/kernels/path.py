r"""The walk of a round on a working set of dense features in one call: scores, order and correlations.

The mathematics is that of :mod:`coterie.search.oracle`. The caller verifies that no feature outside the working set could have
changed a round (:mod:`coterie.search.paths`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie._numba import kernel
from coterie.kernels.newton import dot

# Why rounds end: all requested rounds were made; no candidate of the working set is left; two candidates are tied, so that the
# content of their columns decides; the Newton steps do not converge, so that another solver is required.
COMPLETE, EXHAUSTED, TIED, DIFFICULT = range(4)


class WorkingSet(NamedTuple):
    """Features of a working set, as the model uses them, by feature.

    Attributes
    ----------
    columns : ndarray of shape (n_features, n_rows)
        Centred and scaled values of the samples with nonzero weight.
    norm : ndarray of shape (n_features,)
        Weighted norms of the columns.
    weight : ndarray of shape (n_rows,)
        Sample weights of the correlations. Those of the loss contain the weights of the classes as well.
    is_open : ndarray of bool of shape (n_features,)
        Whether a feature is a candidate. Features that a walk visits are not any more.
    """

    columns: np.ndarray
    norm: np.ndarray
    weight: np.ndarray
    is_open: np.ndarray


class PathState(NamedTuple):
    """State of a search before the first round.

    Attributes
    ----------
    design : ndarray of shape (n_rows, n_support)
        Columns of the support features.
    blocks : ndarray of int of shape (n_blocks + 1,)
        Bounds of the blocks.
    coef : ndarray of shape (n_support, n_outputs)
        Weights.
    offsets : ndarray of shape (n_outputs, n_strata)
        Eliminated offsets.
    residual : ndarray of shape (n_outputs, n_rows)
        Dual variables.
    """

    design: np.ndarray
    blocks: np.ndarray
    coef: np.ndarray
    offsets: np.ndarray
    residual: np.ndarray


class PathRecord(NamedTuple):
    """Results of compiled rounds.

    Attributes
    ----------
    features : ndarray of int
        New support features of all rounds, as positions in the working set.
    scores : ndarray
        Scores of these features.
    ends : ndarray of int of shape (n_rounds,)
        Number of new support features after each round.
    coef : ndarray of shape (n_rounds, n_support, n_outputs)
        Weights after each round.
    offsets : ndarray of shape (n_rounds, n_outputs, n_strata)
        Eliminated offsets after each round.
    residuals : ndarray of shape (n_rounds + 1, n_outputs, n_rows)
        Dual variables before the first round and after each round.
    figures : ndarray of shape (n_rounds, 9)
        Numbers described by :data:`FIGURES`.
    closed_in : ndarray of int
        Round in which a walk visited a feature of the working set, -1 for none.
    """

    features: np.ndarray
    scores: np.ndarray
    ends: np.ndarray
    coef: np.ndarray
    offsets: np.ndarray
    residuals: np.ndarray
    figures: np.ndarray
    closed_in: np.ndarray


# Columns of PathRecord.figures: the lowest score that the walk visited, the highest score, dual and primal objective, value
# and conjugate of the loss, Newton steps, correlations evaluated, and 1 if Newton steps on a problem so far did not converge.
FIGURES = ("low", "best", "dual", "primal", "value", "conjugate", "n_iter", "n_correlations", "separable")


@kernel(reorder=True)
def _weighted_product(a, b, weight):
    total = 0.0
    for i in range(a.shape[0]):
        total += weight[i] * a[i] * b[i]
    return total


@kernel()
def _score(columns, is_open, residual, scores):
    """Write the scores of the candidates, -1 for other features. Returns the highest."""
    best = -1.0
    for j in range(columns.shape[0]):
        scores[j] = -1.0
        if is_open[j]:
            square = 0.0
            for c in range(residual.shape[0]):
                square += dot(columns[j], residual[c]) ** 2
            scores[j] = np.sqrt(square)
            best = max(best, scores[j])
    return best


@kernel()
def _next_best(scores, tie):
    """Return the position of the highest score, -1 if there is none, and whether another score is tied with it."""
    best = -1
    high = -1.0
    second = -1.0
    for j in range(scores.shape[0]):
        if scores[j] > high:
            second = high
            high = scores[j]
            best = j
        elif scores[j] > second:
            second = scores[j]
    return best, second >= 0.0 and high - second <= 2.0 * tie


@kernel()
def walk(working, supports, limit, tie_share, residual, record, n_found, size, visited):
    r"""Visit the candidates of a working set in decreasing order of their scores, until a round has its new support features.

    Parameters
    ----------
    working : WorkingSet
        Features that may be selected.
    supports : ndarray of shape (n_known, n_rows)
        Support features of earlier calls, divided by their norms. The new ones must not be correlated with them.
    limit : float
        Absolute correlation from which a feature joins a group.
    tie_share : float
        Scores that differ by less than this share of the best score are tied.
    residual : ndarray of shape (n_outputs, n_rows)
        Dual variables.
    record : PathRecord
        Features and scores of earlier rounds. Those of this round are appended.
    n_found : int
        Number of support features of earlier rounds.
    size : int
        Number of new support features.
    visited : ndarray of int of shape (n_features,)
        Positions of the features visited, written.

    Returns
    -------
    status, n_visited, n_correlations : int
        Why the walk ended, and the numbers of features visited and of correlations evaluated.
    low, best : float
        The lowest score visited, and the highest score.
    """
    columns, norm, weight, found = working.columns, working.norm, working.weight, record.features
    scores = np.empty(columns.shape[0])
    best = _score(columns, working.is_open, residual, scores)
    low = best
    n_visited = 0
    n_correlations = 0
    last = n_found + size
    while n_found < last:
        place, tied = _next_best(scores, tie_share * best)
        if place < 0 or tied:
            return TIED if tied else EXHAUSTED, n_visited, n_correlations, low, best
        low = scores[place]
        matched = False
        if limit < np.inf:
            for k in range(supports.shape[0]):
                n_correlations += 1
                if abs(_weighted_product(columns[place], supports[k], weight)) >= limit * norm[place]:
                    matched = True
                    break
            k = 0
            while k < n_found and not matched:
                n_correlations += 1
                product = _weighted_product(columns[place], columns[found[k]], weight)
                matched = abs(product) >= limit * norm[place] * norm[found[k]]
                k += 1
        if not matched:
            found[n_found] = place
            record.scores[n_found] = low
            n_found += 1
        scores[place] = -1.0
        visited[n_visited] = place
        n_visited += 1
    return COMPLETE, n_visited, n_correlations, low, best


@kernel()
def features_above(products, scale, length, is_open, n_outputs, errors, floors, first, found):
    """Find the first round from ``first`` in which a feature outside the working set may reach the lowest score visited.

    ``products`` of shape (n_rounds * n_outputs, n_features) are rounded. The error of a score is ``errors[round]`` times the
    ``length`` of the feature. Writes the features to ``found``. Returns the round and their number, or (n_rounds, 0).
    """
    n_rounds = floors.shape[0]
    squares = np.empty(products.shape[1])
    for number in range(first, n_rounds):
        squares[:] = 0.0
        for c in range(n_outputs):
            for j in range(products.shape[1]):
                squares[j] += float(products[number * n_outputs + c, j]) ** 2
        count = 0
        for j in range(products.shape[1]):  # Without branches, for speed. Mostly, there are no such features.
            count += is_open[j] & (np.sqrt(squares[j]) >= (floors[number] - errors[number] * length[j]) * scale[j])
        if count:
            count = 0
            for j in range(products.shape[1]):
                if is_open[j] and np.sqrt(squares[j]) >= (floors[number] - errors[number] * length[j]) * scale[j]:
                    found[count] = j
                    count += 1
            return number, count
    return n_rounds, 0
