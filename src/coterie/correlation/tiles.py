"""All pairs of features in pieces that are counted independently. Sums of integer counts do not depend on their order.

Dense columns are multiplied by BLAS in blocks, and products close to an edge are checked. Pairs of sparse columns are counted
as if they were disjoint, and corrected if the columns have a common sample.
"""

from __future__ import annotations

import threading
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse

from coterie._numba import boundaries, even_boundaries, read_only, run_chunks, run_evenly
from coterie.data.source import FeatureSource, Moments
from coterie.kernels import correlation as kernels
from coterie.progress import RoundProgress

# Features per block: large enough for BLAS, small enough for a product to stay in the caches.
BLOCK = 1024
# Largest number of samples for single precision. With more, too many products would have to be checked.
_MAX_SINGLE_SAMPLES = 100_000
# Multiplications and additions per second of one core in single precision, to choose between dense and sparse.
_OPERATIONS_PER_SECOND = 5e10
# Seconds per product of two entries on one core, to choose between dense and sparse.
_SECONDS_PER_PRODUCT = 3e-9


class Counted(NamedTuple):
    """Number of pairs of a piece that reach each edge, amount of work done, and a figure for the progress display."""

    at_least: np.ndarray
    done: int
    figure: int


class Tiles(Protocol):
    """All pairs of some features, in pieces."""

    total: int  # Total work, in ``unit``.
    unit: str
    figure_label: str  # Label of the figure in the progress display.

    def bounds(self, n_chunks: int | None = None) -> np.ndarray:
        """Return the boundaries of ``n_chunks`` pieces of about equal work, or of a number that suits the threads."""
        ...

    def base_counts(self) -> np.ndarray:
        """Return the number of pairs that reach each edge, to which the pieces are added."""
        ...

    def count(self, start: int, stop: int) -> Counted:
        """Count the pairs of a piece."""
        ...


def tiles_of(source: FeatureSource, moments: Moments, features: np.ndarray, edges: np.ndarray, n_threads: int) -> Tiles:
    """Return all pairs of some features in the faster of the two representations."""
    unique = UniqueColumns(source, moments, features, n_threads) if source.is_sparse else None
    if unique is not None and unique.cost(n_threads) <= dense_cost(source.shape[0], len(features)):
        return SparseTiles(unique, edges, n_threads)
    return DenseTiles(source, moments, features, edges)


class Tally:
    """Running sum of the counts, with a progress display."""

    def __init__(self, at_least: np.ndarray, bar: RoundProgress, label: str) -> None:
        self.at_least = at_least.copy()
        self._bar, self._label = bar, label
        self._done = self._figure = 0
        self._lock = threading.Lock()

    def add(self, piece: Counted) -> None:
        """Add the counts of a piece."""
        with self._lock:
            self.at_least += piece.at_least
            self._done += piece.done
            self._figure += piece.figure
            self._bar.update(self._done, f"{self._figure:,} {self._label}")


def dense_cost(n_samples: int, n_features: int) -> float:
    """Return the estimated time of the products on one core, in seconds."""
    return n_features * n_features * n_samples / _OPERATIONS_PER_SECOND


class DenseTiles:
    r"""All pairs of dense columns, in rows of blocks: a block with itself and all later blocks. Sparse blocks are made dense.

    With unit roundoff u, a product of two rounded unit vectors in any order of summation has an error of at most
    :math:`(n + 2) u / (1 - (n + 2) u)` (Higham, *Accuracy and stability of numerical algorithms*, section 3.1, and
    Cauchy-Schwarz). (n + 4) u covers this error and the rounding of the edges for all n for which single precision is used.
    """

    unit = "features"
    figure_label = "products recomputed"

    def __init__(self, source: FeatureSource, moments: Moments, features: np.ndarray, edges: np.ndarray) -> None:
        n_samples = source.shape[0]
        self.source, self.features, self.edges = source, features, read_only(edges)
        self.kind = np.float32 if n_samples <= _MAX_SINGLE_SAMPLES else np.float64
        self.error = (n_samples + 4) * float(np.finfo(self.kind).eps) * 0.51
        self.means, self.norms = read_only(moments.mean[features]), read_only(moments.norm[features])
        self.total = len(features)

    def bounds(self, n_chunks: int | None = None) -> np.ndarray:
        """Return boundaries of rows of blocks. The first rows are the longest."""
        n_rows = -(-self.total // BLOCK)
        if n_chunks is None or n_chunks >= n_rows:
            return np.arange(n_rows + 1)
        return boundaries(np.concatenate([[0], np.cumsum(np.arange(n_rows, 0, -1))]), n_chunks)

    def base_counts(self) -> np.ndarray:
        """Return zeros, because every pair is in a row of blocks."""
        return np.zeros(len(self.edges), dtype=np.int64)

    def count(self, start: int, stop: int) -> Counted:
        """Count the pairs of some rows of blocks."""
        counts, checked = np.zeros(len(self.edges), dtype=np.int64), np.zeros(1, dtype=np.int64)
        for number in range(start, stop):
            self._count_row(number * BLOCK, counts, checked)
        return Counted(counts, min(stop * BLOCK, self.total) - start * BLOCK, int(checked[0]))

    def _count_row(self, first: int, counts: np.ndarray, checked: np.ndarray) -> None:
        left = self._block(first)
        left_unit = self._standardised(left, first)
        for other in range(first, self.total, BLOCK):
            right = left if other == first else self._block(other)
            right_unit = left_unit if other == first else self._standardised(right, other)
            tile = left_unit @ right_unit.T
            kernels.tile_counts(
                tile, left, right, self.means, self.norms, first, other, self.edges, self.error, counts, checked
            )

    def _block(self, first: int) -> np.ndarray:
        chosen = self.features[first : first + BLOCK]
        if len(chosen) == chosen[-1] - chosen[0] + 1:  # There is no constant feature in between.
            columns = self.source.block(int(chosen[0]), int(chosen[-1]) + 1)
        else:
            columns = self.source.columns(chosen)
        return read_only((columns if isinstance(columns, np.ndarray) else columns.toarray(order="F")).T)

    def _standardised(self, columns: np.ndarray, first: int) -> np.ndarray:
        out = np.empty(columns.shape, dtype=self.kind)
        kernels.standardise(columns, self.means, self.norms, first, out)
        return out


class UniqueColumns:
    """The distinct columns of a sparse source with their multiplicities, by feature and by sample.

    In text most words occur once, and all such words of a document have the same column. The columns with the most entries
    come first, so that the accumulators of a column are few and stay in the cache. ``weights`` are the numbers of features
    with each column, ``scales`` is one over the norm, and ``ratios`` is the square root of n times the mean over the norm.
    """

    def __init__(self, source: FeatureSource, moments: Moments, features: np.ndarray, n_threads: int) -> None:
        matrix = _without_zeros(source)
        leaders, weights = _distinct_columns(matrix, features, n_threads)
        order = np.argsort(-np.diff(matrix.indptr)[leaders], kind="stable")
        leaders, self.weights = leaders[order], weights[order]
        norm = moments.norm[leaders]
        self.scales = 1.0 / norm
        self.ratios = np.sqrt(source.shape[0]) * moments.mean[leaders] / norm
        columns = sparse.csc_array(matrix[:, leaders])
        self.columns = read_only(columns.indptr), read_only(columns.indices), read_only(columns.data)
        starts = np.zeros(source.shape[0] + 1, dtype=np.int64)
        np.cumsum(np.bincount(columns.indices, minlength=source.shape[0]), out=starts[1:])
        row_feature, row_value = np.empty(columns.nnz, dtype=np.int32), np.empty(columns.nnz, dtype=columns.dtype)
        self.position = np.empty(columns.nnz, dtype=np.int64)
        values = row_value.view(np.uint8) if columns.dtype == np.bool_ else row_value
        kernels.by_sample(*self.columns, read_only(starts), row_feature, values, self.position)
        self.rows = (read_only(starts), read_only(row_feature), read_only(row_value))

    def __len__(self) -> int:
        return len(self.weights)

    def products(self, n_threads: int) -> np.ndarray:
        """Return the number of products of entries per column, as the first column of a pair."""
        out = np.empty(len(self), dtype=np.int64)
        indptr, indices, _ = self.columns
        run_evenly(
            lambda start, stop: kernels.pair_costs(indptr, indices, read_only(self.position), self.rows[0], out, start, stop),
            indptr,
            n_threads,
        )
        return out

    def cost(self, n_threads: int) -> float:
        """Return the estimated time of the products on one core, in seconds."""
        return float(self.products(n_threads).sum(dtype=np.float64)) * _SECONDS_PER_PRODUCT


class SparseTiles:
    """All pairs of sparse columns. Pairs with a common sample are counted in pieces, all others in the base counts."""

    unit = "%"
    total = 100
    figure_label = "pairs of distinct columns with a common sample"

    def __init__(self, unique: UniqueColumns, edges: np.ndarray, n_threads: int) -> None:
        self.unique, self.edges = unique, read_only(edges)
        self._n_threads = n_threads
        self._cost = np.concatenate([[0], np.cumsum(unique.products(n_threads))])

    def bounds(self, n_chunks: int | None = None) -> np.ndarray:
        """Return boundaries of columns, balanced by their numbers of products as the first column of a pair."""
        return even_boundaries(self._cost, max(4, self._n_threads)) if n_chunks is None else boundaries(self._cost, n_chunks)

    def base_counts(self) -> np.ndarray:
        """Count all pairs as if they were disjoint, and pairs of equal columns, whose correlation is 1."""
        unique = self.unique
        at_least = np.full(len(self.edges), int((unique.weights * (unique.weights - 1) // 2).sum()), dtype=np.int64)
        order = np.argsort(-np.abs(unique.ratios), kind="stable")
        cumulative = np.concatenate([[0], np.cumsum(unique.weights[order])])
        ratios = np.abs(unique.ratios[order])
        run_chunks(
            lambda start, stop: kernels.disjoint_counts(ratios, cumulative, self.edges, at_least, start, stop),
            range(len(self.edges) + 1),
            self._n_threads,
        )
        return at_least

    def count(self, start: int, stop: int) -> Counted:
        """Return the corrections to the base counts for pairs with a common sample."""
        unique = self.unique
        counts = np.zeros(len(self.edges), dtype=np.int64)
        n_meeting = kernels.meeting_counts(
            *unique.columns, read_only(unique.position), *unique.rows, unique.scales, unique.ratios, unique.weights,
            self.edges, counts, start, stop,
        )  # fmt: skip
        total = max(1, int(self._cost[-1]))
        done = 100 * int(self._cost[stop]) // total - 100 * int(self._cost[start]) // total
        return Counted(counts, done, int(n_meeting))


def _without_zeros(source: FeatureSource) -> sparse.csc_array:
    """Return all columns without stored zeros."""
    columns = sparse.csc_array(source.block(0, source.shape[1]))
    if columns.nnz and not columns.data.all():
        columns = columns.copy()
        columns.eliminate_zeros()
    return columns


def _distinct_columns(matrix: sparse.csc_array, features: np.ndarray, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first of each set of features with equal columns, and the size of the set."""
    indptr, indices, values = (read_only(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    bits = values if values.dtype.kind == "u" else np.asarray(values, dtype=np.float64) + 0.0
    bits = read_only(bits.astype(np.uint64) if bits.dtype.kind == "u" else bits.view(np.uint64))
    hashes = np.empty(matrix.shape[1], dtype=np.uint64)
    run_evenly(
        lambda start, stop: kernels.hash_columns(indptr, indices, bits, hashes, start, stop),
        indptr,
        n_threads,
    )
    order = features[np.argsort(hashes[features], kind="stable")]
    repeats = np.empty(len(order), dtype=np.bool_)
    run_evenly(
        lambda start, stop: kernels.same_as_previous(indptr, indices, values, order, hashes, repeats, start, stop),
        len(order),
        n_threads,
    )
    starts = np.flatnonzero(~repeats)
    return order[starts], np.diff(np.append(starts, len(order)))
