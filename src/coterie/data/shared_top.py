r"""Scores for many residuals by one pass over the features.

Folds, half-samples, permuted labels and values of C are all the same thing: other residuals (and other weights of the
samples) over the same features. Here one pass multiplies a block of features with all residuals at once, by BLAS where the
features are dense, and keeps the best few features of each. Who asked computes the scores of these few again, by
the kernel that everybody uses (:class:`~coterie.data.top.KnownTop`), so that BLAS, the order of the columns and the
blocks leave no trace in a result: they decide only which features are looked at, with a margin for rounding.

**Rounding.** A sum of n products in an arithmetic of precision u is off by at most about nu times the norms of the two
vectors, in whatever order it is made. With some thousands of samples that is so little even in single precision, which
BLAS computes twice as fast, that few more features need a second look. A feature is kept unless its score, with what
rounding can have taken from it, is below what the best are sure to have.

**Norm bound.** A score is at most the feature's norm times that of the residual. So features of a sparse source whose norm is
too small for the best few of every residual are not multiplied; how good these are is known beforehand from the features
that were best in the round before.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from coterie._numba import read_only, run_chunks
from coterie.data.source import FeatureSource
from coterie.data.top import NOBODY, KnownTop, TopQuery
from coterie.data.view import FeatureView
from coterie.kernels.promising import promising_scores

# Values of a block of dense features, and of its products, that are held at once by a thread.
_BLOCK_VALUES = 1 << 21
_BLOCK_PRODUCTS = 1 << 20
# What rounding can add to a score in double precision, over the norms of feature and residual.
_MARGIN = 1e-11
# Samples up to which single precision is worth its margin; norms of features between which it neither over- nor underflows.
_MOST_IN_SINGLE = 1 << 13
_SAFE_IN_SINGLE = 1e-12, 1e12
# Weights of samples that are no further apart than this.
_ALIKE = 1e6
_UNSCALED = np.empty(0)


class SharedTop:
    """The best features for many residuals over one source.

    Parameters
    ----------
    views : sequence of FeatureView
        All views that will be asked about, of the same source.
    n_threads : int, default=1
        Number of threads; never changes a result.
    """

    def __init__(self, views: Sequence[FeatureView], n_threads: int = 1) -> None:
        first = views[0]
        self.source: FeatureSource = first.source
        self.n_features = first.n_features
        self.n_threads = n_threads
        self._reach = first.reach.values
        for view in {id(view): view for view in views[1:]}.values():
            self._reach = np.maximum(self._reach, view.reach.values)
        # The largest norm about zero, over the scale: what rounding errors of products without a centre are measured by.
        self._highest = max(_longest(view) for view in {id(view): view for view in views}.values())
        self._single = self._is_safe_in_single(views)
        self.n_multiplied = 0

    def _is_safe_in_single(self, views: Sequence[FeatureView]) -> bool:
        """Whether products in single precision tell the best features."""
        if self.source.is_sparse or self.source.shape[0] > _MOST_IN_SINGLE:
            return False
        lowest, highest = _SAFE_IN_SINGLE
        for view in {id(view): view for view in views}.values():
            norm, weight = view.moments.norm, view.sample_weight
            if norm.min(initial=lowest, where=norm > 0.0) < lowest:
                return False
            if _lengths(view, slice(None), scaled=False).max(initial=0.0) > highest:
                return False
            if weight is not None and weight.max() > _ALIKE * weight.min(initial=np.inf, where=weight > 0.0):
                return False
        return True

    @classmethod
    def like(cls, other: SharedTop) -> Self:
        """Another one for the same views, which has not counted anything yet."""
        fresh = cls.__new__(cls)
        fresh.__dict__.update(vars(other), n_multiplied=0)
        return fresh

    @property
    def n_passes(self) -> float:
        """How often the features were read."""
        return self.n_multiplied / self.n_features

    def best(self, queries: Sequence[TopQuery]) -> list[KnownTop]:
        """The best features of each query, in one pass."""
        rounding = (self.source.shape[0] + 8) * 2.0**-24 if self._single else _MARGIN
        lists = [_Best(query, self._highest, rounding) for query in queries]
        by_view: dict[int, list[_Best]] = {}
        for best in lists:
            by_view.setdefault(id(best.query.view), []).append(best)
        crowds = [_Crowd(own, self._highest) for own in by_view.values()]
        residuals = np.ascontiguousarray(np.hstack([best.query.residual for crowd in crowds for best in crowd.lists]))
        factors = np.ones(residuals.shape[1])
        if self._single:
            factors = np.sqrt((residuals**2).sum(axis=0))
            residuals = np.divide(residuals, factors, out=np.zeros_like(residuals), where=factors > 0.0).astype(np.float32)
        width = residuals.shape[1]
        size = max(1, _BLOCK_PRODUCTS // width)
        if not self.source.is_sparse:
            size = min(size, max(1, _BLOCK_VALUES // self.source.shape[0]))
        bounds = np.append(np.arange(0, self.n_features, size), self.n_features)
        lock = threading.Lock()

        def task(start: int, stop: int) -> None:
            features = self._worth(start, stop, lists)
            if not len(features):
                return
            products = self._products(features, start, stop, residuals)
            if self._single and not np.isfinite(products).all():  # values of samples without weight can be of any size
                products = self._products(features, start, stop, residuals.astype(np.float64))
            first = 0
            for crowd in crowds:
                last = first + crowd.n_outputs
                for best, *found in crowd.look(features, products[:, first:last], factors[first:last]):
                    with lock:
                        best.add(*found)
                first = last
            with lock:
                self.n_multiplied += len(features)

        run_chunks(task, bounds, self.n_threads)
        return [best.answer() for best in lists]

    def _worth(self, start: int, stop: int, lists: Sequence[_Best]) -> np.ndarray:
        """The features of a block that can be among the best of any query."""
        if not self.source.is_sparse:
            return np.arange(start, stop)
        lowest = min(best.lowest_reach for best in lists)
        return start + np.flatnonzero(self._reach[start:stop] >= lowest)

    def _products(self, features: np.ndarray, start: int, stop: int, residuals: np.ndarray) -> np.ndarray:
        """Products of some features, as they are stored, with all residuals."""
        if self.source.is_sparse:
            return self.source.products(residuals, features=features)
        # A view of an array in memory: BLAS takes rows and columns as they lie.
        array = getattr(self.source, "array", None)
        block = self.source.block(start, stop) if array is None else array[:, start:stop]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.asarray(block, dtype=residuals.dtype).T @ residuals)


def _lengths(view: FeatureView, features: Any, *, scaled: bool = True) -> np.ndarray:
    """The norms of some features about zero, over their scales."""
    moments = view.moments
    lengths = np.hypot(moments.norm[features], np.sqrt(moments.total_weight) * moments.mean[features])
    if view.scale is None or not scaled:
        return np.asarray(lengths)
    scale = view.scale[features]
    return np.divide(lengths, scale, out=np.zeros_like(lengths), where=scale > 0.0)


def _longest(view: FeatureView) -> float:
    """The largest norm of a feature about zero, over its scale."""
    return float(_lengths(view, slice(None)).max(initial=0.0))


class _Crowd:
    """Queries of one view, whose features are looked at together."""

    def __init__(self, lists: Sequence[_Best], highest: float) -> None:
        self.lists = lists
        self.n_outputs = sum(best.n_outputs for best in lists)
        self._view = lists[0].query.view
        self._ends = np.cumsum([0, *(best.n_outputs for best in lists)])
        self._sums = np.concatenate([best.sums for best in lists])
        self._rounding = np.array([best.rounding for best in lists])
        self._worst = self._rounding * highest

    def look(
        self, features: np.ndarray, products: np.ndarray, factors: np.ndarray
    ) -> Iterator[tuple[_Best, np.ndarray, np.ndarray, np.ndarray]]:
        """The features of a block that may be among the best, with their scores and what these may be off by."""
        moments, scale = self._view.moments, self._view.scale
        most = len(features) * len(self.lists)
        which, rows = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32)
        scores, errors = np.empty(most), np.empty(most)
        n = promising_scores(
            read_only(products),
            read_only(features),
            self._ends,
            factors,
            self._sums,
            np.array([best.low for best in self.lists]),
            self._rounding,
            self._worst,
            read_only(moments.mean),
            read_only(moments.norm),
            np.sqrt(moments.total_weight),
            read_only(_UNSCALED if scale is None else scale),
            which,
            rows,
            scores,
            errors,
        )
        for k in np.unique(which[:n]):
            mine = np.flatnonzero(which[:n] == k)
            best, found = self.lists[k], features[rows[mine]]
            free = best.query.free[found]
            mine, found = mine[free], found[free]
            if len(found):
                yield best, found, scores[mine], errors[mine]


class _Best:
    """The best features so far for one query.

    ``rounding`` is what it can change a score by, over the norms of feature and residual; the attribute has the norm of the
    residual in it.
    """

    def __init__(self, query: TopQuery, highest: float, rounding: float) -> None:
        self.query = query
        self.n_outputs = query.residual.shape[1]
        # Residuals about which features may be centred at will sum to zero but for rounding; those of folds do not.
        sums = query.residual.sum(axis=0)
        self.sums = sums if query.view.centred and np.abs(sums).max() > _MARGIN * np.abs(query.residual).sum() else 0.0 * sums
        self._length = query.view.norm_of(query.residual)
        self.rounding = rounding * self._length
        self._margin = _MARGIN * highest * self._length
        self._features: list[np.ndarray] = []
        self._scores: list[np.ndarray] = []
        self._errors: list[np.ndarray] = []
        self._n = 0
        self.low = self._hinted()  # a score that about as many features are sure to reach as were asked for

    def _hinted(self) -> float:
        """A first low, which spares the rare features of sparse data; dense features are all multiplied anyway."""
        if not self.query.view.is_sparse:
            return 0.0
        hint = self.query.hint[self.query.free[self.query.hint]]
        if len(hint) < max(self.query.size // 2, 1):
            return 0.0
        scores = self.query.view.scores(self.query.residual, hint)
        place = -min(self.query.size, len(hint))
        return max(float(np.partition(scores, place)[place]) - self._margin, 0.0)

    @property
    def lowest_reach(self) -> float:
        """The reach below which no feature is among the best; constant features have none."""
        reach = (self.low - self._margin) / self._length if self._length > 0.0 else 0.0
        return max(reach, np.finfo(float).tiny)

    def add(self, features: np.ndarray, scores: np.ndarray, errors: np.ndarray) -> None:
        """Keep some features; when they are many, only the best."""
        self._features.append(features)
        self._scores.append(scores)
        self._errors.append(errors)
        self._n += len(features)
        if self._n > 4 * self.query.size:
            self._cut()

    def _cut(self) -> None:
        """Keep no more than were asked for, and those that may be as good as the last."""
        features, scores, errors = (np.concatenate(part) for part in (self._features, self._scores, self._errors))
        if len(scores) > self.query.size:
            sure = scores - errors
            self.low = max(self.low, float(np.partition(sure, -self.query.size)[-self.query.size]))
            kept = scores + errors >= self.low
            features, scores, errors = features[kept], scores[kept], errors[kept]
        self._features, self._scores, self._errors, self._n = [features], [scores], [errors], len(features)

    def answer(self) -> KnownTop:
        """The best features, in order of storage, and what the others cannot exceed."""
        if not self._features:
            return KnownTop(self.query, NOBODY, None if self.low == 0.0 else self.low + self._margin)
        self._cut()
        # Whoever was refused has a lower score than this; and fewer than were asked for are sure to have a better one, so that
        # whoever asks for as many goes through all features.
        high, size = self._scores[0] + self._errors[0], self.query.size
        hidden = self.low + self._margin
        if len(high) >= size:
            hidden = max(hidden, float(np.partition(high, -size)[-size]))
        return KnownTop(self.query, np.sort(self._features[0]), None if self.low == 0.0 else hidden)
