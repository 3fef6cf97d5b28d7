"""The groups of a discovery as a table on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from coterie.cli.output import Output
from coterie.groups.columns import Column, listed, reading_table

if TYPE_CHECKING:
    from coterie.report import Discovery

_SHOWN_GROUPS = 20
_SHOWN_MEMBERS = 4


def show_groups(result: Discovery, voice: Output) -> None:
    """The groups as a table, and the main figures."""
    from coterie.report.details import context_of

    groups = result.model.groups_
    context = context_of(result.model, result.task, result.details, result.feature_info)
    columns, rows = reading_table("terminal", groups[:_SHOWN_GROUPS], context)
    table = Table(title="Groups, in order of discovery", title_justify="left")
    for column in columns:
        # Places are aligned like numbers, so that positions stand below each other.
        right = column.numeric or column.name == "place"
        table.add_column(column.title, justify="right" if right else "left", overflow="ellipsis" if right else "fold")
    for row in rows:
        table.add_row(*(_cell(column, value) for column, value in zip(columns, row, strict=True)))
    voice.show(table)
    if len(groups) > _SHOWN_GROUPS:
        voice.show(f"… and {len(groups) - _SHOWN_GROUPS:,} more groups in groups.csv.")
    if any(column.name == "p_value" for column in columns):
        voice.show("P-values are those of single features, from the same samples that chose them: too small to be tests.")
    if result.judgement:
        voice.show(result.judgement)
    else:
        voice.show("Figures of the training data alone; without --fast, held-out scores and confidences tell what holds.")
    voice.show("; ".join(f"{words}: {_figure(value)}" for words, value in result.summary.items() if value is not None))


def _cell(column: Column, value: Any) -> Text:
    """A cell without markup, whatever is in the names."""
    if column.kind == "members":
        names, correlation = value
        return Text(listed(names, correlation, _SHOWN_MEMBERS))
    return Text(column.text(value))


def _figure(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
