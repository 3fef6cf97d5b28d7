"""Spearman's rank correlation: Pearson's coefficient of the ranks, which are computed for one column block at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from coterie._numba import read_only
from coterie.correlation.pearson import PearsonCorrelation, as_pairs
from coterie.correlation.protocol import Pairs
from coterie.data.memory import DenseSource, SparseSource
from coterie.data.source import Columns, Exemplar, FeatureSource, Moments, StrongQuery, for_blocks
from coterie.data.view import FeatureView
from coterie.kernels import filters as kernels

# Largest number of ranks in memory: 32 MB.
_MAX_RANKS = 1 << 22
# Largest number of columns whose correlations are computed together.
_MAX_COLUMNS = 2048


class SpearmanCorrelation:
    """Rank correlations of the features of a source, weighted by the sample weights. Ties have the average rank.

    The ranks of a sparse column minus the rank of its zeros form a sparse column. So the cost depends on stored entries only,
    and the size bound of Pearson's coefficient applies. A sample of weight 2 counts as two samples.

    Parameters
    ----------
    view : FeatureView
        The features.
    prune : bool, default=True
        Whether to skip pairs that a bound excludes. The result is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.correlation import SpearmanCorrelation
    >>> from coterie.data import FeatureView, as_source
    >>> X = np.array([[1.0, 1.0], [2.0, 10.0], [3.0, 1000.0], [4.0, 999.0]])
    >>> SpearmanCorrelation(FeatureView.of(as_source(X))).within(np.array([0, 1])).round(2)
    array([[1. , 0.8],
           [0.8, 1. ]])
    """

    def __init__(self, view: FeatureView, *, prune: bool = True) -> None:
        self.view = view
        self.prune = prune
        self.n_evaluated = 0
        self.n_features_read = 0
        weight = view.sample_weight
        self._weight = read_only(np.ones(view.n_samples) if weight is None else np.asarray(weight, dtype=np.float64))

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the matrix of correlations of some features with some others."""
        self.n_evaluated += len(features) * len(others)
        self.n_features_read += len(features)
        return self._matrix(features, others)

    def within(self, features: np.ndarray) -> np.ndarray:
        """Return the matrix of correlations between a few features."""
        self.n_evaluated += len(features) * (len(features) - 1) // 2
        self.n_features_read += len(features)
        if len(features) <= self._batch_columns:
            return self._pearson(features).within(np.arange(len(features)))
        return self._matrix(features, features)

    def strong(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None) -> Pairs:
        """Return all pairs of a feature and one of ``supports`` whose absolute correlation reaches the threshold.

        ``exemplar`` is ignored, because it bounds linear correlations only.
        """
        leaders = self._pearson(supports)
        query = leaders.query(np.arange(len(supports)), threshold)
        parts = self.view.map_blocks(_strong_pairs, query, leaders.moments.norm, self.prune)
        self.n_evaluated += sum(n_evaluated for _, n_evaluated, _ in parts)
        self.n_features_read += sum(n_read for _, _, n_read in parts)
        return Pairs(*(np.concatenate([pairs[i] for pairs, _, _ in parts]) for i in range(3)))

    @property
    def _batch_columns(self) -> int:
        """Number of columns whose ranks are in memory at a time."""
        return _MAX_COLUMNS if self.view.is_sparse else max(1, min(_MAX_COLUMNS, _MAX_RANKS // self.view.n_samples))

    def _matrix(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        result = np.empty((len(features), len(others)))
        for top in range(0, len(features), self._batch_columns):
            some = features[top : top + self._batch_columns]
            for left in range(0, len(others), self._batch_columns):
                both = np.concatenate([some, others[left : left + self._batch_columns]])
                chosen, position = np.unique(both, return_inverse=True)
                values = self._pearson(chosen).between(position[: len(some)], position[len(some) :])
                result[top : top + len(some), left : left + values.shape[1]] = values
        return result

    def _pearson(self, features: np.ndarray) -> PearsonCorrelation:
        """Return Pearson's coefficient of the ranks of some features."""
        return PearsonCorrelation(self._ranks(features, self.view.columns(features)), prune=self.prune)

    def _ranks(self, features: np.ndarray, columns: Columns, fewest: int = 0) -> FeatureView:
        """Return ranks in place of values. Sparse columns with fewer than ``fewest`` entries may be treated as constant."""
        n_samples, n_columns = columns.shape
        total = self.view.moments.total_weight
        mean, norm = np.zeros(n_columns), np.zeros(n_columns)
        source: FeatureSource
        if isinstance(columns, np.ndarray):
            rows = read_only(np.ascontiguousarray(columns.T))
            ranks = np.empty(rows.shape)
            if rows.dtype.itemsize == 1:
                kernels.byte_ranks(rows, int(np.iinfo(rows.dtype).min), self._weight, total, ranks, norm)
            else:
                kernels.dense_ranks(rows, read_only(np.argsort(rows, axis=1)), self._weight, total, ranks, norm)
            source = DenseSource(ranks.T)
        else:
            values = self._sparse_ranks(columns, fewest, mean, norm)
            source = SparseSource.from_arrays(columns.indptr, columns.indices, values, (n_samples, n_columns))
        norm[self.view.moments.norm[features] == 0.0] = 0.0  # Features that vary by rounding only stay constant.
        moments = Moments(mean, norm, total, self.view.moments.nonnegative)
        return FeatureView(source, moments, self.view.sample_weight)

    def _sparse_ranks(self, columns: sparse.csc_array, fewest: int, mean: np.ndarray, norm: np.ndarray) -> np.ndarray:
        """Return the ranks of all entries minus the rank of zero, and fill the columns' means and norms.

        All are 0 for columns with fewer than ``fewest`` entries.
        """
        counts = np.diff(columns.indptr)
        enough = np.flatnonzero(counts >= fewest)
        entries = np.flatnonzero(np.repeat(counts >= fewest, counts))
        different, positions = np.unique(read_only(columns.data)[entries], return_inverse=True)
        n_negative, n_nonpositive = np.searchsorted(different, 0, "left"), np.searchsorted(different, 0, "right")
        codes = np.empty(columns.nnz, dtype=np.int64)
        codes[entries] = positions
        if len(different) > 1:  # One sort for all columns: by column, then by value.
            keys = np.repeat(np.arange(len(enough)), counts[enough]) * len(different) + positions
            entries = entries[np.argsort(keys)]
        values = np.zeros(columns.nnz)
        kernels.csc_ranks(
            read_only(columns.indptr), read_only(columns.indices), enough, entries, codes, int(n_negative), int(n_nonpositive),
            self._weight, self.view.moments.total_weight, values, mean, norm,
        )  # fmt: skip
        return values


def _strong_pairs(view: FeatureView, query: StrongQuery, leaders_norm: np.ndarray, prune: bool) -> tuple[Pairs, int, int]:
    """Return the strong pairs of a view's features for a query, the number of evaluated pairs, and of features read."""
    measure = SpearmanCorrelation(view, prune=prune)
    fewest = int(query.fewest.min(initial=view.n_samples))
    parts: dict[int, Pairs] = {}
    counts: list[tuple[int, int]] = []

    def search(first: int, columns: Columns) -> None:
        for start, piece in _pieces(columns):
            ranks = measure._ranks(np.arange(first + start, first + start + piece.shape[1]), piece, fewest)
            found = ranks.source.strong_products(query, ranks.moments)
            norms = ranks.moments.norm[found.feature], leaders_norm[found.position]
            pairs = as_pairs(found, *norms, is_sparse=ranks.is_sparse)
            parts[first + start] = pairs._replace(feature=pairs.feature + first + start + view.source.first_feature)
            counts.append((found.n_evaluated, found.n_read))

    for_blocks(view.source, search, view.n_threads)
    pairs = Pairs(*(np.concatenate([parts[first][i] for first in sorted(parts)]) for i in range(3)))
    return pairs, sum(evaluated for evaluated, _ in counts), sum(read for _, read in counts)


def _pieces(columns: Columns) -> Iterator[tuple[int, Columns]]:
    """Yield pieces of neighbouring columns whose ranks fit into memory, with the position of the first column."""
    if isinstance(columns, np.ndarray):
        step = max(1, _MAX_RANKS // max(1, columns.shape[0]))
        yield from ((start, columns[:, start : start + step]) for start in range(0, columns.shape[1], step))
        return
    ends = np.searchsorted(columns.indptr, np.arange(0, columns.nnz, _MAX_RANKS)[1:])
    for start, stop in itertools.pairwise(np.unique([0, *ends, columns.shape[1]]).tolist()):
        first, last = columns.indptr[start], columns.indptr[stop]
        entries = columns.data[first:last], columns.indices[first:last], columns.indptr[start : stop + 1] - first
        yield start, sparse.csc_array(entries, shape=(columns.shape[0], stop - start))
