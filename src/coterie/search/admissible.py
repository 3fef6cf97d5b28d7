r"""All admissible sets of features: how much the most violated one can violate, and which one it is.

The papers' problem is :math:`\min_\alpha\max_{\delta\in\Delta} g_\delta(\alpha)`, where :math:`\Delta` holds every set of
at most K features of which no two are correlated at the threshold or over it. For dual variables :math:`\alpha` a set adds
up the squared scores of its features, so :math:`\varphi = \max_\delta g_\delta(\alpha)` needs the heaviest admissible set:
the greedy walk finds one that is nearly so, :meth:`AdmissibleSets.highest` bounds all of them at the price of a few
correlations, and :meth:`AdmissibleSets.search` is exact (:mod:`coterie.search.independent_set` has the mathematics).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.correlation.protocol import ROUNDING, Correlation
from coterie.data.top import Free
from coterie.data.view import FeatureView
from coterie.order import in_order
from coterie.search.independent_set import best_set, bound_of_sets
from coterie.search.scores import LazyScores

# Features that are compared with each other, at most, for a bound and for a search; others count as nobody's rivals.
_MOST = 2048
# Features whose scores are sorted out at a time.
_AT_ONCE = 1 << 18


def _compared(size: int) -> int:
    """Features that are worth comparing with each other for a bound on sets of so many."""
    return min(8 * max(size, 1), max(2 * size, 512), _MOST)


def _searched(size: int) -> int:
    """Features that a search for such a set looks at."""
    return min(max(2 * size, 512), _MOST)


class Top(NamedTuple):
    """The features with the best scores, falling, and a score that no other feature exceeds."""

    features: np.ndarray
    scores: np.ndarray
    beyond: float

    def first(self, most: int) -> Top:
        """The first of them."""
        if len(self.features) <= most:
            return self
        return Top(self.features[:most], self.scores[:most], float(self.scores[most]))


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
        self.varying = Free(self.view.moments)

    def highest(self, scores: LazyScores, free: Free, size: int) -> float:
        """What no set of so many features adds up to more than, free or not: by the scores of a walk over the free ones."""
        if not scores.chunks:  # nobody has walked yet
            next(scores.descend(free, _compared(size)), None)
        return self._bound(self._top(scores, free), size)

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
        top = Top(np.empty(0, dtype=np.int64), np.empty(0), np.inf)
        others, most, n_varying = 0.0, _searched(size), self.varying.count
        for chunk, values in scores.descend(self.varying, _compared(size)):
            lowest = float(values[-1]) if len(top.features) + len(chunk) < n_varying else 0.0
            top = Top(np.append(top.features, chunk), np.append(top.scores, values), lowest).first(most)
            # A set with a feature below the last one has this, at most, of its others: it need not be looked at.
            others = self._bound(top, size - 1)
            if others + top.beyond**2 <= floor or len(top.features) == most:
                break
        chosen, bound = best_set(top.scores**2, self._rivals(top.features), size, floor)
        if top.beyond > 0.0:
            bound = max(bound, others + top.beyond**2)
        return top.features[chosen], top.scores[chosen], bound

    def _top(self, scores: LazyScores, free: Free) -> Top:
        """The best features, those that are not free among them, as far as the walk has come."""
        features, values = (np.concatenate([chunk[i] for chunk in scores.chunks] or [np.empty(0)]) for i in range(2))
        lowest = float(values[-1]) if len(values) < free.count else 0.0
        barred, barred_values = scores.barred()
        high = barred_values >= lowest
        features = np.append(features, barred[high]).astype(np.int64)
        best = self._best(features, np.append(values, barred_values[high]), len(features))
        return best._replace(beyond=lowest)

    def _best(self, features: np.ndarray, values: np.ndarray, most: int) -> Top:
        """The best of some features, in order."""
        features, values, beyond = _cut(features, values, most)
        order = in_order(self.view.source, features, values, sample_weight=self.view.sample_weight)
        return Top(features[order], -np.sort(-values), beyond)

    def _bound(self, top: Top, size: int) -> float:
        bound = 0.0
        for most in (2 * size, _compared(size)):  # where few features are correlated, a few are enough
            part = top.first(most)
            bound, enough = bound_of_sets(part.scores**2, self._rivals(part.features, size), size, part.beyond**2)
            if enough or len(part.features) == len(top.features):
                break
        return bound

    def _rivals(self, features: np.ndarray, size: int = 2) -> np.ndarray:
        """Which of some features are correlated; nobody asks it of sets of one."""
        if size < 2 or not np.isfinite(self.limit) or len(features) < 2:
            return np.zeros((len(features), len(features)), dtype=bool)
        matrix = np.abs(self.correlation.within(features)) >= self.limit
        np.fill_diagonal(matrix, False)
        return matrix


def _largest(view: FeatureView, scores: np.ndarray, most: int) -> Top:
    """The best of the features of a block, in no order; no further array of the length of all of them."""
    best = Top(np.empty(0, dtype=np.int64), np.empty(0), 0.0)
    for first in range(0, len(scores), _AT_ONCE):
        varying = first + np.flatnonzero(view.moments.norm[first : first + _AT_ONCE] > 0.0)
        cut = _cut(np.append(best.features, varying), np.append(best.scores, scores[varying]), most)
        best = cut._replace(beyond=max(best.beyond, cut.beyond))
    return best._replace(features=best.features + view.source.first_feature)


def _cut(features: np.ndarray, values: np.ndarray, most: int) -> Top:
    """The best of some features, and the best value of the others (0 where there are none)."""
    if len(values) <= most:
        return Top(features, values, 0.0)
    place = len(values) - most
    where = np.argpartition(values, place)
    return Top(features[where[place:]], values[where[place:]], float(values[where[:place]].max()))
