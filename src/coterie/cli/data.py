"""Data of a command, in this process or on a cluster: options, opening, and the task that the labels imply."""

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

from coterie.cli.options import option, option_of
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

_PANEL, _TABLES_PANEL, _GENETICS_PANEL = "Data", "Tables", "Genetics"
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
    option(_PANEL, "Kind of prediction: auto (by the labels), classification or regression.", "--task -t", common=True),
]
# Formats whose columns can have any type.
TABLES = tuple(name for name, entry in FORMATS.items() if entry.table)
TASKS = ("auto", *DISCOVERY)
# Seconds to wait for a scheduler, and for its first worker.
_TIMEOUT = 60.0


@dataclass(frozen=True)
class DataOptions:
    """Options of all commands that open data."""

    labels: Annotated[
        list[str] | None,
        option(
            _PANEL,
            f"Label to predict: {describe_labels()}. May be repeated, for several numbers to predict (discover, predict).",
            "--label -l --pheno-name",
            common=True,
        ),
    ] = None
    sample_groups: Annotated[
        str | None,
        option(
            _PANEL,
            "Samples that belong together, such as the cells of a donor or the visits of a patient. A column (of a table, or "
            "obs of .h5ad), a key (.npz), or FID or a column of --phenotype or --covar (PLINK .bed). For other "
            "data, a text file with one group per line. Folds, half-samples and permutations keep them together.",
            common=True,
            metavar="COLUMN",
        ),
    ] = None
    format: Annotated[
        str | None, option(_PANEL, "Format of the data.", "--format -f", default="detected from content and name")
    ] = None
    read: Annotated[
        list[str] | None,
        option(
            _PANEL,
            "Option of the format's reader, such as layer=counts (.h5ad) or zero_based=true (LIBSVM). May be repeated.",
            "--read -r",
            metavar="NAME=VALUE",
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        option(_TABLES_PANEL, "Columns (features) to leave out. May be repeated.", metavar="COLUMN,..."),
    ] = None
    categories: Annotated[
        list[str] | None,
        option(
            _TABLES_PANEL,
            "Columns to read as categories whatever their values, such as codes of regions: one feature per level. By "
            "default, columns of text with few levels are categories.",
            metavar="COLUMN,...",
        ),
    ] = None
    dates: Annotated[
        str | None,
        option(
            _TABLES_PANEL,
            "Read dates as days since 1970-01-01: auto, or day-first or month-first if the dates do not tell. By default, "
            "dates are left out.",
            metavar="auto|day-first|month-first",
        ),
    ] = None
    keep_numeric: Annotated[
        bool,
        option(
            _TABLES_PANEL, "Ignore columns that contain neither numbers nor True and False, also categories.", "--keep-numeric"
        ),
    ] = False
    weight: Annotated[
        str | None,
        option(_TABLES_PANEL, "Column of sample weights (of a table, or obs of .h5ad).", metavar="COLUMN"),
    ] = None
    delimiter: Annotated[
        str | None,
        option(_TABLES_PANEL, "Delimiter of CSV and TSV: ',', ';', '|' or tab.", metavar="CHARACTER", default="detected"),
    ] = None
    decimal: Annotated[
        str | None,
        option(
            _TABLES_PANEL,
            "Decimal mark of numbers in text, '.' or ','. The other one separates thousands.",
            metavar="CHARACTER",
            default="detected",
        ),
    ] = None
    sheet: Annotated[
        str | None, option(_TABLES_PANEL, "Sheet of an .xlsx file.", metavar="NAME", default="the only one with data")
    ] = None
    impute: Annotated[
        str | None,
        option(
            _TABLES_PANEL,
            "Fill missing values with the median, mean or most_frequent value. In validation, each fold is filled from its "
            "training samples only.",
        ),
    ] = None
    phenotype: Annotated[
        Path | None,
        option(
            _GENETICS_PANEL,
            "File with phenotypes by FID and IID (PLINK). --label (--pheno-name) selects the column.",
            "--phenotype -p --pheno",
            metavar="FILE",
        ),
    ] = None
    covar: Annotated[
        str | None,
        option(
            _PANEL,
            "Covariates, for which the model adjusts and which it never selects: columns of a table or of obs (.h5ad), such "
            "as AGE,SEX,batch, or a file with covariates by FID and IID (PLINK data, or a store made from them).",
            "--covar",
            metavar="COLUMN,...|FILE",
        ),
    ] = None
    covar_name: Annotated[
        str | None,
        option(_GENETICS_PANEL, "Columns of the file of covariates, such as AGE,PC1-PC10.", metavar="NAME,...", default="all"),
    ] = None

    @property
    def label(self) -> str | None:
        """The label, for commands that predict one."""
        if self.labels is not None and len(self.labels) > 1:
            raise ValueError(
                f"--label is given {len(self.labels)} times ({', '.join(self.labels)}), but this command takes one label. "
                "Only discover and predict take several."
            )
        return self.labels[0] if self.labels else None

    def arguments(self) -> Settings:
        """Return the arguments for :func:`coterie.open_features` and :func:`coterie.convert`."""
        own: Settings = {"label": read_label(self.label), "format": self.format}
        own |= {} if self.sample_groups is None else {"sample_groups": read_label(self.sample_groups)}
        own |= {} if not self.drop else {"drop": self.drop}
        own |= {} if not self.keep_numeric else {"keep_numeric": True}
        own |= {} if self.impute is None else {"impute": self.impute}
        settings = parse_settings(self.read or [], "--read")
        for name in sorted(own.keys() & settings):
            raise ValueError(f"--read {name}: use the option {option_of(name)} instead.")
        if self.covar is None and self.covar_name is not None:
            raise ValueError("--covar-name selects columns of a file of covariates. Name the file with --covar.")
        own |= {} if self.dates is None else {"dates": True if self.dates == "auto" else self.dates}
        more = {
            "categories": self.categories,
            "weight": None if self.weight is None else read_label(self.weight),
            "delimiter": self.delimiter,
            "decimal": self.decimal,
            "sheet": self.sheet,
            "phenotype": self.phenotype,
            "covariates": self.covar,
            "covariate_names": self.covar_name,
        }
        return own | settings | {name: value for name, value in more.items() if value}

    def open(
        self,
        path: Path,
        console: Console,
        opener: Callable[..., Dataset] | None = None,
        *,
        adjusts: bool = False,
        validates: bool = False,
        weighs: bool = False,
        allow_missing: bool = False,
        **arguments: Any,
    ) -> Dataset:
        """Open the data and print a note about them.

        Parameters
        ----------
        path : Path
            The data.

        console : Console
            Output of the command.

        opener : callable, default=:func:`coterie.open_features`
            Function that opens the data.

        adjusts : bool, default=False
            Whether the command adjusts for covariates.

        validates : bool, default=False
            Whether the command uses sample groups.

        weighs : bool, default=False
            Whether the command uses sample weights.

        allow_missing : bool, default=False
            Whether to accept tables with missing values that are not filled.

        **arguments
            Further arguments of the opener.

        Returns
        -------
        dataset : Dataset
        """
        from coterie.data import open_features

        if self.covar is not None and not adjusts:
            raise ValueError("--covar: this command does not adjust for covariates. Remove --covar.")
        if self.weight is not None and not weighs:
            raise ValueError(
                "--weight: this command does not use sample weights. Remove --weight, and leave the column out "
                "of a table with --drop."
            )
        if self.sample_groups is not None and not validates:
            raise ValueError(
                "--sample-groups: this command divides no samples into folds or halves. Remove --sample-groups, and leave "
                "the column out of a table with --drop."
            )
        with console.collecting_warnings():
            dataset = (opener or open_features)(with_scheme(path), **self.arguments(), **arguments)
        if not allow_missing and opener is None:  # workers check their own part
            _require_complete(dataset)
        n_samples, n_features = dataset.source.shape
        kind = "sparse" if dataset.source.is_sparse else "dense"
        notes = "".join(f"; {name.replace('_', ' ')}: {value}" for name, value in dataset.notes.items())
        if dataset.covariates is not None and adjusts:
            notes += f"; covariates: {', '.join(dataset.covariates.names)}"
        if dataset.sample_weight is not None:
            notes += "; sample weights"
        if dataset.sample_groups is not None and validates:
            notes += f"; {len(set(dataset.sample_groups.tolist())):,} sample groups"
        n_workers = dataset.source.n_workers
        workers = "" if n_workers is None else f", on {n_workers} worker(s)"
        console.note(f"{path}: {n_samples:,} samples, {n_features:,} features, {kind} ({dataset.format}){workers}{notes}")
        if self.impute is not None:
            console.note(_imputation_note(dataset, self.impute))
        return dataset


def _require_complete(dataset: Dataset) -> None:
    """Raise a ``ValueError`` that lists all columns of a table with missing values."""
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


def _imputation_note(dataset: Dataset, strategy: str) -> str:
    """Return a sentence about the values that were filled."""
    from coterie.data import ImputedSource
    from coterie.data.readers.columns import listed

    source = dataset.source
    count = source.n_missing if isinstance(source, ImputedSource) else None
    if count is None or not count.any():
        return f"--impute {strategy}: the data have no missing values."
    names = names_of(source, count.nonzero()[0])
    shown = listed([str(j) if name is None else name for j, name in zip(count.nonzero()[0].tolist(), names, strict=True)])
    return (
        f"--impute {strategy}: {int(count.sum()):,} missing values in {len(names):,} features are filled ({shown}). In "
        "validation, each fold is filled from its training samples only."
    )


def read_label(label: str | None) -> str | int | bool | None:
    """Return the name or position of a column; False for ``none`` (no labels)."""
    if label is None:
        return None
    value = parse_value(label) if label.lstrip("-").isdigit() or label.lower() == "none" else label
    return False if value is None else value


def settle_task(task: str, y: np.ndarray | None, path: Path) -> str:
    """Return the task; for ``auto``, the one that the labels imply."""
    if task not in TASKS:
        raise ValueError(f"--task {task} must be one of {', '.join(TASKS)}.")
    if task == "one-class":
        return task
    if y is None:
        raise ValueError(f"{path} has no labels. Name them with --label, or use --task one-class.")
    if task != "auto":
        return task
    from coterie.inputs.targets import task_of

    return task_of(y)


def show_methods(syntax: str, rows: Iterable[tuple[str, str, Method, Iterable[Parameter]]]) -> None:
    """Print the methods with their labels and parameters, and the criteria; then exit."""
    table = Table("method", "labels", "description", f"parameters ({syntax})")
    for name, labels, method, parameters in rows:
        table.add_row(name, labels, method.description, Text(", ".join(f"{p.name}={p.default}" for p in parameters)))
    Console().show(table)
    Console().show(Text(criteria_text()))
    raise typer.Exit


def names_of(source: FeatureSource, features: np.ndarray) -> list[str | None]:
    """Return the names of some features; None for features without a name."""
    names = source.feature_names
    return [None if names is None else str(names[int(j)]) for j in features]


def stem(path: Path) -> str:
    """Return the name of the data without the suffixes of format and compression."""
    name = path.name.rstrip("/") or path.resolve().name
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return Path(name).stem or name


@dataclass(frozen=True)
class Cluster:
    """Option to run a command on a Dask cluster."""

    dask: Annotated[
        str | None,
        option(
            "Cluster",
            "Run on a Dask cluster, whose workers read the data: address of the scheduler (tcp://host:8786), or local for "
            "worker processes on this machine.",
            metavar="ADDRESS|local",
        ),
    ] = None

    def check(self, supported: bool, method: str) -> None:
        """Raise a ``ValueError`` if a method cannot run on a cluster, before the cluster is started."""
        if self.dask is not None and not supported:
            raise ValueError(f"{method} cannot run on a cluster because it needs all features together. Remove --dask.")

    @contextmanager
    def opened(self, path: Path, options: DataOptions, console: Console, **arguments: Any) -> Iterator[Dataset]:
        """Open the data, with their features on the cluster if ``--dask`` is set."""
        if self.dask is None:
            yield options.open(path, console, **arguments)
            return
        from coterie.data.opening import open_store_with

        with self.client(path) as client:
            from coterie.cluster import DistributedSource

            assert client is not None  # because --dask is set

            def place(store: Store) -> DistributedSource:
                return DistributedSource.of_store(store, client)

            yield options.open(path, console, partial(open_store_with, place=place), **arguments)

    @staticmethod
    def converting(client: Client) -> Callable[..., Path]:
        """Return :func:`coterie.data.convert` for the workers of a client."""
        from coterie.cluster import convert

        return partial(convert, client=client)

    @contextmanager
    def client(self, store: Path | None = None) -> Iterator[Client | None]:
        """Yield a client of the cluster with at least one worker; None without ``--dask``.

        ``store`` is the path that the workers open, which must be a store.
        """
        if self.dask is None:
            yield None
            return
        from coterie.cluster import ClusterError
        from coterie.data.errors import missing_extra
        from coterie.data.opening import check_store

        if store is not None:
            check_store(store)  # before the cluster is started

        try:
            import distributed
        except ImportError as error:
            raise missing_extra("--dask", "dask.distributed", "dask") from error
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the work continues without lost workers
        with ExitStack() as stack:
            address: object = self.dask
            if self.dask == "local":
                with ignore_signal(signal.SIGINT):  # this process handles Ctrl-C for its workers
                    address = stack.enter_context(
                        distributed.LocalCluster(threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL)
                    )
            try:
                client = stack.enter_context(distributed.Client(address, set_as_default=False, timeout=_TIMEOUT))
                client.wait_for_workers(1, timeout=_TIMEOUT)
            except (OSError, TimeoutError, ValueError) as error:
                raise ClusterError(
                    f"--dask {self.dask}: no scheduler with at least one worker could be reached ({type(error).__name__}). "
                    "Start them with `dask scheduler` and `dask worker tcp://host:8786`, or use --dask local."
                ) from error
            yield client
