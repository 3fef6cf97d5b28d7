r"""The features with the best scores for one residual, or for many residuals by one pass, as far down as requested.

**Norm bound.** A score is a product with the residual, so
:math:`|s_j| \le \|f_j\|_\omega (\sum_i \tilde\alpha_i^2/\omega_i)^{1/2}` (Cauchy-Schwarz with the sample weights
:math:`\omega`; features are centred where there is an intercept). Features are scored in layers of falling norm, and no layer
is touched before the walk has come down to the best score that it could hold. In data with a long tail of rare features
(words, clicks) that is a small part of one pass; where all norms are alike it is one pass.

**Parts.** Requests are order statistics: the k-th best score under some other, and the features between two scores. Those of a
matrix follow exactly from those of its parts, so features may lie on many machines, and no process needs all scores.

**Many residuals.** Folds, half-samples, permuted labels and values of C are other residuals (and sample weights) over the same
features. :class:`SharedTop` multiplies a block of features with all residuals at once, by BLAS where the features are dense,
and keeps the best few features of each. Their scores are then computed again by the kernel of a single residual
(:class:`KnownTop`), so that BLAS, the order of the columns and the blocks leave no trace in a result: they decide only which
features are looked at, with a margin for rounding. Features of a sparse source whose norm is too small for the best few of
every residual are not multiplied; a lower bound of these is known from the features that were best in the round before.

**Rounding.** A sum of n products in an arithmetic of precision u is off by at most about nu times the norms of the two
vectors, in any order of summation. With some thousands of samples that is so little even in single precision, which BLAS
computes twice as fast, that few more features need a second look.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from coterie._numba import run_chunks
from coterie.data.source import FeatureSource, Moments
from coterie.data.view import FeatureView
from coterie.kernels.columns import kth_largest, positions_between
from coterie.kernels.top_products import Block, QueryBatch, csc_promising_products, promising_products

# Each layer goes down to this part of the previous one's norms.
_LAYER = 0.5
NO_FEATURES = np.empty(0, dtype=np.int64)
Scored = tuple[np.ndarray, np.ndarray]  # features and their scores
# Values of a block of dense features, and of its products, that are held at once by a thread.
_BLOCK_VALUES = 1 << 21
_BLOCK_PRODUCTS = 1 << 20
# What rounding can add to a score in double precision, over the norms of feature and residual.
_MARGIN = 1e-11
# Samples up to which single precision is worth its margin; norms of features between which it neither over- nor underflows.
_MAX_IN_SINGLE = 1 << 13
_SAFE_IN_SINGLE = 1e-12, 1e12
# Values that are kept in single precision, at most: 256 MB.
_MAX_ROUNDED = 1 << 26
# Weights of samples that are no further apart than this.
_ALIKE = 1e6
# Features of the first block, which all are among the best so far.
_FIRST_FEATURES = 512
# Features of a block that may be found at first, over all queries; if there are more, the block is looked at again.
_FIRST_ROOM = 1 << 14


class CandidateMask:
    """The features that count: those that vary, except for those that are taken, which alone are listed.

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
    def excluded(self) -> np.ndarray:
        """The features that vary and do not count."""
        return self.taken[self.moments.norm[self.taken] > 0.0]

    @property
    def count(self) -> int:
        return self.moments.n_varying - len(self.excluded)


class TopQuery(NamedTuple):
    """A residual whose best features are requested."""

    view: FeatureView
    residual: np.ndarray  # dual variables, of shape (n_samples, n_outputs)
    candidates: CandidateMask
    size: int  # how many of the best, at first
    hint: np.ndarray = NO_FEATURES  # features that were among the best for a similar residual
    first_floor: float = np.inf  # norm over scale down to which scores were needed for a similar residual; inf: unknown


class Top(Protocol):
    """The scores of the free features for one residual, as far as they are known."""

    @property
    def n_scored(self) -> int: ...

    @property
    def best(self) -> float:
        """The best score; known after the first call of :meth:`kth`."""
        ...

    def kth(self, below: float, size: int) -> float:
        """The ``size``-th best score under ``below``, or the last of them if there are fewer; -1 where there is none."""
        ...

    def between(self, low: float, below: float) -> Scored:
        """All features with scores in [low, below), in any order, where ``low`` is no more than :meth:`kth` said."""
        ...

    def excluded(self) -> Scored:
        """The features that vary and are not free, as far as their scores can match those that were requested."""
        ...


class LayeredTop:
    """Scores of features in memory, computed layer by layer."""

    def __init__(self, query: TopQuery) -> None:
        self.view, self.residual, self.candidates = query.view, query.residual, query.candidates
        self.n_scored = 0
        self._first_floor = query.first_floor
        self._length = self.view.norm_of(self.residual)
        self._floor = np.inf  # reach down to which features have been scored
        self._excluded_scores: list[Scored] = []
        self._features: np.ndarray | None = NO_FEATURES  # None for all
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

    def excluded(self) -> Scored:
        parts = [(NO_FEATURES, np.empty(0)), *self._excluded_scores]
        features, scores = (np.concatenate([part[i] for part in parts]) for i in range(2))
        varying = self.view.moments.norm[features] > 0.0
        return features[varying], scores[varying]

    @property
    def _hidden(self) -> float:
        """What no feature under the floor can have a better score than."""
        return self._floor * self._length * (1.0 + 1e-9)

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._features, self._scores = self._first()

    def _first(self) -> tuple[np.ndarray | None, np.ndarray]:
        """The first features to look at (None: all) and their scores, -1 for those that are not free."""
        return self._layer(self._next_floor(np.inf), np.inf)

    def _more(self) -> None:
        more, scores = self._layer(self._next_floor(self._floor), self._floor)
        assert self._features is not None  # the first layer was not the whole
        assert more is not None
        self._features, self._scores = np.concatenate([self._features, more]), np.concatenate([self._scores, scores])

    def _next_floor(self, floor: float) -> float:
        """The next lower floor; 0 when next to nothing would be left under it."""
        score_bounds = self.view.score_bounds
        lower = _LAYER * floor if floor < np.inf else min(self._first_floor, _LAYER * score_bounds.highest)
        return lower if lower > score_bounds.lowest else 0.0

    def _layer(self, low: float, below: float) -> tuple[np.ndarray | None, np.ndarray]:
        """Score the free features whose reach is in [low, below) (None: all); zero reach is that of constant features."""
        self._floor = low
        candidates = self.candidates.mask
        if low == 0.0 and below == np.inf:  # one pass in order of storage
            scores = self._of(None)
            self._excluded_scores.append((np.flatnonzero(~candidates), scores[~candidates]))
            scores[~candidates] = -1.0
            return None, scores
        score_bounds = self.view.score_bounds.values
        features = np.flatnonzero(score_bounds >= (low if low > 0.0 else np.finfo(float).tiny))
        if below < np.inf:
            features = features[score_bounds[features] < below]
        scores = self._of(features)
        taken = ~candidates[features]
        self._excluded_scores.append((features[taken], scores[taken]))
        scores[taken] = -1.0
        return features, scores

    def _of(self, features: np.ndarray | None) -> np.ndarray:
        self.n_scored += self.view.n_features if features is None else len(features)
        return finite(self.view.scores(self.residual, features))


class KnownTop(LayeredTop):
    """Scores whose best are known to be among a few free features, whose scores are computed again.

    No other free feature has a better score than ``hidden``; None if there is no other one.
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
        scores[~self.candidates[self.known]] = -1.0
        return self.known, scores

    def _more(self) -> None:
        self._features, self._scores = self._layer(0.0, np.inf)  # the few were not enough: one pass for all

    def excluded(self) -> Scored:
        features = self.candidates.excluded
        return features, self._of(features)


def finite(scores: np.ndarray) -> np.ndarray:
    """The scores, unless one is none: a walk over NaN would not end."""
    if not math.isfinite(float(scores.sum())):
        raise ValueError(
            "The scores of the features are not finite: X or its source holds values that are not, or the scales of X, y, "
            "C and sample_weight are too far apart. Check the data (coterie info --check for a store), or rescale them."
        )
    return scores


class SharedTop:
    """The best features for many residuals of some views of one source."""

    def __init__(self, views: Sequence[FeatureView], n_threads: int = 1) -> None:
        self.source: FeatureSource = views[0].source
        self.n_features = views[0].n_features
        self.n_threads = n_threads
        self._known = _Known.of(list({id(view): view for view in views}.values()))
        self._single = self._is_safe_in_single(views)
        self._rounded = self._in_single()
        self.n_multiplied = 0

    def _is_safe_in_single(self, views: Sequence[FeatureView]) -> bool:
        """Whether products in single precision tell the best features."""
        if self.source.is_sparse or self.source.shape[0] > _MAX_IN_SINGLE:
            return False
        lowest, highest = _SAFE_IN_SINGLE
        for view in {id(view): view for view in views}.values():
            moments, weight = view.moments, view.sample_weight
            if moments.norm.min(initial=lowest, where=moments.norm > 0.0) < lowest:
                return False
            if (moments.norm + np.sqrt(moments.total_weight) * np.abs(moments.mean)).max(initial=0.0) > highest:
                return False
            if weight is not None and weight.max() > _ALIKE * weight.min(initial=np.inf, where=weight > 0.0):
                return False
        return True

    def _in_single(self) -> np.ndarray | None:
        """The features as BLAS takes them, so that they are not converted anew in every round; None where they are many."""
        array = self.source.array
        if not self._single or array is None or array.size > _MAX_ROUNDED:
            return None
        with np.errstate(over="ignore"):
            return np.asarray(array, dtype=np.float32)

    @classmethod
    def like(cls, other: SharedTop) -> Self:
        """Another one for the same views, which has not counted anything yet."""
        fresh = cls.__new__(cls)
        fresh.__dict__.update(vars(other), n_multiplied=0)
        return fresh

    @property
    def n_passes(self) -> float:
        return self.n_multiplied / self.n_features

    def best(self, queries: Sequence[TopQuery]) -> list[KnownTop]:
        rounding = (self.source.shape[0] + 8) * 2.0**-24 if self._single else _MARGIN
        lists = [_Best(query, self._known, rounding) for query in queries]
        batch = _Batch(lists, self._single, self._rounded)
        size = max(1, _BLOCK_PRODUCTS // batch.n_outputs)
        if not self.source.is_sparse:
            size = min(size, max(1, _BLOCK_VALUES // self.source.shape[0]))
        # A few features first: what the best of them have spares most of the others a second look.
        few = min(size, _FIRST_FEATURES, self.n_features)
        bounds = np.concatenate([[0], np.arange(few, self.n_features, size), [self.n_features]])
        lock = threading.Lock()

        def task(start: int, stop: int) -> None:
            features = np.arange(start, stop)
            if self.source.is_sparse:
                features = features[self._known.score_bounds[start:stop] >= min(best.lowest_score_bound for best in lists)]
            if not len(features):
                return
            found = batch.look(self.source, features, self._known.block(features))
            with lock:
                for best, *own in found:
                    best.add(*own)
                self.n_multiplied += len(features)

        run_chunks(task, bounds, self.n_threads)
        return [best.answer() for best in lists]


class _Known(NamedTuple):
    """Bounds that hold for each feature in all views."""

    score_bounds: np.ndarray  # the largest score over the norm of the residual
    farthest: np.ndarray  # the largest absolute mean
    least: np.ndarray | None  # the smallest scale; None for 1
    root: float  # of the largest total weight
    highest: float = 0.0  # largest norm about zero over the scale, the scale of rounding errors of products without a centre

    @classmethod
    def of(cls, views: Sequence[FeatureView]) -> _Known:
        score_bounds, farthest = views[0].score_bounds.values, np.abs(views[0].moments.mean)
        for view in views[1:]:
            score_bounds = np.maximum(score_bounds, view.score_bounds.values)
            np.maximum(farthest, np.abs(view.moments.mean), out=farthest)
        least = None
        if any(view.scale is not None for view in views):
            least = np.full(len(score_bounds), np.inf)
            for view in views:
                scale = np.ones_like(least) if view.scale is None else view.scale
                np.minimum(least, scale, out=least, where=scale > 0.0)  # constant features have none
            least[np.isinf(least)] = 1.0
        known = cls(score_bounds, farthest, least, float(np.sqrt(max(view.moments.total_weight for view in views))))
        return known._replace(highest=float(known.block(slice(None)).length.max(initial=0.0)))

    def block(self, features: Any) -> Block:
        farthest = self.farthest[features]
        least = np.ones(len(farthest)) if self.least is None else self.least[features]
        # A norm about zero is at most that about the mean plus what the mean adds.
        return Block(farthest, least, self.score_bounds[features] + self.root * farthest / least)


class _Batch:
    """All queries of a pass."""

    def __init__(self, lists: Sequence[_Best], single: bool, rounded: np.ndarray | None = None) -> None:
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
        self._asked = QueryBatch(
            ends=np.cumsum([0, *(best.n_outputs for best in lists)]),
            factors=factors,
            sizes=np.array([np.sqrt((best.sums**2).sum()) for best in lists]),
            lows=np.zeros(len(lists)),
            rounding=np.array([best.rounding for best in lists]),
        )

    def look(self, source: FeatureSource, features: np.ndarray, block: Block) -> list[_Found]:
        """Some features that may be among the best of a query; those of a dense source are neighbours."""
        asked = self._asked._replace(lows=np.array([best.low for best in self._lists]))
        kernel: Any = csc_promising_products
        arguments: tuple[Any, ...]
        if source.is_sparse:
            in_memory: Any = source
            arguments = *in_memory.arrays, self._residuals, features, block, asked
        else:
            kernel, arguments = promising_products, (self._products(source, features), 0, block, asked)
        found = np.empty((_FIRST_ROOM, 2 + self._widest))
        if (n := kernel(*arguments, found)) > len(found):
            found = np.empty((n, 2 + self._widest))
            kernel(*arguments, found)
        found = found[:n]
        found = found[np.argsort(found[:, 0], kind="stable")]
        mine = features[found[:, 1].astype(np.int64)]
        last = np.searchsorted(found[:, 0], np.arange(len(self._lists)), side="right")
        return [
            _Found(best, mine[a:b], found[a:b, 2 : 2 + best.n_outputs])
            for best, a, b in zip(self._lists, [0, *last[:-1]], last, strict=True)
            if b > a
        ]

    def _products(self, source: FeatureSource, features: np.ndarray) -> np.ndarray:
        """Products of neighbouring features of a dense source, as they are stored, with all residuals."""
        start, stop = features[0], features[-1] + 1
        # A view of an array in memory: BLAS takes rows and columns as they lie.
        array = source.array
        block = source.block(start, stop) if array is None else array[:, start:stop]
        first = block if self._rounded is None else self._rounded[:, start:stop]
        for values, residuals in ((first, self._residuals), (block, self._residuals.astype(np.float64))):
            with np.errstate(over="ignore", invalid="ignore"):
                products = np.asarray(np.asarray(values, dtype=residuals.dtype).T @ residuals)
            if np.isfinite(products).all():  # values of samples without weight can be of any size
                break
        return products


class _Found(NamedTuple):
    """Features that may be among the best of a query, and their products with its residual."""

    best: _Best
    features: np.ndarray
    products: np.ndarray


class _Best:
    """The best features so far for one query.

    ``rounding`` is what it can change a score by, over the norms of feature and residual; the attribute has the norm of the
    residual in it.
    """

    def __init__(self, query: TopQuery, known: _Known, rounding: float) -> None:
        self.query = query
        self._known = known
        self.n_outputs = query.residual.shape[1]
        # Residuals about which features may be centred at will sum to zero but for rounding; those of folds do not.
        sums = query.residual.sum(axis=0)
        self.sums = sums if query.view.centred and np.abs(sums).max() > _MARGIN * np.abs(query.residual).sum() else 0.0 * sums
        self._length = query.view.norm_of(query.residual)
        self.rounding = rounding * self._length
        self._margin = _MARGIN * known.highest * self._length
        self._kept: Scored = NO_FEATURES, np.empty(0)
        self._errors = np.empty(0)
        self._new: list[tuple[np.ndarray, np.ndarray]] = []
        self._n = 0
        self.low = self._hinted()  # a score that about as many features are sure to reach as were asked for

    def _hinted(self) -> float:
        """A first low, which spares the rare features of sparse data; dense features are all multiplied anyway."""
        if not self.query.view.is_sparse:
            return 0.0
        hint = self.query.hint[self.query.candidates[self.query.hint]]
        if len(hint) < max(self.query.size // 2, 1):
            return 0.0
        scores = self.query.view.scores(self.query.residual, hint)
        place = -min(self.query.size, len(hint))
        return max(float(np.partition(scores, place)[place]) - self._margin, 0.0)

    @property
    def lowest_score_bound(self) -> float:
        """The reach below which no feature is among the best; constant features have none."""
        score_bounds = (self.low - self._margin) / self._length if self._length > 0.0 else 0.0
        return max(score_bounds, np.finfo(float).tiny)

    def add(self, features: np.ndarray, products: np.ndarray) -> None:
        self._new.append((features, products))
        self._n += len(features)
        if self._n > 4 * self.query.size:
            self._cut()

    def _cut(self) -> None:
        """Keep no more free features than were asked for, and those that may be as good as the last."""
        view, new = self.query.view, np.concatenate([features for features, _ in self._new]) if self._new else NO_FEATURES
        if len(new):
            products = np.concatenate([products for _, products in self._new])
            if self.sums.any():
                products = products - np.outer(view.moments.mean[new], self.sums)
            scores, errors = view.scores_of(products, new), self.rounding * self._known.block(new).length
            good = self.query.candidates[new] & (scores + errors >= self.low)
            self._kept = np.append(self._kept[0], new[good]), np.append(self._kept[1], scores[good])
            self._errors = np.append(self._errors, errors[good])
        features, scores = self._kept
        if len(scores) > self.query.size:
            self.low = max(self.low, float(np.partition(scores - self._errors, -self.query.size)[-self.query.size]))
            good = scores + self._errors >= self.low
            self._kept, self._errors = (features[good], scores[good]), self._errors[good]
        self._new, self._n = [], len(self._errors)

    def answer(self) -> KnownTop:
        """The best features, in order of storage, and what the others cannot exceed."""
        self._cut()
        features, scores = self._kept
        hidden = self.low + self._margin
        # Features that were left out have a lower score than this. Fewer than requested are sure to have a better one, so a
        # walk over as many goes through all features.
        if len(features) >= self.query.size:
            hidden = max(hidden, float(np.partition(scores + self._errors, -self.query.size)[-self.query.size]))
        return KnownTop(self.query, np.sort(features), None if self.low == 0.0 else hidden)
