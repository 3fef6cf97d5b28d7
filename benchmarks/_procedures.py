"""Whole procedures, including the choice of settings: validated group discovery, other selectors, models on all features.

All procedures, ours included, are tuned by four stratified, shuffled folds of the samples passed to ``fit``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import RFECV, SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV

OURS, SELECTOR, ALL, NONE = "Coterie", "selector", "all features", "none"
SIZES = (5, 10, 20, 50, 100, 200, 500, 1000)
N_FOLDS = 4


def folds(seed: int) -> StratifiedKFold:
    return StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)


def scaled(X: Any, *steps: tuple[str, Any]) -> Pipeline:
    """Return a pipeline that standardises before the steps; sparse data are not centred, to keep them sparse."""
    return Pipeline([("scale", StandardScaler(with_mean=not sparse.issparse(X))), *steps])


def svm(C: float = 1.0) -> LinearSVC:
    return LinearSVC(C=C, random_state=0)


class EliminationCV(ClassifierMixin, BaseEstimator):
    """SVM-RFE that drops a fifth of the *remaining* features per step, with the size chosen by folds.

    ``RFECV(step=0.2)`` drops a fifth of the *original* features per step. Below a fifth of them, it tries a single feature
    only, which is not a fair comparison on wide data. The sizes here are a geometric series down to one.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, X: Any, y: np.ndarray) -> EliminationCV:
        """Score every size on held-out samples, then eliminate down to the best one (the smallest if several are equal)."""
        scores: dict[int, float] = {}
        for train, test in folds(self.seed).split(X, y):
            for left, model in self._path(X[train], y[train], 1):
                scores[len(left)] = scores.get(len(left), 0.0) + model.score(X[test][:, left], y[test])
        size = min(scores, key=lambda n: (-round(scores[n], 9), n))
        *_, (self.features_, self.model_) = self._path(X, y, size)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.model_.predict(X[:, self.features_])

    @staticmethod
    def _path(X: Any, y: np.ndarray, size: int) -> Iterator[tuple[np.ndarray, LinearSVC]]:
        """Yield the remaining features and the model on them, down to ``size`` features."""
        left = np.arange(X.shape[1])
        while True:
            model = svm().fit(X[:, left], y)
            yield left, model
            if len(left) <= size:
                return
            weight = (model.coef_**2).sum(axis=0)
            left = np.sort(left[np.argsort(-weight, kind="stable")[: max(1, min(len(left) - 1, int(0.8 * len(left))))]])


def validated(seed: int, threads: int, **parameters: Any) -> GroupDiscoveryClassifierCV:
    parameters = {"predict_with": ["support", "groups"], **parameters}
    return GroupDiscoveryClassifierCV(60, Cs=8, cv=N_FOLDS, random_state=seed, n_jobs=threads, **parameters)


def l1_logistic(X: Any, seed: int) -> GridSearchCV:
    """Return L1 logistic regression with one C for all classes; LogisticRegressionCV would choose one per class.

    liblinear itself supports two classes only.
    """
    # liblinear penalises the intercept as well. A large scaling makes the penalty negligible.
    model = LogisticRegression(l1_ratio=1.0, solver="liblinear", intercept_scaling=10.0, max_iter=200, random_state=0)
    grid = {"model__estimator__C": np.logspace(-2, 2, 8)}
    return GridSearchCV(scaled(X, ("model", OneVsRestClassifier(model))), grid, cv=folds(seed))


def k_best(X: Any, seed: int, Cs: tuple[float, ...]) -> GridSearchCV:
    sizes = sorted({min(k, X.shape[1]) for k in SIZES})
    pipeline = scaled(X, ("select", SelectKBest(f_classif)), ("model", svm()))
    return GridSearchCV(pipeline, {"select__k": sizes, "model__C": list(Cs)}, cv=folds(seed))


def rfecv(X: Any, seed: int) -> Pipeline:
    return scaled(X, ("select", RFECV(svm(), step=0.2, cv=folds(seed))), ("model", svm()))


# Name: kind, and a function that returns the estimator for features, seed and threads.
Maker = Callable[[Any, int, int], Any]
METHODS: dict[str, tuple[str, Maker]] = {
    "Coterie, validated": (OURS, lambda X, seed, threads: validated(seed, threads)),
    "Coterie, support only": (OURS, lambda X, seed, threads: validated(seed, threads, predict_with="support")),
    "Coterie, thresholds 0.5, 0.7": (OURS, lambda X, seed, threads: validated(seed, threads, thresholds=[0.5, 0.7])),
    "Coterie, plain, C = 1": (
        OURS,
        lambda X, seed, threads: GroupDiscoveryClassifier(min(60, X.shape[1]), C=1.0, n_jobs=threads),
    ),
    "L1 logistic, C": (SELECTOR, lambda X, seed, threads: l1_logistic(X, seed)),
    "RFECV, step 0.2": (SELECTOR, lambda X, seed, threads: rfecv(X, seed)),
    "RFE, a fifth of those left": (SELECTOR, lambda X, seed, threads: scaled(X, ("model", EliminationCV(seed)))),
    "SelectKBest, k": (SELECTOR, lambda X, seed, threads: k_best(X, seed, (1.0,))),
    "SelectKBest, k and C": (SELECTOR, lambda X, seed, threads: k_best(X, seed, (0.001, 0.01, 0.1, 1.0))),
    "linear SVM, C": (
        ALL,
        lambda X, seed, threads: GridSearchCV(
            scaled(X, ("model", svm())), {"model__C": np.logspace(-4, 1, 5)}, cv=folds(seed)
        ),
    ),
    "ridge": (ALL, lambda X, seed, threads: scaled(X, ("model", RidgeClassifierCV(np.logspace(-1, 5, 13))))),
    "random forest": (ALL, lambda X, seed, threads: RandomForestClassifier(300, random_state=seed, n_jobs=threads)),
    "largest class": (NONE, lambda X, seed, threads: DummyClassifier()),
}


def n_used(model: Any, n_features: int) -> int:
    """Return the number of features that a fitted procedure uses to predict."""
    if isinstance(model, GridSearchCV):
        model = model.best_estimator_
    if isinstance(model, Pipeline):
        if "select" in model.named_steps:
            return int(model.named_steps["select"].get_support().sum())
        model = model.named_steps["model"]
    if isinstance(model, EliminationCV):
        return len(model.features_)
    if isinstance(model, OneVsRestClassifier):
        return int(np.any([one.coef_[0] != 0 for one in model.estimators_], axis=0).sum())
    if isinstance(model, GroupDiscoveryClassifier):
        return int(np.any(np.atleast_2d(model.coef_) != 0, axis=0).sum())
    return 0 if isinstance(model, DummyClassifier) else n_features
