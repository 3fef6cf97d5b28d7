"""Spectral embedded clustering: spectral clusters that a linear map of the data predicts."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.metrics.cluster import contingency_matrix
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted, validate_data


class SpectralEmbeddedClustering(ClusterMixin, BaseEstimator):
    r"""Spectral clustering whose assignments are close to a linear function of the samples.

    With the normalised Laplacian :math:`\tilde L` of a graph of nearest neighbours, the relaxed assignments F, of
    orthonormal columns, minimise

    .. math:: \mathrm{tr}(F^\top \tilde L F) + \mu \left(\|X W + 1 b^\top - F\|^2 + \gamma \|W\|^2\right).

    W and b can be eliminated: with the centring matrix H, :math:`W = (X^\top H X + \gamma I)^{-1} X^\top H F`, and F are the
    eigenvectors of the smallest eigenvalues of :math:`\tilde L + \mu\,(H - H X (X^\top H X + \gamma I)^{-1} X^\top H)`.
    k-means on the rows of F gives the clusters. W and b assign new samples.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    mu, gamma : float, default=1.0
        Weight of the linear function, and of its ridge penalty.
    n_neighbors : int, default=5
        Neighbours in the graph. An edge has the weight exp(-d² / (s_i s_j)), where s_i is the distance of sample i to its
        last neighbour.
    random_state : int or RandomState, default=None
        Seed of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        F.
    coef_, intercept_ : ndarray of shape (n_features, n_clusters), (n_clusters,)
        W and b.
    objective_ : float
        The minimum.

    References
    ----------
    F. Nie, Z. Zeng, I. W. Tsang, D. Xu, C. Zhang, "Spectral embedded clustering: a framework for in-sample and
    out-of-sample spectral clustering", IEEE Transactions on Neural Networks 22 (11), 2011.
    """

    def __init__(self, n_clusters=8, *, mu=1.0, gamma=1.0, n_neighbors=5, random_state=None):
        self.n_clusters = n_clusters
        self.mu = mu
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    def fit(self, X, y=None):
        """Cluster the samples."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if not 1 <= self.n_clusters <= len(X):
            raise ValueError(f"n_clusters={self.n_clusters} must lie between 1 and the {len(X)} samples.")
        mean = X.mean(axis=0)
        centred = X - mean
        system = self.mu * regression_residual(centred, self.gamma) + normalised_laplacian(X, self.n_neighbors)
        values, F = linalg.eigh(system, subset_by_index=[0, self.n_clusters - 1])
        F *= np.where(F[np.abs(F).argmax(axis=0), np.arange(self.n_clusters)] < 0.0, -1.0, 1.0)  # Fix the signs.
        n_features = X.shape[1]
        if n_features <= len(X):
            W = linalg.solve(centred.T @ centred + self.gamma * np.eye(n_features), centred.T @ F, assume_a="pos")
        else:
            W = centred.T @ linalg.solve(centred @ centred.T + self.gamma * np.eye(len(X)), F, assume_a="pos")
        kmeans = KMeans(self.n_clusters, n_init=10, random_state=self.random_state).fit(F)
        self.objective_, self.embedding_, self.labels_ = float(values.sum()), F, kmeans.labels_
        self.coef_, self.intercept_ = W, F.mean(axis=0) - mean @ W
        self.cluster_centers_ = kmeans.cluster_centers_
        return self

    def predict(self, X):
        """Return the clusters of new samples: the nearest centre to their images under W and b."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return euclidean_distances(X @ self.coef_ + self.intercept_, self.cluster_centers_).argmin(axis=1)


def normalised_laplacian(X, n_neighbors):
    """Return ``I - D^(-1/2) A D^(-1/2)`` of the graph that connects each sample with its nearest neighbours."""
    n_neighbors = min(n_neighbors, len(X) - 1)
    squared = euclidean_distances(X, squared=True)
    np.fill_diagonal(squared, -1.0)  # Each sample is its own first neighbour, even if there are copies.
    nearest = np.argsort(squared, axis=1, kind="stable")[:, 1 : n_neighbors + 1]
    np.fill_diagonal(squared, 0.0)
    scale = np.sqrt(np.maximum(squared[np.arange(len(X)), nearest[:, -1]], np.finfo(float).tiny))
    affinity = np.exp(-squared / np.outer(scale, scale))
    joined = np.zeros(squared.shape, dtype=bool)
    np.put_along_axis(joined, nearest, True, axis=1)
    affinity *= joined | joined.T
    degree = np.sqrt(affinity.sum(axis=1))
    return np.eye(len(X)) - affinity / np.outer(degree, degree)


def regression_residual(centred, gamma):
    """Return ``H - X_c (X_c' X_c + gamma I)^-1 X_c'``, the residual of a ridge regression of F as a quadratic form."""
    n_samples, n_features = centred.shape
    if n_features < n_samples:
        inner = centred.T @ centred + gamma * np.eye(n_features)
        explained = centred @ linalg.solve(inner, centred.T, assume_a="pos")
    else:
        kernel = centred @ centred.T
        explained = linalg.solve(kernel + gamma * np.eye(n_samples), kernel, assume_a="pos")
    return np.eye(n_samples) - 1.0 / n_samples - 0.5 * (explained + explained.T)


def clustering_accuracy(y, clusters):
    """Return the share of samples in the right cluster, with the best matching of clusters and classes (Hungarian method)."""
    table = contingency_matrix(y, clusters)
    return table[linear_sum_assignment(-table)].sum() / len(y)
