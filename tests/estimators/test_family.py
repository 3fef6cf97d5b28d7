"""Variants of group discovery: several classes, regression, one class, no correlation constraint."""

import itertools
import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import GroupDiscoveryClassifier, GroupDiscoveryOneClass, GroupDiscoveryRegressor
from coterie.solver.losses import OneVsRestHinge, SquaredHinge, SquaredLoss
from tests import naive
from tests.conftest import grouped_matrix, sparse_counts


@parametrize_with_checks(
    [
        GroupDiscoveryRegressor("auto"),
        GroupDiscoveryRegressor("auto", standardize=True, fit_intercept=False, keep="groups"),
        GroupDiscoveryRegressor("auto", predict_with="groups"),
        GroupDiscoveryOneClass(),
        GroupDiscoveryOneClass(predict_with="groups", keep="groups"),
        GroupDiscoveryOneClass(standardize=True, correlation=None),
        GroupDiscoveryClassifier("auto", correlation=None),
        GroupDiscoveryClassifier("auto", correlation="su"),
        GroupDiscoveryClassifier("auto", predict_with="groups", class_weight="balanced"),
    ]
)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def blocks_of(model):
    sizes = np.cumsum([0, *(len(r.features) for r in model.history_)])
    return [list(range(a, b)) for a, b in itertools.pairwise(sizes)]


# Regression


def regression_with_cvxpy(X, y, weight, C, fit_intercept, blocks):
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    error = y - X @ w - (b if fit_intercept else 0)
    norms = sum(cp.norm(w[block]) for block in blocks)
    task = cp.Problem(cp.Minimize(0.5 * cp.square(norms) + C / 2 * cp.sum(cp.multiply(weight, cp.square(error)))))
    task.solve(solver=cp.CLARABEL)
    return task.value


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_regression_is_optimal_and_certified(rng, fit_intercept, is_sparse):
    X, _ = sparse_counts(rng)
    y = X[:, 3] - 2 * X[:, 8] + 0.3 * rng.standard_normal(len(X)) + 5
    weight = rng.random(len(y)) + 0.1
    make = sparse.csc_array if is_sparse else np.asarray
    model = GroupDiscoveryRegressor(9, n_features_per_round=3, fit_intercept=fit_intercept, C=0.7, standardize=False)
    model.fit(make(X), y, sample_weight=weight)
    assert max(r.gap for r in model.history_) <= 1e-8
    Z = X[:, model.support_features_]
    coef = model.support_coef_[0]
    error = y - Z @ coef - model.intercept_
    blocks = blocks_of(model)
    primal = 0.5 * sum(np.linalg.norm(coef[b]) for b in blocks) ** 2 + 0.35 * (weight * error**2).sum()
    assert primal == pytest.approx(regression_with_cvxpy(Z, y, weight, 0.7, fit_intercept, blocks), rel=1e-6)
    residual = model.dual_coef_[0]
    scores = Z.T @ residual
    dual = max(0.5 * (scores[b] ** 2).sum() for b in blocks) + (residual**2 / weight).sum() / 1.4 - residual @ y
    assert model.objective_ == pytest.approx(dual, rel=1e-7)
    assert primal + dual == pytest.approx(0, abs=1e-7 * primal)
    theta = np.array([r.objective for r in model.history_])
    assert (np.diff(theta) >= -1e-9 * np.abs(theta[:-1])).all()
    np.testing.assert_allclose(model.predict(make(X)), X @ model.coef_ + model.intercept_)
    if fit_intercept:
        assert residual.sum() == pytest.approx(0, abs=1e-9)


def test_regression_finds_planted_groups(rng):
    factors = rng.standard_normal((300, 4))
    X = rng.standard_normal((300, 200))
    places = rng.permutation(200)[:12].reshape(4, 3)
    for factor, group in zip(factors.T, places, strict=True):
        X[:, group] = factor[:, None] + 0.3 * rng.standard_normal((300, 3))
    y = factors @ [3, -2, 1.5, 1] + 0.5 * rng.standard_normal(300) + 1e6
    model = GroupDiscoveryRegressor(4, n_features_per_round=1).fit(X, y)
    assert {frozenset(g.members.tolist()) for g in model.groups_} == {frozenset(p.tolist()) for p in places}
    ridge = Ridge().fit(X[:, model.support_features_], y)
    assert model.score(X, y) == pytest.approx(ridge.score(X[:, model.support_features_], y), abs=0.01)


def test_squared_loss_is_its_own_derivative(rng):
    y, weight = rng.standard_normal(20) + 7, rng.random(20) + 0.1
    loss = SquaredLoss(y, weight, 3.0, True)
    z, d = rng.standard_normal((20, 1)), rng.standard_normal((20, 1))
    state = loss.evaluate(z)
    up, down = loss.evaluate(z + 1e-5 * d), loss.evaluate(z - 1e-5 * d)
    assert (up.value - down.value) / 2e-5 == pytest.approx(-(state.residual * d).sum(), rel=1e-6)
    assert state.intercept[0] == pytest.approx(np.average(y - z[:, 0], weights=weight))
    # Fenchel's equality: value + conjugate = -<residual, outputs>.
    assert state.value + state.conjugate == pytest.approx(-(state.residual * z).sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("y", "message"),
    [(["a", "b"] * 30, "Targets must be numbers"), ([1.0, np.inf] * 30, "infinity"), (np.ones((60, 2)), "constant")],
)
def test_bad_targets(rng, y, message):
    X, _ = grouped_matrix(rng)
    with pytest.raises(ValueError, match=message):
        GroupDiscoveryRegressor(2).fit(X, y)


# Several classes


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_several_classes_are_optimal_and_certified(rng, fit_intercept, is_sparse):
    X, _ = sparse_counts(rng)
    y = np.argmax(X[:, :3] + 0.3 * rng.standard_normal((len(X), 3)), axis=1)
    make = sparse.csc_array if is_sparse else np.asarray
    model = GroupDiscoveryClassifier(8, n_features_per_round=4, fit_intercept=fit_intercept, C=2.0, standardize=False)
    model.fit(make(X), y)
    assert max(r.gap for r in model.history_) <= 1e-7
    assert model.support_coef_.shape == (3, 8)
    Z, blocks = X[:, model.support_features_], blocks_of(model)
    W, gamma, b = cp.Variable((8, 3)), cp.Variable(3), cp.Variable(3)
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    importance = np.sqrt(3 * np.bincount(y) / len(y))
    assert np.ptp(importance) > 0.01
    loss = 0
    for c in range(3):
        output = Z @ W[:, c] + (b[c] if fit_intercept else 0)
        loss += cp.sum_squares(cp.pos(gamma[c] - cp.multiply(signs[:, c], output))) - importance[c] * gamma[c]
    norms = sum(cp.norm(W[block], "fro") for block in blocks)
    task = cp.Problem(cp.Minimize(0.5 * cp.square(norms) + loss))
    task.solve(solver=cp.CLARABEL)
    assert model.objective_ == pytest.approx(-task.value, rel=1e-5)
    alpha = model.dual_coef_.T * signs
    assert (alpha >= 0).all()
    np.testing.assert_allclose(alpha.sum(axis=0), importance)
    np.testing.assert_allclose(model.decision_function(make(X)), X @ model.coef_.T + model.intercept_, atol=1e-9)
    np.testing.assert_array_equal(model.predict(make(X)), np.argmax(model.decision_function(X), axis=1))


def test_scores_of_several_classes_are_norms_over_classes(rng):
    X, _ = grouped_matrix(rng)
    y = rng.integers(0, 4, len(X))
    loss = OneVsRestHinge(y, 4, np.ones(len(y)), 1.0, True)
    start = loss.evaluate(np.zeros((len(y), 4))).residual
    scores = np.linalg.norm((X - X.mean(axis=0)).T @ start, axis=1)
    model = GroupDiscoveryClassifier(1, correlation=None, standardize=False).fit(X, y)
    assert model.support_features_[0] == np.argmax(scores)
    assert model.history_[0].scores[0] == pytest.approx(scores.max())
    importance = np.sqrt(4 * np.bincount(y) / len(y))
    parts = [SquaredHinge(np.where(y == c, 1.0, -1.0), np.ones(len(y)), 1.0, True, importance=importance[c]) for c in range(4)]
    z = rng.standard_normal((len(y), 4))
    whole = loss.evaluate(z, loss.evaluate(0 * z))
    assert whole.value == pytest.approx(sum(p.evaluate(z[:, [c]]).value for c, p in enumerate(parts)))
    assert loss.conjugate(whole.residual) == pytest.approx(whole.conjugate)


def test_several_classes_by_name():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    model = GroupDiscoveryClassifier(2, threshold=0.99, standardize=True, C=10.0).fit(X, names[y])
    assert model.classes_.tolist() == names.tolist()
    assert model.score(X, names[y]) > 0.75
    full = GroupDiscoveryClassifier("auto", threshold=1.0, standardize=True, C=100.0).fit(X, names[y])
    assert full.score(X, names[y]) > 0.9
    balanced = GroupDiscoveryClassifier(2, threshold=0.99, class_weight="balanced").fit(X, names[y])
    plain = GroupDiscoveryClassifier(2, threshold=0.99).fit(X, names[y])
    np.testing.assert_allclose(balanced.coef_, plain.coef_)  # the classes of iris are balanced


def test_separable_data_of_several_classes():
    X, y = make_classification(40, 60, n_informative=10, n_classes=3, n_clusters_per_class=1, random_state=0)
    model = GroupDiscoveryClassifier(30, C=1000.0).fit(X, y)
    assert max(r.gap for r in model.history_) <= 1e-4
    assert model.score(X, y) == 1.0


def test_rare_classes_do_not_choose_the_features_by_chance():
    """Three classes of 200 with five good features each, one of 4: features that these happen to share come last."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [200, 200, 200, 4])
    X = rng.standard_normal((604, 300))
    for c in range(3):
        X[y == c, 5 * c : 5 * c + 5] += 0.7
    model = GroupDiscoveryClassifier(15, n_features_per_round=1).fit(X, y)
    assert sorted(model.support_features_) == list(range(15))
    # With the same importance for all classes it is otherwise: the first round's scores.
    equal = np.stack([np.where(y == c, 0.5 / (y == c).sum(), -0.5 / (y != c).sum()) for c in range(4)], axis=1)
    assert (np.argsort(-np.linalg.norm(X.T @ equal, axis=1))[:15] < 15).sum() < 10


# One class


@pytest.mark.parametrize("is_sparse", [True, False])
def test_one_class_is_optimal_and_certified(rng, is_sparse):
    X, _ = sparse_counts(rng)
    weight = rng.random(len(X)) + 0.2
    make = sparse.csc_array if is_sparse else np.asarray
    model = GroupDiscoveryOneClass(9, n_features_per_round=3, C=0.5, threshold_rule="margin")
    model.fit(make(X), sample_weight=weight)
    Z, blocks = X[:, model.support_features_], blocks_of(model)
    ones = np.ones(len(X))
    primal = naive.primal(Z, ones, model.support_coef_[0], blocks, 0.5, weight, False)
    dual = naive.dual(Z, model.dual_coef_[0], blocks, 0.5, weight)
    assert 0 <= (primal + dual) / dual + 1e-12 <= 1e-7
    w, gamma = cp.Variable(9), cp.Variable()
    loss = 0.25 * cp.sum(cp.multiply(weight, cp.square(cp.pos(gamma - Z @ w)))) - gamma
    task = cp.Problem(cp.Minimize(0.5 * cp.square(sum(cp.norm(w[b]) for b in blocks)) + loss))
    task.solve(solver=cp.CLARABEL)
    assert primal == pytest.approx(task.value, rel=1e-6)
    assert model.offset_ == pytest.approx(gamma.value, rel=1e-3)
    np.testing.assert_allclose(model.decision_function(X), Z @ model.support_coef_[0] - model.offset_, atol=1e-12)
    # The margin is that of the Karush-Kuhn-Tucker conditions: samples above it have no dual variable.
    assert (model.dual_coef_[0][model.decision_function(X) > 1e-9] == 0).all()


def test_smaller_c_puts_more_samples_below_the_margin(rng):
    X, _ = sparse_counts(rng)
    models = [GroupDiscoveryOneClass(10, C=C, threshold_rule="margin").fit(X) for C in (10.0, 0.1, 0.001)]
    outside = [(model.predict(X) == -1).mean() for model in models]
    assert outside[0] < outside[1] < outside[2]


# No correlation constraint


@pytest.mark.parametrize("is_sparse", [True, False])
def test_without_the_constraint_the_best_scores_win(rng, is_sparse):
    X, y = grouped_matrix(rng, n_features=30)
    make = sparse.csc_array if is_sparse else np.asarray
    model = GroupDiscoveryClassifier(12, n_features_per_round=12, correlation=None, standardize=False).fit(make(X), y)
    start = SquaredHinge(y, np.ones(len(y)), 1.0, True).evaluate(np.zeros((len(y), 1))).residual[:, 0]
    assert model.support_features_.tolist() == np.argsort(-np.abs((X - X.mean(axis=0)).T @ start))[:12].tolist()
    assert all(len(group) == 1 for group in model.groups_)
    assert model.n_correlations_evaluated_ == 0
    assert max(r.gap for r in model.history_) <= 1e-8
    again = GroupDiscoveryClassifier(12, n_features_per_round=3, correlation=None, affiliates="ranked").fit(make(X), y)
    assert len(set(again.support_features_.tolist())) == 12


def test_many_separable_classes_are_certified():
    """The interior-point method must survive short first steps, which many classes with few samples cause."""
    rng = np.random.default_rng(4)
    centres = 3.0 * rng.standard_normal((12, 30))
    y = np.repeat(np.arange(12), 12)
    X = centres[y] + rng.standard_normal((144, 30))
    X *= np.geomspace(0.3, 30, 30)
    model = GroupDiscoveryClassifier(24, n_features_per_round=6, C=10.0).fit(X, y)
    assert max(entry.gap for entry in model.history_) <= 1e-6
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("make", [GroupDiscoveryClassifier, GroupDiscoveryRegressor, GroupDiscoveryOneClass])
@pytest.mark.parametrize("fixed", [None, [4]])
def test_the_score_is_one_quantity_and_pairs_are_not_counted_twice(make, fixed):
    X, y = grouped_matrix(np.random.default_rng(3), n_features=8)
    y = None if make is GroupDiscoveryOneClass else y
    model = make(5, n_features_per_round=1, fixed_features=fixed).fit(X, y)
    frame = model.groups_.to_frame()
    assert {"support", "affiliated"} == set(frame["role"])
    np.testing.assert_array_equal(frame["score"], model.scores_[frame["feature"]])
    assert 0 < model.n_correlations_evaluated_ <= model.n_correlations_possible_ == 28


@pytest.mark.filterwarnings("ignore:.* have the weight 0:UserWarning")
def test_a_weight_of_zero_is_shown_as_zero():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 12)), rng.integers(0, 2, 40)
    groups = GroupDiscoveryClassifier(6, n_features_per_round=2, C=0.001).fit(X, y).groups_
    lines = repr(groups).splitlines()[1:]
    assert 0 < sum(group.weight == 0.0 for group in groups) < len(groups)
    assert ["weight 0)" in line for line in lines] == [group.weight == 0.0 for group in groups]
