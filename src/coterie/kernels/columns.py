"""Streaming passes over columns: products with vectors, and the top of a ranking.

There is one function per layout:

- ``feature_major``: a dense matrix of shape (features, samples), each feature contiguous;
- ``sample_major``: a dense matrix of shape (samples, features), each sample contiguous;
- ``csc``: compressed sparse columns.

Each function processes the features ``start <= f < stop`` of a list (or of all features if ``all_features`` is true) and
writes only to their rows of ``out``, so that chunks can run on threads. The result of a feature depends on its own values only
and is bit-identical for any chunks.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# Columns of a sample-major matrix that are processed together: 16 KiB of float64 per row.
TILE = 2048
# The same for comparisons with up to sixteen vectors, whose sums must fit into the first-level cache as well.
_STRONG_TILE = 256
# Samples of a feature-major matrix that fit into the first-level cache between vectors.
STRIP = 2048
# Number of stored entries from which a sparse feature is compared with all support features at once.
_MANY_ENTRIES = 48
# Tolerance for rounding in a bound whose terms are in single precision.
_ROUNDING_FACTOR = 1.0 - 1e-6


@kernel(reorder=True)
def _add_products(column, vectors, middle, begin, end, sums):
    """Add the products of ``column - middle`` over the samples ``begin <= i < end`` to ``sums``, four vectors at a time.

    The slices show the compiler that no index is negative, which it requires to use vector registers.
    """
    part = column[begin:end]
    n_samples = part.shape[0]
    n_vectors = vectors.shape[0]
    k = 0
    while k + 4 <= n_vectors:
        vector0 = vectors[k, begin:end]
        vector1 = vectors[k + 1, begin:end]
        vector2 = vectors[k + 2, begin:end]
        vector3 = vectors[k + 3, begin:end]
        sum0 = 0.0
        sum1 = 0.0
        sum2 = 0.0
        sum3 = 0.0
        for i in range(n_samples):
            value = part[i] - middle
            sum0 += value * vector0[i]
            sum1 += value * vector1[i]
            sum2 += value * vector2[i]
            sum3 += value * vector3[i]
        sums[k] += sum0
        sums[k + 1] += sum1
        sums[k + 2] += sum2
        sums[k + 3] += sum3
        k += 4
    while k < n_vectors:
        vector0 = vectors[k, begin:end]
        sum0 = 0.0
        for i in range(n_samples):
            sum0 += (part[i] - middle) * vector0[i]
        sums[k] += sum0
        k += 1


@kernel(reorder=True)
def _squared_norm(column, middle):
    """Return the sum of the squares of ``column - middle``."""
    squares = 0.0
    for i in range(column.shape[0]):
        value = column[i] - middle
        squares += value * value
    return squares


@kernel()
def _add_samples(matrix, vector, middle, sums, first, last):
    """Add the products of neighbouring columns minus ``middle`` with a vector, for four samples per pass over ``sums``.

    Samples of weight zero are not read. The last sample is repeated with weight zero up to a multiple of four. This adds
    zeros, which does not change the sums.
    """
    n_samples = vector.shape[0]
    used = np.empty(n_samples + 3, np.int64)
    n_used = 0
    for i in range(n_samples):
        used[n_used] = i
        n_used += vector[i] != 0.0
    for p in range(n_used, n_used + 3):
        used[p] = used[n_used - 1]
    for p in range(0, n_used, 4):
        row0 = matrix[used[p], first:last]
        row1 = matrix[used[p + 1], first:last]
        row2 = matrix[used[p + 2], first:last]
        row3 = matrix[used[p + 3], first:last]
        weight0 = vector[used[p]]
        weight1 = vector[used[p + 1]] if p + 1 < n_used else 0.0
        weight2 = vector[used[p + 2]] if p + 2 < n_used else 0.0
        weight3 = vector[used[p + 3]] if p + 3 < n_used else 0.0
        for f in range(last - first):
            total = sums[f]
            total += (row0[f] - middle[f]) * weight0
            total += (row1[f] - middle[f]) * weight1
            total += (row2[f] - middle[f]) * weight2
            total += (row3[f] - middle[f]) * weight3
            sums[f] = total


@kernel()
def record_pair(found, count, feature, position, product):
    """Write a row if ``found`` has capacity. Return the new number of rows."""
    if count < found.shape[0]:
        found[count, 0] = feature
        found[count, 1] = position
        found[count, 2] = product
    return count + 1


@kernel()
def feature_major_products(matrix, vectors, centre, features, all_features, out, start, stop):
    """Compute ``out[f, k] = sum_i (matrix[f, i] - centre[f]) * vectors[k, i]``. An empty ``centre`` means zero."""
    n_samples = vectors.shape[1]
    centred = centre.shape[0] > 0
    for f in range(start, stop):
        j = f if all_features else features[f]
        middle = centre[j] if centred else 0.0
        out[f] = 0.0
        for begin in range(0, n_samples, STRIP):
            _add_products(matrix[j], vectors, middle, begin, min(begin + STRIP, n_samples), out[f])


@kernel()
def sample_major_products(matrix, vectors, centre, features, all_features, out, start, stop):
    """Compute ``out[f, k] = sum_i (matrix[i, f] - centre[f]) * vectors[k, i]``. An empty ``centre`` means zero."""
    n_vectors, n_samples = vectors.shape
    centred = centre.shape[0] > 0
    sums = np.empty((n_vectors, TILE))
    middle = np.empty(TILE)
    row = np.empty(TILE)
    for first in range(start, stop, TILE):
        width = min(TILE, stop - first)
        for f in range(width):
            j = first + f if all_features else features[first + f]
            middle[f] = centre[j] if centred else 0.0
        sums[:] = 0.0
        if all_features and n_vectors == 1:
            _add_samples(matrix, vectors[0], middle, sums[0], first, first + width)
        else:
            for i in range(n_samples):
                if all_features:
                    values = matrix[i, first : first + width]
                    for f in range(width):
                        row[f] = values[f] - middle[f]
                else:
                    for f in range(width):
                        row[f] = matrix[i, features[first + f]] - middle[f]
                for k in range(n_vectors):
                    weight = vectors[k, i]
                    if weight != 0.0:
                        total = sums[k]
                        for f in range(width):
                            total[f] += row[f] * weight
        for f in range(width):
            for k in range(n_vectors):
                out[first + f, k] = sums[k, f]


@kernel()
def csc_products(indptr, indices, values, vectors, totals, centre, features, all_features, out, start, stop):
    """Compute ``out[f, k] = sum_i matrix[i, f] * vectors[i, k] - centre[f] * totals[k]``.

    Here ``vectors`` has one contiguous row per sample, and ``totals`` are the sums of the vectors. An empty ``centre`` means
    zero.
    """
    n_vectors = vectors.shape[1]
    centred = centre.shape[0] > 0
    if n_vectors == 1:
        for f in range(start, stop):
            j = f if all_features else features[f]
            total = 0.0
            for p in range(indptr[j], indptr[j + 1]):
                total += values[p] * vectors[indices[p], 0]
            out[f, 0] = total - centre[j] * totals[0] if centred else total
        return
    for f in range(start, stop):
        j = f if all_features else features[f]
        for k in range(n_vectors):
            out[f, k] = -centre[j] * totals[k] if centred else 0.0
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            value = values[p]
            for k in range(n_vectors):
                out[f, k] += value * vectors[i, k]


@kernel()
def largest_shares(row_start, row_support, row_value, support_mean, limits, shares):
    """Compute, per sample, the largest ``((value - mean) / limit)^2`` of all supports, which are given by sample."""
    outside = 0.0
    for k in range(len(limits)):
        outside = max(outside, (support_mean[k] / limits[k]) ** 2)
    for i in range(len(shares)):
        share = outside
        for q in range(row_start[i], row_start[i + 1]):
            k = row_support[q]
            share = max(share, ((row_value[q] - support_mean[k]) / limits[k]) ** 2)
        shares[i] = share


@kernel()
def csc_strong_products(
    indptr, indices, values, means, norms, total_weight, scores, score_shift, exemplar_norm, lowest, highest,
    row_start, row_support, row_value, fewest, support_mean, limits, widest, shares, found, start, stop,
):  # fmt: skip
    """Find rows (feature, k, product) of products of centred columns with ``|product| >= norms[feature] * limits[k]``.

    The support columns are given by sample: sample i has the value ``row_value[p]`` in support ``row_support[p]`` for
    ``row_start[i] <= p < row_start[i + 1]``. Supports are in order of ``fewest``, the number of nonzeros that a feature needs
    for them. So the cost is the number of samples in which both are nonzero, and a pair without common samples costs nothing.
    Its product is minus the product of the means, which matters only if ``|mean| / norm`` of both is large (``widest`` is the
    largest such ratio of the supports over their limits). ``lowest`` and ``highest`` are the angle bound for all supports.

    **The bound by shares.** A product is a sum, over the samples of the feature, of its value times the centred support. So
    its square is at most the squared norm of the feature (not centred) times the sum of the squared centred support over
    these samples. ``shares`` contains the largest of these squares over the squared limit, per sample (or is empty). Most
    rare features contain none of the samples with large values of a support.

    The rows are written to ``found``. Returns their number and the number of evaluated pairs. If the number exceeds the
    capacity of ``found``, the call must be repeated with more.
    """
    n_supports = fewest.shape[0]
    sums = np.empty(n_supports)
    sums[:] = 0.0
    seen = np.empty(n_supports, dtype=np.int64)
    seen[:] = 0
    touched = np.empty(n_supports, dtype=np.int64)
    count = np.int64(0)
    n_evaluated = 0
    least = fewest[0]
    bounded = len(shares) > 0
    for j in range(start, stop):
        n_stored = indptr[j + 1] - indptr[j]
        if n_stored < least or norms[j] == 0.0:
            continue
        r = abs(scores[j] - score_shift * means[j]) / (norms[j] * exemplar_norm)
        if r < lowest or r > highest:
            continue
        shift = total_weight * means[j]
        limit = norms[j]
        if bounded:
            share = 0.0
            for p in range(indptr[j], indptr[j + 1]):
                share += shares[indices[p]]
            if share * (limit * limit + shift * means[j]) < _ROUNDING_FACTOR * limit * limit:
                continue
        if n_stored >= _MANY_ENTRIES:  # Most supports have common samples, so these are not tracked.
            sums[:] = 0.0
            for p in range(indptr[j], indptr[j + 1]):
                i = indices[p]
                value = np.float64(values[p])
                for q in range(row_start[i], row_start[i + 1]):
                    sums[row_support[q]] += value * row_value[q]
            n_evaluated += n_supports
            for k in range(n_supports):
                product = sums[k] - shift * support_mean[k]
                if abs(product) >= limit * limits[k]:
                    count = record_pair(found, count, j, k, product)
                sums[k] = 0.0
            continue
        n_touched = 0
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            value = np.float64(values[p])
            for q in range(row_start[i], row_start[i + 1]):
                k = row_support[q]
                if fewest[k] > n_stored:
                    break
                if not seen[k]:
                    seen[k] = 1
                    touched[n_touched] = k
                    n_touched += 1
                sums[k] += value * row_value[q]
        if abs(shift) * widest >= limit:  # Disjoint columns can be correlated, too.
            for k in range(n_supports):
                if not seen[k]:
                    touched[n_touched] = k
                    n_touched += 1
        n_evaluated += n_touched
        for t in range(n_touched):
            k = touched[t]
            product = sums[k] - shift * support_mean[k]
            if abs(product) >= limit * limits[k]:
                count = record_pair(found, count, j, k, product)
            sums[k] = 0.0
            seen[k] = 0
    return count, n_evaluated


@kernel()
def feature_major_strong_products(matrix, vectors, tails, head, centre, norms, threshold, wanted, found, start, stop):
    r"""Find rows (feature, k, product) of the wanted products with ``|product| >= threshold * norms[feature]``.

    If any vector is wanted, all of them are multiplied, because reading the feature dominates the cost. The rows are written
    to ``found``. Returns their number. If it exceeds the capacity of ``found``, the call must be repeated with more.

    **Early abandoning.** After the first ``head`` samples the rest of a product is at most :math:`\sqrt{N_f^2 -
    q}\;\|v_k^{rest}\|` (Cauchy-Schwarz), where q is the squared norm of the part that has been read, and ``tails[k]`` is the
    norm of the vector's rest. A feature that cannot reach its limit with any vector is not read to its end.
    """
    n_vectors, n_samples = vectors.shape
    sums = np.empty(n_vectors)
    count = np.int64(0)
    for j in range(start, stop):
        if not wanted[j]:
            continue
        limit = threshold * norms[j]
        sums[:] = 0.0
        squares = 0.0
        for begin in range(0, head, STRIP):
            end = min(begin + STRIP, head)
            _add_products(matrix[j], vectors, centre[j], begin, end, sums)
            squares += _squared_norm(matrix[j, begin:end], centre[j])
        if head < n_samples:
            rest = np.sqrt(max(norms[j] ** 2 - squares, 0.0)) + 1e-7 * norms[j]
            excluded = True
            for k in range(n_vectors):
                excluded &= abs(sums[k]) + rest * tails[k] < limit
            if excluded:
                continue
            for begin in range(head, n_samples, STRIP):
                _add_products(matrix[j], vectors, centre[j], begin, min(begin + STRIP, n_samples), sums)
        for k in range(n_vectors):
            if abs(sums[k]) >= limit:
                count = record_pair(found, count, j, k, sums[k])
    return count


@kernel()
def _add_four(sums, rows, weights, width):
    """Compute ``sums += weights[r] * rows[r]`` for four rows in order, in one pass over the first ``width`` sums."""
    row0, row1, row2, row3 = rows[0], rows[1], rows[2], rows[3]
    weight0, weight1, weight2, weight3 = weights[0], weights[1], weights[2], weights[3]
    for f in range(width):
        total = sums[f]
        total += row0[f] * weight0
        total += row1[f] * weight1
        total += row2[f] * weight2
        total += row3[f] * weight3
        sums[f] = total


@kernel()
def sample_major_strong_products(matrix, vectors, tails, head, centre, norms, threshold, wanted, found, start, stop):
    """Do the same as :func:`feature_major_strong_products`. The head is read for one tile of features at a time."""
    n_vectors, n_samples = vectors.shape
    sums = np.empty((n_vectors, _STRONG_TILE))
    squares = np.empty(_STRONG_TILE)
    rows = np.empty((4, _STRONG_TILE))
    weights = np.empty(4)
    count = np.int64(0)
    for first in range(start, stop, _STRONG_TILE):
        width = min(_STRONG_TILE, stop - first)
        any_wanted = False
        for f in range(width):
            any_wanted |= wanted[first + f] != 0
        if not any_wanted:
            continue
        sums[:] = 0.0
        squares[:] = 0.0
        middle = centre[first : first + width]
        for i in range(0, head, 4):
            for r in range(4):
                row = rows[r]
                values = matrix[min(i + r, head - 1), first : first + width]
                factor = 1.0 if i + r < head else 0.0  # Rows after the head are zero, which changes no sum.
                for f in range(width):
                    row[f] = (values[f] - middle[f]) * factor
                    squares[f] += row[f] * row[f]
            for k in range(n_vectors):
                for r in range(4):
                    weights[r] = vectors[k, min(i + r, head - 1)]
                _add_four(sums[k], rows, weights, width)
        for f in range(width):
            j = first + f
            if not wanted[j]:
                continue
            limit = threshold * norms[j]
            if head < n_samples:
                rest = np.sqrt(max(norms[j] ** 2 - squares[f], 0.0)) + 1e-7 * norms[j]
                excluded = True
                for k in range(n_vectors):
                    excluded &= abs(sums[k, f]) + rest * tails[k] < limit
                if excluded:
                    continue
                for i in range(head, n_samples):
                    value = matrix[i, j] - centre[j]
                    for k in range(n_vectors):
                        sums[k, f] += value * vectors[k, i]
            for k in range(n_vectors):
                if abs(sums[k, f]) >= limit:
                    count = record_pair(found, count, j, k, sums[k, f])
    return count


@kernel()
def kth_largest(scores, below, k):
    """Return the k-th largest of the scores in [0, below), the smallest of them if there are fewer, or -1 if there are none.

    Scans the scores once with a heap of k values, without sorting or copying them.
    """
    heap = np.empty(k)
    size = 0
    smallest = 0.0
    for j in range(scores.shape[0]):
        score = scores[j]
        if score < smallest or score >= below:
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
            if size == k:
                smallest = heap[0]
        else:
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
            smallest = heap[0]
    return heap[0] if size > 0 else -1.0


@kernel()
def positions_between(scores, low, below):
    """Return the indices of the scores in [low, below), in increasing order."""
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


@kernel()
def row_norms(products, out, first, last):
    """Compute the norms of some rows. The order of additions does not depend on their position."""
    for j in range(first, last):
        total = 0.0
        for c in range(products.shape[1]):
            total += products[j, c] * products[j, c]
        out[j] = np.sqrt(total)
