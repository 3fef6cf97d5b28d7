"""Refined scores where the features are with the workers of a cluster.

Only the features with the best scores ever enter the problem, so only they come to this process: their numbers and scores at
first, the columns of the candidates when these are chosen. The others stay where they are, and follow by their own scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from coterie.data.memory import as_source
from coterie.data.source import Moments
from coterie.data.view import FeatureView
from coterie.methods import SCORES
from coterie.order import FeatureRanks, Ranked
from coterie.redundancy.refinement import TIE_SEED, PoolRule, Refined, Refinement
from coterie.redundancy.scoring import NO_SCORES, named_scores

# Features that come first, at least; and how many times as many where the pool grows beyond them.
_FIRST, _TIMES = 4096, 4


class Leading(NamedTuple):
    """The features with the best scores, best first; those above 0 come with them as ``scores``."""

    features: np.ndarray
    scores: np.ndarray


class Leaders:
    """Scores of features that are elsewhere, and the best of them.

    Parameters
    ----------
    view : FeatureView
        The features.
    score_func : str
        Name of a score that workers can compute.
    parameters : mapping
        Its parameters.
    y : array-like or None
        Labels.

    Attributes
    ----------
    scores : FeatureValues
        The scores, which stay with the workers; 0 for constant features.
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
            everyone = self._order.first(self.view.n_features)
            begin = found.order[: len(found.pool)]
            return np.concatenate([begin, everyone[~np.isin(everyone, begin)]])

        return FeatureRanks(found.order, self.view.n_features, whole)


class Near:
    """A view of some features whose columns have come to this process together, and their places in it.

    Parameters
    ----------
    view : FeatureView
        All features; where they are here already, there is nothing to do.
    features : ndarray of int
        Some of them.
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
