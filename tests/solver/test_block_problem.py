"""Norms, certificates, derivatives and Newton steps of the problem over blocks, compared with naive code."""

import itertools

import numpy as np
import pytest

from coterie.solver import block_problem
from coterie.solver.adjusted import AdjustedLoss
from coterie.solver.block_problem import Solution, block_norms, constraint, loss_hessian, minimise_block_model, penalty
from coterie.solver.design import DenseDesign
from coterie.solver.loss import feasible_residual
from coterie.solver.losses import OneVsRestHinge, SquaredHinge, UnitHinge

BLOCKS = np.array([0, 1, 4, 5, 7])


def test_norms_penalty_and_constraint(rng):
    coef = rng.standard_normal((7, 2))
    norms = [np.linalg.norm(coef[a:b]) for a, b in itertools.pairwise(BLOCKS)]
    np.testing.assert_allclose(block_norms(coef, BLOCKS), norms)
    assert penalty(coef, BLOCKS) == pytest.approx(0.5 * sum(norms) ** 2)
    assert constraint(coef, BLOCKS) == pytest.approx(0.5 * max(norms) ** 2)
    none = np.zeros(1, dtype=np.int64)
    assert (len(block_norms(coef[:0], none)), penalty(coef[:0], none), constraint(coef[:0], none)) == (0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("primal", "dual", "gap"),
    [(-3.0, 4.0, 0.25), (-4.0, 4.0, 0.0), (-5.0, 4.0, 0.0), (3.0, 1.0, 4 / 3), (0.0, 0.0, 0.0), (np.nan, 1.0, np.inf),
     (-1e-3, 2e-3, 0.5), (np.inf, 1.0, np.inf)],
)  # fmt: skip
def test_relative_gap_of_a_certificate(primal, dual, gap):
    solution = Solution.certified(primal, dual, np.zeros(1), np.zeros(1), None, 7)
    assert solution.gap == pytest.approx(gap)
    assert solution.objective == dual
    assert solution.n_iter == 7
    np.testing.assert_equal(solution.bound, -primal)


@pytest.mark.parametrize("kind", ["two classes", "several classes", "unit margin", "covariates"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_hessian_is_the_derivative_of_the_gradient(rng, kind, fit_intercept):
    X, weight = rng.standard_normal((40, 3)), rng.random(40) + 0.1
    labels = np.where(np.arange(40) % 3 == 0, 1.0, -1.0)
    loss = SquaredHinge(labels, weight, 0.4, fit_intercept)
    if kind == "several classes":
        loss = OneVsRestHinge(np.arange(40) % 3, 3, weight, 0.4, fit_intercept)
    elif kind == "unit margin":
        loss = UnitHinge(labels, weight, 0.4, fit_intercept)
    elif kind == "covariates":
        loss = AdjustedLoss(loss, rng.standard_normal((40, 2)), weight)
    coef, direction = 0.1 * rng.standard_normal((2, 3, loss.n_outputs))
    hessian = loss_hessian(loss, DenseDesign.of_array(X), loss.evaluate(X @ coef))
    step = 1e-6
    up, down = (X.T @ loss.evaluate(X @ (coef + sign * step * direction)).residual for sign in (1, -1))
    expected = np.einsum("cij,jc->ic", hessian, direction)
    np.testing.assert_allclose(-(up - down) / (2 * step), expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_newton_direction_solves_the_second_order_model(rng, n_outputs):
    """Compared with a matrix of second derivatives by finite differences of the gradient."""
    columns = rng.standard_normal((n_outputs, 20, 7))
    hessian = np.einsum("cni,cnj->cij", columns, columns)
    coef, slope = rng.standard_normal((2, 7, n_outputs))

    def gradient(coef):
        norms = block_norms(coef, BLOCKS)
        return norms.sum() * coef / np.repeat(norms, np.diff(BLOCKS))[:, None]

    direction = block_problem._newton_direction(hessian, slope, coef, block_norms(coef, BLOCKS), BLOCKS)
    step = 1e-6
    bent = (gradient(coef + step * direction) - gradient(coef - step * direction)) / (2 * step)
    curved = np.einsum("cij,jc->ic", hessian, direction)
    np.testing.assert_allclose(bent + curved, -slope - gradient(coef), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_newton_steps_reach_the_minimum_without_zero_blocks(rng, n_outputs):
    columns = rng.standard_normal((n_outputs, 20, 7))
    hessian = np.einsum("cni,cnj->cij", columns, columns)
    linear = -np.einsum("cij,jc->ic", hessian, 3.0 + rng.random((7, n_outputs)))
    coef = block_problem._newton_steps(hessian, linear, np.ones((7, n_outputs)), BLOCKS)
    norms = block_norms(coef, BLOCKS)
    slope = linear + np.einsum("cij,jc->ic", hessian, coef)
    slope += norms.sum() * coef / np.repeat(norms, np.diff(BLOCKS))[:, None]
    np.testing.assert_allclose(slope, 0.0, atol=1e-8 * np.abs(linear).max())


def test_zero_blocks_stay_zero_in_newton_steps(rng):
    columns = rng.standard_normal((2, 20, 7))
    hessian = np.einsum("cni,cnj->cij", columns, columns)
    linear = -np.einsum("cij,jc->ic", hessian, 3.0 + rng.random((7, 2)))
    coef = np.ones((7, 2))
    coef[1:4] = 0.0
    result = block_problem._newton_on_active_blocks(hessian, linear, coef, BLOCKS)
    assert not result[1:4].any()
    kept = [0, 4, 5, 6]
    alone = block_problem._newton_steps(hessian[:, kept][:, :, kept], linear[kept], coef[kept], np.array([0, 1, 2, 4]))
    np.testing.assert_allclose(result[kept], alone, rtol=1e-6)
    nothing = np.zeros((7, 2))
    assert block_problem._newton_on_active_blocks(hessian, linear, nothing, BLOCKS) is nothing


def test_one_weight_has_a_closed_form():
    """The minimum of w^2 / 2 + g (w - s) + h (w - s)^2 / 2 is (h s - g) / (1 + h). Two equal weights share a square."""
    coef = minimise_block_model(np.array([[[4.0]]]), np.array([[-3.0]]), np.array([[2.0]]), np.array([0, 1]))
    assert coef[0, 0] == pytest.approx((4.0 * 2.0 + 3.0) / 5.0)
    diagonal = np.diag([4.0, 4.0])[None]
    pair = minimise_block_model(diagonal, np.array([[-3.0], [-3.0]]), np.zeros((2, 1)), np.array([0, 1, 2]))
    np.testing.assert_allclose(pair, 0.5)  # 2 w - 3 + 4 w = 0 in each block
    together = minimise_block_model(diagonal, np.array([[-3.0], [-3.0]]), np.zeros((2, 1)), np.array([0, 2]))
    np.testing.assert_allclose(together, 0.6)  # w - 3 + 4 w = 0
    weak = minimise_block_model(diagonal, np.array([[-3.0], [-0.1]]), np.zeros((2, 1)), np.array([0, 1, 2]))
    np.testing.assert_allclose(weak, [[0.6], [0.0]])


def test_a_feasible_residual_has_the_mass_of_each_stratum(rng):
    loss = OneVsRestHinge(np.arange(12) % 3, 3, np.ones(12), 1.0, True)
    residual = loss.signs * rng.random((12, 3))
    residual[loss.strata[:, 2] == 0, 2] = 0.0  # A stratum without dual variables stays at zero.
    before = residual.copy()
    result = feasible_residual(loss, residual)
    np.testing.assert_array_equal(residual, before)
    for c in range(3):
        for e in range(2):
            own = loss.strata[:, c] == e
            total = np.abs(result[own, c]).sum()
            assert total == pytest.approx(0.0 if (c, e) == (2, 0) else loss.mass[c, e])
            np.testing.assert_allclose(result[own, c] * np.abs(before[own, c]).sum(), before[own, c] * total)
