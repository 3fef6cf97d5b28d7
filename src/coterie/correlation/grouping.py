r"""Exact groups of correlated features without labels and without a matrix of all pairs.

The features are visited in a given order. A feature that is correlated with an earlier representative is grouped; any other
becomes a representative. In the end each grouped feature belongs to its closest representative. The representatives are the
greedy maximal independent set of the graph of strong pairs, which depends on the order only.

They are found in batches. The next ungrouped features, up to the batch size, are compared with each other to find the
representatives among them. One pass over all features then finds the features that are correlated with these. A batch of b
features costs one pass instead of b, and features that are already grouped are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from coterie.correlation.pearson import PearsonCorrelation
from coterie.correlation.protocol import ROUNDING, Correlation
from coterie.data.top import NO_FEATURES
from coterie.groups import Purity

# Size of the first batch, and largest size. The size doubles if most features of a batch were representatives.
_FIRST_BATCH_FEATURES, _MAX_BATCH_FEATURES = 256, 2048
# Largest number of values in the columns of a batch: 128 MB.
_BATCH_VALUES = 1 << 24
# SuSiE's limit: the purity of a larger group is computed from this number of its members.
_PURITY_MEMBERS = 100
# Largest number of members of small groups whose correlations are computed together.
_MAX_SHARED_MEMBERS = 64


class Grouping(NamedTuple):
    """Representatives, fixed ones first, and the other features with the position of their representative."""

    supports: np.ndarray
    feature: np.ndarray
    position: np.ndarray
    correlation: np.ndarray


def batch_size(correlation: Correlation) -> int:
    """Return the number of features per batch. All measures except Pearson and Spearman make sparse columns dense."""
    from coterie.correlation.spearman import SpearmanCorrelation

    if correlation.view.is_sparse and isinstance(correlation, (PearsonCorrelation, SpearmanCorrelation)):
        return _MAX_BATCH_FEATURES
    return max(16, min(_MAX_BATCH_FEATURES, _BATCH_VALUES // max(1, correlation.view.n_samples)))


def count_neighbours(correlation: Correlation, threshold: float, on_batch: Callable[[int], object]) -> np.ndarray:
    """Return, per feature, the number of others whose correlation reaches the threshold. 0 for constant features."""
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
    """Group features in the given order. None of them may be constant or fixed; ``fixed`` features are representatives.

    After each batch ``on_batch`` is called with the number of visited features and the number of representatives.
    """
    ungrouped = np.zeros(correlation.view.n_features, dtype=bool)
    ungrouped[order] = True
    supports = np.empty(0, dtype=np.int64)
    members = Grouping(supports, np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    max_size = batch_size(correlation)
    size, position = min(_FIRST_BATCH_FEATURES, max_size), 0
    chosen = fixed
    while True:
        for first in range(0, len(chosen), max_size):  # There may be many fixed features.
            some = chosen[first : first + max_size]
            pairs = correlation.strong(some, threshold)
            members = _closest(members, pairs.feature, len(members.supports) + pairs.position, pairs.correlation, some)
            ungrouped[pairs.feature] = False
        on_batch(position, len(members.supports))
        batch, position = _next_ungrouped(order, position, ungrouped, size)
        if not len(batch):
            break
        chosen = batch[_independent(np.abs(correlation.within(batch)) >= threshold - ROUNDING)]
        ungrouped[chosen] = False
        if 2 * len(chosen) > len(batch):
            size = min(2 * size, max_size)
    others = np.ones(correlation.view.n_features, dtype=bool)
    others[members.supports] = False
    kept = others[members.feature]
    return Grouping(members.supports, members.feature[kept], members.position[kept], members.correlation[kept])


def _next_ungrouped(order: np.ndarray, position: int, ungrouped: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """Return the next ungrouped features of an order from a position on, and the position after them."""
    ahead = position + np.flatnonzero(ungrouped[order[position:]])[:size]
    return order[ahead], int(ahead[-1]) + 1 if len(ahead) else len(order)


def _independent(correlated: np.ndarray) -> np.ndarray:
    """Return the positions that are not correlated with an earlier returned position."""
    taken = np.zeros(len(correlated), dtype=bool)
    chosen = []
    for position in range(len(correlated)):
        if not taken[position]:
            chosen.append(position)
            taken |= correlated[position]
    return np.array(chosen, dtype=np.int64)


def _closest(known: Grouping, feature: np.ndarray, position: np.ndarray, value: np.ndarray, new: np.ndarray) -> Grouping:
    """Return each feature with its representative of largest absolute correlation. The earlier one wins ties."""
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
    """Return the smallest, mean and median absolute correlation over the pairs of members. 1 for a single feature.

    From more than 100 members, 100 are taken at even steps from the most to the least correlated with the support feature,
    including the first and the last.
    """
    return group_purities(correlation, [members])[0]


def group_purities(correlation: Correlation, groups: Sequence[np.ndarray]) -> list[Purity]:
    """Return the purities of many groups. Small groups share one matrix of correlations."""
    result = []
    correlation.view.source.prefetch(
        np.concatenate([NO_FEATURES, *(_purity_members(members) for members in groups if len(members) > 1)])
    )
    for some in _batched_groups([_purity_members(members) for members in groups]):
        ends = np.cumsum([len(members) for members in some])
        matrix = np.abs(correlation.within(np.concatenate(some))) if ends[-1] > len(some) else np.ones((ends[-1], ends[-1]))
        for end, members in zip(ends, some, strict=True):
            own = slice(end - len(members), end)
            result.append(_purity(matrix[own, own]))
    return result


def _purity_members(members: np.ndarray) -> np.ndarray:
    """Return the members from which the purity is computed."""
    if len(members) <= _PURITY_MEMBERS:
        return members
    return np.asarray(members[np.linspace(0, len(members) - 1, _PURITY_MEMBERS).round().astype(np.int64)])


def _batched_groups(groups: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Yield lists of neighbouring groups that share one matrix of correlations. A large group is alone in its list."""
    some: list[np.ndarray] = []
    n_members = 0
    for members in groups:
        if some and n_members + len(members) > _MAX_SHARED_MEMBERS:
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
