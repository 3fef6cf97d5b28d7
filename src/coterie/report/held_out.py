"""Held-out scores of a discovery: the score that is quoted, its interval, other figures, and the curve of validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from coterie.estimators.base import GroupDiscovery, settings_of, task_of
from coterie.estimators.validated import ValidatedDiscovery
from coterie.groups.columns import Content, Record
from coterie.report.diagnostics import diagnostics_of
from coterie.report.survival import risk_curves
from coterie.solver.loss import trait
from coterie.solver.losses import score_name as solver_score_name
from coterie.validation.held_out import default_scoring
from coterie.validation.intervals import LEVEL, fold_interval
from coterie.validation.metrics import MEASURES, balanced_accuracy, roc_auc
from coterie.validation.score_table import standard_error

if TYPE_CHECKING:
    from coterie.report.assembly import OpenedData

# Names of scores in text, by their names in scikit-learn.
SCORE_NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "ROC AUC",
    "brier_score": "Brier score",
    "concordance_index": "concordance index",
    "concordance_index_ipcw": "concordance index (Uno)",
    "mean_absolute_error": "mean absolute error",
    **{name: measure.title for name, measure in MEASURES.items()},
}
# Settings of a validated estimator that are held fixed in its score curve.
_SETTINGS = ("C", "threshold", "standardize", "predict_with")


@dataclass(frozen=True)
class HeldOut:
    """Held-out scores of the whole procedure, including the choice of its settings.

    Attributes
    ----------
    score : str
        Name of the score that is quoted: ``"accuracy"``, ``"ROC AUC"``, ``"R²"``, or the name of a scorer.
    folds : sequence of float
        Score of each fold; empty if validation used another score than the one quoted.
    constant : float
        Score of the baseline prediction, which does not use the features.
    training : float
        Score of the model on its training data.
    baseline : str
        Baseline prediction: ``"constant"`` or ``"covariates alone"``.
    value : float
        The score of all held-out predictions together; by default the mean over the folds.
    interval : tuple of float or None
        Interval of the score on new samples; by default from the variation between folds.
    level : float
        Stated coverage of the interval.
    figures : mapping of str to mapping
        Other scores of the same predictions: ``value``, and ``interval`` and ``constant`` where known.
    confusion : mapping or None
        Number of held-out samples by class (rows) and predicted class: ``classes`` and ``counts``.
    reason : str
        Why this score is quoted, if it is not the accuracy or R².
    curves : mapping or None
        Survival of samples of low, medium and high held-out risk; see :func:`coterie.report.survival.risk_curves`.
    diagnostics : mapping or None
        ROC and calibration curves, and predicted against observed numbers; see
        :func:`coterie.report.diagnostics.diagnostics_of`.

    Examples
    --------
    >>> from coterie.report import HeldOut
    >>> held_out = HeldOut("accuracy", [0.9, 0.8, 0.85], constant=0.5, training=0.97)
    >>> round(held_out.value, 3), round(held_out.interval[0], 3), held_out.predicts
    (0.85, 0.62, True)
    """

    score: str
    folds: Sequence[float]
    constant: float
    training: float
    baseline: str = "constant"
    value: float = float("nan")
    interval: tuple[float, float] | None = None
    level: float = LEVEL
    figures: Mapping[str, Content] = field(default_factory=dict)
    confusion: Content | None = None
    reason: str = ""
    curves: Content | None = None
    diagnostics: Content | None = None

    def __post_init__(self) -> None:
        if np.isnan(self.value):
            object.__setattr__(self, "value", self.mean)
            if self.interval is None:
                object.__setattr__(self, "interval", fold_interval(np.asarray(self.folds, dtype=np.float64), self.level))

    @property
    def mean(self) -> float:
        """Mean over the folds that have a score."""
        known = [value for value in self.folds if not np.isnan(value)]
        return float(np.mean(known)) if known else float("nan")

    @property
    def error(self) -> float:
        """Standard error of the mean over the folds. It is too small for an interval; see :attr:`interval`."""
        return float(standard_error(np.asarray(self.folds))) if len(self.folds) > 1 else float("nan")

    @property
    def predicts(self) -> bool:
        """Whether the interval lies above the baseline."""
        return (self.value if self.interval is None else self.interval[0]) > self.constant

    def to_dict(self) -> Record:
        """Return the entry ``held_out`` of ``result.json``."""
        return {
            "score": self.score,
            "value": self.value,
            "interval": None if self.interval is None else list(self.interval),
            "level": self.level,
            "constant": self.constant,
            "training": self.training,
            "baseline": self.baseline,
            "reason": self.reason,
            "figures": {name: dict(figure) for name, figure in self.figures.items()},
            "confusion": None if self.confusion is None else dict(self.confusion),
            "curves": None if self.curves is None else dict(self.curves),
            "diagnostics": None if self.diagnostics is None else dict(self.diagnostics),
            "mean": self.mean,
            "error": self.error,
            "folds": [float(value) for value in self.folds],
        }

    @classmethod
    def from_dict(cls, content: Content) -> HeldOut:
        """Create held-out scores from the value of :meth:`to_dict`. Results of earlier versions have fewer entries."""
        constant, training, value, *folds = (
            float("nan") if value is None else value
            for value in (content["constant"], content["training"], content.get("value"), *content["folds"])
        )
        interval = content.get("interval")
        return cls(
            content["score"],
            folds,
            constant,
            training,
            content["baseline"],
            value,
            None if interval is None else (_known(interval[0], -np.inf), _known(interval[1], np.inf)),
            content.get("level", LEVEL),
            content.get("figures", {}),
            content.get("confusion"),
            content.get("reason", ""),
            content.get("curves"),
            content.get("diagnostics"),
        )


def _known(value: float | None, missing: float) -> float:
    return missing if value is None else value


def held_out_of(
    model: GroupDiscovery, data: OpenedData, training: float | None = None, baseline: str = "constant"
) -> HeldOut | None:
    """Return the held-out scores of the whole procedure and its baseline, or None without ``nested=True``.

    Parameters
    ----------
    model : fitted estimator
        The model.
    data : OpenedData
        Its training data.
    training : float or None
        Accuracy, R² or concordance index on these data.
    baseline : str
        Name of the prediction that scores are compared with.
    """
    if not isinstance(model, ValidatedDiscovery) or not hasattr(model, "nested_scores_"):
        return None
    folds, used = model.nested_scores_.tolist(), getattr(model, "scoring_", None)
    if used is None or not hasattr(model, "held_out_scores_"):  # a file of an earlier version
        return HeldOut(score_name(model), folds, float(np.nanmean(model.constant_scores_)), float("nan"), baseline)
    name = _decisive(model, data)
    scores, intervals, constant = model.held_out_scores_, model.held_out_intervals_, model.baseline_scores_
    known = _training_score(model, data, name, training)
    return HeldOut(
        SCORE_NAMES.get(name, name),
        folds if name == used else [],
        constant[name],
        float("nan") if known is None else known,
        baseline,
        scores[name],
        _interval(intervals[name]),
        figures={
            score_text(own): {
                "value": value,
                "interval": list(intervals[own]) if own in intervals else None,
                "constant": constant.get(own),
            }
            for own, value in scores.items()
        },
        confusion=_confusion(model),
        reason=_reason(model, data, name),
        curves=risk_curves(model, data),
        diagnostics=diagnostics_of(model, data),
    )


def score_text(name: str) -> str:
    """Return the name of a score in text. That of one of several targets has the name of the target in brackets.

    Examples
    --------
    >>> from coterie.report.held_out import score_text
    >>> score_text("r2"), score_text("r2[height]")
    ('R²', 'R² of height')
    """
    own, bracket, target = name.partition("[")
    shown = SCORE_NAMES.get(own, own)
    return f"{shown} of {target.removesuffix(']')}" if bracket else shown


def _interval(found: tuple[float, float]) -> tuple[float, float] | None:
    return None if np.isnan(found[0]) else (float(found[0]), float(found[1]))


def _decisive(model: GroupDiscovery, data: OpenedData) -> str:
    """Return the name of the score that decides whether a model predicts.

    It is the one that validation uses, except for the accuracy of a rare class: it is high without any prediction.
    """
    used = str(model.scoring_)
    return _default(model, data) if used == "accuracy" and task_of(model) == "classification" else used


def _default(model: GroupDiscovery, data: OpenedData) -> str:
    codes = np.searchsorted(model.classes_, np.asarray(data.y))
    weight = None if data.sample_weight is None else np.asarray(data.sample_weight, dtype=np.float64)
    return default_scoring(codes, len(model.classes_), weight)


def _reason(model: GroupDiscovery, data: OpenedData, name: str) -> str:
    """Return a sentence that says why the score is not the accuracy; empty if the user has chosen it."""
    if task_of(model) != "classification" or name == "accuracy" or name == getattr(model, "scoring", None):
        return ""
    labels, counts = np.unique(np.asarray(data.y), return_counts=True)
    rarest = int(np.argmin(counts))
    share = counts[rarest] / counts.sum()
    shown = SCORE_NAMES.get(name, name)
    return f"The score is the {shown}, not the accuracy, because class {labels[rarest]} has {share:.2g} of the samples."


def _training_score(model: GroupDiscovery, data: OpenedData, name: str, known: float | None) -> float | None:
    """Return the quoted score on the training data; None if it is unknown."""
    task = task_of(model)
    if name == (default_score(model) if task in ("regression", "survival") else "accuracy"):
        return known
    weight = None if data.sample_weight is None else np.asarray(data.sample_weight, dtype=np.float64)
    options = {"covariates": data.covariates} if hasattr(model, "covariate_names_") else {}
    if name == "balanced_accuracy" and task in ("classification", "one-class"):
        return balanced_accuracy(np.asarray(data.y), model.predict(data.X, **options), weight)
    if name == "roc_auc" and task in ("classification", "one-class"):
        positive = np.asarray(data.y) == (1 if task == "one-class" else model.classes_[1])
        return roc_auc(positive, model.decision_function(data.X, **options), weight)
    return None


def _confusion(model: GroupDiscovery) -> Record | None:
    table = getattr(model, "held_out_confusion_", None)
    return None if table is None else {"classes": [str(name) for name in model.classes_], "counts": table.tolist()}


def score_name(model: GroupDiscovery) -> str:
    """Return the name of the score that validation uses."""
    scoring = getattr(model, "scoring_", None) or getattr(model, "scoring", None)
    if scoring is not None:
        return SCORE_NAMES.get(scoring, scoring) if isinstance(scoring, str) else str(scoring)
    if task_of(model) in ("regression", "survival"):
        return default_score_title(model)
    return "balanced accuracy" if task_of(model) == "one-class" else "accuracy"


def default_score(model: GroupDiscovery) -> str:
    """Return the name of the score of a model of numbers or survival times without ``scoring``, which is that of its loss."""
    return solver_score_name(settings_of(model).loss)


def default_score_title(model: GroupDiscovery) -> str:
    """Return the score of :func:`default_score` as text."""
    name, measure = default_score(model), trait(settings_of(model).loss, "error_measure")
    return SCORE_NAMES.get(name, str(measure.title if name == measure.score else name))


def score_curve(model: GroupDiscovery) -> Record | None:
    """Return held-out scores by number of features at the chosen settings, or None without validation."""
    results = getattr(model, "cv_results_", None)
    if results is None or "n_features" not in results or not hasattr(model, "n_features_"):
        return None
    own = np.ones(len(results["n_features"]), dtype=bool)
    for name in _SETTINGS:
        if name in results and hasattr(model, f"{name}_"):
            own &= np.asarray(results[name]) == getattr(model, f"{name}_")
    splits = [name for name in results if name.startswith("split") and name.endswith("_test_score")]
    n_folds = len(splits)
    order = np.argsort(results["n_features"][own], kind="stable")
    folds = np.array([results[name][own][order] for name in splits])
    return {
        "score": score_name(model),
        "sizes": results["n_features"][own][order].tolist(),
        "mean": results["mean_test_score"][own][order].tolist(),
        "error": standard_error(folds).tolist() if n_folds > 1 else [None] * int(own.sum()),
        "folds": n_folds,
        "chosen": int(model.n_features_),
    }
