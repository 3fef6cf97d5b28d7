"""Refinement of scores: selection of the candidates, growth of the pool, and the resulting ranking."""

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
from coterie.filters.selector import warn_about_zeros
from coterie.methods import SCORES
from coterie.order import TIE, FeatureRanks, Ranked, in_order
from coterie.redundancy.chance import RelevanceScale
from coterie.redundancy.measures import MatrixRedundancy, Redundancy
from coterie.redundancy.options import NO_SCORES, named_scores
from coterie.redundancy.solver import ChosenSet, GroupPenalty, Objective, RefinedWeights, choose_set

# Weights closer than this share of the largest are tied, and smaller weights are 0.
_WEIGHT_TIE = 1e-9
# Seed of the vector that breaks ties. It differs from the seed used elsewhere, so that earlier selections are reproduced.
TIE_SEED = 20150427
# Largest number of candidates for which the matrix of all pairs is computed once for all exchanges and settings (32 MB).
_MAX_STORED = 2048
# Growth of the pool relative to its first size that triggers a warning.
_WARN_GROWTH = 8

Solve = Callable[[Objective, float, int], RefinedWeights]
# Smallest number of top features obtained from the workers of a cluster, and growth factor if the pool needs more.
_FIRST, _GROWTH = 4096, 4


@dataclass(frozen=True)
class PoolRule:
    """Number of candidates: initially ``size``, or all features for None.

    If the rule ``grows``, half as many candidates are added until there are as many positive weights as features to select,
    or no more candidates.
    """

    size: int | None
    grows: bool = False


class Refined(NamedTuple):
    """Refined scores of one pool.

    ``order`` contains all features: by weight (members of a set first, in their order), then by score, unusable ones last.
    ``weights`` are the z of all features, equal for the members of a set. ``pool`` contains the candidates in decreasing
    order of their scores. ``sizes`` are the sizes of all pools that were tried; the last one is that of ``pool``.
    ``n_relevant`` and ``n_scored`` are the numbers of features to select with a positive relevance and a positive score.
    """

    order: np.ndarray
    weights: np.ndarray
    pool: np.ndarray
    sizes: tuple[int, ...]
    n_weighted: int
    solution: RefinedWeights | ChosenSet
    n_relevant: int = 0
    n_scored: int = 0


@dataclass(frozen=True, eq=False)
class Refinement:
    """Scores of one set of samples, which can be refined with any pool and power, or used to select a set.

    ``scores`` are 0 for features that are not ``usable`` as candidates, and not all 0. ``relevance`` contains them on the
    scale of the redundancy, between 0 and 1, in excess of the chance level if it is ``limited``. Candidates have a positive
    relevance; if it is not limited, a pool of all features includes those of relevance 0. ``order`` contains all features in
    decreasing order of their scores, unusable ones last. ``redundancy`` returns the matrix A of at most ``max_candidates``
    candidates. Usable members of the prior ``groups`` are always candidates. ``max_iter`` is the largest number of rounds of
    the solver, or of exchanges per member of a set.
    """

    scores: np.ndarray
    relevance: np.ndarray
    limited: bool
    order: np.ndarray
    usable: np.ndarray
    redundancy: Callable[[np.ndarray], Redundancy]
    groups: Sequence[np.ndarray]
    group_strength: float
    solve: Solve
    tol: float
    max_iter: int
    max_candidates: int | None
    _known: dict[bytes, Redundancy] = field(default_factory=dict)

    def refine(self, n_selected: int, rule: PoolRule, power: float = 1.0, strength: float | None = None) -> Refined:
        """Rank all features by weights or, if a ``strength`` of redundancy is given, by a set."""
        everything = rule.size is None and not self.limited
        ranked = self.order[(self.usable if everything else self.relevance > 0.0)[self.order]]
        size = len(ranked) if rule.size is None else min(rule.size, len(ranked))
        pool = self._with_members(ranked[:size])
        self._refuse_too_many(len(pool))
        relevance = self.relevance**power  # a small relevance may become 0; its feature remains a candidate
        if not relevance[pool].any():
            nothing = np.empty(0, dtype=np.int64)
            solution = RefinedWeights(nothing, np.empty(0), np.nan, np.nan, 0.0, 0, 0, True)
            found = Refined(self.order, np.zeros(len(self.order)), nothing, (0,), 0, solution)
        elif strength is not None:
            found = self._set_of(pool, min(n_selected, len(pool)), relevance, strength)
        else:
            found = self._weighted(n_selected, rule, pool, ranked, relevance)
        selected = found.order[:n_selected]
        n_relevant, n_scored = (int(np.count_nonzero(one[selected])) for one in (self.relevance, self.scores))
        return found._replace(n_relevant=n_relevant, n_scored=n_scored)

    def _set_of(self, pool: np.ndarray, n_wanted: int, relevance: np.ndarray, strength: float) -> Refined:
        """Rank a set of candidates that no exchange improves before all other features."""
        with one_blas_thread():
            redundancy = self._redundancy_of(pool)
            if len(pool) <= _MAX_STORED and not isinstance(redundancy, MatrixRedundancy):
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
        """Solve the problem of a pool and, if the rule grows, of larger pools of the ``ranked`` features."""
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
            if self.max_candidates is not None and len(larger) > self.max_candidates:
                break
            pool = larger
        pool_order = pool[np.argsort(-steps, kind="stable")]
        entered = np.zeros(len(self.order), dtype=bool)
        entered[pool] = True
        order = np.concatenate([pool_order, self.order[~entered[self.order]]])
        return Refined(order, refined, pool, tuple(sizes), n_weighted, solution)

    def _with_members(self, pool: np.ndarray) -> np.ndarray:
        """Return the pool and all usable members of the prior groups, in decreasing order of their scores."""
        if not self.groups:
            return pool
        inside = np.zeros(len(self.order), dtype=bool)
        inside[pool] = True
        for group in self.groups:
            inside[group] = True
        inside &= self.usable
        return self.order[inside[self.order]]

    def _refuse_too_many(self, n_candidates: int) -> None:
        if self.max_candidates is not None and n_candidates > self.max_candidates:
            raise ValueError(
                f"The matrix of all pairs of {n_candidates} candidates is too large. Set n_candidates to at most "
                f"{self.max_candidates}, or use redundancy='cosine2' with method='working_set', which does not need it."
            )

    def _redundancy_of(self, pool: np.ndarray) -> Redundancy:
        """Return the redundancy of a pool. It is cached until the next pool, because several powers share it."""
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
    """Return all features in decreasing order of score, unusable ones last. Ties are broken by content or position."""
    tie = TIE * float(scores.max(initial=0.0))
    parts = []
    for features in (np.flatnonzero(usable), np.flatnonzero(~usable)):
        own = scores[features]
        if by_position:
            parts.append(features[np.argsort(-own, kind="stable")])
        else:
            parts.append(features[in_order(view.source, features, own, tie=tie, seed=TIE_SEED, n_threads=view.n_threads)])
    return np.concatenate(parts)


def warn_about_result(found: Refined, rule: PoolRule, chance_score: float, n_selected: int, n_usable: int, tol: float) -> None:
    """Warn about everything that limits the value of a result."""
    _warn_about_solution(found.solution, tol)
    _warn_about_chance(found, chance_score, n_selected)
    _warn_about_pool(found, rule, n_selected, n_usable)


def _warn_about_solution(solution: RefinedWeights | ChosenSet, tol: float) -> None:
    """Warn if the solver has not converged."""
    if solution.converged:
        return
    message = (
        f"The set can still be improved after {solution.n_exchanges} exchanges. Increase max_iter."
        if isinstance(solution, ChosenSet)
        else f"The relative gap {solution.gap:.1e} after {solution.n_iter} rounds exceeds tol={tol}. Increase max_iter or tol."
    )
    warnings.warn(message, ConvergenceWarning, stacklevel=6)


def _warn_about_pool(found: Refined, rule: PoolRule, n_selected: int, n_usable: int) -> None:
    """Warn if fewer weights are positive than features are selected, or if the pool had to grow a lot."""
    wanted = min(n_selected, n_usable)
    if found.n_weighted < wanted and len(found.pool) > wanted:  # otherwise all candidates are selected, as requested
        exhausted = rule.size is None or rule.grows
        remedy = "Select fewer features" if exhausted else "Increase n_candidates, or use 'auto', which grows automatically"
        warnings.warn(
            f"Only {found.n_weighted} of the {len(found.pool)} candidates have a refined score above 0. Therefore "
            f"{wanted - found.n_weighted} of the {n_selected} features are selected by their own scores and may be redundant. "
            f"{remedy}.",
            UserWarning,
            stacklevel=6,
        )
    elif rule.grows and found.sizes[-1] > _WARN_GROWTH * found.sizes[0]:
        warnings.warn(
            f"The features with the highest scores are so redundant that {found.sizes[-1]} candidates instead of "
            f"{found.sizes[0]} were needed to select {n_selected} features. Some selected features have low scores "
            "(compare scores_ and refined_scores_). Select fewer features, or set n_candidates.",
            UserWarning,
            stacklevel=6,
        )


def _warn_about_chance(found: Refined, chance_score: float, n_selected: int) -> None:
    """Warn if selected features are no better than chance, or have a score of 0."""
    if chance_score > 0.0 and found.n_relevant < n_selected:
        which = "No selected feature is" if not found.n_relevant else (
            f"{n_selected - found.n_relevant} of the {n_selected} selected features are not"
        )  # fmt: skip
        advice = "Select fewer features" if found.n_relevant else "Check y, or collect more samples"
        warnings.warn(
            f"{which} better than chance, which reaches scores of {chance_score:.3g}. {advice}.", UserWarning, stacklevel=6
        )
    else:
        warn_about_zeros(n_selected - found.n_scored, n_selected, stacklevel=7)


class TopFeatures(NamedTuple):
    """Features with the highest scores, in decreasing order. ``scores`` contains the scores above 0."""

    features: np.ndarray
    scores: np.ndarray


class DistributedScores:
    """Scores of features on the workers of a cluster, and the features with the highest scores.

    ``score_func`` is the name of a score that workers can compute. The ``scores`` stay on the workers. They are 0 for
    constant features.
    """

    def __init__(self, view: FeatureView, score_func: str, parameters: Mapping[str, Any], y: Any) -> None:
        view.moments.require_variation()
        self.view = view
        plain = named_scores(score_func, parameters, view, y)
        self.scores, keys = view.map_features(_scores_and_keys, plain, SCORES[score_func].signed)
        self.n_usable = view.moments.n_varying
        self._order = Ranked(view.source, keys, seed=TIE_SEED)
        if self._order.highest <= 0.0:
            raise ValueError(NO_SCORES)

    @property
    def largest(self) -> float:
        """The largest score."""
        return self._order.highest

    def relevance(self, scale: RelevanceScale) -> Any:
        """Return the relevances of all features, which stay on the workers."""
        return self.view.map_features(_relevances, self.scores, scale)

    def first(self, count: int) -> TopFeatures:
        """Return the features with the highest scores."""
        features = self._order.first(count)
        scores = np.asarray(self.scores[features])
        return TopFeatures(features, scores[scores > 0.0])

    def refined(
        self,
        n_selected: int,
        rule: PoolRule,
        power: float,
        strength: float | None,
        refinement_of: Callable[[TopFeatures], Refinement],
    ) -> Refined:
        """Return refined scores of a pool of top features, with the indices of all features."""
        n_features = self.view.n_features
        count = max(_FIRST, n_selected, rule.size or 0)
        while True:
            top = self.first(min(count, n_features))
            n_scored = len(top.scores)
            found = refinement_of(top).refine(n_selected, rule, power, strength)
            exhausted = rule.grows and len(found.pool) == n_scored and found.n_weighted < n_selected
            if not exhausted or n_scored < count:
                break
            count *= _GROWTH
        pool = top.features[found.pool]
        begin = top.features[found.order]
        rest = top.features[~np.isin(top.features, begin)]
        return found._replace(order=np.concatenate([begin, rest]), pool=pool, weights=self._spread(top, found.weights))

    def _spread(self, top: TopFeatures, weights: np.ndarray) -> Any:
        """Return the weights of the top features as an array of all features."""
        own = np.flatnonzero(weights)
        rising = own[np.argsort(top.features[own])]
        return self.view.source.spread(top.features[rising], weights[rising])

    def ranks(self, found: Refined) -> FeatureRanks:
        """Return the rank of each feature. Ranks of features outside the pool are computed when accessed."""

        def full_order() -> np.ndarray:
            ranked = self._order.first(self.view.n_features)
            begin = found.order[: len(found.pool)]
            return np.concatenate([begin, ranked[~np.isin(ranked, begin)]])

        return FeatureRanks(found.order, self.view.n_features, full_order)


class LocalFeatures:
    """View of features whose columns are in this process, and their positions in it.

    If all features are in this process, it is the view of all features. Otherwise their columns are loaded together.
    """

    def __init__(self, view: FeatureView, features: np.ndarray) -> None:
        self._whole = view
        self._features = features

    @cached_property
    def view(self) -> FeatureView:
        """View with the features."""
        source = self._whole.source
        if source.n_workers is None:
            return self._whole
        rising, moments = np.sort(self._features), self._whole.moments
        own = Moments(moments.mean[rising], moments.norm[rising], moments.total_weight, moments.nonnegative)
        return FeatureView(as_source(source.columns(rising)), own, n_threads=self._whole.n_threads)

    @cached_property
    def positions(self) -> np.ndarray:
        """Positions of the features in the view."""
        if self.view is self._whole:
            return self._features
        return np.searchsorted(np.sort(self._features), self._features)


def _scores_and_keys(view: FeatureView, scores: np.ndarray, clip: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of a block and the keys of their order, in which constant features are last."""
    usable = view.moments.norm > 0.0
    own = np.where(usable, np.maximum(scores, 0.0) if clip else scores, 0.0)
    return own, np.where(usable, own, -np.inf)


def _relevances(_: FeatureView, scores: np.ndarray, scale: RelevanceScale) -> np.ndarray:
    """Return the relevances of a block."""
    return scale.relevance(scores)
