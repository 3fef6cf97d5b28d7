"""The exact optimum over all candidates: a working set, coordinate descent on it, and a certificate for all.

Few candidates have a positive weight at the optimum. The problem is solved on a working set of them; the gradient of *all*
candidates (one pass over the data) then either certifies the solution or names the candidates that
must join.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from coterie.kernels import redundancy as kernels
from coterie.redundancy.measures import SquaredCosine
from coterie.redundancy.objective import Certificate, Objective

# Candidates of the first working set, and the fewest that join at a time.
_FIRST = 512
# Largest working set whose matrix is held (0.5 GB); beyond it products go through a matrix of samples by samples,
# unless there are too many samples for that.
_LARGEST_MATRIX = 8192
_MOST_SAMPLES = 4096
# Two candidates are copies when their redundancy is less than this part below that with themselves.
_COPY = 1e-12
# Sweeps of one call of coordinate descent.
_SWEEPS = 500
# Attempts to solve for the support exactly: each drops the candidates that leave it.
_POLISHES = 12


class RefinedWeights(NamedTuple):
    """Weights of the candidates, how good they are, and what they took."""

    support: np.ndarray
    weights: np.ndarray
    objective: float
    bound: float
    gap: float
    n_iter: int
    working_set_size: int
    converged: bool


def solve(objective: Objective, tol: float, max_iter: int) -> RefinedWeights:
    """Minimise the objective to a relative gap of ``tol``.

    Candidates are expected in an order that does not depend on the data's (best score first): it decides which of
    several equal ones gets the weight.
    """
    working = np.arange(min(_FIRST, objective.size))
    weights = np.zeros(len(working))
    weights[np.argmax(objective.scores[working])] = 1.0
    bound, precision = -np.inf, 0.1 * tol
    for iteration in range(1, max_iter + 1):
        size = len(working)
        weights = _restricted(objective, working, weights, precision)
        working, weights = working[weights > 0], weights[weights > 0]
        found = objective.certificate(working, weights)
        bound = max(bound, found.bound)
        gap = max(found.value - bound, 0.0) / found.value
        joining = _violators(found, working, tol, max(_FIRST, len(working)))
        if gap <= tol or iteration == max_iter or (not len(joining) and precision < 1e-14):
            break
        if not len(joining):
            precision *= 0.01  # the working set is right but not solved well enough
        order = np.argsort(np.concatenate([working, joining]))
        weights = np.concatenate([weights, np.zeros(len(joining))])[order]
        working = np.concatenate([working, joining])[order]
    return RefinedWeights(working, weights, found.value, bound, gap, iteration, size, gap <= tol)


def _violators(found: Certificate, working: np.ndarray, tol: float, most: int) -> np.ndarray:
    """Candidates outside the working set whose gradient is too small, the smallest first, ties in their own order."""
    low = found.gradient < found.value * (1.0 - 0.5 * tol)
    low[working] = False
    candidates = np.flatnonzero(low)
    steps = np.rint(found.gradient[candidates] / (1e-11 * found.value))
    return candidates[np.argsort(steps, kind="stable")[:most]]


def _restricted(objective: Objective, working: np.ndarray, weights: np.ndarray, precision: float) -> np.ndarray:
    """Solve the problem on the working set, starting from some weights."""
    scores = objective.scores[working]
    redundancy = objective.redundancy
    if len(working) > _LARGEST_MATRIX and isinstance(redundancy, SquaredCosine) and redundancy.n_samples <= _MOST_SAMPLES:
        return _implicit(objective, redundancy, working, weights, precision)
    matrix = objective.within(working)
    product = matrix @ weights
    length = 2.0 * np.sqrt(scores @ weights) / (weights @ product)
    x = length * weights
    kernels.descend(matrix, scores, x, length * product, precision, _SWEEPS)
    return _polish(matrix, scores, _merge_copies(matrix, x / x.sum()))


def _implicit(
    objective: Objective, redundancy: SquaredCosine, working: np.ndarray, weights: np.ndarray, precision: float
) -> np.ndarray:
    """Coordinate descent without the matrix of the working set."""
    rows = np.ascontiguousarray(redundancy.unit_columns(working).T)
    scores = objective.scores[working]
    scatter = (rows.T * weights) @ rows
    quadratic = float(np.einsum("ij,ij->", scatter, scatter))
    penalty = objective.penalty
    degree, indptr, indices = np.zeros(len(working)), np.zeros(len(working) + 1, dtype=np.int32), np.empty(0, dtype=np.int32)
    sums, strength = np.empty(0), 0.0
    if penalty is not None:
        mine = penalty.membership[working]
        degree, indptr, indices, strength = penalty.degree[working], mine.indptr, mine.indices, penalty.strength
        sums = weights @ mine
        quadratic += strength * (degree @ weights**2 - sums @ sums)
    length = 2.0 * np.sqrt(scores @ weights) / quadratic
    x, scatter, sums = length * weights, length * scatter, length * sums
    kernels.descend_implicit(rows, scores, scatter, x, degree, indptr, indices, strength, sums, precision, _SWEEPS)
    return x / x.sum()


def _merge_copies(matrix: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Move the weight of copies (rows that are equal) to the first of them, which has the best score: no loss, and unique."""
    support = np.flatnonzero(weights)
    small = matrix[np.ix_(support, support)]
    size = np.diag(small)
    first = np.argmax(small >= (1.0 - _COPY) * np.maximum(size[:, None], size), axis=1)
    result = np.zeros(len(weights))
    np.add.at(result, support[first], weights[support])
    return result


def _polish(matrix: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Solve for the weights of a known support: on it :math:`Az = (f/2)(s + \tau 1)`, so that

    .. math:: z \propto u + \tau v, \qquad A u = s,\ A v = 1,\ \tau = \sqrt{s'u / 1'v}.

    Weights that would become negative are dropped on the way there, along which the objective falls.
    """
    result = weights.copy()
    for _ in range(_POLISHES):
        support = np.flatnonzero(result)
        target = _stationary(matrix[np.ix_(support, support)], scores[support])
        if target is None:
            break
        current = result[support]
        leaving = target <= 0.0
        if not leaving.any():
            result[support] = target
            break
        steps = current[leaving] / (current[leaving] - target[leaving])
        step = float(steps.min())
        moved = np.maximum(current + step * (target - current), 0.0)
        moved[np.flatnonzero(leaving)[steps <= step]] = 0.0
        result[support] = moved / moved.sum()
    # Nearly equal candidates make the equations worthless; coordinate descent does not mind them.
    return result if _value(matrix, scores, result) <= _value(matrix, scores, weights) else weights


def _stationary(matrix: np.ndarray, scores: np.ndarray) -> np.ndarray | None:
    """Stationary point of the objective on the hyperplane of weights with sum 1; None where the equations have none."""
    try:
        solved = cho_solve(cho_factor(matrix, lower=True), np.column_stack([scores, np.ones(len(scores))]))
    except LinAlgError:
        return None
    ratio = (scores @ solved[:, 0]) / solved[:, 1].sum()
    if not (np.isfinite(ratio) and ratio > 0.0):
        return None
    target = solved[:, 0] + np.sqrt(ratio) * solved[:, 1]
    total = target.sum()
    return target / total if np.isfinite(total) and total > 0.0 and scores @ target > 0.0 else None


def _value(matrix: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> float:
    return float(weights @ (matrix @ weights) / (scores @ weights))
