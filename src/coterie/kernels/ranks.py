r"""Ranks of columns with ties averaged, dense and CSC twins side by side.

With sample weights :math:`\omega` of total W, the rank of a value x is the weight of the smaller values and half of the weight
of those equal to x, :math:`r(x) = \sum_{x_i<x}\omega_i + \tfrac12\sum_{x_i=x}\omega_i`. With unit weights that is the usual
average rank less ½, and a sample of weight 2 counts as two equal samples do. The mean is always W/2:
:math:`\sum_i\omega_i r(x_i) = \sum_{i,j}\omega_i\omega_j([x_j<x_i]+\tfrac12[x_j=x_i]) = W^2/2`. So ranks are written less W/2,
and their norm is a sum over the different values, in which nothing cancels.

Sparse columns keep their zeros: what is written is the rank of an entry less that of zero, which has the sign of the entry.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# Different values of a byte.
BYTES = 256


@kernel()
def dense_ranks(matrix, order, weight, total, out, norms):
    """Centred ranks of each row of a (features, samples) block, whose sorted positions are ``order``, and their norms."""
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
    """Like :func:`dense_ranks` for values of one byte, the smallest of which can be ``lowest``: counted, not sorted."""
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
    """Ranks less the rank of zero for the entries of some sparse columns; means and norms of what that makes of the columns.

    ``order`` are the entries of the ``columns``, one column after the other, each by rising value. The values are given by
    their places among all different ones: negative below ``n_negative``, zero from there on below ``n_nonpositive``.
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
