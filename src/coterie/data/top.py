r"""Features with the highest scores for one residual, or for many residuals in one pass, as far down as requested.

**Norm bound.** A score is a product with the residual, so
:math:`|s_j| \le \|f_j\|_\omega (\sum_i \tilde\alpha_i^2/\omega_i)^{1/2}` (Cauchy-Schwarz with the sample weights
:math:`\omega`; features are centred if there is an intercept). Features are scored in layers of decreasing norm. A layer is
not scored before a score is requested that it could contain. In data with a long tail of rare features (words, clicks), this
takes a small part of a pass. If all norms are similar, it takes one pass.

**Parts.** Requests are order statistics: the k-th highest score below a given score, and the features between two scores. The
order statistics of a matrix follow exactly from those of its parts, so features may be on many machines, and no process needs
all scores.

**Many residuals.** Folds, half-samples, permuted labels and values of C are different residuals (and sample weights) over the
same features. The class :class:`SharedTop` multiplies a block of features with all residuals at once, by BLAS if the features
are dense, and keeps the best few features of each residual. The kernel for a single residual then computes their scores again
(:class:`KnownTop`). So BLAS, the order of the columns and the blocks do not affect a result: they only determine which
features are examined, with a margin for rounding. Features of a sparse source whose norm is too small for the best few of
every residual are not multiplied. A lower bound on the best scores is known from the best features of the previous round.

**Rounding.** In arithmetic of precision u, the error of a sum of n products is at most about nu times the norms of the two
vectors, in any order of summation. With some thousands of samples, this is small even in single precision, in which BLAS is
twice as fast: only a few more features are examined again.
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from coterie._numba import run_chunks
from coterie.data.source import FeatureSource, Moments
from coterie.data.view import FeatureView
from coterie.kernels.columns import kth_largest, positions_between
from coterie.kernels.top_products import Block, QueryBatch, csc_promising_products, promising_products

# Ratio of the smallest norms of consecutive layers.
_LAYER_RATIO = 0.5
NO_FEATURES = np.empty(0, dtype=np.int64)
Scored = tuple[np.ndarray, np.ndarray]  # features and their scores
# Number of values of a block of dense features, and of its products, per thread.
_BLOCK_VALUES = 1 << 21
_BLOCK_PRODUCTS = 1 << 20
# Bound on the rounding error of a score in double precision, divided by the norms of feature and residual.
_MARGIN = 1e-11
# Number of samples up to which single precision saves time, and range of norms in which it neither over- nor underflows.
_MAX_SINGLE_PRECISION_SAMPLES = 1 << 13
_SINGLE_PRECISION_NORMS = 1e-12, 1e12
# Maximum number of values kept in single precision: 256 MB.
_MAX_SINGLE_PRECISION_VALUES = 1 << 26
# Maximum ratio of two positive sample weights in single precision.
_MAX_WEIGHT_RATIO = 1e6
# Features in the first block. It is small, because it has no lower bound on the best scores yet.
_FIRST_FEATURES = 512
# First capacity of the buffer for the features found in a block, over all queries. If it is exceeded, the block is repeated.
_FIRST_CAPACITY = 1 << 14


class CandidateMask:
    """Candidate features: those that vary, except for an explicit list of features.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data import as_source
    >>> from coterie.data.top import CandidateMask
    >>> candidates = CandidateMask(as_source(np.array([[0.0, 1.0, 2.0], [5.0, 1.0, 0.0]])).moments())
    >>> candidates.exclude(np.array([2]))
    >>> candidates[np.array([0, 1, 2])], candidates.count
    (array([ True, False, False]), 1)
    """

    def __init__(self, moments: Moments, taken: np.ndarray = NO_FEATURES) -> None:
        self.moments = moments
        self.taken = np.unique(taken)
        self._mask: np.ndarray | None = None

    @classmethod
    def where(cls, moments: Moments, mask: np.ndarray) -> CandidateMask:
        return cls(moments, np.flatnonzero(~mask))

    def exclude(self, features: np.ndarray) -> None:
        self.taken = np.union1d(self.taken, features)
        if self._mask is not None:
            self._mask[features] = False

    def __getitem__(self, features: np.ndarray) -> np.ndarray:
        varying = self.moments.norm[features] > 0.0
        if not len(self.taken):
            return np.asarray(varying)
        position = np.searchsorted(self.taken, features)  # ``taken`` is sorted; numpy.isin would sort both arrays
        return varying & (self.taken.take(position, mode="clip") != features)

    @property
    def mask(self) -> np.ndarray:
        """Mask of the candidate features; for features in memory only."""
        if self._mask is None:
            self._mask = self.moments.norm > 0.0
            self._mask[self.taken] = False
        return self._mask

    def copy(self) -> CandidateMask:
        """Return an independent copy."""
        result = copy.copy(self)
        result._mask = None  # changed in place; computed again if it is needed
        return result

    @property
    def excluded(self) -> np.ndarray:
        """Features that vary and are not candidates."""
        return self.taken[self.moments.norm[self.taken] > 0.0]

    @property
    def count(self) -> int:
        return self.moments.n_varying - len(self.excluded)


class TopQuery(NamedTuple):
    """Request for the best features of a residual."""

    view: FeatureView
    residual: np.ndarray  # dual variables, of shape (n_samples, n_outputs)
    candidates: CandidateMask
    size: int  # number of best features requested first
    hint: np.ndarray = NO_FEATURES  # features that were among the best for a similar residual
    first_floor: float = np.inf  # score bound down to which scores were needed for a similar residual; inf: unknown


class Top(Protocol):
    """Scores of the candidate features for one residual, as far as they are known."""

    @property
    def n_scored(self) -> int: ...

    @property
    def best(self) -> float:
        """Highest score; known after the first call of :meth:`kth`."""
        ...

    def kth(self, below: float, size: int) -> float:
        """Return the ``size``-th highest score below ``below``, or the last if there are fewer; -1 if there is none."""
        ...

    def between(self, low: float, below: float) -> Scored:
        """Return all features with scores in [low, below), in any order. ``low`` is at most the last :meth:`kth`."""
        ...

    def excluded(self) -> Scored:
        """Return excluded features that vary, if their scores can be as high as those requested."""
        ...


def next_floor(floor: float, first_floor: float, lowest: float, highest: float) -> float:
    """Return the floor of the layer after ``floor`` (inf: of the first layer); 0 if no feature would remain below it.

    ``lowest`` and ``highest`` are the smallest positive and the largest score bound of all features.
    """
    lower = _LAYER_RATIO * floor if floor < np.inf else min(first_floor, _LAYER_RATIO * highest)
    return lower if lower > lowest else 0.0


def unscored_bound(floor: float, length: float) -> float:
    """Return an upper bound on the scores of the features below a floor, for a residual of norm ``length``."""
    return floor * length * (1.0 + 1e-9)


class LayeredTop:
    """Scores of features in memory, computed layer by layer; implements :class:`Top`."""

    def __init__(self, query: TopQuery) -> None:
        self.view, self.residual, self.candidates = query.view, query.residual, query.candidates
        self.n_scored = 0
        self._first_floor = query.first_floor
        self._floor = np.inf  # score bound down to which features have been scored
        self._excluded_scores: list[Scored] = []
        self._features: np.ndarray | None = NO_FEATURES  # None for all
        self._scores = np.empty(0)
        self._started = False

    @property
    def best(self) -> float:
        return float(self._scores.max(initial=0.0))

    def kth(self, below: float, size: int) -> float:
        self._start()
        while True:
            low = float(kth_largest(self._scores, below, size))
            if self._floor == 0.0 or low > self._unscored_bound:
                return low
            self._extend()

    def between(self, low: float, below: float) -> Scored:
        where = positions_between(self._scores, low, below)
        return where if self._features is None else self._features[where], self._scores[where]

    def excluded(self) -> Scored:
        parts = [(NO_FEATURES, np.empty(0)), *self._excluded_scores]
        features, scores = (np.concatenate([part[i] for part in parts]) for i in range(2))
        varying = self.view.moments.norm[features] > 0.0
        return features[varying], scores[varying]

    def score_down_to(self, floor: float) -> None:
        """Score all features whose score bound is at least ``floor``."""
        if not self._started:
            self._started = True
            self._features, self._scores = self._layer(floor, np.inf)
        elif floor < self._floor:
            self._append(*self._layer(floor, self._floor))

    def best_scored(self, size: int) -> tuple[Scored, bool]:
        """Return the best ``size`` of the scored candidates and those tied with the last, and whether there are others."""
        low = float(kth_largest(self._scores, np.inf, size))
        found = self.between(low, np.inf) if low >= 0.0 else (NO_FEATURES, np.empty(0))
        return found, len(found[0]) < int(np.count_nonzero(self._scores >= 0.0))

    @property
    def floor(self) -> float:
        """Score bound down to which the features have been scored."""
        return self._floor

    @cached_property
    def _length(self) -> float:
        return self.view.norm_of(self.residual)

    def upper_bounds(self) -> np.ndarray:
        """Return an upper bound on the score of each feature: its score if it is known, -1 for excluded features."""
        bounds = self.view.score_bounds.values * (self._length * (1.0 + 1e-9))
        if self._features is None:
            bounds = self._scores.copy()
        else:
            bounds[self._features] = self._scores
        bounds[self.candidates.taken] = -1.0
        return bounds

    @property
    def _unscored_bound(self) -> float:
        """Upper bound on the scores of the features below the floor."""
        return unscored_bound(self._floor, self._length)

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self._features, self._scores = self._first_scores()

    def _first_scores(self) -> tuple[np.ndarray | None, np.ndarray]:
        """Return the first features to score (None: all) and their scores, -1 for excluded features."""
        return self._layer(self._next_floor(np.inf), np.inf)

    def _extend(self) -> None:
        self._append(*self._layer(self._next_floor(self._floor), self._floor))

    def _append(self, features: np.ndarray | None, scores: np.ndarray) -> None:
        """Append a further layer."""
        assert self._features is not None  # the first layer did not contain all features
        assert features is not None
        self._features, self._scores = np.concatenate([self._features, features]), np.concatenate([self._scores, scores])

    def _next_floor(self, floor: float) -> float:
        score_bounds = self.view.score_bounds
        return next_floor(floor, self._first_floor, score_bounds.lowest, score_bounds.highest)

    def _layer(self, low: float, below: float) -> tuple[np.ndarray | None, np.ndarray]:
        """Score the features whose score bound is in [low, below) and positive; constant features have bound 0.

        Returns None instead of the features if these are all features.
        """
        self._floor = low
        candidates = self.candidates.mask
        if low == 0.0 and below == np.inf:  # one pass in storage order
            scores = self._score(None)
            self._excluded_scores.append((np.flatnonzero(~candidates), scores[~candidates]))
            scores[~candidates] = -1.0
            return None, scores
        score_bounds = self.view.score_bounds.values
        features = np.flatnonzero(score_bounds >= (low if low > 0.0 else np.finfo(float).tiny))
        if below < np.inf:
            features = features[score_bounds[features] < below]
        scores = self._score(features)
        excluded = ~candidates[features]
        self._excluded_scores.append((features[excluded], scores[excluded]))
        scores[excluded] = -1.0
        return features, scores

    def _score(self, features: np.ndarray | None) -> np.ndarray:
        self.n_scored += self.view.n_features if features is None else len(features)
        return _require_finite(self.view.scores(self.residual, features))


class KnownTop(LayeredTop):
    """Scores of a few candidates that are known to contain the best; the scores are computed again.

    No other candidate has a higher score than ``unscored_bound``; None if there is no other candidate.
    """

    def __init__(self, query: TopQuery, features: np.ndarray, unscored_bound: float | None) -> None:
        super().__init__(query)
        self.known = features
        self._bound = 0.0 if unscored_bound is None else unscored_bound
        self._floor = 0.0 if unscored_bound is None else np.inf

    @property
    def _unscored_bound(self) -> float:
        return self._bound

    def _first_scores(self) -> tuple[np.ndarray | None, np.ndarray]:
        scores = self._score(self.known)
        scores[~self.candidates[self.known]] = -1.0
        return self.known, scores

    def _extend(self) -> None:
        self._features, self._scores = self._layer(0.0, np.inf)  # the known features do not suffice: score all in one pass

    def excluded(self) -> Scored:
        features = self.candidates.excluded
        return features, self._score(features)


def _require_finite(scores: np.ndarray) -> np.ndarray:
    """Return the scores; raise ``ValueError`` if one is not finite, because the search would not end."""
    if not math.isfinite(float(scores.sum())):
        raise ValueError(
            "The scores of the features are not finite. Either X contains NaN or infinite values, or the scales of X, y, C "
            "and sample_weight differ too much. Check the data (coterie info --check for a store) or rescale them."
        )
    return scores


class SharedTop:
    """Search for the best features of many residuals, for views of one source in memory."""

    def __init__(self, views: Sequence[FeatureView], n_threads: int = 1) -> None:
        self.source: FeatureSource = views[0].source
        self.n_features = views[0].n_features
        self.n_threads = n_threads
        self._bounds = _FeatureBounds.of(list({id(view): view for view in views}.values()))
        self._single = self._is_safe_in_single(views)
        self.rounded = self._single_precision_array()
        # Bound on the rounding error of a score, divided by the norms of feature and residual.
        self.rounding = (self.source.shape[0] + 8) * 2.0**-24 if self._single else _MARGIN
        self.n_multiplied = 0

    def _is_safe_in_single(self, views: Sequence[FeatureView]) -> bool:
        """Return True if the best features can be found by products in single precision."""
        if self.source.is_sparse or self.source.shape[0] > _MAX_SINGLE_PRECISION_SAMPLES:
            return False
        lowest, highest = _SINGLE_PRECISION_NORMS
        for view in {id(view): view for view in views}.values():
            moments, weight = view.moments, view.sample_weight
            if moments.norm.min(initial=lowest, where=moments.norm > 0.0) < lowest:
                return False
            if (moments.norm + np.sqrt(moments.total_weight) * np.abs(moments.mean)).max(initial=0.0) > highest:
                return False
            if weight is not None and weight.max() > _MAX_WEIGHT_RATIO * weight.min(initial=np.inf, where=weight > 0.0):
                return False
        return True

    def _single_precision_array(self) -> np.ndarray | None:
        """Return the features in single precision, to convert them once and not per round; None if they are too many."""
        array = self.source.array
        if not self._single or array is None or array.size > _MAX_SINGLE_PRECISION_VALUES:
            return None
        with np.errstate(over="ignore"):
            return np.asarray(array, dtype=np.float32)

    @classmethod
    def like(cls, other: SharedTop) -> Self:
        """Return a new object for the same views, with its counter at zero."""
        result = cls.__new__(cls)
        result.__dict__.update(vars(other), n_multiplied=0)
        return result

    @property
    def n_passes(self) -> float:
        return self.n_multiplied / self.n_features

    @cached_property
    def lengths(self) -> np.ndarray:
        """Bound on the norm of each feature about zero over its scale, in all views."""
        return self._bounds.block(slice(None)).length

    def best(self, queries: Sequence[TopQuery]) -> list[KnownTop]:
        lists = [_BestFeatures(query, self._bounds, self.rounding) for query in queries]
        batch = _Batch(lists, self._single, self.rounded)
        size = max(1, _BLOCK_PRODUCTS // batch.n_outputs)
        if not self.source.is_sparse:
            size = min(size, max(1, _BLOCK_VALUES // self.source.shape[0]))
        # The first block is small: its best scores are a lower bound that excludes most features of later blocks.
        n_first = min(size, _FIRST_FEATURES, self.n_features)
        bounds = np.concatenate([[0], np.arange(n_first, self.n_features, size), [self.n_features]])
        lock = threading.Lock()

        def task(start: int, stop: int) -> None:
            features = np.arange(start, stop)
            if self.source.is_sparse:
                features = features[self._bounds.score_bounds[start:stop] >= min(best.lowest_score_bound for best in lists)]
            if not len(features):
                return
            found = batch.find(self.source, features, self._bounds.block(features))
            with lock:
                for best, *own in found:
                    best.add(*own)
                self.n_multiplied += len(features)

        run_chunks(task, bounds, self.n_threads)
        return [best.result() for best in lists]


class _FeatureBounds(NamedTuple):
    """Bounds that hold for each feature in all views."""

    score_bounds: np.ndarray  # largest score over the norm of the residual
    max_mean: np.ndarray  # largest absolute mean
    min_scale: np.ndarray | None  # smallest scale; None for 1
    root: float  # square root of the largest total weight
    highest: float = 0.0  # largest norm about zero over the scale, to which rounding errors of uncentred products are relative

    @classmethod
    def of(cls, views: Sequence[FeatureView]) -> _FeatureBounds:
        score_bounds, max_mean = views[0].score_bounds.values, np.abs(views[0].moments.mean)
        for view in views[1:]:
            score_bounds = np.maximum(score_bounds, view.score_bounds.values)
            np.maximum(max_mean, np.abs(view.moments.mean), out=max_mean)
        min_scale = None
        if any(view.scale is not None for view in views):
            min_scale = np.full(len(score_bounds), np.inf)
            for view in views:
                scale = np.ones_like(min_scale) if view.scale is None else view.scale
                np.minimum(min_scale, scale, out=min_scale, where=scale > 0.0)  # constant features have scale 0
            min_scale[np.isinf(min_scale)] = 1.0
        bounds = cls(score_bounds, max_mean, min_scale, float(np.sqrt(max(view.moments.total_weight for view in views))))
        return bounds._replace(highest=float(bounds.block(slice(None)).length.max(initial=0.0)))

    def block(self, features: Any) -> Block:
        max_mean = self.max_mean[features]
        min_scale = np.ones(len(max_mean)) if self.min_scale is None else self.min_scale[features]
        # The norm about zero is at most the norm about the mean plus the norm of the mean (triangle inequality).
        return Block(max_mean, min_scale, self.score_bounds[features] + self.root * max_mean / min_scale)


class _Batch:
    """All queries of a pass."""

    def __init__(self, lists: Sequence[_BestFeatures], single: bool, rounded: np.ndarray | None = None) -> None:
        self._lists = lists
        self._rounded = rounded
        residuals = np.ascontiguousarray(np.hstack([best.query.residual for best in lists]))
        self.n_outputs = residuals.shape[1]
        factors = np.ones(self.n_outputs)
        if single:
            factors = np.sqrt((residuals**2).sum(axis=0))
            residuals = np.divide(residuals, factors, out=np.zeros_like(residuals), where=factors > 0.0).astype(np.float32)
        self._residuals = residuals
        self._widest = max(best.n_outputs for best in lists)
        self._queries = QueryBatch(
            ends=np.cumsum([0, *(best.n_outputs for best in lists)]),
            factors=factors,
            sizes=np.array([np.sqrt((best.sums**2).sum()) for best in lists]),
            lows=np.zeros(len(lists)),
            rounding=np.array([best.rounding for best in lists]),
        )

    def find(self, source: FeatureSource, features: np.ndarray, block: Block) -> list[_Found]:
        """Return the features that may be among the best of a query. Those of a dense source must be contiguous."""
        queries = self._queries._replace(lows=np.array([best.low for best in self._lists]))
        kernel: Any = csc_promising_products
        arguments: tuple[Any, ...]
        if source.is_sparse:
            in_memory: Any = source
            arguments = *in_memory.arrays, self._residuals, features, block, queries
        else:
            kernel, arguments = promising_products, (self._products(source, features), 0, block, queries)
        found = np.empty((_FIRST_CAPACITY, 2 + self._widest))
        if (n := kernel(*arguments, found)) > len(found):
            found = np.empty((n, 2 + self._widest))
            kernel(*arguments, found)
        found = found[:n]
        found = found[np.argsort(found[:, 0], kind="stable")]
        found_features = features[found[:, 1].astype(np.int64)]
        last = np.searchsorted(found[:, 0], np.arange(len(self._lists)), side="right")
        return [
            _Found(best, found_features[a:b], found[a:b, 2 : 2 + best.n_outputs])
            for best, a, b in zip(self._lists, [0, *last[:-1]], last, strict=True)
            if b > a
        ]

    def _products(self, source: FeatureSource, features: np.ndarray) -> np.ndarray:
        """Return the products of contiguous stored features of a dense source with all residuals."""
        start, stop = features[0], features[-1] + 1
        # A view of an array in memory: BLAS supports both storage orders.
        array = source.array
        block = source.block(start, stop) if array is None else array[:, start:stop]
        first = block if self._rounded is None else self._rounded[:, start:stop]
        for values, residuals in ((first, self._residuals), (block, self._residuals.astype(np.float64))):
            with np.errstate(over="ignore", invalid="ignore"):
                products = np.asarray(np.asarray(values, dtype=residuals.dtype).T @ residuals)
            if np.isfinite(products).all():  # values of samples of weight zero are not bounded
                break
        return products


class _Found(NamedTuple):
    """Features that may be among the best of a query, and their products with its residual."""

    best: _BestFeatures
    features: np.ndarray
    products: np.ndarray


class _BestFeatures:
    """Best features so far for one query.

    The parameter ``rounding`` bounds the rounding error of a score, divided by the norms of feature and residual. The
    attribute is multiplied by the norm of the residual.
    """

    def __init__(self, query: TopQuery, bounds: _FeatureBounds, rounding: float) -> None:
        self.query = query
        self._bounds = bounds
        self.n_outputs = query.residual.shape[1]
        # If residuals sum to zero (up to rounding), centring does not change products. Residuals of folds do not.
        sums = query.residual.sum(axis=0)
        self.sums = sums if query.view.centred and np.abs(sums).max() > _MARGIN * np.abs(query.residual).sum() else 0.0 * sums
        self._length = query.view.norm_of(query.residual)
        self.rounding = rounding * self._length
        self._margin = _MARGIN * bounds.highest * self._length
        self._kept: Scored = NO_FEATURES, np.empty(0)
        self._errors = np.empty(0)
        self._new: list[tuple[np.ndarray, np.ndarray]] = []
        self._n = 0
        self.low = self._initial_low()  # a score that about as many features as requested are certain to reach

    def _initial_low(self) -> float:
        """Return an initial lower bound, which skips rare features of sparse data; 0 for dense data."""
        if not self.query.view.is_sparse:
            return 0.0
        hint = self.query.hint[self.query.candidates[self.query.hint]]
        if len(hint) < max(self.query.size // 2, 1):
            return 0.0
        scores = self.query.view.scores(self.query.residual, hint)
        position = -min(self.query.size, len(hint))
        return max(float(np.partition(scores, position)[position]) - self._margin, 0.0)

    @property
    def lowest_score_bound(self) -> float:
        """Score bound below which no feature is among the best; positive, to skip constant features."""
        score_bound = (self.low - self._margin) / self._length if self._length > 0.0 else 0.0
        return max(score_bound, np.finfo(float).tiny)

    def add(self, features: np.ndarray, products: np.ndarray) -> None:
        self._new.append((features, products))
        self._n += len(features)
        if self._n > 4 * self.query.size:
            self._prune()

    def _prune(self) -> None:
        """Keep as many candidates as requested, and all others that may score as high as the last of them."""
        view, new = self.query.view, np.concatenate([features for features, _ in self._new]) if self._new else NO_FEATURES
        if len(new):
            products = np.concatenate([products for _, products in self._new])
            if self.sums.any():
                products = products - np.outer(view.moments.mean[new], self.sums)
            scores, errors = view.scores_of(products, new), self.rounding * self._bounds.block(new).length
            good = self.query.candidates[new] & (scores + errors >= self.low)
            self._kept = np.append(self._kept[0], new[good]), np.append(self._kept[1], scores[good])
            self._errors = np.append(self._errors, errors[good])
        features, scores = self._kept
        if len(scores) > self.query.size:
            self.low = max(self.low, float(np.partition(scores - self._errors, -self.query.size)[-self.query.size]))
            good = scores + self._errors >= self.low
            self._kept, self._errors = (features[good], scores[good]), self._errors[good]
        self._new, self._n = [], len(self._errors)

    def result(self) -> KnownTop:
        """Return the best features in storage order, with an upper bound on the scores of the others."""
        self._prune()
        features, scores = self._kept
        unscored_bound = self.low + self._margin
        # Features that were pruned have a lower score than this. Fewer features than requested are certain to score higher, so
        # a request for that many scores all features.
        if len(features) >= self.query.size:
            kth = np.partition(scores + self._errors, -self.query.size)[-self.query.size]
            unscored_bound = max(unscored_bound, float(kth))
        return KnownTop(self.query, np.sort(features), None if self.low == 0.0 else unscored_bound)
