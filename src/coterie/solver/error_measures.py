"""Measures of the error of numeric predictions, of which a score is the share that a model explains."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy


class ErrorMeasure(NamedTuple):
    """A measure of the error of numeric predictions, of which a score is the share that a model explains.

    Attributes
    ----------
    score : str
        Name of the score, as in scikit-learn.
    title : str
        Name of the score in text.
    of : callable
        Returns the error of each sample, given targets and predictions.
    constant : callable
        Returns the best constant prediction, given targets and weights.
    """

    score: str
    title: str
    of: Callable[[np.ndarray, np.ndarray], np.ndarray]
    constant: Callable[[np.ndarray, np.ndarray], float]


def mean(y: np.ndarray, weight: np.ndarray) -> float:
    """Return the weighted mean."""
    return float(np.average(y, weights=weight))


def median(y: np.ndarray, weight: np.ndarray) -> float:
    """Return the weighted median: the lower one of two."""
    order = np.argsort(y, kind="stable")
    total = np.cumsum(weight[order])
    return float(y[order[np.searchsorted(total, 0.5 * total[-1])]])


def _poisson_deviance(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    expected = np.maximum(predicted, np.finfo(float).tiny)
    return 2.0 * np.maximum(xlogy(y, y / expected) - y + expected, 0.0)


SQUARED_ERROR = ErrorMeasure("r2", "R²", lambda y, predicted: (y - predicted) ** 2, mean)
ABSOLUTE_ERROR = ErrorMeasure("d2_absolute_error", "D² (absolute error)", lambda y, predicted: np.abs(y - predicted), median)
POISSON_DEVIANCE = ErrorMeasure("d2_poisson", "D² (deviance)", _poisson_deviance, mean)
