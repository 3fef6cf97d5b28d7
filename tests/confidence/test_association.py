"""Score tests against slow code and exact distributions, and p-values of half-samples."""

import numpy as np
import pytest
from scipy import stats

from coterie.confidence.association import null_models, skewed_tail, tail
from coterie.confidence.splits import SplitTests, combined_p_value, split_tests
from coterie.data import as_source
from coterie.inputs.opening import Input
from coterie.solver.families import CLASSES, LEAST_SQUARES


def data_of(X, y, *, classes=None, weight=None, covariates=None, groups=None):
    return Input(as_source(X), X, y, y, classes, weight, None, covariates, None, groups, {})


def example(seed=0, n_samples=60):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, 6))
    return X, X[:, 0] + 0.3 * X[:, 1] + rng.standard_normal(n_samples), rng.standard_normal((n_samples, 2))


def regression_p_value(design, y, column):
    """p-value of the last column added to a least-squares regression, by the textbook formula."""
    whole = np.column_stack([design, column])
    coef, free = np.linalg.lstsq(whole, y, rcond=None)[0], len(y) - whole.shape[1]
    residual = y - whole @ coef
    error = np.sqrt(residual @ residual / free * np.linalg.inv(whole.T @ whole)[-1, -1])
    return 2 * stats.t.sf(abs(coef[-1] / error), free)


def test_numbers_against_least_squares():
    X, y, covariates = example()
    y = y - np.mean(y)
    (model,) = null_models(data_of(X, y, covariates=covariates), [3], np.arange(60), LEAST_SQUARES)
    design = np.column_stack([np.ones(60), X[:, 3], covariates])
    expected = [regression_p_value(design, y, X[:, k]) for k in (0, 1, 2)]
    tests = model.tests(X[:, :3])
    np.testing.assert_allclose(tail(tests.z, 60 - 4), expected)
    assert (tests.p_value >= np.array(expected) * (1 - 1e-9)).all()


def test_a_feature_given_another_one():
    X, y, _ = example()
    X[:, 1] += X[:, 0]
    (model,) = null_models(data_of(X, y), [], np.arange(60), LEAST_SQUARES)
    tests = model.tests(X)
    design = np.column_stack([np.ones(60), X[:, 0]])
    rest = X[:, 1] - design @ np.linalg.lstsq(design, X[:, 1], rcond=None)[0]
    residual = y - y.mean()
    z = rest @ residual - (rest @ design @ np.linalg.lstsq(design, residual, rcond=None)[0])
    z /= np.sqrt(residual @ residual / 59 * (rest @ rest))
    np.testing.assert_allclose(tests.given(1, np.array([0])), tail(np.array([z]), 58.0))


def test_classes_against_the_score_test():
    X, y, covariates = example(n_samples=200)
    labels = (y > 0).astype(np.int64)
    (model,) = null_models(data_of(X, labels, classes=np.array([0, 1]), covariates=covariates), [], np.arange(200), CLASSES)
    p = labels - model.residual
    weight = p * (1 - p)
    design = np.column_stack([np.ones(200), covariates])
    for k in range(3):
        inner = np.linalg.solve((design.T * weight) @ design, (design.T * weight) @ X[:, k])
        rest = X[:, k] - design @ inner
        expected = rest @ (labels - p) / np.sqrt(weight @ rest**2)
        assert model.tests(X[:, [k]]).z[0] == pytest.approx(expected)


def test_weights_are_repetitions():
    X, y, _ = example()
    weight = np.where(np.arange(60) < 20, 2.0, 1.0)
    rows = np.repeat(np.arange(60), weight.astype(int))
    cases = (y, None, LEAST_SQUARES), ((y > 0).astype(np.int64), np.array([0, 1]), CLASSES)
    for labels, classes, family in cases:
        (one,) = null_models(data_of(X, labels, classes=classes, weight=weight), [4], np.arange(60), family)
        (two,) = null_models(data_of(X[rows], labels[rows], classes=classes), [4], np.arange(80), family)
        first, second = one.tests(X[:, :3]), two.tests(X[rows, :3])
        np.testing.assert_allclose(first.p_value, second.p_value, rtol=1e-6)
        np.testing.assert_allclose(first.given(0, np.array([1, 2])), second.given(0, np.array([1, 2])), rtol=1e-6)


def test_sample_groups_of_equal_rows_count_once():
    """Every row four times: with sample groups, p-values are at least those of the different rows."""
    X, y, _ = example()
    rows = np.repeat(np.arange(60), 4)
    (single,) = null_models(data_of(X, y), [], np.arange(60), LEAST_SQUARES)
    (grouped,) = null_models(data_of(X[rows], y[rows], groups=rows), [], np.arange(240), LEAST_SQUARES)
    (naive,) = null_models(data_of(X[rows], y[rows]), [], np.arange(240), LEAST_SQUARES)
    own = grouped.tests(X[rows]).p_value
    assert (own > 20 * naive.tests(X[rows]).p_value)[:1].all()
    np.testing.assert_allclose(own[2:], single.tests(X).p_value[2:], atol=0.12)


def test_the_gamma_tail_against_rare_events():
    """Two of three rare values in a class of 1 %: a Poisson variable of mean 0.03."""
    mean = 0.03
    z, skewness = np.array([(2 - mean) / np.sqrt(mean)]), np.array([1 / np.sqrt(mean)])
    exact = stats.poisson.sf(1, mean)
    assert exact < skewed_tail(z, skewness)[0] < 6 * exact
    assert tail(z, np.inf)[0] < 1e-20


def test_constant_and_given_features_have_no_association():
    X, y, _ = example()
    X[:, 2] = 1.0
    (model,) = null_models(data_of(X, y), [0], np.arange(60), LEAST_SQUARES)
    np.testing.assert_array_equal(model.tests(X[:, [2, 0]]).p_value, [1.0, 1.0])


def test_p_values_of_noise_are_uniform():
    """At most 5 % (within error) of the p-values are below 0.05, for normal and for skewed features."""
    for maker in (np.random.Generator.standard_normal, lambda rng, size: rng.exponential(size=size)):
        found = []
        for seed in range(40):
            rng = np.random.default_rng([seed, 1])
            X, y = maker(rng, (50, 25)), rng.permutation(np.arange(50) % 2)
            (model,) = null_models(data_of(X, y, classes=np.array([0, 1])), [], np.arange(50), CLASSES)
            found.append(model.tests(X).p_value)
        share = np.mean(np.concatenate(found) <= 0.05)
        assert 0.02 < share < 0.065


def test_the_quantile_rule_against_its_definition():
    values = np.random.default_rng(0).random(20) ** 4
    for smallest in (0.05, 0.25, 0.5):
        levels = [k / 20 for k in range(1, 21) if k / 20 >= smallest]
        quantiles = [np.sort(values)[round(level * 20) - 1] / level for level in levels]
        assert combined_p_value(values, smallest) == pytest.approx(min(1.0, (1 - np.log(smallest)) * min(quantiles)))


def test_half_samples_are_tested_in_their_complements():
    X, y, _ = example(n_samples=80)
    first = (np.arange(80) % 2 == 0).astype(float)
    selected = [np.array([0, 1]), np.array([0, 2])]
    found = split_tests(data_of(X, y), [first, 1 - first], selected, np.array([], dtype=np.int64), 2, LEAST_SQUARES)
    assert isinstance(found, SplitTests)
    # With 40 samples in the other half, four features could be tested, so both are; the p-values are times two.
    own = found.smallest(np.array([2]))
    design = np.column_stack([np.ones(40), X[::2, 0]])
    assert own[0] == 1.0
    assert own[1] >= min(1.0, 2 * regression_p_value(design, y[::2], X[::2, 2])) * 0.5
    assert (found.smallest(np.array([0])) < 0.05).all()
    assert found.p_value(np.array([0])) < found.p_value(np.array([2]))


def test_one_feature_per_ten_samples_is_tested():
    X, y, _ = example(n_samples=40)
    first = (np.arange(40) % 2 == 0).astype(float)
    found = split_tests(data_of(X, y), [first, 1 - first], [np.arange(6)] * 2, np.array([], dtype=np.int64), 6, LEAST_SQUARES)
    assert (found.smallest(np.array([2, 3, 4, 5])) == 1.0).all()
    assert (found.smallest(np.array([0])) < 1.0).all()
