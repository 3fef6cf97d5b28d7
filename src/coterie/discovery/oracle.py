r"""The oracle: the most violated block, found by correlation redundancy matching (CRM).

With the current dual variables, walk the features by :math:`|s_j| = |f_j'\tilde\alpha|` downwards. A
feature that is correlated with a support feature joins its group; any other is a new support
feature (TPAMI Algorithm 2). In ``"complete"`` mode one pass over all features then collects every
member of the new groups, in ``"ranked"`` mode (the paper's) only the features met on the walk are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coterie.discovery.pearson import ROUNDING, Exemplar, PearsonCorrelation
from coterie.discovery.ranking import by_content, ranked_chunks


class CandidateGroup(NamedTuple):
    """What a ``representative`` callable sees: a would-be group, its strongest feature first.

    Attributes
    ----------
    features : ndarray of shape (n_members,)
        Indices of the members.
    names : list of str or None
        Their names, if the data have names.
    scores : ndarray of shape (n_members,)
        Their scores :math:`|s_j|`.
    correlation : ndarray of shape (n_members,)
        Their correlation with the first one.
    """

    features: np.ndarray
    names: list[str] | None
    scores: np.ndarray
    correlation: np.ndarray


Representative = str | Callable[[CandidateGroup], int]


@dataclass(frozen=True)
class Affiliations:
    """Affiliated features, each with its support feature (a position), correlation and score; by feature."""

    feature: np.ndarray
    support: np.ndarray
    correlation: np.ndarray
    score: np.ndarray

    @classmethod
    def empty(cls) -> Affiliations:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))

    def merged(self, other: Affiliations) -> Affiliations:
        """Each feature with the support feature of largest \\|correlation\\|; ties to the earlier one."""
        feature = np.concatenate([self.feature, other.feature])
        support = np.concatenate([self.support, other.support])
        correlation = np.concatenate([self.correlation, other.correlation])
        score = np.concatenate([self.score, other.score])
        order = np.lexsort((support, feature))
        sorted_feature, size = feature[order], np.abs(correlation[order])
        starts = np.flatnonzero(np.append(True, sorted_feature[1:] != sorted_feature[:-1])) if len(order) else order
        largest = np.repeat(np.maximum.reduceat(size, starts), np.diff(np.append(starts, len(order)))) if len(order) else size
        eligible = np.flatnonzero(size >= largest - ROUNDING)
        first = np.unique(sorted_feature[eligible], return_index=True)[1]
        chosen = order[eligible[first]]
        return Affiliations(feature[chosen], support[chosen], correlation[chosen], score[chosen])


@dataclass(frozen=True)
class Block:
    """New support features with their scores, strongest first, and the affiliated features met on the walk."""

    features: np.ndarray
    scores: np.ndarray
    met: tuple[Affiliations, ...] = ()


class Oracle:
    """Finds block after block and keeps the groups.

    Parameters
    ----------
    correlation : PearsonCorrelation
        Correlations of the source's features.
    threshold : float
        \\|correlation\\| from which on two features belong together.
    scale : ndarray of shape (n_features,) or None
        What to divide each feature by (standardisation), or None.
    centred : bool
        Whether residuals sum to zero, so that features may be centred in the scores.
    affiliates : {"complete", "ranked"}
        Which affiliated features to collect.
    representative : {"score", "medoid"} or callable
        Which member stands for a group.
    """

    def __init__(
        self,
        correlation: PearsonCorrelation,
        *,
        threshold: float,
        scale: np.ndarray | None,
        centred: bool,
        affiliates: str = "complete",
        representative: Representative = "score",
    ) -> None:
        self.correlation = correlation
        self.source = correlation.source
        self.threshold = threshold
        self.scale = scale
        self.centred = centred
        self.complete = affiliates == "complete"
        self.representative = representative
        self.supports = np.empty(0, dtype=np.int64)
        self.affiliations = Affiliations.empty()
        self.scores = np.zeros(self.source.shape[1])
        self._exemplar: Exemplar | None = None
        self._n_score_passes = 0
        self._free = correlation.moments.norm > 0.0

    @property
    def n_candidates(self) -> int:
        """Features that are neither constant nor in a group yet."""
        return int(np.count_nonzero(self._free))

    @property
    def n_evaluated(self) -> int:
        """Correlations computed so far."""
        return self.correlation.n_evaluated

    @property
    def n_passes(self) -> float:
        """Features read so far, over the number of features."""
        return self._n_score_passes + self.correlation.n_features_read / self.source.shape[1]

    def fixed_block(self, features: np.ndarray) -> Block:
        """A block of given features, whatever their scores and correlations."""
        return Block(np.asarray(features, dtype=np.int64), np.full(len(features), np.nan))

    def find_block(self, residual: np.ndarray, n_new: int) -> Block:
        """The next block for the dual variables ``residual`` of shape (n_samples, n_outputs)."""
        self._score(residual)
        chosen, met = self._walk(np.where(self._free, self.scores, -1.0), n_new)
        features = np.array(chosen, dtype=np.int64)
        return Block(features, self.scores[features], tuple(met))

    def adopt(self, block: Block) -> None:
        """Enter a block's support features and their affiliated features in the books."""
        n_old = len(self.supports)
        self.supports = np.concatenate([self.supports, block.features])
        met = block.met
        if self.complete:
            feature, position, value = self.correlation.strong(block.features, self.threshold, self._exemplar)
            met = (Affiliations(feature, position + n_old, value, self.scores[feature]),)
        for found in met:
            others = ~np.isin(found.feature, self.supports)
            self.affiliations = self.affiliations.merged(
                Affiliations(found.feature[others], found.support[others], found.correlation[others], found.score[others])
            )
        self._free[self.supports] = False
        self._free[self.affiliations.feature] = False

    def _score(self, residual: np.ndarray) -> None:
        mean = self.correlation.moments.mean if self.centred else None
        products = self.source.products(residual, centre=mean, n_threads=self.correlation.n_threads)
        self._exemplar = self.correlation.exemplar(products[:, 0], residual[:, 0], self.centred)
        scores = np.abs(products[:, 0]) if products.shape[1] == 1 else np.sqrt((products**2).sum(axis=1))
        if self.scale is not None:
            np.divide(scores, self.scale, out=scores, where=self.scale > 0)
        scores[self.correlation.moments.norm == 0.0] = 0.0
        self.scores = scores
        self._n_score_passes += 1

    def _walk(self, strength: np.ndarray, n_new: int) -> tuple[list[int], list[Affiliations]]:
        """New support features in order, and the affiliated features met before the last of them."""
        chosen: list[int] = []
        met: list[Affiliations] = []
        n_old = len(self.supports)
        for chunk in ranked_chunks(strength, self.source, 4 * n_new + 32):
            # The groups of earlier rounds are complete in complete mode, so only new ones can match.
            known = np.array(chosen if self.complete else [*self.supports, *chosen], dtype=np.int64)
            best = _Matches(len(chunk), self.threshold)
            for support, column in enumerate(self.correlation.between(chunk, known).T):
                best.update(np.arange(len(chunk)), column, support + (n_old if self.complete else 0))
            last = len(chunk)
            for position in range(len(chunk)):
                if best.matched[position]:
                    continue
                feature = self._represent(int(chunk[position]), strength, chosen)
                chosen.append(feature)
                rest = np.arange(position, len(chunk))
                rest = rest[~best.matched[rest]] if self.complete else rest
                column = self.correlation.between(chunk[rest], np.array([feature]))[:, 0]
                best.update(rest, column, n_old + len(chosen) - 1)
                if len(chosen) == n_new:
                    last = position + 1
                    break
            if not self.complete:
                met.append(best.affiliations(chunk, strength, last))
            if len(chosen) == n_new:
                break
        return chosen, met

    def _represent(self, feature: int, strength: np.ndarray, chosen: list[int]) -> int:
        """The member that stands for the group of a feature; never one that another group claims."""
        if self.representative == "score":
            return feature
        members, _, value = self.correlation.strong(np.array([feature]), self.threshold, self._exemplar)
        allowed = (strength[members] >= 0.0) & (members != feature)
        members, value = members[allowed], value[allowed]
        if chosen and len(members):
            claimed = np.abs(self.correlation.between(members, np.array(chosen))) >= self.threshold - ROUNDING
            members, value = members[~claimed.any(axis=1)], value[~claimed.any(axis=1)]
        if not self.complete and len(self.supports) and len(members):
            claimed = np.abs(self.correlation.between(members, self.supports)) >= self.threshold - ROUNDING
            members, value = members[~claimed.any(axis=1)], value[~claimed.any(axis=1)]
        if not len(members):
            return feature
        members, value = np.append(feature, members), np.append(1.0, value)
        if self.representative == "medoid":
            return self._medoid(members)
        assert callable(self.representative)
        names = self.source.feature_names
        group = CandidateGroup(members, None if names is None else [str(names[j]) for j in members], strength[members], value)
        answer = int(self.representative(group))
        if answer not in members:
            raise ValueError(f"representative returned {answer}, which is not one of group.features {members.tolist()}.")
        return answer

    def _medoid(self, members: np.ndarray) -> int:
        """The member with the largest mean \\|correlation\\| to the others; ties by content."""
        total = np.abs(self.correlation.between(members, members)).sum(axis=1)
        best = members[total >= total.max() - ROUNDING * len(members)]
        return int(best[0] if len(best) == 1 else by_content(best, self.source)[0])


class _Matches:
    """The best support feature so far for each feature of a chunk."""

    def __init__(self, size: int, threshold: float) -> None:
        self.limit = threshold - ROUNDING
        self.value = np.zeros(size)
        self.support = np.full(size, -1, dtype=np.int64)

    @property
    def matched(self) -> np.ndarray:
        return self.support >= 0

    def update(self, where: np.ndarray, value: np.ndarray, support: int) -> None:
        better = (np.abs(value) >= self.limit) & (np.abs(value) > np.abs(self.value[where]) + ROUNDING)
        self.value[where[better]] = value[better]
        self.support[where[better]] = support

    def affiliations(self, chunk: np.ndarray, strength: np.ndarray, last: int) -> Affiliations:
        """The matched ones among the first ``last`` features."""
        where = np.flatnonzero(self.matched[:last])
        return Affiliations(chunk[where], self.support[where], self.value[where], strength[chunk[where]])
