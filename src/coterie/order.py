"""The rule for ties, used by all selectors.

Scores that differ by less than rounding are tied. Tied features are ordered by the content of their columns, equal columns by
their names, and equal names by their positions. So no ranking depends on the order of the columns, unless two columns are
indistinguishable.

The content of a column is its product with a fixed random vector. Different columns have different contents with probability
one, and the content does not depend on the storage format. Samples of weight zero count as absent and do not affect it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from coterie.data.source import FeatureSource

# Scores that differ by less than this share of the best score are tied.
TIE = 1e-10
# Columns whose contents differ by less than this share of the largest content are equal.
_CONTENT_TOLERANCE = 1e-9
SEED = 20120626
# Largest number of features for which a saved model contains all ranks.
_MAX_SAVED = 1 << 24


def in_order(
    source: FeatureSource,
    features: np.ndarray,
    scores: np.ndarray,
    *,
    tie: float | None = None,
    votes: np.ndarray | None = None,
    sample_weight: np.ndarray | None = None,
    seed: int = SEED,
    n_threads: int = 1,
) -> np.ndarray:
    """Return the positions of some features in order, the best first.

    Higher scores are better. Scores are tied up to a difference of ``tie`` (by default 1e-10 of the largest finite absolute
    score). ``votes`` take precedence over scores, and only features with equal votes can be tied. ``sample_weight`` contains
    the sample weights with which the scores were computed.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data import as_source
    >>> from coterie.order import in_order
    >>> in_order(as_source(np.eye(3)), np.arange(3), np.array([0.2, 0.9, 0.5]))
    array([1, 2, 0])
    """
    if tie is None:
        tie = TIE * float(np.abs(scores).max(initial=0.0, where=np.isfinite(scores)))
    votes = np.zeros(len(scores), dtype=np.int64) if votes is None else votes
    order = np.lexsort((-scores, -votes))
    level = _levels(scores[order], votes[order], tie)
    tied = np.flatnonzero((np.bincount(level, minlength=1) > 1)[level])
    if len(tied):
        candidates = order[tied]
        order[tied] = candidates[_by_content(source, features[candidates], level[tied], sample_weight, seed, n_threads)]
    return order


def ranked(source: FeatureSource, scores: np.ndarray, *, n_threads: int = 1) -> np.ndarray:
    """Return all features, best score first."""
    return in_order(source, np.arange(len(scores)), scores, n_threads=n_threads)


class Ranked:
    """Features ordered by score, best first. If the scores are on a cluster, only the requested part is sorted.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data import as_source
    >>> from coterie.order import Ranked
    >>> order = Ranked(as_source(np.eye(3)), np.array([0.2, 0.9, 0.5]))
    >>> order.first(2), order.ranks(2)
    (array([1, 2]), array([3, 1, 2]))
    """

    def __init__(self, source: FeatureSource, scores: Any, *, seed: int = SEED) -> None:
        self.source = source
        self.scores = scores
        self.seed = seed
        self._is_local = isinstance(scores, np.ndarray)

    @cached_property
    def _whole(self) -> np.ndarray:
        scores = np.asarray(self.scores)
        return in_order(self.source, np.arange(len(scores)), scores, seed=self.seed)

    @cached_property
    def _score_range(self) -> tuple[float, float, float]:
        """Lowest score, highest score, and largest finite absolute score."""
        parts = (
            [_range_of(self.source, self.scores)] if self._is_local else self.source.map_blocks(_range_of, None, self.scores)
        )
        low, high, size = zip(*parts, strict=True)
        return min(low), max(high), max(size)

    @property
    def highest(self) -> float:
        """The best score."""
        return self._score_range[1]

    @property
    def all_equal(self) -> bool:
        """Whether all scores are equal."""
        return self._score_range[0] == self._score_range[1]

    def first(self, count: int) -> np.ndarray:
        """Return the best ``count`` features in order."""
        if self._is_local or count >= len(self.scores):
            return self._whole[:count]
        parts = self.source.map_blocks(_largest_scores, None, self.scores, int(count))
        floor = float(np.partition(np.concatenate(parts), -count)[-count])
        # Include all features that may be tied with the last one, so that its tie is complete.
        tie = TIE * self._score_range[2]
        found = self.source.map_blocks(_at_least, None, self.scores, floor - tie)
        features, scores = (np.concatenate([part[i] for part in found]) for i in range(2))
        return features[in_order(self.source, features, scores, tie=tie, seed=self.seed)[:count]]

    def ranks(self, known: int) -> Any:
        """Return the rank of each feature, from 1. On a cluster, ranks after the first ``known`` are computed on demand."""
        if self._is_local:
            return ranks(self._whole, len(self.scores))
        return FeatureRanks(self.first(known), len(self.scores), lambda: self._whole)


class FeatureRanks:
    """Rank of each feature. Those of the first features are known; ``whole()`` orders all features on demand."""

    dtype = np.dtype(np.int64)

    def __init__(self, first: np.ndarray, n_features: int, whole: Callable[[], np.ndarray]) -> None:
        self.first, self.shape, self._whole = first, (n_features,), whole

    def __len__(self) -> int:
        return self.shape[0]

    @cached_property
    def _known(self) -> dict[int, int]:
        return {feature: place for place, feature in enumerate(self.first.tolist(), start=1)}

    @cached_property
    def _all(self) -> np.ndarray:
        result = np.empty(self.shape, dtype=self.dtype)
        result[self._whole()] = np.arange(1, len(self) + 1)
        return result

    def __getitem__(self, features: Any) -> Any:
        chosen = np.asarray(features) if not isinstance(features, slice) else None
        if chosen is None or chosen.dtype == np.bool_ or any(j not in self._known for j in chosen.ravel().tolist()):
            return self._all[features]
        found = np.array([self._known[j] for j in chosen.ravel().tolist()], dtype=self.dtype).reshape(chosen.shape)
        return found if chosen.ndim else found[()]

    def for_saving(self) -> np.ndarray | None:
        """Return all ranks for a model's file, or None if there are too many."""
        return self._all if len(self) <= _MAX_SAVED else None

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self._all.astype(dtype or self.dtype, copy=bool(copy))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self):,} features, the first {len(self.first):,} known>"


def _range_of(_: Any, scores: np.ndarray) -> tuple[float, float, float]:
    size = np.abs(scores).max(initial=0.0, where=np.isfinite(scores))
    return float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf)), float(size)


def _largest_scores(_: Any, scores: np.ndarray, count: int) -> np.ndarray:
    return np.partition(scores, -count)[-count:] if count < len(scores) else scores


def _at_least(block: Any, scores: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
    found = np.flatnonzero(scores >= floor)
    return found + block.first_feature, scores[found]


def best_of(source: FeatureSource, features: np.ndarray, scores: np.ndarray) -> int:
    """Return the feature with the best score. Ties are broken by content."""
    best = float(scores.max())
    tied = features[scores >= best - TIE * abs(best)]
    return int(tied[0] if len(tied) == 1 else by_content(source, tied)[0])


def by_content(source: FeatureSource, features: np.ndarray, sample_weight: np.ndarray | None = None) -> np.ndarray:
    """Return features whose scores are all tied, in order."""
    return features[_by_content(source, features, np.zeros(len(features), dtype=np.int64), sample_weight, SEED, 1)]


def ranks(order: np.ndarray, n_features: int) -> np.ndarray:
    """Return the rank of each feature, from 1. Features that are not in ``order`` share the rank after the last."""
    ranking = np.full(n_features, len(order) + 1, dtype=np.int64)
    ranking[order] = np.arange(1, len(order) + 1)
    return ranking


def _levels(scores: np.ndarray, votes: np.ndarray, tie: float) -> np.ndarray:
    """Return the level of each of some decreasing scores. Scores of a level differ from its first by at most ``tie``."""
    if not len(scores):
        return np.empty(0, dtype=np.int64)
    with np.errstate(invalid="ignore"):  # Infinite scores are tied with each other.
        falls = scores[:-1] - scores[1:] > tie
    starts_level = np.append(True, falls | (votes[:-1] != votes[1:]))
    starts = np.flatnonzero(starts_level)
    ends = np.append(starts[1:], len(scores))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if np.isfinite(scores[start]) and scores[start] - scores[end - 1] > tie:  # Many small steps add up.
            first = start
            for i in range(start + 1, end):
                if scores[first] - scores[i] > tie:
                    starts_level[i], first = True, i
    return np.cumsum(starts_level) - 1


def _by_content(
    source: FeatureSource,
    features: np.ndarray,
    level: np.ndarray,
    sample_weight: np.ndarray | None,
    seed: int,
    n_threads: int,
) -> np.ndarray:
    """Return positions of features by level, content, name and position. Levels increase; one pass serves all of them."""
    used = slice(None) if sample_weight is None else np.flatnonzero(sample_weight)
    probe = np.zeros((source.shape[0], 1))
    probe[used] = np.random.default_rng(seed).standard_normal(probe[used].shape)
    content = source.products(probe, features=features, n_threads=n_threads)[:, 0]
    order = np.lexsort((-content, level))
    content, level = content[order], level[order]
    starts = np.flatnonzero(np.append(True, np.diff(level) > 0))
    largest = np.repeat(np.maximum.reduceat(np.abs(content), starts), np.diff(np.append(starts, len(level))))
    starts_level = np.append(
        True, content[:-1] - content[1:] > _CONTENT_TOLERANCE * np.maximum(largest[1:], np.finfo(float).tiny)
    )
    starts_level[starts] = True
    names = source.feature_names
    last = features[order] if names is None else np.array([str(names[int(j)]) for j in features[order]])
    return order[np.lexsort((features[order], last, np.cumsum(starts_level)))]
