"""From the oracle's books to the groups that users see."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.correlation.purity import group_purity
from coterie.discovery.loop import Round
from coterie.discovery.oracle import Oracle
from coterie.groups import FeatureGroup, FeatureGroups

# Groups whose columns are fetched together, where they are far away.
_TOGETHER = 16


def assemble_groups(
    oracle: Oracle,
    history: Sequence[Round],
    weights: np.ndarray,
    final_scores: np.ndarray,
) -> FeatureGroups:
    """Groups in order of selection.

    Parameters
    ----------
    oracle : Oracle
        With its support features and affiliations.
    history : sequence of Round
        The rounds, which know the scores.
    weights : ndarray of shape (n_support,)
        Weights in the model.
    final_scores : ndarray of shape (n_features,)
        Scores of all features for the final dual variables.
    """
    # A feature counts with the first block that it is in.
    blocks = np.concatenate([entry.features for entry in history] or [np.empty(0, int)])
    first = np.sort(np.unique(blocks, return_index=True)[1])
    rounds = np.concatenate([np.full(len(entry.features), entry.round) for entry in history] or [np.empty(0, int)])[first]
    scores = np.concatenate([entry.scores for entry in history] or [np.empty(0)])[first]
    books = oracle.collect()
    member_scores = final_scores[books.feature]
    # By group, the most correlated first, then by feature (the books are in order of feature).
    order = np.lexsort((-np.abs(books.correlation), books.support))
    bounds = np.searchsorted(books.support[order], np.arange(len(oracle.supports) + 1))
    names = oracle.view.feature_names
    groups = []
    for position, support in enumerate(oracle.supports):
        if position % _TOGETHER == 0:
            soon = order[bounds[position] : bounds[min(position + _TOGETHER, len(oracle.supports))]]
            oracle.view.source.prefetch(books.feature[soon])
        own = order[bounds[position] : bounds[position + 1]]
        members = np.append(support, books.feature[own])
        groups.append(
            FeatureGroup(
                support=int(support),
                affiliated=books.feature[own],
                correlation=books.correlation[own],
                names=None if names is None else tuple(str(names[j]) for j in members),
                score=float(scores[position]),
                affiliated_scores=member_scores[own],
                weight=float(weights[position]),
                round=int(rounds[position]),
                purity=group_purity(oracle.correlation, members),
            )
        )
    return FeatureGroups(groups)
