"""The data that a command works on: options, opening, and which task their labels set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.output import Output
from coterie.cli.parameters import parse_settings, parse_value
from coterie.data.errors import with_scheme
from coterie.data.readers.formats import COMPRESSED, FORMATS, formats_in_words, labels_in_words
from coterie.methods import DISCOVERY

if TYPE_CHECKING:
    import numpy as np

    from coterie.data import Dataset

_PANEL = "Data"
DataPath = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help=f"{formats_in_words()}, or a store. Text may be compressed ({', '.join(COMPRESSED)}).",
        show_default=False,
    ),
]
Task = Annotated[
    str,
    typer.Option(
        "--task",
        "-t",
        help="auto (by the labels), classification, regression or one-class (labels 1, normal, and -1, outlier, serve to "
        "validate; others are not used).",
        rich_help_panel=_PANEL,
    ),
]
# Formats whose columns can be anything.
TABLES = tuple(name for name, entry in FORMATS.items() if entry.table)
TASKS = ("auto", *DISCOVERY)


@dataclass(frozen=True)
class DataOptions:
    """How data are read: the options of all commands that open them.

    Attributes
    ----------
    label, format : str or None
        As for :func:`coterie.open_features`; the label as text.
    phenotype : path or None
        A file with phenotypes.
    covar, covar_name : path or None, str or None
        A file with covariates, and which of its columns.
    read : list of str or None
        Options of the format's reader as ``name=value``.
    drop, keep_numeric, impute
        As for :func:`coterie.open_features`.
    """

    label: Annotated[
        str | None,
        typer.Option(
            "--label",
            "-l",
            "--pheno-name",
            help=f"Where the labels are: {labels_in_words()}.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", help="Format of the data; found out by default.", rich_help_panel=_PANEL, show_default=False
        ),
    ] = None
    phenotype: Annotated[
        Path | None,
        typer.Option(
            "--phenotype",
            "-p",
            "--pheno",
            help="File with phenotypes by FID and IID (PLINK); --label (--pheno-name) says which of its columns.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    covar: Annotated[
        Path | None,
        typer.Option(
            "--covar",
            help="File with covariates by FID and IID (PLINK data, or a store of them): accounted for, never discovered.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    covar_name: Annotated[
        str | None,
        typer.Option(
            "--covar-name",
            metavar="NAME,...",
            help="Which of its columns, such as AGE,PC1-PC10; all by default.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    read: Annotated[
        list[str] | None,
        typer.Option(
            "--read",
            "-r",
            metavar="NAME=VALUE",
            help="An option of the format's reader, such as layer=counts (.h5ad) or zero_based=true (LIBSVM); may be "
            "repeated.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None

    drop: Annotated[
        list[str] | None,
        typer.Option(
            "--drop",
            metavar="COLUMN,…",
            help="Features (columns of a table) to leave out; may be repeated.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    keep_numeric: Annotated[
        bool,
        typer.Option(
            "--keep-numeric",
            help="Ignore the columns of a table that are neither numbers nor True and False.",
            rich_help_panel=_PANEL,
        ),
    ] = False
    impute: Annotated[
        str | None,
        typer.Option(
            "--impute",
            metavar="median|mean|most_frequent",
            help="Fill missing values; validation does so in each fold by its training samples alone.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """For :func:`coterie.open_features` and :func:`coterie.convert`."""
        own: dict[str, Any] = {"label": read_label(self.label), "format": self.format}
        own |= {} if not self.drop else {"drop": self.drop}
        own |= {} if not self.keep_numeric else {"keep_numeric": True}
        own |= {} if self.impute is None else {"impute": self.impute}
        settings = parse_settings(self.read or [], "--read")
        for name in sorted(own.keys() & settings):
            raise ValueError(f"--read {name}: there is an option --{name} for that.")
        if self.covar is None and self.covar_name is not None:
            raise ValueError("--covar-name names columns of a file of covariates; say which file with --covar.")
        files = {"phenotype": self.phenotype, "covariates": self.covar, "covariate_names": self.covar_name}
        return own | settings | {name: value for name, value in files.items() if value is not None}

    def open(
        self,
        path: Path,
        voice: Output,
        way: Callable[..., Dataset] | None = None,
        *,
        adjusts: bool = False,
        gaps: bool = False,
        **more: Any,
    ) -> Dataset:
        """Open the data (in another ``way`` than :func:`coterie.open_features`), and say what is worth knowing about them.

        Tables with gaps that nothing is to fill are refused; covariates are only for what ``adjusts`` for them. ``more`` are
        options that no user gives.
        """
        from coterie.data import open_features

        if self.covar is not None and not adjusts:
            raise ValueError("--covar has no meaning for this command, which does not account for covariates; leave it out.")
        arguments = self.arguments()
        with voice.collecting_warnings():
            dataset = (open_features if way is None else way)(with_scheme(path), **arguments, **more)
        if not gaps and way is None:  # workers look at what they have
            _refuse_gaps(dataset)
        n_samples, n_features = dataset.source.shape
        kind = "sparse" if dataset.source.is_sparse else "dense"
        notes = "".join(f"; {name.replace('_', ' ')}: {value}" for name, value in dataset.notes.items())
        if dataset.covariates is not None and adjusts:
            notes += f"; covariates: {', '.join(dataset.covariates.names)}"
        n_workers = dataset.source.n_workers
        where = "" if n_workers is None else f", on {n_workers} worker(s)"
        voice.note(f"{path}: {n_samples:,} samples, {n_features:,} features, {kind} ({dataset.format}){where}{notes}")
        if self.impute is not None:
            voice.note(_gaps_filled(dataset, self.impute))
        return dataset


def _refuse_gaps(dataset: Dataset) -> None:
    """Refuse a table with missing values, all columns at once."""
    import numpy as np

    from coterie.data import ImputedSource
    from coterie.data.readers.columns import Column, problems_in_words

    source = dataset.source
    if dataset.format not in TABLES or isinstance(source, ImputedSource):
        return
    names = source.feature_names
    missing = np.concatenate([np.isnan(columns).sum(axis=0) for _, columns in source.blocks(1 << 10)])
    if missing.any():
        columns = [
            Column(str(j) if names is None else names[j], len(missing), int(count)) for j, count in enumerate(missing.tolist())
        ]
        raise ValueError(f"{dataset.path}: {problems_in_words(columns)}")


def _gaps_filled(dataset: Dataset, strategy: str) -> str:
    """What was filled, and with what, in a sentence."""
    from coterie.data import ImputedSource
    from coterie.data.readers.columns import listed

    source = dataset.source
    count = source.n_missing if isinstance(source, ImputedSource) else None
    if count is None or not count.any():
        return f"--impute {strategy}: there are no missing values."
    names = names_of(source, count.nonzero()[0])
    shown = listed([str(j) if name is None else name for j, name in zip(count.nonzero()[0].tolist(), names, strict=True)])
    return (
        f"--impute {strategy}: {int(count.sum()):,} missing values in {len(names):,} features filled ({shown}); where folds "
        "are held out, from the training samples of each fold alone."
    )


def read_label(label: str | None) -> Any:
    """A column's name or position; ``none`` for no labels at all."""
    if label is None:
        return None
    value = parse_value(label) if label.lstrip("-").isdigit() or label.lower() == "none" else label
    return False if value is None else value


def settle_task(task: str, y: np.ndarray | None, path: Path) -> str:
    """The task itself, found by the kind of labels for ``auto``."""
    if task not in TASKS:
        raise ValueError(f"--task {task!r} must be one of {', '.join(TASKS)}.")
    if task == "one-class":
        return task
    if y is None:
        raise ValueError(f"{path} has no labels; say where they are with --label, or use --task one-class.")
    if task != "auto":
        return task
    from coterie.inputs.targets import task_of

    return task_of(y)


def names_of(source: Any, features: Any) -> list[str | None]:
    """Names of some features, None where the data have none."""
    names = source.feature_names
    return [None if names is None else str(names[int(j)]) for j in features]


def stem(path: Path) -> str:
    """The name of the data without what tells their format and packing."""
    name = path.name.rstrip("/") or path.resolve().name
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return Path(name).stem or name
