"""The scores of the features, from the top: what a walk goes down by.

The features with the best scores are found where they are (:meth:`FeatureSource.top <coterie.data.FeatureSource.top>`), no
further than the walk comes. Ties are broken by the one rule of :mod:`coterie.order`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coterie.data.top import NO_FEATURES, CandidateMask, Top, TopQuery
from coterie.data.view import FeatureView
from coterie.order import TIE, in_order

# Features of a chunk: their correlations with each other may be computed.
_LARGEST_CHUNK = 512


class LazyScores:
    """Scores of the features for one residual.

    Parameters
    ----------
    view : FeatureView
        The features.
    residual : ndarray of shape (n_samples, n_outputs)
        Dual variables.
    first_floor : float, default=inf
        Reach down to which the first layer goes; inf for half of the largest one.
    known : Top, optional
        The best scores, where somebody has looked for them already.

    Attributes
    ----------
    needed : float
        Reach down to which the chunks so far needed scores.
    hint : ndarray of int or None
        The features that somebody has found to be the best, whom it may help to know them the next time.
    chunks : list of (ndarray, ndarray)
        The chunks so far: every free feature whose score is not under the lowest of them is there.
    """

    def __init__(
        self, view: FeatureView, residual: np.ndarray, *, first_floor: float = np.inf, known: Top | None = None
    ) -> None:
        self.view = view
        self.residual = residual
        self.chunks: list[tuple[np.ndarray, np.ndarray]] = []
        self.needed = np.inf
        self._first_floor = first_floor
        self._known = known
        self.hint: np.ndarray | None = getattr(known, "known", None)
        self._tops: list[Top] = []
        self._n_scored = 0
        self._length = view.norm_of(residual)

    @property
    def n_scored(self) -> int:
        """Number of features scored."""
        return self._n_scored + sum(top.n_scored for top in self._tops)

    def descend(self, candidates: CandidateMask, first_size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Free features, best first, with their scores, in chunks that double in size."""
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
            self.needed = low / self._length if self._length > 0.0 else 0.0
            chunk = self.in_order(*top.between(low, below), tie)
            self.chunks.append(chunk)
            yield chunk
            below, size = low, min(2 * size, _LARGEST_CHUNK)

    def _top(self, candidates: CandidateMask, size: int) -> Top:
        """The best scores of free features; those that somebody has found are used once."""
        known, self._known = self._known, None
        query = TopQuery(self.view, self.residual, candidates, size, first_floor=self._first_floor)
        self._tops.append(self.view.source.top(query) if known is None else known)
        return self._tops[-1]

    def in_order(self, features: np.ndarray, scores: np.ndarray, tie: float | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Features and scores, best first; of tied features the first has the best of their scores, so that none rises."""
        order = in_order(self.view.source, features, scores, tie=tie, sample_weight=self.view.tie_weight)
        return features[order], -np.sort(-scores)

    def of(self, features: np.ndarray) -> np.ndarray:
        """Scores of some features."""
        self._n_scored += len(features)
        return self.view.scores(self.residual, features)

    def count(self, n_features: int) -> None:
        """Write down that so many features were scored by somebody else."""
        self._n_scored += n_features

    def excluded(self) -> tuple[np.ndarray, np.ndarray]:
        """The features that are neither free nor constant, and their scores, as far as they can match the chunks'."""
        return self._tops[-1].excluded() if self._tops else (NO_FEATURES, np.empty(0))


class SharedPass:
    """Scores for many residuals over one source by one pass.

    Parameters
    ----------
    views : sequence of FeatureView
        All views that will be asked about, of the same source.
    n_threads : int, default=1
        Number of threads; never changes a result.
    """

    def __init__(self, views: Sequence[FeatureView], n_threads: int = 1) -> None:
        self._shared = views[0].source.shared_top(views, n_threads=n_threads)

    @property
    def n_passes(self) -> float:
        """How often the features were read."""
        return self._shared.n_passes

    def best(self, queries: Sequence[TopQuery]) -> list[LazyScores]:
        """Scores that begin with the best features of each query, in one pass for all."""
        tops = self._shared.best(queries)
        return [LazyScores(query.view, query.residual, known=top) for query, top in zip(queries, tops, strict=True)]
