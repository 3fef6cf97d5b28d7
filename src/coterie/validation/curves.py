"""Curves of held-out predictions: ROC curves, and observed values by predicted ones.

They consist of rates and means over many samples. No value of a single sample can be read from them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from coterie.validation import metrics

# Largest number of false positive rates of a ROC curve, and of bins of a calibration curve.
_RATES, _BINS = 200, 10
# Smallest number of samples, or of sample groups, per bin.
_PER_BIN = 10
# Quantile of the normal distribution for intervals of 95 %.
_NORMAL = 1.959964


@dataclass(frozen=True)
class RocCurve:
    """True positive rate by false positive rate, from 0 to 1, with two entries for a vertical step.

    Attributes
    ----------
    false_positive_rate, true_positive_rate : ndarray of shape (n_points,)
        Points of the curve.
    area : float
        Area under the curve.
    """

    false_positive_rate: np.ndarray
    true_positive_rate: np.ndarray
    area: float

    def to_dict(self) -> dict[str, object]:
        """Return the attributes by name, with lists for arrays."""
        return {name: getattr(value, "tolist", lambda own=value: own)() for name, value in asdict(self).items()}


def roc_curve(positive: np.ndarray, values: np.ndarray, weight: np.ndarray, fold: np.ndarray) -> RocCurve | None:
    """Return the mean of the ROC curves of the folds, weighted by their numbers of pairs; None without pairs.

    Values of different folds come from different models and are not compared. With these weights the area under the mean
    curve is the AUC of :func:`coterie.validation.metrics.linearised_auc`, the share of pairs in the right order.

    Parameters
    ----------
    positive : ndarray of bool of shape (n_samples,)
        Whether a sample belongs to the class.
    values : ndarray of shape (n_samples,)
        Held-out values, larger for the class.
    weight, fold : ndarray of shape (n_samples,)
        Weight and fold of each sample.
    """
    fold = metrics.comparable_folds(positive, weight, fold)
    parts, pairs = [], []
    for k in np.unique(fold):
        own = fold == k
        mass = [float(weight[own & side].sum()) for side in (positive, ~positive)]
        if min(mass) > 0.0:
            parts.append(_points(positive[own], values[own], weight[own]))
            pairs.append(mass[0] * mass[1])
    if not parts:
        return None
    share = np.array(pairs) / np.sum(pairs)
    rates = np.unique(np.concatenate([false for false, _ in parts]))
    if len(rates) > _RATES:
        rates = np.linspace(0.0, 1.0, _RATES + 1)
    below = share @ [_limit(*part, rates, "left") for part in parts]
    above = share @ [_limit(*part, rates, "right") for part in parts]
    area = sum(own * float(np.trapezoid(true, false)) for own, (false, true) in zip(share, parts, strict=True))
    points = np.column_stack([np.repeat(rates, 2), np.column_stack([below, above]).ravel()])
    kept = np.append(True, (np.diff(points, axis=0) != 0.0).any(axis=1))
    return RocCurve(points[kept, 0], points[kept, 1], float(area))


def _points(positive: np.ndarray, values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return false and true positive rates at all thresholds. Equal values are one step, which is a slanted line."""
    order = np.argsort(-values, kind="stable")
    last = np.append(np.diff(values[order]) != 0.0, True)
    rates = [np.append(0.0, np.cumsum((weight * side)[order])[last]) for side in (~positive, positive)]
    return rates[0] / rates[0][-1], rates[1] / rates[1][-1]


def _limit(false: np.ndarray, true: np.ndarray, rates: np.ndarray, side: str) -> np.ndarray:
    """Return the limit of a curve at given false positive rates, from the left (0 at the start) or from the right."""
    if side == "left":
        after = np.searchsorted(false, rates, side="left")
        before = np.maximum(after - 1, 0)
    else:
        before = np.searchsorted(false, rates, side="right") - 1
        after = np.minimum(before + 1, len(false) - 1)
    width = false[after] - false[before]
    part = np.divide(rates - false[before], width, out=np.zeros(len(rates)), where=width > 0.0)
    return np.asarray(true[before] + part * (true[after] - true[before]))


@dataclass(frozen=True)
class CalibrationCurve:
    """Observed values by predicted ones, as means over samples with similar predictions.

    Attributes
    ----------
    predicted, observed : ndarray of shape (n_bins,)
        Mean prediction, and mean observed value or share of the class.
    low, high : ndarray of shape (n_bins,)
        Interval (95 %) of the observed mean: Wilson's for shares, else from the standard error.
    samples : ndarray of int of shape (n_bins,)
        Number of samples.
    """

    predicted: np.ndarray
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    samples: np.ndarray

    def to_dict(self) -> dict[str, object]:
        """Return the attributes as lists."""
        return {name: value.tolist() for name, value in asdict(self).items()}


def calibration_curve(
    predicted: np.ndarray,
    observed: np.ndarray,
    weight: np.ndarray,
    sample: np.ndarray,
    unit: np.ndarray,
    *,
    shares: bool,
) -> CalibrationCurve | None:
    """Return observed means in up to ten bins of predictions of equal size; None for fewer than 20 independent samples.

    Parameters
    ----------
    predicted, observed, weight : ndarray of shape (n_entries,)
        Held-out predictions, observed values and weights.
    sample, unit : ndarray of int of shape (n_entries,)
        Sample, and independent sample or sample group, of each entry. The number of units in a bin determines its interval.
    shares : bool
        Whether observed values are 0 or 1.
    """
    n_bins = min(_BINS, len(np.unique(unit)) // _PER_BIN)
    if n_bins < 2:
        return None
    order = np.argsort(predicted, kind="stable")
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    # Equal predictions are in one bin, that of the first of them.
    first = position[order][np.searchsorted(predicted[order], predicted, side="left")]
    number = np.unique(first * n_bins // len(first), return_inverse=True)[1]
    rows = [_bin(predicted[own], observed[own], weight[own], sample[own], unit[own], shares) for own in _parts(number)]
    return CalibrationCurve(*(np.array(column) for column in zip(*rows, strict=True)))


def _parts(number: np.ndarray) -> list[np.ndarray]:
    return [number == k for k in range(int(number.max()) + 1)]


def _bin(
    predicted: np.ndarray, observed: np.ndarray, weight: np.ndarray, sample: np.ndarray, unit: np.ndarray, shares: bool
) -> tuple[float, float, float, float, int]:
    """Return mean prediction, mean observation, its interval, and the number of samples."""
    mean = float(np.average(observed, weights=weight))
    n_units = len(np.unique(unit))
    if shares:
        low, high = _wilson(mean, n_units)
    else:
        variance = float(np.average((observed - mean) ** 2, weights=weight))
        error = _NORMAL * np.sqrt(variance / max(1, n_units - 1))
        low, high = mean - float(error), mean + float(error)
    return float(np.average(predicted, weights=weight)), mean, low, high, len(np.unique(sample))


def _wilson(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's interval of a share of ``n`` samples."""
    centre = share + _NORMAL**2 / (2 * n)
    half = _NORMAL * np.sqrt(share * (1 - share) / n + _NORMAL**2 / (4 * n**2))
    scale = 1 + _NORMAL**2 / n
    return max(0.0, float((centre - half) / scale)), min(1.0, float((centre + half) / scale))
