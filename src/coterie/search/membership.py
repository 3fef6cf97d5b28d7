"""Members of the groups at every size of a path, computed once at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie.correlation.protocol import Pairs
from coterie.search.loop import CuttingPlane


@dataclass(frozen=True)
class Membership:
    """Members of a path's groups, and the model size at which each becomes a member.

    Attributes
    ----------
    feature : ndarray of int
        Members of the groups of all support features, in increasing order.
    since : ndarray of int
        Smallest number of support features with which each feature is a member.
    """

    feature: np.ndarray
    since: np.ndarray

    def at(self, n_support: int) -> np.ndarray:
        """Return the members of the groups of the first ``n_support`` support features.

        A search for ``n_support`` features would find the same members.
        """
        return self.feature[self.since <= n_support]

    @classmethod
    def of(cls, feature: np.ndarray, since: np.ndarray) -> Membership:
        """Return the membership for a list with repeated features. The smallest size of each feature counts."""
        order = np.lexsort((since, feature))
        members, first = np.unique(feature[order], return_index=True)
        return cls(members, since[order][first])


class EncounteredFeatures:
    """Affiliated features in the order in which a search encounters them: the members of ``"ranked"`` groups."""

    def __init__(self) -> None:
        self._known = np.empty(0, dtype=np.int64)
        self._features: list[np.ndarray] = []
        self._since: list[np.ndarray] = []

    def record(self, loop: CuttingPlane) -> None:
        """Record the features that the last round encountered."""
        fresh = np.setdiff1d(loop.oracle.affiliations.feature, self._known)
        self._known = np.union1d(self._known, fresh)
        self._features.append(fresh)
        self._since.append(np.full(len(fresh), len(loop.oracle.supports)))

    def membership(self, loop: CuttingPlane) -> Membership:
        """Return the membership of all encountered features and the support features."""
        supports = loop.oracle.supports
        return Membership.of(
            np.concatenate([supports, *self._features]), np.concatenate([np.arange(1, len(supports) + 1), *self._since])
        )


def memberships(loops: Sequence[CuttingPlane]) -> list[Membership]:
    """Return the members of the groups along each path."""
    by_weight: dict[int, list[int]] = {}
    found: dict[int, Membership] = {}
    for position, loop in enumerate(loops):
        if loop.encountered is not None:
            found[position] = loop.encountered.membership(loop)
        else:
            by_weight.setdefault(id(loop.oracle.view.sample_weight), []).append(position)
    for positions in by_weight.values():
        found |= dict(zip(positions, complete_memberships([loops[k] for k in positions]), strict=True))
    return [found[position] for position in range(len(loops))]


def complete_memberships(loops: Sequence[CuttingPlane]) -> list[Membership]:
    """Return the members of ``"complete"`` groups along paths that have the same sample weights.

    Paths that differ in C share most of their support features, so one pass computes the members for all paths with the same
    threshold. Correlations do not depend on the scale, so the view of any of these paths can be used.
    """
    pairs: dict[float, tuple[np.ndarray, Pairs]] = {}
    for threshold in {loop.oracle.threshold for loop in loops}:
        oracles = [loop.oracle for loop in loops if loop.oracle.threshold == threshold]
        supports = np.unique(np.concatenate([oracle.supports for oracle in oracles]))
        pairs[threshold] = supports, oracles[0].correlation.strong(supports, threshold)
    return [_members(loop.oracle.supports, *pairs[loop.oracle.threshold]) for loop in loops]


def _members(supports: np.ndarray, known: np.ndarray, pairs: Pairs) -> Membership:
    """Return the members of the groups of ``supports``, a subset of the features in ``known``."""
    since = np.full(len(known), np.iinfo(np.int64).max)
    since[np.searchsorted(known, supports)] = np.arange(1, len(supports) + 1)
    own = since[pairs.position] <= len(supports)
    return Membership.of(
        np.concatenate([supports, pairs.feature[own]]),
        np.concatenate([np.arange(1, len(supports) + 1), since[pairs.position[own]]]),
    )
