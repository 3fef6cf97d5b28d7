"""AnnData files (.h5ad) and objects: X, a layer or the raw counts, with labels from ``obs``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from coterie._warnings import ignored
from coterie.bounds import MAX_DEFLATE_RATIO, check_length, check_regular, free_memory, require_memory
from coterie.data.dataset import Dataset
from coterie.data.encoding import ColumnEncoding
from coterie.data.errors import DataFileError, missing_extra
from coterie.data.memory import as_source
from coterie.data.names import PackedStrings
from coterie.data.readers.columns import Column, did_you_mean
from coterie.data.readers.reader import (
    Block,
    Progress,
    Reader,
    check_compressed,
    group_labels,
    is_missing,
    labelled_samples,
    row_block,
    usable_values,
)
from coterie.data.readers.typed_tables import sample_columns

_DAMAGE = "the file is damaged or not an .h5ad file ({})."
_SCRIPT = Path(__file__).with_name("h5ad_check.py")
# Timeout of the check in seconds, for a process that sleeps. Its processor time is limited separately.
_CHECK_TIMEOUT = 1800
# Copies of a chunk of the matrix in memory: compressed, decompressed, and as part of a block.
_CHUNK_COPIES = 3
# Results for files that were checked before, by device, inode, size and time. They are not checked again.
_checked_files: dict[tuple[int, ...], dict[str, Any]] = {}
# Maximum number of columns of obs listed in a message.
_MAX_COLUMNS_SHOWN = 12
# Maximum number of columns of obs that are kept as codes.
_MAX_CODED_COLUMNS = 50


class H5adReader(Reader):
    """Reader of .h5ad files.

    Parameters
    ----------
    path : Path
        .h5ad file.
    label : str, False or None
        Column of ``obs`` with the labels. None and False: no labels.
    sample_groups : str, optional
        Column of ``obs`` with the sample groups, such as the donor of each cell.
    covariates : str or list of str, optional
        Columns of ``obs`` that are covariates. Text and categories are encoded.
    weight : str, optional
        Column of ``obs`` with sample weights.
    layer : str, optional
        Layer to read instead of X; ``"raw"`` stands for ``adata.raw``.
    missing_labels : {"error", "drop"}, default="error"
        Treatment of samples whose label is missing.
    columns : list of ColumnEncoding, optional
        Encodings of the covariates of a fitted model.
    """

    format = "h5ad"
    _damage_message = _DAMAGE

    def __init__(
        self,
        path: Path,
        *,
        label: Any = None,
        sample_groups: Any = None,
        covariates: Any = None,
        weight: Any = None,
        layer: str | None = None,
        missing_labels: str = "error",
        columns: Sequence[ColumnEncoding] | None = None,
    ) -> None:
        super().__init__(path)
        check_regular(path)
        check = FileCheck(path)  # runs while anndata is imported
        try:
            import anndata
        except ImportError as error:
            check.kill()
            raise missing_extra("Reading .h5ad files", "anndata", "bio") from error
        check.wait()
        try:
            with ignored():  # warnings about files of old versions
                self._data = anndata.read_h5ad(path, backed="r")
                self._values, self._names = self._find_values(layer)
                shape = tuple(self._values.shape)
        except DataFileError:
            raise
        except Exception as error:  # anndata and h5py raise errors of many types
            raise self._read_error(error) from error
        n_samples, n_features = self._data.n_obs, len(self._names)
        for n in (n_samples, n_features):
            check_length(n, path.stat().st_size * MAX_DEFLATE_RATIO, path, f"the shape {(n_samples, n_features)}")
        if shape != (n_samples, n_features):
            raise DataFileError(f"X has the shape {shape} instead of {(n_samples, n_features)}.", path)
        self.shape = (n_samples, n_features)
        self.feature_names = PackedStrings.pack(self._names)
        self._keep = np.arange(n_samples)
        if label is not None and label is not False:
            self._set_labels(label, missing_labels)
        if sample_groups is not None and sample_groups is not False:
            try:
                found = column_of(self._data, sample_groups, "sample groups")[self._keep]
            except ValueError as error:
                raise DataFileError(str(error), path) from error
            self.sample_groups = group_labels(found.tolist(), path, f"obs[{sample_groups!r}]")
        own = sample_columns(self._data.obs.iloc[self._keep], covariates, weight, columns, f"{path}, obs")
        self.covariates, self.sample_weight, self.encoding = own
        self.sample_names = PackedStrings.pack(self._data.obs_names[self._keep])
        self.other_columns = obs_codes(self._data.obs, self._keep, label)
        self.by = "features" if getattr(self._values, "format", None) == "csc" else "samples"

    def _find_values(self, layer: str | None) -> tuple[Any, Any]:
        try:
            found = values_and_names(self._data, layer)
        except ValueError as error:
            raise DataFileError(str(error), self.path) from error
        if layer is not None:
            self.notes["layer"] = layer
        return found

    def _set_labels(self, label: Any, policy: str) -> None:
        try:
            values, absent = labels_of(self._data, label)
        except ValueError as error:
            raise DataFileError(str(error), self.path) from error
        self._keep = labelled_samples(absent, policy, self.path, f"obs[{label!r}]")
        self.labels = values[self._keep]
        if absent.any():
            self.notes["samples_without_label_dropped"] = int(absent.sum())

    def annotation(self) -> tuple[list[Column], list[str]]:
        """Return summaries of the columns of obs, and the layers that can be read."""
        import pyarrow as pa

        columns = []
        for name in self._data.obs.columns:
            column = Column(str(name))
            values = self._data.obs[name]
            try:
                array = pa.array(values, from_pandas=True)
            except (pa.ArrowInvalid, pa.ArrowTypeError):  # objects of several types
                array = pa.array([None if is_missing(value) else str(value) for value in values])
            column.update(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array, values=True)
            columns.append(column)
        return columns, [*_layer_names(self._data.layers), *(["raw"] if self._data.raw is not None else [])]

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
                raise self._read_error(error) from error
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
            raise self._read_error(error) from error
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


class FileCheck:
    """Check of a file in another process, because HDF5 may hang on it; see ``h5ad_check.py``."""

    def __init__(self, path: Path, damage: str = _DAMAGE) -> None:
        self.path, self._damage = path, damage
        state = path.stat()
        self._key = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
        self._process: subprocess.Popen[str] | None = None
        if self._key in _checked_files:
            return
        folders = json.dumps([folder for folder in sys.path if folder])
        command = [sys.executable, "-I", str(_SCRIPT), folders, str(path), str(free_memory())]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def wait(self) -> None:
        """Wait for the check. Raises if the file is damaged, the check did not finish, or memory does not suffice."""
        found = _checked_files[self._key] if self._process is None else self._result(self._process)
        require_memory(found.get("needs", 0), self.path, "the content other than X")
        require_memory(_CHUNK_COPIES * found.get("largest", 0), self.path, "a chunk of the matrix")
        _checked_files[self._key] = found

    def _result(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        try:
            text, _ = process.communicate(timeout=_CHECK_TIMEOUT)
        except subprocess.TimeoutExpired:
            text = ""
        except BaseException:
            self.kill()
            raise
        if not text:  # ended by its limit of processor time, the timeout, or a crash
            self.kill()
            raise DataFileError(self._damage.format("the HDF5 library hangs or crashes"), self.path)
        found: dict[str, Any] = json.loads(text)
        if "problem" in found:
            raise DataFileError(self._damage.format(found["problem"]), self.path)
        return found


def is_anndata(X: Any) -> bool:
    """Return True if X is an AnnData object, without importing anndata."""
    return type(X).__module__.partition(".")[0] == "anndata" and hasattr(X, "var_names") and hasattr(X, "obs")


def _layer_names(layers: Iterable[str | None]) -> list[str]:
    """Return the names of the layers, without the key None, under which anndata 0.13 lists X."""
    return [str(name) for name in layers if name is not None]


def values_and_names(data: Any, layer: str | None) -> tuple[Any, Any]:
    """Return the matrix of a layer (``"raw"``: ``adata.raw``; None: X) of an AnnData object, and its column names.

    Raises ValueError with the available layers.
    """
    known = _layer_names(data.layers)
    known += ["raw"] if data.raw is not None and "raw" not in known else []
    if layer is None:
        if data.X is None:
            raise ValueError(f"there is no X. Choose a layer: {', '.join(known) or 'none available'}.")
        return data.X, data.var_names
    if layer == "raw" and data.raw is not None:
        return data.raw.X, data.raw.var_names
    if layer not in data.layers:
        question = did_you_mean(str(layer), known, " ")
        raise ValueError(f"layer {layer!r} not found. {question}Available layers: {', '.join(known) or 'none'}.")
    return data.layers[layer], data.var_names


def column_of(data: Any, name: Any, use: str) -> np.ndarray:
    """Return the values of a column of ``obs``. Raises ValueError with similar names and the available columns."""
    if name not in data.obs.columns:
        question = did_you_mean(str(name), [str(column) for column in data.obs.columns], " ")
        columns = describe_obs_columns(data) or "none"
        raise ValueError(f"obs has no column {name!r} for the {use}. {question}Available columns: {columns}.")
    values: np.ndarray = data.obs[name].to_numpy()
    return values


def labels_of(data: Any, label: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of all samples from a column of ``obs``, and a mask of missing labels.

    Numbers and booleans keep their type; anything else becomes text. Categories without samples are ignored. Raises
    ValueError with the most similar names and the available columns.
    """
    values = column_of(data, label, "labels")
    missing = np.array([is_missing(value) for value in values], dtype=bool)
    if values.dtype.kind not in "biuf":  # text, or a pandas extension type with its own missing value
        present = [value for value, absent in zip(values.tolist(), missing, strict=True) if not absent]
        numbers = bool(present) and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in present)
        nothing, kind = (np.nan, np.float64) if numbers else (None, object)
        kept = np.array(present if numbers else [str(value) for value in present])
        if missing.any() or not numbers:
            values = np.full(len(values), nothing, dtype=kind)
            values[~missing] = kept
        else:
            values = kept
    return values, missing


def obs_codes(obs: Any, rows: Any, label: Any) -> dict[str, np.ndarray]:
    """Return the values of the columns of ``obs`` whose values repeat, as codes, except floats and the labels."""
    found: dict[str, np.ndarray] = {}
    for name in obs.columns:
        kind = getattr(obs[name].dtype, "kind", "O")
        if name != label and kind not in "fcmM" and len(found) < _MAX_CODED_COLUMNS:
            codes = obs[name].astype(str).astype("category").cat.codes.to_numpy()[rows]
            if len(np.unique(codes)) < len(codes):
                found[str(name)] = codes
    return found


def describe_obs_columns(data: Any) -> str:
    """Describe the columns of ``obs``: first those with classes, with the number of classes, then the others."""
    classes, others = [], []
    for name in data.obs.columns:
        column = data.obs[name]
        n_values = column.nunique()
        numeric = getattr(column.dtype, "kind", "O") == "f" or (getattr(column.dtype, "kind", "O") in "iu" and n_values > 50)
        if not numeric and 2 <= n_values <= max(2, len(column) // 2):
            classes.append(f"{name} ({n_values} classes)")
        else:
            others.append(str(name))
    shown = [*classes, *others][:_MAX_COLUMNS_SHOWN]
    more = len(classes) + len(others) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def from_anndata(
    adata: Any,
    *,
    label: Any = None,
    sample_groups: Any = None,
    covariates: Any = None,
    weight: Any = None,
    layer: str | None = None,
    missing_labels: str = "error",
    feature_names: Any = None,
    columns: Sequence[ColumnEncoding] | None = None,
) -> Dataset:
    """Return the features of an AnnData object without a copy. The parameters are those of :class:`H5adReader`.

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
        wanted = sample_groups is not None and sample_groups is not False
        groups = column_of(adata, sample_groups, "sample groups") if wanted else None
    except ValueError as error:
        advice = " Use coterie.data.open_features(adata, layer=...)." if "Choose a layer" in str(error) else ""
        raise ValueError(f"AnnData object: {error}{advice}") from error
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
    known = None if groups is None else group_labels(groups[keep].tolist(), "AnnData object", f"obs[{sample_groups!r}]")
    names, others = PackedStrings.pack(adata.obs_names[keep]), obs_codes(adata.obs, keep, label)
    own = sample_columns(adata.obs.iloc[keep], covariates, weight, columns, "AnnData object, obs")
    return Dataset(
        source, y, names, "anndata", notes=notes, covariates=own.covariates, sample_groups=known, other_columns=others,
        sample_weight=own.weight, encoding=own.encoding,
    )  # fmt: skip


def _with_label(adata: Any, label: Any, missing: np.ndarray, policy: str) -> tuple[np.ndarray, int]:
    """Return the samples that have a label. With policy "error", raise if a label is missing."""
    count, first = int(missing.sum()), str(adata.obs_names[int(np.argmax(missing))])
    if count == len(missing):
        raise ValueError(f"AnnData object: no sample has a label in obs[{label!r}].")
    if policy == "error":
        raise ValueError(
            f"y contains NaN or None: {count} of {len(missing)} samples have no label in obs[{label!r}]. The first is "
            f"{first!r}. Drop them: adata = adata[adata.obs[{label!r}].notna()]."
        )
    return np.flatnonzero(~missing), count
