"""Commands and their options; the work is done elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie import __version__

app = typer.Typer(
    name="coterie",
    help="Find the few features that predict and, around each one, its coterie of correlated features.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
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


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Seed of the synthetic data.", min=0)] = 1,
    n_features: Annotated[int, typer.Option(help="Number of features.", min=38)] = 10_000,
) -> None:
    """Discover groups in synthetic data (TPAMI 2016, section 5.2) and compare them with the truth.

    Example: coterie demo --seed 3
    """
    from coterie.cli.demo import run_demo

    run_demo(seed=seed, n_features=n_features)


def main() -> None:
    """Run the command."""
    app()
