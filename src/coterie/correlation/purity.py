"""How much alike the members of a group are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coterie.correlation.protocol import Correlation
from coterie.data.top import NOBODY
from coterie.groups import Purity

# SuSiE's limit: the purity of a larger group is that of so many of its members.
_PURITY_MEMBERS = 100
# Members of small groups that are looked at together.
_TOGETHER = 64


def group_purity(correlation: Correlation, members: np.ndarray) -> Purity:
    """Smallest, mean and median \\|correlation\\| over the pairs of members; 1 for a feature alone.

    Of more than 100 members, 100 are taken at even steps from the most to the least correlated with
    the support feature (first and last included).
    """
    return group_purities(correlation, [members])[0]


def group_purities(correlation: Correlation, groups: Sequence[np.ndarray]) -> list[Purity]:
    """Purities of many groups: small ones share a look at their columns."""
    result = []
    correlation.view.source.prefetch(np.concatenate([NOBODY, *(_shown(members) for members in groups if len(members) > 1)]))
    for some in _together([_shown(members) for members in groups]):
        ends = np.cumsum([len(members) for members in some])
        matrix = np.abs(correlation.within(np.concatenate(some))) if ends[-1] > len(some) else np.ones((ends[-1], ends[-1]))
        for end, members in zip(ends, some, strict=True):
            own = slice(end - len(members), end)
            result.append(_purity(matrix[own, own]))
    return result


def _shown(members: np.ndarray) -> np.ndarray:
    """The members that a purity is computed of."""
    if len(members) <= _PURITY_MEMBERS:
        return members
    return np.asarray(members[np.linspace(0, len(members) - 1, _PURITY_MEMBERS).round().astype(np.int64)])


def _together(groups: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Neighbouring groups with so few members that they can be looked at together; a large one alone."""
    some: list[np.ndarray] = []
    n_members = 0
    for members in groups:
        if some and n_members + len(members) > _TOGETHER:
            yield some
            some, n_members = [], 0
        some.append(members)
        n_members += len(members)
    if some:
        yield some


def _purity(matrix: np.ndarray) -> Purity:
    if len(matrix) == 1:
        return Purity(1.0, 1.0, 1.0)
    pairs = matrix[np.triu_indices(len(matrix), k=1)]
    return Purity(float(pairs.min()), float(pairs.mean()), float(np.median(pairs)))
