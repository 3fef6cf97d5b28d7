"""Criteria without labels: quality of a clustering of the samples, and reconstruction of all features."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy import linalg
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score
from threadpoolctl import ThreadpoolController

from coterie._numba import one_blas_thread
from coterie._parameters import PENALTY, Integer, Rule, check_parameters
from coterie._warnings import ignored
from coterie.data.source import FeatureSource
from coterie.inputs.folds import Fold
from coterie.inputs.types import FoldsLike
from coterie.probing.criteria.base import Criterion, dense_columns

# Eigenvalues of XX' below this share of the largest are rounding errors.
_ROUNDING = 1e-10


@lru_cache(maxsize=1)
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


class ClusteringCriterion(Criterion):
    """Mean silhouette of the samples, clustered by k-means on the feature subset. Labels are not used.

    The value is between -1 and 1 and measures how much closer a sample is to its own cluster than to the next one.
    Standardise the features unless their scales are meaningful.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    n_init : int, default=3
        Number of starts of k-means. The best result is used.
    random_state : int, default=0
        Seed of k-means. It is fixed, so that each subset has one value.

    See Also
    --------
    ReconstructionCriterion : Variance of all features that the subset explains.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import DependencyAwareSelector
    >>> from coterie.probing import ClusteringCriterion
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 6))
    >>> X[:30, [1, 4]] += 6
    >>> selector = DependencyAwareSelector(ClusteringCriterion(), n_features_to_select=2, min_coverage=20, random_state=0)
    >>> selector.fit(X).get_support(indices=True)
    array([1, 4])
    """

    supervised: ClassVar[bool] = False
    _allowed: ClassVar[Mapping[str, Rule]] = {
        "n_clusters": Integer(2),
        "n_init": Integer(1),
        "random_state": Integer(0, 2**32 - 1),
    }

    def __init__(self, n_clusters: int = 2, *, n_init: int = 3, random_state: int = 0) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.random_state = random_state

    def bind(self, source: FeatureSource, y: np.ndarray | None, cv: FoldsLike) -> Silhouette:
        """Check the parameters against the data and return an evaluator."""
        check_parameters(self)
        if self.n_clusters >= source.shape[0]:
            raise ValueError(f"n_clusters={self.n_clusters} must be less than the {source.shape[0]} samples.")
        return Silhouette(source, int(self.n_clusters), int(self.n_init), int(self.random_state))


class Silhouette:
    """Mean silhouette of k-means, as a function of the features."""

    def __init__(self, source: FeatureSource, n_clusters: int, n_init: int, seed: int) -> None:
        self.source = source
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.seed = seed
        self.folds: list[Fold] | None = None

    def __call__(self, features: np.ndarray) -> float:
        """Return the mean silhouette, or -1 if k-means finds one cluster only or one cluster per sample."""
        X = dense_columns(self.source, features)
        model = KMeans(self.n_clusters, n_init=self.n_init, random_state=self.seed)
        # With several threads the sums of k-means would depend on the order in which the threads finish.
        # The ignored warning reports fewer distinct samples than clusters.
        with ignored(ConvergenceWarning), _threads().limit(limits=1, user_api="openmp"):
            labels = model.fit_predict(X)
            return float(silhouette_score(X, labels)) if 1 < len(np.unique(labels)) < len(X) else -1.0


class ReconstructionCriterion(Criterion):
    r"""Share of the variance of all features explained by ridge regression on the subset. Labels are not used.

    The value is :math:`1 - |X - \hat X|^2 / |X|^2` for centred X, where :math:`\hat X` is the fit of all features on those of
    the subset. Features are weighted by their variance. The best subset is the one that represents all features best.
    Standardise the features unless their scales are meaningful.

    Parameters
    ----------
    alpha : float, default=1e-3
        Penalty on the squared weights, as a share of the subset's mean squared norm.

    See Also
    --------
    ClusteringCriterion : Quality of a clustering of the samples by the subset.

    Notes
    -----
    With :math:`X = U S V'`, the fitted features enter through :math:`U S` only, which has at most as many columns as there
    are samples. It is computed once.

    Examples
    --------
    Two of six features represent the others:

    >>> import numpy as np
    >>> from coterie import DependencyAwareSelector
    >>> from coterie.probing import ReconstructionCriterion
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.standard_normal((2, 80))
    >>> mixed = [first + 0.7 * rng.standard_normal(80), second + 0.7 * rng.standard_normal(80)]
    >>> X = np.column_stack([rng.standard_normal(80), *mixed, first, second, mixed[0] + first])
    >>> selector = DependencyAwareSelector(ReconstructionCriterion(), n_features_to_select=2, random_state=0)
    >>> selector.fit(X).get_support(indices=True)
    array([1, 5])
    """

    prefer: ClassVar[str] = "threads"
    supervised: ClassVar[bool] = False
    _allowed: ClassVar[Mapping[str, Rule]] = {"alpha": PENALTY}

    def __init__(self, alpha: float = 1e-3) -> None:
        self.alpha = alpha

    def bind(self, source: FeatureSource, y: np.ndarray | None, cv: FoldsLike) -> ExplainedVariance:
        """Check the parameters against the data and return an evaluator."""
        check_parameters(self)
        return ExplainedVariance(source, float(self.alpha))


class ExplainedVariance:
    """Share of the variance of all features explained by a subset, as a function of the subset."""

    def __init__(self, source: FeatureSource, alpha: float) -> None:
        self.source = source
        self.alpha = alpha
        self.folds: list[Fold] | None = None
        moments = source.moments()
        self.mean = moments.mean
        # A common scale keeps squares finite and does not change the share.
        self.scale = float(moments.norm.max()) or 1.0
        n_samples = source.shape[0]
        product = np.zeros((n_samples, n_samples))
        with one_blas_thread():  # the same digits in every process
            for start, block in source.blocks(1024):
                dense = np.asarray(block if isinstance(block, np.ndarray) else block.toarray(), dtype=np.float64)
                dense = (dense - self.mean[start : start + dense.shape[1]]) / self.scale
                product += dense @ dense.T
            values, vectors = linalg.eigh(product)
        kept = values > _ROUNDING * max(float(values[-1]), np.finfo(np.float64).tiny)
        self.principal = vectors[:, kept] * np.sqrt(values[kept])
        self.total = float(values[kept].sum())

    def __call__(self, features: np.ndarray) -> float:
        """Return the share, between 0 and 1."""
        X = (dense_columns(self.source, features) - self.mean[features]) / self.scale
        mean_square = float(np.einsum("ij,ij->", X, X)) / X.shape[1]
        if mean_square <= np.finfo(np.float64).tiny or self.total <= 0:
            return 0.0  # features without variance explain nothing
        left, values, _ = linalg.svd(X, full_matrices=False, check_finite=False)
        # Along a singular vector, ridge regression keeps the share s^2 / (s^2 + alpha); the squared rest is unexplained.
        kept = values**2 / (values**2 + self.alpha * mean_square)
        along = np.einsum("ij,ij->i", left.T @ self.principal, left.T @ self.principal)
        return float(along @ (1.0 - (1.0 - kept) ** 2) / self.total)
