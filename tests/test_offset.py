"""Offsets: exact for the squared loss, a covariate for classes, required where the model was fitted with one."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_score

import coterie
from coterie import (
    GroupDiscoveryClassifier,
    GroupDiscoveryClassifierCV,
    GroupDiscoveryRegressor,
    GroupDiscoveryRegressorCV,
    group_confidence,
)
from coterie.inputs.offsets import read_offset


def numbers(n_samples=120, n_features=30, seed=0):
    """Return features, a trait that depends on two of them and on the offset, the offset and a covariate."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    X[:, 7] = X[:, 3] + 0.3 * X[:, 7]
    offset, age = 3.0 * rng.standard_normal(n_samples), rng.standard_normal(n_samples)
    y = offset + X[:, 3] - 0.8 * X[:, 11] + 0.5 * age + 0.5 * rng.standard_normal(n_samples)
    return X, y, offset, age


def classes(n_classes=2, seed=0):
    X, y, offset, age = numbers(seed=seed)
    return X, np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes)), offset, age


@pytest.mark.parametrize("covariates", [False, True])
@pytest.mark.parametrize("predict_with", ["support", "groups"])
def test_regression_equals_a_fit_to_the_difference(covariates, predict_with):
    X, y, offset, age = numbers()
    options = {"covariates": age} if covariates else {}
    model = GroupDiscoveryRegressor(4, predict_with=predict_with).fit(X, y, offset=offset, **options)
    reference = GroupDiscoveryRegressor(4, predict_with=predict_with).fit(X, y - offset, **options)
    assert model.groups_ == reference.groups_
    np.testing.assert_array_equal(model.coef_, reference.coef_)
    assert (model.intercept_, model.dual_gap_) == (reference.intercept_, reference.dual_gap_)
    assert model.offset_coef_.tolist() == [1.0]
    assert not hasattr(reference, "offset_coef_")
    predicted = model.predict(X, offset=offset, **options)
    np.testing.assert_array_equal(predicted, reference.predict(X, **options) + offset)
    assert model.score(X, y, offset=offset, **options) == r2_score(y, predicted)


@pytest.mark.parametrize("covariates", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_have_the_offset_as_a_covariate(n_classes, covariates):
    X, y, offset, age = classes(n_classes)
    options = {"covariates": age} if covariates else {}
    model = GroupDiscoveryClassifier(4).fit(X, y, offset=offset, **options)
    both = np.column_stack([age, offset]) if covariates else offset
    reference = GroupDiscoveryClassifier(4).fit(X, y, covariates=both)
    assert model.groups_ == reference.groups_
    np.testing.assert_array_equal(model.coef_, reference.coef_)
    np.testing.assert_array_equal(model.offset_coef_, reference.covariate_coef_[:, -1])
    assert hasattr(model, "covariate_names_") == covariates
    if covariates:
        np.testing.assert_array_equal(model.covariate_coef_, reference.covariate_coef_[:, :-1])
        assert model.covariate_names_.tolist() == ["covariate_0"]
    np.testing.assert_allclose(
        model.decision_function(X, offset=offset, **options), reference.decision_function(X, both), rtol=1e-12, atol=1e-12
    )
    assert model.score(X, y, offset=offset, **options) == reference.score(X, y, covariates=both)


@pytest.mark.parametrize("predict_with", ["support", "groups"])
def test_scores_of_folds_agree_with_separate_fits(predict_with):
    X, y, offset, _ = numbers()
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    model = GroupDiscoveryRegressorCV(
        3, min_features_to_select=3, n_features_per_round=1, Cs=[1.0], cv=folds, predict_with=predict_with, nested=True
    ).fit(X, y, offset=offset)
    expected = []
    for train, test in folds:
        own = GroupDiscoveryRegressor(3, n_features_per_round=1, C=1.0, predict_with=predict_with)
        own.fit(X[train], y[train], offset=offset[train])
        expected.append(own.score(X[test], y[test], offset=offset[test]))
    row = np.flatnonzero(model.cv_results_["n_features"] == 3)[0]
    found = [model.cv_results_[f"split{k}_test_score"][row] for k in range(4)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    constant = [r2_score(y[test], offset[test] + (y - offset)[train].mean()) for train, test in folds]
    np.testing.assert_allclose(model.constant_scores_, constant, rtol=1e-12)


def test_baseline_of_classes_is_the_model_on_the_offset():
    X, y, offset, _ = classes()
    settings = {"Cs": [1.0], "cv": 4, "nested": True, "random_state": 0}
    model = GroupDiscoveryClassifierCV(5, **settings).fit(X, y, offset=offset)
    reference = GroupDiscoveryClassifierCV(5, **settings).fit(X, y, covariates=offset)
    np.testing.assert_array_equal(model.constant_scores_, reference.constant_scores_)
    np.testing.assert_array_equal(model.nested_scores_, reference.nested_scores_)
    np.testing.assert_allclose(model.predict_proba(X, offset=offset), reference.predict_proba(X, offset), rtol=1e-10)
    assert model.constant_scores_.mean() > 0.7


def test_confidences_are_those_of_the_difference():
    X, y, offset, _ = numbers()
    model = GroupDiscoveryRegressor(4).fit(X, y, offset=offset)
    reference = GroupDiscoveryRegressor(4).fit(X, y - offset)
    counts = {"n_pairs": 5, "n_permutations": 2, "random_state": 0}
    found = group_confidence(model, X, y, offset=offset, **counts)
    expected = group_confidence(reference, X, y - offset, **counts)
    np.testing.assert_array_equal(found.confidence, expected.confidence)
    for own, other in zip(found.permuted, expected.permuted, strict=True):
        np.testing.assert_array_equal(own, other)
    with pytest.raises(ValueError, match="another model or other data"):
        group_confidence(model, X, y, offset=offset + 1.0, resume=found, **counts)
    with pytest.raises(ValueError, match="fitted with an offset"):
        group_confidence(model, X, y, **counts)
    with pytest.raises(ValueError, match="fitted without an offset"):
        group_confidence(reference, X, y, offset=offset, **counts)


def test_confidences_of_classes_permute_the_offset_with_the_labels():
    X, y, offset, _ = classes()
    counts = {"n_pairs": 5, "n_permutations": 2, "random_state": 0}
    found = group_confidence(GroupDiscoveryClassifier(4).fit(X, y, offset=offset), X, y, offset=offset, **counts)
    expected = group_confidence(GroupDiscoveryClassifier(4).fit(X, y, covariates=offset), X, y, covariates=offset, **counts)
    np.testing.assert_array_equal(found.confidence, expected.confidence)
    np.testing.assert_array_equal(found.permuted, expected.permuted)


def test_discover_compares_with_the_offset():
    X, y, offset, _ = numbers()
    found = coterie.discover(X, y, offset=offset, max_features_to_select=4, n_pairs=3, n_permutations=1)
    assert found.held_out.baseline == "offset alone"
    assert found.held_out.constant > 0.7
    assert found.held_out.mean > found.held_out.constant
    assert {3, 11} <= set(found.groups.support.tolist())
    np.testing.assert_allclose(found.predict(X, offset=offset), found.model.predict(X, offset=offset))


@pytest.mark.parametrize("make", [numbers, classes])
def test_prediction_requires_the_offset_of_the_fit(make, tmp_path):
    X, y, offset, _ = make()
    kind = GroupDiscoveryRegressor if make is numbers else GroupDiscoveryClassifier
    with_offset, without = kind(3).fit(X, y, offset=offset), kind(3).fit(X, y)
    coterie.save(with_offset, tmp_path / "model")
    coterie.save(with_offset, tmp_path / "short", content="prediction")
    for model in (with_offset, coterie.load(tmp_path / "model"), coterie.load(tmp_path / "short")):
        with pytest.raises(ValueError, match="fitted with an offset"):
            model.predict(X)
        np.testing.assert_array_equal(model.predict(X, offset=offset), with_offset.predict(X, offset=offset))
        with pytest.raises(ValueError, match="offset has 3 entries, but X has 120 samples"):
            model.predict(X, offset=offset[:3])
    with pytest.raises(ValueError, match="fitted without an offset"):
        without.predict(X, offset=offset)
    with pytest.raises(ValueError, match="fitted with an offset"):
        with_offset.score(X, y)


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        ([1.0, 2.0], "offset has 2 entries, but X has 3 samples"),
        (np.ones((3, 2)), "one-dimensional.*column of the chromosome"),
        ([1.0, np.nan, np.inf], r"missing or infinite for 2 sample\(s\). The first is sample 1"),
        (["a", "b", "c"], "not numeric"),
        ([1.0, 1e300, 0.0], "exceed"),
    ],
)
def test_invalid_offsets(offset, message):
    with pytest.raises(ValueError, match=message):
        read_offset(offset, 3)


@pytest.mark.parametrize("make", [numbers, classes])
def test_an_offset_that_contains_y_is_an_error(make):
    X, y, _, _ = make()
    kind = GroupDiscoveryRegressor if make is numbers else GroupDiscoveryClassifier
    with pytest.raises(ValueError, match="The offset explains y completely"):
        kind(3).fit(X, y, offset=y + 1.0)


def test_offset_of_numbers_requires_a_loss_that_uses_it():
    from coterie.solver.losses import SquaredLoss

    class Other(SquaredLoss):
        @classmethod
        def of(cls, targets, weight, C, fit_intercept):
            return SquaredLoss(targets.values, weight, C, fit_intercept)

    X, y, offset, _ = numbers()
    with pytest.raises(ValueError, match="requires a loss that uses it: 'squared', 'huber', 'quantile', 'poisson' or 'gamma'"):
        GroupDiscoveryRegressor(3, loss=Other).fit(X, y, offset=offset)


def test_one_class_has_no_offset():
    X, _, offset, _ = numbers()
    with pytest.raises(ValueError, match="offset cannot be used with task='one-class'"):
        coterie.discover(X, offset=offset, task="one-class")


def test_routing_passes_the_offset():
    X, y, offset, _ = numbers()
    with sklearn.config_context(enable_metadata_routing=True):
        model = GroupDiscoveryRegressor(3).set_fit_request(offset=True).set_score_request(offset=True)
        scores = cross_val_score(model, X, y, cv=KFold(3), params={"offset": offset})
    expected = []
    for train, test in KFold(3).split(X):
        own = GroupDiscoveryRegressor(3).fit(X[train], y[train], offset=offset[train])
        expected.append(own.score(X[test], y[test], offset=offset[test]))
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


def test_covariates_and_offset_of_the_baseline():
    X, y, offset, age = numbers()
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    model = GroupDiscoveryRegressorCV(3, Cs=[1.0], cv=folds, nested=True).fit(X, y, offset=offset, covariates=age)
    expected = []
    for train, test in folds:
        known = LinearRegression().fit(age[train, None], (y - offset)[train])
        expected.append(r2_score(y[test], known.predict(age[test, None]) + offset[test]))
    np.testing.assert_allclose(model.constant_scores_, expected, rtol=1e-10)


def test_effects_are_those_beside_the_offset():
    X, y, offset, _ = numbers()
    groups = np.arange(len(y)) // 3
    model = GroupDiscoveryRegressor(3).fit(X, y, offset=offset)
    for known in ({}, {"groups": groups}):
        found = coterie.group_effects(model, X, y, offset=offset, **known)
        expected = coterie.group_effects(GroupDiscoveryRegressor(3).fit(X, y - offset), X, y - offset, **known)
        for name in ("effects", "low", "high"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-10)
    with pytest.raises(ValueError, match="fitted with an offset"):
        coterie.group_effects(model, X, y)


def test_sample_groups_change_the_intervals_but_not_the_effects():
    X, y, _, _ = numbers()
    model = GroupDiscoveryRegressor(3).fit(X, y)
    alone = coterie.group_effects(model, X, y)
    together = coterie.group_effects(model, X, y, groups=[f"family {k // 4}" for k in range(len(y))])
    np.testing.assert_allclose(together.effects, alone.effects, rtol=1e-10)
    assert (together.high - together.low > alone.high - alone.low).all()
