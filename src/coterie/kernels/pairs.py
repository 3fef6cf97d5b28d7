"""Correlations of all pairs of columns, counted by size and never stored.

``edges`` are the inner edges of the bins, rising; ``at_least[k]`` counts the pairs whose absolute correlation reaches
``edges[k]``. Each function adds to ``at_least`` what its range of columns gives, so that chunks can run on threads with
counters of their own.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# Columns of a tile that are looked at together: 4 KiB of float32, at home in the first-level cache.
STRIP = 1024


@kernel()
def standardise(matrix, means, norms, first, out):
    """``out[f] = (matrix[f] - mean) / norm`` for the features from ``first`` on; each feature is a row."""
    for f in range(matrix.shape[0]):
        mean = means[first + f]
        scale = 1.0 / norms[first + f]
        column = matrix[f]
        row = out[f]
        for i in range(column.shape[0]):
            row[i] = (column[i] - mean) * scale


@kernel(reorder=True)
def _dense_correlation(column, other, mean, other_mean, norms):
    """Correlation of two dense columns in double precision; ``norms`` is the product of their norms."""
    total = 0.0
    for i in range(column.shape[0]):
        total += (column[i] - mean) * (other[i] - other_mean)
    return total / norms


@kernel(reorder=True)
def _dense_product(column, vector, mean):
    """Product of a centred column with a vector in double precision."""
    total = 0.0
    for i in range(column.shape[0]):
        total += (column[i] - mean) * vector[i]
    return total


@kernel()
def pair_products(matrix, vectors, means, first, rows, positions, out):
    """``out[p]``: product of the centred row ``rows[p]`` with the vector ``positions[p]``; row 0 is the feature ``first``."""
    for p in range(rows.shape[0]):
        out[p] = _dense_product(matrix[rows[p]], vectors[positions[p]], means[first + rows[p]])


@kernel(reorder=True)
def _count_at_least(row, limit):
    """How many values of a short row are at least ``limit`` in size; sums of ones in float32 are exact and vectorised."""
    count = np.float32(0.0)
    one, none = np.float32(1.0), np.float32(0.0)
    for j in range(row.shape[0]):
        count += one if abs(row[j]) >= limit else none
    return int(count)


@kernel()
def tile_counts(tile, left, right, means, norms, first, other_first, edges, error, at_least, checked):
    r"""Count the correlations of a tile, which is right to ``error``; what lies closer to an edge is computed anew.

    ``tile[i, j]`` approximates the correlation of the features ``first + i`` and ``other_first + j``, whose columns are
    ``left[i]`` and ``right[j]``. Of a tile on the diagonal only ``j > i`` counts. ``checked[0]`` is increased by the
    number of correlations that were computed in double precision.
    """
    n_edges = edges.shape[0]
    width = tile.shape[1]
    on_diagonal = first == other_first
    for i in range(tile.shape[0]):
        begin = i + 1 if on_diagonal else 0
        while begin < width:
            end = min(begin + STRIP, width)
            row = tile[i, begin:end]
            for k in range(n_edges):
                surely = _count_at_least(row, np.float32(edges[k] + error))
                perhaps = _count_at_least(row, np.float32(edges[k] - error))
                if perhaps == 0:
                    break  # nor does any reach the next edge
                at_least[k] += surely
                if surely == perhaps:
                    continue
                low, high = np.float32(edges[k] - error), np.float32(edges[k] + error)
                for j in range(begin, end):
                    if low <= abs(tile[i, j]) < high:
                        checked[0] += 1
                        r = _dense_correlation(
                            left[i],
                            right[j],
                            means[first + i],
                            means[other_first + j],
                            norms[first + i] * norms[other_first + j],
                        )
                        if abs(r) >= edges[k]:
                            at_least[k] += 1
            begin = end


@kernel()
def dense_pair_correlations(matrix, means, norms, firsts, seconds, out, start, stop):
    """``out[p]``: correlation of the rows ``firsts[p]`` and ``seconds[p]`` of a matrix that has a feature in each row."""
    for p in range(start, stop):
        a, b = firsts[p], seconds[p]
        out[p] = _dense_correlation(matrix[a], matrix[b], means[a], means[b], norms[a] * norms[b])


@kernel()
def csc_pair_correlations(indptr, indices, values, means, norms, n_samples, firsts, seconds, out, start, stop):
    """Like :func:`dense_pair_correlations`, for sorted sparse columns."""
    for p in range(start, stop):
        a, b = firsts[p], seconds[p]
        s, t = indptr[a], indptr[b]
        total = 0.0
        while s < indptr[a + 1] and t < indptr[b + 1]:
            if indices[s] == indices[t]:
                total += np.float64(values[s]) * values[t]
                s += 1
                t += 1
            elif indices[s] < indices[t]:
                s += 1
            else:
                t += 1
        out[p] = (total - n_samples * means[a] * means[b]) / (norms[a] * norms[b])


@kernel()
def hash_columns(indptr, indices, bits, out, start, stop):
    """A 64-bit hash of each sparse column; ``bits`` are its values as unsigned integers."""
    prime = np.uint64(0x9E3779B97F4A7C15)
    for j in range(start, stop):
        state = np.uint64(indptr[j + 1] - indptr[j])
        for p in range(indptr[j], indptr[j + 1]):
            state = (state ^ np.uint64(indices[p])) * prime
            state = (state ^ (state >> np.uint64(29))) + bits[p]
            state = state * prime
            state ^= state >> np.uint64(32)
        out[j] = state


@kernel()
def same_as_previous(indptr, indices, values, order, hashes, out, start, stop):
    """Whether the column ``order[p]`` has the very entries of ``order[p - 1]``; equal hashes alone prove nothing."""
    for p in range(start, stop):
        out[p] = False
        if p == 0 or hashes[order[p]] != hashes[order[p - 1]]:
            continue
        a, b = indptr[order[p - 1]], indptr[order[p]]
        count = indptr[order[p] + 1] - b
        if indptr[order[p - 1] + 1] - a != count:
            continue
        same = True
        for i in range(count):
            if indices[a + i] != indices[b + i] or values[a + i] != values[b + i]:
                same = False
                break
        out[p] = same


@kernel()
def by_sample(indptr, indices, values, row_start, row_feature, row_value, place):
    """Fill the rows of a sparse matrix from its columns; ``place[p]`` is where the column's entry p went."""
    free = row_start[:-1].copy()
    for j in range(indptr.shape[0] - 1):
        for p in range(indptr[j], indptr[j + 1]):
            q = free[indices[p]]
            free[indices[p]] = q + 1
            row_feature[q] = j
            row_value[q] = values[p]
            place[p] = q


@kernel()
def disjoint_counts(ratios, cumulative, edges, at_least, first_edge, last_edge):
    r"""Count pairs of columns that have no sample in common, as if no two columns had one.

    Such a pair has the correlation :math:`-\rho_a \rho_b` with :math:`\rho = \sqrt n\,\bar f / \|f - \bar f\|`. ``ratios``
    are the :math:`|\rho|` in falling order, ``cumulative`` the numbers of features up to each (with a leading zero). As the
    first factor falls, ever fewer second ones are large enough: one walk for each edge.
    """
    n_columns = ratios.shape[0]
    for k in range(first_edge, last_edge):
        reach = n_columns
        total = 0
        for a in range(n_columns):
            while reach > 0 and ratios[a] * ratios[reach - 1] < edges[k]:
                reach -= 1
            if reach == 0:
                break
            weight = cumulative[a + 1] - cumulative[a]
            others = cumulative[reach] - (weight if a < reach else 0)
            total += weight * others
        at_least[k] += total // 2


@kernel()
def pair_costs(indptr, indices, place, row_start, out, start, stop):
    """How many later entries the samples of each column have: the products that :func:`meeting_counts` forms."""
    for a in range(start, stop):
        total = 0
        for p in range(indptr[a], indptr[a + 1]):
            total += row_start[indices[p] + 1] - place[p] - 1
        out[a] = total


@kernel()
def meeting_counts(
    indptr, indices, values, place, row_start, row_feature, row_value, scales, ratios, weights, edges, at_least, start, stop
):
    r"""Correct :func:`disjoint_counts` for the pairs of columns that do meet in a sample.

    The correlation of such a pair is :math:`f_a'f_b/(N_a N_b) - \rho_a\rho_b`; ``scales`` are the :math:`1/N`, ``ratios`` the
    signed :math:`\rho`. A pair stands for the ``weights`` of its columns multiplied. Only later columns are looked at, so the
    cost is the number of entries that a column's samples have after it. Returns the number of pairs that meet.
    """
    n_columns = indptr.shape[0] - 1
    sums = np.zeros(n_columns)
    seen = np.zeros(n_columns, dtype=np.bool_)
    touched = np.empty(n_columns, dtype=np.int64)
    n_edges = edges.shape[0]
    lowest = edges[0]
    n_pairs = 0
    for a in range(start, stop):
        n_touched = 0
        for p in range(indptr[a], indptr[a + 1]):
            value = np.float64(values[p])
            for q in range(place[p] + 1, row_start[indices[p] + 1]):
                b = row_feature[q]
                if not seen[b]:
                    seen[b] = True
                    touched[n_touched] = b
                    n_touched += 1
                sums[b] += value * row_value[q]
        n_pairs += n_touched
        scale = scales[a]
        ratio = ratios[a]
        for t in range(n_touched):
            b = touched[t]
            apart = ratio * ratios[b]
            r = abs(sums[b] * (scale * scales[b]) - apart)
            apart = abs(apart)
            sums[b] = 0.0
            seen[b] = False
            if r < lowest and apart < lowest:
                continue
            weight = weights[a] * weights[b]
            for k in range(n_edges):
                if r >= edges[k]:
                    at_least[k] += weight
                if apart >= edges[k]:
                    at_least[k] -= weight
    return n_pairs
