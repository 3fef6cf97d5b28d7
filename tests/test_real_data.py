"""Real data, if available: groups compared with brute force, duality gaps, and equal results in every form."""

import numpy as np
import pytest
from scipy import sparse

from coterie import GroupDiscoveryClassifier
from tests import naive


def load_sparse(path):
    with np.load(path, allow_pickle=False) as file:
        X = sparse.csr_array((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
        return X, file["y"]


def load_dense(path):
    with np.load(path, allow_pickle=False) as file:
        return file["X"], file["y"]


def brute_force(S, model, threshold=0.7):
    """Return the correlation of every column with every support column, by one sparse product."""
    S = sparse.csc_array(S, dtype=np.float64)
    n = S.shape[0]
    mean = np.asarray(S.mean(axis=0)).ravel()
    square = np.asarray(S.power(2).sum(axis=0)).ravel()
    norm = np.sqrt(np.maximum(square - n * mean**2, 0))
    supports = model.support_features_
    products = (S.T @ S[:, supports]).toarray() - n * np.outer(mean, mean[supports])
    with np.errstate(invalid="ignore", divide="ignore"):
        C = np.abs(products / np.outer(norm, norm[supports]))
    C[norm < 1e-12] = 0.0
    best = C.max(axis=1)
    owner = np.argmax(best[:, None] - 1e-10 <= C, axis=1)
    strong = best >= threshold - 1e-10
    strong[supports] = False
    return {int(z): set(np.flatnonzero(strong & (owner == k)).tolist()) for k, z in enumerate(supports)}


@pytest.mark.slow  # 15 s; small sparse data are compared with brute force in every run
def test_20news_complete_groups_are_those_of_brute_force(real_data):
    X, y = load_sparse(real_data / "20news_bigrams.npz")
    half = np.arange(len(y)) % 2 == 0
    S, y = X[half].tocsc(), y[half]
    model = GroupDiscoveryClassifier(100).fit(S, y)
    assert len(model.support_features_) == 100
    assert max(r.gap for r in model.history_) <= 1e-4
    assert {g.support: set(g.affiliated.tolist()) for g in model.groups_} == brute_force(S, model)
    assert model.n_correlations_evaluated_ < 1e-4 * model.n_correlations_possible_


@pytest.mark.parametrize("name", ["dorothea", "basehock"])
def test_sparse_sets(real_data, name):
    X, y = load_sparse(real_data / f"{name}.npz")
    model = GroupDiscoveryClassifier(50).fit(X, y)
    assert max(r.gap for r in model.history_) <= 1e-4
    assert {g.support: set(g.affiliated.tolist()) for g in model.groups_} == brute_force(X, model)
    order = np.random.default_rng(0).permutation(X.shape[1])
    permuted = GroupDiscoveryClassifier(50, n_jobs=1).fit(X.tocsc()[:, order], y)
    # Identical columns differ in their position only.
    first, second = X.tocsc()[:, model.support_features_], X.tocsc()[:, order[permuted.support_features_]]
    assert (first != second).nnz == 0


@pytest.mark.parametrize(("name", "options"), [("mnist_3v8", {}), ("gisette_valid", {}), ("madelon", {"standardize": True})])
def test_dense_sets(real_data, name, options):
    X, y = load_dense(real_data / f"{name}.npz")
    assert len(np.unique(y)) == 2
    model = GroupDiscoveryClassifier(40, **options).fit(X, y)
    assert max(r.gap for r in model.history_) <= 1e-4
    C = np.abs(naive.correlation(X))
    expected = naive.complete_groups(X, model.support_features_, 0.7) if X.shape[1] < 1000 else None
    if expected is not None:
        assert {g.support: set(g.affiliated.tolist()) for g in model.groups_} == expected
    kept = C[np.ix_(model.support_features_, model.support_features_)]
    assert (kept - np.eye(40) < 0.7).all()
    as_sparse = GroupDiscoveryClassifier(40, **options).fit(sparse.csc_array(X), y)
    assert as_sparse.groups_ == model.groups_


def test_expression_data_with_few_samples(real_data):
    """44 samples and 7,129 genes, read by scikit-learn, are separable from the first round."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(real_data / "duke.svm"))
    for matrix in (X, X.toarray()):
        model = GroupDiscoveryClassifier(60).fit(matrix, y)
        assert max(r.gap for r in model.history_) <= 1e-4
