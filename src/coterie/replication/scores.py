"""The score of a model on a second cohort, with its interval and a baseline."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.estimators.base import GroupDiscovery, settings_of, task_of
from coterie.inputs.opening import Input
from coterie.inputs.substitution import SubstitutedSource, Substitutes
from coterie.replication.result import ScoreReplication
from coterie.report.assembly import baseline_of
from coterie.report.held_out import SCORE_NAMES, HeldOut, score_text
from coterie.report.judgement import DOES_NOT_PREDICT, MAY_PREDICT, PREDICTS
from coterie.solver.error_measures import SQUARED_ERROR
from coterie.solver.loss import trait
from coterie.validation.assessment import Figures, HeldOutOutputs
from coterie.validation.held_out import default_scoring


def score_replication(
    model: GroupDiscovery, new: SubstitutedSource, data: Input, first: HeldOut | None, options: dict[str, Any]
) -> ScoreReplication | None:
    """Return the score of a model on a second cohort; None if it is undefined there.

    Parameters
    ----------
    model : fitted estimator
        The model.
    new : SubstitutedSource
        Features of the second cohort.
    data : Input
        Targets, sample weights and sample groups of the second cohort.
    first : HeldOut or None
        Held-out scores of the first cohort.
    options : dict
        Covariates and offset for the prediction.
    """
    figures = _figures(model, new, data, options)
    scores = {name: score for name, score in figures.scores.items() if not np.isnan(score.value)}
    if not scores:
        return None
    intervals, baseline = figures.intervals, baseline_of(model)
    if baseline == "constant":
        constant = {name: _constant(name, figures) for name in scores}
    else:  # the model with all features at their means, so that covariates and offset remain
        others = _figures(model, _means(model, len(new.columns(model.prediction_features_))), data, options)
        constant = {name: others.scores[name].value for name in scores}
    name = _decisive(model, data, first, scores)
    value, interval = scores[name].value, _known(intervals[name])
    lowest = value if interval is None else interval[0]
    prediction = PREDICTS if lowest > constant[name] else MAY_PREDICT if value > constant[name] else DOES_NOT_PREDICT
    same = first is not None and first.score == SCORE_NAMES[name]
    return ScoreReplication(
        score_text(name),
        value,
        interval,
        constant[name],
        baseline,
        prediction,
        first.value if same and first is not None else None,
        first.interval if same and first is not None else None,
        {
            score_text(own): {"value": score.value, "interval": _known(intervals[own]), "constant": constant[own]}
            for own, score in scores.items()
        },
    )


def _known(interval: tuple[float, float]) -> tuple[float, float] | None:
    return None if np.isnan(interval[0]) else (float(interval[0]), float(interval[1]))


def _figures(model: Any, new: SubstitutedSource, data: Input, options: dict[str, Any]) -> Figures:
    """Return the figures of the predictions for the samples of positive weight."""
    n = data.n_samples
    predicted = np.asarray(model.predict(new, **options))
    if data.classes is not None:
        outputs = np.asarray(model.decision_function(new, **options)).reshape(n, -1)
        codes = np.searchsorted(model.classes_, data.classes)[data.targets]
        predicted, n_classes = np.searchsorted(model.classes_, predicted), len(model.classes_)
    else:
        outputs, n_classes = predicted.reshape(n, -1), 0
        codes = data.targets if data.is_survival else data.in_units(data.targets)
    sample = np.arange(n)
    weight = np.ones(n) if data.score_weight is None else data.score_weight
    unit = sample if data.groups is None else data.groups
    entries = HeldOutOutputs(sample, np.zeros(n, dtype=np.int64), outputs, outputs, weight, unit).with_weight()
    kept = entries.sample
    measures = tuple(dict.fromkeys((trait(settings_of(model).loss, "error_measure"), SQUARED_ERROR)))
    return Figures(entries, codes[kept], predicted[kept], n_classes, measures, data.target_names, nested=False)


def _means(model: Any, n_samples: int) -> SubstitutedSource:
    """Return samples with the training means of all features that the model uses."""
    features = np.unique(model.prediction_features_)
    by_feature = dict(zip(np.concatenate([group.members for group in model.groups_]), model.member_moments_.mean, strict=True))
    values = np.tile([by_feature[j] for j in features], (n_samples, 1))
    return SubstitutedSource(features, values, model.n_features_in_, Substitutes([], len(features), 1.0))


def _constant(name: str, figures: Figures) -> float:
    """Return the score of the best constant prediction."""
    if name == "accuracy":
        mass = np.bincount(figures.codes, figures.held_out.weight)
        return float(mass.max() / mass.sum())
    if name == "balanced_accuracy":
        return 1.0 / len(np.unique(figures.codes))
    return 0.5 if name in ("roc_auc", "concordance_index") else 0.0


def _decisive(model: Any, data: Input, first: HeldOut | None, scores: dict[str, Any]) -> str:
    """Return the name of the score that is quoted: that of the first cohort or, if it is not available, the default one."""
    known = None if first is None else next((name for name in scores if SCORE_NAMES.get(name) == first.score), None)
    if known is not None:
        return known
    if task_of(model) == "classification":
        assert data.classes is not None
        weight = None if data.score_weight is None else data.score_weight
        usual = default_scoring(np.searchsorted(model.classes_, data.classes)[data.targets], len(model.classes_), weight)
        return usual if usual in scores else "accuracy"
    return next(iter(scores))
