"""Regressions on a few features with standard errors: least squares, Huber, and penalised logistic and Poisson regression."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.linalg import solve_triangular

# Prior standard deviation of a log-odds per standard deviation, and of the intercept. They keep effects finite if the classes
# are separated, and hardly matter otherwise: an odds ratio of 20 is one prior standard deviation.
_PRIOR, _PRIOR_INTERCEPT = 3.0, 10.0
_MAX_STEPS, _MAX_HALVINGS = 100, 40
_TOLERANCE = 1e-12
# Smallest pivot of columns that are not collinear, relative to the largest one.
_COLLINEAR = 1e-10
# Largest logarithm of an expected count. Its exponential does not overflow in products.
MAX_EXPONENT = 300.0
# The limit of quadratic errors of the Huber loss in standard deviations. Standard deviations of a normal distribution per
# median, or mean, absolute deviation. Steps in which the limit of a regression follows its errors.
_HUBER_WIDTH = 1.345
_MEDIAN_DEVIATION, _MEAN_DEVIATION = 1.4826, 1.2533
_SCALE_STEPS = 30


class Estimate(NamedTuple):
    """Effects of some features with standard errors (NaN if unknown).

    ``freedom`` is the number of degrees of freedom of the t distribution of effect over error (NaN if unknown). ``gap`` is the
    certified distance of the objective from its optimum, relative to the objective, and ``n_iter`` the number of Newton steps.
    """

    effect: np.ndarray
    error: np.ndarray
    freedom: float = np.inf
    gap: float = 0.0
    n_iter: int = 1

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Return the limits of the intervals that contain the effects with a probability of ``level``."""
        width = stats.t.isf((1.0 - level) / 2.0, self.freedom) * self.error
        return self.effect - width, self.effect + width

    @property
    def p_value(self) -> np.ndarray:
        """Two-sided p-values of the effects; 1 where the standard error is unknown."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = 2.0 * stats.t.sf(np.abs(self.effect / self.error), self.freedom)
        return np.where(np.isnan(self.error) | np.isnan(values), 1.0, values)

    def one_sided(self, sign: np.ndarray) -> np.ndarray:
        """Return the p-values of effects with these signs (1 or -1); 1 where the standard error is unknown."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = stats.t.sf(sign * self.effect / self.error, self.freedom)
        return np.where(np.isnan(self.error) | np.isnan(values), 1.0, values)

    def part(self, columns: slice) -> Estimate:
        """Return the estimate of some columns."""
        return self._replace(effect=self.effect[columns], error=self.error[columns])


def standardised(columns: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return columns with weighted mean 0 and standard deviation 1; zeros for constant columns."""
    centred = columns - weight @ columns / weight.sum()
    scale = np.sqrt(weight @ centred**2 / weight.sum())
    return centred / np.where(scale > 1e-12 * np.abs(columns).max(initial=1.0), scale, np.inf)


def logistic_effects(
    design: np.ndarray, labels: np.ndarray, weight: np.ndarray, clusters: np.ndarray | None = None
) -> Estimate:
    r"""Return log-odds of a penalised logistic regression, with standard errors.

    The Newton method minimises :math:`f(b) = \sum_i w_i \log(1 + e^{-s_i x_i'b}) + \frac{1}{2} b'\Lambda b` with
    :math:`s_i = \pm 1`. Because :math:`f - \frac{1}{2} b'\Lambda b` is convex, :math:`f(b) - \min f \le \frac{1}{2} g'
    \Lambda^{-1} g` for the gradient g, which is the certified gap.

    Parameters
    ----------
    design : ndarray of shape (n_samples, n_columns)
        Standardised columns. The first is the intercept.
    labels : ndarray of shape (n_samples,)
        1 or 0.
    weight : ndarray of shape (n_samples,)
        Weights; 2 is equivalent to having the sample twice.
    clusters : ndarray of int of shape (n_samples,), optional
        Sample groups from 0.
    """
    sign = 2.0 * labels - 1.0

    def objective(outputs: np.ndarray) -> float:
        return float(weight @ np.logaddexp(0.0, -sign * outputs))

    def moments(outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        probability = _sigmoid(outputs)
        return probability, probability * (1.0 - probability)

    coef, probability, hessian, gap, n_iter = penalised(design, labels, weight, objective, moments)
    covariance = np.linalg.inv(hessian)
    error = np.sqrt(np.diag(covariance))
    if clusters is None:
        return Estimate(coef, error, gap=gap, n_iter=n_iter)
    scores = design * (weight * (labels - probability))[:, None]
    return with_clusters(Estimate(coef, error, gap=gap, n_iter=n_iter), scores, covariance, clusters)


class PoissonFit(NamedTuple):
    """A Poisson regression: its estimate, expected counts, and dispersion (at least 1)."""

    estimate: Estimate
    mean: np.ndarray
    dispersion: float


def poisson_fit(
    design: np.ndarray,
    counts: np.ndarray,
    weight: np.ndarray,
    clusters: np.ndarray | None = None,
    offset: np.ndarray | None = None,
) -> PoissonFit:
    r"""Fit a penalised Poisson regression with logarithmic link; its effects are logarithms of rate ratios.

    The prior is that of :func:`logistic_effects`, relative to the mean rate for the intercept. Standard errors are the larger
    of two: those of a quasi-Poisson model, whose dispersion is Pearson's statistic over the degrees of freedom (at least 1),
    and robust ones (HC3), which hold for any relation of variance and mean.

    Parameters
    ----------
    design, weight, clusters
        As for :func:`logistic_effects`.
    counts : ndarray of shape (n_samples,)
        Counts.
    offset : ndarray of shape (n_samples,), optional
        Logarithm of the exposure.
    """
    known = np.zeros(len(counts)) if offset is None else offset - offset.max()
    total = max(float(weight @ counts), 0.5 * float(weight[weight > 0.0].min()))
    known = known + np.log(total / float(weight @ np.exp(known)))

    def moments(outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = np.exp(np.minimum(outputs + known, MAX_EXPONENT))
        return mean, mean

    def objective(outputs: np.ndarray) -> float:
        excess = moments(outputs)[0] - counts * (outputs + known)
        return float(weight @ (excess + counts * (np.log(np.where(counts > 0.0, counts, 1.0)) - 1.0)))

    coef, mean, hessian, gap, n_iter = penalised(design, counts, weight, objective, moments)
    free = float(weight.sum()) - np.linalg.matrix_rank(design)
    residual = counts - mean
    pearson = float(weight @ (residual**2 / np.maximum(mean, np.finfo(float).tiny)))
    dispersion = max(1.0, pearson / free) if free > 0 else 1.0
    covariance = np.linalg.inv(hessian)
    leverage = weight * mean * np.einsum("ij,jk,ik->i", design, covariance, design)
    errors = residual / np.maximum(1.0 - leverage, 1e-3)
    robust = np.sqrt((((design * (np.sqrt(weight) * errors)[:, None]) @ covariance) ** 2).sum(axis=0))
    error = np.maximum(np.sqrt(dispersion * np.diag(covariance)), robust)
    found = Estimate(coef, error, free if free > 0 else np.nan, gap, n_iter)
    if clusters is not None:
        found = with_clusters(found, design * (weight * errors)[:, None], covariance, clusters)
    return PoissonFit(found, mean, dispersion)


class HuberFit(NamedTuple):
    """A robust regression: its estimate, and the errors cut at the limit of the Huber loss."""

    estimate: Estimate
    cut: np.ndarray


def huber_fit(design: np.ndarray, targets: np.ndarray, weight: np.ndarray, clusters: np.ndarray | None = None) -> HuberFit:
    r"""Fit a regression with the Huber loss, whose limit is 1.345 robust standard deviations of its own errors.

    The scale is the median absolute error of the estimate. Standard errors are the larger of two sandwiches
    :math:`A^{-1}BA^{-1}`: A is the Gram matrix of the samples with a quadratic error, and B that of the cut errors, which is
    either robust (HC3) or assumes equal variances. The parameters are those of :func:`linear_effects`.
    """
    coef = np.linalg.lstsq(design * np.sqrt(weight)[:, None], targets * np.sqrt(weight), rcond=None)[0]
    limit = np.inf
    for step in range(_MAX_STEPS):
        error = targets - design @ coef
        limit = huber_width(error, weight) if step < _SCALE_STEPS else limit  # with a fixed limit, the problem is convex
        root = np.sqrt(weight * np.minimum(1.0, limit / np.maximum(np.abs(error), np.finfo(float).tiny)))
        last, coef = coef, np.linalg.lstsq(design * root[:, None], targets * root, rcond=None)[0]
        if np.abs(coef - last).max() <= 1e-10 * limit and step >= _SCALE_STEPS:
            break
    error = targets - design @ coef
    cut, inside = np.clip(error, -limit, limit), np.abs(error) <= limit
    free = len(targets) - int(design.any(axis=0).sum())
    if free <= 0:
        return HuberFit(Estimate(coef, np.full(len(coef), np.nan), np.nan), cut)
    inverse = np.linalg.pinv((design.T * (weight * inside)) @ design)
    leverage = weight * inside * np.einsum("ij,jk,ik->i", design, inverse, design)
    scores = design * (cut / np.maximum(1.0 - leverage, 1e-3))[:, None]
    robust = np.sqrt((((scores * np.sqrt(weight)[:, None]) @ inverse) ** 2).sum(axis=0))
    variance = float(weight @ cut**2) / free
    equal = np.sqrt(variance * np.maximum(np.diag(inverse @ ((design.T * weight) @ design) @ inverse), 0.0))
    found = Estimate(coef, np.maximum(robust, equal), free)
    return HuberFit(found if clusters is None else with_clusters(found, scores * weight[:, None], inverse, clusters), cut)


def huber_width(values: np.ndarray, weight: np.ndarray) -> float:
    """Return 1.345 robust standard deviations of some values, from the median absolute deviation.

    This limit of the Huber loss has an efficiency of 95 % for normal errors. If more than half of the values are equal, the
    mean absolute deviation is used.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.solver.regression import huber_width
    >>> round(huber_width(np.array([1.0, 2.0, 3.0, 4.0, 1000.0]), np.ones(5)), 3)
    1.994
    """
    return _HUBER_WIDTH * robust_scale(values, weight)


def robust_scale(values: np.ndarray, weight: np.ndarray) -> float:
    """Return the standard deviation of normally distributed values with the same median absolute deviation."""
    used = weight > 0.0
    deviation = np.abs(values[used] - _median(values[used], weight[used]))
    scale = _MEDIAN_DEVIATION * _median(deviation, weight[used])
    if scale <= 1e-12 * deviation.max(initial=0.0):
        scale = _MEAN_DEVIATION * float(np.average(deviation, weights=weight[used]))
    return max(scale, np.finfo(float).tiny)


def _median(values: np.ndarray, weight: np.ndarray) -> float:
    """Return the weighted median: the mean of the lower and the upper one."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    half = 0.5 * total[-1]
    lower, upper = np.searchsorted(total, half * (1.0 - 1e-12)), np.searchsorted(total, half * (1.0 + 1e-12))
    return 0.5 * float(values[order[lower]] + values[order[min(upper, len(order) - 1)]])


def penalised(
    design: np.ndarray,
    targets: np.ndarray,
    weight: np.ndarray,
    loss: Callable[[np.ndarray], float],
    moments: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, int]:
    """Minimise a loss plus the normal prior by Newton's method.

    ``loss`` and ``moments`` are functions of the linear outputs. The second returns expected values and variances.

    Returns coefficients, expected values, Hessian, certified gap and number of steps.
    """
    penalty = np.full(design.shape[1], _PRIOR**-2)
    penalty[0] = _PRIOR_INTERCEPT**-2
    coef = np.zeros(design.shape[1])

    def objective(coef: np.ndarray) -> float:
        return loss(design @ coef) + float(0.5 * penalty @ coef**2)

    value, n_iter = objective(coef), 0
    while n_iter < _MAX_STEPS:
        n_iter += 1
        mean, variance = moments(design @ coef)
        gradient = design.T @ (weight * (mean - targets)) + penalty * coef
        hessian = (design.T * (weight * variance)) @ design + np.diag(penalty)
        gap = float(0.5 * (gradient**2 / penalty).sum()) / max(value, 1.0)
        if gap <= _TOLERANCE:
            break
        direction = np.linalg.solve(hessian, gradient)
        size = 1.0
        for _ in range(_MAX_HALVINGS):
            trial = objective(coef - size * direction)
            if trial <= value:
                break
            size *= 0.5
        else:  # no progress beyond rounding
            break
        coef, value = coef - size * direction, trial
    return coef, mean, hessian, gap, n_iter


def linear_effects(
    design: np.ndarray, targets: np.ndarray, weight: np.ndarray, clusters: np.ndarray | None = None
) -> Estimate:
    """Return coefficients of a weighted least-squares regression, with HC3 standard errors.

    The parameters are those of :func:`logistic_effects`. Constant columns (zeros) get 0. There are no standard errors if there
    are no more samples than columns, or columns are collinear.
    """
    varying = np.flatnonzero(design.any(axis=0))
    own = design[:, varying]
    root = np.sqrt(weight)
    basis, triangle = np.linalg.qr(own * root[:, None])
    diagonal = np.abs(np.diag(triangle))
    coef, error = np.zeros(design.shape[1]), np.full(design.shape[1], np.nan)
    free = len(targets) - len(varying)
    if free <= 0 or diagonal.min(initial=np.inf) <= _COLLINEAR * diagonal.max(initial=0.0):
        coef[varying] = np.linalg.lstsq(own * root[:, None], targets * root, rcond=None)[0]
        return Estimate(coef, error, np.nan)
    solution = solve_triangular(triangle, basis.T @ (targets * root))
    coef[varying] = solution
    inverse = solve_triangular(triangle, np.eye(len(varying)))
    covariance = inverse @ inverse.T
    residual = targets - own @ solution
    leverage = ((own @ inverse) ** 2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = root * residual / (1.0 - np.minimum(leverage, 1.0))
        error[varying] = np.sqrt((((own * errors[:, None]) @ covariance) ** 2).sum(axis=0))
    error[~np.isfinite(error)] = np.nan
    found = Estimate(coef, error, free)
    if clusters is None:
        return found
    full = np.zeros((design.shape[1], design.shape[1]))
    full[np.ix_(varying, varying)] = covariance
    return with_clusters(found, design * (weight * residual)[:, None], full, clusters)


def with_clusters(found: Estimate, scores: np.ndarray, bread: np.ndarray, clusters: np.ndarray) -> Estimate:
    """Return the estimate with cluster-robust standard errors, which are at least those of independent samples.

    The sandwich vanishes if the classes are separated, and it is singular if there are few clusters.
    """
    n_clusters = int(clusters.max()) + 1
    if n_clusters <= scores.shape[1]:
        return found._replace(error=np.full(scores.shape[1], np.nan), freedom=np.nan)
    sums = np.zeros((n_clusters, scores.shape[1]))
    np.add.at(sums, clusters, scores)
    spread = sums @ bread
    error = np.sqrt((spread**2).sum(axis=0) * n_clusters / (n_clusters - 1))
    return found._replace(error=np.maximum(error, found.error), freedom=n_clusters - 1)


def _sigmoid(outputs: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * outputs))


def least_squares_tests(
    design: np.ndarray, targets: np.ndarray, weight: np.ndarray, clusters: np.ndarray | None = None
) -> Estimate:
    """Return the effect of each column in a least-squares regression on all columns, with the standard errors of tests.

    The parameters are those of :func:`linear_effects`. The standard errors are the larger of the robust and the classical
    ones. Robust errors alone vanish for a column with a few nonzero values of the same target.
    """
    found = linear_effects(design, targets, weight, clusters)
    varying = np.flatnonzero(design.any(axis=0))
    free = len(targets) - len(varying)
    if free <= 0 or np.isnan(found.freedom):
        return found._replace(error=np.full(design.shape[1], np.nan))
    residual = targets - design @ found.effect
    variance = float(weight @ residual**2) / free
    classical = np.full(design.shape[1], np.nan)
    own = design[:, varying]
    classical[varying] = np.sqrt(variance * np.diag(np.linalg.inv((own.T * weight) @ own)))
    return found._replace(error=np.fmax(found.error, classical))


def jackknife_errors(design: np.ndarray, targets: np.ndarray, weight: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    r"""Return standard errors of least squares from leaving out one cluster at a time (CR3); NaN if they are unknown.

    Without cluster g, the coefficients change by :math:`d_g = (X'WX - X_g'W_gX_g)^{-1} X_g'W_g e_g`. The variance is
    :math:`\frac{G-1}{G}\sum_g d_g d_g'`. With few clusters, the usual sandwich is too small.
    """
    varying = np.flatnonzero(design.any(axis=0))
    own, error = design[:, varying], np.full(design.shape[1], np.nan)
    coef = np.linalg.lstsq(own * np.sqrt(weight)[:, None], targets * np.sqrt(weight), rcond=None)[0]
    scores = own * (weight * (targets - own @ coef))[:, None]
    gram = (own.T * weight) @ own
    order = np.argsort(clusters, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(clusters[order])) + 1)
    changes = np.empty((len(parts), len(varying)))
    try:
        for number, part in enumerate(parts):
            rest = gram - (own[part].T * weight[part]) @ own[part]
            changes[number] = np.linalg.solve(rest, scores[part].sum(axis=0))
    except np.linalg.LinAlgError:  # a column varies within one cluster only
        return error
    error[varying] = np.sqrt((len(parts) - 1) / len(parts) * (changes**2).sum(axis=0))
    return error
