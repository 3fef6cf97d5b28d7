"""Laplacian score: smoothness of a feature on the graph of nearest samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._inputs import source_of
from coterie._numba import thread_count
from coterie._parameters import Whole, check
from coterie.filters.sample_graph import heat_graph, nearest_neighbours, variation


def laplacian_score(X: Any, y: Any = None, *, n_neighbors: int = 5, n_jobs: int | None = None) -> np.ndarray:
    r"""Laplacian score of each feature, turned round so that higher is better.

    .. math:: s = 1 - \frac{\tilde f' L \tilde f}{\tilde f' D \tilde f},
        \qquad \tilde f = f - \frac{f'D1}{1'D1}\,1

    on the graph of nearest neighbours with heat-kernel weights W, D = diag(W1) and L = D - W. The fraction is
    the score of [1]_, where smaller is better; what is returned is the correlation of the feature with itself
    across the edges of the graph: 1 for a feature that does not change along edges, about 0 for noise, negative for one
    that changes more than noise does.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data; sparse input is not densified.
    y : ignored
        Not used; present for scikit-learn's ``score_func``.
    n_neighbors : int, default=5
        Neighbours of each sample, by Euclidean distance over all features; two samples are linked when one is a
        neighbour of the other.
    n_jobs : int or None, default=None
        Number of threads; None for all cores the process may use.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        At most 1; 0 for constant features.

    See Also
    --------
    mcfs_score : Features that explain the clusters of the same graph.

    Notes
    -----
    The width of the heat kernel is the mean squared distance between neighbours. Time is O(n² m) for the
    distances of n samples, and O(n m) for the scores.

    References
    ----------
    .. [1] X. He, D. Cai, P. Niyogi, "Laplacian score for feature selection", NIPS 2005.

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
    check("n_neighbors", n_neighbors, Whole(1))
    source = source_of(X)
    n_threads = thread_count(n_jobs)
    moments = source.moments(n_threads=n_threads)
    graph = heat_graph(nearest_neighbours(source, moments, n_neighbors, n_threads))
    rough = variation(source, graph, True, n_threads)
    # The weighted norm about the weighted mean is the denominator.
    scale = source.moments(np.asarray(graph.sum(axis=1)).ravel(), n_threads=n_threads).norm ** 2
    return np.where(moments.norm > 0, 1.0 - np.divide(rough, scale, out=np.ones(len(scale)), where=scale > 0), 0.0)
