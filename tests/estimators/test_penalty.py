"""C="auto": the weight of the loss relative to the scale of the features, and the warning of unused features."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import coterie
from coterie import GroupDiscoveryClassifier, GroupDiscoveryOneClass, GroupDiscoveryRegressor, group_confidence
from coterie.data import open_store, write_store
from coterie.estimators.base import settings_of
from tests.conftest import grouped_matrix, sparse_counts

FACTORS = {GroupDiscoveryClassifier: 1.0, GroupDiscoveryRegressor: 0.3}
BOTH = pytest.mark.parametrize("estimator", list(FACTORS))


@pytest.fixture
def data(rng):
    X, _ = grouped_matrix(rng, n_samples=80)
    return X, X[:, 0] - X[:, 1] + rng.standard_normal(80)


def target(estimator, y):
    return y if estimator is GroupDiscoveryRegressor else y > 0


def relative(model):
    """Return the weights in units of the margin, which has the unit of the outputs."""
    return model.coef_ / (model.margin_[0] if hasattr(model, "margin_") and model.predict_with == "support" else 1.0)


@BOTH
@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array, sparse.csr_array])
@pytest.mark.parametrize("model", ["support", "groups"])
def test_the_unit_of_the_features_does_not_matter(data, estimator, make, model):
    X, y = data[0], target(estimator, data[1])
    options = {"standardize": False, "predict_with": model, "n_jobs": 1}
    first, second = (estimator(6, **options).fit(make(factor * X), y) for factor in (1.0, 10.0))
    assert pytest.approx(100 * second.C_, rel=1e-12) == first.C_
    assert first.groups_ == second.groups_
    np.testing.assert_allclose(relative(first), 10 * relative(second), rtol=1e-6, atol=1e-9)
    fixed = [relative(estimator(6, C=0.1, **options).fit(make(factor * X), y)) for factor in (1.0, 10.0)]
    assert not np.allclose(fixed[0], 10 * fixed[1], rtol=1e-2)


@BOTH
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("density", [0.05, 0.5])
def test_auto_is_relative_to_a_mean_of_the_variances(rng, estimator, fit_intercept, weighted, density):
    X = sparse_counts(rng, 90, 40, density=density)[0] * np.geomspace(0.1, 10, 40)
    y = target(estimator, rng.standard_normal(90))
    weight = rng.integers(1, 4, 90) if weighted else np.ones(90)
    mean = np.average(X, axis=0, weights=weight) if fit_intercept else 0.0
    variance = np.average((X - mean) ** 2, axis=0, weights=weight)
    variance = variance[X.any(axis=0)]
    typical = (variance**2).sum() / variance.sum() if density < 0.1 else np.exp(np.log(variance).mean())
    for make in (np.asarray, sparse.csc_array):  # the share of zeros decides, not the format
        model = estimator(4, standardize=False, fit_intercept=fit_intercept).fit(make(X), y, weight)
        assert pytest.approx(FACTORS[estimator] / typical, rel=1e-9) == model.C_
        assert model.C == "auto"


def test_features_of_one_variance():
    X = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert GroupDiscoveryClassifier(2, standardize=False).fit(X, [1, 0, 1, 0]).C_ == 4.0


@pytest.mark.parametrize("standardize", [False, True])
def test_a_feature_with_large_values_does_not_remove_the_others(rng, standardize):
    X = rng.standard_normal((200, 10))
    X[:, 9] *= 1e4
    y = X[:, :3].sum(axis=1) > 0
    model = GroupDiscoveryClassifier(4, standardize=standardize).fit(X, y)
    assert np.count_nonzero(model.support_coef_) == 4
    assert model.score(X, y) > 0.9


@BOTH
def test_standardised_features_have_the_factor_itself(data, estimator):
    X, y = data[0], target(estimator, data[1])
    model = estimator(4).fit(X, y)
    assert FACTORS[estimator] == model.C_
    same = estimator(4, C=FACTORS[estimator]).fit(X, y)
    np.testing.assert_array_equal(model.coef_, same.coef_)


def test_a_number_is_kept(data):
    X, y = data
    assert GroupDiscoveryClassifier(4, C=7, standardize=False).fit(X, y > 0).C_ == 7.0
    assert GroupDiscoveryOneClass(4).fit(np.abs(X)).C_ == 1.0


def test_one_class_has_no_automatic_value(data):
    with pytest.raises(ValueError, match="C='auto' must be a number"):
        GroupDiscoveryOneClass(4, C="auto").fit(data[0])


def test_constant_features(data):
    with pytest.raises(ValueError, match="constant"):
        GroupDiscoveryClassifier(4, standardize=False).fit(np.ones_like(data[0]), data[1] > 0)


@pytest.mark.filterwarnings("ignore:.* have the weight 0:UserWarning")
def test_extreme_units_stay_within_the_range_of_C(data):
    X, y = data
    assert GroupDiscoveryClassifier(4, standardize=False).fit(1e-30 * X, y > 0).C_ == 1e20


def test_a_store_has_the_same_value(data, tmp_path):
    X, y = np.asfortranarray(data[0]), data[1]
    store = open_store(write_store(tmp_path / "numbers", X, y=(y > 0).astype(int)))
    stored = GroupDiscoveryClassifier(4, standardize=False).fit(store)
    assert stored.C_ == GroupDiscoveryClassifier(4, standardize=False).fit(X, y > 0).C_


@BOTH
def test_confidence_repeats_the_search_with_the_fitted_value(data, estimator):
    X, y = 0.01 * data[0], target(estimator, data[1])
    options = {"n_pairs": 4, "n_permutations": 1, "random_state": 0}
    model = estimator(6, standardize=False).fit(X, y)
    assert settings_of(model).C == model.C_ > 100
    found = group_confidence(model, X, y, **options).confidence
    fixed = estimator(6, standardize=False, C=model.C_).fit(X, y)
    np.testing.assert_array_equal(found, group_confidence(fixed, X, y, **options).confidence)


def test_saved_models_keep_the_value(data, tmp_path):
    X, y = data
    model = GroupDiscoveryClassifier(4, standardize=False).fit(X, y > 0)
    coterie.save(model, tmp_path / "model.coterie")
    again = coterie.load(tmp_path / "model.coterie")
    assert again.C_ == model.C_ == settings_of(again).C
    old = GroupDiscoveryClassifier(4, standardize=False, C=3.0).fit(X, y > 0)
    del old.C_  # as in models of earlier versions
    assert settings_of(old).C == 3.0


def test_discover_accepts_auto(data):
    X, y = data
    fast = coterie.discover(X, y > 0, fast=True, C="auto", n_features_to_select=4)
    assert fast.model.C_ == 1.0
    with pytest.raises(ValueError, match="C='all'"):
        coterie.discover(X, y > 0, C="all")


@BOTH
def test_a_small_C_is_reported(data, estimator):
    X, y = data[0], target(estimator, data[1])
    with pytest.warns(
        UserWarning, match=r"of 6 support features have the weight 0 .* at C=0.0001\. Use a larger C \(C=\"auto\" f"
    ):
        estimator(6, C=1e-4).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator(6, C=1e-4, predict_with="groups").fit(X, y)  # all weights are fitted
        estimator(6).fit(X, y)


def test_half_of_the_weights_may_be_zero(rng):
    X = rng.standard_normal((200, 8))
    y = X[:, 0] - X[:, 1]  # two features explain everything, so the others have the weight 0
    model = GroupDiscoveryRegressor(4, C=0.01).fit(X, y)
    assert np.count_nonzero(model.support_coef_) == 2
    with pytest.warns(UserWarning, match="3 of 5 support features have the weight 0"):
        GroupDiscoveryRegressor(5, C=0.01).fit(X, y)


def test_one_class_names_no_automatic_value(rng):
    X = rng.random((60, 30))
    with pytest.warns(UserWarning, match=r"Use a larger C or request fewer features"):
        GroupDiscoveryOneClass(10, n_features_per_round=1, C=1e-6).fit(X)
