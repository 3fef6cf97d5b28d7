"""Survival times as an outcome: Cox regressions on a few features, and the partial likelihood as loss of an estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coterie.solver.cox import CoxLoss
from coterie.solver.families import MIN_VARIANCE, Family, NullFit
from coterie.solver.loss import Loss, LossState, Targets
from coterie.solver.regression import Estimate, with_clusters

# Prior standard deviation of a log hazard ratio per standard deviation, which keeps effects finite if a feature orders all
# events, and hardly matters otherwise.
_PRIOR = 3.0
_MAX_STEPS, _MAX_HALVINGS = 100, 40
_TOLERANCE = 1e-12


class CoxRegression:
    """A fitted Cox regression with a weak normal prior, whose standard deviation is 3.

    Newton's method minimises the partial likelihood plus :math:`b'b/18`. As in
    :func:`~coterie.solver.regression.logistic_effects`, half the squared norm of the gradient times 9 bounds the distance from
    the optimum.

    Parameters
    ----------
    design : ndarray of shape (n_samples, n_columns)
        Standardised columns. The first is that of an intercept, which has no effect.
    targets : structured ndarray of shape (n_samples,)
        Times, events and strata.
    weight : ndarray of shape (n_samples,)
        Weights; 2 is equivalent to having the sample twice, except for ties.
    offset : ndarray of shape (n_samples,), optional
        Numbers added to the log hazards.
    ties : {"efron", "breslow"}
        Rule for tied event times. Breslow's rule would make standard errors too large.

    Attributes
    ----------
    coef : ndarray of shape (n_columns,)
        Log hazard ratios, 0 for the first column.
    loss : CoxLoss
        The likelihood.
    state : LossState
        The likelihood at the coefficients.
    covariance : ndarray of shape (n_columns, n_columns)
        Inverse of the second derivative, 0 for the first column.
    """

    def __init__(
        self,
        design: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        offset: np.ndarray | None = None,
        ties: str = "efron",
    ) -> None:
        self.loss, self.gap, self.n_iter = CoxLoss(targets, weight, 1.0, ties, offset), np.inf, 0
        columns = design[:, 1:]
        coef, penalty = np.zeros(columns.shape[1]), _PRIOR**-2
        state = self.loss.evaluate(np.zeros((len(design), 1)))
        value = state.value
        while True:
            gradient = penalty * coef - columns.T @ state.residual[:, 0]
            hessian = information(state, columns, columns) + penalty * np.eye(len(coef))
            self.gap = float(gradient @ gradient) / (2.0 * penalty) / max(value, 1.0)
            if self.gap <= _TOLERANCE or self.n_iter == _MAX_STEPS:
                break
            self.n_iter += 1
            direction, size = np.linalg.solve(hessian, gradient), 1.0
            for _ in range(_MAX_HALVINGS):
                trial = coef - size * direction
                trial_state = self.loss.evaluate((columns @ trial)[:, None])
                trial_value = trial_state.value + 0.5 * penalty * float(trial @ trial)
                if trial_value <= value:
                    break
                size *= 0.5
            else:  # no progress beyond rounding
                break
            coef, state, value = trial, trial_state, trial_value
        self.coef, self.state = np.append(0.0, coef), state
        self.covariance = np.zeros((design.shape[1], design.shape[1]))
        self.covariance[1:, 1:] = np.linalg.inv(hessian)


def information(state: LossState, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return ``left' H right`` for the second derivative H of a partial likelihood."""
    assert state.coupling is not None
    return (left * state.curvature).T @ right - state.coupling.apply(left).T @ state.coupling.apply(right)


def cox_effects(
    design: np.ndarray,
    targets: np.ndarray,
    weight: np.ndarray,
    clusters: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    *,
    robust: bool = False,
) -> Estimate:
    """Return log hazard ratios of a Cox regression, with standard errors.

    The parameters are those of :class:`CoxRegression`. Standard errors are those of the second derivative. With ``clusters``
    (sample groups from 0) they are robust and at least those of independent samples. With ``robust``, every sample is a
    cluster if there are none (Lin and Wei 1989).
    """
    found = CoxRegression(design, targets, weight, offset)
    error = np.sqrt(np.diag(found.covariance))
    error[0] = np.nan
    estimate = Estimate(found.coef, error, gap=found.gap, n_iter=found.n_iter)
    if clusters is None and not robust:
        return estimate
    scores = np.zeros_like(design)
    scores[:, 1:] = found.loss.score_residuals(found.state, design[:, 1:])
    own = np.arange(len(design)) if clusters is None else clusters
    return with_clusters(estimate, scores, found.covariance, own)


class CoxFamily(Family):
    """Cox regression: the family of survival times. Effects are log hazard ratios."""

    ratio_kind = "hazard"

    def effects(
        self,
        design: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        clusters: np.ndarray | None = None,
        offset: np.ndarray | None = None,
    ) -> Estimate:
        """Return log hazard ratios."""
        return cox_effects(design, targets, weight, clusters, offset)

    def tests(
        self,
        design: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        clusters: np.ndarray | None = None,
        offset: np.ndarray | None = None,
    ) -> Estimate:
        """Return log hazard ratios with the larger of robust standard errors and those of the second derivative."""
        if not design[:, 1:].any() or not targets["event"][weight > 0.0].any():
            return Estimate(np.zeros(design.shape[1]), np.full(design.shape[1], np.nan), np.nan)
        return cox_effects(design, targets, weight, clusters, offset, robust=True)

    def null(self, design: np.ndarray, targets: np.ndarray, weight: np.ndarray, offset: np.ndarray | None = None) -> NullFit:
        """Return the null model. Residuals are martingale residuals, which are not independent."""
        model = CoxRegression(design, targets, weight, offset)
        residual, hazard = model.state.residual[:, 0] / weight, model.state.curvature[:, 0] / weight
        variance = np.maximum(hazard, MIN_VARIANCE)
        return NullFit(residual, variance, variance, regression=model)


COX = CoxFamily()


@dataclass(frozen=True)
class PartialLikelihood:
    """Cox's partial likelihood as the ``loss`` of an estimator.

    Attributes
    ----------
    ties : {"breslow", "efron"}
        Rule for tied event times.
    """

    takes_offset: ClassVar[bool] = True
    default_score: ClassVar[str] = "concordance_index"
    family: ClassVar[Family] = COX

    ties: str = "breslow"

    def of(self, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """Return the loss of some samples. There is no intercept, because it has no effect on the likelihood."""
        return CoxLoss(targets.values, weight, C, self.ties, targets.offset)

    def predict(self, outputs: np.ndarray) -> np.ndarray:
        """Return the outputs, which are log hazards relative to a baseline."""
        return outputs[:, 0]

    def constant_outputs(self, targets: Targets, weight: np.ndarray) -> np.ndarray:
        """Return zero: all constants are equivalent."""
        return np.zeros(1)
