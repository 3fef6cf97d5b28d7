r"""Symmetrical uncertainty of binned features by bits: how often two bins meet is the number of bits that their sets share.

The samples of a bin are a set of bits, 64 to a word. Two features with B bins that have samples need :math:`(B-1)^2`
intersections, since the first bins follow from the counts of single bins. The words of eight support features stand side by
side, so that a vector register counts all of them at once: a *tile* has a word of each of them (a *lane* each) for their
second bins, then for their third ones, and so on. All counts are whole numbers, so they are exact in any order, and
:math:`\tfrac cn\log\tfrac cn` is looked up. Only for samples that count once or not at all.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel, popcount
from coterie.kernels.columns import record_pair
from coterie.kernels.information import information_term, reachable, uncertainty_of

# The bin of samples that do not count, and of what fills up the last word.
NOWHERE = 255
# Support features of a tile: a register has a word of each.
TILE = 8
# Features that pass by a tile while its words are in the nearest cache.
_TOGETHER = 64
# A byte repeated, and all bits of bytes but the highest.
_ONES, _LOW = np.uint64(0x0101010101010101), np.uint64(0x7F7F7F7F7F7F7F7F)


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

    The lanes of a tile are those of its support features' second bins, then of their third ones; lanes of nobody stay 0.
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
