"""The command: its parts, its errors and its exit codes.

Exit codes: 0, all went well; 1, a fault of Coterie's own; 2, something the user can put right; 130 and 143, ended by Ctrl-C
or SIGTERM.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from coterie import __version__
from coterie.cli.compare import compare
from coterie.cli.convert import convert
from coterie.cli.demo import demo
from coterie.cli.discover import discover
from coterie.cli.info import info
from coterie.cli.options import as_options, with_single_options
from coterie.cli.output import one_line, remember_command, say
from coterie.cli.predict import predict
from coterie.cli.profile import profile
from coterie.cli.rank import rank
from coterie.cluster import ClusterError
from coterie.interruption import Interrupted, Terminated, terminating_cleanly
from coterie.terminal import escape_unencodable, printable

# What bad files, bad values, missing extras and full disks raise.
_USER_ERRORS = (ValueError, TypeError, OSError, ImportError, MemoryError, ClusterError)


class CommandGroup(TyperGroup):
    """A group of commands whose errors are one line each."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; typer would end an interrupted one without a word."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted from error

    def main(  # type: ignore[override]  # fewer arguments, all by keyword but the first
        self, args: Any = None, *, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        """Run a command and end the process with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        remember_command(words)
        if not standalone_mode:
            return super().main(words, standalone_mode=False, **extra)
        escape_unencodable(sys.stdout)
        escape_unencodable(sys.stderr)
        try:
            with warnings.catch_warnings(), terminating_cleanly():
                warnings.showwarning = _show_warning
                code = super().main(words, standalone_mode=False, **extra)
                sys.stdout.flush()
        except (Exception, KeyboardInterrupt, Interrupted, Terminated) as error:
            if "--debug" in words:
                print(printable(traceback.format_exc()), file=sys.stderr, end="")
            code = report(error)
        sys.exit(code if isinstance(code, int) else 0)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning that no command has collected, in one line without what would command the terminal."""
    say(f"coterie: warning: {message}")


def report(error: BaseException) -> int:
    """Say what went wrong in one line; returns the exit code."""
    if isinstance(error, BrokenPipeError):  # the reader of our output has gone, as `head` does
        _silence_output()
        return 1
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:  # all files are named
        _silence_output()
        error = OSError(error.errno, error.strerror, "standard output")
    if isinstance(error, (KeyboardInterrupt, Interrupted)):
        say("coterie: interrupted; nothing was written.")
        return 128 + signal.SIGINT
    if isinstance(error, Terminated):
        say("coterie: terminated; nothing was written.")
        return 128 + signal.SIGTERM
    if hasattr(error, "format_message"):  # wrong usage, found by typer
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]  # typer has it, whatever its base class
            return 2
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "coterie"
        say(f"coterie: {error.format_message().rstrip(' .')}. See: {command} --help")
        return 2
    if type(error).__name__ == "Abort":
        return 128 + signal.SIGINT
    text = as_options(one_line(_words(error)), getattr(error, "parameters", ()))
    if isinstance(error, _USER_ERRORS):
        say(f"coterie: {text}")
        return 2
    say(f"coterie: a fault of Coterie's own ({type(error).__name__}: {text}); --debug shows where.")
    return 1


def _silence_output() -> None:
    """Python would try once more, at its end, to write what nobody takes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _words(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return f"not enough memory ({error or 'no more details'}); convert the data to a store first, or use fewer features."
    if isinstance(error, OSError) and error.strerror:
        remedy = "; raise the limit (ulimit -n)" if error.errno in (errno.EMFILE, errno.ENFILE) else ""
        return f"{error.filename or 'a file or process of the system'}: {error.strerror}{remedy}"
    return str(error)


app = typer.Typer(
    name="coterie",
    cls=CommandGroup,
    help="Find the few features that predict and, around each one, its coterie of correlated features.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coterie {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options before the command."""


def _add(command: Callable[..., None]) -> None:
    """Add a command; the examples in its docstring go below the options."""
    text, _, examples = (command.__doc__ or "").partition("Examples:")
    lines = ["[bold]Examples[/bold]", *(line.strip() for line in examples.splitlines() if line.strip())]
    app.command(
        help="\n\n".join(one_line(paragraph) for paragraph in text.split("\n\n")),
        epilog="\n\n".join(lines),
        no_args_is_help=command is not demo,
    )(with_single_options(command))


for _command in (demo, discover, rank, compare, profile, convert, info, predict):
    _add(_command)


def main() -> None:
    """Run the command."""
    app()
