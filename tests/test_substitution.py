"""Substitutes for absent features, against regressions by hand."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import coterie
from coterie import (
    GroupDiscoveryClassifier,
    GroupDiscoveryOneClass,
    GroupDiscoveryRegressor,
    GroupDiscoverySurvival,
    imputed,
    substituted,
)
from coterie.data import as_source


def blocks(seed=0, n=120, n_blocks=4, size=3, noise=0.5):
    """Return features in blocks of a common factor, and the factors."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, n_blocks))
    X = factors[:, :, None] + noise * rng.standard_normal((n, n_blocks, size))
    X[:, :, 1] *= -3.0
    return X.reshape(n, -1) + 2.0, factors


@pytest.fixture(scope="module")
def data():
    X, factors = blocks()
    y = 2.0 * factors[:, 0] - factors[:, 1] + 0.3 * np.random.default_rng(1).standard_normal(len(X))
    return pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])]), y


@pytest.fixture(scope="module", params=["support", "groups"])
def model(data, request):
    return GroupDiscoveryRegressor(2, n_features_per_round=1, threshold=0.6, predict_with=request.param).fit(*data)


def regression(target, feature, weight=None):
    """Return intercept and slope of a least-squares regression."""
    slope, intercept = np.polyfit(feature, target, 1, w=None if weight is None else np.sqrt(weight))
    return intercept, slope


def test_a_member_predicts_the_support_feature_by_regression(data, model):
    X, _ = data
    group = model.groups_[0]
    support, member = group.names[:2]
    new = pd.DataFrame(blocks(seed=5)[0], columns=X.columns)
    found = substituted(model, new.drop(columns=support))
    intercept, slope = regression(X[support], X[member])
    column = found.columns(np.array([group.support]))[:, 0]
    np.testing.assert_allclose(column, intercept + slope * new[member], rtol=1e-10)
    expected = model.predict(new.assign(**{support: intercept + slope * new[member]}))
    np.testing.assert_allclose(model.predict(found), expected, rtol=1e-10)
    [entry] = found.substitutes
    assert (entry.feature, entry.substitute, entry.group, entry.reason) == (support, member, 1, "absent")
    assert entry.correlation == pytest.approx(np.corrcoef(X[support], X[member])[0, 1])


def test_weights_of_the_fit_enter_the_regression(data):
    X, y = data
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    model = GroupDiscoveryRegressor(2, n_features_per_round=1, threshold=0.6).fit(X, y, weight)
    support, member = model.groups_[0].names[:2]
    found = substituted(model, X.drop(columns=support)).columns(model.groups_.support[:1])[:, 0]
    np.testing.assert_allclose(model.member_moments_.scale[0] ** 2, np.cov(X[support], aweights=weight, ddof=0), rtol=1e-9)
    intercept, slope = regression(X[support], X[member], weight)
    np.testing.assert_allclose(found, intercept + slope * X[member], rtol=1e-9)


def test_members_predict_each_other_through_the_support_feature(data):
    X, y = data
    model = GroupDiscoveryRegressor(2, n_features_per_round=1, threshold=0.6, predict_with="groups").fit(X, y)
    support, first, second = model.groups_[0].names
    place = int(model.groups_[0].affiliated[1])
    # Without the support feature, two regressions: of the support feature on the member, and of the other one on it.
    found = substituted(model, X.drop(columns=[support, second])).columns(np.array([place]))[:, 0]
    a, b = regression(X[support], X[first])
    c, d = regression(X[second], X[support])
    np.testing.assert_allclose(found, c + d * (a + b * X[first]), rtol=1e-9)
    # With it, one regression.
    found = substituted(model, X.drop(columns=second)).columns(np.array([place]))[:, 0]
    np.testing.assert_allclose(found, c + d * X[support], rtol=1e-9)


def test_complete_data_have_no_substitutes(data, model):
    X, _ = data
    known = model.predict(X)
    for given in (X, X[X.columns[::-1]], pl.DataFrame(X.to_dict("list")), as_source(X.to_numpy(), list(X.columns))):
        found = substituted(model, given)
        assert len(found.substitutes) == 0
        assert found.substitutes.agreement == 1.0
        np.testing.assert_allclose(model.predict(found), known, rtol=1e-12)
    assert "no substitutes" in repr(found.substitutes)
    assert found.substitutes.sentence == ""


def test_sparse_data_and_data_without_names(data):
    X, y = data
    counts = sparse.csc_array(np.maximum(0.0, X.to_numpy() - 1.5))
    model = GroupDiscoveryRegressor(2, n_features_per_round=1, threshold=0.6).fit(counts, y)
    np.testing.assert_allclose(model.predict(substituted(model, counts.tocsr())), model.predict(counts), rtol=1e-12)
    support = int(model.groups_[0].support)
    gap = counts.toarray()
    gap[:, support] = np.nan
    [entry] = substituted(model, gap).substitutes
    assert (entry.feature, entry.reason) == (support, "all values missing")
    with pytest.raises(ValueError, match="11 features"):
        substituted(model, counts[:, :11])


@pytest.mark.parametrize(("n_samples", "is_sparse", "reason"), [(20, False, "constant"), (19, False, None), (40, True, None)])
def test_constant_columns(data, n_samples, is_sparse, reason):
    X, y = data
    model = GroupDiscoveryRegressor(1, n_features_per_round=1, threshold=0.6).fit(X.to_numpy(), y)
    new = X.to_numpy()[:n_samples].copy()
    new[:, model.groups_[0].support] = 0.0
    found = substituted(model, sparse.csc_array(new) if is_sparse else new).substitutes
    assert [entry.reason for entry in found] == ([] if reason is None else [reason])


def test_groups_without_members_have_their_means(data):
    X, y = data
    model = GroupDiscoveryRegressor(2, n_features_per_round=1, threshold=0.6).fit(X, y)
    lacking = list(model.groups_[1].names)
    found = substituted(model, X.drop(columns=lacking))
    [entry] = found.substitutes
    assert (entry.feature, entry.substitute, entry.correlation) == (lacking[0], None, 0.0)
    np.testing.assert_allclose(model.predict(found), model.predict(X.assign(**{lacking[0]: X[lacking[0]].mean()})))
    assert "1 of 2 features is replaced by the training mean" in found.substitutes.sentence
    assert found.substitutes.to_frame().columns.tolist() == ["feature", "group", "reason", "substitute", "correlation"]


@pytest.mark.parametrize("predict_with", ["support", "groups"])
def test_the_stated_agreement_is_that_of_many_samples(predict_with):
    X, factors = blocks(seed=2, n=4000)
    y = factors @ [1.0, -1.0, 0.5, 0.0]
    model = GroupDiscoveryRegressor(3, n_features_per_round=1, threshold=0.6, predict_with=predict_with).fit(X, y)
    # Each support feature has a correlation of about 0.8 with its block, whose members are related through their factor only.
    gap = X.copy()
    gap[:, model.groups_[0].support] = np.nan
    found = substituted(model, gap)
    actual = np.corrcoef(model.predict(found), model.predict(X))[0, 1]
    assert 0.5 < actual < 1.0
    assert found.substitutes.agreement == pytest.approx(actual, abs=0.02)


def test_single_missing_values_follow_the_rules_of_imputation(data):
    X, y = data
    model = GroupDiscoveryRegressor(1, n_features_per_round=1, threshold=0.6).fit(X, y)
    support, member, other = model.groups_[0].names
    holes = X.copy()
    holes.loc[3, support] = np.nan
    with pytest.raises(ValueError, match=f"sample 3 of feature '{support}'"):
        substituted(model, holes)
    # A member with gaps is no substitute if another one is complete.
    gap = X.drop(columns=support).copy()
    gap.loc[3, member] = np.nan
    assert substituted(model, gap).substitutes[0].substitute == other
    filling = GroupDiscoveryRegressor(1, n_features_per_round=1, threshold=0.6).fit(imputed(X), y)
    found = substituted(filling, holes)
    assert not len(found.substitutes)
    assert found.columns(filling.groups_.support)[3, 0] == X[support].median()


def test_no_usable_feature_is_an_error(data, model):
    X, _ = data
    with pytest.raises(ValueError, match="none of the 6 features in the groups"):
        substituted(model, X.rename(columns=str.upper))


def test_the_default_error_names_the_remedy(data, model):
    X, _ = data
    with pytest.raises(ValueError, match=r"X lacks .* reads: .*coterie.substituted\(model, X\)"):
        model.predict(X.drop(columns=model.groups_[0].names[0]))


@pytest.mark.parametrize("kind", ["classes", "survival", "several targets", "one class", "spearman"])
def test_all_estimators_and_their_files(kind, data, tmp_path):
    X, y = data
    made = {
        "classes": lambda: GroupDiscoveryClassifier(3, threshold=0.6).fit(X, np.digitize(y, (-1.0, 1.0))),
        "survival": lambda: GroupDiscoverySurvival(2, threshold=0.6).fit(X, np.column_stack([np.exp(y), y > -1.0])),
        "several targets": lambda: GroupDiscoveryRegressor(2, threshold=0.6).fit(X, np.column_stack([y, 100 * X["f7"]])),
        "one class": lambda: GroupDiscoveryOneClass(3, threshold=0.6, reuse_features=False).fit(X),
        "spearman": lambda: GroupDiscoveryRegressor(2, threshold=0.6, correlation="spearman").fit(X, y),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = made[kind]()
    coterie.save(model, tmp_path / "model", content="prediction")
    again = coterie.load(tmp_path / "model")
    group = next(group for group in model.groups_ if len(group) > 1)
    new = X.drop(columns=group.names[0])
    found = substituted(again, new)
    assert [entry.feature for entry in found.substitutes] == [group.names[0]]
    assert np.array_equal(model.predict(substituted(model, new)), again.predict(found))
    intercept, slope = regression(X[group.names[0]], X[found.substitutes[0].substitute])
    column = found.columns(np.array([group.support]))[:, 0]
    np.testing.assert_allclose(column, intercept + slope * X[found.substitutes[0].substitute], rtol=1e-9)
    assert 0.0 < found.substitutes.agreement < 1.0


@pytest.mark.parametrize("change", [lambda m: m[:-1], lambda m: m * np.nan, lambda m: m.astype(np.float32)])
def test_damaged_moments_are_refused(change, data, tmp_path):
    from dataclasses import replace

    model = GroupDiscoveryRegressor(2, threshold=0.6).fit(*data)
    model.member_moments_ = replace(model.member_moments_, mean=change(model.member_moments_.mean))
    coterie.save(model, tmp_path / "model")
    with pytest.raises(ValueError, match="member_moments_"):
        coterie.load(tmp_path / "model")


def test_substitutes_are_for_the_prediction_only(data, model):
    X, y = data
    found = substituted(model, X)
    absent = np.setdiff1d(np.arange(X.shape[1]), model.prediction_features_)[:1]
    with pytest.raises(ValueError, match="only the features that the model uses"):
        found.columns(absent)
    with pytest.raises(ValueError, match="only the features that the model uses"):
        GroupDiscoveryRegressor(1).fit(found, y)
    with pytest.raises(TypeError, match="requires a model of group discovery"):
        substituted(coterie.CorrelationGroups().fit(X), X)


def test_predictions_of_a_discovery(data):
    X, y = data
    age = np.random.default_rng(3).standard_normal((len(X), 1))
    found = coterie.discover(X, y + age[:, 0], covariates=age, fast=True, n_features_to_select=2, threshold=0.6)
    support = found.groups[0].names[0]
    new = X.drop(columns=support)
    with pytest.raises(ValueError, match="lacks 1 of the 2 features"):
        found.predict(new, covariates=age)
    with pytest.warns(UserWarning, match=f"1 of 2 features is substituted: '{support}' by"):
        predicted = found.predict(new, missing="substitute", covariates=age)
    assert np.array_equal(predicted, found.model.predict(substituted(found.model, new), age))
    complete = found.predict(X, missing="substitute", covariates=age)
    np.testing.assert_allclose(complete, found.predict(X, covariates=age), rtol=1e-12)
    with pytest.raises(ValueError, match="missing="):
        found.predict(new, missing="drop")
