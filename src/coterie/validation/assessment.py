"""Figures of the whole procedure from its held-out predictions: scores, intervals, baseline, and table of confusions.

All figures come from the same predictions. Those of a sample are from the model that was chosen and fitted without the fold of
the sample (:mod:`coterie.validation.nested`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coterie.inputs.opening import Input
from coterie.solver.error_measures import SQUARED_ERROR, ErrorMeasure
from coterie.solver.loss import LossLike, trait
from coterie.validation import metrics
from coterie.validation.calibration import calibrate, scale_of
from coterie.validation.curves import calibration_curve, roc_curve
from coterie.validation.intervals import fold_interval, r_squared_interval, share_interval
from coterie.validation.path_search import Fold, SizedOutputs
from coterie.validation.survival import linearised_concordance, risk_tertiles

# Largest number of classes whose probabilities are computed for the curves.
_CURVE_CLASSES = 20


@dataclass(frozen=True)
class HeldOutOutputs:
    """Outputs for the held-out samples of all folds. A sample that several folds hold out has several entries.

    Attributes
    ----------
    sample, fold : ndarray of int of shape (n_entries,)
        Number of the sample and of the fold of each entry.
    outputs : ndarray of shape (n_entries, n_outputs)
        Decision values or linear outputs.
    values : ndarray of shape (n_entries, n_outputs)
        Outputs in units of the margins, so that those of different folds can be compared.
    weight : ndarray of shape (n_entries,)
        Weight of each entry in scores.
    unit : ndarray of int of shape (n_entries,)
        Independent unit of each entry: its sample, or its sample group.
    """

    sample: np.ndarray
    fold: np.ndarray
    outputs: np.ndarray
    values: np.ndarray
    weight: np.ndarray
    unit: np.ndarray

    @classmethod
    def of(
        cls,
        data: Input,
        folds: Sequence[Fold],
        outputs: Sequence[np.ndarray],
        values: Sequence[np.ndarray] | None = None,
    ) -> HeldOutOutputs:
        """Collect the outputs of the folds."""
        held_out = [fold.parts[0] for fold in folds]
        sample = np.concatenate(held_out)
        fold = np.repeat(np.arange(len(folds)), [len(part) for part in held_out])
        weight = np.ones(data.n_samples) if data.score_weight is None else data.score_weight
        unit = sample if data.groups is None else data.groups[sample]
        own, compared = (np.concatenate(list(part)) for part in (outputs, outputs if values is None else values))
        return cls(sample, fold, own, compared, weight[sample], unit)

    def by_sample(self, n_samples: int) -> np.ndarray:
        """Return the outputs of all samples: NaN for those that no fold holds out, the mean for those of several folds."""
        count = np.bincount(self.sample, minlength=n_samples)
        found = np.zeros((n_samples, self.outputs.shape[1]))
        np.add.at(found, self.sample, self.outputs)
        with np.errstate(invalid="ignore"):
            return np.asarray(found / count[:, None])

    def with_weight(self) -> HeldOutOutputs:
        """Return the entries of positive weight."""
        kept = self.weight > 0.0
        return HeldOutOutputs(*(part[kept] for part in vars(self).values()))


@dataclass(frozen=True)
class Figures:
    """Scores of held-out outputs, computed from all samples together.

    Attributes
    ----------
    held_out : HeldOutOutputs
        Entries of positive weight.
    codes : ndarray of shape (n_entries,) or (n_entries, n_targets)
        Targets of the entries: class codes, numbers, records of survival times, or 1 for normal samples and 0 for outliers.
    predicted : ndarray of the same shape
        Predictions in the same format.
    n_classes : int
        Number of classes; 0 for numbers and survival times.
    measures : tuple of ErrorMeasure
        Measures of the error of numbers, each of which has a score.
    target_names : tuple of str or None
        Names of several targets. The score of a target has its name in brackets, as in ``"r2[height]"``.
    nested : bool
        Whether the outputs are those of the models of several folds; see :mod:`coterie.validation.intervals`.
    """

    held_out: HeldOutOutputs
    codes: np.ndarray
    predicted: np.ndarray
    n_classes: int
    measures: tuple[ErrorMeasure, ...] = (SQUARED_ERROR,)
    target_names: tuple[str, ...] | None = None
    nested: bool = True

    @cached_property
    def scores(self) -> dict[str, metrics.Linearised]:
        """Scores that have an interval, by their names in scikit-learn."""
        own, weight = self.held_out, self.held_out.weight
        if self.codes.dtype.names is not None:
            risk = own.values[:, 0]
            return {"concordance_index": linearised_concordance(self.codes, risk, weight, own.fold)}
        if not self.n_classes:
            return {
                f"{measure.score}{suffix}": metrics.linearised_explained(measure, codes, predicted, weight)
                for measure in self.measures
                for suffix, codes, predicted in self._by_target()
            }
        right = (self.codes == self.predicted).astype(np.float64)
        found = {
            "accuracy": metrics.linearised_accuracy(right, weight),
            "balanced_accuracy": metrics.linearised_balanced_accuracy(self.codes, right, weight),
        }
        if self.n_classes == 2:
            found["roc_auc"] = metrics.linearised_auc(self.codes == 1, own.values[:, 0], weight, own.fold)
        return found

    def _by_target(self) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """Return targets and predictions, of several targets together and then of each, with a suffix of scores."""
        together = [("", self.codes, self.predicted)]
        if self.target_names is None:
            return together
        pairs = zip(self.target_names, self.codes.T, self.predicted.T, strict=True)
        return [*together, *((f"[{name}]", codes, predicted) for name, codes, predicted in pairs)]

    @property
    def errors(self) -> dict[str, float]:
        """Mean absolute errors of numbers, of each of several targets separately, because their units differ."""
        weight = self.held_out.weight
        return {
            f"mean_absolute_error{suffix}": metrics.mean_absolute_error(codes, predicted, weight)
            for suffix, codes, predicted in self._by_target()
            if codes.ndim == 1
        }

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """Intervals of :attr:`scores`."""
        unit = self.held_out.unit
        if self.codes.dtype.names is not None:
            n_events = len(np.unique(unit[self.codes["event"]]))
            return {name: share_interval(score, unit, n_events, nested=self.nested) for name, score in self.scores.items()}
        if not self.n_classes:
            return {name: r_squared_interval(score, unit, nested=self.nested) for name, score in self.scores.items()}
        all_units = len(np.unique(unit))
        rarest = min(len(np.unique(unit[self.codes == code])) for code in np.unique(self.codes))
        return {
            name: share_interval(score, unit, all_units if name == "accuracy" else rarest, nested=self.nested)
            for name, score in self.scores.items()
        }


def assess(
    data: Input,
    folds: Sequence[Fold],
    models: Sequence[SizedOutputs],
    baseline: Sequence[np.ndarray],
    *,
    loss: LossLike,
    name: str,
    fold_scores: np.ndarray,
    fold_baseline: np.ndarray,
    calibration_weight: np.ndarray | None,
    normality: bool,
) -> dict[str, Any]:
    """Return the fitted attributes about held-out predictions.

    Parameters
    ----------
    data : Input
        Data of the fit.
    folds : sequence of Fold
        The folds.
    models : sequence of SizedOutputs
        Outputs for the held-out samples of each fold, of the model that is chosen and fitted without it.
    baseline : sequence of ndarray
        Those of the prediction without features.
    loss : type of Loss
        The loss, whose inverse link turns outputs into predictions.
    name : str
        Name of the score that validation uses.
    fold_scores, fold_baseline : ndarray of shape (n_folds,)
        This score in each fold, for ``models`` and ``baseline``.
    calibration_weight : ndarray of shape (n_samples,) or None
        Sample weights of the calibration; None for outputs that are not calibrated.
    normality : bool
        Whether the labels are 1 for normal samples and -1 for outliers, which have negative outputs.
    """
    values = [own.outputs / scale_of(own.margin) for own in models]
    entries = HeldOutOutputs.of(data, folds, [own.outputs for own in models], values)
    read = _reader(data, loss, normality)
    figures = read(entries.with_weight())
    scores = {own: score.value for own, score in figures.scores.items()}
    intervals = figures.intervals
    others = read(HeldOutOutputs.of(data, folds, baseline).with_weight()).scores
    constant = {own: score.value for own, score in others.items()}
    if "roc_auc" in constant and data.covariates is None:
        constant["roc_auc"] = 0.5  # Constants of different folds are not compared.
    if name not in scores:
        scores[name], constant[name] = _mean(fold_scores), _mean(fold_baseline)
        intervals[name] = fold_interval(fold_scores) or (np.nan, np.nan)
    own = figures.held_out
    found: dict[str, Any] = {}
    if not figures.n_classes and data.balanced is None:
        scores |= figures.errors
    if data.is_survival:
        tertiles = np.full(data.n_samples, -1)
        tertiles[entries.sample] = risk_tertiles(entries.values[:, 0], entries.fold)
        found["held_out_tertiles_"] = tertiles
    elif data.classes is not None:
        found["held_out_confusion_"] = metrics.confusion_table(figures.codes, figures.predicted, figures.n_classes, own.weight)
    shares = None
    if calibration_weight is not None and 2 <= figures.n_classes <= _CURVE_CLASSES:
        shares = _calibrated(own, figures.codes, calibration_weight[own.sample], figures.n_classes)
        if figures.n_classes == 2:
            scores["brier_score"] = metrics.brier_score(figures.codes, shares, own.weight)
    if not data.is_survival:
        found["held_out_curves_"] = _curves(figures, shares)
    predictions = entries.by_sample(data.n_samples)
    if data.classes is None and figures.n_classes == 0:
        predictions = data.in_units(loss.predict(predictions))
    return {
        "held_out_predictions_": predictions[:, 0] if predictions.ndim == 2 and predictions.shape[1] == 1 else predictions,
        "held_out_scores_": scores,
        "held_out_intervals_": intervals,
        "baseline_scores_": constant,
        **found,
    }


def _reader(data: Input, loss: LossLike, normality: bool) -> Callable[[HeldOutOutputs], Figures]:
    """Return a function that computes the figures of outputs for the targets of these data."""
    if data.classes is not None:
        n_classes = len(data.classes)
        return lambda own: Figures(own, data.targets[own.sample], loss.predict(own.outputs), n_classes)
    if normality:
        assert data.y is not None
        normal = (data.y == 1).astype(np.int64)
        return lambda own: Figures(own, normal[own.sample], (own.outputs[:, 0] >= 0.0).astype(np.int64), 2)
    measures = tuple(dict.fromkeys((trait(loss, "error_measure"), SQUARED_ERROR)))
    targets, names = data.in_units(data.targets), data.target_names
    return lambda own: Figures(own, targets[own.sample], data.in_units(loss.predict(own.outputs)), 0, measures, names)


def _calibrated(own: HeldOutOutputs, codes: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """Return probabilities, by calibrations that are fitted without the fold of each entry."""
    shares = np.empty((len(codes), n_classes))
    for fold in np.unique(own.fold):
        here = own.fold == fold
        shares[here] = calibrate(own.values[~here], codes[~here], weight[~here]).probabilities(own.values[here])
    return shares


def _curves(figures: Figures, shares: np.ndarray | None) -> dict[str, Any]:
    """Return the ROC curves of classes, and the calibration curves of probabilities or of each target.

    A ROC curve has the code of its class, which is compared with all others. With more than two classes, it is by the
    probability of the class, and the calibration curve is that of the predicted class.
    """
    own, codes = figures.held_out, figures.codes
    if not figures.n_classes:
        pairs = zip(np.atleast_2d(codes.T), np.atleast_2d(figures.predicted.T), strict=True)
        curves = [calibration_curve(guess, seen, own.weight, own.sample, own.unit, shares=False) for seen, guess in pairs]
        return {"roc": [], "calibration": [None if curve is None else curve.to_dict() for curve in curves]}
    if figures.n_classes == 2:
        values = {1: own.values[:, 0]}
    else:
        values = {} if shares is None else dict(enumerate(shares.T))
    roc = {code: roc_curve(codes == code, value, own.weight, own.fold) for code, value in values.items()}
    curve = None
    if shares is not None:
        best = np.argmax(shares, axis=1)
        guess, seen = (shares[:, 1], codes == 1) if figures.n_classes == 2 else (shares.max(axis=1), codes == best)
        curve = calibration_curve(guess, seen.astype(np.float64), own.weight, own.sample, own.unit, shares=True)
    return {
        "roc": [{"class": code, **found.to_dict()} for code, found in roc.items() if found is not None],
        "calibration": [None if curve is None else curve.to_dict()],
    }


def _mean(scores: np.ndarray) -> float:
    """Return the mean over the folds that have a score."""
    known = scores[~np.isnan(scores)]
    return float(known.mean()) if len(known) else np.nan
