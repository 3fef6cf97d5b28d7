"""AnnData, in .h5ad files and in memory: X, a layer or the raw counts; labels from ``obs``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from coterie._warnings import ignored
from coterie.bounds import BEST_RATIO, check_length, check_regular, free_memory, require_memory
from coterie.data.dataset import Dataset
from coterie.data.errors import DataFileError, missing_extra
from coterie.data.memory import as_source
from coterie.data.names import PackedStrings
from coterie.data.readers.columns import Column, did_you_mean
from coterie.data.readers.reader import (
    Block,
    Progress,
    Reader,
    check_compressed,
    is_missing,
    missing_labels,
    row_block,
    usable_values,
)

_DAMAGE = "it is damaged or no .h5ad file ({})."
_SCRIPT = Path(__file__).with_name("h5ad_check.py")
# The first look at a file ends by itself after some processor time; this is for one that sleeps, or a machine that does.
_LONGEST_LOOK = 1800
# What one chunk of the matrix takes: packed, unpacked, and as part of a block.
_CHUNK_COPIES = 3
# What was found in files that were looked at before, by device, number, size and time: opened again, they need no process.
_good: dict[tuple[int, ...], dict[str, Any]] = {}
# Columns of obs that a message lists.
_SHOWN = 12


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
    _damage = _DAMAGE

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
            raise self._failed(error) from error
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
                raise self._failed(error) from error
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
            raise self._failed(error) from error
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
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def wait(self) -> None:
        """Refuse the file if the look found it damaged, did not come to an end, or needs more memory than there is."""
        found = _good[self._key] if self._process is None else self._answer(self._process)
        require_memory(found.get("needs", 0), self.path, "what it has besides X")
        require_memory(_CHUNK_COPIES * found.get("largest", 0), self.path, "a chunk of it")
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
            raise DataFileError(_DAMAGE.format("the HDF5 library hangs or crashes on it"), self.path)
        found: dict[str, Any] = json.loads(text)
        if "problem" in found:
            raise DataFileError(_DAMAGE.format(found["problem"]), self.path)
        return found


def is_anndata(X: Any) -> bool:
    """Whether X is an AnnData object; the library is not imported for the check."""
    return type(X).__module__.partition(".")[0] == "anndata" and hasattr(X, "var_names") and hasattr(X, "obs")


def values_and_names(data: Any, layer: str | None) -> tuple[Any, Any]:
    """The matrix of an AnnData object that a layer names (``"raw"``: ``adata.raw``; None: X), and the names of its columns.

    Raises ValueError with what there is instead.
    """
    known = [str(name) for name in data.layers]
    known += ["raw"] if data.raw is not None and "raw" not in known else []
    if layer is None:
        if data.X is None:
            raise ValueError(f"it has no X; choose a layer: {', '.join(known) or 'there is none'}.")
        return data.X, data.var_names
    if layer == "raw" and data.raw is not None:
        return data.raw.X, data.raw.var_names
    if layer not in data.layers:
        near = did_you_mean(str(layer), known, " ")
        raise ValueError(f"it has no layer {layer!r}; {near}there is {', '.join(known) or 'none'}.")
    return data.layers[layer], data.var_names


def labels_of(data: Any, label: Any) -> tuple[np.ndarray, np.ndarray]:
    """Labels of all samples from a column of ``obs``, and which of them are missing.

    Numbers and booleans stay what they are, anything else becomes text. Categories that no sample has do not count. Raises
    ValueError with the nearest names and the columns that could be meant.
    """
    obs = data.obs
    if label not in obs.columns:
        near = did_you_mean(str(label), [str(name) for name in obs.columns], " ")
        raise ValueError(f"obs has no column {label!r} for the labels; {near}it has {candidates(data) or 'none'}.")
    values = obs[label].to_numpy()
    missing = np.array([is_missing(value) for value in values], dtype=bool)
    if values.dtype.kind not in "biuf":  # text, or a type of pandas' own that has a word for nothing
        present = [value for value, gone in zip(values.tolist(), missing, strict=True) if not gone]
        numbers = bool(present) and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in present)
        nothing, kind = (np.nan, np.float64) if numbers else (None, object)
        kept = np.array(present if numbers else [str(value) for value in present])
        if missing.any() or not numbers:
            values = np.full(len(values), nothing, dtype=kind)
            values[~missing] = kept
        else:
            values = kept
    return values, missing


def candidates(data: Any) -> str:
    """The columns of ``obs`` in words: those with classes first, with their number, then those with numbers."""
    classes, others = [], []
    for name in data.obs.columns:
        column = data.obs[name]
        n_values = column.nunique()
        numeric = getattr(column.dtype, "kind", "O") == "f" or (getattr(column.dtype, "kind", "O") in "iu" and n_values > 50)
        if not numeric and 2 <= n_values <= max(2, len(column) // 2):
            classes.append(f"{name} ({n_values} classes)")
        else:
            others.append(str(name))
    shown = [*classes, *others][:_SHOWN]
    more = len(classes) + len(others) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def from_anndata(
    adata: Any, *, label: Any = None, layer: str | None = None, missing_labels: str = "error", feature_names: Any = None
) -> Dataset:
    """The features of an AnnData object, not copied; the parameters are those of :class:`H5adReader`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from anndata import AnnData
    >>> from coterie.data import open_features
    >>> obs = pd.DataFrame({"kind": ["B", "T", "B"]}, index=["c1", "c2", "c3"])
    >>> dataset = open_features(AnnData(np.eye(3), obs), label="kind")
    >>> dataset.shape, dataset.y
    ((3, 3), array(['B', 'T', 'B'], dtype=object))
    """
    if missing_labels not in ("error", "drop"):
        raise ValueError(f"missing_labels={missing_labels!r} must be 'error' or 'drop'.")
    try:
        values, names = values_and_names(adata, layer)
        labels = None if label is None or label is False else labels_of(adata, label)
    except ValueError as error:
        how = " coterie.data.open_features(adata, layer=...) takes one." if "choose a layer" in str(error) else ""
        raise ValueError(f"The AnnData object: {error}{how}") from error
    notes: dict[str, Any] = {} if layer is None else {"layer": layer}
    keep: Any = slice(None)
    if labels is not None and labels[1].any():
        keep, n_missing = _with_label(adata, label, labels[1], missing_labels)
        notes["samples_without_label_dropped"] = n_missing
    if hasattr(values, "to_memory"):  # backed by a file
        values = values.to_memory()
    if not sparse.issparse(values):
        values = np.asarray(values)
    if not isinstance(keep, slice):
        values = (values.tocsr() if sparse.issparse(values) else values)[keep]
    source = as_source(values, PackedStrings.pack(names if feature_names is None else feature_names))
    y = None if labels is None else labels[0][keep]
    return Dataset(source, y, PackedStrings.pack(adata.obs_names[keep]), "anndata", notes=notes)


def _with_label(adata: Any, label: Any, missing: np.ndarray, policy: str) -> tuple[np.ndarray, int]:
    """The samples that have a label; an error, if the others are not to be dropped."""
    count, first = int(missing.sum()), str(adata.obs_names[int(np.argmax(missing))])
    if count == len(missing):
        raise ValueError(f"The AnnData object: no sample has a label in obs[{label!r}].")
    if policy == "error":
        raise ValueError(
            f"y contains NaN or None: {count} of {len(missing)} samples have no label in obs[{label!r}], the first is "
            f"{first!r}. Leave them out: adata = adata[adata.obs[{label!r}].notna()]."
        )
    return np.flatnonzero(~missing), count
