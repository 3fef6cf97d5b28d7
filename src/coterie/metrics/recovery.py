"""Recovery of known groups, and redundancy of a selection."""

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
    """Counts returned by :func:`success_hits`. The text form is that of the papers, such as ``9/3/0``.

    Attributes
    ----------
    support, affiliated : int
        Numbers of correct support features and of correct affiliated features.
    wrong : int
        Number of other features.

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
    """Return the share of the true features that are found in their correct role and group (the papers' success hits).

    A true group is compared with its best match among the found groups whose support feature belongs to it. The true support
    feature counts if it is the support feature of the match. A true affiliated feature counts if it is affiliated there.
    Features outside the true groups are ignored.

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
    success_hits : Numbers of correct and wrong features.

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
        raise ValueError("true_groups is empty. Pass at least one true group.")
    return sum(len(_best_match(truth, found)[1]) for truth in truths) / n_true


def success_hits(true_groups: Iterable[FeatureGroup], found: Iterable[FeatureGroup | int]) -> SuccessHits:
    """Count correct support features, correct affiliated features, and wrong features (the papers' 9/3/0).

    A *selection* (indices of features) has no roles: a selected feature is a true support feature, a true affiliated
    feature, or wrong. TPAMI Table 2 reports these numbers for methods that select features.

    In *groups* a feature counts only in its correct role and group. A true support feature must be the support feature of
    its group. A true affiliated feature must be affiliated in the best match of its true group, among the found groups whose
    support feature belongs to the true group. Every other feature in the groups is wrong, including true features in a
    wrong role or group. The share of correct features among all true ones is :func:`group_recovery`, which the paper reports
    for methods that group features.

    Parameters
    ----------
    true_groups : iterable of FeatureGroup
        For instance ``data.groups``.
    found : iterable of FeatureGroup, or of int
        Groups (``model.groups_``) or features (``model.support_features_``).

    Returns
    -------
    hits : SuccessHits
        Named tuple ``(support, affiliated, wrong)``. The sum of the three is the number of found features.

    See Also
    --------
    group_recovery : Share of the true features that are found.

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
        raise ValueError("true_groups is empty. Pass at least one true group.")
    groups = [item for item in items if isinstance(item, FeatureGroup)]
    if len(groups) == len(items):
        correct = correct_members(truths, groups)
        support = {group.support for group, own in zip(groups, correct, strict=True) if group.support in own}
        affiliated = {j for own in correct for j in own} - support
        features = {int(j) for group in groups for j in group.members}
    else:
        features = _indices(items)
        support = features & {truth.support for truth in truths}
        affiliated = features & {int(j) for truth in truths for j in truth.affiliated} - support
    return SuccessHits(len(support), len(affiliated), len(features - support - affiliated))


def correct_members(true_groups: Iterable[FeatureGroup], found_groups: Sequence[FeatureGroup]) -> list[set[int]]:
    """Return the members of each found group that are in their correct role and group (see :func:`success_hits`)."""
    correct: list[set[int]] = [set() for _ in found_groups]
    for truth in true_groups:
        position, own = _best_match(truth, found_groups)
        if own:
            correct[position] |= own
    return correct


def _best_match(truth: FeatureGroup, found: Sequence[FeatureGroup]) -> tuple[int, set[int]]:
    """Return the position of the found group that matches a true group best, and its correct members."""
    members = {int(j) for j in truth.members}
    parts = (
        (position, {truth.support} & {group.support} | (members - {truth.support}) & {int(j) for j in group.affiliated})
        for position, group in enumerate(found)
        if group.support in members
    )
    # Of equal matches, the one with the true support feature is preferred.
    return max(parts, key=lambda part: (len(part[1]), found[part[0]].support == truth.support), default=(-1, set()))


def _indices(items: Iterable[object]) -> set[int]:
    """Return indices as a set. Masks and mixtures with groups are refused, because they would be miscounted."""
    features = set()
    for item in items:
        if isinstance(item, (bool, np.bool_)) or not isinstance(item, (int, np.integer)):
            kind = type(item).__name__
            raise TypeError(f"found must contain only groups or only indices of features (no mask), but contains {kind}.")
        features.add(int(item))
    return features


def correct_move_rate(
    ranking_before: ArrayLike, ranking_after: ArrayLike, groups: Iterable[FeatureGroup | ArrayLike]
) -> float:
    """Return the share of the groups whose members are closer in the ranking than before (TKDE 2015, section 4.6).

    The paper uses pairs of features. A pair makes a correct move if the difference of its ranks decreases. For larger groups
    the difference between the best and the worst rank is used. Groups of one feature are ignored.

    Parameters
    ----------
    ranking_before, ranking_after : array-like of shape (n_features,)
        Rank of each feature without and with the groups, for instance ``ranking_`` of two fitted
        :class:`coterie.GlobalRedundancySelector`.
    groups : iterable of FeatureGroup or of array-like of int
        Groups of features.

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
        raise ValueError(f"The rankings must have the same length, but have shapes {before.shape} and {after.shape}.")
    moves = []
    for number, group in enumerate(groups):
        members = np.asarray(group.members if isinstance(group, FeatureGroup) else group, dtype=np.int64)
        if len(members) and (members.min() < 0 or members.max() >= len(before)):
            raise ValueError(f"groups[{number}] has a feature outside the rankings of {len(before)} features.")
        if len(members) > 1:
            moves.append(np.ptp(after[members]) < np.ptp(before[members]))
    if not moves:
        raise ValueError("groups has no group of two or more features. Pass at least one.")
    return float(np.mean(moves))


def redundancy_rate(X: MatrixLike, features: ArrayLike | None = None) -> float:
    """Return the mean absolute Pearson correlation over all pairs of (selected) features.

    In ICML 2012, section 4, the sum over pairs i > j is divided by k(k - 1), which gives half of the mean. The mean is
    intended there and returned here. Pairs with constant features have no correlation and count as 0.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data.
    features : array-like of int, default=None
        Selected features. None means all columns of X.

    Returns
    -------
    rate : float
        Between 0 and 1. It is 0 for fewer than two features.

    Examples
    --------
    >>> from coterie.metrics import redundancy_rate
    >>> round(redundancy_rate([[0, 0, 1], [1, 2, 0], [2, 4, 1]]), 3)
    0.333
    """
    return _mean_over_pairs(X, features, np.abs)


def squared_redundancy(X: MatrixLike, features: ArrayLike | None = None) -> float:
    r"""Return the mean squared Pearson correlation over all pairs of (selected) features.

    TKDE 2015, eq. 31: :math:`\mathrm{Red} = \frac{1}{k(k-1)} \sum_{i \ne j} \rho_{ij}^2`. Pairs with constant features have
    no correlation and count as 0.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data.
    features : array-like of int, default=None
        Selected features. None means all columns of X.

    Returns
    -------
    redundancy : float
        Between 0 and 1. It is 0 for fewer than two features.

    See Also
    --------
    redundancy_rate : Mean of the absolute correlation.

    Examples
    --------
    >>> from coterie.metrics import squared_redundancy
    >>> round(squared_redundancy([[0, 0, 1], [1, 2, 0], [2, 4, 1]]), 3)
    0.333
    """
    return _mean_over_pairs(X, features, np.square)


def _mean_over_pairs(X: MatrixLike, features: ArrayLike | None, size: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return the mean over all pairs of features of a function (``size``) of their correlation."""
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
