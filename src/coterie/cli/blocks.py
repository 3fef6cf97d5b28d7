"""Options for several matrices of the same samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table
from rich.text import Text

from coterie.cli.data import DataOptions, stem
from coterie.cli.options import option
from coterie.cli.output import Console

if TYPE_CHECKING:
    from coterie import Discovery
    from coterie.data import Dataset

_PANEL = "Several matrices"


@dataclass(frozen=True)
class BlockOptions:
    """Options that add further matrices to the data."""

    block: Annotated[
        list[str] | None,
        option(
            _PANEL,
            "Further matrix of the same samples, such as --block protein=protein.csv. Its features are named protein:NAME. "
            "Samples are matched by name if the files have names, else by position. DATA has the labels. May be repeated.",
            metavar="NAME=FILE",
        ),
    ] = None
    block_name: Annotated[
        str | None, option(_PANEL, "Name of the matrix DATA.", metavar="NAME", default="name of the file")
    ] = None
    common_samples: Annotated[
        bool, option(_PANEL, "Leave out samples that a matrix lacks. By default they are an error.", "--common-samples")
    ] = False

    def name_of(self, path: Path) -> str | None:
        """Return the name of the matrix DATA; None without further matrices."""
        return None if not self.block else stem(path) if self.block_name is None else self.block_name

    def joined(
        self,
        dataset: Dataset,
        path: Path,
        options: DataOptions,
        console: Console,
        columns: Callable[..., dict[str, Any]] | None = None,
    ) -> Dataset:
        """Return the data with the features of all matrices.

        ``columns`` returns options for the columns of a further matrix, given its file, its options and its name ``block``.
        """
        if not self.block:
            if self.block_name is not None or self.common_samples:
                raise ValueError("--block-name and --common-samples require --block. Name a further matrix with --block.")
            return dataset
        if dataset.source.n_workers is not None:
            raise ValueError("--block and --dask cannot be combined. Remove --dask.")
        from coterie.data.blocks import join_blocks
        from coterie.data.readers.formats import FORMATS, detect_format, resolve

        found = {str(self.name_of(path)): dataset}
        for text in self.block:
            name, separator, rest = text.partition("=")
            file = Path(rest if separator else text)
            name = name if separator else stem(file)
            if name in found:
                raise ValueError(f"--block {text}: there are two matrices with the name {name!r}. Use --block NAME=FILE.")
            resolved = resolve(file)
            known = FORMATS[detect_format(resolved)].options() if resolved.is_file() else ()
            read = [entry for entry in options.read or () if entry.partition("=")[0] in known]
            own = DataOptions(labels=["none"], read=read, keep_numeric=options.keep_numeric, impute=options.impute)
            found[name] = own.open(
                file, console, allow_missing=True, **({} if columns is None else columns(file, own, block=name))
            )
        joined = join_blocks(found, common=self.common_samples)
        how = "name" if joined.sample_names is not None else "position"
        console.note(
            f"{len(found)} matrices: samples are matched by {how}; {joined.shape[0]:,} samples, {joined.shape[1]:,} features"
        )
        return replace(joined, path=path)


def show_blocks(result: Discovery, console: Console) -> None:
    """Print what each matrix contributes, if there are several."""
    if not result.blocks:
        return
    table = Table("matrix", "features", "groups", "share of the model", title="Matrices", title_justify="left")
    held_out = result.held_out
    for name in () if held_out is None else (f"{held_out.score} alone", "without it", "it adds"):
        table.add_column(name)
    for one in result.blocks:
        scores = () if held_out is None else ((one.alone, ".3g"), (one.without, ".3g"), (one.adds, "+.3f"))
        share = "–" if one.share is None else f"{one.share:.0%}"
        figures = ("–" if value is None else format(value, kind) for value, kind in scores)
        table.add_row(Text(one.block), f"{one.n_features:,}", f"{one.n_groups:,}", share, *figures)
    console.show(table)
