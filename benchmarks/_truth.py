"""Comparison of found groups with planted ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from coterie.groups import FeatureGroup

# A false group is called linked if its support feature has at least this correlation with a planted one: it is not the
# planted group, but its selection is not pure chance.
LINKED = 0.3


def is_true(found: Sequence[Iterable[int]], planted: Sequence[Iterable[int]]) -> np.ndarray:
    """Return for each found set of features whether it shares a member with any planted one."""
    members = {int(j) for group in planted for j in group}
    return np.array([not members.isdisjoint(map(int, group)) for group in found], dtype=bool)


def is_found(planted: Sequence[Iterable[int]], found: Sequence[Iterable[int]]) -> np.ndarray:
    """Return for each planted set of features whether any found one shares a member with it."""
    return is_true(planted, found)


def members_of(groups: Iterable[FeatureGroup]) -> list[np.ndarray]:
    """Return the features of each group."""
    return [group.members for group in groups]


def linked(X: Any, supports: np.ndarray, planted: np.ndarray) -> np.ndarray:
    """Return for each feature whether its correlation with any planted support feature is at least ``LINKED``."""
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
    """Return a feature and all features whose correlation with it reaches ``threshold``: its planted group if causal."""
    dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
    values = dense.astype(np.float64)
    r = np.abs(_correlation(values, values[:, [support]])[:, 0])
    return np.append(support, np.setdiff1d(np.flatnonzero(r >= threshold), [support]))
