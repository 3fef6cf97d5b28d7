"""One class on outer folds: group discovery with and without validation by known outliers, and one-class SVMs with tuned nu.

Three stratified, shuffled outer folds; every choice is made inside the training part, by five folds. Prints one line per
data set and method.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from coterie import GroupDiscoveryOneClass, GroupDiscoveryOneClassCV

BOTH = ["support", "groups"]
NUS = (0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
Fit = Callable[[np.ndarray, np.ndarray], Any]


def data_sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield name, features and labels: 1 for normal samples, -1 for outliers."""
    digits, digit = load_digits(return_X_y=True)
    for number in (3, 8):
        others = np.random.default_rng(0).permutation(np.flatnonzero(digit != number))[:450]
        drawn = np.r_[np.flatnonzero(digit == number), others]
        yield f"digit {number}", digits[drawn], np.where(digit[drawn] == number, 1, -1)
    cells, benign = load_breast_cancer(return_X_y=True)
    yield "benign", cells, np.where(benign == 1, 1, -1)
    yield "malignant", cells, np.where(benign == 0, 1, -1)
    wines, cultivar = load_wine(return_X_y=True)
    for number in range(3):
        yield f"wine {number}", wines, np.where(cultivar == number, 1, -1)
    yield "rare words", *_rare_words()


def _rare_words() -> tuple[np.ndarray, np.ndarray]:
    """Return 500 binary features, of which 15 are twice as frequent in 600 normal samples as in 200 outliers."""
    rng = np.random.default_rng(0)
    normal = rng.uniform(0.01, 0.1, 500)
    outside = normal.copy()
    normal[:15], outside[:15] = 0.4, 0.2
    values = np.vstack([rng.random((600, 500)) < normal, rng.random((200, 500)) < outside])
    return values.astype(float), np.repeat([1, -1], [600, 200])


def ours(**parameters: Any) -> Fit:
    """Return a fit of validated group discovery."""
    return lambda X, y: GroupDiscoveryOneClassCV(random_state=0, **parameters).fit(X, y)


def one_class_svm(kernel: str, score: str) -> Fit:
    """Return a fit of a one-class SVM with nu and standardisation chosen by the mean score of five folds."""

    def fitted(X: np.ndarray, y: np.ndarray, standardize: bool, nu: float) -> Any:
        scaler = [StandardScaler(with_mean=kernel != "linear")] if standardize else []
        return make_pipeline(*scaler, OneClassSVM(kernel=kernel, nu=nu)).fit(X[y == 1])

    def fit(X: np.ndarray, y: np.ndarray) -> Any:
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
        settings = [(standardize, nu) for standardize in (False, True) for nu in NUS]
        means = [
            np.mean([scores(fitted(X[train], y[train], *setting), X[test], y[test])[score] for train, test in folds])
            for setting in settings
        ]
        return fitted(X, y, *settings[int(np.argmax(means))])

    return fit


def scores(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return scores of the ranking of the samples and of the predicted labels."""
    return {
        "roc_auc": float(roc_auc_score(y, model.decision_function(X))),
        "balanced_accuracy": float(balanced_accuracy_score(y, model.predict(X))),
    }


METHODS: dict[str, Fit] = {
    "Coterie, validated": ours(),
    "Coterie, validated, margin": ours(threshold_rule="margin"),
    "Coterie, validated, support or groups": ours(predict_with=BOTH),
    "Coterie, validated by ROC AUC": ours(scoring="roc_auc"),
    "Coterie, validated by ROC AUC, margin": ours(scoring="roc_auc", threshold_rule="margin"),
    "Coterie, validated by ROC AUC, support or groups": ours(scoring="roc_auc", predict_with=BOTH),
    "Coterie, validated, ten per round, support or groups": ours(predict_with=BOTH, n_features_per_round=10),
    "Coterie, plain": lambda X, y: GroupDiscoveryOneClass(threshold_rule="margin").fit(X[y == 1]),
    "Coterie, plain, 100 features": lambda X, y: GroupDiscoveryOneClass(min(100, X.shape[1]), threshold_rule="margin").fit(
        X[y == 1]
    ),
    **{
        f"one-class SVM, {kernel}, nu by {score}": one_class_svm(kernel, score)
        for kernel in ("linear", "rbf")
        for score in ("balanced_accuracy", "roc_auc")
    },
}


def main() -> None:
    """Run all methods on all data sets."""
    warnings.simplefilter("ignore")
    for name, X, y in data_sets():
        for method, fit in METHODS.items():
            found: list[dict[str, float]] = []
            for train, test in StratifiedKFold(3, shuffle=True, random_state=1).split(X, y):
                began = time.process_time()
                model = fit(X[train], y[train])
                seconds = time.process_time() - began
                used = len(getattr(model, "prediction_features_", X[0]))
                found.append({**scores(model, X[test], y[test]), "features": used, "seconds": seconds})
            line = {key: round(float(np.mean([row[key] for row in found])), 4) for key in found[0]}
            print(json.dumps({"data": name, "method": method, **line}), flush=True)


if __name__ == "__main__":
    main()
