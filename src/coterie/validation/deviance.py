"""Held-out deviance of calibrated outputs: a smooth criterion for the choice among candidates.

Accuracy on a few dozen held-out samples is equal for many candidates, and so is the area under the curve. The deviance uses
the size of every output. Outputs of different settings differ in scale. The outputs of each model are therefore calibrated
first, by the slope of largest likelihood on the same held-out samples, as in :mod:`coterie.validation.calibration`. With rare
classes they also differ in level, which matters neither for the ROC AUC nor for probabilities, so offsets are fitted as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from coterie.validation.calibration import calibrations, class_shares, target_probabilities

# Precision of the deviances.
_TOLERANCE = 1e-13
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
    with_offsets : bool, default=False
        Whether the calibration has offsets.
    """

    codes: np.ndarray
    weight: np.ndarray
    with_offsets: bool = False

    def __call__(self, outputs: Sequence[np.ndarray], held_out: np.ndarray) -> list[float]:
        """Return the deviance of each model, given its outputs of shape (n_held_out, n_outputs)."""
        codes, weight = self.codes[held_out], self.weight[held_out]
        used = weight > 0.0
        if not used.any() or not outputs:
            return [np.nan] * len(outputs)
        codes, weight = codes[used], weight[used]
        # A class may be absent from the held-out samples, but not from all.
        shares = class_shares(self.codes, self.weight, max(2, outputs[0].shape[1])) if self.with_offsets else None
        n_models = max(1, _MAX_VALUES // (2 * outputs[0].size))
        found: list[float] = []
        for first in range(0, len(outputs), n_models):
            part = np.stack([own[used] for own in outputs[first : first + n_models]])
            found += calibrated_deviances(part, codes, weight, shares).round(_DECIMALS).tolist()
        return found


def calibrated_deviances(
    outputs: np.ndarray, codes: np.ndarray, weight: np.ndarray, shares: np.ndarray | None = None
) -> np.ndarray:
    """Return the mean deviance of models whose outputs are calibrated by slopes, or slopes and offsets, of largest likelihood.

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
    shares : ndarray of shape (n_classes,), optional
        Shares of the classes, none of which is 0. With them, the calibration has offsets.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.deviance import calibrated_deviances
    >>> codes = np.array([0, 0, 1, 1])
    >>> separated, contrary = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[1.0], [1.0], [-1.0], [-1.0]])
    >>> calibrated_deviances(np.array([separated, 9 * separated, contrary]), codes, np.ones(4)).round(3)
    array([0.94 , 0.94 , 1.386])
    >>> shifted = separated + 5.0
    >>> calibrated_deviances(np.array([shifted]), codes, np.ones(4)).round(3)
    array([1.35])
    >>> calibrated_deviances(np.array([shifted]), codes, np.ones(4), np.array([0.5, 0.5])).round(3)
    array([0.94])
    """
    n_classes = max(2, outputs.shape[2])
    equal = np.full(n_classes, 1.0 / n_classes)
    targets = target_probabilities(codes, weight, equal if shares is None else shares)
    found = calibrations(outputs, targets, weight, with_offsets=shares is not None, tolerance=_TOLERANCE)
    return 2.0 * found[1]
