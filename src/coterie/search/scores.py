"""Scores of the features in decreasing order, computed as far as a walk needs them.

The source of the features finds the best scores (:meth:`FeatureSource.top <coterie.data.FeatureSource.top>`). Ties are broken
by the rule of :mod:`coterie.order`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coterie.data.top import NO_FEATURES, CandidateMask, Top, TopQuery
from coterie.data.view import FeatureView
from coterie.order import TIE, in_order

# Largest number of features in a chunk. Callers may compute all correlations within a chunk.
_MAX_CHUNK_FEATURES = 512


class LazyScores:
    """Scores of the features for one residual.

    Parameters
    ----------
    view : FeatureView
        The features.
    residual : ndarray of shape (n_samples, n_outputs)
        Dual variables.
    first_floor : float, default=inf
        Feature norm down to which the first layer is scored. Infinity means half of the largest norm.
    known : Top, optional
        The best scores, if a shared pass has already computed them.

    Attributes
    ----------
    needed_norm : float
        Smallest feature norm that could reach the scores of the chunks so far.
    hint : ndarray of int or None
        The best features found by a shared pass. They speed up the next one.
    chunks : list of (ndarray, ndarray)
        The chunks so far. They contain every candidate whose score is at least the lowest score in them.
    """

    def __init__(
        self, view: FeatureView, residual: np.ndarray, *, first_floor: float = np.inf, known: Top | None = None
    ) -> None:
        self.view = view
        self.residual = residual
        self.chunks: list[tuple[np.ndarray, np.ndarray]] = []
        self.needed_norm = np.inf
        self._first_floor = first_floor
        self._known = known
        self.hint: np.ndarray | None = getattr(known, "known", None)
        self._tops: list[Top] = []
        self._n_scored = 0
        self._length = view.norm_of(residual)

    @property
    def n_scored(self) -> int:
        """Number of features scored so far."""
        return self._n_scored + sum(top.n_scored for top in self._tops)

    def descend(self, candidates: CandidateMask, first_size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield candidates and their scores, best first, in chunks of doubling size."""
        self.chunks = []
        top = self._top(candidates, first_size)
        tie = -1.0
        below, size = np.inf, first_size
        while True:
            low = top.kth(below, size)
            if low < 0.0:
                return
            if tie < 0.0:
                tie = TIE * top.best
            low = max(low - tie, 0.0)
            self.needed_norm = low / self._length if self._length > 0.0 else 0.0
            chunk = self.in_order(*top.between(low, below), tie)
            self.chunks.append(chunk)
            yield chunk
            below, size = low, min(2 * size, _MAX_CHUNK_FEATURES)

    def _top(self, candidates: CandidateMask, size: int) -> Top:
        """Return the best scores of the candidates. Those known from a shared pass are used once."""
        known, self._known = self._known, None
        query = TopQuery(self.view, self.residual, candidates, size, first_floor=self._first_floor)
        self._tops.append(self.view.source.top(query) if known is None else known)
        return self._tops[-1]

    def in_order(self, features: np.ndarray, scores: np.ndarray, tie: float | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return features and scores, best first.

        Scores are sorted separately, so they never increase even if the tie rule puts a slightly lower score first.
        """
        order = in_order(self.view.source, features, scores, tie=tie, sample_weight=self.view.tie_weight)
        return features[order], -np.sort(-scores)

    def of(self, features: np.ndarray) -> np.ndarray:
        """Return the scores of some features."""
        self._n_scored += len(features)
        return self.view.scores(self.residual, features)

    def count(self, n_features: int) -> None:
        """Add features that were scored elsewhere to the count."""
        self._n_scored += n_features

    def excluded(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the excluded features that are not constant, and their scores, as far as these can reach the chunks'."""
        return self._tops[-1].excluded() if self._tops else (NO_FEATURES, np.empty(0))


class SharedPass:
    """Scores for many residuals from one pass over a source.

    Parameters
    ----------
    views : sequence of FeatureView
        All views that queries may refer to, of the same source.
    n_threads : int, default=1
        Number of threads. The result does not depend on it.
    """

    def __init__(self, views: Sequence[FeatureView], n_threads: int = 1) -> None:
        self.top = views[0].source.shared_top(views, n_threads=n_threads)

    @property
    def n_passes(self) -> float:
        """Number of passes over the features."""
        return self.top.n_passes

    def best(self, queries: Sequence[TopQuery]) -> list[LazyScores]:
        """Return the scores for each query, starting with its best features. Makes one pass for all queries."""
        tops = self.top.best(queries)
        return [LazyScores(query.view, query.residual, known=top) for query, top in zip(queries, tops, strict=True)]
