"""The page for people: one HTML file without scripts or links to elsewhere, in which every name is escaped."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

_SHOWN_MEMBERS = 200
_SHOWN_GROUPS = 1000


def render(content: dict[str, Any]) -> str:
    """The report of a result, given as the dictionary of its ``result.json``."""
    weights = [abs(group["weight"] or 0.0) for group in content["groups"]]
    return (
        _environment()
        .get_template("report.html")
        .render(
            **content,
            heaviest=max(weights, default=0.0) or 1.0,
            shown_members=_SHOWN_MEMBERS,
            shown_groups=_SHOWN_GROUPS,
            chance=_by_chance(content["confidence"]),
            curve=_curve([entry["objective"] for entry in content["rounds"]]),
        )
    )


def _by_chance(confidence: dict[str, Any] | None) -> float:
    """The largest confidence that a group reached with shuffled labels."""
    values = [value for group in (confidence or {}).get("permuted", ()) for value in group if value is not None]
    return max(values, default=0.0)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("coterie.report"),
        autoescape=True,  # names come from data: whoever wrote them must not write the page
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    return environment


def number(value: Any) -> str:
    """A figure as people write it."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.2e}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"


def _curve(values: list[float | None], width: int = 600, height: int = 120) -> str:
    """Points of a line through the values, for an SVG of that size."""
    points = [(i, value) for i, value in enumerate(values) if value is not None and math.isfinite(value)]
    if len(points) < 2:
        return ""
    low, high = min(v for _, v in points), max(v for _, v in points)
    span = (high - low) or 1.0
    last = len(values) - 1
    return " ".join(
        f"{8 + (width - 16) * i / last:.1f},{height - 8 - (height - 16) * (v - low) / span:.1f}" for i, v in points
    )
