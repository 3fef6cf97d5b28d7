"""Found groups next to planted ones: which are true, and what was found of each planted group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from coterie.groups import FeatureGroup

# From this correlation with a planted support feature on, a false group is called linked: not the planted group, but not
# chosen for nothing either.
LINKED = 0.3


def is_true(found: Sequence[Iterable[int]], planted: Sequence[Iterable[int]]) -> np.ndarray:
    """For each found set of features, whether it has a member in common with any planted one."""
    members = {int(j) for group in planted for j in group}
    return np.array([not members.isdisjoint(map(int, group)) for group in found], dtype=bool)


def is_found(planted: Sequence[Iterable[int]], found: Sequence[Iterable[int]]) -> np.ndarray:
    """For each planted set of features, whether a found one has a member in common with it."""
    return is_true(planted, found)


def members_of(groups: Iterable[FeatureGroup]) -> list[np.ndarray]:
    """The features of each group."""
    return [group.members for group in groups]


def linked(X: Any, supports: np.ndarray, planted: np.ndarray) -> np.ndarray:
    """For each of some features, whether it correlates with any planted support feature at ``LINKED`` or more."""
    if not len(planted) or not len(supports):
        return np.zeros(len(supports), dtype=bool)
    parts = [X[:, np.asarray(columns)] for columns in (supports, planted)]
    left, right = ((part.toarray() if sparse.issparse(part) else np.asarray(part)).astype(np.float64) for part in parts)
    return (np.abs(_correlation(left, right)) >= LINKED).any(axis=1)


def _correlation(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    unit = [part - part.mean(axis=0) for part in (left, right)]
    unit = [part / np.maximum(np.linalg.norm(part, axis=0), 1e-300) for part in unit]
    return unit[0].T @ unit[1]


def strong_neighbours(X: Any, support: int, threshold: float = 0.7) -> np.ndarray:
    """A feature and all that correlate with it at ``threshold`` or more: the group that is planted when it has an effect."""
    dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
    values = dense.astype(np.float64)
    r = np.abs(_correlation(values, values[:, [support]])[:, 0])
    return np.append(support, np.setdiff1d(np.flatnonzero(r >= threshold), [support]))
