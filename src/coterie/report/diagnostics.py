"""Curves and points of held-out predictions for figures: ROC, calibration, predicted against observed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coterie.groups.columns import Record
from coterie.inputs.targets import spread_sample

if TYPE_CHECKING:
    from coterie.estimators.base import GroupDiscovery
    from coterie.report.assembly import OpenedData

# Largest number of samples, and of targets, whose predictions are stored.
_SAMPLES, _TARGETS = 400, 12
_DIGITS = 5


def diagnostics_of(model: GroupDiscovery, data: OpenedData) -> Record | None:
    """Return the curves of the held-out predictions of a validated model; None without such curves.

    Returns
    -------
    diagnostics : dict or None
        ``roc``, one per class, with its name as ``of``; ``calibration``, one of the probabilities or one per target, with the
        name of the class or target as ``of``; and for numbers ``points``, one entry per target, with the ``observed`` and
        ``predicted`` values of up to 400 samples.
    """
    curves = getattr(model, "held_out_curves_", None)
    if curves is None:
        return None
    labels = getattr(model, "classes_", None)
    names = ["outlier", "normal"] if labels is None else [str(name) for name in labels.tolist()]
    found: Record = {"roc": [_shortened(own) | {"of": names[own["class"]]} for own in curves["roc"]], "points": []}
    if curves["roc"]:
        owners = [names[1] if len(names) == 2 else None]
    else:
        owners = [str(name) for name in getattr(model, "target_names_", [])[:_TARGETS]] or [None]
        found["points"] = _points(model, data, owners)
    pairs = zip(curves["calibration"], owners, strict=False)
    found["calibration"] = [_shortened(own) | {"of": name} for own, name in pairs if own is not None]
    return found if any(found.values()) else None


def _points(model: GroupDiscovery, data: OpenedData, owners: list[str | None]) -> list[Record]:
    """Return observed and predicted values of some samples, by target."""
    observed, predicted = (_columns(values) for values in (np.asarray(data.y), model.held_out_predictions_))
    known = np.isfinite(predicted).all(axis=1)
    if data.sample_weight is not None:
        known &= np.asarray(data.sample_weight) > 0
    kept = spread_sample(np.flatnonzero(known), None, _SAMPLES)
    return [
        {"of": name, "observed": _rounded(observed[kept, k]), "predicted": _rounded(predicted[kept, k])}
        for k, name in enumerate(owners)
    ]


def _columns(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def _shortened(curve: Record) -> Record:
    """Return a curve with the digits that a figure shows, without the code of its class."""
    return {
        name: _rounded(np.asarray(value)) if isinstance(value, list) else value
        for name, value in curve.items()
        if name != "class"
    }


def _rounded(values: np.ndarray) -> list[float]:
    return [value if isinstance(value, int) else float(f"{value:.{_DIGITS}g}") for value in values.tolist()]
