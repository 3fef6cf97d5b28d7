"""The groups in what users have: an estimator, its groups, or a list of groups."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError

from coterie.groups import FeatureGroup, FeatureGroups


def groups_of(found: Any) -> FeatureGroups:
    """The groups of a fitted estimator, or the groups that were given; at least one."""
    groups = getattr(found, "groups_", found)
    if hasattr(found, "fit") and groups is found:
        raise NotFittedError(
            f"This {type(found).__name__} has no groups_: fit it first, or take an estimator that finds groups."
        )
    if isinstance(groups, FeatureGroup):
        groups = [groups]
    if not isinstance(groups, FeatureGroups):
        try:
            groups = FeatureGroups(list(groups))
        except TypeError as error:
            raise TypeError(f"Groups must be FeatureGroups or a fitted estimator, got {type(found).__name__}.") from error
    wrong = [group for group in groups if not isinstance(group, FeatureGroup)]
    if wrong:
        raise TypeError(f"Groups must be FeatureGroups or a fitted estimator, got a sequence with {type(wrong[0]).__name__}.")
    if not len(groups):
        raise ValueError("There are no groups, so there is nothing to draw.")
    return groups
