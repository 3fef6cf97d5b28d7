r"""The cutting-plane loop: oracle and master alternate (TPAMI Algorithm 1), between two bounds.

The problem of the papers is :math:`\theta^* = \min_\alpha\max_{\delta\in\Delta} g_\delta(\alpha)` over all sets :math:`\Delta`
of at most K features of which no two are correlated. The master problem restricts :math:`\Delta` to the blocks found so far.
Its optimum, and the bound that certifies it, are therefore lower bounds :math:`\beta` on :math:`\theta^*`. For any feasible
:math:`\alpha`, the most violated of all sets gives an upper bound :math:`\varphi` (TPAMI Theorem 2).

The weights of the master problem are feasible for the whole problem, so :math:`\varphi - \beta` bounds their distance from its
optimum, regardless of how the search proceeded. Convergence means that this difference is at most the tolerance. It is
guaranteed only if blocks may share features (ICML Algorithm 2): then every violated set can become a block, there are finitely
many sets, and none is found twice.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie.data.top import TopQuery
from coterie.kernels.path import FIGURES, PathRecord
from coterie.search.oracle import Block, Oracle
from coterie.search.scores import LazyScores
from coterie.solver.block_problem import Solution, block_norms
from coterie.solver.master import Master

if TYPE_CHECKING:
    from coterie.search.membership import EncounteredFeatures

# The automatic schedule adds one feature per this number of features found, rounded up.
_FOUND_PER_NEW = 10


@dataclass(frozen=True)
class Round:
    """Record of one round.

    Attributes
    ----------
    round : int
        Number of the round, from 1. Round 0 adds the fixed features.
    features : ndarray
        Features of the block, best score first: new support features and, with reuse, earlier ones.
    scores : ndarray
        Scores of these features in this round.
    n_support : int
        Number of support features after this round.
    objective, bound, gap : float
        Dual objective (the papers' theta) of the problem over the blocks so far, its certified lower bound, and their relative
        difference.
    violation : float
        Violation of the previous optimum (over the earlier blocks) by the new block, relative to that optimum.
    n_iter : int
        Newton steps of the master problem.
    n_active : int
        Number of samples with a nonzero dual variable (support vectors).
    coef : ndarray of shape (n_support, n_outputs)
        Weights of all support features so far, for the scaled features.
    intercept, margin : ndarray of shape (n_outputs,)
        Offset and margin of the model so far.
    n_correlations_evaluated : int
        Number of correlations evaluated in this round.
    passes : float
        Number of features read in this round, divided by the number of features.
    lower, upper : float
        Bounds on the optimum over *all* admissible sets (the papers' beta and phi) known after this round. The upper bound is
        computed from the dual variables before the round.
    set_size : int
        Largest number of features of such a set: the size of the largest block so far, without the fixed features.
    covariate_coef : ndarray of shape (n_covariates, n_outputs) or None
        Weights of the covariates in the model so far.
    """

    round: int
    features: np.ndarray
    scores: np.ndarray
    n_support: int
    objective: float
    bound: float
    gap: float
    violation: float
    n_iter: int
    n_active: int
    coef: np.ndarray
    intercept: np.ndarray
    margin: np.ndarray
    n_correlations_evaluated: int
    passes: float
    lower: float
    upper: float
    set_size: int
    covariate_coef: np.ndarray | None = None


@dataclass(frozen=True)
class StoppingRule:
    """When to stop, and the number of features per round.

    The loop stops at ``n_features`` support features (None: at convergence) or after ``max_rounds`` rounds.

    The schedule of ``n_features_per_round=None`` does not depend on ``n_features``: one feature per round up to ten, then a
    tenth of those found, rounded up. So the first features are the same for every ``n_features``, and one path contains all
    smaller models.
    """

    n_features: int | None
    n_features_per_round: int | None
    max_rounds: int | None
    tol: float

    def size(self, n_found: int) -> int:
        """Return the number of features of the next block after ``n_found`` features, not counting fixed features."""
        size = max(1, -(-n_found // _FOUND_PER_NEW)) if self.n_features_per_round is None else self.n_features_per_round
        return size if self.n_features is None else min(size, self.n_features)

    def max_new(self, n_found: int) -> int:
        """Return the number of new features that the next block may add."""
        size = self.size(n_found)
        return size if self.n_features is None else min(size, self.n_features - n_found)

    def most_rounds(self) -> int | None:
        """Return the maximum number of rounds, without the round of the fixed features, or None if there is no limit."""
        limits = [] if self.max_rounds is None else [self.max_rounds]
        if self.n_features is not None:
            found = rounds = 0
            while found < self.n_features:
                found += self.max_new(found)
                rounds += 1
            limits.append(rounds)
        return min(limits, default=None)


class CuttingPlane:
    """The loop and its state: one path of models. :meth:`run` completes it, :meth:`step` makes one round.

    Parameters
    ----------
    oracle, master : Oracle, Master
        Unused instances. The loop modifies them.
    rule : StoppingRule
        When to stop. Fixed features are not counted.
    fixed : ndarray of int, optional
        Fixed features, added in round 0.
    on_round : callable, optional
        Called with each completed :class:`Round`. The loop stops if it returns True.

    Attributes
    ----------
    solution : Solution
        The last solution.
    history : list of Round
        All rounds.
    lower, upper : float
        Bounds on the optimum over all admissible sets of at most ``set_size`` features.
    set_size : int
        Size of the largest block that was requested.
    converged_at : int or None
        First round after which these bounds were within ``tol`` of each other, relative to the objective.
    settled : bool
        Whether further rounds would not help: the search has converged, or no block that it can find improves the objective
        by more than ``tol``.
    exhausted : bool
        Whether no candidates are left.
    stopped : bool
        Whether ``on_round`` stopped the loop.
    encountered : EncounteredFeatures or None
        Features encountered in each round, if they are recorded.
    warns : bool
        Whether to warn if the gap of a master problem exceeds ``tol``.
    publishes : bool
        Whether :meth:`step` publishes its round. If not, the caller does (:mod:`coterie.search.speculation`).
    """

    def __init__(
        self,
        oracle: Oracle,
        master: Master,
        rule: StoppingRule,
        fixed: np.ndarray | None = None,
        on_round: Callable[[Round], bool] | None = None,
    ) -> None:
        self.oracle = oracle
        self.master = master
        self.rule = rule
        self.fixed = np.empty(0, dtype=np.int64) if fixed is None else fixed
        self.on_round = on_round
        self._number = 0
        self.solution: Solution = master.start
        self.history: list[Round] = []
        # Correlations and passes of all rounds of the history.
        self._n_recorded, self._passes_recorded = 0, 0.0
        self.lower, self.upper = self.solution.bound, np.inf
        self.set_size = 0
        self.converged_at: int | None = None
        self.settled = False
        self.exhausted = False
        self.stopped = False
        self.encountered: EncounteredFeatures | None = None
        self.warns = True
        self.publishes = True
        self._reuse = oracle.reuse
        self._block_sets: set[frozenset[int]] = set()
        self._support_of_column = np.empty(0, dtype=np.int64)

    def run(self) -> None:
        """Alternate oracle and master until the stopping rule applies."""
        self.begin()
        while not self.finished:
            self.step()

    def begin(self) -> None:
        """Add the fixed features, if there are any."""
        if len(self.fixed):
            self._add_round(0, self.oracle.fixed_block(self.fixed), np.inf)

    def queries(self) -> list[TopQuery]:
        """Return the oracle's queries for the next step."""
        self._update_set_size()
        return self.oracle.queries(self.solution.residual, self._next_size)

    def step(self, scores: Sequence[LazyScores] | None = None, *, bounded: bool = False) -> None:
        """Make one round. ``scores`` are the results of :meth:`queries`, if they are already known.

        With known scores, the upper bound is updated if the search depends on it or if ``bounded`` is true.
        """
        self._number = number = self._number + 1
        self._update_set_size()
        block = self.oracle.find_block(self.solution.residual, self._next_size, scores)
        # Searches in lockstep that stop at a given size do not need bounds.
        if bounded or scores is None or self.rule.n_features is None or self._reuse:
            self._update_upper_bound()
        if self._cannot_improve(block):
            block = self._search_block()
        if self.settled and self.rule.n_features is None:
            return
        if not len(block.features):
            self.oracle.add_block(block)  # The walk may have encountered features, which complete the groups.
            self.exhausted = True
            return
        before = self.solution.objective
        self._add_round(number, self.oracle.truncated(block, self.rule.max_new(self._n_found)), self._violation(block))
        self._check_convergence(number)
        change = abs(self.solution.objective - before)
        if not self.oracle.reuse and change < self.rule.tol * abs(self.solution.objective) and number > 1:
            self.settled = True  # As in TPAMI Algorithm 1. This makes no statement about sets with earlier features.

    def next_sizes(self, most: int) -> list[int]:
        """Return the numbers of new features of up to ``most`` further rounds. Requires a given number of features."""
        assert self.rule.n_features is not None
        most = most if self.rule.max_rounds is None else min(most, self.rule.max_rounds - self._number)
        n_found, sizes = self._n_found, list[int]()
        while n_found < self.rule.n_features and len(sizes) < most:
            sizes.append(self.rule.max_new(n_found))
            n_found += sizes[-1]
        return sizes

    def adopt(self, record: PathRecord, working: np.ndarray, n_rounds: int) -> None:
        """Add rounds that were made by :mod:`coterie.search.paths`, until ``on_round`` stops the loop.

        Parameters
        ----------
        record : PathRecord
            Results of the rounds, of which the first ``n_rounds`` are used.
        working : ndarray of int
            Features of the working set, to which the positions in ``record`` refer.
        n_rounds : int
            Number of rounds.
        """
        features = working[record.features[: record.ends[n_rounds - 1]]]
        known, ends, number = self.oracle.supports, [0], 0
        while number < n_rounds and not self.stopped:
            ends.append(int(record.ends[number]))
            block = Block(features[ends[-2] : ends[-1]], record.scores[ends[-2] : ends[-1]].copy())
            self.oracle.supports = np.append(known, features[: ends[-1]])
            self._adopt_round(record, number, block)
            number += 1
        self.oracle.exclude(working[(record.closed_in >= 0) & (record.closed_in < number)])
        self._support_of_column = np.arange(len(self.oracle.supports))
        self.master.adopt(features[: ends[-1]], len(known) + np.array(ends[1:]), self.solution)
        self.solution = self.master.expand(self.solution)

    def _adopt_round(self, record: PathRecord, number: int, block: Block) -> None:
        """Add one round of a record."""
        size, violation = len(self.oracle.supports), self._violation(block)
        figures = dict(zip(FIGURES, record.figures[number].tolist(), strict=True))
        coef, offsets, residual = record.coef[number, :size], record.offsets[number], record.residuals[number + 1]
        self.solution = self.master.compiled_solution(coef.copy(), offsets, residual, figures)
        self.set_size = max(self.set_size, len(block.features))
        self.oracle.n_compiled += int(figures["n_correlations"])
        self._number += 1
        self._append_round(self._number, block, violation)

    def publish(self, entry: Round) -> None:
        """Report a completed round: warn if its gap is too large, and call ``on_round``."""
        if self.warns and entry.gap > self.rule.tol:
            scaled = self.oracle.view.scale is not None
            remedy = "Choose" if scaled else "Scale the features (standardize=True), or choose"
            warnings.warn(
                f"The master problem of round {entry.round} stopped at a relative gap of {entry.gap:.1e}, which exceeds "
                f"tol={self.rule.tol:g}. {remedy} a smaller C or a larger tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        if self.on_round is not None and self.on_round(entry):
            self.stopped = True

    def save(self) -> dict[str, Any]:
        """Return the state of the loop, its oracle and its master problem, for :meth:`restore`."""
        kept = ("oracle", "master", "on_round", "publishes")
        own = {name: value for name, value in vars(self).items() if name not in kept}
        own |= {"history": self.history.copy(), "_block_sets": self._block_sets.copy()}
        return {"own": own, "oracle": self.oracle.save(), "master": self.master.save()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state, which may be restored again."""
        own = state["own"]
        vars(self).update({**own, "history": own["history"].copy(), "_block_sets": own["_block_sets"].copy()})
        self.oracle.restore(state["oracle"])
        self.master.restore(state["master"])

    def count_passes(self) -> None:
        """Count all passes after the last but one round in the last round."""
        last = self.history[-1]
        made = self.oracle.n_passes - (self._passes_recorded - last.passes)
        self.history[-1] = replace(last, passes=made)
        self._passes_recorded = self.oracle.n_passes

    @property
    def finished(self) -> bool:
        """Whether the stopping rule applies."""
        if self.stopped or self.exhausted or (self.rule.max_rounds is not None and self._number >= self.rule.max_rounds):
            return True
        if self.rule.n_features is None:
            return self.settled
        return self._n_found >= self.rule.n_features

    @property
    def coef(self) -> np.ndarray:
        """Weights of the support features, of shape (n_support, n_outputs), summed over the blocks that contain a feature."""
        by_column = self.solution.coef
        if len(by_column) == len(self.oracle.supports):
            return by_column
        total = np.zeros((len(self.oracle.supports), by_column.shape[1]))
        np.add.at(total, self._support_of_column, by_column)
        return total

    @property
    def block_weights(self) -> np.ndarray:
        r"""The papers' :math:`\mu`: norms of the blocks' weights, divided by their sum (zero if all weights are zero)."""
        norms = block_norms(self.solution.coef, self.master.blocks)
        return norms / max(float(norms.sum()), sys.float_info.min)

    def final_bounds(self, scores: np.ndarray) -> tuple[float, float, int | None]:
        """Return both bounds and the round of convergence or None, given the final scores of all features."""
        upper = min(self.upper, self._objective_with(self.oracle.sets.upper_bound_of(scores, self.set_size)))
        converged_at = self.converged_at
        if converged_at is None and self.history and self._bounds_agree(upper):
            converged_at = self.history[-1].round
        return self.lower, upper, converged_at

    @property
    def _n_found(self) -> int:
        """Number of support features found so far, not counting fixed features."""
        return max(len(self.oracle.supports) - len(self.fixed), 0)

    @property
    def _next_size(self) -> int:
        """Size of the next block. With reuse, :meth:`step` later truncates it to the number of new features allowed."""
        return self.rule.size(self._n_found) if self.oracle.reuse else self.rule.max_new(self._n_found)

    @property
    def _objective_scale(self) -> float:
        return max(abs(self.solution.objective), sys.float_info.min)

    def _violation(self, block: Block) -> float:
        """Return the violation of the current optimum by the new block's constraint, relative to the objective."""
        return (0.5 * float(block.scores @ block.scores) - self.master.level) / self._objective_scale

    def _objective_with(self, highest: float) -> float:
        """Return the objective at the last solution if every set's sum of squared scores is at most ``highest``."""
        return self.solution.objective + max(0.5 * highest - self.master.level, 0.0)

    def _bounds_agree(self, upper: float) -> bool:
        return upper - self.lower <= self.rule.tol * self._objective_scale

    def _update_set_size(self) -> None:
        """Switch to the problem over larger sets if the block size has grown. This invalidates the upper bound."""
        if self._next_size > self.set_size:
            self.set_size, self.upper, self.converged_at, self.settled = self._next_size, np.inf, None, False
            self.oracle.allow_reuse(self._reuse)

    def _update_upper_bound(self) -> None:
        """Update the upper bound from the last solution."""
        self.upper = min(self.upper, self._objective_with(self.oracle.upper_bound(self.solution.residual, self.set_size)))
        self._check_convergence(self._number - 1)

    def _check_convergence(self, number: int) -> None:
        """Record the round of convergence if the bounds agree."""
        if self.converged_at is None and number > 0 and self._bounds_agree(self.upper):
            self.converged_at = number
            self.settled = True

    @property
    def _min_violation(self) -> float:
        """Smallest relative violation that justifies a block. If no set violates more, the bounds agree."""
        return max(0.5 * (self.rule.tol - (self.solution.objective - self.lower) / self._objective_scale), 0.0)

    def _cannot_improve(self, block: Block) -> bool:
        """Return True if adding this block would not improve the objective."""
        if self._number == 1 or not len(block.features):
            return False
        if not self.oracle.reuse:
            return self.rule.n_features is None and (self.settled or self._violation(block) <= self.rule.tol)
        return self.settled or self._is_known(block) or self._violation(block) <= self._min_violation

    def _search_block(self) -> Block:
        """Return a block after the walk has found no violated one. Set ``settled`` if no violated block exists."""
        oracle, residual = self.oracle, self.solution.residual
        if oracle.reuse and not self.settled and oracle.is_exact:
            floor = 2.0 * (self.master.level + self._min_violation * self._objective_scale)
            block, bound = oracle.search(residual, self.set_size, floor)
            self.upper = min(self.upper, self._objective_with(bound))
            self._check_convergence(self._number - 1)
            if len(block.features) and not self._is_known(block):
                return block
        self.settled = True
        if self.rule.n_features is None:
            return Block(np.empty(0, dtype=np.int64), np.empty(0))
        oracle.allow_reuse(False)  # Beyond the optimum, the remaining features are the best that are not used yet.
        return oracle.find_block(residual, self._next_size)

    def _is_known(self, block: Block) -> bool:
        """Return True if an earlier block has the same features."""
        return frozenset(block.features.tolist()) in self._block_sets

    def _add_round(self, number: int, block: Block, violation: float) -> None:
        """Add a block, solve the master problem over all blocks, and record the round."""
        oracle, features = self.oracle, block.features
        oracle.add_block(block)
        place = {int(feature): k for k, feature in enumerate(oracle.supports)}
        self._support_of_column = np.append(self._support_of_column, [place[int(feature)] for feature in features]).astype(
            np.int64
        )
        self._block_sets.add(frozenset(features.tolist()))
        self.master.add_block(features)
        self.solution = self.master.solve()
        self._append_round(number, block, violation)

    def _append_round(self, number: int, block: Block, violation: float) -> None:
        """Append the last solution to the history."""
        oracle, solution = self.oracle, self.solution
        self.lower = max(self.lower, solution.bound)
        entry = Round(
            round=number,
            features=block.features,
            scores=block.scores,
            n_support=len(oracle.supports),
            objective=solution.objective,
            bound=solution.bound,
            gap=solution.gap,
            violation=violation,
            n_iter=solution.n_iter,
            n_active=int(np.count_nonzero((solution.residual != 0.0).any(axis=1))),
            coef=self.coef,
            intercept=solution.state.intercept,
            margin=solution.state.margin,
            n_correlations_evaluated=oracle.n_evaluated - self._n_recorded,
            passes=oracle.n_passes - self._passes_recorded,
            lower=self.lower,
            upper=self.upper,
            set_size=self.set_size,
            covariate_coef=solution.state.covariate_coef,
        )
        self.history.append(entry)
        self._n_recorded += entry.n_correlations_evaluated
        self._passes_recorded += entry.passes
        if self.publishes:
            self.publish(entry)
