"""Proximal steps of penalties that make coefficients equal: the sorted L1 norm, and fusion over a graph."""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel


@kernel()
def decreasing_fit(values, sums, starts):
    """Closest non-increasing, non-negative sequence to ``values``, in place, by pooling adjacent violators.

    ``sums`` and ``starts`` are room for as many blocks as there are values.
    """
    n = values.shape[0]
    n_blocks = 0
    for i in range(n):
        sums[n_blocks] = values[i]
        starts[n_blocks] = i
        n_blocks += 1
        end = i + 1
        # A block that is larger than the one before it is pooled with it.
        while n_blocks > 1:
            last = sums[n_blocks - 1] / (end - starts[n_blocks - 1])
            before = sums[n_blocks - 2] / (starts[n_blocks - 1] - starts[n_blocks - 2])
            if before > last:
                break
            sums[n_blocks - 2] += sums[n_blocks - 1]
            n_blocks -= 1
    for b in range(n_blocks):
        end = starts[b + 1] if b + 1 < n_blocks else n
        level = max(sums[b] / (end - starts[b]), 0.0)
        for i in range(starts[b], end):
            values[i] = level


@kernel()
def fuse(point, first, second, sign, bound, dual, precision, max_sweeps):
    r"""Subtract from ``point`` what fusion takes: coordinate ascent on the dual of its proximal step.

    The step of :math:`\sum_e b_e |w_{i} - s_e w_{j}|` at v is :math:`u = v - D'z` with z the minimiser of
    :math:`\tfrac12\|v - D'z\|^2` over :math:`|z_e| \le b_e`, where edge e has +1 for i and :math:`-s_e` for j.
    ``point`` holds v and becomes u; ``dual`` holds a first guess of z and becomes z. Ends when no edge
    of a sweep changes by more than ``precision``; returns the number of sweeps.
    """
    n_edges = first.shape[0]
    for e in range(n_edges):
        dual[e] = min(max(dual[e], -bound[e]), bound[e])
        point[first[e]] -= dual[e]
        point[second[e]] += sign[e] * dual[e]
    for sweep in range(max_sweeps):
        largest = 0.0
        for e in range(n_edges):
            i = first[e]
            j = second[e]
            old = dual[e]
            new = old + 0.5 * (point[i] - sign[e] * point[j])
            new = min(max(new, -bound[e]), bound[e])
            change = new - old
            if change != 0.0:
                dual[e] = new
                point[i] -= change
                point[j] += sign[e] * change
                largest = max(largest, np.abs(change))
        if largest <= precision:
            return sweep + 1
    return max_sweeps
