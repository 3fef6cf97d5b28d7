"""Linear models with a squared norm, in terms of the inner products between samples.

The models of all outputs depend on the features only through the n × n matrix of these products. If there are fewer samples
than features, this is the smaller problem, and the products of more features are added to the matrix. The usual losses of
classes and numbers, with or without covariates, are solved by one kernel (:mod:`coterie.kernels.ridge`). If there are fewer
features than samples, another kernel solves the problem of the weights of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie.kernels.ridge import fit_columns, fit_outputs
from coterie.solver.adjusted import AdjustedLoss
from coterie.solver.loss import Loss
from coterie.solver.losses import SquaredLoss, UnitHinge


@dataclass(frozen=True)
class SampleFit:
    """Linear models of all outputs.

    Attributes
    ----------
    residual : ndarray of shape (n_outputs, n_samples)
        Dual solution. The weights of features X are ``X' residual``.
    outputs : ndarray of shape (n_outputs, n_samples)
        Outputs of the features for all samples, without intercept and covariates.
    intercept : ndarray of shape (n_outputs,)
        Offset to add to the outputs.
    margin : ndarray of shape (n_outputs,)
        Margins: 1 for classes, 0 for numbers.
    covariate_coef : ndarray of shape (n_outputs, n_covariates) or None
        Weights of the covariates.
    conjugate : ndarray of shape (n_outputs,)
        Conjugates of the losses at the residuals.
    gap : ndarray of shape (n_outputs,)
        Relative duality gaps.
    n_iter : ndarray of int of shape (n_outputs,)
        Newton steps.
    converged : bool
        Whether all models are optimal up to rounding.
    active : ndarray of bool of shape (n_outputs, n_samples)
        Samples whose errors count, a guess for similar problems.
    """

    residual: np.ndarray
    outputs: np.ndarray
    intercept: np.ndarray
    margin: np.ndarray
    covariate_coef: np.ndarray | None
    conjugate: np.ndarray
    gap: np.ndarray
    n_iter: np.ndarray
    converged: bool
    active: np.ndarray


@dataclass(frozen=True)
class SampleProblem:
    """Losses of one output each that differ only in their targets, as the kernel uses them.

    Attributes
    ----------
    targets : ndarray of shape (n_outputs, n_samples)
        Labels ±1, or numbers minus ``mean``.
    weight : ndarray of shape (n_samples,)
        Sample weights times C.
    beside : ndarray of shape (n_beside, n_samples)
        Columns fitted beside the features: ones for the intercept, and covariates.
    penalty : ndarray of shape (n_beside,)
        Penalties of their squared weights.
    centred : bool
        Whether there is an intercept, whose column is the first of ``beside``.
    hinge : bool
        Whether the losses are squared hinge losses.
    mean : ndarray of shape (n_outputs,)
        Constants that were subtracted from the targets.
    constant : ndarray of shape (n_outputs,)
        Constants added to the losses, which have no effect on the models.
    adjusted : AdjustedLoss or None
        The loss with the covariates.
    """

    targets: np.ndarray
    weight: np.ndarray
    beside: np.ndarray
    penalty: np.ndarray
    centred: bool
    hinge: bool
    mean: np.ndarray
    constant: np.ndarray
    adjusted: AdjustedLoss | None

    @classmethod
    def of(cls, losses: Sequence[Loss]) -> SampleProblem | None:
        """Return the problem of the losses of all outputs (:meth:`Loss.plain`), or None if the kernel has no such loss."""
        adjusted = losses[0] if isinstance(losses[0], AdjustedLoss) else None
        usual = [loss.original if isinstance(loss, AdjustedLoss) else loss for loss in losses]
        first = usual[0]
        beside, penalty = [np.ones((1, len(first.strata)))] if first.centred else [], [0.0] if first.centred else []
        if adjusted is not None:
            assert adjusted.covariates is not None
            beside.append(adjusted.covariates.T)
            penalty += [adjusted.covariate_penalty] * adjusted.covariates.shape[1]
        # Subclasses may evaluate another loss.
        if all(type(loss) is UnitHinge for loss in usual):
            assert isinstance(first, UnitHinge)
            targets, weight = np.stack([loss.labels for loss in usual if isinstance(loss, UnitHinge)]), first.C * first.weight
            mean, constant = np.zeros(len(usual)), np.zeros(len(usual))
        elif isinstance(first, SquaredLoss) and all(type(loss) is SquaredLoss and loss.C == first.C for loss in usual):
            squared, weight = [loss for loss in usual if isinstance(loss, SquaredLoss)], first.C * first.weight
            # Subtracting the mean first keeps the rounding errors of large targets small.
            mean = np.array([np.average(loss.targets, weights=loss.weight) * loss.centred for loss in squared])
            targets = np.stack([loss.targets - own for loss, own in zip(squared, mean.tolist(), strict=True)])
            constant = np.array([loss.constant for loss in squared])
        else:
            return None
        empty = np.empty((0, len(first.strata)))
        return cls(
            targets,
            weight,
            np.ascontiguousarray(np.vstack([empty, *beside])),
            np.array(penalty, dtype=np.float64),
            first.centred,
            isinstance(first, UnitHinge),
            mean,
            constant,
            adjusted,
        )

    def fit(self, products: np.ndarray, active: np.ndarray | None = None) -> SampleFit:
        """Fit the models of all outputs.

        Parameters
        ----------
        products : ndarray of shape (n_samples, n_samples)
            Inner products of the samples.
        active : ndarray of bool of shape (n_outputs, n_samples), optional
            Active samples of a similar problem. They only save time.
        """
        shape = self.targets.shape
        warm, active = active is not None, np.zeros(shape, dtype=bool) if active is None else active.copy()
        residual, outputs, coef = np.zeros(shape), np.empty(shape), np.zeros((shape[0], len(self.penalty)))
        objectives, steps = np.empty((shape[0], 2)), np.zeros(shape[0], dtype=np.int64)
        fit_outputs(
            np.ascontiguousarray(products), self.targets, self.weight, self.beside, self.penalty, self.hinge, warm,
            active, residual, outputs, coef, objectives, steps,
        )  # fmt: skip
        conjugate = objectives[:, 1] - 0.5 * (residual * outputs).sum(axis=1)
        return self._result(residual, outputs, coef, conjugate, objectives, steps, active)

    def fit_columns(self, columns: np.ndarray, coef: np.ndarray | None = None) -> tuple[SampleFit, np.ndarray]:
        """Fit the models of all outputs to columns, of which there are fewer than samples.

        Parameters
        ----------
        columns : ndarray of shape (n_samples, n_features)
            The features.
        coef : ndarray of shape (n_outputs, n_known + n_beside), optional
            Weights of a model on the first columns and on those beside the features. They only save time.

        Returns
        -------
        fit : SampleFit
            The models.
        coef : ndarray of shape (n_outputs, n_features + n_beside)
            Their weights.
        """
        n_features, n_outputs, n_beside = columns.shape[1], len(self.targets), len(self.penalty)
        weights = np.zeros((n_outputs, n_features + n_beside))
        if coef is not None:
            n_known = coef.shape[1] - n_beside
            weights[:, :n_known], weights[:, n_features:] = coef[:, :n_known], coef[:, n_known:]
        design = np.hstack([columns, self.beside.T])
        penalty = np.append(np.ones(n_features), self.penalty)
        residual, objectives, steps = np.empty(self.targets.shape), np.empty((n_outputs, 2)), np.empty(n_outputs, np.int64)
        fit_columns(
            np.ascontiguousarray(design), penalty, self.targets, self.weight, self.hinge, self.centred, weights, residual,
            objectives, steps,
        )  # fmt: skip
        outputs, scores = weights[:, :n_features] @ columns.T, residual @ columns
        conjugate = objectives[:, 1] - 0.5 * (scores * scores).sum(axis=1)
        found = self._result(residual, outputs, weights[:, n_features:], conjugate, objectives, steps, residual != 0.0)
        return found, weights

    def _result(
        self,
        residual: np.ndarray,
        outputs: np.ndarray,
        coef: np.ndarray,
        conjugate: np.ndarray,
        objectives: np.ndarray,
        steps: np.ndarray,
        active: np.ndarray,
    ) -> SampleFit:
        """Return the models with their gaps. ``coef`` are the weights beside the features."""
        scale = np.maximum(np.abs(objectives).max(axis=1), np.finfo(float).tiny)
        gap = np.maximum(objectives.sum(axis=1) / scale, 0.0)
        intercept = self.mean + (coef[:, 0] if self.centred else np.zeros(len(coef)))
        known = None
        if self.adjusted is not None:
            known, share = self.adjusted.original_coef(coef[:, int(self.centred) :])
            intercept = intercept + share
        return SampleFit(
            residual,
            outputs,
            intercept,
            np.full(len(coef), float(self.hinge)),
            known,
            conjugate - self.constant,
            np.where(np.isfinite(gap), gap, np.inf),
            np.abs(steps),
            bool((steps > 0).all()),
            active,
        )
