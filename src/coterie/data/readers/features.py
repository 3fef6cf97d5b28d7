"""What a reader reads, as features: all of them in memory, or piece by piece for a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from coterie.bounds import claim, memory_limit
from coterie.data.memory import DenseSource, SparseSource
from coterie.data.readers.collect import DenseRows, SparseRows
from coterie.data.readers.reader import Block, Progress, Reader, RowBlock

# Collects what a reader reads: (reader, folder for runs, bytes to use, progress).
Collect: TypeAlias = Callable[[Reader, Path, int, Progress | None], SparseRows]
# A label as it is read and once more while all are joined; counts, starts and moments of a feature.
_LABEL_BYTES = 16
_FEATURE_BYTES = 40


def read_into_memory(reader: Reader, progress: Progress | None = None) -> DenseSource | SparseSource:
    """All that a reader reads, as a source in memory."""
    rows: SparseRows | DenseRows | None = None
    parts: list[Any] = []
    for block in reader.blocks(1 << 24, progress):
        if reader.by == "features":
            parts.append(block)
            claim(sum(map(_bytes_of, parts)), reader.path, f"a matrix of {parts[0].shape[0]} samples")
        else:
            rows = rows or _rows_for(block)
            rows.add(block)  # type: ignore[arg-type]  # the blocks of a reader are all of one kind
            claim(rows.whole_bytes + _vectors(rows), reader.path, f"a matrix of more than {rows.n_rows} samples")
    source: DenseSource | SparseSource | None = None
    if rows is not None:
        (source,) = _pieces_of_rows(rows, reader, _n_features(reader, rows))  # one piece: nothing went to the disk
    elif parts:
        source = _joined(parts, reader.dtype)
    if source is None or 0 in source.shape:
        raise no_data(reader)
    reader.settle(*source.shape)
    source.feature_names = reader.feature_names
    return source


def pieces(
    reader: Reader, folder: Path, limit: int, progress: Progress | None = None, collect: Collect | None = None
) -> Iterator[DenseSource | SparseSource]:
    """All that a reader reads, in order of the features, in pieces that fit into memory.

    Blocks of samples are collected first, through files in ``folder`` if need be, by whoever is told to ``collect`` them;
    blocks of features pass through.
    """
    rows: SparseRows | DenseRows | None = None if collect is None else collect(reader, folder, limit, progress)
    for block in reader.blocks(limit // 64, progress) if rows is None else ():
        if reader.by == "features":
            yield from _pieces_of_block(block, reader.dtype, limit)
        else:
            rows = rows or _rows_for(block, folder, limit)
            rows.add(block)  # type: ignore[arg-type]  # the blocks of a reader are all of one kind
            claim(_LABEL_BYTES * rows.n_rows, reader.path, f"labels of more than {rows.n_rows} samples")
            with memory_limit(None):  # what the features need comes on top of the limit
                claim(_FEATURE_BYTES * rows.n_columns, reader.path, f"{rows.n_columns} features")
    if rows is None:
        return
    claim(rows.column_bytes, reader.path, f"a feature of {rows.n_rows} samples")
    n_features, done = _n_features(reader, rows), 0
    for piece in _pieces_of_rows(rows, reader, n_features):
        yield piece
        done += piece.shape[1]
        if progress is not None:
            progress(done, n_features, "writing features")


def no_data(reader: Reader) -> ValueError:
    """The error of a file that has no samples or no features."""
    return ValueError(f"{reader.path}: there are no data in it (no samples or no features).")


def _rows_for(block: Block, folder: Path | None = None, limit: int = 1 << 62) -> SparseRows | DenseRows:
    return SparseRows(folder, limit) if isinstance(block, RowBlock) else DenseRows(folder, limit)


def _bytes_of(block: Any) -> int:
    """Bytes of a block of features, which are needed a second time when blocks are joined."""
    return int(block.data.nbytes + block.indices.nbytes) if sparse.issparse(block) else int(block.nbytes)


def _vectors(rows: SparseRows | DenseRows) -> int:
    """Bytes of what there is once a sample and once a feature."""
    return _LABEL_BYTES * rows.n_rows + _FEATURE_BYTES * rows.n_columns


def _n_features(reader: Reader, rows: SparseRows | DenseRows) -> int:
    """Number of features: stated by the reader, or as many as were seen."""
    stated = reader.shape[1]
    return max(0, rows.n_columns - reader.first_column) if stated is None else stated


def _pieces_of_rows(rows: SparseRows | DenseRows, reader: Reader, n_features: int) -> Iterator[DenseSource | SparseSource]:
    """Features of collected rows, range by range."""
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
    """A block of features in pieces that fit into memory beside it."""
    if sparse.issparse(block):
        if dtype is not None:
            block = block.astype(dtype, copy=False)
        yield SparseSource(block)
        return
    width = max(1, limit // (4 * max(1, block.shape[0]) * 8))
    for start in range(0, block.shape[1], width):
        yield DenseSource(np.asfortranarray(block[:, start : start + width], dtype=dtype))


def _joined(parts: list[Any], dtype: np.dtype | None) -> DenseSource | SparseSource:
    """Blocks of features as one source."""
    if sparse.issparse(parts[0]):
        joined = parts[0] if len(parts) == 1 else sparse.hstack(parts, format="csc")
        return SparseSource(joined if dtype is None else joined.astype(dtype, copy=False))
    if len(parts) == 1:
        return DenseSource(np.asarray(parts[0], dtype=dtype))
    whole = np.empty((parts[0].shape[0], sum(part.shape[1] for part in parts)), dtype=dtype or parts[0].dtype, order="F")
    start = 0
    while parts:  # each part is freed once it is copied
        part = parts.pop(0)
        whole[:, start : start + part.shape[1]] = part
        start += part.shape[1]
    return DenseSource(whole)
