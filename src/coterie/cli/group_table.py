"""The groups of a discovery as a table on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from coterie.cli.output import Output

if TYPE_CHECKING:
    from coterie.report import Discovery

_SHOWN_GROUPS = 20
_SHOWN_MEMBERS = 4


def show_groups(result: Discovery, voice: Output) -> None:
    """The groups as a table, and the main figures."""
    groups = result.model.groups_
    table = Table(title="Groups, in order of discovery", title_justify="left")
    confidence = result.confidence
    table.add_column("#", justify="right")
    if confidence is not None:
        table.add_column("confidence", justify="right")
    table.add_column("support feature", overflow="fold")
    known = groups.annotations
    places = "chromosome" in known and "position" in known
    if places:
        table.add_column("place", justify="right")
    if "p_value" in known:
        table.add_column("p-value", justify="right")
    table.add_column("effect", justify="right")
    marked = any(group.marks is not None for group in groups)
    if marked:
        table.add_column("marks", overflow="fold")
    table.add_column("features", justify="right")
    table.add_column("affiliated (correlation)", overflow="fold")
    for number, group in enumerate(groups[:_SHOWN_GROUPS], start=1):
        support, *others = group.labels
        shown = [f"{name} ({r:+.2f})" for name, r in zip(others, group.correlation, strict=True)][:_SHOWN_MEMBERS]
        more = [f"… {len(others) - len(shown):,} more"] if len(others) > len(shown) else []
        effect = "" if group.effect is None else f"{group.effect:+.3g}" if group.effect else "0"
        sure = (
            []
            if group.confidence is None
            else ["fixed" if group.confidence != group.confidence else f"{group.confidence:.2f}"]
        )
        marks = [Text("–" if group.marks is None else str(group.marks))] if marked else []
        members = Text(", ".join([*shown, *more]) or "–")
        own = group.annotations or {}
        facts = [f"{own['chromosome'][0]}:{own['position'][0]:,}"] if places else []
        facts += [f"{own['p_value'][0]:.2g}"] if "p_value" in known else []
        table.add_row(str(number), *sure, Text(support), *map(Text, facts), effect, *marks, f"{len(group):,}", members)
    voice.show(table)
    if len(groups) > _SHOWN_GROUPS:
        voice.show(f"… and {len(groups) - _SHOWN_GROUPS:,} more groups in groups.csv.")
    if "p_value" in known:
        voice.show("P-values are those of single features, from the same samples that chose them: too small to be tests.")
    if result.judgement:
        voice.show(result.judgement)
    else:
        voice.show("Figures of the training data alone; without --fast, held-out scores and confidences tell what holds.")
    voice.show("; ".join(f"{words}: {_figure(value)}" for words, value in result.summary.items() if value is not None))


def _figure(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
