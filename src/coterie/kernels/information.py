r"""Entropies and symmetrical uncertainty of binned features, by histograms (dense and CSC) or by bit sets.

A value x of a feature with range [low, high] belongs to bin
:math:`\min(\lfloor (x - low)\,B / (high - low)\rfloor, B - 1)` of B bins of equal width. The zeros of a sparse column are
counted in the bin of 0, from the number of stored entries. Entropies are in nats (the base cancels in the uncertainty), and
counts are sums of sample weights.

**Entropy bound.** :math:`I(f;z) \le \min(H_f, H_z)`, so :math:`U = 2I/(H_f+H_z) \le 2\min(H_f,H_z)/(H_f+H_z)`. A pair
whose entropies are too different is excluded without reading its samples.

**Bound on exclusive features.** Consider two sparse features for which no sample is outside the bin of 0 in both. If one is
outside, the other is not, and there is no further information: :math:`I(f;z) = I(A;B)` for the events A and B of being
outside, with probabilities p and q. Mutual information is at most the :math:`\chi^2` divergence from independence, here
:math:`\frac{p}{1-p}\frac{q}{1-q}`. So pairs without a common entry need no histogram unless p + q is close to 1.

**Bit sets.** The samples of a bin are a set of bits, 64 per word. The joint count of two bins is the number of bits in the
intersection of their sets. Two features with B nonempty bins need :math:`(B-1)^2` intersections, because the counts of the
first bins follow from the counts of single bins. The words of eight support features are interleaved, so that a vector
register counts all of them at once. A *tile* has one word per support feature (its *lane*) for their second bins, then for
their third bins, and so on. All counts are integers, so they are exact in any order, and :math:`\tfrac cn\log\tfrac cn` is
taken from a table. Bit sets require sample weights of 0 or 1.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel, popcount
from coterie.kernels.columns import record_pair

# A pair is excluded only if its bound is below the threshold by this amount, which is far above rounding.
SAFETY = 1e-9
# Bin of samples of weight zero, and of the padding of the last word.
NO_BIN = 255
# Support features per tile. A vector register has one word of each.
TILE = 8
# Features that are compared with a tile while its words are in the first-level cache.
_BATCH_FEATURES = 64
# The byte 1 repeated, and all bits except the highest bit of each byte.
_ONES, _LOW = np.uint64(0x0101010101010101), np.uint64(0x7F7F7F7F7F7F7F7F)


@kernel()
def dense_ranges(matrix, weight, low, high, first):
    """Compute the smallest and largest value of each row of a (features, samples) block, without samples of weight zero."""
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
    """Compute the smallest and largest value of each sparse column, zeros included. ``n_weighted`` samples have a weight."""
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
    """Return the bin of a value in a range, the nearest bin for a value outside, and 0 if the range is a point."""
    if high <= low:
        return 0
    return max(min(int((value - low) / (high - low) * n_bins), n_bins - 1), 0)


@kernel()
def information_terms(size, total):
    """Return ``c/total * log(c/total)`` for the counts c = 0, 1, … below ``size``."""
    terms = np.zeros(size)
    for count in range(1, size):
        share = count / total
        terms[count] = share * np.log(share)
    return terms


@kernel()
def information_term(count, total, terms):
    """Return ``c/total * log(c/total)`` for an integer count, from the table if it is large enough."""
    if count < terms.shape[0]:
        return terms[count]
    share = count / total
    return share * np.log(share)


@kernel()
def _entropy(counts, total, terms):
    """Return the entropy of counts with a given total. Integer counts use the table."""
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
    """Compute the entropy of each binned row of a (features, samples) block. ``terms`` is empty for fractional weights."""
    counts = np.empty(n_bins)
    for f in range(matrix.shape[0]):
        counts[:] = 0.0
        for i in range(matrix.shape[1]):
            counts[bin_of(np.float64(matrix[f, i]), low[first + f], high[first + f], n_bins)] += weight[i]
        entropy[first + f] = _entropy(counts, total, terms)


@kernel()
def csc_entropies(indptr, indices, values, low, high, n_bins, weight, total, terms, entropy, first):
    """Compute the entropy of each binned sparse column."""
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
    """Return the symmetrical uncertainty from two entropies and the joint entropy."""
    if own + other <= 0.0:
        return 0.0
    return min(max(2.0 * (own + other - joint) / (own + other), 0.0), 1.0)


@kernel()
def _excluded(own, other, threshold):
    """Return True if the entropy bound excludes a pair."""
    return 2.0 * min(own, other) < (threshold - SAFETY) * (own + other)


@kernel()
def reachable(own, others, threshold):
    """Return the range of the increasing entropies ``others`` that the entropy bound does not exclude.

    The range is empty for a constant feature.
    """
    if own <= 0.0:
        return 0, 0
    nearest = np.searchsorted(others, own)
    low, high = 0, nearest
    while low < high:  # Smaller entropies are excluded up to some position.
        middle = (low + high) // 2
        if _excluded(own, others[middle], threshold):
            low = middle + 1
        else:
            high = middle
    begin = low
    low, high = nearest, others.shape[0]
    while low < high:  # Larger entropies are excluded from some position on.
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
    """Find rows (feature, k, uncertainty) that reach the threshold. Return their number and the number of evaluated pairs.

    ``bins[k]`` are the bins of support feature k, and ``bins_entropy`` their entropies, increasing. ``found`` has capacity for
    all pairs. Works for any weights and numbers of bins; :func:`bit_uncertainties` is faster for weights of 0 or 1.
    """
    joint = np.empty(n_bins * n_bins)
    own_bins = np.empty(matrix.shape[1], dtype=np.uint8)
    count = np.int64(0)
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
    starts, owners, owner_bins, rest, counts, bins_entropy, threshold, found, first,
):  # fmt: skip
    """Do the same as :func:`dense_uncertainties` from the stored entries of both features. Rows are unordered.

    The support features are given by sample: those with an entry for sample i are ``owners[starts[i]:starts[i + 1]]``, and the
    bins of these entries are in ``owner_bins``. The other samples of support feature k are in bin ``rest[k]``, and
    ``counts[k]`` is the weight of each of its bins. The joint weight of a column's zeros and a bin is the weight of the bin
    minus that of the column's stored entries in it. Pairs without a common entry outside these bins are subject to the bound
    on exclusive features.
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
    last_feature = np.full(n_supports, -1)
    whole = terms.shape[0] > 0
    count = np.int64(0)
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
            for q in range(starts[i], starts[i + 1]):
                k = owners[q]
                if begin <= k < end:
                    if last_feature[k] != f:
                        last_feature[k] = f
                        joint[k] = 0.0
                    joint[k, own_bin, owner_bins[q]] += weight[i]
        n_own = 0
        for b in range(n_bins):
            if b == zero or own_counts[b] > 0.0:
                own_used[n_own] = b
                n_own += 1
        own_odds = outside / max(total - outside, 0.0)
        for k in range(begin, end):
            if last_feature[k] != f:
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
    """Complete the joint weights of two features, given those of the samples with entries in both.

    ``rows`` and ``columns`` are the bins with nonzero weight. Differences of sums have rounding errors, so remainders below
    ``least`` count as zero.
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
    """Return the entropy of joint weights, of which only some rows and columns are nonzero."""
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
    """Compute the bins of each row of a (features, samples) block as bytes. Rows of ``bins`` are padded to whole words."""
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
        out[n_samples:] = NO_BIN
        if not all_count:
            for i in range(n_samples):
                if weight[i] == 0.0:
                    out[i] = NO_BIN


@kernel()
def count_bins(bins, counts):
    """Count the samples in each bin of each row of bins.

    Four counters alternate, because incrementing the same counter twice in a row stalls the processor.
    """
    counters = np.empty((4, NO_BIN + 1), dtype=np.int64)
    for f in range(bins.shape[0]):
        row = bins[f]
        counters[:] = 0
        for i in range(0, row.shape[0], 4):
            counters[0, row[i]] += 1
            counters[1, row[i + 1]] += 1
            counters[2, row[i + 2]] += 1
            counters[3, row[i + 3]] += 1
        for b in range(counts.shape[1]):
            counts[f, b] = counters[0, b] + counters[1, b] + counters[2, b] + counters[3, b]


@kernel()
def bin_entropies(counts, total, terms, entropy, first):
    """Compute the entropies of features from the counts of their bins."""
    for f in range(counts.shape[0]):
        result = 0.0
        for b in range(counts.shape[1]):
            if counts[f, b] > 0:
                result -= information_term(counts[f, b], total, terms)
        entropy[first + f] = result


@kernel()
def _pack(words, number, bits):
    """Pack the samples of one bin into bits. Their order differs from that of the columns, but is the same for all features.

    In each group of eight bytes, the highest bit of those equal to the bin is set and then shifted to its position.
    """
    n_words = bits.shape[0]
    pattern = np.uint64(number) * _ONES
    for w in range(n_words):
        packed = np.uint64(0)
        for j in range(8):
            difference = words[j * n_words + w] ^ pattern
            packed |= ~(((difference & _LOW) + _LOW) | difference | _LOW) >> np.uint64(7 - j)
        bits[w] = packed


@kernel()
def _pack_feature(words, n_bins, n_counted, bits, counts):
    """Compute the bits and counts of the nonempty bins of a feature. Return their number."""
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
    """Interleave the words of the nonempty bins of support features, and write the counts of these bins.

    The lanes of a tile are those of its support features' second bins, then of their third bins. Unused lanes stay 0.
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
    """Add the number of samples that each lane shares with set number a.

    Rows are sliced to the used lanes first, which shows the compiler that indices are not negative, so that it uses vectors.
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
    """Do the same for the sets a, a + 1 and a + 2 while reading the lanes once."""
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
    """Count the samples of each bin of a feature (one row each) in the first and the other bins of a tile's supports."""
    sums[1:n_used] = 0
    a = np.int64(1)
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
    """Compute the joint entropies of a tile, summed in the order of the feature's bins, then the support features' bins."""
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
            e0 -= terms[np.uint64(row[0])]  # Eight independent sums avoid waiting for the previous addition.
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
    """Find rows (feature, k, uncertainty) that reach the threshold, unordered. Return their number and the evaluated pairs.

    ``words`` are the bins of some features, eight per word, ``sizes`` the numbers of lanes of each tile, and ``others`` the
    entropies of the support features, increasing. ``found`` has capacity for all pairs.
    """
    n_tiles, n_words, width = lanes.shape
    n_supports = others.shape[0]
    bits = np.empty((_BATCH_FEATURES, n_bins + 1, n_words), dtype=np.uint64)
    counts = np.empty((_BATCH_FEATURES, n_bins), dtype=np.int64)
    n_used = np.empty(_BATCH_FEATURES, dtype=np.int64)
    starts, ends = np.empty(_BATCH_FEATURES, dtype=np.int64), np.empty(_BATCH_FEATURES, dtype=np.int64)
    firsts, sums = np.empty((n_bins, TILE), dtype=np.int64), np.empty((n_bins, width), dtype=np.int64)
    joint = np.empty(TILE)
    count = np.int64(0)
    n_evaluated = 0
    for start in range(0, words.shape[0], _BATCH_FEATURES):
        n_batch = min(_BATCH_FEATURES, words.shape[0] - start)
        for f in range(n_batch):
            starts[f], ends[f] = reachable(entropy[first + start + f], others, threshold)
            if starts[f] < ends[f]:
                n_evaluated += ends[f] - starts[f]
                n_used[f] = _pack_feature(words[start + f], n_bins, np.int64(total), bits[f], counts[f])
        for t in range(n_tiles):
            for f in range(n_batch):
                begin, end = max(starts[f], t * TILE), min(ends[f], (t + 1) * TILE, n_supports)
                if begin >= end:
                    continue
                _count_jointly(lanes[t], margins[t], sizes[t], bits[f], counts[f], n_used[f], firsts, sums)
                _joint_entropies(firsts, sums, sizes[t], n_used[f], total, terms, joint)
                for k in range(begin, end):
                    value = uncertainty_of(entropy[first + start + f], others[k], joint[k - t * TILE])
                    if value >= threshold:
                        count = record_pair(found, count, first + start + f, k, value)
    return count, n_evaluated
