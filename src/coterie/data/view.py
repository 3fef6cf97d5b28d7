"""Features as the algorithms see them: a source with its moments, sample weights, centre and scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from coterie._numba import run_evenly
from coterie.data.source import Columns, FeatureSource, Moments
from coterie.kernels.columns import row_norms

# Features from which on products are worth a second thread.
_MANY = 4096
_UNIT = 1 << 44
# Numbers whose sum cannot overflow.
_SUMMED = 1 << 18
# Features of a block: dense ones are looked at, of sparse ones only the number of entries.
_DENSE, _SPARSE = 256, 1 << 16
# The part of values below which features are counts of rare things: words, clicks.
FEW_VALUES = 0.1


class ScoreBounds(NamedTuple):
    """The largest score that each feature can have, over the norm of the residual."""

    values: np.ndarray  # norm of each feature (about its mean where the view is centred) over its scale; 0 if constant
    lowest: float  # of those above 0
    highest: float


@dataclass(frozen=True, eq=False)
class FeatureView:
    r"""Features weighted, centred and scaled, without a copy of them.

    Scores, correlations, oracle and design all work on the same view, so they agree on what a feature is.

    Attributes
    ----------
    source : FeatureSource
        The features as they are stored.
    moments : Moments
        Their moments with the sample weights.
    sample_weight : ndarray of shape (n_samples,) or None
        Weights of the samples; None for equal ones.
    scale : ndarray of shape (n_features,) or None
        What each feature is divided by (standardisation), or None.
    centred : bool
        Whether residuals sum to zero, so that features may be centred in their products with them.
    n_threads : int
        Number of threads; never changes a result.
    whole : FeatureView or None
        The view that this one is a part of (see :meth:`part`).

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
        """A view of all features, whose moments are computed unless they are known; refuses values that are not finite."""
        moments = source.moments(sample_weight, n_threads=n_threads) if moments is None else moments
        return cls(source, moments, sample_weight, moments.scale if standardize else None, centred, n_threads)

    def part(self, samples: np.ndarray) -> Self:
        """The same features, in the same scale, for some of the samples (indices or a mask): the others have weight zero.

        Ties are broken as in the whole, so that parts agree on them.
        """
        weight = np.zeros(self.n_samples)
        weight[samples] = 1.0 if self.sample_weight is None else self.sample_weight[samples]
        moments = self.source.moments(weight, n_threads=self.n_threads)
        return replace(self, moments=moments, sample_weight=weight, whole=self)

    @property
    def tie_weight(self) -> np.ndarray | None:
        """Sample weights for :mod:`coterie.order`: those of the whole in a part."""
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
        """Whether columns come as CSC."""
        return self.source.is_sparse

    @cached_property
    def feature_names(self) -> Sequence[str] | None:
        """Names of the features, or None."""
        return self.source.feature_names

    @cached_property
    def score_bounds(self) -> ScoreBounds:
        """How large the features' scores can be."""
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
    def highest_score_bound(self) -> float:
        """The largest score that any feature can have, over the norm of the residual."""
        return max(self.map_blocks(_highest_score_bound))

    def map_blocks(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Answers of ``function(block, *arguments)`` for the blocks of this view, in order; see :class:`FeatureSource`."""
        return self.source.map_blocks(function, self, *arguments)

    def map_features(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """An array with an entry a feature, computed and kept where the features are; see :class:`FeatureSource`."""
        return self.source.map_features(function, self, *arguments)

    def columns(self, features: np.ndarray) -> Columns:
        """Some columns as they are stored."""
        return self.source.columns(features)

    def model_columns(self, features: np.ndarray) -> Columns:
        """Some columns as a model has them: float64, scaled, and centred unless that would fill sparse columns."""
        columns = self.source.columns(features)
        if isinstance(columns, np.ndarray):
            return (np.asarray(columns, dtype=np.float64) - self.centre(features)) / self.scales(features)
        scaled = sparse.csc_array(columns, dtype=np.float64, copy=True)
        scaled.data /= np.repeat(self.scales(features), np.diff(scaled.indptr))
        return scaled

    def centre(self, features: np.ndarray) -> np.ndarray:
        """What a model subtracts from some features: their means, or nothing where that would fill sparse columns."""
        return self.moments.mean[features] if self.centred and not self.is_sparse else np.zeros(len(features))

    def scales(self, features: np.ndarray) -> np.ndarray:
        """What a model divides some features by."""
        return np.ones(len(features)) if self.scale is None else self.scale[features]

    def products(self, vectors: np.ndarray, features: np.ndarray | None = None) -> np.ndarray:
        """Products of some (None: all) features, centred but not scaled, with vectors of shape (n_samples, k)."""
        n_features = self.n_features if features is None else len(features)
        centre = self.moments.mean if self.centred else None
        n_threads = self.n_threads if n_features >= _MANY else 1
        return self.source.products(vectors, centre=centre, features=features, n_threads=n_threads)

    def scores(self, residual: np.ndarray, features: np.ndarray | None = None) -> np.ndarray:
        r"""Scores :math:`|s_j|` of some (None: all) features for residuals of shape (n_samples, n_outputs)."""
        return self.scores_of(self.products(residual, features), features)

    def scores_of(self, products: np.ndarray, features: np.ndarray | None = None) -> np.ndarray:
        """Scores from the features' products with a residual, which are overwritten: norms over outputs, scaled."""
        if products.shape[1] == 1:
            scores = np.abs(products[:, 0], out=products[:, 0])  # in the memory of the products: features can be many
        else:
            scores = np.empty(len(products))
            n_threads = self.n_threads if len(products) >= _MANY else 1
            run_evenly(lambda first, last: row_norms(products, scores, first, last), len(products), n_threads)
        if self.scale is not None:
            scale = self.scale if features is None else self.scale[features]
            np.divide(scores, scale, out=scores, where=scale > 0)
        return scores

    def norm_of(self, residual: np.ndarray) -> float:
        r"""The norm :math:`(\sum_i \tilde\alpha_i^2/\omega_i)^{1/2}`, which goes with the weighted norms of features."""
        if self.sample_weight is None:
            return float(np.sqrt((residual**2).sum()))
        used = self.sample_weight > 0
        return float(np.sqrt(((residual[used] ** 2).T / self.sample_weight[used]).sum()))


def _highest_score_bound(view: FeatureView) -> float:
    return view.score_bounds.highest


# A sum, in units of 2**-44.
Total = int


def exact_sum(values: np.ndarray) -> Total:
    """The sum of numbers in [0, 1], each rounded to 44 binary places.

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
    return sum(int(np.rint(values[i : i + _SUMMED] * _UNIT).astype(np.int64).sum()) for i in range(0, len(values), _SUMMED))


def totals(parts: Sequence[Sequence[Total]]) -> list[float]:
    """Sums of several blocks as numbers over 0: one for each of the sums of a block."""
    return [max(sum(values), 1) / _UNIT for values in zip(*parts, strict=True)]


def mostly_zero(source: FeatureSource, most: float = FEW_VALUES) -> bool:
    """Whether no more than this part of all values is other than zero.

    It is the same for the same data in any format. Features are read until the answer is certain: with few zeros that is soon.

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
    return sum(source.map_blocks(_count, None, limit)) <= limit


def _count(source: FeatureSource, limit: float) -> int:
    """Number of values other than zero, or one over the limit."""
    count = 0
    for _, block in source.blocks(_SPARSE if source.is_sparse else _DENSE):
        count += int(np.count_nonzero(block if isinstance(block, np.ndarray) else block.data))
        if count > limit:
            break
    return count
