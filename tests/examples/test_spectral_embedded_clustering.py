"""Spectral embedded clustering: the minimum of its objective, computed from scratch."""

import itertools

import numpy as np
import pytest
import spectral_embedded_clustering as sec
from scipy import linalg
from sklearn.datasets import make_blobs, make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks


def naive_laplacian(X, k):
    n = len(X)
    distance = np.array([[np.linalg.norm(a - b) for b in X] for a in X])
    nearest = [sorted((j for j in range(n) if j != i), key=lambda j, i=i: distance[i, j])[:k] for i in range(n)]
    A = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        if j in nearest[i] or i in nearest[j]:
            A[i, j] = np.exp(-(distance[i, j] ** 2) / (distance[i, nearest[i][-1]] * distance[j, nearest[j][-1]]))
    D = np.diag(A.sum(axis=1) ** -0.5)
    return np.eye(n) - D @ A @ D


def objective(X, F, W, b, L, mu, gamma):
    return np.trace(F.T @ L @ F) + mu * (np.sum((X @ W + b - F) ** 2) + gamma * np.sum(W**2))


@pytest.mark.parametrize("n_features", [3, 39, 40, 41, 90])
@pytest.mark.parametrize(("mu", "gamma"), [(1.0, 1.0), (10.0, 0.01), (0.1, 100.0)])
def test_the_objective_is_that_of_the_paper_and_minimal(rng, n_features, mu, gamma):
    X = rng.standard_normal((40, n_features)) + 5.0
    model = sec.SpectralEmbeddedClustering(4, mu=mu, gamma=gamma, n_neighbors=6, random_state=0).fit(X)
    F, W, b = model.embedding_, model.coef_, model.intercept_
    L = naive_laplacian(X, 6)
    best = objective(X, F, W, b, L, mu, gamma)
    assert model.objective_ == pytest.approx(best)
    np.testing.assert_allclose(F.T @ F, np.eye(4), atol=1e-10)
    for _ in range(20):  # no neighbour is better: neither in W and b, nor in F
        assert objective(X, F, W + 1e-3 * rng.standard_normal(W.shape), b, L, mu, gamma) > best
        assert objective(X, F, W, b + 1e-3 * rng.standard_normal(b.shape), L, mu, gamma) > best
        other = np.linalg.qr(F + 0.1 * rng.standard_normal(F.shape))[0]
        centred = X - X.mean(axis=0)
        best_W = np.linalg.solve(centred.T @ centred + gamma * np.eye(n_features), centred.T @ other)
        best_b = other.mean(axis=0) - X.mean(axis=0) @ best_W
        assert objective(X, other, best_W, best_b, L, mu, gamma) > best


def test_without_the_linear_part_it_is_spectral_clustering(rng):
    X = rng.standard_normal((50, 5))
    F = sec.SpectralEmbeddedClustering(3, mu=0.0, random_state=0).fit(X).embedding_
    expected = linalg.eigh(naive_laplacian(X, 5))[1][:, :3]
    np.testing.assert_allclose(F @ F.T, expected @ expected.T, atol=1e-8)


def test_clusters_along_a_manifold_and_new_samples():
    X, y = make_moons(200, noise=0.05, random_state=0)
    found = sec.SpectralEmbeddedClustering(2, mu=1e-3, random_state=0).fit_predict(X)
    assert sec.clustering_accuracy(y, found) > 0.98
    X, y = make_blobs(300, n_features=20, centers=5, random_state=0)
    model = sec.SpectralEmbeddedClustering(5, random_state=0).fit(X[:200])
    assert sec.clustering_accuracy(y[:200], model.labels_) == 1.0
    assert sec.clustering_accuracy(y[200:], model.predict(X[200:])) == 1.0
    again = sec.SpectralEmbeddedClustering(5, random_state=0).fit(X[:200])
    assert np.array_equal(model.labels_, again.labels_)


def test_copies_and_fewer_samples_than_neighbours():
    X = np.repeat(np.eye(3), 4, axis=0)
    model = sec.SpectralEmbeddedClustering(3, n_neighbors=3, random_state=0).fit(X)
    assert sec.clustering_accuracy(np.repeat(range(3), 4), model.labels_) == 1.0
    assert len(sec.SpectralEmbeddedClustering(2, n_neighbors=50).fit(X[::4]).labels_) == 3


def test_accuracy_is_that_of_the_best_matching(rng):
    for _ in range(20):
        y, clusters = rng.integers(0, 4, 30), rng.integers(0, 4, 30)
        best = max(np.mean(np.array(names)[clusters] == y) for names in itertools.permutations(range(4)))
        assert sec.clustering_accuracy(y, clusters) == pytest.approx(best)
    assert sec.clustering_accuracy([0, 0, 1, 1], [5, 6, 7, 7]) == 0.75  # more clusters than classes


def test_too_many_clusters(rng):
    with pytest.raises(ValueError, match="n_clusters=9 must lie between 1 and the 8 samples"):
        sec.SpectralEmbeddedClustering(9).fit(rng.standard_normal((8, 2)))


@parametrize_with_checks([sec.SpectralEmbeddedClustering(3, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
