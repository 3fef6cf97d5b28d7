r"""The features with the best scores for a residual, found from the top, no further than somebody asks.

**Norm bound.** A score is a product with the residual, so
:math:`|s_j| \le \|f_j\|_\omega (\sum_i \tilde\alpha_i^2/\omega_i)^{1/2}` (Cauchy-Schwarz with the sample weights
:math:`\omega`; features are centred where there is an intercept). Features are scored in layers of
falling norm, and no layer is touched before the walk has come down to the best score that it could
hold. In data with a long tail of rare features (words, clicks) that is a small part of one pass; where
all norms are alike it is one pass.

**Parts.** What is asked are order statistics: the k-th best score under some other, and the features between two scores. Those
of a matrix follow exactly from those of its parts, so that features may lie on many machines, and nobody ever has all scores.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from coterie.data.source import Moments
from coterie.data.view import FeatureView
from coterie.kernels.columns import kth_largest, positions_between

# Each layer goes down to this part of the previous one's norms.
_LAYER = 0.5
NOBODY = np.empty(0, dtype=np.int64)
Scored = tuple[np.ndarray, np.ndarray]  # features and their scores


class Free:
    """The features that count: those that vary, but for some that are taken.

    Only those that are taken are listed, so that it costs nothing where features are many and elsewhere.

    Parameters
    ----------
    moments : Moments
        Which features vary.
    taken : ndarray of int, optional
        Features that do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data import as_source
    >>> from coterie.data.top import Free
    >>> free = Free(as_source(np.array([[0.0, 1.0, 2.0], [5.0, 1.0, 0.0]])).moments())
    >>> free.bar(np.array([2]))
    >>> free[np.array([0, 1, 2])], free.count
    (array([ True, False, False]), 1)
    """

    def __init__(self, moments: Moments, taken: np.ndarray = NOBODY) -> None:
        self.moments = moments
        self.taken = np.unique(taken)
        self._mask: np.ndarray | None = None

    @classmethod
    def where(cls, moments: Moments, mask: np.ndarray) -> Free:
        """Those of a mask that vary."""
        return cls(moments, np.flatnonzero(~mask))

    def bar(self, features: np.ndarray) -> None:
        """Some features do not count any more."""
        self.taken = np.union1d(self.taken, features)
        if self._mask is not None:
            self._mask[features] = False

    def __getitem__(self, features: np.ndarray) -> np.ndarray:
        """Whether each of some features counts."""
        varying = self.moments.norm[features] > 0.0
        if not len(self.taken):
            return np.asarray(varying)
        place = np.searchsorted(self.taken, features)  # they are sorted; numpy's isin would sort both
        return varying & (self.taken.take(place, mode="clip") != features)

    @property
    def mask(self) -> np.ndarray:
        """Whether each feature counts; of features in memory only."""
        if self._mask is None:
            self._mask = self.moments.norm > 0.0
            self._mask[self.taken] = False
        return self._mask

    @property
    def barred(self) -> np.ndarray:
        """The features that vary and do not count."""
        return self.taken[self.moments.norm[self.taken] > 0.0]

    @property
    def count(self) -> int:
        """How many features count."""
        return self.moments.n_varying - len(self.barred)


class TopQuery(NamedTuple):
    """A residual whose best features somebody wants to know.

    Attributes
    ----------
    view : FeatureView
        The features.
    residual : ndarray of shape (n_samples, n_outputs)
        Dual variables.
    free : Free
        The features that count.
    size : int
        How many of the best, at first.
    hint : ndarray of int
        Features that were among the best for a similar residual.
    first_floor : float
        Norm (over the scale) down to which scores were needed for a similar residual; inf where that is not known.
    """

    view: FeatureView
    residual: np.ndarray
    free: Free
    size: int
    hint: np.ndarray = NOBODY
    first_floor: float = np.inf


class Top(Protocol):
    """The scores of the free features for one residual, as far as they are known."""

    @property
    def n_scored(self) -> int:
        """Features scored so far."""
        ...

    @property
    def best(self) -> float:
        """The best score; known when :meth:`kth` was asked."""
        ...

    def kth(self, below: float, size: int) -> float:
        """The ``size``-th best score under ``below``, or the last of them if there are fewer; -1 where there is none."""
        ...

    def between(self, low: float, below: float) -> Scored:
        """All features with scores in [low, below), in any order, where ``low`` is no more than :meth:`kth` said."""
        ...

    def barred(self) -> Scored:
        """The features that vary and are not free, as far as their scores can match those that were asked for."""
        ...


class LayeredTop:
    """Scores of features in memory, computed layer by layer.

    Parameters
    ----------
    query : TopQuery
        What is asked.
    """

    def __init__(self, query: TopQuery) -> None:
        self.view, self.residual, self.free = query.view, query.residual, query.free
        self.n_scored = 0
        self._first_floor = query.first_floor
        self._length = self.view.norm_of(self.residual)
        self._floor = np.inf  # reach down to which features have been scored
        self._barred: list[Scored] = []
        self._features: np.ndarray | None = NOBODY  # None for all
        self._scores = np.empty(0)
        self._begun = False

    @property
    def best(self) -> float:
        return float(self._scores.max(initial=0.0))

    def kth(self, below: float, size: int) -> float:
        self._begin()
        while True:
            low = float(kth_largest(self._scores, below, size))
            if self._floor == 0.0 or low > self._hidden:
                return low
            self._more()

    def between(self, low: float, below: float) -> Scored:
        where = positions_between(self._scores, low, below)
        return where if self._features is None else self._features[where], self._scores[where]

    def barred(self) -> Scored:
        parts = [(NOBODY, np.empty(0)), *self._barred]
        features, scores = (np.concatenate([part[i] for part in parts]) for i in range(2))
        varying = self.view.moments.norm[features] > 0.0
        return features[varying], scores[varying]

    @property
    def _hidden(self) -> float:
        """What no feature under the floor can have a better score than."""
        return self._floor * self._length * (1.0 + 1e-9)

    def _begin(self) -> None:
        """Score the first features, once."""
        if not self._begun:
            self._begun = True
            self._features, self._scores = self._first()

    def _first(self) -> tuple[np.ndarray | None, np.ndarray]:
        """The first features to look at (None: all) and their scores, -1 for those that are not free."""
        return self._layer(self._next_floor(np.inf), np.inf)

    def _more(self) -> None:
        """Score the next layer."""
        more, scores = self._layer(self._next_floor(self._floor), self._floor)
        assert self._features is not None  # the first layer was not the whole
        assert more is not None
        self._features, self._scores = np.concatenate([self._features, more]), np.concatenate([self._scores, scores])

    def _next_floor(self, floor: float) -> float:
        """The next lower floor; 0 when next to nothing would be left under it."""
        reach = self.view.reach
        lower = _LAYER * floor if floor < np.inf else min(self._first_floor, _LAYER * reach.highest)
        return lower if lower > reach.lowest else 0.0

    def _layer(self, low: float, below: float) -> tuple[np.ndarray | None, np.ndarray]:
        """Score the free features whose reach is in [low, below) (None: all); zero reach is that of constant features."""
        self._floor = low
        free = self.free.mask
        if low == 0.0 and below == np.inf:  # one pass in order of storage
            scores = self._of(None)
            self._barred.append((np.flatnonzero(~free), scores[~free]))
            scores[~free] = -1.0
            return None, scores
        reach = self.view.reach.values
        features = np.flatnonzero(reach >= (low if low > 0.0 else np.finfo(float).tiny))
        if below < np.inf:
            features = features[reach[features] < below]
        scores = self._of(features)
        taken = ~free[features]
        self._barred.append((features[taken], scores[taken]))
        scores[taken] = -1.0
        return features, scores

    def _of(self, features: np.ndarray | None) -> np.ndarray:
        """Scores of some (None: all) features."""
        self.n_scored += self.view.n_features if features is None else len(features)
        return finite(self.view.scores(self.residual, features))


class KnownTop(LayeredTop):
    """Scores whose best are known to be among a few features; they are computed again, so no bit depends on who knew.

    Parameters
    ----------
    query : TopQuery
        What is asked.
    features : ndarray of int
        Free features with the best scores, by somebody's reckoning.
    hidden : float or None
        What no other free feature has a better score than; None where there is no other one.
    """

    def __init__(self, query: TopQuery, features: np.ndarray, hidden: float | None) -> None:
        super().__init__(query)
        self.known = features
        self._bound = 0.0 if hidden is None else hidden
        self._floor = 0.0 if hidden is None else np.inf

    @property
    def _hidden(self) -> float:
        return self._bound

    def _first(self) -> tuple[np.ndarray | None, np.ndarray]:
        scores = self._of(self.known)
        scores[~self.free[self.known]] = -1.0
        return self.known, scores

    def _more(self) -> None:
        self._features, self._scores = self._layer(0.0, np.inf)  # the few were not enough: one pass for all

    def barred(self) -> Scored:
        """The features that are neither free nor constant: nobody has scored them yet."""
        features = self.free.barred
        return features, self._of(features)


def finite(scores: np.ndarray) -> np.ndarray:
    """The scores, unless one is none: a walk over NaN would not end."""
    if not math.isfinite(float(scores.sum())):
        raise ValueError(
            "The scores of the features are not finite: X or its source holds values that are not, or the scales of X, y, "
            "C and sample_weight are too far apart. Check the data (coterie info --check for a store), or rescale them."
        )
    return scores
