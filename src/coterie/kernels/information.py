r"""Entropies and symmetrical uncertainty of binned features, dense and CSC twins side by side.

A value x of a feature with range [low, high] falls into bin
:math:`\min(\lfloor (x - low)\,B / (high - low)\rfloor, B - 1)` of B bins of equal width; the zeros of a sparse
column are counted in the bin that holds 0, from the number of entries that are stored. Entropies are
in nats (the base cancels in the uncertainty), counts are sums of sample weights.

**Entropy bound.** :math:`I(f;z) \le \min(H_f, H_z)`, so :math:`U = 2I/(H_f+H_z) \le 2\min(H_f,H_z)/(H_f+H_z)`: a pair
whose entropies are too different is excluded without looking at its samples.

**Bound on exclusive features.** Of two sparse features that are nowhere both outside of the bin that holds 0, one that is
outside tells that the other is not, and nothing else: :math:`I(f;z) = I(A;B)` for the events A and B of being outside, of
probabilities p and q. Mutual information is at most the :math:`\chi^2` divergence from independence, here
:math:`\frac{p}{1-p}\frac{q}{1-q}`. So pairs without a common entry need no histogram unless p + q is near 1.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel
from coterie.kernels.columns import record_pair

# A pair is only excluded when its bound is below the threshold by this much: far above rounding.
SAFETY = 1e-9


@kernel()
def dense_ranges(matrix, weight, low, high, first):
    """Smallest and largest value of each row of a (features, samples) block; samples of weight zero do not count."""
    for f in range(matrix.shape[0]):
        smallest = np.inf
        largest = -np.inf
        for i in range(matrix.shape[1]):
            if weight[i] > 0.0:
                value = np.float64(matrix[f, i])
                smallest = min(smallest, value)
                largest = max(largest, value)
        low[first + f] = smallest
        high[first + f] = largest


@kernel()
def csc_ranges(indptr, indices, values, weight, n_weighted, low, high, first):
    """Smallest and largest value of each sparse column, zeros included; ``n_weighted`` samples have a weight."""
    for f in range(indptr.shape[0] - 1):
        smallest = np.inf
        largest = -np.inf
        n_stored = 0
        for p in range(indptr[f], indptr[f + 1]):
            if weight[indices[p]] > 0.0:
                value = np.float64(values[p])
                smallest = min(smallest, value)
                largest = max(largest, value)
                n_stored += 1
        if n_stored < n_weighted:
            smallest = min(smallest, 0.0)
            largest = max(largest, 0.0)
        low[first + f] = smallest
        high[first + f] = largest


@kernel()
def bin_of(value, low, high, n_bins):
    """Bin of a value in a range (the nearest bin for one outside of it); 0 where the range is a point."""
    if high <= low:
        return 0
    return max(min(int((value - low) / (high - low) * n_bins), n_bins - 1), 0)


@kernel()
def information_terms(size, total):
    """``c/total * log(c/total)`` for the counts c = 0, 1, … below ``size``."""
    terms = np.zeros(size)
    for count in range(1, size):
        share = count / total
        terms[count] = share * np.log(share)
    return terms


@kernel()
def information_term(count, total, terms):
    """The same for one count (a whole number), from the table as far as it reaches."""
    if count < terms.shape[0]:
        return terms[count]
    share = count / total
    return share * np.log(share)


@kernel()
def _entropy(counts, total, terms):
    """Entropy of counts with a given total: by the table if there is one, as it is for whole numbers."""
    result = 0.0
    if terms.shape[0] > 0:
        for count in counts:
            result -= information_term(np.int64(count), total, terms)
        return result
    for count in counts:
        if count > 0.0:
            share = count / total
            result -= share * np.log(share)
    return result


@kernel()
def dense_entropies(matrix, low, high, n_bins, weight, total, terms, entropy, first):
    """Entropy of each binned row of a (features, samples) block; ``terms`` is empty for weights that are not whole numbers."""
    counts = np.empty(n_bins)
    for f in range(matrix.shape[0]):
        counts[:] = 0.0
        for i in range(matrix.shape[1]):
            counts[bin_of(np.float64(matrix[f, i]), low[first + f], high[first + f], n_bins)] += weight[i]
        entropy[first + f] = _entropy(counts, total, terms)


@kernel()
def csc_entropies(indptr, indices, values, low, high, n_bins, weight, total, terms, entropy, first):
    """Entropy of each binned sparse column."""
    counts = np.empty(n_bins)
    for f in range(indptr.shape[0] - 1):
        counts[:] = 0.0
        stored = 0.0
        for p in range(indptr[f], indptr[f + 1]):
            w = weight[indices[p]]
            counts[bin_of(np.float64(values[p]), low[first + f], high[first + f], n_bins)] += w
            stored += w
        counts[bin_of(0.0, low[first + f], high[first + f], n_bins)] += max(total - stored, 0.0)
        entropy[first + f] = _entropy(counts, total, terms)


@kernel()
def uncertainty_of(own, other, joint):
    """Symmetrical uncertainty from two entropies and the joint one."""
    if own + other <= 0.0:
        return 0.0
    return min(max(2.0 * (own + other - joint) / (own + other), 0.0), 1.0)


@kernel()
def _excluded(own, other, threshold):
    """The entropy bound."""
    return 2.0 * min(own, other) < (threshold - SAFETY) * (own + other)


@kernel()
def reachable(own, others, threshold):
    """Begin and end of those of some rising entropies that the entropy bound does not exclude; none for a constant feature."""
    if own <= 0.0:
        return 0, 0
    nearest = np.searchsorted(others, own)
    low, high = 0, nearest
    while low < high:  # smaller entropies are excluded up to some place
        middle = (low + high) // 2
        if _excluded(own, others[middle], threshold):
            low = middle + 1
        else:
            high = middle
    begin = low
    low, high = nearest, others.shape[0]
    while low < high:  # and larger ones from some place on
        middle = (low + high) // 2
        if _excluded(own, others[middle], threshold):
            high = middle
        else:
            low = middle + 1
    return begin, low


@kernel()
def dense_uncertainties(
    matrix, low, high, n_bins, weight, total, terms, entropy, bins, bins_entropy, threshold, found, first
):  # fmt: skip
    """Rows (feature, k, uncertainty) with an uncertainty of at least the threshold; also the pairs evaluated.

    ``bins[k]`` are the bins of support feature k, ``bins_entropy`` their entropies, rising. There is room for all pairs in
    ``found``. For any weights and numbers of bins; :mod:`coterie.kernels.joint_counts` has the fast way for the usual ones.
    """
    joint = np.empty(n_bins * n_bins)
    own_bins = np.empty(matrix.shape[1], dtype=np.uint8)
    count = 0
    n_evaluated = 0
    for f in range(matrix.shape[0]):
        own = entropy[first + f]
        begin, end = reachable(own, bins_entropy, threshold)
        if begin >= end:
            continue
        n_evaluated += end - begin
        for i in range(matrix.shape[1]):
            own_bins[i] = bin_of(np.float64(matrix[f, i]), low[first + f], high[first + f], n_bins)
        for k in range(begin, end):
            joint[:] = 0.0
            for i in range(matrix.shape[1]):
                joint[own_bins[i] * n_bins + bins[k, i]] += weight[i]
            value = uncertainty_of(own, bins_entropy[k], _entropy(joint, total, terms))
            if value >= threshold:
                count = record_pair(found, count, first + f, k, value)
    return count, n_evaluated


@kernel()
def csc_uncertainties(
    indptr, indices, values, low, high, n_bins, weight, total, terms, entropy,
    begins, owners, owner_bins, rest, counts, bins_entropy, threshold, found, first,
):  # fmt: skip
    """Like :func:`dense_uncertainties`, from the stored entries only, of both features of a pair; rows in no order.

    The support features come by samples: those that have an entry for sample i stand at ``begins[i]:begins[i + 1]`` in
    ``owners``, with the bins of these entries in ``owner_bins``. The other samples of support feature k are in bin
    ``rest[k]``; ``counts[k]`` is the weight of each of its bins. What the zeros of a column share with a bin is what its
    stored entries leave of that bin. A pair without a common entry outside of these bins is held to the bound on exclusive
    features.
    """
    n_supports = rest.shape[0]
    joint = np.empty((n_supports, n_bins, n_bins))
    own_counts = np.empty(n_bins)
    own_used = np.empty(n_bins, np.int64)
    used = np.empty((n_supports, n_bins), np.int64)
    n_used = np.zeros(n_supports, np.int64)
    odds = np.empty(n_supports)
    for k in range(n_supports):
        for b in range(n_bins):
            if counts[k, b] > 0.0:
                used[k, n_used[k]] = b
                n_used[k] += 1
        odds[k] = max(total - counts[k, rest[k]], 0.0) / counts[k, rest[k]]
    met = np.full(n_supports, -1)
    whole = terms.shape[0] > 0
    count = 0
    n_evaluated = 0
    for f in range(indptr.shape[0] - 1):
        own = entropy[first + f]
        begin, end = reachable(own, bins_entropy, threshold)
        if begin >= end:
            continue
        zero = bin_of(0.0, low[first + f], high[first + f], n_bins)
        own_counts[:] = 0.0
        outside = 0.0
        for p in range(indptr[f], indptr[f + 1]):
            i = indices[p]
            own_bin = bin_of(np.float64(values[p]), low[first + f], high[first + f], n_bins)
            if whole and own_bin == zero:
                continue
            own_counts[own_bin] += weight[i]
            outside += weight[i]
            for q in range(begins[i], begins[i + 1]):
                k = owners[q]
                if begin <= k < end:
                    if met[k] != f:
                        met[k] = f
                        joint[k] = 0.0
                    joint[k, own_bin, owner_bins[q]] += weight[i]
        n_own = 0
        for b in range(n_bins):
            if b == zero or own_counts[b] > 0.0:
                own_used[n_own] = b
                n_own += 1
        own_odds = outside / max(total - outside, 0.0)
        for k in range(begin, end):
            if met[k] != f:
                if 2.0 * own_odds * odds[k] < (threshold - SAFETY) * (own + bins_entropy[k]):
                    continue
                joint[k] = 0.0
            n_evaluated += 1
            rows, columns = own_used[:n_own], used[k, : n_used[k]]
            _fill_in_zeros(joint[k], rows, own_counts, columns, counts[k], rest[k], zero, 1e-12 * total)
            value = uncertainty_of(own, bins_entropy[k], _joint_entropy(joint[k], rows, columns, total, terms))
            if value >= threshold:
                count = record_pair(found, count, first + f, k, value)
    return count, n_evaluated


@kernel()
def _fill_in_zeros(joint, rows, own_counts, columns, other_counts, rest, zero, least):
    """Complete the joint weights of two features from those of the samples that both have entries for.

    ``rows`` and ``columns`` are the bins that have any weight. Differences of sums leave rounding where nothing is left: what
    is below ``least`` is nothing.
    """
    for a in rows:
        left = own_counts[a]
        for b in columns:
            left -= joint[a, b]
        if left >= least:
            joint[a, rest] += left
    for b in columns:
        left = other_counts[b]
        for a in rows:
            left -= joint[a, b]
        if left >= least:
            joint[zero, b] += left


@kernel()
def _joint_entropy(joint, rows, columns, total, terms):
    """Entropy of joint weights, of which only some rows and columns are not zero."""
    result = 0.0
    if terms.shape[0] > 0:
        for a in rows:
            for b in columns:
                result -= information_term(np.int64(joint[a, b]), total, terms)
        return result
    for a in rows:
        for b in columns:
            if joint[a, b] > 0.0:
                share = joint[a, b] / total
                result -= share * np.log(share)
    return result
