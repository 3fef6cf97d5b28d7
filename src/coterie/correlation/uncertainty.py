r"""Exact symmetrical uncertainty between binned features (TPAMI 2016, eq. 2), with exact pruning.

:math:`U(f, z) = 2 I(f; z) / (H(f) + H(z))` on bins of equal width over each feature's range. All computations use column
blocks as they are stored, without a float64 copy, and only the nonzero entries of sparse data. If all sample weights are 0 or
1, dense columns are compared by the bits of their bins (:mod:`coterie.kernels.information`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie._numba import read_only
from coterie.correlation.protocol import ROUNDING, Pairs
from coterie.data.source import Columns, Exemplar, for_blocks
from coterie.data.view import FeatureView
from coterie.kernels import information as kernels

# Initial capacity for strong pairs of a block of sparse columns. If there are more, the block is processed again.
_FIRST_CAPACITY = 1 << 14
# Largest number of pairs of a dense block per call, with capacity for all of them.
_MAX_CALL_PAIRS = 1 << 20
# Largest size of the table of entropy terms of counts (half a megabyte).
_MAX_TABLE_COUNT = 1 << 16
# Largest number of bins for which bit sets are faster than histograms.
_MAX_BIT_BINS = 32


class SymmetricalUncertainty:
    """Symmetrical uncertainties between the features of a source, as a :class:`Correlation`.

    Parameters
    ----------
    view : FeatureView
        The features.
    n_bins : int, default=10
        Number of bins of equal width over the range of each feature, at most 255.
    prune : bool, default=True
        Whether to skip pairs that the entropy bound excludes. The result is the same.

    Attributes
    ----------
    entropy : ndarray of shape (n_features,)
        Entropy of each binned feature, in nats.
    """

    def __init__(self, view: FeatureView, *, n_bins: int = 10, prune: bool = True) -> None:
        self.view = view
        self.source = source = view.source
        self.moments = view.moments
        self.n_bins = n_bins
        self.prune = prune
        self.n_evaluated = 0
        self.n_features_read = source.shape[1]
        self._counting = _Counting.of(view, n_bins)
        self.low, self.high, self.entropy = view.map_features(_binned, n_bins)

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the matrix of uncertainties of some features with some others."""
        self.n_evaluated += len(features) * len(others)
        self.n_features_read += len(features)
        few = _Features(self.low[features], self.high[features], self.entropy[features])
        columns = self.source.columns(features)
        rows, _ = _search(self._counting, 0, columns, few, _prepared(self._counting, self._supports(others)), -1.0)
        result = np.zeros((len(features), len(others)))
        result[rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)] = rows[:, 2]
        return result

    def within(self, features: np.ndarray) -> np.ndarray:
        """Return the matrix of uncertainties between a few features."""
        return self.between(features, features)

    def strong(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None) -> Pairs:
        """Return all pairs of a feature and one of ``supports`` whose uncertainty reaches the threshold.

        ``exemplar`` is ignored, because it bounds linear correlations only.
        """
        all_features = self.low, self.high, self.entropy
        limit = threshold - ROUNDING if self.prune else 0.0
        parts = self.view.map_blocks(_strong_pairs, *all_features, self._supports(supports), self.n_bins, limit)
        self.n_evaluated += sum(n_evaluated for _, n_evaluated in parts)
        self.n_features_read += self.source.shape[1]
        found = np.concatenate([np.empty((0, 3)), *(rows for rows, _ in parts)])
        found = found[found[:, 2] >= threshold - ROUNDING]
        return Pairs(found[:, 0].astype(np.int64), found[:, 1].astype(np.int64), found[:, 2].copy())

    def bins(self, features: np.ndarray) -> np.ndarray:
        """Return the bins of some features, one row of bytes per feature."""
        columns = self.source.columns(features)
        low, high = self.low[features], self.high[features]
        if isinstance(columns, np.ndarray):
            return np.ascontiguousarray(self._bin(columns, low, high).T)
        rows = np.repeat(self._bin(np.zeros(len(features)), low, high)[:, None], self.source.shape[0], axis=1)
        owner = np.repeat(np.arange(len(features)), np.diff(columns.indptr))
        rows[owner, columns.indices] = self._bin(columns.data, low[owner], high[owner])
        return rows

    def _bin(self, values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the bin of each value in its range."""
        width = np.where(high > low, high - low, 1.0)
        bins = np.clip(((values.astype(np.float64) - low) / width * self.n_bins).astype(np.int64), 0, self.n_bins - 1)
        return np.where(high > low, bins, 0).astype(np.uint8)

    def _supports(self, features: np.ndarray) -> _Supports:
        """Return support features in the format for comparisons, in order of their entropies."""
        entropy = self.entropy[features]
        position = np.argsort(entropy, kind="stable")
        features, entropy = features[position], entropy[position]
        if not self.source.is_sparse:
            columns: Any = self.source.columns(features)
            return _DenseSupports(
                _bin_rows(self._counting, columns, self.low[features], self.high[features], 0), entropy, position
            )
        columns = self.source.columns(features)
        n_samples = self.source.shape[0]
        low, high = self.low[features], self.high[features]
        owner = np.repeat(np.arange(len(features)), np.diff(columns.indptr))
        bins = self._bin(columns.data, low[owner], high[owner])
        rest = self._bin(np.zeros(len(features)), low, high)
        weight = self._counting.weight[columns.indices]
        cells = owner * self.n_bins + bins
        sums = np.bincount(cells, weights=weight, minlength=len(features) * self.n_bins)
        counts = sums.astype(np.float64).reshape(len(features), self.n_bins)  # bincount of no entries returns integers.
        counts[np.arange(len(features)), rest] += np.maximum(self.moments.total_weight - counts.sum(axis=1), 0.0)
        samples = columns.indices
        if len(self._counting.terms):  # Differences of integers are exact, so entries in the bin of 0 can be dropped.
            outside = bins != rest[owner]
            samples, owner, bins = samples[outside], owner[outside], bins[outside]
        by_sample = np.argsort(samples, kind="stable")
        starts = np.zeros(n_samples + 1, dtype=np.int64)
        np.cumsum(np.bincount(samples, minlength=n_samples), out=starts[1:])
        return _SparseSupports(starts, owner[by_sample], bins[by_sample], rest, counts, entropy, position)


class _Counting(NamedTuple):
    """Parameters of counting samples in bins."""

    n_bins: int
    weight: np.ndarray
    total: float
    terms: np.ndarray  # Entropy terms of counts, if weights are integers; else empty.
    by_bits: bool  # Whether dense features are compared by bit sets.

    @classmethod
    def of(cls, view: FeatureView, n_bins: int) -> _Counting:
        """Return the parameters for the weights of a view."""
        total = view.moments.total_weight
        weight = np.ones(view.n_samples) if view.sample_weight is None else np.asarray(view.sample_weight, dtype=np.float64)
        whole = view.sample_weight is None or bool((weight == np.floor(weight)).all() and total < 2**53)
        once = view.sample_weight is None or bool(((weight == 0.0) | (weight == 1.0)).all())
        terms = kernels.information_terms(min(int(total) + 1, _MAX_TABLE_COUNT) if whole else 0, float(total))
        return cls(n_bins, weight, total, terms, once and n_bins <= _MAX_BIT_BINS)


class _Features(NamedTuple):
    """Ranges and entropies of features."""

    low: np.ndarray
    high: np.ndarray
    entropy: np.ndarray


class _DenseSupports(NamedTuple):
    """Bins of features, one row per feature, in order of entropy, the entropies, and the original positions."""

    bins: np.ndarray
    entropy: np.ndarray
    position: np.ndarray


class _SparseSupports(NamedTuple):
    """Sparse features by sample: owners and bins of each sample's entries.

    ``rest`` is the bin of zero, and ``counts`` are the weights of all bins. Features are in order of entropy; ``position`` is
    their original position.
    """

    starts: np.ndarray
    owners: np.ndarray
    owner_bins: np.ndarray
    rest: np.ndarray
    counts: np.ndarray
    entropy: np.ndarray
    position: np.ndarray


class _Lanes(NamedTuple):
    """Bins of features as interleaved bit sets; see :mod:`coterie.kernels.information`."""

    lanes: np.ndarray
    margins: np.ndarray
    sizes: np.ndarray
    entropy: np.ndarray
    position: np.ndarray


_Supports = _DenseSupports | _SparseSupports


def _bin_rows(counting: _Counting, columns: np.ndarray, low: np.ndarray, high: np.ndarray, first: int) -> np.ndarray:
    """Return the bins of dense columns, one row of whole words each. ``first`` is their position in ``low`` and ``high``."""
    n_samples, n_features = columns.shape
    bins = np.empty((n_features, -(-n_samples // 64) * 64), dtype=np.uint8)
    weight = counting.weight if counting.by_bits else np.ones(n_samples)  # Histograms need a bin for every sample.
    kernels.dense_bins(read_only(columns.T), low, high, counting.n_bins, weight, bins, first)
    return bins


def _prepared(counting: _Counting, supports: _Supports) -> _Supports | _Lanes:
    """Return support features in the format in which they are compared."""
    if isinstance(supports, _SparseSupports) or not counting.by_bits:
        return supports
    counts = np.empty((len(supports.bins), counting.n_bins), dtype=np.int64)
    kernels.count_bins(supports.bins, counts)
    n_used = np.maximum(np.count_nonzero(counts, axis=1) - 1, 0)
    tiles = range(0, len(n_used), kernels.TILE)
    sizes = np.array([kernels.TILE * n_used[k : k + kernels.TILE].max() for k in tiles], dtype=np.int64)
    width = int(sizes.max(initial=0))
    lanes = np.zeros((len(sizes), supports.bins.shape[1] // 64, width), dtype=np.uint64)
    margins = np.zeros((len(sizes), width), dtype=np.int64)
    kernels.fill_lanes(supports.bins.view(np.uint64), counts, lanes, margins)
    return _Lanes(lanes, margins, sizes, supports.entropy, supports.position)


def _binned(view: FeatureView, n_bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the lowest and highest value of each feature, and its entropy in bins of equal width between them."""
    counting = _Counting.of(view, n_bins)
    weight, total, terms = counting.weight, counting.total, counting.terms
    low, high, entropy = (np.empty(view.n_features) for _ in range(3))
    n_weighted = int(np.count_nonzero(weight))

    def process_block(first: int, columns: Columns) -> None:
        if isinstance(columns, np.ndarray):
            matrix = read_only(columns.T)
            kernels.dense_ranges(matrix, weight, low, high, first)
            if counting.by_bits:
                counts = np.empty((len(matrix), n_bins), dtype=np.int64)
                kernels.count_bins(_bin_rows(counting, columns, low, high, first), counts)
                kernels.bin_entropies(counts, total, terms, entropy, first)
            else:
                kernels.dense_entropies(matrix, low, high, n_bins, weight, total, terms, entropy, first)
        else:
            stored = read_only(columns.indptr), read_only(columns.indices), read_only(columns.data)
            kernels.csc_ranges(*stored, weight, n_weighted, low, high, first)
            kernels.csc_entropies(*stored, low, high, n_bins, weight, total, terms, entropy, first)

    for_blocks(view.source, process_block, view.n_threads)
    entropy[view.moments.norm == 0.0] = 0.0
    return low, high, entropy


def _strong_pairs(
    view: FeatureView, low: np.ndarray, high: np.ndarray, entropy: np.ndarray, supports: _Supports, n_bins: int, limit: float
) -> tuple[np.ndarray, int]:
    """Return rows (feature, position, uncertainty) of strong pairs, and the number of evaluated pairs."""
    all_features, counting = _Features(low, high, entropy), _Counting.of(view, n_bins)
    prepared = _prepared(counting, supports)
    parts: dict[int, np.ndarray] = {}
    evaluated: list[int] = []

    def search(first: int, columns: Columns) -> None:
        parts[first], n_evaluated = _search(counting, first, columns, all_features, prepared, limit)
        evaluated.append(n_evaluated)

    for_blocks(view.source, search, view.n_threads)
    rows = np.concatenate([np.empty((0, 3)), *(parts[first] for first in sorted(parts))])
    rows[:, 0] += view.source.first_feature
    return rows, sum(evaluated)


def _search(
    counting: _Counting, first: int, columns: Columns, features: _Features, supports: _Supports | _Lanes, limit: float
) -> tuple[np.ndarray, int]:
    """Return rows of the pairs of a column and a support feature that reach the limit, in order, and the evaluated pairs.

    ``first`` is the columns' position in ``features``.
    """
    if isinstance(columns, np.ndarray):
        step = max(1, _MAX_CALL_PAIRS // max(1, len(supports.position)))
        parts = [
            _search_dense(counting, first + start, columns[:, start : start + step], features, supports, limit)
            for start in range(0, columns.shape[1], step)
        ]
        rows = np.concatenate([np.empty((0, 3)), *(found for found, _ in parts)])
        n_evaluated = sum(part[1] for part in parts)
    else:
        assert isinstance(supports, _SparseSupports)
        rows, n_evaluated = _search_sparse(counting, first, columns, features, supports, limit)
    rows[:, 1] = supports.position[rows[:, 1].astype(np.int64)]
    return rows[np.lexsort((rows[:, 1], rows[:, 0]))], n_evaluated


def _search_dense(
    counting: _Counting, first: int, columns: np.ndarray, features: _Features, supports: _Supports | _Lanes, limit: float
) -> tuple[np.ndarray, int]:
    n_bins, weight, total, terms, _ = counting
    found = np.empty((columns.shape[1] * len(supports.position), 3))
    if isinstance(supports, _Lanes):
        words = _bin_rows(counting, columns, features.low, features.high, first).view(np.uint64)
        count, n_evaluated = kernels.bit_uncertainties(
            words, n_bins, features.entropy, first, total, terms,
            supports.lanes, supports.margins, supports.sizes, supports.entropy, limit, found,
        )  # fmt: skip
    else:
        assert isinstance(supports, _DenseSupports)
        count, n_evaluated = kernels.dense_uncertainties(
            read_only(columns.T), features.low, features.high, n_bins, weight, total, terms, features.entropy,
            supports.bins, supports.entropy, limit, found, first,
        )  # fmt: skip
    return found[:count], n_evaluated


def _search_sparse(
    counting: _Counting, first: int, columns: Any, features: _Features, supports: _SparseSupports, limit: float
) -> tuple[np.ndarray, int]:
    n_bins, weight, total, terms, _ = counting
    capacity = _FIRST_CAPACITY
    while True:
        found = np.empty((capacity, 3))
        count, n_evaluated = kernels.csc_uncertainties(
            read_only(columns.indptr), read_only(columns.indices), read_only(columns.data),
            features.low, features.high, n_bins, weight, total, terms, features.entropy,
            supports.starts, supports.owners, supports.owner_bins, supports.rest, supports.counts, supports.entropy,
            limit, found, first,
        )  # fmt: skip
        if count <= capacity:
            return found[:count], n_evaluated
        capacity = count
