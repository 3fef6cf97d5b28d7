"""Streaming passes over columns: moments, products with vectors, and the top of a ranking.

Three layouts, one function each:

- ``feature_major``: a dense matrix of shape (features, samples), each feature contiguous;
- ``sample_major``: a dense matrix of shape (samples, features), each sample contiguous;
- ``csc``: compressed sparse columns.

Each function works on the features ``start <= f < stop`` of a list (or of all features when
``everything`` is true) and writes only to their rows of ``out``, so that chunks can run on
threads. A feature's result depends on its own values alone, bit for bit.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# Columns of a sample-major matrix that are worked on together: 2 KiB of float64 a row.
TILE = 256
# Samples of a feature-major matrix that stay in the first-level cache between vectors.
STRIP = 2048

# Rows of the output of the moment kernels.
MEAN, NORM, FINITE, NONZERO, LARGEST = 0, 1, 2, 3, 4


@kernel(reorder=True)
def feature_major_products(matrix, vectors, centre, features, everything, out, start, stop):
    """``out[f, k] = sum_i (matrix[f, i] - centre[f]) * vectors[k, i]``."""
    n_vectors, n_samples = vectors.shape
    for f in range(start, stop):
        j = f if everything else features[f]
        middle = centre[j]
        for k in range(n_vectors):
            out[f, k] = 0.0
        for begin in range(0, n_samples, STRIP):
            end = min(begin + STRIP, n_samples)
            k = 0
            while k + 4 <= n_vectors:
                sum0 = 0.0
                sum1 = 0.0
                sum2 = 0.0
                sum3 = 0.0
                for i in range(begin, end):
                    value = matrix[j, i] - middle
                    sum0 += value * vectors[k, i]
                    sum1 += value * vectors[k + 1, i]
                    sum2 += value * vectors[k + 2, i]
                    sum3 += value * vectors[k + 3, i]
                out[f, k] += sum0
                out[f, k + 1] += sum1
                out[f, k + 2] += sum2
                out[f, k + 3] += sum3
                k += 4
            while k < n_vectors:
                sum0 = 0.0
                for i in range(begin, end):
                    sum0 += (matrix[j, i] - middle) * vectors[k, i]
                out[f, k] += sum0
                k += 1


@kernel()
def sample_major_products(matrix, vectors, centre, features, everything, out, start, stop):
    """``out[f, k] = sum_i (matrix[i, f] - centre[f]) * vectors[k, i]``."""
    n_vectors, n_samples = vectors.shape
    sums = np.empty((n_vectors, TILE))
    middle = np.empty(TILE)
    row = np.empty(TILE)
    for first in range(start, stop, TILE):
        width = min(TILE, stop - first)
        for f in range(width):
            middle[f] = centre[first + f] if everything else centre[features[first + f]]
        sums[:, :] = 0.0
        for i in range(n_samples):
            if everything:
                for f in range(width):
                    row[f] = matrix[i, first + f] - middle[f]
            else:
                for f in range(width):
                    row[f] = matrix[i, features[first + f]] - middle[f]
            for k in range(n_vectors):
                weight = vectors[k, i]
                if weight != 0.0:
                    for f in range(width):
                        sums[k, f] += row[f] * weight
        for f in range(width):
            for k in range(n_vectors):
                out[first + f, k] = sums[k, f]


@kernel()
def csc_products(indptr, indices, values, vectors, features, everything, out, start, stop):
    """``out[f, k] = sum_i matrix[i, f] * vectors[i, k]``; note that a sample's vectors are contiguous."""
    n_vectors = vectors.shape[1]
    for f in range(start, stop):
        j = f if everything else features[f]
        if n_vectors == 1:
            total = 0.0
            for p in range(indptr[j], indptr[j + 1]):
                total += values[p] * vectors[indices[p], 0]
            out[f, 0] = total
        else:
            for k in range(n_vectors):
                out[f, k] = 0.0
            for p in range(indptr[j], indptr[j + 1]):
                i = indices[p]
                value = values[p]
                for k in range(n_vectors):
                    out[f, k] += value * vectors[i, k]


@kernel(reorder=True)
def feature_major_moments(matrix, weight, first_sample, out, start, stop):
    """Mean, centred norm and finiteness of each feature (rows ``MEAN, NORM, FINITE`` of ``out``).

    Two passes over a column while it is in the cache, on values shifted by the column's first one:
    a constant column gets a norm of exactly zero, and a large mean costs no digits.
    """
    n_samples = weight.shape[0]
    total_weight = 0.0
    for i in range(n_samples):
        total_weight += weight[i]
    for j in range(start, stop):
        shift = np.float64(matrix[j, first_sample])
        total = 0.0
        poison = 0.0
        for i in range(n_samples):
            value = matrix[j, i] - shift
            total += weight[i] * value
            poison += value * 0.0
        offset = total / total_weight
        squares = 0.0
        for i in range(n_samples):
            value = (matrix[j, i] - shift) - offset
            squares += weight[i] * value * value
        mean = shift + offset
        if squares <= total_weight * (1e-15 * mean) ** 2:
            squares = 0.0
        out[MEAN, j] = mean
        out[NORM, j] = np.sqrt(squares)
        out[FINITE, j] = poison


@kernel()
def sample_major_moments(matrix, weight, first_sample, out, start, stop):
    """Like :func:`feature_major_moments`, in one pass over the rows of each tile of columns."""
    n_samples = weight.shape[0]
    total_weight = 0.0
    for i in range(n_samples):
        total_weight += weight[i]
    shift = np.empty(TILE)
    total = np.empty(TILE)
    squares = np.empty(TILE)
    poison = np.empty(TILE)
    for first in range(start, stop, TILE):
        width = min(TILE, stop - first)
        for f in range(width):
            shift[f] = matrix[first_sample, first + f]
        total[:] = 0.0
        squares[:] = 0.0
        poison[:] = 0.0
        for i in range(n_samples):
            w = weight[i]
            for f in range(width):
                value = matrix[i, first + f] - shift[f]
                total[f] += w * value
                squares[f] += w * value * value
                poison[f] += value * 0.0
        for f in range(width):
            offset = total[f] / total_weight
            mean = shift[f] + offset
            rest = squares[f] - total[f] * offset
            if rest <= total_weight * (1e-15 * mean) ** 2 or rest <= 1e-15 * squares[f]:
                rest = 0.0
            out[MEAN, first + f] = mean
            out[NORM, first + f] = np.sqrt(rest)
            out[FINITE, first + f] = poison[f]


@kernel()
def csc_moments(indptr, indices, values, weight, out, start, stop):
    """All five moments of each sparse feature; samples of weight zero count for nothing but finiteness.

    The centred norm is ``sum over stored (x - mean)^2 + mean^2 * (weight of the implicit zeros)``:
    a sum of non-negative terms, so nothing cancels.
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
        largest = 0.0
        poison = 0.0
        n_nonzero = 0
        reference = 0.0
        differs = False
        for p in range(indptr[j], indptr[j + 1]):
            value = np.float64(values[p])
            poison += value * 0.0
            w = weight[indices[p]]
            if w > 0.0 and value != 0.0:
                total += w * value
                stored_weight += w
                largest = max(largest, abs(value))
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
        out[MEAN, j] = mean
        out[NORM, j] = np.sqrt(squares)
        out[FINITE, j] = poison
        out[NONZERO, j] = n_nonzero
        out[LARGEST, j] = largest


@kernel()
def kth_largest(scores, below, k):
    """The k-th largest of the scores in [0, below), or the smallest of them if there are fewer.

    One scan with a heap of k values: never a sort, never a copy of the scores. Returns -1 when
    there is none.
    """
    heap = np.empty(k)
    size = 0
    for score in scores:
        if score < 0.0 or score >= below:
            continue
        if size < k:
            child = size
            size += 1
            while child > 0:
                parent = (child - 1) // 2
                if heap[parent] <= score:
                    break
                heap[child] = heap[parent]
                child = parent
            heap[child] = score
        elif score > heap[0]:
            parent = 0
            while True:
                child = 2 * parent + 1
                if child >= k:
                    break
                if child + 1 < k and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= score:
                    break
                heap[parent] = heap[child]
                parent = child
            heap[parent] = score
    return heap[0] if size > 0 else -1.0


@kernel()
def positions_between(scores, low, below):
    """Indices of the scores in [low, below), in order of index."""
    count = 0
    for score in scores:
        if low <= score < below:
            count += 1
    found = np.empty(count, dtype=np.int64)
    count = 0
    for j in range(scores.shape[0]):
        if low <= scores[j] < below:
            found[count] = j
            count += 1
    return found
