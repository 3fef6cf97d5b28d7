"""Agreement of feature subsets that are selected on different samples of the same population."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import maximum_bipartite_matching

from coterie.groups import FeatureGroup

# Indices of features or a mask. Groups, or lists of indices whose first entry is the support feature.
SubsetLike: TypeAlias = "ArrayLike | set[int] | frozenset[int]"
GroupingLike: TypeAlias = "Iterable[FeatureGroup | ArrayLike]"


def weighted_consistency(subsets: Sequence[SubsetLike], n_features: int) -> float:
    r"""Return the relative weighted consistency :math:`CW_{rel}` of feature subsets.

    With :math:`F_f` the number of subsets that contain feature f, :math:`N = \sum_f F_f`, R subsets of
    \|Y\| features, :math:`D = N \bmod |Y|` and :math:`H = N \bmod R` [1]_:

    .. math:: CW_{rel} = \frac{|Y| (N - D + \sum_f F_f (F_f - 1)) - N^2 + D^2}
                              {|Y| (H^2 + R (N - H) - D) - N^2 + D^2}

    It is 1 for subsets that are as similar as N allows (identical ones), 0 for subsets that are spread as evenly over the
    features as N allows, and about 1/R for random subsets of any sizes. If N determines the consistency (all subsets full,
    or a single feature in all), the denominator is 0. The weighted consistency
    :math:`\sum_f \frac{F_f}{N} \frac{F_f - 1}{R - 1}` is then returned, as in [1]_. Empty subsets are identical.

    Parameters
    ----------
    subsets : sequence of array-like
        At least two subsets, each a list of feature indices or a boolean mask; for instance
        ``[s.get_support() for s in selectors]``.
    n_features : int
        Number of features to select from.

    Returns
    -------
    consistency : float
        Between 0 and 1.

    See Also
    --------
    group_weighted_consistency : Same measure for groups.
    selection_stability : Fits a selector on resampled data and returns all measures.

    References
    ----------
    .. [1] P. Somol, J. Novovičová, "Evaluating stability and comparing output of feature selectors
       that optimize feature subset cardinality", IEEE TPAMI 32(11), 2010.

    Examples
    --------
    >>> from coterie.metrics import weighted_consistency
    >>> weighted_consistency([[0, 1], [0, 1]], n_features=4)
    1.0
    >>> weighted_consistency([[0, 1], [0, 2]], n_features=4)
    0.5
    >>> weighted_consistency([[0, 1], [2, 3]], n_features=4)
    0.0
    """
    chosen = _read_subsets(subsets, n_features)
    counts = _frequency(chosen, n_features)
    return _consistency(sum(map(len, chosen)), int((counts * (counts - 1)).sum()), len(chosen), n_features)


def tanimoto_stability(subsets: Sequence[SubsetLike]) -> float:
    r"""Return the average Tanimoto index (ATI) of feature subsets.

    It is the mean of :math:`|S_i \cap S_j| / |S_i \cup S_j|` over all pairs of subsets.

    Parameters
    ----------
    subsets : sequence of array-like
        At least two subsets, each a list of feature indices or a boolean mask.

    Returns
    -------
    stability : float
        Between 0 (all subsets are disjoint) and 1 (all are equal; empty subsets are equal).

    See Also
    --------
    weighted_consistency : Measure corrected for agreement by chance.
    group_tanimoto_stability : Same measure for groups.

    Examples
    --------
    >>> from coterie.metrics import tanimoto_stability
    >>> tanimoto_stability([[0, 1, 2], [1, 2, 3]])
    0.5
    """
    chosen = _read_subsets(subsets, None)
    pairs = [(len(a), len(b), len(np.intersect1d(a, b, assume_unique=True))) for a, b in combinations(chosen, 2)]
    return _mean_tanimoto(pairs)


def hamming_stability(subsets: Sequence[SubsetLike], n_features: int) -> float:
    r"""Return the average normalised Hamming index (ANHI) of feature subsets.

    It is the mean of :math:`1 - |S_i \triangle S_j| / |Y|` over all pairs of subsets. Features that are in no subset count as
    agreement, so small subsets of many features always have an index near 1. Compare it only between subsets of equal sizes.

    Parameters
    ----------
    subsets : sequence of array-like
        At least two subsets, each a list of feature indices or a boolean mask.
    n_features : int
        Number of features to select from.

    Returns
    -------
    stability : float
        Between 0 and 1.

    See Also
    --------
    weighted_consistency : Measure corrected for agreement by chance.
    group_hamming_stability : Same measure for groups.

    Examples
    --------
    >>> from coterie.metrics import hamming_stability
    >>> hamming_stability([[0, 1, 2], [1, 2, 3]], n_features=8)
    0.75
    """
    chosen = _read_subsets(subsets, n_features)
    counts = _frequency(chosen, n_features)
    n_subsets = len(chosen)
    differences = int((counts * (n_subsets - counts)).sum())  # over all pairs: the feature is in exactly one of the two
    return 1.0 - differences / (n_features * (n_subsets * (n_subsets - 1) // 2))


def group_weighted_consistency(groupings: Sequence[GroupingLike], n_features: int) -> float:
    r"""Return the relative weighted consistency at the level of groups.

    Two runs agree if their groups overlap. A selector that selects different features of a set of correlated features, but
    returns the same set as a group, is stable. For a pair of runs the number of agreements :math:`M_{ij}` is the largest
    number of disjoint pairs of a group of one run and an overlapping group of the other. It is a maximum matching, so that
    one large group does not count for many.

    :func:`weighted_consistency` depends on the subsets only through their sizes and
    :math:`\sum_f F_f (F_f - 1) = \sum_{i \ne j} |S_i \cap S_j|`. Here the sizes are numbers of groups, and
    :math:`M_{ij}` replaces the intersections. For groups of one feature both functions return the same value.

    Parameters
    ----------
    groupings : sequence of sequences of groups
        At least two runs, each a list of groups: a ``FeatureGroups`` (``model.groups_``), or lists of feature indices whose
        first entry is the support feature. The support features of a run must be different.
    n_features : int
        Number of features to select from.

    Returns
    -------
    consistency : float
        Between 0 and 1. It is never below the consistency of the support features alone.

    Examples
    --------
    >>> from coterie.metrics import group_weighted_consistency
    >>> group_weighted_consistency([[[0, 1, 2], [5]], [[1, 0, 2], [6]]], n_features=10)
    0.5
    """
    runs = _read_groupings(groupings, n_features)
    matched = sum(_matching(a, b) for a, b in combinations(runs, 2))
    return _consistency(sum(map(len, runs)), 2 * matched, len(runs), n_features)


def group_tanimoto_stability(groupings: Sequence[GroupingLike]) -> float:
    r"""Return the average Tanimoto index at the level of groups: the mean of :math:`M_{ij} / (|G_i| + |G_j| - M_{ij})`.

    Parameters
    ----------
    groupings : sequence of sequences of groups
        As in :func:`group_weighted_consistency`, which defines the number of agreements :math:`M_{ij}`.

    Returns
    -------
    stability : float
        Between 0 and 1. For groups of one feature it equals :func:`tanimoto_stability`.

    Examples
    --------
    >>> from coterie.metrics import group_tanimoto_stability
    >>> group_tanimoto_stability([[[0, 1, 2], [5], [8]], [[1, 0, 2], [6], [8]]])
    0.5
    """
    runs = _read_groupings(groupings, None)
    return _mean_tanimoto([(len(a), len(b), _matching(a, b)) for a, b in combinations(runs, 2)])


def group_hamming_stability(groupings: Sequence[GroupingLike], n_features: int) -> float:
    r"""Return the average normalised Hamming index at the level of groups.

    It is the mean of :math:`1 - (|G_i| + |G_j| - 2 M_{ij}) / |Y|` over all pairs of runs.

    Parameters
    ----------
    groupings : sequence of sequences of groups
        As in :func:`group_weighted_consistency`, which defines the number of agreements :math:`M_{ij}`.
    n_features : int
        Number of features to select from.

    Returns
    -------
    stability : float
        Between 0 and 1. For groups of one feature it equals :func:`hamming_stability`.

    Examples
    --------
    >>> from coterie.metrics import group_hamming_stability
    >>> group_hamming_stability([[[0, 1, 2], [5]], [[1, 0, 2], [6]]], n_features=8)
    0.75
    """
    runs = _read_groupings(groupings, n_features)
    differences = [len(a) + len(b) - 2 * _matching(a, b) for a, b in combinations(runs, 2)]
    return 1.0 - sum(differences) / (n_features * len(differences))


def _consistency(total: int, agreements: int, n_subsets: int, n_features: int) -> float:
    """Return CW_rel from N, the agreements over ordered pairs, R and |Y|, in integers up to the division."""
    if total == 0:
        return 1.0
    rest, odd = total % n_features, total % n_subsets
    spread = total**2 - rest**2
    top = n_features * (total - rest + agreements) - spread
    bottom = n_features * (odd**2 + n_subsets * (total - odd) - rest) - spread
    if bottom == 0:
        return agreements / (total * (n_subsets - 1))
    return top / bottom


def _mean_tanimoto(pairs: Sequence[tuple[int, int, int]]) -> float:
    """Return the mean Tanimoto index of pairs, given as (size, size, number in common)."""
    return float(np.mean([common / (a + b - common) if a + b else 1.0 for a, b, common in pairs]))


def _frequency(chosen: Sequence[np.ndarray], n_features: int) -> np.ndarray:
    """Return the number of subsets that contain each feature."""
    return np.bincount(np.concatenate(chosen), minlength=n_features)


def _matching(first: Sequence[frozenset[int]], second: Sequence[frozenset[int]]) -> int:
    """Return the size of a maximum matching between overlapping groups of two runs."""
    groups_with: dict[int, list[int]] = {}
    for j, group in enumerate(second):
        for feature in group:
            groups_with.setdefault(feature, []).append(j)
    pairs = {(i, j) for i, group in enumerate(first) for feature in group for j in groups_with.get(feature, ())}
    if not pairs:
        return 0
    rows, columns = np.array(sorted(pairs), dtype=np.int32).T  # csgraph of SciPy 1.13 requires 32-bit indices.
    overlap = sparse.csr_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(len(first), len(second)))
    return int((maximum_bipartite_matching(overlap, perm_type="column") >= 0).sum())


def _read_subsets(subsets: Sequence[SubsetLike], n_features: int | None) -> list[np.ndarray]:
    """Check subsets and return them as sorted arrays of indices."""
    _require_features(n_features)
    chosen = [_read_subset(subset, number, n_features) for number, subset in enumerate(subsets)]
    if len(chosen) < 2:
        raise ValueError(f"Stability requires at least 2 subsets, but there are {len(chosen)}.")
    return chosen


def _read_subset(subset: SubsetLike, number: int, n_features: int | None) -> np.ndarray:
    values = np.asarray(list(subset) if isinstance(subset, (set, frozenset)) else subset)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "biu"):
        raise ValueError(f"Subset {number} must be a list of feature indices or a boolean mask.")
    if values.dtype == np.bool_:
        if n_features is not None and len(values) != n_features:
            raise ValueError(f"Subset {number} is a mask of length {len(values)}, but n_features={n_features}.")
        return np.flatnonzero(values)
    features = np.unique(values).astype(np.int64)
    if len(features) < len(values):
        raise ValueError(f"Subset {number} contains a feature twice.")
    _require_range(features, f"Subset {number}", n_features)
    return features


def _read_groupings(groupings: Sequence[GroupingLike], n_features: int | None) -> list[list[frozenset[int]]]:
    """Check runs and return them as lists of sets of features."""
    _require_features(n_features)
    runs = []
    for number, grouping in enumerate(groupings):
        members = [np.asarray(getattr(group, "members", group)) for group in grouping]
        if any(group.ndim != 1 or not group.size or group.dtype.kind not in "iu" for group in members):
            raise ValueError(f"The groups of run {number} must be FeatureGroup objects or non-empty lists of feature indices.")
        if len({int(group[0]) for group in members}) < len(members):
            raise ValueError(f"Two groups of run {number} have the same support feature (the first of its group).")
        for group in members:
            _require_range(group, f"A group of run {number}", n_features)
        runs.append([frozenset(map(int, group)) for group in members])
    if len(runs) < 2:
        raise ValueError(f"Stability requires at least 2 runs, but there are {len(runs)}.")
    return runs


def _require_features(n_features: int | None) -> None:
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features={n_features} must be a whole number of at least 1.")


def _require_range(features: np.ndarray, owner: str, n_features: int | None) -> None:
    wrong = features[(features < 0) | (features >= (np.inf if n_features is None else n_features))]
    if len(wrong):
        limit = "indices must be at least 0" if n_features is None else f"n_features={n_features}"
        raise ValueError(f"{owner} has feature {wrong[0]}, but {limit}.")
