"""Scores from a graph of the samples: construction of the graph, Laplacian score, multi-cluster feature selection (MCFS)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError
from sklearn.linear_model import lars_path
from sklearn.manifold import spectral_embedding

from coterie._numba import one_blas_thread, read_only, thread_count
from coterie._parameters import Integer, Number, OneOf, check
from coterie._sklearn import sample_major
from coterie._warnings import ignored
from coterie.data.source import FAR, Columns, FeatureSource, Moments, for_blocks, shifted
from coterie.data.view import FeatureView
from coterie.inputs.opening import source_of
from coterie.inputs.placement import in_one_process
from coterie.inputs.types import FeaturesLike, TargetsLike
from coterie.kernels import filters as kernels
from coterie.order import by_content

_BLOCK_FEATURES = 1024
# Distances that differ by less than this share of the largest are equal.
_TIE = 1e-12
# Number of samples per task for distances to all samples. It is constant, so that sums do not depend on threads.
_PROBES_PER_TASK = 128

ProbeFunction = Callable[..., Any]
# Largest number of samples of a full graph, which has one edge per pair of samples (500 MB).
_MAX_FULL = 5000
# Largest number of products of features and residuals per block.
_BLOCK_PRODUCTS = 1 << 22
# Share of the first correlation at which a path ends. The response is then explained up to rounding errors.
_PATH_END = 1e-6
# Smallest absolute correlation of two features that are copies of each other.
_COPY = 1.0 - 1e-9
# Largest number of samples for which all eigenvectors are computed if the iterative solver fails (200 MB).
_MAX_DENSE = 5000


def squared_distances(source: FeatureSource, moments: Moments, probes: np.ndarray) -> np.ndarray:
    """Return the squared Euclidean distances of some samples to all samples."""
    shift = moments.far_mean
    if not source.is_sparse:
        # Integers are subtracted, so that distances between samples of integers are exact, unless the rest of the mean is
        # large compared with the deviations.
        rounded = np.rint(moments.mean)
        shift = np.where(np.abs(moments.mean - rounded) > FAR * moments.scale, moments.mean, rounded)

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
    """Return the distances of some samples to all samples: sums of ``factor`` times absolute differences."""
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
    """Return the k nearest candidates in order of distance. Candidates are sorted indices; ties keep their order."""
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
    """Nearest samples of each sample, one row per sample, and their squared distances."""

    samples: np.ndarray
    squared: np.ndarray


def nearest_neighbours(source: FeatureSource, moments: Moments, n_neighbors: int, n_threads: int) -> Neighbours:
    """Return the nearest other samples of each sample by Euclidean distance over all features."""
    samples = np.arange(source.shape[0])
    k = min(n_neighbors, len(samples) - 1)
    parts = by_probes(source, moments, _neighbours, k, probes=samples, n_threads=n_threads)
    return Neighbours(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _neighbours(source: FeatureSource, moments: Moments, probes: np.ndarray, k: int) -> Neighbours:
    found = Neighbours(np.empty((len(probes), k), dtype=np.int64), np.empty((len(probes), k)))
    samples = np.arange(source.shape[0])
    for place, row in enumerate(squared_distances(source, moments, probes)):
        found.samples[place] = nearest(row, np.delete(samples, probes[place]), k)
        found.squared[place] = row[found.samples[place]]
    return found


def heat_graph(neighbours: Neighbours, width: float | None = None) -> sparse.csr_array:
    r"""Return the symmetric graph of neighbours with weights :math:`\exp(-\|x_i - x_h\|^2 / t)`.

    By default t is the mean of the squared distances.
    """
    n_samples, k = neighbours.samples.shape
    rows = np.repeat(np.arange(n_samples), k)
    weights = _heat(neighbours.squared.ravel(), width)
    one_way = sparse.csr_array((weights, (rows, neighbours.samples.ravel())), shape=(n_samples, n_samples))
    return sample_major(one_way.maximum(one_way.T))


def full_heat_graph(source: FeatureSource, moments: Moments, n_threads: int, width: float | None = None) -> sparse.csr_array:
    """Return the graph of all pairs of samples with the same weights. By default t is the mean over all pairs."""
    n_samples = source.shape[0]
    samples = np.arange(n_samples)
    squared = np.vstack(by_probes(source, moments, squared_distances, probes=samples, n_threads=n_threads))
    rows, others = np.nonzero(~np.eye(n_samples, dtype=bool))
    # The distance of two samples is computed twice, with different rounding errors. The mean makes it symmetric.
    weights = _heat(0.5 * (squared + squared.T)[rows, others], width)
    return sparse.csr_array((weights, (rows, others)), shape=(n_samples, n_samples))


def _heat(squared: np.ndarray, width: float | None) -> np.ndarray:
    """Return weights with a positive lower limit, so that no edge is lost."""
    width = (float(squared.mean()) or 1.0) if width is None else width
    return np.maximum(np.exp(-squared / width), 1e-12)


def connect(graph: sparse.csr_array, source: FeatureSource, moments: Moments, n_threads: int) -> sparse.csr_array:
    """Connect the components of a graph by edges between their nearest samples, with the smallest weight of the graph.

    The eigenvectors of a graph with several components are not unique. Those of a connected graph are well defined.
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
    """Return the nearest sample in another component for each sample, and its squared distance."""
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
    """Return the variation of all features on a symmetric graph. See :mod:`coterie.kernels.filters`."""
    result = np.empty(source.shape[1])
    edges = sparse.csr_array(graph if source.is_sparse else sparse.triu(graph, k=1))
    indptr, indices, weights = read_only(edges.indptr), read_only(edges.indices), read_only(edges.data)

    def process(first: int, columns: Columns) -> None:
        if isinstance(columns, np.ndarray):
            kernels.dense_variation(read_only(columns.T), indptr, indices, weights, squared, result, first)
        else:
            kernels.csc_variation(
                read_only(columns.indptr), read_only(columns.indices), read_only(columns.data), source.shape[0],
                indptr, indices, weights, squared, result, first,
            )  # fmt: skip

    for_blocks(source, process, n_threads)
    return result


def by_probes(
    source: FeatureSource, moments: Moments, function: ProbeFunction, *arguments: Any, probes: np.ndarray, n_threads: int
) -> list[Any]:
    """Return results of ``function(source, moments, probes, *arguments)`` for batches of the probes, in their order.

    The batches are fixed, and features are processed in the same order, so that results do not depend on threads or workers.
    ``function`` must be pure and importable by other processes. An argument may be a value of ``source.prepare``.
    """
    cuts = [*range(0, len(probes), _PROBES_PER_TASK), len(probes)]
    tasks = [(moments, function, probes[a:b], *arguments) for a, b in itertools.pairwise(cuts) if b > a]
    return source.map_tasks(_call, tasks, what="distances between samples", n_threads=n_threads)


def _call(source: FeatureSource, moments: Moments, function: ProbeFunction, probes: np.ndarray, *arguments: Any) -> Any:
    return function(source, moments, probes, *arguments)


def laplacian_score(
    X: FeaturesLike,
    y: TargetsLike = None,
    *,
    n_neighbors: int = 5,
    graph: str = "nearest",
    sigma: float | None = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    r"""Return the Laplacian score of each feature, transformed so that higher is better.

    .. math:: s = 1 - \frac{\tilde f' L \tilde f}{\tilde f' D \tilde f},
        \qquad \tilde f = f - \frac{f'D1}{1'D1}\,1

    on the graph of nearest neighbours with heat-kernel weights W, D = diag(W1) and L = D - W. The fraction is the score of
    [1]_, for which smaller is better. The returned value is the correlation of the feature with itself across the edges of
    the graph. It is 1 for a feature that is constant along edges, about 0 for noise, and negative for a feature that changes
    more than noise.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data. Sparse input is not densified.
    y : ignored
        Not used, present for the ``score_func`` of scikit-learn.
    n_neighbors : int, default=5
        Number of neighbours of each sample, by Euclidean distance over all features. Two samples are linked if one is a
        neighbour of the other.
    graph : {"nearest", "full"}, default="nearest"
        Edges of the graph: neighbours, or all pairs of samples (for up to 5,000 samples), as in eq. 28 of [2]_.
    sigma : float or None, default=None
        Width σ of the heat kernel: weights are :math:`\exp(-\|x_i - x_h\|^2 / 2\sigma^2)`. With None, :math:`2\sigma^2` is
        the mean of the squared distances of linked samples. Weights below 1e-12 are set to 1e-12.
    n_jobs : int or None, default=None
        Number of threads. None means all cores available to the process.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        At most 1; 0 for constant features.

    See Also
    --------
    mcfs_score : Features that explain the clusters of the same graph.

    Notes
    -----
    The time is O(n² m) for the distances of n samples, and O(n m) for the scores (O(n² m) on the full graph).

    References
    ----------
    .. [1] X. He, D. Cai, P. Niyogi, "Laplacian score for feature selection", NIPS 2005.
    .. [2] D. Wang, F. Nie, H. Huang, "Feature selection via global redundancy minimization", IEEE TKDE
       27(10), 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.filters import laplacian_score
    >>> rng = np.random.default_rng(0)
    >>> cluster = np.repeat([[0.0], [9.0]], 20, axis=0)
    >>> X = np.hstack([cluster, rng.standard_normal((40, 1))])
    >>> laplacian_score(X).argmax()
    np.int64(0)
    """
    check("n_neighbors", n_neighbors, Integer(1))
    check("graph", graph, OneOf("nearest", "full"))
    check("sigma", sigma, Number(at_least=1e-70, at_most=1e70) | OneOf(None))
    source = source_of(X)
    n_threads = thread_count(n_jobs)
    view = FeatureView.of(source, n_threads=n_threads)
    moments = view.moments
    width = None if sigma is None else 2.0 * float(sigma) ** 2
    if graph == "nearest":
        edges = heat_graph(nearest_neighbours(source, moments, n_neighbors, n_threads), width)
    elif source.shape[0] <= _MAX_FULL:
        edges = full_heat_graph(source, moments, n_threads, width)
    else:
        raise ValueError(f"graph='full' supports up to {_MAX_FULL} samples, but X has {source.shape[0]}. Use 'nearest'.")
    return view.map_features(_smoothness, edges)


def _smoothness(view: FeatureView, edges: sparse.csr_array) -> np.ndarray:
    """Return the scores of the features of a block."""
    rough = variation(view.source, edges, True, view.n_threads)
    # The denominator is the squared weighted norm about the weighted mean.
    scale = view.source.moments(np.asarray(edges.sum(axis=1)).ravel(), n_threads=view.n_threads).norm ** 2
    return np.where(view.moments.norm > 0, 1.0 - np.divide(rough, scale, out=np.ones(len(scale)), where=scale > 0), 0.0)


def mcfs_score(
    X: FeaturesLike,
    y: TargetsLike = None,
    *,
    n_clusters: int = 5,
    n_neighbors: int = 5,
    n_nonzero: int = 20,
    n_jobs: int | None = None,
) -> np.ndarray:
    r"""Return the score of multi-cluster feature selection (MCFS) of each feature.

    The first ``n_clusters`` eigenvectors of the graph of nearest samples distinguish its clusters. Each is regressed on the
    standardised features by least angle regression with ``n_nonzero`` features. The score of a feature is its largest
    absolute coefficient. [1]_

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data. Sparse input is not densified.
    y : ignored
        Not used, present for the ``score_func`` of scikit-learn.
    n_clusters : int, default=5
        Number of eigenvectors. If the number of clusters is known, use it.
    n_neighbors : int, default=5
        Number of neighbours of each sample, by Euclidean distance over all features.
    n_nonzero : int, default=20
        Number of features in each regression (at most the number of features, and less than that of samples). The authors
        use the number of features to select; larger numbers make the scores worse.
    n_jobs : int or None, default=None
        Number of threads. None means all cores available to the process.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        Higher is better; 0 for features that no regression uses, including constant features.

    See Also
    --------
    laplacian_score : Smoothness on the same graph.

    Notes
    -----
    The regression uses scikit-learn on a subset of the features. After each path, all other features are compared with its
    residuals, and those that would have entered are added. The result is the path of all features, without a dense copy of
    them. The components of a disconnected graph are connected by their nearest samples, because its eigenvectors would
    otherwise not be unique.

    References
    ----------
    .. [1] D. Cai, C. Zhang, X. He, "Unsupervised feature selection for multi-cluster data", KDD 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.filters import mcfs_score
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((90, 6))
    >>> X[:, 2] += np.repeat([0, 8, 16], 30)
    >>> mcfs_score(X, n_clusters=2, n_nonzero=1).argmax()
    np.int64(2)
    """
    check("n_clusters", n_clusters, Integer(1))
    check("n_neighbors", n_neighbors, Integer(1))
    check("n_nonzero", n_nonzero, Integer(1))
    source = in_one_process(source_of(X), "mcfs_score")
    n_threads = thread_count(n_jobs)
    moments = source.moments(n_threads=n_threads)
    scores = np.zeros(source.shape[1])
    varying = np.flatnonzero(moments.norm > 0)
    if not len(varying):
        return scores
    graph = heat_graph(nearest_neighbours(source, moments, n_neighbors, n_threads))
    embedding = _embedding(connect(graph, source, moments, n_threads), n_clusters)
    n_nonzero = min(int(n_nonzero), source.shape[0] - 1, len(varying))
    with one_blas_thread():
        for response in embedding.T:
            features, coef = _path_end(source, moments, varying, response, n_nonzero, n_threads)
            scores[features] = np.maximum(scores[features], np.abs(coef))
        _share_with_copies(source, moments, varying, scores, n_threads)
    return scores


def _embedding(graph: sparse.csr_array, n_clusters: int) -> np.ndarray:
    """Return the eigenvectors of the graph's Laplacian after the constant one, with unit length."""
    vectors = None
    if graph.shape[0] > max(2 * n_clusters + 2, 16):  # the iterative solver requires more samples
        vectors = _iterated_vectors(graph, n_clusters)
    vectors = _dense_vectors(graph, n_clusters) if vectors is None else vectors
    vectors = vectors - vectors.mean(axis=0)
    lengths = np.linalg.norm(vectors, axis=0)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0))


def _iterated_vectors(graph: sparse.csr_array, n_clusters: int) -> np.ndarray | None:
    """Return eigenvectors by the iterative solver, or None if it fails and the dense solver can be used."""
    try:
        vectors = spectral_embedding(graph, n_components=n_clusters, eigen_solver="arpack", random_state=0)
        if np.isfinite(vectors).all():
            return np.asarray(vectors)
    except (ArpackError, np.linalg.LinAlgError, RuntimeError):  # RuntimeError: the factorisation failed
        pass
    if graph.shape[0] <= _MAX_DENSE:
        return None
    raise ValueError(
        "mcfs_score cannot be computed, because the solver finds no eigenvectors of the graph of nearest samples. Increase "
        "n_neighbors or decrease n_clusters."
    )


def _dense_vectors(graph: sparse.csr_array, n_clusters: int) -> np.ndarray:
    """Return eigenvectors by the dense solver, which does not fail."""
    root = np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    vectors = np.linalg.eigh(graph.toarray() / np.outer(root, root))[1][:, -2 : -n_clusters - 2 : -1]
    return np.asarray(vectors / root[:, None])


def _path_end(
    source: FeatureSource, moments: Moments, varying: np.ndarray, response: np.ndarray, n_nonzero: int, n_threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the features of the last step of the LARS path, and their coefficients for features of unit length."""
    strength = _correlations(source, moments, varying, response[:, None], np.ones(1), n_threads)
    chosen = varying[np.argsort(-strength, kind="stable")[: 4 * n_nonzero]]
    outside = np.setdiff1d(varying, chosen, assume_unique=True)
    while True:
        chosen = by_content(source, chosen)  # of two equal features, the one that enters does not depend on their order
        columns = source.columns(chosen)
        dense = columns if isinstance(columns, np.ndarray) else columns.toarray()
        unit = (dense - moments.mean[chosen]) / moments.norm[chosen]
        alone = _without_copies(unit)
        chosen, unit = chosen[alone], unit[:, alone]
        with ignored():  # scikit-learn drops nearly equal features with a warning
            lowest = _PATH_END * float(np.abs(unit.T @ response).max()) / len(response)
            alphas, _, path = lars_path(unit, response, method="lar", max_iter=n_nonzero, alpha_min=lowest)
        residuals = response[:, None] - unit @ path
        limits = np.maximum(alphas, lowest) * len(response)
        excess = _correlations(source, moments, outside, residuals, limits, n_threads)
        late = excess > 1.0 + 1e-9
        if not late.any():
            return chosen, path[:, -1]
        strongest = np.argsort(-excess, kind="stable")[: max(n_nonzero, 100)]
        joining = outside[strongest[late[strongest]]]
        chosen = np.concatenate([chosen, joining])
        outside = np.setdiff1d(outside, joining, assume_unique=True)  # dropped copies are not added again


def _without_copies(unit: np.ndarray) -> np.ndarray:
    """Return the positions of columns that are not multiples of an earlier one, for which the path is undefined."""
    copies = np.abs(unit.T @ unit) >= _COPY
    return np.flatnonzero(~np.triu(copies, k=1).any(axis=0))


def _share_with_copies(
    source: FeatureSource, moments: Moments, varying: np.ndarray, scores: np.ndarray, n_threads: int
) -> None:
    """Assign the score of a feature to all its multiples, so that scores do not depend on the order of the columns."""
    scored = np.flatnonzero(scores)
    for first in range(0, len(scored), 64):
        part = scored[first : first + 64]
        columns = source.columns(part)
        dense = columns if isinstance(columns, np.ndarray) else columns.toarray()
        unit = (dense - moments.mean[part]) / moments.norm[part]
        size = _BLOCK_PRODUCTS // 64
        for begin in range(0, len(varying), size):
            others = varying[begin : begin + size]
            products = source.products(unit, centre=moments.mean, features=others, n_threads=n_threads)
            rows, places = np.nonzero(np.abs(products) >= _COPY * moments.norm[others][:, None])
            np.maximum.at(scores, others[rows], scores[part[places]])


def _correlations(
    source: FeatureSource, moments: Moments, features: np.ndarray, vectors: np.ndarray, limits: np.ndarray, n_threads: int
) -> np.ndarray:
    """Return the largest absolute product of each unit-length feature with a vector, relative to the vector's limit."""
    result = np.empty(len(features))
    size = max(1, _BLOCK_PRODUCTS // vectors.shape[1])
    for first in range(0, len(features), size):
        part = features[first : first + size]
        products = source.products(vectors, centre=moments.mean, features=part, n_threads=n_threads)
        result[first : first + size] = (np.abs(products) / limits).max(axis=1) / moments.norm[part]
    return result
