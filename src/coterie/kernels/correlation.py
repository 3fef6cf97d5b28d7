r"""Correlations of pairs of columns: bounds that exclude pairs, and exact values.

**Notation.** Features are vectors in the inner product weighted by the sample weights
:math:`\omega`; :math:`\bar f` is a centred feature, :math:`N_f = \|\bar f\|` its centred norm,
:math:`\mu_f` its mean, :math:`W = \sum_i \omega_i`. The correlation is
:math:`\rho(f, z) = \langle \bar f, \bar z \rangle / (N_f N_z)`.

**Angle bound.** Let :math:`a` be any vector and :math:`\theta_f = \arccos |r_f|` the angle between
the *lines* spanned by :math:`\bar f` and :math:`a`, with :math:`r_f = \rho(f, a)`. Angles between
lines satisfy the triangle inequality, hence
:math:`\arccos|\rho(f,z)| \ge |\theta_f - \theta_z|`, and :math:`|\rho(f,z)| \ge t` requires
:math:`|\theta_f - \theta_z| \le \arccos t`. Solved for :math:`|r_f|` this is one interval per
support feature, so that a pair costs two comparisons and no arc cosine:
:math:`\cos(\min(\theta_z + \arccos t, \pi/2)) \le |r_f| \le \cos(\max(\theta_z - \arccos t, 0))`.

**Size bound** (sparse features). The product is a sum over the samples in which both are nonzero. For a
feature with c nonzeros

.. math:: |\langle f, z\rangle| \le \|f\| \, \|z|_{\mathrm{supp} f}\| \le \|f\| \, T_z(c),

where :math:`T_z(c)` is the norm of the c largest entries of :math:`\sqrt\omega z`. With
:math:`\langle \bar f,\bar z\rangle = \langle f,z\rangle - W\mu_f\mu_z`,

.. math:: |\rho(f, z)| \le (\|f\|\,T_z(c) + W|\mu_f\mu_z|) / (N_f N_z),

and if both features are non-negative, the product is non-negative, too, so that
:math:`-W\mu_f\mu_z \le \langle \bar f,\bar z\rangle \le \|f\|\,T_z(c) - W\mu_f\mu_z`. (For two binary columns with
counts :math:`a \le b` and unit weights this is :math:`\rho \le \sqrt{a(n-b) / (b(n-a))}`, which is tight, because nested
columns attain it.) The feature itself can be eliminated. Let S be the weight of its nonzero samples.
:math:`W\mu_f^2 \le (S/W)\|f\|^2` (Cauchy-Schwarz), so :math:`\|f\| \le N_f/\sqrt{1-S/W}` and
:math:`\sqrt W|\mu_f| \le N_f\sqrt{(S/W)/(1-S/W)}`. With S replaced by the largest weight that c samples can have, the bound

.. math:: \max\big(T_z(c) + [\text{signs}]\sqrt S|\mu_z|,\ \sqrt S|\mu_z|\big) \big/ \big(N_z\sqrt{1 - S/W}\big)

(the bracket is 1 if there are negative values, else 0) depends on c only and increases with it. So each support feature has a
smallest number of nonzeros below which no feature is affiliated with it, and a pair costs one comparison of integers.

**Overlap** (sparse features). A pair without a common nonzero sample has the product :math:`-W\mu_f\mu_z`. If the support
features are given by sample, such pairs are never visited.

**All pairs**, counted by size and never stored. ``edges`` are the inner edges of the bins, increasing. ``at_least[k]`` counts
the pairs whose absolute correlation reaches ``edges[k]``. Each function adds the counts of its range of columns to
``at_least``, so that chunks can run on threads with their own counters.

**Common samples**: those in which both columns are known, pair by pair. Pearson's coefficient takes two passes to avoid
cancellation. It is used if the sums of all pairs at once would lose digits. Spearman's coefficient ranks each column among the
common samples; columns are given with their sorted positions, unknown values last.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# A pair is pruned only if its bound is below the threshold by this amount, which is far above rounding.
SAFETY = 1e-9
# Columns of a tile that are processed together: 4 KiB of float32, which fit into the first-level cache.
STRIP = 1024


@kernel()
def within_angle(score, score_shift, mean, norm, exemplar_norm, lowest, highest, wanted, start, stop):
    """Set bit k of ``wanted[f]`` if the angle bound does not exclude feature f and support feature k.

    The correlation of a feature with the exemplar is
    ``(score_f - score_shift * mean_f) / (norm_f * exemplar_norm)``. ``lowest`` and ``highest`` are the
    interval of each support feature.
    """
    for f in range(start, stop):
        wanted[f] = 0
        if norm[f] == 0.0:
            continue
        r = abs(score[f] - score_shift * mean[f]) / (norm[f] * exemplar_norm)
        for k in range(lowest.shape[0]):
            if lowest[k] <= r <= highest[k]:
                wanted[f] |= 1 << k


@kernel()
def min_nonzeros(indptr, squares, shares, total_weight, nonnegative, means, norms, threshold, fewest):
    """Compute the size bound: the number of nonzeros that a feature needs to reach the threshold with each support feature.

    ``squares`` are the weighted squares of the support features' entries, the largest of each first. ``shares`` are the
    largest shares of the total weight that 0, 1, 2, … samples can have. If no number suffices, the result is one more than
    the number of entries of the support feature.
    """
    for k in range(indptr.shape[0] - 1):
        largest = 0.0
        count = 0
        n_stored = indptr[k + 1] - indptr[k]
        while count <= n_stored:
            if count > 0:
                largest += squares[indptr[k] + count - 1]
            tail = np.sqrt(shares[count] * total_weight) * abs(means[k])
            top = np.sqrt(largest) if nonnegative else np.sqrt(largest) + tail
            remaining = np.sqrt(max(1.0 - shares[count], 0.0))
            if max(top, tail) >= (threshold - SAFETY) * norms[k] * remaining:
                break
            count += 1
        fewest[k] = count


@kernel()
def csc_cross(indptr, indices, values, other_indptr, other_indices, other_values, heads, symmetric, out):
    """Add the products of all columns of one sparse matrix with those of another to ``out``. ``heads`` contains zeros.

    The entries of each sample of the other matrix are linked in the order of their columns, so that only common samples of two
    columns cost time. The array ``heads`` has one entry per sample, of which only those of these samples are read. The sum of
    a pair is in the order of the samples of the first column, independent of other columns. If both matrices have the same
    columns (``symmetric``), each pair is computed once. In this case ``out`` must be zero, and the samples of all columns
    sorted.
    """
    n_others = other_indptr.shape[0] - 1
    begin = other_indptr[0]
    owner = np.empty(other_indptr[n_others] - begin, np.int32)
    following = np.empty(owner.shape[0], heads.dtype)  # the next entry of the same sample, counted from 1; 0 for none
    for b in range(n_others - 1, -1, -1):
        for p in range(other_indptr[b], other_indptr[b + 1]):
            i = other_indices[p]
            following[p - begin] = heads[i]
            heads[i] = p - begin + 1
            owner[p - begin] = b
    for a in range(indptr.shape[0] - 1):
        for p in range(indptr[a], indptr[a + 1]):
            q = heads[indices[p]] - 1
            while q >= 0 and not (symmetric and owner[q] > a):
                out[a, owner[q]] += values[p] * other_values[begin + q]
                q = following[q] - 1
    if symmetric:
        for a in range(indptr.shape[0] - 1):
            for b in range(a):
                out[b, a] = out[a, b]


@kernel()
def standardise(matrix, means, norms, first, out):
    """Compute ``out[f] = (matrix[f] - mean) / norm`` for the features from ``first`` on. Each feature is a row."""
    for f in range(matrix.shape[0]):
        mean = means[first + f]
        scale = 1.0 / norms[first + f]
        column = matrix[f]
        row = out[f]
        for i in range(column.shape[0]):
            row[i] = (column[i] - mean) * scale


@kernel(reorder=True)
def _dense_correlation(column, other, mean, other_mean, norms):
    """Return the correlation of two dense columns in double precision. ``norms`` is the product of their norms."""
    total = 0.0
    for i in range(column.shape[0]):
        total += (column[i] - mean) * (other[i] - other_mean)
    return total / norms


@kernel(reorder=True)
def _dense_product(column, vector, mean):
    """Return the product of a centred column with a vector in double precision."""
    total = 0.0
    for i in range(column.shape[0]):
        total += (column[i] - mean) * vector[i]
    return total


@kernel()
def pair_products(matrix, vectors, means, first, rows, positions, out):
    """Compute the product of the centred row ``rows[p]`` with the vector ``positions[p]``. Row 0 is the feature ``first``."""
    for p in range(rows.shape[0]):
        out[p] = _dense_product(matrix[rows[p]], vectors[positions[p]], means[first + rows[p]])


@kernel(reorder=True)
def _count_at_least(row, limit):
    """Return the number of values of a short row with ``|value| >= limit``. Sums of ones in float32 are exact and fast."""
    count = np.float32(0.0)
    one, none = np.float32(1.0), np.float32(0.0)
    for j in range(row.shape[0]):
        count += one if abs(row[j]) >= limit else none
    return int(count)


@kernel()
def tile_counts(tile, left, right, means, norms, first, other_first, edges, error, at_least, checked):
    r"""Count the correlations of a tile, whose error is at most ``error``. Values closer to an edge are recomputed.

    ``tile[i, j]`` approximates the correlation of the features ``first + i`` and ``other_first + j``, whose columns are
    ``left[i]`` and ``right[j]``. On the diagonal only ``j > i`` counts. ``checked[0]`` is increased by the number of
    correlations that were computed in double precision.
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
                certain = _count_at_least(row, np.float32(edges[k] + error))
                possible = _count_at_least(row, np.float32(edges[k] - error))
                if possible == 0:
                    break  # None reaches the next edge either.
                at_least[k] += certain
                if certain == possible:
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
    """Compute the correlation ``out[p]`` of the rows ``firsts[p]`` and ``seconds[p]`` of a matrix with features as rows."""
    for p in range(start, stop):
        a, b = firsts[p], seconds[p]
        out[p] = _dense_correlation(matrix[a], matrix[b], means[a], means[b], norms[a] * norms[b])


@kernel()
def csc_pair_correlations(indptr, indices, values, means, norms, n_samples, firsts, seconds, out, start, stop):
    """Do the same as :func:`dense_pair_correlations` for sorted sparse columns."""
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
    """Compute a 64-bit hash of each sparse column. ``bits`` are its values as unsigned integers."""
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
    """Compute whether the columns ``order[p]`` and ``order[p - 1]`` are equal. Columns with equal hashes are compared."""
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
def by_sample(indptr, indices, values, row_start, row_feature, row_value, position):
    """Fill the rows of a sparse matrix from its columns. ``position[p]`` is the row position of the column entry p."""
    next_position = row_start[:-1].copy()
    for j in range(indptr.shape[0] - 1):
        for p in range(indptr[j], indptr[j + 1]):
            q = next_position[indices[p]]
            next_position[indices[p]] = q + 1
            row_feature[q] = j
            row_value[q] = values[p]
            position[p] = q


@kernel()
def disjoint_counts(ratios, cumulative, edges, at_least, first_edge, last_edge):
    r"""Count all pairs of columns as if no two columns had a common sample.

    Such a pair has the correlation :math:`-\rho_a \rho_b` with :math:`\rho = \sqrt n\,\bar f / \|f - \bar f\|`. ``ratios``
    are the :math:`|\rho|` in decreasing order, ``cumulative`` the numbers of features up to each (with a leading zero). As the
    first factor decreases, fewer second factors are large enough, so one walk per edge suffices.
    """
    n_columns = ratios.shape[0]
    for k in range(first_edge, last_edge):
        n_partners = n_columns
        total = 0
        for a in range(n_columns):
            while n_partners > 0 and ratios[a] * ratios[n_partners - 1] < edges[k]:
                n_partners -= 1
            if n_partners == 0:
                break
            weight = cumulative[a + 1] - cumulative[a]
            others = cumulative[n_partners] - (weight if a < n_partners else 0)
            total += weight * others
        at_least[k] += total // 2


@kernel()
def pair_costs(indptr, indices, position, row_start, out, start, stop):
    """Compute the number of later entries in the samples of each column: the products in :func:`meeting_counts`."""
    for a in range(start, stop):
        total = 0
        for p in range(indptr[a], indptr[a + 1]):
            total += row_start[indices[p] + 1] - position[p] - 1
        out[a] = total


@kernel()
def meeting_counts(
    indptr, indices, values, position, row_start, row_feature, row_value, scales, ratios, weights, edges, at_least, start, stop
):
    r"""Correct the counts of :func:`disjoint_counts` for the pairs of columns with a common sample.

    The correlation of such a pair is :math:`f_a'f_b/(N_a N_b) - \rho_a\rho_b`; ``scales`` are the :math:`1/N`, ``ratios`` the
    signed :math:`\rho`. A pair counts with the product of the ``weights`` of its columns. Only later columns are visited, so
    the cost is the number of entries of a column's samples after it. Returns the number of pairs with a common sample.
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
            for q in range(position[p] + 1, row_start[indices[p] + 1]):
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
            disjoint = ratio * ratios[b]
            r = abs(sums[b] * (scale * scales[b]) - disjoint)
            disjoint = abs(disjoint)
            sums[b] = 0.0
            seen[b] = False
            if r < lowest and disjoint < lowest:
                continue
            weight = weights[a] * weights[b]
            for k in range(n_edges):
                if r >= edges[k]:
                    at_least[k] += weight
                if disjoint >= edges[k]:
                    at_least[k] -= weight
    return n_pairs


@kernel()
def common_pearson(rows, others, first, second, weight, fewest, out):
    """Compute Pearson's coefficient of the rows ``first[p]`` and ``second[p]`` of two (features, samples) blocks.

    It is 0 if it is undefined.
    """
    n_samples = rows.shape[1]
    for p in range(len(first)):
        a, b = first[p], second[p]
        n_common = 0
        total = 0.0
        mean_a = 0.0
        mean_b = 0.0
        for i in range(n_samples):
            x, y, w = rows[a, i], others[b, i], weight[i]
            if w > 0.0 and not np.isnan(x) and not np.isnan(y):
                n_common += 1
                total += w
                mean_a += w * x
                mean_b += w * y
        out[p] = 0.0
        if n_common < fewest:
            continue
        mean_a /= total
        mean_b /= total
        square_a = 0.0
        square_b = 0.0
        product = 0.0
        largest_a = 0.0
        largest_b = 0.0
        for i in range(n_samples):
            x, y, w = rows[a, i], others[b, i], weight[i]
            if w > 0.0 and not np.isnan(x) and not np.isnan(y):
                square_a += w * (x - mean_a) ** 2
                square_b += w * (y - mean_b) ** 2
                product += w * (x - mean_a) * (y - mean_b)
                largest_a = max(largest_a, abs(x))
                largest_b = max(largest_b, abs(y))
        # A constant minus its mean is not 0, but rounding.
        if square_a > total * (1e-14 * largest_a) ** 2 and square_b > total * (1e-14 * largest_b) ** 2:
            out[p] = product / np.sqrt(square_a * square_b)


@kernel()
def common_spearman(rows, order, others, other_order, first, second, weight, fewest, out):
    """Compute Spearman's coefficient of pairs of rows. ``order`` and ``other_order`` are their sorted positions."""
    n_samples = rows.shape[1]
    rank_a = np.empty(n_samples)
    rank_b = np.empty(n_samples)
    common = np.empty(n_samples, dtype=np.bool_)
    for p in range(len(first)):
        a, b = first[p], second[p]
        n_common = 0
        total = 0.0
        for i in range(n_samples):
            common[i] = weight[i] > 0.0 and not np.isnan(rows[a, i]) and not np.isnan(others[b, i])
            if common[i]:
                n_common += 1
                total += weight[i]
        out[p] = 0.0
        if n_common < fewest:
            continue
        square_a = _common_ranks(rows[a], order[a], common, weight, total, rank_a)
        square_b = _common_ranks(others[b], other_order[b], common, weight, total, rank_b)
        if square_a > 0.0 and square_b > 0.0:
            product = 0.0
            for i in range(n_samples):
                if common[i]:
                    product += weight[i] * rank_a[i] * rank_b[i]
            out[p] = product / np.sqrt(square_a * square_b)


@kernel()
def _common_ranks(values, order, common, weight, total, out):
    """Compute centred ranks of the common samples, ties averaged. Return the sum of their squares, 0 for equal values."""
    n_samples = len(values)
    below = 0.0
    squares = 0.0
    first = 0
    while first < n_samples:
        value = values[order[first]]
        if np.isnan(value):
            break
        last = first
        tied = 0.0
        while last < n_samples and values[order[last]] == value:
            if common[order[last]]:
                tied += weight[order[last]]
            last += 1
        if tied > 0.0:
            rank = 0.0 if tied == total else below + 0.5 * tied - 0.5 * total
            for p in range(first, last):
                out[order[p]] = rank
            squares += tied * rank * rank
        below += tied
        first = last
    return squares
