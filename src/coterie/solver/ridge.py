r"""A linear model on many columns: a loss with a plain squared norm.

.. math:: P(w) = \tfrac12\|w\|^2 + F(Xw), \qquad D(\tilde\alpha) = \tfrac12\|X'\tilde\alpha\|^2 + F^*(-\tilde\alpha)

The columns are the support and affiliated features together, so there may be tens of thousands of them. At the optimum
:math:`w = X'\tilde\alpha`, and the gap :math:`D + P` certifies the result as in the master problem.

**Solver**: Newton's method with an exact line search, which ends after a few steps because the losses are piecewise quadratic.
Up to a few thousand columns, its equations are solved by a Cholesky factorisation. If there are more columns than samples,
the problem depends on them only through the inner products between samples (:mod:`coterie.solver.sample_space`). For losses
without a kernel, the columns are replaced by as many columns as samples, with the same inner products. If both numbers are
large, conjugate gradients are used, with two products with the columns per iteration and no matrix.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, cg

from coterie.solver.block_problem import Solution, curvature_product, eliminated_curvature, loss_hessian
from coterie.solver.design import AnyDesign, DenseDesign
from coterie.solver.loss import Loss, LossState
from coterie.solver.sample_space import SampleFit, SampleProblem

# Largest number of unknowns for which Newton's equations are solved by factorisation.
_MAX_DIRECT = 2000
_MAX_STEPS = 200
_MAX_CG_STEPS = 1000
# Relative gap that rounding can cause.
_ROUNDING = 1e-10
# Relative gap of all stages before the last.
_STAGE_PRECISION = 1e-2
# The line search stops when the slope has decreased by this factor.
_SLOPE_FACTOR = 1e-3
# Ratio of the slopes at the ends of the bracket above which it is bisected.
_STEEP = 1e8


def fit_ridge(loss: Loss, design: AnyDesign, *, precision: float = 1e-10, start: np.ndarray | None = None) -> Solution:
    """Fit the weights of all columns of the design for a loss of one output.

    Stops at a relative gap of ``precision``, or when floating point prevents further progress. ``start`` contains weights near
    the optimum, if they are known.
    """
    n_samples = len(loss.strata)
    reduced = design
    if n_samples < design.n_features and n_samples <= _MAX_DIRECT:
        products = design.sample_products()
        problem = SampleProblem.of([loss])
        if problem is not None:
            fit = problem.fit(products)
            solution = _solution(loss, design, fit)
            # A gap above the precision after exact convergence is due to rounding.
            if solution.gap <= (max(precision, _ROUNDING) if fit.converged else precision):
                return solution
        reduced, start = _reduced_design(products), None
    near = None if start is None else _newton(loss, reduced, start, precision)
    if near is not None and near.gap <= precision:
        solution = near
    else:
        start = np.zeros((reduced.n_features, 1))
        for easier in _stages(loss, reduced):
            start = _newton(easier, reduced, start, _STAGE_PRECISION).coef
        solution = _newton(loss, reduced, start, precision)
        solution = solution if near is None or solution.gap < near.gap else near
    if reduced is design:
        return solution
    coef = design.scores(solution.residual)
    state = loss.evaluate(design.output(coef), solution.state)
    # The residual of the reduced problem is kept, because recomputing it would multiply its rounding errors by C.
    state = replace(state, residual=solution.residual, conjugate=solution.state.conjugate)
    return _certify(coef, state, coef, solution.n_iter)


def _stages(loss: Loss, design: AnyDesign) -> list[Loss]:
    """Return the same loss with smaller values of C, in increasing order, to be solved first.

    With a large C (or large features) the loss is nearly a constraint, and Newton's method moves between active sets without
    converging. The optimum for a tenth of C is a good initial point.
    """
    if "scaled" not in loss.parts:
        return []
    ones = loss.evaluate(np.zeros((len(loss.strata), 1)))
    size = float((design.scores(ones.residual) ** 2).sum()) / max(abs(ones.conjugate), np.finfo(float).tiny)
    n = int(np.ceil(np.log10(max(size, 1.0))))
    return [loss.scaled(10.0**-k) for k in range(n, 0, -1)]


def _solution(loss: Loss, design: AnyDesign, fit: SampleFit) -> Solution:
    """Return the solution for the columns of a design, given that in terms of their products."""
    residual = np.ascontiguousarray(fit.residual.T)
    coef = design.scores(residual)
    # The residual is kept, because recomputing it would multiply its rounding errors by C.
    state = replace(loss.evaluate(design.output(coef)), residual=residual, conjugate=float(fit.conjugate[0]))
    return _certify(coef, state, coef, int(fit.n_iter[0]))


def _reduced_design(products: np.ndarray) -> DenseDesign:
    """Return a square design L with ``LL'`` equal to given products between samples."""
    values, vectors = linalg.eigh(products)
    return DenseDesign.of_array(vectors * np.sqrt(np.maximum(values, 0.0)))


def _newton(loss: Loss, design: AnyDesign, coef: np.ndarray, precision: float) -> Solution:
    outputs = design.output(coef)
    state = loss.evaluate(outputs)
    best: Solution | None = None
    for iteration in range(_MAX_STEPS + 1):
        scores = design.scores(state.residual)
        current = _certify(coef, state, scores, iteration)
        if best is None or current.gap < best.gap:
            best = current
        if current.gap <= precision or iteration == _MAX_STEPS:
            break
        gradient = coef - scores
        direction = _solve_directly(loss, design, state, gradient) if design.n_features <= _MAX_DIRECT else None
        if direction is None:
            direction = _solve_by_products(loss, design, state, gradient, tolerance=0.1 * min(0.1, np.sqrt(current.gap)))
        along = design.output(direction)
        step = _line_search(loss, state, coef, outputs, direction, along)
        if step == 0.0:
            break
        coef, outputs = coef + step * direction, outputs + step * along
        state = loss.evaluate(outputs, state)
    assert best is not None
    return best


def _certify(coef: np.ndarray, state: LossState, scores: np.ndarray, n_iter: int) -> Solution:
    primal = 0.5 * float((coef * coef).sum()) + state.value
    dual = 0.5 * float((scores * scores).sum()) + state.conjugate
    return Solution.certified(primal, dual, coef, state.residual, state, n_iter)


def _solve_directly(loss: Loss, design: AnyDesign, state: LossState, gradient: np.ndarray) -> np.ndarray | None:
    """Return Newton's direction by factorisation of ``I + X'HX``. None if rounding makes the matrix singular."""
    system = loss_hessian(loss, design, state)[0]
    system[np.diag_indices_from(system)] += 1.0
    try:
        factor = linalg.cho_factor(system, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    return np.asarray(linalg.cho_solve(factor, -gradient, check_finite=False))


def _solve_by_products(
    loss: Loss, design: AnyDesign, state: LossState, gradient: np.ndarray, *, tolerance: float
) -> np.ndarray:
    """Return Newton's direction by conjugate gradients, to a relative ``tolerance``."""

    def system(weights: np.ndarray) -> np.ndarray:
        search = weights[:, None]
        return (search + design.scores(_projected_curvature_product(loss, state, design.output(search))))[:, 0]

    n = len(gradient)
    operator = LinearOperator((n, n), matvec=system, dtype=np.float64)
    return cg(operator, -gradient[:, 0], rtol=tolerance, maxiter=_MAX_CG_STEPS)[0][:, None]


def _projected_curvature_product(loss: Loss, state: LossState, outputs: np.ndarray) -> np.ndarray:
    """Return the loss's second derivative times a change of the outputs, with offsets and covariates projected out."""
    result = curvature_product(loss, state, 0, outputs)
    if loss.covariates is None:
        return result
    both = curvature_product(loss, state, 0, loss.covariates)
    return result - both @ linalg.solve(eliminated_curvature(loss, state, 0), both.T @ outputs, assume_a="sym")


def _line_search(
    loss: Loss, state: LossState, coef: np.ndarray, outputs: np.ndarray, direction: np.ndarray, along: np.ndarray
) -> float:
    """Return the step to the minimum along the direction, or 0 if it is not a descent direction.

    The slope of the convex objective is increasing and piecewise linear, and changes its sign at the minimum. The bracketed
    regula falsi with the Illinois rule ends after a few evaluations. (SciPy's root finders stop at a given width of the
    bracket, not at a given slope. With the best width for each search they took a fifth more evaluations.)
    """
    cross, square = float((coef * direction).sum()), float((direction * direction).sum())

    def slope(step: float) -> float:
        residual = loss.evaluate(outputs + step * along, state).residual
        return cross + step * square - float((residual * along).sum())

    low, slope_low = 0.0, slope(0.0)
    flat = -_SLOPE_FACTOR * slope_low
    if flat <= 0.0:
        return 0.0
    high, slope_high = 1.0, slope(1.0)
    while slope_high < -flat:
        low, slope_low = high, slope_high
        high, slope_high = 2.0 * high, slope(2.0 * high)
    step, value = high, slope_high
    for _ in range(60):
        if abs(value) <= flat:
            break
        if slope_high > _STEEP * -slope_low:  # exponential growth: the secant would hardly move
            step = 0.5 * (low + high)
        else:
            step = (low * slope_high - high * slope_low) / (slope_high - slope_low)
        value = slope(step)
        if value < 0.0:
            low, slope_low, slope_high = step, value, 0.5 * slope_high
        else:
            high, slope_high, slope_low = step, value, 0.5 * slope_low
    return step
