r"""Losses that are sums over the samples: logistic for classes, Poisson for counts, Huber for numbers with outliers.

.. math:: F(Z) = \sum_c \min_{b_c} C k_c \sum_i \omega_i \ell(y_{ic}, z_{ic} + o_i + b_c)

o is the offset and :math:`k_c` the factor of output c, 1 unless there are several classes. The residual
:math:`\tilde\alpha = -\nabla F` sums to zero with an intercept, and
:math:`F^*(-\tilde\alpha) = -\langle\tilde\alpha, Z\rangle - F(Z)` by Fenchel's equality, which is the duality certificate.
:mod:`coterie.kernels.smooth` contains the functions :math:`\ell`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from coterie._numba import read_only
from coterie.inputs.targets import check_counts
from coterie.kernels import smooth
from coterie.kernels.losses import NOTHING, Evaluation, LossArrays
from coterie.kernels.smooth import LOGISTIC, smooth_losses
from coterie.solver.design import Rows
from coterie.solver.error_measures import ABSOLUTE_ERROR, POISSON_DEVIANCE
from coterie.solver.families import HUBER, POISSON
from coterie.solver.loss import Loss, LossState, Targets, by_target
from coterie.solver.regression import huber_width
from coterie.solver.several import SeveralTargets


class SmoothLoss(Loss):
    """Base class of losses that :func:`coterie.kernels.smooth.smooth_losses` evaluates.

    Subclasses define :attr:`arrays` and set the attributes below.

    Attributes
    ----------
    weight : ndarray of shape (n_samples,)
        Non-negative weights.
    C : float
        Weight of the loss.
    """

    has_unit_penalty = False
    weight: np.ndarray
    C: float

    def _set(self, weight: np.ndarray, C: float, fit_intercept: bool, n_outputs: int = 1) -> None:
        self.weight = np.ascontiguousarray(weight, dtype=np.float64)
        self.C = float(C)
        self.n_outputs = n_outputs
        self.centred, self.n_strata = fit_intercept, int(fit_intercept)
        self.strata = np.zeros((len(self.weight), n_outputs), dtype=np.int8)
        self.signs = np.ones((len(self.weight), n_outputs))

    def _compiled(
        self,
        kind: int,
        *,
        codes: np.ndarray | None = None,
        classes: np.ndarray | None = None,
        targets: np.ndarray = NOTHING,
        base: np.ndarray = NOTHING,
        factors: np.ndarray | None = None,
        widths: np.ndarray = NOTHING,
    ) -> LossArrays:
        """Return the loss in compiled form."""
        return LossArrays(
            kind,
            read_only(np.zeros(len(self.weight), dtype=np.int64) if codes is None else codes),
            read_only(np.zeros(1, dtype=np.int64) if classes is None else classes),
            read_only(targets),
            read_only(self.weight),
            self.C,
            0.0,
            read_only(np.zeros((self.n_outputs, self.n_strata))),
            read_only(self.strata),
            read_only(self.signs),
            read_only(base),
            read_only(np.ones(1) if factors is None else factors),
            read_only(widths),
        )

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """Return the loss at these outputs, with the intercepts eliminated."""
        own, shape = self.arrays, (self.n_outputs, len(self.weight))
        guess = np.full(own.mass.shape, np.inf) if previous is None else np.ascontiguousarray(previous.offsets)
        offsets, residual, curvature = np.empty(guess.shape), np.empty(shape), np.empty(shape)
        value, conjugate = smooth_losses(
            own.kind, np.ascontiguousarray(outputs), own.codes, own.classes, own.targets, own.base, own.weight, own.C,
            own.factors, own.widths, guess, offsets, residual, curvature,
        )  # fmt: skip
        return self.state(Evaluation(value, conjugate, residual, curvature, offsets))

    def state(self, found: Evaluation) -> LossState:
        """Return the state for the results of the kernel."""
        return LossState(
            value=found.value,
            conjugate=found.conjugate,
            residual=found.residual.T,
            curvature=found.curvature.T,
            offsets=found.offsets,
            intercept=(found.offsets[:, 0] if self.centred else np.zeros(self.n_outputs)) + self._centre,
            margin=np.zeros(self.n_outputs),
        )

    @property
    def _centre(self) -> float:
        """Constant that is subtracted from the targets."""
        return 0.0


class LogisticLoss(SmoothLoss):
    r"""Logistic loss of two classes, or of several classes, each against the others, with shared features.

    For an output and labels ±1, :math:`\ell(y, u) = \log(1 + e^{-yu})`. The outputs are log-odds. The dual variables
    :math:`\tilde\alpha_i/(Ck\omega_i)` are the differences of labels (0 or 1) and probabilities.

    The scores of a class against the others have a standard error proportional to :math:`\sqrt{s(1-s)}` for a share s of the
    samples. The factors :math:`k_c` are proportional to its reciprocal, so that the noise is equal for all classes, as for
    :class:`coterie.solver.losses.OneVsRestHinge`.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Class of each sample, from 0.
    classes : ndarray of int of shape (n_outputs,)
        The class that each output separates from the others.
    weight : ndarray of shape (n_samples,)
        Non-negative weights.
    C : float
        Weight of the loss.
    fit_intercept : bool
        Whether there are intercepts.
    factors : ndarray of shape (n_outputs,), optional
        The factors :math:`k_c`; 1 by default.
    """

    has_probabilities = True

    def __init__(
        self,
        codes: np.ndarray,
        classes: np.ndarray,
        weight: np.ndarray,
        C: float,
        fit_intercept: bool,
        factors: np.ndarray | None = None,
    ) -> None:
        self.codes = np.ascontiguousarray(codes, dtype=np.int64)
        self.classes = np.ascontiguousarray(classes, dtype=np.int64)
        self.factors = np.ones(len(self.classes)) if factors is None else np.ascontiguousarray(factors, dtype=np.float64)
        self._set(weight, C, fit_intercept, len(self.classes))

    @classmethod
    def of(cls, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """Return the loss of two classes, or of several classes, each against the rest."""
        codes, n_classes = targets.values, targets.n_classes
        if n_classes == 2:
            return LogisticLoss(codes, np.array([1]), weight, C, fit_intercept)
        share = np.bincount(codes, weight, minlength=n_classes) / weight.sum()
        variance = np.maximum(share * (1.0 - share), 1e-9)
        return LogisticLoss(codes, np.arange(n_classes), weight, C, fit_intercept, np.sqrt(variance.mean() / variance))

    @staticmethod
    def predict(outputs: np.ndarray) -> np.ndarray:
        """Return the more probable of two classes, or the class with the largest of several outputs."""
        return (outputs[:, 0] > 0).astype(np.int64) if outputs.shape[1] == 1 else np.argmax(outputs, axis=1)

    @staticmethod
    def probabilities(outputs: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes; several classes against the rest are divided by their sum."""
        positive = 0.5 * (1.0 + np.tanh(0.5 * outputs))
        if outputs.shape[1] == 1:
            return np.hstack([0.5 * (1.0 + np.tanh(-0.5 * outputs)), positive])
        # Logarithms, so that very improbable classes do not all get zero.
        logs = -np.logaddexp(0.0, -outputs)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    @cached_property
    def arrays(self) -> LossArrays:  # type: ignore[override]
        """The loss in compiled form."""
        return self._compiled(LOGISTIC, codes=self.codes, classes=self.classes, factors=self.factors)

    def plain(self) -> list[Loss]:
        """Return the losses of the outputs."""
        return [
            LogisticLoss(self.codes, self.classes[[c]], self.weight, self.C, self.centred, self.factors[[c]])
            for c in range(self.n_outputs)
        ]

    def scaled(self, factor: float) -> Loss:
        """Return the same loss with C multiplied by ``factor``."""
        return LogisticLoss(self.codes, self.classes, self.weight, factor * self.C, self.centred, self.factors)

    def kinds(self) -> np.ndarray:
        """Return the class of each sample as merge key, -1 for weight zero."""
        return np.where(self.weight > 0.0, self.codes, -1)

    def merged(self, rows: Rows) -> Loss:
        """Return the loss with one sample per row, whose weight is the sum of the merged weights."""
        weight = rows.sums(self.weight)
        return LogisticLoss(self.codes[rows.first], self.classes, weight, self.C, self.centred, self.factors)

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """Return the residual of all samples: dual variables are divided in proportion to the weights."""
        return rows.divide(residual, self.weight)


class LogLinkLoss(SmoothLoss):
    r"""Base class of losses of non-negative numbers with the logarithm as link. The offset is added to the logarithm.

    Subclasses set ``kind``, and the attributes of :class:`~coterie.solver.loss.Loss` that describe scores and tests.

    Parameters
    ----------
    targets : ndarray of shape (n_samples,)
        Non-negative numbers.
    weight : ndarray of shape (n_samples,)
        Non-negative weights.
    C : float
        Weight of the loss.
    fit_intercept : bool
        Whether there is an intercept.
    offset : ndarray of shape (n_samples,), optional
        Offsets; 0 by default.
    """

    takes_offset = True
    takes_several_targets = True
    positive_targets = True
    kind: ClassVar[int]

    def __init__(
        self, targets: np.ndarray, weight: np.ndarray, C: float, fit_intercept: bool, offset: np.ndarray | None = None
    ) -> None:
        self.targets = np.ascontiguousarray(targets, dtype=np.float64)
        self.offset = np.zeros(len(self.targets)) if offset is None else np.ascontiguousarray(offset, dtype=np.float64)
        self._set(weight, C, fit_intercept)

    @classmethod
    def of(cls, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """Return the loss of numbers."""
        if targets.values.ndim == 2:
            return SeveralTargets.of_loss(cls, targets, weight, C, fit_intercept)
        return cls(targets.values, weight, C, fit_intercept, targets.offset)

    @staticmethod
    def predict(outputs: np.ndarray) -> np.ndarray:
        """Return the expected numbers."""
        with np.errstate(over="ignore"):
            return np.minimum(np.exp(by_target(outputs)), np.finfo(float).max)

    @cached_property
    def arrays(self) -> LossArrays:  # type: ignore[override]
        """The loss in compiled form."""
        base = np.log(np.where(self.targets > 0.0, self.targets, 1.0)) - self.offset
        return self._compiled(self.kind, targets=self.targets, base=base)

    def scaled(self, factor: float) -> Loss:
        """Return the same loss with C multiplied by ``factor``."""
        return type(self)(self.targets, self.weight, factor * self.C, self.centred, self.offset)

    def kinds(self) -> np.ndarray:
        """Return a merge key per distinct target and offset, and -1 for weight zero."""
        return np.where(self.weight > 0.0, _numbered(self.targets, self.offset), -1)

    def merged(self, rows: Rows) -> Loss:
        """Return the loss with one sample per row, whose weight is the sum of the merged weights."""
        first = rows.first
        return type(self)(self.targets[first], rows.sums(self.weight), self.C, self.centred, self.offset[first])

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """Return the residual of all samples: a share in proportion to the weight."""
        return rows.divide(residual, self.weight)


class PoissonLoss(LogLinkLoss):
    r"""Half the Poisson deviance of counts with the logarithm as link. The parameters are those of :class:`LogLinkLoss`.

    .. math:: \ell(y, u) = \mu - y + y\log(y/\mu), \qquad \mu = e^u

    The offset o is the logarithm of an exposure, such as a time at risk. The dual variables
    :math:`\tilde\alpha_i/(C\omega_i) = y_i - \mu_i` are the differences of counts and expected counts. The intercept has a
    closed form.
    """

    kind = smooth.POISSON
    error_measure = POISSON_DEVIANCE
    family = POISSON

    @classmethod
    def check(cls, targets: np.ndarray, weight: np.ndarray | None) -> None:
        """Raise a ``ValueError`` for numbers that cannot be counts; warn about counts that are not whole."""
        check_counts(targets, weight)


class HuberLoss(SmoothLoss):
    r"""Huber loss of numbers: squared for errors up to :math:`\delta`, linear for larger ones.

    .. math:: \ell(y, u) = \begin{cases} \frac12(y - u)^2 & |y - u| \le \delta \\
                                         \delta(|y - u| - \frac12\delta) & \text{otherwise} \end{cases}

    The dual variables :math:`\tilde\alpha_i/(C\omega_i)` are the errors, cut at :math:`\pm\delta`.

    Parameters
    ----------
    targets : ndarray of shape (n_samples,)
        Values to predict.
    weight : ndarray of shape (n_samples,)
        Non-negative weights.
    C : float
        Weight of the loss.
    fit_intercept : bool
        Whether there is an intercept.
    width : float
        The limit :math:`\delta`.
    tilt : float, default=0
        Slope that is added to the derivative in the error, for the losses of quantiles (:mod:`coterie.solver.quantile`).
    """

    error_measure = ABSOLUTE_ERROR
    takes_offset = True
    takes_several_targets = True
    is_equivariant = True
    family = HUBER

    def __init__(
        self, targets: np.ndarray, weight: np.ndarray, C: float, fit_intercept: bool, width: float, tilt: float = 0.0
    ) -> None:
        self.targets = np.ascontiguousarray(targets, dtype=np.float64)
        self.width, self.tilt = float(width), float(tilt)
        self._set(weight, C, fit_intercept)
        # Subtracting a typical value first keeps the rounding errors of large targets small.
        self._typical = float(np.median(self.targets[self.weight > 0.0])) if fit_intercept else 0.0

    @classmethod
    def of(cls, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """Return the loss of numbers, with :func:`huber_width` as :math:`\\delta`."""
        return Huber().of(targets, weight, C, fit_intercept)

    @staticmethod
    def predict(outputs: np.ndarray) -> np.ndarray:
        """Return the outputs: the link is the identity."""
        return by_target(outputs)

    @property
    def _centre(self) -> float:
        return self._typical

    @cached_property
    def arrays(self) -> LossArrays:  # type: ignore[override]
        """The loss in compiled form."""
        return self._compiled(
            smooth.HUBER,
            targets=self.targets - self._typical,
            base=np.full(len(self.targets), self.tilt) if self.tilt else NOTHING,
            widths=np.array([self.width]),
        )

    def scaled(self, factor: float) -> Loss:
        """Return the same loss with C multiplied by ``factor``."""
        return HuberLoss(self.targets, self.weight, factor * self.C, self.centred, self.width, self.tilt)

    def kinds(self) -> np.ndarray:
        """Return a merge key per distinct target, and -1 for weight zero."""
        return np.where(self.weight > 0.0, _numbered(self.targets), -1)

    def merged(self, rows: Rows) -> Loss:
        """Return the loss with one sample per row, whose weight is the sum of the merged weights."""
        weight = rows.sums(self.weight)
        result = HuberLoss(self.targets[rows.first], weight, self.C, self.centred, self.width, self.tilt)
        result._typical = self._typical  # The offsets of warm starts refer to it.
        return result

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """Return the residual of all samples: a share in proportion to the weight."""
        return rows.divide(residual, self.weight)


@dataclass(frozen=True)
class Huber:
    """Huber loss with a given limit of quadratic errors, as ``loss=`` of a regressor.

    Parameters
    ----------
    width : float, default=None
        Largest absolute error with a quadratic loss, in units of the target. None for 1.345 robust standard deviations of the
        target less the offset (:func:`huber_width`), as for ``loss="huber"``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from coterie import GroupDiscoveryRegressor
    >>> from coterie.solver.smooth_losses import Huber
    >>> X, y = load_diabetes(return_X_y=True)
    >>> GroupDiscoveryRegressor(2, loss=Huber(width=20.0)).fit(X, y).support_features_
    array([8, 2])
    """

    width: float | None = None

    error_measure = HuberLoss.error_measure
    family = HuberLoss.family
    takes_offset = True
    takes_several_targets = True
    has_unit_penalty = False

    @property
    def is_equivariant(self) -> bool:
        """Whether the limit follows the unit of the target."""
        return self.width is None

    def __post_init__(self) -> None:
        if self.width is not None and not (np.isfinite(self.width) and self.width > 0.0):
            raise ValueError(f"width={self.width!r} must be a positive number.")

    def of(self, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """Return the loss of numbers less their offset."""
        if targets.values.ndim == 2:
            return SeveralTargets.of_loss(self, targets, weight, C, fit_intercept)
        values = targets.values if targets.offset is None else targets.values - targets.offset
        return HuberLoss(values, weight, C, fit_intercept, self.width or huber_width(values, weight))

    def predict(self, outputs: np.ndarray) -> np.ndarray:
        """Return the outputs: the link is the identity."""
        return by_target(outputs)

    def constant_outputs(self, targets: Targets, weight: np.ndarray) -> np.ndarray:
        """Return the output of the best constant prediction."""
        loss = self.of(targets, weight, 1.0, True)
        return loss.evaluate(np.zeros((len(weight), loss.n_outputs))).intercept


def _numbered(*values: np.ndarray) -> np.ndarray:
    """Return a number from 0 for each distinct row of some columns."""
    known = values[0] if len(values) == 1 or not values[1].any() else values[0] + 1j * values[1]
    return np.unique(known, return_inverse=True)[1]
