"""The data that a command works on: options, opening, and which task their labels set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.output import Output
from coterie.cli.parameters import parse_settings, parse_value
from coterie.data.addresses import with_scheme
from coterie.data.readers.formats import COMPRESSED, formats_in_words, labels_in_words

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
# Largest over smallest standard deviation from which on scales are far apart.
_SCALES_APART = 100.0
TASKS = ("auto", "classification", "regression", "one-class")


@dataclass(frozen=True)
class DataOptions:
    """How data are read: the options of all commands that open them.

    Attributes
    ----------
    label, format : str or None
        As for :func:`coterie.open_features`; the label as text.
    phenotype : path or None
        A file with phenotypes.
    read : list of str or None
        Options of the format's reader as ``name=value``.
    """

    label: Annotated[
        str | None,
        typer.Option(
            "--label",
            "-l",
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
            help="File with phenotypes by FID and IID (PLINK); --label says which of its columns.",
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

    def arguments(self) -> dict[str, Any]:
        """For :func:`coterie.open_features` and :func:`coterie.convert`."""
        own = {"label": read_label(self.label), "format": self.format}
        settings = parse_settings(self.read or [], "--read")
        for name in sorted(own.keys() & settings):
            raise ValueError(f"--read {name}: there is an option --{name} for that.")
        return own | settings | ({} if self.phenotype is None else {"phenotype": self.phenotype})

    def open(self, path: Path, voice: Output, way: Callable[..., Dataset] | None = None) -> Dataset:
        """Open the data (in another ``way`` than :func:`coterie.open_features`), and say what is worth knowing about them."""
        from coterie.data import open_features

        arguments = self.arguments()
        with voice.collecting_warnings():
            dataset = (open_features if way is None else way)(with_scheme(path), **arguments)
        n_samples, n_features = dataset.source.shape
        kind = "sparse" if dataset.source.is_sparse else "dense"
        notes = "".join(f"; {name.replace('_', ' ')}: {value}" for name, value in dataset.notes.items())
        n_workers = getattr(dataset.source, "n_workers", None)
        where = "" if n_workers is None else f", on {n_workers} worker(s)"
        voice.note(f"{path}: {n_samples:,} samples, {n_features:,} features, {kind} ({dataset.format}){where}{notes}")
        return dataset


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
    return task if task != "auto" else _task_of(y)


def _task_of(y: np.ndarray) -> str:
    """Text, booleans and whole numbers are classes; numbers with fractions, or that hardly ever repeat, are targets."""
    import numpy as np

    if y.dtype.kind not in "iuf":
        return "classification"
    if y.dtype.kind == "f" and not np.equal(np.mod(y, 1), 0).all():
        return "regression"
    n_values = len(np.unique(y))
    return "regression" if n_values > 20 and n_values > len(y) / 5 else "classification"


def scales_apart(dataset: Dataset) -> bool:
    """Whether dense features have so different scales that what depends on them must be said."""
    if dataset.source.is_sparse:
        return False
    from coterie.data import FeatureView

    lowest, highest = zip(*FeatureView.of(dataset.source).map_blocks(_scales), strict=True)
    return max(highest) > _SCALES_APART * min(lowest)


def _scales(view: Any) -> tuple[float, float]:
    """The smallest and the largest standard deviation above 0; infinite and 0 where there is none."""
    import numpy as np

    scale = view.moments.scale
    return float(scale.min(initial=np.inf, where=scale > 0)), float(scale.max(initial=0.0))


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
