"""Relevance to the target less redundancy: FCBF and minimum redundancy, maximum relevance (mRMR)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from coterie._parameters import N_BINS, N_FEATURES, N_FEATURES_OR_AUTO, N_JOBS, Number, OneOf, Rule
from coterie.baselines.base import LabelSelector, TargetSelector, TrainingData
from coterie.correlation.protocol import ROUNDING
from coterie.correlation.uncertainty import SymmetricalUncertainty
from coterie.data.source import FeatureSource
from coterie.data.view import FeatureView
from coterie.estimators.documentation import documented
from coterie.filters.univariate import information_gains
from coterie.groups import FeatureGroup, FeatureGroups
from coterie.order import best_of, in_order, ranked, ranks
from coterie.selection import names_of

# Features compared with a predominant one at a time.
_BLOCK = 1024
# Mean information below this counts as none: rounding of entropies is far below it.
_NO_REDUNDANCY = 1e-10


class BinnedFeatures(SymmetricalUncertainty):
    """Symmetrical uncertainties, and mutual information in nats, on bins of equal width over each feature's range."""

    def information(self, values: np.ndarray) -> np.ndarray:
        """Mutual information of every feature with one discrete variable, given as values 0, 1, … of the samples."""
        codes = np.ascontiguousarray(values, dtype=np.int64)
        return information_gains(self.view, codes, entropy_of(np.bincount(codes)), (self.low, self.high), self.n_bins)

    def information_with(self, feature: int) -> np.ndarray:
        """Mutual information of every feature with one of them."""
        return self.information(self.bins(np.array([feature]))[0])

    def uncertainty(self, values: np.ndarray) -> np.ndarray:
        """Symmetrical uncertainty of every feature with one discrete variable."""
        both = self.entropy + entropy_of(np.bincount(values))
        return np.minimum(2.0 * self.information(values) / np.where(both > 0.0, both, 1.0), 1.0)


def entropy_of(counts: np.ndarray) -> float:
    """Entropy of counts, in nats."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


@documented
class FCBFSelector(LabelSelector):
    r"""Keep predominant features: those that no more relevant feature makes redundant.

    Features are taken by falling symmetrical uncertainty with the labels, :math:`U(f, y)`. A feature that is still there is
    predominant, and it removes every less relevant feature g with :math:`U(f, g) \ge U(g, y)` [1]_.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        Largest number of features to keep, or the fraction of all features. ``"auto"`` keeps every predominant feature; there
        may be fewer of them than asked for.

    threshold : float, default=0.0
        Features need a symmetrical uncertainty with the labels above this.

    n_bins : int, default=10
        Bins of equal width over the range of each feature, at most 255.

    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the predominant features, the most relevant first.

    groups_ : FeatureGroups
        Each predominant feature with the features it removed; ``correlation`` is their symmetrical uncertainty with it.

    scores_ : ndarray of shape (n_features,)
        Symmetrical uncertainty of each feature with the labels.

    %(seen)s

    See Also
    --------
    coterie.GroupDiscoveryClassifier : With ``correlation="su"``, around features that predict together.

    Notes
    -----
    The paper bins by minimum description length; here bins have equal width, as everywhere in Coterie. Of equally relevant
    features the first comes first. Where no feature is above the threshold, the most relevant one is kept.

    References
    ----------
    .. [1] L. Yu, H. Liu, "Feature selection for high-dimensional data: a fast correlation-based filter solution",
       ICML 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie.baselines import FCBFSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = FCBFSelector().fit(X, y)
    >>> selector.support_features_
    array([3, 2])
    >>> selector.groups_
    2 groups, 4 features
      1. 3 ~ 0 (+0.35), 1 (+0.28)
      2. 2 (alone)
    """

    groups_: FeatureGroups

    _allowed: ClassVar[dict[str, Rule]] = {
        "n_features_to_select": N_FEATURES_OR_AUTO,
        "threshold": Number(at_least=0, at_most=1),
        "n_bins": N_BINS,
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        n_features_to_select: int | float | str = "auto",
        *,
        threshold: float = 0.0,
        n_bins: int = 10,
        n_jobs: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.n_bins = n_bins
        self.n_jobs = n_jobs

    def _compute(self, data: TrainingData) -> dict[str, Any]:
        binned = BinnedFeatures(data.view, n_bins=int(self.n_bins))
        scores = binned.uncertainty(data.codes)
        groups = self._groups(binned, scores, data.n_wanted or len(scores))
        return {"support_features_": groups.support, "groups_": groups, "scores_": scores}

    def _groups(self, binned: BinnedFeatures, scores: np.ndarray, n_wanted: int) -> FeatureGroups:
        source = binned.view.source
        order = ranked(source, scores)
        left = order[scores[order] > max(float(self.threshold), ROUNDING)]
        left = left if len(left) else order[:1]
        groups: list[FeatureGroup] = []
        while len(left) and len(groups) < n_wanted:
            best, others = int(left[0]), left[1:]
            shared = _uncertainties(binned, others, best)
            removed = shared >= scores[others] - ROUNDING
            affiliated, shared = others[removed], shared[removed]
            closest = in_order(source, affiliated, shared)
            affiliated = affiliated[closest]
            groups.append(
                FeatureGroup(
                    best,
                    affiliated,
                    shared[closest],
                    names=names_of(source.feature_names, np.append(best, affiliated)),
                    score=float(scores[best]),
                    affiliated_scores=scores[affiliated],
                    round=len(groups) + 1,
                )
            )
            left = others[~removed]
        return FeatureGroups(groups)


def _uncertainties(binned: BinnedFeatures, features: np.ndarray, other: int) -> np.ndarray:
    """Symmetrical uncertainty of some features with one."""
    parts = [
        binned.between(features[first : first + _BLOCK], np.array([other]))[:, 0] for first in range(0, len(features), _BLOCK)
    ]
    return np.concatenate([np.empty(0), *parts])


@documented
class MRMRSelector(LabelSelector):
    r"""Add, one at a time, the feature that tells most about the labels and least about the features already there.

    With S the features so far, the next one maximises

    .. math:: I(f; y) - \frac{1}{|S|}\sum_{s\in S} I(f; s) \quad\text{(MID)}\qquad\text{or}\qquad
        I(f; y) \Big/ \frac{1}{|S|}\sum_{s\in S} I(f; s) \quad\text{(MIQ)}

    [1]_, [2]_. One pass over the features for each feature selected: sums are kept, never a matrix of all pairs.

    Parameters
    ----------
    %(n_kept)s

    scheme : {"mid", "miq"}, default="mid"
        Difference or quotient of relevance and redundancy.

    n_bins : int, default=10
        Bins of equal width over the range of each feature, at most 255. Whole numbers with a range below ``n_bins``
        keep a bin each.

    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    relevance_ : ndarray of shape (n_features,)
        Mutual information of each feature with the labels, in nats.

    %(mrmr_found)s

    %(seen)s

    See Also
    --------
    FCBFSelector : Removes redundant features by symmetrical uncertainty.

    Notes
    -----
    Ties go by the content of the columns. A mean redundancy below 1e-10 counts as 1e-10 in the quotient, so that of
    features without redundancy the most relevant one comes first. Some programs add a constant to the denominator instead.

    References
    ----------
    .. [1] C. Ding, H. Peng, "Minimum redundancy feature selection from microarray gene expression data", Journal of
       Bioinformatics and Computational Biology 3(2), 2005.
    .. [2] H. Peng, F. Long, C. Ding, "Feature selection based on mutual information: criteria of max-dependency,
       max-relevance, and min-redundancy", IEEE TPAMI 27(8), 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie.baselines import MRMRSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> MRMRSelector(n_features_to_select=2).fit(X, y).support_features_
    array([3, 2])
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        "n_features_to_select": N_FEATURES,
        "scheme": OneOf("mid", "miq"),
        "n_bins": N_BINS,
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        n_features_to_select: int | float = 10,
        *,
        scheme: str = "mid",
        n_bins: int = 10,
        n_jobs: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.scheme = scheme
        self.n_bins = n_bins
        self.n_jobs = n_jobs

    def _compute(self, data: TrainingData) -> dict[str, Any]:
        binned = BinnedFeatures(data.view, n_bins=int(self.n_bins))
        relevance = binned.information(data.codes)
        return _mrmr(data, relevance, binned.information_with, self.scheme)


def _mrmr(
    data: TrainingData, relevance: np.ndarray, redundancy_with: Callable[[int], np.ndarray], scheme: str
) -> dict[str, Any]:
    """The fitted attributes of a selector by mRMR."""
    order, scores = greedy_order(data.source, relevance, redundancy_with, data.n_selected, scheme)
    ranking = ranks(order, len(relevance))
    return {"support_features_": order, "scores_": scores, "relevance_": relevance, "ranking_": ranking}


def greedy_order(
    source: FeatureSource,
    relevance: np.ndarray,
    redundancy_with: Callable[[int], np.ndarray],
    n_wanted: int,
    scheme: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Features in order of selection and the value of each; ``redundancy_with(s)`` is that of all features with s."""
    order, scores = np.empty(n_wanted, dtype=np.int64), np.empty(n_wanted)
    left = np.ones(len(relevance), dtype=bool)
    redundancy = np.zeros(len(relevance))
    for place in range(n_wanted):
        value = relevance
        if place:
            redundancy += redundancy_with(int(order[place - 1]))
            mean = redundancy / place
            value = relevance - mean if scheme == "mid" else relevance / np.maximum(mean, _NO_REDUNDANCY)
        features = np.flatnonzero(left)
        best = best_of(source, features, value[features])
        order[place], scores[place], left[best] = best, value[best], False
    return order, scores


@documented
class MRMRRegressionSelector(TargetSelector):
    r"""Add, one at a time, the feature most correlated with a numeric target and least with the features already there.

    The form of mRMR for numbers [1]_, with absolute correlations in the place of mutual information: with S the features so
    far, the next one maximises

    .. math:: |\rho(f, y)| - \frac{1}{|S|}\sum_{s\in S} |\rho(f, s)| \qquad\text{or}\qquad
        |\rho(f, y)| \Big/ \frac{1}{|S|}\sum_{s\in S} |\rho(f, s)|.

    One pass over the features for each feature selected: sums are kept, never a matrix of all pairs.

    Parameters
    ----------
    %(n_kept)s

    scheme : {"mid", "miq"}, default="mid"
        Difference or quotient of relevance and redundancy.

    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    relevance_ : ndarray of shape (n_features,)
        Absolute correlation of each feature with the target.

    %(mrmr_found)s

    %(seen)s

    See Also
    --------
    MRMRSelector : For classes, with mutual information.

    References
    ----------
    .. [1] C. Ding, H. Peng, "Minimum redundancy feature selection from microarray gene expression data", Journal of
       Bioinformatics and Computational Biology 3(2), 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from coterie.baselines import MRMRRegressionSelector
    >>> X, y = load_diabetes(return_X_y=True)
    >>> MRMRRegressionSelector(n_features_to_select=3).fit(X, y).support_features_
    array([2, 8, 3])
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        "n_features_to_select": N_FEATURES,
        "scheme": OneOf("mid", "miq"),
        "n_jobs": N_JOBS,
    }

    def __init__(self, n_features_to_select: int | float = 10, *, scheme: str = "mid", n_jobs: int | None = None) -> None:
        self.n_features_to_select = n_features_to_select
        self.scheme = scheme
        self.n_jobs = n_jobs

    def _compute(self, data: TrainingData) -> dict[str, Any]:
        view = data.view
        relevance = _correlations(view, data.targets - data.targets.mean())

        def redundancy_with(feature: int) -> np.ndarray:
            column = view.columns(np.array([feature]))
            values = np.asarray(column if isinstance(column, np.ndarray) else column.toarray(), dtype=np.float64)[:, 0]
            return _correlations(view, values - view.moments.mean[feature])

        return _mrmr(data, relevance, redundancy_with, self.scheme)


def _correlations(view: FeatureView, centred: np.ndarray) -> np.ndarray:
    """Absolute correlations of all features with a centred vector; 0 for constant ones."""
    norm = float(np.linalg.norm(centred))
    if norm == 0.0:
        return np.zeros(view.n_features)
    products = np.abs(view.products((centred / norm)[:, None])[:, 0])
    scale = view.moments.norm
    return np.minimum(np.divide(products, scale, out=np.zeros(len(products)), where=scale > 0), 1.0)
