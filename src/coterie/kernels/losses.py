"""The losses in compiled form: one kernel evaluates them, in one version for smooth losses and one for all others.

A new loss adds a constant and a branch of :func:`evaluate_loss`. A loss without a branch works as well: the general solver
then calls its Python methods.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie._numba import kernel, read_only
from coterie.kernels.hinge import squared_hinges
from coterie.kernels.smooth import smooth_losses

# Other kinds are those of coterie.kernels.smooth.
SQUARED_HINGE = 0
SQUARED = 1

# Samples per partial sum. Partial sums lose fewer digits in sums over millions of samples.
_SUM_SAMPLES = 512
NOTHING = read_only(np.empty(0))


class LossArrays(NamedTuple):
    """A loss with its targets, as kernels use it. All arrays are read-only.

    Attributes
    ----------
    kind : int
        The loss: ``SQUARED_HINGE``, ``SQUARED``, or one of :mod:`coterie.kernels.smooth`.
    codes : ndarray of int of shape (n_samples,)
        Class codes. Zeros for numbers.
    classes : ndarray of int of shape (n_outputs,)
        The class that each output separates from the others.
    targets : ndarray of shape (n_targets * n_samples,)
        Numbers to predict, minus a constant, target by target. Empty for classes.
    weight : ndarray of shape (n_samples,)
        Sample weights.
    C : float
        Weight of the loss.
    constant : float
        Constant added to the loss.
    mass : ndarray of shape (n_outputs, n_strata)
        Sums of the dual variables of the strata. Only its shape is used for losses without given sums.
    strata, signs : ndarray of shape (n_samples, n_outputs)
        Stratum and sign of each sample; see :class:`coterie.solver.loss.Loss`.
    base : ndarray of shape (n_targets * n_samples,)
        Outputs at which the targets are the expected ones (logarithmic link), or tilts (quantiles). Empty for others.
    factors : ndarray of shape (n_outputs,)
        Factors of C per output. Empty for ``SQUARED_HINGE``.
    widths : ndarray of shape (n_outputs,)
        Largest absolute error with a quadratic loss, per output (Huber). Empty for others.
    """

    kind: int
    codes: np.ndarray
    classes: np.ndarray
    targets: np.ndarray
    weight: np.ndarray
    C: float
    constant: float
    mass: np.ndarray
    strata: np.ndarray
    signs: np.ndarray
    base: np.ndarray = NOTHING
    factors: np.ndarray = NOTHING
    widths: np.ndarray = NOTHING


class Evaluation(NamedTuple):
    """Results of :func:`evaluate_loss`, as arrays by outputs."""

    value: float
    conjugate: float
    residual: np.ndarray
    curvature: np.ndarray
    offsets: np.ndarray


def smooth_marker(loss: LossArrays) -> bool | None:
    """Return True for losses of coterie.kernels.smooth, else None. Code of the other losses is then not compiled."""
    return None if loss.kind in (SQUARED_HINGE, SQUARED) else True


@kernel()
def evaluate_loss(loss, smooth, outputs, guess, offsets, residual, curvature):
    """Return value and conjugate of a loss at given outputs, with offsets eliminated.

    ``smooth`` is :func:`smooth_marker` of the loss. ``guess`` contains initial offsets. ``offsets`` (outputs, strata),
    ``residual`` and ``curvature`` (outputs, samples) are written.
    """
    if smooth is None:
        if loss.kind == SQUARED:
            return squared_losses(
                outputs, loss.targets, loss.weight, loss.C, loss.factors, loss.constant, offsets, residual, curvature
            )
        return squared_hinges(
            outputs, loss.codes, loss.classes, loss.weight, loss.C, loss.mass, guess, offsets, residual, curvature
        )
    return smooth_losses(
        loss.kind, outputs, loss.codes, loss.classes, loss.targets, loss.base, loss.weight, loss.C, loss.factors, loss.widths,
        guess, offsets, residual, curvature,
    )  # fmt: skip


@kernel()
def squared_losses(outputs, targets, weight, C, factors, constant, offsets, residual, curvature):
    """Return value and conjugate of the squared losses of some targets, with the offsets eliminated."""
    n_samples, n_outputs = outputs.shape
    value, conjugate = 0.0, 0.0
    for c in range(n_outputs):
        target = targets[c * n_samples : (c + 1) * n_samples]
        squares, cross = _squared_loss(outputs[:, c], target, weight, C * factors[c], offsets[c], residual[c], curvature[c])
        value += 0.5 * squares
        # The residual sums to zero with an intercept, so the mean of the targets cancels in the product.
        conjugate += 0.5 * squares - cross
    return value + constant, conjugate - constant


@kernel()
def _squared_loss(output, target, weight, C, offset, residual, curvature):
    """Return the products of the residual with errors and targets. The offset is the weighted mean of the errors, or none."""
    n_samples = output.shape[0]
    mean = 0.0
    if offset.shape[0]:
        total = 0.0
        for begin in range(0, n_samples, _SUM_SAMPLES):
            part = 0.0
            part_weight = 0.0
            for i in range(begin, min(begin + _SUM_SAMPLES, n_samples)):
                part += weight[i] * (target[i] - output[i])
                part_weight += weight[i]
            mean += part
            total += part_weight
        mean /= total
        offset[0] = mean
    squares = 0.0
    cross = 0.0
    for begin in range(0, n_samples, _SUM_SAMPLES):
        part = 0.0
        part_cross = 0.0
        for i in range(begin, min(begin + _SUM_SAMPLES, n_samples)):
            error = target[i] - output[i] - mean
            residual[i] = C * weight[i] * error
            curvature[i] = C * weight[i]
            part += residual[i] * error
            part_cross += residual[i] * target[i]
        squares += part
        cross += part_cross
    return squares, cross
