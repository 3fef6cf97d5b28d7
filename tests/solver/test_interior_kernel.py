"""The compiled interior-point method, compared with the general one, with slow code and with cvxpy."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.data import FeatureView, as_source
from coterie.kernels import interior_point as kernels
from coterie.solver.design import DenseDesign, design_of
from coterie.solver.interior_point import compiled_interior_point, interior_point
from coterie.solver.losses import OneVsRestHinge, SquaredHinge
from coterie.solver.master import Master
from tests import naive


def _problem(seed, n_samples, widths, n_classes, noise, C, fit_intercept=True, degenerate=False):
    """Return columns, a loss and blocks. Without noise, the classes are separable."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, sum(widths)))
    score = X @ rng.standard_normal(X.shape[1]) + noise * rng.standard_normal(n_samples)
    codes = np.argsort(np.argsort(score)) * n_classes // n_samples
    if degenerate:  # Equal columns, a column of zeros, equal samples.
        X[:, -1] = X[:, 0]
        X[:, len(widths) // 2] = 0.0
        X[n_samples // 2] = X[0]
    weight = rng.integers(1, 4, n_samples).astype(float)
    blocks = np.append(0, np.cumsum(widths))
    if n_classes > 2:
        return X, OneVsRestHinge(codes, n_classes, weight, C, fit_intercept), blocks
    return X, SquaredHinge(np.where(codes == 1, 1.0, -1.0), weight, C, fit_intercept), blocks


def _gap(X, loss, blocks, coef, residual):
    """Return the relative gap, with both objectives computed for each output by itself."""
    own = [np.sqrt((coef[a:b] ** 2).sum()) for a, b in itertools.pairwise(blocks)]
    scores = X.T @ residual
    highest = max((scores[a:b] ** 2).sum() for a, b in itertools.pairwise(blocks))
    primal = 0.5 * sum(own) ** 2 + loss.evaluate(X @ coef).value
    dual = 0.5 * highest + loss.conjugate(residual)
    return (primal + dual) / max(abs(primal), abs(dual))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_samples=st.integers(6, 50),
    widths=st.lists(st.integers(1, 4), min_size=1, max_size=12),
    n_classes=st.integers(2, 4),
    noise=st.sampled_from([0.0, 0.3, 3.0]),
    C=st.sampled_from([0.01, 1.0, 1e2, 1e4]),
    fit_intercept=st.booleans(),
    degenerate=st.booleans(),
)
def test_the_kernel_reaches_the_optimum_of_the_general_method(
    seed, n_samples, widths, n_classes, noise, C, fit_intercept, degenerate
):
    X, loss, blocks = _problem(seed, n_samples, widths, n_classes, noise, C, fit_intercept, degenerate)
    design = DenseDesign.of_array(X)
    coef, residual = compiled_interior_point(design, loss, blocks)
    expected, its_residual = interior_point(design, loss, blocks)
    for c in range(loss.n_outputs):
        for e in range(loss.n_strata):
            own = np.abs(residual[loss.strata[:, c] == e, c]).sum()
            assert own == pytest.approx(loss.mass[c, e], rel=1e-12)
    assert (residual * loss.signs >= 0.0).all()
    gap = _gap(X, loss, blocks, coef, residual)
    assert gap >= -1e-9
    # Rounding is multiplied by C and differs between factorisations.
    assert gap <= max(1e-8, 1e-12 * C, 100.0 * _gap(X, loss, blocks, expected, its_residual))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_steps_are_those_of_the_general_method(n_classes):
    """Far from the optimum, where rounding does not matter, the points are the same after each number of steps."""
    X, loss, blocks = _problem(3, 40, [1, 3, 2, 1], n_classes, 0.0, 100.0)
    design, arrays = DenseDesign.of_array(X), loss.arrays
    before = None
    for precision in (1e3, 1.0, 1e-1, 1e-2, 1e-4, 1e-6):
        coef, dual = np.empty((loss.n_outputs, 7)), np.empty((loss.n_outputs, 40))
        steps = kernels.interior_steps(
            X, arrays.C * arrays.weight, arrays.strata, arrays.signs, arrays.mass, blocks, precision, coef, dual
        )
        assert before is None or steps >= before
        before = steps
        expected, residual = interior_point(design, loss, blocks, precision)
        np.testing.assert_allclose(coef.T, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
        np.testing.assert_allclose((loss.signs * dual.T), residual, rtol=1e-4, atol=1e-6 * np.abs(residual).max())


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_optimum_by_naive_code_and_cvxpy(fit_intercept):
    cp = pytest.importorskip("cvxpy")
    X, loss, blocks = _problem(5, 24, [1, 2, 1, 3, 1, 1], 2, 0.5, 10.0, fit_intercept)
    coef, residual = compiled_interior_point(DenseDesign.of_array(X), loss, blocks)
    groups = [list(range(a, b)) for a, b in itertools.pairwise(blocks)]
    primal = naive.primal(X, loss.labels, coef[:, 0], groups, 10.0, loss.weight, fit_intercept)
    assert 0.0 <= (primal + naive.dual(X, residual[:, 0], groups, 10.0, loss.weight)) / abs(primal) < 1e-9
    w, b, gamma = cp.Variable(9), cp.Variable(), cp.Variable()
    slack = cp.pos(gamma - cp.multiply(loss.labels, X @ w + (b if fit_intercept else 0.0)))
    size = cp.sum([cp.norm(w[group]) for group in groups])
    objective = 0.5 * cp.square(size) - gamma + 5.0 * cp.sum(cp.multiply(loss.weight, cp.square(slack)))
    value = cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL")
    assert primal == pytest.approx(value, rel=1e-6)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), n_classes=st.integers(2, 3), C=st.sampled_from([10.0, 1e3, 1e5]))
def test_growing_separable_problems(seed, n_classes, C):
    """The compiled solver of a growing problem switches to the interior-point method, as the general one does."""
    X, loss, _ = _problem(seed, 25, [1] * 20, n_classes, 0.0, C)
    solutions = []
    for compiled in (True, False):
        master = Master(loss, design_of(FeatureView.of(as_source(X), centred=True)))
        if compiled:
            master.prepare_compiled(np.empty(0, dtype=np.int64))
        own = []
        for first in range(0, 20, 4):
            master.add_block(np.arange(first, first + 4))
            own.append(master.solve())
        solutions.append(own)
        assert master.is_separable or C < 1e3
    for one, other in zip(*solutions, strict=True):
        assert one.gap <= max(1e-9, 1e-14 * C, 100.0 * other.gap)
        assert one.objective == pytest.approx(other.objective, rel=1e-7)


def test_values_that_are_not_finite_end_the_steps():
    X, loss, blocks = _problem(1, 20, [1, 1], 2, 0.0, 1.0)
    arrays, coef, dual = loss.arrays, np.empty((1, 2)), np.empty((1, 20))
    X[3, 1] = np.nan
    assert (
        kernels.interior_steps(X, 2.0 * arrays.weight, arrays.strata, arrays.signs, arrays.mass, blocks, 1e-11, coef, dual)
        == 0
    )
