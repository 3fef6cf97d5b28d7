r"""Proximal Newton steps of the master problem in one call, without Python between the steps.

The mathematics is that of :mod:`coterie.solver.master` and :mod:`coterie.solver.block_problem`, which hold the general solver.
This one is for problems with few columns, in which the calls between small kernels would take longer than the arithmetic.
Paths of cross-validation and confidence solve thousands of such problems. The kernel releases the GIL for all steps together,
so these paths run in parallel on ordinary threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie._numba import kernel
from coterie.kernels.blocks import ROUNDING, SWEEPS, add_product, block_descent, block_newton
from coterie.kernels.cox import cox_loss, subtract_coupling
from coterie.kernels.losses import evaluate_loss

_TOLERANCE = 1e-13
# Rotations of Jacobi's method end if all elements beside the diagonal are below this share of the diagonal.
_OFF_DIAGONAL = 1e-15


class NewtonLimits(NamedTuple):
    """When the steps end; see :mod:`coterie.solver.master`."""

    max_steps: int
    extra_steps: int
    precision: float
    close_gap: float
    rounding_gap: float


class NewtonResult(NamedTuple):
    """Results of :func:`proximal_newton`.

    Attributes
    ----------
    coef, offsets, residual, curvature : ndarray
        Weights of shape (n_features, n_outputs), offsets of shape (n_outputs, n_strata), residual and curvature of shape
        (n_outputs, n_samples).
    value, conjugate, primal, dual : float
        Value and conjugate of the loss, and both objectives.
    gap : float
        Relative gap of the objectives.
    n_iter : int
        Number of Newton steps.
    """

    coef: np.ndarray
    offsets: np.ndarray
    residual: np.ndarray
    curvature: np.ndarray
    value: float
    conjugate: float
    primal: float
    dual: float
    gap: float
    n_iter: int


@kernel(reorder=True)
def dot(a, b):
    """Return the product of two vectors."""
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@kernel()
def _output(array, coef, out):
    """Compute ``out = X coef``."""
    n_features, n_outputs = coef.shape
    if n_outputs == 1:
        column = np.empty(n_features)
        for j in range(n_features):
            column[j] = coef[j, 0]
        for i in range(array.shape[0]):
            out[i, 0] = dot(array[i], column)
        return
    for i in range(array.shape[0]):
        for c in range(n_outputs):
            out[i, c] = 0.0
        for j in range(n_features):
            for c in range(n_outputs):
                out[i, c] += array[i, j] * coef[j, c]


@kernel()
def _scores(array, residual, out):
    """Compute ``out = X' residual'`` for a residual by outputs. Skips zero residuals."""
    n_features, n_outputs = out.shape
    total = np.empty(n_features)
    for c in range(n_outputs):
        total[:] = 0.0
        for i in range(array.shape[0]):
            r = residual[c, i]
            if r != 0.0:
                for j in range(n_features):
                    total[j] += array[i, j] * r
        for j in range(n_features):
            out[j, c] = total[j]


@kernel()
def _add_row(row, weight, products):
    """Add the weighted outer product of a row, in the lower half."""
    for a in range(row.shape[0]):
        scaled = weight * row[a]
        for b in range(a + 1):
            products[a, b] += scaled * row[b]


@kernel()
def _hessians(array, curvature, strata, signs, n_strata, previous, products, out):
    """Compute the Hessians of all outputs, with offsets projected out, as ``csr_hessians`` does for sparse columns."""
    n_samples, size = array.shape
    mixed = np.empty((n_strata, size))
    total = np.empty(n_strata)
    for c in range(curvature.shape[0]):
        n_active = 0
        n_changed = 0
        for i in range(n_samples):
            n_active += curvature[c, i] != 0.0
            n_changed += curvature[c, i] != previous[c, i]
        if n_changed > n_active:  # Recomputing is less work, and more accurate.
            previous[c, :] = 0.0
            products[c, :, :] = 0.0
        mixed[:, :] = 0.0
        total[:] = 0.0
        for i in range(n_samples):
            w = curvature[c, i]
            if w != previous[c, i]:
                _add_row(array[i], w - previous[c, i], products[c])
                previous[c, i] = w
            if w != 0.0 and n_strata > 0:
                e = strata[i, c]
                total[e] += w
                signed = w * signs[i, c]
                for j in range(size):
                    mixed[e, j] += signed * array[i, j]
        for a in range(size):
            for b in range(a + 1):
                value = products[c, a, b]
                for e in range(n_strata):
                    if total[e] > 0.0:
                        value -= mixed[e, a] * mixed[e, b] / total[e]
                out[c, a, b] = value
                out[c, b, a] = value


@kernel()
def _sum_of_norms(values, blocks):
    """Return the sum of the blocks' Frobenius norms, and the largest norm."""
    total = 0.0
    largest = 0.0
    for t in range(blocks.shape[0] - 1):
        square = 0.0
        for j in range(blocks[t], blocks[t + 1]):
            for c in range(values.shape[1]):
                square += values[j, c] ** 2
        total += np.sqrt(square)
        largest = max(largest, np.sqrt(square))
    return total, largest


@kernel()
def _diagonalise(matrix, first, width, values, vectors):
    """Write eigenvalues and eigenvectors of a diagonal block of a symmetric matrix, by Jacobi's cyclic rotations."""
    own = np.empty((width, width))
    for i in range(width):
        for j in range(width):
            own[i, j] = matrix[first + i, first + j]
            vectors[first + i, j] = 1.0 if i == j else 0.0
    for _ in range(60):
        off = 0.0
        for i in range(width):
            for j in range(i):
                off = max(off, abs(own[i, j]) / max(np.sqrt(abs(own[i, i] * own[j, j])), 1e-300))
        if off <= _OFF_DIAGONAL:
            break
        for i in range(1, width):
            for j in range(i):
                if own[i, j] == 0.0:
                    continue
                ratio = (own[i, i] - own[j, j]) / (2.0 * own[i, j])
                tangent = 1.0 / (abs(ratio) + np.sqrt(1.0 + ratio * ratio))
                tangent = -tangent if ratio < 0.0 else tangent
                cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
                sine = tangent * cosine
                for k in range(width):
                    left, right = own[k, j], own[k, i]
                    own[k, j], own[k, i] = cosine * left - sine * right, sine * left + cosine * right
                for k in range(width):
                    left, right = own[j, k], own[i, k]
                    own[j, k], own[i, k] = cosine * left - sine * right, sine * left + cosine * right
                    left, right = vectors[first + k, j], vectors[first + k, i]
                    vectors[first + k, j] = cosine * left - sine * right
                    vectors[first + k, i] = sine * left + cosine * right
    for i in range(width):
        values[first + i] = max(own[i, i], 0.0)


@kernel()
def _newton_on_blocks(hessian, linear, blocks, coef):
    r"""Make damped Newton steps on :math:`\tfrac12(\sum_t\|W_t\|)^2 + \langle G, W\rangle + \tfrac12\sum_c W_c'H_cW_c`.

    Zero blocks are held at zero. ``coef`` of shape (features, outputs) is updated in place, and the objective never
    increases, up to rounding. ``block_newton`` does the same for one output.
    """
    n_features, n_outputs = coef.shape
    rows = np.empty(n_features, np.int64)
    owner = np.empty(n_features, np.int64)
    n = 0
    n_blocks = 0
    for t in range(blocks.shape[0] - 1):
        size = 0.0
        for j in range(blocks[t], blocks[t + 1]):
            for c in range(n_outputs):
                size += coef[j, c] ** 2
        if size > 0.0:
            for j in range(blocks[t], blocks[t + 1]):
                rows[n] = j
                owner[n] = n_blocks
                n += 1
            n_blocks += 1
    if n == 0:
        return
    own = np.empty((n_outputs, n, n))
    slope = np.empty((n_outputs, n))
    weights = np.empty((n_outputs, n))
    curved = np.zeros((n_outputs, n))
    for c in range(n_outputs):
        for i in range(n):
            slope[c, i] = linear[rows[i], c]
            weights[c, i] = coef[rows[i], c]
            for j in range(n):
                own[c, i, j] = hessian[c, rows[i], rows[j]]
        add_product(own[c], weights[c], curved[c])
    norms = np.empty(n_blocks)
    value = _model_value(slope, weights, curved, owner, norms)
    direction = np.empty((n_outputs, n))
    along = np.empty((n_outputs, n))
    trial = np.empty((n_outputs, n))
    trial_curved = np.empty((n_outputs, n))
    trial_norms = np.empty(n_blocks)
    for _ in range(10):
        if not _newton_directions(own, slope, weights, curved, owner, norms, direction):
            break
        along[:, :] = 0.0
        for c in range(n_outputs):
            add_product(own[c], direction[c], along[c])
        step = 1.0
        found = False
        while step > 1e-4 and not found:
            for c in range(n_outputs):
                for i in range(n):
                    trial[c, i] = weights[c, i] + step * direction[c, i]
                    trial_curved[c, i] = curved[c, i] + step * along[c, i]
            trial_value = _model_value(slope, trial, trial_curved, owner, trial_norms)
            found = trial_value < value or (step == 1.0 and trial_value <= value + ROUNDING * abs(value))
            for t in range(n_blocks):
                found = found and trial_norms[t] > 0.0
            step *= 0.5
        if not found:
            break
        improvement = value - trial_value
        value = trial_value
        weights, trial = trial, weights
        curved, trial_curved = trial_curved, curved
        norms, trial_norms = trial_norms, norms
        if improvement <= 1e-15 * abs(value):
            break
    for c in range(n_outputs):
        for i in range(n):
            coef[rows[i], c] = weights[c, i]


@kernel()
def _newton_directions(own, slope, weights, curved, owner, norms, direction):
    r"""Write the Newton direction of several outputs. Returns False if the system is not positive definite.

    The system is :math:`\mathrm{diag}_c(H_c + \Lambda) + U(11' - \mathrm{diag}\,\lambda)U'`. The outputs are factorised
    separately, and the ranks that couple them, one per block, are added by Woodbury's identity.
    """
    n_outputs, n = weights.shape
    n_blocks = norms.shape[0]
    total = norms.sum()
    solved = np.zeros((n_outputs, n, n_blocks + 1))  # Block vectors, then the right-hand side.
    coupling = np.zeros((n_blocks, n_blocks + 1))
    system = np.empty((n, n))
    for c in range(n_outputs):
        for i in range(n):
            unit = weights[c, i] / norms[owner[i]]
            solved[c, i, owner[i]] = unit
            solved[c, i, n_blocks] = -slope[c, i] - curved[c, i] - total * unit
            for j in range(i + 1):
                system[i, j] = own[c, i, j]
            system[i, i] += total / norms[owner[i]]
        if not factorise(system):
            return False
        solve_columns(system, solved[c])
        for i in range(n):
            unit = weights[c, i] / norms[owner[i]]
            for k in range(n_blocks + 1):
                coupling[owner[i], k] += unit * solved[c, i, k]
    # (I + M K) ranks = M k with M = 11' - diag(lambda).
    sums = np.zeros(n_blocks + 1)
    for t in range(n_blocks):
        for k in range(n_blocks + 1):
            sums[k] += coupling[t, k]
    for t in range(n_blocks):
        for k in range(n_blocks + 1):
            coupling[t, k] = sums[k] - total / norms[t] * coupling[t, k]
        coupling[t, t] += 1.0
    if not _eliminate(coupling):
        return False
    for c in range(n_outputs):
        for i in range(n):
            value = solved[c, i, n_blocks]
            for t in range(n_blocks):
                value -= solved[c, i, t] * coupling[t, n_blocks]
            direction[c, i] = value
    return True


@kernel()
def _eliminate(system):
    """Solve a square system by elimination with pivoting. The last column is the right-hand side, which is overwritten."""
    n = system.shape[0]
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(system[i, k]) > abs(system[pivot, k]):
                pivot = i
        if not abs(system[pivot, k]) > 0.0:
            return False
        if pivot != k:
            for j in range(k, n + 1):
                system[k, j], system[pivot, j] = system[pivot, j], system[k, j]
        for i in range(k + 1, n):
            factor = system[i, k] / system[k, k]
            if factor != 0.0:
                for j in range(k + 1, n + 1):
                    system[i, j] -= factor * system[k, j]
    for i in range(n - 1, -1, -1):
        value = system[i, n]
        for j in range(i + 1, n):
            value -= system[i, j] * system[j, n]
        system[i, n] = value / system[i, i]
    return True


@kernel()
def _model_value(linear, weights, curved, owner, norms):
    """Return the objective of :func:`_newton_on_blocks`, and write the norms of the blocks to ``norms``."""
    norms[:] = 0.0
    value = 0.0
    for c in range(weights.shape[0]):
        for i in range(weights.shape[1]):
            norms[owner[i]] += weights[c, i] ** 2
            value += weights[c, i] * (linear[c, i] + 0.5 * curved[c, i])
    total = 0.0
    for t in range(norms.shape[0]):
        norms[t] = np.sqrt(norms[t])
        total += norms[t]
    return value + 0.5 * total * total


@kernel()
def factorise(system):
    """Replace the lower half of a symmetric matrix by its Cholesky factor. Returns False if it is not positive definite."""
    n = system.shape[0]
    column = np.empty(n)
    for j in range(n):
        if not system[j, j] > 0.0:
            return False
        pivot = np.sqrt(system[j, j])
        system[j, j] = pivot
        for i in range(j + 1, n):
            system[i, j] /= pivot
            column[i] = system[i, j]
        for i in range(j + 1, n):
            factor = column[i]
            for k in range(j + 1, i + 1):
                system[i, k] -= factor * column[k]
    return True


@kernel()
def solve_columns(factor, right):
    """Solve with a Cholesky factor for several columns, which are overwritten."""
    n, n_columns = right.shape
    for i in range(n):
        for k in range(i):
            for r in range(n_columns):
                right[i, r] -= factor[i, k] * right[k, r]
        for r in range(n_columns):
            right[i, r] /= factor[i, i]
    for i in range(n - 1, -1, -1):
        for r in range(n_columns):
            right[i, r] /= factor[i, i]
        for k in range(i):
            for r in range(n_columns):
                right[k, r] -= factor[i, k] * right[i, r]


@kernel()
def _minimise_model(hessian, gradient, start, blocks, values, vectors, linear, coef, several):
    """Minimise the quadratic model of a Newton step; see ``minimise_block_model``. Writes ``coef``."""
    n_outputs, size, _ = hessian.shape
    for c in range(n_outputs):
        for i in range(size):
            linear[i, c] = gradient[i, c] - _column_product(hessian[c, i], start, c)
            coef[i, c] = start[i, c]
        for t in range(blocks.shape[0] - 1):
            _diagonalise(hessian[c], blocks[t], blocks[t + 1] - blocks[t], values[c], vectors[c])
    line, only = np.empty(size), np.empty(size)
    for sweeps in SWEEPS:
        if block_descent(hessian, linear, blocks, values, vectors, coef, sweeps, _TOLERANCE) < sweeps:
            break
        if several is None:
            for j in range(size):
                line[j] = linear[j, 0]
                only[j] = coef[j, 0]
            block_newton(hessian[0], line, blocks, only)
            for j in range(size):
                coef[j, 0] = only[j]
        else:
            _newton_on_blocks(hessian, linear, blocks, coef)


@kernel()
def _predicted_change(coef, target, gradient, blocks, direction):
    """Return the change of the objective that its slope predicts for a step from ``coef`` to ``target``.

    Writes the ``direction`` of the step.
    """
    change = 0.5 * _sum_of_norms(target, blocks)[0] ** 2 - 0.5 * _sum_of_norms(coef, blocks)[0] ** 2
    for j in range(coef.shape[0]):
        for c in range(coef.shape[1]):
            direction[j, c] = target[j, c] - coef[j, c]
            change += gradient[j, c] * direction[j, c]
    return change


@kernel()
def _decreases(value, before, predicted):
    """Return True if an objective has decreased by enough of the predicted change (Armijo), up to rounding."""
    return value <= before + 1e-4 * predicted + 1e-15 * abs(before)


@kernel()
def _column_product(row, coef, c):
    total = 0.0
    for j in range(row.shape[0]):
        total += row[j] * coef[j, c]
    return total


@kernel()
def _copy(source, target):
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@kernel()
def _evaluate(loss, smooth, risk_sets, outputs, guess, offsets, residual, curvature):
    """Return value and conjugate of a loss at given outputs; see ``evaluate_loss``."""
    if risk_sets is None:
        return evaluate_loss(loss, smooth, outputs, guess, offsets, residual, curvature)
    return cox_loss(risk_sets, loss, outputs, residual, curvature)


@kernel()
def proximal_newton(design, loss, blocks, coef, guess, limits, several, smooth, risk_sets):
    r"""Make proximal Newton steps from the weights ``coef`` and return the best solution.

    Parameters
    ----------
    design : ndarray of shape (n_samples, n_features)
        The columns.
    loss : LossArrays
        The loss of all samples of the design.
    blocks : ndarray of shape (n_blocks + 1,)
        Block t consists of the columns ``blocks[t]:blocks[t + 1]``.
    coef : ndarray of shape (n_features, n_outputs)
        Initial weights. Overwritten.
    guess : ndarray of shape (n_outputs, n_strata)
        Initial offsets.
    limits : NewtonLimits
        When to stop.
    several : bool or None
        True if there are several outputs, None if there is one. Code of the other case is then not compiled.
    smooth : bool or None
        :func:`~coterie.kernels.losses.smooth_marker` of the loss.
    risk_sets : RiskSets or None
        Risk sets of the loss, if it is that of Cox's model.

    Returns
    -------
    tuple
        The fields of :class:`NewtonResult`.
    """
    size, n_outputs = coef.shape
    n_samples = loss.weight.shape[0]
    by_stratum, by_output, by_sample, by_feature = guess.shape, (n_outputs, n_samples), (n_samples, n_outputs), coef.shape
    offsets, trial_offsets, best_offsets = np.empty(by_stratum), np.empty(by_stratum), np.empty(by_stratum)
    residual, trial_residual, best_residual = np.empty(by_output), np.empty(by_output), np.empty(by_output)
    curvature, trial_curvature, best_curvature = np.empty(by_output), np.empty(by_output), np.empty(by_output)
    outputs, trial_outputs, along = np.empty(by_sample), np.empty(by_sample), np.empty(by_sample)
    target, trial, best_coef = np.empty(by_feature), np.empty(by_feature), np.empty(by_feature)
    direction, gradient, linear = np.empty(by_feature), np.empty(by_feature), np.empty(by_feature)
    hessian = np.empty((n_outputs, size, size))
    products, previous = np.zeros((n_outputs, size, size)), np.zeros((n_outputs, n_samples))
    widest = 1
    for t in range(blocks.shape[0] - 1):
        widest = max(widest, blocks[t + 1] - blocks[t])
    values, vectors = np.empty((n_outputs, size)), np.empty((n_outputs, size, widest))

    _output(design, coef, outputs)
    value, conjugate = _evaluate(loss, smooth, risk_sets, outputs, guess, offsets, residual, curvature)
    best_gap, best_value, best_conjugate, best_primal, best_dual, n_iter = np.inf, 0.0, 0.0, 0.0, 0.0, -1
    stalled = 0
    last = limits.max_steps + limits.extra_steps
    for iteration in range(last + 1):
        _scores(design, residual, gradient)
        norm_sum, _ = _sum_of_norms(coef, blocks)
        _, largest = _sum_of_norms(gradient, blocks)
        primal = 0.5 * norm_sum * norm_sum + value
        dual = 0.5 * largest * largest + conjugate
        gap = (dual + primal) / max(abs(dual), abs(primal), 2.2250738585072014e-308)
        gap = max(gap, 0.0) if np.isfinite(gap) else np.inf
        stalled = stalled + 1 if n_iter >= 0 and 0.5 * best_gap <= gap < limits.rounding_gap else 0
        if n_iter < 0 or gap <= best_gap:
            best_gap, best_value, best_conjugate, best_primal, best_dual = gap, value, conjugate, primal, dual
            n_iter = iteration
            _copy(coef, best_coef)
            _copy(offsets, best_offsets)
            _copy(residual, best_residual)
            _copy(curvature, best_curvature)
        over = iteration == last or (iteration == limits.max_steps and best_gap > limits.close_gap)
        if gap <= limits.precision or stalled >= 3 or over:
            break
        for j in range(size):
            for c in range(n_outputs):
                gradient[j, c] = -gradient[j, c]
        _hessians(design, curvature, loss.strata, loss.signs, guess.shape[1], previous, products, hessian)
        if risk_sets is not None:
            subtract_coupling(risk_sets, loss, outputs, design, hessian[0])
        _minimise_model(hessian, gradient, coef, blocks, values, vectors, linear, target, several)
        predicted = _predicted_change(coef, target, gradient, blocks, direction)
        _output(design, direction, along)
        step = 1.0
        found = False
        for _ in range(40):
            for j in range(size):
                for c in range(n_outputs):
                    trial[j, c] = coef[j, c] + step * direction[j, c]
            for i in range(n_samples):
                for c in range(n_outputs):
                    trial_outputs[i, c] = outputs[i, c] + step * along[i, c]
            value, conjugate = _evaluate(
                loss, smooth, risk_sets, trial_outputs, offsets, trial_offsets, trial_residual, trial_curvature
            )
            if _decreases(0.5 * _sum_of_norms(trial, blocks)[0] ** 2 + value, primal, step * predicted):
                found = True
                break
            step *= 0.5
        if not found:
            break
        # Names are swapped instead of copying arrays.
        coef, trial = trial, coef
        outputs, trial_outputs = trial_outputs, outputs
        offsets, trial_offsets = trial_offsets, offsets
        residual, trial_residual = trial_residual, residual
        curvature, trial_curvature = trial_curvature, curvature
    return (
        best_coef, best_offsets, best_residual, best_curvature,
        best_value, best_conjugate, best_primal, best_dual, best_gap, n_iter,
    )  # fmt: skip
