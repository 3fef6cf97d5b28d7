"""The registry of group columns: what is known of a group, how it is written, and where it is shown.

Every place that shows groups takes its columns from here: ``groups.csv``, ``result.json``, :meth:`FeatureGroups.to_frame`,
the terminal, notebooks, the report and its script. A new column is an entry of :data:`COLUMNS` and its name in the rows of
:data:`SHOWN`, nothing else. What a value needs beyond the group itself comes in a :class:`Context`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from coterie.markup import shortened

if TYPE_CHECKING:
    import pandas as pd

    from coterie.groups.feature_groups import FeatureGroup

T = TypeVar("T")
# Objects as JSON has them, to be read, and those that are made; their values are of any kind.
Content: TypeAlias = Mapping[str, Any]
Record: TypeAlias = dict[str, Any]
_DIGITS = 3  # of correlations between members in result.json
_MISSING = "–"
Kind = Literal["text", "name", "count", "figure", "effect", "share", "correlation", "members"]
# How Python writes the values of each kind; the script of the report has a function for each.
_SPECS: Mapping[str, str] = {"count": ",", "figure": ".2g", "effect": "+.3g", "share": ".2f", "correlation": "+.2f"}


@dataclass(frozen=True, eq=False)
class Context:
    """What a result knows about the groups beyond the groups themselves; sequences have one entry per group.

    Attributes
    ----------
    task : str or None
        ``"classification"``, ``"regression"`` or ``"one-class"``.
    classes : sequence of str or None
        The classes as text, in the order of the model.
    class_effects : ndarray of shape (n_groups, n_classes) or None
        Signed effects by class, for more than two classes.
    statistics : sequence or None
        Figures of the support feature by class: n, mean, sd, quartiles.
    levels : sequence
        Counts by class, where a support feature has few values.
    correlations : sequence
        Positions of some members and the matrix of their correlations, or None.
    feature_info : mapping of str to sequence of length n_features
        Annotations of all features, for groups that have none of their own.
    """

    task: str | None = None
    classes: Sequence[str] | None = None
    class_effects: np.ndarray | None = None
    statistics: Sequence[Sequence[Mapping[str, float]]] | None = None
    levels: Sequence[Mapping[str, object] | None] = ()
    correlations: Sequence[tuple[np.ndarray, np.ndarray] | None] = ()
    feature_info: Mapping[str, Sequence[object]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Item:
    """A group with its number (from 1) and context: the argument of a column's ``value``."""

    number: int
    group: FeatureGroup
    context: Context

    @property
    def annotations(self) -> dict[str, Sequence[object]]:
        """Values per member by name: those of the group, or else those of the data."""
        if self.group.annotations is not None:
            return dict(self.group.annotations)
        return _taken(self)

    @property
    def class_effects(self) -> list[float] | None:
        """Signed effect of the group on each of more than two classes."""
        effects = self.context.class_effects
        return None if effects is None else [float(value) for value in effects[self.number - 1]]

    @property
    def statistics(self) -> Sequence[Mapping[str, float]] | None:
        """Figures of the support feature by class."""
        return _entry(self.context.statistics, self)


@dataclass(frozen=True)
class Column:
    """One column of the tables of groups.

    Attributes
    ----------
    name : str
        Its name in files and data frames.
    title : str
        Its heading in tables for reading.
    description : str
        What the values mean; shown in the report.
    value : callable
        The value of an :class:`Item`. None: not known.
    per : {"group", "support", "feature"}
        Whether the value is of the group (in tables with one row per feature it is repeated), of the support feature alone
        (other rows are empty), or a sequence with one value per member.
    kind : str
        How values are written: text, name, count, figure, effect, share, correlation or members.
    missing : str
        Text for a missing value, in columns that have others.
    cells : callable or None
        Cells by column name, where the column stands for several of a flat table, or for none.
    record : callable or None
        The value for JSON, where it is another one.
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
        """Whether values are numbers, which stand to the right."""
        return self.kind in _SPECS

    def of_group(self, item: Item) -> object:
        """The value in a table with one row per group: that of the support feature."""
        value = self.value(item)
        return value[0] if self.per == "feature" and isinstance(value, Sequence) else value

    def for_json(self, item: Item) -> object:
        """The value in an object per group."""
        return self.of_group(item) if self.record is None else self.record(item)

    def of_members(self, item: Item, value: object) -> Iterable[object]:
        """A value in the rows of a table with one row per feature."""
        size = len(item.group)
        if self.per == "feature":
            return value if isinstance(value, Sequence) else (None,) * size
        return (value,) * size if self.per == "group" else (value, *(None,) * (size - 1))

    def flat(self, items: Sequence[Item]) -> dict[str, list[object]]:
        """The columns that it stands for in a table with one row per feature, with their values."""
        if self.cells is None:
            return {self.name: [cell for item in items for cell in self.of_members(item, self.value(item))]}
        parts = [(item, self.cells(item)) for item in items]
        names = dict.fromkeys(name for _, part in parts for name in part)
        return {name: [cell for item, part in parts for cell in self.of_members(item, part.get(name))] for name in names}

    def text(self, value: object) -> str:
        """A value as tables for reading have it."""
        if is_missing(value):
            return self.missing
        if self.kind == "effect" and value == 0:
            return "0"
        return format(value, _SPECS[self.kind]) if self.numeric else str(value)


def data_frame(rows: Sequence[Content] | Content, columns: list[str] | None = None) -> pd.DataFrame:
    """A pandas data frame of rows, or of columns by name; an error names the extra that brings pandas."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("A data frame needs pandas: pip install 'coterie[tabular]'.") from error
    return pd.DataFrame(rows, columns=columns)


def plain(value: object) -> Any:
    """Values that JSON has; anything else as text."""
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
    """Whether a value is None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def items_of(groups: Sequence[FeatureGroup], context: Context | None = None) -> list[Item]:
    """The groups as the columns take them."""
    context = Context() if context is None else context
    return [Item(number, group, context) for number, group in enumerate(groups, start=1)]


def shown(place: str) -> list[Column]:
    """The columns of a place, in order.

    Parameters
    ----------
    place : str
        A key of :data:`SHOWN`.

    Examples
    --------
    >>> from coterie.groups.columns import shown
    >>> [column.title for column in shown("notebook")]
    ['#', 'support feature', 'effect', 'confidence', 'features', 'affiliated (correlation)']
    """
    return [COLUMNS[name] for name in SHOWN[place]]


def flat_columns(groups: Sequence[FeatureGroup], context: Context | None = None) -> dict[str, tuple[Column, list[object]]]:
    """The columns of the table with one row per feature, by name; the first of a name counts."""
    items, found = items_of(groups, context), dict[str, tuple[Column, list[object]]]()
    for column in shown("table"):
        for name, cells in column.flat(items).items():
            found.setdefault(name, (column, cells))
    return found


def flat_table(groups: Sequence[FeatureGroup], context: Context | None = None) -> tuple[list[str], list[dict[str, object]]]:
    """Names of the columns and rows of the table with one row per feature: ``rows()`` and ``groups.csv``."""
    found = flat_columns(groups, context)
    names, cells = list(found), [cells for _, cells in found.values()]
    return names, [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]


def records(groups: Sequence[FeatureGroup], context: Context | None = None) -> list[dict[str, object]]:
    """One dictionary per group, as ``result.json`` has them."""
    columns = shown("result")
    return [{column.name: column.for_json(item) for column in columns} for item in items_of(groups, context)]


def reading_table(
    place: str, groups: Sequence[FeatureGroup], context: Context | None = None
) -> tuple[list[Column], list[list[object]]]:
    """Columns and rows of a table for reading with one row per group; columns without any value are left out."""
    items, columns = items_of(groups, context), shown(place)
    rows = [[column.of_group(item) for column in columns] for item in items]
    kept = [k for k in range(len(columns)) if any(row[k] is not None for row in rows)]
    return [columns[k] for k in kept], [[row[k] for k in kept] for row in rows]


def listed(names: Sequence[str], correlation: Sequence[float], most: int, letters: int | None = None) -> str:
    """Affiliated features with their correlations, and how many are left out; names of at most so many letters.

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
    """What larger values of a feature speak for, in words.

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
    return f"{'more' if effect > 0 else 'less'} → normal"


def place(annotations: Mapping[str, object]) -> str | None:
    """Chromosome, position and alleles of a feature in a word.

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
    """The weights for each class under its label as text, as JSON wants them; None where there are none."""
    return None if group.class_weights is None else {str(label): value for label, value in group.class_weights.items()}


def _entry(entries: Sequence[T] | None, item: Item) -> T | None:
    return entries[item.number - 1] if entries is not None and item.number <= len(entries) else None


def _taken(item: Item) -> dict[str, Sequence[object]]:
    """What the data know of the members of a group without annotations."""
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
    return direction(item.context.task, item.group.effect, item.class_effects, item.context.classes)


def _direction_cells(item: Item) -> dict[str, object]:
    words = _direction(item)
    return {} if words is None else {"direction": words}


def _class_weights(item: Item) -> dict[str, float]:
    """A column per class where there are more than two: of two, the weights are each other's negative."""
    weights = item.group.class_weights
    return {f"weight[{label}]": value for label, value in weights.items()} if weights and len(weights) > 2 else {}


def _class_effects(item: Item) -> dict[str, float]:
    effects, classes = item.class_effects, item.context.classes
    if effects is None or classes is None:
        return {}
    return {f"effect[{name}]": value for name, value in zip(classes, effects, strict=True)}


def _statistics(item: Item) -> dict[str, float]:
    figures, classes = item.statistics, item.context.classes
    if figures is None or classes is None:
        return {}
    by_class = zip(classes, figures, strict=True)
    return {f"{word}[{name}]": own[word] for name, own in by_class for word in ("mean", "sd")}


def _correlations(item: Item) -> dict[str, object] | None:
    """Correlations between members, below the diagonal, row by row."""
    kept = _entry(item.context.correlations, item)
    if kept is None:
        return None
    members, matrix = kept
    below = matrix[np.tril_indices(len(members), k=-1)]
    return {"members": members.tolist(), "below_diagonal": [round(float(value), _DIGITS) for value in below]}


def _annotations(item: Item) -> list[dict[str, object]]:
    known = item.annotations
    return [{name: values[k] for name, values in known.items()} for k in range(len(item.group))]


def _members(item: Item) -> list[dict[str, object]]:
    columns = shown("members")
    cells = [column.of_members(item, column.value(item)) for column in columns]
    return [dict(zip(SHOWN["members"], row, strict=True)) for row in zip(*cells, strict=True)]


def _of_confidence(item: Item) -> None:
    """The part of ``result.json`` on confidences has these values; the page takes them from there."""


COLUMNS: Mapping[str, Column] = {
    column.name: column
    for column in (
        Column("group", "#", "", lambda item: item.number, kind="count"),
        Column("support", "support index", "Index of the support feature.", lambda item: item.group.support, kind="count"),
        Column("label", "support feature", "", lambda item: item.group.labels[0], kind="name"),
        Column("place", "place", "", lambda item: place(_first(item))),
        Column("p_value", "p-value", "", lambda item: item.annotations.get("p_value"), per="feature", kind="figure"),
        Column("direction", "direction", "What larger values of the support feature speak for.", _direction,
               per="support", cells=_direction_cells),
        Column("weight", "weight", "Weight of the support feature in the model.", lambda item: item.group.weight,
               per="support", kind="figure"),
        Column("effect", "effect", "Weight on the standardised feature, so that groups compare.",
               lambda item: item.group.effect, per="support", kind="effect"),
        Column("class_effects", "effect by class", "Signed effect on each of several classes.",
               lambda item: item.class_effects, per="support", kind="effect", cells=_class_effects),
        Column("marks", "marks", "The class that larger values of the support feature speak for.",
               lambda item: item.group.marks, per="support",
               cells=lambda item: {"marks": item.group.marks} if item.group.class_weights else {},
               record=lambda item: None if item.group.marks is None else str(item.group.marks)),
        Column("class_weights", "weight by class", "Signed weight for each class.", lambda item: item.group.class_weights,
               per="support", kind="figure", cells=_class_weights, record=lambda item: weights_by_text(item.group)),
        Column("round", "chosen in round", "", lambda item: item.group.round, kind="count"),
        Column("confidence", "confidence", "Share of half-samples in which any member of the group is chosen.",
               lambda item: item.group.confidence, kind="share", missing="fixed"),
        Column("expected_false", "by chance",
               "Mean number of groups that reach this confidence when the labels are shuffled.", _of_confidence,
               kind="figure"),
        Column("false_share", "estimated share of false groups at this confidence", "", _of_confidence, kind="figure"),
        Column("purity", "smallest correlation between members", "",
               lambda item: None if item.group.purity is None else item.group.purity.minimum, kind="share",
               record=lambda item: None if item.group.purity is None else item.group.purity._asdict()),
        Column("size", "features", "", lambda item: len(item.group), kind="count"),
        Column("affiliated", "affiliated (correlation)", "",
               lambda item: (item.group.labels[1:], item.group.correlation.tolist()), kind="members"),
        Column("statistics", "by class", "Figures of the support feature by class.", lambda item: item.statistics,
               per="support", kind="figure", cells=_statistics),
        Column("levels", "values by class", "", lambda item: _entry(item.context.levels, item)),
        Column("correlations", "correlations", "Correlations between members.", _correlations),
        Column("members", "members", "", _members),
        # Of each feature
        Column("feature", "index", "Index of the feature.", lambda item: item.group.members.tolist(), per="feature"),
        Column("name", "name", "", lambda item: item.group.names, per="feature", kind="name"),
        Column("member", "feature", "", lambda item: item.group.labels, per="feature", kind="name"),
        Column("role", "role", "", lambda item: ["support", *["affiliated"] * (len(item.group) - 1)], per="feature"),
        Column("correlation", "correlation", "Correlation with the support feature.",
               lambda item: [1.0, *item.group.correlation.tolist()], per="feature", kind="correlation"),
        Column("score", "score", "", _scores, per="feature", kind="figure"),
        Column("share", "share", "Share of half-samples that choose this very feature.",
               lambda item: None if item.group.shares is None else item.group.shares.tolist(), per="feature", kind="share"),
        Column("annotations", "annotations", "", _annotations, per="feature",
               cells=lambda item: item.group.annotations or {}),
        Column("feature_info", "annotations", "", _taken, per="feature", cells=_taken),
    )
}  # fmt: skip

SHOWN: Mapping[str, Sequence[str]] = {
    # One row per feature: rows(), to_frame() and, with a context, groups.csv
    "table": (
        "group", "feature", "name", "role", "correlation", "score", "weight", "effect", "round", "confidence", "share",
        "marks", "class_weights", "annotations", "direction", "class_effects", "statistics", "feature_info",
    ),
    # One object per group in result.json, and one per member in it
    "result": (
        "group", "support", "name", "size", "weight", "effect", "direction", "class_effects", "score", "round", "purity",
        "confidence", "marks", "class_weights", "statistics", "levels", "correlations", "members",
    ),
    "members": ("feature", "name", "correlation", "share", "annotations"),
    # One object per group in to_json(), which adds the lists of members: affiliated, correlation, names, shares
    "json": (
        "support", "affiliated", "correlation", "names", "score", "weight", "effect", "round", "purity", "confidence",
        "shares", "marks", "class_weights",
    ),
    # Tables for reading, with one row per group, and that of one group with one row per feature
    "terminal": ("group", "confidence", "label", "place", "p_value", "effect", "marks", "size", "affiliated"),
    "notebook": ("group", "label", "effect", "confidence", "size", "affiliated"),
    "notebook group": ("member", "role", "correlation", "share"),
    # The report: its table, what an opened row says below the members and of them, and what can be downloaded. Values are
    # those that result.json has under the name; report/payload.py adds label, place and those of confidences.
    "page": ("group", "label", "place", "direction", "effect", "confidence", "expected_false", "size"),
    "page details": ("purity", "round", "false_share"),
    "page members": ("correlation", "share"),
    "page download": (
        "group", "feature", "name", "role", "correlation", "share", "effect", "direction", "confidence", "expected_false",
    ),
}  # fmt: skip
# Names that annotations cannot have in a flat table: those of columns that stand for themselves alone.
RESERVED = frozenset(column.name for column in shown("table") if column.cells is None) | {"marks", "direction"}
