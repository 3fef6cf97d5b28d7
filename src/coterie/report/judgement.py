"""Held-out scores of a discovery, and the judgement: sentences about what validation and half-samples show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import is_classifier, is_regressor

from coterie.estimators.base import GroupDiscovery
from coterie.estimators.validated import ValidatedDiscovery
from coterie.groups.columns import Content, Record
from coterie.inputs.types import FeaturesLike, TargetsLike
from coterie.validation.score_table import standard_error

# A group counts as found again if its estimated share of false groups is at most _FEW_FALSE and its confidence exceeds _HALF.
# It also counts if its confidence is at least _ALWAYS and no group reaches that confidence with permuted labels; a single
# group cannot have a small share. Without permutations only the confidence counts, which guarantees nothing for features of
# unequal scale.
_FEW_FALSE, _HALF = 0.2, 0.5
_ALWAYS = 0.9
# Groups with a larger share of false groups are described as "about as frequent with permuted labels".
_CHANCE = 0.5
# Number of standard errors by which a score must exceed that of a constant prediction. With few folds, one is not enough.
_ERRORS = 2.0
# Settings of a validated estimator that are held fixed in its score curve.
_SETTINGS = ("C", "threshold", "standardize", "predict_with")


@dataclass(frozen=True)
class HeldOut:
    """Held-out scores of the whole procedure, including the choice of its settings.

    Attributes
    ----------
    score : str
        Name of the score: ``"accuracy"``, ``"R²"``, or the name of a scorer.
    folds : sequence of float
        Score of each fold.
    constant : float
        Mean score of the baseline prediction, which does not use the features.
    training : float
        Score of the model on its training data.
    baseline : str
        Baseline prediction: ``"constant"``, ``"covariates alone"`` or ``"offset alone"``.

    Examples
    --------
    >>> from coterie.report import HeldOut
    >>> held_out = HeldOut("accuracy", [0.9, 0.8, 0.85], constant=0.5, training=0.97)
    >>> round(held_out.mean, 3), round(held_out.error, 3), held_out.predicts
    (0.85, 0.029, True)
    """

    score: str
    folds: Sequence[float]
    constant: float
    training: float
    baseline: str = "constant"

    @property
    def mean(self) -> float:
        """Mean over the folds."""
        return float(np.mean(self.folds))

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return float(standard_error(np.asarray(self.folds))) if len(self.folds) > 1 else float("nan")

    @property
    def predicts(self) -> bool:
        """Whether the mean exceeds the baseline by more than two standard errors."""
        return predicts(self.mean, self.error, self.constant)

    def to_dict(self) -> Record:
        """Return the entry ``held_out`` of ``result.json``."""
        return {
            "score": self.score,
            "mean": self.mean,
            "error": self.error,
            "constant": self.constant,
            "training": self.training,
            "baseline": self.baseline,
            "folds": [float(value) for value in self.folds],
        }

    @classmethod
    def from_dict(cls, content: Content) -> HeldOut:
        """Create held-out scores from the value of :meth:`to_dict`."""
        constant, training, *folds = (
            float("nan") if value is None else value for value in (content["constant"], content["training"], *content["folds"])
        )
        return cls(content["score"], folds, constant, training, content["baseline"])


def predicts(mean: float, error: float | None, constant: float) -> bool:
    """Return True if a mean score exceeds the baseline by more than two standard errors, if these are known."""
    return mean - (0.0 if error is None or np.isnan(error) else _ERRORS * error) > constant


def judgement(held_out: Content | None, confidence: Content | None) -> str:
    """Return one or two sentences about the held-out scores and confidences of a ``result.json``.

    Examples
    --------
    >>> from coterie.report import HeldOut, judgement
    >>> judgement(HeldOut("accuracy", [0.52, 0.48], 0.5, 0.99).to_dict(), None)
    'On held-out samples the groups predict no better than a constant: accuracy 0.5 ± 0.02, constant 0.5 (training 0.99).'
    """
    return " ".join(filter(None, [_of_scores(held_out), of_groups(confidence)]))


def _of_scores(held_out: Content | None) -> str:
    if held_out is None:
        return ""
    baseline = held_out["baseline"]
    training = held_out["training"]  # unknown for a scorer that requires other data
    trained = "" if training is None or np.isnan(training) else f" (training {training:.3g})"
    figures = f"{held_out['mean']:.3g}{_plus_minus(held_out['error'])}, {baseline} {held_out['constant']:.3g}{trained}"
    if predicts(held_out["mean"], held_out["error"], held_out["constant"]):
        return f"Held-out {held_out['score']} {figures}."
    return f"On held-out samples the groups {shortcoming(held_out)}: {held_out['score']} {figures}."


def shortcoming(held_out: Content) -> str:
    """Return the predicate of a sentence about groups that do not predict better than the baseline."""
    baseline = held_out["baseline"]
    alone = "a constant" if baseline == "constant" else f"the {baseline}"
    better = held_out["mean"] > held_out["constant"]
    return f"do not predict clearly better than {alone}" if better else f"predict no better than {alone}"


def score_warning(held_out: Content) -> str:
    """Return the warning that the held-out score is not clearly better than the baseline; "" if it is.

    Examples
    --------
    >>> from coterie.report.judgement import HeldOut, score_warning
    >>> score_warning(HeldOut("accuracy", [0.52, 0.48], 0.5, 0.99).to_dict())
    'Held-out accuracy 0.5 ± 0.02 is not better than a constant prediction (0.5).'
    """
    mean, error, constant = held_out["mean"], held_out["error"], held_out["constant"]
    if predicts(mean, error, constant):
        return ""
    clearly = "clearly " if mean > constant else ""
    reference = "a constant prediction" if held_out["baseline"] == "constant" else f"the {held_out['baseline']}"
    score = f"{held_out['score']} {mean:.3g}{_plus_minus(error)}"
    return f"Held-out {score} is not {clearly}better than {reference} ({constant:.3g})."


def _plus_minus(error: float | None) -> str:
    return "" if error is None or np.isnan(error) else f" ± {error:.2g}"


def of_groups(confidence: Content | None) -> str:
    """Return a sentence about the number of groups that are found again, and about the others."""
    if confidence is None:
        return ""
    values, share, expected = (
        np.array([np.nan if value is None else value for value in confidence[name]], dtype=float)
        for name in ("confidence", "false_share", "expected_false")
    )
    judged = ~np.isnan(values)
    shuffled = confidence["n_permutations"] > 0
    always = values >= _ALWAYS - 1e-9
    sure = judged & (((share <= _FEW_FALSE) & (values > _HALF)) | (always & (expected == 0.0)) if shuffled else always)
    others = judged & ~sure
    n_sure, n_groups = int(sure.sum()), int(judged.sum())
    if not n_groups:
        return ""
    by_chance = bool(shuffled and others.any() and np.nanmedian(share[others]) > _CHANCE)
    rest = "are found about as often with permuted labels" if by_chance else "are less certain"
    if not n_sure:
        if n_groups == 1:
            return "The group is not reliably found again in other samples."
        advice = "They are found about as often with permuted labels." if by_chance else "Inspect them one by one."
        return f"None of the {n_groups:,} groups is reliably found again in other samples. {advice}"
    level = float(values[sure].min())
    which = "The group" if n_groups == 1 else f"{n_sure:,} of {n_groups:,} groups"
    how_often = f"{level:.0%}" if level >= 1.0 else f"at least {level:.0%}"
    found = f"{which} {'is' if n_sure == 1 else 'are'} found again in {how_often} of the half-samples"
    return f"{found}." if not others.any() else f"{found}. The others {rest}."


def task_of(model: GroupDiscovery) -> str:
    """Return the task of a fitted model."""
    return "classification" if is_classifier(model) else "regression" if is_regressor(model) else "one-class"


def held_out_of(
    model: GroupDiscovery, X: FeaturesLike, y: TargetsLike, training: float | None, baseline: str = "constant"
) -> HeldOut | None:
    """Return the held-out scores of the whole procedure and its baseline, or None without ``nested=True``."""
    if not isinstance(model, ValidatedDiscovery) or not hasattr(model, "nested_scores_"):
        return None
    name = score_name(model)
    if name == "balanced accuracy":
        from sklearn.metrics import balanced_accuracy_score

        training = float(balanced_accuracy_score(y, model.predict(X)))
    elif model.scoring is not None:
        training = None
    known = float("nan") if training is None else training
    return HeldOut(name, model.nested_scores_.tolist(), float(model.constant_scores_.mean()), known, baseline)


def score_name(model: GroupDiscovery) -> str:
    """Return the name of a model's score."""
    scoring = getattr(model, "scoring", None)
    task = task_of(model)
    if task == "one-class" and scoring in (None, "balanced_accuracy"):
        return "balanced accuracy"
    if scoring is not None:
        return str(scoring)
    return "R²" if task == "regression" else "accuracy"


def score_curve(model: GroupDiscovery) -> Record | None:
    """Return held-out scores by number of features at the chosen settings, or None without validation."""
    results = getattr(model, "cv_results_", None)
    if results is None or "n_features" not in results or not hasattr(model, "n_features_"):
        return None
    own = np.ones(len(results["n_features"]), dtype=bool)
    for name in _SETTINGS:
        if name in results and hasattr(model, f"{name}_"):
            own &= np.asarray(results[name]) == getattr(model, f"{name}_")
    n_folds = sum(name.startswith("split") for name in results)
    order = np.argsort(results["n_features"][own], kind="stable")
    folds = np.array([results[name][own][order] for name in results if name.startswith("split")])
    return {
        "score": score_name(model),
        "sizes": results["n_features"][own][order].tolist(),
        "mean": results["mean_test_score"][own][order].tolist(),
        "error": standard_error(folds).tolist() if n_folds > 1 else [None] * int(own.sum()),
        "folds": n_folds,
        "chosen": int(model.n_features_),
    }
