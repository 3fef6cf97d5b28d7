"""Inner loops of the filter scores that look at one column at a time; dense and CSC twins side by side."""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel
from coterie.kernels.information import bin_of


@kernel()
def _scatter(ordered, start, stop):
    """Scatter of some neighbouring values; exactly 0 where they are equal."""
    origin = ordered[start]
    mean = 0.0
    for i in range(start, stop):
        mean += ordered[i] - origin
    mean /= stop - start
    total = 0.0
    for i in range(start, stop):
        total += (ordered[i] - origin - mean) ** 2
    return total


@kernel()
def _local_scatter(ordered, width):
    """Sum over all values of the scatter of the ``width`` values nearest to each one, itself among them."""
    n_values = ordered.shape[0]
    width = min(width, n_values)
    total = 0.0
    start = 0
    for j in range(n_values):
        start = max(start, j - width + 1)
        while start + width < n_values and start < j and ordered[start + width] - ordered[j] < ordered[j] - ordered[start]:
            start += 1
        total += _scatter(ordered, start, start + width)
    return total


@kernel()
def dense_local_scatter(ordered, width, out, first):
    """Local scatter of each row of a (features, samples) block whose rows are sorted."""
    for f in range(ordered.shape[0]):
        out[first + f] = _local_scatter(ordered[f], width)


@kernel()
def csc_local_scatter(indptr, ordered, n_samples, width, out, first):
    """Local scatter of each sparse column, whose stored values are sorted.

    Neighbours that are all zeros add nothing, so of a long run of zeros only the ends matter.
    """
    for f in range(indptr.shape[0] - 1):
        n_stored = indptr[f + 1] - indptr[f]
        n_zeros = min(n_samples - n_stored, 2 * width)
        values = np.zeros(n_stored + n_zeros)
        place = 0
        for p in range(indptr[f], indptr[f + 1]):
            if ordered[p] > 0.0 and place == p - indptr[f]:
                place += n_zeros
            values[place] = ordered[p]
            place += 1
        out[first + f] = _local_scatter(values, width)


@kernel()
def _surprise(count, total):
    return -(count / total) * np.log(count / total) if count > 0 else 0.0


@kernel()
def _gain(table, class_entropy, total):
    """Entropy of the classes, plus that of the bins, minus that of both together."""
    gain = class_entropy
    for b in range(table.shape[0]):
        in_bin = 0
        for c in range(table.shape[1]):
            in_bin += table[b, c]
            gain -= _surprise(table[b, c], total)
        gain += _surprise(in_bin, total)
    return max(gain, 0.0)


@kernel()
def dense_information_gain(matrix, codes, n_classes, low, high, n_bins, class_entropy, out, first):
    """Information gain of each binned row of a (features, samples) block."""
    table = np.empty((n_bins, n_classes), dtype=np.int64)
    for f in range(matrix.shape[0]):
        table[:] = 0
        for i in range(matrix.shape[1]):
            table[bin_of(np.float64(matrix[f, i]), low[first + f], high[first + f], n_bins), codes[i]] += 1
        out[first + f] = _gain(table, class_entropy, matrix.shape[1])


@kernel()
def csc_information_gain(
    indptr, indices, values, codes, class_counts, low, high, n_bins, class_entropy, out, first
):  # fmt: skip
    """Information gain of each binned sparse column: the zeros of a class are those that are not stored."""
    n_samples = codes.shape[0]
    table = np.empty((n_bins, class_counts.shape[0]), dtype=np.int64)
    for f in range(indptr.shape[0] - 1):
        table[:] = 0
        zero = bin_of(0.0, low[first + f], high[first + f], n_bins)
        for c in range(class_counts.shape[0]):
            table[zero, c] = class_counts[c]
        for p in range(indptr[f], indptr[f + 1]):
            code = codes[indices[p]]
            table[zero, code] -= 1
            table[bin_of(np.float64(values[p]), low[first + f], high[first + f], n_bins), code] += 1
        out[first + f] = _gain(table, class_entropy, n_samples)
