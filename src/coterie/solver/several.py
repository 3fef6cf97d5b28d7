r"""Several numeric targets of the same samples, which share their features as classes do.

.. math:: F(Z) = \sum_c F_c(z_c)

Each target c has an output, a loss of one target :math:`F_c` and an intercept of its own. Values and conjugates are sums, so
the duality gap certifies the model of all targets together. The norm of a block of features is that of the weights for all
targets.

**Units.** Residuals of targets in larger units would dominate the scores. The *scale* of a target is the standard deviation
of its residuals at the best constant prediction (for the squared loss that of the target). If a loss is equivariant, the
targets are divided by their scales, and the model is multiplied by them afterwards. Otherwise (counts), the losses are divided
by the scales, relative to their geometric mean, as those of the classes are (:class:`coterie.solver.smooth_losses.
LogisticLoss`). Either way, noise is equal for all targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from coterie._numba import read_only
from coterie.kernels.losses import NOTHING, Evaluation, LossArrays
from coterie.solver.design import Rows
from coterie.solver.loss import COMPILED, MERGING, Loss, LossLike, LossState, Targets


class SeveralTargets(Loss):
    """The sum of the losses of several targets.

    Parameters
    ----------
    losses : sequence of Loss
        The loss of each target, with one output.
    """

    def __init__(self, losses: Sequence[Loss]) -> None:
        self._losses = list(losses)
        first = self._losses[0]
        self.n_outputs = len(self._losses)
        self.centred, self.n_strata = first.centred, first.n_strata
        self.strata = np.hstack([loss.strata for loss in self._losses])
        self.signs = np.hstack([loss.signs for loss in self._losses])

    @classmethod
    def of_loss(cls, loss: LossLike, targets: Targets, weight: np.ndarray, C: float, fit_intercept: bool) -> SeveralTargets:
        """Return the loss of targets of shape (n_samples, n_targets), given that of an estimator with one target."""
        n_targets = targets.values.shape[1]
        factors = np.ones(n_targets) if targets.factors is None else targets.factors
        return cls([loss.of(targets.target(c), weight, C * float(factors[c]), fit_intercept) for c in range(n_targets)])

    @property
    def is_quadratic(self) -> bool:  # type: ignore[override]
        """Whether the losses of all targets are quadratic."""
        return all(loss.is_quadratic for loss in self._losses)

    @property
    def parts(self) -> frozenset[str]:
        """Optional parts that the losses of all targets have. Compiled forms are joined if the losses are of one kind."""
        shared = frozenset.intersection(*(loss.parts for loss in self._losses)) & {"plain", *MERGING, *COMPILED}
        return shared if len({type(loss) for loss in self._losses}) == 1 else shared.difference(COMPILED)

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """Return the loss at these outputs, with the intercept of every target eliminated."""
        return _joined(
            [
                loss.evaluate(outputs[:, [c]], None if previous is None else _state_of_target(previous, c))
                for c, loss in enumerate(self._losses)
            ]
        )

    def plain(self) -> list[Loss]:
        """Return the losses of the targets."""
        return [plain for loss in self._losses for plain in loss.plain()]

    def kinds(self) -> np.ndarray:
        """Return a merge key per sample: samples may be merged if they may be for every target."""
        kinds = np.column_stack([loss.kinds() for loss in self._losses])
        keys = kinds[:, 0] if (kinds == kinds[:, :1]).all() else np.unique(kinds, axis=0, return_inverse=True)[1].ravel()
        return np.where((kinds < 0).any(axis=1), -1, keys)

    def merged(self, rows: Rows) -> SeveralTargets:
        """Return the loss with one sample per row."""
        return SeveralTargets([loss.merged(rows) for loss in self._losses])

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """Return the residual of all samples, given that of the merged loss."""
        return np.hstack([loss.spread(residual[:, [c]], rows) for c, loss in enumerate(self._losses)])

    @cached_property
    def arrays(self) -> LossArrays:  # type: ignore[override]
        """The losses in compiled form."""
        every = [loss.arrays for loss in self._losses]
        first = every[0]

        def joined(name: str) -> np.ndarray:
            return read_only(np.concatenate([NOTHING, *(getattr(own, name) for own in every)]))

        return first._replace(
            codes=read_only(np.zeros(len(first.weight), dtype=np.int64)),
            classes=read_only(np.zeros(self.n_outputs, dtype=np.int64)),
            targets=joined("targets"),
            constant=sum(own.constant for own in every),
            mass=read_only(np.vstack([own.mass for own in every])),
            strata=read_only(self.strata),
            signs=read_only(self.signs),
            base=joined("base"),
            factors=read_only(np.array([own.C / first.C * own.factors[0] for own in every])),
            widths=joined("widths"),
        )

    def state(self, found: Evaluation) -> LossState:
        """Return the state for the results of the kernel."""
        states = []
        for c, loss in enumerate(self._losses):
            own = slice(c, c + 1)
            states.append(loss.state(Evaluation(0.0, 0.0, found.residual[own], found.curvature[own], found.offsets[own])))
        return replace(_joined(states), value=found.value, conjugate=found.conjugate)


def _joined(states: Sequence[LossState]) -> LossState:
    """Return the state of the sum of losses, given those of the losses."""
    return LossState(
        value=sum(state.value for state in states),
        conjugate=sum(state.conjugate for state in states),
        residual=np.hstack([state.residual for state in states]),
        curvature=np.hstack([state.curvature for state in states]),
        offsets=np.vstack([state.offsets for state in states]),
        intercept=np.concatenate([state.intercept for state in states]),
        margin=np.concatenate([state.margin for state in states]),
    )


def _state_of_target(state: LossState, c: int) -> LossState:
    """Return the part of a state that belongs to a target, without its value."""
    own = slice(c, c + 1)
    return LossState(
        value=np.nan,
        conjugate=np.nan,
        residual=state.residual[:, own],
        curvature=state.curvature[:, own],
        offsets=state.offsets[own],
        intercept=state.intercept[own],
        margin=state.margin[own],
    )


def target_scales(loss: LossLike, targets: Targets, weight: np.ndarray) -> np.ndarray:
    """Return the scale of each target: the standard deviation of its residuals at the best constant prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.solver.loss import Targets
    >>> from coterie.solver.losses import SquaredLoss
    >>> from coterie.solver.several import target_scales
    >>> target_scales(SquaredLoss, Targets(np.array([[0.0, 10.0], [2.0, 30.0]]), 0), np.ones(2))
    array([ 1., 10.])
    """
    used = weight > 0.0
    found = []
    for c in range(targets.values.shape[1]):
        state = loss.of(targets.target(c), weight, 1.0, True).evaluate(np.zeros((len(weight), 1)))
        found.append(float(np.sqrt((state.residual[used, 0] ** 2 / weight[used]).sum() / weight.sum())))
    return np.maximum(found, np.finfo(float).tiny)
