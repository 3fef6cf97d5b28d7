"""From scores to refined ones: which features enter the problem, how many it takes, and the ranking that comes out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie._numba import one_blas_thread
from coterie.data.memory import as_source
from coterie.data.source import Moments
from coterie.data.view import FeatureView
from coterie.methods import SCORES
from coterie.order import TIE, FeatureRanks, Ranked, in_order
from coterie.redundancy.measures import MatrixRedundancy, Redundancy
from coterie.redundancy.options import NO_SCORES, named_scores
from coterie.redundancy.solver import ChosenSet, GroupPenalty, Objective, RefinedWeights, choose_set

# Weights closer than this part of the largest are tied, and those below it are none.
_WEIGHT_TIE = 1e-9
# Seed of the vector that breaks ties: another one than elsewhere, so that selections stay what they have been.
TIE_SEED = 20150427
# Candidates up to which the matrix of all pairs is computed once for all exchanges and settings (32 MB).
_HELD = 2048
# Growth of the pool beyond its first size that is worth a word.
_FAR = 8

Solve = Callable[[Objective, float, int], RefinedWeights]
# Features that come first, at least; and how many times as many where the pool grows beyond them.
_FIRST, _TIMES = 4096, 4


@dataclass(frozen=True)
class PoolRule:
    """How many candidates there are: ``size`` at first, or all features, those with a score of 0 too, for None.

    A rule that ``grows`` takes half as many candidates more until as many weights as features wanted are positive, or there
    are no more candidates.
    """

    size: int | None
    grows: bool = False


class Refined(NamedTuple):
    """Refined scores of one pool.

    ``order`` has all features: by weight (members of a set first, in their order), then by score, unusable ones last.
    ``weights`` are the z of all features, equal ones for the members of a set; ``pool`` are the candidates, best score first,
    and ``sizes`` those of all pools that were tried, the last one that of ``pool``.
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

    ``scores`` are 0 for features that are not ``usable`` as candidates, and not all 0; ``relevance`` has them on the scale of
    the redundancy, between 0 and 1, which is what a set is chosen by. ``order`` has all features, best score first, unusable
    ones last. ``redundancy`` makes the matrix A of some candidates, of which there can be ``most``. Usable members of the
    prior ``groups`` are candidates whatever their scores. ``max_iter`` is the limit of rounds of the solver, or of exchanges
    for each member of a set.
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


class Leading(NamedTuple):
    """The features with the best scores, best first; those above 0 come with them as ``scores``."""

    features: np.ndarray
    scores: np.ndarray


class Leaders:
    """Scores of features that are with the workers of a cluster, and the best of them.

    ``score_func`` is the name of a score that workers can compute. The ``scores`` stay with the workers; they are 0 for
    constant features.
    """

    def __init__(self, view: FeatureView, score_func: str, parameters: Mapping[str, Any], y: Any) -> None:
        view.moments.require_variation()
        self.view = view
        plain = named_scores(score_func, parameters, view, y)
        self.scores, keys = view.map_features(_scores_and_keys, plain, SCORES[score_func].signed)
        self._order = Ranked(view.source, keys, seed=TIE_SEED)
        if self._order.highest <= 0.0:
            raise ValueError(NO_SCORES)

    def first(self, count: int) -> Leading:
        """The best features."""
        features = self._order.first(count)
        scores = np.asarray(self.scores[features])
        return Leading(features, scores[scores > 0.0])

    def refined(
        self,
        n_selected: int,
        rule: PoolRule,
        power: float,
        strength: float | None,
        refinement_of: Callable[[Leading], Refinement],
    ) -> Refined:
        """Refined scores of a pool of leaders, whose numbers in the answer are those of all features."""
        n_features = self.view.n_features
        count = max(_FIRST, n_selected, rule.size or 0)
        while True:
            leading = self.first(min(count, n_features))
            n_scored = len(leading.scores)
            found = refinement_of(leading).refine(n_selected, rule, power, strength)
            exhausted = rule.grows and len(found.pool) == n_scored and found.n_weighted < n_selected
            if not exhausted or n_scored < count:
                break
            count *= _TIMES
        pool = leading.features[found.pool]
        begin = leading.features[found.order]
        rest = leading.features[~np.isin(leading.features, begin)]
        return found._replace(order=np.concatenate([begin, rest]), pool=pool, weights=self._spread(leading, found.weights))

    def _spread(self, leading: Leading, weights: np.ndarray) -> Any:
        """Weights of the leaders as an array of all features."""
        own = np.flatnonzero(weights)
        rising = own[np.argsort(leading.features[own])]
        return self.view.source.spread(leading.features[rising], weights[rising])

    def ranks(self, found: Refined) -> FeatureRanks:
        """Rank of each feature: that of the leaders, and of all others when they are asked for."""

        def whole() -> np.ndarray:
            ranked = self._order.first(self.view.n_features)
            begin = found.order[: len(found.pool)]
            return np.concatenate([begin, ranked[~np.isin(ranked, begin)]])

        return FeatureRanks(found.order, self.view.n_features, whole)


class LocalFeatures:
    """A view of some features whose columns have come to this process together, and their places in it.

    Where all features are in this process already, it is the view of all.
    """

    def __init__(self, view: FeatureView, features: np.ndarray) -> None:
        self._whole = view
        self._features = features

    @cached_property
    def view(self) -> FeatureView:
        """The view."""
        source = self._whole.source
        if source.n_workers is None:
            return self._whole
        rising, moments = np.sort(self._features), self._whole.moments
        own = Moments(moments.mean[rising], moments.norm[rising], moments.total_weight, moments.nonnegative)
        return FeatureView(as_source(source.columns(rising)), own, n_threads=self._whole.n_threads)

    @cached_property
    def places(self) -> np.ndarray:
        """What the features are in it."""
        if self.view is self._whole:
            return self._features
        return np.searchsorted(np.sort(self._features), self._features)


def _scores_and_keys(view: FeatureView, scores: np.ndarray, clip: bool) -> tuple[np.ndarray, np.ndarray]:
    """The scores of a block, and what orders them: constant features come last."""
    usable = view.moments.norm > 0.0
    own = np.where(usable, np.maximum(scores, 0.0) if clip else scores, 0.0)
    return own, np.where(usable, own, -np.inf)
