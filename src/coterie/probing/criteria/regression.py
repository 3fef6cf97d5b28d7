"""Criteria for a numeric target: how much of its variation a subset of the features predicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor

from coterie._parameters import PENALTY, Rule, Whole, check_parameters
from coterie.data.source import FeatureSource
from coterie.inputs.folds import Fold, read_folds
from coterie.inputs.targets import read_targets
from coterie.probing.criteria.base import Criterion, own_columns
from coterie.probing.criteria.ridge import LeaveOneOut


class RidgeRegressionCriterion(Criterion):
    """Coefficient of determination (R²) of ridge regression, leaving out every sample in turn.

    The same as ``RidgeCriterion(alpha, scoring="r2")``; by the name ``"ridge_regression"`` it can be asked for everywhere.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty on the squared weights. The intercept is free.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from coterie import DependencyAwareSelector
    >>> X, y = load_diabetes(return_X_y=True)
    >>> selector = DependencyAwareSelector("ridge_regression", n_features_to_select=2, n_probes=60, random_state=0)
    >>> selector.fit(100 * X, y).support_features_
    array([2, 8])
    """

    prefer: ClassVar[str] = "threads"
    _allowed: ClassVar[Mapping[str, Rule]] = {"alpha": PENALTY}

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def bind(self, source: FeatureSource, y: np.ndarray, cv: Any) -> LeaveOneOut:
        """Check the parameters against the data and return what evaluates subsets."""
        check_parameters(self)
        return LeaveOneOut(source, float(self.alpha), read_targets(y)[:, None], None)


class KNNRegressionCriterion(Criterion):
    """Coefficient of determination (R²) of the mean of the k nearest neighbours, cross-validated.

    It is ``cross_val_score(KNeighborsRegressor(n_neighbors), X[:, features], y, cv=cv).mean()``.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours that are averaged.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from coterie import DependencyAwareSelector
    >>> X, y = load_diabetes(return_X_y=True)
    >>> selector = DependencyAwareSelector("knn_regression", n_features_to_select=2, n_probes=60, random_state=0)
    >>> sorted(selector.fit(X, y).support_features_.tolist())
    [2, 8]
    """

    _allowed: ClassVar[Mapping[str, Rule]] = {"n_neighbors": Whole(1)}

    def __init__(self, n_neighbors: int = 5) -> None:
        self.n_neighbors = n_neighbors

    def bind(self, source: FeatureSource, y: np.ndarray, cv: Any) -> NeighbourMean:
        """Check the parameters against the data and return what evaluates subsets."""
        check_parameters(self)
        targets = read_targets(y)
        folds = read_folds(cv, targets, classifier=False)
        fewest = min(len(train) for train, _ in folds)
        if self.n_neighbors > fewest:
            raise ValueError(f"n_neighbors={self.n_neighbors} is more than the {fewest} training samples of a fold.")
        return NeighbourMean(source, targets, int(self.n_neighbors), folds)


class NeighbourMean:
    """Cross-validated R² of the nearest neighbours on some features."""

    def __init__(self, source: FeatureSource, targets: np.ndarray, k: int, folds: list[Fold]) -> None:
        self.source = source
        self.targets = targets
        self.k = k
        self.folds: list[Fold] | None = folds

    def __call__(self, features: np.ndarray) -> float:
        """Mean R² over the folds."""
        model = KNeighborsRegressor(self.k)
        return float(cross_val_score(model, own_columns(self.source, features), self.targets, cv=self.folds).mean())
