"""The strength of a penalty that leaves the number of features asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# Halvings of an interval of the (logarithmic) path, and steps along it before it counts as ended.
_HALVINGS = 20
_STEPS = 40


class PathPoint(NamedTuple):
    """A model along the path: the strength of its penalty, its coefficients, how many features they use."""

    strength: float
    coef: np.ndarray
    n_features: int


def search_path(
    solve: Callable[[float, np.ndarray | None], np.ndarray],
    strongest: float,
    n_wanted: int,
    factor: float = 0.5,
) -> tuple[PathPoint, list[tuple[float, int]]]:
    """The model with ``n_wanted`` features, or the sparsest one with more; else (the path ended) the one with most.

    ``solve(strength, start)`` gives coefficients, of shape (n_features,) or (n_outputs, n_features), and may start from
    those of the point before. From ``strongest``, at which no feature is left, the strength is multiplied by ``factor``
    until there are enough features; then the interval is halved, on the logarithmic scale. Also returns all
    (strength, number of features) that were tried, the strongest first.
    """
    tried: list[PathPoint] = []

    def at(strength: float, start: np.ndarray | None) -> PathPoint:
        coef = solve(strength, start)
        tried.append(PathPoint(strength, coef, int(np.count_nonzero(np.atleast_2d(coef).any(axis=0)))))
        return tried[-1]

    low = PathPoint(strongest, np.empty(0), 0)
    high = at(strongest * factor, None)
    for _ in range(_STEPS):
        if high.n_features >= n_wanted:
            break
        low, high = high, at(high.strength * factor, high.coef)
    for _ in range(_HALVINGS):
        if high.n_features <= n_wanted:
            break
        middle = at(float(np.sqrt(low.strength * high.strength)), high.coef)
        if middle.n_features >= n_wanted:
            high = middle
        else:
            low = middle
    enough = [point for point in tried if point.n_features >= n_wanted]
    best = min(enough, key=lambda point: point.n_features) if enough else max(tried, key=lambda point: point.n_features)
    return best, sorted(((point.strength, point.n_features) for point in tried), reverse=True)
