"""Linear models in terms of the products between samples: equal to those fitted to the columns, with certificates."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels.ridge import _factorise, _solve_lower, _solve_upper, _update_gram
from coterie.solver import ridge
from coterie.solver.adjusted import AdjustedLoss
from coterie.solver.design import DenseDesign
from coterie.solver.losses import OneVsRestHinge, SquaredHinge, SquaredLoss, UnitHinge
from coterie.solver.sample_space import SampleProblem


class OtherHinge(UnitHinge):
    """A loss for which there is no kernel."""


def losses_of(kind, rng, X, weight, C, fit_intercept, n_covariates):
    """Return the plain losses of a kind of targets, with covariates."""
    n_samples = len(X)
    signal = X[:, 0] + 0.5 * rng.standard_normal(n_samples)
    if kind == "numbers":
        loss = SquaredLoss(1e3 + signal, weight, C, fit_intercept)
    elif kind == "several classes":
        loss = OneVsRestHinge(np.argsort(np.argsort(signal)) % 3, 3, weight, C, fit_intercept)
    else:
        labels = np.where(signal > 0.0, 1.0, -1.0) if kind == "two classes" else np.ones(n_samples)
        loss = SquaredHinge(labels, weight, C, fit_intercept and kind == "two classes")
    if n_covariates:
        loss = AdjustedLoss(loss, rng.standard_normal((n_samples, n_covariates)), weight)
    return loss.plain()


def by_columns(loss, X):
    """Return the solution that is fitted to the columns, whatever their number, without the kernel."""
    design = DenseDesign.of_array(X)
    start = np.zeros((X.shape[1], 1))
    for easier in ridge._stages(loss, design):
        start = ridge._newton(easier, design, start, 1e-2).coef
    return ridge._newton(loss, design, start, 1e-14)


@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["two classes", "several classes", "numbers", "one class"]),
    n_samples=st.integers(5, 40),
    n_features=st.integers(1, 60),
    log_c=st.floats(-3.0, 2.0),
    fit_intercept=st.booleans(),
    n_covariates=st.integers(0, 2),
    n_left_out=st.integers(0, 2),
)
@settings(max_examples=60, deadline=None)
def test_models_are_those_of_the_columns(seed, kind, n_samples, n_features, log_c, fit_intercept, n_covariates, n_left_out):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    weight = rng.random(n_samples) + 0.2
    weight[:n_left_out] = 0.0
    losses = losses_of(kind, rng, X, weight, 10.0**log_c, fit_intercept, n_covariates)
    problem = SampleProblem.of(losses)
    assert problem is not None
    fits = [problem.fit(X @ X.T), problem.fit_columns(X)[0]]
    for fit, (c, loss) in product(fits, enumerate(losses)):
        assert fit.gap.max() <= 1e-10
        assert (fit.residual[:, :n_left_out] == 0.0).all()
        reference = by_columns(loss, X)
        expected = (X @ reference.coef)[:, 0]
        size = 1e-6 * max(np.abs(expected).max(), 1.0)
        np.testing.assert_allclose(fit.outputs[c], expected, atol=size)
        np.testing.assert_allclose(X.T @ fit.residual[c], reference.coef[:, 0], atol=size)
        # The certificate holds for the losses themselves, and no other point is better.
        state = loss.evaluate(fit.outputs[c][:, None])
        primal = 0.5 * fit.residual[c] @ fit.outputs[c] + state.value
        assert primal == pytest.approx(-reference.bound, rel=1e-9, abs=1e-9)
        assert fit.conjugate[c] + 0.5 * fit.residual[c] @ fit.outputs[c] == pytest.approx(-primal, rel=1e-9, abs=1e-9)
        if fit.active[c].any():  # Else every offset within the margin is optimal.
            assert fit.intercept[c] == pytest.approx(state.intercept[0], rel=1e-6, abs=1e-6)
        assert fit.margin[c] == state.margin[0]
        if n_covariates:
            np.testing.assert_allclose(fit.covariate_coef[c], state.covariate_coef[:, 0], atol=1e-5)


def test_a_guess_saves_steps_and_does_not_change_the_models(rng):
    X = rng.standard_normal((50, 80))
    losses = losses_of("several classes", rng, X, np.ones(50), 10.0, True, 0)
    problem = SampleProblem.of(losses)
    cold = problem.fit(X @ X.T)
    warm = problem.fit(X @ X.T, cold.active)
    assert warm.converged
    assert (warm.n_iter == 1).all()
    assert (cold.n_iter > 2).all()
    np.testing.assert_allclose(warm.outputs, cold.outputs, rtol=1e-12)
    np.testing.assert_array_equal(warm.active, cold.active)
    wrong = problem.fit(X @ X.T, ~cold.active)
    assert wrong.converged
    np.testing.assert_allclose(wrong.outputs, cold.outputs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("C", [1.0, 1e3, 1e6])
def test_large_weights_of_the_loss_converge(rng, C):
    X = rng.standard_normal((120, 20)) @ rng.standard_normal((20, 150)) + 0.5 * rng.standard_normal((120, 150))
    y = np.where(X[:, 0] + 2 * rng.standard_normal(120) > 0, 1.0, -1.0)
    fit = SampleProblem.of([UnitHinge(y, np.ones(120), C, True)]).fit(X @ X.T)
    assert fit.converged
    assert fit.gap[0] <= 1e-10
    assert fit.n_iter[0] < 100


@pytest.mark.parametrize("kind", ["several classes", "numbers"])
def test_weights_of_some_columns_save_steps_and_do_not_change_the_models(rng, kind):
    X = rng.standard_normal((90, 20))
    problem = SampleProblem.of(losses_of(kind, rng, X, np.ones(90), 1.0, True, 2))
    cold, expected = problem.fit_columns(X)
    warm, coef = problem.fit_columns(X, expected)
    assert cold.converged
    assert (warm.n_iter == 1).all()
    np.testing.assert_allclose(coef, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    _, some = problem.fit_columns(X[:, :15])
    grown, coef = problem.fit_columns(X, some)
    assert grown.n_iter.sum() <= cold.n_iter.sum()
    np.testing.assert_allclose(coef, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("C", [1.0, 1e3, 1e6])
def test_large_weights_of_the_loss_converge_in_columns(rng, C):
    X = rng.standard_normal((120, 20))
    y = np.where(X[:, 0] + 2 * rng.standard_normal(120) > 0, 1.0, -1.0)
    fit, _ = SampleProblem.of([UnitHinge(y, np.ones(120), C, True)]).fit_columns(X)
    assert fit.converged
    assert fit.gap[0] <= 1e-10


@given(seed=st.integers(0, 10_000), n_samples=st.integers(1, 30), size=st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_products_are_updated_for_changed_samples(seed, n_samples, size):
    rng = np.random.default_rng(seed)
    X, weight = rng.standard_normal((n_samples, size)), rng.random(n_samples)
    known, gram, changed = np.zeros(n_samples, dtype=bool), np.zeros((size, size)), np.empty(n_samples, dtype=np.int64)
    for share in (0.7, 0.6, 0.0, 1.0):
        active = rng.random(n_samples) < share
        _update_gram(X, weight, active, known, changed, gram)
        np.testing.assert_array_equal(known, active)
        expected = X[active].T @ (weight[active, None] * X[active])
        np.testing.assert_allclose(np.triu(gram), np.triu(expected), atol=1e-12)


def test_losses_without_a_kernel_are_fitted_to_columns(rng):
    X = rng.standard_normal((20, 30))
    y = np.sign(X[:, 0])
    other, usual = OtherHinge(y, np.ones(20), 1.0, True), UnitHinge(y, np.ones(20), 1.0, True)
    assert SampleProblem.of([other]) is None
    assert SampleProblem.of([SquaredLoss(y, np.ones(20), C, True) for C in (1.0, 2.0)]) is None
    one, two = (ridge.fit_ridge(loss, DenseDesign.of_array(X)) for loss in (other, usual))
    np.testing.assert_allclose(one.coef, two.coef, rtol=1e-6, atol=1e-9)


def test_a_singular_system_is_not_converged_and_the_columns_are_used(rng, monkeypatch):
    """With enormous products the diagonal is lost in rounding."""
    X = 1e10 * rng.standard_normal((12, 1)) @ rng.standard_normal((1, 20))
    loss = UnitHinge(np.where(np.arange(12) % 2, 1.0, -1.0), np.ones(12), 1e6, True)
    fit = SampleProblem.of([loss]).fit(X @ X.T)
    assert not fit.converged
    reductions = []
    reduced = ridge._reduced_design
    monkeypatch.setattr(ridge, "_reduced_design", lambda products: reductions.append(1) or reduced(products))
    ridge.fit_ridge(loss, DenseDesign.of_array(X))
    assert reductions
    usual = UnitHinge(loss.labels, np.ones(12), 1.0, True)
    ridge.fit_ridge(usual, DenseDesign.of_array(rng.standard_normal((12, 20))))
    assert len(reductions) == 1


@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 30])
def test_factors_solve_systems(rng, n):
    A = rng.standard_normal((n, n + 3))
    matrix, right = A @ A.T, rng.standard_normal(n)
    factor, solution = matrix.copy(), right.copy()
    assert _factorise(factor, n)
    np.testing.assert_allclose(np.triu(factor).T @ np.triu(factor), matrix, atol=1e-10)
    _solve_lower(factor, n, solution)
    _solve_upper(factor, n, solution)
    np.testing.assert_allclose(matrix @ solution, right, atol=1e-6)
    assert not _factorise(-matrix, n)
