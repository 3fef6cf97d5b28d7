"""Which features may be among the best for many residuals, without keeping their scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie._numba import kernel
from coterie.kernels.columns import csc_products

# Products that are made and looked at while they are in the cache.
_TILE_PRODUCTS = 1 << 16
_NO_CENTRE = np.empty(0)


class Asked(NamedTuple):
    """Some queries, ordered by their views.

    Attributes
    ----------
    owner : ndarray of int of shape (n_queries,)
        The view of each.
    ends : ndarray of int of shape (n_queries + 1,)
        The outputs of query k are the columns ``ends[k]`` to ``ends[k + 1]`` of the products.
    factors, sums : ndarray of shape (n_outputs,)
        What products are to be multiplied with; sums of the residuals, by which the means of the features enter them.
    lows, rounding : ndarray of shape (n_queries,)
        Scores that do for a query; what rounding can change one by, over the norm of the feature.
    """

    owner: np.ndarray
    ends: np.ndarray
    factors: np.ndarray
    sums: np.ndarray
    lows: np.ndarray
    rounding: np.ndarray


class Block(NamedTuple):
    """Some features.

    Attributes
    ----------
    means, scales : ndarray of shape (n_views, n_features)
        Those of each view; all scales are positive.
    farthest, least, length : ndarray of shape (n_features,)
        Over the views, the largest size of the mean, the smallest scale and the largest norm about zero over the scale.
    """

    means: np.ndarray
    scales: np.ndarray
    farthest: np.ndarray
    least: np.ndarray
    length: np.ndarray


@kernel(reorder=True)
def promising_scores(products, first, block, asked, found, count=0):
    """Record each feature and query whose score, with what rounding can have taken from it, reaches the query's low.

    Row i of the products is about feature ``first + i`` of the block. Rows (query, feature, score, error) are written to
    ``found`` after the ``count`` that are there, and only counted where it is full; returns their number.

    Where queries have one output each, nearly all features fail for all queries by the farthest mean and the least scale, in
    a loop over columns without branches.
    """
    owner, ends, factors, sums = asked.owner, asked.ends, asked.factors, asked.sums
    lows, rounding = asked.lows, asked.rounding
    n_queries = len(lows)
    single = len(factors) == n_queries
    sizes = np.abs(sums)
    for i in range(len(products)):
        j = first + i
        row = products[i]
        length = block.length[j]
        if single:
            far, least = block.farthest[j], block.least[j]
            off = length * least
            hit = np.int8(0)
            for c in range(n_queries):
                if abs(row[c]) * factors[c] + far * sizes[c] >= least * lows[c] - off * rounding[c]:
                    hit = np.int8(1)
            if hit == 0:
                continue
        for k in range(n_queries):
            mean = block.means[owner[k], j]
            squares = 0.0
            for c in range(ends[k], ends[k + 1]):
                value = row[c] * factors[c] - mean * sums[c]
                squares += value * value
            score = np.sqrt(squares) / block.scales[owner[k], j]
            error = length * rounding[k]
            if score + error >= lows[k]:
                if count < len(found):
                    found[count, 0] = k
                    found[count, 1] = j
                    found[count, 2] = score
                    found[count, 3] = error
                count += 1
    return count


@kernel()
def csc_promising_scores(indptr, indices, values, vectors, features, block, asked, found):
    """The same for some features of a CSC matrix, whose products with the vectors are made a tile at a time."""
    n_vectors = vectors.shape[1]
    tile = max(1, _TILE_PRODUCTS // n_vectors)
    products = np.empty((tile, n_vectors))
    totals = np.zeros(n_vectors)
    count = 0
    for first in range(0, len(features), tile):
        chosen = features[first : first + tile]
        csc_products(indptr, indices, values, vectors, totals, _NO_CENTRE, chosen, False, products, 0, len(chosen))
        count = promising_scores(products[: len(chosen)], first, block, asked, found, count)
    return count
