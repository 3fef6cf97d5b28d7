r"""The scores of the features: found from the top, no further than needed.

**Norm bound.** A score is a product with the residual, so
:math:`|s_j| \le \|f_j\|_\omega (\sum_i \tilde\alpha_i^2/\omega_i)^{1/2}` (Cauchy-Schwarz with the sample weights
:math:`\omega`; features are centred where there is an intercept). Features are scored in layers of
falling norm, and no layer is touched before the walk has come down to the best score that it could
hold. In data with a long tail of rare features (words, clicks) that is a small part of one pass; where
all norms are alike it is one pass.

**Order.** Ties are broken by the one rule of :mod:`coterie.order`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from coterie.data.view import FeatureView
from coterie.kernels.columns import kth_largest, positions_between
from coterie.order import TIE, in_order

# Each layer goes down to this part of the previous one's norms.
_LAYER = 0.5
# Features of a chunk: their correlations with each other may be computed.
_LARGEST_CHUNK = 512


class Query(NamedTuple):
    """A residual whose best features somebody wants to know.

    Attributes
    ----------
    view : FeatureView
        The features.
    residual : ndarray of shape (n_samples, n_outputs)
        Dual variables.
    free : ndarray of bool of shape (n_features,)
        The features that count.
    size : int
        How many of the best, at first.
    hint : ndarray of int
        Features that were among the best for a similar residual.
    """

    view: FeatureView
    residual: np.ndarray
    free: np.ndarray
    size: int
    hint: np.ndarray


class LazyScores:
    """Scores of the features for one residual, computed layer by layer.

    Parameters
    ----------
    view : FeatureView
        The features.
    residual : ndarray of shape (n_samples, n_outputs)
        Dual variables.
    first_floor : float, default=inf
        Reach down to which the first layer goes; inf for half of the largest one.

    Attributes
    ----------
    floor : float
        Reach down to which features have been scored.
    needed : float
        Reach down to which the chunks so far needed scores.
    n_scored : int
        Number of features scored.
    """

    def __init__(self, view: FeatureView, residual: np.ndarray, *, first_floor: float = np.inf) -> None:
        self.view = view
        self.residual = residual
        self.n_scored = 0
        self.floor = np.inf
        self.needed = np.inf
        self._first_floor = first_floor
        self._length = view.norm_of(residual)

    def descend(self, free: np.ndarray, first_size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Free features, best first, with their scores, in chunks that double in size."""
        features, scores = self._first_layer(free)
        tie = -1.0
        below, size = np.inf, first_size
        while True:
            low = float(kth_largest(scores, below, size))
            if self.floor > 0.0 and low <= self._hidden:
                features, scores = self._more(features, scores, free)
                continue
            if low < 0.0:
                return
            if tie < 0.0:
                tie = TIE * float(scores.max(initial=0.0))
            low = max(low - tie, 0.0)
            self.needed = low / self._length if self._length > 0.0 else 0.0
            where = positions_between(scores, low, below)
            yield self.in_order(where if features is None else features[where], scores[where], tie)
            below, size = low, min(2 * size, _LARGEST_CHUNK)

    def in_order(self, features: np.ndarray, scores: np.ndarray, tie: float | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Features and scores, best first; of tied features the first has the best of their scores, so that none rises."""
        order = in_order(self.view.source, features, scores, tie=tie, sample_weight=self.view.tie_weight)
        return features[order], -np.sort(-scores)

    def products(self) -> np.ndarray:
        """Products of all features with the residual, of shape (n_features, n_outputs)."""
        self.n_scored += self.view.n_features
        return self.view.products(self.residual)

    def of(self, features: np.ndarray | None) -> np.ndarray:
        """Scores of some (None: all) features."""
        self.n_scored += self.view.n_features if features is None else len(features)
        return self.view.scores(self.residual, features)

    @property
    def _hidden(self) -> float:
        """What no feature under the floor can have a better score than."""
        return self.floor * self._length * (1.0 + 1e-9)

    def _first_layer(self, free: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """The first features to look at (None: all) and their scores, -1 for those that are not free."""
        return self._layer(self._next_floor(np.inf), np.inf, free)

    def _more(self, features: np.ndarray | None, scores: np.ndarray, free: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """The same with the next layer."""
        more, more_scores = self._layer(self._next_floor(self.floor), self.floor, free)
        assert features is not None  # the first layer was not the whole
        assert more is not None
        return np.concatenate([features, more]), np.concatenate([scores, more_scores])

    def _next_floor(self, floor: float) -> float:
        """The next lower floor; 0 when next to nothing would be left under it."""
        reach = self.view.reach
        lower = _LAYER * floor if floor < np.inf else min(self._first_floor, _LAYER * reach.highest)
        return lower if lower > reach.lowest else 0.0

    def _layer(self, low: float, below: float, free: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Score the free features whose reach is in [low, below) (None: all); zero reach is that of constant features."""
        self.floor = low
        if low == 0.0 and below == np.inf:  # one pass in order of storage
            scores = self._finite(self.of(None))
            scores[~free] = -1.0
            return None, scores
        reach = self.view.reach.values
        features = np.flatnonzero(reach >= (low if low > 0.0 else np.finfo(float).tiny))
        if below < np.inf:
            features = features[reach[features] < below]
        scores = self._finite(self.of(features))
        scores[~free[features]] = -1.0
        return features, scores

    def _finite(self, scores: np.ndarray) -> np.ndarray:
        """The scores, unless one is none: a walk over NaN would not end."""
        if not math.isfinite(float(scores.sum())):
            raise ValueError(
                "The scores of the features are not finite: X or its source holds values that are not, or the scales of X, y, "
                "C and sample_weight are too far apart. Check the data (coterie info --check for a store), or rescale them."
            )
        return scores


class TopScores(LazyScores):
    """Scores whose best are known to be among a few features; they are computed again, so no bit depends on who knew.

    Parameters
    ----------
    query : Query
        What was asked.
    features : ndarray of int
        Free features with the best scores, by somebody's reckoning.
    hidden : float or None
        What no other free feature has a better score than; None where there is no other one.
    """

    def __init__(self, query: Query, features: np.ndarray, hidden: float | None) -> None:
        super().__init__(query.view, query.residual)
        self.features = features
        self._bound = 0.0 if hidden is None else hidden
        self.floor = 0.0 if hidden is None else np.inf

    @property
    def _hidden(self) -> float:
        return self._bound

    def _first_layer(self, free: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        scores = self._finite(self.of(self.features))
        scores[~free[self.features]] = -1.0
        return self.features, scores

    def _more(self, features: np.ndarray | None, scores: np.ndarray, free: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        return self._layer(0.0, np.inf, free)  # the few were not enough: one pass for all
