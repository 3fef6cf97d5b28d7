"""Sources over arrays in memory or in memory maps: nothing is copied that need not be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from coterie._numba import even_boundaries, read_only, run_chunks
from coterie.data.source import Columns, FeatureSource, Moments
from coterie.kernels import columns as kernels

_NO_FEATURES = read_only(np.empty(0, dtype=np.int64))


class DenseSource:
    """Features of a NumPy array (C or F order, any real type, memory-mapped or not), never copied.

    Parameters
    ----------
    array : ndarray of shape (n_samples, n_features)
        Booleans are seen as bytes. Integers and float32 are used as they are; every sum is
        accumulated in float64.
    feature_names : sequence of str, optional
        One name a feature.

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
            raise ValueError(f"A dense source needs a 2D array, got {array.ndim} dimension(s).")
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8 or array.dtype == np.float16:
            raise ValueError(f"Values of type {array.dtype} cannot be used as they are; convert them to float32 or float64.")
        self._array = read_only(array)
        self._feature_major = abs(array.strides[0]) < abs(array.strides[1]) or array.flags.f_contiguous
        self.feature_names = feature_names

    @property
    def shape(self) -> tuple[int, int]:
        return self._array.shape[0], self._array.shape[1]

    def moments(self, sample_weight: np.ndarray | None = None, *, n_threads: int = 1) -> Moments:
        n_samples, n_features = self.shape
        weight = _weights(sample_weight, n_samples)
        first = int(np.argmax(weight > 0))
        out = np.empty((3, n_features))
        if self._feature_major:
            matrix, task = self._array.T, kernels.feature_major_moments
        else:
            matrix, task = self._array, kernels.sample_major_moments
        with np.errstate(all="ignore"):
            run_chunks(
                lambda start, stop: task(matrix, weight, first, out, start, stop),
                even_boundaries(n_features, n_threads),
                n_threads,
            )
        _refuse_bad_values(self, out)
        return Moments(out[kernels.MEAN], out[kernels.NORM], float(weight.sum()))

    def products(
        self,
        vectors: np.ndarray,
        *,
        centre: np.ndarray | None = None,
        features: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> np.ndarray:
        n_features = self.shape[1] if features is None else len(features)
        rows = read_only(np.ascontiguousarray(vectors.T, dtype=np.float64))
        middle = read_only(np.zeros(self.shape[1]) if centre is None else centre)
        chosen = _chosen(features)
        everything = features is None
        out = np.empty((n_features, rows.shape[0]))
        if self._feature_major:
            matrix, task = self._array.T, kernels.feature_major_products
        else:
            matrix, task = self._array, kernels.sample_major_products
        run_chunks(
            lambda start, stop: task(matrix, rows, middle, chosen, everything, out, start, stop),
            even_boundaries(n_features, n_threads),
            n_threads,
        )
        return out

    def columns(self, features: np.ndarray) -> Columns:
        return np.asfortranarray(self._array[:, features])

    def blocks(self, n_features: int) -> Iterator[tuple[int, Columns]]:
        for start in range(0, self.shape[1], n_features):
            yield start, np.asfortranarray(self._array[:, start : start + n_features])

    def bad_values(self, feature: int) -> np.ndarray:
        """Samples in which a feature is NaN or infinite."""
        return np.flatnonzero(~np.isfinite(self._array[:, feature]))


class SparseSource:
    """Features of a CSC matrix or array with int32 or int64 indices, never copied.

    The matrix must be in canonical form (sorted, no repeated entries), as
    :func:`as_source` makes it.

    Parameters
    ----------
    matrix : CSC matrix or array of shape (n_samples, n_features)
        Explicit zeros are allowed and count as zeros.
    feature_names : sequence of str, optional
        One name a feature.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from coterie.data import SparseSource
    >>> source = SparseSource(sparse.csc_array([[1.0, 0.0], [0.0, 0.0]]))
    >>> source.moments().n_nonzero
    array([1., 0.])
    """

    is_sparse = True

    def __init__(self, matrix: sparse.csc_array | sparse.csc_matrix, feature_names: Sequence[str] | None = None) -> None:
        self._n_samples, self._n_features = matrix.shape
        self._indptr = read_only(matrix.indptr)
        self._indices = read_only(matrix.indices)
        self._values = read_only(matrix.data)
        self.feature_names = feature_names

    @property
    def shape(self) -> tuple[int, int]:
        return self._n_samples, self._n_features

    def moments(self, sample_weight: np.ndarray | None = None, *, n_threads: int = 1) -> Moments:
        weight = _weights(sample_weight, self._n_samples)
        out = np.empty((5, self._n_features))
        with np.errstate(all="ignore"):
            run_chunks(
                lambda start, stop: kernels.csc_moments(self._indptr, self._indices, self._values, weight, out, start, stop),
                even_boundaries(self._indptr, n_threads),
                n_threads,
            )
        _refuse_bad_values(self, out)
        return Moments(
            out[kernels.MEAN],
            out[kernels.NORM],
            float(weight.sum()),
            n_nonzero=out[kernels.NONZERO],
            largest=out[kernels.LARGEST],
            nonnegative=self._values.dtype.kind == "u" or self._values.min(initial=0) >= 0,
        )

    def products(
        self,
        vectors: np.ndarray,
        *,
        centre: np.ndarray | None = None,
        features: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> np.ndarray:
        rows = read_only(np.ascontiguousarray(vectors, dtype=np.float64))
        chosen = _chosen(features)
        everything = features is None
        if everything:
            n_features, cost = self._n_features, self._indptr
        else:
            n_features = len(chosen)
            cost = np.zeros(n_features + 1, dtype=np.int64)
            np.cumsum(self._indptr[chosen + 1] - self._indptr[chosen], out=cost[1:])
        out = np.empty((n_features, rows.shape[1]))
        run_chunks(
            lambda start, stop: kernels.csc_products(
                self._indptr, self._indices, self._values, rows, chosen, everything, out, start, stop
            ),
            even_boundaries(cost, n_threads),
            n_threads,
        )
        if centre is not None:
            for k, total in enumerate(rows.sum(axis=0)):
                out[:, k] -= total * (centre if everything else centre[chosen])
        return out

    def columns(self, features: np.ndarray) -> Columns:
        chosen = np.asarray(features, dtype=np.int64)
        starts, counts = self._indptr[chosen], self._indptr[chosen + 1] - self._indptr[chosen]
        indptr = np.zeros(len(chosen) + 1, dtype=self._indptr.dtype)
        np.cumsum(counts, out=indptr[1:])
        where = np.repeat(starts - indptr[:-1], counts) + np.arange(indptr[-1])
        return sparse.csc_array((self._values[where], self._indices[where], indptr), shape=(self._n_samples, len(chosen)))

    def blocks(self, n_features: int) -> Iterator[tuple[int, Columns]]:
        for start in range(0, self._n_features, n_features):
            stop = min(start + n_features, self._n_features)
            first, last = self._indptr[start], self._indptr[stop]
            yield start, sparse.csc_array(
                (self._values[first:last], self._indices[first:last], self._indptr[start : stop + 1] - first),
                shape=(self._n_samples, stop - start),
            )

    def bad_values(self, feature: int) -> np.ndarray:
        """Samples in which a feature is NaN or infinite."""
        entries = slice(self._indptr[feature], self._indptr[feature + 1])
        return self._indices[entries][~np.isfinite(self._values[entries])]


def as_source(X: Any, feature_names: Sequence[str] | None = None) -> FeatureSource:
    """A source over an array, a sparse matrix, or a source itself.

    NumPy arrays and canonical CSC are used without a copy. Any other sparse format is converted to
    CSC once, which takes the memory of a second copy of its nonzeros; CSC with unsorted or
    repeated entries is copied and put in order.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data import as_source
    >>> as_source(np.eye(3)).shape
    (3, 3)
    """
    if isinstance(X, FeatureSource):
        return X
    if sparse.issparse(X):
        matrix = X.tocsc()
        if not matrix.has_canonical_format:
            matrix = matrix.copy() if matrix is X else matrix
            matrix.sum_duplicates()
        return SparseSource(matrix, feature_names)
    return DenseSource(np.asarray(X), feature_names)


def _weights(sample_weight: np.ndarray | None, n_samples: int) -> np.ndarray:
    return read_only(np.ones(n_samples) if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64))


def _chosen(features: np.ndarray | None) -> np.ndarray:
    return _NO_FEATURES if features is None else read_only(np.ascontiguousarray(features, dtype=np.int64))


def _refuse_bad_values(source: DenseSource | SparseSource, out: np.ndarray) -> None:
    """Raise an error that counts and places NaN, infinite or too large values."""
    bad = np.flatnonzero(~(out[kernels.FINITE] == 0.0))
    names = source.feature_names
    if len(bad):
        count = sum(len(source.bad_values(int(feature))) for feature in bad)
        feature, sample = int(bad[0]), int(source.bad_values(int(bad[0])).min())
        label = f"{feature}" if names is None else f"{feature} ({names[feature]!r})"
        raise ValueError(
            f"Input X contains {count} NaN or infinite value(s) in {len(bad)} feature(s); the first is in sample {sample} of "
            f"feature {label}. Impute them (for instance with sklearn.impute.SimpleImputer) or drop those features or samples."
        )
    huge = np.flatnonzero(~np.isfinite(out[kernels.NORM]))
    if len(huge):
        feature = int(huge[0])
        label = f"{feature}" if names is None else f"{feature} ({names[feature]!r})"
        raise ValueError(f"The values of feature {label} are too large to be squared (over about 1e150). Rescale the feature.")
