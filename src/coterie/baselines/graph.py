"""Graphs of features: correlated pairs, computed in blocks, or edges given by the user."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from coterie._numba import run_chunks
from coterie.baselines.base import TrainingData
from coterie.correlation.pearson import PearsonCorrelation
from coterie.correlation.protocol import ROUNDING

# Number of features per batch in the search for pairs, and number of given pairs per block.
_BATCH = 512
_PAIRS_PER_BLOCK = 4096


class FeatureGraph(NamedTuple):
    """Edges between features: the smaller index, the larger index, and the correlation."""

    first: np.ndarray
    second: np.ndarray
    correlation: np.ndarray


def correlated_pairs(measure: PearsonCorrelation, threshold: float) -> FeatureGraph:
    """Return all pairs with an absolute correlation of at least the threshold. Constant features have no pairs."""
    features = np.flatnonzero(measure.moments.norm > 0.0)
    # Products of sparse features are centred afterwards. This is accurate if means are not far above the deviations.
    near = not measure.moments.far_mean.any()
    find = _sparse_pairs if measure.source.is_sparse and near else _dense_pairs
    parts = [FeatureGraph(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))]
    for start in range(0, len(features), _BATCH):
        parts += find(measure, features[: start + _BATCH], start, threshold)
    first, second, correlation = (np.concatenate(values) for values in zip(*parts, strict=True))
    order = np.lexsort((second, first))
    return FeatureGraph(first[order], second[order], correlation[order])


def _sparse_pairs(measure: PearsonCorrelation, features: np.ndarray, start: int, threshold: float) -> list[FeatureGraph]:
    """Return correlated pairs of ``features[start:]`` with preceding features, from common nonzeros."""
    batch = features[start:]
    feature, position, correlation = measure.strong(batch, threshold)
    once = feature < batch[position]
    return [FeatureGraph(feature[once], batch[position[once]], correlation[once])]


def _dense_pairs(measure: PearsonCorrelation, features: np.ndarray, start: int, threshold: float) -> list[FeatureGraph]:
    """Return the same for dense features, by products of blocks, which is faster than any bound for all pairs."""
    own = measure.vectors(features[start:])
    found: dict[int, FeatureGraph] = {}

    def task(low: int, high: int) -> None:
        others = own if low == start else measure.vectors(features[low:high])
        product = others.T @ own
        i, k = np.nonzero(np.abs(product) >= threshold - ROUNDING)
        once = low + i < start + k
        i, k = i[once], k[once]
        found[low] = FeatureGraph(features[low + i], features[start + k], np.clip(product[i, k], -1.0, 1.0))

    run_chunks(task, [*range(0, len(features), _BATCH), len(features)], measure.view.n_threads)
    return list(found.values())


def feature_graph(data: TrainingData, edges: ArrayLike | None, threshold: float) -> FeatureGraph:
    """Return the graph given by ``edges``, or that of all pairs with an absolute correlation of at least ``threshold``."""
    measure = PearsonCorrelation(data.view)
    if edges is None:
        return correlated_pairs(measure, threshold)
    pairs = _read_edges(edges, data.view.n_features)
    pairs = pairs[(data.view.moments.norm[pairs] > 0.0).all(axis=1)]
    correlation = np.empty(len(pairs))
    for start in range(0, len(pairs), _PAIRS_PER_BLOCK):
        block = pairs[start : start + _PAIRS_PER_BLOCK]
        left, right = measure.vectors(block[:, 0]), measure.vectors(block[:, 1])
        correlation[start : start + len(block)] = np.clip(np.einsum("ij,ij->j", left, right), -1.0, 1.0)
    return FeatureGraph(pairs[:, 0], pairs[:, 1], correlation)


def _read_edges(edges: ArrayLike, n_features: int) -> np.ndarray:
    """Return unique pairs of feature indices, the smaller index first."""
    try:
        pairs = np.asarray(edges)
    except ValueError as error:
        raise ValueError("edges must be integers of shape (n_edges, 2), but its rows have different lengths.") from error
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            f"edges must be integers of shape (n_edges, 2), but have shape {pairs.shape} and dtype {pairs.dtype}."
        )
    wrong = np.flatnonzero(((pairs < 0) | (pairs >= n_features)).any(axis=1) | (pairs[:, 0] == pairs[:, 1]))
    if len(wrong):
        pair = tuple(pairs[wrong[0]].tolist())
        raise ValueError(f"edges[{wrong[0]}] = {pair} must be two different features between 0 and {n_features - 1}.")
    return np.unique(np.sort(pairs.astype(np.int64), axis=1), axis=0)


def components(n_features: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the number of the connected component of each feature."""
    matrix = sparse.coo_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(n_features, n_features))
    return np.asarray(connected_components(matrix, directed=False)[1])
