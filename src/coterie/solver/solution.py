"""A solution of a convex problem, with its certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.solver.losses import LossState


@dataclass(frozen=True)
class Solution:
    """What a solver hands back.

    Attributes
    ----------
    objective : float
        The dual objective :math:`D`, an upper bound of the optimum :math:`\\theta`.
    bound : float
        :math:`-P`, a lower bound of it.
    gap : float
        ``(objective - bound) / scale`` with the scale the larger of their absolute values.
    n_iter : int
        Newton steps.
    coef : ndarray of shape (n_selected, n_outputs)
        Weights of the design's columns, block after block.
    residual : ndarray of shape (n_samples, n_outputs)
        The dual solution :math:`\\tilde\\alpha`: it makes the next round's scores.
    state : LossState
        The loss at the weights: intercept, margin.
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
        """A pair of weights and feasible residuals with its certificate: primal plus dual objective, in their units."""
        gap = (dual + primal) / max(abs(dual), abs(primal), np.finfo(float).tiny)
        return cls(dual, -primal, max(gap, 0.0) if np.isfinite(gap) else np.inf, n_iter, coef, residual, state)
