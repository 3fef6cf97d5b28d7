r"""Losses: what the master problem needs to know about the targets.

The master minimises :math:`R(W) + F(XW)` with :math:`R(W) = \frac12(\sum_t \|W_t\|)^2` and a smooth
convex loss :math:`F` from which the intercept (and any other offset) has been eliminated. A loss
is one small class with

- ``n_outputs``: the number of columns of the outputs :math:`Z = XW`;
- ``evaluate(outputs, previous)``: a :class:`LossState` at these outputs;
- ``strata``: for each output, which offset each sample belongs to (see below).

**Eliminated offsets.** Near :math:`Z`, output c behaves like a weighted least-squares problem in
which every stratum e of samples has a free offset. With curvature h and signs d its Hessian in W is
:math:`X'\mathrm{diag}(h)X - \sum_e u_e u_e' / \kappa_e`, where :math:`u_e = \sum_{i \in e} h_i d_i x_i`
and :math:`\kappa_e = \sum_{i\in e} h_i`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from coterie.kernels.blocks import hinge_offset


@dataclass(frozen=True)
class LossState:
    r"""A loss at given outputs, offsets eliminated.

    Attributes
    ----------
    value : float
        :math:`F(Z)`.
    conjugate : float
        :math:`F^*(-\tilde\alpha)`, finite because the residual is dual feasible.
    residual : ndarray of shape (n_samples, n_outputs)
        :math:`\tilde\alpha = -\nabla F(Z)`.
    curvature : ndarray of shape (n_samples, n_outputs)
        Second derivative for each sample (0 where it is inactive).
    offsets : ndarray of shape (n_outputs, n_strata)
        The eliminated offsets; a warm start for the next evaluation.
    intercept : ndarray of shape (n_outputs,)
        What to add to the outputs to predict.
    margin : ndarray of shape (n_outputs,)
        :math:`\gamma`, for losses that have one (else 0).
    """

    value: float
    conjugate: float
    residual: np.ndarray
    curvature: np.ndarray
    offsets: np.ndarray
    intercept: np.ndarray
    margin: np.ndarray


class Loss(Protocol):
    """The interface between the targets and the master problem."""

    n_outputs: int
    centred: bool  # whether the residuals of each output sum to zero, as with an intercept
    strata: np.ndarray  # (n_samples, n_outputs), int8: the offset a sample belongs to
    signs: np.ndarray  # (n_samples, n_outputs): d above
    n_strata: int

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """The loss at these outputs; the previous state may serve as a warm start."""
        ...


class SimplexLoss(Loss, Protocol):
    """A loss whose dual variables are non-negative with a given sum in each stratum."""

    dual_weight: np.ndarray  # (n_samples, n_outputs): F* is half the sum of alpha^2 / dual_weight
    mass: np.ndarray  # (n_outputs, n_strata): the sums

    def conjugate(self, residual: np.ndarray) -> float:
        """The conjugate of the loss at minus a feasible residual."""
        ...


class SquaredHinge:
    r"""Squared hinge loss with the margin :math:`\gamma` of TPAMI eq. (4), for labels ±1.

    .. math:: F(z) = \min_{\gamma, b} -\gamma + \frac C2 \sum_i \omega_i (\gamma - y_i(z_i + b))_+^2

    With an intercept, put :math:`p = \gamma - b` and :math:`q = \gamma + b`: the positive samples see
    only p, the negative ones only q, and the problem falls apart into one equation for each class,
    :math:`C\sum_{y_i = +1} \omega_i (p - z_i)_+ = \frac12` and
    :math:`C\sum_{y_i = -1} \omega_i (q + z_i)_+ = \frac12`. Without one there is a single equation
    with right side 1. The dual variables :math:`\alpha_i = C\omega_i(\gamma - y_i(z_i+b))_+` are
    then feasible at any z (:math:`\sum\alpha = 1`, :math:`\sum\tilde\alpha = 0` with an intercept),
    and :math:`F^*(-\tilde\alpha) = \frac1{2C}\sum \alpha_i^2/\omega_i`.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        +1 or -1.
    weight : ndarray of shape (n_samples,)
        Non-negative weights.
    C : float
        Weight of the loss.
    fit_intercept : bool
        Whether there is an offset b.
    """

    n_outputs = 1

    def __init__(self, labels: np.ndarray, weight: np.ndarray, C: float, fit_intercept: bool) -> None:
        self.labels = np.ascontiguousarray(labels, dtype=np.float64)
        self.weight = np.ascontiguousarray(weight, dtype=np.float64)
        self.C = float(C)
        self.centred = fit_intercept
        self.n_strata = 2 if fit_intercept else 1
        self.strata = ((self.labels < 0) & fit_intercept).astype(np.int8)[:, None]
        self.signs = self.labels[:, None]
        self.dual_weight = (self.C * self.weight)[:, None]
        self.mass = np.full((1, self.n_strata), 1.0 / self.n_strata)

    def conjugate(self, residual: np.ndarray) -> float:
        """:math:`F^*(-\\tilde\\alpha)` of a feasible residual."""
        used = self.weight > 0
        return float((residual[used, 0] ** 2 / self.dual_weight[used, 0]).sum()) / 2

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """The loss at these outputs, with gamma and b eliminated."""
        margin = self.labels * outputs[:, 0]
        stratum = self.strata[:, 0]
        offsets = np.empty((1, self.n_strata))
        for which in range(self.n_strata):
            guess = np.inf if previous is None else float(previous.offsets[0, which])
            offsets[0, which] = hinge_offset(margin, self.weight, stratum, which, self.mass[0, which] / self.C, guess)
        slack = np.maximum(offsets[0][stratum] - margin, 0.0)
        alpha = self.C * self.weight * slack
        # Rounding in the offsets is multiplied by C; the sums must be right for the dual bound to hold.
        rescale = self.mass[0] / np.bincount(stratum, weights=alpha, minlength=self.n_strata)
        feasible = alpha * rescale[stratum]
        gamma = offsets.mean()
        return LossState(
            value=0.5 * float(alpha @ slack) - gamma,
            conjugate=0.5 * float(feasible @ (slack * rescale[stratum])),
            residual=(feasible * self.labels)[:, None],
            curvature=np.where(slack > 0.0, self.C * self.weight, 0.0)[:, None],
            offsets=offsets,
            intercept=np.array([0.5 * (offsets[0, 1] - offsets[0, 0]) if self.centred else 0.0]),
            margin=np.array([gamma]),
        )
