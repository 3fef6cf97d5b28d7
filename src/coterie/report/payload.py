"""The data of a page: what ``result.json`` says of the groups, by column, as small as a page needs it."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

# Groups times classes whose signed weights go into the page.
_CLASS_EFFECTS = 500_000


def packed(content: Mapping[str, Any]) -> str:
    """Anything that JSON has, gzipped, in base64 (of which no browser takes anything for markup)."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), 9, mtime=0)).decode("ascii")


def discovery_data(content: Mapping[str, Any]) -> dict[str, Any]:
    """What the script draws of a discovery, from the dictionary of its ``result.json`` (of any version)."""
    groups, pictures = content["groups"], content.get("pictures") or {}
    classes = pictures.get("classes") or list((content.get("target") or {}).get("classes") or ()) or None
    return {
        "kind": "discovery",
        "stem": stem(content["data"].get("path", "")),
        "task": content["task"],
        "label": (content.get("target") or {}).get("label"),
        "classes": classes,
        "samples": content["data"].get("samples"),
        "score": content.get("held_out"),
        "curve": content.get("validation"),
        "chance": chance_level(content.get("confidence")),
        "groups": _group_columns(groups, content.get("confidence")),
        "members": _member_columns(groups),
        "class_effects": _class_effects(groups),
        "statistics": _statistics(groups),
        "levels": _by_group(groups, "levels"),
        "heat": _heat(groups),
        "values": _values(pictures),
        "genome": content.get("genome"),
        "image": pictures.get("image"),
    }


def chance_level(confidence: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The largest confidence that groups of shuffled labels reach; None where nothing was shuffled."""
    if not confidence or not confidence.get("n_permutations"):
        return None
    reached = [value for values in confidence.get("permuted", ()) for value in values if value is not None]
    return {"level": max(reached, default=0.0), "n_permutations": confidence["n_permutations"]}


def group_name(group: Mapping[str, Any]) -> str:
    """What a group is called: by its support feature."""
    name = group["members"][0]["name"]
    return f"feature {group['support']}" if name is None else str(name)


def stem(path: str) -> str:
    """The name of the data, for files that are made of them."""
    name = PurePath(str(path)).name.split(".")[0]
    kept = "".join(letter if (letter.isalnum() and letter.isascii()) or letter in "-_" else "-" for letter in name)
    return kept.strip("-")[:60] or "coterie"


def _digits(value: Any, digits: int = 4) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")


def _group_columns(groups: Sequence[Mapping[str, Any]], confidence: Mapping[str, Any] | None) -> dict[str, Any]:
    judged = confidence or {}
    return {
        "n": len(groups),
        "support": [group["support"] for group in groups],
        "name": [group_name(group) for group in groups],
        # Results from before effects were kept have weights alone.
        "effect": [_digits(group["effect"] if group.get("effect") is not None else group["weight"]) for group in groups],
        "direction": [group.get("direction") for group in groups],
        "confidence": [_digits(group.get("confidence")) for group in groups],
        "size": [group["size"] for group in groups],
        "round": [group["round"] for group in groups],
        "purity": [_digits((group.get("purity") or {}).get("minimum"), 3) for group in groups],
        "expected_false": [_digits(value) for value in judged["expected_false"]] if judged.get("n_permutations") else None,
        "false_share": [_digits(value) for value in judged["false_share"]] if judged.get("n_permutations") else None,
    }


def _member_columns(groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    members = [member for group in groups for member in group["members"]]
    named = any(member["name"] is not None for member in members)
    shared = any(member.get("share") is not None for member in members)
    about = dict.fromkeys(name for member in members for name in member.get("annotations", ()))
    return {
        "start": np.concatenate([[0], np.cumsum([len(group["members"]) for group in groups])]).astype(int).tolist(),
        "feature": [member["feature"] for member in members],
        "name": [_name(member) for member in members] if named else None,
        "correlation": [None if member["correlation"] is None else round(member["correlation"], 3) for member in members],
        "share": [_digits(member.get("share"), 3) for member in members] if shared else None,
        "annotations": {name: [member.get("annotations", {}).get(name) for member in members] for name in about},
    }


def _name(member: Mapping[str, Any]) -> str:
    return str(member["feature"] if member["name"] is None else member["name"])


def _class_effects(groups: Sequence[Mapping[str, Any]]) -> list[list[float | None]] | None:
    found = [group.get("class_effects") for group in groups]
    kept = [row for row in found if row]
    if not kept or len(kept) < len(found) or len(found) * len(kept[0]) > _CLASS_EFFECTS:
        return None
    return [[_digits(value, 3) for value in row] for row in kept]


def _statistics(groups: Sequence[Mapping[str, Any]]) -> list[Any] | None:
    rows = _by_group(groups, "statistics")
    if rows is None:
        return None
    return [None if row is None else [_figures(own) for own in row] for row in rows]


def _figures(own: Mapping[str, Any]) -> dict[str, Any] | None:
    """The statistics of a class; None where it has no samples."""
    return {name: value if name == "n" else _digits(value) for name, value in own.items()} if own["n"] else None


def _by_group(groups: Sequence[Mapping[str, Any]], name: str) -> list[Any] | None:
    rows = [group.get(name) for group in groups]
    return rows if any(row is not None for row in rows) else None


def _heat(groups: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Correlations in hundredths, as bytes; members by their place among all."""
    kept = [number for number, group in enumerate(groups) if group.get("correlations")]
    if not kept:
        return None
    starts = np.concatenate([[0], np.cumsum([len(group["members"]) for group in groups])]).astype(int).tolist()
    return {
        "group": kept,
        "members": [[starts[number] + place for place in groups[number]["correlations"]["members"]] for number in kept],
        "hundredths": [_bytes(groups[number]["correlations"]["below_diagonal"]) for number in kept],
    }


def _bytes(values: Sequence[float | None]) -> str:
    numbers = np.array([0.0 if value is None else value for value in values])
    return base64.b64encode(np.round(100 * np.clip(numbers, -1, 1)).astype(np.int8).tobytes()).decode("ascii")


def _values(pictures: Mapping[str, Any]) -> dict[str, Any] | None:
    rows, target = pictures.get("values"), pictures.get("target")
    if not rows or not target:
        return None
    return {"group": list(range(len(rows))), "n": len(target), "target": [_digits(value, 5) for value in target], "rows": rows}
