"""How much of a known group structure was found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from coterie.groups import FeatureGroup


class SuccessHits(NamedTuple):
    """What :func:`success_hits` counts; as text it is the papers' ``9/3/0``.

    Attributes
    ----------
    support, affiliated : int
        Right support features and right affiliated features.
    wrong : int
        Features that are neither.

    Examples
    --------
    >>> from coterie.metrics import SuccessHits
    >>> str(SuccessHits(support=9, affiliated=3, wrong=0))
    '9/3/0'
    """

    support: int
    affiliated: int
    wrong: int

    def __str__(self) -> str:
        return "/".join(map(str, self))


def group_recovery(true_groups: Iterable[FeatureGroup], found_groups: Iterable[FeatureGroup]) -> float:
    """Share of the true features that were found in their right role and group (the papers' success hits).

    A true group is compared with the found group that serves it best, among those whose support
    feature belongs to it. The true support feature counts if it is the found one; a true affiliated
    feature counts if it is affiliated there. Features that belong to no true group do not matter.

    Parameters
    ----------
    true_groups, found_groups : iterable of FeatureGroup
        For instance ``data.groups`` and ``model.groups_``.

    Returns
    -------
    recovery : float
        #CORRECT / #ALL, between 0 and 1.

    See Also
    --------
    success_hits : The same in numbers of features, with those that are wrong.

    Examples
    --------
    >>> from coterie import FeatureGroup
    >>> from coterie.metrics import group_recovery
    >>> truth = [FeatureGroup(0, [1, 2]), FeatureGroup(3, [])]
    >>> group_recovery(truth, truth)
    1.0
    >>> group_recovery(truth, [FeatureGroup(0, [1]), FeatureGroup(9, [3])])
    0.5
    """
    found, truths = list(found_groups), list(true_groups)
    n_true = sum(len({int(j) for j in truth.members}) for truth in truths)
    if n_true == 0:
        raise ValueError("true_groups is empty; there is nothing to recover.")
    return sum(len(_best_match(truth, found)[1]) for truth in truths) / n_true


def success_hits(true_groups: Iterable[FeatureGroup], found: Iterable[Any]) -> SuccessHits:
    """Count right support features, right affiliated features, and wrong features (the papers' 9/3/0).

    A *selection* (indices of features) has no roles: a chosen feature is a true support feature, a true
    affiliated one, or wrong. This is what TPAMI Table 2 reports of methods that select features.

    In *groups* a feature counts only in its right role and group: a true support feature as the support feature of its
    group, a true affiliated feature in the group that serves its true one best, among those whose support feature belongs
    to it. Every other feature in the groups is wrong, a true one in a wrong place included. Right features over
    all true ones are :func:`group_recovery`, which the paper reports of methods that group features.

    Parameters
    ----------
    true_groups : iterable of FeatureGroup
        For instance ``data.groups``.
    found : iterable of FeatureGroup, or of int
        Groups (``model.groups_``) or features (``model.support_features_``).

    Returns
    -------
    hits : SuccessHits
        A named tuple ``(support, affiliated, wrong)``. The three add up to the number of features found.

    See Also
    --------
    group_recovery : The share of the true features that were found.

    Examples
    --------
    >>> from coterie import FeatureGroup
    >>> from coterie.metrics import success_hits
    >>> truth = [FeatureGroup(0, [1, 2]), FeatureGroup(3, [])]
    >>> success_hits(truth, [FeatureGroup(0, [1, 7]), FeatureGroup(9, [3])])
    SuccessHits(support=1, affiliated=1, wrong=3)
    >>> print(success_hits(truth, [0, 1, 3, 7, 9]))
    2/1/2
    """
    truths, items = list(true_groups), list(found)
    if not truths:
        raise ValueError("true_groups is empty; there is nothing to hit.")
    if all(isinstance(item, FeatureGroup) for item in items):
        right = right_members(truths, items)
        support = {group.support for group, mine in zip(items, right, strict=True) if group.support in mine}
        affiliated = {j for mine in right for j in mine} - support
        features = {int(j) for group in items for j in group.members}
    else:
        features = _indices(items)
        support = features & {truth.support for truth in truths}
        affiliated = features & {int(j) for truth in truths for j in truth.affiliated} - support
    return SuccessHits(len(support), len(affiliated), len(features - support - affiliated))


def right_members(true_groups: Iterable[FeatureGroup], found_groups: Sequence[FeatureGroup]) -> list[set[int]]:
    """Which members of each found group count in :func:`success_hits`: those in their right role and group."""
    right: list[set[int]] = [set() for _ in found_groups]
    for truth in true_groups:
        place, mine = _best_match(truth, found_groups)
        if mine:
            right[place] |= mine
    return right


def _best_match(truth: FeatureGroup, found: Sequence[FeatureGroup]) -> tuple[int, set[int]]:
    """The place of the found group that serves a true one best, and its members that are right."""
    members = {int(j) for j in truth.members}
    parts = (
        (place, {truth.support} & {group.support} | (members - {truth.support}) & {int(j) for j in group.affiliated})
        for place, group in enumerate(found)
        if group.support in members
    )
    # Of equal ones that with the support feature.
    return max(parts, key=lambda part: (len(part[1]), found[part[0]].support == truth.support), default=(-1, set()))


def _indices(items: list[Any]) -> set[int]:
    """Whole numbers; a mask or a mixture with groups would be counted as something else, silently."""
    for item in items:
        if isinstance(item, (bool, np.bool_)) or not isinstance(item, (int, np.integer)):
            kind = type(item).__name__
            raise TypeError(f"found must hold groups only, or indices of features only (no mask); got {kind}.")
    return {int(item) for item in items}
