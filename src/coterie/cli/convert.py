"""``coterie convert``: a store of a data file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from coterie.cli.data import DataOptions, DataPath
from coterie.cli.output import Output


def convert(
    data: DataPath,
    store: Annotated[Path, typer.Argument(metavar="STORE", help="Folder of the new store.", show_default=False)],
    *,
    options: DataOptions,
    memory: Annotated[str, typer.Option(help="Memory to use at most, such as 500M or 4G.", rich_help_panel="Output")] = "1G",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a store that is there already.", rich_help_panel="Output")
    ] = False,
    voice: Output,
) -> None:
    """Convert a data file to a store, which opens at once and need not fit into memory.

    Examples:
        coterie convert news20.svm.bz2 news20.store
        coterie convert cohort.bed cohort.store --phenotype pheno.txt --memory 4G
    """
    from coterie._parameters import read_size
    from coterie.data import convert as convert_file
    from coterie.data import open_features

    arguments = options.arguments()
    with voice.collecting_warnings(), ConversionProgress(voice) as progress:
        path = convert_file(
            data,
            store,
            overwrite=overwrite,
            memory_limit=read_size(memory),
            progress=progress.update,
            **arguments,
        )
    n_samples, n_features = open_features(path).source.shape
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    voice.show(f"Written to {store}: {n_samples:,} samples, {n_features:,} features, {size / 1e6:,.1f} MB.")
    voice.result({"store": str(store), "samples": n_samples, "features": n_features, "bytes": size})


class ConversionProgress:
    """A bar for each step of a conversion on a terminal, a line for each step elsewhere."""

    def __init__(self, voice: Output) -> None:
        self.voice = voice
        self._bar: Any = None
        self._steps: dict[str, Any] = {}

    def __enter__(self) -> ConversionProgress:
        import sys

        if not self.voice.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True))
            self._bar.start()
        return self

    def update(self, done: int, total: int | None, what: str) -> None:
        """Say how far a step is."""
        if self._bar is not None:
            if what not in self._steps:
                self._steps[what] = self._bar.add_task(what, total=total)
            self._bar.update(self._steps[what], completed=done, total=total)
        elif what not in self._steps:
            self._steps[what] = None
            self.voice.note(f"[convert] {what}")

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
