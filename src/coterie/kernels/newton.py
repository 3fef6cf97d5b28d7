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
from coterie.kernels.blocks import block_descent, block_newton, csr_hessians, csr_output, csr_scores
from coterie.kernels.losses import evaluate_loss

_TOLERANCE = 1e-13
# Rotations of Jacobi's method end if all elements beside the diagonal are below this share of the diagonal.
_OFF_DIAGONAL = 1e-15


class DesignArrays(NamedTuple):
    """The columns of a design: ``dense`` of shape (n_samples, n_features), or a matrix by rows if ``is_sparse``."""

    is_sparse: bool
    dense: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


class NewtonLimits(NamedTuple):
    """When the steps end; see :mod:`coterie.solver.master`."""

    max_steps: int
    extra_steps: int
    precision: float
    close_gap: float
    rounding_gap: float


@kernel(reorder=True)
def _dot(a, b):
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@kernel()
def _dense_output(array, coef, out):
    """Compute ``out = X coef``."""
    n_features, n_outputs = coef.shape
    if n_outputs == 1:
        column = np.empty(n_features)
        for j in range(n_features):
            column[j] = coef[j, 0]
        for i in range(array.shape[0]):
            out[i, 0] = _dot(array[i], column)
        return
    for i in range(array.shape[0]):
        for c in range(n_outputs):
            out[i, c] = 0.0
        for j in range(n_features):
            for c in range(n_outputs):
                out[i, c] += array[i, j] * coef[j, c]


@kernel()
def _dense_scores(array, residual, out):
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
def _dense_hessians(array, curvature, strata, signs, n_strata, previous, products, out):
    """Compute the Hessians of all outputs from dense columns, as ``csr_hessians`` does from sparse columns."""
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
def _output(design, coef, out):
    if design.is_sparse:
        csr_output(design.indptr, design.indices, design.values, coef, out)
    else:
        _dense_output(design.dense, coef, out)


@kernel()
def _scores(design, residual, out):
    if design.is_sparse:
        csr_scores(design.indptr, design.indices, design.values, residual, out)
    else:
        _dense_scores(design.dense, residual, out)


@kernel()
def _hessians(design, loss, curvature, previous, products, out):
    n_strata = loss.mass.shape[1]
    if design.is_sparse:
        csr_hessians(
            design.indptr, design.indices, design.values, curvature, loss.strata, loss.signs, n_strata,
            previous, products, out, 0, curvature.shape[0],
        )  # fmt: skip
    else:
        _dense_hessians(design.dense, curvature, loss.strata, loss.signs, n_strata, previous, products, out)


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
def _minimise_model(hessian, gradient, start, blocks, values, vectors, linear, coef):
    """Minimise the quadratic model of a Newton step; see ``minimise_block_model``. Writes ``coef``."""
    n_outputs, size, _ = hessian.shape
    for c in range(n_outputs):
        for i in range(size):
            linear[i, c] = gradient[i, c] - _column_product(hessian[c, i], start, c)
            coef[i, c] = start[i, c]
        for t in range(blocks.shape[0] - 1):
            _diagonalise(hessian[c], blocks[t], blocks[t + 1] - blocks[t], values[c], vectors[c])
    for sweeps in (20, 50, 200, 500):
        if block_descent(hessian, linear, blocks, values, vectors, coef, sweeps, _TOLERANCE) < sweeps:
            break
        block_newton(hessian, linear, blocks, coef)


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
def proximal_newton(design, loss, blocks, coef, guess, limits):
    r"""Make proximal Newton steps from the weights ``coef`` and return the best solution.

    Parameters
    ----------
    design : DesignArrays
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

    Returns
    -------
    coef, offsets, residual, curvature : ndarray
        Weights of shape (n_features, n_outputs), offsets of shape (n_outputs, n_strata), residual and curvature of shape
        (n_outputs, n_samples).
    value, conjugate, primal, dual, level : float
        Value and conjugate of the loss, both objectives, and the larger of the blocks' half squared norms of scores.
    n_iter : int
        Number of Newton steps.
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
    value, conjugate = evaluate_loss(loss, outputs, guess, offsets, residual, curvature)
    best_gap, best_value, best_conjugate, best_primal, best_dual, best_level, n_iter = np.inf, 0.0, 0.0, 0.0, 0.0, 0.0, -1
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
            best_level = 0.5 * largest * largest
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
        _hessians(design, loss, curvature, previous, products, hessian)
        _minimise_model(hessian, gradient, coef, blocks, values, vectors, linear, target)
        predicted = 0.5 * _sum_of_norms(target, blocks)[0] ** 2 - 0.5 * norm_sum * norm_sum
        for j in range(size):
            for c in range(n_outputs):
                direction[j, c] = target[j, c] - coef[j, c]
                predicted += gradient[j, c] * direction[j, c]
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
            value, conjugate = evaluate_loss(loss, trial_outputs, offsets, trial_offsets, trial_residual, trial_curvature)
            reached = 0.5 * _sum_of_norms(trial, blocks)[0] ** 2 + value
            if reached <= primal + 1e-4 * step * predicted + 1e-15 * abs(primal):
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
        best_value, best_conjugate, best_primal, best_dual, best_level, n_iter,
    )  # fmt: skip
