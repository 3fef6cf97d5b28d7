r"""The oracle: the most violated block, found by correlation redundancy matching (CRM).

The walk visits the features in decreasing order of :math:`|s_j| = |f_j'\tilde\alpha|` for the current dual variables. A
feature that is correlated with a support feature joins its group; any other becomes a new support feature (TPAMI Algorithm 2).
In ``"ranked"`` mode (the paper's) the groups consist of the features encountered on the walk. In ``"complete"`` mode (an
extension) one final pass over all features collects every member. The support features are the same in both modes. In both
modes a member belongs to the closest support feature: a feature that was encountered early moves to a later support feature
that is closer.

With ``reuse`` (ICML Algorithm 2) each round's walk starts from the full set of features: a block may contain features of
earlier blocks, and its features must be uncorrelated with each other, but not with those of other blocks. Only then can every
admissible set that the optimum over all sets requires become a block. The walk is greedy, so :meth:`Oracle.upper_bound` bounds
the value of the sets that it may have missed, and :meth:`Oracle.search` searches for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple, Required, TypedDict

import numpy as np

from coterie.correlation.protocol import ROUNDING, Correlation
from coterie.data.source import Exemplar
from coterie.data.top import NO_FEATURES, CandidateMask, Scored, TopQuery
from coterie.data.view import FeatureView
from coterie.search.admissible import AdmissibleSets
from coterie.search.scores import LazyScores

# Features whose correlations are held in memory as one matrix, at most.
_MAX_MATRIX_FEATURES = 2048
# Candidates requested per search from a shared scoring pass, in units of first_chunk().
_REQUESTED_CHUNKS = 4


def first_chunk(n_new: int) -> int:
    """Return the number of candidates in the first chunk of a walk."""
    return min(2 * n_new + 8, _MAX_MATRIX_FEATURES)


class CandidateGroup(NamedTuple):
    """Argument of a ``representative`` callable: a candidate group, its highest-scoring feature first.

    Attributes
    ----------
    features : ndarray of shape (n_members,)
        Indices of the members.
    names : list of str or None
        Names of the members, if the data have feature names.
    scores : ndarray of shape (n_members,)
        Scores :math:`|s_j|` of the members.
    correlation : ndarray of shape (n_members,)
        Correlations of the members with the first member.
    """

    features: np.ndarray
    names: list[str] | None
    scores: np.ndarray
    correlation: np.ndarray


Representative = str | Callable[[CandidateGroup], int]


class OracleOptions(TypedDict, total=False):
    """The keyword parameters of :class:`Oracle`."""

    threshold: Required[float]
    affiliates: str
    representative: Representative
    reuse: bool


@dataclass(frozen=True)
class Affiliations:
    """Encountered features, each with the closest support feature among those that it was compared with.

    Attributes
    ----------
    feature : ndarray of int
        Features in increasing order.
    support : ndarray of int
        Position of the closest support feature. -1 if no correlation reaches the threshold.
    correlation : ndarray
        Correlation with that support feature. 0 if there is none.
    compared : ndarray of int
        Number of support features, counted from the first, that the feature was compared with.
    """

    feature: np.ndarray
    support: np.ndarray
    correlation: np.ndarray
    compared: np.ndarray

    @classmethod
    def empty(cls) -> Affiliations:
        """Return affiliations of no features."""
        return cls.unknown(np.empty(0, dtype=np.int64))

    @classmethod
    def unknown(cls, features: np.ndarray) -> Affiliations:
        """Return affiliations of features that have not been compared with any support feature."""
        size = len(features)
        return cls(features, np.full(size, -1, dtype=np.int64), np.zeros(size), np.zeros(size, dtype=np.int64))

    def where(self, keep: np.ndarray) -> Affiliations:
        """Return the rows selected by a mask or an index."""
        return Affiliations(self.feature[keep], self.support[keep], self.correlation[keep], self.compared[keep])

    def merged(self, other: Affiliations) -> Affiliations:
        """Return each feature with its support feature of largest absolute correlation. The earlier one wins ties."""
        both = Affiliations(
            np.concatenate([self.feature, other.feature]),
            np.concatenate([self.support, other.support]),
            np.concatenate([self.correlation, other.correlation]),
            np.concatenate([self.compared, other.compared]),
        )
        if not len(both.feature):
            return both
        order = np.lexsort((both.support, both.feature))
        feature, size = both.feature[order], np.abs(both.correlation[order])
        starts = np.flatnonzero(np.append(True, feature[1:] != feature[:-1]))
        largest = np.repeat(np.maximum.reduceat(size, starts), np.diff(np.append(starts, len(order))))
        eligible = np.flatnonzero(size >= largest - ROUNDING)
        first = np.unique(feature[eligible], return_index=True)[1]
        return both.where(order[eligible[first]])


@dataclass(frozen=True)
class Block:
    """Features that one round adds, best score first, and the features encountered on the walk to them.

    All features are new unless reuse is allowed.
    """

    features: np.ndarray
    scores: np.ndarray
    encountered: tuple[Affiliations, ...] = ()


class Oracle:
    """Subproblem that returns one block after another and maintains the groups.

    Parameters
    ----------
    correlation : Correlation
        Correlations of the features of a view. Scores are computed from the same view.
    threshold : float
        Smallest absolute correlation of two features of the same group. Infinity removes the constraint.
    affiliates : {"complete", "ranked"}
        Which affiliated features to collect.
    representative : {"score", "medoid"} or callable
        Rule that selects the support feature of a group.
    reuse : bool, default=False
        Whether blocks may share features.
    """

    def __init__(
        self,
        correlation: Correlation,
        *,
        threshold: float,
        affiliates: str = "complete",
        representative: Representative = "score",
        reuse: bool = False,
    ) -> None:
        self.correlation = correlation
        self.view = correlation.view
        self.threshold = threshold
        self.constrained = bool(np.isfinite(threshold))
        self.complete = affiliates == "complete" and self.constrained
        self.representative = representative
        self.reuse = reuse
        self.supports = np.empty(0, dtype=np.int64)
        self._encountered = Affiliations.empty()
        self._exemplar: Exemplar | None = None
        self._scores: LazyScores | None = None
        self._n_scored = 0
        self._n_discarded = 0
        self._first_floor = np.inf
        self._hint = NO_FEATURES
        self.n_compiled = 0  # Correlations computed in compiled rounds.
        self.sets = AdmissibleSets(correlation, threshold)
        self._candidates = CandidateMask(self.view.moments)

    @property
    def _selectable(self) -> CandidateMask:
        """Features that a walk may choose."""
        return self.sets.varying if self.reuse else self._candidates

    @property
    def candidates(self) -> CandidateMask:
        """Features that are neither support features nor known members of a group."""
        return self._candidates

    @property
    def _fixed_supports(self) -> np.ndarray:
        """Support features of earlier rounds that a new one must not be correlated with."""
        return self.supports[:0] if self.reuse else self.supports

    def allow_reuse(self, reuse: bool) -> None:
        """Set whether the next blocks may contain features of earlier blocks."""
        self.reuse = reuse

    @property
    def is_exact(self) -> bool:
        """Whether blocks approximate the most violated sets. False with other representatives or voting folds."""
        return self.representative == "score"

    @property
    def views(self) -> list[FeatureView]:
        """The views of :meth:`queries`."""
        return [self.view]

    @property
    def affiliations(self) -> Affiliations:
        """Encountered features that have a group. Only :meth:`collect` determines the closest one."""
        return self._encountered.where(self._encountered.support >= 0)

    @property
    def n_evaluated(self) -> int:
        """Number of correlations computed so far, without those of discarded rounds."""
        return self.correlation.n_evaluated + self.n_compiled - self._n_discarded

    @property
    def n_passes(self) -> float:
        """Number of features read so far, divided by the number of features."""
        return (self._total_scored + self.correlation.n_features_read) / self.view.n_features

    @property
    def _total_scored(self) -> int:
        return self._n_scored + (self._scores.n_scored if self._scores is not None else 0)

    def count_scored(self, n_features: int) -> None:
        """Add features that were read elsewhere to the number of passes."""
        self._n_scored += n_features

    def save(self) -> dict[str, Any]:
        """Return the state of the oracle, for :meth:`restore`. Copies whatever changes in place."""
        return {**vars(self), "_candidates": self._candidates.copy(), "n_evaluated": self.n_evaluated}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state, which may be restored again. The number of passes remains the number of those made."""
        n_scored = self._total_scored
        vars(self).update({**state, "_candidates": state["_candidates"].copy()})
        self._n_discarded = self.correlation.n_evaluated - vars(self).pop("n_evaluated")
        self._n_scored += n_scored - self._total_scored

    def fixed_block(self, features: np.ndarray) -> Block:
        """Return a block of given features, regardless of their scores and correlations."""
        return Block(np.asarray(features, dtype=np.int64), np.full(len(features), np.nan))

    def queries(self, residual: np.ndarray, n_new: int) -> list[TopQuery]:
        """Return the queries whose results :meth:`find_block` requires: the best features for a residual."""
        return [self.query(residual, n_new)]

    def query(self, residual: np.ndarray, n_new: int) -> TopQuery:
        """Return the query for the best selectable features of this oracle's view."""
        return TopQuery(self.view, residual, self._selectable, _REQUESTED_CHUNKS * first_chunk(n_new), self._hint)

    def find_block(self, residual: np.ndarray, n_new: int, scores: Sequence[LazyScores] | None = None) -> Block:
        """Return the next block for the dual variables ``residual`` of shape (n_samples, n_outputs).

        ``scores`` are the results of :meth:`queries`, if they are already known.
        """
        return self._find_block(self._score(residual, *(scores or ())), n_new)

    def _find_block(self, scores: LazyScores, n_new: int) -> Block:
        block = self.choose(scores, n_new)
        # The next round's walk is expected to need scores down to a similar norm.
        self._first_floor = 0.7 * scores.needed_norm
        return block

    def choose(self, scores: LazyScores, n_new: int) -> Block:
        """Return the next block for given scores."""
        if scores.hint is not None:
            self._hint = scores.hint
        return self._walk(scores, n_new) if self.constrained else self._top(scores, n_new)

    def add_block(self, block: Block) -> None:
        """Record a block's support features and the features encountered on the walk to them."""
        self.supports = np.concatenate([self.supports, self.new_features(block)])
        for found in block.encountered:
            self._encountered = self._encountered.merged(found)
        self._encountered = self._encountered.where(~np.isin(self._encountered.feature, self.supports))
        self.exclude(self.supports)
        self.exclude(self.affiliations.feature)

    def exclude(self, features: np.ndarray) -> None:
        """Remove features from the candidates."""
        self._candidates.exclude(features)

    def new_features(self, block: Block) -> np.ndarray:
        """Return the features of a block that are not support features yet."""
        return block.features[~np.isin(block.features, self.supports)]

    def truncated(self, block: Block, n_new: int) -> Block:
        """Return a block with only its first ``n_new`` new features (and all of its old features)."""
        surplus = self.new_features(block)[n_new:]
        if not len(surplus):
            return block
        keep = ~np.isin(block.features, surplus)
        last = len(self.supports) + n_new
        return Block(
            block.features[keep],
            block.scores[keep],
            tuple(encountered.where(encountered.support < last) for encountered in block.encountered),
        )

    def upper_bound(self, residual: np.ndarray, size: int) -> float:
        """Return a bound on the sum of squared scores of every admissible set of ``size`` features, used before or not."""
        known = self._scores if self._scores is not None and self._scores.residual is residual else None
        return self.sets.upper_bound(self._score(residual) if known is None else known, self._selectable, size)

    def search(self, residual: np.ndarray, size: int, floor: float) -> tuple[Block, float]:
        """Return the admissible set of ``size`` features with the largest sum of squared scores, and a bound on these sums.

        The set is empty if none was found whose sum exceeds ``floor``.
        """
        features, scores, bound = self.sets.search(self._score(residual), size, floor)
        return Block(features, scores), bound

    def final_scores(self, residual: np.ndarray) -> np.ndarray:
        """Return the scores of all features for the final dual variables.

        The same pass computes the products that the angle bound of :meth:`collect` uses.
        """
        self._score(residual).count(self.view.n_features)
        scores, products = self.view.map_features(_all_scores, residual)
        self._exemplar = self._make_exemplar(products, residual[:, :1])
        return scores

    def collect(self) -> Affiliations:
        """Return the affiliated features of all groups: all of them in complete mode, else those encountered."""
        if not self.complete:
            self._compare(self._encountered.support >= 0)
            return self.affiliations
        pairs = self.correlation.strong(self.supports, self.threshold, self._exemplar)
        found = Affiliations(*pairs, np.full(len(pairs.feature), len(self.supports)))
        return Affiliations.empty().merged(found.where(~np.isin(pairs.feature, self.supports)))

    def _compare(self, which: np.ndarray) -> None:
        """Compare the encountered features in a mask with support features added since their last comparison."""
        if not self.constrained:
            return
        known, which = self._encountered, which & (self._encountered.compared < len(self.supports))
        support, correlation, compared = known.support.copy(), known.correlation.copy(), known.compared.copy()
        for n_compared in np.unique(known.compared[which]).tolist():
            rows = np.flatnonzero(which & (known.compared == n_compared))
            for first in range(0, len(rows), _MAX_MATRIX_FEATURES):
                own = rows[first : first + _MAX_MATRIX_FEATURES]
                best = _Matches(len(own), self.threshold)
                best.value, best.support = correlation[own], support[own]
                self._match(best, known.feature[own], self.supports[n_compared:], range(n_compared, len(self.supports)))
                correlation[own], support[own], compared[own] = best.value, best.support, len(self.supports)
        self._encountered = Affiliations(known.feature, support, correlation, compared)

    def _make_exemplar(self, products: np.ndarray, residual: np.ndarray) -> Exemplar:
        """Return the dual variables as a centred vector in the space of the weighted features."""
        total = float(residual.sum())
        squares = self.view.norm_of(residual) ** 2
        norm = np.sqrt(max(squares - total**2 / self.view.moments.total_weight, 0.0))
        return Exemplar(products, 0.0 if self.view.centred else total, float(norm))

    def _score(self, residual: np.ndarray, known: LazyScores | None = None) -> LazyScores:
        """Return the scores for these dual variables and keep them."""
        if self._scores is not None:
            self._n_scored += self._scores.n_scored
        self._scores = LazyScores(self.view, residual, first_floor=self._first_floor) if known is None else known
        return self._scores

    def _top(self, scores: LazyScores, n_new: int) -> Block:
        """Return the best selectable features, regardless of their correlations."""
        chunks = [(np.empty(0, dtype=np.int64), np.empty(0))]
        for chunk in scores.descend(self._selectable, n_new):
            chunks.append(chunk)
            if sum(len(features) for features, _ in chunks) >= n_new:
                break
        features, values = (np.concatenate([chunk[i] for chunk in chunks])[:n_new] for i in range(2))
        return Block(features, values)

    def _walk(self, scores: LazyScores, n_new: int) -> Block:
        """Return new support features in order, their scores, and the affiliated features encountered before the last one."""
        chosen: list[int] = []
        values: list[float] = []
        encountered: list[Affiliations] = []
        old, places = self._fixed_supports, list(range(len(self._fixed_supports)))
        chunks = scores.descend(self._selectable, first_chunk(n_new))
        # In complete mode, the pass of collect() computes most correlations, so larger products save time.
        for chunk, chunk_scores in chunks if self.complete else _pieces(chunks, chosen, n_new):
            best = _Matches(len(chunk), self.threshold)
            self._match(best, chunk, np.array([*old, *chosen], dtype=np.int64), places)
            # Features that already have a group may be closer to a new support feature: collect() compares them at the end.
            compared = np.where(best.matched, len(places), 0)
            unmatched = np.flatnonzero(~best.matched)
            matrix = self.correlation.within(chunk[unmatched])
            last = len(chunk)
            for column, position in enumerate(unmatched.tolist()):
                if best.matched[position]:
                    continue
                feature = self._choose_representative(int(chunk[position]), scores, chosen)
                places.append(self._position(feature, chosen))
                chosen.append(feature)
                if feature == chunk[position]:
                    values.append(float(chunk_scores[position]))
                    correlation = matrix[:, column]
                else:
                    values.append(float(scores.of(np.array([feature]))[0]))
                    correlation = self.correlation.between(chunk[unmatched], np.array([feature]))[:, 0]
                best.update(unmatched, correlation, places[-1])
                if len(chosen) == n_new:
                    last = position + 1
                    break
            # With reuse the walk does not compare features with earlier support features, so collect() starts at the first.
            compared[unmatched] = len(places)
            encountered.append(best.affiliations(chunk, last, np.zeros_like(compared) if self.reuse else compared))
            if len(chosen) == n_new:
                break
        return Block(np.array(chosen, dtype=np.int64), np.array(values), tuple(encountered))

    def _position(self, feature: int, chosen: list[int]) -> int:
        """Return the position of a feature among the support features, current or once those in ``chosen`` are added."""
        if not self.reuse:
            return len(self.supports) + len(chosen)
        old = np.flatnonzero(self.supports == feature)
        return int(old[0]) if len(old) else len(self.supports) + len(np.setdiff1d(chosen, self.supports))

    def _match(self, best: _Matches, chunk: np.ndarray, known: np.ndarray, places: Sequence[int]) -> None:
        """Update the matches of a chunk with the support features ``known``, in order, whose positions are ``places``."""
        for first in range(0, len(known), _MAX_MATRIX_FEATURES):
            matrix = self.correlation.between(chunk, known[first : first + _MAX_MATRIX_FEATURES])
            for support in np.flatnonzero(best.reaches(matrix).any(axis=0)).tolist():
                best.update(np.arange(len(chunk)), matrix[:, support], places[first + support])

    def _choose_representative(self, feature: int, scores: LazyScores, chosen: list[int]) -> int:
        """Return the representative of a feature's group. It is never a member that another group claims."""
        if self.representative == "score":
            return feature
        members, _, value = self.correlation.strong(np.array([feature]), self.threshold)
        allowed = self._selectable[members] & (members != feature)
        members, value = members[allowed], value[allowed]
        others = np.array([*self._fixed_supports, *chosen], dtype=np.int64)
        if len(others) and len(members):
            claimed = np.abs(self.correlation.between(members, others)) >= self.threshold - ROUNDING
            members, value = members[~claimed.any(axis=1)], value[~claimed.any(axis=1)]
        if not len(members):
            return feature
        members, value = np.append(feature, members), np.append(1.0, value)
        if self.representative == "medoid":
            return self._medoid(members, scores)
        assert callable(self.representative)
        names = self.view.feature_names
        labels = None if names is None else [str(names[j]) for j in members]
        group = CandidateGroup(members, labels, scores.of(members), value)
        answer = self.representative(group)
        if not isinstance(answer, Integral) or answer not in members:
            raise ValueError(f"representative returned {answer}. It must return one of group.features: {members.tolist()}.")
        return int(answer)

    def _medoid(self, members: np.ndarray, scores: LazyScores) -> int:
        """Return the member with the largest mean absolute correlation to the others.

        Ties, which occur in every group of two, are broken by the best score.
        """
        total = np.abs(self.correlation.between(members, members)).sum(axis=1)
        best = members[total >= total.max() - ROUNDING * len(members)]
        return int(best[0] if len(best) == 1 else scores.in_order(best, scores.of(best))[0][0])


def _all_scores(view: FeatureView, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of all features of a view, 0 for constant ones, and their products with the first residual."""
    products = view.products(residual)
    # The angle bound requires signed products, except for centred features, where absolute values suffice. So scores_of may
    # overwrite the array only in the latter case.
    same = view.centred and view.scale is None and products.shape[1] == 1
    exemplar = products[:, 0] if same else products[:, 0].copy()
    scores = view.scores_of(products)
    scores[view.moments.norm == 0.0] = 0.0
    return scores, exemplar


def _pieces(chunks: Iterator[Scored], chosen: Sequence[int], n_new: int) -> Iterator[Scored]:
    """Yield the candidates of a walk in pieces, until ``chosen`` has ``n_new`` features.

    A walk visits at least as many features as it still has to choose, so that few correlations are computed in vain. The size
    doubles after a piece without a new support feature, which keeps the number of pieces small.
    """
    size = 1
    for features, values in chunks:
        first = 0
        while first < len(features) and len(chosen) < n_new:
            n_chosen = len(chosen)
            last = first + max(size, n_new - n_chosen)
            yield features[first:last], values[first:last]
            first, size = last, 2 * size if len(chosen) == n_chosen else max(size // 2, 1)


class _Matches:
    """The closest support feature so far for each feature of a chunk."""

    def __init__(self, size: int, threshold: float) -> None:
        self.limit = threshold - ROUNDING
        self.value = np.zeros(size)
        self.support = np.full(size, -1, dtype=np.int64)

    @property
    def matched(self) -> np.ndarray:
        return self.support >= 0

    def reaches(self, value: np.ndarray) -> np.ndarray:
        return np.abs(value) >= self.limit

    def update(self, where: np.ndarray, value: np.ndarray, support: int) -> None:
        better = self.reaches(value) & (np.abs(value) > np.abs(self.value[where]) + ROUNDING)
        self.value[where[better]] = value[better]
        self.support[where[better]] = support

    def affiliations(self, chunk: np.ndarray, last: int, compared: np.ndarray) -> Affiliations:
        """Return the matched features among the first ``last`` of a chunk, compared with the given numbers of supports."""
        where = np.flatnonzero(self.matched[:last])
        return Affiliations(chunk[where], self.support[where], self.value[where], compared[where])
