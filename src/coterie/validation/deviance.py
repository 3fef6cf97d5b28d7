"""Held-out deviance of calibrated outputs: a smooth criterion for the choice among candidates.

Accuracy on a few dozen held-out samples is equal for many candidates, and so is the area under the curve. The deviance uses
the size of every output. Outputs of different settings differ in scale, hence each model's outputs are first multiplied by
the slope of largest likelihood on the same held-out samples, as in :mod:`coterie.validation.calibration`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from coterie.validation.calibration import all_classes, softmax

_MAX_STEPS = 60
# Relative precision of the slopes. The deviance is flat at its minimum, so its error is of the order of the square.
_TOLERANCE = 1e-7
# Decimals of a deviance. Models that agree up to rounding errors are then tied, so that batches of paths change no choice.
_DECIMALS = 10
# Numbers (models × samples × classes) that are processed at once.
_MAX_VALUES = 1 << 21


class Deviance(Protocol):
    """Deviance of models on held-out samples."""

    def __call__(self, outputs: Sequence[np.ndarray], held_out: np.ndarray) -> list[float]:
        """Return the deviance of each model, given its outputs of shape (n_held_out, n_outputs)."""
        ...


@dataclass(frozen=True)
class HeldOutDeviance:
    """Mean deviance of held-out samples under the calibrated outputs of a model.

    Attributes
    ----------
    codes : ndarray of int of shape (n_samples,)
        Class codes of all samples.
    weight : ndarray of shape (n_samples,)
        Weights of all samples in the deviance.
    """

    codes: np.ndarray
    weight: np.ndarray

    def __call__(self, outputs: Sequence[np.ndarray], held_out: np.ndarray) -> list[float]:
        """Return the deviance of each model, given its outputs of shape (n_held_out, n_outputs)."""
        codes, weight = self.codes[held_out], self.weight[held_out]
        used = weight > 0.0
        if not used.any() or not outputs:
            return [np.nan] * len(outputs)
        codes, weight = codes[used], weight[used]
        n_models = max(1, _MAX_VALUES // (2 * outputs[0].size))
        found: list[float] = []
        for first in range(0, len(outputs), n_models):
            part = np.stack([own[used] for own in outputs[first : first + n_models]])
            found += calibrated_deviances(part, codes, weight).round(_DECIMALS).tolist()
        return found


def calibrated_deviances(outputs: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the mean deviance of models whose outputs are multiplied by their slopes of largest likelihood.

    The target probabilities are those of the calibration, slightly below 1: perfectly separated classes have a small deviance
    above 0. The slope is at least 0, so that a model that contradicts the classes is no better than a constant.

    Parameters
    ----------
    outputs : ndarray of shape (n_models, n_samples, n_outputs)
        Decision values: one column for two classes, else one column per class.
    codes : ndarray of int of shape (n_samples,)
        Class codes of the samples.
    weight : ndarray of shape (n_samples,)
        Positive weights of the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.deviance import calibrated_deviances
    >>> codes = np.array([0, 0, 1, 1])
    >>> separated, contrary = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[1.0], [1.0], [-1.0], [-1.0]])
    >>> calibrated_deviances(np.array([separated, 9 * separated, contrary]), codes, np.ones(4)).round(3)
    array([0.94 , 0.94 , 1.386])
    """
    scale = np.abs(outputs).max(axis=(1, 2))
    values = all_classes(outputs / np.where(scale > 0.0, scale, 1.0)[:, None, None])
    targets = _targets(codes, weight, values.shape[2])
    wanted = (weight[:, None] * targets * values).sum(axis=(1, 2))
    slope = _slopes(values, wanted, weight)
    logits = slope[:, None, None] * values
    shifted = logits - logits.max(axis=2, keepdims=True)
    mean = (np.log(np.exp(shifted).sum(axis=2)) - (targets * shifted).sum(axis=2)) @ weight
    return np.asarray(2.0 * mean / weight.sum())


def _targets(codes: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """Return target probabilities by Platt's rule: (n + 1) / (n + 2) for a sample's class, n being the total weight.

    The other classes share the rest.
    """
    unsure = 1.0 / (float(weight.sum()) + 2.0)
    targets = np.full((len(codes), n_classes), unsure / (n_classes - 1))
    targets[np.arange(len(codes)), codes] = 1.0 - unsure
    return targets


def _slopes(values: np.ndarray, wanted: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the slope of each model: Newton steps, and bisection for those that leave their brackets."""
    n_models = len(values)
    low, high, slope = np.zeros(n_models), np.full(n_models, np.inf), np.zeros(n_models)
    open_ = np.arange(n_models)
    for _ in range(_MAX_STEPS):
        own, now = values[open_], slope[open_]
        share = softmax(now[:, None, None] * own)
        mean = (share * own).sum(axis=2)
        derivative = mean @ weight - wanted[open_]
        curvature = (share * (own - mean[:, :, None]) ** 2).sum(axis=2) @ weight
        high[open_] = np.where(derivative > 0.0, now, high[open_])
        low[open_] = np.where(derivative > 0.0, low[open_], now)
        below, above = low[open_], high[open_]
        step = now - np.divide(derivative, curvature, out=np.full(len(now), np.inf), where=curvature > 0.0)
        middle = np.where(np.isfinite(above), (below + np.where(np.isfinite(above), above, 0.0)) / 2, 2 * np.maximum(now, 1.0))
        step = np.where((below < step) & (step < above), step, middle)
        slope[open_] = np.where(above == 0.0, 0.0, step)
        done = (above == 0.0) | (curvature == 0.0) | (np.abs(step - now) <= _TOLERANCE * np.maximum(step, 1.0))
        open_ = open_[~done]
        if not len(open_):
            break
    return slope
