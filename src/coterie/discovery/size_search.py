"""How many support features: the score of every size on held-out samples, from one path a fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring

from coterie.discovery.loop import CuttingPlane
from coterie.discovery.prediction import LinearModel, classes_of

# Number of features, and the held-out score with so many.
Path = list[tuple[int, float]]


class HeldOutScores:
    """Scores a model on the samples that a fold holds out.

    Nothing but the decision values of these samples is needed, so the features are not cut into
    training and test parts: the fold's other samples have weight zero in the fit.

    Parameters
    ----------
    scoring : str, callable or None
        As in scikit-learn; None for the accuracy.
    classes : ndarray of shape (n_classes,)
        The classes.
    codes : ndarray of int of shape (n_samples,)
        The number of each sample's class.
    weight : ndarray of shape (n_samples,) or None
        Sample weights, for the score.
    """

    def __init__(self, scoring: Any, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray | None) -> None:
        if classes.dtype.kind == "O" and not all(isinstance(label, str) for label in classes):
            classes = np.arange(len(classes))  # scikit-learn's scores know labels that are numbers or strings
        self._classifier = _DecisionValues(classes)
        if isinstance(scoring, (list, tuple, set, dict)):
            raise ValueError(f"scoring={scoring!r} must be one score: a name of scikit-learn's, or a function.")
        self._scorer = check_scoring(self._classifier, scoring=scoring)
        self._y = classes[codes]
        self._weight = weight

    def __call__(self, loop: CuttingPlane, model: LinearModel, held_out: np.ndarray) -> float:
        """Score of a model of the loop on some samples."""
        outputs = np.asarray(loop.oracle.view.columns(model.features)[held_out] @ model.coef.T) + model.intercept
        options = {} if self._weight is None else {"sample_weight": self._weight[held_out]}
        return float(self._scorer(self._classifier, outputs, self._y[held_out], **options))


class _DecisionValues(ClassifierMixin, BaseEstimator):
    """A classifier whose data are decision values already; scorers take it for the model that made them."""

    def __init__(self, classes: np.ndarray) -> None:
        self.classes = classes
        self.classes_ = classes

    def fit(self, X: np.ndarray, y: np.ndarray) -> _DecisionValues:
        """There is nothing to learn."""
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0] if X.shape[1] == 1 else X

    def predict(self, X: np.ndarray) -> np.ndarray:
        return classes_of(self.classes_, self.decision_function(X))


def merge_paths(paths: Sequence[Path]) -> dict[str, np.ndarray]:
    """Scores of all folds at all sizes that every fold has reached, in scikit-learn's form of ``cv_results_``.

    A fold that has no model of just this size gives its largest smaller one; a fold that ran out of candidates
    keeps its last score.
    """
    first = max(path[0][0] for path in paths)
    sizes = np.array(sorted({size for path in paths for size, _ in path if size >= first}))
    table = np.empty((len(paths), len(sizes)))
    for row, path in zip(table, paths, strict=True):
        reached = np.array([size for size, _ in path])
        row[:] = np.array([value for _, value in path])[np.searchsorted(reached, sizes, side="right") - 1]
    return {
        "n_features": sizes,
        "mean_test_score": table.mean(axis=0),
        "std_test_score": table.std(axis=0),
        **{f"split{fold}_test_score": row for fold, row in enumerate(table)},
    }


def best_size(results: dict[str, np.ndarray]) -> int:
    """Position of the best mean score; of equal ones the smallest number of features."""
    mean = results["mean_test_score"]
    if np.isnan(mean).all():
        raise ValueError("The score is not a number for any number of features; choose another scoring or other folds.")
    return int(np.nanargmax(mean))
