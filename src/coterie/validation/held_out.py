"""Scores of models on held-out samples, computed from their outputs."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin, is_classifier
from sklearn.metrics import check_scoring

from coterie.inputs.opening import Input
from coterie.inputs.types import ScoringLike
from coterie.solver.loss import LossLike


class HeldOutScores:
    """Scorer for outputs of held-out samples.

    Only the decision values (or predicted numbers) of these samples are required, so the features are not split into training
    and test parts: the held-out samples of a fold have weight zero in the fit.

    Parameters
    ----------
    scoring : str, callable or None
        As in scikit-learn. None for accuracy (classification) or R² (regression).
    data : Input
        Targets, classes if there are any, and sample weights, which are used in the score.
    loss : type of Loss
        The loss, whose inverse link turns outputs into predictions.
    """

    _model: BaseEstimator
    _y: np.ndarray

    def __init__(self, scoring: ScoringLike, data: Input, loss: LossLike) -> None:
        scoring = scoring.item() if isinstance(scoring, np.generic) else scoring  # for the message
        if isinstance(scoring, (list, tuple, set, dict)):
            raise ValueError(f"scoring={scoring!r} must be a single score: the name of a scikit-learn score or a function.")
        self._weight = data.score_weight
        self._model, self._y = self._scorer_inputs(data, loss)
        self._scorer = None if scoring is None else check_scoring(self._model, scoring=scoring)

    def _scorer_inputs(self, data: Input, loss: LossLike) -> tuple[BaseEstimator, np.ndarray]:
        """Return the model that is passed to scorers, and the targets in their format."""
        classes = data.classes
        if classes is None:
            return _Numbers(loss), data.targets
        if classes.dtype.kind == "O" and not all(isinstance(label, str) for label in classes):
            classes = np.arange(len(classes))  # scikit-learn's scores accept only numbers or strings as labels.
        return _DecisionValues(classes, loss), classes[data.targets]

    def __call__(self, outputs: np.ndarray, held_out: np.ndarray) -> float:
        """Return the score of outputs of shape (n_held_out, n_outputs) for the samples ``held_out``."""
        y = self._y[held_out]
        weight = None if self._weight is None else self._weight[held_out]
        if self._scorer is None:
            return self._default(y, outputs, weight)
        options = {} if weight is None else {"sample_weight": weight}
        return float(self._scorer(self._model, outputs, y, **options))

    def _default(self, y: np.ndarray, outputs: np.ndarray, weight: np.ndarray | None) -> float:
        """Return the default score.

        It takes a tenth of the time of scikit-learn's scorer, which spends most of it on checks. Paths have many sizes, so
        this matters.
        """
        score = _accuracy if is_classifier(self._model) else _r_squared
        return score(y, self._model.predict(outputs), weight)


class NormalityScores(HeldOutScores):
    """Scorer for one-class models: labels are 1 for normal samples and -1 for outliers, which have negative outputs.

    By default, ``scoring`` is ``"balanced_accuracy"``. The other parameters are those of :class:`HeldOutScores`.
    """

    def __init__(self, scoring: ScoringLike, data: Input, loss: LossLike) -> None:
        name = "balanced_accuracy" if scoring is None else scoring
        self._fast_score = {"balanced_accuracy": _balanced_accuracy, "roc_auc": _roc_auc}.get(
            name if isinstance(name, str) else ""
        )
        super().__init__(scoring if self._fast_score is None else None, data, loss)

    def _scorer_inputs(self, data: Input, loss: LossLike) -> tuple[BaseEstimator, np.ndarray]:
        assert data.y is not None
        return _Normality(loss), data.y

    def _default(self, y: np.ndarray, outputs: np.ndarray, weight: np.ndarray | None) -> float:
        assert self._fast_score is not None
        return self._fast_score(y, outputs[:, 0], weight)


class _DecisionValues(ClassifierMixin, BaseEstimator):
    """Classifier whose input consists of decision values. It stands in for the model in scorers."""

    def __init__(self, classes: np.ndarray, loss: LossLike) -> None:
        self.classes = classes
        self.loss = loss
        self.classes_ = classes

    def fit(self, X: np.ndarray, y: np.ndarray) -> _DecisionValues:
        """Return the estimator unchanged."""
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0] if X.shape[1] == 1 else X

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.classes_[self.loss.predict(X)])


class _Normality(OutlierMixin, BaseEstimator):
    """Outlier detector whose input consists of decision values."""

    def __init__(self, loss: LossLike) -> None:
        self.loss = loss

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Normality:
        """Return the estimator unchanged."""
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0]

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.loss.predict(X)


class _Numbers(RegressorMixin, BaseEstimator):
    """Regressor whose input consists of linear outputs."""

    def __init__(self, loss: LossLike) -> None:
        self.loss = loss

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Numbers:
        """Return the estimator unchanged."""
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.loss.predict(X)


def _accuracy(y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None) -> float:
    return float(np.average(y == predicted, weights=weight))


def _r_squared(y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None) -> float:
    """Return R² as defined by scikit-learn, including constant targets."""
    if len(y) < 2:
        return np.nan
    weight = np.ones(len(y)) if weight is None else weight
    error = float(weight @ (y - predicted) ** 2)
    variation = float(weight @ (y - np.average(y, weights=weight)) ** 2)
    if variation == 0.0:
        return 1.0 if error == 0.0 else 0.0
    return 1.0 - error / variation


def _balanced_accuracy(y: np.ndarray, values: np.ndarray, weight: np.ndarray | None) -> float:
    """Return the mean of the shares of normal samples (1) with values >= 0 and of outliers (-1) with values < 0."""
    weight = np.ones(len(y)) if weight is None else weight
    right = weight * (y == np.where(values >= 0, 1, -1))
    sides = [(right[y == label].sum(), weight[y == label].sum()) for label in (1, -1)]
    return float(np.mean([share / mass if mass > 0.0 else np.nan for share, mass in sides]))


def _roc_auc(y: np.ndarray, values: np.ndarray, weight: np.ndarray | None) -> float:
    """Return the share of (normal, outlier) pairs in which the normal sample has the larger value. Ties count one half."""
    weight = np.ones(len(y)) if weight is None else weight
    place = np.unique(values, return_inverse=True)[1]
    normal, outside = (np.bincount(place, weight * (y == label)) for label in (1, -1))
    n_pairs = normal.sum() * outside.sum()
    return float(normal @ (np.cumsum(outside) - outside / 2) / n_pairs) if n_pairs > 0.0 else np.nan
