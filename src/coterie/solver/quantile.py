r"""Loss of a conditional quantile: the pinball loss, smoothed where it has a kink.

For the quantile q, the pinball loss of an error :math:`e = y - u` is :math:`qe` for positive errors and :math:`(q - 1)e` for
negative ones. Newton's method needs a second derivative. The loss is therefore smoothed: for errors of at most
:math:`\delta`, its derivative is linear. This is the convolution with a uniform distribution on :math:`[-\delta, \delta]`
(He, Pan, Tan and Zhou 2023). Multiplied by :math:`2\delta`, it is the Huber loss plus a linear function,

.. math:: \ell(y, u) = H_\delta(e) + te + \tfrac12t^2, \qquad t = (2q - 1)\delta,

which equals :math:`2\delta` times the pinball loss, up to a constant, for all errors above :math:`\delta`. The intercept of a
model solves :math:`\sum_i \omega_i \ell'(e_i) = 0`: a share 1 - q of the errors is positive, where an error within
:math:`\pm\delta` counts in part. The bias of a quantile is of the order of :math:`\delta^2`, and :math:`\delta` falls with
the number of samples (:func:`quantile_width`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from coterie.solver.error_measures import ErrorMeasure
from coterie.solver.families import Family, NullFit, homogeneous
from coterie.solver.loss import Loss, Targets, by_target
from coterie.solver.regression import Estimate, penalised, robust_scale, with_clusters
from coterie.solver.several import SeveralTargets
from coterie.solver.smooth_losses import HuberLoss

# Smallest limit of smoothed errors in standard deviations, and the power of log(n) / n that it is for fewer samples.
_LEAST_WIDTH, _WIDTH_POWER = 0.05, 0.4
# Smallest share of the squares of a column that the others do not explain, for a test of the column.
_COLLINEAR = 1e-10


def quantile_width(values: np.ndarray, weight: np.ndarray) -> float:
    """Return the limit of smoothed errors: a share of the robust standard deviation of some values.

    The share is ``(log(n) / n) ** 0.4`` for n samples, and at least 0.05: 0.29 for 100 samples, 0.14 for 1,000.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.solver.quantile import quantile_width
    >>> round(quantile_width(np.random.default_rng(0).standard_normal(1000), np.ones(1000)), 2)
    0.13
    """
    n = max(float(weight.sum()), 2.0)
    return float(max(_LEAST_WIDTH, (np.log(n) / n) ** _WIDTH_POWER) * robust_scale(values, weight))


def _pinball(y: np.ndarray, predicted: np.ndarray, quantile: float) -> np.ndarray:
    error = y - predicted
    return np.maximum(quantile * error, (quantile - 1.0) * error)


def _empirical(y: np.ndarray, weight: np.ndarray, quantile: float) -> float:
    """Return the weighted quantile, the lower one of two."""
    order = np.argsort(y, kind="stable")
    total = np.cumsum(weight[order])
    return float(y[order[np.searchsorted(total, quantile * total[-1])]])


class QuantileFit(NamedTuple):
    """A quantile regression.

    Attributes
    ----------
    coef : ndarray of shape (n_columns,)
        Coefficients, in units of the target.
    slope : ndarray of shape (n_samples,)
        Derivatives of the smoothed pinball loss in the errors.
    hessian : ndarray of shape (n_columns, n_columns)
        Second derivative in the coefficients divided by ``unit``.
    unit : float
        Robust standard deviation of the targets.
    width : float
        Limit of smoothed errors divided by ``unit``.
    gap : float
        Certified gap, as in :class:`~coterie.solver.regression.Estimate`.
    n_iter : int
        Number of Newton steps.
    """

    coef: np.ndarray
    slope: np.ndarray
    hessian: np.ndarray
    unit: float
    width: float
    gap: float
    n_iter: int


class QuantileRegression(Family):
    r"""Quantile regression: the family of conditional quantiles. The offset is subtracted from the targets.

    The pinball loss is smoothed as in the model, with a weak normal prior, and the limit of smoothed errors follows those of a
    first fit. Standard errors of effects are the larger of two: those of identically distributed errors, and sandwiches, which
    hold for any errors.

    Tests are score tests. The residuals of a null model are the derivatives of the loss: q above the quantile and q - 1 below.
    Under the null hypothesis their mean is 0 for every value of the tested feature, and their variance q(1 - q), whatever the
    distribution of the errors. They are the rank-score tests of Gutenbrunner, Jurečková, Koenker and Portnoy (1993) for one
    quantile. Joint tests fit one null model per column. Quotients of effects and standard errors would be too large in the
    tails of their distribution.
    """

    def __init__(self, quantile: float) -> None:
        self.quantile = quantile

    def effects(
        self,
        design: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        clusters: np.ndarray | None = None,
        offset: np.ndarray | None = None,
    ) -> Estimate:
        """Return coefficients of the quantile in units of the target."""
        fit = self._fitted(design, targets if offset is None else targets - offset, weight)
        free = len(targets) - int(design.any(axis=0).sum())
        if free <= 0:
            return Estimate(fit.coef, np.full(len(fit.coef), np.nan), np.nan, fit.gap, fit.n_iter)
        inverse = np.linalg.inv(fit.hessian) * fit.unit
        equal = self._variance * np.diag(inverse @ ((design.T * weight) @ design) @ inverse)
        robust = (((design * (np.sqrt(weight) * fit.slope)[:, None]) @ inverse) ** 2).sum(axis=0)
        error = np.sqrt(len(targets) / free * np.maximum(equal, robust))
        found = Estimate(fit.coef, error, free, fit.gap, fit.n_iter)
        scores = design * (weight * fit.slope)[:, None]
        return found if clusters is None else with_clusters(found, scores, inverse, clusters)

    def tests(
        self,
        design: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        clusters: np.ndarray | None = None,
        offset: np.ndarray | None = None,
    ) -> Estimate:
        """Return coefficients with errors such that their quotients are the statistics of score tests, given the others."""
        values = targets if offset is None else targets - offset
        fit, statistic = self._fitted(design, values, weight), np.full(design.shape[1], np.nan)
        free = len(targets) - int(design.any(axis=0).sum())
        if free <= 0:
            return Estimate(fit.coef, statistic, np.nan, fit.gap, fit.n_iter)
        root = np.sqrt(weight)
        for column in np.flatnonzero(design[:, 1:].any(axis=0)) + 1:
            others, own = np.delete(design, column, axis=1), design[:, column]
            slope = self._fitted(others, values, weight, fit.width).slope
            projected = np.linalg.lstsq(others * root[:, None], own * root, rcond=None)[0]
            rest = own - others @ projected
            if rest @ rest <= _COLLINEAR * (own @ own):
                continue
            scores = weight * rest * slope
            variance = max(self._variance * float(weight @ rest**2), float(weight @ (rest * slope) ** 2))
            if clusters is not None:
                variance = max(variance, float((np.bincount(clusters, scores) ** 2).sum()))
            statistic[column] = scores.sum() / np.sqrt(len(targets) / free * variance)
        freedom = free if clusters is None else int(clusters.max())
        with np.errstate(divide="ignore", invalid="ignore"):
            return Estimate(fit.coef, np.abs(fit.coef / statistic), freedom, fit.gap, fit.n_iter)

    def null(self, design: np.ndarray, targets: np.ndarray, weight: np.ndarray, offset: np.ndarray | None = None) -> NullFit:
        """Return the null model, whose residuals are the derivatives of the loss."""
        slope = self._fitted(design, targets if offset is None else targets - offset, weight).slope
        if design.shape[1] == 1:  # the prior of the intercept would leave a small rest
            slope = slope - float(weight @ slope) / float(weight.sum())
        return homogeneous(design, slope, weight)

    @property
    def _variance(self) -> float:
        """Variance of the derivatives of the pinball loss."""
        return self.quantile * (1.0 - self.quantile)

    def _fitted(self, design: np.ndarray, targets: np.ndarray, weight: np.ndarray, width: float | None = None) -> QuantileFit:
        """Return the regression with a given limit of smoothed errors, or with that of the errors of a first fit."""
        unit, centre = robust_scale(targets, weight), _empirical(targets, weight, self.quantile)
        values = (targets - centre) / unit
        if width is None:
            first = self._smoothed(design, values, weight, quantile_width(values, weight))[0]
            width = quantile_width(values - design @ first, weight)
        coef, negative, hessian, gap, n_iter = self._smoothed(design, values, weight, width)
        coef = coef * unit
        coef[0] += centre
        return QuantileFit(coef, -negative, hessian, unit, width, gap, n_iter)

    def _smoothed(
        self, design: np.ndarray, values: np.ndarray, weight: np.ndarray, width: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, int]:
        """Return coefficients, minus the derivatives in the errors, second derivative, certified gap and number of steps."""
        tilt = self.quantile - 0.5

        def objective(outputs: np.ndarray) -> float:
            size = np.abs(values - outputs)
            smooth = np.where(size <= width, size**2 / (2.0 * width) + 0.5 * width, size)
            return float(weight @ (0.5 * smooth + tilt * (values - outputs)))

        def derivatives(outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            error = values - outputs
            return -np.clip(0.5 * error / width, -0.5, 0.5) - tilt, (np.abs(error) <= width) / (2.0 * width)

        return penalised(design, np.zeros(len(values)), weight, objective, derivatives)


@dataclass(frozen=True)
class Quantile:
    """Smoothed loss of a conditional quantile, as ``loss=`` of a regressor.

    Parameters
    ----------
    quantile : float, default=0.5
        Share of the targets below the prediction, between 0 and 1.
    width : float, default=None
        Largest absolute error with a smoothed loss, in units of the target. None for :func:`quantile_width` of the target less
        the offset.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from coterie import GroupDiscoveryRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GroupDiscoveryRegressor(3, loss="quantile", quantile=0.9).fit(X, y)
    >>> round(float((y <= model.predict(X)).mean()), 2)
    0.9
    """

    quantile: float = 0.5
    width: float | None = None

    takes_offset = True
    takes_several_targets = True
    has_unit_penalty = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.quantile) and 0.0 < self.quantile < 1.0):
            raise ValueError(f"quantile={self.quantile!r} must be a number between 0 and 1.")
        if self.width is not None and not (np.isfinite(self.width) and self.width > 0.0):
            raise ValueError(f"width={self.width!r} must be a positive number.")

    @property
    def is_equivariant(self) -> bool:
        """Whether the limit of smoothed errors follows the unit of the target."""
        return self.width is None

    @property
    def error_measure(self) -> ErrorMeasure:
        """The pinball loss."""
        of, constant = partial(_pinball, quantile=self.quantile), partial(_empirical, quantile=self.quantile)
        return ErrorMeasure("d2_pinball", "D² (pinball loss)", of, constant)

    @property
    def family(self) -> Family:
        """Quantile regression."""
        return QuantileRegression(self.quantile)

    def of(self, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """Return the loss of numbers less their offset."""
        if targets.values.ndim == 2:
            return SeveralTargets.of_loss(self, targets, weight, C, fit_intercept)
        values = targets.values if targets.offset is None else targets.values - targets.offset
        width = self.width or quantile_width(values, weight)
        return HuberLoss(values, weight, C, fit_intercept, width, (2.0 * self.quantile - 1.0) * width)

    def predict(self, outputs: np.ndarray) -> np.ndarray:
        """Return the outputs: the link is the identity."""
        return by_target(outputs)

    def constant_outputs(self, targets: Targets, weight: np.ndarray) -> np.ndarray:
        """Return the output of the best constant prediction."""
        loss = self.of(targets, weight, 1.0, True)
        return loss.evaluate(np.zeros((len(weight), loss.n_outputs))).intercept
