"""Blockwise writing of stores, from a reader or from arrays, with moments and checksums."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from scipy import sparse

from coterie._numba import thread_count
from coterie.data.memory import DenseSource, SparseSource
from coterie.data.names import PackedStrings
from coterie.data.readers.collect import Collect, no_data_error, pieces
from coterie.data.readers.reader import Block, Progress, Reader, RowBlock, row_block
from coterie.data.source import FeatureSource
from coterie.data.store.format import HEADER, ArrayFile, check_entry, checksum, damaged, read_header, write_header
from coterie.data.store.reading import PathLike
from coterie.data.validity import BadValues
from coterie.files import claimed, resolved, sync, temporary_folder

DEFAULT_MEMORY_LIMIT = 1 << 30
_MIN_MEMORY = 1 << 24
# Key in the header of files in the store's folder that are not, or not yet, part of the store.
_LEFTOVER = "leftover"


class StoreWriter:
    """Writer of features, which are appended in order, with their moments."""

    def __init__(self, folder: StoreFolder, n_samples: int) -> None:
        self.folder = folder
        self.n_samples = n_samples
        self.n_features = 0
        self.arrays: dict[str, Any] = {}
        self._files: dict[str, ArrayFile] = {}
        self._counts: list[np.ndarray] = []
        self._mean: list[np.ndarray] = []
        self._norm: list[np.ndarray] = []
        self.nonnegative = True
        self.is_sparse = False
        self.bad = BadValues()

    def append(self, source: DenseSource | SparseSource) -> None:
        if source.shape[0] != self.n_samples:
            raise ValueError(f"A block of features has {source.shape[0]} samples, but previous blocks have {self.n_samples}.")
        if 0 in source.shape:
            return
        source.first_feature = self.n_features
        moments, bad = source.moments_and_bad_values(n_threads=thread_count())
        self.bad = self.bad.joined(bad)
        self.n_features += source.shape[1]
        self.is_sparse = source.is_sparse
        if self.bad:  # the store is not written, but all bad values are counted
            return
        self._mean.append(moments.mean)
        self._norm.append(moments.norm)
        self.nonnegative = self.nonnegative and moments.nonnegative
        if isinstance(source, SparseSource):
            starts, rows, values = source.arrays
            self._counts.append(np.diff(starts).astype(np.int64))
            row_type = np.int64 if self.n_samples >= 2**31 else np.int32
            self._file("indices", row_type).append(rows[starts[0] : starts[-1]])
            self._file("values", values.dtype).append(values[starts[0] : starts[-1]])
        else:
            array = source.array
            self._file("values", array.dtype).append(np.asfortranarray(array).T)

    def _file(self, name: str, dtype: Any) -> ArrayFile:
        if name not in self._files:
            self._files[name] = self.folder.array(name, dtype)
        return self._files[name]

    def add(self, name: str, values: np.ndarray) -> None:
        file = self.folder.array(name, values.dtype)
        file.append(values)
        self.arrays[name] = file.finish()

    def add_strings(self, name: str, strings: PackedStrings | None) -> None:
        """Add strings as bytes and offsets."""
        if strings is not None:
            self.add(f"{name}_offsets", strings.offsets)
            self.add(f"{name}_utf8", strings.letters)

    def finish(self, reader: Reader) -> None:
        """Add labels and names, and move the store to its final path."""
        self.bad.raise_if_any(reader.feature_names, path=reader.path)
        shape = [self.n_samples, self.n_features]
        reader.finalize(self.n_samples, self.n_features)
        for name, file in self._files.items():
            dense = name == "values" and not self.is_sparse
            self.arrays[name] = file.finish((shape[0], shape[1]), fortran=True) if dense else file.finish()
        if self.is_sparse:
            starts = np.zeros(self.n_features + 1, dtype=np.int64)
            np.cumsum(np.concatenate(self._counts), out=starts[1:])
            self.add("indptr", starts.astype(np.int32) if starts[-1] < 2**31 else starts)
        self.add("feature_mean", np.concatenate(self._mean))
        self.add("feature_norm", np.concatenate(self._norm))
        self._add_labels(reader.labels)
        self.add_strings("feature_names", reader.feature_names)
        self.add_strings("sample_names", reader.sample_names)
        if reader.sample_groups is not None:
            self.add_strings("sample_groups", PackedStrings.pack(map(str, reader.sample_groups.tolist())))
        if reader.covariates is not None:
            self.add("covariates", reader.covariates.values)
            self.add_strings("covariate_names", PackedStrings.pack(reader.covariates.names))
        for key, column in reader.feature_info.items():
            if isinstance(column, PackedStrings):
                self.add_strings(f"info_{key}", column)
            else:
                self.add(f"info_{key}", column)
        self.folder.commit(
            {
                "shape": shape,
                "nonnegative": bool(self.nonnegative and self.is_sparse),
                "origin": {"name": reader.path.name, "format": reader.format},
                "notes": reader.notes,
                "units": reader.units,
                "feature_info": list(reader.feature_info),
                **({} if reader.encoding is None else {"encoding": reader.encoding.to_json()}),
                "arrays": self.arrays,
            }
        )

    def _add_labels(self, labels: np.ndarray | None) -> None:
        """Add labels: numbers unchanged, anything else as class indices with the classes as strings."""
        if labels is None:
            return
        if labels.dtype.kind in "biuf" and labels.dtype.itemsize <= 8:
            self.add("labels", labels)
            return
        classes, codes = np.unique([str(label) for label in labels], return_inverse=True)
        self.add("labels", codes.astype(np.int32))
        self.add_strings("label_classes", PackedStrings.pack(classes.tolist()))


def write_reader(
    reader: Reader,
    path: PathLike,
    *,
    overwrite: bool,
    memory_limit: int,
    progress: Progress | None = None,
    collect: Collect | None = None,
) -> Path:
    """Write the data of a reader to a store. By default, blocks are collected in this process."""
    if memory_limit < _MIN_MEMORY:
        raise ValueError(f"memory_limit={memory_limit} must be at least {_MIN_MEMORY} bytes.")
    with StoreFolder(Path(path), overwrite) as folder:
        writer: StoreWriter | None = None
        for piece in pieces(reader, folder.scratch, memory_limit, progress, collect):
            writer = writer or StoreWriter(folder, piece.shape[0])
            writer.append(piece)
        if writer is None or 0 in (writer.n_samples, writer.n_features):
            raise no_data_error(reader)
        writer.finish(reader)
    return Path(path)


class _ArrayReader(Reader):
    """Reader of arrays or blocks in memory."""

    format = "arrays"

    def __init__(self, path: Path, X: Any, y: Any, by: str) -> None:
        super().__init__(path)
        self.by = by
        self._X = X
        self._y: list[np.ndarray] = []
        if y is not None:
            self.labels = np.asarray(y)

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        if isinstance(self._X, FeatureSource):
            self.by = "features"
            width = max(1, n_values // max(1, self._X.shape[0]))
            yield from (block for _, block in self._X.blocks(width))
        elif sparse.issparse(self._X) or isinstance(self._X, np.ndarray):
            yield self._whole(self._X)
        else:
            for item in self._X:
                block, labels = item if isinstance(item, tuple) and not isinstance(item, RowBlock) else (item, None)
                if labels is not None:
                    self._y.append(np.asarray(labels))
                yield self._convert(block)
            if self._y:
                self.labels = np.concatenate(self._y)

    def _whole(self, X: Any) -> Block:
        self.by = "features"
        if not sparse.issparse(X):
            return X
        matrix = sparse.csc_array(X)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix

    def _convert(self, block: Any) -> Block:
        if isinstance(block, RowBlock):
            return block
        block = block if sparse.issparse(block) else np.asarray(block)
        self.dtype = self.dtype or block.dtype
        if block.dtype != self.dtype:
            raise ValueError(
                f"A block has values of type {block.dtype}, but previous blocks have {self.dtype}. Use the same type."
            )
        if not sparse.issparse(block):
            return block
        if self.by == "features":
            return self._whole(block)
        if self.shape[1] not in (None, block.shape[1]):
            raise ValueError(f"A block of samples has {block.shape[1]} features, but previous blocks have {self.shape[1]}.")
        self.shape = (None, block.shape[1])
        return row_block(sparse.csr_array(block))


def write_store(
    path: PathLike,
    X: Any,
    y: Any = None,
    *,
    by: str = "samples",
    feature_names: Iterable[str] | None = None,
    sample_names: Iterable[str] | None = None,
    sample_groups: Any = None,
    feature_info: dict[str, Any] | None = None,
    notes: dict[str, Any] | None = None,
    overwrite: bool = False,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    progress: Progress | None = None,
) -> Path:
    """Write arrays, or an iterable of blocks, to a store.

    Parameters
    ----------
    path : path-like
        Folder of the store. Its parent folder must exist.
    X : ndarray, sparse matrix, FeatureSource, or iterable of blocks
        Data. Blocks are arrays or sparse matrices of some samples each or, with ``by="features"``, of some features each. A
        block of samples may be a pair (block, labels).
    y : array-like of shape (n_samples,), optional
        Labels: numbers, or any objects that differ as strings.
    by : {"samples", "features"}, default="samples"
        Axis along which the data are divided into blocks.
    feature_names, sample_names : iterable of str, optional
        Names.
    sample_groups : array-like of shape (n_samples,), optional
        Sample groups, such as the donors of cells, which validation keeps together. They are stored as text.
    feature_info : dict of str to array of length n_features, optional
        Annotations of the features, such as positions on a chromosome.
    notes : dict, optional
        Notes about the data. Must be serialisable as JSON.
    overwrite : bool, default=False
        Whether a store at ``path`` may be replaced. The old store remains valid until the new one is complete.
    memory_limit : int, default=1 GiB
        Maximum memory in bytes, in addition to 40 bytes per feature and one block.
    progress : callable, optional
        Called with (done, total, what).

    Returns
    -------
    path : Path
        Path of the store.

    See Also
    --------
    coterie.data.convert : Convert a file to a store.
    coterie.data.open_store : Open a store.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from coterie.data import open_store, write_store
    >>> blocks = (np.full((2, 3), k, dtype=np.int8) for k in range(4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     open_store(write_store(Path(folder) / "numbers", blocks)).source.moments().mean
    array([1.5, 1.5, 1.5])
    """
    if by not in ("samples", "features"):
        raise ValueError(f"by={by!r} must be 'samples' or 'features'.")
    reader = _ArrayReader(Path(path), X, y, by)
    reader.feature_names = None if feature_names is None else PackedStrings.pack(feature_names)
    reader.sample_names = None if sample_names is None else PackedStrings.pack(sample_names)
    reader.sample_groups = None if sample_groups is None else np.asarray(sample_groups)
    for key, column in (feature_info or {}).items():
        values = column if isinstance(column, PackedStrings) else np.asarray(column)
        numbers = isinstance(values, np.ndarray) and values.dtype.kind in "biuf"
        reader.feature_info[key] = values if numbers else PackedStrings.pack(values)
    reader.notes = dict(notes or {})
    return write_reader(reader, path, overwrite=overwrite, memory_limit=memory_limit, progress=progress)


class StoreFolder:
    """Temporary folder that becomes the store when it is complete; otherwise it is removed.

    A new store is renamed as a whole. An existing store is replaced by adding new array files, with different names, to its
    folder and then replacing its header by a rename. A reader finds either the old or the new store, even if the writer is
    killed at any time. Before files are added or removed, the header lists them, so that the next writer can remove files that
    a killed writer has left. Other files in the folder are not changed.
    """

    folder: Path  # temporary folder of the store
    scratch: Path  # folder of files that are not part of the finished store

    def __init__(self, path: Path, overwrite: bool) -> None:
        self._given = path
        self.path = resolved(path)
        self.overwrite = overwrite
        self.replaces = False
        self._suffix = ""
        self._stack = ExitStack()

    def __enter__(self) -> StoreFolder:
        with ExitStack() as stack:
            stack.enter_context(claimed(self._given))
            self.replaces = self._may_replace()
            self._suffix = f"-{secrets.token_hex(4)}" if self.replaces else ""
            place = stack.enter_context(temporary_folder(self.path))
            self.folder, self.scratch = place / "store", place / "scratch"
            self.folder.mkdir()
            self.scratch.mkdir()
            self._stack = stack.pop_all()
        return self

    def _may_replace(self) -> bool:
        """Return True if a store is to be replaced. Raises if that is not allowed, or if the path is not a store."""
        if not os.path.lexists(self.path):
            return False
        if not self.overwrite:
            raise FileExistsError(
                17, "The path already exists. Choose another name, or overwrite it (overwrite=True)", str(self._given)
            )
        try:
            read_header(self.path)
        except (OSError, ValueError) as error:
            raise FileExistsError(
                17,
                "Path exists and is not a Coterie store (or its header is damaged), so it is not overwritten. "
                "Choose another name, or remove it",
                str(self._given),
            ) from error
        return True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def array(self, name: str, dtype: Any) -> ArrayFile:
        file = ArrayFile(self.folder / f"{name}{self._suffix}.npy", dtype)
        self._stack.callback(file.close)
        return file

    def commit(self, header: dict[str, Any]) -> None:
        """Verify all checksums and move the store to its final path."""
        write_header(self.folder, header)
        arrays = read_header(self.folder)["arrays"]
        for name, entry in arrays.items():
            check_entry(self.folder, name, entry)
            path = self.folder / entry["file"]
            if checksum(path) != entry["crc32"]:
                raise damaged(path, "the file differs from what was written")
        if self.replaces:
            self._replace(header)
            return
        sync(self.folder)
        try:
            os.rename(self.folder, self.path)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}. The store was not written", str(self.path)) from error
        sync(self.path.parent)

    def _replace(self, header: dict[str, Any]) -> None:
        """Replace the header of the existing store and remove its old files."""
        old, new = read_header(self.path), _array_files(header)
        former = _array_files(old)
        self._remove(_leftover_files(old) - former)  # left by a killed writer
        self._exchange_header(old | {_LEFTOVER: sorted(new)})
        for file in sorted(new):
            os.rename(self.folder / file, self.path / file)
        sync(self.path)
        self._exchange_header(header | {_LEFTOVER: sorted(former)})
        self._remove(former - new)
        self._exchange_header(header)

    def _exchange_header(self, header: dict[str, Any]) -> None:
        write_header(self.folder, header)
        os.replace(self.folder / HEADER, self.path / HEADER)
        sync(self.path)

    def _remove(self, files: set[str]) -> None:
        for file in sorted(files):
            (self.path / file).unlink(missing_ok=True)
        sync(self.path)


def _array_files(header: dict[str, Any]) -> set[str]:
    entries = header.get("arrays")
    found = entries.values() if isinstance(entries, dict) else ()
    return _plain_names(entry.get("file") for entry in found if isinstance(entry, dict))


def _leftover_files(header: dict[str, Any]) -> set[str]:
    """Return the files that a killed writer may have left in a store."""
    names = header.get(_LEFTOVER)
    return _plain_names(names if isinstance(names, list) else ())


def _plain_names(names: Iterable[Any]) -> set[str]:
    """Return the names of array files in the folder itself, so that a header cannot remove files elsewhere."""
    return {name for name in names if isinstance(name, str) and Path(name).name == name and name.endswith(".npy")}
