"""NumPy .npz files with a SciPy sparse matrix, or with X (or the arrays of a CSR matrix) and y."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from coterie.bounds import MAX_DEFLATE_RATIO, check_length, open_regular, require_memory
from coterie.data.errors import DataFileError, error_summary
from coterie.data.names import PackedStrings
from coterie.data.readers.columns import suggest_names
from coterie.data.readers.reader import (
    Block,
    Progress,
    Reader,
    check_compressed,
    group_labels,
    labels_in_file,
    usable_values,
)

# Copies of the arrays in memory: as loaded, and by feature.
_N_COPIES = 2


class NpzReader(Reader):
    """Reader of .npz files.

    The features are ``X`` (dense), or the arrays of a sparse matrix as SciPy saves them: by default CSR (``data``,
    ``indices``, ``indptr``, ``shape``), or the format in ``format``.

    Parameters
    ----------
    path : Path
        .npz file.
    label : str, False or None
        Key of the labels, by default ``"y"`` if it exists; or a text file with one label per line.
    sample_groups : str, optional
        Key of the sample groups.
    """

    format = "npz"
    by = "features"
    _damage_message = "the file is damaged or not an .npz file ({})."

    def __init__(self, path: Path, *, label: Any = None, sample_groups: Any = None) -> None:
        super().__init__(path)
        self._label, self._groups = label, sample_groups

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        """Yield one block with all data, because the members of a zip file cannot be mapped."""
        arrays = self._arrays()
        self._set_labels(arrays)
        self._set_groups(arrays)
        if "feature_names" in arrays:
            self.feature_names = PackedStrings.pack(arrays["feature_names"].tolist())
        matrix = arrays["X"] if "X" in arrays else self._sparse(arrays)
        if matrix.ndim != 2:
            raise DataFileError(f"X has {matrix.ndim} dimension(s) instead of 2.", self.path)
        yield usable_values(matrix, self.path)

    def _arrays(self) -> dict[str, np.ndarray]:
        with self._translate_errors(), open_regular(self.path) as file:
            with zipfile.ZipFile(file) as archive:
                self._check_sizes(archive)
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                return {key: arrays[key] for key in arrays.files}

    def _read_error(self, error: Exception) -> DataFileError:
        if "allow_pickle" in str(error):
            message = "the file contains Python objects, which are not loaded for security reasons. Save plain arrays."
            return DataFileError(message, self.path)
        return super()._read_error(error)

    def _check_sizes(self, archive: zipfile.ZipFile) -> None:
        """Check the stated sizes of the arrays against those of their members and against the free memory."""
        require_memory(_N_COPIES * sum(member.file_size for member in archive.infolist()), self.path, "the unpacked content")
        for member in archive.infolist():
            if member.file_size > MAX_DEFLATE_RATIO * member.compress_size + 4096:
                raise DataFileError(f"the stated size of {member.filename!r} is impossible.", self.path)
            if not member.filename.endswith(".npy"):
                continue
            with archive.open(member) as part:
                version = np.lib.format.read_magic(part)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(part)
            if int(np.prod(shape, dtype=object)) * dtype.itemsize > member.file_size:
                raise DataFileError(f"{member.filename!r} is too short for its stated shape {shape}.", self.path)

    def _sparse(self, arrays: dict[str, np.ndarray]) -> Any:
        """Return the sparse matrix after checking its indices, which kernels do not check."""
        kind = (
            bytes(arrays["format"].ravel()[:1].astype("S")).decode("ascii", "replace").strip("\0")
            if "format" in arrays
            else "csr"
        )
        required = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr"), "coo": ("data", "row", "col")}
        missing = [key for key in ("shape", *required.get(kind, ())) if key not in arrays]
        if missing or (kind not in required and "format" not in arrays):
            raise DataFileError(
                "the file must contain X, or data, indices, indptr and shape. It contains "
                f"{', '.join(sorted(arrays)) or 'nothing'}.",
                self.path,
            )
        try:
            shape = tuple(int(n) for n in arrays["shape"])
            for n in shape:
                check_length(n, self.path.stat().st_size * MAX_DEFLATE_RATIO, self.path, f"the shape {shape}")
            if kind == "coo":
                matrix = sparse.coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape=shape)
            elif kind in required:
                maker = sparse.csr_array if kind == "csr" else sparse.csc_array
                matrix = maker(tuple(arrays[key] for key in required[kind]), shape=shape)
            else:
                matrix = sparse.load_npz(self.path)
            if hasattr(matrix, "indptr"):
                check_compressed(matrix)
        except DataFileError:
            raise
        except Exception as error:  # SciPy raises errors of several types for inconsistent arrays
            raise DataFileError(f"the arrays are not a valid sparse matrix: {error_summary(error)}.", self.path) from error
        return matrix

    def _set_groups(self, arrays: dict[str, np.ndarray]) -> None:
        key = self._groups
        if key is None or key is False:
            return
        vectors = [name for name, array in arrays.items() if array.ndim == 1]
        if key not in vectors:
            hint = suggest_names(str(key), vectors)
            raise DataFileError(f"sample_groups={key!r}: there is no such array with one value per sample. {hint}", self.path)
        self.sample_groups = group_labels(arrays[key].tolist(), self.path, f"array {key!r}")

    def _set_labels(self, arrays: dict[str, np.ndarray]) -> None:
        key = "y" if self._label is None else self._label
        if key is False or (self._label is None and key not in arrays):
            return
        if key in arrays:
            labels = arrays[key]
            if labels.ndim != 1:
                raise DataFileError(f"the labels {key!r} have {labels.ndim} dimensions instead of 1.", self.path)
            self.labels = labels.astype(object) if labels.dtype.kind in "US" else labels
        elif isinstance(key, str) and not Path(key).exists():
            vectors = [name for name, array in arrays.items() if array.ndim == 1]
            raise DataFileError(
                f"label={key!r}: there is no such array for the labels. {suggest_names(str(key), vectors)}", self.path
            )
        else:
            self.labels = labels_in_file(key, self.path)
