r"""Probabilities from decision values: their softmax after multiplication by one number, learnt from held-out samples.

The logits of the classes are :math:`a f_k` (for two classes, whose only decision value is the difference, 0 and :math:`a f`):
temperature scaling. So the most probable class is the predicted one, always; an offset for each class would make the two
disagree near the border (``docs/evidence/probabilities-evidence.md``). The targets are a little less than sure, so that
classes which are told apart without an error have finite logits.
"""

from __future__ import annotations

import numpy as np

_MAX_STEPS = 200
_TOLERANCE = 1e-12


def probabilities(outputs: np.ndarray, slope: float) -> np.ndarray:
    """Probabilities of all classes for decision values of shape (n_samples, n_outputs).

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.calibration import probabilities
    >>> probabilities(np.array([[0.0], [2.0]]), 0.5).round(2)
    array([[0.5 , 0.5 ],
           [0.27, 0.73]])
    """
    return _softmax(slope * _all_classes(outputs))


def calibration_slope(outputs: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None) -> float:
    """The number with the largest likelihood; 0 where the values tell nothing, or speak against the classes.

    Parameters
    ----------
    outputs : ndarray of shape (n_samples, n_outputs)
        Decision values of samples that the models have not seen: one column for two classes, else one for each class.
    codes : ndarray of int of shape (n_samples,)
        Their classes, as numbers.
    weight : ndarray of shape (n_samples,), optional
        Their weights.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.calibration import calibration_slope
    >>> values = np.array([[-2.0], [-1.0], [1.0], [2.0], [-1.0], [1.0]])
    >>> round(calibration_slope(values, np.array([0, 0, 1, 1, 1, 0])), 2)
    0.53
    """
    weight = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=np.float64)
    scale = float(np.abs(outputs[weight > 0.0]).max(initial=0.0))
    if scale == 0.0:
        return 0.0
    values = _all_classes(outputs / scale)
    wanted = (_targets(codes, weight, values.shape[1]) * values).sum(axis=1)
    low, high, slope = 0.0, np.inf, 0.0
    for _ in range(_MAX_STEPS):  # the derivative rises with the slope: Newton's steps, and halves where they leave its bounds
        share = _softmax(slope * values)
        mean = (share * values).sum(axis=1)
        derivative = float(weight @ (mean - wanted))
        curvature = float(weight @ (share * (values - mean[:, None]) ** 2).sum(axis=1))
        if derivative > 0.0:
            high = slope
        else:
            low = slope
        if high == 0.0:
            return 0.0
        step = slope - derivative / curvature if curvature > 0.0 else np.inf
        if not low < step < high:
            step = (low + high) / 2 if np.isfinite(high) else 2.0 * max(slope, 1.0)
        if abs(step - slope) <= _TOLERANCE * max(step, 1.0):
            break
        slope = step
    return slope / scale


def _targets(codes: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """Of all samples with a weight of n, one more than n in n + 2 are sure (Platt's rule); the others share what is left."""
    mass = float(weight.sum())
    unsure = 1.0 / (mass + 2.0)
    targets = np.full((len(codes), n_classes), unsure / (n_classes - 1))
    targets[np.arange(len(codes)), codes] = 1.0 - unsure
    return targets


def _all_classes(outputs: np.ndarray) -> np.ndarray:
    """Values of all classes: the one of two classes is that of the second, with 0 for the first."""
    return np.hstack([np.zeros_like(outputs), outputs]) if outputs.shape[1] == 1 else outputs


def _softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
