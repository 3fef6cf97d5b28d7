"""ROC and calibration curves against slow and obvious versions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import roc_auc_score
from sklearn.metrics import roc_curve as their_roc_curve

from coterie import GroupDiscoveryClassifierCV, GroupDiscoveryRegressorCV
from coterie.validation.curves import calibration_curve, roc_curve
from coterie.validation.metrics import linearised_auc


def sample(seed, n=60, n_folds=3, levels=8):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.4
    values = rng.integers(0, levels, n) + 2.0 * positive
    return positive, values, rng.integers(1, 4, n).astype(float), rng.integers(0, n_folds, n)


@given(st.integers(0, 1000), st.integers(1, 4), st.sampled_from([2, 8, 1000]))
def test_the_area_is_the_auc_within_folds(seed, n_folds, levels):
    positive, values, weight, fold = sample(seed, n_folds=n_folds, levels=levels)
    expected = linearised_auc(positive, values, weight, fold).value
    curve = roc_curve(positive, values, weight, fold)
    assert curve.area == pytest.approx(expected)
    assert np.trapezoid(curve.true_positive_rate, curve.false_positive_rate) == pytest.approx(expected)
    for rates in (curve.false_positive_rate, curve.true_positive_rate):
        assert (rates[0], rates[-1]) == pytest.approx((0.0, 1.0))
        assert (np.diff(rates) >= -1e-12).all()


@pytest.mark.parametrize("seed", range(3))
def test_one_fold_is_the_usual_curve(seed):
    positive, values, weight, _ = sample(seed)
    curve = roc_curve(positive, values, weight, np.zeros(60, dtype=int))
    false, true, _ = their_roc_curve(positive, values, sample_weight=weight, drop_intermediate=False)
    assert curve.area == pytest.approx(roc_auc_score(positive, values, sample_weight=weight))
    for x, y in zip(false, true, strict=True):  # points within a vertical step are left out
        own = curve.true_positive_rate[np.abs(curve.false_positive_rate - x) < 1e-12]
        assert own.min() - 1e-12 <= y <= own.max() + 1e-12


def test_many_samples_have_a_short_curve():
    rng = np.random.default_rng(0)
    positive = rng.random(5000) < 0.5
    values = rng.standard_normal(5000) + positive
    curve = roc_curve(positive, values, np.ones(5000), rng.integers(0, 5, 5000))
    assert len(curve.false_positive_rate) < 410
    assert np.trapezoid(curve.true_positive_rate, curve.false_positive_rate) == pytest.approx(curve.area, abs=1e-3)


def test_no_curve_of_one_class():
    assert roc_curve(np.ones(5, dtype=bool), np.arange(5.0), np.ones(5), np.zeros(5, dtype=int)) is None


@given(st.integers(0, 1000), st.sampled_from([20, 57, 200]))
def test_calibration_of_distinct_predictions(seed, n):
    rng = np.random.default_rng(seed)
    predicted, weight = rng.random(n), rng.integers(1, 3, n).astype(float)
    observed = (rng.random(n) < predicted).astype(float)
    every = np.arange(n)
    curve = calibration_curve(predicted, observed, weight, every, every, shares=True)
    n_bins = min(10, n // 10)
    order = np.argsort(predicted)
    for k in range(n_bins):  # bins of equal size
        own = [order[i] for i in range(n) if i * n_bins // n == k]
        assert curve.samples[k] == len(own)
        assert curve.predicted[k] == pytest.approx(np.average(predicted[own], weights=weight[own]))
        assert curve.observed[k] == pytest.approx(np.average(observed[own], weights=weight[own]))
    assert len(curve.samples) == n_bins


def test_intervals_of_calibration():
    rng = np.random.default_rng(0)
    predicted, every = rng.random(100), np.arange(100)
    observed = (rng.random(100) < predicted).astype(float)
    curve = calibration_curve(predicted, observed, np.ones(100), every, every, shares=True)
    for k in range(10):
        count = round(10 * curve.observed[k])
        low, high = binomtest(count, 10).proportion_ci(method="wilson")
        assert (curve.low[k], curve.high[k]) == pytest.approx((low, high))
    numbers = calibration_curve(predicted, 5 * predicted, np.ones(100), every, every, shares=False)
    own = 5 * np.sort(predicted)[:10]
    assert numbers.high[0] - numbers.observed[0] == pytest.approx(1.959964 * own.std(ddof=1) / np.sqrt(10))
    grouped = calibration_curve(predicted, observed, np.ones(100), every, every // 5, shares=True)
    assert len(grouped.samples) == 2  # twenty sample groups
    for k in range(2):
        own = np.argsort(predicted)[50 * k : 50 * k + 50]
        n_groups, share = len(np.unique(own // 5)), observed[own].mean()
        middle, width = share + 1.959964**2 / (2 * n_groups), share * (1 - share) / n_groups
        half = 1.959964 * np.sqrt(width + 1.959964**2 / (4 * n_groups**2))
        assert grouped.high[k] == pytest.approx((middle + half) / (1 + 1.959964**2 / n_groups))


def test_equal_predictions_are_in_one_bin():
    predicted, every = np.repeat([0.2, 0.7], [70, 30]), np.arange(100)
    curve = calibration_curve(predicted, predicted > 0.5, np.ones(100), every, every, shares=True)
    assert curve.samples.tolist() == [70, 30]
    assert curve.predicted.tolist() == pytest.approx([0.2, 0.7])
    assert calibration_curve(predicted[:19], predicted[:19], np.ones(19), every[:19], every[:19], shares=True) is None


def test_curves_of_classes():
    X, y = load_breast_cancer(return_X_y=True)
    model = GroupDiscoveryClassifierCV(3, Cs=[0.1], cv=3, nested=True, random_state=0).fit(X, y)
    (roc,), (calibration,) = (model.held_out_curves_[name] for name in ("roc", "calibration"))
    assert roc["area"] == pytest.approx(model.held_out_scores_["roc_auc"])
    assert sum(calibration["samples"]) == len(y)
    assert np.average(calibration["observed"], weights=calibration["samples"]) == pytest.approx(y.mean())
    assert np.average(calibration["predicted"], weights=calibration["samples"]) == pytest.approx(y.mean(), abs=0.02)


def test_curves_of_several_classes():
    X, y = load_iris(return_X_y=True)
    model = GroupDiscoveryClassifierCV(3, Cs=[0.1], cv=3, nested=True, random_state=0).fit(X, y)
    curves = model.held_out_curves_
    assert [own["class"] for own in curves["roc"]] == [0, 1, 2]
    assert all(own["area"] > 0.9 for own in curves["roc"])
    (calibration,) = curves["calibration"]
    # The most probable class is nearly always the predicted one.
    right = np.average(calibration["observed"], weights=calibration["samples"])
    assert right == pytest.approx(model.held_out_scores_["accuracy"], abs=0.03)


def test_curves_of_numbers():
    X, y = load_diabetes(return_X_y=True)
    targets = np.column_stack([y, -y])
    model = GroupDiscoveryRegressorCV(2, Cs=[0.1], cv=3, nested=True, random_state=0).fit(X, targets)
    first, second = model.held_out_curves_["calibration"]
    assert np.average(first["observed"], weights=first["samples"]) == pytest.approx(y.mean())
    np.testing.assert_allclose(second["observed"][::-1], -np.array(first["observed"]), rtol=0.1)
    assert model.held_out_curves_["roc"] == []
