"""Smallest and largest value of each feature."""

from __future__ import annotations

import numpy as np

from coterie._numba import read_only
from coterie.data.source import Columns, FeatureSource, for_blocks
from coterie.kernels.information import csc_ranges, dense_ranges


def feature_ranges(source: FeatureSource, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest value of all features, the zeros of sparse ones included."""
    n_samples, n_features = source.shape
    weight = np.ones(n_samples)
    low, high = np.empty(n_features), np.empty(n_features)

    def look(first: int, columns: Columns) -> None:
        if isinstance(columns, np.ndarray):
            dense_ranges(read_only(columns.T), weight, low, high, first)
        else:
            indptr, indices, values = read_only(columns.indptr), read_only(columns.indices), read_only(columns.data)
            csc_ranges(indptr, indices, values, weight, n_samples, low, high, first)

    for_blocks(source, look, n_threads)
    return low, high
