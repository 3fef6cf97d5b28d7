r"""Groups of correlated features without labels, exactly, and without a matrix of all pairs.

The features are walked in a given order. One that is correlated with an earlier representative is taken; any other is a
representative itself. In the end each feature that is taken belongs to the representative that it is closest to. This is the
greedy maximal independent set of the graph of strong pairs, and depends on the order alone.

It is found in batches: the next features that nobody has taken, as many as there is room for, are compared with each other,
which tells the representatives among them; one pass over all features then finds whom these take. A batch of b features costs
one pass instead of b, and no feature that is taken is ever asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from coterie.correlation.pearson import PearsonCorrelation
from coterie.correlation.protocol import ROUNDING, Correlation
from coterie.correlation.spearman import SpearmanCorrelation
from coterie.data.top import NO_FEATURES
from coterie.groups import Purity

# Features of a batch: the first one, and the largest one. Twice as many follow when most of a batch were representatives.
_FIRST_BATCH, _LARGEST_BATCH = 256, 2048
# Values of the columns of a batch that may be held at a time: 128 MB.
_BATCH_VALUES = 1 << 24
# SuSiE's limit: the purity of a larger group is that of so many of its members.
_PURITY_MEMBERS = 100
# Members of small groups that are looked at together.
_TOGETHER = 64


class Grouping(NamedTuple):
    """Representatives, fixed ones first, and the other features with the place of their representative among these."""

    supports: np.ndarray
    feature: np.ndarray
    position: np.ndarray
    correlation: np.ndarray


def batch_size(correlation: Correlation) -> int:
    """Features whose columns may be held at a time; sparse ones are made dense by all but the linear measures."""
    if correlation.view.is_sparse and isinstance(correlation, (PearsonCorrelation, SpearmanCorrelation)):
        return _LARGEST_BATCH
    return max(16, min(_LARGEST_BATCH, _BATCH_VALUES // max(1, correlation.view.n_samples)))


def count_neighbours(correlation: Correlation, threshold: float, on_batch: Callable[[int], object]) -> np.ndarray:
    """For each feature, how many others are correlated with it at or over the threshold; 0 for constant ones."""
    view = correlation.view
    varying = np.flatnonzero(view.moments.norm > 0.0)
    counts = np.zeros(view.n_features, dtype=np.int64)
    step = batch_size(correlation)
    for first in range(0, len(varying), step):
        batch = varying[first : first + step]
        pairs = correlation.strong(batch, threshold)
        others = pairs.feature != batch[pairs.position]
        counts[batch] = np.bincount(pairs.position[others], minlength=len(batch))
        on_batch(first + len(batch))
    return counts


def group_features(
    correlation: Correlation,
    order: np.ndarray,
    fixed: np.ndarray,
    threshold: float,
    on_batch: Callable[[int, int], object] = lambda done, found: None,
) -> Grouping:
    """Walk some features in order (none of them constant or fixed) and group them; ``fixed`` ones are representatives.

    After each batch ``on_batch`` is called with the numbers of features done and of representatives.
    """
    free = np.zeros(correlation.view.n_features, dtype=bool)
    free[order] = True
    supports = np.empty(0, dtype=np.int64)
    members = Grouping(supports, np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    most = batch_size(correlation)
    size, place = min(_FIRST_BATCH, most), 0
    chosen = fixed
    while True:
        for first in range(0, len(chosen), most):  # fixed features may be many
            some = chosen[first : first + most]
            pairs = correlation.strong(some, threshold)
            members = _closest(members, pairs.feature, len(members.supports) + pairs.position, pairs.correlation, some)
            free[pairs.feature] = False
        on_batch(place, len(members.supports))
        batch, place = _next_free(order, place, free, size)
        if not len(batch):
            break
        chosen = batch[_apart(np.abs(correlation.within(batch)) >= threshold - ROUNDING)]
        free[chosen] = False
        if 2 * len(chosen) > len(batch):
            size = min(2 * size, most)
    others = np.ones(correlation.view.n_features, dtype=bool)
    others[members.supports] = False
    kept = others[members.feature]
    return Grouping(members.supports, members.feature[kept], members.position[kept], members.correlation[kept])


def _next_free(order: np.ndarray, place: int, free: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """The next free features of an order from a place on, and the place after them."""
    ahead = place + np.flatnonzero(free[order[place:]])[:size]
    return order[ahead], int(ahead[-1]) + 1 if len(ahead) else len(order)


def _apart(close: np.ndarray) -> np.ndarray:
    """The places that are close to none of those chosen before them."""
    taken = np.zeros(len(close), dtype=bool)
    chosen = []
    for place in range(len(close)):
        if not taken[place]:
            chosen.append(place)
            taken |= close[place]
    return np.array(chosen, dtype=np.int64)


def _closest(known: Grouping, feature: np.ndarray, position: np.ndarray, value: np.ndarray, new: np.ndarray) -> Grouping:
    """Each feature with the representative of the largest \\|correlation\\|; ties to the earlier one."""
    feature = np.concatenate([known.feature, feature])
    position = np.concatenate([known.position, position])
    value = np.concatenate([known.correlation, value])
    supports = np.concatenate([known.supports, new])
    if not len(feature):
        return Grouping(supports, feature, position, value)
    order = np.lexsort((position, feature))
    feature, position, value = feature[order], position[order], value[order]
    starts = np.flatnonzero(np.append(True, feature[1:] != feature[:-1]))
    largest = np.repeat(np.maximum.reduceat(np.abs(value), starts), np.diff(np.append(starts, len(feature))))
    eligible = np.flatnonzero(np.abs(value) >= largest - ROUNDING)
    first = eligible[np.unique(feature[eligible], return_index=True)[1]]
    return Grouping(supports, feature[first], position[first], value[first])


def group_purity(correlation: Correlation, members: np.ndarray) -> Purity:
    """Smallest, mean and median \\|correlation\\| over the pairs of members; 1 for a feature alone.

    Of more than 100 members, 100 are taken at even steps from the most to the least correlated with
    the support feature (first and last included).
    """
    return group_purities(correlation, [members])[0]


def group_purities(correlation: Correlation, groups: Sequence[np.ndarray]) -> list[Purity]:
    """Purities of many groups: small ones share a look at their columns."""
    result = []
    correlation.view.source.prefetch(
        np.concatenate([NO_FEATURES, *(_shown(members) for members in groups if len(members) > 1)])
    )
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
