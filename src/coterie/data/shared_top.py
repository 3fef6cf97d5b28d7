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
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from coterie._numba import run_chunks
from coterie.data.source import FeatureSource
from coterie.data.top import NOBODY, KnownTop, TopQuery
from coterie.data.view import FeatureView
from coterie.kernels.promising import Asked, Block, csc_promising_scores, promising_scores

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
# Features of a block that may be found at first, over all queries; if there are more, the block is looked at again.
_FIRST_ROOM = 1 << 14


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
        crowd = _Crowd(lists, self._single)
        size = max(1, _BLOCK_PRODUCTS // crowd.n_outputs)
        if not self.source.is_sparse:
            size = min(size, max(1, _BLOCK_VALUES // self.source.shape[0]))
        bounds = np.append(np.arange(0, self.n_features, size), self.n_features)
        lock = threading.Lock()

        def task(start: int, stop: int) -> None:
            features = self._worth(start, stop, lists)
            if not len(features):
                return
            found = crowd.look(self.source, features, self._reach[features])
            with lock:
                for best, *own in found:
                    best.add(*own)
                self.n_multiplied += len(features)

        run_chunks(task, bounds, self.n_threads)
        return [best.answer() for best in lists]

    def _worth(self, start: int, stop: int, lists: Sequence[_Best]) -> np.ndarray:
        """The features of a block that can be among the best of any query."""
        if not self.source.is_sparse:
            return np.arange(start, stop)
        lowest = min(best.lowest_reach for best in lists)
        return start + np.flatnonzero(self._reach[start:stop] >= lowest)


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
    """All queries of a pass, those of a view beside each other."""

    def __init__(self, lists: Sequence[_Best], single: bool) -> None:
        by_view: dict[int, list[_Best]] = {}
        for best in lists:
            by_view.setdefault(id(best.query.view), []).append(best)
        self._views = [own[0].query.view for own in by_view.values()]
        self._root = np.sqrt(max(view.moments.total_weight for view in self._views))
        self._lists = [best for own in by_view.values() for best in own]
        residuals = np.ascontiguousarray(np.hstack([best.query.residual for best in self._lists]))
        self.n_outputs = residuals.shape[1]
        factors = np.ones(self.n_outputs)
        if single:
            factors = np.sqrt((residuals**2).sum(axis=0))
            residuals = np.divide(residuals, factors, out=np.zeros_like(residuals), where=factors > 0.0).astype(np.float32)
        self._residuals = residuals
        self._asked = Asked(
            owner=np.repeat(np.arange(len(by_view)), [len(own) for own in by_view.values()]),
            ends=np.cumsum([0, *(best.n_outputs for best in self._lists)]),
            factors=factors,
            sums=np.concatenate([best.sums for best in self._lists]),
            lows=np.zeros(len(self._lists)),
            rounding=np.array([best.rounding for best in self._lists]),
        )

    def look(self, source: FeatureSource, features: np.ndarray, reach: np.ndarray) -> list[_Found]:
        """Some features that may be among the best of a query; those of a dense source are neighbours."""
        block = self._block(features, reach)
        asked = self._asked._replace(lows=np.array([best.low for best in self._lists]))
        kernel: Any = csc_promising_scores
        arguments: tuple[Any, ...]
        if source.is_sparse:
            in_memory: Any = source
            arguments = *in_memory.arrays, self._residuals, features, block, asked
        else:
            kernel, arguments = promising_scores, (self._products(source, features), 0, block, asked)
        found = np.empty((_FIRST_ROOM, 4))
        if (n := kernel(*arguments, found)) > len(found):
            found = np.empty((n, 4))
            kernel(*arguments, found)
        found = found[:n]
        found = found[np.argsort(found[:, 0], kind="stable")]
        mine, scores, errors = features[found[:, 1].astype(np.int64)], found[:, 2].copy(), found[:, 3].copy()
        last = np.searchsorted(found[:, 0], np.arange(len(self._lists)), side="right")
        return [
            _Found(best, mine[a:b], scores[a:b], errors[a:b])
            for best, a, b in zip(self._lists, [0, *last[:-1]], last, strict=True)
            if b > a
        ]

    def _block(self, features: np.ndarray, reach: np.ndarray) -> Block:
        """What is known of some features; ``reach`` is the largest of their norms over the scales."""
        means = np.stack([view.moments.mean[features] for view in self._views])
        scales = np.ones_like(means)
        if any(view.scale is not None for view in self._views):
            scales = np.stack([view.scales(features) for view in self._views])
            scales[scales <= 0.0] = 1.0  # of constant features
        farthest, least = np.abs(means).max(axis=0), scales.min(axis=0)
        return Block(means, scales, farthest, least, reach + self._root * farthest / least)

    def _products(self, source: FeatureSource, features: np.ndarray) -> np.ndarray:
        """Products of neighbouring features of a dense source, as they are stored, with all residuals."""
        start, stop = features[0], features[-1] + 1
        # A view of an array in memory: BLAS takes rows and columns as they lie.
        array = getattr(source, "array", None)
        block = source.block(start, stop) if array is None else array[:, start:stop]
        for residuals in (self._residuals, self._residuals.astype(np.float64)):
            with np.errstate(over="ignore", invalid="ignore"):
                products = np.asarray(np.asarray(block, dtype=residuals.dtype).T @ residuals)
            if np.isfinite(products).all():  # values of samples without weight can be of any size
                break
        return products


class _Found(NamedTuple):
    """Features that may be among the best of a query, with their scores and what these may be off by."""

    best: _Best
    features: np.ndarray
    scores: np.ndarray
    errors: np.ndarray


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
        """Keep no more free features than were asked for, and those that may be as good as the last."""
        features, scores, errors = (np.concatenate(part) for part in (self._features, self._scores, self._errors))
        free = self.query.free[features]
        features, scores, errors = features[free], scores[free], errors[free]
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
