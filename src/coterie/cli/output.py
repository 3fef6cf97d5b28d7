"""Output of a command: results on standard output, everything else on standard error."""

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

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from coterie.cli.help import show_all_options
from coterie.cli.options import as_options, option
from coterie.terminal import encodable, printable

_PANEL = "Output"
_COMMAND_LINE: ContextVar[tuple[str, ...] | None] = ContextVar("command_line", default=None)


@dataclass
class Console:
    """Output of a command, with the options that all commands have.

    Attributes
    ----------
    quiet, json, debug : bool
        Values of the options.
    help_all : bool
        Always False: the option prints the help and exits.
    warnings : list of str
        Warnings so far, each one once.
    """

    quiet: Annotated[bool, option(_PANEL, "Suppress progress and notes.", "--quiet -q", common=True)] = False
    json: Annotated[bool, option(_PANEL, "Print the result as JSON.", "--json", common=True)] = False
    debug: Annotated[bool, option(_PANEL, "Show the traceback of an error.", "--debug")] = False
    help_all: Annotated[
        bool,
        option(None, "Show all options and exit.", "--help-all", common=True, is_eager=True, callback=show_all_options),
    ] = False
    warnings: list[str] = field(default_factory=list, init=False)

    @property
    def verbose(self) -> int:
        """Value of the parameter ``verbose`` of estimators."""
        return 0 if self.quiet else 1

    def note(self, text: str) -> None:
        """Print a note on standard error, unless the command is quiet."""
        if not self.quiet:
            say(text)

    def show(self, item: Any) -> None:
        """Print a table or a line, unless JSON is printed. Names from data must be passed as ``Text``."""
        if not self.json:
            console = _SafeConsole(file=sys.stdout, highlight=False)
            if not console.is_terminal:  # a log has no width at which to wrap
                console.width = 160
            console.print(Text(item) if isinstance(item, str) else item)

    def write(self, text: str) -> None:
        """Print text for programs unchanged; control characters are escaped on a terminal only."""
        if sys.stdout.isatty():
            text = printable(text.replace("\r\n", "\n"))
        sys.stdout.write(encodable(text, sys.stdout.encoding or "utf-8"))

    def result(self, content: Any) -> None:
        """Print the result as JSON, if ``--json`` is set."""
        if self.json:
            from coterie.groups.columns import plain

            print(json.dumps(plain(content), indent=2, ensure_ascii=True, allow_nan=False))

    @contextmanager
    def collecting_warnings(self) -> Iterator[None]:
        """Print warnings as notes of one line, and collect them."""

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
            warnings.showwarning = show  # type: ignore[assignment]  # the other arguments are not used
            yield


class _SafeConsole(RichConsole):
    """Console that escapes control characters and characters missing in its encoding, also within tables."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text) and (text := self._escaped(renderable.plain)) != renderable.plain:
            renderable = Text(text, renderable.style, justify=renderable.justify)
        return super().render(renderable, options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(self._escaped(text), **options)

    def _escaped(self, text: str) -> str:
        return encodable(printable(text), self.encoding)


def say(text: str) -> None:
    """Print one line on standard error."""
    print(printable(one_line(text)), file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """Return text with its lines joined."""
    return " ".join(text.split())


def command_line() -> str | None:
    """Return the command line for the report; None if the process was not started by a command."""
    words = _COMMAND_LINE.get()
    return None if words is None else shlex.join(["coterie", *words])


def store_command(words: Iterable[str]) -> None:
    """Store the command line for :func:`command_line`."""
    _COMMAND_LINE.set(tuple(str(word) for word in words))
