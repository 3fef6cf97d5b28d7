"""Which features may be among the best for many residuals, from their products with these."""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel


@kernel(reorder=True)
def promising_scores(
    products, features, ends, factors, sums, lows, rounding, worst, means, norms, root, scales, which, rows, scores, errors
):
    """Record each feature and query whose score, with what rounding can have taken from it, reaches the query's low.

    Columns ``ends[k]`` to ``ends[k + 1]`` of the products are the outputs of query k, up to ``factors``; what the mean of the
    feature contributes (its product with ``sums``) is taken off. An error is ``rounding[k]`` times the feature's norm about
    zero (``root``: that of the total weight), over its scale, and at most ``worst[k]``: nearly all fail by that alone,
    for all queries, in a loop without branches. No scales: all are one. Returns how many were recorded, by features.
    """
    n_queries, n_outputs = len(lows), len(sums)
    single = n_outputs == n_queries
    limits = lows - worst
    scaled = len(scales) > 0
    count = 0
    for i in range(len(features)):
        j = features[i]
        mean = means[j]
        scale = 1.0
        if scaled and scales[j] > 0.0:
            scale = scales[j]
        row = products[i]
        if single:
            hits = 0
            for c in range(n_outputs):
                hits += abs(row[c] * factors[c] - mean * sums[c]) >= limits[c] * scale
            if hits == 0:
                continue
        for k in range(n_queries):
            squares = 0.0
            for c in range(ends[k], ends[k + 1]):
                value = row[c] * factors[c] - mean * sums[c]
                squares += value * value
            score = np.sqrt(squares) / scale
            if score >= limits[k]:
                error = rounding[k] * np.hypot(norms[j], root * mean) / scale
                if score + error >= lows[k]:
                    which[count] = k
                    rows[count] = i
                    scores[count] = score
                    errors[count] = error
                    count += 1
    return count
