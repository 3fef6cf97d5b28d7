"""NumPy's .npz files: SciPy's sparse matrices, and X (or the parts of a CSR matrix) with y."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from coterie.bounds import BEST_RATIO, check_length, open_regular, require_memory
from coterie.data.errors import DataFileError, in_one_line
from coterie.data.names import PackedStrings
from coterie.data.readers.columns import nearest
from coterie.data.readers.reader import Block, Progress, Reader, check_compressed, labels_in_file, usable_values

# How often the arrays are in memory at a time: as they come, and by feature.
_COPIES = 2


class NpzReader(Reader):
    """Reads ``X`` (dense) or ``data, indices, indptr, shape`` (CSR, or what ``format`` says, as SciPy saves it), and ``y``.

    Parameters
    ----------
    path : Path
        The file.
    label : str, False or None
        Key of the labels; by default ``"y"`` if there is one. Also a text file with one label a line.
    """

    format = "npz"
    by = "features"
    _damage = "it is damaged or no .npz file ({})."

    def __init__(self, path: Path, *, label: Any = None) -> None:
        super().__init__(path)
        self._label = label

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        """Everything at once: the parts of a zip file cannot be mapped."""
        arrays = self._arrays()
        self._take_labels(arrays)
        if "feature_names" in arrays:
            self.feature_names = PackedStrings.pack(arrays["feature_names"].tolist())
        matrix = arrays["X"] if "X" in arrays else self._sparse(arrays)
        if matrix.ndim != 2:
            raise DataFileError(f"X has {matrix.ndim} dimension(s) instead of 2.", self.path)
        yield usable_values(matrix, self.path)

    def _arrays(self) -> dict[str, np.ndarray]:
        with self._translated(), open_regular(self.path) as file:
            with zipfile.ZipFile(file) as archive:
                self._check_sizes(archive)
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                return {key: arrays[key] for key in arrays.files}

    def _failed(self, error: Exception) -> DataFileError:
        if "allow_pickle" in str(error):
            return DataFileError("it holds Python objects, which are not loaded for safety. Save plain arrays.", self.path)
        return super()._failed(error)

    def _check_sizes(self, archive: zipfile.ZipFile) -> None:
        """No array may claim to be larger than its part of the file, nor all of them to be larger than memory."""
        require_memory(_COPIES * sum(member.file_size for member in archive.infolist()), self.path, "what it unpacks to")
        for member in archive.infolist():
            if member.file_size > BEST_RATIO * member.compress_size + 4096:
                raise DataFileError(f"the size of {member.filename!r} cannot be true.", self.path)
            if not member.filename.endswith(".npy"):
                continue
            with archive.open(member) as part:
                version = np.lib.format.read_magic(part)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(part)
            if int(np.prod(shape, dtype=object)) * dtype.itemsize > member.file_size:
                raise DataFileError(f"{member.filename!r} claims to have the shape {shape}, but is too short.", self.path)

    def _sparse(self, arrays: dict[str, np.ndarray]) -> Any:
        """The sparse matrix, checked: kernels trust its indices."""
        kind = (
            bytes(arrays["format"].ravel()[:1].astype("S")).decode("ascii", "replace").strip("\0")
            if "format" in arrays
            else "csr"
        )
        needs = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr"), "coo": ("data", "row", "col")}
        missing = [key for key in ("shape", *needs.get(kind, ())) if key not in arrays]
        if missing or (kind not in needs and "format" not in arrays):
            raise DataFileError(
                f"it has {', '.join(sorted(arrays)) or 'nothing'}, but neither X nor data, indices, indptr and shape.",
                self.path,
            )
        try:
            shape = tuple(int(n) for n in arrays["shape"])
            for n in shape:
                check_length(n, self.path.stat().st_size * BEST_RATIO, self.path, f"the shape {shape}")
            if kind == "coo":
                matrix = sparse.coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape=shape)
            elif kind in needs:
                maker = sparse.csr_array if kind == "csr" else sparse.csc_array
                matrix = maker(tuple(arrays[key] for key in needs[kind]), shape=shape)
            else:
                matrix = sparse.load_npz(self.path)
            if hasattr(matrix, "indptr"):
                check_compressed(matrix)
        except DataFileError:
            raise
        except Exception as error:  # SciPy's many ways to say that arrays do not fit together
            raise DataFileError(f"its arrays are no sparse matrix: {in_one_line(error)}.", self.path) from error
        return matrix

    def _take_labels(self, arrays: dict[str, np.ndarray]) -> None:
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
                f"label={key!r}: there is no such array for the labels; {nearest(str(key), vectors)}", self.path
            )
        else:
            self.labels = labels_in_file(key, self.path)
