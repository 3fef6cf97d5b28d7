"""Mutual information of binned features with labels and with each other, one pass over the features at a time."""

from __future__ import annotations

import numpy as np

from coterie._numba import read_only
from coterie.correlation.uncertainty import SymmetricalUncertainty
from coterie.data.source import Columns
from coterie.kernels import filters as kernels


class BinnedFeatures(SymmetricalUncertainty):
    """Symmetrical uncertainties, and mutual information in nats, on bins of equal width over each feature's range."""

    def information(self, values: np.ndarray) -> np.ndarray:
        """Mutual information of every feature with one discrete variable, given as values 0, 1, … of the samples."""
        codes = np.ascontiguousarray(values, dtype=np.int64)
        counts = np.bincount(codes)
        entropy = entropy_of(counts)
        result = np.empty(self.source.shape[1])

        def task(first: int, columns: Columns) -> None:
            if isinstance(columns, np.ndarray):
                kernels.dense_information_gain(
                    read_only(columns.T), read_only(codes), len(counts), self.low, self.high, self.n_bins,
                    entropy, result, first,
                )  # fmt: skip
            else:
                kernels.csc_information_gain(
                    read_only(columns.indptr), read_only(columns.indices), read_only(columns.data),
                    read_only(codes), read_only(counts), self.low, self.high, self.n_bins, entropy, result, first,
                )  # fmt: skip

        self._for_blocks(task)
        return result

    def information_with(self, feature: int) -> np.ndarray:
        """Mutual information of every feature with one of them."""
        return self.information(self.bins(np.array([feature]))[0])

    def uncertainty(self, values: np.ndarray) -> np.ndarray:
        """Symmetrical uncertainty of every feature with one discrete variable."""
        both = self.entropy + entropy_of(np.bincount(values))
        return np.minimum(2.0 * self.information(values) / np.where(both > 0.0, both, 1.0), 1.0)


def entropy_of(counts: np.ndarray) -> float:
    """Entropy of counts, in nats."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())
