"""The protocol through which every algorithm of Coterie sees its features, and a pass over all of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from scipy import sparse

from coterie._numba import one_blas_thread, run_chunks

if TYPE_CHECKING:
    from coterie.data.top import Top, TopQuery
    from coterie.data.view import FeatureView

Columns: TypeAlias = "np.ndarray | sparse.csc_array"

# Columns of a block in a pass, about 16 MB of float64 for 2,000 samples; and entries of one, which bounds long columns.
_BLOCK_FEATURES = 1024
_BLOCK_ENTRIES = 1 << 24
# Blocks that few columns are divided into, so that every thread has some, and columns that a block is worth.
_CHUNKS, _FEWEST = 16, 32
# Scales that floating point carries through every computation: scores are products of values with C and weights, and they are
# squared. Larger features are refused; what varies less counts as constant.
LARGEST_NORM, SMALLEST_NORM = 1e75, 1e-75
# A mean of more standard deviations than this is far: products with the feature, less the mean's part, lose half their digits.
FAR = 1e4


@dataclass(frozen=True)
class Moments:
    """What one pass over the features tells about each of them.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Weighted mean.
    norm : ndarray of shape (n_features,)
        Norm of the centred feature, ``sqrt(sum_i w_i (x_i - mean)^2)``; exactly 0 for a constant one, and where it would be
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
        """The mean of each feature that varies by less than 1e-4 of it; 0 for all others, and for constant ones.

        Without sample weights, a feature with a zero has a mean of at most sqrt(n_samples) standard deviations. So a sparse
        column with such a mean has no zeros, and the mean can be subtracted from what it stores.
        """
        return np.where(self.is_far(slice(None)), self.mean, 0.0)

    def is_far(self, features: np.ndarray | slice) -> np.ndarray:
        """Which of some features have a mean that is far above what varies; see :attr:`far_mean`."""
        norm, mean = self.norm[features], self.mean[features]
        limit = max(FAR, float(np.sqrt(self.total_weight)))
        return (norm > 0.0) & (np.abs(mean) * np.sqrt(self.total_weight) > limit * norm)

    def require_variation(self) -> None:
        """Raise a ``ValueError`` if all features are constant."""
        if not self.n_varying:
            raise ValueError(
                "All features of X are constant (or vary by less than 1e-75), so there is nothing to select. Check that X "
                "holds the right columns."
            )


@dataclass(frozen=True)
class Exemplar:
    r"""Scores of all features with one vector, which the angle bound compares.

    Attributes
    ----------
    scores : ndarray of shape (n_features,)
        :math:`f_j'\tilde\alpha`.
    shift : float
        What the mean is multiplied by to centre the scores: 0 when they are centred already, else
        the sum of :math:`\tilde\alpha`.
    norm : float
        Norm of the centred exemplar :math:`\tilde\alpha / \omega` in the weighted inner product.
    """

    scores: np.ndarray
    shift: float
    norm: float


@dataclass(frozen=True)
class StrongQuery:
    """What :meth:`FeatureSource.strong_products` is asked for.

    Attributes
    ----------
    columns : ndarray or CSC array of shape (n_samples, k)
        For dense sources the weighted and centred columns; for sparse sources the weighted ones.
    means, limits : ndarray of shape (k,)
        Means of the columns, and the \\|product\\| over the feature's norm to reach.
    fewest : ndarray of shape (k,)
        Nonzeros that a feature needs for a strong product (sparse sources).
    exemplar : Exemplar or None
        Scores for the angle bound.
    lowest, highest : ndarray of shape (k,)
        \\|correlation\\| with the exemplar that a feature must have for a strong product.
    tail_bound : bool
        Whether a feature may be given up early, by a bound that is only right for equal sample weights.
    """

    columns: Columns
    means: np.ndarray
    limits: np.ndarray
    fewest: np.ndarray
    exemplar: Exemplar | None
    lowest: np.ndarray
    highest: np.ndarray
    tail_bound: bool


class StrongPairs(NamedTuple):
    """Pairs of a feature and a column with a strong product, and what finding them took."""

    feature: np.ndarray
    position: np.ndarray
    product: np.ndarray
    n_evaluated: int
    n_read: int


@runtime_checkable
class FeatureSource(Protocol):
    """A matrix of samples by features that is read feature by feature.

    Implementations are views: they hold no copy of the data. All methods are pure and may be called from several threads.
    ``n_threads`` never changes a result. A subclass inherits what holds for features that are all in this process.

    Attributes
    ----------
    annotations : mapping of str to sequence of length n_features
        Columns about the features, such as the chromosome of a SNP; see :func:`annotated`. No algorithm reads them.
    """

    annotations: Mapping[str, Any] = MappingProxyType({})

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples, number of features."""
        ...

    @property
    def is_sparse(self) -> bool:
        """Whether columns come as CSC (else as an F-ordered array)."""
        ...

    @property
    def first_feature(self) -> int:
        """What the first feature is in the whole matrix, for a source over a part of it; else 0."""
        return 0

    @property
    def feature_names(self) -> Sequence[str] | None:
        """Names of the features, or None; never made up."""
        return None

    @property
    def array(self) -> np.ndarray | None:
        """All features as one read-only array; None if they are sparse or not in this process."""
        return None

    @property
    def n_workers(self) -> int | None:
        """Number of workers that have the features open; None for features in this process."""
        return None

    def moments(self, sample_weight: np.ndarray | None = None, *, n_threads: int = 1) -> Moments:
        """Mean and norm of all features in one pass.

        Raises ``ValueError`` that says how many values are NaN or infinite and where the first is.
        """
        ...

    def many_moments(self, weights: Sequence[np.ndarray], *, n_threads: int = 1) -> list[Moments]:
        """Moments for each of many sample weights, of values that are known to be finite.

        Dense features are read once for all weights, by BLAS, about their common mean; the result agrees with
        :meth:`moments` to about twelve digits, and features that are constant where the weight is have a norm of exactly 0.
        Sparse features are read once for some dozens of weights, with the bits of :meth:`moments`.
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
        """``(X - 1 centre')' vectors`` for vectors of shape (n_samples, k), in one pass.

        ``features`` restricts the product to some features, in that order. ``out`` is an array of the result's shape to reuse.
        """
        ...

    def strong_products(self, query: StrongQuery, moments: Moments, *, n_threads: int = 1) -> StrongPairs:
        """Large products of the centred features with a few columns, without a table of all products.

        ``moments`` are those of the source (with the query's sample weights).
        """
        ...

    def top(self, query: TopQuery) -> Top:
        """The features with the best scores for a residual, from the top, as far down as requested."""
        from coterie.data.top import LayeredTop

        return LayeredTop(query)

    def shared_top(self, views: Sequence[FeatureView], *, n_threads: int = 1) -> SharedBest:
        """The same for many residuals of some views of this source, by one pass for all."""
        from coterie.data.top import SharedTop

        return SharedTop(views, n_threads)

    def map_blocks(self, function: Callable[..., Any], view: FeatureView | None, *arguments: Any) -> list[Any]:
        """Call ``function(block, *arguments)`` where the features are, and collect the answers in order of the features.

        ``block`` is a view of some features that lie together (or, for None, a source over them): all of them for a source in
        memory, those of one part for one on many machines. There the number of its first feature is
        ``block.source.first_feature``. The function must be pure, and one that other processes can import. An argument may be
        what :meth:`map_features` has returned, or an array of moments: the function gets the part that belongs to the block.
        """
        return [function(self if view is None else view, *arguments)]

    def map_features(self, function: Callable[..., Any], view: FeatureView, *arguments: Any) -> Any:
        """The same for a function that returns an array (or several) with one entry per feature; it stays with the features.

        The result is indexed by features like an array; for a source in memory it is one.
        """
        return function(view, *arguments)

    def prepare(self, function: Callable[..., Any], *arguments: Any, large: bool = False) -> Any:
        """The value of ``function(source, *arguments)``, as an argument of tasks: see :meth:`map_tasks`.

        On a cluster it is a recipe, by which each worker makes the value once. A worker keeps no more than one value that is
        ``large``, that is, may take as much memory as the features.
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
        """Answers of ``function(source, *task)`` for all tasks, in order, where ``source`` has *all* features.

        The tasks run on threads of this process, or on the workers of a cluster, each of which opens the whole store. The
        function must be pure, and one that other processes can import. Arguments may be moments of this source and values of
        :meth:`prepare`. ``what`` says in error messages what the answers are, and ``on_answer(position, answer)`` is called
        with each answer as it comes, possibly from several threads.
        """
        answers: list[Any] = [None] * len(tasks)

        def run(start: int, stop: int) -> None:
            for place in range(start, stop):
                answers[place] = function(self, *tasks[place])
                if on_answer is not None:
                    on_answer(place, answers[place])

        with one_blas_thread():  # the tasks take the threads
            run_chunks(run, range(len(tasks) + 1), n_threads)
        return answers

    def concurrency(self, n_threads: int) -> int:
        """Number of tasks of :meth:`map_tasks` that run at the same time."""
        return n_threads

    def spread(self, features: np.ndarray, values: np.ndarray) -> Any:
        """An array with one entry per feature: the values of some features (rising), and 0 for all others."""
        result: np.ndarray = np.zeros(self.shape[1], dtype=values.dtype)
        result[features] = values
        return result

    def prefetch(self, features: np.ndarray) -> None:
        """These columns will be needed soon, in several steps; where they are far away, they come together."""
        ...

    def columns(self, features: np.ndarray) -> Columns:
        """Some columns in their own value type, as CSC or in F order."""
        ...

    def block(self, start: int, stop: int) -> Columns:
        """The columns ``start <= j < stop`` in their own value type, as CSC or in F order; a view where possible."""
        ...

    def blocks(self, n_features: int) -> Iterator[tuple[int, Columns]]:
        """All columns in contiguous blocks of at most ``n_features``: (first feature, columns)."""
        for start in range(0, self.shape[1], n_features):
            yield start, self.block(start, min(start + n_features, self.shape[1]))


Source = TypeVar("Source", bound=FeatureSource)


class SharedBest(Protocol):
    """The best features for many residuals."""

    @property
    def n_passes(self) -> float:
        """How often the features were read."""
        ...

    def best(self, queries: Sequence[TopQuery]) -> Sequence[Top]:
        """The best features of each query, in one pass."""
        ...


def shifted(columns: Columns, shift: np.ndarray) -> Columns:
    """Columns less a number each, in float64; of sparse ones only the stored values are changed."""
    if isinstance(columns, np.ndarray):
        return columns.astype(np.float64) - shift
    values = columns.data.astype(np.float64) - np.repeat(shift, np.diff(columns.indptr))
    return sparse.csc_array((values, columns.indices, columns.indptr), shape=columns.shape)


def block_size(n_samples: int) -> int:
    """Dense columns of a block."""
    return max(1, min(_BLOCK_FEATURES, _BLOCK_ENTRIES // max(n_samples, 1)))


def for_blocks(source: FeatureSource, task: Callable[[int, Columns], object], n_threads: int) -> None:
    """Call ``task(first feature, columns)`` for all blocks of columns, on ``n_threads`` threads.

    A task writes what it finds about each column to the column's own place, so that neither threads nor
    the size of the blocks can change a result.
    """
    n_samples, n_features = source.shape
    size = block_size(n_samples)
    if source.is_sparse:
        size = max(size, n_features // (16 * n_threads) + 1)  # views cost nothing
    else:
        size = min(size, max(_FEWEST, -(-n_features // _CHUNKS)))  # whatever the threads: BLAS may round by the width
    bounds = [*range(0, n_features, size), n_features]
    run_chunks(lambda start, stop: task(start, source.block(start, stop)), bounds, n_threads)


def annotated(source: Source, columns: Mapping[str, Any]) -> Source:
    """The source with columns about its features, beside those that it has.

    Parameters
    ----------
    source : FeatureSource
        The features; what is returned shares their values.
    columns : mapping of str to sequence of length n_features
        Arrays, packed strings, columns of a frame: whatever ``column[j]`` works on.

    Returns
    -------
    source : FeatureSource
        The same one where there are no columns.

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
