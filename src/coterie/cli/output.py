"""What a command says: results to the standard output, everything else to the standard error."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from coterie.cli.options import as_options
from coterie.terminal import encodable, printable

_PANEL = "Output"
_WORDS: ContextVar[tuple[str, ...] | None] = ContextVar("words", default=None)


@dataclass
class Console:
    """The voice of a command, with the options that all commands have.

    Attributes
    ----------
    quiet, json, debug : bool
        As asked for by the user.
    warnings : list of str
        What has been warned of.
    """

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.", rich_help_panel=_PANEL)] = False
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=_PANEL)] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=_PANEL)] = False
    warnings: list[str] = field(default_factory=list, init=False)

    @property
    def verbose(self) -> int:
        """For estimators: whether to show progress."""
        return 0 if self.quiet else 1

    def note(self, text: str) -> None:
        """Say something by the way."""
        if not self.quiet:
            say(text)

    def show(self, item: Any) -> None:
        """Print a table or a line for people; names from data must come as ``Text``."""
        if not self.json:
            console = _SafeConsole(file=sys.stdout, highlight=False)
            if not console.is_terminal:  # a log has no edge to fold at
                console.width = 160
            console.print(Text(item) if isinstance(item, str) else item)

    def write(self, text: str) -> None:
        """Print text that programs may read as it is; only a terminal gets it without what would command it."""
        if sys.stdout.isatty():
            text = printable(text.replace("\r\n", "\n"))
        sys.stdout.write(encodable(text, sys.stdout.encoding or "utf-8"))

    def result(self, content: Any) -> None:
        """Print the result for programs, if they asked for it."""
        if self.json:
            from coterie.groups.columns import plain

            print(json.dumps(plain(content), indent=2, ensure_ascii=True, allow_nan=False))

    @contextmanager
    def collecting_warnings(self) -> Iterator[None]:
        """Warnings become notes of one line, and are kept."""

        def show(message: Warning | str, category: type[Warning], *_: Any) -> None:
            text = one_line(str(message))
            if text not in self.warnings:
                self.warnings.append(text)
                if not self.quiet:
                    say(f"coterie: warning: {as_options(text)}")

        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            warnings.filterwarnings("ignore", category=FutureWarning)
            warnings.showwarning = show  # type: ignore[assignment]  # the other arguments are taken as they come
            yield


class _SafeConsole(RichConsole):
    """A console that escapes what could control a terminal, and what its encoding does not have, also within tables."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text) and (text := self._escaped(renderable.plain)) != renderable.plain:
            renderable = Text(text, renderable.style, justify=renderable.justify)
        return super().render(renderable, options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(self._escaped(text), **options)

    def _escaped(self, text: str) -> str:
        return encodable(printable(text), self.encoding)


def say(text: str) -> None:
    """One line on the standard error."""
    print(printable(one_line(text)), file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """Text with its lines joined."""
    return " ".join(text.split())


def command_line() -> str | None:
    """What the user has typed, for a report that says how it was made; None where nobody has."""
    words = _WORDS.get()
    return None if words is None else shlex.join(["coterie", *words])


def remember_command(words: Iterable[str]) -> None:
    """Keep what the user has typed, for :func:`command_line`."""
    _WORDS.set(tuple(str(word) for word in words))
