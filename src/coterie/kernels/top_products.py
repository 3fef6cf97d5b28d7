"""Which features may be among the best for many residuals, without keeping their scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie._numba import kernel
from coterie.kernels.columns import csc_products

# Products that are made and looked at while they are in the cache.
_TILE_PRODUCTS = 1 << 16
_NO_CENTRE = np.empty(0)


class QueryBatch(NamedTuple):
    """Some queries.

    Attributes
    ----------
    ends : ndarray of int of shape (n_queries + 1,)
        The outputs of query k are the columns ``ends[k]`` to ``ends[k + 1]`` of the products.
    factors : ndarray of shape (n_outputs,)
        What products are to be multiplied with.
    sizes : ndarray of shape (n_queries,)
        Norms of the sums of the residuals: what the mean of a feature can change a score by, over itself.
    lows, rounding : ndarray of shape (n_queries,)
        Scores that do for a query; what rounding can change one by, over the norm of the feature.
    """

    ends: np.ndarray
    factors: np.ndarray
    sizes: np.ndarray
    lows: np.ndarray
    rounding: np.ndarray


class Block(NamedTuple):
    """Some features, each as the views of all queries have it.

    Attributes
    ----------
    farthest, least, length : ndarray of shape (n_features,)
        The largest size of its mean, its smallest scale, and its largest norm about zero over the scale.
    """

    farthest: np.ndarray
    least: np.ndarray
    length: np.ndarray


@kernel(reorder=True)
def promising_products(products, first, block, asked, found, count=0):
    """Record each feature and query whose score may reach the query's low.

    Row i of the products is about feature ``first + i`` of the block. Rows (query, feature, products) are written to
    ``found`` after the ``count`` that are there, and only counted where it is full; returns their number. Where queries have
    one output each, nearly all features fail for all queries in a loop without branches.
    """
    ends, factors, sizes, lows, rounding = asked.ends, asked.factors, asked.sizes, asked.lows, asked.rounding
    n_queries = len(lows)
    single = len(factors) == n_queries
    for i in range(len(products)):
        j = first + i
        row = products[i]
        far, least = block.farthest[j], block.least[j]
        off = block.length[j] * least
        if single:
            hit = np.int8(0)
            for c in range(n_queries):
                if abs(row[c]) * factors[c] + far * sizes[c] >= least * lows[c] - off * rounding[c]:
                    hit = np.int8(1)
            if hit == 0:
                continue
        for k in range(n_queries):
            squares = 0.0
            for c in range(ends[k], ends[k + 1]):
                squares += (row[c] * factors[c]) ** 2
            if np.sqrt(squares) + far * sizes[k] >= least * lows[k] - off * rounding[k]:
                if count < len(found):
                    found[count, 0] = k
                    found[count, 1] = j
                    for c in range(ends[k], ends[k + 1]):
                        found[count, 2 + c - ends[k]] = row[c] * factors[c]
                count += 1
    return count


@kernel()
def csc_promising_products(indptr, indices, values, vectors, features, block, asked, found):
    """The same for some features of a CSC matrix, whose products with the vectors are made a tile at a time."""
    n_vectors = vectors.shape[1]
    tile = max(1, _TILE_PRODUCTS // n_vectors)
    products = np.empty((tile, n_vectors))
    totals = np.zeros(n_vectors)
    count = 0
    for first in range(0, len(features), tile):
        chosen = features[first : first + tile]
        csc_products(indptr, indices, values, vectors, totals, _NO_CENTRE, chosen, False, products, 0, len(chosen))
        count = promising_products(products[: len(chosen)], first, block, asked, found, count)
    return count
