r"""Gamma deviance: positive numbers with a standard deviation in proportion to the mean, such as costs or concentrations."""

from __future__ import annotations

import numpy as np

from coterie.kernels import smooth
from coterie.solver.error_measures import ErrorMeasure, mean
from coterie.solver.families import Family, NullFit, homogeneous
from coterie.solver.regression import MAX_EXPONENT, Estimate, penalised, with_clusters
from coterie.solver.smooth_losses import LogLinkLoss


def _deviance(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    ratio = y / np.maximum(predicted, np.finfo(float).tiny)
    return 2.0 * (ratio - 1.0 - np.log(ratio))


GAMMA_DEVIANCE = ErrorMeasure("d2_gamma", "D² (gamma deviance)", _deviance, mean)


class GammaRegression(Family):
    r"""Gamma regression with logarithmic link: the family of positive numbers. Effects are logarithms of ratios of means.

    It minimises :math:`\sum_i w_i (y_i/\mu_i + \log\mu_i)` with the weak normal prior of the other regressions. Standard
    errors are the larger of two: those of quasi-likelihood, with Pearson's dispersion, and robust ones (HC3), which hold for
    any relation of variance and mean.
    """

    ratio_kind = "mean"

    def effects(
        self,
        design: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        clusters: np.ndarray | None = None,
        offset: np.ndarray | None = None,
    ) -> Estimate:
        """Return logarithms of ratios of means."""
        coef, ratio, gap, n_iter = _fitted(design, targets, weight, offset)
        residual, free = ratio - 1.0, float(weight.sum()) - np.linalg.matrix_rank(design)
        covariance = np.linalg.pinv((design.T * weight) @ design)
        leverage = weight * np.einsum("ij,jk,ik->i", design, covariance, design)
        errors = residual / np.maximum(1.0 - leverage, 1e-3)
        robust = np.sqrt((((design * (np.sqrt(weight) * errors)[:, None]) @ covariance) ** 2).sum(axis=0))
        if free <= 0:
            return Estimate(coef, np.full(len(coef), np.nan), np.nan, gap, n_iter)
        dispersion = float(weight @ residual**2) / free
        error = np.maximum(np.sqrt(dispersion * np.diag(covariance)), robust)
        found = Estimate(coef, error, free, gap, n_iter)
        return found if clusters is None else with_clusters(found, design * (weight * errors)[:, None], covariance, clusters)

    def null(self, design: np.ndarray, targets: np.ndarray, weight: np.ndarray, offset: np.ndarray | None = None) -> NullFit:
        """Return the null model, whose relative errors have the same moments for all samples."""
        ratio = _fitted(design, targets, weight, offset)[1]
        if design.shape[1] == 1:  # the prior of the intercept would leave a small rest
            ratio = ratio / (float(weight @ ratio) / float(weight.sum()))
        return homogeneous(design, ratio - 1.0, weight)


def _fitted(
    design: np.ndarray, targets: np.ndarray, weight: np.ndarray, offset: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, float, int]:
    """Return coefficients, ratios of targets and expected numbers, certified gap and number of Newton steps."""
    known = np.zeros(len(targets)) if offset is None else offset
    typical = targets * np.exp(known.min() - known)
    constant = np.log(float(weight @ typical) / float(weight.sum())) - known.min()
    values = np.log(targets) - known - constant  # the best constant prediction is 0

    def ratios(outputs: np.ndarray) -> np.ndarray:
        return np.exp(np.minimum(values - outputs, MAX_EXPONENT))

    def objective(outputs: np.ndarray) -> float:
        return float(weight @ (ratios(outputs) - 1.0 - (values - outputs)))

    def derivatives(outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ratio = ratios(outputs)
        return -ratio, ratio  # the derivative is that of -ratio - (-1)

    coef, negative, _, gap, n_iter = penalised(design, np.full(len(targets), -1.0), weight, objective, derivatives)
    return coef, -negative, gap, n_iter


class GammaLoss(LogLinkLoss):
    r"""Half the gamma deviance of positive numbers. The parameters are those of :class:`LogLinkLoss`.

    .. math:: \ell(y, u) = y/\mu - 1 - \log(y/\mu), \qquad \mu = e^u

    The dual variables :math:`\tilde\alpha_i/(C\omega_i) = y_i/\mu_i - 1` are the relative errors. The intercept has a closed
    form.
    """

    kind = smooth.GAMMA
    error_measure = GAMMA_DEVIANCE
    family = GammaRegression()

    @classmethod
    def check(cls, targets: np.ndarray, weight: np.ndarray | None) -> None:
        """Raise a ``ValueError`` unless all numbers are positive."""
        wrong = np.flatnonzero(~(targets > 0.0).reshape(len(targets), -1).all(axis=1))
        if len(wrong):
            value = np.min(targets[wrong[0]])
            raise ValueError(
                f"loss='gamma' requires numbers above 0, but y is {value:g} in sample {wrong[0]} ({len(wrong)} such "
                "sample(s)). Correct y, or use loss='squared' or, for counts, loss='poisson'."
            )
