"""Tables for the terminal and for the pages of docs/evidence."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).resolve().parents[1] / "docs" / "evidence"
FIGURES = DOCS / "figures"


def print_table(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print rows as plain text, with columns in order of first appearance; columns without values are omitted."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    names = [name for name in names if any(row.get(name) is not None for row in rows)]
    cells = [[_text(row.get(name)) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(names)]
    print(f"\n{title}")
    for line in [names, ["-" * width for width in widths], *cells]:
        sized = [text.rjust(width) for text, width in zip(line, widths, strict=True)]
        print("  ".join([line[0].ljust(widths[0]), *sized[1:]]).rstrip())


def print_facts(title: str, facts: dict[str, Any]) -> None:
    """Print one fact per line."""
    print(f"\n{title}")
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"  {name.ljust(width)}  {_text(value)}")


def markdown_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows with the same keys as a Markdown table."""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([_text(row[name]) for name in names] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def columns(rows: Sequence[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """Return some columns of the rows; a missing value gives an empty cell."""
    return [{name: row.get(name) for name in names} for row in rows]


def replace_section(page: Path, name: str, text: str) -> None:
    """Replace the text between the markers ``<!-- name -->`` and ``<!-- end name -->`` of a page.

    If the text has no caption, one with version, date and command is added.
    """
    from _record import caption  # imported here, because evidence.py only needs the paths of this module

    if not text.startswith("*Coterie "):
        text = f"{caption()}\n\n{text}"
    first, last = f"<!-- {name} -->\n", f"<!-- end {name} -->\n"
    old = page.read_text(encoding="utf-8")
    if first not in old or last not in old:
        sys.exit(f"{page.name} has no markers for the section {name!r}. Add <!-- {name} --> and <!-- end {name} -->.")
    before, rest = old.split(first, 1)
    after = rest.split(last, 1)[1]
    page.write_text(f"{before}{first}{text.strip()}\n{last}{after}", encoding="utf-8")


def verdict(good: bool) -> str:
    """Return ``"met"`` or ``"missed"``."""
    return "met" if good else "missed"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (float, np.floating)):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 0.1 else f"{value:.3f}"
    return f"{value:,}" if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else str(value)
