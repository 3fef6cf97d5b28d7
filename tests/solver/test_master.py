"""The master problem compared with cvxpy, and its certificate with naive code."""

import itertools
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from coterie.data import FeatureView, as_source
from coterie.solver import master as master_module
from coterie.solver.block_problem import block_norms, minimise_block_model
from coterie.solver.design import DenseDesign, SparseDesign, design_of
from coterie.solver.interior_point import interior_point
from coterie.solver.losses import OneVsRestHinge, SquaredHinge, SquaredLoss
from coterie.solver.master import Master
from tests import naive
from tests.conftest import random_sparse

PROBLEMS = {
    "seed": st.integers(0, 10**6),
    "C": st.sampled_from([1e-3, 0.1, 1.0, 100.0]),
    "fit_intercept": st.booleans(),
    "is_sparse": st.booleans(),
}


def always_wide(patch):
    """Use the solver for wide blocks for every number of columns."""
    for limit in ("_MAX_MATRIX_COLUMNS_SINGLE", "_MAX_MATRIX_COLUMNS"):
        patch.setattr(master_module, limit, 0)


def problem(seed, n=70, p=9, density=1.0, noise=0.5, scale=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.standard_normal((n, p)) * (rng.random((n, p)) < density)
    w = rng.standard_normal(p) * (rng.random(p) < 0.5)
    y = np.where(X @ w + scale * (noise * rng.standard_normal(n) + 0.2) > 0, 1.0, -1.0)
    y[:2], y[2:4] = 1, -1
    return X, y, rng.random(n) + 0.2


def solve(X, y, weight, C, fit_intercept, size, is_sparse):
    """Return the solution after each block. Columns are centred if the design is dense."""
    master = master_on(sparse.csc_array(X) if is_sparse else X, SquaredHinge(y, weight, C, fit_intercept))
    solutions = []
    for features in np.split(np.arange(X.shape[1]), range(size, X.shape[1], size)):
        master.add_block(features)
        solutions.append(master.solve())
    return solutions


def master_on(X, loss):
    return Master(loss, design_of(FeatureView.of(as_source(X), centred=loss.centred)))


def recomputed_gap(solution, X, y, weight, C, fit_intercept, size):
    """Return the relative gap by naive code. Check that the solution is feasible and its objectives agree."""
    p = X.shape[1]
    blocks = [list(range(a, min(a + size, p))) for a in range(0, p, size)]
    alpha = solution.residual[:, 0] * y
    assert (alpha >= 0).all()
    assert alpha.sum() == pytest.approx(1.0, abs=1e-9)
    if fit_intercept:
        assert solution.residual.sum() == pytest.approx(0.0, abs=1e-9)
    primal = naive.primal(X, y, solution.coef[:, 0], blocks, C, weight, fit_intercept)
    dual = naive.dual(X, solution.residual[:, 0], blocks, C, weight)
    assert solution.objective == pytest.approx(dual, rel=1e-8)
    assert -solution.bound == pytest.approx(primal, rel=1e-7, abs=1e-12)
    assert dual + primal >= -1e-9 * abs(dual)
    return (dual + primal) / abs(dual)


def with_cvxpy(X, y, weight, C, fit_intercept, size):
    _n, p = X.shape
    w, gamma, b = cp.Variable(p), cp.Variable(), cp.Variable()
    output = X @ w + (b if fit_intercept else 0)
    norms = sum(cp.norm(w[first : first + size]) for first in range(0, p, size))
    loss = C / 2 * cp.sum(cp.multiply(weight, cp.square(cp.pos(gamma - cp.multiply(y, output)))))
    task = cp.Problem(cp.Minimize(0.5 * cp.square(norms) - gamma + loss))
    task.solve(solver=cp.CLARABEL)
    return task.value


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_optimum_is_that_of_an_independent_solver(C, fit_intercept, is_sparse):
    X, y, weight = problem(1, density=0.4 if is_sparse else 1.0)
    solution = solve(X, y, weight, C, fit_intercept, 3, is_sparse)[-1]
    reference = with_cvxpy(X, y, weight, C, fit_intercept, 3)
    assert -solution.bound == pytest.approx(reference, rel=1e-6, abs=1e-9)
    assert solution.gap <= 1e-10


@settings(max_examples=25)
@given(**PROBLEMS, size=st.integers(1, 5))
def test_certificate_recomputed_from_scratch(seed, C, fit_intercept, is_sparse, size):
    X, y, weight = problem(seed, density=0.4 if is_sparse else 1.0)
    weight[5] = 0.0
    theta = -np.inf
    for count, solution in enumerate(solve(X, y, weight, C, fit_intercept, size, is_sparse), start=1):
        p = min(count * size, X.shape[1])
        assert recomputed_gap(solution, X[:, :p], y, weight, C, fit_intercept, size) <= 1e-8
        assert solution.gap <= 1e-8
        # The optimum cannot decrease when a block is added.
        assert solution.objective >= theta * (1 - 1e-9)
        theta = solution.objective


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(("C", "scale", "tol"), [(1.0, 1.0, 1e-8), (1e4, 1.0, 1e-6), (1.0, 1e4, 1e-4), (1e8, 1.0, 1e-4)])
def test_separable_data(C, scale, tol, is_sparse):
    """With fewer samples than features, Newton's method alone converges slowly."""
    X, y, weight = problem(4, n=40, p=60, noise=0.0, scale=scale, density=0.5 if is_sparse else 1.0)
    solutions = solve(X, y, weight, C, True, 10, is_sparse)
    assert max(s.gap for s in solutions) <= tol
    assert (y * (X @ solutions[-1].coef[:, 0] + solutions[-1].state.intercept[0]) > 0).all() or not is_sparse


def test_interior_point_comes_close_by_itself():
    X, y, weight = problem(7, n=50, p=30)
    loss = SquaredHinge(y, weight, 10.0, True)
    design = DenseDesign.of_array(X - X.mean(axis=0))
    blocks = np.array([0, 10, 20, 30])
    coef, residual = interior_point(design, loss, blocks)
    groups = [list(range(10)), list(range(10, 20)), list(range(20, 30))]
    primal = naive.primal(X, y, coef[:, 0], groups, 10.0, weight, True)
    dual = naive.dual(X, residual[:, 0], groups, 10.0, weight)
    assert 0 <= (primal + dual) / dual < 1e-6


def test_interior_point_with_weights_of_zero():
    X, y, weight = problem(8, n=50, p=20)
    weight[::7] = 0.0
    keep = weight > 0
    blocks = np.array([0, 10, 20])
    results = []
    for rows in (np.arange(50), np.flatnonzero(keep)):
        design = DenseDesign.of_array(X[rows])
        coef, residual = interior_point(design, SquaredHinge(y[rows], weight[rows], 5.0, True), blocks)
        results.append(coef)
        assert residual[~(weight[rows] > 0)].sum() == 0.0
    np.testing.assert_allclose(results[0], results[1], atol=1e-5)


def slope_at(coef, hessian, gradient, blocks):
    """The largest violation of the conditions of a minimum of the block model, relative to the gradient."""
    total = block_norms(coef, blocks).sum()
    slope = gradient + np.einsum("cij,jc->ic", hessian, coef)
    worst = 0.0
    for a, b in itertools.pairwise(blocks):
        size = np.linalg.norm(coef[a:b])
        own = np.abs(slope[a:b] + total * coef[a:b] / size).max() if size > 0 else np.linalg.norm(slope[a:b]) - total
        worst = max(worst, own)
    return worst / np.abs(gradient).max()


def test_block_model_with_an_ill_conditioned_hessian(rng):
    """Newton steps on the active blocks solve a problem on which block descent converges very slowly."""
    A = rng.standard_normal((40, 12))
    A[:, 6:] = A[:, :6] + 1e-4 * rng.standard_normal((40, 6))
    hessian = (A.T @ A)[None]
    gradient = rng.standard_normal((12, 1)) * 3
    blocks = np.array([0, 4, 8, 12])
    coef = minimise_block_model(hessian, gradient, np.zeros((12, 1)), blocks)
    assert slope_at(coef, hessian, gradient, blocks) <= 1e-8


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("blocks", [[0, 4, 8, 12], list(range(13)), [0, 1, 2, 7, 12]])
def test_block_model_of_columns_that_are_nearly_the_same(rng, n_outputs, blocks):
    """Without Newton steps the conditions of a minimum are violated by more than 1e-4 here."""
    A = 10.0 * (rng.standard_normal((n_outputs, 60, 1)) + 0.03 * rng.standard_normal((n_outputs, 60, 12)))
    hessian = np.einsum("cni,cnj->cij", A, A)
    gradient = -np.einsum("cij,jc->ic", hessian, rng.standard_normal((12, n_outputs)))
    coef = minimise_block_model(hessian, gradient, np.zeros((12, n_outputs)), np.array(blocks))
    assert slope_at(coef, hessian, gradient, np.array(blocks)) <= 1e-9


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_optimum_without_a_matrix_of_the_columns(monkeypatch, C, fit_intercept, is_sparse):
    """The solver for wide blocks finds the same optimum in every round."""
    X, y, weight = problem(1, density=0.4 if is_sparse else 1.0)
    narrow = solve(X, y, weight, C, fit_intercept, 3, is_sparse)
    always_wide(monkeypatch)
    wide = solve(X, y, weight, C, fit_intercept, 3, is_sparse)
    assert -wide[-1].bound == pytest.approx(with_cvxpy(X, y, weight, C, fit_intercept, 3), rel=1e-6, abs=1e-9)
    for one, other in zip(narrow, wide, strict=True):
        assert other.gap <= 1e-7
        assert other.objective == pytest.approx(one.objective, rel=1e-7)
        assert other.n_iter > 0
    np.testing.assert_allclose(wide[-1].coef, narrow[-1].coef, atol=2e-3 * np.abs(narrow[-1].coef).max())


@settings(max_examples=10)
@given(**PROBLEMS, size=st.integers(2, 6), separable=st.booleans())
def test_wide_certificate_recomputed_from_scratch(seed, C, fit_intercept, is_sparse, size, separable):
    X, y, weight = problem(seed, n=20 if separable else 70, p=30 if separable else 9, density=0.4 if is_sparse else 1.0)
    weight[5] = 0.0
    with pytest.MonkeyPatch.context() as patch:
        always_wide(patch)
        solution = solve(X, y, weight, C, fit_intercept, size, is_sparse)[-1]
    assert recomputed_gap(solution, X, y, weight, C, fit_intercept, size) <= 1e-5


@pytest.mark.parametrize("name", ["several classes", "regression"])
def test_other_losses_without_a_matrix_of_the_columns(monkeypatch, rng, name):
    X = rng.standard_normal((60, 12))
    target = X[:, 0] - X[:, 5] + 0.3 * rng.standard_normal(60)
    weight = rng.random(60) + 0.5
    if name == "regression":
        loss = SquaredLoss(target, weight, 0.5, True)
    else:
        loss = OneVsRestHinge(np.digitize(target, [-0.5, 0.5]), 3, weight, 0.5, True)
    objectives = []
    for wide in (False, True):
        if wide:
            always_wide(monkeypatch)
        master = master_on(X, loss)
        for first in range(0, 12, 4):
            master.add_block(np.arange(first, first + 4))
            solution = master.solve()
            assert solution.gap <= 1e-8
            objectives.append(solution.objective)
    assert objectives[3:] == pytest.approx(objectives[:3], rel=1e-7)


def test_a_wide_block_that_interpolates(rng):
    """With more columns than samples and a large C, the residual is a difference of nearly equal numbers."""
    X = rng.standard_normal((50, 400))
    master = master_on(X, SquaredLoss(X[:, 0] + rng.standard_normal(50), np.ones(50), 1e5, True))
    master.add_block(np.arange(400))
    assert master.solve().gap <= 1e-7


def test_wide_blocks_need_no_matrix(monkeypatch):
    """Thousands of columns in two rounds are used in products only."""
    X = random_sparse(np.random.default_rng(0), (3000, 8000), density=0.002, format="csc")
    y = np.where(X[:, :50].sum(axis=1) > 0.05, 1.0, -1.0)

    def forbidden(*args):
        raise AssertionError("a matrix of all columns was made")

    for method in ("grams", "sample_products"):
        monkeypatch.setattr(SparseDesign, method, forbidden)
    master = master_on(X, SquaredHinge(y, np.ones(3000), 1.0, True))
    for half in (np.arange(4000), np.arange(4000, 8000)):
        master.add_block(half)
        assert master.solve().gap <= 1e-7


def test_a_loss_without_an_interior_point_gets_more_newton_steps(rng):
    """Newton's method is replaced by the interior-point method after a few steps only if the loss supports it."""
    X = rng.standard_normal((40, 6))

    class Slow(SquaredLoss):
        """A loss with ten times the true curvature, so that each step is a tenth of the true step."""

        def evaluate(self, outputs, previous=None):
            state = super().evaluate(outputs, previous)
            return replace(state, curvature=10.0 * state.curvature)

    master = master_on(X, Slow(X[:, 0] + rng.standard_normal(40), np.ones(40), 1.0, True))
    master.add_block(np.arange(6))
    assert master.solve().gap <= 1e-7


def test_a_step_that_decreases_nothing_is_halved():
    """Armijo's rule: a step to twice the minimiser of a parabola does not decrease the objective and is rejected."""
    X, y, weight = problem(0, p=1)
    master = master_on(X, SquaredLoss(y, weight, 1.0, False))
    master.add_block(np.array([0]))
    best = master.solve().coef
    coef = np.zeros_like(best)
    outputs = master.design.output(coef)
    state = master._merged.evaluate(outputs)
    gradient = -master.design.scores(state.residual)
    primal = state.value
    trial, _, _ = master._line_search(coef, outputs, primal, gradient, 2.0 * best, state)
    np.testing.assert_array_equal(trial, best)
    # A decrease below 1e-4 of the predicted one is rejected, too. A larger one is accepted.
    for factor, step in ((2.0 - 1e-4, 0.5), (2.0 - 1e-3, 1.0)):
        trial, _, _ = master._line_search(coef, outputs, primal, gradient, factor * best, state)
        np.testing.assert_array_equal(trial, step * factor * best)


@pytest.mark.parametrize(
    ("gaps", "steps", "n_evaluated", "best"),
    [
        ([1.0, 1e-13], (20, 0), 2, 1),  # the precision
        ([1.0] + [1e-8] * 30, (20, 0), 5, 4),  # three steps without progress, near the optimum
        ([1.0, 1e-8, 1e-8, 1e-8] + [1e-9] * 30, (20, 0), 8, 7),  # progress in between
        ([1.0, 1e-8] + [2e-8] * 30, (20, 0), 5, 1),
        ([1.0] + [1e-6] * 30, (6, 0), 7, 6),  # far from the optimum, the number of steps
        ([1.0] + [0.5] * 30, (3, 5), 4, 3),
        ([1.0] + [0.05] * 30, (3, 5), 9, 8),  # extra steps near the optimum
        ([1.0, 0.05, 0.5, 0.5] + [0.5] * 30, (3, 5), 9, 1),
    ],
)
def test_when_newton_steps_end(monkeypatch, gaps, steps, n_evaluated, best):
    """The gaps are given. The solution with the smallest gap, the last one of ties, is returned."""
    X, y, weight = problem(0, p=2)
    master = master_on(X, SquaredHinge(y, weight, 1.0, True))
    master.add_block(np.arange(2))
    certify, evaluated = Master._certify, []

    def given_gaps(self, *arguments):
        evaluated.append(gaps[len(evaluated)])
        return replace(certify(self, *arguments), gap=evaluated[-1])

    def stay(self, coef, outputs, primal, gradient, target, state):
        return coef, outputs, state

    monkeypatch.setattr(Master, "_certify", given_gaps)
    monkeypatch.setattr(Master, "_line_search", stay)
    solution = master._newton(np.zeros((2, 1)), *steps)
    assert len(evaluated) == n_evaluated
    assert (solution.n_iter, solution.gap) == (best, gaps[best])


def test_a_loose_precision_takes_fewer_steps():
    X, y, weight = problem(1)
    results = []
    for precision in (0.5, 1e-12):
        loss = SquaredHinge(y, weight, 1.0, True)
        master = Master(loss, design_of(FeatureView.of(as_source(X), centred=True)), precision=precision)
        master.add_block(np.arange(9))
        results.append(master.solve())
    assert results[0].n_iter < results[1].n_iter
    assert results[1].gap <= results[0].gap <= 0.5
    assert Master(loss, design_of(FeatureView.of(as_source(X)))).precision == 1e-12


def test_level_start_and_blocks():
    X, y, weight = problem(2)
    master = master_on(X, SquaredHinge(y, weight, 0.5, True))
    start = master.start
    assert (start.gap, start.n_iter, start.coef.shape, master.level) == (0.0, 0, (0, 1), 0.0)
    assert start.objective == pytest.approx(start.bound, rel=1e-9)  # Dual and primal agree without features.
    assert (start.residual[:, 0] * y >= 0).all()
    centred = X - X.mean(axis=0)
    for first, last in ((0, 2), (2, 5), (5, 9)):
        master.add_block(np.arange(first, last))
        assert master.blocks[-1] == last
        assert not master._coef[first:last].any()
        solution = master.solve()
        scores = centred[:, :last].T @ solution.residual[:, 0]
        norms = [np.linalg.norm(scores[a:b]) for a, b in itertools.pairwise(master.blocks)]
        assert master.level == pytest.approx(0.5 * max(norms) ** 2, rel=1e-9)


@pytest.mark.parametrize(
    ("n_blocks", "n_features", "wide"),
    [(1, 300, False), (1, 301, True), (2, 301, False), (2, 6000, False), (2, 6001, True), (0, 301, False)],
)
def test_designs_that_are_solved_without_a_matrix(n_blocks, n_features, wide):
    X, y, weight = problem(0)
    master = master_on(X, SquaredHinge(y, weight, 1.0, True))
    master.blocks = np.linspace(0, n_features, n_blocks + 1).astype(np.int64)
    master.design.n_features = n_features
    assert master._is_wide() == wide
