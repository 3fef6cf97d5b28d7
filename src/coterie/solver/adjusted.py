r"""A loss from which covariates are eliminated in the same way as the intercept.

.. math:: \tilde F(z) = \min_A F(z + KA) + \tfrac\lambda2\|A\|^2, \qquad
          \tilde F^*(-\tilde\alpha) = F^*(-\tilde\alpha) + \tfrac1{2\lambda}\|K'\tilde\alpha\|^2

K has one column per covariate, and A contains their weights. The remaining residuals satisfy
:math:`K'\tilde\alpha = \lambda A`, so scores measure what a feature contributes beyond the covariates. For the squared loss,
:math:`\lambda = 0`: the residuals are orthogonal to the covariates, and the weights of the features are those of a regression
of the residuals of y on the residuals of the features, both after regression on the covariates (Frisch, Waugh and Lovell).

Covariates that separate two classes would get unbounded weights. Other losses therefore have a penalty: one ten-thousandth of
the total curvature of the loss.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg

from coterie.solver.block_problem import eliminated_curvature
from coterie.solver.design import Rows
from coterie.solver.loss import COMPILED, Loss, LossState

# Penalty of the covariates' weights, relative to the curvature of the loss.
_PENALTY_SHARE = 1e-4
# Directions whose standard deviation is below this share of the largest are linear combinations of others, or constant.
_RANK_TOLERANCE = 1e-10
_MAX_STEPS = 100
# Relative size below which a slope is attributed to rounding.
_SLOPE_TOLERANCE = 1e-13


class AdjustedLoss(Loss):
    """A loss with covariates eliminated. It has the same optional parts as the original loss.

    Parameters
    ----------
    loss : Loss
        The loss to adjust.
    covariates : ndarray of shape (n_samples, n_covariates)
        Values of the covariates. Constant and linearly dependent columns are allowed.
    weight : ndarray of shape (n_samples,)
        Sample weights used to centre and scale the covariates.
    """

    def __init__(self, loss: Loss, covariates: np.ndarray, weight: np.ndarray) -> None:
        centre = np.average(covariates, axis=0, weights=weight) if loss.centred else np.zeros(covariates.shape[1])
        basis = _basis(covariates - centre, weight)
        penalty = 0.0
        if not loss.is_quadratic:
            penalty = _PENALTY_SHARE * float(
                loss.evaluate(np.zeros((len(weight), loss.n_outputs))).curvature.sum(axis=0).max()
            )
        self._set(loss, (covariates - centre) @ basis, penalty, basis, centre)

    def _set(self, loss: Loss, columns: np.ndarray, penalty: float, basis: np.ndarray, centre: np.ndarray) -> None:
        self._loss = loss
        self.covariates, self.covariate_penalty = columns, penalty
        self._basis, self._centre = basis, centre
        self.n_outputs, self.centred, self.n_strata = loss.n_outputs, loss.centred, loss.n_strata
        self.strata, self.signs = loss.strata, loss.signs
        if "mass" in loss.parts:
            self.mass, self.dual_weight = loss.mass, loss.dual_weight

    def _adjust(self, loss: Loss, columns: np.ndarray | None = None, factor: float = 1.0) -> AdjustedLoss:
        """Return another loss with the same adjustment."""
        result = AdjustedLoss.__new__(AdjustedLoss)
        assert self.covariates is not None
        columns = self.covariates if columns is None else columns
        result._set(loss, columns, factor * self.covariate_penalty, self._basis, self._centre)
        return result

    @property
    def parts(self) -> frozenset[str]:
        """Optional parts of the original loss, without its compiled form, which has no covariates."""
        return self._loss.parts.difference(COMPILED)

    def conjugate(self, residual: np.ndarray) -> float:
        """Return the conjugate of the original loss plus the term of the covariates."""
        return self._loss.conjugate(residual) + self._conjugate_part(residual)

    def plain(self) -> list[Loss]:
        """Return the losses of the usual linear models, each adjusted."""
        return [self._adjust(part) for part in self._loss.plain()]

    def scaled(self, factor: float) -> Loss:
        """Return the scaled loss with a penalty in the same proportion."""
        return self._adjust(self._loss.scaled(factor), factor=factor)

    def kinds(self) -> np.ndarray:
        """Return a different merge key per sample, because covariates distinguish them, and -1 for weight zero."""
        return np.where(self._loss.kinds() < 0, -1, np.arange(len(self.strata)))

    def merged(self, rows: Rows) -> Loss:
        """Return the loss of the samples with nonzero weight."""
        assert self.covariates is not None
        return self._adjust(self._loss.merged(rows), self.covariates[rows.first])

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """Return the residual of all samples, as the original loss does."""
        return self._loss.spread(residual, rows)

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """Return the loss at these outputs. Covariates and offsets are eliminated by Newton's method."""
        columns, penalty = self.covariates, self.covariate_penalty
        assert columns is not None
        shape = (columns.shape[1], self.n_outputs)
        known = None if previous is None else previous.eliminated
        coef = np.zeros(shape) if known is None or known.shape != shape else known
        state = self._loss.evaluate(outputs + columns @ coef, previous)
        value = state.value + 0.5 * penalty * float((coef * coef).sum())
        for _ in range(_MAX_STEPS):
            slope = penalty * coef - columns.T @ state.residual
            if np.abs(slope).max(initial=0.0) <= _SLOPE_TOLERANCE * float(np.abs(state.residual).sum()):
                break
            direction = -np.column_stack([self._solve(state, c, slope[:, c]) for c in range(self.n_outputs)])
            descent = float((slope * direction).sum())
            step, accepted = 1.0, False
            while not accepted and step > 1e-6:
                trial = coef + step * direction
                trial_state = self._loss.evaluate(outputs + columns @ trial, state)
                trial_value = trial_state.value + 0.5 * penalty * float((trial * trial).sum())
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

    @property
    def original(self) -> Loss:
        """The loss without adjustment."""
        return self._loss

    def original_coef(self, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (n_outputs, n_covariates) of the covariates as given, and their share of the intercepts.

        ``coef`` of shape (n_outputs, rank) contains weights of the whitened columns ``covariates``.
        """
        original = coef @ self._basis.T
        return original, -(original @ self._centre)

    def _conjugate_part(self, residual: np.ndarray) -> float:
        """Return the covariates' term of the conjugate: 0 if the residual must be orthogonal to the covariates."""
        if self.covariate_penalty == 0.0:
            return 0.0
        assert self.covariates is not None
        return 0.5 * float(((self.covariates.T @ residual) ** 2).sum()) / self.covariate_penalty

    def _solve(self, state: LossState, c: int, right: np.ndarray) -> np.ndarray:
        """Solve the Newton system of one output."""
        matrix = eliminated_curvature(self, state, c)
        try:
            return np.asarray(linalg.cho_solve(linalg.cho_factor(matrix), right))
        except linalg.LinAlgError:  # Too few active samples: use the solution of minimum norm.
            return np.asarray(linalg.lstsq(matrix, right)[0])


def _basis(covariates: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the matrix, of shape (n_covariates, rank), that whitens the covariates with respect to the weights."""
    spread = np.sqrt(np.average(covariates**2, axis=0, weights=weight))
    scale = np.where(spread > 0.0, spread, 1.0)
    root = np.sqrt(weight / weight.sum())[:, None]
    _, values, vectors = linalg.svd(root * (covariates / scale), full_matrices=False)
    kept = values > _RANK_TOLERANCE * max(1.0, float(values.max(initial=0.0)))
    return (vectors[kept].T / values[kept]) / scale[:, None]
