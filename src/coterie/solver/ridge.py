r"""One linear model on many columns: a loss with a plain squared norm.

.. math:: P(w) = \tfrac12\|w\|^2 + F(Xw), \qquad D(\tilde\alpha) = \tfrac12\|X'\tilde\alpha\|^2 + F^*(-\tilde\alpha)

The columns are the support and affiliated features together, so there may be tens of thousands of them. At the
optimum :math:`w = X'\tilde\alpha`, and the gap :math:`D + P` certifies the result as it does in the master problem.

**Solver**: Newton's method with an exact line search, which ends after a few steps because the losses are
piecewise quadratic. Up to a few thousand columns its equations are solved by a Cholesky factorisation. More
columns than samples are first replaced by as many columns as there are samples that have the same products between
samples (the problem knows nothing else of them). Where both are large, conjugate gradients need two products with
the columns an iteration and no matrix.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, cg

from coterie.solver.block_problem import Solution, curved, eliminated_curvature, loss_hessian
from coterie.solver.design import AnyDesign, DenseDesign
from coterie.solver.loss import Loss, LossState

# Unknowns up to which Newton's equations are solved by factorisation.
_MAX_DIRECT = 2000
_MAX_STEPS = 200
_MAX_INNER = 1000
# Gap of the stages before the last.
_ROUGH = 1e-2
# The line search stops where the slope has fallen by this factor.
_FLAT = 1e-3


def fit_ridge(loss: Loss, design: AnyDesign, *, precision: float = 1e-10, start: np.ndarray | None = None) -> Solution:
    """Weights of all columns of the design for a loss of one output.

    Stops at a relative gap of ``precision``, or where floating point ends the progress. ``start`` holds weights near
    the optimum, where they are known.
    """
    n_samples = len(loss.strata)
    reduced = design
    if n_samples < design.n_features and n_samples <= _MAX_DIRECT:
        reduced, start = _same_products(design), None
    if start is None:
        start = np.zeros((reduced.n_features, 1))
        for easier in _stages(loss, reduced):
            start = _newton(easier, reduced, start, _ROUGH).coef
    solution = _newton(loss, reduced, start, precision)
    if reduced is design:
        return solution
    coef = design.scores(solution.residual)
    state = loss.evaluate(design.output(coef), solution.state)
    # The residual of the reduced problem is kept: computed anew, its rounding errors would be multiplied by C.
    state = replace(state, residual=solution.residual, conjugate=solution.state.conjugate)
    return _certify(coef, state, coef, solution.n_iter)


def _stages(loss: Loss, design: AnyDesign) -> list[Loss]:
    """The same loss with smaller values of C, rising, to be solved first.

    With a large C (or large features) the loss is nearly a constraint and Newton's method wanders between active sets;
    the optimum for a tenth of C is a good start.
    """
    if "scaled" not in loss.parts:
        return []
    ones = loss.evaluate(np.zeros((len(loss.strata), 1)))
    size = float((design.scores(ones.residual) ** 2).sum()) / max(abs(ones.conjugate), np.finfo(float).tiny)
    n = int(np.ceil(np.log10(max(size, 1.0))))
    return [loss.scaled(10.0**-k) for k in range(n, 0, -1)]


def _same_products(design: AnyDesign) -> DenseDesign:
    """A square design L with ``LL' = XX'``."""
    values, vectors = linalg.eigh(design.sample_products())
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
    """Newton's direction by factorisation of ``I + X'HX``; None where the second part is so large that the first is lost."""
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
    """Newton's direction by conjugate gradients; the closer to the optimum, the more exact."""

    def system(weights: np.ndarray) -> np.ndarray:
        search = weights[:, None]
        return (search + design.scores(_curve(loss, state, design.output(search))))[:, 0]

    n = len(gradient)
    operator = LinearOperator((n, n), matvec=system, dtype=np.float64)
    return cg(operator, -gradient[:, 0], rtol=tolerance, maxiter=_MAX_INNER)[0][:, None]


def _curve(loss: Loss, state: LossState, outputs: np.ndarray) -> np.ndarray:
    """The loss's second derivative times a change of the outputs, eliminated offsets and covariates projected out."""
    result = curved(loss, state, 0, outputs)
    if loss.covariates is None:
        return result
    both = curved(loss, state, 0, loss.covariates)
    return result - both @ linalg.solve(eliminated_curvature(loss, state, 0), both.T @ outputs, assume_a="sym")


def _line_search(
    loss: Loss, state: LossState, coef: np.ndarray, outputs: np.ndarray, direction: np.ndarray, along: np.ndarray
) -> float:
    """Step to the minimum along the direction, where the slope of the convex objective changes its sign.

    The slope is increasing and piecewise linear: regula falsi with Illinois' rule, in a bracket, ends after
    a few evaluations. (SciPy's root finders end by the width of the bracket, not by the slope; with the best width for each
    search they took a fifth more evaluations.) 0 when the direction does not descend any more.
    """
    cross, square = float((coef * direction).sum()), float((direction * direction).sum())

    def slope(step: float) -> float:
        residual = loss.evaluate(outputs + step * along, state).residual
        return cross + step * square - float((residual * along).sum())

    low, slope_low = 0.0, slope(0.0)
    flat = -_FLAT * slope_low
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
        step = (low * slope_high - high * slope_low) / (slope_high - slope_low)
        value = slope(step)
        if value < 0.0:
            low, slope_low, slope_high = step, value, 0.5 * slope_high
        else:
            high, slope_high, slope_low = step, value, 0.5 * slope_low
    return step
