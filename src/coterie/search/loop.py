r"""The cutting-plane loop: oracle and master in turn (TPAMI Algorithm 1), between two bounds.

The problem of the papers is :math:`\theta^* = \min_\alpha\max_{\delta\in\Delta} g_\delta(\alpha)` over all sets
:math:`\Delta` of at most K features of which no two are correlated. The master solves it over the blocks found so far, which
are some of these sets: its optimum, and the bound that certifies it, are lower bounds :math:`\beta` of :math:`\theta^*`. For
any feasible :math:`\alpha`, the most violated of all sets gives an upper bound :math:`\varphi` (TPAMI Theorem 2). The weights
of the master are feasible for the whole problem, so :math:`\varphi - \beta` bounds how far they are from its optimum, whatever
the search did: this, and nothing else, is called convergence here. The search can be relied on to get there only when blocks
may share features (ICML Algorithm 2); then every violated set can become a block, there are finitely many, and none is found
twice.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie.data.top import TopQuery
from coterie.search.oracle import Block, Oracle
from coterie.search.scores import LazyScores
from coterie.solver.block_problem import Solution, block_norms
from coterie.solver.master import Master

if TYPE_CHECKING:
    from coterie.search.membership import EncounteredFeatures

# A round of the automatic schedule takes this part of the features found so far.
_SHARE = 10


@dataclass(frozen=True)
class Round:
    """What happened in one round.

    Attributes
    ----------
    round : int
        Number of the round, from 1; 0 is the round of the fixed features.
    features : ndarray
        The features of the block, strongest first: new support features, and with reuse old ones among them.
    scores : ndarray
        Their scores in this round.
    n_support : int
        Support features so far.
    objective, bound, gap : float
        Dual objective (the papers' theta) of the problem over the blocks so far, its certified lower bound, and their relative
        difference.
    violation : float
        By how much the new block violated the previous optimum (that of the blocks before it), relative to it.
    n_iter : int
        Newton steps of the master problem.
    n_active : int
        Samples with a nonzero dual variable: the support vectors.
    coef : ndarray of shape (n_support, n_outputs)
        Weights of all support features so far (of the scaled features).
    intercept, margin : ndarray of shape (n_outputs,)
        Offset and margin of the model so far.
    n_correlations_evaluated : int
        Pairs evaluated in this round.
    passes : float
        Features read in this round over the number of features.
    lower, upper : float
        Bounds of the optimum over *all* admissible sets (the papers' beta and phi) known after this round, the upper one from
        the dual variables before it.
    set_size : int
        Features of such a set, at most: those of the largest block so far (that of the fixed features aside).
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
    """When to stop: at a number of support features (None: at convergence), or after some rounds; and how many a round.

    The schedule of ``n_features_per_round=None`` does not know how many features are asked for: one a round up to ten, then a
    tenth of those found, rounded up. So the first features are the same for every number, and a path has all sizes on it.
    """

    n_features: int | None
    n_features_per_round: int | None
    max_rounds: int | None
    tol: float

    def size(self, n_found: int) -> int:
        """Number of features of the next block, with so many found (the fixed ones aside)."""
        size = max(1, -(-n_found // _SHARE)) if self.n_features_per_round is None else self.n_features_per_round
        return size if self.n_features is None else min(size, self.n_features)

    def room(self, n_found: int) -> int:
        """Number of features that may still be found, as far as the size of a block."""
        size = self.size(n_found)
        return size if self.n_features is None else min(size, self.n_features - n_found)

    def most_rounds(self) -> int | None:
        """Upper limit of the number of rounds (that of the fixed features aside), if there is one."""
        limits = [] if self.max_rounds is None else [self.max_rounds]
        if self.n_features is not None:
            found = rounds = 0
            while found < self.n_features:
                found += self.room(found)
                rounds += 1
            limits.append(rounds)
        return min(limits, default=None)


class CuttingPlane:
    """The loop and its state: one path through the sizes. :meth:`run` goes to its end, :meth:`step` one round.

    Parameters
    ----------
    oracle, master : Oracle, Master
        Fresh ones; they are changed.
    rule : StoppingRule
        When to stop; the fixed features do not count.
    fixed : ndarray of int, optional
        Features that come first, as round 0.
    on_round : callable, optional
        Called with each :class:`Round` when it is done; a true answer ends the loop.

    Attributes
    ----------
    solution : Solution
        The last solution.
    history : list of Round
        All rounds.
    lower, upper : float
        Bounds of the optimum over all admissible sets of ``set_size`` features.
    set_size : int
        Features of the largest block that was looked for.
    converged_at : int or None
        The first round after which these bounds were within ``tol`` of each other, relative to the objective.
    settled : bool
        Whether the search has nothing more to gain: it has converged, or no block that it can find improves the objective by
        more than ``tol``.
    exhausted : bool
        Whether no candidate was left.
    stopped : bool
        Whether ``on_round`` ended the loop.
    encountered : EncounteredFeatures or None
        Features encountered in each round, if they are recorded.
    warns : bool
        Whether a master problem that stops above ``tol`` is warned of.
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
        self.lower, self.upper = self.solution.bound, np.inf
        self.set_size = 0
        self.converged_at: int | None = None
        self.settled = False
        self.exhausted = False
        self.stopped = False
        self.encountered: EncounteredFeatures | None = None
        self.warns = True
        self._reuse = oracle.reuse
        self._known: set[frozenset[int]] = set()
        self._owners = np.empty(0, dtype=np.int64)

    def run(self) -> None:
        """Alternate oracle and master until the rule says stop."""
        self.begin()
        while not self.finished:
            self.step()

    def begin(self) -> None:
        """Enter the fixed features, if there are any."""
        if len(self.fixed):
            self._enter(0, self.oracle.fixed_block(self.fixed), np.inf)

    def queries(self) -> list[TopQuery]:
        """What the oracle has to know for the next step."""
        self._look_for_larger_sets()
        return self.oracle.queries(self.solution.residual, self._wanted)

    def step(self, scores: Sequence[LazyScores] | None = None) -> None:
        """One round, with the answers to :meth:`queries` if they are known already."""
        self._number = number = self._number + 1
        self._look_for_larger_sets()
        block = self.oracle.find_block(self.solution.residual, self._wanted, scores)
        # Bounds of many searches in lockstep to a given size are not needed: these end there whatever the bounds are.
        if scores is None or self.rule.n_features is None or self._reuse:
            self._bound_from_above()
        if self._is_spent(block):
            block = self._better_block()
        if self.settled and self.rule.n_features is None:
            return
        if not len(block.features):
            self.exhausted = True
            return
        before = self.solution.objective
        self._enter(number, self.oracle.truncated(block, self.rule.room(self._n_found)), self._violation(block))
        self._look_at_bounds(number)
        change = abs(self.solution.objective - before)
        if not self.oracle.reuse and change < self.rule.tol * abs(self.solution.objective) and number > 1:
            self.settled = True  # as in TPAMI Algorithm 1: nothing is claimed of sets with old features

    @property
    def finished(self) -> bool:
        """Whether the rule says stop."""
        if self.stopped or self.exhausted or (self.rule.max_rounds is not None and self._number >= self.rule.max_rounds):
            return True
        if self.rule.n_features is None:
            return self.settled
        return self._n_found >= self.rule.n_features

    @property
    def coef(self) -> np.ndarray:
        """Weights of the support features, of shape (n_support, n_outputs): sums over the blocks that a feature is in."""
        by_column = self.solution.coef
        if len(by_column) == len(self.oracle.supports):
            return by_column
        total = np.zeros((len(self.oracle.supports), by_column.shape[1]))
        np.add.at(total, self._owners, by_column)
        return total

    @property
    def block_weights(self) -> np.ndarray:
        r"""The papers' :math:`\mu`: norms of the blocks' weights over their sum (all zero where no feature has a weight)."""
        norms = block_norms(self.solution.coef, self.master.blocks)
        return norms / max(float(norms.sum()), np.finfo(float).tiny)

    def final_bounds(self, scores: np.ndarray) -> tuple[float, float, int | None]:
        """Bounds, and the round of convergence if there is one, with the scores of all features for the last solution."""
        upper = min(self.upper, self._objective_with(self.oracle.sets.highest_of(scores, self.set_size)))
        converged_at = self.converged_at
        if converged_at is None and self.history and self._bounds_agree(upper):
            converged_at = self.history[-1].round
        return self.lower, upper, converged_at

    @property
    def _n_found(self) -> int:
        """Support features found so far, the fixed ones aside."""
        return max(len(self.oracle.supports) - len(self.fixed), 0)

    @property
    def _wanted(self) -> int:
        """Features of the next block; one that may have old features is cut to the new ones that there is room for."""
        return self.rule.size(self._n_found) if self.oracle.reuse else self.rule.room(self._n_found)

    @property
    def _unit(self) -> float:
        return max(abs(self.solution.objective), np.finfo(float).tiny)

    def _violation(self, block: Block) -> float:
        """How far the new block's constraint lies over the optimum of the blocks so far, relative to it."""
        return (0.5 * float(block.scores @ block.scores) - self.master.level) / self._unit

    def _objective_with(self, highest: float) -> float:
        """The objective at the last solution if no set's squared scores add up to more than ``highest``."""
        return self.solution.objective + max(0.5 * highest - self.master.level, 0.0)

    def _bounds_agree(self, upper: float) -> bool:
        return upper - self.lower <= self.rule.tol * self._unit

    def _look_for_larger_sets(self) -> None:
        """Turn to the problem over larger sets, where the blocks grow: what was known of the optimum from above is void."""
        if self._wanted > self.set_size:
            self.set_size, self.upper, self.converged_at, self.settled = self._wanted, np.inf, None, False
            self.oracle.allow_reuse(self._reuse)

    def _bound_from_above(self) -> None:
        """Enter the upper bound that the last solution gives."""
        self.upper = min(self.upper, self._objective_with(self.oracle.highest(self.solution.residual, self.set_size)))
        self._look_at_bounds(self._number - 1)

    def _look_at_bounds(self, number: int) -> None:
        """Write down that the bounds have met, if they have."""
        if self.converged_at is None and number > 0 and self._bounds_agree(self.upper):
            self.converged_at = number
            self.settled = True

    @property
    def _least_violation(self) -> float:
        """Relative violation that is worth a block: with less of it everywhere, the bounds would meet."""
        return max(0.5 * (self.rule.tol - (self.solution.objective - self.lower) / self._unit), 0.0)

    def _is_spent(self, block: Block) -> bool:
        """Whether this block is none to go on with."""
        if self._number == 1 or not len(block.features):
            return False
        if not self.oracle.reuse:
            return self.rule.n_features is None and (self.settled or self._violation(block) <= self.rule.tol)
        return self.settled or self._is_known(block) or self._violation(block) <= self._least_violation

    def _better_block(self) -> Block:
        """A block to go on with where the walk has found none that is violated; settled if there is none."""
        oracle, residual = self.oracle, self.solution.residual
        if oracle.reuse and not self.settled and oracle.is_exact:
            floor = 2.0 * (self.master.level + self._least_violation * self._unit)
            block, bound = oracle.search(residual, self.set_size, floor)
            self.upper = min(self.upper, self._objective_with(bound))
            self._look_at_bounds(self._number - 1)
            if len(block.features) and not self._is_known(block):
                return block
        self.settled = True
        if self.rule.n_features is None:
            return Block(np.empty(0, dtype=np.int64), np.empty(0))
        oracle.allow_reuse(False)  # what is asked for beyond the optimum are the best features not used yet
        return oracle.find_block(residual, self._wanted)

    def _is_known(self, block: Block) -> bool:
        """Whether the same features are a block already."""
        return frozenset(block.features.tolist()) in self._known

    def _enter(self, number: int, block: Block, violation: float) -> None:
        """Adopt a block, solve the master problem over all of them, and write the round down."""
        oracle, features = self.oracle, block.features
        oracle.adopt(block)
        place = {int(feature): k for k, feature in enumerate(oracle.supports)}
        self._owners = np.append(self._owners, [place[int(feature)] for feature in features]).astype(np.int64)
        self._known.add(frozenset(features.tolist()))
        self.master.add_block(features)
        self.solution = solution = self.master.solve()
        self.lower = max(self.lower, solution.bound)
        if self.warns and solution.gap > self.rule.tol:
            warnings.warn(
                f"The master problem of round {number} stopped at a relative gap of {solution.gap:.1e}, over "
                f"tol={self.rule.tol:g}. Scale the features (standardize=True) or choose a smaller C.",
                ConvergenceWarning,
                stacklevel=2,
            )
        entry = Round(
            round=number,
            features=features,
            scores=block.scores,
            n_support=len(oracle.supports),
            objective=solution.objective,
            bound=solution.bound,
            gap=solution.gap,
            violation=violation,
            n_iter=solution.n_iter,
            n_active=int(np.count_nonzero(np.any(solution.residual != 0.0, axis=1))),
            coef=self.coef,
            intercept=solution.state.intercept,
            margin=solution.state.margin,
            n_correlations_evaluated=oracle.n_evaluated - sum(r.n_correlations_evaluated for r in self.history),
            passes=oracle.n_passes - sum(r.passes for r in self.history),
            lower=self.lower,
            upper=self.upper,
            set_size=self.set_size,
            covariate_coef=solution.state.covariate_coef,
        )
        self.history.append(entry)
        if self.on_round is not None and self.on_round(entry):
            self.stopped = True
