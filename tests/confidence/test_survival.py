"""Inference for survival times: Cox regressions, score tests, p-values and q-values, effects."""

import numpy as np
import pytest
from scipy import optimize, stats

from coterie import GroupDiscoverySurvival, group_confidence, group_effects
from coterie.confidence.association import null_models
from coterie.confidence.halves import complementary, permute_labels
from coterie.inputs.survival import survival_targets
from coterie.solver.cox_regression import COX, CoxRegression, cox_effects, information
from coterie.solver.regression import standardised


def simulated(seed=0, n=120, p=5, ties=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    time, end = rng.exponential(np.exp(-X[:, 0])), rng.exponential(2.0, n)
    observed = np.minimum(time, end)
    return X, survival_targets(time <= end, np.ceil(6 * observed) if ties else observed)


def design_of(X, weight=None):
    return np.column_stack([np.ones(len(X)), standardised(X, np.ones(len(X)) if weight is None else weight)])


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_cox_regression_is_optimal(rng, ties):
    X, targets = simulated()
    design, weight, offset = design_of(X), rng.random(120) + 0.5, rng.standard_normal(120)
    found = CoxRegression(design, targets, weight, offset, ties)
    assert found.gap <= 1e-12

    def objective(coef):
        outputs = (design[:, 1:] @ coef)[:, None]
        return found.loss.evaluate(outputs).value + coef @ coef / 18.0

    best = optimize.minimize(objective, np.zeros(5), method="BFGS", options={"gtol": 1e-7})
    assert found.coef[1:] == pytest.approx(best.x, abs=1e-5)
    h = 1e-4 * np.eye(5)
    hessian = [
        [
            (objective(best.x + a + b) - objective(best.x + a - b) - objective(best.x - a + b) + objective(best.x - a - b))
            / 4e-8
            for b in h
        ]
        for a in h
    ]
    assert np.linalg.inv(found.covariance[1:, 1:]) == pytest.approx(np.array(hessian), rel=1e-3, abs=1e-2)


def test_effects_stay_finite_if_a_feature_orders_all_events():
    targets = survival_targets(np.ones(30), np.arange(30) + 1.0)
    found = cox_effects(design_of(-np.arange(30.0)[:, None]), targets, np.ones(30))
    assert np.isfinite(found.effect).all()
    assert 1.0 < found.effect[1] < 30.0


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_score_residuals_add_up_to_the_gradient(ties):
    X, targets = simulated()
    found = CoxRegression(design_of(X), targets, np.ones(120), ties=ties)
    scores = found.loss.score_residuals(found.state, X)
    assert scores.sum(axis=0) == pytest.approx(X.T @ found.state.residual[:, 0], abs=1e-10)


def test_score_residuals_by_definition():
    """Without ties: the event's deviation from the risk set, less the expected one while under observation."""
    X, targets = simulated(ties=False, n=40)
    found = CoxRegression(design_of(X), targets, np.ones(40))
    hazard = np.exp(design_of(X) @ found.coef)
    expected = np.zeros_like(X)
    for k in np.flatnonzero(targets["event"]):
        at_risk = targets["time"] >= targets["time"][k]
        share = np.where(at_risk, hazard, 0.0) / hazard[at_risk].sum()
        expected[k] += X[k] - share @ X
        expected -= share[:, None] * (X - share @ X)
    assert found.loss.score_residuals(found.state, X) == pytest.approx(expected, abs=1e-10)


def test_robust_errors_of_clusters_of_one_are_those_of_samples():
    X, targets = simulated()
    design = design_of(X)
    plain = cox_effects(design, targets, np.ones(120))
    robust = cox_effects(design, targets, np.ones(120), robust=True)
    clustered = cox_effects(design, targets, np.ones(120), np.arange(120))
    assert robust.error[1:] == pytest.approx(clustered.error[1:])
    assert (robust.error[1:] >= plain.error[1:]).all()
    twice = cox_effects(np.repeat(design, 2, axis=0), np.repeat(targets, 2), np.ones(240), np.repeat(np.arange(120), 2))
    assert twice.error[1:] == pytest.approx(plain.error[1:], rel=0.35)


def test_score_tests_are_those_of_the_likelihood():
    """The statistic is gradient over root of the information, given the features of the null model."""
    X, targets = simulated()
    y = np.column_stack([targets["time"], targets["event"]])
    data = GroupDiscoverySurvival(1)._read(X, y, covariates=X[:, [4]])
    (model,) = null_models(data, np.array([0]), np.arange(120), COX)
    tests = model.tests(X[:, 1:4])
    known = design_of(X[:, [0, 4]])
    fitted = CoxRegression(known, targets, np.ones(120))
    columns = np.column_stack([known[:, 1:], X[:, 1:4]])
    gradient = columns.T @ fitted.state.residual[:, 0]
    whole = information(fitted.state, columns, columns)
    for k in range(3):
        inside = [0, 1, 2 + k]
        inverse = np.linalg.inv(whole[np.ix_(inside, inside)])
        # The prior of the null model leaves a small gradient of its own features.
        rest = gradient[2 + k] - whole[2 + k, :2] @ np.linalg.solve(whole[:2, :2], gradient[:2])
        assert tests.z[k] == pytest.approx(rest * inverse[2, 2] ** 0.5, abs=1e-8)
        assert tests.information[k] == pytest.approx(inverse[2, 2] ** -0.5, rel=1e-8)
    inside = [0, 1, 3, 2]
    inverse = np.linalg.inv(whole[np.ix_(inside, inside)])
    slope = whole[2, 3] - whole[2, :2] @ np.linalg.solve(whole[:2, :2], whole[:2, 3])
    share = slope / (tests.information[0] * tests.information[1])
    expected = 2 * stats.norm.sf(abs(tests.z[0] - share * tests.z[1]) / np.sqrt(1 - share**2))
    assert tests.given(0, np.array([1])) == pytest.approx([expected], rel=1e-6)


def test_p_values_are_uniform_without_effects():
    values = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X, targets = simulated(seed, n=80, p=100)
        data = GroupDiscoverySurvival(1)._read(X, np.column_stack([targets["time"], targets["event"]]))
        (model,) = null_models(data, np.array([0]), np.arange(80), COX)
        values.append(model.tests(np.hstack([X[:, 1:], (rng.random((80, 50)) < 0.1)])).p_value)
    found = np.concatenate(values)
    for level in (0.3, 0.05, 0.01):
        assert (found <= level).mean() <= 1.5 * level
    assert (found <= 0.3).mean() >= 0.2


def test_joint_p_values():
    X, targets = simulated(n=300)
    found = COX.tests(design_of(X), targets, np.ones(300)).p_value
    assert found[1] < 1e-6
    assert found[2:].min() > 1e-3
    censored = survival_targets(np.zeros(300), targets["time"])
    assert COX.tests(design_of(X), censored, np.ones(300)).p_value.tolist() == [1.0] * 6
    assert COX.tests(design_of(0.0 * X), targets, np.ones(300)).p_value.tolist() == [1.0] * 6


def test_half_samples_and_permutations_keep_pairs_of_time_and_event():
    X, targets = simulated()
    data = GroupDiscoverySurvival(1)._read(X, np.column_stack([targets["time"], targets["event"]]))
    first, second = complementary(data, 0, 0, 0, stratified=True)
    assert abs(targets["event"][first > 0].sum() - targets["event"][second > 0].sum()) <= 1
    permuted = permute_labels(data, 0, 1).targets
    assert sorted(permuted.tolist()) == sorted(targets.tolist())
    assert (permuted != targets).any()


def planted(n=250, p=60):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, p))
    X[:, 30:] = X[:, :30] + 0.4 * rng.standard_normal((n, 30))
    time, end = rng.exponential(np.exp(-X[:, 0] + 0.8 * X[:, 1])), rng.exponential(2.0, n)
    return X, np.column_stack([np.minimum(time, end), time <= end])


def test_confidence_has_p_and_q_values():
    X, y = planted()
    model = GroupDiscoverySurvival(4, n_features_per_round=1).fit(X, y)
    result = group_confidence(model, X, y, n_pairs=8, n_permutations=1, random_state=0)
    groups = result.attach_to(model).groups_
    for group in groups:
        if group.support % 30 in (0, 1):
            assert group.confidence > 0.8
            assert group.p_value < 0.05
            assert group.q_value < 0.01
            assert group.probabilities[group.members < 30] > 0.5
        else:
            assert group.q_value > 0.1
    grouped = group_confidence(model, X, y, n_pairs=2, random_state=0, groups=np.arange(250) // 2)
    assert (grouped.q_value[:2] < 0.1).all()


def test_effects_are_log_hazard_ratios():
    X, y = planted()
    model = GroupDiscoverySurvival(2, n_features_per_round=1).fit(X, y)
    found = group_effects(model, X, y)
    groups = found.attach(model.groups_)
    for group in groups:
        truth = {0: 1.0, 1: -0.8}[group.support % 30]
        low, high = group.effect_interval
        assert low < group.effect < high
        assert group.effect == pytest.approx(truth, abs=0.3)
    clustered = group_effects(model, X, y, groups=np.arange(250) // 2)
    assert (clustered.high - clustered.low >= found.high - found.low - 1e-9).all()


def test_one_event_cannot_be_halved():
    X, y = planted()
    y[:, 1] = np.arange(250) == 0
    model = GroupDiscoverySurvival(1).fit(X, np.where(np.arange(250)[:, None] == 0, [[0.001, 1.0]], y))
    with pytest.raises(ValueError, match="y has one event"):
        group_confidence(model, X, np.where(np.arange(250)[:, None] == 0, [[0.001, 1.0]], y))
