"""From the oracle's books to the groups that users see."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.correlation.purity import group_purity
from coterie.discovery.loop import Round
from coterie.discovery.oracle import Oracle
from coterie.groups import FeatureGroup, FeatureGroups


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
        The rounds.
    weights : ndarray of shape (n_support,)
        Weights in the model.
    final_scores : ndarray of shape (n_features,)
        Scores of all features for the final dual variables.
    """
    # A feature counts with the first block that it is in.
    blocks = np.concatenate([entry.features for entry in history] or [np.empty(0, int)])
    first = np.sort(np.unique(blocks, return_index=True)[1])
    rounds = np.concatenate([np.full(len(entry.features), entry.round) for entry in history] or [np.empty(0, int)])[first]
    books = oracle.collect()
    # By group, the most correlated first, then by feature (the books are in order of feature).
    order = np.lexsort((-np.abs(books.correlation), books.support))
    bounds = np.searchsorted(books.support[order], np.arange(len(oracle.supports) + 1))
    names = oracle.view.feature_names
    groups = []
    for position, support in enumerate(oracle.supports):
        own = order[bounds[position] : bounds[position + 1]]
        members = np.append(support, books.feature[own])
        groups.append(
            FeatureGroup(
                support=int(support),
                affiliated=books.feature[own],
                correlation=books.correlation[own],
                names=None if names is None else tuple(str(names[j]) for j in members),
                score=float(final_scores[support]),
                affiliated_scores=final_scores[books.feature[own]],
                weight=float(weights[position]),
                round=int(rounds[position]),
                purity=group_purity(oracle.correlation, members),
            )
        )
    return FeatureGroups(groups)
