"""Scores of models on the samples that a fold holds out, from their outputs alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring

from coterie.discovery.base import Samples
from coterie.discovery.prediction import classes_of


class HeldOutScores:
    """Scores outputs of held-out samples.

    Nothing but the decision values (or predicted numbers) of these samples is needed, so the features are not cut into
    training and test parts: the fold's held-out samples have weight zero in the fit.

    Parameters
    ----------
    scoring : str, callable or None
        As in scikit-learn; None for the accuracy, or R² of numbers.
    data : Samples
        Targets, classes if there are any, and sample weights, which enter the score.
    """

    def __init__(self, scoring: Any, data: Samples) -> None:
        if isinstance(scoring, (list, tuple, set, dict)):
            raise ValueError(f"scoring={scoring!r} must be one score: a name of scikit-learn's, or a function.")
        classes = data.attributes.get("classes_")
        self._weight = data.weight
        self._y = data.targets
        self._model: BaseEstimator = _Numbers()
        if classes is not None:
            if classes.dtype.kind == "O" and not all(isinstance(label, str) for label in classes):
                classes = np.arange(len(classes))  # scikit-learn's scores know labels that are numbers or strings
            self._model = _DecisionValues(classes)
            self._y = classes[data.targets]
        # A tenth of the time of scikit-learn's, whose checks of every call are the most of it: paths have many sizes.
        self._plain = (_r_squared if classes is None else _accuracy) if scoring is None else None
        self._scorer = check_scoring(self._model, scoring=scoring)

    def __call__(self, outputs: np.ndarray, held_out: np.ndarray) -> float:
        """Score of the outputs, of shape (n_held_out, n_outputs), of some samples."""
        y = self._y[held_out]
        weight = None if self._weight is None else self._weight[held_out]
        if self._plain is not None:
            return self._plain(y, self._model.predict(outputs), weight)
        options = {} if weight is None else {"sample_weight": weight}
        return float(self._scorer(self._model, outputs, y, **options))


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


class _Numbers(RegressorMixin, BaseEstimator):
    """A regressor whose data are the predicted numbers already."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Numbers:
        """There is nothing to learn."""
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0]


def _accuracy(y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None) -> float:
    return float(np.average(y == predicted, weights=weight))


def _r_squared(y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None) -> float:
    """R² as scikit-learn defines it, for constant targets, too."""
    if len(y) < 2:
        return np.nan
    weight = np.ones(len(y)) if weight is None else weight
    error = float(weight @ (y - predicted) ** 2)
    variation = float(weight @ (y - np.average(y, weights=weight)) ** 2)
    if variation == 0.0:
        return 1.0 if error == 0.0 else 0.0
    return 1.0 - error / variation
