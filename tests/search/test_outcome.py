"""Prediction with support and affiliated features: certified optimal models, compared with reference solvers."""

import warnings
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

from coterie import GroupDiscoveryClassifier, GroupDiscoveryOneClass, GroupDiscoveryRegressor
from coterie.data import FeatureView, as_source
from coterie.data.memory import DenseSource
from coterie.search import outcome as outcome_module
from coterie.search.outcome import _class_weights, output_changes
from coterie.solver import ridge
from coterie.solver.design import design_of
from coterie.solver.losses import OneVsRestHinge, SquaredHinge, SquaredLoss, UnitHinge
from tests import naive
from tests.conftest import grouped_matrix, sparse_counts


def svm_with_cvxpy(X, y, weight, C, fit_intercept):
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    slack = cp.pos(1 - cp.multiply(y, X @ w + (b if fit_intercept else 0)))
    objective = 0.5 * cp.sum_squares(w) + C / 2 * cp.sum(cp.multiply(weight, cp.square(slack)))
    task = cp.Problem(cp.Minimize(objective))
    task.solve(solver=cp.CLARABEL)
    return task.value, w.value, 0.0 if not fit_intercept else float(b.value)


def design_with(X):
    view = FeatureView.of(as_source(X), centred=False)
    design = design_of(view)
    design.append(np.arange(view.n_features))
    return design


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(60, 12), (25, 80)])
@pytest.mark.parametrize("way", ["direct", "products"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_unit_hinge_is_the_linear_svm(rng, monkeypatch, fit_intercept, shape, way, C):
    if way == "products":
        monkeypatch.setattr(ridge, "_MAX_DIRECT", 0)
    X = rng.standard_normal(shape) + 0.5
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(len(X)) > 0.3, 1.0, -1.0)
    weight = rng.random(len(y))
    weight[3] = 0.0
    solution = ridge.fit_ridge(UnitHinge(y, weight, C, fit_intercept), design_with(X))
    value, w, b = svm_with_cvxpy(X, y, weight, C, fit_intercept)
    assert solution.gap <= 1e-9
    assert -solution.bound == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(solution.coef[:, 0], w, atol=2e-4 * np.abs(w).max())
    assert solution.state.intercept[0] == pytest.approx(b, abs=1e-3 * np.abs(w).max())


def test_margin_of_one_and_free_margin_are_the_same_classifier(rng):
    X, y = grouped_matrix(rng)
    y = y.astype(float)
    free, unit = SquaredHinge(y, np.ones(len(y)), 0.1, True), UnitHinge(y, np.ones(len(y)), 0.1, True)
    one, other = ridge.fit_ridge(free, design_with(X)), ridge.fit_ridge(unit, design_with(X))
    assert max(one.gap, other.gap) <= 1e-9
    np.testing.assert_allclose(one.coef, one.state.margin * other.coef, atol=1e-6 * np.abs(one.coef).max())
    np.testing.assert_allclose(one.state.intercept, one.state.margin * other.state.intercept, atol=1e-6)


def test_nearly_separable_data_with_a_large_penalty(rng):
    """Newton's method from zero would take hundreds of steps here."""
    X = rng.standard_normal((300, 20)) @ rng.standard_normal((20, 150)) + 0.5 * rng.standard_normal((300, 150))
    y = np.where(X[:, 0] + 2 * rng.standard_normal(300) > 0, 1.0, -1.0)
    for C in (1.0, 1e3, 1e5):
        solution = ridge.fit_ridge(UnitHinge(y, np.ones(300), C, True), design_with(X))
        assert solution.gap <= 1e-8


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_unit_hinge_satisfies_the_protocol_of_a_loss(rng, fit_intercept):
    y = np.where(rng.random(40) < 0.4, 1.0, -1.0)
    loss = UnitHinge(y, rng.random(40) + 0.1, 3.0, fit_intercept)
    z, d = rng.standard_normal((40, 1)), rng.standard_normal((40, 1))
    state, up, down = loss.evaluate(z), loss.evaluate(z + 1e-6 * d), loss.evaluate(z - 1e-6 * d)
    assert (up.value - down.value) / 2e-6 == pytest.approx(-(state.residual * d).sum(), rel=1e-5)
    assert state.value + state.conjugate == pytest.approx(-(state.residual * z).sum(), rel=1e-9)
    if fit_intercept:
        assert state.residual.sum() == pytest.approx(0.0, abs=1e-12)
        around = [loss.C / 2 * (loss.weight @ np.maximum(1 - y * (z[:, 0] + b), 0) ** 2) for b in np.linspace(-2, 2, 4001)]
        assert state.value <= min(around) + 1e-9


def test_offset_without_any_loss_is_left_alone():
    y = np.array([1.0, 1.0, -1.0, -1.0])
    state = UnitHinge(y, np.ones(4), 1.0, True).evaluate(10 * y[:, None])
    assert state.value == 0.0
    assert (state.residual == 0.0).all()


def test_plain_losses_have_one_output_each(rng):
    several = OneVsRestHinge(np.arange(30) % 3, 3, np.ones(30), 1.0, True)
    assert [type(loss) for loss in several.plain()] == [UnitHinge] * 3
    squared = SquaredLoss(rng.standard_normal(30), np.ones(30), 1.0, True)
    assert squared.plain() == [squared]


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
def test_classifier_on_groups_is_the_svm_on_their_columns(rng, is_sparse, standardize):
    X, y = sparse_counts(rng)
    make = sparse.csc_array if is_sparse else np.asarray
    weight = rng.random(len(y)) + 0.2
    options = {"n_features_per_round": 2, "threshold": 0.5, "standardize": standardize, "C": 0.5}
    plain = GroupDiscoveryClassifier(6, **options).fit(make(X), y, sample_weight=weight)
    model = GroupDiscoveryClassifier(6, predict_with="groups", **options).fit(make(X), y, sample_weight=weight)
    assert model.groups_ == plain.groups_
    np.testing.assert_array_equal(model.support_coef_, plain.support_coef_)
    members = model.groups_.members
    np.testing.assert_array_equal(model.prediction_features_, members)
    assert len(members) > 6
    Z = X[:, members]
    mean = np.average(Z, axis=0, weights=weight)
    scale = np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=weight)) if standardize else 1.0
    _, w, b = svm_with_cvxpy(Z / scale, y, weight, 0.5, True)
    np.testing.assert_allclose(model.prediction_coef_[0], w / scale, atol=1e-4)
    assert model.intercept_[0] == pytest.approx(b, abs=1e-4)
    assert model.prediction_gap_ <= 1e-9
    np.testing.assert_allclose(model.decision_function(make(X)), X @ model.coef_[0] + model.intercept_)
    assert model.transform(make(X)).shape[1] == 6  # keep= would select the group members.


def test_several_classes_on_groups(rng):
    X, _ = grouped_matrix(rng, n_samples=90)
    y = np.array(["a", "b", "c"])[np.argsort(np.argsort(X[:, 0] + 0.3 * X[:, 5])) // 30]
    model = GroupDiscoveryClassifier(4, C=1.0, predict_with="groups", threshold=0.6, standardize=False).fit(X, y)
    Z = X[:, model.groups_.members]
    for c, label in enumerate(model.classes_):
        _, w, b = svm_with_cvxpy(Z, np.where(y == label, 1.0, -1.0), np.ones(90), 1.0, True)
        np.testing.assert_allclose(model.prediction_coef_[c], w, atol=1e-4)
        assert model.intercept_[c] == pytest.approx(b, abs=1e-4)
    assert model.coef_.shape == (3, 40)
    reference = LinearSVC(C=0.5, intercept_scaling=100).fit(Z, y)
    assert np.mean(model.predict(X) == reference.predict(Z)) >= 0.98


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_regression_on_groups_is_ridge(rng, fit_intercept):
    X, _ = grouped_matrix(rng)
    y = X[:, 0] - X[:, 7] + 0.1 * rng.standard_normal(len(X)) + 3
    weight = rng.random(len(y)) + 0.1
    model = GroupDiscoveryRegressor(3, C=2.0, predict_with="groups", fit_intercept=fit_intercept, standardize=False)
    model.fit(X, y, sample_weight=weight)
    Z = X[:, model.groups_.members]
    reference = Ridge(alpha=0.5, fit_intercept=fit_intercept).fit(Z, y, sample_weight=weight)
    np.testing.assert_allclose(model.predict(X), reference.predict(Z), rtol=1e-7)
    np.testing.assert_allclose(model.prediction_coef_[0], reference.coef_, atol=1e-7)


def test_one_class_on_groups(rng):
    X = np.abs(rng.standard_normal((80, 30)))
    X[:, 5] = X[:, 4] + 0.05 * rng.random(80)
    model = GroupDiscoveryOneClass(4, C=0.05, predict_with="groups", threshold_rule="margin").fit(X)
    _, w, _ = svm_with_cvxpy(X[:, model.groups_.members], np.ones(80), np.ones(80), 0.05, False)
    np.testing.assert_allclose(model.prediction_coef_[0], w, atol=1e-4)
    assert model.offset_ == 1.0
    np.testing.assert_allclose(model.decision_function(X), model.score_samples(X) - 1.0)


def test_a_penalty_so_large_that_its_matrix_has_no_cholesky_factor(rng):
    """I + CX'X equals CX'X up to rounding, and X has equal columns: this is a warning, not an error."""
    X = 1e4 * np.repeat(np.abs(rng.standard_normal((60, 10))), 3, axis=1)
    loss = UnitHinge(np.ones(60), np.ones(60), 1e12, False)
    design = design_with(X)
    assert ridge._solve_directly(loss, design, loss.evaluate(np.zeros((60, 1))), np.ones((30, 1))) is None
    with pytest.warns(ConvergenceWarning, match="Scale the features .* or choose a smaller C or a larger tol"):
        model = GroupDiscoveryOneClass(5, C=1e12, predict_with="groups").fit(X)
    assert np.isfinite(model.coef_).all()


def test_prediction_above_the_tolerance_warns(rng, monkeypatch):
    X, y = grouped_matrix(rng)
    monkeypatch.setattr(ridge, "_MAX_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="support and affiliated"):
        GroupDiscoveryClassifier(3, predict_with="groups", tol=1e-12).fit(X, y)


def test_affiliated_features_help_by_averaging_noise(rng):
    factors = rng.standard_normal((1000, 3))
    X = rng.standard_normal((1000, 60))
    for k in range(3):
        X[:, 10 * k : 10 * k + 8] = factors[:, [k]] + 0.6 * rng.standard_normal((1000, 8))
    y = np.where(factors.sum(axis=1) + 0.1 * rng.standard_normal(1000) > 0, 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scores = [
            GroupDiscoveryClassifier(3, n_features_per_round=1, threshold=0.6, predict_with=kind)
            .fit(X[:500], y[:500])
            .score(X[500:], y[500:])
            for kind in ("support", "groups")
        ]
    assert scores[1] > scores[0] + 0.03


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
def test_whether_features_were_standardised_is_published(rng, standardize, dense):
    X = rng.standard_normal((40, 6)) * (rng.random((40, 6)) < (1.0 if dense else 0.2))
    y = np.arange(40) % 2
    model = GroupDiscoveryClassifier(2, standardize=standardize).fit(X if dense else sparse.csr_array(X), y)
    assert model.standardize_ is standardize


# Groups and their effects


class Group(NamedTuple):
    """A group with its support feature first."""

    members: np.ndarray
    correlation: np.ndarray


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_effects_of_groups_are_sums_over_the_members_that_the_model_uses(rng, n_outputs):
    """Members change in proportion to their correlations with the support feature; unknown correlations count as 0."""
    features = rng.permutation(30)[:14]
    coef, scale = rng.standard_normal((n_outputs, 14)), rng.random(14) + 0.5
    groups = []
    for size in (1, 2, 5, 9):
        correlation = rng.uniform(-1, 1, size - 1)
        correlation[3:4] = np.nan
        groups.append(Group(rng.permutation(30)[:size], correlation))
    groups.append(Group(np.array([40]), np.empty(0)))  # The model uses no member.
    used = dict(zip(features.tolist(), (coef * scale).T, strict=True))
    expected = np.zeros((5, n_outputs))
    for number, group in enumerate(groups):
        for member, change in zip(group.members.tolist(), [1.0, *group.correlation], strict=True):
            expected[number] += used.get(member, 0.0) * (0.0 if np.isnan(change) else change)
    effects = output_changes(groups, features, coef, scale)
    assert effects.shape == (5, n_outputs)
    np.testing.assert_allclose(effects, expected, atol=1e-12)
    assert np.count_nonzero(expected[:4]) > n_outputs


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("predict_with", ["support", "groups"])
@pytest.mark.parametrize("standardize", [True, False])
def test_groups_of_a_model(rng, n_classes, predict_with, standardize):
    """Members, correlations, scores, weights and rounds, from the other fitted attributes and the data."""
    X, y = grouped_matrix(rng, n_samples=90)
    X *= rng.uniform(0.5, 2.0, 40)
    if n_classes == 3:
        y = np.digitize(X[:, 0] / X[:, 0].std() + X[:, 5] / X[:, 5].std(), [-0.7, 0.7])
    weight = rng.random(90) + 0.5
    names = [f"f{j}" for j in range(40)]
    model = GroupDiscoveryClassifier(
        5, n_features_per_round=2, predict_with=predict_with, threshold=0.6, standardize=standardize
    ).fit(pd.DataFrame(X, columns=names), y, sample_weight=weight)
    correlation = naive.correlation(X, weight)
    assert [group.round for group in model.groups_] == [1, 1, 2, 2, 3]
    assert any(len(group.affiliated) > 1 for group in model.groups_)
    for position, group in enumerate(model.groups_):
        assert group.support == model.support_features_[position]
        np.testing.assert_allclose(group.correlation, correlation[group.support, group.affiliated], atol=1e-9)
        assert (np.diff(np.abs(group.correlation)) <= 1e-12).all()
        assert group.names == tuple(names[j] for j in group.members)
        assert group.score == model.scores_[group.support]
        np.testing.assert_array_equal(group.affiliated_scores, model.scores_[group.affiliated])
        pairs = np.abs(correlation[np.ix_(group.members, group.members)])[np.triu_indices(len(group.members), 1)]
        purity = (pairs.min(), pairs.mean(), np.median(pairs)) if len(pairs) else (1.0, 1.0, 1.0)
        np.testing.assert_allclose(group.purity, purity, atol=1e-9)
        coef = model.support_coef_[:, position]
        signed = [-coef[0], coef[0]] if n_classes == 2 else coef
        assert list(group.class_weights) == model.classes_.tolist()
        np.testing.assert_allclose(list(group.class_weights.values()), signed)
        assert group.weight == pytest.approx(coef[0] if n_classes == 2 else np.linalg.norm(coef))
        assert group.effect is None
        assert group.used == bool(model.coef_[:, group.members].any())


def test_weights_of_zero_are_positive_zeros():
    weights = _class_weights(np.array([[0.0, 2.0]]), np.array(["a", "b"]))
    assert str(weights) == "[{'a': 0.0, 'b': 0.0}, {'a': -2.0, 'b': 2.0}]"
    assert _class_weights(np.array([[0.0, 2.0]]), None) is None


def test_columns_of_groups_are_prefetched_together(rng, monkeypatch):
    """Sources that are not in memory read the affiliated features of several groups at a time."""
    monkeypatch.setattr(outcome_module, "_PREFETCHED_GROUPS", 2)
    fetched = []
    monkeypatch.setattr(DenseSource, "prefetch", lambda self, features: fetched.append(features.tolist()))
    X, y = grouped_matrix(rng)
    model = GroupDiscoveryClassifier(5, threshold=0.6).fit(X, y)
    affiliated = [group.affiliated.tolist() for group in model.groups_]
    expected = [affiliated[0] + affiliated[1], affiliated[2] + affiliated[3], affiliated[4]]
    assert [features for features in fetched if features in expected] == expected


def test_attributes_without_covariates_and_votes_are_absent(rng):
    X, y = grouped_matrix(rng)
    model = GroupDiscoveryClassifier(3).fit(X, y)
    assert not hasattr(model, "votes_")
    assert not hasattr(model, "covariate_coef_")
    assert model.n_rounds_ == model.history_[-1].round == 3
    assert model.objective_ == model.history_[-1].objective
    assert model.dual_gap_ == model.history_[-1].gap
    assert model.lower_bound_ == model.history_[-1].lower
    assert model.upper_bound_ <= model.history_[-1].upper
    assert hasattr(GroupDiscoveryClassifier(3, cv=2, random_state=0).fit(X, y), "votes_")
