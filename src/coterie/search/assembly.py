"""From the oracle's books to the groups that users see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.correlation.purity import group_purity
from coterie.groups import FeatureGroup, FeatureGroups
from coterie.search.loop import Round
from coterie.search.oracle import Oracle

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
    member_scores, support_scores = final_scores[books.feature], final_scores[oracle.supports]
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
                score=float(support_scores[position]),
                affiliated_scores=member_scores[own],
                weight=float(weights[position]),
                round=int(rounds[position]),
                purity=group_purity(oracle.correlation, members),
            )
        )
    return FeatureGroups(groups)


def with_class_weights(state: Mapping[str, Any]) -> dict[str, Any]:
    """Fitted attributes of a classifier, with groups that know their signed weights for each class; others as they are.

    Also for files from the time when groups did not, so nothing is taken for granted.
    """
    groups, classes, coef = (state.get(name) for name in ("groups_", "classes_", "support_coef_"))
    if not (isinstance(groups, FeatureGroups) and isinstance(classes, np.ndarray) and isinstance(coef, np.ndarray)):
        return dict(state)
    if coef.shape != (len(classes) if len(classes) > 2 else 1, len(groups)):
        return dict(state)
    signed = coef if len(classes) > 2 else np.vstack([-coef, coef])
    labels = classes.tolist()
    weighed = [
        replace(group, class_weights=dict(zip(labels, own, strict=True)))
        for group, own in zip(groups, (signed + 0.0).T.tolist(), strict=True)  # + 0.0: no -0.0
    ]
    return {**state, "groups_": FeatureGroups(weighed)}
