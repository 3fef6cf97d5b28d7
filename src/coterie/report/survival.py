"""Survival by tertile of the held-out risk: Kaplan–Meier curves, log-rank test, and their table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coterie.groups.columns import Content, Record
from coterie.inputs.survival import read_survival
from coterie.inputs.targets import read_sample_weight
from coterie.markup import Markup, join, tag, wide_table
from coterie.validation.survival import log_rank_p_value, survival_curve

if TYPE_CHECKING:
    from coterie.report.assembly import OpenedData

RISKS = ("low risk", "medium risk", "high risk")
# Largest number of points of a curve.
_POINTS = 300


def risk_curves(model: object, data: OpenedData) -> Record | None:
    """Return Kaplan–Meier curves of samples of low, medium and high held-out risk; None without such risks.

    The tertiles are those within each fold, whose model has not seen its samples. The log-rank test takes them as given. The
    models of the folds share samples, so that its p-value is approximate.

    Returns
    -------
    curves : dict or None
        ``groups`` with ``name``, numbers of ``samples`` and ``events``, ``median`` survival time (None if it is not reached),
        ``times`` and ``survival``; and the ``p_value`` of the log-rank test.
    """
    tertile = getattr(model, "held_out_tertiles_", None)
    if tertile is None or data.y is None:
        return None
    targets, _ = read_survival(data.y, len(tertile), "The report")
    given = read_sample_weight(data.sample_weight, targets)
    weight = np.ones(len(targets)) if given is None else given
    kept = (tertile >= 0) & (weight > 0.0)
    groups = [_curve(name, targets[own], weight[own]) for k, name in enumerate(RISKS) for own in [kept & (tertile == k)]]
    p_value = log_rank_p_value(targets[kept], np.asarray(tertile)[kept], weight[kept])
    return {"groups": groups, "p_value": None if np.isnan(p_value) else p_value}


def _curve(name: str, targets: np.ndarray, weight: np.ndarray) -> Record:
    """Return the curve of some samples, from time 0 to their last time."""
    times, share = survival_curve(targets["time"], targets["event"], weight, targets["entry"])
    reached = np.flatnonzero(share <= 0.5)
    last = float(targets["time"].max(initial=0.0))
    shown = np.unique(np.linspace(0, len(times) - 1, min(len(times), _POINTS)).round().astype(np.int64))
    end = [float(share[-1])] if len(share) else [1.0]
    return {
        "name": name,
        "samples": len(targets),
        "events": int(targets["event"].sum()),
        "median": float(times[reached[0]]) if len(reached) else None,
        "times": [0.0, *times[shown].tolist(), last],
        "survival": [1.0, *share[shown].tolist(), *end],
    }


def curves_markup(curves: Content | None) -> Markup:
    """Return the table of the curves, which the script draws; nothing without curves."""
    if not curves:
        return Markup("")
    heads = ("held-out risk", "samples", "events", "median survival")
    rows = [
        (own["name"], own["samples"], own["events"], "not reached" if own["median"] is None else f"{own['median']:.4g}")
        for own in curves["groups"]
    ]
    body = (tag("tr", *(tag("td", cell) for cell in row)) for row in rows)
    table = wide_table(tag("thead", tag("tr", *(tag("th", head) for head in heads))), body)
    test = (
        f"Log-rank test of the three groups: p = {curves['p_value']:.2g} (approximate)."
        if curves["p_value"] is not None
        else ""
    )
    return join([tag("h3", "Survival by held-out risk"), table, tag("p", test, class_="quiet")])
