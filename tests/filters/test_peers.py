"""The scores next to independent implementations, where these are installed; differences are explained.

skfeature gives ranks only for two of them; the values are compared with the definitions in test_scores.py.
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
    """Classes are of equal size: with more than two, skrebate counts one sample too few in each for the priors."""
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
    """The graph is ours: theirs links every sample with itself, which raises D by 1 and so lowers all scores."""
    module = pytest.importorskip("skfeature.function.similarity_based.lap_score")
    X, _ = data
    theirs = module.lap_score(X, W=sparse.csr_matrix(graph_of(X)), mode="index")
    np.testing.assert_array_equal(np.argsort(-laplacian_score(X)), theirs)


def test_mcfs_of_skfeature(data):
    """The graph is ours, and features have equal length: they regress on features as they are, we on standardised ones.

    They take the largest coefficient, the papers (and we) the largest absolute one; eigenvectors have another length.
    """
    module = pytest.importorskip("skfeature.function.sparse_learning_based.MCFS")
    X, _ = data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    theirs = np.abs(module.mcfs(X, n_selected_features=4, W=graph_of(X), n_clusters=1, mode="raw")[:, 0])
    ours = mcfs_score(X, n_clusters=1, n_nonzero=4)
    assert np.count_nonzero(ours) == 4
    np.testing.assert_allclose(ours / ours.max(), theirs / theirs.max(), atol=1e-8)
