"""What validation has found out about a model: held-out scores, and the score against the number of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from coterie.report.judgement import HeldOut

_SETTINGS = ("C", "threshold", "standardize", "predict_with")


def task_of(model: Any) -> str:
    """What a fitted model is for."""
    return "classification" if is_classifier(model) else "regression" if is_regressor(model) else "one-class"


def held_out_of(model: Any, source: Any, y: Any, training: float | None, baseline: str = "constant") -> HeldOut | None:
    """The scores of the whole procedure, if they were measured (``nested=True``), beside a baseline."""
    if not hasattr(model, "nested_scores_"):
        return None
    name = score_name(model)
    if name == "balanced accuracy":
        from sklearn.metrics import balanced_accuracy_score

        training = float(balanced_accuracy_score(y, model.predict(source)))
    elif model.scoring is not None:
        training = None
    known = float("nan") if training is None else training
    return HeldOut(name, model.nested_scores_.tolist(), float(model.constant_scores_.mean()), known, baseline)


def score_name(model: Any) -> str:
    """What the scores of a model are called."""
    scoring = getattr(model, "scoring", None)
    task = task_of(model)
    if task == "one-class" and scoring in (None, "balanced_accuracy"):
        return "balanced accuracy"
    if scoring is not None:
        return str(scoring)
    return "R²" if task == "regression" else "accuracy"


def score_curve(model: Any) -> dict[str, Any] | None:
    """Held-out scores against the number of features, with the settings that were chosen; None without validation."""
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
        "error": (folds.std(axis=0, ddof=1) / np.sqrt(n_folds)).tolist() if n_folds > 1 else [None] * int(own.sum()),
        "folds": n_folds,
        "chosen": int(model.n_features_),
    }
