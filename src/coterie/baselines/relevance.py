"""Selectors by relevance and redundancy: FCBF and minimum redundancy, maximum relevance (mRMR)."""

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

# Number of features per block in the comparison with a predominant feature.
_BLOCK = 1024
# Lower limit of the mean redundancy. Rounding errors of entropies are far below it.
_MIN_REDUNDANCY = 1e-10


class BinnedFeatures(SymmetricalUncertainty):
    """Symmetrical uncertainties and mutual information (in nats) on bins of equal width over each feature's range."""

    def information(self, values: np.ndarray) -> np.ndarray:
        """Return the mutual information of every feature with a discrete variable, given as values 0, 1, … per sample."""
        codes = np.ascontiguousarray(values, dtype=np.int64)
        return information_gains(self.view, codes, entropy_of(np.bincount(codes)), (self.low, self.high), self.n_bins)

    def information_with(self, feature: int) -> np.ndarray:
        """Return the mutual information of every feature with one feature."""
        return self.information(self.bins(np.array([feature]))[0])

    def uncertainty(self, values: np.ndarray) -> np.ndarray:
        """Return the symmetrical uncertainty of every feature with a discrete variable."""
        both = self.entropy + entropy_of(np.bincount(values))
        return np.minimum(2.0 * self.information(values) / np.where(both > 0.0, both, 1.0), 1.0)


def entropy_of(counts: np.ndarray) -> float:
    """Return the entropy of counts in nats."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


@documented
class FCBFSelector(LabelSelector):
    r"""Select predominant features: those that no more relevant feature makes redundant.

    Features are processed in decreasing order of their symmetrical uncertainty with the labels, :math:`U(f, y)`. A feature
    that has not been removed is predominant. It removes every less relevant feature g with :math:`U(f, g) \ge U(g, y)` [1]_.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        Largest number of features to select, or the fraction of all features. ``"auto"`` selects all predominant features.
        There may be fewer predominant features than requested.

    threshold : float, default=0.0
        Features must have a symmetrical uncertainty with the labels above this value.

    n_bins : int, default=10
        Number of bins of equal width over the range of each feature, at most 255.

    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected predominant features, in decreasing order of relevance.

    groups_ : FeatureGroups
        Each predominant feature with the features that it removed. ``correlation`` is their symmetrical uncertainty with it.

    scores_ : ndarray of shape (n_features,)
        Symmetrical uncertainty of each feature with the labels.

    %(seen)s

    See Also
    --------
    coterie.GroupDiscoveryClassifier : With ``correlation="su"``, groups around the features of a joint predictive model.

    Notes
    -----
    The paper uses bins by minimum description length. Here bins have equal width, as everywhere in Coterie. Ties of relevance
    are broken by the content of the columns. If no feature is above the threshold, the most relevant one is selected.

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
    """Return the symmetrical uncertainty of features with one feature."""
    parts = [
        binned.between(features[first : first + _BLOCK], np.array([other]))[:, 0] for first in range(0, len(features), _BLOCK)
    ]
    return np.concatenate([np.empty(0), *parts])


@documented
class MRMRSelector(LabelSelector):
    r"""Add features one at a time by maximum relevance to the labels and minimum redundancy with the selected features.

    With S the features selected so far, the next one maximises

    .. math:: I(f; y) - \frac{1}{|S|}\sum_{s\in S} I(f; s) \quad\text{(MID)}\qquad\text{or}\qquad
        I(f; y) \Big/ \frac{1}{|S|}\sum_{s\in S} I(f; s) \quad\text{(MIQ)}

    [1]_, [2]_. The method makes one pass over the features per selected feature. It stores sums, never the matrix of all
    pairs.

    Parameters
    ----------
    %(n_kept)s

    scheme : {"mid", "miq"}, default="mid"
        Difference or quotient of relevance and redundancy.

    n_bins : int, default=10
        Number of bins of equal width over the range of each feature, at most 255. Integers with a range below ``n_bins`` have
        one bin per value.

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
    Ties are broken by the content of the columns. A mean redundancy below 1e-10 is replaced by 1e-10 in the quotient, so
    that features without redundancy are ordered by relevance. Some implementations add a constant to the denominator
    instead.

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
    """Return the fitted attributes of an mRMR selector."""
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
    """Return the features in order of selection and their values.

    ``redundancy_with(s)`` returns the redundancy of all features with s.
    """
    order, scores = np.empty(n_wanted, dtype=np.int64), np.empty(n_wanted)
    left = np.ones(len(relevance), dtype=bool)
    redundancy = np.zeros(len(relevance))
    for place in range(n_wanted):
        value = relevance
        if place:
            redundancy += redundancy_with(int(order[place - 1]))
            mean = redundancy / place
            value = relevance - mean if scheme == "mid" else relevance / np.maximum(mean, _MIN_REDUNDANCY)
        features = np.flatnonzero(left)
        best = best_of(source, features, value[features])
        order[place], scores[place], left[best] = best, value[best], False
    return order, scores


@documented
class MRMRRegressionSelector(TargetSelector):
    r"""Add features one at a time by high correlation with a numeric target and low correlation with selected features.

    This is mRMR for numeric targets [1]_, with absolute correlations instead of mutual information. With S the features
    selected so far, the next one maximises

    .. math:: |\rho(f, y)| - \frac{1}{|S|}\sum_{s\in S} |\rho(f, s)| \qquad\text{or}\qquad
        |\rho(f, y)| \Big/ \frac{1}{|S|}\sum_{s\in S} |\rho(f, s)|.

    The method makes one pass over the features per selected feature. It stores sums, never the matrix of all pairs.

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
    MRMRSelector : mRMR for classes, with mutual information.

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
    """Return the absolute correlations of all features with a centred vector; 0 for constant features."""
    norm = float(np.linalg.norm(centred))
    if norm == 0.0:
        return np.zeros(view.n_features)
    products = np.abs(view.products((centred / norm)[:, None])[:, 0])
    scale = view.moments.norm
    return np.minimum(np.divide(products, scale, out=np.zeros(len(products)), where=scale > 0), 1.0)
