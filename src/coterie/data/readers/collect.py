"""Conversion of blocks of samples to features, in memory or through sorted runs on disk.

Entries of sparse rows are collected up to the memory limit, sorted by feature with a counting sort, and written as a *run*.
A range of features is one contiguous piece of every run, so the runs are merged range by range. Each byte is written and
read once, for any number of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from coterie._numba import read_only, run_chunks, thread_count
from coterie.bounds import memory_limit, require_memory
from coterie.data.memory import DenseSource, SparseSource
from coterie.data.readers.reader import Block, Progress, Reader, RowBlock, ValueKind
from coterie.files import full_disk
from coterie.kernels.transposition import append_columns, count_columns, scatter_rows

# Bytes per entry while a run is collected and sorted: column and value, row and value, and as much again for the block that
# is being parsed, the counts, and memory retained by the allocator.
_ENTRY_BYTES = 56
_MIN_ENTRIES = 1 << 16
# Bytes per label, including the copy when all are joined; and per feature, for counts, column starts and moments.
_LABEL_BYTES = 16
_FEATURE_BYTES = 40


class Run(NamedTuple):
    """Entries of some samples on disk, sorted by column. Row numbers are relative to ``first_row``."""

    columns: Any
    starts: Any
    rows: Path
    row_type: np.dtype
    values: Path
    value_type: np.dtype
    first_row: int = 0


class SparseRows:
    """Collects sparse entries by sample and returns them by feature.

    A run is written to ``folder`` whenever ``memory_limit`` bytes are used. Without a folder, everything is kept in memory.
    """

    def __init__(self, folder: Path | None = None, memory_limit: int = 1 << 62) -> None:
        self.folder = folder
        self.capacity = max(memory_limit // _ENTRY_BYTES, _MIN_ENTRIES)
        self.kind = ValueKind()
        self.n_rows = 0
        self.n_columns = 0
        self._counts = np.zeros(0, dtype=np.int64)
        self._pending: list[tuple[int, RowBlock]] = []
        self._n_pending = 0
        self._runs: list[Run] = []

    def add(self, block: RowBlock) -> None:
        columns = read_only(block.columns)
        self.n_columns = max(self.n_columns, int(columns.max(initial=-1)) + 1)
        if self.n_columns > len(self._counts):
            grown = np.zeros(max(self.n_columns, 2 * len(self._counts)), dtype=np.int64)
            grown[: len(self._counts)] = self._counts
            self._counts = grown
        count_columns(columns, self._counts)
        self.kind.update(read_only(block.values))
        self._pending.append((self.n_rows, block))
        self._n_pending += len(columns)
        self.n_rows += len(block.ends)
        if self.folder is not None and self._n_pending >= self.capacity:
            self._write_run(self.folder)

    @property
    def result_bytes(self) -> int:
        """Bytes of the transposed features, in addition to the collected rows."""
        return 12 * self._n_pending

    @property
    def column_bytes(self) -> int:
        """Bytes of the longest feature while it is merged from the runs."""
        return 24 * int(self._counts.max(initial=0))

    def starts(self, first: int, n_features: int) -> np.ndarray:
        """Return the start of each feature (CSC ``indptr``) if column ``first`` is the first feature."""
        counts = self._counts[first : first + n_features]
        n_entries = int(counts.sum())
        starts = np.zeros(n_features + 1, dtype=np.int64 if n_entries >= 2**31 else np.int32)
        np.cumsum(counts, out=starts[1 : len(counts) + 1])
        starts[len(counts) + 1 :] = n_entries
        return starts

    def pieces(self, first: int, starts: np.ndarray, dtype: np.dtype) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
        """Yield all features in order, in ranges: (first feature, end, rows, values)."""
        row_type = np.dtype(np.int64 if self.n_rows >= 2**31 else np.int32)
        n_features = len(starts) - 1
        if not self._runs:
            rows, values = np.empty(starts[-1], dtype=row_type), np.empty(starts[-1], dtype=dtype)
            _scatter(self._pending, first, starts, rows, values)
            self._pending = []
            yield 0, n_features, rows, values
            return
        if self._pending and self.folder is not None:
            self._write_run(self.folder)
        begin = 0
        while begin < n_features:
            end = int(np.searchsorted(starts, int(starts[begin]) + self.capacity, side="right")) - 1
            end = min(max(end, begin + 1), n_features)
            yield begin, end, *self._merge(first, begin, end, starts, row_type, dtype)
            begin = end

    def _merge(
        self, first: int, begin: int, end: int, starts: np.ndarray, row_type: np.dtype, dtype: np.dtype
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the entries of a range of features from all runs, in sample order."""
        cursor = (starts[begin:end] - starts[begin]).astype(np.int64)
        size = int(starts[end] - starts[begin])
        rows, values = np.empty(size, dtype=row_type), np.empty(size, dtype=dtype)
        for run in self._runs:
            low, high = np.searchsorted(run.columns, [begin + first, end + first])
            if low == high:
                continue
            a, b = int(run.starts[low]), int(run.starts[high])
            append_columns(
                np.array(run.columns[low:high]), np.array(run.starts[low : high + 1]), a,
                np.fromfile(run.rows, run.row_type, b - a, offset=a * run.row_type.itemsize) + row_type.type(run.first_row),
                np.fromfile(run.values, run.value_type, b - a, offset=a * run.value_type.itemsize),
                begin + first, cursor, rows, values,
            )  # fmt: skip
        return rows, values

    def finish(self) -> list[Run]:
        """Return all runs, with columns and starts in files, so that another process can join them."""
        assert self.folder is not None
        if self._pending:
            self._write_run(self.folder)
        return [self._mapped(self.folder, number, run) for number, run in enumerate(self._runs)]

    @staticmethod
    def _mapped(folder: Path, number: int, run: Run) -> Run:
        files = folder / f"run-{number}.columns.npy", folder / f"run-{number}.starts.npy"
        for path, array in zip(files, (run.columns, run.starts), strict=True):
            with _name_file_in_errors(path):
                np.save(path, array)
        return run._replace(columns=files[0], starts=files[1])

    def join(self, n_rows: int, n_columns: int, kind: ValueKind, runs: Sequence[Run]) -> None:
        """Append the samples of another instance, given the result of its :meth:`finish`."""
        self.n_columns = max(self.n_columns, n_columns)
        if self.n_columns > len(self._counts):
            self._counts = np.append(self._counts, np.zeros(self.n_columns - len(self._counts), dtype=np.int64))
        self.kind.join(kind)
        for run in runs:
            columns, starts = (np.load(file, mmap_mode="r") for file in (run.columns, run.starts))
            self._counts[columns] += np.diff(starts)
            self._runs.append(run._replace(columns=columns, starts=starts, first_row=self.n_rows + run.first_row))
        self.n_rows += n_rows

    def _write_run(self, folder: Path) -> None:
        counts = np.zeros(self.n_columns, dtype=np.int64)
        kind = ValueKind()
        for _, block in self._pending:
            count_columns(read_only(block.columns), counts)
            kind.update(read_only(block.values))
        starts = np.zeros(self.n_columns + 1, dtype=np.int64)
        np.cumsum(counts, out=starts[1:])
        row_type = np.dtype(np.int64 if self.n_rows >= 2**31 else np.int32)
        rows, values = np.empty(starts[-1], dtype=row_type), np.empty(starts[-1], dtype=kind.dtype)
        _scatter(self._pending, 0, starts, rows, values)
        self._pending, self._n_pending = [], 0
        used = np.flatnonzero(counts)
        number = len(self._runs)
        files = folder / f"run-{number}.rows", folder / f"run-{number}.values"
        for path, array in zip(files, (rows, values), strict=True):
            with _name_file_in_errors(path):
                array.tofile(path)
        self._runs.append(Run(used, np.append(starts[used], starts[-1]), files[0], row_type, files[1], kind.dtype))


@contextmanager
def _name_file_in_errors(path: Path) -> Iterator[None]:
    """Add the file name to an error of the disk, because NumPy reports a short write without an error number."""
    try:
        yield
    except OSError as error:
        raise full_disk(error, path) from error


def _scatter(
    pending: list[tuple[int, RowBlock]], first: int, starts: np.ndarray, rows: np.ndarray, values: np.ndarray
) -> None:
    """Sort entries by column. Each thread handles a range of columns, so the result does not depend on threads."""
    n_features = len(starts) - 1
    cursor = np.zeros(first + n_features, dtype=np.int64)
    cursor[first:] = starts[:-1]
    n_threads = thread_count()
    cuts = np.searchsorted(starts, np.linspace(0, int(starts[-1]), n_threads + 1)[1:-1])
    boundaries = np.unique(np.array([0, *cuts, n_features])) + first

    def task(start: int, stop: int) -> None:
        for first_row, block in pending:
            scatter_rows(
                block.ends, first_row, read_only(block.columns), read_only(block.values), cursor, rows, values, start, stop
            )

    run_chunks(task, boundaries, n_threads)


class DenseRows:
    """Collects dense rows and returns them by feature, as :class:`SparseRows` does."""

    def __init__(self, folder: Path | None = None, memory_limit: int = 1 << 62) -> None:
        self.folder = folder
        self.memory_limit = memory_limit
        self.kind = ValueKind()
        self.n_rows = 0
        self.n_columns = 0
        self._pending: list[np.ndarray] = []
        self._file: Path | None = None
        self._type = np.dtype(np.float64)

    def add(self, block: np.ndarray) -> None:
        if self.n_rows and block.shape[1] != self.n_columns:
            raise ValueError(f"A block of samples has {block.shape[1]} features, but previous blocks have {self.n_columns}.")
        self.n_columns = block.shape[1]
        if self.n_rows and block.dtype != self._type and self._file is not None:  # integers on disk cannot be changed to NaN
            raise ValueError(
                f"Integer columns have missing values, first in samples from {self.n_rows:,} on. Impute them or omit these "
                "columns."
            )
        self._type = block.dtype if self.n_rows == 0 else np.result_type(self._type, block.dtype)
        self.kind.update(read_only(block))
        self._pending.append(block)
        self.n_rows += len(block)
        if self.folder is not None and sum(part.nbytes for part in self._pending) > self.memory_limit // 4:
            self._spill(self.folder)

    @property
    def result_bytes(self) -> int:
        return self.n_rows * self.n_columns * self.kind.dtype.itemsize

    @property
    def column_bytes(self) -> int:
        return 2 * 8 * self.n_rows

    def _spill(self, folder: Path) -> None:
        """Append the rows to one file. All blocks of a reader have the same type."""
        self._file = path = folder / "rows"
        with _name_file_in_errors(path), open(path, "ab") as file:
            for part in self._pending:
                np.ascontiguousarray(part, dtype=self._type).tofile(file)
        self._pending = []

    def pieces(self, dtype: np.dtype) -> Iterator[tuple[int, np.ndarray]]:
        """Yield all features in order, in ranges: (first feature, F-ordered columns)."""
        if self._file is None:
            columns = np.empty((self.n_rows, self.n_columns), dtype=dtype, order="F")
            row = 0
            while self._pending:  # frees each block after copying it
                part = self._pending.pop(0)
                columns[row : row + len(part)] = part
                row += len(part)
            yield 0, columns
            return
        if self._pending and self.folder is not None:
            self._spill(self.folder)
        rows = np.memmap(self._file, dtype=self._type, mode="r", shape=(self.n_rows, self.n_columns))
        width = max(1, self.memory_limit // (4 * max(1, self.n_rows) * dtype.itemsize))
        for start in range(0, self.n_columns, width):
            yield start, np.asfortranarray(rows[:, start : start + width], dtype=dtype)


# Function that collects the samples of a reader: (reader, folder for runs, memory limit in bytes, progress).
Collect: TypeAlias = Callable[[Reader, Path, int, Progress | None], SparseRows]


def read_into_memory(reader: Reader, progress: Progress | None = None) -> DenseSource | SparseSource:
    """Read all data of a reader into memory."""
    rows: SparseRows | DenseRows | None = None
    parts: list[Any] = []
    for block in reader.blocks(1 << 24, progress):
        if reader.by == "features":
            parts.append(block)
            require_memory(sum(map(_bytes_of, parts)), reader.path, f"a matrix of {parts[0].shape[0]} samples")
        else:
            rows = rows or _rows_for(block)
            rows.add(block)  # type: ignore[arg-type]  # all blocks of a reader have one type
            vectors = _LABEL_BYTES * rows.n_rows + _FEATURE_BYTES * rows.n_columns
            require_memory(rows.result_bytes + vectors, reader.path, f"a matrix of more than {rows.n_rows} samples")
    source: DenseSource | SparseSource | None = None
    if rows is not None:
        (source,) = _pieces_of_rows(rows, reader, _n_features(reader, rows))  # one piece, because nothing is on disk
    elif parts:
        source = _join_parts(parts, reader.dtype)
    if source is None or 0 in source.shape:
        raise no_data_error(reader)
    reader.finalize(*source.shape)
    source.feature_names = reader.feature_names
    return source


def pieces(
    reader: Reader, folder: Path, limit: int, progress: Progress | None = None, collect: Collect | None = None
) -> Iterator[DenseSource | SparseSource]:
    """Yield the data of a reader in feature order, in pieces that fit into memory.

    Blocks of samples are collected first, if necessary through files in ``folder``, by ``collect`` if it is given. Blocks of
    features are yielded directly.
    """
    rows: SparseRows | DenseRows | None = None if collect is None else collect(reader, folder, limit, progress)
    for block in reader.blocks(limit // 64, progress) if rows is None else ():
        if reader.by == "features":
            yield from _pieces_of_block(block, reader.dtype, limit)
        else:
            rows = rows or _rows_for(block, folder, limit)
            rows.add(block)  # type: ignore[arg-type]  # all blocks of a reader have one type
            require_memory(_LABEL_BYTES * rows.n_rows, reader.path, f"labels of more than {rows.n_rows} samples")
            with memory_limit(None):  # memory per feature is in addition to the limit
                require_memory(_FEATURE_BYTES * rows.n_columns, reader.path, f"{rows.n_columns} features")
    if rows is None:
        return
    require_memory(rows.column_bytes, reader.path, f"a feature of {rows.n_rows} samples")
    n_features, done = _n_features(reader, rows), 0
    for piece in _pieces_of_rows(rows, reader, n_features):
        yield piece
        done += piece.shape[1]
        if progress is not None:
            progress(done, n_features, "writing features")


def no_data_error(reader: Reader) -> ValueError:
    """Return the error for a file without samples or features."""
    return ValueError(f"{reader.path}: the file contains no data (no samples or no features).")


def _rows_for(block: Block, folder: Path | None = None, limit: int = 1 << 62) -> SparseRows | DenseRows:
    return SparseRows(folder, limit) if isinstance(block, RowBlock) else DenseRows(folder, limit)


def _bytes_of(block: Any) -> int:
    """Return the bytes of a block of features, which are needed again when blocks are joined."""
    return int(block.data.nbytes + block.indices.nbytes) if sparse.issparse(block) else int(block.nbytes)


def _n_features(reader: Reader, rows: SparseRows | DenseRows) -> int:
    stated = reader.shape[1]
    return max(0, rows.n_columns - reader.first_column) if stated is None else stated


def _pieces_of_rows(rows: SparseRows | DenseRows, reader: Reader, n_features: int) -> Iterator[DenseSource | SparseSource]:
    dtype = np.dtype(rows.kind.dtype if reader.dtype is None else reader.dtype)
    if isinstance(rows, DenseRows):
        for _, columns in rows.pieces(dtype):
            yield DenseSource(columns)
        return
    starts = rows.starts(reader.first_column, n_features)
    for begin, end, indices, values in rows.pieces(reader.first_column, starts, dtype):
        local = starts[begin : end + 1] - starts[begin]
        yield SparseSource.from_arrays(local, indices, values, (rows.n_rows, end - begin))


def _pieces_of_block(block: Any, dtype: np.dtype | None, limit: int) -> Iterator[DenseSource | SparseSource]:
    """Yield a block of features in pieces that fit into memory in addition to the block."""
    if sparse.issparse(block):
        if dtype is not None:
            block = block.astype(dtype, copy=False)
        yield SparseSource(block)
        return
    width = max(1, limit // (4 * max(1, block.shape[0]) * 8))
    for start in range(0, block.shape[1], width):
        yield DenseSource(np.asfortranarray(block[:, start : start + width], dtype=dtype))


def _join_parts(parts: list[Any], dtype: np.dtype | None) -> DenseSource | SparseSource:
    if sparse.issparse(parts[0]):
        joined = parts[0] if len(parts) == 1 else sparse.hstack(parts, format="csc")
        return SparseSource(joined if dtype is None else joined.astype(dtype, copy=False))
    if len(parts) == 1:
        return DenseSource(np.asarray(parts[0], dtype=dtype))
    whole = np.empty((parts[0].shape[0], sum(part.shape[1] for part in parts)), dtype=dtype or parts[0].dtype, order="F")
    start = 0
    while parts:  # frees each part after copying it
        part = parts.pop(0)
        whole[:, start : start + part.shape[1]] = part
        start += part.shape[1]
    return DenseSource(whole)
