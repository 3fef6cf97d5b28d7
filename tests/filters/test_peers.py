"""Scores compared with independent implementations, if installed; differences are explained.

skfeature returns only ranks for two of them. The values are compared with the definitions in test_scores.py.
"""

import numpy as np
import pytest
from scipy import sparse

from coterie.data import as_source
from coterie.filters import fisher_score, laplacian_score, mcfs_score, relieff_score
from coterie.filters.graph import heat_graph, nearest_neighbours


@pytest.fixture
def data(rng):
    y = rng.integers(0, 3, 80)
    X = rng.standard_normal((80, 15))
    X[:, 2] += y
    X[:, 6] += 2 * (y == 1)
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
def test_relieff_of_skrebate(data, n_classes):
    """Classes have equal sizes, because skrebate counts one sample too few per class for the priors of several classes."""
    skrebate = pytest.importorskip("skrebate")
    X, y = data[0][:60], np.arange(60) % n_classes
    X[:, 4] += y
    theirs = skrebate.ReliefF(n_neighbors=7, n_features_to_select=3).fit(X, y).feature_importances_
    np.testing.assert_allclose(relieff_score(X, y, n_neighbors=7), theirs, atol=1e-12)


def test_fisher_of_skfeature(data):
    module = pytest.importorskip("skfeature.function.similarity_based.fisher_score")
    X, y = data
    np.testing.assert_array_equal(np.argsort(-fisher_score(X, y)), module.fisher_score(X, y, mode="index"))


def graph_of(X):
    source = as_source(X)
    return heat_graph(nearest_neighbours(source, source.moments(), 5, 1))


def test_laplacian_of_skfeature(data):
    """The graph is that of Coterie. That of skfeature has self-loops, which increase D by 1 and lower all scores."""
    module = pytest.importorskip("skfeature.function.similarity_based.lap_score")
    X, _ = data
    theirs = module.lap_score(X, W=sparse.csr_matrix(graph_of(X)), mode="index")
    np.testing.assert_array_equal(np.argsort(-laplacian_score(X)), theirs)


def test_mcfs_of_skfeature(data):
    """The graph is that of Coterie. Features have equal length, because skfeature does not standardise them.

    skfeature uses the largest coefficient; the paper and Coterie use the largest absolute one. Lengths of eigenvectors differ.
    """
    module = pytest.importorskip("skfeature.function.sparse_learning_based.MCFS")
    X, _ = data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    theirs = np.abs(module.mcfs(X, n_selected_features=4, W=graph_of(X), n_clusters=1, mode="raw")[:, 0])
    ours = mcfs_score(X, n_clusters=1, n_nonzero=4)
    assert np.count_nonzero(ours) == 4
    np.testing.assert_allclose(ours / ours.max(), theirs / theirs.max(), atol=1e-8)
