r"""The interface of a loss: what the master problem needs to know about the targets.

The master minimises :math:`R(W) + F(XW)` with :math:`R(W) = \frac12(\sum_t \|W_t\|)^2` and a smooth
convex loss :math:`F` from which the intercept (and any other offset) has been eliminated. A loss is one
small class (:class:`Loss`); ``docs/development/adding-a-loss.md`` shows how to write one.

**Eliminated offsets.** Near :math:`Z`, output c behaves like a weighted least-squares problem in
which every stratum e of samples has a free offset. With curvature h and signs d its Hessian in W is
:math:`X'\mathrm{diag}(h)X - \sum_e u_e u_e' / \kappa_e`, where :math:`u_e = \sum_{i \in e} h_i d_i x_i`
and :math:`\kappa_e = \sum_{i\in e} h_i`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from coterie.solver.design import Rows

# What a loss may have besides what every loss has; see Loss.
MERGING = ("kinds", "merged", "spread")
OPTIONAL = ("mass", "dual_weight", "conjugate", "plain", "scaled", *MERGING)


class Targets(NamedTuple):
    """Targets of a loss.

    Attributes
    ----------
    values : ndarray of shape (n_samples,)
        Class codes from 0, or numbers.
    n_classes : int
        Number of classes; 0 for numbers.
    """

    values: np.ndarray
    n_classes: int


@dataclass(frozen=True)
class LossState:
    r"""A loss at given outputs, offsets eliminated.

    Attributes
    ----------
    value : float
        :math:`F(Z)`.
    conjugate : float
        :math:`F^*(-\tilde\alpha)`, finite because the residual is dual feasible.
    residual : ndarray of shape (n_samples, n_outputs)
        :math:`\tilde\alpha = -\nabla F(Z)`.
    curvature : ndarray of shape (n_samples, n_outputs)
        Second derivative for each sample (0 where it is inactive).
    offsets : ndarray of shape (n_outputs, n_strata)
        The eliminated offsets; a warm start for the next evaluation.
    intercept : ndarray of shape (n_outputs,)
        What to add to the outputs to predict.
    margin : ndarray of shape (n_outputs,)
        :math:`\gamma`, for losses that have one (else 0).
    eliminated : ndarray of shape (rank, n_outputs), optional
        Weights of eliminated covariates, of the columns that the loss works with.
    covariate_coef : ndarray of shape (n_covariates, n_outputs), optional
        The same for the covariates as they were given.
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


class LossLike(Protocol):
    """What an estimator can be given as ``loss``: a subclass of :class:`Loss`, or an object that makes losses of one kind.

    Examples
    --------
    A loss with a parameter is made by an object that knows it; see ``docs/development/adding-a-loss.md``.
    """

    def of(self, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """The loss of some targets."""
        ...

    def predict(self, outputs: np.ndarray) -> np.ndarray:
        """Predictions of shape (n_samples,) from linear outputs of shape (n_samples, n_outputs): the inverse link."""
        ...

    def constant_outputs(self, targets: Targets, weight: np.ndarray) -> np.ndarray:
        """Outputs, of shape (n_outputs,), of the best prediction that is the same for all samples."""
        ...


class Loss(ABC):
    r"""The interface between the targets and the solvers.

    Every loss has the attributes below and :meth:`evaluate`. What some losses have besides, a solver asks for by
    name (:func:`require`): solvers of the dual need ``mass``, ``dual_weight`` and :meth:`conjugate`, a model without blocks
    needs :meth:`plain`, and :meth:`scaled` makes that model easier to reach. With :meth:`kinds`, :meth:`merged` and
    :meth:`spread` equal samples are merged, and those of weight zero left out (:mod:`coterie.solver.design`).

    Attributes
    ----------
    n_outputs : int
        Number of columns of the outputs :math:`Z = XW`.
    centred : bool
        Whether the residuals of each output sum to zero, as with an intercept.
    n_strata : int
        Number of eliminated offsets of an output.
    strata : ndarray of int8 of shape (n_samples, n_outputs)
        The offset that a sample belongs to.
    signs : ndarray of shape (n_samples, n_outputs)
        The signs d of the offsets.
    mass : ndarray of shape (n_outputs, n_strata), optional
        Sums of the dual variables of each stratum, for losses whose dual variables are non-negative with given sums.
    dual_weight : ndarray of shape (n_samples, n_outputs), optional
        The weights h with :math:`F^*(-\tilde\alpha) = \frac12\sum\alpha^2/h`, for the same losses.
    covariates : ndarray of shape (n_samples, rank) or None
        Columns that have been eliminated (:mod:`coterie.solver.adjusted`), with the penalty ``covariate_penalty``.
    """

    n_outputs: int = 1
    centred: bool
    n_strata: int
    strata: np.ndarray
    signs: np.ndarray
    mass: np.ndarray
    dual_weight: np.ndarray
    covariates: np.ndarray | None = None
    covariate_penalty: float = 0.0

    @classmethod
    def of(cls, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> Loss:
        """The loss of some targets, for an estimator whose ``loss`` names this class."""
        raise NotImplementedError(f"{cls.__name__} is not a loss that an estimator can be given: it has no of().")

    @staticmethod
    def predict(outputs: np.ndarray) -> np.ndarray:
        """Predictions of shape (n_samples,) from linear outputs of shape (n_samples, n_outputs): the inverse link.

        Class codes, or numbers on the scale of the targets. Everything that is scored or shown goes through here.
        """
        raise NotImplementedError

    @classmethod
    def constant_outputs(cls, targets: Targets, weight: np.ndarray) -> np.ndarray:
        """Outputs, of shape (n_outputs,), of the best prediction that is the same for all samples."""
        loss = cls.of(targets, weight, 1.0, True)
        return loss.evaluate(np.zeros((len(weight), loss.n_outputs))).intercept

    @abstractmethod
    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """The loss at these outputs; the previous state may serve as a warm start."""

    def conjugate(self, residual: np.ndarray) -> float:
        """:math:`F^*` at minus a residual with the right sums; optional."""
        raise NotImplementedError  # asked for by require()

    def plain(self) -> list[Loss]:
        """The losses of the usual linear models, one for each output, for a model with a plain squared norm.

        There the outputs have nothing in common, and a free margin is one unknown too many. A loss of one output stands
        for itself unless it says otherwise.
        """
        return [self]

    def scaled(self, factor: float) -> Loss:
        """The same loss with another weight, of which a smaller one is easier; optional."""
        raise NotImplementedError  # asked for by require()

    def kinds(self) -> np.ndarray:
        """A number for each sample: -1 for those of weight zero, and the same for samples that may be merged; optional."""
        raise NotImplementedError  # asked for by require()

    def merged(self, rows: Rows) -> Loss:
        """The same loss with a sample for each row, equal to this one where samples of a row have equal outputs; optional."""
        raise NotImplementedError  # asked for by require()

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """The residual of all samples from that of the merged loss; optional."""
        raise NotImplementedError  # asked for by require()

    @property
    def parts(self) -> frozenset[str]:
        """Which of the optional parts this loss has."""
        made = {name for name in OPTIONAL if getattr(type(self), name, None) is not getattr(Loss, name, None)}
        one_output = {"plain"} if self.n_outputs == 1 else set()
        # An inherited merged() does not fit a class with its own evaluate().
        inherited = () if issubclass(_maker(type(self), "merged"), _maker(type(self), "evaluate")) else MERGING
        return frozenset(made | one_output | (vars(self).keys() & OPTIONAL)).difference(inherited)

    def _share_one_offset(self, n_samples: int, fit_intercept: bool) -> None:
        """Let all samples share one offset, the intercept, or none."""
        self.centred = fit_intercept
        self.n_strata = 1 if fit_intercept else 0
        self.strata = np.zeros((n_samples, 1), dtype=np.int8)
        self.signs = np.ones((n_samples, 1))


def _maker(kind: type, name: str) -> type:
    """The class from which a class has a method."""
    return next(base for base in kind.__mro__ if name in vars(base))


def require(loss: Loss, parts: Sequence[str], solver: str) -> None:
    """Raise unless a loss has the parts that a solver needs."""
    missing = [part for part in parts if part not in loss.parts]
    if missing:
        raise TypeError(f"{solver} needs {' and '.join(missing)} of a loss, which {type(loss).__name__} does not have.")


def feasible_residual(loss: Loss, residual: np.ndarray) -> np.ndarray:
    """A residual with small errors in its sums, scaled to the mass of each stratum."""
    result = residual.copy()
    for c in range(loss.n_outputs):
        stratum = loss.strata[:, c]
        sums = np.bincount(stratum, weights=np.abs(residual[:, c]), minlength=loss.n_strata)
        factor = np.divide(loss.mass[c], sums, out=np.zeros(loss.n_strata), where=sums > 0.0)
        result[:, c] *= factor[stratum]
    return result
