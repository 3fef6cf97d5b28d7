"""Quantile regressions, their tests and estimators: scikit-learn as reference, error rates under the null."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import d2_pinball_score

import coterie
from coterie import GroupDiscoveryRegressor, GroupDiscoveryRegressorCV, group_confidence, group_effects
from coterie.confidence.association import null_models
from coterie.data import as_source
from coterie.inputs.opening import Input
from coterie.solver.loss import Targets
from coterie.solver.quantile import Quantile, QuantileRegression, quantile_width
from coterie.solver.regression import robust_scale


def data_of(X, y, **known):
    return Input(as_source(X), X, y, y, None, None, None, known.get("covariates"), known.get("offset"), None, {})


def design_of(X):
    return np.column_stack([np.ones(len(X)), (X - X.mean(axis=0)) / X.std(axis=0)])


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_effects_against_scikit_learn_and_the_bootstrap(rng, quantile):
    design = design_of(rng.standard_normal((2000, 2)))
    y = 100.0 + 30.0 * design[:, 1] + (20.0 + 8.0 * np.abs(design[:, 2])) * rng.standard_normal(2000)
    family = QuantileRegression(quantile)
    found = family.effects(design, y, np.ones(2000))
    reference = QuantileRegressor(quantile=quantile, alpha=0.0).fit(design[:, 1:], y)
    expected = np.append(reference.intercept_, reference.coef_)
    assert (np.abs(found.effect - expected) <= 0.5 * found.error).all()
    assert found.gap <= 1e-12
    effects = []
    for _ in range(60):
        rows = rng.integers(0, 2000, 2000)
        effects.append(family.effects(design[rows], y[rows], np.ones(2000)).effect)
    np.testing.assert_allclose(found.error, np.std(effects, axis=0), rtol=0.35)
    weight = rng.integers(0, 3, 2000)
    kept = np.repeat(np.arange(2000), weight)
    weighted, repeated = (
        family.effects(design, y, weight.astype(float)),
        family.effects(design[kept], y[kept], np.ones(len(kept))),
    )
    np.testing.assert_allclose(weighted.effect, repeated.effect, atol=1e-6)
    clustered = family.effects(design, y, np.ones(2000), np.arange(2000) // 8, offset=np.ones(2000))
    assert (clustered.error >= found.error - 1e-9).all()
    assert clustered.effect[0] == pytest.approx(found.effect[0] - 1.0)


def test_the_statistic_is_that_of_the_rank_score_test(rng):
    X, offset = rng.standard_normal((400, 3)), rng.standard_normal(400)
    y = offset + rng.standard_t(3, 400)
    (model,) = null_models(data_of(X, y, offset=offset), [], np.arange(400), QuantileRegression(0.75))
    above = 0.75 - (y - offset < np.quantile(y - offset, 0.75))
    for j in range(3):
        rest = X[:, j] - X[:, j].mean()
        z = rest @ above / np.sqrt(0.75 * 0.25 * (rest @ rest))
        assert model.tests(X[:, [j]]).z[0] == pytest.approx(z, abs=0.25)


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_tests_keep_their_level(quantile):
    """Errors with heavy tails, whose scale depends on a feature; joint tests also with sample groups."""
    single, joint, grouped = [], [], []
    family = QuantileRegression(quantile)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((150, 100))
        y = rng.standard_t(2, 150)
        (model,) = null_models(data_of(X, y), [], np.arange(150), family)
        single.append(model.tests(X).p_value)
        joint.append(family.tests(design_of(X[:, :6]), (1.0 + np.abs(X[:, 0])) * y, np.ones(150)).p_value[2:])
        unit = np.repeat(np.arange(50), 3)
        together = family.tests(design_of(X[unit, :4]), np.repeat(rng.standard_normal(50), 3), np.ones(150), unit)
        grouped.append(together.p_value[1:])
    assert 0.03 <= (np.concatenate(single) <= 0.05).mean() <= 0.07
    assert (np.concatenate(single) <= 0.005).mean() <= 0.01
    assert (np.concatenate(joint) <= 0.05).mean() <= 0.08
    assert (np.concatenate(grouped) <= 0.05).mean() <= 0.12


def test_joint_tests_find_effects_given_the_others(rng):
    X = rng.standard_normal((200, 3))
    X[:, 1] = X[:, 0] + 0.3 * X[:, 1]
    design = np.column_stack([design_of(X), np.zeros(200), design_of(X)[:, 3]])
    found = QuantileRegression(0.5).tests(design[:, :5], X[:, 0] + 0.3 * rng.standard_normal(200), np.ones(200))
    assert found.p_value[1] < 1e-6
    assert found.p_value[2:4].min() > 0.01
    assert found.p_value[4] == 1.0  # a constant column
    assert np.sign(found.effect[1]) == 1.0
    assert found.one_sided(np.ones(5))[1] == pytest.approx(found.p_value[1] / 2)
    collinear = QuantileRegression(0.5).tests(design, X[:, 0], np.ones(200))
    assert collinear.p_value[[3, 5]].tolist() == [1.0, 1.0]


def heteroscedastic(n=400):
    """Return numbers whose mean depends on feature 3 (with its copy 5), and whose spread depends on feature 9."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 20))
    X[:, 5] = X[:, 3] + 0.4 * X[:, 5]
    return X, 1000.0 + 50.0 * (X[:, 3] + np.exp(0.6 * X[:, 9]) * rng.standard_normal(n))


def test_estimators(tmp_path):
    X, y = heteroscedastic()
    options = {"loss": "quantile", "quantile": 0.9}
    model = GroupDiscoveryRegressorCV(5, **options, Cs=2, cv=3, nested=True, random_state=0).fit(X, y)
    assert {3, 9} <= {j for group in model.groups_ for j in group.members}
    assert model.scoring_ == "d2_pinball"
    assert model.score(X, y) == pytest.approx(d2_pinball_score(y, model.predict(X), alpha=0.9), abs=1e-3)
    assert (y <= model.predict(X)).mean() == pytest.approx(0.9, abs=0.02)
    assert (y <= model.held_out_predictions_).mean() == pytest.approx(0.9, abs=0.04)
    coterie.save(model, tmp_path / "model")
    np.testing.assert_array_equal(coterie.load(tmp_path / "model").predict(X), model.predict(X))
    found = group_confidence(model, X, y, n_pairs=5, random_state=0)
    assert len(found.select(fdr=0.1)) == 2
    groups = group_effects(model, X, y).attach(model.groups_)
    assert {group.ratio_kind for group in groups} == {None}
    named, given = GroupDiscoveryRegressor(3, **options).fit(X, y), GroupDiscoveryRegressor(3, loss=Quantile(0.9)).fit(X, y)
    np.testing.assert_array_equal(named.coef_, given.coef_)
    assert named.dual_gap_ <= 1e-10
    assert set(named.support_features_[:2]) <= {3, 5, 9}
    in_cents = GroupDiscoveryRegressor(3, **options).fit(X, 100.0 * y)
    np.testing.assert_allclose(in_cents.coef_, 100.0 * named.coef_, rtol=1e-6, atol=1e-6)
    both = GroupDiscoveryRegressor(3, **options).fit(X, np.column_stack([y, 0.01 * y]))
    np.testing.assert_allclose(both.coef_[0], 100.0 * both.coef_[1], rtol=1e-6, atol=1e-6)
    with_offset = GroupDiscoveryRegressor(3, **options).fit(X, y + 7.0 * X[:, 0], offset=7.0 * X[:, 0])
    np.testing.assert_allclose(with_offset.coef_, named.coef_, rtol=1e-6, atol=1e-6)
    assert clone(model).get_params()["quantile"] == 0.9


def test_the_median_is_between_the_other_quantiles():
    X, y = heteroscedastic()
    low, middle, high = (GroupDiscoveryRegressor(5, loss="quantile", quantile=q).fit(X, y).predict(X) for q in (0.1, 0.5, 0.9))
    assert (low < middle).mean() > 0.97
    assert (middle < high).mean() > 0.97


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"loss": "quantile", "quantile": 1.0}, r"quantile=1.0 must be a fraction in \(0, 1\)"),
        ({"loss": "huber", "quantile": 0.9}, "quantile=0.9 requires loss='quantile', not loss='huber'"),
        ({"quantile": 0.1}, "quantile=0.1 requires loss='quantile', not loss='squared'"),
    ],
)
def test_wrong_settings(options, text):
    X, y = heteroscedastic(40)
    for model in (GroupDiscoveryRegressor(2, **options), GroupDiscoveryRegressorCV(2, **options)):
        with pytest.raises(ValueError, match=text):
            model.fit(X, y)


def test_the_loss_object(rng):
    y = rng.standard_normal(1000)
    assert quantile_width(7.0 * y, np.ones(1000)) == pytest.approx(7.0 * quantile_width(y, np.ones(1000)))
    assert quantile_width(y, np.ones(1000)) == pytest.approx((np.log(1000) / 1000) ** 0.4 * robust_scale(y, np.ones(1000)))
    assert quantile_width(y, np.full(1000, 1e6)) == pytest.approx(0.05 * robust_scale(y, np.ones(1000)))
    for q in (0.05, 0.5, 0.8):
        constant = Quantile(q).constant_outputs(Targets(y, 0), np.ones(1000))
        assert (y <= constant).mean() == pytest.approx(q, abs=0.02)
    assert Quantile(0.9, width=2.0).of(Targets(y, 0), np.ones(1000), 1.0, True).tilt == pytest.approx(1.6)
    assert Quantile(0.9).is_equivariant
    assert not Quantile(0.9, width=2.0).is_equivariant
    for wrong in ({"quantile": 0.0}, {"quantile": np.nan}, {"width": -1.0}):
        with pytest.raises(ValueError, match="must be a"):
            Quantile(**wrong)
