"""Features that users ask for: how many, and which."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np


def features_of_share(value: float, n_features: int) -> int:
    """The number of features that a fraction of them is."""
    return max(1, int(float(value) * n_features))


def n_features_wanted(value: int | float, n_features: int) -> int:
    """The number of features asked for, as a number or a fraction; the selector's table has seen to it that it is one.

    Where there are fewer, that is all of them, with a warning, as in scikit-learn's ``SelectKBest``.
    """
    if not isinstance(value, Integral):
        return features_of_share(value, n_features)
    if int(value) > n_features:
        warnings.warn(
            f"n_features_to_select={value} is more than the {n_features} feature(s) of X; as many are taken as there are.",
            UserWarning,
            stacklevel=2,
        )
    return min(int(value), n_features)


def n_features_or_auto(value: int | float | str, n_features: int) -> int | None:
    """The number of features asked for; None for ``"auto"``."""
    return None if isinstance(value, str) else n_features_wanted(value, n_features)


def feature_positions(features: Any, n_features: int, names: Sequence[str] | None, parameter: str) -> np.ndarray:
    """Indices of features given as indices, names or a boolean mask."""
    if features is None:
        return np.empty(0, dtype=np.int64)
    chosen = np.atleast_1d(np.asarray(features))
    if chosen.size == 0:
        return np.empty(0, dtype=np.int64)
    if chosen.ndim != 1:
        raise ValueError(f"{parameter} must be a list of feature indices or names, or a mask.")
    if chosen.dtype == np.bool_:
        if len(chosen) != n_features:
            raise ValueError(f"{parameter} is a mask of length {len(chosen)}, but X has {n_features} features.")
        return np.flatnonzero(chosen)
    if chosen.dtype.kind in "iu":
        wrong = chosen[(chosen < -n_features) | (chosen >= n_features)]
        if len(wrong):
            raise ValueError(f"{parameter} has index {wrong[0]}, but X has {n_features} features.")
        positions = np.where(chosen < 0, chosen + n_features, chosen).astype(np.int64)
    else:
        if names is None:
            raise ValueError(f"{parameter} has names, but X has none; give indices or pass X as a data frame.")
        where = {str(name): position for position, name in enumerate(names)}
        unknown = [str(name) for name in chosen if str(name) not in where]
        if unknown:
            raise ValueError(f"{parameter} names {unknown[0]!r}, which is not a feature of X.")
        positions = np.array([where[str(name)] for name in chosen], dtype=np.int64)
    if len(np.unique(positions)) < len(positions):
        raise ValueError(f"{parameter} names a feature twice.")
    return positions
