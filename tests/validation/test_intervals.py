"""Linearised scores against numerical derivatives, and properties of intervals."""

import numpy as np
import pytest
from sklearn.metrics import r2_score, roc_auc_score

from coterie.validation import metrics
from coterie.validation.intervals import fold_interval, r_squared_interval, share_interval, unit_variance


def drawn(n=40, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, n)
    values = codes + rng.standard_normal(n).round(1)  # with ties
    return codes, values, rng.integers(1, 4, n).astype(float), rng.integers(0, 3, n)


SCORES = {
    "accuracy": lambda c, v, w, f: metrics.linearised_accuracy((c == (v > 0.5)).astype(float), w),
    "balanced accuracy": lambda c, v, w, f: metrics.linearised_balanced_accuracy(c, (c == (v > 0.5)).astype(float), w),
    "AUC": lambda c, v, w, f: metrics.linearised_auc(c == 1, v, w, f),
    "AUC of all pairs": lambda c, v, w, f: metrics.linearised_auc(c == 1, v, w, np.where(c == 1, f, 5)),
    "R²": lambda c, v, w, f: metrics.linearised_r_squared(c.astype(float), v, w),
}


@pytest.mark.parametrize("name", SCORES)
def test_influences_are_derivatives(name):
    codes, values, weight, fold = drawn()
    score = SCORES[name](codes, values, weight, fold)
    assert score.influence.sum() == pytest.approx(0.0, abs=1e-12)
    for number in range(len(codes)):
        changed = [weight.copy(), weight.copy()]
        changed[0][number] *= 1 - 1e-5
        changed[1][number] *= 1 + 1e-5
        low, high = (SCORES[name](codes, values, own, fold).value for own in changed)
        assert score.influence[number] == pytest.approx((high - low) / 2e-5, abs=1e-7)


def test_scores_are_those_of_scikit_learn():
    codes, values, weight, fold = drawn()
    assert SCORES["R²"](codes, values, weight, fold).value == pytest.approx(r2_score(codes, values, sample_weight=weight))
    all_pairs = roc_auc_score(codes, values, sample_weight=weight)
    assert SCORES["AUC of all pairs"](codes, values, weight, fold).value == pytest.approx(all_pairs)
    assert metrics.linearised_auc(codes == 1, values, weight, np.zeros_like(fold)).value == pytest.approx(all_pairs)
    assert metrics.roc_auc(codes == 1, values, weight) == pytest.approx(all_pairs)
    # Other values in a fold leave the comparisons within the others as they are.
    shifted = values + 100.0 * fold
    assert SCORES["AUC"](codes, shifted, weight, fold).value == pytest.approx(SCORES["AUC"](codes, values, weight, fold).value)


def test_variance_of_units():
    codes, values, _, fold = drawn()
    influence = SCORES["accuracy"](codes, values, np.ones(40), fold).influence
    right = (codes == (values > 0.5)).astype(float)
    assert unit_variance(influence, np.arange(40)) == pytest.approx(right.var(ddof=1) / 40)
    # Repeated samples are no new information if they are units together.
    twice = np.repeat(influence, 2) / 2
    assert unit_variance(twice, np.repeat(np.arange(40), 2)) == pytest.approx(unit_variance(influence, np.arange(40)))
    assert np.isnan(unit_variance(influence, np.zeros(40, dtype=int)))


@pytest.mark.parametrize("n_right", [0, 1, 20, 39, 40])
def test_intervals_of_shares(n_right):
    right = np.repeat([1.0, 0.0], [n_right, 40 - n_right])
    score = metrics.linearised_accuracy(right, np.ones(40))
    unit = np.arange(40)
    low, high = share_interval(score, unit, 40)
    assert 0.0 <= low <= score.value <= high <= 1.0
    assert 0.05 < high - low < 0.6
    wider = share_interval(score, unit, 40, level=0.99)
    assert wider[0] <= low
    assert high <= wider[1]
    assert np.subtract(*wider) < np.subtract(low, high)
    mirrored = share_interval(metrics.linearised_accuracy(1 - right, np.ones(40)), unit, 40)
    np.testing.assert_allclose([1 - mirrored[1], 1 - mirrored[0]], [low, high], atol=1e-12)
    if 0 < n_right < 40:  # Whole groups of equal samples are fewer units.
        order = np.argsort(right, kind="stable")
        grouped = np.empty(40, dtype=int)
        grouped[order] = np.arange(40) // 5
        assert np.diff(share_interval(score, grouped, 8)) > high - low
    assert share_interval(score, np.zeros(40, dtype=int), 1) == (0.0, 1.0)


def test_intervals_of_r_squared():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(100)
    unit = np.arange(100)
    for noise in (0.1, 1.0, 3.0):
        score = metrics.linearised_r_squared(y, y + noise * rng.standard_normal(100), np.ones(100))
        low, high = r_squared_interval(score, unit)
        assert low < score.value < high < 1.0
        assert (1 - low) / (1 - score.value) == pytest.approx((1 - score.value) / (1 - high))
    assert r_squared_interval(metrics.linearised_r_squared(y, y, np.ones(100)), unit) == (1.0, 1.0)
    assert r_squared_interval(score, np.zeros(100, dtype=int)) == (-np.inf, 1.0)


def test_intervals_of_folds():
    assert fold_interval(np.array([0.5])) is None
    assert fold_interval(np.array([0.5, np.nan])) is None
    low, high = fold_interval(np.array([0.5, np.nan, 0.7]))
    assert low + high == pytest.approx(1.2)
    assert fold_interval(np.array([0.5, 0.5])) == (0.5, 0.5)
