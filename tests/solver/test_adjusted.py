"""Losses with covariates eliminated, compared with cvxpy and, for regression, with a regression on residuals."""

from dataclasses import replace

import numpy as np
import pytest

from coterie.data import FeatureView, as_source
from coterie.solver.adjusted import AdjustedLoss
from coterie.solver.design import design_of
from coterie.solver.losses import OneVsRestHinge, SquaredHinge, SquaredLoss
from coterie.solver.master import Master
from coterie.solver.ridge import fit_ridge

cp = pytest.importorskip("cvxpy")


def problem(rng, n, p):
    """Return features, one of them correlated with a covariate, and covariates with repeated and constant columns."""
    covariates = rng.standard_normal((n, 3)) * [1.0, 10.0, 0.1] + 5.0
    covariates = np.column_stack([covariates, 2.0 * covariates[:, 0], np.ones(n)])
    X = rng.standard_normal((n, p))
    X[:, 0] += covariates[:, 0]
    y = X[:, 0] + X[:, 1] + covariates[:, 0] + rng.standard_normal(n)
    return X, covariates, y - np.median(y), rng.integers(0, 3, n).astype(float)


def solved(loss, X, weight):
    view = FeatureView.of(as_source(X), weight, standardize=True)
    master = Master(loss, design_of(view))
    for first in range(0, X.shape[1], 4):
        master.add_block(np.arange(first, first + 4))
        solution = master.solve()
    return master, solution, view.model_columns(np.arange(X.shape[1]))


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize(("n", "p"), [(120, 8), (40, 28)])
def test_two_classes_against_cvxpy(rng, n, p, C):
    X, covariates, y, weight = problem(rng, n, p)
    labels = np.where(y > 0, 1.0, -1.0)
    loss = AdjustedLoss(SquaredHinge(labels, weight, C, True), covariates, weight)
    _, solution, columns = solved(loss, X, weight)
    assert solution.gap < 1e-9
    W, a, b, margin = cp.Variable(p), cp.Variable(loss.covariates.shape[1]), cp.Variable(), cp.Variable()
    slack = cp.pos(margin - cp.multiply(labels, columns @ W + loss.covariates @ a + b))
    norms = sum(cp.norm(W[k : k + 4]) for k in range(0, p, 4))
    value = 0.5 * cp.square(norms) + loss.covariate_penalty / 2 * cp.sum_squares(a) - margin
    value += C / 2 * cp.sum(cp.multiply(weight, cp.square(slack)))
    reference = cp.Problem(cp.Minimize(value)).solve()
    assert solution.objective == pytest.approx(-reference, rel=1e-6)
    np.testing.assert_allclose(solution.coef[:, 0], W.value, atol=2e-5 * np.abs(W.value).max())


def test_interior_point_with_covariates(rng):
    """Newton's method alone does not converge for separable classes."""
    X, covariates, y, weight = problem(rng, 40, 28)
    labels = np.where(y > 0, 1.0, -1.0)
    loss = AdjustedLoss(SquaredHinge(labels, weight, 100.0, True), covariates, weight)
    master, solution, _ = solved(loss, X, weight)
    assert master._separable
    assert solution.gap < 1e-9


def test_several_classes_have_a_certificate(rng):
    X, covariates, y, weight = problem(rng, 90, 8)
    loss = AdjustedLoss(OneVsRestHinge(np.digitize(y, [-1, 1]), 3, weight, 0.1, True), covariates, weight)
    _, solution, _ = solved(loss, X, weight)
    assert solution.gap < 1e-9
    assert solution.state.covariate_coef.shape == (5, 3)


@pytest.mark.parametrize("intercept", [True, False])
def test_regression_equals_regression_of_residuals(rng, intercept):
    """Frisch, Waugh and Lovell: weights and certificate are those of the problem with residuals of y and X."""
    X, covariates, y, weight = problem(rng, 60, 8)
    loss = AdjustedLoss(SquaredLoss(y, weight, 0.3, intercept), covariates[:, :3], weight)
    view = FeatureView.of(as_source(X), weight, standardize=True, centred=intercept)
    design = design_of(view)
    design.append(np.arange(8))
    ours = fit_ridge(loss, design)
    columns = view.model_columns(np.arange(8))
    K = np.column_stack([covariates[:, :3], np.ones(60)]) if intercept else covariates[:, :3]
    root = np.sqrt(weight)[:, None]
    project = np.eye(60) - (root * K) @ np.linalg.pinv(root * K)
    A, target = project @ (root * columns), project @ (root[:, 0] * y)
    expected = np.linalg.solve(0.3 * A.T @ A + np.eye(8), 0.3 * A.T @ target)
    np.testing.assert_allclose(ours.coef[:, 0], expected, rtol=1e-8)
    fitted = columns @ ours.coef[:, 0] + covariates[:, :3] @ ours.state.covariate_coef[:, 0] + ours.state.intercept[0]
    left = weight * (y - fitted)
    assert (np.abs(K.T @ left) <= 1e-9 * np.abs(K.T) @ np.abs(left)).all()
    np.testing.assert_allclose(0.3 * left, ours.residual[:, 0], atol=1e-12)


def test_covariates_that_separate_the_classes(rng):
    labels = np.repeat([-1.0, 1.0], 30)
    loss = AdjustedLoss(SquaredHinge(labels, np.ones(60), 1.0, True), labels[:, None], np.ones(60))
    _, solution, _ = solved(loss, rng.standard_normal((60, 4)), np.ones(60))
    assert solution.gap < 1e-6
    assert np.isfinite(solution.state.covariate_coef).all()


@pytest.mark.parametrize("n_covariates", [3, 9, 20])
def test_more_covariates_than_samples(rng, n_covariates):
    """With an intercept and as many covariates as samples, nothing is left to explain."""
    covariates, y = rng.standard_normal((10, n_covariates)), rng.standard_normal(10)
    loss = AdjustedLoss(SquaredLoss(y, np.ones(10), 1.0, True), covariates, np.ones(10))
    assert loss.covariates.shape == (10, min(n_covariates, 9))
    state = loss.evaluate(np.zeros((10, 1)))
    np.testing.assert_allclose(covariates.T @ state.residual, 0.0, atol=1e-9)
    design = np.column_stack([covariates, np.ones(10)])
    explained = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(state.residual[:, 0], y - explained, atol=1e-9)


def test_covariates_are_whitened_with_the_sample_weights(rng):
    covariates, weight = rng.standard_normal((40, 3)) * [1.0, 1e5, 1e-5] + [0.0, 3.0, 1.0], rng.random(40)
    weight[::5] = 0.0
    covariates[::5] = 1e3  # Samples of weight zero do not count.
    labels = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    loss = AdjustedLoss(SquaredHinge(labels, weight, 1.0, True), covariates, weight)
    share = weight / weight.sum()
    np.testing.assert_allclose(share @ loss.covariates, 0.0, atol=1e-8)
    np.testing.assert_allclose(loss.covariates.T @ (share[:, None] * loss.covariates), np.eye(3), atol=1e-6)
    kinds = loss.kinds()
    assert (kinds[::5] == -1).all()
    assert len(np.unique(kinds[weight > 0])) == np.count_nonzero(weight)


def test_the_penalty_of_covariates_is_a_share_of_the_curvature(rng):
    labels, covariates = np.where(np.arange(30) % 2 == 0, 1.0, -1.0), rng.standard_normal((30, 2))
    original = SquaredHinge(labels, np.ones(30), 3.0, True)
    loss = AdjustedLoss(original, covariates, np.ones(30))
    assert loss.covariate_penalty == pytest.approx(1e-4 * original.evaluate(np.zeros((30, 1))).curvature.sum())
    assert AdjustedLoss(SquaredLoss(labels, np.ones(30), 3.0, True), covariates, np.ones(30)).covariate_penalty == 0.0
    (plain,) = loss.plain()
    assert plain.covariate_penalty == loss.covariate_penalty
    smaller = plain.scaled(0.01)
    assert smaller.covariate_penalty == pytest.approx(0.01 * loss.covariate_penalty)
    np.testing.assert_array_equal(smaller.covariates, loss.covariates)


@pytest.mark.parametrize("intercept", [True, False])
def test_value_and_intercept_are_those_of_the_original_covariates(rng, intercept):
    X, covariates, y, weight = problem(rng, 50, 4)
    labels = np.where(y > 0, 1.0, -1.0)
    original = SquaredHinge(labels, weight, 0.5, intercept)
    loss = AdjustedLoss(original, covariates[:, :3], weight)
    outputs = X[:, [1]]
    state = loss.evaluate(outputs)
    adjusted = outputs + covariates[:, :3] @ state.covariate_coef
    direct = original.evaluate(adjusted)
    squares = 0.5 * loss.covariate_penalty * (state.eliminated**2).sum()
    assert state.value == pytest.approx(direct.value + squares, rel=1e-9)
    np.testing.assert_allclose(state.intercept, direct.intercept, rtol=1e-8)
    # Fenchel and Young: the pair of value and conjugate belongs to the same residual.
    assert state.value + state.conjugate == pytest.approx(-(state.residual * outputs).sum(), abs=1e-9)
    assert loss.conjugate(state.residual) == pytest.approx(state.conjugate, rel=1e-9)
    again = loss.evaluate(outputs, state)
    np.testing.assert_allclose(again.eliminated, state.eliminated, rtol=1e-9, atol=1e-12)


def test_weights_of_covariates_stay_if_no_step_decreases_the_loss(rng):
    """The step is halved until it is tiny, and then the search ends."""

    class Reversed(SquaredLoss):
        """A loss whose residual has the wrong sign, so that every step increases the value."""

        evaluations = 0

        def evaluate(self, outputs, previous=None):
            type(self).evaluations += 1
            state = super().evaluate(outputs, previous)
            return replace(state, residual=-state.residual)

    loss = AdjustedLoss(Reversed(rng.standard_normal(20), np.ones(20), 1.0, True), rng.standard_normal((20, 2)), np.ones(20))
    Reversed.evaluations = 0
    state = loss.evaluate(np.zeros((20, 1)))
    assert not state.eliminated.any()
    assert 10 < Reversed.evaluations < 30
