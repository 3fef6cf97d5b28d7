"""The registry of group columns: their values, their formats, and the outputs that contain them.

All outputs take their columns from here: ``groups.csv``, ``result.json``, :meth:`FeatureGroups.to_frame`, the terminal,
notebooks, the report and its script. To add a column, add an entry to :data:`COLUMNS` and its name to the rows of
:data:`SHOWN`. Data that a value requires beyond the group itself is passed in a :class:`Context`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from coterie.groups.effects import finite_exp
from coterie.markup import shortened

if TYPE_CHECKING:
    import pandas as pd

    from coterie.groups.feature_groups import FeatureGroup

T = TypeVar("T")
# JSON-like objects with values of any type: for reading, and newly created ones.
Content: TypeAlias = Mapping[str, Any]
Record: TypeAlias = dict[str, Any]
_DIGITS = 3  # decimals of correlations between members in result.json
_MISSING = "–"
Kind = Literal["text", "name", "count", "figure", "effect", "share", "correlation", "members"]
# Format specification of each kind. The script of the report has a function for each kind.
_FORMATS: Mapping[str, str] = {"count": ",", "figure": ".2g", "effect": "+.3g", "share": ".2f", "correlation": "+.2f"}


@dataclass(frozen=True, eq=False)
class Context:
    """Data of a result about the groups beyond the groups themselves. Sequences have one entry per group.

    Attributes
    ----------
    task : str or None
        ``"classification"``, ``"regression"``, ``"survival"`` or ``"one-class"``.
    classes : sequence of str or None
        The classes as text, in the order of the model.
    statistics : sequence or None
        Summary statistics of the support feature by class: n, mean, sd, quartiles.
    levels : sequence
        Counts by class, for support features with few distinct values.
    correlations : sequence
        Positions of some members and the matrix of their correlations, or None.
    feature_info : mapping of str to sequence of length n_features
        Annotations of all features, for groups without annotations.
    target_scale : mapping of str to float
        Scales of several targets, by which their effects are divided in comparisons.
    """

    task: str | None = None
    classes: Sequence[str] | None = None
    statistics: Sequence[Sequence[Mapping[str, float]]] | None = None
    levels: Sequence[Mapping[str, object] | None] = ()
    correlations: Sequence[tuple[np.ndarray, np.ndarray] | None] = ()
    feature_info: Mapping[str, Sequence[object]] = field(default_factory=dict)
    target_scale: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Item:
    """A group with its number (from 1) and context: the argument of a column's ``value``."""

    number: int
    group: FeatureGroup
    context: Context

    @property
    def annotations(self) -> dict[str, Sequence[object]]:
        """Annotations per member by name: those of the group or, if it has none, those of the data."""
        if self.group.annotations is not None:
            return dict(self.group.annotations)
        return _source_annotations(self)

    @property
    def class_effects(self) -> list[float] | None:
        """Effect of the group on each of more than two classes."""
        effects = self.group.class_effects
        return list(effects.values()) if effects is not None and len(effects) > 2 else None

    @property
    def scaled_effects(self) -> dict[str, float] | None:
        """Effect of the group on each of several targets, in units of its scale."""
        effects, scale = self.group.target_effects, self.context.target_scale
        return None if effects is None else {name: value / scale.get(name, 1.0) for name, value in effects.items()}

    @property
    def statistics(self) -> Sequence[Mapping[str, float]] | None:
        """Summary statistics of the support feature by class."""
        return _entry(self.context.statistics, self)


@dataclass(frozen=True)
class Column:
    """One column of the tables of groups.

    Attributes
    ----------
    name : str
        Name in files and data frames.
    title : str
        Heading in tables for display.
    description : str
        Meaning of the values, displayed in the report.
    value : callable
        Function from an :class:`Item` to its value. None means unknown.
    per : {"group", "support", "feature"}
        Whether the value belongs to the group (tables with one row per feature repeat it), to the support feature only (other
        rows are empty), or is a sequence with one value per member.
    kind : str
        Format of the values: text, name, count, figure, effect, share, correlation or members.
    missing : str
        Text for a missing value in a column with other values.
    cells : callable or None
        Function from an :class:`Item` to cells by column name, if the column represents several columns of a flat table, or
        none.
    record : callable or None
        Function from an :class:`Item` to its JSON value, if it differs from ``value``.
    """

    name: str
    title: str
    description: str
    value: Callable[[Item], object]
    per: Literal["group", "support", "feature"] = "group"
    kind: Kind = "text"
    missing: str = _MISSING
    cells: Callable[[Item], Mapping[str, object]] | None = None
    record: Callable[[Item], object] | None = None

    @property
    def numeric(self) -> bool:
        """Whether values are numbers, which are right-aligned."""
        return self.kind in _FORMATS

    def of_group(self, item: Item) -> object:
        """Return the value in a table with one row per group. Values per feature are those of the support feature."""
        value = self.value(item)
        return value[0] if self.per == "feature" and isinstance(value, Sequence) else value

    def for_json(self, item: Item) -> object:
        """Return the value in a JSON object of a group."""
        return self.of_group(item) if self.record is None else self.record(item)

    def of_members(self, item: Item, value: object) -> Iterable[object]:
        """Return the cells of a value in a table with one row per feature."""
        size = len(item.group)
        if self.per == "feature":
            return value if isinstance(value, Sequence) else (None,) * size
        return (value,) * size if self.per == "group" else (value, *(None,) * (size - 1))

    def flat(self, items: Sequence[Item]) -> dict[str, list[object]]:
        """Return the names and cells of this column in a table with one row per feature."""
        if self.cells is None:
            return {self.name: [cell for item in items for cell in self.of_members(item, self.value(item))]}
        parts = [(item, self.cells(item)) for item in items]
        names = dict.fromkeys(name for _, part in parts for name in part)
        return {name: [cell for item, part in parts for cell in self.of_members(item, part.get(name))] for name in names}

    def text(self, value: object) -> str:
        """Return a value as text for display."""
        if is_missing(value):
            return self.missing
        if self.kind == "effect" and value == 0:
            return "0"
        return format(value, _FORMATS[self.kind]) if self.numeric else str(value)


def data_frame(rows: Sequence[Content] | Content, columns: list[str] | None = None) -> pd.DataFrame:
    """Return a pandas data frame of rows, or of columns by name. Raise an ImportError without pandas."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("Data frames require pandas: pip install 'coterie[tabular]'.") from error
    return pd.DataFrame(rows, columns=columns)


def plain(value: object) -> Any:
    """Return a value as JSON types. Other types become text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def is_missing(value: object) -> bool:
    """Return True if a value is None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def items_of(groups: Sequence[FeatureGroup], context: Context | None = None) -> list[Item]:
    """Return the groups as arguments of the columns."""
    context = Context() if context is None else context
    return [Item(number, group, context) for number, group in enumerate(groups, start=1)]


def shown(place: str) -> list[Column]:
    """Return the columns of an output, in order.

    Parameters
    ----------
    place : str
        A key of :data:`SHOWN`.

    Examples
    --------
    >>> from coterie.groups.columns import shown
    >>> [column.title for column in shown("notebook")][:2]
    ['#', 'support feature']
    """
    return [COLUMNS[name] for name in SHOWN[place]]


def flat_columns(groups: Sequence[FeatureGroup], context: Context | None = None) -> dict[str, tuple[Column, list[object]]]:
    """Return the columns of the table with one row per feature, by name. The first column of a name is used."""
    items, found = items_of(groups, context), dict[str, tuple[Column, list[object]]]()
    for column in shown("table"):
        for name, cells in column.flat(items).items():
            found.setdefault(name, (column, cells))
    return found


def flat_table(groups: Sequence[FeatureGroup], context: Context | None = None) -> tuple[list[str], list[dict[str, object]]]:
    """Return column names and rows of the table with one row per feature, as in ``rows()`` and ``groups.csv``."""
    found = flat_columns(groups, context)
    names, cells = list(found), [cells for _, cells in found.values()]
    return names, [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]


def records(groups: Sequence[FeatureGroup], context: Context | None = None) -> list[dict[str, object]]:
    """Return one dictionary per group, as in ``result.json``."""
    columns = shown("result")
    return [{column.name: column.for_json(item) for column in columns} for item in items_of(groups, context)]


def reading_table(
    place: str, groups: Sequence[FeatureGroup], context: Context | None = None
) -> tuple[list[Column], list[list[object]]]:
    """Return columns and rows of a table for display with one row per group. Columns without values are omitted."""
    items, columns = items_of(groups, context), shown(place)
    rows = [[column.of_group(item) for column in columns] for item in items]
    kept = [k for k in range(len(columns)) if any(row[k] is not None for row in rows)]
    return [columns[k] for k in kept], [[row[k] for k in kept] for row in rows]


def listed(names: Sequence[str], correlation: Sequence[float], most: int, letters: int | None = None) -> str:
    """Return text with the first ``most`` affiliated features, their correlations, and the number of omitted features.

    Names are shortened to ``letters`` characters.

    Examples
    --------
    >>> from coterie.groups.columns import listed
    >>> listed(["a", "b", "c"], [0.9, -0.8, 0.7], 2)
    'a (+0.90), b (-0.80), … 1 more'
    """
    shown_names = names[:most] if letters is None else [shortened(name, letters) for name in names[:most]]
    parts = [f"{name} ({value:+.2f})" for name, value in zip(shown_names, correlation[:most], strict=True)]
    return ", ".join([*parts, f"… {len(names) - most:,} more"] if len(names) > most else parts) or _MISSING


def direction(
    task: str | None, effect: float | None, effects: Sequence[float] | None, classes: Sequence[str] | None
) -> str | None:
    """Return, in words, the class or direction that larger values of a feature indicate.

    Examples
    --------
    >>> from coterie.groups.columns import direction
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
    if not effect or task is None:
        return None
    if task == "classification":
        return None if classes is None or len(classes) != 2 else f"more → {classes[int(effect > 0)]}"
    if task == "regression":
        return f"more → {'higher' if effect > 0 else 'lower'}"
    if task == "survival":
        return f"more → {'earlier' if effect > 0 else 'later'}"
    return f"{'more' if effect > 0 else 'less'} → normal"


def place(annotations: Mapping[str, object]) -> str | None:
    """Return chromosome, position and alleles of a feature as text.

    Examples
    --------
    >>> from coterie.groups.columns import place
    >>> place({"chromosome": "16", "position": 53786615, "allele_1": "A", "allele_2": "G"})
    '16:53,786,615 A/G'
    """
    chromosome, position = annotations.get("chromosome"), annotations.get("position")
    if chromosome is None:
        return None
    alleles = [str(annotations[name]) for name in ("allele_1", "allele_2") if annotations.get(name) is not None]
    number = f"{position:,}" if isinstance(position, (int, float, np.number)) else position
    where = f"{chromosome}" if is_missing(position) else f"{chromosome}:{number}"
    return f"{where} {'/'.join(alleles)}" if len(alleles) == 2 else where


def weights_by_text(group: FeatureGroup) -> dict[str, float] | None:
    """Return the weights by class, with labels as text for JSON, or None if there are none."""
    return None if group.class_weights is None else {str(label): value for label, value in group.class_weights.items()}


def _entry(entries: Sequence[T] | None, item: Item) -> T | None:
    return entries[item.number - 1] if entries is not None and item.number <= len(entries) else None


def _source_annotations(item: Item) -> dict[str, Sequence[object]]:
    """Return annotations of the data for the members of a group that has none of its own."""
    if item.group.annotations is not None:
        return {}
    members = item.group.members.tolist()
    return {str(name): [values[j] for j in members] for name, values in item.context.feature_info.items()}


def _first(item: Item) -> dict[str, object]:
    return {name: values[0] for name, values in item.annotations.items()}


def _scores(item: Item) -> list[float]:
    others = item.group.affiliated_scores
    return [item.group.score, *(np.full(len(item.group) - 1, np.nan) if others is None else others).tolist()]


def _direction(item: Item) -> str | None:
    words = direction(item.context.task, item.group.effect, item.class_effects, item.context.classes)
    return words if words is None or item.group.main_target is None else f"{words} {item.group.main_target}"


def _limit(item: Item, side: int) -> float | None:
    interval = item.group.effect_interval
    return None if interval is None else interval[side]


def _interval(item: Item) -> str | None:
    """Return the ratio (odds, hazard, rate or mean), or the effect, with its interval, as text."""
    group = item.group
    if group.effect is None or group.effect_interval is None:
        return None
    low, high = group.effect_interval
    known, task = group.ratio_kind, item.context.task
    if known is None and group.odds_ratio is None and task != "survival":  # groups of files lack the kind
        found = f"{group.effect:+.3g} ({low:+.3g} to {high:+.3g})"
    else:
        found = f"{finite_exp(group.effect):.3g} ({finite_exp(low):.3g} to {finite_exp(high):.3g})"
    return found if group.main_target is None else f"{group.main_target}: {found}"


def _ratio_cells(item: Item) -> dict[str, object]:
    """Return the ratio and its interval as columns of a flat table; none for other effects. The odds have a column."""
    group, limits = item.group, item.group.ratio_interval
    known = {"hazard_ratio": group.hazard_ratio, "rate_ratio": group.rate_ratio, "mean_ratio": group.mean_ratio}
    found: dict[str, object] = {name: value for name, value in known.items() if value is not None}
    return found if limits is None else {**found, "ratio_low": limits[0], "ratio_high": limits[1]}


def _ratio_limit(item: Item, side: int) -> float | None:
    limits = item.group.ratio_interval
    return None if limits is None else limits[side]


def _direction_cells(item: Item) -> dict[str, object]:
    words = _direction(item)
    return {} if words is None else {"direction": words}


def _class_weights(item: Item) -> dict[str, float]:
    """Return one column per class if there are more than two. With two, one weight is the other's negative."""
    weights = item.group.class_weights
    return {f"weight[{label}]": value for label, value in weights.items()} if weights and len(weights) > 2 else {}


def _class_effects(item: Item) -> dict[str, float]:
    effects, classes = item.class_effects, item.context.classes
    if effects is None or classes is None:
        return {}
    return {f"effect[{name}]": value for name, value in zip(classes, effects, strict=True)}


def _target_effects(item: Item) -> dict[str, float]:
    effects = item.group.target_effects
    return {} if effects is None else {f"effect[{name}]": value for name, value in effects.items()}


def _statistics(item: Item) -> dict[str, float]:
    figures, classes = item.statistics, item.context.classes
    if figures is None or classes is None:
        return {}
    by_class = zip(classes, figures, strict=True)
    return {f"{word}[{name}]": own[word] for name, own in by_class for word in ("mean", "sd")}


def _correlations(item: Item) -> dict[str, object] | None:
    """Return the correlations between members below the diagonal, row by row."""
    kept = _entry(item.context.correlations, item)
    if kept is None:
        return None
    members, matrix = kept
    below = matrix[np.tril_indices(len(members), k=-1)]
    return {"members": members.tolist(), "below_diagonal": [round(float(value), _DIGITS) for value in below]}


def _blocks(item: Item) -> str | None:
    """Return the blocks (:mod:`coterie.data.blocks`) of the members, that of the support feature first."""
    blocks = item.annotations.get("block")
    return None if blocks is None else ", ".join(dict.fromkeys(map(str, blocks)))


def _annotations(item: Item) -> list[dict[str, object]]:
    known = item.annotations
    return [{name: values[k] for name, values in known.items()} for k in range(len(item.group))]


def _members(item: Item) -> list[dict[str, object]]:
    columns = shown("members")
    cells = [column.of_members(item, column.value(item)) for column in columns]
    return [dict(zip(SHOWN["members"], row, strict=True)) for row in zip(*cells, strict=True)]


def _filled_by_report(item: Item) -> None:
    """Return None: ``report/payload.py`` takes these values from the confidences in ``result.json``."""


COLUMNS: Mapping[str, Column] = {
    column.name: column
    for column in (
        Column("group", "#", "", lambda item: item.number, kind="count"),
        Column("support", "support index", "Index of the support feature.", lambda item: item.group.support, kind="count"),
        Column("label", "support feature", "", lambda item: item.group.labels[0], kind="name"),
        Column("block", "block", "Matrices of the members, that of the support feature first.", _blocks),
        Column("place", "position", "", lambda item: place(_first(item))),
        Column("p_value", "p-value", "", lambda item: item.annotations.get("p_value"), per="feature", kind="figure"),
        Column("direction", "direction", "Class or direction that larger values of the support feature indicate.", _direction,
               per="support", cells=_direction_cells),
        Column("weight", "weight", "Weight of the support feature in the model.", lambda item: item.group.weight,
               per="support", kind="figure"),
        Column("effect", "effect",
               "Log-odds, log hazard ratio, log ratio of rates or means, or units of the target, per standard deviation.",
               lambda item: item.group.effect, per="support", kind="effect"),
        Column("effect_low", "effect from", "Lower limit of the 95 % interval of the effect, adjusted for the selection.",
               lambda item: _limit(item, 0), per="support", kind="figure"),
        Column("effect_high", "effect to", "Upper limit of the 95 % interval of the effect, adjusted for the selection.",
               lambda item: _limit(item, 1), per="support", kind="figure"),
        Column("odds_ratio", "odds ratio", "Factor of the odds per standard deviation of the support feature.",
               lambda item: item.group.odds_ratio, per="support", kind="figure"),
        Column("hazard_ratio", "hazard ratio", "Factor of the hazard per standard deviation of the support feature.",
               lambda item: item.group.hazard_ratio, per="support", kind="figure", cells=lambda item: {}),
        Column("rate_ratio", "rate ratio", "Factor of the rate of counts per standard deviation of the support feature.",
               lambda item: item.group.rate_ratio, per="support", kind="figure", cells=lambda item: {}),
        Column("mean_ratio", "ratio of means", "Factor of the mean per standard deviation of the support feature.",
               lambda item: item.group.mean_ratio, per="support", kind="figure", cells=lambda item: {}),
        Column("ratio_low", "ratio from", "Lower limit of the 95 % interval of the odds, hazard, rate or mean ratio.",
               lambda item: _ratio_limit(item, 0), per="support", kind="figure", cells=_ratio_cells),
        Column("ratio_high", "ratio to", "Upper limit of the 95 % interval of the odds, hazard, rate or mean ratio.",
               lambda item: _ratio_limit(item, 1), per="support", kind="figure", cells=lambda item: {}),
        Column("interval", "ratio (odds, hazard, rate or mean), or effect, with 95 % interval",
               "The interval does not account for the selection of the features.", _interval),
        Column("used", "used", "Whether the model has a nonzero weight of a member.", lambda item: item.group.used),
        Column("note", "note", "Whether the model does not use the group, or weight and effect have opposite signs.",
               lambda item: item.group.note, per="support",
               cells=lambda item: {} if item.group.note is None else {"note": item.group.note}),
        Column("class_effects", "effect by class", "Effect on each class against the others.",
               lambda item: item.class_effects, per="support", kind="effect", cells=_class_effects),
        Column("main_target", "target", "Target of the effect: the one with the largest effect relative to its scale.",
               lambda item: item.group.main_target, per="support",
               cells=lambda item: {} if item.group.main_target is None else {"main_target": item.group.main_target}),
        Column("target_effects", "effect by target", "Effect on each target, in its units.",
               lambda item: None if item.group.target_effects is None else list(item.group.target_effects.values()),
               per="support", kind="effect", cells=_target_effects),
        Column("scaled_effects", "effect by target", "Effect on each target, in standard deviations of the target.",
               lambda item: None if item.scaled_effects is None else list(item.scaled_effects.values()),
               per="support", kind="effect", cells=lambda item: {}),
        Column("marks", "marks", "Class that larger values of the support feature indicate.",
               lambda item: item.group.marks, per="support",
               cells=lambda item: {"marks": item.group.marks} if item.group.class_weights else {},
               record=lambda item: None if item.group.marks is None else str(item.group.marks)),
        Column("class_weights", "weight by class", "Signed weight for each class.", lambda item: item.group.class_weights,
               per="support", kind="figure", cells=_class_weights, record=lambda item: weights_by_text(item.group)),
        Column("round", "selected in round", "", lambda item: item.group.round, kind="count"),
        Column("confidence", "confidence", "Share of half-samples in which any member of the group is selected.",
               lambda item: item.group.confidence, kind="share", missing="fixed"),
        Column("q_value", "q-value",
               "Estimated share of false groups (false discovery rate) among all groups with at least this evidence.",
               lambda item: item.group.q_value, kind="figure", missing="fixed"),
        Column("group_p_value", "p-value of the group",
               "Family-wise p-value: among all groups of at most 0.05, any is false with a probability of at most 0.05.",
               lambda item: item.group.p_value, kind="figure", missing="fixed"),
        Column("selected", "selected", "Whether the q-value is at most the chosen false discovery rate.",
               lambda item: item.group.selected),
        Column("expected_false", "by chance",
               "Mean number of groups that reach this confidence with permuted labels.", _filled_by_report,
               kind="figure"),
        Column("false_share", "estimated share of false groups at this confidence", "", _filled_by_report, kind="figure"),
        Column("purity", "smallest correlation between members", "",
               lambda item: None if item.group.purity is None else item.group.purity.minimum, kind="share",
               record=lambda item: None if item.group.purity is None else item.group.purity._asdict()),
        Column("size", "features", "", lambda item: len(item.group), kind="count"),
        Column("affiliated", "affiliated (correlation)", "",
               lambda item: (item.group.labels[1:], item.group.correlation.tolist()), kind="members"),
        Column("statistics", "by class", "Summary statistics of the support feature by class.", lambda item: item.statistics,
               per="support", kind="figure", cells=_statistics),
        Column("levels", "values by class", "", lambda item: _entry(item.context.levels, item)),
        Column("correlations", "correlations", "Correlations between members.", _correlations),
        Column("members", "members", "", _members),
        # Columns with one value per feature
        Column("feature", "index", "Index of the feature.", lambda item: item.group.members.tolist(), per="feature"),
        Column("name", "name", "", lambda item: item.group.names, per="feature", kind="name"),
        Column("member", "feature", "", lambda item: item.group.labels, per="feature", kind="name"),
        Column("role", "role", "", lambda item: ["support", *["affiliated"] * (len(item.group) - 1)], per="feature"),
        Column("correlation", "correlation", "Correlation with the support feature.",
               lambda item: [1.0, *item.group.correlation.tolist()], per="feature", kind="correlation"),
        Column("score", "score", "", _scores, per="feature", kind="figure"),
        Column("share", "share", "Share of half-samples in which this feature is selected.",
               lambda item: None if item.group.shares is None else item.group.shares.tolist(), per="feature", kind="share"),
        Column("probability", "probability", "Probability that this member carries the signal of the group.",
               lambda item: None if item.group.probabilities is None else item.group.probabilities.tolist(),
               per="feature", kind="share"),
        Column("annotations", "annotations", "", _annotations, per="feature",
               cells=lambda item: item.group.annotations or {}),
        Column("feature_info", "annotations", "", _source_annotations, per="feature", cells=_source_annotations),
    )
}  # fmt: skip

SHOWN: Mapping[str, Sequence[str]] = {
    # One row per feature: rows(), to_frame() and, with a context, groups.csv.
    "table": (
        "group", "feature", "name", "role", "correlation", "score", "weight", "effect", "effect_low", "effect_high",
        "odds_ratio", "ratio_low", "main_target", "round", "confidence", "q_value", "group_p_value", "selected", "share",
        "probability", "marks", "class_weights", "annotations", "direction", "class_effects", "target_effects", "note",
        "statistics", "feature_info",
    ),
    # One object per group in result.json, and one per member within it.
    "result": (
        "group", "support", "name", "block", "size", "weight", "effect", "effect_low", "effect_high", "odds_ratio",
        "hazard_ratio", "rate_ratio", "mean_ratio", "ratio_low", "ratio_high", "interval", "direction", "class_effects",
        "main_target", "target_effects", "scaled_effects", "used", "note", "score", "round", "purity", "confidence", "q_value",
        "group_p_value", "selected", "marks", "class_weights", "statistics", "levels", "correlations", "members",
    ),
    "members": ("feature", "name", "correlation", "share", "probability", "annotations"),
    # One object per group in to_json(), which adds lists over the members: affiliated, correlation, names, shares,
    # probabilities.
    "json": (
        "support", "affiliated", "correlation", "names", "score", "weight", "effect", "effect_low", "effect_high",
        "odds_ratio", "used", "round", "purity", "confidence", "q_value", "group_p_value", "shares", "probabilities", "marks",
        "class_weights",
    ),
    # Tables for display with one row per group, and the table of one group with one row per feature.
    "terminal": (
        "group", "confidence", "q_value", "label", "block", "place", "p_value", "effect", "main_target", "marks", "size",
        "affiliated",
    ),
    "notebook": (
        "group", "label", "block", "direction", "effect", "main_target", "confidence", "q_value", "size", "affiliated",
    ),
    "notebook group": ("member", "role", "correlation", "share", "probability"),
    # The report: its table, the details and members of an open row, and the download. Values are those of result.json under
    # the same name. report/payload.py adds label, place and the values of confidences.
    "page": ("group", "label", "block", "place", "direction", "effect", "main_target", "q_value", "confidence", "size"),
    "page details": ("interval", "note", "group_p_value", "purity", "round", "expected_false", "false_share"),
    "page members": ("correlation", "share", "probability"),
    "page download": (
        "group", "feature", "name", "role", "correlation", "share", "probability", "effect", "effect_low", "effect_high",
        "odds_ratio", "direction", "note", "q_value", "group_p_value", "confidence", "expected_false",
    ),
}  # fmt: skip
# Names that annotations cannot have in a flat table: those of columns that represent a single column.
RESERVED = frozenset(column.name for column in shown("table") if column.cells is None) | {
    "marks", "direction", "note", "main_target", "hazard_ratio", "rate_ratio", "mean_ratio", "ratio_low",
    "ratio_high",
}  # fmt: skip
