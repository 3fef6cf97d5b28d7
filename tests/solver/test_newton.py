"""Newton steps of the master problem in one compiled call, compared with the general solver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.data import FeatureView, as_source
from coterie.inputs.survival import survival_targets
from coterie.kernels import newton
from coterie.kernels.losses import SQUARED_HINGE, evaluate_loss, smooth_marker
from coterie.solver.block_problem import penalty
from coterie.solver.cox import CoxLoss
from coterie.solver.design import design_of
from coterie.solver.losses import OneVsRestHinge, SquaredHinge, SquaredLoss
from coterie.solver.master import Master


def _loss(kind, rng, n_samples, fit_intercept):
    weight = rng.integers(0, 3, n_samples) + 0.5 * (rng.random(n_samples) < 0.5)
    weight[:6] = 1.0
    C = float(10.0 ** rng.integers(-2, 3))
    if kind == "survival":  # with strata, tied times, censored samples and, at times, an offset
        targets = survival_targets(rng.random(n_samples) < 0.6, rng.integers(0, 20, n_samples), rng.integers(0, 2, n_samples))
        offset = rng.standard_normal(n_samples) if fit_intercept else None
        return CoxLoss(targets, weight, C, str(rng.choice(["breslow", "efron"])), offset)
    codes = np.append(np.arange(6) % 3, rng.integers(0, 3, n_samples - 6))
    if kind == "classes":
        return OneVsRestHinge(codes, 3, weight, C, fit_intercept)
    if kind == "hinge":
        return SquaredHinge(np.where(codes == 1, 1.0, -1.0), weight, C, fit_intercept)
    return SquaredLoss(5.0 + rng.standard_normal(n_samples), weight, C, fit_intercept)


def _solutions(seed, kind, fit_intercept, widths, compiled):
    rng = np.random.default_rng(seed)
    n_samples, n_features = 60, sum(widths)
    X = rng.standard_normal((n_samples, n_features))
    loss = _loss(kind, rng, n_samples, fit_intercept)
    master = Master(loss, design_of(FeatureView.of(as_source(X), centred=fit_intercept)))
    if compiled:
        master.prepare_compiled(np.empty(0, dtype=np.int64))
    solutions, first = [], 0
    for width in widths:
        master.add_block(np.arange(first, first + width))
        first += width
        solutions.append(master.solve())
    return solutions


@pytest.mark.parametrize("kind", ["hinge", "classes", "numbers", "survival"])
@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), fit_intercept=st.booleans(), widths=st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_compiled_steps_reach_the_optimum_of_the_general_solver(kind, seed, fit_intercept, widths):
    ours, general = (_solutions(seed, kind, fit_intercept, widths, compiled) for compiled in (True, False))
    for one, other in zip(ours, general, strict=True):
        assert one.gap <= max(1e-10, 10.0 * other.gap)
        assert one.objective == pytest.approx(other.objective, rel=1e-9)
        scale = np.abs(other.residual).max()
        np.testing.assert_allclose(one.residual, other.residual, atol=1e-4 * scale)
        np.testing.assert_allclose(one.state.intercept, other.state.intercept, rtol=1e-4, atol=1e-4)


def test_prepared_problems_are_solved_by_one_call(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "coterie.solver.master.proximal_newton", lambda *given: calls.append(1) or newton.proximal_newton(*given)
    )
    _solutions(0, "hinge", True, [1, 2], True)
    assert len(calls) >= 2
    calls.clear()
    _solutions(0, "hinge", True, [1, 2], False)
    assert not calls


@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 12))
def test_rotations_diagonalise_a_block(seed, width, rank):
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((rank, width + 3)) * 10.0 ** rng.uniform(-3, 3, width + 3)
    matrix = columns.T @ columns
    values, vectors = np.full(width + 3, np.nan), np.full((width + 3, width), np.nan)
    newton._diagonalise(matrix, 2, width, values, vectors)
    own, basis = matrix[2 : 2 + width, 2 : 2 + width], vectors[2 : 2 + width]
    np.testing.assert_allclose(basis.T @ basis, np.eye(width), atol=1e-12)
    np.testing.assert_allclose(basis * values[2 : 2 + width] @ basis.T, own, atol=1e-12 * np.abs(own).max())
    outside = np.r_[:2, 2 + width : width + 3]
    assert np.isnan(values[outside]).all()
    assert np.isnan(vectors[outside]).all()


@pytest.mark.parametrize("n_strata", [0, 1, 2])
def test_dense_hessians_are_updated_for_changed_samples(rng, n_strata):
    """From scratch, after few changes, and after many changes, with offsets projected out."""
    X, strata = rng.standard_normal((40, 5)), rng.integers(0, max(n_strata, 1), (40, 2)).astype(np.int8)
    signs = np.where(rng.random((40, 2)) < 0.5, -1.0, 1.0)
    previous, products, out = np.zeros((2, 40)), np.zeros((2, 5, 5)), np.empty((2, 5, 5))
    curvature = rng.random((2, 40)) * (rng.random((2, 40)) < 0.7)
    for n_changed in (0, 3, 40):
        curvature = curvature.copy()
        curvature[:, :n_changed] = rng.random((2, n_changed))
        newton._hessians(X, curvature, strata, signs, n_strata, previous, products, out)
        for c in range(2):
            h = curvature[c]
            expected = X.T @ (h[:, None] * X)
            for e in range(n_strata):
                own = strata[:, c] == e
                u = X.T @ (h * signs[:, c] * own)
                expected -= np.outer(u, u) / h[own].sum()
            np.testing.assert_allclose(out[c], expected, atol=1e-12)


def test_a_loss_that_changes_evaluate_has_no_compiled_form(rng):
    class Shifted(SquaredHinge):
        def evaluate(self, outputs, previous=None):
            return super().evaluate(outputs + 1.0, previous)

    labels = np.where(rng.random(10) < 0.5, 1.0, -1.0)
    assert "arrays" in SquaredHinge(labels, np.ones(10), 1.0, True).parts
    assert "arrays" not in Shifted(labels, np.ones(10), 1.0, True).parts


def test_evaluation_by_kind(rng):
    """The kernel of the squared loss and of the hinge loss, selected by the arrays' kind."""
    y, z = rng.standard_normal(8), rng.standard_normal((8, 1))
    loss = SquaredLoss(y, np.ones(8), 3.0, True, constant=2.0)
    offsets, residual, curvature = np.empty((1, 1)), np.empty((1, 8)), np.empty((1, 8))
    value, conjugate = evaluate_loss(
        loss.arrays, smooth_marker(loss.arrays), z, np.zeros((1, 1)), offsets, residual, curvature
    )
    error = y - z[:, 0]
    error = error - error.mean()
    assert value == pytest.approx(1.5 * error @ error + 2.0)
    assert conjugate == pytest.approx(1.5 * error @ error - 3.0 * error @ y - 2.0)
    np.testing.assert_allclose(residual[0], 3.0 * error)
    assert SquaredHinge(np.sign(y), np.ones(8), 1.0, True).arrays.kind == SQUARED_HINGE


def test_factorisation_and_elimination(rng):
    """The Cholesky factor reads the lower half. Elimination exchanges rows. Both report a singular matrix."""
    columns, right = rng.standard_normal((8, 5)), rng.standard_normal((5, 2))
    system = columns.T @ columns
    lower, solved = np.tril(system), right.copy()
    lower[np.triu_indices(5, 1)] = np.nan
    assert newton.factorise(lower)
    newton.solve_columns(lower, solved)
    np.testing.assert_allclose(solved, np.linalg.solve(system, right))
    assert not newton.factorise(np.diag([1.0, 0.0]))
    system = np.array([[0.0, 2.0, 1.0, 4.0], [1.0, 0.0, 1.0, 3.0], [1.0, 1.0, 0.0, 2.0]])
    expected = np.linalg.solve(system[:, :3], system[:, 3])
    assert newton._eliminate(system)
    np.testing.assert_allclose(system[:, 3], expected)
    assert not newton._eliminate(np.array([[1.0, 2.0, 1.0], [2.0, 4.0, 1.0]]))


def test_a_step_must_decrease_the_objective_enough(rng):
    """The penalty is half the squared sum of norms. A ten-thousandth of the predicted decrease is enough."""
    coef, target, gradient, direction = (rng.standard_normal((4, 2)) for _ in range(4))
    blocks = np.array([0, 1, 4])
    change = newton._predicted_change(coef, target, gradient, blocks, direction)
    np.testing.assert_array_equal(direction, target - coef)
    assert change == pytest.approx(penalty(target, blocks) - penalty(coef, blocks) + (gradient * (target - coef)).sum())
    assert newton._decreases(1.0 - 1.1e-4, 1.0, -1.0)
    assert not newton._decreases(1.0 - 0.9e-4, 1.0, -1.0)
    assert newton._decreases(1.0, 1.0, 0.0)
