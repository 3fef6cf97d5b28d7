"""Generate the reference page of all command-line options from the parser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from coterie.cli.app import app


def write(folder: Path) -> None:
    """Write ``commands.md``. An unchanged file is not rewritten, so that its modification time stays the same."""
    folder.mkdir(parents=True, exist_ok=True)
    text = page()
    path = folder / "commands.md"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def page() -> str:
    """Return the page: all commands with their arguments and options."""
    group: Any = get_command(app)
    lines = [
        "# All options of the command line",
        "",
        "Generated from the parser; `coterie COMMAND --help-all` prints the same. [Command line](../command-line.md)",
        "describes the commands and the files that they write.",
        "",
    ]
    for name, command in group.commands.items():
        lines += _command(name, command)
    return "\n".join(lines)


def _command(name: str, command: Any) -> list[str]:
    context = typer.Context(command, info_name=f"coterie {name}")
    lines = [f"## coterie {name}", "", *_paragraphs(command.help or ""), *_examples(command.epilog or "")]
    panels: dict[str, list[str]] = {}
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is None or getattr(parameter, "hidden", False):
            continue
        usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
        names = record[0].strip().replace("|", r"\|")  # a pipe would end the cell
        text = " ".join(record[1].split()).replace(r"\[", "[")  # defaults are escaped for rich
        row = f"| `{names}` | {_safe(text)} |"
        panels.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(row)
    for panel, rows in panels.items():
        lines += [f"| {panel} | |", "|---|---|", *rows, ""]
    return lines


def _paragraphs(text: str) -> list[str]:
    return [line for part in re.split(r"\n\s*\n", text.strip()) for line in (_safe(" ".join(part.split())), "")]


def _examples(epilog: str) -> list[str]:
    """Return the example commands of the epilog, without its heading."""
    commands = [line.strip() for line in epilog.splitlines() if line.strip().startswith("coterie ")]
    return ["```text", *commands, "```", ""] if commands else []


def _safe(text: str) -> str:
    """Escape the characters of a help text that Markdown would interpret."""
    return re.sub(r"([\\*_<>|\[\]{}])", r"\\\1", text)
