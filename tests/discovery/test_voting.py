"""Embedded cross-validation: votes against naive code, and the rules that hold with and without it."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import GroupDiscoveryClassifier, GroupDiscoveryOneClass, GroupDiscoveryRegressor
from coterie.metrics import group_recovery
from coterie.solver.losses import SquaredHinge
from tests import naive
from tests.conftest import grouped_matrix, sparse_counts


@parametrize_with_checks(
    [GroupDiscoveryClassifier("auto", cv=2, random_state=0), GroupDiscoveryRegressor("auto", cv=2, random_state=0)]
)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
def test_first_round_is_that_of_naive_code(rng, is_sparse, fit_intercept, standardize):
    X, y = sparse_counts(rng, n_samples=90, n_features=60)
    X = X + 0.01 * rng.standard_normal(X.shape)  # no ties
    folds = StratifiedKFold(4, shuffle=True, random_state=1)
    make = sparse.csc_array if is_sparse else np.asarray
    model = GroupDiscoveryClassifier(5, n_features_per_round=5, cv=folds, fit_intercept=fit_intercept, standardize=standardize)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(max_rounds=1).fit(make(X), y)
    residual = SquaredHinge(y, np.ones(len(y)), 1.0, fit_intercept).evaluate(np.zeros((len(y), 1))).residual[:, 0]
    scale = X.std(axis=0) if standardize else 1.0
    votes = np.zeros(60, dtype=int)
    for train, _ in folds.split(X, y):
        part = X[train]
        scores = (part - (part.mean(axis=0) if fit_intercept else 0)).T @ residual[train] / scale
        new, _ = naive.walk(scores, naive.correlation(part), [], 5, 0.7)
        votes[new] += 1
    np.testing.assert_array_equal(model.votes_, votes)
    whole = np.abs((X - (X.mean(axis=0) if fit_intercept else 0)).T @ residual / scale)
    C, chosen = np.abs(naive.correlation(X)), []
    for j in sorted(np.flatnonzero(votes), key=lambda j: (-votes[j], -whole[j])):
        if len(chosen) < 5 and not any(C[j, z] >= 0.7 for z in chosen):
            chosen.append(int(j))
    assert model.support_features_.tolist() == chosen
    np.testing.assert_allclose(model.history_[0].scores, whole[chosen])


@pytest.mark.parametrize("seed", range(3))
def test_correlations_by_chance_in_a_fold_are_not_in_the_groups(seed):
    X, y = grouped_matrix(np.random.default_rng(seed), n_samples=40, n_features=60, noise=1.0)
    options = {"n_features_per_round": 2, "cv": 5, "affiliates": "ranked", "threshold": 0.5, "random_state": 0}
    model = GroupDiscoveryClassifier(8, **options).fit(X, y)
    C = naive.correlation(X)
    for group in model.groups_:
        np.testing.assert_allclose(group.correlation, C[group.affiliated, group.support], atol=1e-9)
        assert (np.abs(group.correlation) >= 0.5).all()
        assert (
            np.abs(group.correlation) >= np.abs(C[np.ix_(group.affiliated, model.support_features_)]).max(axis=1) - 1e-9
        ).all()
    assert len(model.groups_.members) > 8


@pytest.mark.parametrize("affiliates", ["complete", "ranked"])
@pytest.mark.parametrize("correlation", ["pearson", "su", None])
def test_rules_hold_with_folds(rng, correlation, affiliates):
    X, y = grouped_matrix(rng, n_samples=120, n_features=60, noise=0.8)
    options = {"n_features_per_round": 4, "correlation": correlation, "affiliates": affiliates, "cv": 3, "random_state": 0}
    model = GroupDiscoveryClassifier(10, **options).fit(X, y)
    assert len(model.support_features_) == len(set(model.support_features_)) == 10
    assert max(r.gap for r in model.history_) <= 1e-4
    theta = np.array([r.objective for r in model.history_])
    assert (np.diff(theta) >= -1e-9 * theta[:-1]).all()
    assert (model.votes_[model.support_features_] > 0).sum() >= 8
    if correlation == "pearson":
        C = np.abs(naive.correlation(X))
        assert (C[np.ix_(model.support_features_, model.support_features_)] - np.eye(10) < 0.7).all()
        complete = naive.complete_groups(X, model.support_features_, 0.7)
        for group in model.groups_:
            if affiliates == "complete":
                assert set(group.affiliated.tolist()) == complete[group.support]
    again = GroupDiscoveryClassifier(10, n_jobs=1, **options).fit(X, y)
    assert again.groups_ == model.groups_
    order = rng.permutation(60)
    permuted = GroupDiscoveryClassifier(10, **options).fit(X[:, order], y)
    assert order[permuted.support_features_].tolist() == model.support_features_.tolist()
    as_sparse = GroupDiscoveryClassifier(10, **options).fit(sparse.csc_array(X), y)
    assert as_sparse.support_features_.tolist() == model.support_features_.tolist()


def test_planted_groups_are_found_with_folds(planted):
    model = GroupDiscoveryClassifier(4, n_features_per_round=1, cv=5, random_state=0).fit(planted.X, planted.y)
    assert group_recovery(planted.groups, model.groups_) == 1.0


def test_other_estimators_take_folds(rng):
    X, y = sparse_counts(rng)
    several = GroupDiscoveryClassifier(6, cv=3, random_state=0).fit(X, np.arange(len(X)) % 3)
    assert len(several.support_features_) == 6
    weight = rng.random(len(y)) + 0.1
    number = GroupDiscoveryRegressor(6, cv=KFold(3), n_features_per_round=3).fit(X, X[:, 3], sample_weight=weight)
    assert number.support_features_[0] == 3
    assert GroupDiscoveryOneClass(6, cv=3, random_state=0).fit(X).votes_.sum() > 0
    assert not hasattr(several.set_params(cv=None).fit(X, y), "votes_")


@pytest.mark.parametrize(("cv", "message"), [(1, "cv=1"), (1000, "cv=1000"), ("five", "cv='five'"), (0.5, "cv=0.5")])
def test_wrong_folds(rng, cv, message):
    with pytest.raises(ValueError, match=message):
        GroupDiscoveryClassifier(2, cv=cv).fit(*grouped_matrix(rng))


@pytest.mark.parametrize("seed", range(8))
def test_ties_in_votes_do_not_depend_on_the_order_of_the_columns(seed):
    """Copies with their signs changed get the same scores and, from different folds, the same votes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 24))
    X[:, 12:] = -X[:, :12]
    y = X[:, 0] + 0.8 * X[:, 1] - 0.6 * X[:, 2] + 0.5 * rng.standard_normal(80) > 0
    order = rng.permutation(24)
    options = {"n_features_to_select": 6, "n_features_per_round": 2, "cv": 4, "random_state": 0}
    model = GroupDiscoveryClassifier(**options).fit(X, y)
    permuted = GroupDiscoveryClassifier(**options).fit(np.ascontiguousarray(X[:, order]), y)
    assert order[permuted.support_features_].tolist() == model.support_features_.tolist()
    np.testing.assert_array_equal(permuted.votes_, model.votes_[order])
    # Folds agree on which copy they propose, so the copies do not take votes from each other.
    alone = GroupDiscoveryClassifier(**options).fit(X[:, :12], y)
    assert (model.support_features_ % 12).tolist() == alone.support_features_.tolist()
    np.testing.assert_array_equal(model.votes_[:12] + model.votes_[12:], alone.votes_)
    assert not (model.votes_[:12] * model.votes_[12:]).any()
