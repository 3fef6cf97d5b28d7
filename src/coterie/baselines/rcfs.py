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

# Dinkelbach's ratio grows strictly and ends after a few steps; more than this never happens.
_MAX_STEPS = 100


@documented
class RCFSSelector(LabelSelector):
    r"""The features that separate the classes best, with a limit on how many may come from a cluster of correlated ones.

    Features are clustered by the distance :math:`1 - |\rho|`. Then

    .. math:: \max_{\delta\in\{0,1\}^m} \frac{\sum_j \delta_j b_j}{\sum_j \delta_j t_j} \quad\text{subject to}\quad
        \sum_j \delta_j = k, \quad \sum_{j\in c}\delta_j \le q \text{ for every cluster } c,

    with :math:`b_j` and :math:`t_j` the between-class and total scatter of feature j, is solved to its global optimum by
    Dinkelbach's algorithm: the constraints are totally unimodular, so that each step is a sort [1]_.

    Parameters
    ----------
    %(n_kept)s

    threshold : float, default=0.7
        Clusters are cut at the distance 1 - threshold.

    linkage : {"complete", "average", "single"}, default="complete"
        Distance between clusters. With ``"complete"`` all features of a cluster are correlated to at least the threshold.

    n_per_cluster : int or "auto", default="auto"
        Most features from one cluster; ``"auto"`` is the smallest number with which there are enough features.

    standardize : bool, default=False
        Scale features to equal total scatter first. Without it features of large variance count for more.

    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, the one that adds most to the criterion first.

    scores_ : ndarray of shape (n_features,)
        Separability :math:`b_j / t_j` of each feature alone; 0 for constant ones.

    separability_ : float
        The criterion's value of the selected features.

    clusters_ : ndarray of shape (n_features,)
        Number of the cluster of each feature.

    n_iter_ : int
        Steps of Dinkelbach's algorithm.

    %(seen)s

    See Also
    --------
    coterie.GroupDiscoveryClassifier : Correlated groups around features that predict together.

    Notes
    -----
    A merge at a distance of at most 1 - threshold needs a pair of features that close, so all clusters lie within connected
    components of the graph of strongly correlated pairs. The pairs are found in blocks, and only components have a matrix
    of distances.

    The total scatter of a constant feature is 0; such a feature is selected last, and only where the others are too few.

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
        """Most features of one cluster."""
        sizes = np.bincount(clusters)
        if isinstance(self.n_per_cluster, str):
            return next(q for q in range(1, n_wanted + 1) if np.minimum(sizes, q).sum() >= n_wanted)
        room = int(np.minimum(sizes, self.n_per_cluster).sum())
        if room < n_wanted:
            raise ValueError(
                f"n_features_to_select={n_wanted}, but {len(sizes)} clusters with at most {self.n_per_cluster} "
                f"feature(s) each hold {room}. Raise n_per_cluster or threshold, or use n_per_cluster='auto'."
            )
        return int(self.n_per_cluster)


def cluster_features(measure: PearsonCorrelation, threshold: float, method: str) -> np.ndarray:
    """Number of each feature's cluster, in order of their first features; hierarchical clustering by 1 - \\|correlation\\|."""
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
    """Between-class and total scatter of every feature, in one pass."""
    counts = np.bincount(data.codes)
    members = (data.codes[:, None] == np.arange(len(counts))) / np.sqrt(counts)
    shifts = data.view.products(members)
    total = data.view.moments.norm**2
    return np.where(total > 0.0, (shifts**2).sum(axis=1), 0.0), total


def maximise_ratio(
    source: FeatureSource, between: np.ndarray, total: np.ndarray, clusters: np.ndarray, limit: int, n_wanted: int
) -> tuple[np.ndarray, float, int]:
    """Dinkelbach's algorithm: the features by falling share in the criterion, its value, and the steps taken."""
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
    """The first features in order, at most ``limit`` of each cluster: greedy is optimal (a partition matroid)."""
    mine = clusters[order]
    grouped = np.argsort(mine, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(mine))])[:-1]
    place = np.empty(len(order), dtype=np.int64)
    place[grouped] = np.arange(len(order)) - starts[mine[grouped]]
    return order[place < limit][:n_wanted]
