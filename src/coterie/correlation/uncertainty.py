r"""Symmetrical uncertainty between binned features (TPAMI 2016, eq. 2), exact, after exact pruning.

:math:`U(f, z) = 2 I(f; z) / (H(f) + H(z))` on bins of equal width over each feature's range. Everything is
computed on blocks of columns as they are stored: no float64 copy, and nonzero entries only where the
data are sparse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

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
        weight = view.sample_weight
        self._weight = np.ones(source.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64)
        n_features = source.shape[1]
        self.low, self.high, self.entropy = np.empty(n_features), np.empty(n_features), np.empty(n_features)
        self._for_blocks(self._find_ranges)
        self._for_blocks(self._find_entropies)
        self.entropy[self.moments.norm == 0.0] = 0.0

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
        binned = self._supports(supports)
        everything = _Features(self.low, self.high, self.entropy)
        limit = threshold - ROUNDING if self.prune else 0.0
        parts: dict[int, np.ndarray] = {}
        evaluated: list[int] = []

        def search(first: int, columns: Columns) -> None:
            room = _ROOM
            while True:
                found = np.empty((room, 3))
                count, n_evaluated = self._search_block(first, columns, everything, binned, limit, found)
                if count <= room:
                    break
                room = count
            parts[first] = found[:count]
            evaluated.append(n_evaluated)

        self._for_blocks(search)
        self.n_evaluated += sum(evaluated)
        self.n_features_read += self.source.shape[1]
        found = np.concatenate([np.empty((0, 3)), *(parts[first] for first in sorted(parts))])
        found = found[found[:, 2] >= threshold - ROUNDING]
        return Pairs(found[:, 0].astype(np.int64), found[:, 1].astype(np.int64), found[:, 2].copy())

    def _supports(self, features: np.ndarray) -> _Supports:
        """Some features as those that others are compared with: bins (one row each), their weights, entropies."""
        columns = self.source.columns(features)
        dense = columns if isinstance(columns, np.ndarray) else columns.toarray()
        low, high = self.low[features], self.high[features]
        width = np.where(high > low, high - low, 1.0)
        bins = np.clip(((dense.astype(np.float64) - low) / width * self.n_bins).astype(np.int64), 0, self.n_bins - 1)
        rows = np.ascontiguousarray(np.where(high > low, bins, 0).T.astype(np.uint8))
        counts = np.zeros((len(features), self.n_bins))
        for k, row in enumerate(rows):
            counts[k] = np.bincount(row, weights=self._weight, minlength=self.n_bins)
        return _Supports(rows, counts, self.entropy[features])

    def _search_block(
        self, first: int, columns: Columns, features: _Features, supports: _Supports, limit: float, found: np.ndarray
    ) -> tuple[int, int]:
        """Pairs of a column and a support feature that reach the limit; ``first`` is the columns' place in ``features``."""
        total = self.moments.total_weight
        if isinstance(columns, np.ndarray):
            return kernels.dense_uncertainties(
                read_only(columns.T), features.low, features.high, self.n_bins, self._weight, total, features.entropy,
                supports.bins, supports.entropy, limit, found, first,
            )  # fmt: skip
        return kernels.csc_uncertainties(
            read_only(columns.indptr), read_only(columns.indices), read_only(columns.data),
            features.low, features.high, self.n_bins, self._weight, total, features.entropy,
            supports.bins, supports.counts, supports.entropy, limit, found, first,
        )  # fmt: skip

    def _find_ranges(self, first: int, columns: Columns) -> None:
        if isinstance(columns, np.ndarray):
            kernels.dense_ranges(read_only(columns.T), self._weight, self.low, self.high, first)
        else:
            kernels.csc_ranges(
                read_only(columns.indptr), read_only(columns.indices), read_only(columns.data),
                self._weight, int(np.count_nonzero(self._weight)), self.low, self.high, first,
            )  # fmt: skip

    def _find_entropies(self, first: int, columns: Columns) -> None:
        total = self.moments.total_weight
        if isinstance(columns, np.ndarray):
            kernels.dense_entropies(
                read_only(columns.T), self.low, self.high, self.n_bins, self._weight, total, self.entropy, first
            )
        else:
            kernels.csc_entropies(
                read_only(columns.indptr), read_only(columns.indices), read_only(columns.data),
                self.low, self.high, self.n_bins, self._weight, total, self.entropy, first,
            )  # fmt: skip

    def _for_blocks(self, task: Callable[[int, Columns], None]) -> None:
        for_blocks(self.source, task, self.view.n_threads)


class _Features(NamedTuple):
    """Ranges and entropies of features."""

    low: np.ndarray
    high: np.ndarray
    entropy: np.ndarray


class _Supports(NamedTuple):
    """Bins of features (a row each), the weight of each bin, and the entropies."""

    bins: np.ndarray
    counts: np.ndarray
    entropy: np.ndarray
