"""Whether prior groups of features have moved together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from coterie.groups import FeatureGroup


def correct_move_rate(ranking_before: Any, ranking_after: Any, groups: Iterable[Any]) -> float:
    """Share of the groups whose members are closer in the ranking than before (TKDE 2015, section 4.6).

    The paper has pairs of features, and a pair makes a correct move when the difference of their ranks becomes smaller. For a
    larger group the difference is that between its best and its worst rank. Groups of one feature do not count.

    Parameters
    ----------
    ranking_before, ranking_after : array-like of shape (n_features,)
        Place of each feature without and with the groups, for instance ``ranking_`` of two fitted
        :class:`coterie.GlobalRedundancySelector`.
    groups : iterable of FeatureGroup or of array-like of int
        The groups.

    Returns
    -------
    rate : float
        Between 0 and 1.

    Examples
    --------
    >>> from coterie.metrics import correct_move_rate
    >>> correct_move_rate([1, 2, 3, 4], [1, 3, 2, 4], [[0, 2], [1, 3]])
    1.0
    >>> correct_move_rate([1, 2, 3, 4], [1, 3, 2, 4], [[0, 1], [1, 3]])
    0.5
    """
    before, after = np.asarray(ranking_before), np.asarray(ranking_after)
    if before.shape != after.shape or before.ndim != 1:
        raise ValueError(f"The rankings must be of one length, got shapes {before.shape} and {after.shape}.")
    moves = []
    for number, group in enumerate(groups):
        members = np.asarray(group.members if isinstance(group, FeatureGroup) else group, dtype=np.int64)
        if len(members) and (members.min() < 0 or members.max() >= len(before)):
            raise ValueError(f"groups[{number}] has a feature that the rankings of {len(before)} features do not have.")
        if len(members) > 1:
            moves.append(np.ptp(after[members]) < np.ptp(before[members]))
    if not moves:
        raise ValueError("groups has no group of two or more features; there is nothing to move together.")
    return float(np.mean(moves))
