r"""Admissible feature sets: a bound on the largest violation, and the set that attains it.

The papers' problem is :math:`\min_\alpha\max_{\delta\in\Delta} g_\delta(\alpha)`, where :math:`\Delta` contains every set of
at most K features without two features whose absolute correlation reaches the threshold. For dual variables :math:`\alpha`,
the value of a set is the sum of the squared scores of its features, so :math:`\varphi = \max_\delta g_\delta(\alpha)` requires
the admissible set of largest value. The greedy walk finds a set that is nearly the best. :meth:`AdmissibleSets.upper_bound`
bounds all sets at the cost of a few correlations, and :meth:`AdmissibleSets.search` is exact.

Two features conflict if their absolute correlation reaches the threshold. The value of an admissible set is the sum of the
values of its features, their squared scores. Without conflicts the best set of K features is the first K. With conflicts it is
a maximum-weight independent set, which the greedy walk of the papers does not always find: a feature that conflicts with two
others, each slightly worse, excludes both.

**Bound.** Assign the features, best first, to cliques: each joins the first clique in which it conflicts with all members, or
starts a new clique. An admissible set contains at most one feature per clique, and the first member of a clique is its best.
Hence the value of an admissible set of K features is at most the sum over the first members of the K best cliques. Cliques are
started in order of decreasing value, so nothing after the K-th clique matters. Without conflicts this is the sum of the first
K.

**Search.** Branch and bound: include or skip the best remaining feature, and discard a branch whose bound does not exceed the
best value found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.correlation.protocol import ROUNDING, Correlation
from coterie.data.top import CandidateMask
from coterie.data.view import FeatureView
from coterie.order import in_order
from coterie.search.scores import LazyScores

# Features that are compared with each other, at most, for a bound or a search. The others count as free of conflicts.
_MAX_COMPARED = 2048
# Limits of a search: branches, and steps of all their bounds (about a second). The bound that a search returns covers the
# branches that were not visited.
_MAX_BRANCHES = 5000
_MAX_STEPS = 10**7

# Features whose scores are partitioned at a time.
_CHUNK_FEATURES = 1 << 18


def _n_compared(size: int) -> int:
    """Return the number of features to compare with each other for a bound on sets of ``size`` features."""
    return min(8 * max(size, 1), max(2 * size, 512), _MAX_COMPARED)


def _n_searched(size: int) -> int:
    """Return the number of features that a search for a set of ``size`` features considers."""
    return min(max(2 * size, 512), _MAX_COMPARED)


class BestScores(NamedTuple):
    """Features with the best scores in decreasing order, and a bound ``beyond`` on the scores of all others."""

    features: np.ndarray
    scores: np.ndarray
    beyond: float

    def first(self, n_best: int) -> BestScores:
        """Return the best ``n_best`` features."""
        if len(self.features) <= n_best:
            return self
        return BestScores(self.features[:n_best], self.scores[:n_best], float(self.scores[n_best]))


class AdmissibleSets:
    """The sets of features that are not correlated with each other.

    Parameters
    ----------
    correlation : Correlation
        Correlations of the features.
    threshold : float
        Absolute correlation from which two features conflict. Infinity allows all sets.
    """

    def __init__(self, correlation: Correlation, threshold: float) -> None:
        self.correlation = correlation
        self.view = correlation.view
        self.limit = threshold - ROUNDING
        self.varying = CandidateMask(self.view.moments)

    def upper_bound(self, scores: LazyScores, candidates: CandidateMask, size: int) -> float:
        """Return an upper bound on the value of every set of ``size`` features, from the scores of a walk over the candidates.

        The bound covers sets with excluded features, too.
        """
        if not scores.chunks:  # no walk has been made for these scores
            next(scores.descend(candidates, _n_compared(size)), None)
        return self._bound(self._top(scores, candidates), size)

    def upper_bound_of(self, scores: np.ndarray, size: int) -> float:
        """Return the bound of :meth:`upper_bound` from the scores of all features."""
        parts = self.view.map_blocks(_largest, scores, _n_compared(size))
        features, values = (np.concatenate([part[i] for part in parts]) for i in range(2))
        best = self._sorted_best(features, values, _n_compared(size))
        return self._bound(best._replace(beyond=max(best.beyond, *(part.beyond for part in parts))), size)

    def search(self, scores: LazyScores, size: int, floor: float) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the set of at most ``size`` features with the largest value, its scores, and a bound on all sets.

        The set is empty if no set has a value above ``floor``, or if the search reached its limits before it found one.
        """
        top = BestScores(np.empty(0, dtype=np.int64), np.empty(0), np.inf)
        others, n_best, n_varying = 0.0, _n_searched(size), self.varying.count
        for chunk, values in scores.descend(self.varying, _n_compared(size)):
            lowest = float(values[-1]) if len(top.features) + len(chunk) < n_varying else 0.0
            top = BestScores(np.append(top.features, chunk), np.append(top.scores, values), lowest).first(n_best)
            # A set that contains a feature below the last one is worth at most this much in its other features, plus that
            # feature. If the sum does not exceed the floor, such sets need not be searched.
            others = self._bound(top, size - 1)
            if others + top.beyond**2 <= floor or len(top.features) == n_best:
                break
        chosen, bound = best_set(top.scores**2, self._conflicts(top.features), size, floor)
        if top.beyond > 0.0:
            bound = max(bound, others + top.beyond**2)
        return top.features[chosen], top.scores[chosen], bound

    def _top(self, scores: LazyScores, candidates: CandidateMask) -> BestScores:
        """Return the best features down to the end of the walk, including excluded features."""
        features, values = (np.concatenate([chunk[i] for chunk in scores.chunks] or [np.empty(0)]) for i in range(2))
        lowest = float(values[-1]) if len(values) < candidates.count else 0.0
        excluded, excluded_values = scores.excluded()
        high = excluded_values >= lowest
        features = np.append(features, excluded[high]).astype(np.int64)
        best = self._sorted_best(features, np.append(values, excluded_values[high]), len(features))
        return best._replace(beyond=lowest)

    def _sorted_best(self, features: np.ndarray, values: np.ndarray, n_best: int) -> BestScores:
        """Return the best ``n_best`` of the given features, in order."""
        features, values, beyond = _partition_best(features, values, n_best)
        order = in_order(self.view.source, features, values, sample_weight=self.view.sample_weight)
        return BestScores(features[order], -np.sort(-values), beyond)

    def _bound(self, top: BestScores, size: int) -> float:
        bound = 0.0
        for n_best in (size, 2 * size, _n_compared(size)):  # If few features are correlated, a smaller number is enough.
            part = top.first(n_best)
            bound, enough = bound_of_sets(part.scores**2, self._conflicts(part.features, size), size, part.beyond**2)
            if enough or len(part.features) == len(top.features):
                break
        return bound

    def _conflicts(self, features: np.ndarray, size: int = 2) -> np.ndarray:
        """Return the conflict matrix of some features. It is empty for ``size`` 1, because sets of one have no conflicts."""
        if size < 2 or not np.isfinite(self.limit) or len(features) < 2:
            return np.zeros((len(features), len(features)), dtype=bool)
        matrix = np.abs(self.correlation.within(features)) >= self.limit
        np.fill_diagonal(matrix, False)
        return matrix


def _largest(view: FeatureView, scores: np.ndarray, n_best: int) -> BestScores:
    """Return the best features of a block, unordered. Works in chunks to avoid another array over all features."""
    best = BestScores(np.empty(0, dtype=np.int64), np.empty(0), 0.0)
    for first in range(0, len(scores), _CHUNK_FEATURES):
        varying = first + np.flatnonzero(view.moments.norm[first : first + _CHUNK_FEATURES] > 0.0)
        cut = _partition_best(np.append(best.features, varying), np.append(best.scores, scores[varying]), n_best)
        best = cut._replace(beyond=max(best.beyond, cut.beyond))
    return best._replace(features=best.features + view.source.first_feature)


def _partition_best(features: np.ndarray, values: np.ndarray, n_best: int) -> BestScores:
    """Return the best ``n_best`` features, unordered, and the largest value of the others (0 if there are no others)."""
    if len(values) <= n_best:
        return BestScores(features, values, 0.0)
    place = len(values) - n_best
    where = np.argpartition(values, place)
    return BestScores(features[where[place:]], values[where[place:]], float(values[where[:place]].max()))


def bound_of_sets(values: np.ndarray, conflicts: np.ndarray, size: int, beyond: float = 0.0) -> tuple[float, bool]:
    """Return an upper bound on the value of admissible sets, and whether the given features suffice for it.

    Parameters
    ----------
    values : ndarray of shape (n_features,)
        Values of the best features, decreasing.
    conflicts : ndarray of bool of shape (n_features, n_features)
        Which of them exclude each other.
    size : int
        Number of features in a set.
    beyond : float, default=0.0
        Upper bound on the value of every other feature. If the given features form fewer than ``size`` cliques, the bound
        assumes that the other features do not conflict.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.search.admissible import bound_of_sets
    >>> conflicts = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    >>> bound_of_sets(np.array([5.0, 4.0, 1.0]), conflicts, 2)
    (6.0, True)
    """
    leaders = _clique_leaders(list(range(len(values))), _masks(conflicts), size)
    known = float(sum(values[k] for k in leaders))
    return known + (size - len(leaders)) * beyond, len(leaders) == size


def best_set(values: np.ndarray, conflicts: np.ndarray, size: int, floor: float) -> tuple[np.ndarray, float]:
    """Return the admissible set of at most ``size`` features with the largest value, and a bound on all sets.

    The set is empty if no set has a value above ``floor``. The bound is at least ``floor``. It equals the value of the set (or
    ``floor``) unless the search reached its limits.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.search.admissible import best_set
    >>> conflicts = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=bool)
    >>> chosen, bound = best_set(np.array([5.0, 4.0, 3.0]), conflicts, 2, 0.0)
    >>> chosen.tolist(), float(bound)
    ([1, 2], 7.0)
    """
    masks = _masks(conflicts)
    best, chosen = floor, tuple[int, ...]()
    # Remaining features (best first), features taken, their value, number of features still to take.
    branches: list[tuple[list[int], tuple[int, ...], float, int]] = [(list(range(len(values))), (), 0.0, size)]
    max_visited = min(_MAX_BRANCHES, _MAX_STEPS // max(len(values) * size, 1))
    n_visited = 0
    while branches:
        left, taken, value, wanted = branches.pop()
        limit = value + sum(values[k] for k in _clique_leaders(left, masks, wanted))
        if limit <= best:
            continue
        n_visited += 1
        if n_visited > max_visited:
            open_limits = [
                value + sum(values[k] for k in _clique_leaders(left, masks, wanted)) for left, _, value, wanted in branches
            ]
            return np.array(chosen, dtype=np.int64), float(max([best, limit, *open_limits]))
        first, rest = left[0], left[1:]
        branches.append((rest, taken, value, wanted))
        more = value + values[first]
        if more > best:
            best, chosen = more, (*taken, first)
        branches.append(([k for k in rest if not masks[first] >> k & 1], (*taken, first), more, wanted - 1))
    return np.array(chosen, dtype=np.int64), float(best)


def _masks(conflicts: np.ndarray) -> list[int]:
    """Return the conflicts of each feature as the bits of an integer."""
    return [int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little") for row in conflicts]


def _clique_leaders(features: list[int], masks: list[int], size: int) -> list[int]:
    """Return the first members of the first ``size`` cliques."""
    leaders: list[int] = []
    common: list[int] = []  # Per clique that can grow: bit mask of the features that conflict with all its members.
    for k in features:
        if len(leaders) == size:
            break
        place = next((place for place, shared in enumerate(common) if shared >> k & 1), None) if masks[k] else None
        if place is not None:
            common[place] &= masks[k]
            continue
        leaders.append(k)
        if masks[k]:
            common.append(masks[k])
    return leaders
