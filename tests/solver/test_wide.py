"""Weights of the blocks in the solver for wide blocks."""

import numpy as np
import pytest

from coterie.solver import wide
from coterie.solver.design import DenseDesign
from coterie.solver.losses import OneVsRestHinge, SquaredHinge, SquaredLoss


def test_first_weights_are_shares_of_the_norms():
    blocks = np.array([0, 2, 3, 5])
    np.testing.assert_allclose(wide._starting_weights(np.zeros((5, 2)), blocks), [1 / 3, 1 / 3, 1 / 3])
    coef = np.array([[3.0, 0.0], [0.0, 4.0], [5.0, 0.0], [0.0, 0.0], [10.0, 0.0]])
    np.testing.assert_allclose(wide._starting_weights(coef, blocks), [0.25, 0.25, 0.5])
    # New blocks, whose weights are zero, share a tenth.
    coef[2] = 0.0
    np.testing.assert_allclose(wide._starting_weights(coef, blocks), [0.3, 0.1, 0.6])
    coef[4] = 0.0
    np.testing.assert_allclose(wide._starting_weights(coef, blocks), [0.9, 0.05, 0.05])


def loss_of(kind, rng, n_samples):
    weight, codes = rng.random(n_samples) + 0.2, np.arange(n_samples) % 3
    if kind == "two classes":
        return SquaredHinge(np.where(codes == 0, 1.0, -1.0), weight, 0.6, True, importance=1.4)
    if kind == "several classes":
        return OneVsRestHinge(codes, 3, weight, 0.6, True)
    return SquaredLoss(rng.standard_normal(n_samples), weight, 0.6, True)


@pytest.mark.parametrize("kind", ["two classes", "several classes", "regression"])
def test_value_and_gradient_in_the_weights_of_the_blocks(rng, kind):
    """The value is the optimum for given weights, and the gradient agrees with finite differences."""
    n_samples, blocks = 40, np.array([0, 2, 5, 6])
    X, loss = rng.standard_normal((n_samples, 6)), loss_of(kind, rng, n_samples)
    X[:, 0] += loss.signs[:, 0]
    design = DenseDesign.of_array(X)
    eta = np.array([0.5, 0.2, 0.3])

    def value(eta):
        search = wide._Search(design, loss, blocks)
        search.objective(eta)
        per_block = np.add.reduceat((search.coef**2).sum(axis=1), blocks[:-1])
        return search, 0.5 * (per_block / eta).sum() + loss.evaluate(X @ search.coef).value

    search, best = value(eta)
    scaled, gradient = search.objective(eta)
    assert scaled == pytest.approx(np.sign(best))
    np.testing.assert_allclose(gradient * abs(best), -0.5 * np.add.reduceat((X.T @ search.residual) ** 2, blocks[:-1]).sum(1))
    np.testing.assert_allclose(search.residual, loss.evaluate(X @ search.coef).residual, atol=1e-6)
    for _ in range(5):  # No other weights have a smaller value.
        other = search.coef + 1e-3 * rng.standard_normal(search.coef.shape)
        per_block = np.add.reduceat((other**2).sum(axis=1), blocks[:-1])
        assert 0.5 * (per_block / eta).sum() + loss.evaluate(X @ other).value > best
    step = 1e-4 * np.array([1.0, -2.0, 1.0])
    difference = (value(eta + step)[1] - value(eta - step)[1]) / 2
    assert difference == pytest.approx(gradient @ step * abs(best), rel=1e-4)


def test_weights_outside_their_bounds_are_clipped(rng):
    search = wide._Search(DenseDesign.of_array(rng.standard_normal((20, 3))), loss_of("regression", rng, 20), np.arange(4))
    search.objective(np.array([1.5, 0.5, -1e-9]))
    np.testing.assert_allclose(search.eta, [0.75, 0.25, 0.0])


def test_the_search_keeps_the_point_with_the_smallest_gap(rng):
    X = rng.standard_normal((40, 2))
    search = wide._Search(DenseDesign.of_array(X), SquaredLoss(X[:, 0], np.ones(40), 1.0, True), np.arange(3))
    for eta in ([0.5, 0.5], [0.9, 0.1], [0.2, 0.8]):
        search.objective(np.array(eta))
    np.testing.assert_allclose(search.eta, [0.9, 0.1])
    assert search.n_iter >= 3


def test_one_block_needs_one_model(rng):
    X = rng.standard_normal((30, 4))
    loss = SquaredLoss(X[:, 0], np.ones(30), 0.5, False)
    coef, residual, n_iter = wide.wide_master(DenseDesign.of_array(X), loss, np.array([0, 4]), np.zeros((4, 1)))
    expected = np.linalg.solve(0.5 * X.T @ X + np.eye(4), 0.5 * X.T @ X[:, 0])
    np.testing.assert_allclose(coef[:, 0], expected, rtol=1e-8)
    np.testing.assert_allclose(residual[:, 0], 0.5 * (X[:, 0] - X @ expected), atol=1e-9)
    assert n_iter >= 1
