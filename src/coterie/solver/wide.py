r"""The master problem for wide blocks, without forming a matrix over their columns.

The squared sum of norms is a minimum over weights of the blocks that sum to one:

.. math:: \tfrac12\Big(\sum_t\|W_t\|\Big)^2 = \min_{\eta\ge0,\ \sum_t\eta_t=1}\ \tfrac12\sum_t\|W_t\|^2/\eta_t .

For given :math:`\eta` the problem is a plain linear model per output on the columns :math:`\sqrt{\eta_t}X_t`, which
:mod:`coterie.solver.ridge` solves with a few products even if there are a million columns. The remaining problem,

.. math::
    J(\eta) = \min_W \tfrac12\sum_t\|W_t\|^2/\eta_t + F(XW), \qquad
    \partial J/\partial\eta_t = -\tfrac12\|X_t'\tilde\alpha\|^2,

is convex and smooth with one unknown per block, and is solved by sequential quadratic programming. With one block, nothing
remains to be optimised.

**Free margin.** With a plain squared norm, a loss with a margin minimises :math:`\gamma^2U(v) - \gamma` over its scale
:math:`\gamma`, where U is the objective of the usual loss with margin 1 and :math:`W = \gamma v`. Hence
:math:`\gamma = 1/(2U)`, the weights and the residual are :math:`\gamma` times those of the usual loss, and the value is
:math:`-1/(4U)`. A loss of importance :math:`\rho` has the margin :math:`\rho\gamma` and :math:`\rho^2` times the value.
"""

from __future__ import annotations

import contextlib

import numpy as np
from scipy import optimize

from coterie._warnings import ignored
from coterie.solver.design import Design, ScaledDesign
from coterie.solver.loss import Loss, require
from coterie.solver.ridge import fit_ridge

# Relative gap at which the optimisation of the block weights stops, and its maximum number of steps.
_PRECISION = 1e-9
_MAX_STEPS = 100
_RESTARTS = 3
# Relative gap of each linear model. It is far smaller, because the residuals determine the gradient.
_INNER_PRECISION = 1e-13
# Initial share of all new blocks, which have no weights yet.
_NEW_BLOCKS_SHARE = 0.1
NEEDS = ("plain",)


class _Converged(Exception):  # noqa: N818 - not an error: it stops the optimiser
    """Stops the optimisation of the block weights."""


def wide_master(design: Design, loss: Loss, blocks: np.ndarray, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return weights (n_selected, n_outputs) and residuals (n_samples, n_outputs) near the optimum, and the Newton steps.

    The caller certifies the pair.

    Parameters
    ----------
    design : DenseDesign or SparseDesign
        The columns.
    loss : Loss
        A loss that separates into its outputs.
    blocks : ndarray of shape (n_blocks + 1,)
        Block t consists of the columns ``blocks[t]:blocks[t + 1]``.
    coef : ndarray of shape (n_selected, n_outputs)
        Initial weights, zero for new blocks.
    """
    require(loss, NEEDS, "The solver for wide blocks")
    search = _Search(design, loss, blocks)
    start = _starting_weights(coef, blocks)
    if len(start) == 1:
        search.objective(start)
        return search.coef, search.residual, search.n_iter
    # SciPy warns about values that rounding moves outside their bounds. The objective clips them.
    with contextlib.suppress(_Converged), ignored(RuntimeWarning):
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
    """The function J with its gradient, and the best point found so far."""

    eta: np.ndarray
    coef: np.ndarray
    residual: np.ndarray

    def __init__(self, design: Design, loss: Loss, blocks: np.ndarray) -> None:
        self.design = design
        self.losses = loss.plain()
        # Sum of an output's dual variables if its margin is free, else 0.
        self.importance = loss.mass.sum(axis=1) if "mass" in loss.parts else np.zeros(loss.n_outputs)
        self.owner = np.repeat(np.arange(len(blocks) - 1), np.diff(blocks))
        self.n_iter = 0
        self._smallest_gap = np.inf
        self._scale: float | None = None
        self._starts: list[np.ndarray] | None = None  # Scores of the usual losses at the previous model.

    def objective(self, eta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return J and its gradient in units of the first J. Raise :class:`_Converged` if the gap is small enough."""
        eta = np.maximum(eta, 0.0) / np.maximum(eta, 0.0).sum()
        value, coef, residual, scores = self._model(np.sqrt(eta)[self.owner][:, None])
        squares = np.bincount(self.owner, weights=(scores * scores).sum(axis=1), minlength=len(eta))
        gap = 0.5 * float(squares.max() - squares @ eta) / max(abs(value), np.finfo(float).tiny)
        if self._scale is None or gap < self._smallest_gap:
            self._smallest_gap, self.eta, self.coef, self.residual = gap, eta, coef, residual
        if self._scale is None:
            self._scale = max(abs(value), np.finfo(float).tiny)
        if len(eta) > 1 and gap <= _PRECISION:
            raise _Converged
        return value / self._scale, -0.5 * squares / self._scale

    def _model(self, factor: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Return value, weights, residuals and scores of the optimum for the columns times a factor."""
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
    """Return each block's share of the sum of norms. Blocks without weights share a tenth."""
    norms = np.sqrt(np.add.reduceat((coef * coef).sum(axis=1), blocks[:-1]))
    if not norms.any():
        return np.full(len(norms), 1.0 / len(norms))
    share = norms / norms.sum()
    new = share == 0.0
    return np.where(new, _NEW_BLOCKS_SHARE / max(new.sum(), 1), share * (1.0 - _NEW_BLOCKS_SHARE * new.any()))
