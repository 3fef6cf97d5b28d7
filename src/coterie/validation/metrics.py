"""Scores of predictions, with the contribution of each sample to their error.

The functions take a tenth of the time of scikit-learn's, which spend most of it on checks. Validation calls them once per size
of each path, so this matters. A :class:`Linearised` score also has the first-order effect of each sample's weight on the
score, from which :mod:`coterie.validation.intervals` computes intervals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.solver.error_measures import SQUARED_ERROR, ErrorMeasure
from coterie.solver.loss import trait
from coterie.solver.losses import LOSSES


class Linearised(NamedTuple):
    """A score and its linearisation.

    Attributes
    ----------
    value : float
        The score. NaN if it is undefined.
    influence : ndarray of shape (n_samples,)
        Change of the score per relative change of a sample's weight. The sum is 0.
    """

    value: float
    influence: np.ndarray


def accuracy(y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the share of samples, by weight, whose label is predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.metrics import accuracy
    >>> accuracy(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([1.0, 2.0, 1.0]))
    0.5
    """
    right = y == predicted
    return np.count_nonzero(right) / len(right) if weight is None else float(np.average(right, weights=weight))


def balanced_accuracy(y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the mean over the classes of the share of their samples whose label is predicted.

    Classes without samples of positive weight are left out, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.metrics import balanced_accuracy
    >>> balanced_accuracy(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])).__round__(3)
    0.833
    """
    codes = np.unique(y, return_inverse=True)[1]
    mass = np.bincount(codes, weight)
    right = np.bincount(codes, (y == predicted) * (1.0 if weight is None else weight))
    present = mass > 0.0
    return float(np.mean(right[present] / mass[present])) if present.any() else np.nan


def roc_auc(positive: np.ndarray, values: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the share of pairs of a positive and a negative sample in which the positive one has the larger value.

    Ties count one half. NaN if all samples are on one side.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.metrics import roc_auc
    >>> roc_auc(np.array([False, True, False, True]), np.array([0.1, 0.2, 0.3, 0.4]))
    0.75
    """
    place = np.unique(values, return_inverse=True)[1]
    high, low = (np.bincount(place, side if weight is None else weight * side) for side in (positive, ~positive))
    n_pairs = high.sum() * low.sum()
    return float(high @ (np.cumsum(low) - low / 2) / n_pairs) if n_pairs > 0.0 else np.nan


def r_squared(y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return R² as defined by scikit-learn, including constant targets.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.metrics import r_squared
    >>> r_squared(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]))
    0.5
    """
    if len(y) < 2:
        return np.nan
    weight = np.ones(len(y)) if weight is None else weight
    error = float(weight @ (y - predicted) ** 2)
    variation = float(weight @ (y - np.average(y, weights=weight)) ** 2)
    if variation == 0.0:
        return 1.0 if error == 0.0 else 0.0
    return 1.0 - error / variation


# Scores of numbers that are computed without scikit-learn: one minus the error over that of the best constant.
MEASURES: dict[str, ErrorMeasure] = {
    measure.score: measure for measure in (trait(loss, "error_measure") for loss in LOSSES["numbers"].values())
}


def explained(measure: ErrorMeasure, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the share of the error that predictions explain: R² for the squared error.

    That of several targets (columns) is the mean of their shares.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.metrics import MEASURES, explained
    >>> y, predicted = np.array([0.0, 1.0, 5.0]), np.array([0.5, 1.5, 4.0])
    >>> [round(explained(MEASURES[name], y, predicted), 3) for name in ("r2", "d2_poisson")]
    [0.893, 0.817]
    """
    if y.ndim == 2:
        return float(np.mean([explained(measure, *own, weight) for own in zip(y.T, predicted.T, strict=True)]))
    if measure is SQUARED_ERROR:
        return r_squared(y, predicted, weight)
    return linearised_explained(measure, y, predicted, np.ones(len(y)) if weight is None else weight).value


def mean_absolute_error(y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the mean absolute difference between predictions and targets.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.metrics import mean_absolute_error
    >>> mean_absolute_error(np.array([1.0, 2.0]), np.array([1.5, 2.0]))
    0.25
    """
    return float(np.average(np.abs(y - predicted), weights=weight))


def brier_score(codes: np.ndarray, probabilities: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the mean squared difference between the probability of the second of two classes and its occurrence.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.metrics import brier_score
    >>> brier_score(np.array([0, 1]), np.array([[0.5, 0.5], [0.5, 0.5]]))
    0.25
    """
    return float(np.average((probabilities[:, 1] - codes) ** 2, weights=weight))


def confusion_table(codes: np.ndarray, predicted: np.ndarray, n_classes: int, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the number of samples (the weight) by class (rows) and predicted class (columns).

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.metrics import confusion_table
    >>> confusion_table(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
    array([[1., 1.],
           [0., 1.]])
    """
    cells = np.bincount(codes * n_classes + predicted, weight, minlength=n_classes**2)
    return cells.astype(np.float64).reshape(n_classes, n_classes)


def linearised_accuracy(right: np.ndarray, weight: np.ndarray) -> Linearised:
    """Return the share of the weight of samples that are predicted right."""
    value = float(np.average(right, weights=weight))
    return Linearised(value, weight * (right - value) / weight.sum())


def linearised_balanced_accuracy(codes: np.ndarray, right: np.ndarray, weight: np.ndarray) -> Linearised:
    """Return the mean over the classes of the share of the weight of samples that are predicted right."""
    mass = np.bincount(codes, weight)
    present = mass > 0.0
    share = np.divide(np.bincount(codes, weight * right), mass, out=np.zeros(len(mass)), where=present)
    value = float(share[present].mean())
    unit = np.divide(1.0, mass * present.sum(), out=np.zeros(len(mass)), where=present)
    return Linearised(value, weight * (right - share[codes]) * unit[codes])


def comparable_folds(positive: np.ndarray, weight: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return the numbers of the folds within which samples are compared.

    If fewer than half of the samples of a side are in folds that hold out both sides, all samples are in one fold.
    """
    sides = [np.bincount(fold, weight * side) for side in (positive, ~positive)]
    both = (sides[0] > 0.0) & (sides[1] > 0.0)
    return np.zeros_like(fold) if any(side[both].sum() < side.sum() / 2 for side in sides) else fold


def linearised_auc(positive: np.ndarray, values: np.ndarray, weight: np.ndarray, fold: np.ndarray) -> Linearised:
    """Return the share of pairs of a positive and a negative sample, both of one fold, that are in the right order.

    Values of different folds come from different models and are not compared, unless :func:`comparable_folds` unites them.
    """
    fold = comparable_folds(positive, weight, fold)
    sides = [np.bincount(fold, weight * side) for side in (positive, ~positive)]
    n_pairs = float(sides[0] @ sides[1])
    if n_pairs == 0.0:
        return Linearised(np.nan, np.zeros(len(values)))
    order = np.lexsort((values, fold))
    first = np.ones(len(order), dtype=bool)  # of equal values in a fold
    first[1:] = (np.diff(values[order]) != 0.0) | (np.diff(fold[order]) != 0)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(first) - 1
    # For each sample, the weight of the samples of the other side that are in the right order with it.
    agreeing = np.empty(len(values))
    for side, other, above in ((positive, 1, False), (~positive, 0, True)):
        mass = np.bincount(place, weight * ~side)
        below = np.cumsum(mass) - mass / 2
        total = sides[other][fold[side]]
        start = np.concatenate(([0.0], np.cumsum(sides[other])))[fold[side]]
        within = below[place[side]] - start
        agreeing[side] = total - within if above else within
    value = float((weight * agreeing)[positive].sum() / n_pairs)
    expected = np.where(positive, sides[1][fold], sides[0][fold])
    return Linearised(value, weight * (agreeing - value * expected) / n_pairs)


def linearised_r_squared(y: np.ndarray, predicted: np.ndarray, weight: np.ndarray) -> Linearised:
    """Return R², computed from all samples."""
    value = r_squared(y, predicted, weight)
    spread = (y - np.average(y, weights=weight)) ** 2
    variation = float(weight @ spread)
    if variation == 0.0 or np.isnan(value):
        return Linearised(value, np.zeros(len(y)))
    return Linearised(value, -weight * ((y - predicted) ** 2 - (1.0 - value) * spread) / variation)


def linearised_explained(measure: ErrorMeasure, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray) -> Linearised:
    """Return the share of the error that predictions explain, computed from all samples; the mean of several targets.

    The constant prediction minimises the error (the mean absolute error: up to one sample), so its own change has no
    effect of first order.
    """
    if y.ndim == 2:
        parts = [linearised_explained(measure, *own, weight) for own in zip(y.T, predicted.T, strict=True)]
        return Linearised(float(np.mean([part.value for part in parts])), np.mean([part.influence for part in parts], axis=0))
    if measure is SQUARED_ERROR:
        return linearised_r_squared(y, predicted, weight)
    if len(y) < 2:
        return Linearised(np.nan, np.zeros(len(y)))
    error = measure.of(y, predicted)
    spread = measure.of(y, np.full(len(y), measure.constant(y, weight)))
    total = float(weight @ spread)
    if total == 0.0:
        return Linearised(1.0 if float(weight @ error) == 0.0 else 0.0, np.zeros(len(y)))
    value = 1.0 - float(weight @ error) / total
    return Linearised(value, -weight * (error - (1.0 - value) * spread) / total)
