"""The synthetic data of the paper on global redundancy minimisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

from coterie.groups import FeatureGroup, FeatureGroups


def make_block_gaussian(
    n_samples: int = 400,
    n_groups: int = 10,
    group_size: int = 10,
    *,
    correlation: float = 0.8,
    separation: float = 1.5,
    shuffle: bool = True,
    random_state: Any = None,
) -> Bunch:
    r"""Two Gaussian clusters of samples, whose features fall into groups of equal correlation (TKDE 2015, section 4.1).

    Within a class, features of one group have correlation ``correlation`` with each other, those of different groups
    none. The means of the two classes differ by ``separation`` times a number for each group, uniform in [0.4, 1.2], with
    a deviation of 0.1 for each of its features. (The paper says that there are two clusters and shows the block
    structure; the size of the difference is chosen so that twenty features give the accuracy that it reports, about
    95 %.)

    Parameters
    ----------
    n_samples : int, default=400
        Number of samples, half of them in each class.
    n_groups, group_size : int, default=10, 10
        Number of groups, and of the features of each.
    correlation : float, default=0.8
        Correlation between features of one group, in [0, 1).
    separation : float, default=1.5
        Scale of the difference between the classes, in standard deviations of a feature.
    shuffle : bool, default=True
        Whether to shuffle the columns.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    data : Bunch
        ``X``, ``y`` (-1 or 1), ``groups`` (the true :class:`FeatureGroups`; the support feature of a group is the one that
        differs most between the classes) and ``shift`` (difference of the classes' means, for each feature).

    Examples
    --------
    >>> from coterie.datasets import make_block_gaussian
    >>> data = make_block_gaussian(random_state=0)
    >>> data.X.shape, len(data.groups), len(data.groups[0])
    ((400, 100), 10, 10)
    """
    if not 0.0 <= correlation < 1.0:
        raise ValueError(f"correlation={correlation} must be at least 0 and below 1.")
    if min(n_samples, 2) < 2 or n_groups < 1 or group_size < 1:
        raise ValueError(
            f"n_samples={n_samples} must be at least 2, n_groups={n_groups} and group_size={group_size} at least 1."
        )
    rng = check_random_state(random_state)
    n_features = n_groups * group_size
    owner = np.repeat(np.arange(n_groups), group_size)
    y = rng.permutation(np.where(np.arange(n_samples) % 2, 1, -1))
    common = rng.standard_normal((n_samples, n_groups))
    own = rng.standard_normal((n_samples, n_features))
    shift = separation * (rng.uniform(0.4, 1.2, n_groups)[owner] + 0.1 * rng.standard_normal(n_features))
    X = np.sqrt(correlation) * common[:, owner] + np.sqrt(1.0 - correlation) * own + np.outer(0.5 * y, shift)
    places = rng.permutation(n_features) if shuffle else np.arange(n_features)
    X, shift, owner = X[:, places], shift[places], owner[places]
    groups = []
    for g in range(n_groups):
        members = np.flatnonzero(owner == g)
        members = members[np.argsort(-np.abs(shift[members]), kind="stable")]
        groups.append(FeatureGroup(int(members[0]), members[1:], np.full(group_size - 1, correlation)))
    groups.sort(key=lambda group: -abs(shift[group.support]))
    return Bunch(X=X, y=y, groups=FeatureGroups(groups), shift=shift)
