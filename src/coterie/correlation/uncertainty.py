r"""Symmetrical uncertainty between binned features (TPAMI 2016, eq. 2), exact, after exact pruning.

:math:`U(f, z) = 2 I(f; z) / (H(f) + H(z))` on bins of equal width over each feature's range. Everything is
computed on blocks of columns as they are stored: no float64 copy, and nonzero entries only where the
data are sparse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from coterie._numba import read_only
from coterie.correlation.protocol import ROUNDING, Pairs
from coterie.data.source import Columns, Exemplar, for_blocks
from coterie.data.view import FeatureView
from coterie.kernels import information as kernels

# Strong pairs for which a block has room at first; with more it is done again.
_ROOM = 1 << 14


class SymmetricalUncertainty:
    """Uncertainties between the features of a source; the interface is that of ``PearsonCorrelation``.

    Parameters
    ----------
    view : FeatureView
        The features.
    n_bins : int, default=10
        Bins of equal width over the range of each feature, at most 255.
    prune : bool, default=True
        Whether to skip pairs that the entropy bound excludes; the result is the same.

    Attributes
    ----------
    entropy : ndarray of shape (n_features,)
        Entropy of each binned feature, in nats.
    n_evaluated : int
        Pairs whose uncertainty was computed.
    n_features_read : int
        Features that were read for it.
    """

    def __init__(self, view: FeatureView, *, n_bins: int = 10, prune: bool = True) -> None:
        self.view = view
        self.source = source = view.source
        self.moments = view.moments
        self.n_bins = n_bins
        self.prune = prune
        self.n_evaluated = 0
        self.n_features_read = 2 * source.shape[1]
        self._weight = _weights(view)
        self.low, self.high, self.entropy = view.map_features(_binned, n_bins)

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Matrix of uncertainties of some features with some others."""
        self.n_evaluated += len(features) * len(others)
        self.n_features_read += len(features)
        found = np.empty((len(features) * len(others), 3))
        few = _Features(self.low[features], self.high[features], self.entropy[features])
        count, _ = self._search_block(0, self.source.columns(features), few, self._supports(others), -1.0, found)
        result = np.zeros((len(features), len(others)))
        rows = found[:count]
        result[rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)] = rows[:, 2]
        return result

    def within(self, features: np.ndarray) -> np.ndarray:
        """Matrix of uncertainties between a few features."""
        return self.between(features, features)

    def strong(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None) -> Pairs:
        """All pairs of a feature and one of the ``supports`` with an uncertainty of at least the threshold.

        The exemplar of the linear measure says nothing here.
        """
        everything = self.low, self.high, self.entropy
        limit = threshold - ROUNDING if self.prune else 0.0
        parts = self.view.map_blocks(_strong_pairs, *everything, self._supports(supports), self.n_bins, limit)
        self.n_evaluated += sum(n_evaluated for _, n_evaluated in parts)
        self.n_features_read += self.source.shape[1]
        found = np.concatenate([np.empty((0, 3)), *(rows for rows, _ in parts)])
        found = found[found[:, 2] >= threshold - ROUNDING]
        return Pairs(found[:, 0].astype(np.int64), found[:, 1].astype(np.int64), found[:, 2].copy())

    def bins(self, features: np.ndarray) -> np.ndarray:
        """Bins of some features, a row of bytes each."""
        columns = self.source.columns(features)
        low, high = self.low[features], self.high[features]
        if isinstance(columns, np.ndarray):
            return np.ascontiguousarray(self._bin(columns, low, high).T)
        rows = np.repeat(self._bin(np.zeros(len(features)), low, high)[:, None], self.source.shape[0], axis=1)
        owner = np.repeat(np.arange(len(features)), np.diff(columns.indptr))
        rows[owner, columns.indices] = self._bin(columns.data, low[owner], high[owner])
        return rows

    def _bin(self, values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The bin of each value in its range."""
        width = np.where(high > low, high - low, 1.0)
        bins = np.clip(((values.astype(np.float64) - low) / width * self.n_bins).astype(np.int64), 0, self.n_bins - 1)
        return np.where(high > low, bins, 0).astype(np.uint8)

    def _supports(self, features: np.ndarray) -> _Supports:
        """Some features as those that others are compared with."""
        entropy = self.entropy[features]
        if not self.source.is_sparse:
            return _DenseSupports(self.bins(features), entropy)
        columns: Any = self.source.columns(features)
        n_samples = self.source.shape[0]
        low, high = self.low[features], self.high[features]
        owner = np.repeat(np.arange(len(features)), np.diff(columns.indptr))
        bins = self._bin(columns.data, low[owner], high[owner])
        rest = self._bin(np.zeros(len(features)), low, high)
        weight = self._weight[columns.indices]
        places = owner * self.n_bins + bins
        sums = np.bincount(places, weights=weight, minlength=len(features) * self.n_bins)
        counts = sums.astype(np.float64).reshape(len(features), self.n_bins)  # of no entries at all, bincount has integers
        counts[np.arange(len(features)), rest] += np.maximum(self.moments.total_weight - counts.sum(axis=1), 0.0)
        by_sample = np.argsort(columns.indices, kind="stable")
        begins = np.zeros(n_samples + 1, dtype=np.int64)
        np.cumsum(np.bincount(columns.indices, minlength=n_samples), out=begins[1:])
        return _SparseSupports(begins, owner[by_sample], bins[by_sample], rest, counts, entropy)

    def _search_block(
        self, first: int, columns: Columns, features: _Features, supports: _Supports, limit: float, found: np.ndarray
    ) -> tuple[int, int]:
        return _search(self.n_bins, self._weight, self.moments.total_weight, first, columns, features, supports, limit, found)

    def _for_blocks(self, task: Callable[[int, Columns], None]) -> None:
        for_blocks(self.source, task, self.view.n_threads)


class _Features(NamedTuple):
    """Ranges and entropies of features."""

    low: np.ndarray
    high: np.ndarray
    entropy: np.ndarray


class _DenseSupports(NamedTuple):
    """Bins of features (a row each), and the entropies."""

    bins: np.ndarray
    entropy: np.ndarray


class _SparseSupports(NamedTuple):
    """Features by samples: owners and bins of each sample's entries; bin and weights of the rest, and the entropies."""

    begins: np.ndarray
    owners: np.ndarray
    owner_bins: np.ndarray
    rest: np.ndarray
    counts: np.ndarray
    entropy: np.ndarray


_Supports = _DenseSupports | _SparseSupports


def _weights(view: FeatureView) -> np.ndarray:
    """The weight of each sample."""
    weight = view.sample_weight
    return np.ones(view.n_samples) if weight is None else np.asarray(weight, dtype=np.float64)


def _binned(view: FeatureView, n_bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lowest and highest value of each feature of a view, and its entropy in bins of equal width between them."""
    weight, total = _weights(view), view.moments.total_weight
    low, high, entropy = (np.empty(view.n_features) for _ in range(3))

    def find_ranges(first: int, columns: Columns) -> None:
        if isinstance(columns, np.ndarray):
            kernels.dense_ranges(read_only(columns.T), weight, low, high, first)
        else:
            kernels.csc_ranges(
                read_only(columns.indptr), read_only(columns.indices), read_only(columns.data),
                weight, int(np.count_nonzero(weight)), low, high, first,
            )  # fmt: skip

    def find_entropies(first: int, columns: Columns) -> None:
        if isinstance(columns, np.ndarray):
            kernels.dense_entropies(read_only(columns.T), low, high, n_bins, weight, total, entropy, first)
        else:
            kernels.csc_entropies(
                read_only(columns.indptr), read_only(columns.indices), read_only(columns.data),
                low, high, n_bins, weight, total, entropy, first,
            )  # fmt: skip

    for_blocks(view.source, find_ranges, view.n_threads)
    for_blocks(view.source, find_entropies, view.n_threads)
    entropy[view.moments.norm == 0.0] = 0.0
    return low, high, entropy


def _strong_pairs(
    view: FeatureView, low: np.ndarray, high: np.ndarray, entropy: np.ndarray, supports: _Supports, n_bins: int, limit: float
) -> tuple[np.ndarray, int]:
    """Rows (feature, position, uncertainty) of a view's features and some support features, and pairs evaluated."""
    everything, weight, total = _Features(low, high, entropy), _weights(view), view.moments.total_weight
    parts: dict[int, np.ndarray] = {}
    evaluated: list[int] = []

    def search(first: int, columns: Columns) -> None:
        room = _ROOM
        while True:
            found = np.empty((room, 3))
            count, n_evaluated = _search(n_bins, weight, total, first, columns, everything, supports, limit, found)
            if count <= room:
                break
            room = count
        parts[first] = found[:count]
        evaluated.append(n_evaluated)

    for_blocks(view.source, search, view.n_threads)
    rows = np.concatenate([np.empty((0, 3)), *(parts[first] for first in sorted(parts))])
    rows[:, 0] += view.source.first_feature
    return rows, sum(evaluated)


def _search(
    n_bins: int, weight: np.ndarray, total: float, first: int, columns: Columns,
    features: _Features, supports: _Supports, limit: float, found: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Pairs of a column and a support feature that reach the limit; ``first`` is the columns' place in ``features``."""
    if isinstance(supports, _DenseSupports):
        assert isinstance(columns, np.ndarray)
        return kernels.dense_uncertainties(
            read_only(columns.T), features.low, features.high, n_bins, weight, total, features.entropy,
            supports.bins, supports.entropy, limit, found, first,
        )  # fmt: skip
    assert not isinstance(columns, np.ndarray)
    return kernels.csc_uncertainties(
        read_only(columns.indptr), read_only(columns.indices), read_only(columns.data),
        features.low, features.high, n_bins, weight, total, features.entropy,
        supports.begins, supports.owners, supports.owner_bins, supports.rest, supports.counts, supports.entropy,
        limit, found, first,
    )  # fmt: skip
