"""Base class of the cross-validated estimators: candidates, folds, search, choice, and final fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector

from coterie._numba import thread_count
from coterie._parameters import (
    LARGEST_FACTOR,
    PENALTY,
    SMALLEST_FACTOR,
    AnyValue,
    Boolean,
    Integer,
    ListOf,
    Number,
    OneOf,
    Rule,
    Scoring,
)
from coterie.data.source import Moments
from coterie.data.view import FeatureView
from coterie.estimators.base import GroupDiscovery
from coterie.inputs.folds import read_folds
from coterie.inputs.opening import Input
from coterie.inputs.types import FoldsLike, ScoringLike
from coterie.interruption import stop_requested
from coterie.progress import RoundProgress
from coterie.search.penalty import typical_variance
from coterie.search.search import SearchSettings
from coterie.validation.assessment import assess
from coterie.validation.deviance import Deviance
from coterie.validation.held_out import HeldOutScores
from coterie.validation.nested import baseline_outputs, nested_choices, pairs_of
from coterie.validation.path_search import Fold, PathSearch, PathSettings, SizedOutputs
from coterie.validation.score_table import Candidate, choose, score_table, smallest_size

# Range of the values of C for an integer ``Cs``, in units of the reciprocal of a typical variance.
_LOWEST_C, _HIGHEST_C = 1e-3, 1.0
# The highest value if all models use whole groups, which need more regularisation.
_HIGHEST_C_OF_GROUPS = 0.1
_MODEL = OneOf("support", "groups")
# Limits on samples and values up to which models on whole groups, each of which requires a separate fit, are candidates.
_MAX_SAMPLES = 2000
_MAX_VALUES = 10**8


class ValidatedDiscovery(GroupDiscovery):
    """Base class that chooses C, threshold, scale, model and size on held-out samples, then searches in all samples."""

    max_features_to_select: int
    min_features_to_select: int
    Cs: int | Sequence[float]
    thresholds: Sequence[float] | None
    rule: str
    nested: bool
    scoring: ScoringLike
    embedded_cv: FoldsLike
    scoring_: str
    C_: float
    threshold_: float
    standardize_: bool
    predict_with_: str
    n_features_: int
    _automatic_kinds: ClassVar[tuple[str, ...]] = ("support", "groups")
    _allowed: ClassVar[dict[str, Rule]] = {
        "max_features_to_select": Integer(1),
        "min_features_to_select": Integer(1),
        "Cs": Integer(1, 1000) | ListOf(PENALTY),
        "thresholds": ListOf(Number(at_most=1)) | OneOf(None),
        "standardize": Boolean() | OneOf("auto") | ListOf(Boolean()),
        "predict_with": OneOf("auto", "support", "groups") | ListOf(_MODEL),
        "scoring": Scoring(),
        "rule": OneOf("auto", "deviance", "best", "one_se"),
        "nested": Boolean(),
        "embedded_cv": AnyValue(),
    }

    def _compute(self, data: Input) -> dict[str, Any]:
        score = self._held_out_scores(data)
        folds = self._folds(data)
        n_threads = thread_count(self.n_jobs)
        moments = data.source.moments(data.weight, n_threads=n_threads)
        moments.require_variation()
        most = min(int(self.max_features_to_select), data.n_features)
        shared = self._shared_settings()
        deviance = self._criterion(data, score)
        rule = ("best" if deviance is None else "deviance") if self.rule == "auto" else self.rule
        search = PathSearch(
            settings=shared,
            data=data,
            n_features=most,
            predict_with=self._kinds(data),
            score=score,
            n_threads=n_threads,
            progress=lambda: RoundProgress(most, int(self.verbose), f"{type(self).__name__}, validation"),
            threshold=self._threshold_rule(),
            deviance=deviance,
        )
        settings = self._candidate_settings(data, moments)
        paths, largest, outputs, deviances = search.run([*folds, *(pairs_of(folds) if self.nested else ())], settings)
        outer = {candidate: own[: len(folds)] for candidate, own in paths.items()}
        results = score_table(outer, largest, {candidate: own[: len(folds)] for candidate, own in deviances.items()})
        fewest = min(int(self.min_features_to_select), most)
        row = choose(results, rule, fewest)
        chosen = Candidate(*(results[name][row].item() for name in Candidate._fields))
        size = int(results["n_features"][row])
        nested = {}
        if self.nested:
            pairs = {candidate: own[len(folds) :] for candidate, own in paths.items()}
            inner = {candidate: own[len(folds) :] for candidate, own in deviances.items()}
            choices = nested_choices(pairs, len(folds), rule=rule, fewest=fewest, largest=largest, deviances=inner)
            found = [_at_size(outputs[candidate][k], own) for k, (candidate, own) in enumerate(choices)]
            nested = self._assessment(data, folds, score, found, baseline_outputs(data, folds, _chosen(shared, chosen)))
        fitted = self._discovered(
            data,
            _chosen(shared, chosen),
            size,
            moments=moments,
            # After a signal during the validation, the chosen model is still fitted.
            stoppable=not stop_requested(),
            **{f"{name}_": value for name, value in chosen._asdict().items()},
            n_features_=size,
            scoring_=score.name,
            smallest_n_features_=smallest_size(results, rule, fewest),
            best_score_=float(results["mean_test_score"][row]),
            cv_results_=results,
            **nested,
        )
        return fitted | self._calibration(data, folds, [_at_size(own, size) for own in outputs[chosen]], fitted)

    def _assessment(
        self,
        data: Input,
        folds: Sequence[Fold],
        score: HeldOutScores,
        models: Sequence[SizedOutputs],
        baseline: Sequence[np.ndarray],
    ) -> dict[str, Any]:
        """Return the attributes about held-out predictions, given the outputs of each fold and those without features."""
        nested, constant = (
            np.array([score(own, fold.parts[0]) for fold, own in zip(folds, found, strict=True)])
            for found in ([model.outputs for model in models], baseline)
        )
        return {
            "nested_scores_": nested,
            "constant_scores_": constant,
            **assess(
                data,
                folds,
                models,
                baseline,
                loss=self._loss,
                name=score.name,
                fold_scores=nested,
                fold_baseline=constant,
                calibration_weight=self._calibration_weight(data),
                normality=is_outlier_detector(self),
            ),
        }

    def _calibration_weight(self, data: Input) -> np.ndarray | None:
        """Return the sample weights of the calibration; None without probabilities."""
        return None

    def _calibration(
        self, data: Input, folds: Sequence[Fold], models: Sequence[SizedOutputs], fitted: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the attributes of the calibration; empty without classes.

        ``models`` are the held-out outputs of the chosen settings in each fold, ``fitted`` the attributes of the model.
        """
        return {}

    def _held_out_scores(self, data: Input) -> HeldOutScores:
        """Return the score for the validation."""
        return HeldOutScores(self.scoring, data, self._loss)

    def _held_out_deviance(self, data: Input, score: HeldOutScores) -> Deviance | None:
        """Return the deviance for the choice beside a score; None for losses without one."""
        return None

    def _criterion(self, data: Input, score: HeldOutScores) -> Deviance | None:
        """Return the deviance if the rule uses it. Otherwise the score is the criterion.

        Unless the rule demands the deviance, scores that the user has chosen are the criterion.
        """
        deviance = self._held_out_deviance(data, score)
        if self.rule == "deviance" and deviance is None:
            raise ValueError(
                f"rule='deviance' requires classes or survival times. Use rule='best' or 'one_se' with {type(self).__name__}."
            )
        return deviance if self.rule == "deviance" or (self.scoring is None and self.rule != "best") else None

    def _kinds(self, data: Input) -> list[str]:
        """Return the kinds of predictive models to choose from."""
        if not (isinstance(self.predict_with, str) and self.predict_with == "auto"):
            return _several(self.predict_with)
        n_samples, n_features = data.source.shape
        few = n_samples <= _MAX_SAMPLES and n_samples * n_features <= _MAX_VALUES
        return list(self._automatic_kinds) if few and self.correlation is not None else ["support"]

    @property
    def _embedded_cv(self) -> FoldsLike:
        return self.embedded_cv

    def _fitted_settings(self) -> SearchSettings:
        chosen = Candidate(self.C_, self.threshold_, self.standardize_, self.predict_with_)
        return _chosen(self._shared_settings(), chosen)

    def _candidate_settings(self, data: Input, moments: Moments) -> list[PathSettings]:
        """Return the settings of all paths."""
        thresholds = [float(self.threshold)] if self.thresholds is None else [float(value) for value in self.thresholds]
        if self.correlation is None:
            thresholds = thresholds[:1]  # no effect without correlations
        view = partial(FeatureView.of, data.source, data.weight, centred=self._centred, moments=moments)
        unit = self._shared_settings().curvature(data) if isinstance(self.Cs, Integral) else 1.0
        return [
            PathSettings(C / unit, threshold, standardize)
            for standardize in self._scales(data)
            for threshold in dict.fromkeys(thresholds)
            for C in self._penalties(view(standardize=standardize), self._kinds(data))
        ]

    @property
    def _centred(self) -> bool:
        """Whether the loss uses centred features."""
        return bool(self.fit_intercept)

    @property
    def _stratified(self) -> bool:
        """Whether a number of folds stands for stratified folds."""
        return is_classifier(self)

    def _penalties(self, view: FeatureView, kinds: Sequence[str]) -> list[float]:
        """Return the values of C for features of this scale and these kinds of models."""
        return penalties(self.Cs, view, kinds)

    def _scales(self, data: Input) -> list[bool]:
        """Return the values of ``standardize`` to choose from."""
        if isinstance(self.standardize, str):
            return [False, True] if data.mostly_zero else [True]
        return list(dict.fromkeys(bool(value) for value in _several(self.standardize)))

    def _folds(self, data: Input) -> list[Fold]:
        """Return the folds with their weights; each fold must have training and held-out samples of positive weight."""
        fit_weight, score_weight = (np.ones(data.n_samples) if w is None else w for w in (data.weight, data.score_weight))
        folds = []
        parts = read_folds(
            self.cv,
            data.labels if data.balanced is None else data.balanced,
            classifier=self._stratified,
            shuffle=True,
            random_state=self.random_state,
            groups=data.groups,
        )
        for number, (train, held_out) in enumerate(parts, start=1):
            weight = np.zeros(data.n_samples)
            weight[train] = fit_weight[train]
            for name, mass in (("training", weight.sum()), ("held-out", score_weight[held_out].sum())):
                if mass == 0.0:
                    raise ValueError(f"All {name} samples of fold {number} of cv have weight 0. Use other folds.")
            self._check_fold(data, weight, f"Fold {number}")
            folds.append(Fold(weight, (np.asarray(held_out),)))
        if self.nested:
            self._check_pairs(data, folds)
        return folds

    def _check_pairs(self, data: Input, folds: list[Fold]) -> None:
        """Raise a ``ValueError`` if a pair of folds has no training or no held-out samples."""
        for pair in pairs_of(folds):
            if len(folds) < 3 or pair.weight.sum() == 0.0 or not all(len(part) for part in pair.parts):
                raise ValueError(
                    "nested=True requires at least three folds, and each fold must hold out samples that no other fold holds "
                    "out. Use other folds (cv)."
                )
            self._check_fold(data, pair.weight, "A pair of folds")

    def _check_fold(self, data: Input, weight: np.ndarray, name: str) -> None:
        """Raise a ``ValueError`` if the training part of a fold cannot be used."""


def _chosen(settings: SearchSettings, candidate: Candidate) -> SearchSettings:
    """Return the settings with the values of the chosen candidate."""
    return replace(settings, **candidate._asdict())


def _at_size(outputs: Mapping[int, SizedOutputs], size: int) -> SizedOutputs:
    """Return the outputs of the largest model of a path with at most ``size`` support features."""
    return outputs[max((own for own in outputs if own <= size), default=min(outputs))]


def validated_rules(plain: type[GroupDiscovery]) -> dict[str, Rule]:
    """Return the rules for the parameters: those of the plain estimator that validation does not choose, and its own."""
    kept = {name: rule for name, rule in plain._allowed.items() if name not in ("n_features_to_select", "C")}
    return {**kept, **ValidatedDiscovery._allowed}


def _several(value: Any) -> list[Any]:
    """Return the values to choose from as a list."""
    single = isinstance(value, (str, bool, np.bool_, Integral))
    return [value] if single else list(dict.fromkeys(value))


def penalties(Cs: Any, view: FeatureView, kinds: Sequence[str] = ("support",)) -> list[float]:
    """Return the values of C in increasing order: those given, or a number of values over the relevant range.

    The effect of C depends on C times the variance of the features. An integer therefore stands for values from 1e-3 to 1 (0.1
    if all models use whole groups) in equal ratios, divided by a typical variance. This is a mean over the features weighted
    by their variances, because the features that vary most are selected first. It is 1 for standardised features.
    """
    highest = _HIGHEST_C_OF_GROUPS if list(kinds) == ["groups"] else _HIGHEST_C
    return grid(Cs, _LOWEST_C, highest, lambda: typical_variance(view))


def grid(Cs: Any, lowest: float, highest: float, unit: Callable[[], float]) -> list[float]:
    """Return the values of C in increasing order: those given, or a geometric grid divided by the unit."""
    if not isinstance(Cs, Integral):
        return sorted({float(value) for value in Cs})
    values = np.geomspace(lowest, highest, int(Cs)) / unit()
    return [float(value) for value in np.unique(np.clip(values, SMALLEST_FACTOR, LARGEST_FACTOR))]
