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
from scipy.special import expit

_MAX_STEPS = 100
# Bound of the squared Newton step, in units of the loss per sample, at which the fit ends.
_TOLERANCE = 1e-22
# Shortest step of the line search.
_SHORTEST = 1e-10
# Damping of the steps, in units of the gradient: smallest, first after a shortened step, and factor of its changes.
_LEAST_DAMPING, _FIRST_DAMPING, _DAMPING_FACTOR = 1e-4, 0.01, 4.0
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
    targets = target_probabilities(codes, weight, class_shares(codes, weight, max(2, outputs.shape[1])))
    return calibrations(outputs[None], targets, weight)[0][0]


def calibrations(
    outputs: np.ndarray,
    targets: np.ndarray,
    weight: np.ndarray,
    *,
    with_offsets: bool = True,
    tolerance: float = _TOLERANCE,
) -> tuple[list[Calibration], np.ndarray]:
    """Return the calibration of each of several models, and the mean cross entropy of the targets under it.

    Parameters
    ----------
    outputs : ndarray of shape (n_models, n_samples, n_outputs)
        Decision values: one column for two classes, else one column per class.
    targets : ndarray of shape (n_samples, n_classes)
        Target probabilities.
    weight : ndarray of shape (n_samples,)
        Positive weights of the samples.
    with_offsets : bool, default=True
        Whether there are offsets. Otherwise they are 0.
    tolerance : float
        Bound of the squared Newton step, in units of the cross entropy.
    """
    n_classes = targets.shape[1]
    weight = weight / weight.sum()
    size = np.abs(outputs).max(axis=(1, 2), initial=0.0)
    # Centred values are on the scale of their spread, so that slope and offsets are of similar size.
    centre = np.tensordot(outputs, weight, axes=(1, 0)) * with_offsets
    values = all_classes(outputs - centre[:, None, :])
    spread = values - values.mean(axis=2, keepdims=True) if n_classes > 2 else values
    scale = np.abs(spread).max(axis=(1, 2), initial=0.0)
    varying = np.flatnonzero(scale > _NO_SPREAD * size)
    level = np.log(weight @ targets) if with_offsets else np.zeros(n_classes)
    level = level - level[0]
    found, entropy = _fitted(values[varying] / scale[varying, None, None], targets, weight, level, with_offsets, tolerance)
    constant = -float((weight @ targets) @ np.log(softmax(level)))
    results, losses = [Calibration(0.0, _offsets(level, n_classes))] * len(outputs), np.full(len(outputs), constant)
    slopes = found[:, 0] / scale[varying]
    offsets = _offsets(found[:, 1:] - slopes[:, None] * all_classes(centre[varying]), n_classes)
    rising = found[:, 0] > 0.0
    for position in np.flatnonzero(rising).tolist():
        results[varying[position]] = Calibration(float(slopes[position]), offsets[position])
    losses[varying] = np.where(rising, entropy, constant)
    return results, losses


def _fitted(
    values: np.ndarray, targets: np.ndarray, weight: np.ndarray, level: np.ndarray, with_offsets: bool, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return slope and offsets of all classes, the first of which is 0, and the cross entropy, for each model.

    ``level`` are the offsets of a constant model. Newton steps with a line search; models leave the computation as they
    converge.
    """
    found = np.tile(np.append(0.0, level), (len(values), 1))
    # Positions of the free parameters: the slope, and the offsets of all classes but the first.
    free = np.delete(np.arange(len(level) + 1), 1) if with_offsets else np.zeros(1, dtype=np.int64)
    evaluate, derive = _loss, _derivatives
    if len(level) == 2:  # The same with a quarter of the operations.
        values, targets, evaluate, derive = values[:, :, 1], targets[:, 1], _loss_of_two, _derivatives_of_two
    share, entropy = evaluate(found, values, targets, weight)
    losses, open_, damping = entropy.copy(), np.arange(len(values)), np.full(len(values), _LEAST_DAMPING)
    for _ in range(_MAX_STEPS):
        gradient, curvature = derive(values, share, targets, weight)
        gradient, curvature = gradient[:, : len(free)], curvature[:, : len(free), : len(free)]
        step = np.linalg.solve(_regularised(curvature, gradient, damping), gradient[:, :, None])[:, :, 0]
        decrement = (gradient * step).sum(axis=1)
        kept = decrement > tolerance
        if not kept.any():
            break
        open_, values, decrement, damping = open_[kept], values[kept], decrement[kept], damping[kept]
        change = np.zeros((len(open_), found.shape[1]))
        change[:, free] = step[kept]
        length = np.ones(len(open_))
        while True:
            share, entropy = evaluate(found[open_] - length[:, None] * change, values, targets, weight)
            long = (entropy > losses[open_] - 0.25 * length * decrement) & (length >= _SHORTEST)
            if not long.any():
                break
            length[long] /= 2.0
        found[open_] -= length[:, None] * change
        losses[open_] = entropy
        raised = np.maximum(damping * _DAMPING_FACTOR, _FIRST_DAMPING)
        damping = np.where(length < 1.0, raised, np.maximum(damping / _DAMPING_FACTOR, _LEAST_DAMPING))
    return found, losses


def _loss(found: np.ndarray, values: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities and the mean cross entropy of each model."""
    logits = found[:, :1, None] * values + found[:, None, 1:]
    logits = logits - logits.max(axis=2, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    return np.exp(logs), -((targets * logs).sum(axis=2) * weight).sum(axis=1)


def _derivatives(
    values: np.ndarray, share: np.ndarray, targets: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of each model by the slope and the offsets of all classes but the first."""
    surplus = weight[:, None] * (share - targets)
    gradient = np.column_stack([(surplus * values).sum(axis=(1, 2)), surplus.sum(axis=1)[:, 1:]])
    mean = (share * values).sum(axis=2, keepdims=True)
    weighted = weight[:, None] * share
    n_classes = values.shape[2]
    matrix = np.empty((len(values), n_classes, n_classes))
    matrix[:, 0, 0] = (weighted * (values - mean) ** 2).sum(axis=(1, 2))
    matrix[:, 0, 1:] = matrix[:, 1:, 0] = (weighted * (values - mean)).sum(axis=1)[:, 1:]
    matrix[:, 1:, 1:] = -weighted[:, :, 1:].transpose(0, 2, 1) @ share[:, :, 1:]
    diagonal = np.arange(1, n_classes)
    matrix[:, diagonal, diagonal] += weighted.sum(axis=1)[:, 1:]
    return gradient, matrix


def _loss_of_two(
    found: np.ndarray, values: np.ndarray, targets: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Do the same as :func:`_loss` for two classes, given the values and targets of the second. Those of the first are 0."""
    logits = found[:, :1] * values + (found[:, 2:] - found[:, 1:2])
    return expit(logits), (np.logaddexp(0.0, logits) - targets * logits) @ weight


def _derivatives_of_two(
    values: np.ndarray, share: np.ndarray, targets: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Do the same as :func:`_derivatives` for two classes."""
    surplus, weighted = weight * (share - targets), weight * share * (1.0 - share)
    gradient = np.column_stack([(surplus * values).sum(axis=1), surplus.sum(axis=1)])
    matrix, moved = np.empty((len(values), 2, 2)), weighted * values
    matrix[:, 0, 0] = (moved * values).sum(axis=1)
    matrix[:, 0, 1] = matrix[:, 1, 0] = moved.sum(axis=1)
    matrix[:, 1, 1] = weighted.sum(axis=1)
    return gradient, matrix


def _regularised(curvature: np.ndarray, gradient: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """Return second derivatives with a multiple of the identity added, at least of the size of rounding.

    Where probabilities are 0 or 1 to rounding, the second derivatives vanish and the plain Newton step has no bound. With a
    multiple that is ``damping`` times the norm of the gradient, the norm of the step is at most 1 / damping, and convergence
    remains quadratic.
    """
    size = damping * np.sqrt((gradient**2).sum(axis=1)) + 1e-15 * np.trace(curvature, axis1=1, axis2=2)
    every = np.arange(curvature.shape[1])
    curvature[:, every, every] += size[:, None] + np.finfo(float).tiny
    return curvature


def _offsets(offset: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the offsets of the outputs from those of all classes."""
    if n_classes == 2:
        return offset[..., 1:] - offset[..., :1]
    return np.asarray(offset - offset.mean(axis=-1, keepdims=True))


def class_shares(codes: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the share of each class in the total weight."""
    mass = np.bincount(codes, weight, minlength=n_classes)
    return np.asarray(mass / mass.sum())


def target_probabilities(codes: np.ndarray, weight: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return target probabilities: the classes of the samples, mixed with the shares of the classes.

    The share of the mixture is 2 / (n + 2) for a total weight of n. For two classes of equal size, this is Platt's rule for
    the total weight. With the shares of the same samples, the mean target of a class is its share.
    """
    mixed = 2.0 / (float(weight.sum()) + 2.0)
    targets = np.tile(mixed * shares, (len(codes), 1))
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
