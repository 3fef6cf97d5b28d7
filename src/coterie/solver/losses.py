"""The losses: squared hinges for classes, the squared loss for numbers, and their names.

A new loss is a class here (or in a file of its own) and an entry of :data:`LOSSES`;
``docs/development/adding-a-loss.md`` shows how to write one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._parameters import Rule
from coterie.kernels.hinge import squared_hinges, unit_hinge_offset
from coterie.solver.design import Rows
from coterie.solver.loss import Loss, LossLike, LossState, Targets


class SquaredHinge(Loss):
    r"""Squared hinge loss with the margin :math:`\gamma` of TPAMI eq. (4), for labels ±1.

    .. math:: F(z) = \min_{\gamma, b} -\gamma + \frac C2 \sum_i \omega_i (\gamma - y_i(z_i + b))_+^2

    With an intercept, put :math:`p = \gamma - b` and :math:`q = \gamma + b`: the positive samples see
    only p, the negative ones only q, and the problem falls apart into one equation for each class,
    :math:`C\sum_{y_i = +1} \omega_i (p - z_i)_+ = \frac12` and
    :math:`C\sum_{y_i = -1} \omega_i (q + z_i)_+ = \frac12`. Without one there is a single equation
    with right side 1. The dual variables :math:`\alpha_i = C\omega_i(\gamma - y_i(z_i+b))_+` are
    then feasible at any z (:math:`\sum\alpha = 1`, :math:`\sum\tilde\alpha = 0` with an intercept),
    and :math:`F^*(-\tilde\alpha) = \frac1{2C}\sum \alpha_i^2/\omega_i`.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        +1 or -1.
    weight : ndarray of shape (n_samples,)
        Non-negative weights.
    C : float
        Weight of the loss.
    fit_intercept : bool
        Whether there is an offset b.
    importance : float
        What :math:`\gamma`, and so the sum of the dual variables, is multiplied by: how much this loss counts among others.
    """

    def __init__(
        self, labels: np.ndarray, weight: np.ndarray, C: float, fit_intercept: bool, *, importance: float = 1.0
    ) -> None:
        self.labels = np.ascontiguousarray(labels, dtype=np.float64)
        self.weight = np.ascontiguousarray(weight, dtype=np.float64)
        self.C = float(C)
        self.importance = importance
        self.centred = fit_intercept
        self.n_strata = 2 if fit_intercept else 1
        self.strata = ((self.labels < 0) & fit_intercept).astype(np.int8)[:, None]
        self.signs = self.labels[:, None]
        self.mass = np.full((1, self.n_strata), importance / self.n_strata)

    @classmethod
    def of(cls, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """The loss of two classes, or of several, one against the rest."""
        codes, n_classes = targets
        if n_classes == 2:
            return SquaredHinge(np.where(codes == 1, 1.0, -1.0), weight, C, fit_intercept)
        return OneVsRestHinge(codes, n_classes, weight, C, fit_intercept)

    @staticmethod
    def predict(outputs: np.ndarray) -> np.ndarray:
        """The second of two classes where the output is positive; of several the one with the largest output."""
        return (outputs[:, 0] > 0).astype(np.int64) if outputs.shape[1] == 1 else np.argmax(outputs, axis=1)

    @classmethod
    def constant_outputs(cls, targets: Targets, weight: np.ndarray) -> np.ndarray:
        """Outputs that predict the largest class: the shares of the classes, or the difference of two."""
        codes, n_classes = targets
        shares = np.bincount(codes, weight, minlength=n_classes) / weight.sum()
        return shares if n_classes > 2 else shares[1:] - shares[:1]

    @property
    def dual_weight(self) -> np.ndarray:  # type: ignore[override]
        """C times the weights; made when asked for, because samples can be many and solvers work on merged ones."""
        return (self.C * self.weight)[:, None]

    def conjugate(self, residual: np.ndarray) -> float:
        """:math:`F^*(-\\tilde\\alpha)` of a feasible residual."""
        used = self.weight > 0
        return float((residual[used, 0] ** 2 / self.dual_weight[used, 0]).sum()) / 2

    def kinds(self) -> np.ndarray:
        """The two classes."""
        return np.where(self.weight > 0.0, self.labels > 0.0, -1)

    def merged(self, rows: Rows) -> SquaredHinge:
        """Weights add up."""
        labels, weight = self.labels[rows.first], rows.sums(self.weight)
        return SquaredHinge(labels, weight, self.C, self.centred, importance=self.importance)

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """Dual variables go with the weights."""
        result = np.asarray(residual[rows.owner])
        result *= _shares(self.weight, rows)[:, None]  # in place: samples can be many
        return result

    def plain(self) -> list[Loss]:
        """The usual squared hinge loss of the same samples."""
        return [UnitHinge(self.labels, self.weight, self.C, self.centred)]

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """The loss at these outputs, with gamma and b eliminated."""
        codes = (self.labels < 0.0).astype(np.int64)
        return _squared_hinges(outputs, codes, np.zeros(1, dtype=np.int64), self.weight, self.C, self.mass, previous)


class OneClassHinge(SquaredHinge):
    """The squared hinge loss of one class (TPAMI section 3.8): all labels are 1, and there is no intercept."""

    @classmethod
    def of(cls, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """The loss of samples of one class; outliers have weight zero."""
        return SquaredHinge(np.ones(len(targets.values)), weight, C, fit_intercept=False)

    @staticmethod
    def predict(outputs: np.ndarray) -> np.ndarray:
        """1 where the output, less the margin, is not negative; -1 for outliers."""
        return np.where(outputs[:, 0] >= 0, 1, -1)

    @classmethod
    def constant_outputs(cls, targets: Targets, weight: np.ndarray) -> np.ndarray:
        """An output for which all samples are normal."""
        return np.ones(1)


class UnitHinge(Loss):
    r"""Squared hinge loss with a margin of 1: the linear support vector machine as it is mostly written.

    .. math:: F(z) = \min_b \frac C2 \sum_i \omega_i (1 - y_i(z_i + b))_+^2

    With a plain squared norm as the penalty, weights :math:`\gamma W` of :class:`SquaredHinge` and W of this loss are
    the same classifier. The residual :math:`\tilde\alpha_i = C\omega_i y_i(1 - y_i(z_i+b))_+` sums to zero with an
    intercept, and :math:`F^*(-\tilde\alpha) = \sum_i \alpha_i^2/(2C\omega_i) - \alpha_i`. Parameters as there.
    """

    def __init__(self, labels: np.ndarray, weight: np.ndarray, C: float, fit_intercept: bool) -> None:
        self.labels = np.ascontiguousarray(labels, dtype=np.float64)
        self.weight = np.ascontiguousarray(weight, dtype=np.float64)
        self.C = float(C)
        self._share_one_offset(len(self.labels), fit_intercept)

    def scaled(self, factor: float) -> UnitHinge:
        """The same loss with another C."""
        return UnitHinge(self.labels, self.weight, factor * self.C, self.centred)

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """The loss at these outputs, with b eliminated."""
        z = outputs[:, 0]
        offset = 0.0
        if self.centred:
            guess = 0.0 if previous is None else float(previous.offsets[0, 0])
            offset = unit_hinge_offset(z, self.labels, self.weight, guess)
        slack = np.maximum(1.0 - self.labels * (z + offset), 0.0)
        alpha = self.C * self.weight * slack
        if self.centred:  # rounding in the offset must not spoil the sums of the two classes
            positive = self.labels > 0
            sums = alpha[positive].sum(), alpha[~positive].sum()
            if min(sums) > 0.0:
                alpha *= np.where(positive, np.sqrt(sums[1] / sums[0]), np.sqrt(sums[0] / sums[1]))
        used = self.weight > 0.0
        return LossState(
            value=0.5 * self.C * float(self.weight @ slack**2),
            conjugate=0.5 * float((alpha[used] ** 2 / self.weight[used]).sum()) / self.C - float(alpha.sum()),
            residual=(alpha * self.labels)[:, None],
            curvature=np.where(slack > 0.0, self.C * self.weight, 0.0)[:, None],
            offsets=np.array([[offset]]) if self.centred else np.empty((1, 0)),
            intercept=np.array([offset]),
            margin=np.ones(1),
        )


def _squared_hinges(
    outputs: np.ndarray,
    codes: np.ndarray,
    classes: np.ndarray,
    weight: np.ndarray,
    C: float,
    mass: np.ndarray,
    previous: LossState | None,
) -> LossState:
    """Squared hinge losses of some classes against the others."""
    n_samples, n_outputs = outputs.shape
    guess = np.full(mass.shape, np.inf) if previous is None else previous.offsets
    offsets, residual, curvature = np.empty(mass.shape), np.empty((n_outputs, n_samples)), np.empty((n_outputs, n_samples))
    value, conjugate = squared_hinges(
        np.ascontiguousarray(outputs), codes, classes, weight, C, mass, guess, offsets, residual, curvature
    )
    with_intercept = mass.shape[1] == 2
    return LossState(
        value=value,
        conjugate=conjugate,
        residual=residual.T,
        curvature=curvature.T,
        offsets=offsets,
        intercept=0.5 * (offsets[:, 1] - offsets[:, 0]) if with_intercept else np.zeros(n_outputs),
        margin=offsets.mean(axis=1),
    )


class OneVsRestHinge(Loss):
    """Squared hinge losses of each class against the others, which share their features.

    Each class has its own dual variables, margin and intercept; the value and the conjugate are sums over the classes.
    What a class contributes to a feature's score has a standard error like one over the root of the class's size. So the
    classes' importances are the roots of their sizes over the mean size: the same noise from all. With the same
    importance, rare classes would choose the features by chance.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Class of each sample, from 0.
    n_classes : int
        Number of classes.
    weight : ndarray of shape (n_samples,)
        Non-negative weights.
    C : float
        Weight of the loss.
    fit_intercept : bool
        Whether there are offsets.
    """

    def __init__(self, codes: np.ndarray, n_classes: int, weight: np.ndarray, C: float, fit_intercept: bool) -> None:
        sizes = np.bincount(codes, weights=weight, minlength=n_classes)
        self._codes = np.ascontiguousarray(codes, dtype=np.int64)
        self._gather(
            [
                SquaredHinge(np.where(codes == c, 1.0, -1.0), weight, C, fit_intercept, importance=importance)
                for c, importance in enumerate(np.sqrt(sizes / sizes.mean()).tolist())
            ]
        )

    def _gather(self, parts: list[SquaredHinge]) -> None:
        self._parts = parts
        self.n_outputs = len(parts)
        self.centred = parts[0].centred
        self.n_strata = parts[0].n_strata
        self.strata = np.hstack([part.strata for part in parts])
        self.signs = np.hstack([part.signs for part in parts])
        self.dual_weight = np.hstack([part.dual_weight for part in parts])
        self.mass = np.vstack([part.mass for part in parts])

    def kinds(self) -> np.ndarray:
        """The classes."""
        return np.where(self._parts[0].weight > 0.0, self._codes, -1)

    def merged(self, rows: Rows) -> OneVsRestHinge:
        """Weights add up."""
        result = OneVsRestHinge.__new__(OneVsRestHinge)
        result._codes = self._codes[rows.first]
        result._gather([part.merged(rows) for part in self._parts])
        return result

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """Dual variables go with the weights."""
        return self._parts[0].spread(residual, rows)

    def conjugate(self, residual: np.ndarray) -> float:
        """Sum of the conjugates of the classes."""
        return sum(part.conjugate(residual[:, [c]]) for c, part in enumerate(self._parts))

    def plain(self) -> list[Loss]:
        """The usual squared hinge losses, one for each class."""
        return [loss for part in self._parts for loss in part.plain()]

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """The losses at these outputs, with the offsets of every class eliminated."""
        first = self._parts[0]
        return _squared_hinges(outputs, self._codes, np.arange(self.n_outputs), first.weight, first.C, self.mass, previous)


class SquaredLoss(Loss):
    r"""Squared loss for regression.

    .. math:: F(z) = \min_b \frac C2 \sum_i \omega_i (y_i - z_i - b)^2

    The residual is :math:`\tilde\alpha = C\omega(y - z - b)`, which sums to zero with an intercept, and
    :math:`F^*(-\tilde\alpha) = \sum_i \tilde\alpha_i^2/(2C\omega_i) - \tilde\alpha_i y_i`. The loss is quadratic, so
    one Newton step of the master is exact up to the choice of blocks.

    Parameters
    ----------
    targets : ndarray of shape (n_samples,)
        Values to predict.
    weight : ndarray of shape (n_samples,)
        Non-negative weights.
    C : float
        Weight of the loss.
    fit_intercept : bool
        Whether there is an offset b.
    constant : float
        What the loss is larger by: the variation of targets within merged samples.
    """

    def __init__(
        self, targets: np.ndarray, weight: np.ndarray, C: float, fit_intercept: bool, *, constant: float = 0.0
    ) -> None:
        self.targets = np.asarray(targets, dtype=np.float64)
        self.weight = np.asarray(weight, dtype=np.float64)
        self.C = float(C)
        self.constant = constant
        self._share_one_offset(len(self.targets), fit_intercept)
        # The mean goes first: what is left of large targets after it is small, and so are the rounding errors.
        self._mean = float(np.average(self.targets, weights=self.weight)) if fit_intercept else 0.0

    @classmethod
    def of(cls, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """The loss of some numbers."""
        return SquaredLoss(targets.values, weight, C, fit_intercept)

    @staticmethod
    def predict(outputs: np.ndarray) -> np.ndarray:
        """The outputs themselves: the link is the identity."""
        return outputs[:, 0]

    @classmethod
    def constant_outputs(cls, targets: Targets, weight: np.ndarray) -> np.ndarray:
        """The mean."""
        return np.array([np.average(targets.values, weights=weight)])

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """The loss at these outputs, with b eliminated."""
        centred = self.targets - self._mean
        error = centred - outputs[:, 0]
        offset = float(np.average(error, weights=self.weight)) if self.centred else 0.0
        error = error - offset
        residual = self.C * self.weight * error
        squares = float(residual @ error)
        return LossState(
            value=0.5 * squares + self.constant,
            # With a residual that sums to zero the mean of the targets drops out of the product.
            conjugate=0.5 * squares - float(residual @ centred) - self.constant,
            residual=residual[:, None],
            curvature=(self.C * self.weight)[:, None],
            offsets=np.array([[offset]]) if self.centred else np.empty((1, 0)),
            intercept=np.array([self._mean + offset]),
            margin=np.zeros(1),
        )

    def kinds(self) -> np.ndarray:
        """All samples may be merged: their mean stands for different targets."""
        return np.where(self.weight > 0.0, 0, -1)

    def merged(self, rows: Rows) -> SquaredLoss:
        """Weights add up; targets are averaged, and their variation about the mean is a constant."""
        targets = self._means(rows)
        apart = self.targets - targets[rows.owner]
        constant = 0.5 * self.C * float(self.weight @ apart**2)
        return SquaredLoss(targets, rows.sums(self.weight), self.C, self.centred, constant=self.constant + constant)

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """A share that goes with the weight, and what the target differs from the mean by."""
        apart = self.C * self.weight * (self.targets - self._means(rows)[rows.owner])
        return residual[rows.owner] * _shares(self.weight, rows)[:, None] + apart[:, None]

    def _means(self, rows: Rows) -> np.ndarray:
        """Mean targets of the rows, that of a single sample to the last digit."""
        first = self.targets[rows.first]
        return first + rows.sums(self.weight * (self.targets - first[rows.owner])) / rows.sums(self.weight)


# The losses that an estimator can be given by name, by what it predicts.
LOSSES: dict[str, dict[str, LossLike]] = {
    "classes": {"squared_hinge": SquaredHinge},
    "numbers": {"squared": SquaredLoss},
}


class LossRule(Rule):
    """A name of a loss for classes or for numbers, or a loss of the user's (:class:`LossLike`)."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def allows(self, value: Any) -> bool:
        """Whether a value names a loss, or is one."""
        if isinstance(value, str):
            return value in LOSSES[self.kind]
        return all(callable(getattr(value, name, None)) for name in ("of", "predict", "constant_outputs"))

    def description(self, value: Any = None) -> str:
        """What the parameter must be."""
        return f"one of {', '.join(map(repr, LOSSES[self.kind]))}, or a Loss with of() and predict()"


def loss_of(loss: str | LossLike, kind: str) -> LossLike:
    """The loss that a parameter names, or is."""
    return LOSSES[kind][loss] if isinstance(loss, str) else loss


def _shares(weight: np.ndarray, rows: Rows) -> np.ndarray:
    """What part of its row's weight each sample has; 0 for those that are in none."""
    sums = rows.sums(weight)[rows.owner]
    return np.divide(weight, sums, out=sums)
