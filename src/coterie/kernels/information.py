r"""Entropies and symmetrical uncertainty of binned features: by histograms (dense and CSC), and by bits.

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

**By bits.** How often two bins meet is the number of bits that their sets share. The samples of a bin are a set of bits, 64 to
a word. Two features with B bins that have samples need :math:`(B-1)^2` intersections, since the first bins follow from the
counts of single bins. The words of eight support features stand side by side, so that a vector register counts all of them at
once: a *tile* has a word of each of them (a *lane* each) for their second bins, then for their third ones, and so on. All
counts are whole numbers, so they are exact in any order, and :math:`\tfrac cn\log\tfrac cn` is looked up. Only for samples
that count once or not at all.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel, popcount
from coterie.kernels.columns import record_pair

# A pair is only excluded when its bound is below the threshold by this much: far above rounding.
SAFETY = 1e-9
# The bin of samples that do not count, and of what fills up the last word.
NOWHERE = 255
# Support features of a tile: a register has a word of each.
TILE = 8
# Features that pass by a tile while its words are in the nearest cache.
_TOGETHER = 64
# A byte repeated, and all bits of bytes but the highest.
_ONES, _LOW = np.uint64(0x0101010101010101), np.uint64(0x7F7F7F7F7F7F7F7F)


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
    ``found``. For any weights and numbers of bins; :mod:`coterie.kernels.information` has the fast way for the usual ones.
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


@kernel()
def dense_bins(matrix, low, high, n_bins, weight, bins, first):
    """Bins of each row of a (features, samples) block as bytes; rows of ``bins`` are whole words long."""
    n_samples = matrix.shape[1]
    all_count = True
    for i in range(n_samples):
        all_count &= weight[i] > 0.0
    for f in range(matrix.shape[0]):
        row = matrix[f]
        out = bins[f]
        origin = low[first + f]
        width = high[first + f] - origin
        if width > 0.0:
            for i in range(n_samples):
                out[i] = max(min(int((np.float64(row[i]) - origin) / width * n_bins), n_bins - 1), 0)
        else:
            out[:n_samples] = 0
        out[n_samples:] = NOWHERE
        if not all_count:
            for i in range(n_samples):
                if weight[i] == 0.0:
                    out[i] = NOWHERE


@kernel()
def count_bins(bins, counts):
    """Samples in each bin of each row of bins.

    Four counters take turns: one that is raised twice in a row makes the second time wait for the first.
    """
    turns = np.empty((4, NOWHERE + 1), dtype=np.int64)
    for f in range(bins.shape[0]):
        row = bins[f]
        turns[:] = 0
        for i in range(0, row.shape[0], 4):
            turns[0, row[i]] += 1
            turns[1, row[i + 1]] += 1
            turns[2, row[i + 2]] += 1
            turns[3, row[i + 3]] += 1
        for b in range(counts.shape[1]):
            counts[f, b] = turns[0, b] + turns[1, b] + turns[2, b] + turns[3, b]


@kernel()
def bin_entropies(counts, total, terms, entropy, first):
    """Entropies of features from the counts of their bins."""
    for f in range(counts.shape[0]):
        result = 0.0
        for b in range(counts.shape[1]):
            if counts[f, b] > 0:
                result -= information_term(counts[f, b], total, terms)
        entropy[first + f] = result


@kernel()
def _pack(words, number, bits):
    """The samples of one bin as bits; the order of the samples is not that of the columns, but the same for all features.

    Of eight bytes at a time, those that are equal to the bin get their highest bit set, which is then shifted to its place.
    """
    n_words = bits.shape[0]
    pattern = np.uint64(number) * _ONES
    for w in range(n_words):
        packed = np.uint64(0)
        for j in range(8):
            apart = words[j * n_words + w] ^ pattern
            packed |= ~(((apart & _LOW) + _LOW) | apart | _LOW) >> np.uint64(7 - j)
        bits[w] = packed


@kernel()
def _pack_feature(words, n_bins, n_counted, bits, counts):
    """Bits and counts of the bins of a feature that have samples; returns how many these are."""
    n_used = 0
    seen = 0
    for b in range(n_bins):
        if seen == n_counted:
            break
        own = bits[n_used]
        _pack(words, b, own)
        count = 0
        for w in range(own.shape[0]):
            count += np.int64(popcount(own[w]))
        if count > 0:
            counts[n_used] = count
            n_used += 1
            seen += count
    return n_used


@kernel()
def fill_lanes(words, counts, lanes, margins):
    """Put the words of the bins of support features side by side, and the samples of these bins; only bins that have any.

    The lanes of a tile are those of its support features' second bins, then of their third ones; unused lanes stay 0.
    """
    bits = np.empty(lanes.shape[1], dtype=np.uint64)
    for k in range(words.shape[0]):
        lane = k % TILE - TILE
        for b in range(counts.shape[1]):
            if counts[k, b] > 0:
                if lane >= 0:
                    _pack(words[k], b, bits)
                    lanes[k // TILE, :, lane] = bits
                    margins[k // TILE, lane] = counts[k, b]
                lane += TILE


@kernel()
def _add_shared(lanes, n_lanes, bits, a, sums):
    """How many samples the lanes share with set number a.

    Rows are cut to the lanes that are used first: the compiler then knows that indices are not negative, and takes vectors.
    """
    n_words = lanes.shape[0]
    sums0 = sums[a, :n_lanes]
    for w in range(0, n_words - 3, 4):
        lane0, lane1, lane2, lane3 = lanes[w], lanes[w + 1], lanes[w + 2], lanes[w + 3]
        a0, a1, a2, a3 = bits[a, w], bits[a, w + 1], bits[a, w + 2], bits[a, w + 3]
        for q in range(n_lanes):
            two = popcount(lane0[q] & a0) + popcount(lane1[q] & a1)
            sums0[q] += np.int64(two + popcount(lane2[q] & a2) + popcount(lane3[q] & a3))
    for w in range(n_words - n_words % 4, n_words):
        lane0, a0 = lanes[w], bits[a, w]
        for q in range(n_lanes):
            sums0[q] += np.int64(popcount(lane0[q] & a0))


@kernel()
def _add_shared_by_three(lanes, n_lanes, bits, a, sums):
    """The same for the sets a, a + 1 and a + 2, which share what is read of the lanes."""
    n_words = lanes.shape[0]
    sums0, sums1, sums2 = sums[a, :n_lanes], sums[a + 1, :n_lanes], sums[a + 2, :n_lanes]
    for w in range(0, n_words - 3, 4):
        lane0, lane1, lane2, lane3 = lanes[w], lanes[w + 1], lanes[w + 2], lanes[w + 3]
        a0, a1, a2, a3 = bits[a, w], bits[a, w + 1], bits[a, w + 2], bits[a, w + 3]
        b0, b1, b2, b3 = bits[a + 1, w], bits[a + 1, w + 1], bits[a + 1, w + 2], bits[a + 1, w + 3]
        c0, c1, c2, c3 = bits[a + 2, w], bits[a + 2, w + 1], bits[a + 2, w + 2], bits[a + 2, w + 3]
        for q in range(n_lanes):
            w0, w1, w2, w3 = lane0[q], lane1[q], lane2[q], lane3[q]
            sums0[q] += np.int64(popcount(w0 & a0) + popcount(w1 & a1) + popcount(w2 & a2) + popcount(w3 & a3))
            sums1[q] += np.int64(popcount(w0 & b0) + popcount(w1 & b1) + popcount(w2 & b2) + popcount(w3 & b3))
            sums2[q] += np.int64(popcount(w0 & c0) + popcount(w1 & c1) + popcount(w2 & c2) + popcount(w3 & c3))
    for w in range(n_words - n_words % 4, n_words):
        lane0, a0, b0, c0 = lanes[w], bits[a, w], bits[a + 1, w], bits[a + 2, w]
        for q in range(n_lanes):
            sums0[q] += np.int64(popcount(lane0[q] & a0))
            sums1[q] += np.int64(popcount(lane0[q] & b0))
            sums2[q] += np.int64(popcount(lane0[q] & c0))


@kernel()
def _count_jointly(lanes, margins, n_lanes, bits, counts, n_used, firsts, sums):
    """Samples of each bin of a feature (a row each) in the first bins of a tile's support features, and in all other ones."""
    sums[1:n_used] = 0
    a = 1
    while a + 3 <= n_used:
        _add_shared_by_three(lanes, n_lanes, bits, a, sums)
        a += 3
    while a < n_used:
        _add_shared(lanes, n_lanes, bits, a, sums)
        a += 1
    rest = sums[0]
    for q in range(n_lanes):
        rest[q] = margins[q]
    for a in range(1, n_used):
        row = sums[a]
        for q in range(n_lanes):
            rest[q] -= row[q]
    for a in range(n_used):
        first, row = firsts[a], sums[a]
        for i in range(TILE):
            first[i] = counts[a]
        for s in range(n_lanes // TILE):
            part = row[s * TILE : (s + 1) * TILE]
            for i in range(TILE):
                first[i] -= part[i]


@kernel()
def _joint_entropies(firsts, sums, n_lanes, n_used, total, terms, joint):
    """Entropies from the joint counts of a tile, summed in the order of the bins, first those of the feature."""
    if total >= terms.shape[0]:
        joint[:] = 0.0
        for a in range(n_used):
            for i in range(TILE):
                joint[i] -= information_term(firsts[a, i], total, terms)
            for q in range(n_lanes):
                joint[q % TILE] -= information_term(sums[a, q], total, terms)
        return
    e0, e1, e2, e3, e4, e5, e6, e7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for a in range(n_used):
        for s in range(-1, n_lanes // TILE):
            row = firsts[a] if s < 0 else sums[a, s * TILE : (s + 1) * TILE]
            e0 -= terms[np.uint64(row[0])]  # eight sums in turn, since each waits for its last term
            e1 -= terms[np.uint64(row[1])]
            e2 -= terms[np.uint64(row[2])]
            e3 -= terms[np.uint64(row[3])]
            e4 -= terms[np.uint64(row[4])]
            e5 -= terms[np.uint64(row[5])]
            e6 -= terms[np.uint64(row[6])]
            e7 -= terms[np.uint64(row[7])]
    joint[0], joint[1], joint[2], joint[3] = e0, e1, e2, e3
    joint[4], joint[5], joint[6], joint[7] = e4, e5, e6, e7


@kernel()
def bit_uncertainties(
    words, n_bins, entropy, first, total, terms, lanes, margins, sizes, others, threshold, found
):  # fmt: skip
    """Rows (feature, k, uncertainty) with an uncertainty of at least the threshold, in no order; also the pairs evaluated.

    ``words`` are the bins of some features, eight to a word; ``sizes`` the lanes of each tile, ``others`` the entropies of the
    support features, rising. There is room for all pairs in ``found``.
    """
    n_tiles, n_words, width = lanes.shape
    n_supports = others.shape[0]
    bits = np.empty((_TOGETHER, n_bins + 1, n_words), dtype=np.uint64)
    counts = np.empty((_TOGETHER, n_bins), dtype=np.int64)
    n_used = np.empty(_TOGETHER, dtype=np.int64)
    begins, ends = np.empty(_TOGETHER, dtype=np.int64), np.empty(_TOGETHER, dtype=np.int64)
    firsts, sums = np.empty((n_bins, TILE), dtype=np.int64), np.empty((n_bins, width), dtype=np.int64)
    joint = np.empty(TILE)
    count = 0
    n_evaluated = 0
    for start in range(0, words.shape[0], _TOGETHER):
        n_together = min(_TOGETHER, words.shape[0] - start)
        for f in range(n_together):
            begins[f], ends[f] = reachable(entropy[first + start + f], others, threshold)
            if begins[f] < ends[f]:
                n_evaluated += ends[f] - begins[f]
                n_used[f] = _pack_feature(words[start + f], n_bins, np.int64(total), bits[f], counts[f])
        for t in range(n_tiles):
            for f in range(n_together):
                begin, end = max(begins[f], t * TILE), min(ends[f], (t + 1) * TILE, n_supports)
                if begin >= end:
                    continue
                _count_jointly(lanes[t], margins[t], sizes[t], bits[f], counts[f], n_used[f], firsts, sums)
                _joint_entropies(firsts, sums, sizes[t], n_used[f], total, terms, joint)
                for k in range(begin, end):
                    value = uncertainty_of(entropy[first + start + f], others[k], joint[k - t * TILE])
                    if value >= threshold:
                        count = record_pair(found, count, first + start + f, k, value)
    return count, n_evaluated
