"""How well a selection recovers what is known, and how much it repeats itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_array

from coterie.correlation.pearson import PearsonCorrelation
from coterie.data.memory import as_source
from coterie.data.view import FeatureView
from coterie.groups import FeatureGroup

MatrixLike: TypeAlias = "ArrayLike | sparse.sparray | sparse.spmatrix"


class SuccessHits(NamedTuple):
    """What :func:`success_hits` counts; as text it is the papers' ``9/3/0``.

    Attributes
    ----------
    support, affiliated : int
        Right support features and right affiliated features.
    wrong : int
        Features that are neither.

    Examples
    --------
    >>> from coterie.metrics import SuccessHits
    >>> str(SuccessHits(support=9, affiliated=3, wrong=0))
    '9/3/0'
    """

    support: int
    affiliated: int
    wrong: int

    def __str__(self) -> str:
        return "/".join(map(str, self))


def group_recovery(true_groups: Iterable[FeatureGroup], found_groups: Iterable[FeatureGroup]) -> float:
    """Share of the true features that were found in their right role and group (the papers' success hits).

    A true group is compared with the found group that serves it best, among those whose support
    feature belongs to it. The true support feature counts if it is the found one; a true affiliated
    feature counts if it is affiliated there. Features that belong to no true group do not matter.

    Parameters
    ----------
    true_groups, found_groups : iterable of FeatureGroup
        For instance ``data.groups`` and ``model.groups_``.

    Returns
    -------
    recovery : float
        #CORRECT / #ALL, between 0 and 1.

    See Also
    --------
    success_hits : The same in numbers of features, with those that are wrong.

    Examples
    --------
    >>> from coterie import FeatureGroup
    >>> from coterie.metrics import group_recovery
    >>> truth = [FeatureGroup(0, [1, 2]), FeatureGroup(3, [])]
    >>> group_recovery(truth, truth)
    1.0
    >>> group_recovery(truth, [FeatureGroup(0, [1]), FeatureGroup(9, [3])])
    0.5
    """
    found, truths = list(found_groups), list(true_groups)
    n_true = sum(len({int(j) for j in truth.members}) for truth in truths)
    if n_true == 0:
        raise ValueError("true_groups is empty; there is nothing to recover.")
    return sum(len(_best_match(truth, found)[1]) for truth in truths) / n_true


def success_hits(true_groups: Iterable[FeatureGroup], found: Iterable[FeatureGroup | int]) -> SuccessHits:
    """Count right support features, right affiliated features, and wrong features (the papers' 9/3/0).

    A *selection* (indices of features) has no roles: a chosen feature is a true support feature, a true
    affiliated one, or wrong. This is what TPAMI Table 2 reports of methods that select features.

    In *groups* a feature counts only in its right role and group: a true support feature as the support feature of its
    group, a true affiliated feature in the group that serves its true one best, among those whose support feature belongs
    to it. Every other feature in the groups is wrong, a true one in a wrong place included. Right features over
    all true ones are :func:`group_recovery`, which the paper reports of methods that group features.

    Parameters
    ----------
    true_groups : iterable of FeatureGroup
        For instance ``data.groups``.
    found : iterable of FeatureGroup, or of int
        Groups (``model.groups_``) or features (``model.support_features_``).

    Returns
    -------
    hits : SuccessHits
        A named tuple ``(support, affiliated, wrong)``. The three add up to the number of features found.

    See Also
    --------
    group_recovery : The share of the true features that were found.

    Examples
    --------
    >>> from coterie import FeatureGroup
    >>> from coterie.metrics import success_hits
    >>> truth = [FeatureGroup(0, [1, 2]), FeatureGroup(3, [])]
    >>> success_hits(truth, [FeatureGroup(0, [1, 7]), FeatureGroup(9, [3])])
    SuccessHits(support=1, affiliated=1, wrong=3)
    >>> print(success_hits(truth, [0, 1, 3, 7, 9]))
    2/1/2
    """
    truths, items = list(true_groups), list(found)
    if not truths:
        raise ValueError("true_groups is empty; there is nothing to hit.")
    groups = [item for item in items if isinstance(item, FeatureGroup)]
    if len(groups) == len(items):
        right = right_members(truths, groups)
        support = {group.support for group, mine in zip(groups, right, strict=True) if group.support in mine}
        affiliated = {j for mine in right for j in mine} - support
        features = {int(j) for group in groups for j in group.members}
    else:
        features = _indices(items)
        support = features & {truth.support for truth in truths}
        affiliated = features & {int(j) for truth in truths for j in truth.affiliated} - support
    return SuccessHits(len(support), len(affiliated), len(features - support - affiliated))


def right_members(true_groups: Iterable[FeatureGroup], found_groups: Sequence[FeatureGroup]) -> list[set[int]]:
    """Which members of each found group count in :func:`success_hits`: those in their right role and group."""
    right: list[set[int]] = [set() for _ in found_groups]
    for truth in true_groups:
        place, mine = _best_match(truth, found_groups)
        if mine:
            right[place] |= mine
    return right


def _best_match(truth: FeatureGroup, found: Sequence[FeatureGroup]) -> tuple[int, set[int]]:
    """The place of the found group that serves a true one best, and its members that are right."""
    members = {int(j) for j in truth.members}
    parts = (
        (place, {truth.support} & {group.support} | (members - {truth.support}) & {int(j) for j in group.affiliated})
        for place, group in enumerate(found)
        if group.support in members
    )
    # Of equal ones that with the support feature.
    return max(parts, key=lambda part: (len(part[1]), found[part[0]].support == truth.support), default=(-1, set()))


def _indices(items: Iterable[object]) -> set[int]:
    """Whole numbers; a mask or a mixture with groups would be counted as something else, silently."""
    features = set()
    for item in items:
        if isinstance(item, (bool, np.bool_)) or not isinstance(item, (int, np.integer)):
            kind = type(item).__name__
            raise TypeError(f"found must hold groups only, or indices of features only (no mask); got {kind}.")
        features.add(int(item))
    return features


def correct_move_rate(
    ranking_before: ArrayLike, ranking_after: ArrayLike, groups: Iterable[FeatureGroup | ArrayLike]
) -> float:
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


def redundancy_rate(X: MatrixLike, features: ArrayLike | None = None) -> float:
    """Mean absolute Pearson correlation over all pairs of (selected) features.

    ICML 2012, section 4: there the sum over pairs i > j is divided by k(k - 1), which is half of the
    mean that is meant and returned here. Constant features have no correlation and count as 0.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data.
    features : array-like of int, default=None
        The selected features; None for all columns of X.

    Returns
    -------
    rate : float
        Between 0 and 1; 0 for fewer than two features.

    Examples
    --------
    >>> from coterie.metrics import redundancy_rate
    >>> round(redundancy_rate([[0, 0, 1], [1, 2, 0], [2, 4, 1]]), 3)
    0.333
    """
    return _mean_over_pairs(X, features, np.abs)


def squared_redundancy(X: MatrixLike, features: ArrayLike | None = None) -> float:
    r"""Mean squared Pearson correlation over all pairs of (selected) features.

    TKDE 2015, eq. 31: :math:`\mathrm{Red} = \frac{1}{k(k-1)} \sum_{i \ne j} \rho_{ij}^2`. Constant features have no
    correlation and count as 0.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data.
    features : array-like of int, default=None
        The selected features; None for all columns of X.

    Returns
    -------
    redundancy : float
        Between 0 and 1; 0 for fewer than two features.

    See Also
    --------
    redundancy_rate : The mean of the absolute correlation.

    Examples
    --------
    >>> from coterie.metrics import squared_redundancy
    >>> round(squared_redundancy([[0, 0, 1], [1, 2, 0], [2, 4, 1]]), 3)
    0.333
    """
    return _mean_over_pairs(X, features, np.square)


def _mean_over_pairs(X: MatrixLike, features: ArrayLike | None, size: Callable[[np.ndarray], np.ndarray]) -> float:
    """Mean over all pairs of features of the size of their correlation."""
    X = check_array(X, accept_sparse=True, dtype=[np.float64, np.float32], ensure_min_samples=2)
    source = as_source(X if features is None else X[:, np.asarray(features)])
    n_features = source.shape[1]
    if n_features < 2:
        return 0.0
    view = FeatureView.of(source)
    varying = np.flatnonzero(view.moments.norm > 0)
    matrix = size(PearsonCorrelation(view).between(varying, varying))
    pairs = (matrix.sum() - np.trace(matrix)) / 2
    return float(pairs / (n_features * (n_features - 1) / 2))
