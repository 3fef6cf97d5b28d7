"""Generators in memory: feature groups, support and affiliated features, and blocks of correlated Gaussian features."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch, check_random_state

from coterie.groups import FeatureGroup, FeatureGroups
from coterie.inputs.types import RandomStateLike


def make_support_affiliated(
    n_samples: int = 2048,
    n_features: int = 10_000,
    *,
    n_support: int = 12,
    n_true: int = 38,
    max_affiliated: int = 5,
    correlation: tuple[float, float] = (0.75, 0.9),
    noise: float = 0.0,
    random_state: RandomStateLike = None,
) -> Bunch:
    """Generate support features that determine the class, affiliated features and noise (TPAMI 2016, section 5.2).

    Support features are independent and standard normal. An affiliated feature is ``r`` times its support feature plus
    independent noise, so that their correlation is ``r``, with \\|r\\| uniform in ``correlation`` and a random sign. The class
    is the sign of the sum of the support features, weighted by N(0, 1), plus ``noise``. All other features are independent
    noise, and the columns are shuffled. (The generator of the paper is in an appendix that is not public.)

    Parameters
    ----------
    n_samples, n_features : int, default=2048, 10000
        Shape of X.
    n_support : int, default=12
        Number of support features, which is the number of groups.
    n_true : int, default=38
        Total number of support and affiliated features.
    max_affiliated : int, default=5
        Largest number of affiliated features per group.
    correlation : tuple of float, default=(0.75, 0.9)
        Range of \\|correlation\\| between a support feature and its affiliated features.
    noise : float, default=0.0
        Standard deviation of the noise added before taking the sign.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    data : Bunch
        ``X``, ``y`` (-1 or 1), ``groups`` (the true :class:`FeatureGroups`, in decreasing order of absolute weight) and
        ``weights`` (their weights).

    Examples
    --------
    >>> from coterie.datasets import make_support_affiliated
    >>> data = make_support_affiliated(random_state=0)
    >>> data.X.shape, len(data.groups), len(data.groups.members)
    ((2048, 10000), 12, 38)
    """
    rng = check_random_state(random_state)
    if not n_support <= n_true <= n_support * (1 + max_affiliated):
        raise ValueError(
            f"n_true={n_true} must be between n_support={n_support} and n_support * (1 + max_affiliated)="
            f"{n_support * (1 + max_affiliated)}."
        )
    sizes = np.zeros(n_support, dtype=np.int64)
    for _ in range(n_true - n_support):
        sizes[rng.choice(np.flatnonzero(sizes < max_affiliated))] += 1
    return _plant(rng, n_samples, n_features, sizes, correlation, noise)


def make_feature_groups(
    n_samples: int = 2048,
    n_features: int = 10_000,
    *,
    n_groups: int = 200,
    n_correlated_groups: int = 30,
    affiliated: tuple[int, int] = (2, 10),
    correlation: tuple[float, float] = (0.75, 0.9),
    noise: float = 0.0,
    random_state: RandomStateLike = None,
) -> Bunch:
    """Generate many groups of predictive features, some with affiliated features (ICML 2012, section 4.1).

    The model is that of :func:`make_support_affiliated`. By default there are 200 groups, of which 30 have affiliated
    features and 170 are single features.

    Parameters
    ----------
    n_samples, n_features : int, default=2048, 10000
        Shape of X.
    n_groups : int, default=200
        Number of groups.
    n_correlated_groups : int, default=30
        Number of groups with affiliated features.
    affiliated : tuple of int, default=(2, 10)
        Smallest and largest number of affiliated features of such a group.
    correlation : tuple of float, default=(0.75, 0.9)
        Range of \\|correlation\\| between a support feature and its affiliated features.
    noise : float, default=0.0
        Standard deviation of the noise added before taking the sign.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    data : Bunch
        ``X``, ``y`` (-1 or 1), ``groups`` and ``weights``. For a test set from the same distribution, generate twice the
        number of samples and split them.

    Examples
    --------
    >>> from coterie.datasets import make_feature_groups
    >>> data = make_feature_groups(100, 1000, random_state=0)
    >>> len(data.groups), sum(len(group) > 1 for group in data.groups)
    (200, 30)
    """
    rng = check_random_state(random_state)
    if not 0 <= n_correlated_groups <= n_groups:
        raise ValueError(f"n_correlated_groups={n_correlated_groups} must be between 0 and n_groups={n_groups}.")
    sizes = np.zeros(n_groups, dtype=np.int64)
    sizes[:n_correlated_groups] = rng.randint(affiliated[0], affiliated[1] + 1, size=n_correlated_groups)
    return _plant(rng, n_samples, n_features, sizes, correlation, noise)


def _plant(
    rng: np.random.RandomState,
    n_samples: int,
    n_features: int,
    sizes: np.ndarray,
    correlation: tuple[float, float],
    noise: float,
) -> Bunch:
    """Return independent noise with planted groups of ``1 + sizes[g]`` features that determine the class."""
    n_true = len(sizes) + int(sizes.sum())
    if n_true > n_features:
        raise ValueError(f"The groups have {n_true} features, but n_features={n_features}. Increase n_features.")
    X = rng.standard_normal((n_samples, n_features))
    places = rng.permutation(n_features)[:n_true]
    supports, rest = places[: len(sizes)], places[len(sizes) :]
    weights = rng.standard_normal(len(sizes))
    order = np.argsort(-np.abs(weights))
    sizes, weights = sizes[order], weights[order]
    groups = []
    for support, mine in zip(supports, np.split(rest, np.cumsum(sizes)[:-1]), strict=True):
        r = rng.uniform(*correlation, size=len(mine)) * rng.choice([-1.0, 1.0], size=len(mine))
        X[:, mine] = r * X[:, [support]] + np.sqrt(1.0 - r**2) * X[:, mine]
        groups.append(FeatureGroup(int(support), mine, r))
    signal = X[:, supports] @ weights + noise * rng.standard_normal(n_samples)
    y = np.where(signal > 0, 1, -1)
    return Bunch(X=X, y=y, groups=FeatureGroups(groups), weights=weights)


def make_block_gaussian(
    n_samples: int = 400,
    n_groups: int = 10,
    group_size: int = 10,
    *,
    correlation: float = 0.8,
    separation: float = 1.5,
    shuffle: bool = True,
    random_state: RandomStateLike = None,
) -> Bunch:
    r"""Generate two Gaussian classes with groups of equally correlated features (TKDE 2015, section 4.1).

    Within a class, features of the same group have correlation ``correlation``, and features of different groups are
    uncorrelated. The means of the two classes differ by ``separation`` times the sum of a number per group, uniform in
    [0.4, 1.2], and a normal deviation per feature, with standard deviation 0.1. (The paper states that there are two clusters
    and shows the block structure. The size of the difference is set such that twenty features give the accuracy of the paper,
    about 95 %.)

    Parameters
    ----------
    n_samples : int, default=400
        Number of samples, half of them in each class.
    n_groups, group_size : int, default=10, 10
        Number of groups, and number of features per group.
    correlation : float, default=0.8
        Correlation between features of the same group, in [0, 1).
    separation : float, default=1.5
        Scale of the difference between the classes, in standard deviations of a feature.
    shuffle : bool, default=True
        Whether to shuffle the columns.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    data : Bunch
        ``X``, ``y`` (-1 or 1), ``groups`` (the true :class:`FeatureGroups`; the support feature of a group is the one with
        the largest difference between the classes) and ``shift`` (difference of the class means per feature).

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
