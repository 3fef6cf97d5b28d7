r"""Embedded cross-validation (TPAMI 2016, Algorithm 4): folds propose support features and vote.

In each round, every fold proposes the features that rank highest on its part of the samples (all but the fold, or the fold
alone as in the paper), with the dual variables of all data. The features with the most votes become the block. Ties are broken
by the score on all data, then by the rule of :mod:`coterie.order`.

The master problem and the groups use all data: a feature that a fold encounters becomes a member, and is no longer a
candidate, only if its correlation on all data reaches the threshold. One pass over the features scores all folds.

Ties within a fold are broken by the content of the columns on all data, not on the fold's own samples. The folds therefore
propose the same one of several copies (with changed signs, for example), and copies do not split the votes.
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
    view: FeatureView,
    y: np.ndarray,
    cv: FoldsLike,
    cv_part: str,
    *,
    classifier: bool,
    random_state: RandomStateLike,
    groups: np.ndarray | None = None,
) -> list[FeatureView]:
    """Return the part of a view that each fold uses.

    If ``cv`` is a number, only samples with a nonzero weight are divided into folds. Samples of weight zero count as absent:
    they are held out if this search is itself validated, possibly with folds of the same seed. Folds in which no feature
    varies are omitted, because they cannot propose features.

    Parameters
    ----------
    view : FeatureView
        View of all samples.
    y : ndarray of shape (n_samples,)
        Labels or targets.
    cv, classifier, random_state, groups
        As in :func:`coterie.inputs.folds.read_folds`.
    cv_part : {"training", "fold"}
        Whether a fold uses its training samples or the samples of the fold itself.
    """
    all_samples = np.arange(view.n_samples)
    present = all_samples if view.sample_weight is None else np.flatnonzero(view.sample_weight)
    divided = present if isinstance(cv, Integral) else all_samples
    parts = []
    own_groups = None if groups is None else groups[divided]
    folds = read_folds(cv, y[divided], classifier=classifier, shuffle=True, random_state=random_state, groups=own_groups)
    for train, own in folds:
        samples = np.intersect1d(divided[train if cv_part == "training" else own], present)
        if len(samples) and (part := view.part(samples)).moments.n_varying:
            parts.append(part)
    if not parts:
        raise ValueError(
            f"No feature varies in the samples of any fold of cv (cv_part={cv_part!r}). Choose folds with more samples."
        )
    return parts


class VotingOracle(Oracle):
    """An oracle whose blocks are elected by one oracle per fold.

    Parameters
    ----------
    correlation : Correlation
        Correlations on all data.
    folds : sequence of Correlation
        Correlations on the part of the samples that each fold uses (weight zero for the others). Their views are
        :meth:`parts <coterie.data.view.FeatureView.part>` of the view of ``correlation``.
    **options
        The other parameters of :class:`Oracle`.

    Attributes
    ----------
    votes : ndarray of int of shape (n_features,)
        Number of times that each feature was proposed, over all rounds and folds.
    """

    def __init__(self, correlation: Correlation, folds: Sequence[Correlation], **options: Unpack[OracleOptions]) -> None:
        super().__init__(correlation, **options)
        # The walk of a fold supplies features only; the groups of a fold are not used.
        complete: OracleOptions = {**options, "affiliates": "complete"}
        self.folds = [Oracle(fold, **complete) for fold in folds]
        self._votes: Counter[int] = Counter()
        self._shared = SharedPass(self.views, self.view.n_threads)

    def allow_reuse(self, reuse: bool) -> None:
        """Set whether the next blocks and the proposals of the folds may contain features of earlier blocks."""
        super().allow_reuse(reuse)
        for fold in self.folds:
            fold.allow_reuse(reuse)

    @property
    def votes(self) -> np.ndarray:
        """Number of times that each feature was proposed, over all rounds and folds."""
        features = np.array(sorted(self._votes), dtype=np.int64)
        values = np.array([self._votes[feature] for feature in features.tolist()], dtype=np.int32)
        return self.view.source.spread(features, values)

    @property
    def is_exact(self) -> bool:
        """False: blocks are the result of a vote, not the most violated sets."""
        return False

    @property
    def views(self) -> list[FeatureView]:
        """The views of :meth:`queries`."""
        return [fold.view for fold in self.folds]

    @property
    def n_evaluated(self) -> int:
        """Number of correlations computed so far, including those of the folds."""
        return super().n_evaluated + sum(fold.n_evaluated for fold in self.folds)

    @property
    def n_passes(self) -> float:
        """Number of features read so far, including those of the folds, divided by the number of features."""
        return super().n_passes + self._shared.n_passes + sum(fold.n_passes for fold in self.folds)

    def queries(self, residual: np.ndarray, n_new: int) -> list[TopQuery]:
        """Return one query per fold for the best features given the residuals of its samples."""
        parts = []
        for fold in self.folds:
            weight = fold.view.sample_weight
            assert weight is not None
            parts.append(fold.query(np.where(weight[:, None] > 0, residual, 0.0), n_new))
        return parts

    def find_block(self, residual: np.ndarray, n_new: int, scores: Sequence[LazyScores] | None = None) -> Block:
        """Return the features with the most votes that are not correlated with each other on all data."""
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
        else:  # All proposals are correlated with support features on all data.
            block = self._find_block(self._score(residual), n_new)
        return replace(block, encountered=(*block.encountered, *self._newly_encountered(proposals)))

    def add_block(self, block: Block) -> None:
        """Add a block to this oracle and those of the folds.

        Features that are correlated with a support feature on all data are excluded everywhere.
        """
        super().add_block(block)
        self._compare(self._encountered.support < 0)
        members = self.affiliations.feature
        self.exclude(members)
        for fold in self.folds:
            fold.add_block(Block(block.features, block.scores))
            fold.exclude(members)

    def _elect(self, candidates: np.ndarray, n_new: int) -> np.ndarray:
        """Return the first selectable candidates that are not correlated with a support feature or an earlier choice."""
        candidates = candidates[self._selectable[candidates]]
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

    def _newly_encountered(self, proposals: list[Block]) -> list[Affiliations]:
        """Return the features that folds encountered or proposed in this round and that are not recorded yet."""
        if not self.constrained:
            return []
        walked = [block.features for block in proposals] + [
            found.feature for block in proposals for found in block.encountered
        ]
        return [Affiliations.unknown(np.setdiff1d(np.concatenate(walked), self._encountered.feature))]
