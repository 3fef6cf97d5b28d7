r"""Kernels of filter scores and of ranks, one column at a time, in dense and CSC versions.

**Graphs of samples.** The *variation* of a feature on a weighted graph is :math:`\sum_{i<h} g_{ih}\,|x_i - x_h|^p`. With p = 2
it is the Laplacian form :math:`x'Lx`, with p = 1 the sum used by ReliefF. The graph is a CSR matrix of samples by samples.
Dense kernels use its upper triangle. CSC kernels use the whole symmetric matrix, but only the rows of stored entries.

**Ranks**, ties averaged. With sample weights :math:`\omega` of total W, the rank of a value x is the weight of the smaller
values plus half of the weight of values equal to x, :math:`r(x) = \sum_{x_i<x}\omega_i + \tfrac12\sum_{x_i=x}\omega_i`. With
unit weights this is the usual average rank minus ½, and a sample of weight 2 counts as two equal samples. The mean is always
W/2: :math:`\sum_i\omega_i r(x_i) = \sum_{i,j}\omega_i\omega_j([x_j<x_i]+\tfrac12[x_j=x_i]) = W^2/2`. Ranks are therefore
stored minus W/2, and their norm is a sum of non-negative terms over the distinct values, without cancellation.

Sparse columns keep their zeros: the stored value is the rank of an entry minus the rank of zero, which has the sign of the
entry.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel
from coterie.kernels.information import bin_of

# Number of distinct values of a byte.
BYTES = 256


@kernel()
def _scatter(ordered, start, stop):
    """Return the scatter of some neighbouring values, exactly 0 if they are equal."""
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
    """Return the sum over all values of the scatter of the ``width`` values nearest to each, itself included."""
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
    """Compute the local scatter of each row of a (features, samples) block whose rows are sorted."""
    for f in range(ordered.shape[0]):
        out[first + f] = _local_scatter(ordered[f], width)


@kernel()
def csc_local_scatter(indptr, ordered, n_samples, width, out, first):
    """Compute the local scatter of each sparse column, whose stored values are sorted.

    Neighbourhoods of zeros contribute nothing, so only the ends of a long run of zeros matter.
    """
    for f in range(indptr.shape[0] - 1):
        n_stored = indptr[f + 1] - indptr[f]
        n_zeros = min(n_samples - n_stored, 2 * width)
        values = np.zeros(n_stored + n_zeros)
        position = 0
        for p in range(indptr[f], indptr[f + 1]):
            if ordered[p] > 0.0 and position == p - indptr[f]:
                position += n_zeros
            values[position] = ordered[p]
            position += 1
        out[first + f] = _local_scatter(values, width)


@kernel()
def _surprise(count, total):
    return -(count / total) * np.log(count / total) if count > 0 else 0.0


@kernel()
def _gain(table, class_entropy, total):
    """Return the entropy of the classes plus that of the bins minus the joint entropy."""
    gain = class_entropy
    for b in range(table.shape[0]):
        in_bin = np.int64(0)
        for c in range(table.shape[1]):
            in_bin += table[b, c]
            gain -= _surprise(table[b, c], total)
        gain += _surprise(in_bin, total)
    return max(gain, 0.0)


@kernel()
def dense_information_gain(matrix, codes, n_classes, low, high, n_bins, class_entropy, out, first):
    """Compute the information gain of each binned row of a (features, samples) block."""
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
    """Compute the information gain of each binned sparse column. Samples that are not stored count as zeros."""
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


@kernel(reorder=True)
def _row_variation(column, own, indices, weights, squared):
    total = 0.0
    for p in range(indices.shape[0]):
        difference = own - column[indices[p]]
        total += weights[p] * (difference * difference if squared else abs(difference))
    return total


@kernel()
def dense_variation(matrix, indptr, indices, weights, squared, out, first):
    """Compute the variation of each row of a (features, samples) block. The graph is an upper triangle."""
    n_samples = matrix.shape[1]
    column = np.empty(n_samples)
    for f in range(matrix.shape[0]):
        for i in range(n_samples):
            column[i] = matrix[f, i]
        total = 0.0
        for i in range(n_samples):
            edges = slice(indptr[i], indptr[i + 1])
            total += _row_variation(column, column[i], indices[edges], weights[edges], squared)
        out[first + f] = total


@kernel()
def csc_variation(col_indptr, col_indices, values, n_samples, indptr, indices, weights, squared, out, first):
    """Compute the variation of each sparse column. The graph is symmetric, so edges between stored entries occur twice."""
    column = np.zeros(n_samples)
    stored = np.zeros(n_samples, dtype=np.bool_)
    for f in range(col_indptr.shape[0] - 1):
        for p in range(col_indptr[f], col_indptr[f + 1]):
            column[col_indices[p]] = values[p]
            stored[col_indices[p]] = True
        total = 0.0
        for p in range(col_indptr[f], col_indptr[f + 1]):
            own = column[col_indices[p]]
            i = col_indices[p]
            for e in range(indptr[i], indptr[i + 1]):
                h = indices[e]
                difference = own - column[h]
                size = difference * difference if squared else abs(difference)
                total += weights[e] * (0.5 * size if stored[h] else size)
        out[first + f] = total
        for p in range(col_indptr[f], col_indptr[f + 1]):
            column[col_indices[p]] = 0.0
            stored[col_indices[p]] = False


@kernel()
def _add_absolute(row, column, own, factor):
    for k in range(column.shape[0]):
        row[k] += factor * abs(own - column[k])


@kernel()
def dense_manhattan(matrix, probes, factor, first, out):
    """Add ``factor[f] |x_i - x_k|`` over the rows of a (features, samples) block to ``out[probe i, sample k]``."""
    n_samples = matrix.shape[1]
    column = np.empty(n_samples)
    for f in range(matrix.shape[0]):
        for i in range(n_samples):
            column[i] = matrix[f, i]
        for r in range(probes.shape[0]):
            _add_absolute(out[r], column, column[probes[r]], factor[first + f])


@kernel()
def csc_manhattan(indptr, indices, values, position, factor, first, size, out):
    """Subtract from ``out`` the common parts of pairs of stored entries, and add each sample's own sum to ``size``.

    :math:`|a - b| = |a| + |b| - (|a| + |b| - |a - b|)`, and the bracket is 0 unless both are stored. ``position`` is the row
    of each sample in ``out``, or -1. See :func:`dense_manhattan`.
    """
    for f in range(indptr.shape[0] - 1):
        scale = factor[first + f]
        for p in range(indptr[f], indptr[f + 1]):
            own = np.float64(values[p])
            size[indices[p]] += scale * abs(own)
            r = position[indices[p]]
            if r < 0:
                continue
            for q in range(indptr[f], indptr[f + 1]):
                other = np.float64(values[q])
                out[r, indices[q]] -= scale * (abs(own) + abs(other) - abs(own - other))


@kernel()
def dense_ranks(matrix, order, weight, total, out, norms):
    """Compute centred ranks of each row of a (features, samples) block, with sorted positions ``order``, and their norms."""
    n_samples = matrix.shape[1]
    for f in range(matrix.shape[0]):
        below = 0.0
        squares = 0.0
        first = 0
        while first < n_samples:
            value = matrix[f, order[f, first]]
            last = first
            tied = 0.0
            while last < n_samples and matrix[f, order[f, last]] == value:
                tied += weight[order[f, last]]
                last += 1
            rank = below + 0.5 * tied - 0.5 * total
            for p in range(first, last):
                out[f, order[f, p]] = rank
            squares += tied * rank * rank
            below += tied
            first = last
        norms[f] = np.sqrt(squares)


@kernel()
def byte_ranks(matrix, lowest, weight, total, out, norms):
    """Do the same as :func:`dense_ranks` for values of one byte, by counting. ``lowest`` is the smallest possible value."""
    weights = np.empty(BYTES)
    ranks = np.empty(BYTES)
    for f in range(matrix.shape[0]):
        weights[:] = 0.0
        for i in range(matrix.shape[1]):
            weights[np.int64(matrix[f, i]) - lowest] += weight[i]
        below = 0.0
        squares = 0.0
        for b in range(BYTES):
            ranks[b] = below + 0.5 * weights[b] - 0.5 * total
            squares += weights[b] * ranks[b] * ranks[b]
            below += weights[b]
        for i in range(matrix.shape[1]):
            out[f, i] = ranks[np.int64(matrix[f, i]) - lowest]
        norms[f] = np.sqrt(squares)


@kernel()
def csc_ranks(indptr, indices, columns, order, codes, n_negative, n_nonpositive, weight, total, out, means, norms):
    """Compute ranks minus the rank of zero for the entries of sparse columns, and the means and norms of these columns.

    ``order`` contains the entries of the ``columns``, column by column, each by increasing value. Values are given by their
    ``codes``, their positions among all distinct values: negative below ``n_negative``, zero from ``n_negative`` to
    ``n_nonpositive``.
    """
    begin = 0
    for f in columns:
        end = begin + indptr[f + 1] - indptr[f]
        negative = 0.0
        nonzero = 0.0
        for p in range(begin, end):
            code = codes[order[p]]
            if code < n_negative or code >= n_nonpositive:
                nonzero += weight[indices[order[p]]]
                if code < n_negative:
                    negative += weight[indices[order[p]]]
        zeros = max(total - nonzero, 0.0)
        means[f] = 0.5 * total - (negative + 0.5 * zeros)
        squares = zeros * means[f] * means[f]
        below = 0.0
        first = begin
        while first < end:
            code = codes[order[first]]
            last = first
            tied = 0.0
            while last < end and codes[order[last]] == code:
                tied += weight[indices[order[last]]]
                last += 1
            rank = below + 0.5 * tied + (zeros if code >= n_nonpositive else 0.0) - 0.5 * total
            if n_negative <= code < n_nonpositive:
                rank, tied = -means[f], 0.0
            for p in range(first, last):
                out[order[p]] = rank + means[f]
            squares += tied * rank * rank
            below += tied
            first = last
        norms[f] = np.sqrt(squares)
        begin = end
