"""Methods that report groups with error control, by Coterie and other packages; each returns sets of features.

Every function can be sent to a fresh process. The other packages are imported inside the functions, because they are only
needed for this comparison (``pip install pysusie knockpy hidimstat``).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

Groups = list[np.ndarray]

N_REQUESTED = 20
LEVEL = 0.1


def return_groups(groups: Groups) -> Groups:
    """Return the groups unchanged (the summary of a run in a fresh process)."""
    return groups


def ours_confident(X: Any, y: np.ndarray) -> Groups:
    """Return groups with a confidence of at least 0.9, from 25 half-sample pairs."""
    model, result = _ours(X, y, n_permutations=0)
    return [group.members for group, value in zip(model.groups_, result.confidence, strict=True) if value >= 0.9]


def ours_false_share(X: Any, y: np.ndarray) -> Groups:
    """Return groups with an estimated false share of at most 0.1, from half-samples and five permutations."""
    model, result = _ours(X, y, n_permutations=5)
    return [group.members for group, share in zip(model.groups_, result.false_share, strict=True) if share <= LEVEL]


def _ours(X: Any, y: np.ndarray, n_permutations: int) -> Any:
    from coterie import GroupDiscoveryRegressor, group_confidence

    model = GroupDiscoveryRegressor(N_REQUESTED, C=1.0, standardize=True).fit(X, y)
    return model, group_confidence(model, X, y, n_pairs=25, n_permutations=n_permutations, random_state=0)


def susie(X: Any, y: np.ndarray) -> Groups:
    """Return SuSiE's 95 % credible sets with a purity of at least 0.5, up to twenty effects."""
    from pysusie import susie as fit

    found = fit(np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64), L=N_REQUESTED, coverage=0.95)["sets"]["cs"]
    sets = found.values() if isinstance(found, dict) else found or []
    return [np.asarray(members, dtype=np.int64) for members in sets]


def knockpy_groups(X: Any, y: np.ndarray, level: float = LEVEL) -> Groups:
    """Return groups by group knockoffs (Gaussian, equicorrelated, lasso) of clusters with a mean correlation of 0.7.

    At a level of 0.1 the filter reports at least ten groups or none. With about ten planted groups, 0.2 is a fairer level.
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
    """Return clusters by average linkage of 1 - |r|, cut at 0.3 and numbered from 1."""
    from scipy.cluster.hierarchy import fcluster, linkage

    distance = 1.0 - np.abs(values.T @ values) / len(values)
    condensed = np.maximum(distance[np.triu_indices(len(distance), 1)], 0.0)
    del distance
    return fcluster(linkage(condensed, method="average"), 0.3, criterion="distance")


def hidimstat_clusters(X: Any, y: np.ndarray) -> Groups:
    """Return groups by clustered inference with the desparsified lasso (CluDL), FDR 0.1.

    The number of clusters is half the number of features, at most 1,000.
    """
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
    """Return the positions of the tests that are rejected at a false discovery rate."""
    order = np.argsort(p)
    good = np.flatnonzero(p[order] <= level * np.arange(1, len(p) + 1) / len(p))
    return order[: good[-1] + 1] if len(good) else order[:0]


# In order of priority, in case a run is stopped before its end.
METHODS = {
    "Coterie, confidence >= 0.9": ours_confident,
    "SuSiE, 95 % credible sets": susie,
    "Coterie, false share <= 0.1": ours_false_share,
    "hidimstat, CluDL, FDR 0.1": hidimstat_clusters,
    "knockpy, group knockoffs, FDR 0.1": knockpy_groups,
    "knockpy, group knockoffs, FDR 0.2": partial(knockpy_groups, level=0.2),
}
