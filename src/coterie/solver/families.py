"""Families: the regressions from which effects, joint tests and score tests of features come, by kind of outcome.

Each loss of an estimator has a family. Classes have one of their own, whatever the loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from coterie.solver.regression import (
    Estimate,
    huber_fit,
    least_squares_tests,
    linear_effects,
    logistic_effects,
    poisson_fit,
)

if TYPE_CHECKING:
    from coterie.solver.cox_regression import CoxRegression

# Smallest variance of a label relative to the largest possible one.
MIN_VARIANCE = 1e-9


@dataclass(frozen=True)
class NullFit:
    """A regression without the tested features.

    Attributes
    ----------
    residual, variance, third : ndarray of shape (n_samples,)
        Residuals, and the second and third central moments of the output under the null hypothesis.
    freedom : float
        Degrees of freedom of the residuals; infinite for classes and survival times.
    regression : CoxRegression or None
        The fitted regression of survival times, whose residuals are not independent.
    """

    residual: np.ndarray
    variance: np.ndarray
    third: np.ndarray
    freedom: float = np.inf
    regression: CoxRegression | None = None


class Family(ABC):
    """A regression with standard errors and score tests.

    The arguments are common to all methods: ``design``, whose first column is the intercept and whose others are
    standardised; ``targets``, those of one output; non-negative sample weights, of which 2 is equivalent to having the sample
    twice; sample groups from 0 (``clusters``) or None; and the offset of the linear predictor or None.

    Attributes
    ----------
    ratio_kind : {"odds", "hazard", "rate", "mean"} or None
        What the exponential of an effect is a ratio of.
    tests_linearly : bool
        Whether joint tests are those of least squares.
    """

    ratio_kind: ClassVar[str | None] = None
    tests_linearly: ClassVar[bool] = False

    @abstractmethod
    def effects(
        self,
        design: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        clusters: np.ndarray | None = None,
        offset: np.ndarray | None = None,
    ) -> Estimate:
        """Return the effects of the columns, with standard errors."""

    def tests(
        self,
        design: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        clusters: np.ndarray | None = None,
        offset: np.ndarray | None = None,
    ) -> Estimate:
        """Return the effect of each column in a regression on all columns, with the standard errors of joint tests.

        Those of least squares are the larger of robust and classical ones.
        """
        if self.tests_linearly:
            return least_squares_tests(design, targets if offset is None else targets - offset, weight, clusters)
        found = self.effects(design, targets, weight, clusters, offset)
        return found._replace(error=np.where(design.any(axis=0), found.error, np.nan))

    @abstractmethod
    def null(self, design: np.ndarray, targets: np.ndarray, weight: np.ndarray, offset: np.ndarray | None = None) -> NullFit:
        """Return the regression on some columns as the null model of score tests."""


class LeastSquares(Family):
    """Least squares, with HC3 standard errors: the family of numbers. The offset is subtracted from the targets."""

    tests_linearly = True

    def effects(
        self,
        design: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        clusters: np.ndarray | None = None,
        offset: np.ndarray | None = None,
    ) -> Estimate:
        """Return coefficients in units of the target."""
        return linear_effects(design, targets if offset is None else targets - offset, weight, clusters)

    def null(self, design: np.ndarray, targets: np.ndarray, weight: np.ndarray, offset: np.ndarray | None = None) -> NullFit:
        """Return the null model, with one variance for all samples."""
        targets = targets if offset is None else targets - offset
        return homogeneous(design, targets - design @ linear_effects(design, targets, weight).effect, weight)


class HuberRegression(Family):
    """Huber regression: the family of numbers with outliers. The offset is subtracted from the targets."""

    def effects(
        self,
        design: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        clusters: np.ndarray | None = None,
        offset: np.ndarray | None = None,
    ) -> Estimate:
        """Return coefficients in units of the target."""
        return huber_fit(design, targets if offset is None else targets - offset, weight, clusters).estimate

    def null(self, design: np.ndarray, targets: np.ndarray, weight: np.ndarray, offset: np.ndarray | None = None) -> NullFit:
        """Return the null model, whose residuals are cut at the limit of the loss."""
        targets = targets if offset is None else targets - offset
        return homogeneous(design, huber_fit(design, targets, weight).cut, weight)


class PoissonRegression(Family):
    """Poisson regression with robust standard errors: the family of counts. Effects are logarithms of rate ratios."""

    ratio_kind = "rate"

    def effects(
        self,
        design: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        clusters: np.ndarray | None = None,
        offset: np.ndarray | None = None,
    ) -> Estimate:
        """Return logarithms of rate ratios."""
        return poisson_fit(design, targets, weight, clusters, offset).estimate

    def null(self, design: np.ndarray, targets: np.ndarray, weight: np.ndarray, offset: np.ndarray | None = None) -> NullFit:
        """Return the null model, whose variances allow for overdispersion."""
        fit = poisson_fit(design, targets, weight, offset=offset)
        mean = np.maximum(fit.mean, np.finfo(float).tiny)
        if design.shape[1] == 1:  # the prior of the intercept would leave a small rest
            mean *= float(weight @ targets) / float(weight @ mean)
        residual, freedom = targets - mean, float(weight.sum()) - np.linalg.matrix_rank(design)
        excess = float(weight @ (residual**2 - mean)) / float(weight @ mean**2) * float(weight.sum()) / max(freedom, 1.0)
        variance = np.maximum(fit.dispersion * mean, mean + max(excess, 0.0) * mean**2)
        variance = np.maximum(variance, MIN_VARIANCE * variance.max())
        third = variance * (2.0 * variance / mean - 1.0)  # that of a negative binomial distribution
        return NullFit(residual, variance, third, freedom)


class Classes(Family):
    """The family of a class against the others, whose targets are 1 and 0.

    Effects and score tests come from logistic regressions. Joint tests are those of least squares, which classes that can be
    separated do not impair.
    """

    ratio_kind = "odds"
    tests_linearly = True

    def effects(
        self,
        design: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        clusters: np.ndarray | None = None,
        offset: np.ndarray | None = None,
    ) -> Estimate:
        """Return log-odds. There is no offset for classes."""
        return logistic_effects(design, targets, weight, clusters)

    def null(self, design: np.ndarray, targets: np.ndarray, weight: np.ndarray, offset: np.ndarray | None = None) -> NullFit:
        """Return the null model, with the moments of a Bernoulli distribution."""
        probability = 0.5 * (1.0 + np.tanh(0.5 * (design @ logistic_effects(design, targets, weight).effect)))
        if design.shape[1] == 1:  # the prior of the intercept would leave a small rest
            probability = np.full(len(weight), float(weight @ targets) / float(weight.sum()))
        variance = np.maximum(probability * (1.0 - probability), MIN_VARIANCE)
        return NullFit(targets - probability, variance, variance * (1.0 - 2.0 * probability))


def homogeneous(design: np.ndarray, residual: np.ndarray, weight: np.ndarray) -> NullFit:
    """Return a null model with the same moments for all samples, from its residuals."""
    freedom = float(weight.sum()) - np.linalg.matrix_rank(design)
    variance = max(float(weight @ residual**2) / max(freedom, 1.0), np.finfo(float).tiny)
    third = float(weight @ residual**3) / float(weight.sum())
    ones = np.ones(len(weight))
    return NullFit(residual, variance * ones, third * ones, freedom)


LEAST_SQUARES, HUBER, POISSON, CLASSES = LeastSquares(), HuberRegression(), PoissonRegression(), Classes()
