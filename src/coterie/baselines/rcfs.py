"""Redundancy-constrained class separability (RCFS)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from coterie._parameters import N_FEATURES, N_JOBS, Boolean, Integer, Number, OneOf, Rule
from coterie.baselines.base import LabelSelector, TrainingData
from coterie.baselines.graph import components, correlated_pairs
from coterie.correlation.pearson import PearsonCorrelation
from coterie.correlation.protocol import ROUNDING
from coterie.data.source import FeatureSource
from coterie.estimators.documentation import documented
from coterie.order import ranked

# Dinkelbach's ratio increases strictly and converges in a few steps. This limit is never reached.
_MAX_STEPS = 100


@documented
class RCFSSelector(LabelSelector):
    r"""Select features that separate the classes best, with a limit per cluster of correlated features.

    Features are clustered by the distance :math:`1 - |\rho|`. Then

    .. math:: \max_{\delta\in\{0,1\}^m} \frac{\sum_j \delta_j b_j}{\sum_j \delta_j t_j} \quad\text{subject to}\quad
        \sum_j \delta_j = k, \quad \sum_{j\in c}\delta_j \le q \text{ for every cluster } c,

    with :math:`b_j` and :math:`t_j` the between-class and total scatter of feature j, is solved to its global optimum by
    Dinkelbach's algorithm. The constraints are totally unimodular, so that each step is a sort [1]_.

    Parameters
    ----------
    %(n_kept)s

    threshold : float, default=0.7
        Clusters are cut at the distance 1 - threshold.

    linkage : {"complete", "average", "single"}, default="complete"
        Distance between clusters. With ``"complete"``, the absolute correlation of all pairs in a cluster is at least the
        threshold.

    n_per_cluster : int or "auto", default="auto"
        Largest number of features per cluster. ``"auto"`` is the smallest number that gives enough features.

    standardize : bool, default=False
        Whether to scale features to equal total scatter. Otherwise features with a large variance have more weight.

    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, in decreasing order of their contribution to the criterion.

    scores_ : ndarray of shape (n_features,)
        Separability :math:`b_j / t_j` of each single feature; 0 for constant features.

    separability_ : float
        Value of the criterion for the selected features.

    clusters_ : ndarray of shape (n_features,)
        Number of the cluster of each feature.

    n_iter_ : int
        Number of steps of Dinkelbach's algorithm.

    %(seen)s

    See Also
    --------
    coterie.GroupDiscoveryClassifier : Groups of correlated features around the features of a joint predictive model.

    Notes
    -----
    A merge at a distance of at most 1 - threshold requires a pair of features with at most this distance. All clusters are
    therefore within connected components of the graph of correlated pairs. The pairs are found in blocks, and distance
    matrices are computed for components only.

    The total scatter of a constant feature is 0. Constant features are selected last, if there are not enough others.

    References
    ----------
    .. [1] L. Zhou, L. Wang, C. Shen, "Feature selection with redundancy-constrained class separability", IEEE
       Transactions on Neural Networks 21(5), 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie.baselines import RCFSSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = RCFSSelector(2).fit(X, y)
    >>> selector.clusters_
    array([0, 1, 0, 0])
    >>> selector.support_features_
    array([2, 1])
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        "n_features_to_select": N_FEATURES,
        "threshold": Number(at_most=1),
        "linkage": OneOf("complete", "average", "single"),
        "n_per_cluster": Integer(1) | OneOf("auto"),
        "standardize": Boolean(),
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        n_features_to_select: int | float = 10,
        *,
        threshold: float = 0.7,
        linkage: str = "complete",
        n_per_cluster: int | str = "auto",
        standardize: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.linkage = linkage
        self.n_per_cluster = n_per_cluster
        self.standardize = standardize
        self.n_jobs = n_jobs

    def _compute(self, data: TrainingData) -> dict[str, Any]:
        measure = PearsonCorrelation(data.view)
        clusters = cluster_features(measure, float(self.threshold), self.linkage)
        between, total = scatters(data)
        scores = np.divide(between, total, out=np.zeros(len(total)), where=total > 0.0)
        if self.standardize:
            between, total = scores, np.where(total > 0.0, 1.0, 0.0)
        limit = self._limit(clusters, data.n_selected)
        source = data.view.source
        chosen, ratio, n_steps = maximise_ratio(source, between, total, clusters, limit, data.n_selected)
        return {
            "support_features_": chosen,
            "scores_": scores,
            "separability_": ratio,
            "clusters_": clusters,
            "n_iter_": n_steps,
        }

    def _limit(self, clusters: np.ndarray, n_wanted: int) -> int:
        """Return the largest number of features per cluster."""
        sizes = np.bincount(clusters)
        if isinstance(self.n_per_cluster, str):
            return next(q for q in range(1, n_wanted + 1) if np.minimum(sizes, q).sum() >= n_wanted)
        n_available = int(np.minimum(sizes, self.n_per_cluster).sum())
        if n_available < n_wanted:
            raise ValueError(
                f"n_features_to_select={n_wanted}, but only {n_available} features are available from {len(sizes)} clusters "
                f"with n_per_cluster={self.n_per_cluster}. Increase n_per_cluster or threshold, or use n_per_cluster='auto'."
            )
        return int(self.n_per_cluster)


def cluster_features(measure: PearsonCorrelation, threshold: float, method: str) -> np.ndarray:
    """Return the cluster of each feature by hierarchical clustering with the distance 1 - \\|correlation\\|.

    Clusters are numbered in the order of their first features.
    """
    graph = correlated_pairs(measure, threshold)
    labels = components(len(measure.moments.norm), graph.first, graph.second)
    if method != "single":
        order = np.argsort(labels, kind="stable")
        n_labels = labels.max() + 1
        for members in np.split(order, np.cumsum(np.bincount(labels))[:-1]):
            if len(members) > 2:
                distance = np.clip(1.0 - np.abs(measure.within(members)), 0.0, 1.0)
                np.fill_diagonal(distance, 0.0)
                merges = linkage(squareform(distance, checks=False), method)
                labels[members] = n_labels + fcluster(merges, 1.0 - threshold + ROUNDING, "distance")
                n_labels = labels.max() + 1
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def scatters(data: TrainingData) -> tuple[np.ndarray, np.ndarray]:
    """Return the between-class and total scatter of every feature, computed in one pass."""
    counts = np.bincount(data.codes)
    members = (data.codes[:, None] == np.arange(len(counts))) / np.sqrt(counts)
    shifts = data.view.products(members)
    total = data.view.moments.norm**2
    return np.where(total > 0.0, (shifts**2).sum(axis=1), 0.0), total


def maximise_ratio(
    source: FeatureSource, between: np.ndarray, total: np.ndarray, clusters: np.ndarray, limit: int, n_wanted: int
) -> tuple[np.ndarray, float, int]:
    """Maximise the criterion by Dinkelbach's algorithm.

    Return the features in decreasing order of contribution, the value of the criterion, and the number of steps.
    """
    ratio = 0.0
    for n_steps in range(1, _MAX_STEPS + 1):  # noqa: B007 (it is returned)
        value = between - ratio * total
        value = np.where(total > 0.0, value, -np.inf)
        chosen = _best_under_limit(ranked(source, value), clusters, limit, n_wanted)
        all_scatter = total[chosen].sum()
        better = between[chosen].sum() / all_scatter if all_scatter > 0.0 else 0.0
        if better <= ratio * (1.0 + 1e-14):
            break
        ratio = better
    return chosen, float(ratio), n_steps


def _best_under_limit(order: np.ndarray, clusters: np.ndarray, limit: int, n_wanted: int) -> np.ndarray:
    """Return the first features in order, at most ``limit`` per cluster. Greedy is optimal (a partition matroid)."""
    mine = clusters[order]
    grouped = np.argsort(mine, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(mine))])[:-1]
    place = np.empty(len(order), dtype=np.int64)
    place[grouped] = np.arange(len(order)) - starts[mine[grouped]]
    return order[place < limit][:n_wanted]
