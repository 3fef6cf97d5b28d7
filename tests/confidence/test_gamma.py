"""Gamma regressions and score tests: scikit-learn and slow code as references, error rates under the null, estimators."""

import numpy as np
import pytest
from sklearn.linear_model import GammaRegressor
from sklearn.metrics import d2_tweedie_score

import coterie
from coterie import GroupDiscoveryRegressor, GroupDiscoveryRegressorCV, group_confidence, group_effects
from coterie.confidence.association import null_models
from coterie.data import as_source
from coterie.inputs.opening import Input
from coterie.solver.gamma import GammaLoss, GammaRegression

FAMILY = GammaRegression()


def data_of(X, y, *, offset=None, covariates=None):
    return Input(as_source(X), X, y, y, None, None, None, covariates, offset, None, {})


def design_of(X):
    return np.column_stack([np.ones(len(X)), (X - X.mean(axis=0)) / X.std(axis=0)])


def fitted(design, y):
    return GammaRegressor(alpha=0, tol=1e-12, max_iter=1000, solver="newton-cholesky").fit(design[:, 1:], y)


def test_effects_against_scikit_learn_and_the_bootstrap(rng):
    design = design_of(rng.standard_normal((400, 2)))
    offset, weight = rng.standard_normal(400), rng.integers(1, 4, 400).astype(float)
    y = np.exp(300 + offset + 0.5 * design[:, 1]) * rng.gamma(2.0, 0.5, 400) * 10.0**-100
    found = FAMILY.effects(design, y, weight, offset=offset)
    repeated = np.repeat(np.arange(400), weight.astype(int))
    ratio = (y / np.exp(offset))[repeated]
    np.testing.assert_allclose(found.effect[1:], fitted(design[repeated], ratio / ratio.mean()).coef_, atol=2e-3)  # the prior
    assert found.gap <= 1e-12
    other = FAMILY.effects(design[repeated], y[repeated], np.ones(len(repeated)), offset=offset[repeated])
    np.testing.assert_allclose(other.effect, found.effect, atol=1e-8)
    own = FAMILY.effects(design, y, np.ones(400), offset=offset)
    effects = []
    for _ in range(200):
        rows = rng.integers(0, 400, 400)
        effects.append(FAMILY.effects(design[rows], y[rows], np.ones(400), offset=offset[rows]).effect)
    np.testing.assert_allclose(own.error[1:], np.std(effects, axis=0)[1:], rtol=0.25)
    clustered = FAMILY.effects(design, y, np.ones(400), np.arange(400) // 8, offset)
    assert (clustered.error >= own.error).all()


@pytest.mark.parametrize("heavy", [False, True])
def test_standard_errors_by_definition(rng, heavy):
    """The larger of the quasi-likelihood's and HC3, given the coefficients. The spread depends on a feature, or not."""
    design = design_of(np.column_stack([rng.standard_normal((40, 1)), rng.random((40, 1)) < 0.15]))
    weight = rng.integers(1, 3, 40).astype(float)
    y = np.exp(0.3 * design[:, 1]) * rng.gamma(2.0, 0.5, 40) ** (np.abs(design[:, 2]) if heavy else 1.0)
    found = FAMILY.effects(design, y, weight)
    residual = y / (weight @ y / weight.sum()) * np.exp(-design @ found.effect) - 1.0  # Effects are relative to the mean.
    inverse = np.linalg.inv((design.T * weight) @ design)
    free = weight.sum() - 3
    classical = np.sqrt(weight @ residual**2 / free * np.diag(inverse))
    repeated = np.repeat(np.arange(40), weight.astype(int))
    rows = design[repeated]
    hat = np.einsum("ij,jk,ik->i", rows, inverse, rows) * weight[repeated]
    scores = rows * (residual[repeated] / (1.0 - hat))[:, None]
    robust = np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))
    assert (classical > robust).any() or heavy
    assert (robust > classical).any()
    np.testing.assert_allclose(found.error, np.maximum(classical, robust), rtol=1e-6)
    assert found.freedom == free


def test_no_standard_errors_without_degrees_of_freedom(rng):
    found = FAMILY.effects(design_of(rng.standard_normal((5, 4))), rng.gamma(2.0, 1.0, 5), np.ones(5))
    assert np.isnan(found.error).all()
    assert np.isnan(found.freedom)
    assert np.isfinite(found.effect).all()


def test_residuals_of_a_null_model_without_features_sum_to_zero(rng):
    y, weight, offset = rng.gamma(2.0, 50.0, 30), rng.random(30), 5.0 * rng.standard_normal(30)
    fit = FAMILY.null(np.ones((30, 1)), y, weight, offset)
    assert weight @ fit.residual == pytest.approx(0.0, abs=1e-13)
    ratio = y * np.exp(-offset)
    np.testing.assert_allclose(fit.residual, ratio / (weight @ ratio / weight.sum()) - 1.0, atol=1e-10)
    constant = FAMILY.effects(np.ones((30, 1)), y, weight, offset=offset)
    assert constant.effect == pytest.approx([0.0], abs=1e-9)  # relative to the best constant, so that the prior has no effect
    two = np.column_stack([np.ones(30), rng.standard_normal(30)])
    # With a feature, the weak prior of the intercept leaves a rest, which is part of the definition.
    assert abs(weight @ FAMILY.null(two, y, weight).residual) > 1e-12


def test_the_statistic_is_that_of_the_score_test(rng):
    X, K = rng.standard_normal((300, 4)), rng.standard_normal((300, 1))
    offset = rng.standard_normal(300)
    y = np.exp(0.3 * K[:, 0] + offset) * rng.gamma(2.0, 0.5, 300)
    (model,) = null_models(data_of(X, y, offset=offset, covariates=K), [3], np.arange(300), FAMILY)
    design = np.column_stack([np.ones(300), X[:, 3], K])
    residual = y / np.exp(offset) / fitted(design, y / np.exp(offset)).predict(design[:, 1:]) - 1.0
    for j in range(3):
        rest = X[:, j] - design @ np.linalg.lstsq(design, X[:, j], rcond=None)[0]
        z = rest @ residual / np.sqrt(residual @ residual / (300 - 3) * (rest @ rest))
        assert model.tests(X[:, [j]]).z[0] == pytest.approx(z, abs=0.02)


@pytest.mark.parametrize("shape", [0.5, 4.0])
def test_tests_keep_their_level(shape):
    single, joint = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((150, 200))
        X[:, 100:] = (X[:, 100:] > 1.3).astype(float)
        y = rng.gamma(shape, 1.0, 150)
        (model,) = null_models(data_of(X, y), [], np.arange(150), FAMILY)
        single.append(model.tests(X).p_value)
        joint.append(FAMILY.tests(design_of(X[:, :8]), y, np.ones(150)).p_value[1:])
    assert 0.03 <= (np.concatenate(single) <= 0.05).mean() <= 0.06
    assert (np.concatenate(single) <= 0.005).mean() <= 0.008
    assert 0.01 <= (np.concatenate(joint) <= 0.05).mean() <= 0.09


@pytest.fixture
def costs(rng):
    """Costs with a duration as exposure; they depend on features 3 (with its copy 5) and 9."""
    X = rng.standard_normal((200, 20))
    X[:, 5] = X[:, 3] + 0.4 * X[:, 5]
    months = rng.uniform(0.5, 4.0, 200)
    return X, months * np.exp(6.0 + 0.5 * X[:, 3] - 0.4 * X[:, 9]) * rng.gamma(2.0, 0.5, 200), np.log(months)


def test_estimators(costs, tmp_path):
    X, y, offset = costs
    model = GroupDiscoveryRegressorCV(3, loss="gamma", Cs=2, cv=3, nested=True, random_state=0).fit(X, y, offset=offset)
    assert {3, 9} <= {j for group in model.groups_ for j in group.members}
    assert model.scoring_ == "d2_gamma"
    assert model.score(X, y, offset=offset) == pytest.approx(d2_tweedie_score(y, model.predict(X, offset=offset), power=2))
    held_out = d2_tweedie_score(y, model.held_out_predictions_, power=2)
    assert model.held_out_scores_["d2_gamma"] == pytest.approx(held_out, rel=1e-6)
    coterie.save(model, tmp_path / "model")
    np.testing.assert_array_equal(coterie.load(tmp_path / "model").predict(X, offset=offset), model.predict(X, offset=offset))
    groups = group_effects(model, X, y, offset=offset).attach(model.groups_)
    assert {group.ratio_kind for group in groups} == {"mean"}
    assert groups[0].mean_ratio == pytest.approx(np.exp(groups[0].effect))
    found = group_confidence(model, X, y, offset=offset, n_pairs=5, random_state=0)
    assert {group.support for group in found.select(fdr=0.1)} <= {3, 5, 9}
    assert len(found.select(fdr=0.1)) == 2
    in_cents = GroupDiscoveryRegressor(3, loss="gamma").fit(X, 100.0 * y, offset=offset)
    in_euros = GroupDiscoveryRegressor(3, loss=GammaLoss).fit(X, y, offset=offset)
    np.testing.assert_allclose(in_cents.coef_, in_euros.coef_, atol=1e-8)


def test_several_targets_and_the_report(costs):
    X, y, offset = costs
    both = np.column_stack([y, y[::-1]])
    model = GroupDiscoveryRegressor(3, loss="gamma").fit(X, both, offset=np.column_stack([offset, offset[::-1]]))
    assert model.dual_gap_ <= 1e-10
    assert model.coef_.shape == (2, 20)
    result = coterie.discover(X, y, task="regression", loss="gamma", fast=True, offset=offset)
    assert result.held_out is None
    assert "mean_ratio" in result.to_frame()


@pytest.mark.parametrize("value", [0.0, -2.0])
def test_numbers_that_are_not_positive(costs, value):
    X, y, _ = costs
    y[7] = value
    with pytest.raises(ValueError, match=rf"loss='gamma' requires numbers above 0, but y is {value:g} in sample 7 "):
        GroupDiscoveryRegressor(2, loss="gamma").fit(X, y)
