"""Find features that may be among the best for many residuals, without storing all scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie._numba import kernel
from coterie.kernels.columns import csc_products

# Products that are computed and checked while they are in the cache.
_TILE_PRODUCTS = 1 << 16
_NO_CENTRE = np.empty(0)


class QueryBatch(NamedTuple):
    """A batch of queries.

    Attributes
    ----------
    ends : ndarray of int of shape (n_queries + 1,)
        The outputs of query k are the columns ``ends[k]`` to ``ends[k + 1]`` of the products.
    factors : ndarray of shape (n_outputs,)
        Factors of the products.
    sizes : ndarray of shape (n_queries,)
        Norms of the sums of the residuals: the largest change of a score per unit of a feature's mean.
    lows, rounding : ndarray of shape (n_queries,)
        Smallest relevant score of each query, and the largest rounding error of a score per unit of the feature's norm.
    """

    ends: np.ndarray
    factors: np.ndarray
    sizes: np.ndarray
    lows: np.ndarray
    rounding: np.ndarray


class Block(NamedTuple):
    """Extremes of some features over the views of all queries.

    Attributes
    ----------
    farthest, least, length : ndarray of shape (n_features,)
        Largest absolute mean, smallest scale, and largest uncentred norm over the scale.
    """

    farthest: np.ndarray
    least: np.ndarray
    length: np.ndarray


@kernel(reorder=True)
def promising_products(products, first, block, queries, found, count=0):
    """Record each feature and query whose score may reach the query's smallest relevant score.

    Row i of the products belongs to feature ``first + i`` of the block. Rows (query, feature, products) are written to
    ``found`` after the first ``count`` rows, and only counted if it is full. Returns their number. If each query has one
    output, nearly all features are rejected for all queries in a loop without branches.
    """
    ends, factors, sizes, lows, rounding = queries.ends, queries.factors, queries.sizes, queries.lows, queries.rounding
    n_queries = len(lows)
    single = len(factors) == n_queries
    for i in range(len(products)):
        j = first + i
        row = products[i]
        far, least = block.farthest[j], block.least[j]
        error_norm = block.length[j] * least
        if single:
            hit = np.int8(0)
            for c in range(n_queries):
                if abs(row[c]) * factors[c] + far * sizes[c] >= least * lows[c] - error_norm * rounding[c]:
                    hit = np.int8(1)
            if hit == 0:
                continue
        for k in range(n_queries):
            squares = 0.0
            for c in range(ends[k], ends[k + 1]):
                squares += (row[c] * factors[c]) ** 2
            if np.sqrt(squares) + far * sizes[k] >= least * lows[k] - error_norm * rounding[k]:
                if count < len(found):
                    found[count, 0] = k
                    found[count, 1] = j
                    for c in range(ends[k], ends[k + 1]):
                        found[count, 2 + c - ends[k]] = row[c] * factors[c]
                count += 1
    return count


@kernel()
def csc_promising_products(indptr, indices, values, vectors, features, block, queries, found):
    """Do the same for features of a CSC matrix, whose products with the vectors are computed tile by tile."""
    n_vectors = vectors.shape[1]
    tile = max(1, _TILE_PRODUCTS // n_vectors)
    products = np.empty((tile, n_vectors))
    totals = np.empty(n_vectors)
    totals[:] = 0.0
    count = np.int64(0)
    for first in range(0, len(features), tile):
        chosen = features[first : first + tile]
        csc_products(indptr, indices, values, vectors, totals, _NO_CENTRE, chosen, False, products, 0, len(chosen))
        count = promising_products(products[: len(chosen)], first, block, queries, found, count)
    return count
