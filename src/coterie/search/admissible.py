r"""All admissible sets of features: how much the most violated one can violate, and which one it is.

The papers' problem is :math:`\min_\alpha\max_{\delta\in\Delta} g_\delta(\alpha)`, where :math:`\Delta` holds every set of
at most K features of which no two are correlated at the threshold or over it. For dual variables :math:`\alpha` a set adds
up the squared scores of its features, so :math:`\varphi = \max_\delta g_\delta(\alpha)` needs the heaviest admissible set:
the greedy walk finds one that is nearly so, :meth:`AdmissibleSets.highest` bounds all of them at the price of a few
correlations, and :meth:`AdmissibleSets.search` is exact.

Two features are rivals when they are correlated at the threshold or over it. The value of an admissible set is the sum
of its features' values, the squared scores. Without rivals the best set of K is simply the first K. With rivals it is a
heaviest independent set, which the greedy walk of the papers does not always find: a feature that is a rival of two others,
each a little worse, keeps both out.

**Bound.** Deal the features, best first, into cliques: each joins the first clique all of whose members are its rivals, or
opens a new one. An admissible set takes at most one feature of a clique, and the first member of a clique is its best, so no
admissible set of K is worth more than the first members of the K best cliques. Cliques are opened in order of falling value,
so nothing after the K-th opening matters. Without rivals this is the sum of the first K.

**Search.** Branch and bound: take the best feature left, or leave it, and drop a branch whose bound is no better than what
is known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.correlation.protocol import ROUNDING, Correlation
from coterie.data.top import CandidateMask
from coterie.data.view import FeatureView
from coterie.order import in_order
from coterie.search.scores import LazyScores

# Features that are compared with each other, at most, for a bound and for a search; others count as nobody's rivals.
_MAX_COMPARED = 2048
# Branches that a search looks at before it gives up, and steps of all their bounds, about a second; what it has not seen is
# in its bound.
_MAX_BRANCHES = 5000
_MAX_STEPS = 10**7

# Features whose scores are sorted out at a time.
_AT_ONCE = 1 << 18


def _compared(size: int) -> int:
    """Features that are worth comparing with each other for a bound on sets of so many."""
    return min(8 * max(size, 1), max(2 * size, 512), _MAX_COMPARED)


def _searched(size: int) -> int:
    """Features that a search for such a set looks at."""
    return min(max(2 * size, 512), _MAX_COMPARED)


class BestScores(NamedTuple):
    """The features with the best scores, falling, and a score that no other feature exceeds."""

    features: np.ndarray
    scores: np.ndarray
    beyond: float

    def first(self, most: int) -> BestScores:
        """The first of them."""
        if len(self.features) <= most:
            return self
        return BestScores(self.features[:most], self.scores[:most], float(self.scores[most]))


class AdmissibleSets:
    """The sets of features that are not correlated with each other.

    Parameters
    ----------
    correlation : Correlation
        Correlations of the features.
    threshold : float
        \\|correlation\\| that keeps two features out of one set; infinite to allow all sets.
    """

    def __init__(self, correlation: Correlation, threshold: float) -> None:
        self.correlation = correlation
        self.view = correlation.view
        self.limit = threshold - ROUNDING
        self.varying = CandidateMask(self.view.moments)

    def highest(self, scores: LazyScores, candidates: CandidateMask, size: int) -> float:
        """What no set of so many features adds up to more than, free or not: by the scores of a walk over the free ones."""
        if not scores.chunks:  # nobody has walked yet
            next(scores.descend(candidates, _compared(size)), None)
        return self._bound(self._top(scores, candidates), size)

    def highest_of(self, scores: np.ndarray, size: int) -> float:
        """The same from the scores of all features."""
        parts = self.view.map_blocks(_largest, scores, _compared(size))
        features, values = (np.concatenate([part[i] for part in parts]) for i in range(2))
        best = self._best(features, values, _compared(size))
        return self._bound(best._replace(beyond=max(best.beyond, *(part.beyond for part in parts))), size)

    def search(self, scores: LazyScores, size: int, floor: float) -> tuple[np.ndarray, np.ndarray, float]:
        """The set of so many features that adds up to most, its scores, and a bound on all sets.

        The set is empty where none adds up to more than ``floor``, or the search had to give up before it found one.
        """
        top = BestScores(np.empty(0, dtype=np.int64), np.empty(0), np.inf)
        others, most, n_varying = 0.0, _searched(size), self.varying.count
        for chunk, values in scores.descend(self.varying, _compared(size)):
            lowest = float(values[-1]) if len(top.features) + len(chunk) < n_varying else 0.0
            top = BestScores(np.append(top.features, chunk), np.append(top.scores, values), lowest).first(most)
            # A set with a feature below the last one has this, at most, of its others: it need not be looked at.
            others = self._bound(top, size - 1)
            if others + top.beyond**2 <= floor or len(top.features) == most:
                break
        chosen, bound = best_set(top.scores**2, self._conflicts(top.features), size, floor)
        if top.beyond > 0.0:
            bound = max(bound, others + top.beyond**2)
        return top.features[chosen], top.scores[chosen], bound

    def _top(self, scores: LazyScores, candidates: CandidateMask) -> BestScores:
        """The best features, those that are not free among them, as far as the walk has come."""
        features, values = (np.concatenate([chunk[i] for chunk in scores.chunks] or [np.empty(0)]) for i in range(2))
        lowest = float(values[-1]) if len(values) < candidates.count else 0.0
        excluded, excluded_values = scores.excluded()
        high = excluded_values >= lowest
        features = np.append(features, excluded[high]).astype(np.int64)
        best = self._best(features, np.append(values, excluded_values[high]), len(features))
        return best._replace(beyond=lowest)

    def _best(self, features: np.ndarray, values: np.ndarray, most: int) -> BestScores:
        """The best of some features, in order."""
        features, values, beyond = _cut(features, values, most)
        order = in_order(self.view.source, features, values, sample_weight=self.view.sample_weight)
        return BestScores(features[order], -np.sort(-values), beyond)

    def _bound(self, top: BestScores, size: int) -> float:
        bound = 0.0
        for most in (2 * size, _compared(size)):  # where few features are correlated, a few are enough
            part = top.first(most)
            bound, enough = bound_of_sets(part.scores**2, self._conflicts(part.features, size), size, part.beyond**2)
            if enough or len(part.features) == len(top.features):
                break
        return bound

    def _conflicts(self, features: np.ndarray, size: int = 2) -> np.ndarray:
        """Which of some features are correlated; nobody asks it of sets of one."""
        if size < 2 or not np.isfinite(self.limit) or len(features) < 2:
            return np.zeros((len(features), len(features)), dtype=bool)
        matrix = np.abs(self.correlation.within(features)) >= self.limit
        np.fill_diagonal(matrix, False)
        return matrix


def _largest(view: FeatureView, scores: np.ndarray, most: int) -> BestScores:
    """The best of the features of a block, in no order; no further array of the length of all of them."""
    best = BestScores(np.empty(0, dtype=np.int64), np.empty(0), 0.0)
    for first in range(0, len(scores), _AT_ONCE):
        varying = first + np.flatnonzero(view.moments.norm[first : first + _AT_ONCE] > 0.0)
        cut = _cut(np.append(best.features, varying), np.append(best.scores, scores[varying]), most)
        best = cut._replace(beyond=max(best.beyond, cut.beyond))
    return best._replace(features=best.features + view.source.first_feature)


def _cut(features: np.ndarray, values: np.ndarray, most: int) -> BestScores:
    """The best of some features, and the best value of the others (0 where there are none)."""
    if len(values) <= most:
        return BestScores(features, values, 0.0)
    place = len(values) - most
    where = np.argpartition(values, place)
    return BestScores(features[where[place:]], values[where[place:]], float(values[where[:place]].max()))


def bound_of_sets(values: np.ndarray, conflicts: np.ndarray, size: int, beyond: float = 0.0) -> tuple[float, bool]:
    """What no admissible set of so many features is worth more than, and whether the features were enough to tell.

    Parameters
    ----------
    values : ndarray of shape (n_features,)
        Values of the best features, falling.
    rivals : ndarray of bool of shape (n_features, n_features)
        Which of them exclude each other.
    size : int
        Features of a set.
    beyond : float, default=0.0
        What no other feature is worth more than; if these are not enough, the others may all go together.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.search.admissible import bound_of_sets
    >>> conflicts = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    >>> bound_of_sets(np.array([5.0, 4.0, 1.0]), conflicts, 2)
    (6.0, True)
    """
    opened = _openings(list(range(len(values))), _masks(conflicts), size)
    known = float(sum(values[k] for k in opened))
    return known + (size - len(opened)) * beyond, len(opened) == size


def best_set(values: np.ndarray, conflicts: np.ndarray, size: int, floor: float) -> tuple[np.ndarray, float]:
    """The admissible set of so many features that is worth most, and a bound on all sets.

    The set is empty if none is worth more than ``floor``. The bound is at least ``floor``. It is the value of the set (or
    ``floor``) unless the search had to give up.

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
    # What is left to choose from (best first), what was taken, its value, how many are wanted.
    branches: list[tuple[list[int], tuple[int, ...], float, int]] = [(list(range(len(values))), (), 0.0, size)]
    most = min(_MAX_BRANCHES, _MAX_STEPS // max(len(values) * size, 1))
    looked_at = 0
    while branches:
        left, taken, value, wanted = branches.pop()
        limit = value + sum(values[k] for k in _openings(left, masks, wanted))
        if limit <= best:
            continue
        looked_at += 1
        if looked_at > most:
            open_limits = [
                value + sum(values[k] for k in _openings(left, masks, wanted)) for left, _, value, wanted in branches
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
    """The rivals of each feature as the bits of a number."""
    return [int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little") for row in conflicts]


def _openings(features: list[int], masks: list[int], size: int) -> list[int]:
    """The first members of the first cliques."""
    opened: list[int] = []
    common: list[int] = []  # of each clique with a rival, who is a rival of all its members
    for k in features:
        if len(opened) == size:
            break
        place = next((place for place, shared in enumerate(common) if shared >> k & 1), None) if masks[k] else None
        if place is not None:
            common[place] &= masks[k]
            continue
        opened.append(k)
        if masks[k]:
            common.append(masks[k])
    return opened
