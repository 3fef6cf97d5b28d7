r"""Embedded cross-validation (TPAMI 2016, Algorithm 4): folds propose support features and vote.

Each round every fold walks down its own ranking, on its part of the samples (all but the fold, or the fold alone as in the
paper), with the dual variables of all data. The features with the most votes (ties: the best score on all data, then the
one rule of :mod:`coterie.order`) become the block; the master stays on all data, and so do the groups: what a fold meets
is a member, and no candidate any more, if its correlation on all data says so. One pass over the features scores all
folds at once.

Ties within a fold are broken by the content of the columns on all data, not on the fold's own samples. So folds agree
on which of several copies (with signs changed, say) they propose, and these do not take votes from each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Unpack

import numpy as np

from coterie.correlation.protocol import ROUNDING, Correlation
from coterie.data.top import TopQuery
from coterie.data.view import FeatureView
from coterie.inputs.folds import read_folds
from coterie.inputs.types import FoldsLike, RandomStateLike
from coterie.order import in_order
from coterie.search.oracle import Affiliations, Block, Oracle, OracleOptions
from coterie.search.scores import LazyScores, SharedPass


def fold_parts(
    view: FeatureView, y: np.ndarray, cv: FoldsLike, seen: str, *, classifier: bool, random_state: RandomStateLike
) -> list[FeatureView]:
    """The parts of a view that folds see.

    A number of folds divides the samples that have a weight, since the others are as good as absent (those held out, say, by
    somebody who validates this search with folds of the same seed). Folds in which no feature varies have nothing to propose
    and are left out.

    Parameters
    ----------
    view : FeatureView
        All samples.
    y : ndarray of shape (n_samples,)
        Labels or targets.
    cv, classifier, random_state
        As in :func:`coterie.inputs.folds.read_folds`.
    seen : {"training", "fold"}
        Whether a fold sees the samples to train on, or those of the fold itself.
    """
    everyone = np.arange(view.n_samples)
    present = everyone if view.sample_weight is None else np.flatnonzero(view.sample_weight)
    divided = present if isinstance(cv, Integral) else everyone
    parts = []
    for train, own in read_folds(cv, y[divided], classifier=classifier, shuffle=True, random_state=random_state):
        samples = np.intersect1d(divided[train if seen == "training" else own], present)
        if len(samples) and (part := view.part(samples)).moments.n_varying:
            parts.append(part)
    if not parts:
        raise ValueError(f"No feature varies in the samples that any fold of cv sees (cv_part={seen!r}); choose larger parts.")
    return parts


class VotingOracle(Oracle):
    """An oracle that asks one oracle a fold.

    Parameters
    ----------
    correlation : Correlation
        Correlations on all data.
    folds : sequence of Correlation
        Correlations on the part of the samples that each fold sees (weight zero for the others), of views that
        are :meth:`parts <coterie.data.view.FeatureView.part>` of that of ``correlation``.
    **options
        The other parameters of :class:`Oracle`.

    Attributes
    ----------
    votes : ndarray of int of shape (n_features,)
        How often each feature was proposed, over all rounds and folds.
    """

    def __init__(self, correlation: Correlation, folds: Sequence[Correlation], **options: Unpack[OracleOptions]) -> None:
        super().__init__(correlation, **options)
        # Of a fold's walk only the features count, not which group they are in there.
        complete: OracleOptions = {**options, "affiliates": "complete"}
        self.folds = [Oracle(fold, **complete) for fold in folds]
        self._votes: Counter[int] = Counter()
        self._shared = SharedPass(self.views, self.view.n_threads)

    def allow_reuse(self, reuse: bool) -> None:
        """Say whether the next blocks, and what folds propose, may have features of earlier ones."""
        super().allow_reuse(reuse)
        for fold in self.folds:
            fold.allow_reuse(reuse)

    @property
    def votes(self) -> np.ndarray:
        """How often each feature was proposed."""
        features = np.array(sorted(self._votes), dtype=np.int64)
        values = np.array([self._votes[feature] for feature in features.tolist()], dtype=np.int32)
        return self.view.source.spread(features, values)

    @property
    def is_exact(self) -> bool:
        """Blocks are what folds agree on."""
        return False

    @property
    def views(self) -> list[FeatureView]:
        """The views that :meth:`queries` asks about."""
        return [fold.view for fold in self.folds]

    @property
    def n_evaluated(self) -> int:
        """Correlations computed so far, those of the folds included."""
        return super().n_evaluated + sum(fold.n_evaluated for fold in self.folds)

    @property
    def n_passes(self) -> float:
        """Features read so far, over the number of features, those of the folds included."""
        return super().n_passes + self._shared.n_passes + sum(fold.n_passes for fold in self.folds)

    def queries(self, residual: np.ndarray, n_new: int) -> list[TopQuery]:
        """The best features of each fold for the residuals of its samples."""
        parts = []
        for fold in self.folds:
            weight = fold.view.sample_weight
            assert weight is not None
            parts.append(fold.query(np.where(weight[:, None] > 0, residual, 0.0), n_new))
        return parts

    def find_block(self, residual: np.ndarray, n_new: int, scores: Sequence[LazyScores] | None = None) -> Block:
        """The features with the most votes of the folds that are not correlated with each other on all data."""
        scores = self._shared.best(self.queries(residual, n_new)) if scores is None else scores
        return self._elected_block(
            residual, n_new, [fold.choose(own, n_new) for fold, own in zip(self.folds, scores, strict=True)]
        )

    def _elected_block(self, residual: np.ndarray, n_new: int, proposals: list[Block]) -> Block:
        candidates, votes = np.unique(np.concatenate([block.features for block in proposals]), return_counts=True)
        self._votes.update(dict(zip(candidates.tolist(), votes.tolist(), strict=True)))
        scores = self._score(residual).of(candidates) if len(candidates) else np.empty(0)
        order = in_order(self.view.source, candidates, scores, votes=votes, sample_weight=self.view.sample_weight)
        chosen = self._elect(candidates[order], n_new)
        if len(chosen):
            block = Block(chosen, scores[np.searchsorted(candidates, chosen)])
        else:  # all proposals are correlated with support features on all data
            block = self._find_block(self._score(residual), n_new)
        return replace(block, encountered=(*block.encountered, *self._passed(proposals)))

    def adopt(self, block: Block) -> None:
        """Enter a block in the books of all; what is correlated with a support feature on all data is nobody's candidate."""
        super().adopt(block)
        self._compare(self._encountered.support < 0)
        members = self.affiliations.feature
        self.exclude(members)
        for fold in self.folds:
            fold.adopt(Block(block.features, block.scores))
            fold.exclude(members)

    def _elect(self, candidates: np.ndarray, n_new: int) -> np.ndarray:
        """The first candidates that are free and not correlated with a support feature or one chosen before."""
        candidates = candidates[self._open[candidates]]
        if not self.constrained or not len(candidates):
            return candidates[:n_new]
        limit = self.threshold - ROUNDING
        taken = (np.abs(self.correlation.between(candidates, self._fixed_supports)) >= limit).any(axis=1)
        matrix = np.abs(self.correlation.within(candidates)) >= limit
        chosen: list[int] = []
        for position in range(len(candidates)):
            if len(chosen) < n_new and not taken[position] and not matrix[position, chosen].any():
                chosen.append(position)
        return candidates[chosen]

    def _passed(self, proposals: list[Block]) -> list[Affiliations]:
        """The features on the walks of the folds, met or proposed, that are not in the books yet."""
        if not self.constrained:
            return []
        walked = [block.features for block in proposals] + [
            found.feature for block in proposals for found in block.encountered
        ]
        return [Affiliations.unknown(np.setdiff1d(np.concatenate(walked), self._encountered.feature))]
