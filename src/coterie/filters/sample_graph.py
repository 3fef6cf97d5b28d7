"""Distances between samples, found block by block of features, and the graph of nearest neighbours.

scikit-learn's nearest neighbours want one float array of all the data; these read a source as it is stored
(bytes, sparse columns, memory maps) and keep a few hundred rows of distances at a time. Distances closer than
rounding are equal, and of equally near samples the first comes first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from coterie._numba import read_only
from coterie._sklearn import sample_major
from coterie.data.source import FAR, Columns, FeatureSource, Moments, for_blocks, shifted
from coterie.kernels import graph as kernels

_BLOCK_FEATURES = 1024
# Distances that differ by less than this part of the largest are equal.
_TIE = 1e-12
# Samples whose distances to all others are held at a time; fixed, so that threads do not change a sum.
_PROBES = 128

Look = Callable[..., Any]


def squared_distances(source: FeatureSource, moments: Moments, probes: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances of some samples to all samples."""
    shift = moments.far_mean
    if not source.is_sparse:
        # Whole numbers are subtracted, so that the distances between samples of whole numbers are exact; unless what is
        # left of the mean would drown the distances.
        whole = np.rint(moments.mean)
        shift = np.where(np.abs(moments.mean - whole) > FAR * moments.scale, moments.mean, whole)

    products = np.zeros((len(probes), source.shape[0]))
    norms = np.zeros(source.shape[0])
    for first, columns in source.blocks(_BLOCK_FEATURES):
        near = shifted(columns, shift[first : first + columns.shape[1]])
        if isinstance(near, np.ndarray):
            block = near
            products += block[probes] @ block.T
            norms += np.einsum("ij,ij->i", block, block)
        else:
            block = sparse.csr_array(near)
            products += (block[probes] @ block.T).toarray()
            norms += np.asarray(block.multiply(block).sum(axis=1)).ravel()
    distances = norms[probes][:, None] + norms - 2.0 * products
    np.maximum(distances, 0.0, out=distances)
    distances[distances < _TIE * norms.max(initial=0.0)] = 0.0
    return distances


def manhattan_distances(source: FeatureSource, moments: Moments, mine: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Distances of some samples to all samples: sums of ``factor`` times absolute differences."""
    far = moments.far_mean
    distances, size = np.zeros((len(mine), source.shape[0])), np.zeros(source.shape[0])
    place = np.full(source.shape[0], -1)
    place[mine] = np.arange(len(mine))
    for first, columns in source.blocks(_BLOCK_FEATURES):
        if isinstance(columns, np.ndarray):
            kernels.dense_manhattan(read_only(columns.T), mine, factor, first, distances)
        else:
            mean = far[first : first + columns.shape[1]]
            indptr, indices = read_only(columns.indptr), read_only(columns.indices)
            values = read_only(np.asarray(shifted(columns, mean).data if mean.any() else columns.data))
            kernels.csc_manhattan(indptr, indices, values, place, factor, first, size, distances)
    if source.is_sparse:
        distances += size[mine][:, None] + size
        np.maximum(distances, 0.0, out=distances)
    return distances


def nearest(distances: np.ndarray, candidates: np.ndarray, k: int) -> np.ndarray:
    """The k nearest of some candidates (sorted indices), nearest first, ties in order of the samples."""
    mine = distances[candidates]
    k = min(k, len(mine))
    if k == 0:
        return candidates[:0]
    tie = _TIE * mine.max()
    farthest = np.partition(mine, k - 1)[k - 1] + tie
    close = np.flatnonzero(mine <= farthest)
    steps = mine[close] if tie == 0.0 else np.rint(mine[close] / tie)
    return candidates[close[np.argsort(steps, kind="stable")[:k]]]


class Neighbours(NamedTuple):
    """Samples next to each sample, one row each, and their squared distances."""

    samples: np.ndarray
    squared: np.ndarray


def nearest_neighbours(source: FeatureSource, moments: Moments, n_neighbors: int, n_threads: int) -> Neighbours:
    """The nearest other samples of each sample in the Euclidean distance over all features."""
    everyone = np.arange(source.shape[0])
    k = min(n_neighbors, len(everyone) - 1)
    parts = by_probes(source, moments, _neighbours, k, probes=everyone, n_threads=n_threads)
    return Neighbours(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _neighbours(source: FeatureSource, moments: Moments, probes: np.ndarray, k: int) -> Neighbours:
    found = Neighbours(np.empty((len(probes), k), dtype=np.int64), np.empty((len(probes), k)))
    everyone = np.arange(source.shape[0])
    for place, row in enumerate(squared_distances(source, moments, probes)):
        found.samples[place] = nearest(row, np.delete(everyone, probes[place]), k)
        found.squared[place] = row[found.samples[place]]
    return found


def heat_graph(neighbours: Neighbours, width: float | None = None) -> sparse.csr_array:
    r"""Symmetric graph of neighbours with weights :math:`\exp(-\|x_i - x_h\|^2 / t)`, t given or the mean over all."""
    n_samples, k = neighbours.samples.shape
    rows = np.repeat(np.arange(n_samples), k)
    weights = _heat(neighbours.squared.ravel(), width)
    one_way = sparse.csr_array((weights, (rows, neighbours.samples.ravel())), shape=(n_samples, n_samples))
    return sample_major(one_way.maximum(one_way.T))


def full_heat_graph(source: FeatureSource, moments: Moments, n_threads: int, width: float | None = None) -> sparse.csr_array:
    """The graph of all pairs of samples with the same weights, t the mean over all pairs or given."""
    n_samples = source.shape[0]
    everyone = np.arange(n_samples)
    squared = np.vstack(by_probes(source, moments, squared_distances, probes=everyone, n_threads=n_threads))
    rows, others = np.nonzero(~np.eye(n_samples, dtype=bool))
    # The distance of two samples is computed from both sides; the mean makes it one number.
    weights = _heat(0.5 * (squared + squared.T)[rows, others], width)
    return sparse.csr_array((weights, (rows, others)), shape=(n_samples, n_samples))


def _heat(squared: np.ndarray, width: float | None) -> np.ndarray:
    """Weights that never vanish: an edge is an edge."""
    width = (float(squared.mean()) or 1.0) if width is None else width
    return np.maximum(np.exp(-squared / width), 1e-12)


def connect(graph: sparse.csr_array, source: FeatureSource, moments: Moments, n_threads: int) -> sparse.csr_array:
    """Link the parts of a graph by their nearest samples (with its smallest weight) until it is connected.

    The eigenvectors of a graph in several parts are any mixture of the parts; of a connected one they are
    well defined.
    """
    weight = float(graph.data.min())
    while True:
        n_parts, part = connected_components(graph, directed=False)
        if n_parts == 1:
            return graph
        closest, distance = _nearest_outside(part, source, moments, n_threads)
        links = [min(np.flatnonzero(part == p), key=lambda i: (distance[i], i)) for p in range(n_parts)]
        link = sparse.csr_array((np.full(n_parts, weight), (links, closest[links])), shape=graph.shape)
        graph = sample_major(graph.maximum(link.maximum(link.T)))


def _nearest_outside(
    part: np.ndarray, source: FeatureSource, moments: Moments, n_threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """For each sample the nearest one in another part, and its squared distance."""
    parts = by_probes(source, moments, _outside, part, probes=np.arange(len(part)), n_threads=n_threads)
    closest, distance = (np.concatenate(one) for one in zip(*parts, strict=True))
    return closest, distance


def _outside(source: FeatureSource, moments: Moments, probes: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    closest, distance = np.empty(len(probes), dtype=np.int64), np.empty(len(probes))
    for place, row in enumerate(squared_distances(source, moments, probes)):
        closest[place] = nearest(row, np.flatnonzero(part != part[probes[place]]), 1)[0]
        distance[place] = row[closest[place]]
    return closest, distance


def variation(source: FeatureSource, graph: sparse.csr_array, squared: bool, n_threads: int) -> np.ndarray:
    """Variation of all features on a symmetric graph; see :mod:`coterie.kernels.graph`."""
    result = np.empty(source.shape[1])
    edges = sparse.csr_array(graph if source.is_sparse else sparse.triu(graph, k=1))
    indptr, indices, weights = read_only(edges.indptr), read_only(edges.indices), read_only(edges.data)

    def look(first: int, columns: Columns) -> None:
        if isinstance(columns, np.ndarray):
            kernels.dense_variation(read_only(columns.T), indptr, indices, weights, squared, result, first)
        else:
            kernels.csc_variation(
                read_only(columns.indptr), read_only(columns.indices), read_only(columns.data), source.shape[0],
                indptr, indices, weights, squared, result, first,
            )  # fmt: skip

    for_blocks(source, look, n_threads)
    return result


def by_probes(
    source: FeatureSource, moments: Moments, look: Look, *arguments: Any, probes: np.ndarray, n_threads: int
) -> list[Any]:
    """Answers of ``look(source, moments, some probes, *arguments)``, in order of the probes.

    The probes are always the same ones and see all features in the same order, so that neither threads nor workers can change
    a digit. ``look`` is pure, and one that other processes can import. An argument may be a value of ``source.prepare``.
    """
    cuts = [*range(0, len(probes), _PROBES), len(probes)]
    tasks = [(moments, look, probes[a:b], *arguments) for a, b in itertools.pairwise(cuts) if b > a]
    return source.map_tasks(_look, tasks, what="distances between samples", n_threads=n_threads)


def _look(source: FeatureSource, moments: Moments, look: Look, probes: np.ndarray, *arguments: Any) -> Any:
    return look(source, moments, probes, *arguments)
