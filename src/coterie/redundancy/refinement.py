"""From scores to refined ones: which features enter the problem, how many it takes, and the ranking that comes out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie._numba import one_blas_thread
from coterie.data.view import FeatureView
from coterie.order import TIE, in_order
from coterie.redundancy.measures import MatrixRedundancy, Redundancy
from coterie.redundancy.objective import GroupPenalty, Objective
from coterie.redundancy.sets import ChosenSet, choose_set
from coterie.redundancy.solver import RefinedWeights

# Weights closer than this part of the largest are tied, and those below it are none.
_WEIGHT_TIE = 1e-9
# Seed of the vector that breaks ties: another one than elsewhere, so that selections stay what they have been.
TIE_SEED = 20150427
# Candidates up to which the matrix of all pairs is computed once for all exchanges and settings (32 MB).
_HELD = 2048
# Growth of the pool beyond its first size that is worth a word.
_FAR = 8

Solve = Callable[[Objective, float, int], RefinedWeights]


@dataclass(frozen=True)
class PoolRule:
    """How many candidates there are.

    Attributes
    ----------
    size : int or None
        Candidates at first; None for all features, those with a score of 0 too.
    grows : bool
        Whether half as many candidates more are taken until as many weights as features wanted are positive, or there are
        no more candidates.
    """

    size: int | None
    grows: bool = False


class Refined(NamedTuple):
    """Refined scores of one pool.

    Attributes
    ----------
    order : ndarray of shape (n_features,)
        All features: by weight (members of a set first, in their order), then by score, unusable ones last.
    weights : ndarray of shape (n_features,)
        The weights z, equal ones for the members of a set.
    pool : ndarray of shape (n_candidates,)
        The candidates, best score first.
    sizes : tuple of int
        Sizes of the pools that were tried, the last one that of ``pool``.
    n_weighted : int
        Features with a weight.
    solution : RefinedWeights or ChosenSet
        What the solver found.
    """

    order: np.ndarray
    weights: np.ndarray
    pool: np.ndarray
    sizes: tuple[int, ...]
    n_weighted: int
    solution: RefinedWeights | ChosenSet


@dataclass(frozen=True, eq=False)
class Refinement:
    """Scores of some samples, ready to be refined with any pool and power, or chosen from as a set.

    Attributes
    ----------
    scores : ndarray of shape (n_features,)
        Scores, 0 for features that cannot be candidates, not all 0.
    relevance : ndarray of shape (n_features,)
        The scores on the scale of the redundancy, between 0 and 1: what a set is chosen by.
    order : ndarray of shape (n_features,)
        All features, best score first, unusable ones last.
    usable : ndarray of bool of shape (n_features,)
        Which features can be candidates.
    redundancy : callable
        Makes the matrix A of some candidates.
    groups : sequence of ndarray
        Prior groups of features; the usable members are candidates whatever their scores.
    group_strength : float
        Factor γ of the groups.
    solve : callable
        The solver.
    tol : float
        Relative gap at which a solution is good enough.
    max_iter : int
        Most rounds of the solver; exchanges for each member of a set.
    most : int or None
        Most candidates that the redundancy can be computed for.
    """

    scores: np.ndarray
    relevance: np.ndarray
    order: np.ndarray
    usable: np.ndarray
    redundancy: Callable[[np.ndarray], Redundancy]
    groups: Sequence[np.ndarray]
    group_strength: float
    solve: Solve
    tol: float
    max_iter: int
    most: int | None
    _known: dict[bytes, Redundancy] = field(default_factory=dict)

    def refine(self, n_selected: int, rule: PoolRule, power: float = 1.0, strength: float | None = None) -> Refined:
        """Rank all features by the weights of the problem, or by the set where there is a ``strength`` of redundancy."""
        ranked = self.order[(self.usable if rule.size is None else self.scores > 0)[self.order]]
        size = len(ranked) if rule.size is None else min(rule.size, len(ranked))
        pool = self._with_members(ranked[:size])
        self._refuse_too_many(len(pool))
        if strength is not None:
            return self._set_of(pool, min(n_selected, len(pool)), self.relevance**power, strength)
        # A power above 1 may leave nothing of a small score; its feature stays a candidate.
        return self._weighted(n_selected, rule, pool, ranked, (self.scores / self.scores.max()) ** power)

    def _set_of(self, pool: np.ndarray, n_wanted: int, relevance: np.ndarray, strength: float) -> Refined:
        """The set of so many candidates that no exchange improves, ahead of all others."""
        with one_blas_thread():
            redundancy = self._redundancy_of(pool)
            if len(pool) <= _HELD and not isinstance(redundancy, MatrixRedundancy):
                redundancy = MatrixRedundancy(redundancy.within(np.arange(len(pool))))
                self._known[pool.tobytes()] = redundancy
            chosen = choose_set(relevance[pool], redundancy, n_wanted, strength, n_wanted * self.max_iter)
        members = pool[chosen.members]
        weights = np.zeros(len(self.order))
        weights[members] = 1.0 / n_wanted
        order = np.concatenate([members, self.order[weights[self.order] == 0.0]])
        return Refined(order, weights, pool, (len(pool),), n_wanted, chosen)

    def _weighted(
        self, n_selected: int, rule: PoolRule, pool: np.ndarray, ranked: np.ndarray, strength: np.ndarray
    ) -> Refined:
        """Solve the problem of a pool, and of larger ones of the ``ranked`` where the rule says so."""
        size = len(ranked) if rule.size is None else min(rule.size, len(ranked))
        sizes: list[int] = []
        while True:
            solution = self._solved(pool, strength)
            refined = np.zeros(len(self.order))
            refined[pool[solution.support]] = solution.weights
            steps = np.rint(refined[pool] / (_WEIGHT_TIE * refined.max()))
            sizes.append(len(pool))
            n_weighted = int(np.count_nonzero(steps))
            if n_weighted >= n_selected or not rule.grows or size == len(ranked):
                break
            size = min(size + (size + 1) // 2, len(ranked))
            larger = self._with_members(ranked[:size])
            if self.most is not None and len(larger) > self.most:
                break
            pool = larger
        pool_order = pool[np.argsort(-steps, kind="stable")]
        entered = np.zeros(len(self.order), dtype=bool)
        entered[pool] = True
        order = np.concatenate([pool_order, self.order[~entered[self.order]]])
        return Refined(order, refined, pool, tuple(sizes), n_weighted, solution)

    def _with_members(self, pool: np.ndarray) -> np.ndarray:
        """The pool and all usable members of the prior groups, best score first."""
        if not self.groups:
            return pool
        inside = np.zeros(len(self.order), dtype=bool)
        inside[pool] = True
        for group in self.groups:
            inside[group] = True
        inside &= self.usable
        return self.order[inside[self.order]]

    def _refuse_too_many(self, n_candidates: int) -> None:
        if self.most is not None and n_candidates > self.most:
            raise ValueError(
                f"The matrix of all pairs of {n_candidates} candidates is too large; set n_candidates to at most "
                f"{self.most}, or use redundancy='cosine2' with method='working_set', which does not need it."
            )

    def _redundancy_of(self, pool: np.ndarray) -> Redundancy:
        """That of a pool; kept until the next one, since several powers share it."""
        key = pool.tobytes()
        if key not in self._known:
            self._known.clear()
            self._known[key] = self.redundancy(pool)
        return self._known[key]

    def _solved(self, pool: np.ndarray, strength: np.ndarray) -> RefinedWeights:
        place = np.full(len(self.order), -1)
        place[pool] = np.arange(len(pool))
        groups = [members[members >= 0] for members in (place[group] for group in self.groups)]
        with one_blas_thread():
            penalty = GroupPenalty(groups, len(pool), self.group_strength) if groups else None
            objective = Objective(strength[pool], self._redundancy_of(pool), penalty)
            return self.solve(objective, self.tol, self.max_iter)


def order_by_score(view: FeatureView, scores: np.ndarray, usable: np.ndarray, *, by_position: bool = False) -> np.ndarray:
    """All features, best score first, unusable ones last; ties by content, or ``by_position``."""
    tie = TIE * float(scores.max(initial=0.0))
    parts = []
    for features in (np.flatnonzero(usable), np.flatnonzero(~usable)):
        own = scores[features]
        if by_position:
            parts.append(features[np.argsort(-own, kind="stable")])
        else:
            parts.append(features[in_order(view.source, features, own, tie=tie, seed=TIE_SEED, n_threads=view.n_threads)])
    return np.concatenate(parts)


def warn_about_solution(solution: RefinedWeights | ChosenSet, tol: float) -> None:
    """Say where the solver ended before it was done."""
    if solution.converged:
        return
    words = (
        f"The set can be improved still after {solution.n_exchanges} exchanges; raise max_iter."
        if isinstance(solution, ChosenSet)
        else f"The relative gap is {solution.gap:.1e} after {solution.n_iter} rounds, above tol={tol}; raise max_iter or tol."
    )
    warnings.warn(words, ConvergenceWarning, stacklevel=5)


def warn_about_pool(found: Refined, rule: PoolRule, n_selected: int, n_usable: int) -> None:
    """Say where GRM did not decide about all the features selected, or had to look far for them."""
    wanted = min(n_selected, n_usable)
    if found.n_weighted < wanted and len(found.pool) > wanted:  # else all candidates are selected, as was asked for
        exhausted = rule.size is None or rule.grows
        remedy = "ask for fewer features" if exhausted else "raise n_candidates or leave it at 'auto', which grows by itself"
        warnings.warn(
            f"Only {found.n_weighted} of the {len(found.pool)} candidates have a refined score above 0, so "
            f"{wanted - found.n_weighted} of the {n_selected} features selected go by their own scores and may repeat the "
            f"others; {remedy}.",
            UserWarning,
            stacklevel=5,
        )
    elif rule.grows and found.sizes[-1] > _FAR * found.sizes[0]:
        warnings.warn(
            f"The best features by score repeat each other so much that it took {found.sizes[-1]} candidates instead of "
            f"{found.sizes[0]} to find {n_selected} that do not; features with low scores are among them "
            "(scores_ and refined_scores_ tell). Ask for fewer features, or set n_candidates.",
            UserWarning,
            stacklevel=5,
        )
