"""Sources over arrays in memory or memory maps, without copies where possible."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from coterie._numba import read_only, run_chunks, run_evenly
from coterie.data.names import check_names
from coterie.data.source import (
    SMALLEST_NORM,
    Columns,
    Exemplar,
    FeatureSource,
    Moments,
    StrongPairs,
    StrongQuery,
    for_blocks,
)
from coterie.data.validity import BadValues, canonical_csc
from coterie.kernels import columns as kernels
from coterie.kernels.correlation import pair_products, standardise, within_angle
from coterie.kernels.moments import csc_many_moments, csc_moments, feature_major_moments, sample_major_moments
from coterie.kernels.rounded import feature_major_rounded_norms, sample_major_rounded_norms
from coterie.kernels.transposition import csc_take

if TYPE_CHECKING:
    from coterie.inputs.types import NamesLike

# First capacity of a chunk's buffer of strong products. If it is exceeded, the chunk is repeated with a larger buffer.
_FIRST_CAPACITY = 1 << 16
# If the sum of squares about the weighted mean is a smaller share than this of that about the unweighted mean, digits have
# cancelled, and it is computed again.
_MIN_VARIATION_SHARE = 1e-3
# Number of sample weights per pass over sparse features: their sums must fit into the cache.
_WEIGHTS_PER_PASS = 32
# Columns that BLAS computes together, or a multiple of them.
_BLAS_TILE = 8
# Number of columns per pass of strong_products over dense features: one bit of a mask per column.
_MASK_BITS = 16
# Number of columns from which BLAS is faster, although it rejects no feature early; features and values per block of BLAS; and
# number of samples above which single precision leaves too many products to check.
_MANY_COLUMNS, _BLOCK_FEATURES, _BLOCK_VALUES, _SINGLE_PRECISION = 128, 1024, 1 << 22, 100_000
# Maximum number of columns per call that are kept as contiguous copies, and size of all such copies.
_MAX_GATHERED_COLUMNS, _GATHERED_BYTES = 64, 1 << 25
# Features per block when counting those with enough entries.
_COUNTED_FEATURES = 1 << 16
_NO_CENTRE = read_only(np.empty(0))
_NO_FEATURES = read_only(np.empty(0, dtype=np.int64))


class _InMemory(FeatureSource):
    """Base class of the sources over arrays."""

    first_feature = 0
    feature_names: Sequence[str] | None = None

    def moments(self, sample_weight: np.ndarray | None = None, *, n_threads: int = 1) -> Moments:
        moments, bad = self.moments_and_bad_values(sample_weight, n_threads=n_threads)
        bad.raise_if_any(self.feature_names, first_feature=self.first_feature)
        return moments

    def moments_and_bad_values(
        self, sample_weight: np.ndarray | None = None, *, n_threads: int = 1
    ) -> tuple[Moments, BadValues]:
        """Return the moments and the bad values; moments of features with bad values are meaningless."""
        raise NotImplementedError

    def prefetch(self, features: np.ndarray) -> None:
        """Do nothing: columns in memory need not be fetched."""

    def release(self) -> None:
        """Release mapped pages. A source in memory has none."""

    def _run_chunks(self, task: Callable[[int, int], object], cost: np.ndarray | int, n_threads: int) -> None:
        """Call ``task(start, stop)`` for chunks of all features of about equal cost; a store may release pages in between."""
        run_evenly(task, cost, n_threads)


class DenseSource(_InMemory):
    """Features of a NumPy array (C or F order, any real type, memory-mapped or not), never copied.

    Parameters
    ----------
    array : ndarray of shape (n_samples, n_features)
        Features. Booleans are viewed as bytes. Integers and float32 are not converted; every sum is
        accumulated in float64.
    feature_names : sequence of str, optional
        One name per feature.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data import DenseSource
    >>> source = DenseSource(np.array([[1, 2], [3, 2]], dtype=np.int8))
    >>> source.moments().mean
    array([2., 2.])
    >>> source.products(np.ones((2, 1)))
    array([[4.],
           [4.]])
    """

    is_sparse = False

    def __init__(self, array: np.ndarray, feature_names: Sequence[str] | None = None) -> None:
        if array.ndim != 2:
            raise ValueError(f"A dense source requires a 2D array, got {array.ndim} dimension(s).")
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8 or array.dtype == np.float16:
            raise ValueError(f"Values of type {array.dtype} are not supported. Convert them to float32 or float64.")
        self._array = read_only(array)
        self._feature_major = abs(array.strides[0]) < abs(array.strides[1]) or array.flags.f_contiguous
        self._gathered: dict[int, np.ndarray] = {}
        self.feature_names = feature_names

    @property
    def shape(self) -> tuple[int, int]:
        return self._array.shape[0], self._array.shape[1]

    @property
    def array(self) -> np.ndarray:
        return self._array

    @property
    def _by_kernel(self) -> np.ndarray:
        """Array in the orientation that the kernels for its storage order expect."""
        return self._array.T if self._feature_major else self._array

    def moments_and_bad_values(
        self, sample_weight: np.ndarray | None = None, *, n_threads: int = 1
    ) -> tuple[Moments, BadValues]:
        n_samples, n_features = self.shape
        weight = _weights(sample_weight, n_samples)
        first = int(np.argmax(weight > 0))
        mean, norm, finite = np.empty(n_features), np.empty(n_features), np.empty(n_features, dtype=np.bool_)
        task = feature_major_moments if self._feature_major else sample_major_moments
        with np.errstate(all="ignore"):
            self._run_chunks(partial(task, self._by_kernel, weight, first, mean, norm, finite), n_features, n_threads)
        norm[norm < SMALLEST_NORM] = 0.0
        bad = BadValues.find(self, finite, mean, norm, self.first_feature)
        return Moments(mean, norm, float(weight.sum())), bad

    def many_moments(self, weights: Sequence[np.ndarray], *, n_threads: int = 1) -> list[Moments]:
        if len(weights) == 1:
            return [self.moments(weights[0], n_threads=n_threads)]
        # BLAS sums the last columns of a product in another order if they do not fill a tile. With columns of zeros behind,
        # the result does not depend on the number of weights.
        matrix = np.zeros((len(weights[0]), -(-len(weights) // _BLAS_TILE) * _BLAS_TILE))
        matrix[:, : len(weights)] = np.column_stack(weights)
        total = matrix[:, : len(weights)].sum(axis=0)
        mean, norm = (np.empty((len(weights), self.shape[1])) for _ in range(2))

        def task(start: int, block: Columns) -> None:
            values = np.asarray(block, dtype=np.float64)
            centre = values.mean(axis=0)
            values = values - centre
            sums, squares = ((own.T @ matrix)[:, : len(weights)] for own in (values, values * values))
            variation = squares - sums**2 / total
            features = slice(start, start + values.shape[1])
            mean[:, features] = (centre[:, None] + sums / total).T
            norm[:, features] = np.sqrt(np.maximum(variation, 0.0)).T
            for position in np.flatnonzero((variation < _MIN_VARIATION_SHARE * squares).any(axis=0)).tolist():
                inexact = np.flatnonzero(variation[:, position] < _MIN_VARIATION_SHARE * squares[:, position])
                exact = DenseSource(np.asarray(block)[:, inexact]).moments(weights[position])
                mean[position, start + inexact], norm[position, start + inexact] = exact.mean, exact.norm

        for_blocks(self, task, n_threads)
        norm[norm < SMALLEST_NORM] = 0.0
        return [Moments(mean[k], norm[k], float(total[k])) for k in range(len(weights))]

    def products(
        self,
        vectors: np.ndarray,
        *,
        centre: np.ndarray | None = None,
        features: np.ndarray | None = None,
        out: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> np.ndarray:
        n_features = self.shape[1] if features is None else len(features)
        rows = read_only(np.ascontiguousarray(vectors.T, dtype=np.float64))
        middle = read_only(_NO_CENTRE if centre is None else centre)
        chosen = _selected(features)
        all_features = features is None
        out = np.empty((n_features, rows.shape[0])) if out is None else out
        task = kernels.feature_major_products if self._feature_major else kernels.sample_major_products
        matrix = self._by_kernel
        if not self._feature_major and features is not None and 0 < n_features <= _MAX_GATHERED_COLUMNS:
            matrix, all_features = read_only(self._gather(features)), True  # the same sums, from contiguous copies
            middle = middle if centre is None else read_only(middle[features])
        run = self._run_chunks if all_features else run_evenly
        run(partial(task, matrix, rows, middle, chosen, all_features, out), n_features, n_threads)
        return out

    def rounded_norms(
        self,
        vectors: np.ndarray,
        n_outputs: int,
        *,
        centre: np.ndarray,
        factor: np.ndarray,
        features: np.ndarray,
        out: np.ndarray,
        n_threads: int = 1,
    ) -> None:
        """Compute norms of products with many vectors in single precision; see :mod:`coterie.kernels.rounded`."""
        task = feature_major_rounded_norms if self._feature_major else sample_major_rounded_norms
        rows, chosen = read_only(vectors), read_only(np.ascontiguousarray(features, dtype=np.int64))
        n_features = len(chosen) if self._feature_major else self.shape[1]
        run = self._run_chunks if n_features == self.shape[1] else run_evenly
        centre, factor = read_only(centre), read_only(factor)
        run(partial(task, self._by_kernel, rows, n_outputs, centre, factor, chosen, out), n_features, n_threads)

    def gathered(self, features: np.ndarray) -> DenseSource | None:
        """Return a source over contiguous copies of some columns; None for feature-major arrays, which need no copy.

        The products have the same bits, because there are at least two columns.
        """
        if self._feature_major or len(features) < 2:
            return None
        return DenseSource(np.ascontiguousarray(self._array[:, features]))

    def strong_products(self, query: StrongQuery, moments: Moments, *, n_threads: int = 1) -> StrongPairs:
        if query.exemplar is None and len(query.limits) >= _MANY_COLUMNS:
            return self._many_strong_products(query, moments, n_threads)
        batches = (slice(first, first + _MASK_BITS) for first in range(0, len(query.limits), _MASK_BITS))
        return _merge_pairs([self._strong_batch(query, batch, moments, n_threads) for batch in batches])

    def _strong_batch(self, query: StrongQuery, batch: slice, moments: Moments, n_threads: int) -> StrongPairs:
        rows = read_only(np.ascontiguousarray(query.columns[:, batch].T, dtype=np.float64))
        threshold = float(query.limits[batch].min())
        wanted = self._within_angle(query, batch, moments, n_threads)
        head = self._head(rows, threshold) if query.tail_bound else rows.shape[1]
        tails = np.sqrt((rows[:, head:] ** 2).sum(axis=1))
        task = kernels.feature_major_strong_products if self._feature_major else kernels.sample_major_strong_products
        mean, norm = read_only(moments.mean), read_only(moments.norm)
        search = partial(task, self._by_kernel, rows, tails, head, mean, norm, threshold, wanted)
        feature, position, product = _collect(search, self.shape[1], n_threads, self._run_chunks)
        strong = np.abs(product) >= moments.norm[feature] * query.limits[batch][position]
        n_evaluated = int(np.bitwise_count(wanted).sum(dtype=np.int64))
        return StrongPairs(
            feature[strong], position[strong] + batch.start, product[strong], n_evaluated, int(np.count_nonzero(wanted))
        )

    def _many_strong_products(self, query: StrongQuery, moments: Moments, n_threads: int) -> StrongPairs:
        r"""Return strong products with many columns: all by BLAS, then the strong ones in double precision.

        With unit roundoff u, the product of two rounded vectors has an error of at most :math:`(n + 4) u` of the product of
        their lengths, in any order of summation (see :func:`coterie.correlation.tiles.DenseTiles`). A product that
        may reach its limit within this error is computed again in double precision, which decides.
        """
        n_samples, n_features = self.shape
        kind = np.float32 if n_samples <= _SINGLE_PRECISION else np.float64
        columns = np.asarray(query.columns, dtype=np.float64)
        used = np.flatnonzero(columns.any(axis=1))  # omits samples of weight zero, whose values are not bounded
        vectors = read_only(np.ascontiguousarray(columns[used].T))
        rounded = vectors.astype(kind)
        error = (n_samples + 4) * float(np.finfo(kind).eps) * 0.51 * np.sqrt((vectors**2).sum(axis=1))
        norms = np.where(moments.norm > 0.0, moments.norm, np.inf)
        parts: dict[int, tuple[np.ndarray, ...]] = {}

        def search(start: int, stop: int) -> None:
            matrix = self._array[:, start:stop].T if len(used) == n_samples else self._array[used, start:stop].T
            matrix = read_only(np.ascontiguousarray(matrix))
            unit = np.empty(matrix.shape, dtype=kind)
            standardise(matrix, moments.mean, norms, start, unit)
            longest = np.sqrt(np.einsum("fi,fi->f", unit, unit, dtype=np.float64).max(initial=0.0))
            tile = np.abs(unit @ rounded.T)
            found = np.nonzero(tile >= (query.limits - 1.01 * error * longest).astype(kind))
            row, position = map(np.ascontiguousarray, found)  # Strided arrays would need a second compiled version.
            product = np.empty(len(row))
            pair_products(matrix, vectors, moments.mean, start, row, position, product)
            strong = np.abs(product) >= moments.norm[start + row] * query.limits[position]
            strong &= moments.norm[start + row] > 0.0
            parts[start] = start + row[strong], position[strong], product[strong]

        size = max(1, min(_BLOCK_FEATURES, _BLOCK_VALUES // max(n_samples, 1)))
        run_chunks(search, [*range(0, n_features, size), n_features], n_threads)
        feature, position, product = (np.concatenate([parts[start][i] for start in sorted(parts)]) for i in range(3))
        n_varying = int(np.count_nonzero(moments.norm))
        return StrongPairs(feature, position, product, n_varying * len(query.limits), n_varying)

    def _within_angle(self, query: StrongQuery, batch: slice, moments: Moments, n_threads: int) -> np.ndarray:
        lowest, highest = query.lowest[batch], query.highest[batch]
        if query.exemplar is None:
            return np.where(moments.norm > 0, 2 ** len(lowest) - 1, 0).astype(np.uint16)
        wanted, exemplar = np.empty(self.shape[1], dtype=np.uint16), query.exemplar
        mean, norm = read_only(moments.mean), read_only(moments.norm)
        facts = read_only(exemplar.scores), exemplar.shift, mean, norm, exemplar.norm, lowest, highest
        run_evenly(partial(within_angle, *facts, wanted), self.shape[1], n_threads)
        return wanted

    @staticmethod
    def _head(rows: np.ndarray, threshold: float) -> int:
        """Return the number of samples after which an uncorrelated feature can be rejected."""
        n_samples = rows.shape[1]
        longest = float(np.sqrt((rows**2).sum(axis=1)).max(initial=0.0))
        if longest == 0.0:
            return n_samples
        # After a share of the samples, an uncorrelated feature has about the rest of both norms left. The margin is for noise.
        share = 1.0 - min(threshold / longest, 1.0) + 0.05 + 3.0 / np.sqrt(n_samples)
        return min(n_samples, int(np.ceil(share * n_samples)))

    def columns(self, features: np.ndarray) -> Columns:
        if self._feature_major or not 0 < len(features) <= _MAX_GATHERED_COLUMNS:
            return np.asfortranarray(self._array[:, features])
        return np.asfortranarray(self._gather(features))

    def _gather(self, features: np.ndarray) -> np.ndarray:
        """Return some columns of a sample-major array, from cached contiguous copies.

        The values of such a column are scattered in memory, and the same few columns are read in every round.
        """
        kept = self._gathered
        missing = [feature for feature in features.tolist() if feature not in kept]
        if missing:
            if (len(kept) + len(missing)) * self.shape[0] * self._array.itemsize > _GATHERED_BYTES:
                kept = self._gathered = {}
                missing = features.tolist()
            copies = np.ascontiguousarray(self._array[:, missing].T)
            kept.update(zip(missing, copies, strict=True))
        return np.stack([kept[feature] for feature in features.tolist()], axis=1)

    def block(self, start: int, stop: int) -> Columns:
        return np.asfortranarray(self._array[:, start:stop])


class SparseSource(_InMemory):
    """Features of a CSC matrix or array with int32 or int64 indices, never copied.

    The matrix must be in canonical form (sorted, no repeated entries), as
    returned by :func:`as_source`.

    Parameters
    ----------
    matrix : CSC matrix or array of shape (n_samples, n_features)
        Features. Explicit zeros are allowed and count as zeros.
    feature_names : sequence of str, optional
        One name per feature.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from coterie.data import SparseSource
    >>> source = SparseSource(sparse.csc_array([[1.0, 0.0], [0.0, 0.0]]))
    >>> source.moments().mean
    array([0.5, 0. ])
    """

    is_sparse = True

    def __init__(self, matrix: sparse.csc_array | sparse.csc_matrix, feature_names: Sequence[str] | None = None) -> None:
        self._set((matrix.indptr, matrix.indices, matrix.data), matrix.shape, feature_names)

    @classmethod
    def from_arrays(
        cls,
        indptr: np.ndarray,
        indices: np.ndarray,
        values: np.ndarray,
        shape: tuple[int, int],
        feature_names: Sequence[str] | None = None,
    ) -> Self:
        """Return a source over the three arrays of a CSC matrix, which SciPy would copy if their types differ."""
        source = cls.__new__(cls)
        source._set((indptr, indices, values), shape, feature_names)
        return source

    def _set(
        self, arrays: tuple[np.ndarray, np.ndarray, np.ndarray], shape: tuple[int, int], names: Sequence[str] | None
    ) -> None:
        self._indptr, self._indices, self._values = (read_only(array) for array in arrays)
        (self._n_samples, self._n_features), self.feature_names = shape, names

    @property
    def shape(self) -> tuple[int, int]:
        return self._n_samples, self._n_features

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Column pointers, row indices and values; read-only."""
        return self._indptr, self._indices, self._values

    def moments_and_bad_values(
        self, sample_weight: np.ndarray | None = None, *, n_threads: int = 1
    ) -> tuple[Moments, BadValues]:
        weight = _weights(sample_weight, self._n_samples)
        mean, norm = np.empty(self._n_features), np.empty(self._n_features)
        finite = np.empty(self._n_features, dtype=np.bool_)
        with np.errstate(all="ignore"):
            self._run_chunks(partial(csc_moments, *self.arrays, weight, mean, norm, finite), self._indptr, n_threads)
            nonnegative = self._is_nonnegative()
        norm[norm < SMALLEST_NORM] = 0.0
        bad = BadValues.find(self, finite, mean, norm, self.first_feature)
        return Moments(mean, norm, float(weight.sum()), nonnegative), bad

    def many_moments(self, weights: Sequence[np.ndarray], *, n_threads: int = 1) -> list[Moments]:
        nonnegative = self._is_nonnegative()
        found: list[Moments] = []
        for first in range(0, len(weights), _WEIGHTS_PER_PASS):
            batch = weights[first : first + _WEIGHTS_PER_PASS]
            matrix = read_only(np.column_stack([_weights(weight, self._n_samples) for weight in batch]))
            mean, norm = (np.empty((len(batch), self._n_features)) for _ in range(2))
            self._run_chunks(partial(csc_many_moments, *self.arrays, matrix, mean, norm), self._indptr, n_threads)
            norm[norm < SMALLEST_NORM] = 0.0
            found += [Moments(mean[k], norm[k], float(weight.sum()), nonnegative) for k, weight in enumerate(batch)]
        return found

    def products(
        self,
        vectors: np.ndarray,
        *,
        centre: np.ndarray | None = None,
        features: np.ndarray | None = None,
        out: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> np.ndarray:
        rows = read_only(np.ascontiguousarray(vectors, dtype=np.float64))
        chosen = _selected(features)
        all_features = features is None
        n_features = self._n_features if all_features else len(chosen)
        middle = read_only(_NO_CENTRE if centre is None else centre)
        totals = np.zeros(rows.shape[1]) if centre is None else rows.sum(axis=0)
        out = np.empty((n_features, rows.shape[1])) if out is None else out
        run = self._run_chunks if all_features else run_evenly
        task = partial(kernels.csc_products, *self.arrays, rows, totals, middle, chosen, all_features, out)
        run(task, self._indptr if all_features else self._cost(chosen), n_threads)
        return out

    def strong_products(self, query: StrongQuery, moments: Moments, *, n_threads: int = 1) -> StrongPairs:
        order, rows, limits, means, shares = query.by_sample
        exemplar = query.exemplar
        if exemplar is None:  # any scores will do, because the interval is unbounded
            exemplar = Exemplar(moments.norm, 0.0, 1.0)
        counts: list[int] = []
        mean, norm, scores = read_only(moments.mean), read_only(moments.norm), read_only(exemplar.scores)

        def task(found: np.ndarray, start: int, stop: int) -> int:
            count, evaluated = kernels.csc_strong_products(
                *self.arrays, mean, norm, moments.total_weight, scores, exemplar.shift, exemplar.norm,
                float(query.lowest.min()), float(query.highest.max()),
                rows.indptr, rows.indices, rows.data, query.fewest[order], means, limits,
                float((np.abs(means) / limits).max()), shares, found, start, stop,
            )  # fmt: skip
            if count <= len(found):  # otherwise the chunk is repeated
                counts.append(evaluated)
            return int(count)

        feature, position, product = _collect(task, self._indptr, n_threads, self._run_chunks)
        position = order[position]
        sort = np.lexsort((position, feature))
        n_read = self._count_with_entries(int(query.fewest.min()))
        return StrongPairs(feature[sort], position[sort], product[sort], sum(counts), n_read)

    def _count_with_entries(self, fewest: int) -> int:
        """Return the number of features with at least ``fewest`` entries; in blocks, because there can be many features."""
        starts = range(0, self._n_features, _COUNTED_FEATURES)
        blocks = (self._indptr[start : start + _COUNTED_FEATURES + 1] for start in starts)
        return sum(int(np.count_nonzero(np.diff(block) >= fewest)) for block in blocks)

    def _is_nonnegative(self) -> bool:
        return self._values.dtype.kind == "u" or bool(self._values.min(initial=0) >= 0)

    def _cost(self, features: np.ndarray, dtype: Any = np.int64) -> np.ndarray:
        """Return the cumulative number of entries of some features."""
        cost = np.zeros(len(features) + 1, dtype=dtype)
        np.cumsum(self._indptr[features + 1] - self._indptr[features], out=cost[1:])
        return cost

    def columns(self, features: np.ndarray) -> Columns:
        chosen = np.asarray(features, dtype=np.int64)
        indptr = self._cost(chosen, self._indptr.dtype)
        indices, values = (np.empty(indptr[-1], dtype=array.dtype) for array in (self._indices, self._values))
        csc_take(*self.arrays, chosen, indptr, indices, values)
        return sparse.csc_array((values, indices, indptr), shape=(self._n_samples, len(chosen)))

    def block(self, start: int, stop: int) -> Columns:
        first, last = self._indptr[start], self._indptr[stop]
        return sparse.csc_array(
            (self._values[first:last], self._indices[first:last], self._indptr[start : stop + 1] - first),
            shape=(self._n_samples, stop - start),
        )


def as_source(
    X: ArrayLike | sparse.sparray | sparse.spmatrix | FeatureSource, feature_names: NamesLike = None
) -> FeatureSource:
    """Return a feature source over an array or a sparse matrix, optionally with feature names.

    All estimators of Coterie accept a source as X, in ``fit`` as well as in ``predict`` and ``transform``. A source gives
    feature names to a sparse matrix, which has none.

    NumPy arrays and canonical CSC matrices are not copied. Any other sparse format is converted to
    CSC once, which takes the memory of a second copy of its nonzeros. CSC with unsorted or
    repeated entries is copied and sorted, and repeated entries are summed.

    Parameters
    ----------
    X : {array, sparse matrix, FeatureSource} of shape (n_samples, n_features)
        Features.
    feature_names : sequence of str, default=None
        One unique name per feature. None keeps the names of a source.

    Returns
    -------
    source : FeatureSource
        Features, not copied if possible.

    See Also
    --------
    coterie.name_features : Name the features of a fitted pipeline.

    Examples
    --------
    >>> from scipy import sparse
    >>> import coterie
    >>> X = coterie.as_source(sparse.csr_array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [0.0, 1.0]]), ["fine", "dull"])
    >>> X.shape
    (4, 2)
    >>> coterie.GroupDiscoveryClassifier(1).fit(X, [1, 0, 1, 0]).groups_
    1 group, 2 features
      1. fine ~ dull (-0.90)
    """
    if feature_names is not None:
        feature_names = check_names(feature_names, X.shape[1] if hasattr(X, "shape") else np.shape(X)[1])
    if isinstance(X, FeatureSource):
        return X if feature_names is None else _renamed(X, feature_names)
    if sparse.issparse(X):
        return SparseSource(canonical_csc(X), feature_names)
    return DenseSource(np.asarray(X), feature_names)


def _renamed(source: FeatureSource, names: Sequence[str]) -> FeatureSource:
    """Return a copy of a source with other feature names."""
    result: Any = copy.copy(source)
    try:
        result.feature_names = names
    except AttributeError:
        raise ValueError(f"The feature names of a {type(source).__name__} cannot be changed.") from None
    return result


def _merge_pairs(parts: list[StrongPairs]) -> StrongPairs:
    feature, position, product = (np.concatenate([part[i] for part in parts]) for i in range(3))
    sort = np.lexsort((position, feature))
    counts = sum(part.n_evaluated for part in parts), sum(part.n_read for part in parts)
    return StrongPairs(feature[sort], position[sort], product[sort], *counts)


def _collect(
    task: Callable[[np.ndarray, int, int], int], cost: np.ndarray | int, n_threads: int, each: Callable[..., None]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows found by all chunks, in chunk order, as (feature, position, product)."""
    parts: dict[int, np.ndarray] = {}

    def run(start: int, stop: int) -> None:
        found = np.empty((_FIRST_CAPACITY, 3))
        count = task(found, start, stop)
        if count > len(found):
            found = np.empty((count, 3))
            task(found, start, stop)
        parts[start] = found[:count]

    each(run, cost, n_threads)
    found = np.concatenate([np.empty((0, 3)), *(parts[start] for start in sorted(parts))])
    return found[:, 0].astype(np.int64), found[:, 1].astype(np.int64), found[:, 2].copy()


def _weights(sample_weight: np.ndarray | None, n_samples: int) -> np.ndarray:
    return read_only(np.ones(n_samples) if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64))


def _selected(features: np.ndarray | None) -> np.ndarray:
    return _NO_FEATURES if features is None else read_only(np.ascontiguousarray(features, dtype=np.int64))
