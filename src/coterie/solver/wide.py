r"""The master problem for wide blocks, without a matrix of their columns.

The squared sum of norms is a minimum over weights of the blocks that sum to one:

.. math:: \tfrac12\Big(\sum_t\|W_t\|\Big)^2 = \min_{\eta\ge0,\ \sum_t\eta_t=1}\ \tfrac12\sum_t\|W_t\|^2/\eta_t .

For given :math:`\eta` the problem is a plain linear model on the columns :math:`\sqrt{\eta_t}X_t`, one for each output,
which :mod:`coterie.solver.ridge` solves with a few products even if there are a million columns. What is left,

.. math::
    J(\eta) = \min_W \tfrac12\sum_t\|W_t\|^2/\eta_t + F(XW), \qquad
    \partial J/\partial\eta_t = -\tfrac12\|X_t'\tilde\alpha\|^2,

is convex and smooth in as many unknowns as there are blocks: sequential quadratic programming. With one block there is
nothing left.

**A free margin.** With a plain squared norm, :math:`\min_\gamma \gamma^2U(v) - \gamma` is what a loss with a margin
minimises over its scale, where U is the objective of the usual loss with margin 1 and :math:`W = \gamma v`. So
:math:`\gamma = 1/(2U)`, weights and residual are :math:`\gamma` times those of the usual loss, the value is :math:`-1/(4U)`. A
loss of importance :math:`\rho` has :math:`\rho\gamma` and :math:`\rho^2` times the value.
"""

from __future__ import annotations

import contextlib

import numpy as np
from scipy import optimize

from coterie._warnings import ignored
from coterie.solver.design import Design, ScaledDesign
from coterie.solver.loss import Loss, require
from coterie.solver.ridge import fit_ridge

# Relative gap at which the weights of the blocks are good enough, and the steps towards them at most.
_PRECISION = 1e-9
_MAX_STEPS = 100
_RESTARTS = 3
# Relative gap of each linear model, far below: its residuals are the gradient.
_INNER_PRECISION = 1e-13
# Weight of a block that had none so far.
_NEWCOMER = 0.1
NEEDS = ("plain",)


class _GoodEnough(Exception):  # noqa: N818 - it ends a search, it is no error
    """Ends the search for the weights of the blocks."""


def wide_master(design: Design, loss: Loss, blocks: np.ndarray, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Weights (n_selected, n_outputs), residuals (n_samples, n_outputs) near the optimum, and the Newton steps to it.

    The caller certifies the pair.

    Parameters
    ----------
    design : DenseDesign or SparseDesign
        The columns.
    loss : Loss
        A loss that falls apart into its outputs.
    blocks : ndarray of shape (n_blocks + 1,)
        Block t is made of the columns ``blocks[t]:blocks[t + 1]``.
    coef : ndarray of shape (n_selected, n_outputs)
        Weights to start from; zero for new blocks.
    """
    require(loss, NEEDS, "The solver for wide blocks")
    search = _Search(design, loss, blocks)
    start = _starting_weights(coef, blocks)
    if len(start) == 1:
        search.objective(start)
        return search.coef, search.residual, search.n_iter
    # The warning is about values outside their bounds, by rounding; the objective clips them.
    with contextlib.suppress(_GoodEnough), ignored(RuntimeWarning):
        for _ in range(_RESTARTS):
            optimize.minimize(
                search.objective,
                start,
                jac=True,
                method="SLSQP",
                bounds=[(0.0, 1.0)] * len(start),
                constraints={"type": "eq", "fun": lambda eta: eta.sum() - 1.0, "jac": np.ones_like},
                options={"ftol": 1e-16, "maxiter": _MAX_STEPS},
            )
            start = search.eta
    return search.coef, search.residual, search.n_iter


class _Search:
    """The function J and its gradient, and the best point met so far."""

    eta: np.ndarray
    coef: np.ndarray
    residual: np.ndarray

    def __init__(self, design: Design, loss: Loss, blocks: np.ndarray) -> None:
        self.design = design
        self.losses = loss.plain()
        # The sum of an output's dual variables where its margin is free, else 0.
        self.importance = loss.mass.sum(axis=1) if "mass" in loss.parts else np.zeros(loss.n_outputs)
        self.owner = np.repeat(np.arange(len(blocks) - 1), np.diff(blocks))
        self.n_iter = 0
        self._least = np.inf
        self._unit: float | None = None
        self._starts: list[np.ndarray] | None = None  # scores of the usual losses, from the model before

    def objective(self, eta: np.ndarray) -> tuple[float, np.ndarray]:
        """J and its gradient in units of the first J; ends the search where the gap is small enough."""
        eta = np.maximum(eta, 0.0) / np.maximum(eta, 0.0).sum()
        value, coef, residual, scores = self._model(np.sqrt(eta)[self.owner][:, None])
        squares = np.bincount(self.owner, weights=(scores * scores).sum(axis=1), minlength=len(eta))
        gap = 0.5 * float(squares.max() - squares @ eta) / max(abs(value), np.finfo(float).tiny)
        if self._unit is None or gap < self._least:
            self._least, self.eta, self.coef, self.residual = gap, eta, coef, residual
        if self._unit is None:
            self._unit = max(abs(value), np.finfo(float).tiny)
        if len(eta) > 1 and gap <= _PRECISION:
            raise _GoodEnough
        return value / self._unit, -0.5 * squares / self._unit

    def _model(self, factor: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Value, weights, residuals and scores of the optimum for the columns times a factor."""
        scaled = ScaledDesign(self.design, factor)
        starts = [None] * len(self.losses) if self._starts is None else [factor * scores for scores in self._starts]
        parts = [
            fit_ridge(loss, scaled, precision=_INNER_PRECISION, start=start)
            for loss, start in zip(self.losses, starts, strict=True)
        ]
        self.n_iter += sum(part.n_iter for part in parts)
        value = 0.0
        margins = np.ones(len(parts))
        for c, part in enumerate(parts):
            primal = -part.bound
            if self.importance[c]:
                margins[c] = 0.5 * self.importance[c] / primal
                primal = -0.25 * self.importance[c] ** 2 / primal
            value += primal
        residual = np.hstack([part.residual for part in parts])
        scores = self.design.scores(residual)
        self._starts = list(np.hsplit(scores, len(parts)))
        coef = factor * np.hstack([part.coef for part in parts])
        return value, margins * coef, margins * residual, margins * scores


def _starting_weights(coef: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Each block's share of the sum of norms; blocks without weights get a tenth altogether."""
    norms = np.sqrt(np.add.reduceat((coef * coef).sum(axis=1), blocks[:-1]))
    if not norms.any():
        return np.full(len(norms), 1.0 / len(norms))
    share = norms / norms.sum()
    new = share == 0.0
    return np.where(new, _NEWCOMER / max(new.sum(), 1), share * (1.0 - _NEWCOMER * new.any()))
