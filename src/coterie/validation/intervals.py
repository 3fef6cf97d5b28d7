"""Intervals of held-out scores with stated coverage.

The variance of a score is that of its linearisation over independent units: samples, or sample groups. It accounts for the
held-out samples but not for the training samples that the models of the folds share, nor for the difference between these
models and the one fitted to all samples. A factor on standard errors makes up for both; it was chosen by simulation
(``benchmarks/score_intervals.py``). A fixed model on samples that no model was trained on needs no factor.
Scores between 0 and 1 have Wilson's interval for the number of independent samples that has the same variance, so that the
interval of a perfect score has a length. That of R² is symmetric in the logarithm of the share of the variance that is not
predicted.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from coterie.validation.metrics import Linearised
from coterie.validation.score_table import standard_error

LEVEL = 0.95
# Factors on standard errors, for scores between 0 and 1 and for others.
_SHARES_WIDENING, _WIDENING = 1.4, 1.85


def unit_variance(influence: np.ndarray, unit: np.ndarray) -> float:
    """Return the variance of a linearised score over independent units.

    Parameters
    ----------
    influence : ndarray of shape (n_samples,)
        Influences of the samples.
    unit : ndarray of int of shape (n_samples,)
        Unit of each sample: its number, or that of its sample group.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.intervals import unit_variance
    >>> right = np.array([1.0, 1.0, 0.0, 1.0])
    >>> round(unit_variance((right - right.mean()) / 4, np.arange(4)), 4)  # that of a mean
    0.0625
    """
    sums = np.bincount(np.unique(unit, return_inverse=True)[1], influence)
    return float(len(sums) / (len(sums) - 1) * (sums @ sums)) if len(sums) > 1 else np.nan


def share_interval(
    score: Linearised, unit: np.ndarray, n_independent: int, level: float = LEVEL, *, nested: bool = True
) -> tuple[float, float]:
    """Return the interval of a score between 0 and 1.

    Parameters
    ----------
    score : Linearised
        The score.
    unit : ndarray of int of shape (n_samples,)
        Independent unit of each sample.
    n_independent : int
        Number of units that determine the score: for AUC and balanced accuracy, those of the rarest class.
    level : float
        Stated coverage.
    nested : bool
        Whether the samples were predicted by the models of several folds. Otherwise standard errors need no factor.
    """
    variance = unit_variance(score.influence, unit)
    value = score.value
    if np.isnan(value) or np.isnan(variance) or n_independent < 2:
        return (0.0, 1.0)
    quantile = _quantile(n_independent, level, _SHARES_WIDENING if nested else 1.0)
    spread = value * (1.0 - value)
    # A perfect score has no variance; then the units count as independent samples.
    size = min(spread / variance, float(len(unit))) if variance > 0.0 and spread > 0.0 else float(n_independent)
    excess = quantile**2 / size
    middle = (value + excess / 2) / (1.0 + excess)
    half = quantile * np.sqrt(spread / size + excess / (4 * size)) / (1.0 + excess)
    return max(0.0, min(float(middle - half), value)), min(1.0, max(float(middle + half), value))


def r_squared_interval(
    score: Linearised, unit: np.ndarray, level: float = LEVEL, *, nested: bool = True
) -> tuple[float, float]:
    """Return the interval of R². For ``unit``, ``level`` and ``nested`` see :func:`share_interval`."""
    variance = unit_variance(score.influence, unit)
    rest = 1.0 - score.value
    if np.isnan(variance) or np.isnan(rest):
        return (-np.inf, 1.0)
    if rest <= 0.0:
        return (score.value, score.value)
    quantile = _quantile(len(np.unique(unit)), level, _WIDENING if nested else 1.0)
    factor = np.exp(quantile * np.sqrt(variance) / rest)
    return float(1.0 - rest * factor), float(1.0 - rest / factor)


def fold_interval(scores: np.ndarray, level: float = LEVEL) -> tuple[float, float] | None:
    """Return the interval of the mean over folds, for scores of any kind; None for fewer than two folds with a score.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.intervals import fold_interval
    >>> low, high = fold_interval(np.array([0.8, 0.9, 0.85]))
    >>> round(low, 2), round(high, 2)
    (0.62, 1.08)
    """
    known = np.asarray(scores, dtype=np.float64)
    known = known[~np.isnan(known)]
    if len(known) < 2:
        return None
    half = _quantile(len(known), level) * float(standard_error(known))
    return float(known.mean() - half), float(known.mean() + half)


def _quantile(n_units: int, level: float, widening: float = _WIDENING) -> float:
    """Return the widened quantile of Student's distribution for a number of independent units."""
    return widening * float(stdtrit(n_units - 1, (1.0 + level) / 2))
