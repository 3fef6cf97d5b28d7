"""Effects of groups: log-odds or target units per standard deviation, with intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

import coterie
from coterie import (
    FeatureGroup,
    FeatureGroups,
    GroupDiscoveryClassifier,
    GroupDiscoveryOneClass,
    GroupDiscoveryRegressor,
    GroupEffects,
    effects,
    group_effects,
)
from coterie.inputs.targets import spread_sample
from coterie.solver import regression
from coterie.solver.regression import linear_effects, logistic_effects, standardised
from tests.conftest import grouped_matrix


def design_of(rng, n=120, k=4):
    """Return an intercept and correlated standardised columns, labels and targets that depend on them, and weights."""
    X = rng.standard_normal((n, k)) @ (np.eye(k) + 0.4)
    design = np.column_stack([np.ones(n), standardised(X, np.ones(n))])
    slope = np.array([0.3, 1.0, -0.8, 0.0, 0.4])[: k + 1]
    labels = (rng.random(n) < 1 / (1 + np.exp(-design @ slope))).astype(float)
    return design, labels, design @ slope + rng.standard_normal(n) * (1 + np.abs(design[:, 1]))


def test_logistic_effects_minimise_the_penalised_deviance(rng):
    design, labels, _ = design_of(rng)
    weight = rng.integers(1, 4, len(labels)).astype(float)
    penalty = np.array([1 / 100, *[1 / 9] * 4])

    def deviance(coef):
        probability = 1 / (1 + np.exp(-design @ coef))
        likelihood = labels * np.log(probability) + (1 - labels) * np.log(1 - probability)
        return -(weight * likelihood).sum() + 0.5 * (penalty * coef**2).sum()

    found = logistic_effects(design, labels, weight)
    expected = optimize.minimize(deviance, np.zeros(5), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(found.effect, expected, atol=1e-5)
    assert deviance(found.effect) <= deviance(expected) + 1e-9
    assert 0 <= found.gap <= 1e-12
    step = 1e-4
    hessian = np.array(
        [
            [
                (
                    deviance(found.effect + step * (a + b))
                    - deviance(found.effect + step * (a - b))
                    - deviance(found.effect - step * (a - b))
                    + deviance(found.effect - step * (a + b))
                )
                / (4 * step**2)
                for b in np.eye(5)
            ]
            for a in np.eye(5)
        ]
    )
    np.testing.assert_allclose(found.error, np.sqrt(np.diag(np.linalg.inv(hessian))), rtol=1e-3)
    assert found.freedom == np.inf
    low, high = found.interval()
    np.testing.assert_allclose((high - low) / found.error, 2 * 1.959964, rtol=1e-6)


def test_the_gap_bounds_the_distance_from_the_optimum(rng, monkeypatch):
    design, labels, _ = design_of(rng)
    weight, penalty = np.ones(len(labels)), np.array([1 / 100, *[1 / 9] * 4])

    def value(coef):
        return np.logaddexp(0, -(2 * labels - 1) * (design @ coef)).sum() + 0.5 * (penalty * coef**2).sum()

    best = value(logistic_effects(design, labels, weight).effect)
    gradient = design.T @ (0.5 - labels)
    monkeypatch.setattr(regression, "_MAX_STEPS", 1)
    expected = 0.5 * (gradient**2 / penalty).sum() / value(np.zeros(5))
    assert logistic_effects(design, labels, weight).gap == pytest.approx(expected)
    for steps in (2, 3, 4):
        monkeypatch.setattr(regression, "_MAX_STEPS", steps)
        early = logistic_effects(design, labels, weight)
        # The gap is that before the last step, which only decreases the objective.
        excess = value(early.effect) - best
        assert 0 <= excess <= early.gap * max(value(np.zeros(5)), 1.0) + 1e-12
        assert early.n_iter == steps


def test_separated_classes_have_finite_effects():
    x = np.r_[np.linspace(-2, -1, 30), np.linspace(1, 2, 30)]
    labels = (x > 0).astype(float)
    design = np.column_stack([np.ones(60), standardised(x[:, None], np.ones(60))])
    found = logistic_effects(design, labels, np.ones(60))
    assert 2 < found.effect[1] < 10
    assert 0.5 < found.error[1] < 5
    clusters = np.arange(60) // 3  # The sandwich alone would be close to 0.
    robust = logistic_effects(design, labels, np.ones(60), clusters)
    assert robust.error[1] >= found.error[1]


def test_linear_effects_are_least_squares_with_hc3_errors(rng):
    design, _, targets = design_of(rng)
    n = len(targets)
    found = linear_effects(design, targets, np.ones(n))
    expected = np.linalg.lstsq(design, targets, rcond=None)[0]
    np.testing.assert_allclose(found.effect, expected, atol=1e-10)
    bread, meat = np.linalg.inv(design.T @ design), np.zeros((5, 5))
    for row, target in zip(design, targets, strict=True):
        corrected = (target - row @ expected) / (1 - row @ bread @ row)
        meat += corrected**2 * np.outer(row, row)
    np.testing.assert_allclose(found.error, np.sqrt(np.diag(bread @ meat @ bread)), rtol=1e-10)
    assert found.freedom == n - 5
    np.testing.assert_allclose(found.interval(0.9)[1], found.effect + stats.t.ppf(0.95, n - 5) * found.error)


@pytest.mark.parametrize("kind", ["logistic", "linear"])
def test_cluster_robust_errors(rng, kind):
    """The naive sandwich over clusters, where labels depend on the cluster and so do the features."""
    clusters = rng.permutation(np.repeat(np.arange(40), 5))
    X = rng.standard_normal((40, 2))[clusters] + 0.1 * rng.standard_normal((200, 2))
    latent = X[:, 0] + 2 * rng.standard_normal(40)[clusters]
    targets = (latent > 0).astype(float) if kind == "logistic" else latent
    design = np.column_stack([np.ones(200), standardised(X, np.ones(200))])
    function = logistic_effects if kind == "logistic" else linear_effects
    independent, found = function(design, targets, np.ones(200)), function(design, targets, np.ones(200), clusters)
    np.testing.assert_array_equal(found.effect, independent.effect)
    if kind == "logistic":
        probability = 1 / (1 + np.exp(-design @ found.effect))
        hessian = (design.T * (probability * (1 - probability))) @ design + np.diag([1 / 100, 1 / 9, 1 / 9])
        residual = targets - probability
    else:
        hessian, residual = design.T @ design, targets - design @ found.effect
    meat = np.zeros((3, 3))
    for cluster in range(40):
        own = (design[clusters == cluster] * residual[clusters == cluster, None]).sum(axis=0)
        meat += np.outer(own, own)
    bread = np.linalg.inv(hessian)
    naive = np.sqrt(np.diag(bread @ meat @ bread) * 40 / 39)
    np.testing.assert_allclose(found.error, np.maximum(naive, independent.error), rtol=1e-8)
    assert (found.error[1:] > 1.3 * independent.error[1:]).all()
    assert found.freedom == 39


@pytest.mark.parametrize("function", [logistic_effects, linear_effects])
def test_no_interval_with_few_clusters(rng, function):
    design, labels, _ = design_of(rng)
    clusters = np.arange(120) % 5
    assert np.isnan(function(design, labels, np.ones(120), clusters).error).all()
    assert np.isfinite(function(design, labels, np.ones(120), np.arange(120) % 6).error).all()


def test_weights_repeat_samples(rng):
    design, labels, targets = design_of(rng)
    weight = rng.integers(1, 4, len(labels)).astype(float)
    again = np.repeat(np.arange(len(labels)), weight.astype(int))
    for function, values in ((logistic_effects, labels), (linear_effects, targets)):
        found, expected = function(design, values, weight), function(design[again], values[again], np.ones(len(again)))
        np.testing.assert_allclose(found.effect, expected.effect, atol=1e-8)
        np.testing.assert_allclose(found.error, expected.error, rtol=1e-8)


def test_degenerate_designs(rng):
    design, labels, targets = design_of(rng)
    constant = np.column_stack([design, np.zeros(120)])
    assert linear_effects(constant, targets, np.ones(120)).effect[-1] == 0
    assert np.isnan(linear_effects(constant, targets, np.ones(120)).error[-1])
    assert logistic_effects(constant, labels, np.ones(120)).effect[-1] == 0
    assert np.isnan(linear_effects(np.column_stack([design, design[:, 1]]), targets, np.ones(120)).error).all()
    assert np.isnan(linear_effects(design[:5], targets[:5], np.ones(5)).error).all()
    assert standardised(np.full((4, 1), 3.0), np.ones(4)).tolist() == [[0.0]] * 4


def test_intervals_cover_the_truth():
    """Features that were not selected: 95 % intervals cover in 90 to 98 % of 300 data sets."""
    rng, covered = np.random.default_rng(0), np.zeros(2)
    for _ in range(300):
        z = standardised(rng.standard_normal((150, 2)), np.ones(150))
        design = np.column_stack([np.ones(150), z])
        outputs = design @ [-1.0, 0.7, -0.4]
        labels = (rng.random(150) < 1 / (1 + np.exp(-outputs))).astype(float)
        classes = logistic_effects(design, labels, np.ones(150))
        numbers = linear_effects(design, outputs + rng.standard_normal(150) * (0.5 + np.abs(z[:, 0])), np.ones(150))
        for k, found in enumerate((classes, numbers)):
            low, high = found.interval()
            covered[k] += ((low[1:] <= [0.7, -0.4]) & (high[1:] >= [0.7, -0.4])).mean()
    assert (covered / 300 > 0.90).all()
    assert (covered / 300 < 0.98).all()


@pytest.fixture
def planted():
    X, y = grouped_matrix(np.random.default_rng(0), n_samples=150)
    return X * np.logspace(-2, 2, X.shape[1]), np.where(y > 0, "ill", "well")


def test_effects_do_not_depend_on_C_or_units(planted):
    X, y = planted
    found = []
    for C, scale in ((0.03, 1.0), (0.56, 1.0), (10.0, 1.0), (1.0, 7.0)):
        model = GroupDiscoveryClassifier(4, C=C, fixed_features=[0, 5, 10, 15], standardize=True).fit(scale * X, y)
        assert model.groups_.support.tolist() == [0, 5, 10, 15]
        found.append([(g.effect, *g.effect_interval) for g in group_effects(model, scale * X, y).attach_to(model).groups_])
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-6)


@pytest.mark.parametrize("predict_with", ["support", "groups"])
def test_one_source_of_signs(planted, predict_with):
    X, y = planted
    result = coterie.discover(X, y, n_features_to_select=6, C=1.0, predict_with=predict_with, n_pairs=0)
    for group, record in zip(result.groups, result.to_dict()["groups"], strict=True):
        expected = ["ill", "well"][int(group.effect > 0)]
        assert group.marks == expected
        assert record["direction"] == f"more → {expected}"
        assert record["odds_ratio"] == pytest.approx(np.exp(group.effect))
        assert record["effect_low"] < group.effect < record["effect_high"]
        assert (group.note == "weight of opposite sign") == (group.weight * group.effect < 0)
        mean = {label: X[y == label, group.support].mean() for label in ("ill", "well")}
        if record["effect_low"] * record["effect_high"] > 0 and len(result.groups) == 1:
            assert max(mean, key=mean.get) == expected


def test_several_classes(rng):
    X = rng.standard_normal((240, 6))
    y = np.array(["a", "b", "c"])[np.argmax(np.column_stack([2 * X[:, 0], 2 * X[:, 1], np.zeros(240)]), axis=1)]
    model = GroupDiscoveryClassifier(2).fit(X, y)
    found = group_effects(model, X, y)
    assert found.effects.shape == (2, 3)
    groups = {group.support: group for group in found.attach_to(model).groups_}
    assert set(groups) == {0, 1}
    assert groups[0].marks == "a"
    assert groups[1].marks == "b"
    for group in groups.values():
        assert abs(group.effect) == max(map(abs, group.class_effects.values()))
        low, high = group.effect_interval
        assert low < group.effect < high
    labels = (y == "b").astype(float)
    design = np.column_stack([np.ones(240), standardised(X[:, model.groups_.support], np.ones(240))])
    np.testing.assert_allclose(found.effects[:, 1], logistic_effects(design, labels, np.ones(240)).effect[1:])


def test_the_main_effect_is_the_largest_in_absolute_value(rng):
    X = rng.standard_normal((60, 2))
    model = GroupDiscoveryClassifier(1, fixed_features=[0]).fit(X, np.arange(60) % 3)
    values = np.array([[-2.0, 1.5, 0.5]])
    (group,) = GroupEffects(values, values - 0.5, values + 0.25, np.array(["a", "b", "c"]), 60).attach(model.groups_[:1])
    assert (group.effect, group.effect_interval) == (-2.0, (-2.5, -1.75))
    assert group.class_effects == {"a": -2.0, "b": 1.5, "c": 0.5}


def test_all_samples_of_a_rare_class_are_used(rng, monkeypatch):
    X = rng.standard_normal((300, 3))
    y = np.zeros(300, dtype=int)
    y[::20] = 1
    model = GroupDiscoveryClassifier(2).fit(X, y)
    monkeypatch.setattr(effects, "_MAX_SAMPLES", 60)
    monkeypatch.setattr(effects, "_MIN_SAMPLES", 60)
    found, rows = group_effects(model, X, y), spread_sample(np.arange(300), y, 60)
    assert y[rows].sum() == 15
    np.testing.assert_allclose(found.effects, group_effects(model, X[rows], y[rows]).effects)


def test_covariates_and_sample_groups(rng):
    age = rng.standard_normal(200)
    X = np.column_stack([age + 0.3 * rng.standard_normal(200), rng.standard_normal(200)])
    y = 2 * age + X[:, 1] + 0.5 * rng.standard_normal(200)
    model = GroupDiscoveryRegressor(2, fixed_features=[0, 1]).fit(X, y, covariates=age)
    with pytest.raises(ValueError, match=r"fitted with covariates \(covariate_0\). Pass them"):
        group_effects(model, X, y)
    adjusted = group_effects(model, X, y, covariates=age).effects[:, 0]
    assert abs(adjusted[0]) < 0.4
    assert adjusted[1] == pytest.approx(1.0, abs=0.15)
    pair = np.arange(200) // 2
    clustered = group_effects(model, X, y, covariates=age, groups=pair)
    assert (clustered.high - clustered.low >= (group_effects(model, X, y, covariates=age).high - clustered.effects)).all()


def test_blocks_and_limits(planted, monkeypatch):
    X, y = planted
    model = GroupDiscoveryClassifier(6, correlation=None).fit(X, y)
    whole = group_effects(model, X, y)
    monkeypatch.setattr(effects, "_BLOCK", 4)
    monkeypatch.setattr(effects, "_MAX_GROUPS", 5)
    found = group_effects(model, X, y)
    assert not np.allclose(found.effects[:4], whole.effects[:4])
    assert np.isnan(found.effects[5])
    groups = found.attach(model.groups_)
    assert groups[5].effect is None
    assert groups[4].effect is not None
    monkeypatch.setattr(effects, "_MAX_SAMPLES", 50)
    monkeypatch.setattr(effects, "_MIN_SAMPLES", 50)
    assert group_effects(model, X, y).n_samples == 50
    with pytest.raises(ValueError, match="6 effects, but 2 groups"):
        whole.attach(model.groups_[:2])


def test_samples_of_weight_zero_do_not_count(planted, rng):
    X, y = planted
    weight = (rng.random(len(y)) < 0.7).astype(float)
    model = GroupDiscoveryClassifier(3).fit(X, y, sample_weight=weight)
    found, used = group_effects(model, X, y, weight), weight > 0
    assert found.n_samples == int(weight.sum())
    np.testing.assert_allclose(found.effects, group_effects(model, X[used], y[used]).effects)


def test_spread_sample_keeps_rare_classes():
    classes = np.r_[np.zeros(90, dtype=int), np.ones(10, dtype=int)]
    kept = spread_sample(np.arange(100), classes, 30)
    assert np.bincount(classes[kept]).tolist() == [20, 10]
    assert len(spread_sample(np.arange(100), None, 30)) == 30


def test_other_models_are_refused(rng):
    X = rng.standard_normal((30, 4))
    model = GroupDiscoveryOneClass(2).fit(X)
    assert model.groups_[0].effect is not None  # the change of the output
    with pytest.raises(TypeError, match="Effects require a classifier, a regressor or a survival model"):
        group_effects(model, X)


def test_plain_fits_have_no_effects(planted):
    model = GroupDiscoveryClassifier(3).fit(*planted)
    assert [group.effect for group in model.groups_] == [None] * 3
    coterie.report.report(model, *planted)
    assert [group.effect for group in model.groups_] == [None] * 3  # the report works on a copy


def test_a_saved_discovery_keeps_effects(planted, tmp_path):
    result = coterie.discover(*planted, n_features_to_select=3, C=1.0, n_pairs=0)
    result.save(tmp_path / "r")
    loaded = coterie.load(tmp_path / "r")
    for group, other in zip(result.groups, loaded.groups, strict=True):
        assert (group.effect, group.effect_interval, group.class_effects, group.used) == (
            other.effect, other.effect_interval, other.class_effects, other.used,
        )  # fmt: skip
    assert loaded.to_frame().equals(result.to_frame())


def test_groups_that_the_model_does_not_use_are_no_findings(planted):
    result = coterie.discover(*planted, n_features_to_select=4, C=1.0, n_pairs=4, n_permutations=0)
    assert "groups that the model does not use" not in result.summary
    before = result.judgement
    result.model.groups_ = coterie.FeatureGroups(
        [replace(group, used=number != 0) for number, group in enumerate(result.groups)]
    )
    assert result.summary["groups that the model does not use"] == 1
    assert result.judgement != before
    assert "of 3 groups" in result.judgement or "the 3 groups" in result.judgement
    content = result.to_dict()
    assert content["groups"][0]["note"] == "not used by the model"
    assert content["groups"][0]["used"] is False
    assert result.to_frame()["note"].notna().sum() == 1
    assert "weight 0" in repr(result.groups[0])


def test_used_follows_the_predictive_model(rng):
    X, y = grouped_matrix(rng, n_samples=80)
    model = GroupDiscoveryClassifier(30, standardize=True, correlation=None).fit(X, y)
    unused = [group.weight == 0 for group in model.groups_]
    assert 0 < sum(unused) < 30
    assert [not group.used for group in model.groups_] == unused
    grouped = GroupDiscoveryClassifier(4, threshold=0.5).fit(X, y).groups_
    assert any(len(group) > 1 and group.weight != 0 for group in grouped)
    assert [group.used for group in grouped] == [group.weight != 0 for group in grouped]
    whole = GroupDiscoveryClassifier(8, C=1e-4, standardize=True, predict_with="groups").fit(X, y)
    assert any(group.weight == 0 for group in whole.groups_)
    assert all(group.used for group in whole.groups_)


def test_notes():
    assert FeatureGroup(0, [], weight=1.0, effect=-0.5).note == "weight of opposite sign"
    assert FeatureGroup(0, [], weight=1.0, effect=0.5).note is None
    several = FeatureGroup(
        0, [], weight=1.0, effect=-2.0, class_effects={"a": -2.0, "b": 1.0, "c": 1.0},
        class_weights={"a": 0.3, "b": -0.1, "c": -0.2},
    )  # fmt: skip
    assert several.note == "weight of opposite sign"
    assert several.marks == "b"
    assert several.odds_ratio == pytest.approx(np.exp(-2))


def test_significant_groups_are_estimated_together_and_others_beside_them(rng):
    X = rng.standard_normal((200, 8))
    y = X[:, 0] - X[:, 1] + rng.standard_normal(200)
    model = GroupDiscoveryRegressor(5, fixed_features=[7]).fit(X, y)
    known = {0: 0.01, 1: 0.09}
    values = [np.nan if group.round == 0 else known.get(group.support, 0.11) for group in model.groups_]
    model.groups_ = FeatureGroups([replace(group, q_value=q) for group, q in zip(model.groups_, values, strict=True)])
    found, weight = group_effects(model, X, y), np.ones(200)
    support = model.groups_.support.tolist()
    assert {0, 1, 7} < set(support)
    assert found.level == pytest.approx(1 - 0.05 * 5 / 8)
    for group, effect, low in zip(support, found.effects[:, 0], found.low[:, 0], strict=True):
        columns = [group, *(other for other in (0, 1, 7) if other != group)]
        slow = linear_effects(np.column_stack([np.ones(200), standardised(X[:, columns], weight)]), y, weight)
        assert effect == pytest.approx(slow.effect[1])
        quantile = stats.t.ppf(1 - 0.05 * 5 / 8 / 2, 200 - 1 - len(columns))
        assert low == pytest.approx(slow.effect[1] - quantile * slow.error[1])


def test_intervals_of_selected_noise_contain_zero():
    """Without any effect, about 5 % of the intervals miss 0, where intervals without adjustment miss it in most cases."""
    rng, missed, plain = np.random.default_rng(0), [], []
    for _ in range(30):
        X, y = rng.standard_normal((100, 300)), rng.standard_normal(100)
        model = GroupDiscoveryRegressor(8).fit(X, y)
        together = group_effects(model, X, y)
        model.groups_ = FeatureGroups([replace(group, q_value=1.0) for group in model.groups_])
        found = group_effects(model, X, y)
        missed.append(np.mean((found.low > 0) | (found.high < 0)))
        width = (together.high - together.effects) * stats.norm.ppf(0.975) / stats.t.ppf(0.5 + together.level / 2, 91)
        plain.append(np.mean(np.abs(together.effects) > width))
    assert np.mean(missed) < 0.1
    assert np.mean(plain) > 0.9
