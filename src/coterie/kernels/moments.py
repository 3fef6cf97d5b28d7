"""Means and norms of columns, in the layouts of :mod:`coterie.kernels.columns`, and for many sample weights at once."""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel
from coterie.kernels.columns import TILE

# Sparse features whose moments for many weights are buffered before they are written.
_BATCH_FEATURES = 64


@kernel(reorder=True)
def feature_major_moments(matrix, weight, first_sample, means, norms, finite, start, stop):
    """Compute mean, centred norm and finiteness of each feature.

    Makes two passes over a column while it is in the cache, on values minus the column's first value. So a constant column has
    a norm of exactly zero, and a large mean costs no digits. ``zeros`` is a sum of zeros, or NaN if a value is not finite.
    """
    n_samples = weight.shape[0]
    total_weight = 0.0
    for i in range(n_samples):
        total_weight += weight[i]
    for j in range(start, stop):
        shift = np.float64(matrix[j, first_sample])
        total = 0.0
        zeros = 0.0
        for i in range(n_samples):
            value = matrix[j, i] - shift
            total += weight[i] * value
            zeros += value * 0.0
        offset = total / total_weight
        squares = 0.0
        for i in range(n_samples):
            value = (matrix[j, i] - shift) - offset
            squares += weight[i] * value * value
        mean = shift + offset
        if squares < np.inf and squares <= total_weight * (1e-15 * mean) ** 2:
            squares = 0.0
        means[j] = mean
        norms[j] = np.sqrt(squares)
        finite[j] = zeros == 0.0


@kernel()
def sample_major_moments(matrix, weight, first_sample, means, norms, finite, start, stop):
    """Do the same as :func:`feature_major_moments`, in one pass over the rows of each tile of columns, four at a time.

    The last row is repeated with weight zero up to a multiple of four. This adds zeros, which does not change the sums.
    """
    n_samples = weight.shape[0]
    total_weight = 0.0
    for i in range(n_samples):
        total_weight += weight[i]
    shift = np.empty(TILE)
    total = np.empty(TILE)
    squares = np.empty(TILE)
    zeros = np.empty(TILE)
    for first in range(start, stop, TILE):
        width = min(TILE, stop - first)
        for f in range(width):
            shift[f] = matrix[first_sample, first + f]
        total[:] = 0.0
        squares[:] = 0.0
        zeros[:] = 0.0
        last = first + width
        for i in range(0, n_samples, 4):
            row0 = matrix[i, first:last]
            row1 = matrix[min(i + 1, n_samples - 1), first:last]
            row2 = matrix[min(i + 2, n_samples - 1), first:last]
            row3 = matrix[min(i + 3, n_samples - 1), first:last]
            weight0 = weight[i]
            weight1 = weight[i + 1] if i + 1 < n_samples else 0.0
            weight2 = weight[i + 2] if i + 2 < n_samples else 0.0
            weight3 = weight[i + 3] if i + 3 < n_samples else 0.0
            for f in range(width):
                value0 = row0[f] - shift[f]
                value1 = row1[f] - shift[f]
                value2 = row2[f] - shift[f]
                value3 = row3[f] - shift[f]
                total[f] = total[f] + weight0 * value0 + weight1 * value1 + weight2 * value2 + weight3 * value3
                squares[f] = (
                    squares[f]
                    + weight0 * value0 * value0
                    + weight1 * value1 * value1
                    + weight2 * value2 * value2
                    + weight3 * value3 * value3
                )
                zeros[f] = zeros[f] + value0 * 0.0 + value1 * 0.0 + value2 * 0.0 + value3 * 0.0
        for f in range(width):
            offset = total[f] / total_weight
            mean = shift[f] + offset
            rest = squares[f] - total[f] * offset
            if rest < np.inf and (rest <= total_weight * (1e-15 * mean) ** 2 or rest <= 1e-15 * squares[f]):
                rest = 0.0
            means[first + f] = mean
            norms[first + f] = np.sqrt(rest)
            finite[first + f] = zeros[f] == 0.0


@kernel()
def csc_moments(indptr, indices, values, weight, means, norms, finite, start, stop):
    """Compute mean, centred norm and finiteness of each feature. Samples of weight zero count for finiteness only.

    The squared centred norm is ``sum over stored (x - mean)^2 + mean^2 * (weight of the implicit zeros)``,
    a sum of non-negative terms without cancellation.
    """
    n_samples = weight.shape[0]
    total_weight = 0.0
    n_weighted = 0
    for i in range(n_samples):
        total_weight += weight[i]
        if weight[i] > 0.0:
            n_weighted += 1
    for j in range(start, stop):
        total = 0.0
        stored_weight = 0.0
        zeros = 0.0
        n_nonzero = 0
        reference = 0.0
        differs = False
        for p in range(indptr[j], indptr[j + 1]):
            value = np.float64(values[p])
            zeros += value * 0.0
            w = weight[indices[p]]
            if w > 0.0 and value != 0.0:
                total += w * value
                stored_weight += w
                if n_nonzero == 0:
                    reference = value
                elif value != reference:
                    differs = True
                n_nonzero += 1
        mean = total / total_weight
        squares = 0.0
        if differs or 0 < n_nonzero < n_weighted:
            for p in range(indptr[j], indptr[j + 1]):
                value = np.float64(values[p])
                if value != 0.0:
                    squares += weight[indices[p]] * (value - mean) ** 2
            squares += mean * mean * max(total_weight - stored_weight, 0.0)
        means[j] = mean
        norms[j] = np.sqrt(squares)
        finite[j] = zeros == 0.0


@kernel()
def csc_many_moments(indptr, indices, values, weights, means, norms, start, stop):
    """Compute the means and centred norms of :func:`csc_moments` for many weights, bit-identically. Values must be finite.

    ``weights`` has one row per sample. ``means`` and ``norms`` have one row per weight vector.
    """
    n_samples, n_weights = weights.shape
    totals = np.empty(n_weights)
    totals[:] = 0.0
    n_weighted = np.empty(n_weights, np.int64)
    n_weighted[:] = 0
    for i in range(n_samples):
        for k in range(n_weights):
            totals[k] += weights[i, k]
            n_weighted[k] += weights[i, k] > 0.0
    total = np.empty(n_weights)
    stored = np.empty(n_weights)
    lowest = np.empty(n_weights)
    highest = np.empty(n_weights)
    n_nonzero = np.empty(n_weights, np.int64)
    squares = np.empty(n_weights)
    # Buffered for some features at a time: rows of ``means`` are so long that values of a column are on different pages.
    own_means = np.empty((_BATCH_FEATURES, n_weights))
    own_norms = np.empty((_BATCH_FEATURES, n_weights))
    for first in range(start, stop, _BATCH_FEATURES):
        last = min(first + _BATCH_FEATURES, stop)
        for j in range(first, last):
            total[:] = 0.0
            stored[:] = 0.0
            n_nonzero[:] = 0
            lowest[:] = np.inf
            highest[:] = -np.inf
            for p in range(indptr[j], indptr[j + 1]):
                value = np.float64(values[p])
                if value == 0.0:
                    continue
                row = weights[indices[p]]
                for k in range(n_weights):
                    total[k] += row[k] * value
                    stored[k] += row[k]
                    n_nonzero[k] += row[k] > 0.0
                    lowest[k] = value if row[k] > 0.0 and value < lowest[k] else lowest[k]
                    highest[k] = value if row[k] > 0.0 and value > highest[k] else highest[k]
            mean = own_means[j - first]
            norm = own_norms[j - first]
            for k in range(n_weights):
                mean[k] = total[k] / totals[k]
            squares[:] = 0.0
            for p in range(indptr[j], indptr[j + 1]):
                value = np.float64(values[p])
                if value == 0.0:
                    continue
                row = weights[indices[p]]
                for k in range(n_weights):
                    squares[k] += row[k] * (value - mean[k]) ** 2
            for k in range(n_weights):
                varies = (lowest[k] < highest[k]) | ((0 < n_nonzero[k]) & (n_nonzero[k] < n_weighted[k]))
                square = squares[k] + mean[k] * mean[k] * max(totals[k] - stored[k], 0.0)
                norm[k] = np.sqrt(square if varies else 0.0)
        for k in range(n_weights):
            for j in range(first, last):
                means[k, j] = own_means[j - first, k]
                norms[k, j] = own_norms[j - first, k]
