"""Survival by tertile of the held-out risk: Kaplan–Meier curves, log-rank test, and their figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.groups.columns import Content, Record
from coterie.inputs.survival import read_survival
from coterie.inputs.targets import read_sample_weight
from coterie.markup import Markup, join, tag
from coterie.validation.survival import log_rank_p_value, survival_curve

if TYPE_CHECKING:
    from coterie.report.assembly import OpenedData

RISKS = ("low risk", "medium risk", "high risk")
# Largest number of points of a curve.
_POINTS = 300
# Size of the figure and its margins, and the colours of the curves (Okabe and Ito).
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 560, 300, 44, 36, 10
_COLOURS, _DASHES = ("#0072b2", "#e69f00", "#d55e00"), (None, "6 3", "2 3")
_TICKS = 5


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
    times, share = survival_curve(targets["time"], targets["event"], weight)
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
    """Return figure and table of the curves; nothing without curves."""
    if not curves:
        return Markup("")
    heads = ("held-out risk", "samples", "events", "median survival")
    rows = [
        (own["name"], own["samples"], own["events"], "not reached" if own["median"] is None else f"{own['median']:.4g}")
        for own in curves["groups"]
    ]
    body = (tag("tr", *(tag("td", cell) for cell in row)) for row in rows)
    table = tag(
        "table", tag("thead", tag("tr", *(tag("th", head) for head in heads))), tag("tbody", *body), class_="facts-table"
    )
    test = (
        f"Log-rank test of the three groups: p = {curves['p_value']:.2g} (approximate)."
        if curves["p_value"] is not None
        else ""
    )
    return join([tag("h3", "Survival by held-out risk"), _figure(curves["groups"]), table, tag("p", test, class_="quiet")])


def _figure(groups: Any) -> Markup:
    """Return the curves as a drawing without script and style."""
    latest = max((own["times"][-1] for own in groups), default=1.0) or 1.0
    width, height = _WIDTH - _LEFT - 10, _HEIGHT - _BOTTOM - _TOP

    def at(time: float, share: float) -> str:
        return f"{_LEFT + width * time / latest:.1f},{_TOP + height * (1.0 - share):.1f}"

    parts = [_axis(latest, width, height)]
    for own, colour, dash in zip(groups, _COLOURS, _DASHES, strict=True):
        points = [at(own["times"][0], own["survival"][0])]
        for k in range(1, len(own["times"])):
            points += [at(own["times"][k], own["survival"][k - 1]), at(own["times"][k], own["survival"][k])]
        style = {"fill": "none", "stroke": colour, "stroke_width": 2, "stroke_dasharray": dash}
        parts.append(tag("polyline", tag("title", own["name"]), points=" ".join(points), **style))
    for k, (own, colour, dash) in enumerate(zip(groups, _COLOURS, _DASHES, strict=True)):
        x, y = _LEFT + width - 120, _TOP + 14 + 16 * k
        parts.append(tag("line", x1=x, x2=x + 24, y1=y - 4, y2=y - 4, stroke=colour, stroke_width=2, stroke_dasharray=dash))
        parts.append(tag("text", own["name"], x=x + 30, y=y, fill="currentColor", font_size=12))
    words = "Kaplan–Meier curves of samples of low, medium and high held-out risk"
    return tag("svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=words, width="100%")


def _axis(latest: float, width: float, height: float) -> Markup:
    """Return axes with ticks for the time and the probability of survival."""
    parts = []
    line = {"stroke": "currentColor", "stroke_width": 1}
    text = {"fill": "currentColor", "font_size": 11}
    for k in range(_TICKS):
        x, share = _LEFT + width * k / (_TICKS - 1), k / (_TICKS - 1)
        y = _TOP + height * (1.0 - share)
        parts += [
            tag("line", x1=x, x2=x, y1=_TOP + height, y2=_TOP + height + 4, **line),
            tag("text", f"{latest * k / (_TICKS - 1):.3g}", x=x, y=_TOP + height + 16, text_anchor="middle", **text),
            tag("line", x1=_LEFT - 4, x2=_LEFT, y1=y, y2=y, **line),
            tag("text", f"{share:.2g}", x=_LEFT - 8, y=y + 4, text_anchor="end", **text),
        ]
    path = f"{_LEFT},{_TOP} {_LEFT},{_TOP + height} {_LEFT + width},{_TOP + height}"
    label = tag("text", "time", x=_LEFT + width / 2, y=_HEIGHT - 4, text_anchor="middle", **text)
    return join([*parts, tag("polyline", points=path, fill="none", **line), label])
