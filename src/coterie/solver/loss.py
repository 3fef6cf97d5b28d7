r"""The interface of a loss, through which the master problem uses the targets.

The master problem minimises :math:`R(W) + F(XW)` with :math:`R(W) = \frac12(\sum_t \|W_t\|)^2` and a smooth convex loss
:math:`F` from which the intercept (and any other offset) has been eliminated. A loss is a small subclass of :class:`Loss`;
``docs/development/adding-a-loss.md`` shows how to write one.

**Eliminated offsets.** Near :math:`Z`, output c behaves like a weighted least-squares problem in which every stratum e of
samples has a free offset. With curvature h and signs d, its Hessian in W is
:math:`X'\mathrm{diag}(h)X - \sum_e u_e u_e' / \kappa_e`, where :math:`u_e = \sum_{i \in e} h_i d_i x_i`
and :math:`\kappa_e = \sum_{i\in e} h_i`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from coterie.kernels.cox import RiskSets
from coterie.kernels.losses import Evaluation, LossArrays
from coterie.solver.design import Coupling, Rows
from coterie.solver.error_measures import SQUARED_ERROR, ErrorMeasure
from coterie.solver.families import LEAST_SQUARES, Family

# Optional parts of a loss; see Loss.
MERGING = ("kinds", "merged", "spread")
COMPILED = ("arrays", "state")
OPTIONAL = ("mass", "dual_weight", "conjugate", "plain", "scaled", *MERGING, *COMPILED)


class Targets(NamedTuple):
    """Targets of a loss.

    Attributes
    ----------
    values : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Class codes from 0, or numbers to predict: two-dimensional for several targets.
    n_classes : int
        Number of classes. 0 if the targets are not classes.
    offset : ndarray of the same shape or None
        Numbers that are added to the outputs, for losses with ``takes_offset``.
    factors : ndarray of shape (n_targets,) or None
        Relative weights of several targets in the loss.
    """

    values: np.ndarray
    n_classes: int
    offset: np.ndarray | None = None
    factors: np.ndarray | None = None

    def target(self, number: int) -> Targets:
        """Return one of several targets."""
        return Targets(self.values[:, number], 0, None if self.offset is None else self.offset[:, number])


@dataclass(frozen=True)
class LossState:
    r"""Value and derivatives of a loss at given outputs, with offsets eliminated.

    Attributes
    ----------
    value : float
        :math:`F(Z)`.
    conjugate : float
        :math:`F^*(-\tilde\alpha)`, finite because the residual is dual feasible.
    residual : ndarray of shape (n_samples, n_outputs)
        :math:`\tilde\alpha = -\nabla F(Z)`.
    curvature : ndarray of shape (n_samples, n_outputs)
        Second derivative per sample (0 for inactive samples).
    offsets : ndarray of shape (n_outputs, n_strata)
        The eliminated offsets, used as a warm start for the next evaluation.
    intercept : ndarray of shape (n_outputs,)
        Offset to add to the outputs for predictions.
    margin : ndarray of shape (n_outputs,)
        The margin :math:`\gamma`, or 0 for losses without one.
    eliminated : ndarray of shape (rank, n_outputs), optional
        Weights of eliminated covariates, for the whitened columns that the loss uses.
    covariate_coef : ndarray of shape (n_covariates, n_outputs), optional
        Weights of eliminated covariates, for the original columns.
    coupling : Coupling, optional
        What the second derivative subtracts from the diagonal of curvatures, for a loss of one output that is not a sum over
        samples.
    """

    value: float
    conjugate: float
    residual: np.ndarray
    curvature: np.ndarray
    offsets: np.ndarray
    intercept: np.ndarray
    margin: np.ndarray
    eliminated: np.ndarray | None = None
    covariate_coef: np.ndarray | None = None
    coupling: Coupling | None = None


class LossLike(Protocol):
    """Valid ``loss`` of an estimator: a subclass of :class:`Loss`, or an object that creates losses.

    An object is used for losses with parameters, which are its attributes; see ``docs/development/adding-a-loss.md``.
    """

    def of(self, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """Return the loss of some targets."""
        ...

    def predict(self, outputs: np.ndarray) -> np.ndarray:
        """Return predictions (n_samples,) from linear outputs (n_samples, n_outputs): the inverse link.

        Those of several targets have the shape (n_samples, n_targets).
        """
        ...

    def constant_outputs(self, targets: Targets, weight: np.ndarray) -> np.ndarray:
        """Return the outputs, of shape (n_outputs,), of the best constant prediction."""
        ...


class Loss(ABC):
    r"""The interface between the targets and the solvers.

    Every loss has the attributes below and :meth:`evaluate`. Other parts are optional, and a solver requests them by name
    (:func:`require`). Solvers of the dual require ``mass``, ``dual_weight`` and :meth:`conjugate`. A model without blocks
    requires :meth:`plain`; :meth:`scaled` helps its solver to converge. With :meth:`kinds`, :meth:`merged` and :meth:`spread`,
    equal samples are merged and samples of weight zero are dropped (:mod:`coterie.solver.design`). With ``arrays`` and
    :meth:`state`, small problems are solved by one kernel (:mod:`coterie.kernels.newton`).

    Attributes
    ----------
    n_outputs : int
        Number of columns of the outputs :math:`Z = XW`.
    centred : bool
        Whether the residuals of each output sum to zero, as with an intercept.
    n_strata : int
        Number of eliminated offsets per output.
    strata : ndarray of int8 of shape (n_samples, n_outputs)
        Offset of each sample.
    signs : ndarray of shape (n_samples, n_outputs)
        The signs d of the offsets.
    mass : ndarray of shape (n_outputs, n_strata), optional
        Sum of the dual variables of each stratum, for losses whose dual variables are non-negative with given sums.
    dual_weight : ndarray of shape (n_samples, n_outputs), optional
        The weights h with :math:`F^*(-\tilde\alpha) = \frac12\sum\alpha^2/h`, for the same losses.
    arrays : LossArrays, optional
        The loss in compiled form.
    risk_sets : RiskSets or None
        Risk sets of the compiled partial likelihood; None for all other losses.
    covariates : ndarray of shape (n_samples, rank) or None
        Eliminated columns (:mod:`coterie.solver.adjusted`), with the penalty ``covariate_penalty``.
    error_measure : ErrorMeasure
        The error of numeric predictions, which defines their score (:mod:`coterie.solver.error_measures`).
    takes_offset : bool
        Whether :meth:`of` uses the offset of numeric targets.
    takes_several_targets : bool
        Whether :meth:`of` and :meth:`predict` support several targets (:mod:`coterie.solver.several`).
    is_equivariant : bool
        Whether dividing targets and offset by a number divides the outputs by it.
    is_quadratic : bool
        Whether the loss is a quadratic function of the outputs, so that covariates need no penalty.
    family : Family
        Regression of effects and tests for numeric targets (:mod:`coterie.solver.families`).
    positive_targets : bool
        Whether the loss is defined for non-negative targets only.
    has_probabilities : bool
        Whether :meth:`probabilities` is defined.
    has_unit_penalty : bool
        Whether automatic values of C do not depend on the curvature of the loss.
    """

    error_measure: ClassVar[ErrorMeasure] = SQUARED_ERROR
    takes_offset: ClassVar[bool] = False
    takes_several_targets: ClassVar[bool] = False
    is_equivariant: ClassVar[bool] = False
    is_quadratic: ClassVar[bool] = False
    family: ClassVar[Family] = LEAST_SQUARES
    positive_targets: ClassVar[bool] = False
    has_probabilities: ClassVar[bool] = False
    has_unit_penalty: ClassVar[bool] = True

    n_outputs: int = 1
    centred: bool
    n_strata: int
    strata: np.ndarray
    signs: np.ndarray
    mass: np.ndarray
    dual_weight: np.ndarray
    arrays: LossArrays
    risk_sets: RiskSets | None = None
    covariates: np.ndarray | None = None
    covariate_penalty: float = 0.0

    @classmethod
    def of(cls, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """Return the loss of some targets, for an estimator whose ``loss`` is this class."""
        raise NotImplementedError(f"{cls.__name__} cannot be the loss of an estimator, because it does not define of().")

    @staticmethod
    def predict(outputs: np.ndarray) -> np.ndarray:
        """Return predictions (n_samples,) from linear outputs (n_samples, n_outputs): the inverse link.

        Predictions are class codes, or numbers on the scale of the targets. Those of several targets have the shape
        (n_samples, n_targets). All scores and reports use this method.
        """
        raise NotImplementedError

    @staticmethod
    def probabilities(outputs: np.ndarray) -> np.ndarray:
        """Return probabilities (n_samples, n_classes) from linear outputs. Optional, with ``has_probabilities``."""
        raise NotImplementedError

    @classmethod  # noqa: B027 - most losses allow all targets
    def check(cls, targets: np.ndarray, weight: np.ndarray | None) -> None:
        """Raise a ``ValueError`` if the loss is not defined for some targets. ``weight`` is None if all are one."""

    @classmethod
    def constant_outputs(cls, targets: Targets, weight: np.ndarray) -> np.ndarray:
        """Return the outputs, of shape (n_outputs,), of the best constant prediction."""
        loss = cls.of(targets, weight, 1.0, True)
        return loss.evaluate(np.zeros((len(weight), loss.n_outputs))).intercept

    @abstractmethod
    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """Return the loss at these outputs. The previous state may serve as a warm start."""

    def conjugate(self, residual: np.ndarray) -> float:
        """Return :math:`F^*` at minus a residual with the required sums. Optional."""
        raise NotImplementedError  # checked by require()

    def plain(self) -> list[Loss]:
        """Return the losses of the usual linear models, one per output, for a model with a plain squared norm.

        In such a model the outputs are independent, and a free margin would be a redundant unknown. By default, a loss of
        one output returns itself.
        """
        return [self]

    def scaled(self, factor: float) -> Loss:
        """Return the same loss with its weight multiplied by ``factor``. Smaller weights are easier to solve. Optional."""
        raise NotImplementedError  # checked by require()

    def kinds(self) -> np.ndarray:
        """Return a merge key per sample: -1 for weight zero; samples with equal keys may be merged. Optional."""
        raise NotImplementedError  # checked by require()

    def merged(self, rows: Rows) -> Loss:
        """Return the loss with one sample per row. It equals this loss if samples of a row have equal outputs. Optional."""
        raise NotImplementedError  # checked by require()

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """Return the residual of all samples, given that of the merged loss. Optional."""
        raise NotImplementedError  # checked by require()

    def state(self, found: Evaluation) -> LossState:
        """Return the state for the results of ``evaluate_loss``. Optional, with ``arrays``."""
        raise NotImplementedError  # checked by require()

    @property
    def parts(self) -> frozenset[str]:
        """Names of the optional parts of this loss."""
        made = {name for name in OPTIONAL if getattr(type(self), name, None) is not getattr(Loss, name, None)}
        one_output = {"plain"} if self.n_outputs == 1 else set()
        # Inherited parts that depend on the loss function are not valid for a class that defines its own evaluate().
        own = _defining_class(type(self), "evaluate")
        inherited = [
            name
            for first, names in (("merged", MERGING), ("state", COMPILED))
            if not issubclass(_defining_class(type(self), first), own)
            for name in names
        ]
        return frozenset(made | one_output | (vars(self).keys() & OPTIONAL)).difference(inherited)

    def _share_one_offset(self, n_samples: int, fit_intercept: bool) -> None:
        """Set up one offset for all samples, the intercept, or none."""
        self.centred = fit_intercept
        self.n_strata = 1 if fit_intercept else 0
        self.strata = np.zeros((n_samples, 1), dtype=np.int8)
        self.signs = np.ones((n_samples, 1))


class CompiledLoss(Protocol):
    """A loss with the optional parts ``arrays`` and ``state``."""

    @property
    def arrays(self) -> LossArrays:
        """The loss in compiled form."""
        ...

    def state(self, found: Evaluation) -> LossState:
        """Return the state for the results of the kernel."""
        ...


def by_target(values: np.ndarray) -> np.ndarray:
    """Return outputs of shape (n_samples, n_targets) as predictions: one-dimensional for one target."""
    return values[:, 0] if values.shape[1] == 1 else values


def _defining_class(kind: type, name: str) -> type:
    """Return the class that defines a method of a class."""
    return next(base for base in kind.__mro__ if name in vars(base))


def trait(loss: LossLike, name: str) -> Any:
    """Return an attribute of the loss of an estimator that :class:`LossLike` does not require, or its default.

    A subclass that overrides ``of`` inherits neither the use of the offset nor the support of several targets.
    """
    kind = loss if isinstance(loss, type) else type(loss)
    if name in ("takes_offset", "takes_several_targets"):
        return vars(_defining_class(kind, "of")).get(name, False)
    return getattr(loss, name, getattr(Loss, name))


def require(loss: Loss, parts: Sequence[str], solver: str) -> None:
    """Raise a TypeError if a loss lacks a part that a solver requires."""
    missing = [part for part in parts if part not in loss.parts]
    if missing:
        raise TypeError(f"{solver} requires a loss with {' and '.join(missing)}, which {type(loss).__name__} does not define.")


def feasible_residual(loss: Loss, residual: np.ndarray) -> np.ndarray:
    """Return a residual rescaled to the mass of each stratum, which removes small errors in its sums."""
    result = residual.copy()
    for c in range(loss.n_outputs):
        stratum = loss.strata[:, c]
        sums = np.bincount(stratum, weights=np.abs(residual[:, c]), minlength=loss.n_strata)
        factor = np.divide(loss.mass[c], sums, out=np.zeros(loss.n_strata), where=sums > 0.0)
        result[:, c] *= factor[stratum]
    return result
