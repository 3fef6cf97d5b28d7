r"""Entropies and symmetrical uncertainty of binned features, dense and CSC twins side by side.

A value x of a feature with range [low, high] falls into bin
:math:`\min(\lfloor (x - low)\,B / (high - low)\rfloor, B - 1)` of B bins of equal width; the zeros of a sparse
column are counted in the bin that holds 0, from the number of entries that are stored. Entropies are
in nats (the base cancels in the uncertainty), counts are sums of sample weights.

**Entropy bound.** :math:`I(f;z) \le \min(H_f, H_z)`, so :math:`U = 2I/(H_f+H_z) \le 2\min(H_f,H_z)/(H_f+H_z)`: a pair
whose entropies are too different is excluded without looking at its samples.
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
def _entropy(counts, total):
    """Entropy of counts (of any shape, flattened) with a given total."""
    result = 0.0
    for count in counts:
        if count > 0.0:
            share = count / total
            result -= share * np.log(share)
    return result


@kernel()
def dense_entropies(matrix, low, high, n_bins, weight, total, entropy, first):
    """Entropy of each binned row of a (features, samples) block."""
    counts = np.empty(n_bins)
    for f in range(matrix.shape[0]):
        counts[:] = 0.0
        for i in range(matrix.shape[1]):
            counts[bin_of(np.float64(matrix[f, i]), low[first + f], high[first + f], n_bins)] += weight[i]
        entropy[first + f] = _entropy(counts, total)


@kernel()
def csc_entropies(indptr, indices, values, low, high, n_bins, weight, total, entropy, first):
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
        entropy[first + f] = _entropy(counts, total)


@kernel()
def _uncertainty(own, other, joint):
    """Symmetrical uncertainty from two entropies and the joint one."""
    if own + other <= 0.0:
        return 0.0
    return min(max(2.0 * (own + other - joint) / (own + other), 0.0), 1.0)


@kernel()
def _excluded(own, other, threshold):
    """The entropy bound."""
    return 2.0 * min(own, other) < (threshold - SAFETY) * (own + other)


@kernel()
def dense_uncertainties(
    matrix, low, high, n_bins, weight, total, entropy, bins, bins_entropy, threshold, found, first
):  # fmt: skip
    """Rows (feature, k, uncertainty) with an uncertainty of at least the threshold; also the pairs evaluated.

    ``bins[k]`` are the bins of support feature k. The rows go into ``found``; their number may be larger
    than the room there (then the call is to be repeated with more).
    """
    joint = np.empty(n_bins * n_bins)
    own_bins = np.empty(matrix.shape[1], dtype=np.uint8)
    count = 0
    n_evaluated = 0
    for f in range(matrix.shape[0]):
        own = entropy[first + f]
        if own <= 0.0:
            continue
        ready = False
        for k in range(bins.shape[0]):
            if _excluded(own, bins_entropy[k], threshold):
                continue
            if not ready:
                for i in range(matrix.shape[1]):
                    own_bins[i] = bin_of(np.float64(matrix[f, i]), low[first + f], high[first + f], n_bins)
                ready = True
            n_evaluated += 1
            joint[:] = 0.0
            for i in range(matrix.shape[1]):
                joint[own_bins[i] * n_bins + bins[k, i]] += weight[i]
            value = _uncertainty(own, bins_entropy[k], _entropy(joint, total))
            if value >= threshold:
                count = record_pair(found, count, first + f, k, value)
    return count, n_evaluated


@kernel()
def csc_uncertainties(
    indptr, indices, values, low, high, n_bins, weight, total, entropy,
    begins, owners, owner_bins, rest, counts, bins_entropy, threshold, found, first,
):  # fmt: skip
    """Like :func:`dense_uncertainties`, from the stored entries only, of both features of a pair.

    The support features come by samples: those that have an entry for sample i stand at ``begins[i]:begins[i + 1]`` in
    ``owners``, with the bins of these entries in ``owner_bins``. The other samples of support feature k are in bin
    ``rest[k]``; ``counts[k]`` is the weight of each of its bins. What the zeros of a column share with a bin is what its
    stored entries leave of that bin.
    """
    n_supports = rest.shape[0]
    joint = np.empty((n_supports, n_bins, n_bins))
    own_counts = np.empty(n_bins)
    wanted = np.empty(n_supports, np.bool_)
    count = 0
    n_evaluated = 0
    for f in range(indptr.shape[0] - 1):
        own = entropy[first + f]
        if own <= 0.0:
            continue
        n_wanted = 0
        for k in range(n_supports):
            wanted[k] = not _excluded(own, bins_entropy[k], threshold)
            if wanted[k]:
                joint[k] = 0.0
                n_wanted += 1
        if n_wanted == 0:
            continue
        n_evaluated += n_wanted
        own_counts[:] = 0.0
        for p in range(indptr[f], indptr[f + 1]):
            i = indices[p]
            own_bin = bin_of(np.float64(values[p]), low[first + f], high[first + f], n_bins)
            own_counts[own_bin] += weight[i]
            for q in range(begins[i], begins[i + 1]):
                if wanted[owners[q]]:
                    joint[owners[q], own_bin, owner_bins[q]] += weight[i]
        zero = bin_of(0.0, low[first + f], high[first + f], n_bins)
        for k in range(n_supports):
            if wanted[k]:
                _fill_in_zeros(joint[k], own_counts, counts[k], rest[k], zero, 1e-12 * total)
                value = _uncertainty(own, bins_entropy[k], _entropy(joint[k].ravel(), total))
                if value >= threshold:
                    count = record_pair(found, count, first + f, k, value)
    return count, n_evaluated


@kernel()
def _fill_in_zeros(joint, own_counts, other_counts, rest, zero, least):
    """Complete the joint weights of two features from those of the samples that both have entries for.

    Differences of sums leave rounding where nothing is left: what is below ``least`` is nothing.
    """
    n_bins = joint.shape[0]
    for a in range(n_bins):
        left = own_counts[a]
        for b in range(n_bins):
            left -= joint[a, b]
        if left >= least:
            joint[a, rest] += left
    for b in range(n_bins):
        left = other_counts[b]
        for a in range(n_bins):
            left -= joint[a, b]
        if left >= least:
            joint[zero, b] += left
