"""A source together with the moments, sample weights, centre and scale of one fit."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from coterie._numba import run_evenly
from coterie.data.source import Columns, FeatureSource, Moments
from coterie.kernels.columns import row_norms

# Minimum number of features for which products use several threads.
_MIN_THREADED_FEATURES = 4096
_UNIT = 1 << 44
# Number of values in [0, 1] that can be summed in units of 2**-44 without integer overflow.
_CHUNK_VALUES = 1 << 18
# Features per block when counting nonzeros. In a sparse block, only the number of entries is needed.
_DENSE_BLOCK_FEATURES, _SPARSE_BLOCK_FEATURES = 256, 1 << 16
# Share of nonzero values up to which features are treated as counts of rare events, such as words and clicks.
MAX_NONZERO_SHARE = 0.1


class ScoreBounds(NamedTuple):
    """Upper bounds on the scores of the features, divided by the norm of the residual."""

    values: np.ndarray  # norm of each feature (about its mean if the view is centred) over its scale; 0 if constant
    lowest: float  # smallest positive bound
    highest: float


@dataclass(frozen=True, eq=False)
class FeatureView:
    r"""Weighted, centred and scaled features, without a copy of the data.

    Scores, correlations, oracle and design use the same view, so they agree on the weights, centre and scale.

    Attributes
    ----------
    source : FeatureSource
        Stored features.
    moments : Moments
        Moments of the features with the sample weights.
    sample_weight : ndarray of shape (n_samples,) or None
        Sample weights; None for equal weights.
    scale : ndarray of shape (n_features,) or None
        Divisor of each feature (standardisation), or None.
    centred : bool
        Whether residuals sum to zero, so that features may be centred in their products with them.
    n_threads : int
        Number of threads. Never changes a result.
    whole : FeatureView or None
        View of which this view is a part (see :meth:`part`), or None.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data import FeatureView, as_source
    >>> view = FeatureView.of(as_source(np.array([[0.0, 4.0], [2.0, 0.0]])), standardize=True)
    >>> view.scores(np.array([[1.0], [-1.0]]))
    array([2., 2.])
    """

    source: FeatureSource
    moments: Moments
    sample_weight: np.ndarray | None = None
    scale: np.ndarray | None = None
    centred: bool = True
    n_threads: int = 1
    whole: FeatureView | None = None

    @classmethod
    def of(
        cls,
        source: FeatureSource,
        sample_weight: np.ndarray | None = None,
        *,
        standardize: bool = False,
        centred: bool = True,
        n_threads: int = 1,
        moments: Moments | None = None,
    ) -> Self:
        """Return a view of all features. Computes the moments unless given; raises if a value is not finite."""
        moments = source.moments(sample_weight, n_threads=n_threads) if moments is None else moments
        return cls(source, moments, sample_weight, moments.scale if standardize else None, centred, n_threads)

    def part(self, samples: np.ndarray) -> Self:
        """Return a view of the same features and scale for some samples (indices or a mask).

        The other samples have weight zero. Ties are broken as in the whole view, so that parts agree on them.
        """
        weight = np.zeros(self.n_samples)
        weight[samples] = 1.0 if self.sample_weight is None else self.sample_weight[samples]
        moments = self.source.moments(weight, n_threads=self.n_threads)
        return replace(self, moments=moments, sample_weight=weight, whole=self)

    @property
    def tie_weight(self) -> np.ndarray | None:
        """Sample weights for :mod:`coterie.order`: for a part, those of the whole view."""
        return self.sample_weight if self.whole is None else self.whole.tie_weight

    @cached_property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.source.shape[0]

    @cached_property
    def n_features(self) -> int:
        """Number of features."""
        return self.source.shape[1]

    @cached_property
    def is_sparse(self) -> bool:
        """Whether columns are returned as CSC."""
        return self.source.is_sparse

    @cached_property
    def feature_names(self) -> Sequence[str] | None:
        """Names of the features, or None."""
        return self.source.feature_names

    @cached_property
    def score_bounds(self) -> ScoreBounds:
        """Upper bounds on the scores of the features."""
        bounds = self.moments.norm
        if not self.centred:
            bounds = np.sqrt(self.moments.norm**2 + self.moments.total_weight * self.moments.mean**2)
            bounds[self.moments.norm == 0.0] = 0.0
        if self.scale is not None:
            bounds = np.divide(bounds, self.scale, out=np.zeros(len(bounds)), where=self.scale > 0)
        return ScoreBounds(
            bounds,
            float(bounds.min(initial=np.inf, where=bounds > 0.0)),
            float(bounds.max(initial=0.0)),
        )

    @cached_property
    def score_bound_range(self) -> tuple[float, float]:
        """Smallest positive and largest score bound of all features, wherever they are."""
        lowest, highest = zip(*self.map_blocks(_score_bound_range), strict=True)
        return min(lowest), max(highest)

    def map_blocks(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return ``function(block, *arguments)`` for the blocks of this view; see :class:`FeatureSource`."""
        return self.source.map_blocks(function, self, *arguments)

    def map_features(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return an array with one entry per feature, kept with the features; see :class:`FeatureSource`."""
        return self.source.map_features(function, self, *arguments)

    def columns(self, features: np.ndarray) -> Columns:
        """Return some columns as stored."""
        return self.source.columns(features)

    def model_columns(self, features: np.ndarray) -> Columns:
        """Return float64 columns as a model uses them: scaled, and centred unless they are sparse."""
        columns = self.source.columns(features)
        if isinstance(columns, np.ndarray):
            return (np.asarray(columns, dtype=np.float64) - self.centre(features)) / self.scales(features)
        scaled = sparse.csc_array(columns, dtype=np.float64, copy=True)
        scaled.data /= np.repeat(self.scales(features), np.diff(scaled.indptr))
        return scaled

    def centre(self, features: np.ndarray) -> np.ndarray:
        """Return the centres of some features in a model: their means, or 0 if they are sparse or not centred."""
        return self.moments.mean[features] if self.centred and not self.is_sparse else np.zeros(len(features))

    def scales(self, features: np.ndarray) -> np.ndarray:
        """Return the divisors of some features in a model."""
        return np.ones(len(features)) if self.scale is None else self.scale[features]

    def products(self, vectors: np.ndarray, features: np.ndarray | None = None) -> np.ndarray:
        """Return products of some (None: all) centred, unscaled features with vectors of shape (n_samples, k)."""
        n_features = self.n_features if features is None else len(features)
        centre = self.moments.mean if self.centred else None
        n_threads = self.n_threads if n_features >= _MIN_THREADED_FEATURES else 1
        return self.source.products(vectors, centre=centre, features=features, n_threads=n_threads)

    def scores(self, residual: np.ndarray, features: np.ndarray | None = None) -> np.ndarray:
        r"""Return scores :math:`|s_j|` of some (None: all) features for residuals of shape (n_samples, n_outputs)."""
        return self.scores_of(self.products(residual, features), features)

    def scores_of(self, products: np.ndarray, features: np.ndarray | None = None) -> np.ndarray:
        """Return scores from products with a residual: norms over outputs, scaled. May overwrite ``products``."""
        if products.shape[1] == 1:
            scores = np.abs(products[:, 0], out=products[:, 0])  # in place, to save memory with many features
        else:
            scores = np.empty(len(products))
            n_threads = self.n_threads if len(products) >= _MIN_THREADED_FEATURES else 1
            run_evenly(lambda first, last: row_norms(products, scores, first, last), len(products), n_threads)
        if self.scale is not None:
            scale = self.scale if features is None else self.scale[features]
            np.divide(scores, scale, out=scores, where=scale > 0)
        return scores

    def norm_of(self, residual: np.ndarray) -> float:
        r"""Return the norm :math:`(\sum_i \tilde\alpha_i^2/\omega_i)^{1/2}`, dual to the weighted norm of features.

        Several steps of a round request the norm of the same residual, so the last one is kept.
        """
        last = self.__dict__.get("_last_norm")
        if last is not None and last[0]() is residual:
            return float(last[1])
        starts = range(0, max(len(residual), 1), _CHUNK_VALUES)  # chunks, because there can be many samples
        norm = math.sqrt(sum(self._squares(residual, slice(start, start + _CHUNK_VALUES)) for start in starts))
        self.__dict__["_last_norm"] = weakref.ref(residual), norm
        return norm

    def _squares(self, residual: np.ndarray, samples: slice) -> float:
        """Return the sum of the squared residuals of some samples, each divided by its weight."""
        if self.sample_weight is None:
            return float((residual[samples] ** 2).sum())
        weight = self.sample_weight[samples]
        used = weight > 0
        return float(((residual[samples][used] ** 2).T / weight[used]).sum())


def _score_bound_range(view: FeatureView) -> tuple[float, float]:
    return view.score_bounds.lowest, view.score_bounds.highest


# A sum in units of 2**-44.
Total = int


def exact_sum(values: np.ndarray) -> Total:
    """Return the exact sum of numbers in [0, 1], each rounded to 44 binary places.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data.view import exact_sum, totals
    >>> numbers = np.random.default_rng(0).random(1000)
    >>> exact_sum(numbers) == exact_sum(numbers[::-1]) == exact_sum(numbers[:300]) + exact_sum(numbers[300:])
    True
    >>> totals([[exact_sum(np.array([0.5, 0.25]))], [exact_sum(np.array([1.0]))]])
    [1.75]
    """
    return sum(
        int(np.rint(values[i : i + _CHUNK_VALUES] * _UNIT).astype(np.int64).sum())
        for i in range(0, len(values), _CHUNK_VALUES)
    )


def totals(parts: Sequence[Sequence[Total]]) -> list[float]:
    """Return the positive totals of the sums of several blocks: one total per sum of a block."""
    return [max(sum(values), 1) / _UNIT for values in zip(*parts, strict=True)]


def mostly_zero(source: FeatureSource, most: float = MAX_NONZERO_SHARE) -> bool:
    """Return True if the share of nonzero values is at most ``most``.

    The result is the same for the same data in any format. Features are read only until the result is certain, which is early
    if there are few zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from coterie.data import as_source
    >>> from coterie.data.view import mostly_zero
    >>> X = np.eye(20)
    >>> mostly_zero(as_source(X)), mostly_zero(as_source(sparse.csc_array(X))), mostly_zero(as_source(X), 0.01)
    (True, True, False)
    """
    n_samples, n_features = source.shape
    limit = most * n_samples * n_features
    return sum(source.map_blocks(_count_nonzero, None, limit)) <= limit


def _count_nonzero(source: FeatureSource, limit: float) -> int:
    """Return the number of nonzero values, or any number above the limit if there are more."""
    count = 0
    for _, block in source.blocks(_SPARSE_BLOCK_FEATURES if source.is_sparse else _DENSE_BLOCK_FEATURES):
        count += int(np.count_nonzero(block if isinstance(block, np.ndarray) else block.data))
        if count > limit:
            break
    return count
