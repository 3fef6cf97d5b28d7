"""Equal shares of several classes in the choice of features."""

import numpy as np
import pytest

import coterie
from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, GroupDiscoveryRegressor
from coterie.search.oracle import Oracle
from coterie.search.shares import equal_shares


def data_of(seed=0, shares=(0.6, 0.25, 0.1, 0.05), n_samples=400):
    """Each class raises five features of its own."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(shares)), np.round(np.array(shares) * n_samples).astype(int))
    X = rng.standard_normal((len(y), 60))
    for k in range(len(shares)):
        X[np.ix_(y == k, np.arange(5 * k, 5 * k + 5))] += 1.5
    return X, np.array(["a", "b", "c", "d"])[y]


def counts_of(model):
    """Number of support features of each class."""
    own = model.groups_.support // 5
    return np.bincount(own[own < 4], minlength=4)


def test_equal_shares():
    rng = np.random.default_rng(0)
    residual = rng.standard_normal((30, 4)) * [1.0, 10.0, 0.1, 0.0]
    found = equal_shares(residual)
    norms = np.linalg.norm(residual, axis=0)
    for k in range(3):
        np.testing.assert_allclose(found[:, k], residual[:, k] / norms[k] * norms[1])
    assert not found[:, 3].any()
    np.testing.assert_array_equal(equal_shares(residual[:, :1]), residual[:, :1])


def test_every_class_gets_features():
    totals, fair = np.zeros(4, dtype=int), np.zeros(4, dtype=int)
    for seed in range(3):
        X, y = data_of(seed)
        totals += counts_of(GroupDiscoveryClassifier(8).fit(X, y))
        fair += counts_of(GroupDiscoveryClassifier(8, equal_classes=True).fit(X, y))
    assert fair.min() > totals.min()
    assert fair.max() - fair.min() < totals.max() - totals.min()


def test_one_round_is_the_best_scaled_score():
    """The first feature has the largest sum of squared correlations with the residuals of the constant model."""
    X, y = data_of()
    model = GroupDiscoveryClassifier(1, equal_classes=True, standardize=True).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    # Residuals of a constant model of one class against the rest: the same in each of the two, with sum 0.
    squares = np.zeros(X.shape[1])
    for label in np.unique(y):
        side = np.where(y == label, 1.0 / (y == label).sum(), -1.0 / (y != label).sum())
        squares += (Z.T @ side) ** 2 / (side @ side)
    assert model.groups_[0].support == int(np.argmax(squares))


def test_scores_are_those_of_the_residuals():
    """Recorded scores do not depend on the option, if the same feature is chosen."""
    X, y = data_of()
    chosen = GroupDiscoveryClassifier(4, n_features_per_round=4, equal_classes=True).fit(X, y).history_[0]
    plain = GroupDiscoveryClassifier(60, n_features_per_round=60, correlation=None).fit(X, y).history_[0]
    own = dict(zip(plain.features.tolist(), plain.scores.tolist(), strict=True))
    assert chosen.scores.tolist() == pytest.approx([own[feature] for feature in chosen.features.tolist()])


def test_two_classes_are_unchanged():
    X, y = data_of()
    labels = np.where(y == "a", "a", "b")
    first, second = (GroupDiscoveryClassifier(6, equal_classes=equal).fit(X, labels) for equal in (False, True))
    np.testing.assert_array_equal(first.coef_, second.coef_)


def test_bounds_hold():
    """The optimum over all sets lies between the bounds, whatever blocks were chosen."""
    X, y = data_of()
    plain = GroupDiscoveryClassifier("auto", n_features_per_round=3, reuse_features=True, C=0.1).fit(X, y)
    equal = GroupDiscoveryClassifier("auto", n_features_per_round=3, reuse_features=True, C=0.1, equal_classes=True).fit(X, y)
    assert equal.lower_bound_ <= plain.upper_bound_ * (1 + 1e-9)
    assert plain.lower_bound_ <= equal.upper_bound_ * (1 + 1e-9)
    assert equal.dual_gap_ < 1e-4


def test_column_order_does_not_matter():
    X, y = data_of()
    order = np.random.default_rng(1).permutation(60)
    first = GroupDiscoveryClassifier(8, equal_classes=True).fit(X, y)
    second = GroupDiscoveryClassifier(8, equal_classes=True).fit(X[:, order], y)
    np.testing.assert_array_equal(first.groups_.support, order[second.groups_.support])


def test_validation_uses_it(monkeypatch):
    X, y = data_of(n_samples=200)
    options = {"Cs": [0.1], "cv": 3, "random_state": 0, "rule": "best"}
    model = GroupDiscoveryClassifierCV(6, equal_classes=True, **options).fit(X, y)
    alone = GroupDiscoveryClassifier(int(model.n_features_), equal_classes=True, C=model.C_).fit(X, y)
    np.testing.assert_array_equal(model.groups_.support, alone.groups_.support)
    monkeypatch.setattr("coterie.search.search.EqualSharesOracle", Oracle)
    other = GroupDiscoveryClassifierCV(6, equal_classes=True, **options).fit(X, y)
    assert not np.array_equal(other.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"])


def test_messages():
    X, y = data_of()
    with pytest.raises(ValueError, match="equal_classes=True cannot be combined with cv=3, whose folds vote"):
        GroupDiscoveryClassifier(2, equal_classes=True, cv=3).fit(X, y)
    with pytest.raises(ValueError, match="cannot be combined with embedded_cv"):
        GroupDiscoveryClassifierCV(2, equal_classes=True, embedded_cv=3).fit(X, y)
    assert "equal_classes" not in GroupDiscoveryRegressor().get_params()
    assert coterie.discover(X, y, fast=True, n_features_to_select=4, equal_classes=True).model.equal_classes
