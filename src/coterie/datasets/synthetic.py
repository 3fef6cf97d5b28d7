"""Small generators: feature groups, support and affiliated features, and blocks of correlated Gaussian features."""

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
    """Support features that decide the class, affiliated copies of them, and noise (TPAMI 2016, section 5.2).

    Support features are independent and standard normal. An affiliated feature is ``r`` times its
    support feature plus independent noise, so that their correlation is ``r``, with \\|r\\| uniform in
    ``correlation`` and a random sign. The class is the sign of the sum of the support features,
    weighted by N(0, 1), plus ``noise``. All other features are independent noise, and the columns
    are shuffled. (The paper's own generator is in an appendix that is not public.)

    Parameters
    ----------
    n_samples, n_features : int, default=2048, 10000
        Shape of X.
    n_support : int, default=12
        Number of support features, and so of groups.
    n_true : int, default=38
        Number of support and affiliated features together.
    max_affiliated : int, default=5
        Most affiliated features of one group.
    correlation : tuple of float, default=(0.75, 0.9)
        Range of \\|correlation\\| between a support feature and its affiliated ones.
    noise : float, default=0.0
        Standard deviation of noise added before the sign is taken.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    data : Bunch
        ``X``, ``y`` (-1 or 1), ``groups`` (the true :class:`FeatureGroups`, the heaviest first) and
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
            f"n_true={n_true} must lie between n_support={n_support} and n_support * (1 + max_affiliated)="
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
    """Many groups of predictive features, some with inner correlated features (ICML 2012, section 4.1).

    Made like :func:`make_support_affiliated`, with 200 groups of which 30 have correlated features
    inside and 170 are single features.

    Parameters
    ----------
    n_samples, n_features : int, default=2048, 10000
        Shape of X.
    n_groups : int, default=200
        Number of groups.
    n_correlated_groups : int, default=30
        Number of groups with affiliated features.
    affiliated : tuple of int, default=(2, 10)
        Least and most affiliated features of such a group.
    correlation : tuple of float, default=(0.75, 0.9)
        Range of \\|correlation\\| between a support feature and its affiliated ones.
    noise : float, default=0.0
        Standard deviation of noise added before the sign is taken.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    data : Bunch
        ``X``, ``y`` (-1 or 1), ``groups`` and ``weights``. Draw twice the samples and split them for
        a test set of the same kind.

    Examples
    --------
    >>> from coterie.datasets import make_feature_groups
    >>> data = make_feature_groups(100, 1000, random_state=0)
    >>> len(data.groups), sum(len(group) > 1 for group in data.groups)
    (200, 30)
    """
    rng = check_random_state(random_state)
    if not 0 <= n_correlated_groups <= n_groups:
        raise ValueError(f"n_correlated_groups={n_correlated_groups} must lie between 0 and n_groups={n_groups}.")
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
    """Independent noise in which groups of ``1 + sizes[g]`` features decide the class."""
    n_true = len(sizes) + int(sizes.sum())
    if n_true > n_features:
        raise ValueError(f"The groups have {n_true} features, but n_features={n_features}; ask for more features.")
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
