"""Held-out deviance of calibrated outputs, and the choice by it."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.metrics import log_loss

from coterie import GroupDiscoveryClassifierCV, GroupDiscoveryOneClassCV, GroupDiscoveryRegressorCV
from coterie.estimators import validated
from coterie.validation import deviance
from coterie.validation.calibration import Calibration
from coterie.validation.deviance import HeldOutDeviance, calibrated_deviances
from tests.conftest import grouped_matrix


def outputs_and_codes(rng, n_outputs, n_models=5, n_samples=40):
    """Return outputs of models from informative to useless."""
    codes = rng.integers(0, max(n_outputs, 2), n_samples)
    marks = np.eye(max(n_outputs, 2))[codes][:, -n_outputs:]
    strength = np.linspace(3.0, 0.0, n_models)[:, None, None]
    return strength * marks + rng.standard_normal((n_models, n_samples, n_outputs)), codes


def probabilities(outputs, slope, offset=0.0):
    return Calibration(slope, np.broadcast_to(offset, outputs.shape[1])).probabilities(outputs)


@pytest.mark.parametrize("with_offsets", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_slope_and_offsets_minimise_the_deviance(rng, n_outputs, with_offsets):
    outputs, codes = outputs_and_codes(rng, n_outputs)
    outputs, n_classes = outputs + 0.7, max(n_outputs, 2)
    weight = rng.random(len(codes)) + 0.1
    shares = np.arange(1.0, n_classes + 1) / np.arange(1.0, n_classes + 1).sum() if with_offsets else None
    mixed = 2.0 / (weight.sum() + 2.0)
    targets = (1.0 - mixed) * np.eye(n_classes)[codes] + mixed * (shares if with_offsets else 1.0 / n_classes)
    free = n_outputs if with_offsets else 0
    for own, found in zip(outputs, calibrated_deviances(outputs, codes, weight, shares), strict=True):

        def mean(parameters, own=own):
            offset = parameters[1:] if with_offsets else 0.0
            return -2.0 * weight @ (targets * np.log(probabilities(own, parameters[0], offset))).sum(axis=1) / weight.sum()

        best = minimize(mean, np.append(1.0, np.zeros(free)), bounds=[(0.0, 50.0), *[(-50.0, 50.0)] * free], tol=1e-13)
        assert found == pytest.approx(best.fun, rel=1e-7)


def test_offsets_with_a_class_that_is_absent(rng):
    codes, outputs = np.repeat([0, 1], 10), rng.standard_normal((2, 20, 3))
    found = HeldOutDeviance(np.append(codes, 2), np.ones(21), with_offsets=True)(list(outputs), np.arange(20))
    assert np.isfinite(found).all()


def test_many_samples_have_the_log_loss_of_calibrated_probabilities(rng):
    outputs, codes = outputs_and_codes(rng, 1, n_models=1, n_samples=5000)
    found = calibrated_deviances(outputs, codes, np.ones(len(codes)))
    best = minimize_scalar(
        lambda slope: log_loss(codes, probabilities(outputs[0], slope)), bounds=(0.0, 50.0), method="bounded"
    )
    assert found[0] == pytest.approx(2.0 * best.fun, rel=1e-3)


def test_the_scale_of_outputs_has_no_effect_and_useless_models_are_constant(rng):
    outputs, codes = outputs_and_codes(rng, 1, n_models=1)
    ones = np.ones(len(codes))
    found = calibrated_deviances(
        np.concatenate([outputs, 1e-9 * outputs, 1e9 * outputs, -outputs, 0.0 * outputs]), codes, ones
    )
    np.testing.assert_allclose(found[1:3], found[0], rtol=1e-9)
    np.testing.assert_allclose(found[3:], 2.0 * np.log(2.0))
    assert found[0] < 1.0


def test_perfect_separation_is_finite():
    codes = np.array([0, 0, 1, 1])
    found = calibrated_deviances(np.array([[[-1.0], [-1.0], [1.0], [1.0]]]), codes, np.ones(4))
    # Targets of (4 + 1) / (4 + 2) for the class of a sample.
    assert found[0] == pytest.approx(-2.0 * (5 / 6 * np.log(5 / 6) + 1 / 6 * np.log(1 / 6)))


@pytest.mark.parametrize("n_values", [1, 100, 1 << 21])
def test_parts_and_weight_zero_change_nothing(rng, monkeypatch, n_values):
    outputs, codes = outputs_and_codes(rng, 3)
    weight = rng.integers(0, 3, len(codes)).astype(float)
    held_out = np.arange(10, 40)
    monkeypatch.setattr(deviance, "_MAX_VALUES", n_values)
    found = HeldOutDeviance(codes, weight)([own[held_out] for own in outputs], held_out)
    rows = np.repeat(held_out, weight[held_out].astype(int))
    np.testing.assert_allclose(found, calibrated_deviances(outputs[:, rows], codes[rows], np.ones(len(rows))), atol=1e-9)


def test_no_weight_at_all():
    assert np.isnan(HeldOutDeviance(np.array([0, 1]), np.zeros(2))([np.zeros((2, 1))], np.arange(2))).all()


def test_the_default_rule_is_the_smallest_deviance(rng):
    X, y = grouped_matrix(rng)
    options = {"Cs": 3, "cv": 3, "random_state": 0}
    model = GroupDiscoveryClassifierCV(10, **options).fit(X, y)
    results = model.cv_results_
    row = np.argmin(results["mean_test_deviance"])
    assert (model.C_, model.n_features_, model.predict_with_) == tuple(
        results[name][row] for name in ("C", "n_features", "predict_with")
    )
    assert model.best_score_ == results["mean_test_score"][row]
    assert model.smallest_n_features_ <= model.n_features_
    same = GroupDiscoveryClassifierCV(10, rule="deviance", scoring="accuracy", **options).fit(X, y)
    np.testing.assert_array_equal(same.cv_results_["mean_test_deviance"], results["mean_test_deviance"])
    ranked = GroupDiscoveryClassifierCV(10, rule="deviance", scoring="roc_auc", **options).fit(X, y)
    assert (ranked.cv_results_["mean_test_deviance"] < results["mean_test_deviance"]).all()  # with offsets
    few = GroupDiscoveryClassifierCV(10, rule="one_se", **options).fit(X, y)
    assert few.n_features_ == few.smallest_n_features_ == model.smallest_n_features_
    for given in ({"scoring": "roc_auc"}, {"rule": "best"}, {"rule": "one_se", "scoring": "accuracy"}):
        other = GroupDiscoveryClassifierCV(10, **options, **given).fit(X, y)
        assert "mean_test_deviance" not in other.cv_results_
    assert "mean_test_deviance" not in GroupDiscoveryRegressorCV(5, Cs=2, cv=3).fit(X, X[:, 0]).cv_results_


def test_rare_classes_are_chosen_by_the_deviance_with_offsets(rng):
    X, y = grouped_matrix(rng, n_samples=90)
    kept = np.sort(np.append(np.flatnonzero(y == -1), np.flatnonzero(y == 1)[:8]))
    options = {"Cs": 2, "cv": 2, "random_state": 0}
    model = GroupDiscoveryClassifierCV(5, **options).fit(X[kept], y[kept])
    assert model.scoring_ == "roc_auc"
    same = GroupDiscoveryClassifierCV(5, rule="deviance", scoring="roc_auc", **options).fit(X[kept], y[kept])
    np.testing.assert_array_equal(same.cv_results_["mean_test_deviance"], model.cv_results_["mean_test_deviance"])
    assert model.cv_results_["mean_test_deviance"].min() < 2.0 * np.log(2.0)


def test_class_weights_count(rng):
    X, y = grouped_matrix(rng)
    options = {"Cs": [0.1], "cv": 3, "random_state": 0}
    plain = GroupDiscoveryClassifierCV(3, **options).fit(X, y)
    heavy = GroupDiscoveryClassifierCV(3, class_weight={np.unique(y)[0]: 1, np.unique(y)[1]: 20}, **options).fit(X, y)
    assert (plain.cv_results_["mean_test_deviance"] != heavy.cv_results_["mean_test_deviance"]).all()


@pytest.mark.parametrize("estimator", [GroupDiscoveryRegressorCV, GroupDiscoveryOneClassCV])
def test_the_deviance_requires_classes(rng, estimator):
    X, _ = grouped_matrix(rng)
    y = np.where(np.arange(len(X)) % 5 == 0, -1, 1)
    with pytest.raises(ValueError, match="rule='deviance' requires classes"):
        estimator(3, Cs=2, cv=3, rule="deviance").fit(X, y)


@pytest.mark.parametrize(
    ("limit", "value", "both"),
    [("_MAX_SAMPLES", 0, True), ("_MAX_SAMPLES", -1, False), ("_MAX_VALUES", 0, True), ("_MAX_VALUES", -1, False)],
)
def test_groups_are_candidates_up_to_some_size(rng, monkeypatch, limit, value, both):
    X, y = grouped_matrix(rng)
    size = len(X) if limit == "_MAX_SAMPLES" else X.size
    monkeypatch.setattr(validated, limit, size + value)
    model = GroupDiscoveryClassifierCV(3, Cs=[0.1], cv=2).fit(X, y)
    assert set(model.cv_results_["predict_with"]) == ({"groups"} if both else {"support"})
    model = GroupDiscoveryRegressorCV(3, Cs=[0.1], cv=2).fit(X, X[:, 0])
    assert set(model.cv_results_["predict_with"]) == ({"support", "groups"} if both else {"support"})


def test_no_models_on_groups_without_correlations(rng):
    X, y = grouped_matrix(rng)
    model = GroupDiscoveryClassifierCV(3, Cs=[0.1], cv=2, correlation=None).fit(X, y)
    assert set(model.cv_results_["predict_with"]) == {"support"}
