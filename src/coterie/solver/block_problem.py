r"""The problem over blocks: penalty, certificate of a solution, and quadratic model of a Newton step.

The model is a squared sum of block norms plus a quadratic:

.. math:: \min_W \tfrac12\Big(\sum_t\|W_t\|\Big)^2 + \langle G, W - W^0\rangle
          + \tfrac12\sum_c (W - W^0)_c' H_c (W - W^0)_c

Block coordinate descent determines which blocks are zero. On the others the problem is smooth, and a few Newton steps solve it
even if the columns are ill-conditioned.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from coterie.kernels.blocks import ROUNDING, SWEEPS, block_descent, block_newton
from coterie.solver.design import AnyDesign
from coterie.solver.loss import Loss, LossState

_TOLERANCE = 1e-13
# Largest number of weights of one output for which compiled loops are faster than LAPACK with its call overhead.
MAX_COMPILED = 100


@dataclass(frozen=True)
class Solution:
    """Result of a solver.

    Attributes
    ----------
    objective : float
        The dual objective :math:`D`, an upper bound on the optimum :math:`\\theta`.
    bound : float
        :math:`-P`, a lower bound on the optimum.
    gap : float
        ``(objective - bound) / scale``, where the scale is the larger of their absolute values.
    n_iter : int
        Number of Newton steps.
    coef : ndarray of shape (n_selected, n_outputs)
        Weights of the design's columns, in order of the blocks.
    residual : ndarray of shape (n_samples, n_outputs)
        The dual solution :math:`\\tilde\\alpha`, which determines the scores of the next round.
    state : LossState
        The loss at the weights, with intercept and margin.
    """

    objective: float
    bound: float
    gap: float
    n_iter: int
    coef: np.ndarray
    residual: np.ndarray
    state: LossState

    @classmethod
    def certified(
        cls, primal: float, dual: float, coef: np.ndarray, residual: np.ndarray, state: LossState, n_iter: int
    ) -> Solution:
        """Return a pair of weights and feasible residuals with its certificate, the relative duality gap."""
        gap = (dual + primal) / max(abs(dual), abs(primal), sys.float_info.min)
        return cls(dual, -primal, max(gap, 0.0) if np.isfinite(gap) else np.inf, n_iter, coef, residual, state)


def block_norms(coef: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return the Frobenius norm of each block of rows. Block t consists of the rows ``blocks[t]:blocks[t + 1]``."""
    if len(blocks) < 2:
        return np.zeros(0)
    return np.sqrt(np.add.reduceat((coef * coef).sum(axis=1), blocks[:-1]))


def penalty(coef: np.ndarray, blocks: np.ndarray) -> float:
    r"""Return the primal penalty :math:`\frac12(\sum_t\|W_t\|)^2`."""
    return 0.5 * float(block_norms(coef, blocks).sum()) ** 2


def constraint(scores: np.ndarray, blocks: np.ndarray) -> float:
    r"""Return the dual of the penalty, :math:`\max_t\frac12\|X_t'\tilde\alpha\|^2`, from scores :math:`X'\tilde\alpha`."""
    return 0.5 * float(block_norms(scores, blocks).max(initial=0.0)) ** 2


def loss_hessian(loss: Loss, design: AnyDesign, state: LossState) -> np.ndarray:
    """Return the Hessian of the loss in the weights, of shape (n_outputs, p, p), with offsets projected out."""
    hessian = design.hessians(state.curvature, loss.strata, loss.signs, loss.n_strata)
    if state.coupling is not None:
        coupled = design.coupled(state.coupling)
        hessian -= coupled.T @ coupled
    if loss.covariates is not None:
        for c in range(loss.n_outputs):
            cross = design.scores(curvature_product(loss, state, c, loss.covariates))
            hessian[c] -= cross @ linalg.solve(eliminated_curvature(loss, state, c), cross.T, assume_a="sym")
    return hessian


def curvature_product(loss: Loss, state: LossState, c: int, columns: np.ndarray) -> np.ndarray:
    """Return the second derivative of an output's loss times some columns. Offsets are eliminated, covariates are not."""
    result = state.curvature[:, [c]] * columns
    if state.coupling is not None:
        result -= state.coupling.adjoint(state.coupling.apply(columns))
    if not loss.n_strata or not result.shape[1]:
        return result
    strata, curvature, signs = loss.strata[:, c], state.curvature[:, c], loss.signs[:, c]
    total = np.bincount(strata, weights=curvature, minlength=loss.n_strata)[:, None]
    moved = np.column_stack([np.bincount(strata, weights=signs * own, minlength=loss.n_strata) for own in result.T])
    mean = np.divide(moved, total, out=np.zeros_like(moved), where=total > 0)
    return result - (curvature * signs)[:, None] * mean[strata]


def eliminated_curvature(loss: Loss, state: LossState, c: int) -> np.ndarray:
    """Return the second derivative in the weights of the covariates that are eliminated from an output."""
    assert loss.covariates is not None
    matrix = loss.covariates.T @ curvature_product(loss, state, c, loss.covariates)
    matrix[np.diag_indices_from(matrix)] += loss.covariate_penalty
    return matrix


def minimise_block_model(hessian: np.ndarray, gradient: np.ndarray, start: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return the minimiser of the model around ``start``.

    Parameters
    ----------
    hessian : ndarray of shape (n_outputs, p, p)
        Hessian of the loss at ``start``.
    gradient, start : ndarray of shape (p, n_outputs)
        Gradient of the loss at ``start``, and the weights ``start``.
    blocks : ndarray of shape (n_blocks + 1,)
        Block t consists of the rows ``blocks[t]:blocks[t + 1]``.
    """
    linear = gradient - np.einsum("cij,jc->ic", hessian, start)
    values, vectors = _block_eigenbases(hessian, blocks)
    coef = np.ascontiguousarray(start, dtype=np.float64).copy()
    for sweeps in SWEEPS:
        done = block_descent(hessian, linear, blocks, values, vectors, coef, sweeps, _TOLERANCE)
        if done < sweeps:
            break
        if len(hessian) == 1 and len(coef) <= MAX_COMPILED:
            block_newton(hessian[0], linear[:, 0], blocks, coef[:, 0])
        else:
            coef = _newton_on_active_blocks(hessian, linear, coef, blocks)
    return coef


def _block_eigenbases(hessian: np.ndarray, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n_outputs, p, _ = hessian.shape
    widths = np.diff(blocks)
    values = np.maximum(hessian.diagonal(axis1=1, axis2=2), 0.0)  # Correct for blocks of one, the most frequent case.
    vectors = np.zeros((n_outputs, p, int(widths.max(initial=1))))
    vectors[:, :, 0] = 1.0
    for rows in _wider_blocks(blocks):
        value, vectors[:, rows, : rows.shape[1]] = np.linalg.eigh(hessian[:, rows[:, :, None], rows[:, None, :]])
        values[:, rows] = np.maximum(value, 0.0)
    return values, vectors


def _wider_blocks(blocks: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the rows of the blocks with more than one row, as an array of shape (n_blocks, width) per width."""
    widths = np.diff(blocks)
    for width in np.unique(widths[widths > 1]).tolist():
        yield blocks[:-1][widths == width][:, None] + np.arange(width)


def _newton_on_active_blocks(hessian: np.ndarray, linear: np.ndarray, coef: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Make a few damped Newton steps with the zero blocks held at zero. The result is never worse than ``coef``."""
    widths, norms = np.diff(blocks), block_norms(coef, blocks)
    if not norms.any():
        return coef
    rows = np.repeat(norms > 0.0, widths)
    active = hessian if rows.all() else np.ascontiguousarray(hessian[:, rows][:, :, rows])
    bounds = np.append(0, np.cumsum(widths[norms > 0.0]))
    best = _newton_steps(active, linear[rows], coef[rows], bounds)
    result = np.zeros_like(coef)
    result[rows] = best
    return result


def _newton_steps(hessian: np.ndarray, linear: np.ndarray, coef: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Make damped Newton steps from weights without zero blocks."""

    def value(coef: np.ndarray, norms: np.ndarray, curved: np.ndarray) -> float:
        return 0.5 * float(norms.sum()) ** 2 + float(np.vdot(coef, linear + 0.5 * curved))

    norms, curved = block_norms(coef, blocks), _hessian_product(hessian, coef)
    lowest = value(coef, norms, curved)
    for _ in range(10):
        direction = _newton_direction(hessian, linear + curved, coef, norms, blocks)
        if direction is None:
            return coef
        along = _hessian_product(hessian, direction)
        step = 1.0
        while step > 1e-4:
            trial = coef + step * direction
            trial_norms, trial_curved = block_norms(trial, blocks), curved + step * along
            trial_value = value(trial, trial_norms, trial_curved)
            decreased = trial_value < lowest or (step == 1.0 and trial_value <= lowest + ROUNDING * abs(lowest))
            if decreased and trial_norms.min() > 0.0:
                break
            step *= 0.5
        else:
            return coef
        improvement = lowest - trial_value
        coef, norms, curved, lowest = trial, trial_norms, trial_curved, trial_value
        if improvement <= ROUNDING * abs(lowest):
            break
    return coef


def _hessian_product(hessian: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Return the product of each output's Hessian with its weights."""
    if len(hessian) == 1:
        return hessian[0] @ coef
    return np.matmul(hessian, coef.T[:, :, None])[:, :, 0].T


def _newton_direction(
    hessian: np.ndarray, slope: np.ndarray, coef: np.ndarray, norms: np.ndarray, blocks: np.ndarray
) -> np.ndarray | None:
    r"""Return the Newton direction at nonzero blocks. None if the model is not positive definite to rounding.

    With the unit vectors :math:`u_t = W_t/\|W_t\|`, the sum S of the norms and :math:`\lambda_t = S/\|W_t\|`, the second
    derivative of :math:`\frac12 S^2` is :math:`\Lambda + U(11' - \mathrm{diag}\,\lambda)U'`: a diagonal plus one rank per
    block. With one output, the whole matrix is factorised. With several outputs, each is factorised separately, and the few
    ranks that couple them are added by Woodbury's identity.
    """
    total, widths = norms.sum(), np.diff(blocks)
    curvature = total / norms
    unit = coef / np.repeat(norms, widths)[:, None]
    right = -slope - total * unit
    if len(hessian) == 1:
        return _one_output(hessian[0], right, curvature, unit, blocks)
    owner = np.repeat(np.arange(len(norms)), widths)
    n_blocks = len(norms)
    spread = np.zeros((len(owner), n_blocks + 1))  # block vectors of one output, then the right-hand side
    solved = np.empty((coef.shape[1], len(owner), n_blocks + 1))
    coupling = np.zeros((n_blocks, n_blocks + 1))
    for c, part in enumerate(hessian):
        spread[np.arange(len(owner)), owner] = unit[:, c]
        spread[:, -1] = right[:, c]
        system = part.copy()
        system.ravel()[:: len(system) + 1] += curvature[owner]  # ravel() is a view, because the copy is contiguous.
        factor = _factorised(system)
        if factor is None:
            return None
        solved[c], _ = lapack.dpotrs(factor, spread, lower=1)
        coupling += spread[:, :-1].T @ solved[c]
    middle = np.ones((n_blocks, n_blocks)) - np.diag(curvature)
    try:
        ranks = np.linalg.solve(np.eye(n_blocks) + middle @ coupling[:, :-1], middle @ coupling[:, -1])
    except np.linalg.LinAlgError:
        return None
    return (solved[:, :, -1] - solved[:, :, :-1] @ ranks).T


def _one_output(
    hessian: np.ndarray, right: np.ndarray, curvature: np.ndarray, unit: np.ndarray, blocks: np.ndarray
) -> np.ndarray | None:
    """Return the Newton direction for one output.

    The norm of a block of one row has no curvature, so most blocks only contribute to the common rank-one term.
    """
    system = unit * unit.T
    system += hessian
    owner = np.repeat(np.arange(len(blocks) - 1), np.diff(blocks))
    for rows in _wider_blocks(blocks):
        across, own = unit[rows, 0], curvature[owner[rows]]
        system[rows[:, :, None], rows[:, None, :]] -= (own * across)[:, :, None] * across[:, None, :]
        system[rows, rows] += own
    factor = _factorised(system)
    if factor is None:
        return None
    solved, _ = lapack.dpotrs(factor, right, lower=1)
    return np.asarray(solved)


def _factorised(system: np.ndarray) -> np.ndarray | None:
    """Return the lower Cholesky factor of a symmetric matrix. None if it is not positive definite. Overwrites the matrix.

    LAPACK is called directly, because SciPy's checks take longer than the factorisation if there are few weights. The
    transposed matrix is equal and in the column-major order that LAPACK requires, so it is not copied.
    """
    factor, failed = lapack.dpotrf(system.T, lower=1, clean=0, overwrite_a=1)
    return None if failed else np.asarray(factor)
