"""Small kernels of the solvers compared with naive code: ties, weights of zero, and more samples or columns than a tile."""

import numpy as np
import pytest
from scipy import optimize, sparse

from coterie.kernels import blocks, hinge
from coterie.solver.losses import SquaredHinge
from tests import naive


def test_dual_variables_are_concentrated_on_the_smallest_margin():
    margin, weight = np.array([3.0, 1.0, 1.0, 0.0, 0.5, 2.0]), np.array([1.0, 2.0, 1.0, 0.0, 1.0, 1.0])
    stratum = np.array([0, 0, 0, 0, 1, 1], dtype=np.int8)
    alpha = np.full(6, 7.0)
    assert hinge._concentrate_on_minimum(margin, weight, stratum, 0, 1.25, alpha) == (2.0, 0.5)
    assert alpha.tolist() == [0.0, 1.0, 1.0, 0.0, 7.0, 7.0]  # Ties share; other strata are unchanged.
    assert hinge._concentrate_on_minimum(margin, weight, stratum, 1, 0.25, alpha) == (1.0, 0.0)
    assert alpha[4:].tolist() == [1.0, 0.0]


def test_value_of_margins_whose_last_digit_is_larger_than_the_slack():
    """Value and conjugate cancel, because the slack is zero to rounding."""
    labels = np.array([1.0, 1.0, -1.0])
    state = SquaredHinge(labels, np.ones(3), 1.0, True).evaluate(np.array([[1e20], [1e20], [-3e20]]))
    np.testing.assert_allclose(state.residual[:, 0], [0.25, 0.25, -0.5])
    np.testing.assert_allclose(state.offsets, [[1e20, 3e20]])
    assert (state.margin[0], state.intercept[0]) == (pytest.approx(2e20), pytest.approx(1e20))
    assert state.value == pytest.approx(-2e20)
    assert state.conjugate == 0.0


def test_sums_of_active_margins():
    margin, weight = np.array([0.0, 1.0, 2.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
    assert hinge._active_sums(margin, weight, 2.0) == (2, 3.0, 2.0)  # A margin at the offset is not active.
    assert hinge._active_sums(margin, weight, 2.5) == (4, 10.0, 16.0)
    assert hinge._active_sums(margin, weight, -1.0) == (0, 0.0, 0.0)


@pytest.mark.parametrize("n_samples", [1, 511, 512, 513, 1500])
def test_losses_of_more_samples_than_a_partial_sum(rng, n_samples):
    outputs, weight = rng.standard_normal((n_samples, 1)), rng.random(n_samples) + 0.1
    state = SquaredHinge(np.ones(n_samples), weight, 0.3, False).evaluate(outputs)
    gamma = naive.eliminate(outputs[:, 0], weight, 1.0 / 0.3)
    slack = np.maximum(gamma - outputs[:, 0], 0.0)
    np.testing.assert_allclose(state.residual[:, 0], 0.3 * weight * slack, atol=1e-9)
    assert state.value == pytest.approx(0.15 * (weight * slack**2).sum() - gamma, rel=1e-9)
    assert state.conjugate == pytest.approx(0.15 * (weight * slack**2).sum(), rel=1e-9)


@pytest.mark.parametrize("guess", [-5.0, 0.0, 0.3, 5.0])
def test_offsets_of_the_unit_hinge_with_ties_and_weights_of_zero(guess):
    output, label = np.array([1.0, 1.0, 1.0, -4.0]), np.array([1.0, 1.0, -1.0, -1.0])
    weight = np.array([1.0, 1.0, 1.0, 0.0])

    def loss(b):
        return (weight * np.maximum(1.0 - label * (output + b), 0.0) ** 2).sum()

    offset = hinge.unit_hinge_offset(output, label, weight, guess)
    assert loss(offset) == pytest.approx(optimize.minimize_scalar(loss).fun, rel=1e-12)
    # Samples that can be separated have a loss of zero.
    apart = hinge.unit_hinge_offset(np.array([9.0, 3.0]), np.array([1.0, -1.0]), np.ones(2), guess)
    assert max(1.0 - (9.0 + apart), 1.0 + (3.0 + apart)) <= 1e-12
    # Without samples of weight, every offset is optimal.
    assert hinge.unit_hinge_offset(output, label, np.zeros(4), guess) == guess


def test_labels_are_numbered_by_their_first_occurrence():
    labels, first = np.array([4, -1, 2, 4, 0, 2, -1]), np.full(6, -7)
    assert blocks.number_by_first(labels, first) == 3
    assert labels.tolist() == [0, -1, 1, 0, 2, 1, -1]
    assert first.tolist() == [0, 2, 4, -7, -7, -7]
    assert blocks.number_by_first(np.array([-1, -1]), first) == 0


@pytest.mark.parametrize("size", [1, 31, 32, 33, 70])
def test_halves_of_products_in_tiles(rng, size):
    products = rng.standard_normal((size, size))
    out = np.full((size, size), np.nan)
    blocks._add_halves(products, out)
    np.testing.assert_array_equal(out, products + products.T - np.diag(np.diag(products)))


@pytest.mark.parametrize(("n_changed", "reset"), [(0, False), (3, False), (4, True), (6, True)])
def test_products_are_reset_if_more_samples_change_than_are_active(n_changed, reset):
    """Three of six samples are active."""
    curvature, products = np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0]), np.ones((2, 2))
    previous = curvature.copy()
    previous[:n_changed] += 5.0
    before = previous.copy()
    blocks._reset_if_most_change(curvature, previous, products)
    np.testing.assert_array_equal(previous, np.zeros(6) if reset else before)
    np.testing.assert_array_equal(products, np.zeros((2, 2)) if reset else np.ones((2, 2)))


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_outputs_of_empty_rows_are_zero(rng, n_outputs):
    X = sparse.csr_array(np.array([[0.0, 2.0], [0.0, 0.0], [1.0, 3.0]]))
    coef, out = rng.standard_normal((2, n_outputs)), np.full((3, n_outputs), np.nan)
    blocks.csr_output(X.indptr, X.indices, X.data, coef, out)
    np.testing.assert_allclose(out, X.toarray() @ coef)
    residual, scores = np.vstack([np.ones((1, 3)), np.zeros((n_outputs - 1, 3))]), np.full((2, n_outputs), np.nan)
    blocks.csr_scores(X.indptr, X.indices, X.data, residual, scores)
    np.testing.assert_allclose(scores, X.T.toarray() @ residual.T)


@pytest.mark.parametrize("size", [1, 2, 6])
def test_systems_are_solved_from_their_lower_half(rng, size):
    columns, right = rng.standard_normal((size + 2, size)), rng.standard_normal(size)
    system = columns.T @ columns
    lower, solution = np.tril(system), right.copy()
    lower[np.triu_indices(size, 1)] = np.nan  # The upper half is not read.
    assert blocks._solve_in_place(lower, solution)
    np.testing.assert_allclose(solution, np.linalg.solve(system, right))
    for diagonal in (0.0, -1.0, np.nan):
        system = np.eye(size)
        system[-1, -1] = diagonal
        assert not blocks._solve_in_place(system, right.copy())


def test_value_and_norms_of_blocks(rng):
    linear, weights, curved = rng.standard_normal((3, 5))
    owner, norms = np.array([0, 0, 1, 2, 2]), np.full(3, np.nan)
    value = blocks._block_value(linear, weights, curved, owner, norms)
    expected = [np.linalg.norm(weights[owner == t]) for t in range(3)]
    np.testing.assert_allclose(norms, expected)
    assert value == pytest.approx(weights @ linear + 0.5 * weights @ curved + 0.5 * sum(expected) ** 2)


@pytest.mark.parametrize("others", [0.0, 1e-3, 2.0])
def test_radius_of_one_weight_has_a_closed_form(others):
    """The minimum of (S + |v|)^2 / 2 + h v^2 / 2 + c v is at |v| = (|c| - S) / (1 + h)."""
    for slope in (-5.0, 3.0):
        radius = blocks.block_radius(np.array([4.0]), np.array([slope]), others)
        assert radius == pytest.approx((abs(slope) - others) / 5.0, rel=1e-12)
    assert blocks.block_radius(np.array([4.0]), np.array([others]), others) == 0.0
    assert blocks.block_radius(np.array([4.0]), np.array([0.5 * others]), others) == 0.0


def test_newton_steps_of_a_kernel_reach_the_minimum(rng):
    """Blocks of one and of several rows. The slope vanishes at the minimum, and zero blocks stay zero."""
    columns = rng.standard_normal((30, 8))
    hessian, bounds = columns.T @ columns, np.array([0, 1, 4, 5, 6, 8])
    linear = -hessian @ (3.0 + rng.random(8))
    coef = np.ones(8)
    coef[4] = 0.0
    blocks.block_newton(hessian, linear, bounds, coef)
    assert coef[4] == 0.0
    norms = np.sqrt(np.add.reduceat(coef**2, bounds[:-1]))
    active = np.arange(8) != 4
    unit = coef[active] / np.repeat(norms, np.diff(bounds))[active]
    slope = (linear + hessian @ coef)[active] + norms.sum() * unit
    np.testing.assert_allclose(slope, 0.0, atol=1e-8 * np.abs(linear).max())
    nothing = np.zeros(8)
    blocks.block_newton(hessian, linear, bounds, nothing)
    assert not nothing.any()


def test_descent_stops_at_the_given_number_of_sweeps(rng):
    columns = rng.standard_normal((1, 10, 4))
    hessian = np.einsum("cni,cnj->cij", columns, columns)
    bounds, linear = np.arange(5), -10.0 * np.ones((4, 1))
    values, vectors = hessian.diagonal(axis1=1, axis2=2).copy(), np.ones((1, 4, 1))
    coef = np.zeros((4, 1))
    for sweeps in (0, 1, 2):
        assert blocks.block_descent(hessian, linear, bounds, values, vectors, coef, sweeps, 0.0) == sweeps
        assert coef.any() == (sweeps > 0)
    assert blocks.block_descent(hessian, linear, bounds, values, vectors, coef, 10**4, 1e-12) < 10**4
    # At the minimum, one sweep changes nothing.
    assert blocks.block_descent(hessian, linear, bounds, values, vectors, coef, 10**4, 1e-9) == 1
