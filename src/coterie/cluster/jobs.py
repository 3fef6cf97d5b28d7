"""Jobs for the workers of a cluster: folds of a comparison, and conversion of parts of a text file to a store."""

from __future__ import annotations

import itertools
import os
import pickle
import tempfile
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import cpu_count

from coterie.cluster import ClusterError
from coterie.cluster.dask_engine import DaskEngine, check_workers
from coterie.cluster.parts import check_same_store, is_task_needed, threads_of_worker
from coterie.comparison.process import Limits, OnRow, Schedule, Unit, pickled
from coterie.comparison.result import Row
from coterie.comparison.trial import TrialSettings
from coterie.data.errors import DataFileError
from coterie.data.opening import convert_with
from coterie.data.readers.byte_stream import ByteStream
from coterie.data.readers.collect import Run, SparseRows
from coterie.data.readers.libsvm import LibsvmReader, PartSummary
from coterie.data.readers.reader import Progress, Reader, ValueKind
from coterie.data.store.reading import PathLike
from coterie.files import temporary_folder

if TYPE_CHECKING:
    from distributed import Client


# Seconds without a result after which a wait fails, if units have no time limit: methods may take long.
_DEFAULT_LIMIT = 86_400.0
# Seconds that a unit may take in addition to its limit, until its rows are received.
_EXTRA_SECONDS = 900.0
# Maximum bytes of text per part, and minimum number of parts per thread of the cluster.
_MAX_PART_BYTES, _PARTS_PER_THREAD = 1 << 28, 4
_SHARED_FOLDER_HINT = "The file and the folder of the store must have the same paths on the workers (a shared folder)."


class ClusterSchedule:
    """Runs the units of a comparison, one per task, with the journal on the client.

    All workers must be able to open the store of the settings, whose header has the checksum ``check``. Workers enforce the
    limits.
    """

    def __init__(self, setting: TrialSettings, check: str, limits: Limits, client: Client) -> None:
        self.setting = setting
        self.check = check
        self.limits = limits
        # A unit may have to wait for a worker, but one of the running units ends within this limit.
        self.engine = DaskEngine(client, limit=_DEFAULT_LIMIT if limits.seconds is None else limits.seconds + _EXTRA_SECONDS)
        check_workers(self.engine)

    def run(self, units: Sequence[Unit], on_row: OnRow) -> None:
        """Run all units and report rows as units finish. After an error or Ctrl-C, no process continues."""
        shared = {"setting": self.engine.share(pickled(self.setting, "classifier or scoring"))}
        parts = [
            (self.check, pickled(unit.entry, f"selector {unit.entry.name!r}"), unit.fold, unit.sizes, self.limits)
            for unit in units
        ]
        handles = self.engine.map(run_unit, parts, shared, [None] * len(units))

        def report(_: int, rows: list[tuple[Row, np.ndarray]]) -> None:
            for row, features in rows:
                on_row(row, features)

        self.engine.gather(handles, "folds of the comparison", on_answer=report)


def run_unit(
    check: str, entry: bytes, fold: int, sizes: list[int], limits: Limits, shared: dict[str, bytes]
) -> list[tuple[Row, np.ndarray]]:
    """Run a fold of a method, on a worker, and return all its rows."""
    setting: TrialSettings = pickle.loads(shared["setting"])  # trusted: the client sends it, like the task itself
    check_same_store(str(setting.store), check)
    rows: list[tuple[Row, np.ndarray]] = []
    with temporary_folder(Path(tempfile.gettempdir()) / "coterie-compare") as scratch:
        n_jobs = max(1, cpu_count() // threads_of_worker())  # number of units that may run on this machine at the same time
        schedule = Schedule(setting, scratch, limits, n_jobs, wanted=is_task_needed)
        schedule.run([Unit(pickle.loads(entry), fold, list(sizes))], lambda row, features: rows.append((row, features)))
    return rows


def convert(src: PathLike, store: PathLike, client: Client, *, memory_limit: int | None = None, **options: Any) -> Path:
    """Convert a LIBSVM file to a store, with its text parsed by the workers of a Dask cluster.

    The store is byte-identical to that of :func:`coterie.data.convert`.

    Parameters
    ----------
    src : path-like
        Uncompressed file that all workers can read.
    store : path-like
        Folder of the new store. All workers must be able to write to its parent folder.
    client : distributed.Client
        Client of the cluster.
    memory_limit : int, optional
        Maximum memory in bytes of each worker, and then of this process; see :func:`coterie.data.convert`.
    **options
        Options of :func:`coterie.data.convert`.

    Returns
    -------
    store : Path
        Path of the store.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dask.distributed import Client
    >>> from coterie.cluster import convert
    >>> from coterie.data import open_store
    >>> with Client(processes=False, dashboard_address=None) as client, tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "small.svm"
    ...     _ = path.write_text("+1 1:0.5 3:2\\n-1 2:1\\n")
    ...     open_store(convert(path, Path(folder) / "small.store", client)).shape
    (2, 3)
    """
    engine = DaskEngine(client)
    check_workers(engine)
    return convert_with(partial(_collect, engine), src, store, memory_limit=memory_limit, **options)


class _Part(NamedTuple):
    """Result of parsing a part of the text, or the error with its line in the part. Rows are numbered from 0."""

    summary: PartSummary
    labels: np.ndarray
    n_rows: int
    n_columns: int
    kind: ValueKind
    runs: list[Run]
    error: DataFileError | None = None


def _collect(engine: DaskEngine, reader: Reader, folder: Path, limit: int, progress: Progress | None) -> SparseRows:
    """Collect the entries of all samples, sorted in runs by the workers."""
    if not isinstance(reader, LibsvmReader):
        message = f"workers can only convert LIBSVM text, but the format is {reader.format}. Omit --dask."
        raise DataFileError(message, reader.path)
    stream = ByteStream(reader.path)
    stream.close()
    if stream.compression is not None:
        message = f"{stream.compression} data cannot be read in parts. Decompress the file or omit --dask."
        raise DataFileError(message, reader.path)
    n_parts = max(_PARTS_PER_THREAD * engine.n_threads, -(-stream.n_bytes // _MAX_PART_BYTES))
    cuts = sorted({round(cut) for cut in np.linspace(0, stream.n_bytes, n_parts + 1)})
    file = os.path.abspath(reader.path), stream.n_bytes
    parts = [(*file, a, b, reader.options, os.path.abspath(folder), limit) for a, b in itertools.pairwise(cuts)]
    done = 0

    def report(place: int, _: object) -> None:
        nonlocal done
        done += cuts[place + 1] - cuts[place]
        if progress is not None:
            progress(done, stream.n_bytes, "reading")

    handles = engine.map(_read_part, parts, {}, [None] * len(parts))
    found: list[_Part] = engine.gather(handles, "parts of the text", on_answer=report)
    n_lines = 0
    for part in found:
        if part.error is not None:
            error = part.error
            line = None if error.line is None else n_lines + error.line
            raise DataFileError(error.message, reader.path, line=line, column=error.column)
        n_lines += part.summary.n_lines
    reader.merge_parts([part.summary for part in found], [part.labels for part in found])
    rows = SparseRows(folder, limit)
    for part in found:
        if any(not run.rows.exists() for run in part.runs):
            raise ClusterError(f"{folder}: files written by the workers are missing in this process. {_SHARED_FOLDER_HINT}")
        rows.join(part.n_rows, part.n_columns, part.kind, part.runs)
    return rows


def _read_part(
    path: str, n_bytes: int, start: int, stop: int, options: dict[str, Any], folder: str, limit: int, _: dict[str, object]
) -> _Part:
    """Parse the lines that begin in a range of bytes, on a worker. Its files have unique names, so that it may run twice."""
    if not os.path.isfile(path) or os.path.getsize(path) != n_bytes:
        raise ClusterError(f"{path}: the worker cannot find this file, or finds another one. {_SHARED_FOLDER_HINT}")
    part_folder = Path(folder) / uuid.uuid4().hex
    try:
        part_folder.mkdir()
    except OSError as error:
        raise ClusterError(f"{folder}: the worker cannot write there ({error.strerror}). {_SHARED_FOLDER_HINT}") from error
    reader = LibsvmReader(Path(path), **options)
    reader.span = start, stop
    rows = SparseRows(part_folder, limit)
    problem = None
    try:
        for block in reader.blocks(limit // 64):
            rows.add(block)  # type: ignore[arg-type]  # a LIBSVM reader yields row blocks
    except DataFileError as error:
        problem = error
    labels = np.empty(0) if reader.labels is None else reader.labels
    runs = rows.finish() if problem is None else []
    return _Part(reader.summary, labels, rows.n_rows, rows.n_columns, rows.kind, runs, problem)
