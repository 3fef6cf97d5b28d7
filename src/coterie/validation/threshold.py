"""Thresholds of one-class models: the papers' margin, or a quantile of the outputs of normal samples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from coterie._numba import one_blas_thread
from coterie.data.imputation import ImputedSource
from coterie.inputs.opening import Input
from coterie.interruption import stop_requested
from coterie.search.outcome import group_model, support_model
from coterie.search.search import Search, SearchSettings
from coterie.search.speculation import run_loop

# Outputs that differ by less than this share of the largest one are equal.
_TIED = 1e-10
# A share that is reached to within this relative error is reached.
_ROUNDING = 1e-9
# Number of folds of the held-out rule.
_N_FOLDS = 10
_MIN_SAMPLES = 3


@dataclass(frozen=True)
class Threshold:
    """Rule for the threshold of a one-class model.

    Attributes
    ----------
    rule : {"quantile", "held_out", "margin"}
        Quantile of the outputs, at ``contamination`` or at a level from held-out samples, or the margin of the model.
    contamination : float
        Share of the normal samples to reject.
    """

    rule: str
    contamination: float

    @property
    def uses_outputs(self) -> bool:
        """Whether the threshold depends on the outputs of the training samples."""
        return self.rule != "margin"

    def offset(self, outputs: np.ndarray, weight: np.ndarray | None, margin: float) -> float:
        """Return the threshold, given outputs and weights of the training samples and the margin."""
        return quantile_offset(outputs, weight, self.contamination) if self.uses_outputs else margin


def quantile_offset(outputs: np.ndarray, weight: np.ndarray | None, share: float) -> float:
    """Return the largest threshold below which at most a share of the samples lies, by weight.

    The threshold is halfway between the largest output below it and the smallest one above it, so that rounding errors do not
    move a sample to the other side. Tied outputs are on the same side. If no sample may be rejected, the threshold is just
    below the smallest output.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.threshold import quantile_offset
    >>> quantile_offset(np.array([5.0, 1.0, 3.0, 7.0]), None, 0.5)
    4.0
    >>> quantile_offset(np.array([5.0, 1.0, 3.0, 7.0]), np.array([1.0, 2.0, 1.0, 0.0]), 0.5)
    2.0
    """
    used = np.ones(len(outputs)) if weight is None else np.asarray(weight, dtype=np.float64)
    order = np.argsort(outputs[used > 0.0], kind="stable")
    values, mass = outputs[used > 0.0][order], used[used > 0.0][order]
    tolerance = _TIED * float(np.abs(values).max())
    starts = np.flatnonzero(np.append(True, np.diff(values) > tolerance))  # of the runs of tied outputs
    below = np.append(0.0, np.cumsum(mass))[starts]
    first = starts[np.flatnonzero(below <= share * (1.0 + _ROUNDING) * mass.sum())[-1]]
    if first == 0:
        return float(values[0] - tolerance)
    return float(values[first - 1] + (values[first] - values[first - 1]) / 2)


def model_outputs(data: Input, features: np.ndarray, coef: np.ndarray, intercept: float) -> np.ndarray:
    """Return the outputs of a linear model for all samples, given its features and their weights."""
    return np.asarray(data.source.columns(features) @ coef) + intercept


def held_out_offset(
    data: Input,
    outputs: np.ndarray,
    margin: float,
    settings: SearchSettings,
    n_features: int | None,
    share: float,
    *,
    n_threads: int,
) -> float:
    r"""Return the threshold that rejects a share of held-out samples, given the model's training outputs and margin.

    A model is fitted without each of ten interleaved folds. The level of a held-out output :math:`f` is the share of the
    training outputs of its model that are below it or, if none is, :math:`(f - \min f_i) / \gamma \le 0`. The threshold has
    the level below which ``share`` of the held-out samples lie. Levels do not depend on the scale of the outputs, which varies
    between the folds.
    """
    weight = np.ones(data.n_samples) if data.weight is None else data.weight
    used = np.flatnonzero(weight > 0.0)
    if len(used) < _MIN_SAMPLES:
        raise ValueError(
            f"threshold_rule='held_out' requires at least {_MIN_SAMPLES} samples with positive weight, but there are "
            f"{len(used)}. Use threshold_rule='quantile'."
        )
    n_folds = min(_N_FOLDS, len(used))
    folds = [used[first::n_folds] for first in range(n_folds)]
    levels = [_levels(_without(data, weight, fold), fold, settings, n_features, n_threads) for fold in folds]
    level = quantile_offset(np.concatenate(levels), weight[np.concatenate(folds)], share)
    if level >= 0.0:
        return quantile_offset(outputs, data.weight, min(level, 1.0))
    return float(outputs[used].min() + level * margin)


def _without(data: Input, weight: np.ndarray, held_out: np.ndarray) -> Input:
    """Return the data without some samples. The others have the same total weight, so that C has the same effect."""
    kept = weight.copy()
    kept[held_out] = 0.0
    kept *= weight.sum() / kept.sum()
    source = data.source.refilled(kept > 0.0) if isinstance(data.source, ImputedSource) else data.source
    return replace(data, source=source, weight=kept)


def _levels(data: Input, held_out: np.ndarray, settings: SearchSettings, n_features: int | None, n_threads: int) -> np.ndarray:
    """Return the levels of held-out outputs among the training outputs; of tied outputs, half are below."""
    loop = Search(data, settings, n_features, n_threads).loop()
    loop.warns = False  # Convergence warnings are raised by the final fit only.
    loop.on_round = lambda _: stop_requested()
    with one_blas_thread():
        run_loop(loop)
        model = support_model(loop) if settings.predict_with == "support" else group_model(loop)
        outputs = model_outputs(data, model.features, model.coef[0], model.intercept[0])
    assert data.weight is not None
    training = np.flatnonzero(data.weight > 0.0)
    order = training[np.argsort(outputs[training], kind="stable")]
    below = np.append(0.0, np.cumsum(data.weight[order]))
    tolerance = _TIED * float(np.abs(outputs).max())
    first, last = (np.searchsorted(outputs[order], outputs[held_out] + shift) for shift in (-tolerance, tolerance))
    share = (below[first] + below[last]) / (2 * below[-1])
    return np.where(last > 0, share, (outputs[held_out] - outputs[order[0]]) / model.margin[0])
