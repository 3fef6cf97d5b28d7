"""The protocol through which every algorithm reads its features, and passes over all features."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from scipy import sparse

from coterie._numba import one_blas_thread, run_chunks
from coterie.kernels.columns import largest_shares

if TYPE_CHECKING:
    from coterie.data.encoding import TableEncoding
    from coterie.data.top import Top, TopQuery
    from coterie.data.view import FeatureView

Columns: TypeAlias = "np.ndarray | sparse.csc_array"

# Maximum number of columns per block (about 16 MB of float64 for 2,000 samples), and of entries, which limits long columns.
_BLOCK_FEATURES = 1024
_BLOCK_ENTRIES = 1 << 24
# Few columns are divided into this many blocks, so that every thread gets work, but into blocks of at least this many columns.
_N_BLOCKS, _MIN_BLOCK_FEATURES = 16, 32
# Range of norms for which no computation over- or underflows: scores are products of values with C and weights, and they are
# squared. Larger features are rejected; features that vary less count as constant.
LARGEST_NORM, SMALLEST_NORM = 1e75, 1e-75
# A mean of more standard deviations than this is "far": centring after a product with the feature loses half the digits.
FAR = 1e4


@dataclass(frozen=True)
class Moments:
    """Mean and norm of each feature, from one pass.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Weighted mean.
    norm : ndarray of shape (n_features,)
        Norm of the centred feature, ``sqrt(sum_i w_i (x_i - mean)^2)``. Exactly 0 for a constant feature, and if it would be
        below 1e-75.
    total_weight : float
        Sum of the sample weights (the number of samples without weights).
    nonnegative : bool
        Whether all values are known to be at least 0; sparse sources only.
    """

    mean: np.ndarray
    norm: np.ndarray
    total_weight: float
    nonnegative: bool = False

    @cached_property
    def n_varying(self) -> int:
        """Number of features that are not constant."""
        return int(np.count_nonzero(self.norm))

    @property
    def scale(self) -> np.ndarray:
        """Standard deviation of each feature (division by the total weight)."""
        return self.norm / np.sqrt(self.total_weight)

    @property
    def far_mean(self) -> np.ndarray:
        """Mean of each feature whose standard deviation is below 1e-4 of it; 0 for all others and constant ones.

        Without sample weights, the mean of a feature with a zero is at most sqrt(n_samples) standard deviations. So a sparse
        column with such a mean has no zeros, and the mean can be subtracted from its stored values.
        """
        return np.where(self.is_far(slice(None)), self.mean, 0.0)

    def is_far(self, features: np.ndarray | slice) -> np.ndarray:
        """Return a mask of the features whose mean is far above their variation; see :attr:`far_mean`."""
        norm, mean = self.norm[features], self.mean[features]
        limit = max(FAR, float(np.sqrt(self.total_weight)))
        return (norm > 0.0) & (np.abs(mean) * np.sqrt(self.total_weight) > limit * norm)

    def require_variation(self) -> None:
        """Raise ``ValueError`` if all features are constant."""
        if not self.n_varying:
            raise ValueError(
                "All features of X are constant (or vary by less than 1e-75). Check that X holds the right columns."
            )


@dataclass(frozen=True)
class Exemplar:
    r"""Scores of all features with one vector, used by the angle bound.

    Attributes
    ----------
    scores : ndarray of shape (n_features,)
        :math:`f_j'\tilde\alpha`.
    shift : float
        Factor of the mean that is subtracted to centre the scores: 0 if they are centred already, else
        the sum of :math:`\tilde\alpha`.
    norm : float
        Norm of the centred exemplar :math:`\tilde\alpha / \omega` in the weighted inner product.
    """

    scores: np.ndarray
    shift: float
    norm: float


@dataclass(frozen=True)
class StrongQuery:
    """Parameters of :meth:`FeatureSource.strong_products`.

    Attributes
    ----------
    columns : ndarray or CSC array of shape (n_samples, k)
        Weighted columns, which are also centred for dense sources.
    means, limits : ndarray of shape (k,)
        Means of the columns, and the smallest strong \\|product\\|, divided by the feature's norm.
    fewest : ndarray of shape (k,)
        Minimum number of nonzeros of a feature with a strong product (sparse sources).
    exemplar : Exemplar or None
        Scores for the angle bound.
    lowest, highest : ndarray of shape (k,)
        Range of \\|correlation\\| with the exemplar that a strong product requires.
    tail_bound : bool
        Whether a feature may be rejected early, by a bound that holds for equal sample weights only.
    """

    columns: Columns
    means: np.ndarray
    limits: np.ndarray
    fewest: np.ndarray
    exemplar: Exemplar | None
    lowest: np.ndarray
    highest: np.ndarray
    tail_bound: bool

    @cached_property
    def by_sample(self) -> ColumnsBySample:
        """Columns of a sparse query, stored by sample. Does not depend on the exemplar."""
        # In order of the nonzeros they require, so that a feature can stop at the first column that requires too many.
        order = np.argsort(self.fewest, kind="stable")
        rows = sparse.csc_array(self.columns)[:, order].tocsr()
        limits, means = self.limits[order], self.means[order]
        shares = np.empty(rows.shape[0] if self.tail_bound else 0, dtype=np.float32)  # small, for millions of samples
        largest_shares(rows.indptr, rows.indices, rows.data, means, limits, shares)
        return ColumnsBySample(order, rows, limits, means, shares)

    def with_exemplar(self, exemplar: Exemplar | None) -> StrongQuery:
        """Return the query with another exemplar. The columns by sample are shared."""
        result = replace(self, exemplar=exemplar)
        if not isinstance(self.columns, np.ndarray):
            result.__dict__["by_sample"] = self.by_sample
        return result


class ColumnsBySample(NamedTuple):
    """Columns of a query in another order, as rows, with their limits and means, and the largest share of each sample."""

    order: np.ndarray
    rows: sparse.csr_array
    limits: np.ndarray
    means: np.ndarray
    shares: np.ndarray


class StrongPairs(NamedTuple):
    """Pairs of a feature and a column with a strong product, and the work done to find them."""

    feature: np.ndarray
    position: np.ndarray
    product: np.ndarray
    n_evaluated: int
    n_read: int


@runtime_checkable
class FeatureSource(Protocol):
    """A matrix of samples by features that is read feature by feature.

    Implementations are views: they hold no copy of the data. All methods are pure and may be called from several threads.
    ``n_threads`` never changes a result. The methods implemented here are for features that are all in this process.

    Attributes
    ----------
    annotations : mapping of str to sequence of length n_features
        Annotations of the features, such as the chromosome of a SNP; see :func:`annotated`. Algorithms use only ``column``:
        features of one column of a table stay together in groups (:mod:`coterie.correlation.units`).
    encoding : TableEncoding or None
        Encoding of the columns of the table that the features come from, which a fitted model keeps.
    """

    annotations: Mapping[str, Any] = MappingProxyType({})
    encoding: TableEncoding | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and number of features."""
        ...

    @property
    def is_sparse(self) -> bool:
        """Whether columns are returned as CSC (else as an F-ordered array)."""
        ...

    @property
    def first_feature(self) -> int:
        """Index of the first feature in the whole matrix, for a source over a part of it; else 0."""
        return 0

    @property
    def feature_names(self) -> Sequence[str] | None:
        """Names of the features, or None. Names are never generated."""
        return None

    @property
    def array(self) -> np.ndarray | None:
        """All features as one read-only array; None if they are sparse or not in this process."""
        return None

    @property
    def n_workers(self) -> int | None:
        """Number of workers that hold the features; None for features in this process."""
        return None

    def moments(self, sample_weight: np.ndarray | None = None, *, n_threads: int = 1) -> Moments:
        """Return mean and norm of all features, from one pass.

        Raises ``ValueError`` with the number of NaN and infinite values and the place of the first.
        """
        ...

    def many_moments(self, weights: Sequence[np.ndarray], *, n_threads: int = 1) -> list[Moments]:
        """Return the moments for each of many sample weights. The values must be known to be finite.

        Dense features are read once for all weights, by BLAS, and centred at their unweighted mean. The result agrees with
        :meth:`moments` to about twelve digits. The norm of a feature that is constant on the samples of positive weight is
        exactly 0. Sparse features are read once per some dozens of weights, with results identical to :meth:`moments`.
        """
        ...

    def products(
        self,
        vectors: np.ndarray,
        *,
        centre: np.ndarray | None = None,
        features: np.ndarray | None = None,
        out: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> np.ndarray:
        """Return ``(X - 1 centre')' vectors`` for vectors of shape (n_samples, k), from one pass.

        ``features`` restricts the product to some features, in that order. ``out`` is an optional array for the result.
        """
        ...

    def strong_products(self, query: StrongQuery, moments: Moments, *, n_threads: int = 1) -> StrongPairs:
        """Return large products of the centred features with a few columns, without storing all products.

        ``moments`` holds the moments of the source, with the sample weights of the query.
        """
        ...

    def top(self, query: TopQuery) -> Top:
        """Return the features with the highest scores for a residual, computed as far down as requested."""
        from coterie.data.top import LayeredTop

        return LayeredTop(query)

    def shared_top(self, views: Sequence[FeatureView], *, n_threads: int = 1) -> SharedTopProtocol:
        """Return an object that finds the best features for many residuals of these views in one pass."""
        from coterie.data.top import SharedTop

        return SharedTop(views, n_threads)

    def map_blocks(self, function: Callable[..., Any], view: FeatureView | None, *arguments: Any) -> list[Any]:
        """Call ``function(block, *arguments)`` where the features are, and return the results in feature order.

        ``block`` is a view of contiguous features (or, if ``view`` is None, a source over them): all features for a source in
        memory, those of one part for a source on many machines. The index of its first feature is
        ``block.source.first_feature``. The function must be pure and importable by other processes. An argument may be a
        result of :meth:`map_features` or an array of moments: the function receives the part that belongs to the block.
        """
        return [function(self if view is None else view, *arguments)]

    def map_features(self, function: Callable[..., Any], view: FeatureView, *arguments: Any) -> Any:
        """Call a function that returns one or several arrays with one entry per feature, and keep them with the features.

        The call is as in :meth:`map_blocks`. The result is indexed by features like an array. For a source in memory, it is an
        array.
        """
        return function(view, *arguments)

    def prepare(self, function: Callable[..., Any], *arguments: Any, large: bool = False) -> Any:
        """Return ``function(source, *arguments)`` as an argument of tasks; see :meth:`map_tasks`.

        On a cluster, the result is a deferred call that each worker evaluates once. A ``large`` value may take as much memory
        as the features, so a worker keeps only one of them.
        """
        return function(self, *arguments)

    def map_tasks(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        *,
        what: str,
        n_threads: int = 1,
        on_answer: Callable[[int, Any], None] | None = None,
    ) -> list[Any]:
        """Return ``function(source, *task)`` for all tasks, in order, where ``source`` has *all* features.

        The tasks run on threads of this process, or on the workers of a cluster, each of which opens the whole store. The
        function must be pure and importable by other processes. Arguments may be moments of this source and values of
        :meth:`prepare`. ``what`` describes the results in error messages. ``on_answer(position, answer)`` is called with each
        result when it is available, possibly from several threads.
        """
        answers: list[Any] = [None] * len(tasks)

        def run(start: int, stop: int) -> None:
            for place in range(start, stop):
                answers[place] = function(self, *tasks[place])
                if on_answer is not None:
                    on_answer(place, answers[place])

        with one_blas_thread():  # the threads run tasks
            run_chunks(run, range(len(tasks) + 1), n_threads)
        return answers

    def concurrency(self, n_threads: int) -> int:
        """Return the number of tasks of :meth:`map_tasks` that run at the same time."""
        return n_threads

    def spread(self, features: np.ndarray, values: np.ndarray) -> Any:
        """Return an array with one entry per feature: values at some features (in ascending order), 0 elsewhere."""
        result: np.ndarray = np.zeros(self.shape[1], dtype=values.dtype)
        result[features] = values
        return result

    def prefetch(self, features: np.ndarray) -> None:
        """Fetch columns that are about to be read in several steps, if they are remote, in one request."""
        ...

    def columns(self, features: np.ndarray) -> Columns:
        """Return some columns in their own value type, as CSC or in F order."""
        ...

    def block(self, start: int, stop: int) -> Columns:
        """Return the columns ``start <= j < stop`` as :meth:`columns` does; a view if possible."""
        ...

    def blocks(self, n_features: int) -> Iterator[tuple[int, Columns]]:
        """Yield all columns in contiguous blocks of at most ``n_features``, as (first feature, columns)."""
        for start in range(0, self.shape[1], n_features):
            yield start, self.block(start, min(start + n_features, self.shape[1]))


Source = TypeVar("Source", bound=FeatureSource)


class SharedTopProtocol(Protocol):
    """Search for the best features of many residuals in shared passes."""

    @property
    def n_passes(self) -> float:
        """Number of passes over the features."""
        ...

    def best(self, queries: Sequence[TopQuery]) -> Sequence[Top]:
        """Return the best features of each query, from one pass."""
        ...


def shifted(columns: Columns, shift: np.ndarray) -> Columns:
    """Return float64 columns with one number per column subtracted; in sparse columns, from stored values only."""
    if isinstance(columns, np.ndarray):
        return columns.astype(np.float64) - shift
    values = columns.data.astype(np.float64) - np.repeat(shift, np.diff(columns.indptr))
    return sparse.csc_array((values, columns.indices, columns.indptr), shape=columns.shape)


def block_size(n_samples: int) -> int:
    """Return the number of dense columns per block."""
    return max(1, min(_BLOCK_FEATURES, _BLOCK_ENTRIES // max(n_samples, 1)))


def for_blocks(source: FeatureSource, task: Callable[[int, Columns], object], n_threads: int) -> None:
    """Call ``task(first feature, columns)`` for all blocks of columns, on ``n_threads`` threads.

    A task writes its result for each column to a separate location, so neither the number of threads nor
    the size of the blocks changes a result.
    """
    n_samples, n_features = source.shape
    size = block_size(n_samples)
    if source.is_sparse:
        size = max(size, n_features // (16 * n_threads) + 1)  # blocks are views, so their size is not limited
    else:
        # Independent of the number of threads, because rounding in BLAS may depend on the width of a block.
        size = min(size, max(_MIN_BLOCK_FEATURES, -(-n_features // _N_BLOCKS)))
    bounds = [*range(0, n_features, size), n_features]
    run_chunks(lambda start, stop: task(start, source.block(start, stop)), bounds, n_threads)


def annotated(source: Source, columns: Mapping[str, Any]) -> Source:
    """Return a source with additional annotations of its features.

    Parameters
    ----------
    source : FeatureSource
        Features. The result shares their values.
    columns : mapping of str to sequence of length n_features
        Arrays, packed strings, data frame columns, or any other object that supports ``column[j]``.

    Returns
    -------
    source : FeatureSource
        A shallow copy of ``source``; ``source`` itself if ``columns`` is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryRegressor
    >>> from coterie.data import annotated, as_source
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> source = annotated(as_source(X), {"unit": ["cm", "kg"]})
    >>> GroupDiscoveryRegressor(1).fit(source, [0.0, 1.0, 2.0, 3.0]).groups_.annotations
    {'unit': ['cm']}
    """
    if not columns:
        return source
    for name, values in columns.items():
        if len(values) != source.shape[1]:
            raise ValueError(f"The annotation {name!r} has {len(values)} values, but there are {source.shape[1]} features.")
    result = copy.copy(source)
    result.annotations = {**source.annotations, **columns}
    return result
