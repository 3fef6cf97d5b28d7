r"""Embedded cross-validation (TPAMI 2016, Algorithm 4): folds propose support features and vote.

Each round every fold walks down its own ranking, on its own part of the samples, with the dual variables
of all data. The features with the most votes (ties: the best score on all data, then the one rule of
:mod:`coterie.order`) become the block; the master stays on all data, and so do the groups. One pass over the
features scores all folds at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.correlation.protocol import ROUNDING, Correlation
from coterie.data.view import FeatureView
from coterie.discovery.oracle import Affiliations, Block, Oracle
from coterie.discovery.scores import LazyScores, Query
from coterie.discovery.shared_pass import SharedPass
from coterie.order import in_order


class VotingOracle(Oracle):
    """An oracle that asks one oracle a fold.

    Parameters
    ----------
    correlation : Correlation
        Correlations on all data.
    folds : sequence of Correlation
        Correlations on the part of the samples that each fold sees (weight zero for the others).
    **options
        The other parameters of :class:`Oracle`.

    Attributes
    ----------
    votes : ndarray of int of shape (n_features,)
        How often each feature was proposed, over all rounds and folds.
    """

    def __init__(self, correlation: Correlation, folds: Sequence[Correlation], **options: Any) -> None:
        super().__init__(correlation, **options)
        self.folds = [Oracle(fold, **options) for fold in folds]
        self.votes = np.zeros(self.view.n_features, dtype=np.int32)
        self._shared = SharedPass(self.views, self.view.n_threads)

    def let_reuse(self, reuse: bool) -> None:
        """Say whether the next blocks, and what folds propose, may have features of earlier ones."""
        super().let_reuse(reuse)
        for fold in self.folds:
            fold.let_reuse(reuse)

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

    def queries(self, residual: np.ndarray, n_new: int) -> list[Query]:
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
        self.votes[candidates] += votes.astype(np.int32)
        scores = self._score(residual).of(candidates) if len(candidates) else np.empty(0)
        order = in_order(self.view.source, candidates, scores, votes=votes, sample_weight=self.view.sample_weight)
        chosen = self._elect(candidates[order], n_new)
        if not len(chosen):  # all proposals are correlated with support features on all data
            return self._find_block(self._score(residual), n_new)
        met = [self._translated(block, chosen) for block in proposals]
        return Block(chosen, scores[np.searchsorted(candidates, chosen)], tuple(met))

    def adopt(self, block: Block) -> None:
        """Enter a block in the books of all; what a fold has met counts for the groups, not against candidates."""
        super().adopt(block)
        for fold in self.folds:
            fold.adopt(Block(block.features, block.scores))

    def _elect(self, candidates: np.ndarray, n_new: int) -> np.ndarray:
        """The first candidates that are free and not correlated with a support feature or one chosen before."""
        candidates = candidates[self._open[candidates]]
        if not self.constrained or not len(candidates):
            return candidates[:n_new]
        limit = self.threshold - ROUNDING
        taken = (np.abs(self.correlation.between(candidates, self._rivals)) >= limit).any(axis=1)
        matrix = np.abs(self.correlation.within(candidates)) >= limit
        chosen: list[int] = []
        for position in range(len(candidates)):
            if len(chosen) < n_new and not taken[position] and not matrix[position, chosen].any():
                chosen.append(position)
        return candidates[chosen]

    def _translated(self, block: Block, chosen: np.ndarray) -> Affiliations:
        """What a fold has met, with its support features numbered as on all data; those not elected drop out."""
        n_old = len(self.supports)
        fresh = chosen[~np.isin(chosen, self.supports)]
        place = {int(feature): n_old + k for k, feature in enumerate(fresh)}
        numbers = np.array([*range(n_old), *(place.get(int(j), -1) for j in self.new_of(block))], dtype=np.int64)
        result = Affiliations.empty()
        for found in block.met:
            support = numbers[found.support]
            result = result.merged(Affiliations(found.feature, support, found.correlation, found.score).where(support >= 0))
        return result
