"""Laplacian score: smoothness of a feature on the graph of nearest samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from coterie._numba import thread_count
from coterie._parameters import Number, OneOf, Whole, check
from coterie.data.view import FeatureView
from coterie.filters.sample_graph import full_heat_graph, heat_graph, nearest_neighbours, variation
from coterie.inputs.opening import source_of

# Most samples of a full graph, which has an edge for each pair of them (500 MB).
_MOST_FULL = 5000


def laplacian_score(
    X: Any,
    y: Any = None,
    *,
    n_neighbors: int = 5,
    graph: str = "nearest",
    sigma: float | None = None,
    n_jobs: int | None = None,
) -> np.ndarray:
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
    graph : {"nearest", "full"}, default="nearest"
        Whether only neighbours are linked, or all pairs of samples (for up to 5,000 samples), as eq. 28 of [2]_ reads.
    sigma : float or None, default=None
        Width σ of the heat kernel: weights are :math:`\exp(-\|x_i - x_h\|^2 / 2\sigma^2)`. None takes the mean of the squared
        distances of linked samples for :math:`2\sigma^2`. Weights below 1e-12 count as 1e-12.
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
    Time is O(n² m) for the distances of n samples, and O(n m) for the scores, O(n² m) on the full graph.

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
    check("n_neighbors", n_neighbors, Whole(1))
    check("graph", graph, OneOf("nearest", "full"))
    check("sigma", sigma, Number(at_least=1e-70, at_most=1e70) | OneOf(None))
    source = source_of(X)
    n_threads = thread_count(n_jobs)
    view = FeatureView.of(source, n_threads=n_threads)
    moments = view.moments
    width = None if sigma is None else 2.0 * float(sigma) ** 2
    if graph == "nearest":
        edges = heat_graph(nearest_neighbours(source, moments, n_neighbors, n_threads), width)
    elif source.shape[0] <= _MOST_FULL:
        edges = full_heat_graph(source, moments, n_threads, width)
    else:
        raise ValueError(f"graph='full' is for up to {_MOST_FULL} samples, and X has {source.shape[0]}; use 'nearest'.")
    return view.map_features(_smoothness, edges)


def _smoothness(view: FeatureView, edges: sparse.csr_array) -> np.ndarray:
    """The scores of the features of a block."""
    rough = variation(view.source, edges, True, view.n_threads)
    # The weighted norm about the weighted mean is the denominator.
    scale = view.source.moments(np.asarray(edges.sum(axis=1)).ravel(), n_threads=view.n_threads).norm ** 2
    return np.where(view.moments.norm > 0, 1.0 - np.divide(rough, scale, out=np.ones(len(scale)), where=scale > 0), 0.0)
