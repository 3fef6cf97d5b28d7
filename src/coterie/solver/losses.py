"""The losses: squared hinge losses for classification, the squared loss for regression, and the names of all losses.

A new loss is a class in this or another module, and an entry of :data:`LOSSES`;
``docs/development/adding-a-loss.md`` shows how to write one.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np

from coterie._numba import read_only
from coterie._parameters import Rule
from coterie.kernels.hinge import squared_hinges, unit_hinge
from coterie.kernels.losses import NOTHING, SQUARED, SQUARED_HINGE, Evaluation, LossArrays, squared_losses
from coterie.solver.design import Rows
from coterie.solver.families import CLASSES, Family
from coterie.solver.gamma import GammaLoss
from coterie.solver.loss import CompiledLoss, Loss, LossLike, LossState, Targets, by_target, trait
from coterie.solver.quantile import Quantile
from coterie.solver.several import SeveralTargets
from coterie.solver.smooth_losses import HuberLoss, LogisticLoss, PoissonLoss


class SquaredHinge(Loss):
    r"""Squared hinge loss with the margin :math:`\gamma` of TPAMI eq. (4), for labels ±1.

    .. math:: F(z) = \min_{\gamma, b} -\gamma + \frac C2 \sum_i \omega_i (\gamma - y_i(z_i + b))_+^2

    With an intercept, let :math:`p = \gamma - b` and :math:`q = \gamma + b`. The loss of positive samples depends only on p,
    that of negative samples only on q, and the problem separates into one equation per class,
    :math:`C\sum_{y_i = +1} \omega_i (p - z_i)_+ = \frac12` and
    :math:`C\sum_{y_i = -1} \omega_i (q + z_i)_+ = \frac12`. Without an intercept there is a single equation
    with right-hand side 1. The dual variables :math:`\alpha_i = C\omega_i(\gamma - y_i(z_i+b))_+` are
    then feasible at any z (:math:`\sum\alpha = 1`, and :math:`\sum\tilde\alpha = 0` with an intercept),
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
        Factor of :math:`\gamma`, and hence of the sum of the dual variables: the weight of this loss among others.
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
        """Return the loss of two classes, or of several classes, each against the rest."""
        codes, n_classes = targets.values, targets.n_classes
        if n_classes == 2:
            return SquaredHinge(np.where(codes == 1, 1.0, -1.0), weight, C, fit_intercept)
        return OneVsRestHinge(codes, n_classes, weight, C, fit_intercept)

    @staticmethod
    def predict(outputs: np.ndarray) -> np.ndarray:
        """Return the second of two classes if the output is positive, or the class with the largest of several outputs."""
        return (outputs[:, 0] > 0).astype(np.int64) if outputs.shape[1] == 1 else np.argmax(outputs, axis=1)

    @classmethod
    def constant_outputs(cls, targets: Targets, weight: np.ndarray) -> np.ndarray:
        """Return outputs that predict the largest class: the shares of the classes, or the difference of two shares."""
        codes, n_classes = targets.values, targets.n_classes
        shares = np.bincount(codes, weight, minlength=n_classes) / weight.sum()
        return shares if n_classes > 2 else shares[1:] - shares[:1]

    @property
    def dual_weight(self) -> np.ndarray:  # type: ignore[override]
        """C times the weights. Computed on demand, because solvers mostly use merged samples, of which there are fewer."""
        return (self.C * self.weight)[:, None]

    def conjugate(self, residual: np.ndarray) -> float:
        """Return :math:`F^*(-\\tilde\\alpha)` for a feasible residual."""
        used = self.weight > 0
        return float((residual[used, 0] ** 2 / self.dual_weight[used, 0]).sum()) / 2

    def kinds(self) -> np.ndarray:
        """Return the class of each sample as merge key, -1 for weight zero."""
        return np.where(self.weight > 0.0, self.labels > 0.0, -1)

    def merged(self, rows: Rows) -> SquaredHinge:
        """Return the loss with one sample per row, whose weight is the sum of the merged weights."""
        labels, weight = self.labels[rows.first], rows.sums(self.weight)
        return SquaredHinge(labels, weight, self.C, self.centred, importance=self.importance)

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """Return the residual of all samples: dual variables are divided in proportion to the weights."""
        return rows.divide(residual, self.weight)

    def plain(self) -> list[Loss]:
        """Return the usual squared hinge loss of the same samples."""
        return [UnitHinge(self.labels, self.weight, self.C, self.centred)]

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """Return the loss at these outputs, with gamma and b eliminated."""
        return _evaluated(self, outputs, previous)

    @cached_property
    def arrays(self) -> LossArrays:  # type: ignore[override]
        """The loss in compiled form."""
        codes = (self.labels < 0.0).astype(np.int64)
        return _hinge_arrays(codes, np.zeros(1, dtype=np.int64), self.weight, self.C, self)

    def state(self, found: Evaluation) -> LossState:
        """Return the state for the results of the kernel."""
        return _hinge_state(found)


class OneClassHinge(SquaredHinge):
    """Squared hinge loss of one class (TPAMI section 3.8): all labels are 1, and there is no intercept."""

    @classmethod
    def of(cls, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """Return the loss of samples of one class. Outliers have weight zero."""
        return SquaredHinge(np.ones(len(targets.values)), weight, C, fit_intercept=False)

    @staticmethod
    def predict(outputs: np.ndarray) -> np.ndarray:
        """Return 1 if the output minus the margin is non-negative, else -1 (outlier)."""
        return np.where(outputs[:, 0] >= 0, 1, -1)

    @classmethod
    def constant_outputs(cls, targets: Targets, weight: np.ndarray) -> np.ndarray:
        """Return an output for which no sample is an outlier."""
        return np.ones(1)


class UnitHinge(Loss):
    r"""Squared hinge loss with a margin of 1: the usual form of the linear support vector machine.

    .. math:: F(z) = \min_b \frac C2 \sum_i \omega_i (1 - y_i(z_i + b))_+^2

    With a plain squared norm as the penalty, weights :math:`\gamma W` of :class:`SquaredHinge` and W of this loss define
    the same classifier. The residual :math:`\tilde\alpha_i = C\omega_i y_i(1 - y_i(z_i+b))_+` sums to zero with an
    intercept, and :math:`F^*(-\tilde\alpha) = \sum_i \alpha_i^2/(2C\omega_i) - \alpha_i`. The parameters are those of
    :class:`SquaredHinge`.
    """

    def __init__(self, labels: np.ndarray, weight: np.ndarray, C: float, fit_intercept: bool) -> None:
        self.labels = np.ascontiguousarray(labels, dtype=np.float64)
        self.weight = np.ascontiguousarray(weight, dtype=np.float64)
        self.C = float(C)
        self._share_one_offset(len(self.labels), fit_intercept)

    def scaled(self, factor: float) -> UnitHinge:
        """Return the same loss with C multiplied by ``factor``."""
        return UnitHinge(self.labels, self.weight, factor * self.C, self.centred)

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """Return the loss at these outputs, with b eliminated."""
        residual, curvature = np.empty(len(self.labels)), np.empty(len(self.labels))
        guess = 0.0 if previous is None or not self.centred else float(previous.offsets[0, 0])
        z = np.ascontiguousarray(outputs[:, 0])
        value, conjugate, offset = unit_hinge(z, self.labels, self.weight, self.C, self.centred, guess, residual, curvature)
        return LossState(
            value=value,
            conjugate=conjugate,
            residual=residual[:, None],
            curvature=curvature[:, None],
            offsets=np.array([[offset]]) if self.centred else np.empty((1, 0)),
            intercept=np.array([offset]),
            margin=np.ones(1),
        )


def _evaluated(loss: CompiledLoss, outputs: np.ndarray, previous: LossState | None) -> LossState:
    """Return a loss at given outputs, computed by its kernel."""
    arrays, (n_samples, n_outputs) = loss.arrays, outputs.shape
    guess = np.full(arrays.mass.shape, np.inf) if previous is None else previous.offsets
    offsets, residual, curvature = np.empty(guess.shape), np.empty((n_outputs, n_samples)), np.empty((n_outputs, n_samples))
    # The kernel for any loss contains all of them, which takes longer to compile than the one that is needed.
    if arrays.kind == SQUARED:
        value, conjugate = squared_losses(
            np.ascontiguousarray(outputs), arrays.targets, arrays.weight, arrays.C, arrays.factors, arrays.constant, offsets,
            residual, curvature,
        )  # fmt: skip
    else:
        value, conjugate = squared_hinges(
            np.ascontiguousarray(outputs),
            arrays.codes,
            arrays.classes,
            arrays.weight,
            arrays.C,
            arrays.mass,
            guess,
            offsets,
            residual,
            curvature,
        )
    return loss.state(Evaluation(value, conjugate, residual, curvature, offsets))


def _hinge_arrays(codes: np.ndarray, classes: np.ndarray, weight: np.ndarray, C: float, loss: Loss) -> LossArrays:
    """Return hinge losses of some classes, each against the others, in compiled form."""
    return LossArrays(
        SQUARED_HINGE,
        read_only(codes),
        read_only(classes),
        NOTHING,
        read_only(weight),
        C,
        0.0,
        read_only(loss.mass),
        read_only(loss.strata),
        read_only(loss.signs),
    )


def _hinge_state(found: Evaluation) -> LossState:
    """Return the state of hinge losses. With an intercept, each output has the offsets p and q of :class:`SquaredHinge`."""
    offsets = found.offsets
    with_intercept = offsets.shape[1] == 2
    return LossState(
        value=found.value,
        conjugate=found.conjugate,
        residual=found.residual.T,
        curvature=found.curvature.T,
        offsets=offsets,
        intercept=0.5 * (offsets[:, 1] - offsets[:, 0]) if with_intercept else np.zeros(len(offsets)),
        margin=0.5 * (offsets[:, 0] + offsets[:, 1]) if with_intercept else offsets[:, 0].copy(),
    )


class OneVsRestHinge(Loss):
    """Squared hinge losses of each class against the others, with shared features.

    Each class has its own dual variables, margin and intercept. The value and the conjugate are sums over the classes.
    The contribution of a class to a feature's score has a standard error proportional to one over the square root of the
    class size. The importance of a class is the square root of its size over the mean size, which makes the noise equal for
    all classes. With equal importances, rare classes would select features by chance.

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
        """Return the class of each sample as merge key, -1 for weight zero."""
        return np.where(self._parts[0].weight > 0.0, self._codes, -1)

    def merged(self, rows: Rows) -> OneVsRestHinge:
        """Return the loss with one sample per row, whose weight is the sum of the merged weights."""
        result = OneVsRestHinge.__new__(OneVsRestHinge)
        result._codes = self._codes[rows.first]
        result._gather([part.merged(rows) for part in self._parts])
        return result

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """Return the residual of all samples: dual variables are divided in proportion to the weights."""
        return self._parts[0].spread(residual, rows)

    def conjugate(self, residual: np.ndarray) -> float:
        """Return the sum of the conjugates of the classes."""
        return sum(part.conjugate(residual[:, [c]]) for c, part in enumerate(self._parts))

    def plain(self) -> list[Loss]:
        """Return the usual squared hinge losses, one per class."""
        return [loss for part in self._parts for loss in part.plain()]

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """Return the losses at these outputs, with the offsets of every class eliminated."""
        return _evaluated(self, outputs, previous)

    @cached_property
    def arrays(self) -> LossArrays:  # type: ignore[override]
        """The losses in compiled form."""
        first = self._parts[0]
        return _hinge_arrays(self._codes, np.arange(self.n_outputs), first.weight, first.C, self)

    def state(self, found: Evaluation) -> LossState:
        """Return the state for the results of the kernel."""
        return _hinge_state(found)


class SquaredLoss(Loss):
    r"""Squared loss for regression.

    .. math:: F(z) = \min_b \frac C2 \sum_i \omega_i (y_i - z_i - b)^2

    The residual is :math:`\tilde\alpha = C\omega(y - z - b)`, which sums to zero with an intercept, and
    :math:`F^*(-\tilde\alpha) = \sum_i \tilde\alpha_i^2/(2C\omega_i) - \tilde\alpha_i y_i`. The loss is quadratic, so
    one Newton step of the master problem is exact up to the choice of nonzero blocks.

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
        Constant added to the loss: the variation of targets within merged samples.
    """

    takes_offset = True
    takes_several_targets = True
    is_equivariant = True
    is_quadratic = True

    def __init__(
        self, targets: np.ndarray, weight: np.ndarray, C: float, fit_intercept: bool, *, constant: float = 0.0
    ) -> None:
        self.targets = np.ascontiguousarray(targets, dtype=np.float64)
        self.weight = np.ascontiguousarray(weight, dtype=np.float64)
        self.C = float(C)
        self.constant = constant
        self._share_one_offset(len(self.targets), fit_intercept)
        # Subtracting the mean first keeps the rounding errors of large targets small.
        self._mean = float(np.average(self.targets, weights=self.weight)) if fit_intercept else 0.0

    @classmethod
    def of(cls, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """Return the loss of numeric targets less their offset."""
        if targets.values.ndim == 2:
            return SeveralTargets.of_loss(cls, targets, weight, C, fit_intercept)
        return SquaredLoss(_less_offset(targets), weight, C, fit_intercept)

    @staticmethod
    def predict(outputs: np.ndarray) -> np.ndarray:
        """Return the outputs: the link is the identity."""
        return by_target(outputs)

    @classmethod
    def constant_outputs(cls, targets: Targets, weight: np.ndarray) -> np.ndarray:
        """Return the means of the targets less their offsets."""
        return np.atleast_1d(np.average(_less_offset(targets), weights=weight, axis=0))

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """Return the loss at these outputs, with b eliminated."""
        return _evaluated(self, outputs, previous)

    @cached_property
    def arrays(self) -> LossArrays:  # type: ignore[override]
        """The loss in compiled form."""
        return LossArrays(
            SQUARED,
            read_only(np.zeros(len(self.targets), dtype=np.int64)),
            read_only(np.zeros(1, dtype=np.int64)),
            read_only(self.targets - self._mean),
            read_only(self.weight),
            self.C,
            self.constant,
            read_only(np.zeros((1, self.n_strata))),
            read_only(self.strata),
            read_only(self.signs),
            factors=read_only(np.ones(1)),
        )

    def state(self, found: Evaluation) -> LossState:
        """Return the state for the results of the kernel."""
        offset = found.offsets[:, 0] if self.centred else np.zeros(1)
        return LossState(
            value=found.value,
            conjugate=found.conjugate,
            residual=found.residual.T,
            curvature=found.curvature.T,
            offsets=found.offsets,
            intercept=self._mean + offset,
            margin=np.zeros(1),
        )

    def kinds(self) -> np.ndarray:
        """Return one merge key for all samples, because targets can be averaged, and -1 for weight zero."""
        return np.where(self.weight > 0.0, 0, -1)

    def merged(self, rows: Rows) -> SquaredLoss:
        """Return the loss with one sample per row. Targets are averaged; their variation about the mean is a constant."""
        targets = self._means(rows)
        apart = self.targets - targets[rows.owner]
        constant = 0.5 * self.C * float(self.weight @ apart**2)
        return SquaredLoss(targets, rows.sums(self.weight), self.C, self.centred, constant=self.constant + constant)

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """Return the residual of all samples: a share in proportion to the weight, plus the deviation of the target."""
        apart = self.C * self.weight * (self.targets - self._means(rows)[rows.owner])
        return residual[rows.owner] * _shares(self.weight, rows)[:, None] + apart[:, None]

    def _means(self, rows: Rows) -> np.ndarray:
        """Return the mean target of each row. It is exact for rows of one sample."""
        first = self.targets[rows.first]
        return first + rows.sums(self.weight * (self.targets - first[rows.owner])) / rows.sums(self.weight)


# The losses that an estimator accepts by name, by type of target.
LOSSES: dict[str, dict[str, LossLike]] = {
    "classes": {"squared_hinge": SquaredHinge, "logistic": LogisticLoss},
    "numbers": {
        "squared": SquaredLoss,
        "huber": HuberLoss,
        "quantile": Quantile(),
        "poisson": PoissonLoss,
        "gamma": GammaLoss,
    },
}


class LossRule(Rule):
    """Rule for a parameter that is the name of a loss or a user-defined loss (:class:`LossLike`)."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def allows(self, value: Any) -> bool:
        """Return True if a value is the name of a loss, or a loss."""
        if isinstance(value, str):
            return value in LOSSES[self.kind]
        return all(callable(getattr(value, name, None)) for name in ("of", "predict", "constant_outputs"))

    def description(self, value: Any = None) -> str:
        """Return a description of valid values."""
        return f"{known_losses(self.kind)}, or a Loss with of() and predict()"


def known_losses(kind: str) -> str:
    """Return the names of the losses of a kind of targets, as text."""
    *names, last = map(repr, LOSSES[kind])
    return f"{', '.join(names)} or {last}"


def loss_of(loss: str | LossLike, kind: str) -> LossLike:
    """Return the loss for the value of an estimator's parameter."""
    return LOSSES[kind][loss] if isinstance(loss, str) else loss


def family_of(loss: LossLike, has_classes: bool) -> Family:
    """Return the regression of effects and tests for the loss of an estimator: one for all losses of classes."""
    return CLASSES if has_classes else cast(Family, trait(loss, "family"))


def score_name(loss: LossLike) -> str:
    """Return the name of the score of numeric predictions or risks, for the loss of an estimator."""
    return str(getattr(loss, "default_score", None) or trait(loss, "error_measure").score)


def _less_offset(targets: Targets) -> np.ndarray:
    """Return numeric targets less their offset."""
    return targets.values if targets.offset is None else targets.values - targets.offset


def _shares(weight: np.ndarray, rows: Rows) -> np.ndarray:
    """Return each sample's share of the weight of its row, 0 for samples without a row."""
    sums = rows.expand(rows.sums(weight))
    return np.divide(weight, sums, out=sums)
