"""AnnData files (.h5ad): X, a layer or the raw counts, read in blocks; labels from ``obs``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from coterie._quiet import ignored
from coterie.bounds import BEST_RATIO, check_length, check_regular, claim, free_memory
from coterie.data.errors import DataFileError, in_one_line, missing_extra
from coterie.data.names import PackedStrings
from coterie.data.readers.anndata_parts import labels_of, values_and_names
from coterie.data.readers.columns import Column
from coterie.data.readers.labels import is_missing, missing_labels
from coterie.data.readers.reader import Block, Progress, Reader, check_compressed, row_block, usable_values

_SCRIPT = Path(__file__).with_name("h5ad_check.py")
# The first look at a file ends by itself after some processor time; this is for one that sleeps, or a machine that does.
_LONGEST_LOOK = 1800
# What one chunk of the matrix takes: packed, unpacked, and as part of a block.
_CHUNK_COPIES = 3
# What was found in files that were looked at before, by device, number, size and time: opened again, they need no process.
_good: dict[tuple[int, ...], dict[str, Any]] = {}


class H5adReader(Reader):
    """Reads an .h5ad file.

    Parameters
    ----------
    path : Path
        The file.
    label : str, False or None
        Column of ``obs`` with the labels; None and False: no labels.
    layer : str, optional
        Layer to read instead of X; ``"raw"`` stands for ``adata.raw``.
    missing_labels : {"error", "drop"}, default="error"
        What to do with samples whose label is missing.
    """

    format = "h5ad"

    def __init__(self, path: Path, *, label: Any = None, layer: str | None = None, missing_labels: str = "error") -> None:
        super().__init__(path)
        check_regular(path)
        look = _FirstLook(path)  # while anndata is being imported
        try:
            import anndata
        except ImportError as error:
            look.give_up()
            raise missing_extra("Reading .h5ad files", "anndata", "bio") from error
        look.wait()
        try:
            with ignored():  # about files of old versions
                self._data = anndata.read_h5ad(path, backed="r")
                self._values, self._names = self._find_values(layer)
                shape = tuple(self._values.shape)
        except DataFileError:
            raise
        except Exception as error:  # anndata and h5py have many ways to fail
            raise self._damaged(error) from error
        n_samples, n_features = self._data.n_obs, len(self._names)
        for n in (n_samples, n_features):
            check_length(n, path.stat().st_size * BEST_RATIO, path, f"the shape {(n_samples, n_features)}")
        if shape != (n_samples, n_features):
            raise DataFileError(f"X has the shape {shape} instead of {(n_samples, n_features)}.", path)
        self.shape = (n_samples, n_features)
        self.feature_names = PackedStrings.pack(self._names)
        self._keep = np.arange(n_samples)
        if label is not None and label is not False:
            self._take_labels(label, missing_labels)
        self.sample_names = PackedStrings.pack(self._data.obs_names[self._keep])
        self.by = "features" if getattr(self._values, "format", None) == "csc" else "samples"

    def _damaged(self, error: Exception) -> DataFileError:
        return _damaged(self.path, in_one_line(error))

    def _find_values(self, layer: str | None) -> tuple[Any, Any]:
        try:
            found = values_and_names(self._data, layer)
        except ValueError as error:
            raise DataFileError(str(error), self.path) from error
        if layer is not None:
            self.notes["layer"] = layer
        return found

    def _take_labels(self, label: Any, policy: str) -> None:
        try:
            values, absent = labels_of(self._data, label)
        except ValueError as error:
            raise DataFileError(str(error), self.path) from error
        self._keep = missing_labels(absent, policy, self.path, f"obs[{label!r}]")
        self.labels = values[self._keep]
        if absent.any():
            self.notes["samples_without_label_dropped"] = int(absent.sum())

    def annotation(self) -> tuple[list[Column], list[str]]:
        """What the columns of obs hold, and the layers that can be read."""
        import pyarrow as pa

        columns = []
        for name in self._data.obs.columns:
            column = Column(str(name))
            values = self._data.obs[name]
            try:
                array = pa.array(values, from_pandas=True)
            except (pa.ArrowInvalid, pa.ArrowTypeError):  # objects of several kinds
                array = pa.array([None if is_missing(value) else str(value) for value in values])
            column.see(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array, values=True)
            columns.append(column)
        return columns, [*self._data.layers, *(["raw"] if self._data.raw is not None else [])]

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        """Some samples at a time, or some features of a CSC matrix."""
        n_samples, n_features = self._data.n_obs, len(self._names)
        by_features = self.by == "features"
        length, other = (n_features, n_samples) if by_features else (n_samples, n_features)
        width = max(1, n_values // max(1, other))
        dropped = len(self._keep) < n_samples
        for start in range(0, length, width):
            stop = min(start + width, length)
            try:
                block = self._values[:, start:stop] if by_features else self._values[start:stop]
            except Exception as error:  # a damaged part of the file
                raise self._damaged(error) from error
            if dropped and by_features:
                block = block[self._keep]
            elif dropped:
                block = block[self._keep[(self._keep >= start) & (self._keep < stop)] - start]
            yield self._block(block, by_features)
            if progress is not None:
                progress(stop, length, "reading")

    def _block(self, block: Any, by_features: bool) -> Block:
        if not sparse.issparse(block):
            block = usable_values(np.asarray(block), self.path)
            self.dtype = block.dtype
            return block
        try:
            check_compressed(block)
        except Exception as error:
            raise self._damaged(error) from error
        if by_features:
            return usable_values(block, self.path)
        rows = sparse.csr_array(block)
        if rows.dtype.kind not in "biuf" or rows.dtype.itemsize > 8:
            raise DataFileError(f"values of type {rows.dtype} are not real numbers.", self.path)
        self.dtype = np.dtype(np.float32) if rows.dtype == np.float16 else rows.dtype
        return row_block(rows.astype(self.dtype, copy=False))

    def close(self) -> None:
        file = getattr(self._data, "file", None)
        if file is not None:
            file.close()


class _FirstLook:
    """The look of another process at a file that HDF5 may hang on; see ``h5ad_check.py``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        state = path.stat()
        self._key = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
        self._process: subprocess.Popen[str] | None = None
        if self._key in _good:
            return
        places = json.dumps([place for place in sys.path if place])
        command = [sys.executable, "-I", str(_SCRIPT), places, str(path), str(free_memory())]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def give_up(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def wait(self) -> None:
        """Refuse the file if the look found it damaged, did not come to an end, or needs more memory than there is."""
        found = _good[self._key] if self._process is None else self._answer(self._process)
        claim(found.get("needs", 0), self.path, "what it has besides X")
        claim(_CHUNK_COPIES * found.get("largest", 0), self.path, "a chunk of it")
        _good[self._key] = found

    def _answer(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        try:
            text, _ = process.communicate(timeout=_LONGEST_LOOK)
        except subprocess.TimeoutExpired:
            text = ""
        except BaseException:
            self.give_up()
            raise
        if not text:  # it was ended by its limit of time, by our clock, or by a crash
            self.give_up()
            raise _damaged(self.path, "the HDF5 library hangs or crashes on it")
        found: dict[str, Any] = json.loads(text)
        if "problem" in found:
            raise _damaged(self.path, found["problem"])
        return found


def _damaged(path: Path, reason: str) -> DataFileError:
    return DataFileError(f"it is damaged or no .h5ad file ({reason}).", path)
