"""OSCAR, compared with cvxpy and sortedl1; its proximal step, compared with isotonic regression."""

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.isotonic import isotonic_regression
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie.baselines import OSCARSelector
from coterie.baselines.penalized import SortedL1
from tests.conftest import grouped_matrix, sparse_counts


@parametrize_with_checks([OSCARSelector(1)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def standardized(X, y):
    scale = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    t = np.where(y == np.unique(y)[1], 1.0, -1.0)
    return Z, t - t.mean()


def objective(Z, t, w, alpha, grouping):
    """Return the objective by its definition with pairs."""
    m = len(w)
    pairs = sum(max(abs(w[j]), abs(w[k])) for j in range(m) for k in range(j))
    return np.sum((t - Z @ w) ** 2) / (2 * len(t)) + alpha * (np.abs(w).sum() + grouping / (m - 1) * pairs)


@pytest.mark.parametrize("grouping", [0.0, 1.0, 8.0])
def test_against_cvxpy(rng, grouping):
    X, y = grouped_matrix(rng, n_features=8)
    Z, t = standardized(X, y)
    model = OSCARSelector("auto", alpha=0.05, grouping=grouping, tol=1e-9).fit(X, y)
    w = cp.Variable(8)
    pairs = sum(cp.maximum(cp.abs(w[j]), cp.abs(w[k])) for j in range(8) for k in range(j))
    value = cp.sum_squares(t - Z @ w) / (2 * len(t)) + 0.05 * (cp.norm1(w) + grouping / 7 * pairs)
    best = cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL)
    assert model.objective_ == pytest.approx(best, abs=1e-8)
    assert model.objective_ == pytest.approx(objective(Z, t, model.coef_, 0.05, grouping), abs=1e-12)
    assert -1e-8 <= model.objective_ - best <= model.dual_gap_ + 1e-8
    assert model.dual_gap_ < 1e-7
    np.testing.assert_allclose(model.coef_, w.value, atol=1e-4)


def test_against_sortedl1(rng):
    sortedl1 = pytest.importorskip("sortedl1", reason="needs the extra 'bench'")
    X, y = grouped_matrix(rng, n_features=30)
    Z, t = standardized(X, y)
    model = OSCARSelector(12, grouping=2.0, tol=1e-9).fit(X, y)
    weights = model.alpha_ * (1 + 2.0 * np.arange(29, -1, -1) / 29)
    slope = sortedl1.Slope(lam=weights, alpha=1.0, fit_intercept=False, tol=1e-10).fit(Z, t)
    np.testing.assert_allclose(model.coef_, np.ravel(slope.coef_), atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_prox_is_isotonic_regression(seed):
    rng = np.random.default_rng(seed)
    v, weights = rng.standard_normal(40), np.sort(rng.uniform(0, 1, 40))[::-1]
    v[5] = -v[6]
    order = np.argsort(-np.abs(v), kind="stable")
    expected = np.empty(40)
    expected[order] = np.maximum(isotonic_regression(np.abs(v)[order] - 0.7 * weights, increasing=False), 0)
    np.testing.assert_allclose(SortedL1(weights).prox(v, 0.7), np.sign(v) * expected, atol=1e-12)


def test_number_of_features_and_groups(rng):
    X, y = grouped_matrix(rng, n_features=20, noise=0.2)
    for n_wanted in (1, 4, 9):
        model = OSCARSelector(n_wanted).fit(X, y)
        assert len(model.support_features_) == n_wanted
        sizes = np.abs(model.coef_)
        assert sizes[model.support_features_].min() >= np.sort(sizes)[-n_wanted]
        assert set(model.groups_.members) == set(np.flatnonzero(sizes))
        for group in model.groups_:
            np.testing.assert_allclose(sizes[group.affiliated], sizes[group.support], rtol=1e-10)
            np.testing.assert_allclose(
                group.correlation, [np.corrcoef(X[:, group.support], X[:, j])[0, 1] for j in group.affiliated], atol=1e-10
            )
        levels = [sizes[group.support] for group in model.groups_]
        assert (np.diff(levels) < 0).all()
    assert max(len(group) for group in model.groups_) > 1


def test_sparse_data_and_labels(rng):
    X, y = sparse_counts(rng, n_features=30, density=0.3)
    X[:, 4] = 0.0
    names = np.where(y > 0, "yes", "no")
    dense = OSCARSelector(5, tol=1e-8).fit(X, names)
    for data in (sparse.csc_array(X), sparse.csr_matrix(X.astype(np.float32))):
        other = OSCARSelector(5, tol=1e-8).fit(data, names)
        np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-6)
    assert dense.coef_[4] == 0.0
    assert len(OSCARSelector(30).fit(X, names).support_features_) == 30  # the path ends at 29


def test_wrong_input(rng):
    X, y = grouped_matrix(rng, n_features=5)
    with pytest.raises(ValueError, match="binary classification"):
        OSCARSelector(2).fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match="requires alpha"):
        OSCARSelector("auto").fit(X, y)
    with pytest.raises(ValueError, match="All features of X are constant"):
        OSCARSelector(1).fit(np.ones((60, 3)), y)
    with pytest.warns(UserWarning, match="max_iter=2"):
        OSCARSelector(3, max_iter=2).fit(X, y)
    for wrong in ({"alpha": 0}, {"grouping": -1}, {"tol": 0}, {"max_iter": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            OSCARSelector(2, **wrong).fit(X, y)
