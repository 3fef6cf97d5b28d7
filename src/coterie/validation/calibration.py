r"""Probabilities by Platt scaling: a slope and offsets, fitted on held-out samples, turn decision values into logits.

The logits of the classes are :math:`a f_k + b_k` with a common slope :math:`a \ge 0` for decision values :math:`f_k` in units
of their margins (:func:`scale_of`). For two classes, with the difference as only decision value, they are 0 and
:math:`a f + b`. The offsets make the mean probability of each class its share of the samples. Without them, probabilities of a
rare class are too large (``docs/evidence/probabilities-evidence.md``). Target probabilities are slightly below 1, so that the
logits of perfectly separated classes remain finite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_MAX_STEPS = 100
# Bound of the squared Newton step, in units of the loss per sample, at which the fit ends.
_TOLERANCE = 1e-22
# Spread of the values, relative to their size, below which they do not distinguish samples.
_NO_SPREAD = 1e-13
# Smallest difference between the logit of the predicted class and the others.
_LEAST = 1e-9


class Calibration(NamedTuple):
    """Slope and offsets that turn decision values into logits.

    Attributes
    ----------
    slope : float or ndarray of shape (n_outputs,)
        Factor of the decision values, at least 0.
    offset : ndarray of shape (n_outputs,)
        Offset of each decision value. The sum over several classes is 0.
    """

    slope: float | np.ndarray
    offset: np.ndarray

    def in_units_of(self, scale: np.ndarray) -> Calibration:
        """Return the calibration of decision values that are ``scale`` times as large.

        The slope of a single decision value is a number, and there is one per class otherwise.
        """
        slope = self.slope / scale
        return Calibration(float(slope[0]) if len(scale) == 1 else slope, self.offset)

    def probabilities(self, outputs: np.ndarray, predicted: np.ndarray | None = None) -> np.ndarray:
        """Return the probabilities of all classes for decision values of shape (n_samples, n_outputs).

        With the class codes ``predicted``, the predicted class is the most probable one: near the boundary between classes,
        where the offsets would make another class more probable, the two have nearly equal probabilities.

        Examples
        --------
        >>> import numpy as np
        >>> from coterie.validation.calibration import Calibration
        >>> Calibration(0.5, np.array([0.0])).probabilities(np.array([[0.0], [2.0]])).round(2)
        array([[0.5 , 0.5 ],
               [0.27, 0.73]])
        """
        logits = all_classes(self.slope * outputs + self.offset)
        return softmax(logits if predicted is None else _raised(logits, predicted, self.slope * outputs))


def scale_of(margin: np.ndarray) -> np.ndarray:
    """Return the scale of the outputs of a model: its margins, or 1 for losses without one.

    Outputs are multiples of the margin, which decreases as the number of training samples increases. So the outputs of models
    that are fitted to different samples are compared in units of their margins.
    """
    return np.where(margin > 0.0, margin, 1.0)


def calibrate(outputs: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None) -> Calibration:
    """Return the slope and the offsets with the largest likelihood.

    The slope is 0 if the values are uninformative or contradict the classes. All samples then have the shares of the classes
    as probabilities.

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
    >>> from coterie.validation.calibration import calibrate
    >>> values = np.array([[-2.0], [-1.0], [1.0], [2.0], [-1.0], [1.0], [-1.0], [-2.0]])
    >>> found = calibrate(values, np.array([0, 0, 1, 1, 1, 0, 0, 0]))
    >>> round(found.slope, 2), found.offset.round(2)
    (0.73, array([-0.34]))
    """
    weight = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=np.float64)
    used = weight > 0.0
    outputs, codes, weight = outputs[used], codes[used], weight[used]
    n_classes = max(2, outputs.shape[1])
    targets = _targets(codes, weight, n_classes)
    weight = weight / weight.sum()
    size = float(np.abs(outputs).max(initial=0.0))
    # Centred values are on the scale of their spread, so that slope and offsets are of similar size.
    centre = weight @ outputs
    spread = all_classes(outputs - centre)
    spread = spread - spread.mean(axis=1, keepdims=True) if n_classes > 2 else spread
    scale = float(np.abs(spread).max(initial=0.0))
    found = _fitted(all_classes((outputs - centre) / scale), targets, weight) if scale > _NO_SPREAD * size else None
    if found is None or found[0] <= 0.0:
        return Calibration(0.0, _offsets(np.log(weight @ targets), n_classes))
    slope = float(found[0]) / scale
    return Calibration(slope, _offsets(found[1:] - slope * all_classes(centre[None, :])[0], n_classes))


def _fitted(values: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return slope and offsets of all classes, the first of which is 0, by Newton steps with a line search."""
    found = np.concatenate(([0.0], np.log(weight @ targets)))
    found[1:] -= found[1]
    share, loss = _loss(found, values, targets, weight)
    for _ in range(_MAX_STEPS):
        surplus = weight[:, None] * (share - targets)
        gradient = np.concatenate(([(surplus * values).sum()], surplus.sum(axis=0)[1:]))
        step = np.linalg.solve(_curvature(values, share, weight), gradient)
        decrement = float(gradient @ step)
        if decrement <= _TOLERANCE:
            break
        step = np.insert(step, 1, 0.0)
        length = 1.0
        while True:
            share, lower = _loss(found - length * step, values, targets, weight)
            if lower <= loss - 0.25 * length * decrement or length < 1e-10:
                break
            length /= 2
        found, loss = found - length * step, lower
    return found


def _loss(found: np.ndarray, values: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the probabilities and the mean cross entropy."""
    logits = found[0] * values + found[1:]
    logits = logits - logits.max(axis=1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return np.exp(logs), -float(weight @ (targets * logs).sum(axis=1))


def _curvature(values: np.ndarray, share: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the second derivatives by the slope and the offsets of all classes but the first."""
    mean = (share * values).sum(axis=1, keepdims=True)
    weighted = weight[:, None] * share
    mixed = (weighted * (values - mean)).sum(axis=0)[1:]
    offsets = np.diag(weighted.sum(axis=0)[1:]) - weighted[:, 1:].T @ share[:, 1:]
    slope = float((weighted * (values - mean) ** 2).sum())
    matrix = np.block([[np.array([[slope]]), mixed[None, :]], [mixed[:, None], offsets]])
    return matrix + 1e-15 * np.trace(matrix) * np.eye(len(matrix))


def _offsets(offset: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the offsets of the outputs from those of all classes."""
    return offset[1:] - offset[:1] if n_classes == 2 else offset - offset.mean()


def _targets(codes: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """Return target probabilities: the classes of the samples, mixed with the shares of the classes.

    The share of the mixture is 2 / (n + 2) for a total weight of n. For two classes of equal size, this is Platt's rule for
    the total weight. The mean target of a class is its share.
    """
    mass = np.bincount(codes, weight, minlength=n_classes)
    mixed = 2.0 / (mass.sum() + 2.0)
    targets = np.tile(mixed * mass / mass.sum(), (len(codes), 1))
    targets[np.arange(len(codes)), codes] += 1.0 - mixed
    return targets


def all_classes(outputs: np.ndarray) -> np.ndarray:
    """Return the values of all classes, which are on the last axis. For two classes these are 0 and the single output."""
    return np.concatenate([np.zeros_like(outputs), outputs], axis=-1) if outputs.shape[-1] == 1 else outputs


def _raised(logits: np.ndarray, predicted: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return logits in which the predicted class has the largest one.

    For two classes, the difference is at least a small multiple of the decision value, so that the order remains.
    """
    rows = np.arange(len(logits))
    others = logits.copy()
    others[rows, predicted] = -np.inf
    least = _LEAST * (1.0 + np.abs(values[:, 0])) if values.shape[1] == 1 else _LEAST
    raised = logits.copy()
    raised[rows, predicted] = np.maximum(logits[rows, predicted], others.max(axis=1) + least)
    return raised


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return the probabilities of the classes, which are on the last axis."""
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))
