"""Scores of models on the samples that a fold holds out, from their outputs alone."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin, is_classifier
from sklearn.metrics import check_scoring

from coterie.inputs.opening import Input
from coterie.inputs.types import ScoringLike
from coterie.solver.loss import LossLike


class HeldOutScores:
    """Scores outputs of held-out samples.

    Nothing but the decision values (or predicted numbers) of these samples is needed, so the features are not cut into
    training and test parts: the fold's held-out samples have weight zero in the fit.

    Parameters
    ----------
    scoring : str, callable or None
        As in scikit-learn; None for the accuracy, or R² of numbers.
    data : Input
        Targets, classes if there are any, and sample weights, which enter the score.
    loss : type of Loss
        The loss, whose link turns outputs into predictions.
    """

    _model: BaseEstimator
    _y: np.ndarray

    def __init__(self, scoring: ScoringLike, data: Input, loss: LossLike) -> None:
        scoring = scoring.item() if isinstance(scoring, np.generic) else scoring  # as messages show it
        if isinstance(scoring, (list, tuple, set, dict)):
            raise ValueError(f"scoring={scoring!r} must be one score: a name of scikit-learn's, or a function.")
        self._weight = data.score_weight
        self._model, self._y = self._judged(data, loss)
        self._scorer = None if scoring is None else check_scoring(self._model, scoring=scoring)

    def _judged(self, data: Input, loss: LossLike) -> tuple[BaseEstimator, np.ndarray]:
        """What scorers take for the model, and the targets as they want them."""
        classes = data.classes
        if classes is None:
            return _Numbers(loss), data.targets
        if classes.dtype.kind == "O" and not all(isinstance(label, str) for label in classes):
            classes = np.arange(len(classes))  # scikit-learn's scores know labels that are numbers or strings
        return _DecisionValues(classes, loss), classes[data.targets]

    def __call__(self, outputs: np.ndarray, held_out: np.ndarray) -> float:
        """Score of the outputs, of shape (n_held_out, n_outputs), of some samples."""
        y = self._y[held_out]
        weight = None if self._weight is None else self._weight[held_out]
        if self._scorer is None:
            return self._default(y, outputs, weight)
        options = {} if weight is None else {"sample_weight": weight}
        return float(self._scorer(self._model, outputs, y, **options))

    def _default(self, y: np.ndarray, outputs: np.ndarray, weight: np.ndarray | None) -> float:
        """The score where none is named.

        A tenth of the time of scikit-learn's, whose checks of every call are the most of it: paths have many sizes.
        """
        score = _accuracy if is_classifier(self._model) else _r_squared
        return score(y, self._model.predict(outputs), weight)


class NormalityScores(HeldOutScores):
    """Scores of one class: the labels are 1 for normal samples and -1 for outliers, the outputs negative for the latter.

    None is ``"balanced_accuracy"``. Other parameters as in :class:`HeldOutScores`.
    """

    def __init__(self, scoring: ScoringLike, data: Input, loss: LossLike) -> None:
        name = "balanced_accuracy" if scoring is None else scoring
        self._quick = {"balanced_accuracy": _balanced_accuracy, "roc_auc": _roc_auc}.get(name if isinstance(name, str) else "")
        super().__init__(scoring if self._quick is None else None, data, loss)

    def _judged(self, data: Input, loss: LossLike) -> tuple[BaseEstimator, np.ndarray]:
        assert data.y is not None
        return _Normality(loss), data.y

    def _default(self, y: np.ndarray, outputs: np.ndarray, weight: np.ndarray | None) -> float:
        assert self._quick is not None
        return self._quick(y, outputs[:, 0], weight)


class _DecisionValues(ClassifierMixin, BaseEstimator):
    """A classifier whose data are decision values already; scorers take it for the model that made them."""

    def __init__(self, classes: np.ndarray, loss: LossLike) -> None:
        self.classes = classes
        self.loss = loss
        self.classes_ = classes

    def fit(self, X: np.ndarray, y: np.ndarray) -> _DecisionValues:
        """There is nothing to learn."""
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0] if X.shape[1] == 1 else X

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.classes_[self.loss.predict(X)])


class _Normality(OutlierMixin, BaseEstimator):
    """An outlier detector whose data are decision values already."""

    def __init__(self, loss: LossLike) -> None:
        self.loss = loss

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Normality:
        """There is nothing to learn."""
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0]

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.loss.predict(X)


class _Numbers(RegressorMixin, BaseEstimator):
    """A regressor whose data are linear outputs already."""

    def __init__(self, loss: LossLike) -> None:
        self.loss = loss

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Numbers:
        """There is nothing to learn."""
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.loss.predict(X)


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


def _balanced_accuracy(y: np.ndarray, values: np.ndarray, weight: np.ndarray | None) -> float:
    """The mean of the share of normal samples (1) at zero or above and that of outliers (-1) below."""
    weight = np.ones(len(y)) if weight is None else weight
    right = weight * (y == np.where(values >= 0, 1, -1))
    sides = [(right[y == label].sum(), weight[y == label].sum()) for label in (1, -1)]
    return float(np.mean([share / mass if mass > 0.0 else np.nan for share, mass in sides]))


def _roc_auc(y: np.ndarray, values: np.ndarray, weight: np.ndarray | None) -> float:
    """The share of pairs of a normal sample (1) and an outlier (-1) whose values are in this order; equal ones are half."""
    weight = np.ones(len(y)) if weight is None else weight
    place = np.unique(values, return_inverse=True)[1]
    normal, outside = (np.bincount(place, weight * (y == label)) for label in (1, -1))
    n_pairs = normal.sum() * outside.sum()
    return float(normal @ (np.cumsum(outside) - outside / 2) / n_pairs) if n_pairs > 0.0 else np.nan
