"""The data that a command works on, here or on a cluster: options, opening, and which task their labels set."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from coterie.cli.options import option
from coterie.cli.output import Console
from coterie.cli.parameters import Parameter, Settings, criteria_text, parse_settings, parse_value
from coterie.data.errors import with_scheme
from coterie.data.readers.formats import COMPRESSED, FORMATS, describe_formats, describe_labels
from coterie.interruption import ignore_signal
from coterie.methods import DISCOVERY, Method

if TYPE_CHECKING:
    import numpy as np
    from distributed import Client

    from coterie.data import Dataset, FeatureSource, Store

_PANEL = "Data"
DataPath = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help=f"{describe_formats()}, or a store. Text may be compressed ({', '.join(COMPRESSED)}).",
        show_default=False,
    ),
]
Task = Annotated[
    str,
    option(
        _PANEL,
        "auto (by the labels), classification, regression or one-class (labels 1, normal, and -1, outlier, serve to "
        "validate; others are not used).",
        "--task -t",
    ),
]
# Formats whose columns can be anything.
TABLES = tuple(name for name, entry in FORMATS.items() if entry.table)
TASKS = ("auto", *DISCOVERY)
# Seconds to wait for a scheduler, and for its first worker.
_PATIENCE = 60.0


@dataclass(frozen=True)
class DataOptions:
    """How data are read: the options of all commands that open them."""

    label: Annotated[str | None, option(_PANEL, f"Where the labels are: {describe_labels()}.", "--label -l --pheno-name")] = (
        None
    )
    format: Annotated[str | None, option(_PANEL, "Format of the data; found out by default.", "--format -f")] = None
    phenotype: Annotated[
        Path | None,
        option(
            _PANEL,
            "File with phenotypes by FID and IID (PLINK); --label (--pheno-name) says which of its columns.",
            "--phenotype -p --pheno",
        ),
    ] = None
    covar: Annotated[
        Path | None,
        option(
            _PANEL, "File with covariates by FID and IID (PLINK data, or a store of them): accounted for, never discovered."
        ),
    ] = None
    covar_name: Annotated[
        str | None, option(_PANEL, "Which of its columns, such as AGE,PC1-PC10; all by default.", metavar="NAME,...")
    ] = None
    read: Annotated[
        list[str] | None,
        option(
            _PANEL,
            "An option of the format's reader, such as layer=counts (.h5ad) or zero_based=true (LIBSVM); may be repeated.",
            "--read -r",
            metavar="NAME=VALUE",
        ),
    ] = None

    drop: Annotated[
        list[str] | None, option(_PANEL, "Features (columns of a table) to leave out; may be repeated.", metavar="COLUMN,…")
    ] = None
    keep_numeric: Annotated[
        bool, option(_PANEL, "Ignore the columns of a table that are neither numbers nor True and False.", "--keep-numeric")
    ] = False
    impute: Annotated[
        str | None,
        option(
            _PANEL,
            "Fill missing values; validation does so in each fold by its training samples alone.",
            metavar="median|mean|most_frequent",
        ),
    ] = None

    def arguments(self) -> Settings:
        """For :func:`coterie.open_features` and :func:`coterie.convert`."""
        own: Settings = {"label": read_label(self.label), "format": self.format}
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
        console: Console,
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
        with console.collecting_warnings():
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
        console.note(f"{path}: {n_samples:,} samples, {n_features:,} features, {kind} ({dataset.format}){where}{notes}")
        if self.impute is not None:
            console.note(_gaps_filled(dataset, self.impute))
        return dataset


def _refuse_gaps(dataset: Dataset) -> None:
    """Refuse a table with missing values, all columns at once."""
    import numpy as np

    from coterie.data import ImputedSource
    from coterie.data.readers.columns import Column, describe_problems

    source = dataset.source
    if dataset.format not in TABLES or isinstance(source, ImputedSource):
        return
    names = source.feature_names
    missing = np.concatenate([np.isnan(columns).sum(axis=0) for _, columns in source.blocks(1 << 10)])
    if missing.any():
        columns = [
            Column(str(j) if names is None else names[j], len(missing), int(count)) for j, count in enumerate(missing.tolist())
        ]
        raise ValueError(f"{dataset.path}: {describe_problems(columns)}")


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


def read_label(label: str | None) -> str | int | bool | None:
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


def show_methods(how: str, rows: Iterable[tuple[str, str, Method, Iterable[Parameter]]]) -> None:
    """Methods with their labels and the parameters that can be set, and the criteria; then exit."""
    table = Table("method", "labels", "what it is", f"parameters ({how})")
    for name, labels, method, parameters in rows:
        table.add_row(name, labels, method.description, Text(", ".join(f"{p.name}={p.default}" for p in parameters)))
    Console().show(table)
    Console().show(Text(criteria_text()))
    raise typer.Exit


def names_of(source: FeatureSource, features: np.ndarray) -> list[str | None]:
    """Names of some features, None where the data have none."""
    names = source.feature_names
    return [None if names is None else str(names[int(j)]) for j in features]


def stem(path: Path) -> str:
    """The name of the data without what tells their format and packing."""
    name = path.name.rstrip("/") or path.resolve().name
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return Path(name).stem or name


@dataclass(frozen=True)
class Cluster:
    """Where the work is done: here, or on a Dask cluster."""

    dask: Annotated[
        str | None,
        option(
            "Data",
            "Do the work on a Dask cluster, whose workers read the data themselves: the scheduler's address "
            "(tcp://host:8786), or local for worker processes on this machine.",
            metavar="ADDRESS|local",
        ),
    ] = None

    def check(self, able: bool, what: str) -> None:
        """Refuse what cannot be done on a cluster, before one is looked for."""
        if self.dask is not None and not able:
            raise ValueError(f"{what} cannot be done on a cluster: it looks at all features together. Leave --dask out.")

    @contextmanager
    def opened(self, path: Path, options: DataOptions, console: Console, **more: Any) -> Iterator[Dataset]:
        """The data, with their features on the cluster as long as this lasts, where one is asked for."""
        if self.dask is None:
            yield options.open(path, console, **more)
            return
        from coterie.data.opening import open_store_with

        with self.client(path) as client:
            from coterie.cluster import DistributedSource

            assert client is not None  # a cluster was asked for

            def place(store: Store) -> DistributedSource:
                return DistributedSource.of_store(store, client)

            yield options.open(path, console, partial(open_store_with, place=place), **more)

    @staticmethod
    def converting(client: Client) -> Callable[..., Path]:
        """:func:`coterie.data.convert` by the workers of a client."""
        from coterie.cluster import convert

        return partial(convert, client=client)

    @contextmanager
    def client(self, store: Path | None = None) -> Iterator[Client | None]:
        """A client of the cluster that was asked for, with a worker at least; None where none was asked for.

        What the workers are to open must be a ``store``.
        """
        if self.dask is None:
            yield None
            return
        from coterie.cluster import ClusterError
        from coterie.data.errors import missing_extra
        from coterie.data.opening import check_store

        if store is not None:
            check_store(store)  # before a cluster is started for it

        try:
            import distributed
        except ImportError as error:
            raise missing_extra("--dask", "dask.distributed", "dask") from error
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # lost workers are no news: the work goes on without them
        with ExitStack() as stack:
            where: object = self.dask
            if self.dask == "local":
                with ignore_signal(signal.SIGINT):  # Ctrl-C is for this process, which ends the work of the others
                    where = stack.enter_context(
                        distributed.LocalCluster(threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL)
                    )
            try:
                client = stack.enter_context(distributed.Client(where, set_as_default=False, timeout=_PATIENCE))
                client.wait_for_workers(1, timeout=_PATIENCE)
            except (OSError, TimeoutError, ValueError) as error:
                raise ClusterError(
                    f"--dask {self.dask}: there is no scheduler with a worker to be reached there ({type(error).__name__}). "
                    "Start one with `dask scheduler` and `dask worker tcp://host:8786`, or use --dask local."
                ) from error
            yield client
