"""Results of confidential data: a discovery without values of single samples."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from coterie.groups.columns import Content, Record
from coterie.report.details import GroupDetails
from coterie.report.held_out import HeldOut

if TYPE_CHECKING:
    from coterie.estimators.base import GroupDiscovery
    from coterie.report.result import Discovery

# Smallest number of samples behind a mean or a count.
FEWEST = 5
# Number of intervals of the times at which survival is shown.
_TIMES = 20
# Attributes of a model with one value per sample.
_PER_SAMPLE = ("held_out_predictions_", "held_out_tertiles_")


def without_samples(found: Discovery) -> Discovery:
    """Return a discovery whose report, ``result.json`` and model have no value of a single sample.

    Left out are the values of samples in figures, quartiles and extremes, means and counts of fewer than five samples, and
    the predictions of single samples. Survival is shown at round times.

    Notes
    -----
    Coefficients, correlations, means, scores and the digest of the data remain. The names of features, classes and files do
    too.
    """
    return replace(
        found,
        model=_model(found.model),
        details=None if found.details is None else _details(found.details),
        held_out=None if found.held_out is None else _held_out(found.held_out),
    )


def _model(model: GroupDiscovery) -> GroupDiscovery:
    """Return a copy of the model without the attributes that have one value per sample."""
    other = copy.copy(model)
    for name in _PER_SAMPLE:
        if hasattr(other, name):
            delattr(other, name)
    return other


def _details(details: GroupDetails) -> GroupDetails:
    statistics, trait = details.statistics, details.trait
    return replace(
        details,
        statistics=None if statistics is None else [[_mean(own) for own in row] for row in statistics],
        levels=[_levels(own) for own in details.levels],
        samples=np.empty(0, dtype=np.int64),
        values=np.empty((0, 0)),
        target=np.empty(0),
        trait=None if trait is None else {name: trait[name] for name in ("mean", "sd")},
    )


def _mean(own: Content) -> dict[str, float]:
    """Return number, mean and standard deviation, without quartiles, which are values of samples."""
    enough = own["n"] >= FEWEST
    return {"n": own["n"], **{name: own[name] if enough else math.nan for name in ("mean", "sd")}}


def _levels(own: Content | None) -> Record | None:
    """Return the counts of values, unless a value is rare."""
    if own is None or min(map(sum, zip(*own["counts"], strict=True))) < FEWEST:
        return None
    return dict(own)


def _held_out(held_out: HeldOut) -> HeldOut:
    diagnostics, curves = held_out.diagnostics, held_out.curves
    return replace(
        held_out,
        diagnostics=None if diagnostics is None else {**diagnostics, "points": []},
        curves=None if curves is None else {**curves, "groups": _at_round_times(curves["groups"])},
    )


def _at_round_times(groups: Sequence[Content]) -> list[Record]:
    """Return survival curves at equally spaced round times. The times of events are those of samples."""
    last = max((own["times"][-1] for own in groups), default=0.0)
    unit = 10.0 ** (math.floor(math.log10(last)) - 1) if last > 0.0 else 1.0
    times = math.ceil(last / unit) * unit * np.arange(_TIMES + 1) / _TIMES
    found = []
    for own in groups:
        # The share at a time is that after the last event until then.
        place = np.searchsorted(own["times"], times, side="right") - 1
        survival = np.asarray(own["survival"])[place]
        found.append({**own, "times": times.tolist(), "survival": survival.tolist(), "median": _median(times, survival)})
        found[-1]["joined"] = True
    return found


def _median(times: np.ndarray, survival: np.ndarray) -> float | None:
    """Return the time at which the line through the points reaches one half; None if it does not."""
    after = int(np.argmax(survival <= 0.5))
    if survival[after] > 0.5:
        return None
    before = max(0, after - 1)
    step = survival[before] - survival[after]
    part = (survival[before] - 0.5) / step if step > 0.0 else 1.0
    return float(f"{times[before] + part * (times[after] - times[before]):.3g}")
