"""All that a result says of one group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.groups.feature_groups import weights_by_text

if TYPE_CHECKING:
    from coterie.report.details import GroupDetails
    from coterie.report.result import Discovery

_DIGITS = 3


def group_content(result: Discovery, number: int) -> dict[str, Any]:
    """A group with its members, as ``result.json`` has it."""
    group, details = result.model.groups_[number], result.details
    effects = class_effects(result, number)
    effect = effect_of(group, details, number)
    return {
        "group": number + 1,
        "support": group.support,
        "name": group.names[0] if group.names is not None else None,
        "size": len(group),
        "weight": group.weight,
        "effect": effect,
        "direction": direction(result.task, effect, effects, classes_of(result)),
        "class_effects": effects,
        "score": group.score,
        "round": group.round,
        "purity": group.purity._asdict() if group.purity is not None else None,
        "confidence": group.confidence,
        "marks": None if group.marks is None else str(group.marks),
        "class_weights": weights_by_text(group),
        "statistics": _entry(None if details is None else details.statistics, number),
        "levels": _entry(None if details is None else details.levels, number),
        "correlations": _matrix(details, number),
        "members": [_member(result, group, position) for position in range(len(group))],
    }


def group_columns(result: Discovery, number: int) -> dict[str, Any]:
    """What a table says of a support feature besides the columns that groups have themselves."""
    group, details, classes = result.model.groups_[number], result.details, classes_of(result)
    effect, effects = effect_of(group, details, number), class_effects(result, number)
    words = direction(result.task, effect, effects, classes)
    columns: dict[str, Any] = {} if words is None else {"direction": words}
    if effects is not None and classes is not None:
        columns |= {f"effect[{name}]": value for name, value in zip(classes, effects, strict=True)}
    statistics = _entry(None if details is None else details.statistics, number)
    if statistics is not None and classes is not None:
        for name, own in zip(classes, statistics, strict=True):
            columns |= {f"mean[{name}]": own["mean"], f"sd[{name}]": own["sd"]}
    return columns


def effect_of(group: Any, details: GroupDetails | None, number: int) -> float | None:
    """What one standard deviation more of the support feature does; files from before it was kept need the details."""
    if group.effect is not None or details is None or not len(details.effects):
        return None if group.effect is None else float(group.effect)
    own = details.effects[number]
    return float(own[0] if len(own) == 1 else np.linalg.norm(own))


def class_effects(result: Discovery, number: int) -> list[float] | None:
    """The same for each of several classes, signed."""
    effects = np.empty((0, 1)) if result.details is None else result.details.effects
    return [float(value) for value in effects[number]] if effects.shape[1] > 2 else None


def classes_of(result: Discovery) -> list[str] | None:
    """The classes as text, in the order of the model's."""
    classes = getattr(result.model, "classes_", None)
    return None if classes is None else [str(label) for label in classes.tolist()]


def direction(task: str, effect: float | None, effects: Sequence[float] | None, classes: Sequence[str] | None) -> str | None:
    """What more of a feature speaks for, in words.

    Examples
    --------
    >>> from coterie.report.group_facts import direction
    >>> direction("classification", -0.3, None, ["benign", "malignant"])
    'more → benign'
    >>> direction("regression", 0.3, None, None)
    'more → higher'
    >>> direction("classification", 0.9, [0.2, -0.8, 0.1], ["a", "b", "c"])
    'more → a, less → b'
    """
    if effects is not None and classes is not None:
        highest, lowest = int(np.argmax(effects)), int(np.argmin(effects))
        words = [f"more → {classes[highest]}"] if effects[highest] > 0 else []
        if effects[lowest] < 0 and -effects[lowest] > max(effects[highest], 0.0):
            words.append(f"less → {classes[lowest]}")
        return ", ".join(words) or None
    if not effect:
        return None
    if task == "classification":
        return None if classes is None or len(classes) != 2 else f"more → {classes[effect > 0]}"
    if task == "regression":
        return f"more → {'higher' if effect > 0 else 'lower'}"
    return f"{'more' if effect > 0 else 'less'} → normal"


def _entry(entries: Any, number: int) -> Any:
    return entries[number] if entries is not None and number < len(entries) else None


def _matrix(details: GroupDetails | None, number: int) -> dict[str, Any] | None:
    """Correlations between members, below the diagonal, row by row."""
    kept = _entry(None if details is None else details.correlations, number)
    if kept is None:
        return None
    members, matrix = kept
    below = matrix[np.tril_indices(len(members), k=-1)]
    return {"members": members.tolist(), "below_diagonal": [round(float(value), _DIGITS) for value in below]}


def _member(result: Discovery, group: Any, position: int) -> dict[str, Any]:
    feature = int(group.members[position])
    return {
        "feature": feature,
        "name": group.names[position] if group.names is not None else None,
        "correlation": 1.0 if position == 0 else float(group.correlation[position - 1]),
        "share": None if group.shares is None else float(group.shares[position]),
        "annotations": annotations_of(result, group, position),
    }


def annotations_of(result: Discovery, group: Any, position: int) -> dict[str, Any]:
    """What is known of a feature besides its name: chromosome, position, alleles; of models from before only by the data."""
    if group.annotations is not None:
        return {name: values[position] for name, values in group.annotations.items()}
    return {str(name): values[int(group.members[position])] for name, values in result.feature_info.items()}
