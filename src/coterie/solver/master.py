r"""The master problem: weights of the blocks found so far, with a certificate.

.. math::
    P(W) = \tfrac12\Big(\sum_t \|W_t\|\Big)^2 + F(XW), \qquad
    D(\tilde\alpha) = \max_t \tfrac12\|X_t'\tilde\alpha\|^2 + F^*(-\tilde\alpha)

:math:`D + P \ge 0` for every pair, and is 0 only at the optimum (Fenchel duality). The loss gives
a feasible :math:`\tilde\alpha` at every :math:`W`, so the gap is a certificate at every step.

**Solver**: proximal Newton. The loss is piecewise quadratic (squared hinge) or quadratic (squared
loss), so each step minimises :math:`R` plus the exact local model, a problem in as many variables as
there are support features; a line search on :math:`P` makes it global, and the active set of the
optimum is reached after a few steps, where the model is exact. Where the classes are separable the
active set is smaller than the number of weights and that does not hold: then an interior-point
method on the dual comes first (:mod:`coterie.solver.interior_point`). Many columns get a solver that needs no
matrix of them (:mod:`coterie.solver.wide`). Samples that the columns do not tell apart are one sample, and those of
weight zero none (:mod:`coterie.solver.design`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coterie.solver.block_problem import Solution, constraint, loss_hessian, minimise_block_model, penalty
from coterie.solver.design import Design, Rows
from coterie.solver.interior_point import interior_point
from coterie.solver.loss import MERGING, Loss, LossState, feasible_residual
from coterie.solver.wide import wide_master

# Relative gap under which a step without progress is a sign of rounding, not of a hard problem.
_NEAR = 1e-7
# Newton steps before the problem is taken for a separable one, or at all where a loss has no interior point; steps that
# polish the solution of a separable one. Where the first ones lead to a relative gap below _CLOSE, a few more lead to the
# optimum.
_NEWTON_STEPS = 15
_CLOSE, _MORE_STEPS = 0.1, 10
_MAX_NEWTON_STEPS = 100
_POLISH_STEPS = 6
# Columns of a first block, and of several blocks, from which on no matrix of all of them is made. With several blocks
# a matrix is faster while there is room for it, unless the columns are well-conditioned.
_WIDE_FIRST = 300
_WIDE = 6000


class Master:
    """The restricted problem over a growing list of blocks, warm-started from round to round.

    Parameters
    ----------
    loss : Loss
        The loss with its targets.
    design : DenseDesign or SparseDesign
        Columns selected so far; this object appends to it.
    precision : float
        Relative gap at which Newton's method stops. It is far below the tolerance that the caller
        promises, because the last digits cost one step and make the next ranking reproducible.

    Attributes
    ----------
    blocks : ndarray of shape (n_blocks + 1,)
        Block t is made of the columns ``blocks[t]:blocks[t + 1]`` of the design.
    level : float
        What the last solution's residual attains on the blocks: their largest half squared norm of scores.
    """

    def __init__(self, loss: Loss, design: Design, *, precision: float = 1e-12) -> None:
        self.loss = loss
        self.design = design
        self.precision = precision
        self.level = 0.0
        self._rows = Rows(loss.kinds()) if loss.parts.issuperset(MERGING) else None
        self._merged = self._merge()
        self._separable = False
        self.blocks = np.zeros(1, dtype=np.int64)
        self._coef = np.zeros((0, loss.n_outputs))
        self._state = self._merged.evaluate(np.zeros((len(self._merged.strata), loss.n_outputs)))

    @property
    def start(self) -> Solution:
        """The solution without any feature: its residual starts the first round."""
        state = self._state
        return self._of_all_samples(Solution(state.conjugate, -state.value, 0.0, 0, self._coef, state.residual, state))

    def _merge(self) -> Loss:
        """The loss of the samples that the columns so far tell apart."""
        return self.loss if self._rows is None or self._rows.is_all else self.loss.merged(self._rows)

    def _of_all_samples(self, solution: Solution) -> Solution:
        """A solution with the residual of every sample."""
        residual = solution.residual
        if self._rows is not None and not self._rows.is_all:
            residual = self.loss.spread(residual, self._rows)
        return replace(solution, residual=np.ascontiguousarray(residual))

    def add_block(self, features: np.ndarray) -> None:
        """Add a block of features, with weight zero."""
        n_rows = len(self._merged.strata)
        self.design.append(features, self._rows)
        if self._rows is not None and len(self._rows.first) != n_rows:
            self._merged = self._merge()
        self.blocks = np.append(self.blocks, self.design.n_features)
        n_new = self.design.n_features - len(self._coef)
        self._coef = np.vstack([self._coef, np.zeros((n_new, self.loss.n_outputs))])

    def solve(self) -> Solution:
        """Solve to the precision, or as far as floating point allows; the certificate tells, no warning on the way."""
        with np.errstate(all="ignore"):
            best = self._solve()
        if not np.isfinite(best.gap):
            raise ValueError(
                "The weights of the features cannot be computed: the scales of X, y, C and sample_weight are too far apart "
                "for floating point. Scale the features (standardize=True), or choose another C."
            )
        self._coef, self._state = best.coef, best.state
        self.level = constraint(self.design.scores(best.residual), self.blocks)
        return self._of_all_samples(best)

    def _solve(self) -> Solution:
        wide = self._is_wide()
        best = self._solve_wide() if wide else self._solve_narrow()
        if wide and best.gap > _NEAR and self.design.n_features <= _WIDE:
            self._coef = best.coef  # a start for the solver that loses fewer digits where C is large
            best = min(best, self._solve_narrow(), key=lambda solution: solution.gap)
        return best

    def _is_wide(self) -> bool:
        limit = _WIDE_FIRST if len(self.blocks) == 2 else _WIDE
        return self.design.n_features > limit and "plain" in self._merged.parts

    def _solve_wide(self) -> Solution:
        """Solve without a matrix of the columns."""
        coef, residual, n_iter = wide_master(self.design, self._merged, self.blocks, self._coef)
        state = self._merged.evaluate(self.design.output(coef), self._state)
        solution = self._certify(coef, state, state.residual, n_iter=n_iter)
        if "mass" in self._merged.parts:
            # The residual computed anew carries rounding errors times C; that of the solver may miss the masses by a little.
            kept = feasible_residual(self._merged, residual)
            solution = min(solution, self._certify(coef, state, kept, n_iter=n_iter), key=lambda solution: solution.gap)
        return solution

    def _solve_narrow(self) -> Solution:
        """Solve with matrices of the columns."""
        best = None
        has_interior = "mass" in self._merged.parts
        if not self._separable:
            steps = (_NEWTON_STEPS, _MORE_STEPS) if has_interior else (_MAX_NEWTON_STEPS, 0)
            best = self._newton(self._coef, *steps)
            self._separable = best.gap > _NEAR and has_interior
        if self._separable:
            coef, residual = interior_point(self.design, self._merged, self.blocks)
            inner = self._certify(coef, self._merged.evaluate(self.design.output(coef), self._state), residual)
            polished = self._newton(coef, _POLISH_STEPS)
            best = min([inner, polished, *([best] if best else [])], key=lambda solution: solution.gap)
        assert best is not None
        return best

    def _newton(self, coef: np.ndarray, max_steps: int, more: int = 0) -> Solution:
        """Proximal Newton steps from the given weights, and some more where these come close; the best solution met."""
        outputs = self.design.output(coef)
        state = self._merged.evaluate(outputs, self._state)
        best: Solution | None = None
        stalled = 0
        for iteration in range(max_steps + more + 1):
            gradient = -self.design.scores(state.residual)
            current = self._certify(coef, state, state.residual, gradient, iteration)
            # Near the optimum every Newton step gains digits, until rounding stops it.
            stalled = stalled + 1 if best is not None and 0.5 * best.gap <= current.gap < _NEAR else 0
            if best is None or current.gap <= best.gap:
                best = current
            over = iteration == max_steps + more or (iteration == max_steps and best.gap > _CLOSE)
            if current.gap <= self.precision or stalled >= 3 or over:
                break
            target = minimise_block_model(loss_hessian(self._merged, self.design, state), gradient, coef, self.blocks)
            step = self._line_search(coef, outputs, -current.bound, gradient, target, state)
            if step is None:
                break
            coef, outputs, state = step
        assert best is not None
        return best

    def _certify(
        self,
        coef: np.ndarray,
        state: LossState,
        residual: np.ndarray,
        scores: np.ndarray | None = None,
        n_iter: int = 0,
    ) -> Solution:
        """Primal and dual objective of a pair of weights and feasible residuals."""
        if scores is None:
            scores = self.design.scores(residual)
        conjugate = state.conjugate if residual is state.residual else self._merged.conjugate(residual)
        primal = penalty(coef, self.blocks) + state.value
        dual = constraint(scores, self.blocks) + conjugate
        return Solution.certified(primal, dual, coef, residual, state, n_iter)

    def _line_search(
        self,
        coef: np.ndarray,
        outputs: np.ndarray,
        primal: float,
        gradient: np.ndarray,
        target: np.ndarray,
        state: LossState,
    ) -> tuple[np.ndarray, np.ndarray, LossState] | None:
        """Halve the step until the primal decreases enough; None when it does not any more."""
        direction = target - coef
        along = self.design.output(direction)
        predicted = float((gradient * direction).sum()) + penalty(target, self.blocks) - penalty(coef, self.blocks)
        step = 1.0
        for _ in range(40):
            trial = coef + step * direction
            trial_outputs = outputs + step * along
            trial_state = self._merged.evaluate(trial_outputs, state)
            value = penalty(trial, self.blocks) + trial_state.value
            if value <= primal + 1e-4 * step * predicted + 1e-15 * abs(primal):
                return trial, trial_outputs, trial_state
            step *= 0.5
        return None
