"""All pairs in pieces that can be counted apart: whole numbers, which add up to the same in any order, on any machine.

Dense columns are multiplied by BLAS, block by block, and checked near the edges. Pairs of sparse columns are counted as if
disjoint, and corrected where two columns meet.
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

# Features of a block: large enough for BLAS, small enough for a product to stay in the caches.
BLOCK = 1024
# Samples from which on single precision leaves too much to be checked.
_SINGLE_PRECISION = 100_000
# Multiplications and additions a second of one core in single precision, to choose between dense and sparse.
_SPEED = 5e10
# Seconds that a product of two entries takes one core, to choose between dense and sparse.
_SECONDS = 3e-9


class Counted(NamedTuple):
    """Pairs of a piece that reach each edge, how much of the work that was, and a figure for the progress."""

    at_least: np.ndarray
    done: int
    figure: int


class Tiles(Protocol):
    """All pairs of some features, in pieces."""

    total: int  # the whole of the work, in ``unit``
    unit: str
    figure_words: str  # what the figure of a piece is about

    def bounds(self, n_chunks: int | None = None) -> np.ndarray:
        """Where pieces may begin and end: so many pieces of about equal work, or as many as there are threads for."""
        ...

    def beforehand(self) -> np.ndarray:
        """Pairs that reach each edge apart from all pieces."""
        ...

    def count(self, start: int, stop: int) -> Counted:
        """The pairs of a piece."""
        ...


def tiles_of(source: FeatureSource, moments: Moments, features: np.ndarray, edges: np.ndarray, n_threads: int) -> Tiles:
    """All pairs of some features, by whichever way is quicker."""
    unique = UniqueColumns(source, moments, features, n_threads) if source.is_sparse else None
    if unique is not None and unique.cost(n_threads) <= dense_cost(source.shape[0], len(features)):
        return SparseTiles(unique, edges, n_threads)
    return DenseTiles(source, moments, features, edges)


class Tally:
    """The sum of what has been counted so far, and its progress."""

    def __init__(self, at_least: np.ndarray, bar: RoundProgress, words: str) -> None:
        self.at_least = at_least.copy()
        self._bar, self._words = bar, words
        self._done = self._figure = 0
        self._lock = threading.Lock()

    def add(self, piece: Counted) -> None:
        """Add a piece."""
        with self._lock:
            self.at_least += piece.at_least
            self._done += piece.done
            self._figure += piece.figure
            self._bar.update(self._done, f"{self._figure:,} {self._words}")


def dense_cost(n_samples: int, n_features: int) -> float:
    """About how many seconds of one core the products take."""
    return n_features * n_features * n_samples / _SPEED


class DenseTiles:
    r"""All pairs of dense columns, in rows of blocks: a block with itself and all after it. Sparse blocks are made dense.

    With unit roundoff u, a product of two rounded unit vectors in any order of summation has an error of at most
    :math:`(n + 2) u / (1 - (n + 2) u)` (Higham, *Accuracy and stability of numerical algorithms*, section 3.1, and
    Cauchy-Schwarz); (n + 4) u covers it and the rounding of the edges for all n for which single precision is used.
    """

    unit = "features"
    figure_words = "products computed again"

    def __init__(self, source: FeatureSource, moments: Moments, features: np.ndarray, edges: np.ndarray) -> None:
        n_samples = source.shape[0]
        self.source, self.features, self.edges = source, features, read_only(edges)
        self.kind = np.float32 if n_samples <= _SINGLE_PRECISION else np.float64
        self.error = (n_samples + 4) * float(np.finfo(self.kind).eps) * 0.51
        self.means, self.norms = read_only(moments.mean[features]), read_only(moments.norm[features])
        self.total = len(features)

    def bounds(self, n_chunks: int | None = None) -> np.ndarray:
        """Rows of blocks; the first ones are the longest."""
        n_rows = -(-self.total // BLOCK)
        if n_chunks is None or n_chunks >= n_rows:
            return np.arange(n_rows + 1)
        return boundaries(np.concatenate([[0], np.cumsum(np.arange(n_rows, 0, -1))]), n_chunks)

    def beforehand(self) -> np.ndarray:
        """Nothing: every pair is in a row."""
        return np.zeros(len(self.edges), dtype=np.int64)

    def count(self, start: int, stop: int) -> Counted:
        """The pairs of some rows of blocks."""
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
        if len(chosen) == chosen[-1] - chosen[0] + 1:  # no constant feature in between
            columns = self.source.block(int(chosen[0]), int(chosen[-1]) + 1)
        else:
            columns = self.source.columns(chosen)
        return read_only((columns if isinstance(columns, np.ndarray) else columns.toarray(order="F")).T)

    def _standardised(self, columns: np.ndarray, first: int) -> np.ndarray:
        out = np.empty(columns.shape, dtype=self.kind)
        kernels.standardise(columns, self.means, self.norms, first, out)
        return out


class UniqueColumns:
    """The different columns of a sparse source with their multiplicities, by feature and by sample.

    In text most words occur once, and all such words of a document are one column. The columns with the most entries come
    first: what is accumulated for a column then lies in few places that stay in the cache. ``weights`` are the numbers of
    features with each column, ``scales`` one over the norm, and ``ratios`` root of n times mean over norm.
    """

    def __init__(self, source: FeatureSource, moments: Moments, features: np.ndarray, n_threads: int) -> None:
        matrix = _without_zeros(source)
        leaders, weights = _leaders(matrix, features, n_threads)
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
        self.place = np.empty(columns.nnz, dtype=np.int64)
        values = row_value.view(np.uint8) if columns.dtype == np.bool_ else row_value
        kernels.by_sample(*self.columns, read_only(starts), row_feature, values, self.place)
        self.rows = (read_only(starts), read_only(row_feature), read_only(row_value))

    def __len__(self) -> int:
        return len(self.weights)

    def products(self, n_threads: int) -> np.ndarray:
        """Products of entries that each column takes part in as the first one."""
        out = np.empty(len(self), dtype=np.int64)
        indptr, indices, _ = self.columns
        run_evenly(
            lambda start, stop: kernels.pair_costs(indptr, indices, read_only(self.place), self.rows[0], out, start, stop),
            indptr,
            n_threads,
        )
        return out

    def cost(self, n_threads: int) -> float:
        """About how many seconds of one core the products take."""
        return float(self.products(n_threads).sum(dtype=np.float64)) * _SECONDS


class SparseTiles:
    """All pairs of sparse columns: those that meet in a sample are counted in pieces, all others beforehand."""

    unit = "%"
    total = 100
    figure_words = "pairs of different columns that meet"

    def __init__(self, unique: UniqueColumns, edges: np.ndarray, n_threads: int) -> None:
        self.unique, self.edges = unique, read_only(edges)
        self._n_threads = n_threads
        self._cost = np.concatenate([[0], np.cumsum(unique.products(n_threads))])

    def bounds(self, n_chunks: int | None = None) -> np.ndarray:
        """Columns, by the products that they take part in as the first one."""
        return even_boundaries(self._cost, max(4, self._n_threads)) if n_chunks is None else boundaries(self._cost, n_chunks)

    def beforehand(self) -> np.ndarray:
        """All pairs as if they were disjoint, and those of equal columns, which have the correlation 1."""
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
        """What pairs that meet add to that, or take from it."""
        unique = self.unique
        counts = np.zeros(len(self.edges), dtype=np.int64)
        met = kernels.meeting_counts(
            *unique.columns, read_only(unique.place), *unique.rows, unique.scales, unique.ratios, unique.weights, self.edges,
            counts, start, stop,
        )  # fmt: skip
        whole = max(1, int(self._cost[-1]))
        done = 100 * int(self._cost[stop]) // whole - 100 * int(self._cost[start]) // whole
        return Counted(counts, done, int(met))


def _without_zeros(source: FeatureSource) -> sparse.csc_array:
    """All columns; entries that are stored but zero are dropped."""
    columns = sparse.csc_array(source.block(0, source.shape[1]))
    if columns.nnz and not columns.data.all():
        columns = columns.copy()
        columns.eliminate_zeros()
    return columns


def _leaders(matrix: sparse.csc_array, features: np.ndarray, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """The first of each set of features with equal columns, and the size of the set."""
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
