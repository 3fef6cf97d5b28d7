"""Groups with a promise, by us and by others: each takes features and targets and returns sets of features.

Every function can be sent to a fresh process. The others are imported where they are called: they are installed beside
Coterie for this comparison only (``pip install pysusie knockpy hidimstat``).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

Groups = list[np.ndarray]

N_ASKED = 20
LEVEL = 0.1


def as_they_are(groups: Groups) -> Groups:
    """What a fresh process sends back."""
    return groups


def ours_confident(X: Any, y: np.ndarray) -> Groups:
    """Groups at a confidence of 0.9 or more, 25 pairs of half-samples."""
    model, result = _ours(X, y, n_permutations=0)
    return [group.members for group, value in zip(model.groups_, result.confidence, strict=True) if value >= 0.9]


def ours_false_share(X: Any, y: np.ndarray) -> Groups:
    """Groups at an estimated false share of at most 0.1, with five permutations on top."""
    model, result = _ours(X, y, n_permutations=5)
    return [group.members for group, share in zip(model.groups_, result.false_share, strict=True) if share <= LEVEL]


def _ours(X: Any, y: np.ndarray, n_permutations: int) -> Any:
    from coterie import GroupDiscoveryRegressor, group_confidence

    model = GroupDiscoveryRegressor(N_ASKED, standardize=True).fit(X, y)
    return model, group_confidence(model, X, y, n_pairs=25, n_permutations=n_permutations, random_state=0)


def susie(X: Any, y: np.ndarray) -> Groups:
    """SuSiE's 95 % credible sets of a purity of at least 0.5, up to twenty effects."""
    from pysusie import susie as fit

    found = fit(np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64), L=N_ASKED, coverage=0.95)["sets"]["cs"]
    sets = found.values() if isinstance(found, dict) else found or []
    return [np.asarray(members, dtype=np.int64) for members in sets]


def knockpy_groups(X: Any, y: np.ndarray, level: float = LEVEL) -> Groups:
    """Group knockoffs (Gaussian, equicorrelated, lasso) of clusters that correlate at 0.7 on average.

    At a level of 0.1 the filter reports ten groups or more, or none: with about ten planted ones, 0.2 is its fair chance.
    """
    from knockpy import KnockoffFilter

    values = np.asarray(X, dtype=np.float64)
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    owner = _clusters(values)
    method = KnockoffFilter(fstat="lasso", ksampler="gaussian", knockoff_kwargs={"method": "equicorrelated"})
    np.random.seed(0)  # noqa: NPY002 - knockpy draws from the global state
    chosen = method.forward(values, np.asarray(y, dtype=np.float64), groups=owner, fdr=level)
    return [np.flatnonzero(owner == number) for number in np.flatnonzero(chosen) + 1]


def _clusters(values: np.ndarray) -> np.ndarray:
    """Clusters by average linkage of 1 - |r|, cut at 0.3; numbered from 1."""
    from scipy.cluster.hierarchy import fcluster, linkage

    distance = 1.0 - np.abs(values.T @ values) / len(values)
    condensed = np.maximum(distance[np.triu_indices(len(distance), 1)], 0.0)
    del distance
    return fcluster(linkage(condensed, method="average"), 0.3, criterion="distance")


def hidimstat_clusters(X: Any, y: np.ndarray) -> Groups:
    """Clustered inference with the desparsified lasso (CluDL), half as many clusters as features, at most 1,000; FDR 0.1."""
    from hidimstat import CluDL
    from hidimstat.desparsified_lasso import DesparsifiedLasso
    from sklearn.cluster import FeatureAgglomeration

    values = np.asarray(X, dtype=np.float64)
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    clustering = FeatureAgglomeration(n_clusters=min(values.shape[1] // 2, 1000))
    method = CluDL(clustering=clustering, desparsified_lasso=DesparsifiedLasso(), random_state=0)
    method.fit_importance(values, np.asarray(y, dtype=np.float64))
    labels = method.clustering_.labels_
    chosen = benjamini_hochberg(np.asarray(method.desparsified_lasso_.pvalues_).ravel(), LEVEL)
    return [np.flatnonzero(labels == number) for number in chosen]


def benjamini_hochberg(p: np.ndarray, level: float) -> np.ndarray:
    """Positions that are rejected at a false discovery rate, one test a cluster."""
    order = np.argsort(p)
    good = np.flatnonzero(p[order] <= level * np.arange(1, len(p) + 1) / len(p))
    return order[: good[-1] + 1] if len(good) else order[:0]


# In order of how much one would like to know should there be no time for all.
METHODS = {
    "Coterie, confidence >= 0.9": ours_confident,
    "SuSiE, 95 % credible sets": susie,
    "Coterie, false share <= 0.1": ours_false_share,
    "hidimstat, CluDL, FDR 0.1": hidimstat_clusters,
    "knockpy, group knockoffs, FDR 0.1": knockpy_groups,
    "knockpy, group knockoffs, FDR 0.2": partial(knockpy_groups, level=0.2),
}
