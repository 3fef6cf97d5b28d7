r"""The master problem: weights of all blocks found so far, with a certificate.

.. math::
    P(W) = \tfrac12\Big(\sum_t \|W_t\|\Big)^2 + F(XW), \qquad
    D(\tilde\alpha) = \max_t \tfrac12\|X_t'\tilde\alpha\|^2 + F^*(-\tilde\alpha)

:math:`D + P \ge 0` for every pair, and the sum is 0 only at the optimum (Fenchel duality). The loss provides a feasible
:math:`\tilde\alpha` at every :math:`W`, so the gap is a certificate at every step.

**Solver**: proximal Newton. The loss is piecewise quadratic (squared hinge) or quadratic (squared loss), so each step
minimises the penalty :math:`R(W)`, the first term of :math:`P`, plus the exact local model of the loss. This problem has one
variable per support feature and output. A line search on :math:`P` makes the method globally convergent. After a few steps it
reaches the active set of the optimum, where the model is exact.

If the classes are separable, the active set is smaller than the number of weights, and Newton's method converges slowly. Then
an interior-point method on the dual runs first (:mod:`coterie.solver.interior_point`). Designs with many columns use a solver
that does not form a matrix of them (:mod:`coterie.solver.wide`). Samples with equal columns are merged into one, and samples
of weight zero are dropped (:mod:`coterie.solver.design`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.kernels.losses import Evaluation, LossArrays, smooth_marker
from coterie.kernels.newton import NewtonLimits, NewtonResult, proximal_newton
from coterie.kernels.path import PathState
from coterie.solver.block_problem import (
    MAX_COMPILED,
    Solution,
    constraint,
    loss_hessian,
    minimise_block_model,
    penalty,
)
from coterie.solver.design import DenseDesign, Design, Rows
from coterie.solver.interior_point import compiled_interior_point, interior_point
from coterie.solver.loss import MERGING, Loss, LossState, feasible_residual
from coterie.solver.wide import wide_master

# Relative gap below which a step without progress indicates rounding rather than a hard problem.
_ROUNDING_GAP = 1e-7
# Newton steps before the problem is treated as separable. If they reach a relative gap below _CLOSE_GAP, a few extra steps
# lead to the optimum. _MAX_NEWTON_STEPS applies to losses without an interior point, _POLISH_STEPS to the refinement of an
# interior-point solution.
_NEWTON_STEPS = 15
_CLOSE_GAP, _EXTRA_STEPS = 0.1, 10
_MAX_NEWTON_STEPS = 100
_POLISH_STEPS = 6
# Largest number of columns, in a single block and in several blocks, for which a matrix over all columns is formed. With
# several blocks a matrix is faster as long as it fits into memory, unless the columns are well-conditioned.
_MAX_MATRIX_COLUMNS_SINGLE = 300
_MAX_MATRIX_COLUMNS = 6000
# Operations of a Hessian up to which one compiled call is faster than BLAS with Python between the steps.
_MAX_COMPILED_OPERATIONS = 1 << 23


class Master:
    """The restricted problem over a growing list of blocks, warm-started in each round.

    Parameters
    ----------
    loss : Loss
        The loss with its targets.
    design : DenseDesign or SparseDesign
        Columns selected so far. New blocks are appended to it.
    precision : float
        Relative gap at which Newton's method stops. It is far below the tolerance of the search, because the last digits
        cost only one step and make the next ranking reproducible.

    Attributes
    ----------
    blocks : ndarray of shape (n_blocks + 1,)
        Block t consists of the columns ``blocks[t]:blocks[t + 1]`` of the design.
    level : float
        Largest half squared norm of scores over the blocks, for the residual of the last solution.
    """

    def __init__(self, loss: Loss, design: Design, *, precision: float = 1e-12) -> None:
        self.loss = loss
        self.design = design
        self.precision = precision
        self.level = 0.0
        self._rows = Rows(loss.kinds()) if loss.parts.issuperset(MERGING) else None
        self._merged = self._merge()
        self._parts = self._merged.parts
        self._separable = False
        self._compiled = False
        self.blocks = np.zeros(1, dtype=np.int64)
        self._coef = np.zeros((0, loss.n_outputs))
        self._state = self._merged.evaluate(np.zeros((len(self._merged.strata), loss.n_outputs)))

    @property
    def start(self) -> Solution:
        """Solution without any feature. Its residual starts the first round."""
        state = self._state
        return self.expand(Solution(state.conjugate, -state.value, 0.0, 0, self._coef, state.residual, state))

    def save(self) -> dict[str, Any]:
        """Return the state of the problem, for :meth:`restore`. Copies whatever changes in place."""
        rows = None if self._rows is None else self._rows.copy()
        return {**vars(self), "design": self.design.copy(), "_rows": rows}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state, which may be restored again."""
        vars(self).update(state)
        vars(self).update(self.save())

    def _merge(self) -> Loss:
        """Return the loss over samples merged by the columns so far."""
        return self.loss if self._rows is None or self._rows.is_all else self.loss.merged(self._rows)

    def expand(self, solution: Solution) -> Solution:
        """Return the solution with its residual expanded to all samples."""
        residual = solution.residual
        if self._rows is not None and not self._rows.is_all:
            residual = self.loss.spread(residual, self._rows)
        return replace(solution, residual=np.ascontiguousarray(residual))

    @property
    def has_compiled_loss(self) -> bool:
        """Whether kernels can evaluate the loss."""
        return "arrays" in self._parts

    @property
    def is_separable(self) -> bool:
        """Whether Newton steps on an earlier problem did not converge, so that the interior-point method is used."""
        return self._separable

    @property
    def has_interior(self) -> bool:
        """Whether the interior-point method can solve problems on which Newton steps do not converge."""
        return "mass" in self._parts

    @property
    def arrays(self) -> LossArrays:
        """The loss of the samples of the design, in compiled form."""
        return self._merged.arrays

    @property
    def newton_limits(self) -> NewtonLimits:
        """When the Newton steps of a problem end."""
        steps = (_NEWTON_STEPS, _EXTRA_STEPS) if self.has_interior else (_MAX_NEWTON_STEPS, 0)
        return NewtonLimits(*steps, self.precision, _CLOSE_GAP, _ROUNDING_GAP)

    @property
    def used_samples(self) -> np.ndarray:
        """First sample of each row of the design."""
        return np.arange(len(self._merged.strata)) if self._rows is None else self._rows.first

    def prepare_compiled(self, features: np.ndarray) -> None:
        """Prepare for compiled rounds: each sample of nonzero weight has its own row, and Newton steps are compiled.

        ``features`` are the columns of the design.
        """
        assert isinstance(self.design, DenseDesign)
        self._compiled = True
        if self._rows is None:
            return
        self._rows = Rows(self.loss.kinds(), merge=False)
        self._merged = self._merge()
        self.design = self.design.emptied()
        self.design.append(features, self._rows)
        self._state = self._merged.evaluate(self.design.output(self._coef), self._state)

    def path_state(self) -> PathState:
        """Return the state from which compiled rounds continue."""
        assert isinstance(self.design, DenseDesign)
        residual = np.ascontiguousarray(self._state.residual.T)
        return PathState(self.design.array, self.blocks, self._coef.copy(), self._state.offsets, residual)

    def compiled_solution(
        self, coef: np.ndarray, offsets: np.ndarray, residual: np.ndarray, figures: Mapping[str, float]
    ) -> Solution:
        """Return the solution of a compiled round, with residuals of the samples of the design."""
        state = self._merged.state(Evaluation(figures["value"], figures["conjugate"], residual, residual, offsets))
        self.level = figures["dual"] - figures["conjugate"]
        self._separable = figures["separable"] > 0.0
        return Solution.certified(figures["primal"], figures["dual"], coef, state.residual, state, int(figures["n_iter"]))

    def adopt(self, features: np.ndarray, blocks: np.ndarray, solution: Solution) -> None:
        """Add features of compiled rounds, the ends of their blocks, and the solution after the last round."""
        self.design.append(features, self._rows)
        self.blocks = np.append(self.blocks, blocks)
        self._coef, self._state = solution.coef, solution.state

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
        """Solve to the precision, or as far as floating point allows, without warnings. See the ``gap`` of the result."""
        with np.errstate(all="ignore"):
            best = self._solve()
        if not np.isfinite(best.gap):
            raise ValueError(
                "The weights of the features cannot be computed: the scales of X, y, C and sample_weight are too far apart "
                "for floating point. Rescale X or y, or choose another C."
            )
        self._coef, self._state = best.coef, best.state
        self.level = constraint(self.design.scores(best.residual), self.blocks)
        return self.expand(best)

    def _solve(self) -> Solution:
        wide = self._is_wide()
        best = self._solve_wide() if wide else self._solve_narrow()
        if wide and best.gap > _ROUNDING_GAP and self.design.n_features <= _MAX_MATRIX_COLUMNS:
            self._coef = best.coef  # Start for the other solver, which loses fewer digits if C is large.
            best = min(best, self._solve_narrow(), key=lambda solution: solution.gap)
        return best

    def _is_wide(self) -> bool:
        limit = _MAX_MATRIX_COLUMNS_SINGLE if len(self.blocks) == 2 else _MAX_MATRIX_COLUMNS
        return self.design.n_features > limit and "plain" in self._parts

    def _solve_wide(self) -> Solution:
        """Solve without forming a matrix over the columns."""
        coef, residual, n_iter = wide_master(self.design, self._merged, self.blocks, self._coef)
        state = self._merged.evaluate(self.design.output(coef), self._state)
        solution = self._certify(coef, state, state.residual, n_iter=n_iter)
        if self.has_interior:
            # A recomputed residual has rounding errors multiplied by C. The solver's own residual may violate the sums of
            # the strata slightly. Use whichever has the smaller gap.
            kept = feasible_residual(self._merged, residual)
            solution = min(solution, self._certify(coef, state, kept, n_iter=n_iter), key=lambda solution: solution.gap)
        return solution

    def _solve_narrow(self) -> Solution:
        """Solve with matrices over the columns."""
        best = self._solve_small() if self.is_small(self.design.n_features) else None
        if best is not None and (best.gap <= _ROUNDING_GAP or not self.has_interior):
            return best
        if not self._separable:
            steps = (_NEWTON_STEPS, _EXTRA_STEPS) if self.has_interior else (_MAX_NEWTON_STEPS, 0)
            best = self._newton(self._coef, *steps)
            self._separable = best.gap > _ROUNDING_GAP and self.has_interior
        if self._separable:
            coef, residual = interior_point(self.design, self._merged, self.blocks)
            inner = self._certify(coef, self._merged.evaluate(self.design.output(coef), self._state), residual)
            polished = self._newton(coef, _POLISH_STEPS)
            best = min([inner, polished, *([best] if best else [])], key=lambda solution: solution.gap)
        assert best is not None
        return best

    def _solve_small(self) -> Solution:
        """Solve by kernels."""
        assert isinstance(self.design, DenseDesign)
        found, self._separable = self.compiled_solve(
            self.design.array, self.blocks, self._coef.copy(), self._state.offsets, self.newton_limits, self._separable
        )
        state = self._merged.state(Evaluation(found.value, found.conjugate, found.residual, found.curvature, found.offsets))
        return Solution.certified(found.primal, found.dual, found.coef, state.residual, state, found.n_iter)

    def _newton(self, coef: np.ndarray, max_steps: int, extra_steps: int = 0) -> Solution:
        """Make proximal Newton steps from the given weights and return the best solution.

        ``extra_steps`` more steps are made if the first ``max_steps`` come close to the optimum.
        """
        outputs = self.design.output(coef)
        state = self._merged.evaluate(outputs, self._state)
        best: Solution | None = None
        stalled = 0
        for iteration in range(max_steps + extra_steps + 1):
            gradient = -self.design.scores(state.residual)
            current = self._certify(coef, state, state.residual, gradient, iteration)
            # Near the optimum every Newton step gains digits until rounding stops it.
            stalled = stalled + 1 if best is not None and 0.5 * best.gap <= current.gap < _ROUNDING_GAP else 0
            if best is None or current.gap <= best.gap:
                best = current
            over = iteration == max_steps + extra_steps or (iteration == max_steps and best.gap > _CLOSE_GAP)
            if current.gap <= self.precision or stalled >= 3 or over:
                break
            target = minimise_block_model(loss_hessian(self._merged, self.design, state), gradient, coef, self.blocks)
            step = self._line_search(coef, outputs, -current.bound, gradient, target, state)
            if step is None:
                break
            coef, outputs, state = step
        assert best is not None
        return best

    def is_small(self, n_columns: int) -> bool:
        """Return True if Newton steps with this number of columns are made by one compiled call.

        A single search does not use it: it would save less time than its compilation takes in a new environment.
        """
        operations = len(self._merged.strata) * n_columns * n_columns
        return self._compiled and n_columns <= MAX_COMPILED and operations <= _MAX_COMPILED_OPERATIONS

    def compiled_solve(
        self,
        design: np.ndarray,
        blocks: np.ndarray,
        coef: np.ndarray,
        offsets: np.ndarray,
        limits: NewtonLimits,
        separable: bool,
    ) -> tuple[NewtonResult, bool]:
        """Solve a problem by kernels, from the weights ``coef``, which are overwritten, and the ``offsets``.

        Newton steps come first, unless the classes are known to be separable. Returns the best solution, and whether Newton
        steps did not converge.
        """
        best = []
        if not separable:
            best = [self._compiled_steps(design, blocks, coef, offsets, limits)]
            if best[0].gap <= limits.rounding_gap or not self.has_interior:
                return best[0], False
        inner = self._compiled_interior(design, blocks)
        few = limits._replace(max_steps=_POLISH_STEPS, extra_steps=0)
        polished = self._compiled_steps(design, blocks, inner.coef.copy(), inner.offsets, few)
        return min([inner, polished, *best], key=lambda found: found.gap), True

    def _compiled_steps(
        self, design: np.ndarray, blocks: np.ndarray, coef: np.ndarray, offsets: np.ndarray, limits: NewtonLimits
    ) -> NewtonResult:
        """Make compiled Newton steps on a given design; see :func:`coterie.kernels.newton.proximal_newton`."""
        several = None if coef.shape[1] == 1 else True
        arrays, risk_sets = self._merged.arrays, self._merged.risk_sets
        found = proximal_newton(design, arrays, blocks, coef, offsets, limits, several, smooth_marker(arrays), risk_sets)
        return NewtonResult(*found)

    def _compiled_interior(self, design: np.ndarray, blocks: np.ndarray) -> NewtonResult:
        """Return the certified result of the interior-point method on a given design."""
        loss, columns = self._merged, DenseDesign.of_array(design)
        coef, residual = compiled_interior_point(columns, loss, blocks)
        state, conjugate = loss.evaluate(columns.output(coef), self._state), loss.conjugate(residual)
        primal, dual = penalty(coef, blocks) + state.value, constraint(columns.scores(residual), blocks) + conjugate
        gap = Solution.certified(primal, dual, coef, residual, state, 0).gap
        by_output, curvature = np.ascontiguousarray(residual.T), np.ascontiguousarray(state.curvature.T)
        return NewtonResult(coef, state.offsets, by_output, curvature, state.value, conjugate, primal, dual, gap, 0)

    def _certify(
        self,
        coef: np.ndarray,
        state: LossState,
        residual: np.ndarray,
        scores: np.ndarray | None = None,
        n_iter: int = 0,
    ) -> Solution:
        """Return the certified solution for a pair of weights and feasible residuals."""
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
        """Halve the step until the primal objective decreases enough. Return None if it does not."""
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
