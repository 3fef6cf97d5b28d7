r"""The cutting-plane loop: oracle and master in turn (TPAMI Algorithm 1)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie.discovery.oracle import Block, Oracle
from coterie.discovery.scores import LazyScores, Query
from coterie.solver.block_problem import Solution
from coterie.solver.master import Master

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
        New support features, strongest first.
    scores : ndarray
        Their scores in this round.
    n_support : int
        Support features so far.
    objective, bound, gap : float
        Dual objective (the paper's theta), its certified lower bound, and their relative difference.
    violation : float
        By how much the new block violated the previous optimum, relative to it.
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

    def wanted(self, n_found: int) -> int:
        """Number of features for the next round, with so many found (the fixed ones aside)."""
        size = max(1, -(-n_found // _SHARE)) if self.n_features_per_round is None else self.n_features_per_round
        return size if self.n_features is None else min(size, self.n_features - n_found)

    def most_rounds(self) -> int | None:
        """Upper limit of the number of rounds (that of the fixed features aside), if there is one."""
        limits = [] if self.max_rounds is None else [self.max_rounds]
        if self.n_features is not None:
            found = rounds = 0
            while found < self.n_features:
                found += self.wanted(found)
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
    converged_at : int or None
        The first round after which no further block changes the optimum by more than ``tol``.
    exhausted : bool
        Whether no candidate was left.
    stopped : bool
        Whether ``on_round`` ended the loop.
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
        self.converged_at: int | None = None
        self.exhausted = False
        self.stopped = False

    def run(self) -> None:
        """Alternate oracle and master until the rule says stop."""
        self.begin()
        while not self.finished:
            self.step()

    def begin(self) -> None:
        """Enter the fixed features, if there are any."""
        if len(self.fixed):
            self._enter(0, self.oracle.fixed_block(self.fixed), np.inf)

    def queries(self) -> list[Query]:
        """What the oracle has to know for the next step."""
        return self.oracle.queries(self.solution.residual, self._wanted)

    def step(self, scores: Sequence[LazyScores] | None = None) -> None:
        """One round, with the answers to :meth:`queries` if somebody has them already."""
        self._number = number = self._number + 1
        block = self.oracle.find_block(self.solution.residual, self._wanted, scores)
        if not len(block.features):
            self.exhausted = True
            return
        violation = self._violation(block)
        if violation <= self.rule.tol and number > 1 and self.converged_at is None:
            self.converged_at = number - 1
            if self.rule.n_features is None:
                return
        before = self.solution.objective
        self._enter(number, block, violation)
        change = abs(self.solution.objective - before)
        if change < self.rule.tol * abs(self.solution.objective) and number > 1 and self.converged_at is None:
            self.converged_at = number

    @property
    def finished(self) -> bool:
        """Whether the rule says stop."""
        if self.stopped or self.exhausted or (self.rule.max_rounds is not None and self._number >= self.rule.max_rounds):
            return True
        if self.rule.n_features is None:
            return self.converged_at is not None
        return self._n_found >= self.rule.n_features

    @property
    def _n_found(self) -> int:
        """Support features found so far, the fixed ones aside."""
        return max(len(self.oracle.supports) - len(self.fixed), 0)

    @property
    def _wanted(self) -> int:
        return self.rule.wanted(self._n_found)

    def _violation(self, block: Block) -> float:
        """How far the new block's constraint lies over the optimum, relative to it."""
        excess = 0.5 * float(block.scores @ block.scores) - self.master.level
        return excess / max(abs(self.solution.objective), np.finfo(float).tiny)

    def _enter(self, number: int, block: Block, violation: float) -> None:
        """Adopt a block, solve the master problem over all of them, and write the round down."""
        oracle, features = self.oracle, block.features
        oracle.adopt(block)
        self.master.add_block(features)
        self.solution = solution = self.master.solve()
        if solution.gap > self.rule.tol:
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
            coef=solution.coef,
            intercept=solution.state.intercept,
            margin=solution.state.margin,
            n_correlations_evaluated=oracle.n_evaluated - sum(r.n_correlations_evaluated for r in self.history),
            passes=oracle.n_passes - sum(r.passes for r in self.history),
        )
        self.history.append(entry)
        if self.on_round is not None and self.on_round(entry):
            self.stopped = True
