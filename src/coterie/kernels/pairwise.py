r"""Correlations over the samples in which both columns are known, pair by pair.

Pearson's coefficient takes two passes, so that nothing cancels that need not; it is asked for where the sums of all pairs at
once would lose digits. Spearman's ranks each column anew among the common samples: columns come with their sorted positions,
unknown ones last.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel


@kernel()
def common_pearson(rows, others, first, second, weight, fewest, out):
    """Pearson's coefficient of the rows ``first[p]`` and ``second[p]`` of two (features, samples) blocks; 0 if undefined."""
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
        # What is left of a constant after its mean is rounding.
        if square_a > total * (1e-14 * largest_a) ** 2 and square_b > total * (1e-14 * largest_b) ** 2:
            out[p] = product / np.sqrt(square_a * square_b)


@kernel()
def common_spearman(rows, order, others, other_order, first, second, weight, fewest, out):
    """Spearman's coefficient likewise; ``order`` and ``other_order`` are the sorted positions of the rows."""
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
    """Centred ranks of the common samples, ties averaged; returns the sum of their squares, exactly 0 for equal values."""
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
