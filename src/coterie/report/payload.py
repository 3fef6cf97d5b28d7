"""Data of a report page: the groups of ``result.json`` by column, reduced to what the page shows.

The columns, with titles, descriptions and kinds, come from :mod:`coterie.groups.columns` and are passed to the script as
data. A new column requires no change of the script.
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from coterie.groups.columns import COLUMNS, Column, Content, Record, place, shown
from coterie.report.details import natural
from coterie.report.judgement import UNDECIDED, judge

# Columns that the figures use, whether or not the table shows them.
_PICTURED = ("support", "label", "direction", "effect", "confidence", "size")
# Largest number of effects (groups times classes or targets) in a page.
_CLASS_EFFECTS = 500_000


def packed(content: Content) -> str:
    """Return JSON content, compressed by gzip and encoded in base64, which contains no HTML markup."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), 9, mtime=0)).decode("ascii")


def discovery_data(content: Content) -> Record:
    """Return the data that the script draws, from the dictionary of a ``result.json``."""
    groups, pictures, target = page_records(content), content["pictures"] or {}, content["target"]
    columns = [*shown("page"), *shown("page details"), *shown("page download"), *(COLUMNS[name] for name in _PICTURED)]
    return {
        "kind": "discovery",
        "stem": stem(content["data"].get("path", "")),
        "task": content["task"],
        "label": target["label"],
        "classes": pictures.get("classes") or list(target["classes"] or ()) or None,
        "samples": content["data"].get("samples"),
        "score": content["held_out"],
        "curve": content["validation"],
        "chance": None if _undecided(content) else chance_level(content["confidence"]),
        "columns": _described(shown("page"), groups),
        "details": _described(shown("page details"), groups),
        "member_columns": _described(shown("page members"), [member for group in groups for member in group["members"]]),
        "download": [{"name": column.name, "per": column.per} for column in shown("page download")],
        "groups": {
            "n": len(groups),
            **{c.name: [_digits(group[c.name]) for group in groups] for c in columns if c.per != "feature"},
        },
        "orders": _orders(groups),
        "members": _member_columns(groups),
        "targets": target.get("targets"),
        "class_effects": _by_output(groups, "scaled_effects" if target.get("targets") else "class_effects"),
        "target_effects": _by_output(groups, "target_effects"),
        "statistics": _statistics(groups),
        "levels": _by_group(groups, "levels"),
        "heat": _heat(groups),
        "values": _values(pictures),
        "genome": content["genome"],
        "image": pictures.get("image"),
    }


def page_records(content: Content) -> list[Record]:
    """Return the groups of ``result.json`` with label, place, purity and the chance figures of their confidences."""
    judged = content["confidence"] or {}
    by_chance = {
        name: judged[name] if judged.get("n_permutations") else [None] * len(content["groups"])
        for name in ("expected_false", "false_share")
    }
    return [
        {
            **group,
            "label": _group_name(group),
            "place": place(group["members"][0]["annotations"]),
            "purity": (group["purity"] or {}).get("minimum"),
            **{name: values[number] for name, values in by_chance.items()},
        }
        for number, group in enumerate(content["groups"])
    ]


def with_values(columns: Sequence[Column], rows: Sequence[Content]) -> list[Column]:
    """Return the columns that have a value in at least one row."""
    return [column for column in columns if any(row[column.name] is not None for row in rows)]


def _described(columns: Sequence[Column], rows: Sequence[Content]) -> list[Record]:
    """Return descriptions of the columns for the script, without columns that have no value."""
    return [
        {"key": c.name, "title": c.title, "hint": c.description, "kind": c.kind, "missing": c.missing}
        for c in with_values(columns, rows)
    ]


def _orders(groups: Sequence[Content]) -> dict[str, list[int]]:
    """Return ranks of the groups for columns that are not sorted by their text: places by chromosome and position."""
    found = [group["members"][0]["annotations"] for group in groups]
    keys = [(natural(str(own.get("chromosome"))), _number(own.get("position"))) for own in found]
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return {"place": [ranks[key] for key in keys]}


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def chance_level(confidence: Content | None) -> Record | None:
    """Return the largest confidence of a group with permuted labels, or None without permutations."""
    if not confidence or not confidence.get("n_permutations"):
        return None
    reached = [value for values in confidence.get("permuted", ()) for value in values if value is not None]
    return {"level": max(reached, default=0.0), "n_permutations": confidence["n_permutations"]}


def _undecided(content: Content) -> bool:
    """Return True if permuted labels cannot tell groups apart. Their level is then not drawn."""
    groups = judge(None, content["confidence"]).groups
    return groups is not None and groups.reliability == UNDECIDED


def _group_name(group: Content) -> str:
    """Return the name of a group, which is that of its support feature."""
    name = group["members"][0]["name"]
    return f"feature {group['support']}" if name is None else str(name)


def stem(path: str) -> str:
    """Return the name of the data for use in file names."""
    name = PurePath(str(path)).name.split(".")[0]
    kept = "".join(letter if (letter.isalnum() and letter.isascii()) or letter in "-_" else "-" for letter in name)
    return kept.strip("-")[:60] or "coterie"


def _digits(value: Any, digits: int = 4) -> Any:
    """Round floats to the number of digits that a page shows."""
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def _member_columns(groups: Sequence[Content]) -> Record:
    members = [member for group in groups for member in group["members"]]
    about = dict.fromkeys(name for member in members for name in member["annotations"])
    columns = with_values([column for column in shown("members") if column.name not in ("name", "annotations")], members)
    named = any(member["name"] is not None for member in members)
    return {
        "start": _starts(groups),
        **{column.name: [_digits(member[column.name], 3) for member in members] for column in columns},
        "name": [member_name(member) for member in members] if named else None,
        "annotations": {name: [member["annotations"].get(name) for member in members] for name in about},
    }


def member_name(member: Content) -> str:
    """Return the name of a member, or its index."""
    return str(member["feature"] if member["name"] is None else member["name"])


def _starts(groups: Sequence[Content]) -> list[int]:
    return [0, *itertools.accumulate(len(group["members"]) for group in groups)]


def _by_output(groups: Sequence[Content], name: str) -> list[list[float | None]] | None:
    """Return the effects on each class or target, if all groups have them."""
    found = [group[name] for group in groups]
    kept = [row for row in found if row]
    if not kept or len(kept) < len(found) or len(found) * len(kept[0]) > _CLASS_EFFECTS:
        return None
    return [[_digits(value, 3) for value in row] for row in kept]


def _statistics(groups: Sequence[Content]) -> list[Any] | None:
    rows = _by_group(groups, "statistics")
    if rows is None:
        return None
    return [None if row is None else [_figures(own) for own in row] for row in rows]


def _figures(own: Content) -> Record | None:
    """Return the statistics of a class, or None if it has no samples."""
    return {name: value if name == "n" else _digits(value) for name, value in own.items()} if own["n"] else None


def _by_group(groups: Sequence[Content], name: str) -> list[Any] | None:
    rows = [group[name] for group in groups]
    return rows if any(row is not None for row in rows) else None


def _heat(groups: Sequence[Content]) -> Record | None:
    """Return correlations in hundredths, as bytes, with members numbered across all groups."""
    kept = [number for number, group in enumerate(groups) if group["correlations"]]
    if not kept:
        return None
    starts = _starts(groups)
    return {
        "group": kept,
        "members": [[starts[number] + place for place in groups[number]["correlations"]["members"]] for number in kept],
        "hundredths": [_bytes(groups[number]["correlations"]["below_diagonal"]) for number in kept],
    }


def _bytes(values: Sequence[float | None]) -> str:
    numbers = np.array([0.0 if value is None else value for value in values])
    return base64.b64encode(np.round(100 * np.clip(numbers, -1, 1)).astype(np.int8).tobytes()).decode("ascii")


def _values(pictures: Content) -> Record | None:
    rows, target = pictures.get("values"), pictures.get("target")
    if not rows or not target:
        return None
    return {"group": list(range(len(rows))), "n": len(target), "target": [_digits(value, 5) for value in target], "rows": rows}
