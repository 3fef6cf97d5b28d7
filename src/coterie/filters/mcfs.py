"""MCFS: features that explain the clusters of the samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackError
from sklearn.linear_model import lars_path
from sklearn.manifold import spectral_embedding

from coterie._numba import one_blas_thread, thread_count
from coterie._parameters import Whole, check
from coterie._quiet import ignored
from coterie.data.source import FeatureSource, Moments
from coterie.filters.sample_graph import connect, heat_graph, nearest_neighbours
from coterie.inputs.opening import source_of
from coterie.inputs.placing import in_one_process
from coterie.order import by_content

# Products of features and residuals that are held at a time.
_PRODUCTS = 1 << 22
# Part of the first correlation at which a path ends: the response is explained, what is left is rounding.
_PATH_END = 1e-6
# Correlation from which on two features are copies of each other.
_COPY = 1.0 - 1e-9
# Most samples for which all eigenvectors are computed where the iterative solver fails (200 MB).
_MOST_DENSE = 5000


def mcfs_score(
    X: Any,
    y: Any = None,
    *,
    n_clusters: int = 5,
    n_neighbors: int = 5,
    n_nonzero: int = 20,
    n_jobs: int | None = None,
) -> np.ndarray:
    r"""Multi-cluster feature selection: the largest coefficient of each feature in explaining the clusters.

    The first ``n_clusters`` eigenvectors of the graph of nearest samples tell its clusters apart. Each is
    regressed on the standardised features by least angle regression with ``n_nonzero`` features, and a
    feature's score is its largest absolute coefficient. [1]_

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data; sparse input is not densified.
    y : ignored
        Not used; present for scikit-learn's ``score_func``.
    n_clusters : int, default=5
        Number of eigenvectors; best the number of clusters, where it is known.
    n_neighbors : int, default=5
        Neighbours of each sample, by Euclidean distance over all features.
    n_nonzero : int, default=20
        Features in each regression (fewer where there are not so many, or not so many samples). The authors use the
        number of features that are wanted in the end; more make the scores worse.
    n_jobs : int or None, default=None
        Number of threads; None for all cores the process may use.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        Higher is better; 0 for all features that no regression uses, constant ones among them.

    See Also
    --------
    laplacian_score : Smoothness on the same graph.

    Notes
    -----
    The regression is scikit-learn's, on the features that could enter it: after each path all other
    features are compared with its residuals, and those that would have entered join in. So the path is that of
    all features, without a dense copy of them. A graph in several parts is linked by its nearest samples, since
    its eigenvectors would otherwise not be defined.

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
    check("n_clusters", n_clusters, Whole(1))
    check("n_neighbors", n_neighbors, Whole(1))
    check("n_nonzero", n_nonzero, Whole(1))
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
    """Eigenvectors of the graph's Laplacian after the constant one, of unit length."""
    vectors = None
    if graph.shape[0] > max(2 * n_clusters + 2, 16):  # else too few for the iterative solver
        vectors = _iterated_vectors(graph, n_clusters)
    vectors = _dense_vectors(graph, n_clusters) if vectors is None else vectors
    vectors = vectors - vectors.mean(axis=0)
    lengths = np.linalg.norm(vectors, axis=0)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0))


def _iterated_vectors(graph: sparse.csr_array, n_clusters: int) -> np.ndarray | None:
    """Eigenvectors by the iterative solver; None where it gives up and there are few enough samples for the other."""
    try:
        vectors = spectral_embedding(graph, n_components=n_clusters, eigen_solver="arpack", random_state=0)
        if np.isfinite(vectors).all():
            return np.asarray(vectors)
    except (ArpackError, np.linalg.LinAlgError, RuntimeError):  # the last for a factorisation that fails
        pass
    if graph.shape[0] <= _MOST_DENSE:
        return None
    raise ValueError(
        "mcfs_score cannot be computed: the solver finds no eigenvectors of the graph of nearest samples. Raise n_neighbors, "
        "or lower n_clusters."
    )


def _dense_vectors(graph: sparse.csr_array, n_clusters: int) -> np.ndarray:
    """Eigenvectors by the dense solver, which always has an answer."""
    root = np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    vectors = np.linalg.eigh(graph.toarray() / np.outer(root, root))[1][:, -2 : -n_clusters - 2 : -1]
    return np.asarray(vectors / root[:, None])


def _path_end(
    source: FeatureSource, moments: Moments, varying: np.ndarray, response: np.ndarray, n_nonzero: int, n_threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Features in the last step of the LARS path, with their coefficients on features of unit length."""
    strength = _correlations(source, moments, varying, response[:, None], np.ones(1), n_threads)
    chosen = varying[np.argsort(-strength, kind="stable")[: 4 * n_nonzero]]
    outside = np.setdiff1d(varying, chosen, assume_unique=True)
    while True:
        chosen = by_content(source, chosen)  # of two equal features the same one enters whatever their order
        columns = source.columns(chosen)
        dense = columns if isinstance(columns, np.ndarray) else columns.toarray()
        unit = (dense - moments.mean[chosen]) / moments.norm[chosen]
        alone = _without_copies(unit)
        chosen, unit = chosen[alone], unit[:, alone]
        with ignored():  # equal features are left out with a warning
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
        outside = np.setdiff1d(outside, joining, assume_unique=True)  # copies that were left out stay out


def _without_copies(unit: np.ndarray) -> np.ndarray:
    """Positions of columns that are no multiple of an earlier one; least angle regression is undefined between copies."""
    copies = np.abs(unit.T @ unit) >= _COPY
    return np.flatnonzero(~np.triu(copies, k=1).any(axis=0))


def _share_with_copies(
    source: FeatureSource, moments: Moments, varying: np.ndarray, scores: np.ndarray, n_threads: int
) -> None:
    """Give all multiples of a feature its score, so that no accident of order enters."""
    scored = np.flatnonzero(scores)
    for first in range(0, len(scored), 64):
        part = scored[first : first + 64]
        columns = source.columns(part)
        dense = columns if isinstance(columns, np.ndarray) else columns.toarray()
        unit = (dense - moments.mean[part]) / moments.norm[part]
        size = _PRODUCTS // 64
        for begin in range(0, len(varying), size):
            others = varying[begin : begin + size]
            products = source.products(unit, centre=moments.mean, features=others, n_threads=n_threads)
            rows, places = np.nonzero(np.abs(products) >= _COPY * moments.norm[others][:, None])
            np.maximum.at(scores, others[rows], scores[part[places]])


def _correlations(
    source: FeatureSource, moments: Moments, features: np.ndarray, vectors: np.ndarray, limits: np.ndarray, n_threads: int
) -> np.ndarray:
    """For each feature of unit length its largest absolute product with a vector, each relative to its limit."""
    result = np.empty(len(features))
    size = max(1, _PRODUCTS // vectors.shape[1])
    for first in range(0, len(features), size):
        part = features[first : first + size]
        products = source.products(vectors, centre=moments.mean, features=part, n_threads=n_threads)
        result[first : first + size] = (np.abs(products) / limits).max(axis=1) / moments.norm[part]
    return result
