"""Validated choice for regression."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, LeaveOneOut
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import GroupDiscoveryRegressor, GroupDiscoveryRegressorCV, load, save
from coterie.validation.metrics import accuracy, r_squared
from tests.conftest import grouped_matrix


@parametrize_with_checks([GroupDiscoveryRegressorCV(5, Cs=2, n_features_per_round=2, cv=2)])
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.fixture
def numbers(rng):
    X, _ = grouped_matrix(rng, n_samples=70)
    return X, X[:, 0] - 0.5 * X[:, 1] + 0.5 * rng.standard_normal(70)


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.filterwarnings("ignore:.* have the weight 0:UserWarning")
def test_path_scores_equal_separate_fits(numbers, rng, is_sparse):
    X, y = numbers
    X = sparse.csc_array(np.where(np.abs(X) > 1.0, X, 0.0)) if is_sparse else X
    rows = X.tocsr() if is_sparse else X
    folds = KFold(3, shuffle=True, random_state=1)
    weight = rng.integers(1, 4, len(y)).astype(float)
    model = GroupDiscoveryRegressorCV(
        6, Cs=[0.01, 1.0], thresholds=[0.6, 0.8], standardize=[False, True], predict_with=["groups", "support"], cv=folds
    ).fit(X, y, sample_weight=weight)
    table = pd.DataFrame(model.cv_results_)
    names = ["C", "threshold", "standardize", "predict_with"]
    for fold, (train, test) in enumerate(folds.split(y)):
        for row in table[table["n_features"].isin([1, 3, 6])].to_dict("records"):
            single = GroupDiscoveryRegressor(row["n_features"], **{name: row[name] for name in names})
            single.fit(rows[train], y[train], sample_weight=weight[train])
            expected = single.score(rows[test], y[test], sample_weight=weight[test])
            assert row[f"split{fold}_test_score"] == pytest.approx(expected, abs=1e-8)
    best = table.iloc[int(np.argmax(table["mean_test_score"]))]
    assert model.best_score_ == best["mean_test_score"]
    assert [getattr(model, f"{name}_") for name in names] == best[names].tolist()
    plain = GroupDiscoveryRegressor(model.n_features_, **best[names]).fit(X, y, sample_weight=weight)
    assert model.groups_ == plain.groups_
    np.testing.assert_array_equal(model.predict(rows), plain.predict(rows))


def test_scorers_rules_and_files(numbers, tmp_path):
    X, y = numbers
    options = {"Cs": 4, "cv": 3, "random_state": 0}
    model = GroupDiscoveryRegressorCV(10, scoring="neg_mean_absolute_error", rule="one_se", **options).fit(X, y)
    assert model.best_score_ < 0.0
    assert model.n_features_ <= GroupDiscoveryRegressorCV(10, **options).fit(X, y).n_features_ + 5
    save(model, tmp_path / "model.coterie")
    again = load(tmp_path / "model.coterie")
    assert again.get_params() == model.get_params()
    assert pd.DataFrame(again.cv_results_).equals(pd.DataFrame(model.cv_results_))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_embedded_cross_validation(numbers):
    X, y = numbers
    model = GroupDiscoveryRegressorCV(5, Cs=2, cv=2, embedded_cv=3, random_state=0).fit(X, y)
    plain = GroupDiscoveryRegressor(model.n_features_, C=model.C_, cv=3, random_state=0).fit(X, y)
    assert model.groups_ == plain.groups_
    np.testing.assert_array_equal(model.votes_, plain.votes_)


def test_folds_of_one_sample_have_no_r_squared(numbers):
    X, y = numbers
    with pytest.raises(ValueError, match="NaN for every number of features"):
        GroupDiscoveryRegressorCV(2, Cs=[1.0], cv=LeaveOneOut()).fit(X[:10], y[:10])
    GroupDiscoveryRegressorCV(2, Cs=[1.0], cv=LeaveOneOut(), scoring="neg_mean_squared_error").fit(X[:10], y[:10])


@pytest.mark.parametrize("weighted", [False, True])
def test_default_scores_are_scikit_learns(rng, weighted):
    y, predicted = rng.standard_normal((2, 20))
    weight = rng.random(20) if weighted else None
    assert r_squared(y, predicted, weight) == pytest.approx(r2_score(y, predicted, sample_weight=weight))
    constant = np.full(20, 2.0)
    for guess in (constant, predicted):
        assert r_squared(constant, guess, weight) == r2_score(constant, guess, sample_weight=weight)
    assert accuracy(np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([1.0, 2.0, 1.0])) == 0.5
