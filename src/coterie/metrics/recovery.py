"""How much of a known group structure was found."""

from __future__ import annotations

from collections.abc import Iterable

from coterie.groups import FeatureGroup


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
    found = list(found_groups)
    n_true = n_correct = 0
    for truth in true_groups:
        members = {int(j) for j in truth.members}
        affiliated = members - {truth.support}
        n_true += len(members)
        n_correct += max(
            (
                int(group.support == truth.support) + len(affiliated & {int(j) for j in group.affiliated})
                for group in found
                if group.support in members
            ),
            default=0,
        )
    if n_true == 0:
        raise ValueError("true_groups is empty; there is nothing to recover.")
    return n_correct / n_true
