"""Scores of models on held-out samples, computed from their outputs."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin, is_classifier
from sklearn.metrics import check_scoring

from coterie.inputs.opening import Input
from coterie.inputs.types import ScoringLike
from coterie.solver.error_measures import ErrorMeasure
from coterie.solver.loss import LossLike, trait
from coterie.solver.losses import score_name
from coterie.validation.metrics import MEASURES, accuracy, balanced_accuracy, explained, roc_auc

# A class is rare if its share of the weight is below both limits; the second one is relative to equal shares.
_RARE, _RARE_OF_EQUAL = 0.2, 0.6


def default_scoring(codes: np.ndarray, n_classes: int, weight: np.ndarray | None = None) -> str:
    """Return the default score of classes: accuracy unless a class is rare.

    A class is rare if it has less than 20 % of the samples and less than 60 % of an equal share. The accuracy of a constant
    prediction is then so high that the accuracy hardly shows whether a model predicts. The score is then the ROC AUC (two
    classes) or the balanced accuracy (several).

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.held_out import default_scoring
    >>> default_scoring(np.repeat([0, 1], [60, 40]), 2), default_scoring(np.repeat([0, 1], [90, 10]), 2)
    ('accuracy', 'roc_auc')
    >>> default_scoring(np.arange(100) % 10, 10), default_scoring(np.repeat([0, 1, 2], [50, 40, 10]), 3)
    ('accuracy', 'balanced_accuracy')
    """
    mass = np.bincount(codes, weight, minlength=n_classes)
    if mass.min() >= min(_RARE, _RARE_OF_EQUAL / n_classes) * mass.sum():
        return "accuracy"
    return "roc_auc" if n_classes == 2 else "balanced_accuracy"


class HeldOutScores:
    """Scorer for outputs of held-out samples.

    Only the decision values (or predicted numbers) of these samples are required, so the features are not split into training
    and test parts: the held-out samples of a fold have weight zero in the fit.

    Parameters
    ----------
    scoring : str, callable or None
        As in scikit-learn. None for :func:`default_scoring` (classification) or the score of the loss
        (regression), which is R² for the squared loss.
    data : Input
        Targets, classes if there are any, and sample weights, which are used in the score.
    loss : type of Loss
        The loss, whose inverse link turns outputs into predictions.

    Attributes
    ----------
    name : str
        Name of the score, as in scikit-learn.
    """

    _model: BaseEstimator
    _y: np.ndarray

    def __init__(self, scoring: ScoringLike, data: Input, loss: LossLike) -> None:
        scoring = scoring.item() if isinstance(scoring, np.generic) else scoring  # for the message
        if isinstance(scoring, (list, tuple, set, dict)):
            raise ValueError(f"scoring={scoring!r} must be a single score: the name of a scikit-learn score or a function.")
        self._weight = data.score_weight
        self._model, self._y = self._scorer_inputs(data, loss)
        self._codes = data.targets if is_classifier(self._model) else self._y
        chosen = self._default_name(data) if scoring is None else scoring
        self.name = chosen if isinstance(chosen, str) else str(getattr(chosen, "__name__", chosen))
        fast = isinstance(chosen, str) and chosen in self._fast_scores()
        self._scorer = None if fast else check_scoring(self._model, scoring=chosen)

    def _scorer_inputs(self, data: Input, loss: LossLike) -> tuple[BaseEstimator, np.ndarray]:
        """Return the model that is passed to scorers, and the targets in their format."""
        classes = data.classes
        if classes is None:
            return _Numbers(loss, data.target_scale), data.in_units(data.targets)
        if classes.dtype.kind == "O" and not all(isinstance(label, str) for label in classes):
            classes = np.arange(len(classes))  # scikit-learn's scores accept only numbers or strings as labels.
        return _DecisionValues(classes, loss), classes[data.targets]

    def _default_name(self, data: Input) -> str:
        """Return the name of the score for ``scoring=None``."""
        if data.classes is None:
            return score_name(self._model.loss)
        return default_scoring(data.targets, len(data.classes), data.score_weight)

    def _fast_scores(self) -> tuple[str, ...]:
        """Return the names of the scores that are computed without scikit-learn's scorers, which take ten times as long."""
        if not is_classifier(self._model):
            return tuple(self._measures)
        return ("accuracy", "balanced_accuracy", *(("roc_auc",) if len(self._model.classes_) == 2 else ()))

    @property
    def _measures(self) -> dict[str, ErrorMeasure]:
        """Scores of numbers by name: those of all losses, and that of the loss of the model."""
        own = trait(self._model.loss, "error_measure")
        return {**MEASURES, own.score: own}

    def __call__(self, outputs: np.ndarray, held_out: np.ndarray) -> float:
        """Return the score of outputs of shape (n_held_out, n_outputs) for the samples ``held_out``."""
        weight = None if self._weight is None else self._weight[held_out]
        if self._scorer is None:
            return self._fast_score(self._codes[held_out], outputs, weight)
        options = {} if weight is None else {"sample_weight": weight}
        return float(self._scorer(self._model, outputs, self._y[held_out], **options))

    def _fast_score(self, y: np.ndarray, outputs: np.ndarray, weight: np.ndarray | None) -> float:
        if self.name == "roc_auc":
            return roc_auc(y == 1, outputs[:, 0], weight)
        if self.name in self._measures:
            return explained(self._measures[self.name], y, self._model.predict(outputs), weight)
        predicted = self._model.loss.predict(outputs)
        return {"accuracy": accuracy, "balanced_accuracy": balanced_accuracy}[self.name](y, predicted, weight)


class NormalityScores(HeldOutScores):
    """Scorer for one-class models: labels are 1 for normal samples and -1 for outliers, which have negative outputs.

    By default, ``scoring`` is ``"balanced_accuracy"``. The other parameters are those of :class:`HeldOutScores`.
    """

    def _scorer_inputs(self, data: Input, loss: LossLike) -> tuple[BaseEstimator, np.ndarray]:
        assert data.y is not None
        return _Normality(loss), data.y

    def _default_name(self, data: Input) -> str:
        return "balanced_accuracy"

    def _fast_scores(self) -> tuple[str, ...]:
        return ("balanced_accuracy", "roc_auc")

    def _fast_score(self, y: np.ndarray, outputs: np.ndarray, weight: np.ndarray | None) -> float:
        values = outputs[:, 0]
        if self.name == "roc_auc":
            return roc_auc(y == 1, values, weight)
        return balanced_accuracy(y, np.where(values >= 0, 1, -1), weight)


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
    """Regressor whose input consists of linear outputs; ``scale`` is that of several targets."""

    def __init__(self, loss: LossLike, scale: np.ndarray | None = None) -> None:
        self.loss = loss
        self.scale = scale

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Numbers:
        """Return the estimator unchanged."""
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        predicted = self.loss.predict(X)
        return predicted if self.scale is None else predicted * self.scale
