"""Classes of samples with equal values, refined by further values."""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# Multipliers of the hash function (splitmix64).
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9], dtype=np.uint64)


@kernel()
def number_pairs(owner, bits, pair, pair_owner, pair_bits, counts):
    """Number the distinct pairs of a sample's class and its row of ``bits``, in the order of their first samples.

    Writes the number of each sample to ``pair``, and the class, the bits and the number of samples of each pair to the other
    arrays. Returns the number of pairs, or -1 if there are more than these arrays can hold.
    """
    most = pair_owner.shape[0]
    capacity = 64
    while capacity < 4 * most:
        capacity *= 2
    slots = np.full(capacity, -1, dtype=np.int32)
    last = np.uint64(capacity - 1)
    shift = np.uint64(32)
    n_pairs = 0
    for i in range(owner.shape[0]):
        key = (np.uint64(owner[i]) + np.uint64(1)) * _FACTORS[0]
        for c in range(bits.shape[1]):
            key = (key ^ bits[i, c]) * _FACTORS[1]
            key ^= key >> shift
        slot = np.int64(key & last)
        while True:
            p = slots[slot]
            if p < 0:
                if n_pairs == most:
                    return -1
                p = n_pairs
                n_pairs += 1
                slots[slot] = p
                pair_owner[p] = owner[i]
                for c in range(bits.shape[1]):
                    pair_bits[p, c] = bits[i, c]
                counts[p] = 0
                break
            same = pair_owner[p] == owner[i]
            for c in range(bits.shape[1]):
                same = same and pair_bits[p, c] == bits[i, c]
            if same:
                break
            slot = (slot + 1) & (capacity - 1)
        counts[p] += 1
        pair[i] = p
    return n_pairs


@kernel()
def move_samples(pair, new_class, position, owner, moved):
    """Set the class of each sample to that of its pair. Write the samples of pairs with a position from there to ``moved``."""
    for i in range(pair.shape[0]):
        p = pair[i]
        if position[p] >= 0:
            owner[i] = new_class[p]
            moved[position[p]] = i
            position[p] += 1
