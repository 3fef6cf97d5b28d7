r"""Features on a graph of samples, and distances between samples; dense and CSC twins side by side.

The *variation* of a feature on a weighted graph is :math:`\sum_{i<h} g_{ih}\,|x_i - x_h|^p`, with p = 2 the Laplacian
form :math:`x'Lx`, with p = 1 what ReliefF sums. The graph is a CSR matrix of samples by samples; dense
kernels take its upper triangle, CSC kernels the whole symmetric one, of which they visit the stored
entries' rows only.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel


@kernel(reorder=True)
def _row_variation(column, own, indices, weights, squared):
    total = 0.0
    for p in range(indices.shape[0]):
        difference = own - column[indices[p]]
        total += weights[p] * (difference * difference if squared else abs(difference))
    return total


@kernel()
def dense_variation(matrix, indptr, indices, weights, squared, out, first):
    """Variation of each row of a (features, samples) block; the graph is an upper triangle."""
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
    """Variation of each sparse column; the graph is symmetric, so an edge between two stored entries is met twice."""
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
def csc_manhattan(indptr, indices, values, place, factor, first, size, out):
    """Like :func:`dense_manhattan` for what two stored entries share; ``size`` gathers each sample's own sum.

    :math:`|a - b| = |a| + |b| - (|a| + |b| - |a - b|)`, and the bracket is 0 unless both are stored. ``place`` is the row of
    each sample in ``out``, or -1.
    """
    for f in range(indptr.shape[0] - 1):
        scale = factor[first + f]
        for p in range(indptr[f], indptr[f + 1]):
            own = np.float64(values[p])
            size[indices[p]] += scale * abs(own)
            r = place[indices[p]]
            if r < 0:
                continue
            for q in range(indptr[f], indptr[f + 1]):
                other = np.float64(values[q])
                out[r, indices[q]] -= scale * (abs(own) + abs(other) - abs(own - other))
