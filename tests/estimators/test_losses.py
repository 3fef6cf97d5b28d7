"""Estimators with the logistic, Poisson and Huber losses: the link in all scores, offsets, probabilities and bad targets."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import d2_absolute_error_score, d2_tweedie_score, r2_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import coterie
from coterie import (
    GroupDiscoveryClassifier,
    GroupDiscoveryClassifierCV,
    GroupDiscoveryRegressor,
    GroupDiscoveryRegressorCV,
    group_confidence,
    group_effects,
)
from coterie.inputs.targets import CountWarning, LoneClassWarning
from coterie.solver.smooth_losses import Huber, PoissonLoss
from coterie.validation.metrics import MEASURES, linearised_explained


@parametrize_with_checks(
    [
        GroupDiscoveryClassifier("auto", loss="logistic"),
        GroupDiscoveryClassifier("auto", loss="logistic", predict_with="groups", class_weight="balanced"),
        GroupDiscoveryRegressor("auto", loss="poisson"),
        GroupDiscoveryRegressor("auto", loss="poisson", predict_with="groups"),
        GroupDiscoveryRegressor("auto", loss="huber"),
        GroupDiscoveryRegressor("auto", loss=Huber(1.0), fit_intercept=False),
        GroupDiscoveryClassifierCV(3, loss="logistic", Cs=2, cv=2),
        GroupDiscoveryRegressorCV(3, loss="poisson", Cs=2, cv=2),
        GroupDiscoveryRegressorCV(3, loss="huber", Cs=2, cv=2),
    ]
)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, CountWarning, LoneClassWarning):
            warnings.simplefilter("ignore", kind)
        check(estimator)


@pytest.fixture
def counts(rng):
    """Counts with exposures; their rate depends on features 3 (with its copy 5) and 9."""
    X = rng.standard_normal((240, 30))
    X[:, 5] = X[:, 3] + 0.4 * X[:, 5]
    exposure = rng.uniform(0.5, 4.0, 240)
    y = rng.poisson(exposure * np.exp(0.3 + 0.5 * X[:, 3] - 0.4 * X[:, 9]))
    return X, y, np.log(exposure)


FOLDS = [
    (np.arange(80, 240), np.arange(80)),
    (np.r_[:80, 160:240], np.arange(80, 160)),
    (np.arange(160), np.arange(160, 240)),
]
PLAIN = {"standardize": False, "n_features_per_round": 1}


def test_counts_are_predicted_through_the_link(counts):
    X, y, offset = counts
    model = GroupDiscoveryRegressor(2, loss="poisson", n_features_per_round=1).fit(X, y, offset=offset)
    assert {3, 9} <= {j for group in model.groups_ for j in group.members}
    predicted = model.predict(X, offset=offset)
    np.testing.assert_allclose(predicted, np.exp(X @ model.coef_ + model.intercept_ + offset))
    assert predicted.sum() == pytest.approx(y.sum())
    assert model.score(X, y, offset=offset) == pytest.approx(d2_tweedie_score(y, predicted, power=1))
    weight = np.arange(240.0)
    assert model.score(X, y, weight, offset=offset) == pytest.approx(
        d2_tweedie_score(y, predicted, sample_weight=weight, power=1)
    )
    with pytest.raises(ValueError, match="was fitted with an offset"):
        model.predict(X)


@pytest.mark.parametrize("predict_with", ["support", "groups"])
def test_held_out_scores_of_counts_by_hand(counts, predict_with):
    X, y, offset = counts
    options = {"Cs": [0.1], "cv": FOLDS, "nested": True, "predict_with": predict_with, **PLAIN}
    model = GroupDiscoveryRegressorCV(2, loss="poisson", min_features_to_select=2, **options).fit(X, y, offset=offset)
    assert model.scoring_ == "d2_poisson"
    plain = GroupDiscoveryRegressor(2, loss="poisson", C=0.1, predict_with=predict_with, **PLAIN)
    everything = np.empty(240)
    for number, (train, test) in enumerate(FOLDS):
        fitted = clone(plain).fit(X[train], y[train], offset=offset[train])
        everything[test] = fitted.predict(X[test], offset=offset[test])
        score = d2_tweedie_score(y[test], everything[test], power=1)
        row = model.cv_results_["n_features"].tolist().index(2)
        assert model.cv_results_[f"split{number}_test_score"][row] == pytest.approx(score, rel=1e-6)
        assert model.nested_scores_[number] == pytest.approx(score, rel=1e-6)
        rate = y[train].sum() / np.exp(offset[train]).sum()
        constant = d2_tweedie_score(y[test], rate * np.exp(offset[test]), power=1)
        assert model.constant_scores_[number] == pytest.approx(constant, rel=1e-6)
    np.testing.assert_allclose(model.held_out_predictions_, everything, rtol=1e-6)
    assert model.held_out_scores_["d2_poisson"] == pytest.approx(d2_tweedie_score(y, everything, power=1), rel=1e-6)
    assert model.held_out_scores_["r2"] == pytest.approx(r2_score(y, everything), rel=1e-6)
    low, high = model.held_out_intervals_["d2_poisson"]
    assert low < model.held_out_scores_["d2_poisson"] < high


def test_scores_of_the_huber_loss(rng):
    X = rng.standard_normal((200, 20))
    y = 2.0 * X[:, 4] + rng.standard_t(1.2, 200)
    model = GroupDiscoveryRegressorCV(3, loss="huber", random_state=0, nested=True).fit(X, y)
    assert model.support_features_[0] == 4
    assert model.scoring_ == "d2_absolute_error"
    assert model.score(X, y) == pytest.approx(d2_absolute_error_score(y, model.predict(X)), abs=0.01)
    assert model.held_out_scores_["d2_absolute_error"] == pytest.approx(
        d2_absolute_error_score(y, model.held_out_predictions_), abs=0.01
    )
    squared = GroupDiscoveryRegressorCV(3, random_state=0).fit(X, y)
    assert np.abs(y - model.predict(X)).mean() < np.abs(y - squared.predict(X)).mean()


@pytest.mark.parametrize("name", ["r2", "d2_poisson", "d2_absolute_error"])
def test_influence_is_the_derivative_by_the_weights(rng, name):
    y, weight = rng.poisson(3.0, 41).astype(float), rng.random(41) + 0.5
    predicted = y + rng.random(41) + 0.1
    found = linearised_explained(MEASURES[name], y, predicted, weight)
    assert found.influence.sum() == pytest.approx(0.0, abs=1e-12)
    change = 1e-6 * rng.standard_normal(41)
    up, down = (linearised_explained(MEASURES[name], y, predicted, weight * (1 + step)).value for step in (change, -change))
    assert (up - down) / 2 == pytest.approx(found.influence @ change, rel=1e-4)


def test_the_training_curve_and_the_report_use_the_link(counts):
    X, y, _ = counts
    model = GroupDiscoveryRegressor(3, loss="poisson", n_features_per_round=1).fit(X, y)
    details = coterie.report.describe(model, X, y)
    assert details.training["score"][-1] == pytest.approx(model.score(X, y))


def test_permuting_counts_permutes_their_exposures(counts):
    """With permuted labels the features are chance, so that nothing is confirmed; the model confirms both groups."""
    X, y, offset = counts
    model = GroupDiscoveryRegressor(2, loss="poisson", n_features_per_round=1).fit(X, y, offset=offset)
    found = group_confidence(model, X, y, offset=offset, n_pairs=6, n_permutations=1, random_state=0)
    assert (found.p_value <= 1e-4).all()
    assert (found.q_value <= 1e-4).all()
    order = np.random.default_rng(1).permutation(240)
    chance = GroupDiscoveryRegressor(2, loss="poisson").fit(X, y[order], offset=offset[order])
    found = group_confidence(chance, X, y[order], offset=offset[order], n_pairs=6, random_state=0)
    assert (found.q_value > 0.1).all()


def test_effects_are_logarithms_of_rate_ratios(counts):
    X, y, offset = counts
    model = GroupDiscoveryRegressor(2, loss="poisson", n_features_per_round=1, fixed_features=[3, 9])
    model.fit(X, y, offset=offset)
    found = group_effects(model, X, y, offset=offset)
    scale = X[:, model.groups_.support].std(axis=0)
    expected = np.where(model.groups_.support == 3, 0.5, -0.4) * scale
    assert ((found.low[:, 0] < expected) & (expected < found.high[:, 0])).all()
    np.testing.assert_allclose(found.effects[:, 0], expected, atol=0.15)


def test_probabilities_of_the_plain_logistic_classifier(rng):
    X = rng.standard_normal((300, 10))
    y = np.where(X[:, 2] + rng.logistic(size=300) > 0.5, "yes", "no")
    model = GroupDiscoveryClassifier(1, loss="logistic", C=1e6, n_features_per_round=1).fit(X, y)
    found = model.predict_proba(X)
    reference = LogisticRegression(C=1e12, tol=1e-10).fit(X[:, model.support_features_], y)
    np.testing.assert_allclose(found, reference.predict_proba(X[:, model.support_features_]), atol=1e-4)
    np.testing.assert_array_equal(model.predict(X), model.classes_[found.argmax(axis=1)])
    assert found[:, 1].mean() == pytest.approx((y == "yes").mean(), abs=1e-6)
    three = np.digitize(X[:, 2], [-0.5, 0.5])
    model = GroupDiscoveryClassifier(1, loss="logistic").fit(X, three)
    found = model.predict_proba(X)
    assert found.shape == (300, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), found.argmax(axis=1))
    assert not hasattr(GroupDiscoveryClassifier(1).fit(X, three), "predict_proba")


def test_the_calibrated_probabilities_of_cross_validation_are_not_shrunk(rng):
    """A small C shrinks the log-odds; the calibration on held-out samples restores their scale."""
    X = rng.standard_normal((400, 10))
    probability = 1 / (1 + np.exp(-2 * X[:, 2]))
    y = (rng.random(400) < probability).astype(int)
    shrunk = GroupDiscoveryClassifier(1, loss="logistic", C=0.002).fit(X, y)
    model = GroupDiscoveryClassifierCV(1, loss="logistic", Cs=[0.002], random_state=0).fit(X, y)
    assert (
        np.abs(model.predict_proba(X)[:, 1] - probability).mean()
        < 0.5 * np.abs(shrunk.predict_proba(X)[:, 1] - probability).mean()
    )


@pytest.mark.parametrize(("name", "loss"), [("poisson", PoissonLoss), ("huber", "huber"), ("squared", "squared")])
def test_models_are_saved_by_the_name_of_their_loss(counts, tmp_path, name, loss):
    X, y, offset = counts
    model = GroupDiscoveryRegressorCV(2, loss=name, Cs=2, cv=3, random_state=0).fit(X, y, offset=offset)
    coterie.save(model, tmp_path / "model")
    loaded = coterie.load(tmp_path / "model")
    assert loaded.loss == name
    np.testing.assert_array_equal(loaded.predict(X, offset=offset), model.predict(X, offset=offset))
    other = GroupDiscoveryRegressorCV(2, loss=loss, Cs=2, cv=3, random_state=0).fit(X, y, offset=offset)
    np.testing.assert_array_equal(other.coef_, model.coef_)


def test_a_huber_loss_with_a_width_is_saved(rng, tmp_path):
    X = rng.standard_normal((60, 5))
    model = GroupDiscoveryRegressor(2, loss=Huber(1.5)).fit(X, X[:, 1] + rng.standard_normal(60))
    coterie.save(model, tmp_path / "model")
    loaded = coterie.load(tmp_path / "model")
    assert loaded.loss == Huber(1.5)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_automatic_values_of_C_do_not_depend_on_the_size_of_the_counts(rng):
    X = rng.standard_normal((100, 8))
    y = rng.poisson(20 * np.exp(0.3 * X[:, 1]))
    one, ten = (GroupDiscoveryRegressor(2, loss="poisson").fit(X, factor * y) for factor in (1, 10))
    assert pytest.approx(10 * ten.C_) == one.C_
    np.testing.assert_allclose(one.coef_, ten.coef_, atol=1e-8)
    first, second = (GroupDiscoveryRegressorCV(2, loss="poisson", cv=2, random_state=0).fit(X, f * y) for f in (1, 10))
    assert pytest.approx(10 * second.C_) == first.C_


def test_the_huber_loss_does_not_depend_on_the_unit(rng):
    X = rng.standard_normal((100, 8))
    y = X[:, 1] + rng.standard_t(1.5, 100)
    one, ten = (GroupDiscoveryRegressor(2, loss="huber").fit(X, factor * y + 7 * factor) for factor in (1, 10))
    np.testing.assert_allclose(10 * one.coef_, ten.coef_, rtol=1e-6, atol=1e-10)
    huge = GroupDiscoveryRegressor(2, loss=Huber(1e9), C=0.1).fit(X, y)
    squared = GroupDiscoveryRegressor(2, loss="squared", C=0.1).fit(X, y)
    np.testing.assert_allclose(huge.coef_, squared.coef_, atol=1e-8)


@pytest.mark.parametrize("loss", ["poisson", "huber", "logistic"])
def test_weights_are_repetitions(counts, loss):
    X, y, _ = counts
    estimator = GroupDiscoveryClassifier if loss == "logistic" else GroupDiscoveryRegressor
    target = (y > 1).astype(int) if loss == "logistic" else y
    weight = np.random.default_rng(0).integers(0, 3, 240)
    repeated = np.repeat(np.arange(240), weight)
    model = estimator(3, loss=loss, C=0.1)
    first = clone(model).fit(X, target, weight)
    second = clone(model).fit(X[repeated], target[repeated])
    np.testing.assert_array_equal(first.support_features_, second.support_features_)
    if loss != "huber":
        np.testing.assert_allclose(first.coef_, second.coef_, atol=1e-8)
    else:
        np.testing.assert_allclose(first.coef_, second.coef_, atol=1e-6)


def test_halves_without_a_count_do_not_fail(rng):
    """Rare events: some folds and half-samples have counts of zero only."""
    X = rng.standard_normal((60, 12))
    y = np.zeros(60)
    y[[3, 40]] = 1, 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GroupDiscoveryRegressor(2, loss="poisson").fit(X, y)
        found = group_confidence(model, X, y, n_pairs=4, random_state=0)
        validated = GroupDiscoveryRegressorCV(2, loss="poisson", cv=5, random_state=0).fit(X, y)
    assert np.isfinite(found.confidence).all()
    assert np.isfinite(validated.predict(X)).all()


@pytest.mark.parametrize(
    "estimator", [GroupDiscoveryRegressor(2, loss="poisson"), GroupDiscoveryRegressorCV(2, loss="poisson")]
)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: y - 2.0, r"Counts must be at least 0, but y is -\d+ in sample \d+ \(\d+ negative value"),
        (lambda y: 0 * y, "y is constant"),
        (lambda y: np.where(y > 0, np.nan, 0.0), "y contains NaN"),
        (lambda y: y.astype(str) + "x", "Targets must be numbers"),
    ],
)
def test_wrong_counts_raise(counts, estimator, change, message):
    X, y, _ = counts
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(X, change(y))


def test_counts_of_positive_weight_that_are_all_zero_raise(counts):
    X, y, _ = counts
    with pytest.raises(ValueError, match="All counts of positive weight are 0"):
        GroupDiscoveryRegressor(2, loss="poisson").fit(X, y, (y == 0).astype(float))


def test_broken_counts_warn_unless_they_are_rates(counts):
    X, y, offset = counts
    rate = y / np.exp(offset)
    with pytest.warns(CountWarning, match=r"value\(s\) of y are not whole numbers, the first is \d"):
        GroupDiscoveryRegressor(2, loss="poisson").fit(X, rate)
    by_weight = GroupDiscoveryRegressor(2, loss="poisson", C=0.1, standardize=False).fit(X, rate, np.exp(offset))
    centred = X - np.average(X, axis=0)
    by_offset = GroupDiscoveryRegressor(2, loss="poisson", C=0.1, standardize=False).fit(centred, y, offset=offset)
    np.testing.assert_array_equal(by_weight.support_features_, by_offset.support_features_)
    np.testing.assert_allclose(by_weight.coef_, by_offset.coef_, atol=1e-8)
