"""Whole jobs for the workers of a cluster: folds of a comparison, and parts of a text file that becomes a store."""

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
from coterie.cluster.parts import check_same_store, is_wanted, threads_of_worker
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


# Seconds without any news of units that have no limit of their own: methods may take long.
_LIMIT = 86_400.0
# Seconds that a unit may take on top of its limit, until its rows are here.
_MORE = 900.0
# Bytes of text of a part, at most, and parts for each thread of the cluster, at least.
_PART, _PARTS = 1 << 28, 4
_SHARED = "Workers must see the file and the folder of the store under the same names as this process (a shared folder)."


class ClusterSchedule:
    """Runs the units of a comparison, one per task; the journal stays on the client.

    All workers can open the store of the setting, whose header has the checksum ``check``. Workers enforce the limits.
    """

    def __init__(self, setting: TrialSettings, check: str, limits: Limits, client: Client) -> None:
        self.setting = setting
        self.check = check
        self.limits = limits
        # Units of a fold after the other may have to wait for a worker, but one of those that run is over by then.
        self.engine = DaskEngine(client, limit=_LIMIT if limits.seconds is None else limits.seconds + _MORE)
        check_workers(self.engine)

    def run(self, units: Sequence[Unit], on_row: OnRow) -> None:
        """Run all units; rows come as units are done. After an error or Ctrl-C, no process continues."""
        shared = {"setting": self.engine.share(pickled(self.setting, "classifier or scoring"))}
        parts = [
            (self.check, pickled(unit.contender, f"selector {unit.contender.name!r}"), unit.fold, unit.sizes, self.limits)
            for unit in units
        ]
        handles = self.engine.map(run_unit, parts, shared, [None] * len(units))

        def tell(_: int, rows: list[tuple[Row, np.ndarray]]) -> None:
            for row, features in rows:
                on_row(row, features)

        self.engine.gather(handles, "folds of the comparison", on_answer=tell)


def run_unit(
    check: str, contender: bytes, fold: int, sizes: list[int], limits: Limits, shared: dict[str, bytes]
) -> list[tuple[Row, np.ndarray]]:
    """A fold of a method, on a worker: all of its rows."""
    setting: TrialSettings = pickle.loads(shared["setting"])  # from our own client, as the whole task is
    check_same_store(str(setting.store), check)
    rows: list[tuple[Row, np.ndarray]] = []
    with temporary_folder(Path(tempfile.gettempdir()) / "coterie-compare") as scratch:
        beside = max(1, cpu_count() // threads_of_worker())  # as many units may run on a machine at the same time
        schedule = Schedule(setting, scratch, limits, beside, wanted=is_wanted)
        schedule.run([Unit(pickle.loads(contender), fold, list(sizes))], lambda row, features: rows.append((row, features)))
    return rows


def convert(src: PathLike, store: PathLike, client: Client, *, memory_limit: int | None = None, **options: Any) -> Path:
    """Make a store of a LIBSVM file, whose text is read by the workers of a Dask cluster.

    The store is that of :func:`coterie.data.convert`, byte by byte.

    Parameters
    ----------
    src : path-like
        The file, not compressed, which all workers see.
    store : path-like
        The folder to make; all workers can write beside it.
    client : distributed.Client
        The client of the cluster.
    memory_limit : int, optional
        Bytes that each worker, and then this process, may use; see :func:`coterie.data.convert`.
    **options
        Of :func:`coterie.data.convert`.

    Returns
    -------
    store : Path
        The store.

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
    """What a worker has found in its part of the text, or the error and its line there; rows count from 0."""

    summary: PartSummary
    labels: np.ndarray
    n_rows: int
    n_columns: int
    kind: ValueKind
    runs: list[Run]
    error: DataFileError | None = None


def _collect(engine: DaskEngine, reader: Reader, folder: Path, limit: int, progress: Progress | None) -> SparseRows:
    """The entries of all samples, sorted in runs by the workers."""
    if not isinstance(reader, LibsvmReader):
        raise DataFileError(f"workers read parts of LIBSVM text, and this is {reader.format}. Leave --dask out.", reader.path)
    stream = ByteStream(reader.path)
    stream.close()
    if stream.compression is not None:
        words = f"{stream.compression} data cannot be read in parts. Unpack the file, or leave --dask out."
        raise DataFileError(words, reader.path)
    n_parts = max(_PARTS * engine.n_threads, -(-stream.n_bytes // _PART))
    cuts = sorted({round(cut) for cut in np.linspace(0, stream.n_bytes, n_parts + 1)})
    where = os.path.abspath(reader.path), stream.n_bytes
    parts = [(*where, a, b, reader.options, os.path.abspath(folder), limit) for a, b in itertools.pairwise(cuts)]
    done = 0

    def tell(place: int, _: object) -> None:
        nonlocal done
        done += cuts[place + 1] - cuts[place]
        if progress is not None:
            progress(done, stream.n_bytes, "reading")

    handles = engine.map(_read_part, parts, {}, [None] * len(parts))
    found: list[_Part] = engine.gather(handles, "parts of the text", on_answer=tell)
    n_lines = 0
    for part in found:
        if part.error is not None:
            wrong = part.error
            line = None if wrong.line is None else n_lines + wrong.line
            raise DataFileError(wrong.message, reader.path, line=line, column=wrong.column)
        n_lines += part.summary.n_lines
    reader.merge_parts([part.summary for part in found], [part.labels for part in found])
    rows = SparseRows(folder, limit)
    for part in found:
        if any(not run.rows.exists() for run in part.runs):
            raise ClusterError(f"{folder}: what the workers have written there is not here. {_SHARED}")
        rows.join(part.n_rows, part.n_columns, part.kind, part.runs)
    return rows


def _read_part(
    path: str, n_bytes: int, start: int, stop: int, options: dict[str, Any], folder: str, limit: int, _: dict[str, object]
) -> _Part:
    """The lines that begin in a range of bytes, on a worker; its files have names of their own, so that it may run twice."""
    if not os.path.isfile(path) or os.path.getsize(path) != n_bytes:
        raise ClusterError(f"{path}: the worker does not see this file, or another one. {_SHARED}")
    own = Path(folder) / uuid.uuid4().hex
    try:
        own.mkdir()
    except OSError as error:
        raise ClusterError(f"{folder}: the worker cannot write there ({error.strerror}). {_SHARED}") from error
    reader = LibsvmReader(Path(path), **options)
    reader.span = start, stop
    rows = SparseRows(own, limit)
    wrong = None
    try:
        for block in reader.blocks(limit // 64):
            rows.add(block)  # type: ignore[arg-type]  # rows of sparse matrices
    except DataFileError as error:
        wrong = error
    labels = np.empty(0) if reader.labels is None else reader.labels
    runs = rows.finish() if wrong is None else []
    return _Part(reader.summary, labels, rows.n_rows, rows.n_columns, rows.kind, runs, wrong)
