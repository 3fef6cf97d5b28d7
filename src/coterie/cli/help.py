"""Help pages: common options by default, all options in panels with ``--help-all``; suggestions for unknown options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from textwrap import indent
from typing import Any, ClassVar

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand

from coterie.cli.options import option_info

# Order of the panels. A command has some of them.
PANELS = (
    "Method",
    "Methods",
    "Data",
    "Several matrices",
    "Survival",
    "Tables",
    "Validation",
    "Evaluation",
    "Replication",
    "Group discovery",
    "Genetics",
    "Limits",
    "Cluster",
    "Output",
)
_ALL = "coterie.help_all"
# Options, and names that other programs have for them.
_OTHER_NAMES = {
    "--label": ["-y", "--y", "--target", "--targets", "--labels", "--outcome", "--response", "--class", "--trait"],
    "--covar": ["--covariates", "--covariate", "--covars"],
    "--random-state": ["--seed", "--random-seed"],
    "--n-jobs": ["--threads", "--num-threads", "--jobs", "--cores", "-j"],
    "--cv": ["--folds", "--n-folds", "--n-splits"],
    "--scoring": ["--metric", "--score", "--scorer"],
    "--overwrite": ["--force", "--replace"],
    "--output": ["--out", "--out-dir", "--outdir", "--output-dir"],
    "--max-features-to-select": ["--features", "--max-features", "--n-features", "--k", "-n"],
}


class Command(TyperCommand):
    """A command whose ``--help`` shows its common options only; ``--help-all`` shows all options in panels."""

    common: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params.sort(key=_place)

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option ``--help``, without a type."""
        return without_type(super().get_help_option(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help page."""
        epilog, self.epilog = self.epilog, None
        try:
            with self._shortened_names(), self._hidden_options(show_all=bool(ctx.meta.get(_ALL))) as n_hidden:
                super().format_help(ctx, formatter)
        finally:
            self.epilog = epilog
        more = [f"{n_hidden} more option{'s' * (n_hidden > 1)}: {ctx.command_path} --help-all"] if n_hidden else []
        console = Console(highlight=False)
        # Versions of typer differ in their treatment of line breaks. A soft wrap keeps examples in one piece for copying.
        for paragraph in [epilog or "", *more]:
            console.print(Text.from_markup(indent(paragraph, " ")), soft_wrap=True, end="\n\n")

    @property
    def _options(self) -> list[Any]:
        """Options of the command, without the arguments."""
        return [parameter for parameter in self.params if parameter.param_type_name == "option"]

    @contextmanager
    def _shortened_names(self) -> Iterator[None]:
        """Show ``--[no-]name`` for a flag and its opposite, which would have a column of their own."""
        switches = [option for option in self._options if option.secondary_opts]
        before = [(option, option.opts, option.secondary_opts) for option in switches]
        for option in switches:
            option.opts, option.secondary_opts = [f"--[no-]{option.opts[0].removeprefix('--')}"], []
        try:
            yield
        finally:
            for option, names, opposites in before:
                option.opts, option.secondary_opts = names, opposites

    @contextmanager
    def _hidden_options(self, *, show_all: bool) -> Iterator[int]:
        """Hide options that are not common and show the others in one panel; yields the number of hidden options."""
        if show_all:
            yield 0
            return
        options = self._options
        before = [(option, option.hidden, option.rich_help_panel) for option in options]
        for option in options:
            option.hidden = option.hidden or option.name not in self.common
            option.rich_help_panel = None
        try:
            yield sum(option.hidden for option in options)
        finally:
            for option, hidden, panel in before:
                option.hidden, option.rich_help_panel = hidden, panel


def command_class(command: Callable[..., Any]) -> type[Command]:
    """Return the class of a command, with the names of its common options."""
    infos = {name: option_info(parameter) for name, parameter in inspect.signature(command).parameters.items()}
    common = frozenset(name for name, info in infos.items() if getattr(info, "common", False))
    return type("Command", (Command,), {"common": common})


def show_all_options(ctx: typer.Context, value: bool) -> None:
    """Print the help page with all options and exit."""
    if value:
        ctx.meta[_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


def without_type(option: Any) -> Any:
    """Return an option that is a flag, without the type that some versions of typer would show."""
    if option is not None:
        option.metavar = ""
    return option


def suggested_options(name: str, known: Sequence[str]) -> list[str]:
    """Return the options that an unknown option may stand for: the same meaning under another name, or a similar spelling.

    Examples
    --------
    >>> from coterie.cli.help import suggested_options
    >>> suggested_options("--target", ["--label", "--task"]), suggested_options("--treshold", ["--threshold", "--task"])
    (['--label'], ['--threshold'])
    """
    same = [option for option, others in _OTHER_NAMES.items() if name in others and option in known]
    return same or get_close_matches(name, known, 2)


def _place(parameter: Any) -> tuple[int, int]:
    """Return the place of a parameter in the help: arguments, options without a panel, options by panel, ``--help-all``."""
    panel = getattr(parameter, "rich_help_panel", None)
    last = parameter.name == "help_all"
    return parameter.param_type_name == "option", len(PANELS) if last else PANELS.index(panel) if panel in PANELS else -1
