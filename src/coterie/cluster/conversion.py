"""A text file made a store by many: workers read parts of it, and leave them sorted by feature where the store will be."""

from __future__ import annotations

import itertools
import os
import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.cluster import ClusterError
from coterie.cluster.dask_engine import DaskEngine, check_workers
from coterie.data.errors import DataFileError
from coterie.data.opening import convert_with
from coterie.data.readers.byte_stream import ByteStream
from coterie.data.readers.collect import Run, SparseRows
from coterie.data.readers.libsvm import LibsvmReader, Seen
from coterie.data.readers.reader import Progress, Reader, ValueKind
from coterie.data.store.reading import PathLike

if TYPE_CHECKING:
    from distributed import Client

# Bytes of text of a part, at most, and parts for each thread of the cluster, at least.
_PART, _PARTS = 1 << 28, 4
_SHARED = "Workers must see the file and the folder of the store under the same names as this process (a shared folder)."


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

    seen: Seen
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
        n_lines += part.seen.n_lines
    reader.take([part.seen for part in found], [part.labels for part in found])
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
    return _Part(reader.seen, labels, rows.n_rows, rows.n_columns, rows.kind, runs, wrong)
