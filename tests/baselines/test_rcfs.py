"""RCFS, compared with brute force; its clusters, compared with SciPy on the whole matrix."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie.baselines import RCFSSelector
from coterie.baselines.rcfs import maximise_ratio
from coterie.data import as_source
from tests.conftest import grouped_matrix, sparse_counts


@parametrize_with_checks([RCFSSelector(1)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def canonical(labels):
    """Return the clusters as sets."""
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


@pytest.mark.parametrize("method", ["complete", "average", "single"])
@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_clusters_are_those_of_the_whole_matrix(rng, method, threshold):
    X, y = grouped_matrix(rng, n_features=40, noise=0.6)
    model = RCFSSelector(3, threshold=threshold, linkage=method).fit(X, y)
    distance = 1 - np.abs(np.corrcoef(X.T))
    np.fill_diagonal(distance, 0)
    reference = fcluster(linkage(squareform(distance, checks=False), method), 1 - threshold, "distance")
    assert canonical(model.clusters_) == canonical(reference)
    assert 3 < len(canonical(reference)) < 40
    first = [int(np.argmax(model.clusters_ == c)) for c in range(model.clusters_.max() + 1)]
    assert first == sorted(first)


def brute_force(between, total, clusters, limit, n_wanted):
    best = -1.0
    for subset in combinations(range(len(between)), n_wanted):
        chosen = list(subset)
        if np.bincount(clusters[chosen]).max() <= limit:
            best = max(best, between[chosen].sum() / total[chosen].sum())
    return best


@pytest.mark.parametrize("seed", range(20))
def test_dinkelbach_finds_the_global_optimum(seed):
    rng = np.random.default_rng(seed)
    total = rng.uniform(0.1, 5, 9)
    between = total * rng.uniform(0, 1, 9)
    clusters = rng.integers(0, 4, 9)
    limit = int(rng.integers(1, 3))
    room = int(np.minimum(np.bincount(clusters), limit).sum())
    for n_wanted in range(1, min(room, 5) + 1):
        chosen, ratio, _ = maximise_ratio(as_source(np.eye(9)), between, total, clusters, limit, n_wanted)
        assert ratio == pytest.approx(brute_force(between, total, clusters, limit, n_wanted), rel=1e-12)
        assert between[chosen].sum() / total[chosen].sum() == pytest.approx(ratio)
        assert len(set(chosen.tolist())) == n_wanted
        assert np.bincount(clusters[chosen]).max() <= limit


def test_scatter_and_sparse_data(rng):
    X, y = sparse_counts(rng, n_features=30, density=0.3)
    labels = np.where(X[:, 3] > 0, 2, y)
    X[:, 5] = 7.0
    classes = np.unique(labels)
    between = sum((labels == c).sum() * (X[labels == c].mean(axis=0) - X.mean(axis=0)) ** 2 for c in classes)
    total = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    for data in (X, sparse.csc_array(X), sparse.csr_matrix(X)):
        model = RCFSSelector(5, n_jobs=2).fit(data, labels)
        expected = np.divide(between, total, out=np.zeros(30), where=total > 1e-9)
        np.testing.assert_allclose(model.scores_, expected, atol=1e-12)
        support = model.support_features_
        assert model.separability_ == pytest.approx(between[support].sum() / total[support].sum())
        assert len(set(model.clusters_[support].tolist())) == 5
    scaled = RCFSSelector(30, standardize=True).fit(X, labels)
    assert scaled.support_features_[-1] == 5  # the constant feature is selected last
    best = RCFSSelector(4, standardize=True, n_per_cluster=30).fit(X, labels)
    assert set(best.support_features_) == set(np.argsort(-model.scores_, kind="stable")[:4])


def test_redundant_features_are_not_selected(rng):
    x, z = rng.standard_normal((2, 80))
    X = np.column_stack([x, x + 0.01 * z, -x + 0.01 * z, z])
    y = np.where(x + 0.3 * z > 0, "yes", "no")
    assert set(RCFSSelector(2).fit(X, y).support_features_) > {3}
    with pytest.raises(ValueError, match="2 features are available from 2 clusters with n_per_cluster=1"):
        RCFSSelector(3, n_per_cluster=1).fit(X, y)
    assert len(RCFSSelector(3).fit(X, y).support_features_) == 3
    for wrong in ({"threshold": 0}, {"linkage": "ward"}, {"n_per_cluster": "all"}, {"n_per_cluster": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            RCFSSelector(1, **wrong).fit(X, y)
