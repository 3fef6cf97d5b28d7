r"""A loss from which covariates have been eliminated, as the intercept is.

.. math:: \tilde F(z) = \min_A F(z + KA) + \tfrac\lambda2\|A\|^2, \qquad
          \tilde F^*(-\tilde\alpha) = F^*(-\tilde\alpha) + \tfrac1{2\lambda}\|K'\tilde\alpha\|^2

K has a column for each covariate, A their weights. The residuals that are left have nothing to do with the covariates
(:math:`K'\tilde\alpha = \lambda A`), and so have the scores that features get by them: a feature is judged by what it says
beyond the covariates. With the squared loss :math:`\lambda = 0`, and the weights of the features are those of the residuals of
y and of the features after regression on the covariates (Frisch, Waugh and Lovell). Covariates that separate two classes
would take all weight there is, so other losses have a penalty: one ten-thousandth of what the samples weigh.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg

from coterie.solver.block_problem import eliminated_curvature
from coterie.solver.design import Rows
from coterie.solver.loss import Loss, LossState
from coterie.solver.losses import SquaredLoss

# The penalty of the covariates' weights, over the curvature of the loss.
_LIGHT = 1e-4
# Directions that vary by less than this part of the largest are repetitions of others, or constant.
_RANK = 1e-10
_MAX_STEPS = 100
# Relative size of a slope that is rounding.
_FLAT = 1e-13


class AdjustedLoss(Loss):
    """Another loss with covariates eliminated; it has the optional parts that the other one has.

    Parameters
    ----------
    loss : Loss
        The loss to adjust.
    covariates : ndarray of shape (n_samples, n_covariates)
        Values of the covariates; constant ones and those that repeat others do no harm.
    weight : ndarray of shape (n_samples,)
        Weights of the samples: covariates are centred and scaled with them.
    """

    def __init__(self, loss: Loss, covariates: np.ndarray, weight: np.ndarray) -> None:
        centre = np.average(covariates, axis=0, weights=weight) if loss.centred else np.zeros(covariates.shape[1])
        basis = _basis(covariates - centre, weight)
        light = 0.0
        if not isinstance(loss, SquaredLoss):
            light = _LIGHT * float(loss.evaluate(np.zeros((len(weight), loss.n_outputs))).curvature.sum(axis=0).max())
        self._take(loss, (covariates - centre) @ basis, light, basis, centre)

    def _take(self, loss: Loss, columns: np.ndarray, light: float, basis: np.ndarray, centre: np.ndarray) -> None:
        self._loss = loss
        self.covariates, self.covariate_penalty = columns, light
        self._basis, self._centre = basis, centre
        self.n_outputs, self.centred, self.n_strata = loss.n_outputs, loss.centred, loss.n_strata
        self.strata, self.signs = loss.strata, loss.signs
        if "mass" in loss.parts:
            self.mass, self.dual_weight = loss.mass, loss.dual_weight

    def _with(self, loss: Loss, columns: np.ndarray | None = None, factor: float = 1.0) -> AdjustedLoss:
        """The same adjustment of another loss."""
        result = AdjustedLoss.__new__(AdjustedLoss)
        assert self.covariates is not None
        columns = self.covariates if columns is None else columns
        result._take(loss, columns, factor * self.covariate_penalty, self._basis, self._centre)
        return result

    @property
    def parts(self) -> frozenset[str]:
        """Those of the loss that is adjusted."""
        return self._loss.parts

    def conjugate(self, residual: np.ndarray) -> float:
        """That of the loss, and what the covariates add."""
        return self._loss.conjugate(residual) + self._conjugate_part(residual)

    def plain(self) -> list[Loss]:
        """The usual losses, adjusted each by itself."""
        return [self._with(part) for part in self._loss.plain()]

    def scaled(self, factor: float) -> Loss:
        """The scaled loss, with a penalty of the same proportion."""
        return self._with(self._loss.scaled(factor), factor=factor)

    def kinds(self) -> np.ndarray:
        """A kind for each sample: covariates tell them all apart. Those of weight zero are left out."""
        return np.where(self._loss.kinds() < 0, -1, np.arange(len(self.strata)))

    def merged(self, rows: Rows) -> Loss:
        """The loss of the samples that have a weight."""
        assert self.covariates is not None
        return self._with(self._loss.merged(rows), self.covariates[rows.first])

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """As of the loss."""
        return self._loss.spread(residual, rows)

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """The loss at these outputs, with the weights of the covariates (and offsets) eliminated by Newton's method."""
        columns, light = self.covariates, self.covariate_penalty
        assert columns is not None
        shape = (columns.shape[1], self.n_outputs)
        known = None if previous is None else previous.eliminated
        coef = np.zeros(shape) if known is None or known.shape != shape else known
        state = self._loss.evaluate(outputs + columns @ coef, previous)
        value = state.value + 0.5 * light * float((coef * coef).sum())
        for _ in range(_MAX_STEPS):
            slope = light * coef - columns.T @ state.residual
            if np.abs(slope).max(initial=0.0) <= _FLAT * float(np.abs(state.residual).sum()):
                break
            direction = -np.column_stack([self._solve(state, c, slope[:, c]) for c in range(self.n_outputs)])
            descent = float((slope * direction).sum())
            step, accepted = 1.0, False
            while not accepted and step > 1e-6:
                trial = coef + step * direction
                trial_state = self._loss.evaluate(outputs + columns @ trial, state)
                trial_value = trial_state.value + 0.5 * light * float((trial * trial).sum())
                accepted = trial_value <= value + 1e-4 * step * descent + 1e-14 * abs(value)
                step *= 0.5
            if not accepted:
                break
            done = -descent <= 1e-26 * max(abs(value), np.finfo(float).tiny)
            coef, state, value = trial, trial_state, trial_value
            if done:
                break
        original = self._basis @ coef
        return replace(
            state,
            value=value,
            conjugate=state.conjugate + self._conjugate_part(state.residual),
            intercept=state.intercept - self._centre @ original,
            eliminated=coef,
            covariate_coef=original,
        )

    def _conjugate_part(self, residual: np.ndarray) -> float:
        """What the conjugate has more: nothing where the residual has to be free of the covariates."""
        if self.covariate_penalty == 0.0:
            return 0.0
        assert self.covariates is not None
        return 0.5 * float(((self.covariates.T @ residual) ** 2).sum()) / self.covariate_penalty

    def _solve(self, state: LossState, c: int, right: np.ndarray) -> np.ndarray:
        """The Newton system of one output."""
        matrix = eliminated_curvature(self, state, c)
        try:
            return np.asarray(linalg.cho_solve(linalg.cho_factor(matrix), right))
        except linalg.LinAlgError:  # too few samples count: the smallest step will do
            return np.asarray(linalg.lstsq(matrix, right)[0])


def _basis(covariates: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """What makes uncorrelated columns of weighted variance 1 of the covariates, of shape (n_covariates, rank)."""
    spread = np.sqrt(np.average(covariates**2, axis=0, weights=weight))
    scale = np.where(spread > 0.0, spread, 1.0)
    root = np.sqrt(weight / weight.sum())[:, None]
    _, values, vectors = linalg.svd(root * (covariates / scale), full_matrices=False)
    kept = values > _RANK * max(1.0, float(values.max(initial=0.0)))
    return (vectors[kept].T / values[kept]) / scale[:, None]
