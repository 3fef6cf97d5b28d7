"""Linear models with a plain squared norm: every solver of Newton's equations, stages, and line search."""

import numpy as np
import pytest
from scipy import optimize

from coterie.solver import ridge
from coterie.solver.adjusted import AdjustedLoss
from coterie.solver.design import DenseDesign
from coterie.solver.losses import SquaredHinge, SquaredLoss, UnitHinge


def problem(rng, n_samples, n_features):
    X = rng.standard_normal((n_samples, n_features))
    y = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(n_samples)
    weight = rng.random(n_samples) + 0.2
    weight[3] = 0.0
    return X, y, weight


def closed_form(X, y, weight, C, extra):
    """Return weights of a ridge regression with free weights of the columns ``extra``, by projecting these out."""
    root = np.sqrt(C * weight)[:, None]
    project = np.eye(len(y)) - (root * extra) @ np.linalg.pinv(root * extra)
    A = project @ (root * X)
    return np.linalg.solve(A.T @ A + np.eye(X.shape[1]), A.T @ (root[:, 0] * y))


@pytest.mark.parametrize("adjusted", [False, True])
@pytest.mark.parametrize("max_direct", [0, 2000])
@pytest.mark.parametrize("shape", [(40, 6), (20, 30)])
def test_regression_has_the_weights_of_the_closed_form(rng, monkeypatch, shape, max_direct, adjusted):
    """Without direct solutions, conjugate gradients are used; with fewer samples than columns, these are replaced."""
    monkeypatch.setattr(ridge, "_MAX_DIRECT", max_direct)
    X, y, weight = problem(rng, *shape)
    covariates = rng.standard_normal((len(y), 2))
    loss = SquaredLoss(y, weight, 0.7, True)
    extra = np.ones((len(y), 1))
    if adjusted:
        loss, extra = AdjustedLoss(loss, covariates, weight), np.column_stack([extra, covariates])
    design = DenseDesign.of_array(X)
    solution = ridge.fit_ridge(loss, design, precision=1e-13)
    expected = closed_form(X, y, weight, 0.7, extra)
    np.testing.assert_allclose(solution.coef[:, 0], expected, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(X.T @ solution.residual[:, 0], solution.coef[:, 0], atol=1e-6 * np.abs(expected).max())
    assert solution.gap <= 1e-11
    outputs = X @ solution.coef
    assert solution.bound == pytest.approx(-0.5 * (solution.coef**2).sum() - loss.evaluate(outputs).value, rel=1e-12)
    # Near the optimum, the residual of the solution is that of its outputs.
    np.testing.assert_allclose(solution.residual, loss.evaluate(outputs).residual, atol=1e-5)


@pytest.mark.parametrize("max_direct", [0, 2000])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_hinge_has_a_certificate(rng, monkeypatch, C, max_direct):
    monkeypatch.setattr(ridge, "_MAX_DIRECT", max_direct)
    X, y, weight = problem(rng, 60, 5)
    loss = UnitHinge(np.sign(y), weight, C, True)
    solution = ridge.fit_ridge(loss, DenseDesign.of_array(X))

    def primal(unknowns):
        slack = np.maximum(1.0 - loss.labels * (X @ unknowns[:-1] + unknowns[-1]), 0.0)
        return 0.5 * (unknowns[:-1] ** 2).sum() + 0.5 * C * (weight * slack**2).sum()

    reference = optimize.minimize(primal, np.zeros(6), options={"gtol": 1e-9})
    assert -solution.bound == pytest.approx(reference.fun, rel=1e-6)
    assert primal(np.append(solution.coef, solution.state.intercept)) == pytest.approx(-solution.bound, rel=1e-9)
    assert 0.0 <= solution.gap <= 1e-8
    assert solution.n_iter >= 1


def test_the_optimum_as_start_takes_no_step(rng):
    X, y, weight = problem(rng, 60, 5)
    loss, design = UnitHinge(np.sign(y), weight, 1.0, True), DenseDesign.of_array(X)
    first = ridge.fit_ridge(loss, design, precision=1e-11)
    again = ridge.fit_ridge(loss, design, precision=1e-10, start=first.coef)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.coef, first.coef)


def test_a_loose_precision_takes_fewer_steps(rng):
    X, y, weight = problem(rng, 60, 5)
    loss, design, start = UnitHinge(np.sign(y), weight, 1.0, True), DenseDesign.of_array(X), np.zeros((5, 1))
    loose, tight = (ridge.fit_ridge(loss, design, precision=own, start=start) for own in (0.5, 1e-12))
    assert loose.n_iter < tight.n_iter
    assert tight.gap < loose.gap <= 0.5


def test_stages_are_the_smaller_powers_of_ten_in_increasing_order(rng):
    X, y, weight = problem(rng, 60, 5)
    design = DenseDesign.of_array(X)
    stages = ridge._stages(UnitHinge(np.sign(y), weight, 1e3, True), design)
    np.testing.assert_allclose([stage.C for stage in stages], 1e3 * 0.1 ** np.arange(len(stages), 0, -1))
    # The number of stages is the number of digits of |X'a|^2 over the absolute conjugate, for the residual a at zero.
    state = UnitHinge(np.sign(y), weight, 1e3, True).evaluate(np.zeros((60, 1)))
    assert len(stages) == np.ceil(np.log10(((X.T @ state.residual) ** 2).sum() / abs(state.conjugate))) > 2
    assert ridge._stages(UnitHinge(np.sign(y), weight, 1e-6, True), design) == []
    assert ridge._stages(SquaredLoss(y, weight, 1e3, True), design) == []


def test_a_reduced_design_has_the_same_products_between_samples(rng):
    X = rng.standard_normal((6, 20))
    X[5] = X[4]  # One eigenvalue is zero.
    reduced = ridge._reduced_design(X @ X.T)
    assert reduced.n_features == 6
    np.testing.assert_allclose(reduced.sample_products(), X @ X.T, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0, 7.0, 1e3])
@pytest.mark.parametrize("kind", ["hinge", "squares"])
def test_a_line_search_finds_the_minimum_along_the_direction(rng, kind, scale):
    """The step is far from 1 if the direction is too long or too short."""
    X, y, weight = problem(rng, 50, 4)
    loss = UnitHinge(np.sign(y), weight, 0.5, True) if kind == "hinge" else SquaredLoss(y, weight, 0.5, True)
    coef = 0.1 * rng.standard_normal((4, 1))
    outputs = X @ coef
    state = loss.evaluate(outputs)
    direction = scale * (X.T @ state.residual - coef)

    def value(step):
        return 0.5 * ((coef + step * direction) ** 2).sum() + loss.evaluate(outputs + step * (X @ direction)).value

    step = ridge._line_search(loss, state, coef, outputs, direction, X @ direction)
    best = optimize.minimize_scalar(lambda own: value(own / scale), bracket=(0.0, 0.02)).x / scale
    assert step == pytest.approx(best, rel=5e-3)
    slopes = [(value(own + 1e-6 / scale) - value(own - 1e-6 / scale)) / 2e-6 for own in (0.0, step)]
    assert abs(slopes[1]) <= 2e-3 * abs(slopes[0])
    assert ridge._line_search(loss, state, coef, outputs, -direction, -(X @ direction)) == 0.0
    assert ridge._line_search(loss, state, coef, outputs, 0.0 * direction, 0.0 * (X @ direction)) == 0.0


def test_a_line_search_evaluates_the_loss_a_few_times_only(rng):
    X, y, weight = problem(rng, 50, 4)
    loss, calls = UnitHinge(np.sign(y), weight, 0.5, True), []

    class Counted(UnitHinge):
        def evaluate(self, outputs, previous=None):
            calls.append(1)
            return loss.evaluate(outputs, previous)

    state = loss.evaluate(np.zeros((50, 1)))
    direction = X.T @ state.residual
    counted = Counted(loss.labels, weight, 0.5, True)
    ridge._line_search(counted, state, np.zeros((4, 1)), np.zeros((50, 1)), direction, X @ direction)
    assert len(calls) <= 12


@pytest.mark.parametrize("adjusted", [False, True])
def test_newton_directions_by_factorisation_and_by_products_are_equal(rng, adjusted):
    X, y, weight = problem(rng, 50, 6)
    loss = UnitHinge(np.sign(y), weight, 2.0, True)
    if adjusted:
        loss = AdjustedLoss(loss, rng.standard_normal((50, 2)), weight)
    design, state = DenseDesign.of_array(X), loss.evaluate(0.1 * rng.standard_normal((50, 1)))
    gradient = -design.scores(state.residual)
    direct = ridge._solve_directly(loss, design, state, gradient)
    products = ridge._solve_by_products(loss, design, state, gradient, tolerance=1e-12)
    np.testing.assert_allclose(products, direct, rtol=1e-8)


def test_a_loss_with_a_margin_is_split_into_usual_losses(rng):
    labels, weight = rng.choice([-1.0, 1.0], 20), rng.random(20)
    (plain,) = SquaredHinge(labels, weight, 0.3, True).plain()
    assert isinstance(plain, UnitHinge)
    assert (plain.C, plain.centred) == (0.3, True)
    np.testing.assert_array_equal(plain.weight, weight)
    smaller = plain.scaled(0.1)
    assert (smaller.C, smaller.centred) == (pytest.approx(0.03), True)
    assert not SquaredHinge(labels, weight, 0.3, False).plain()[0].centred
