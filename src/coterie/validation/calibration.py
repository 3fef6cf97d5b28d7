r"""Probabilities by temperature scaling: the softmax of decision values times a slope fitted on held-out samples.

The logits of the classes are :math:`a f_k` (for two classes, with the difference as only decision value, 0 and :math:`a f`).
The most probable class is therefore always the predicted one. An offset per class would make the two disagree near the
decision boundary (``docs/evidence/probabilities-evidence.md``). The target probabilities are slightly below 1, so that the
logits of perfectly separated classes remain finite.
"""

from __future__ import annotations

import numpy as np

_MAX_STEPS = 200
_TOLERANCE = 1e-12


def probabilities(outputs: np.ndarray, slope: float) -> np.ndarray:
    """Return the probabilities of all classes for decision values of shape (n_samples, n_outputs).

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.calibration import probabilities
    >>> probabilities(np.array([[0.0], [2.0]]), 0.5).round(2)
    array([[0.5 , 0.5 ],
           [0.27, 0.73]])
    """
    return softmax(slope * all_classes(outputs))


def calibration_slope(outputs: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the slope with the largest likelihood, or 0 if the values are uninformative or contradict the classes.

    Parameters
    ----------
    outputs : ndarray of shape (n_samples, n_outputs)
        Decision values of held-out samples: one column for two classes, else one column per class.
    codes : ndarray of int of shape (n_samples,)
        Class codes of the samples.
    weight : ndarray of shape (n_samples,), optional
        Sample weights.

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
    values = all_classes(outputs / scale)
    wanted = (target_probabilities(codes, weight, values.shape[1]) * values).sum(axis=1)
    low, high, slope = 0.0, np.inf, 0.0
    # The derivative increases with the slope: Newton steps, and bisection if they leave the bracket.
    for _ in range(_MAX_STEPS):
        share = softmax(slope * values)
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


def target_probabilities(codes: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """Return target probabilities by Platt's rule: (n + 1) / (n + 2) for a sample's class, n being the total weight.

    The other classes share the rest.
    """
    mass = float(weight.sum())
    unsure = 1.0 / (mass + 2.0)
    targets = np.full((len(codes), n_classes), unsure / (n_classes - 1))
    targets[np.arange(len(codes)), codes] = 1.0 - unsure
    return targets


def all_classes(outputs: np.ndarray) -> np.ndarray:
    """Return the values of all classes, which are on the last axis. For two classes these are 0 and the single output."""
    return np.concatenate([np.zeros_like(outputs), outputs], axis=-1) if outputs.shape[-1] == 1 else outputs


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return the probabilities of the classes, which are on the last axis."""
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))
