"""The ``coterie`` command: its subcommands, errors and exit codes.

Exit codes: 0 for success, 1 for a bug in Coterie, 2 for an error that the user can fix, 130 and 143 after Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Container, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from coterie import __version__
from coterie.cli.compare import compare
from coterie.cli.convert import convert
from coterie.cli.demo import demo
from coterie.cli.discover import discover
from coterie.cli.help import command_class, suggested_options, without_type
from coterie.cli.info import info
from coterie.cli.options import as_options, option_of, with_single_options
from coterie.cli.output import one_line, say, store_command
from coterie.cli.predict import predict
from coterie.cli.profile import profile
from coterie.cli.rank import rank
from coterie.cli.replicate import replicate
from coterie.cli.warm_up import warm_up
from coterie.cluster import ClusterError
from coterie.interruption import Interrupted, Terminated, terminating_cleanly
from coterie.terminal import escape_unencodable, printable

# Errors raised for bad files, bad values, missing extras and full disks.
_USER_ERRORS = (ValueError, TypeError, OSError, ImportError, MemoryError, ClusterError)


class CommandGroup(TyperGroup):
    """A group of commands whose errors are one line each."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option ``--help``, without a type."""
        return without_type(super().get_help_option(ctx))

    def _options(self, words: Sequence[str]) -> set[str]:
        """Return the options of the command in a command line."""
        command: Any = next((self.commands[word] for word in words if word in self.commands), None)
        return set() if command is None else {name for parameter in command.params for name in parameter.opts}

    def invoke(self, ctx: Any) -> Any:
        """Run a command. Without this method, typer would end an interrupted command without a message."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted from error

    def main(  # type: ignore[override]  # fewer arguments, all by keyword but the first
        self, args: Any = None, *, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        """Run a command and end the process with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        store_command(words)
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
            code = report(error, self._options(words))
        sys.exit(code if isinstance(code, int) else 0)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning that no command has collected, in one line and without control characters."""
    say(f"coterie: warning: {message}")


def report(error: BaseException, options: Container[str] = ()) -> int:
    """Print an error in one line and return the exit code.

    Parameters in the message that are ``options`` of the command are shown as options.
    """
    if isinstance(error, BrokenPipeError):  # the reader of the output has ended, as `head` does
        _silence_output()
        return 1
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:  # files have their names
        _silence_output()
        error = OSError(error.errno, error.strerror, "standard output")
    if isinstance(error, (KeyboardInterrupt, Interrupted)):
        say("coterie: interrupted; nothing was written.")
        return 128 + signal.SIGINT
    if isinstance(error, Terminated):
        say("coterie: terminated; nothing was written.")
        return 128 + signal.SIGTERM
    if hasattr(error, "format_message"):  # a usage error found by typer
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]  # defined by all versions of typer
            return 2
        say(f"coterie: {_usage_error(error)}")
        return 2
    if type(error).__name__ == "Abort":
        return 128 + signal.SIGINT
    text = one_line(_message(error))
    text = as_options(text, [name for name in _parameters(error, text) if option_of(name) in options])
    if isinstance(error, _USER_ERRORS):
        say(f"coterie: {text}")
        return 2
    say(f"coterie: this is a bug in Coterie ({type(error).__name__}: {text}). Run the command with --debug for a traceback.")
    return 1


def _parameters(error: BaseException, text: str) -> Sequence[str]:
    """Return the parameters in an error message: those that the error names, or the one that the message begins with."""
    first = re.match(r"(\w+)(?==| must | has | contains )", text)
    return getattr(error, "parameters", None) or ([] if first is None else [first[1]])


def _usage_error(error: Any) -> str:
    """Return the message of a usage error, with the options that an unknown option may stand for."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "coterie"
    name = str(getattr(error, "option_name", ""))
    if type(error).__name__ != "NoSuchOption" or context is None:
        text = error.format_message().rstrip(" .")
        return f"{text}{'' if text.endswith('?') else '.'} See: {path} --help"
    known = [option for parameter in context.command.params for option in (*parameter.opts, *parameter.secondary_opts)]
    suggested = suggested_options(name, [option for option in known if option.startswith("-")])
    hint = f" Did you mean {' or '.join(suggested)}?" if suggested else ""
    return f"No such option: {name}.{hint} See: {path} --help-all"


def _silence_output() -> None:
    """Discard further output; Python would otherwise try to flush it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        details = f" ({error})" if str(error) else ""
        return f"Not enough memory{details}. Convert the data to a store first (coterie convert), or use fewer features."
    if isinstance(error, OSError) and error.strerror:
        remedies = {errno.EMFILE: "Raise the limit (ulimit -n)", errno.ENOENT: "Check the path"}
        remedy = f". {remedies[error.errno]}" if error.errno in remedies and ". " not in error.strerror else ""
        return f"{error.filename or 'System error'}: {error.strerror}{remedy}."
    return str(error)


app = typer.Typer(
    name="coterie",
    cls=CommandGroup,
    help="Find the few features that predict a target and, for each of them, the group of features correlated with it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"coterie {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.", metavar="")
    ] = False,
) -> None:
    """Options before the command."""


def _add(command: Callable[..., None]) -> None:
    """Add a command. The examples in its docstring are shown below the options."""
    text, _, examples = (command.__doc__ or "").partition("Examples:")
    lines = ["[bold]Examples[/bold]", *(line.strip().removeprefix("- ") for line in examples.splitlines() if line.strip())]
    single = with_single_options(command)
    app.command(
        cls=command_class(single),
        help="\n\n".join(one_line(paragraph) for paragraph in text.split("\n\n")),
        epilog="\n".join(lines),
        no_args_is_help=command not in (demo, warm_up),
    )(single)


for _command in (demo, discover, predict, replicate, rank, compare, profile, convert, info, warm_up):
    _add(_command)


def main() -> None:
    """Run the command."""
    app()
