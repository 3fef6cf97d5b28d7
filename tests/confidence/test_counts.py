"""Poisson and Huber regressions and score tests: scikit-learn and bootstrap as references, error rates under the null."""

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor

from coterie.confidence.association import null_models
from coterie.confidence.splits import split_tests
from coterie.data import as_source
from coterie.inputs.opening import Input
from coterie.solver.families import HUBER, POISSON
from coterie.solver.regression import huber_fit, huber_width, linear_effects, poisson_fit


def data_of(X, y, *, offset=None, covariates=None, groups=None, weight=None):
    return Input(as_source(X), X, y, y, None, weight, None, covariates, offset, groups, {})


def design_of(X):
    return np.column_stack([np.ones(len(X)), (X - X.mean(axis=0)) / X.std(axis=0)])


def test_poisson_regression_against_scikit_learn(rng):
    X = design_of(rng.standard_normal((400, 3)))
    exposure, weight = rng.uniform(0.1, 9.0, 400), rng.integers(1, 4, 400).astype(float)
    y = rng.poisson(exposure * np.exp(-2.0 + 0.5 * X[:, 1]))
    found = poisson_fit(X, y, weight, offset=np.log(exposure))
    reference = PoissonRegressor(alpha=0, tol=1e-12, max_iter=1000, solver="newton-cholesky")
    reference.fit(X[:, 1:], y / exposure, weight * exposure)
    np.testing.assert_allclose(found.estimate.effect[1:], reference.coef_, atol=2e-3)  # the prior
    np.testing.assert_allclose(found.mean, exposure * reference.predict(X[:, 1:]), rtol=1e-2)
    assert found.estimate.gap <= 1e-12
    repeated = np.repeat(np.arange(400), weight.astype(int))
    other = poisson_fit(X[repeated], y[repeated], np.ones(len(repeated)), offset=np.log(exposure)[repeated])
    np.testing.assert_allclose(other.estimate.effect, found.estimate.effect, atol=1e-8)
    assert other.dispersion == pytest.approx(found.dispersion)


def test_standard_errors_against_the_bootstrap(rng):
    """With overdispersion that depends on the mean, errors of a Poisson model are half of those of the bootstrap."""
    X = design_of(rng.standard_normal((500, 2)))
    mean = np.exp(1.0 + 0.4 * X[:, 1])
    y = rng.poisson(mean * rng.gamma(1.0, 1.0, 500))
    ones = np.ones(500)
    found = poisson_fit(X, y, ones)
    assert found.dispersion > 2.0
    effects = []
    for _ in range(300):
        rows = rng.integers(0, 500, 500)
        effects.append(poisson_fit(X[rows], y[rows], ones).estimate.effect)
    np.testing.assert_allclose(found.estimate.error[1:], np.std(effects, axis=0)[1:], rtol=0.25)


def test_large_counts_and_extreme_exposures(rng):
    X = design_of(rng.standard_normal((100, 1)))
    offset = rng.uniform(-400, 400, 1) + rng.standard_normal(100)
    y = rng.poisson(1e6 * np.exp(0.2 * X[:, 1])) * 1.0
    found = poisson_fit(X, y, np.ones(100), offset=offset)
    assert np.isfinite(found.estimate.effect).all()
    assert found.mean.sum() == pytest.approx(y.sum(), rel=1e-3)


def test_the_statistic_is_that_of_the_score_test_with_the_larger_variance(rng):
    """The variance is that of a quasi-Poisson or of a negative binomial distribution."""
    X, K = rng.standard_normal((300, 4)), rng.standard_normal((300, 1))
    offset = rng.standard_normal(300)
    y = rng.poisson(np.exp(0.3 * K[:, 0] + offset) * rng.gamma(2.0, 0.5, 300))
    (model,) = null_models(data_of(X, y, offset=offset, covariates=K), [3], np.arange(300), POISSON)
    design = np.column_stack([np.ones(300), X[:, 3], K])
    fit = PoissonRegressor(alpha=0, tol=1e-12, max_iter=1000, solver="newton-cholesky")
    mean = np.exp(offset) * fit.fit(design[:, 1:], y / np.exp(offset), np.exp(offset)).predict(design[:, 1:])
    dispersion = max(1.0, ((y - mean) ** 2 / mean).sum() / (300 - 3))
    excess = ((y - mean) ** 2 - mean).sum() / (mean**2).sum() * 300 / (300 - 3)
    variance = np.maximum(dispersion * mean, mean + excess * mean**2)
    assert (variance > dispersion * mean).any()
    assert (variance == dispersion * mean).any()
    for j in range(3):
        root = np.sqrt(variance)
        rest = X[:, j] - design @ np.linalg.lstsq(design * root[:, None], X[:, j] * root, rcond=None)[0]
        z = rest @ (y - mean) / np.sqrt(variance @ rest**2)
        assert model.tests(X[:, [j]]).z[0] == pytest.approx(z, abs=0.02)


@pytest.mark.parametrize("kind", ["poisson", "negative binomial", "rare"])
def test_score_tests_keep_their_level(kind):
    """Shares of p-values below 0.05 and 0.005 among 6,000 features without effect, with skewed exposures."""
    values = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((150, 300))
        X[:, 150:] = (X[:, 150:] > 1.3).astype(float)
        offset = rng.standard_normal(150)
        mean = np.exp(offset + (-2.5 if kind == "rare" else 0.5))
        y = rng.poisson(mean * rng.gamma(1.0, 1.0, 150) if kind == "negative binomial" else mean)
        (model,) = null_models(data_of(X, y, offset=offset), [], np.arange(150), POISSON)
        values.append(model.tests(X).p_value)
    values = np.concatenate(values)
    assert (values <= 0.05).mean() <= 0.06
    assert (values <= 0.005).mean() <= 0.008
    assert (values <= 0.05).mean() >= 0.008  # rare counts: the skewness makes the tests conservative


@pytest.mark.parametrize("clustered", [False, True])
def test_joint_tests_keep_their_level(clustered):
    values = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        clusters = np.repeat(np.arange(40), 4) if clustered else None
        X = rng.standard_normal((160, 8))
        if clustered:
            X = 0.3 * X + rng.standard_normal((40, 8))[clusters]
        rate = rng.gamma(2.0, 0.5, 40)[np.repeat(np.arange(40), 4)] if clustered else rng.gamma(2.0, 0.5, 160)
        y = rng.poisson(2.0 * rate)
        values.append(POISSON.tests(design_of(X), y, np.ones(160), clusters).p_value[1:])
    values = np.concatenate(values)
    assert 0.01 <= (values <= 0.05).mean() <= 0.085


def test_halves_test_the_rate_and_not_the_count(rng):
    """A feature that is the exposure has no effect on the rate."""
    exposure = rng.uniform(0.2, 5.0, 400)
    X = np.column_stack([exposure, rng.standard_normal((400, 3))])
    y = rng.poisson(exposure * np.exp(0.5 * X[:, 1]))
    half = np.arange(400) % 2 == 0
    weights = [half.astype(float), (~half).astype(float)]
    selected = [np.array([0, 1])] * 2
    tests = split_tests(data_of(X, y, offset=np.log(exposure)), weights, selected, np.empty(0, int), 5, POISSON)
    assert tests.p_value(np.array([1])) < 1e-6
    assert tests.p_value(np.array([0])) > 0.05


def test_huber_regression_is_optimal_and_its_errors_are_those_of_the_bootstrap(rng):
    X = design_of(rng.standard_normal((300, 2)))
    y = 2.0 * X[:, 1] + rng.standard_t(1.5, 300)
    weight = rng.integers(1, 3, 300).astype(float)
    found = huber_fit(X, y, weight)
    np.testing.assert_allclose(X.T @ (weight * found.cut), 0.0, atol=1e-6)
    limit = np.abs(found.cut).max()
    assert limit == pytest.approx(huber_width(y - X @ found.estimate.effect, weight), rel=1e-3)
    repeated = np.repeat(np.arange(300), weight.astype(int))
    other = huber_fit(X[repeated], y[repeated], np.ones(len(repeated)))
    np.testing.assert_allclose(other.estimate.effect, found.estimate.effect, atol=1e-6)
    own = huber_fit(X, y, np.ones(300)).estimate
    effects = []
    for _ in range(300):
        rows = rng.integers(0, 300, 300)
        effects.append(huber_fit(X[rows], y[rows], np.ones(300)).estimate.effect)
    np.testing.assert_allclose(own.error, np.std(effects, axis=0), rtol=0.25)
    # Least squares has no finite variance here.
    assert (linear_effects(X, y, np.ones(300)).error > 2 * own.error).all()


def test_tests_of_numbers_with_outliers_keep_their_level():
    alone, joint = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((150, 100))
        y = 5.0 + rng.standard_t(1.5, 150)
        (model,) = null_models(data_of(X, y), [], np.arange(150), HUBER)
        alone.append(model.tests(X).p_value)
        joint.append(HUBER.tests(design_of(X[:, :8]), y, np.ones(150)).p_value[1:])
    assert 0.035 <= (np.concatenate(alone) <= 0.05).mean() <= 0.06
    assert 0.02 <= (np.concatenate(joint) <= 0.05).mean() <= 0.08


def test_moments_of_the_null_model():
    """Poisson moments without overdispersion, else those of a negative binomial distribution with the same variance."""
    design = np.ones((40, 1))
    even = POISSON.null(design, np.tile([2.0, 3.0], 20), np.ones(40))
    assert even.variance == pytest.approx(np.full(40, 2.5))
    assert even.third == pytest.approx(np.full(40, 2.5))
    wide = POISSON.null(design, np.tile([0.0, 10.0], 20), np.ones(40))
    assert (wide.variance > 25.0).all()  # larger than the mean of 5 by the dispersion
    assert wide.third == pytest.approx(wide.variance * (2.0 * wide.variance / 5.0 - 1.0))
    assert wide.residual.sum() == pytest.approx(0.0, abs=1e-12)


def test_constant_columns_have_no_joint_test(rng):
    design = np.column_stack([np.ones(50), rng.standard_normal(50), np.zeros(50)])
    for family, y in ((POISSON, rng.poisson(2.0, 50).astype(float)), (HUBER, rng.standard_normal(50))):
        found = family.tests(design, y, np.ones(50))
        assert np.isnan(found.error).tolist() == [False, False, True]
        assert found.p_value[2] == 1.0
