"""What a reader of a format returns: blocks of values first; labels and names, at the latest, after the last block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from coterie.data.errors import DataFileError, in_one_line
from coterie.data.names import PackedStrings
from coterie.data.readers.byte_stream import read_lines
from coterie.kernels.transposition import value_range

if TYPE_CHECKING:
    from coterie.data.covariates import Covariates

# Told (done, total, what): bytes or features done, all of them (None when unknown), and what is going on.
Progress: TypeAlias = Callable[[int, int | None, str], object]


class RowBlock(NamedTuple):
    """Some samples of a sparse matrix: entries row by row. A row has each column at most once, in any order."""

    ends: np.ndarray  # number of entries of the block up to the end of each row
    columns: np.ndarray
    values: np.ndarray


Block: TypeAlias = "np.ndarray | RowBlock | sparse.csc_array"


class Reader:
    """Base class of the readers.

    A subclass yields blocks of samples (dense arrays, or :class:`RowBlock`) or, where ``by`` is ``"features"``, blocks of
    features (F-ordered arrays, or CSC). Everything else may be set as late as after the last block.

    Attributes
    ----------
    format : str
        Name of the format.
    by : {"samples", "features"}
        What a block is a block of.
    shape : tuple
        Number of samples and features; None where it is not known before the end.
    first_column : int
        Index that the file gives to the first feature: 1 for most LIBSVM files.
    dtype : dtype or None
        Type of the values; None stands for the smallest type that holds all of them exactly, for text.
    labels_replaced, other_labels : bool, ndarray or None
        Whether labels from elsewhere (or None) take the place of the file's own.
    labels, sample_names, feature_names, feature_info, notes
        As in :class:`coterie.data.Dataset`.
    """

    format = ""
    by = "samples"
    _damage = "{}."  # the message of an error in another library

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shape: tuple[int | None, int | None] = (None, None)
        self.first_column = 0
        self.dtype: np.dtype | None = None
        self.labels: np.ndarray | None = None
        self.labels_replaced = False
        self.other_labels: np.ndarray | None = None
        self.sample_names: PackedStrings | None = None
        self.feature_names: PackedStrings | None = None
        self.feature_info: dict[str, np.ndarray | PackedStrings] = {}
        self.covariates: Covariates | None = None
        self.notes: dict[str, Any] = {}

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        """The data in blocks of about ``n_values`` values or fewer."""
        raise NotImplementedError  # every reader has its own

    def settle(self, n_samples: int, n_features: int) -> None:
        """After the last block: take labels from elsewhere, and check the lengths of everything."""
        if self.labels_replaced:
            self.labels = self.other_labels
        for what, values, n, of in (
            ("labels", self.labels, n_samples, "samples"),
            ("sample names", self.sample_names, n_samples, "samples"),
            ("feature names", self.feature_names, n_features, "features"),
        ):
            if values is not None and len(values) != n:
                raise ValueError(f"{self.path}: there are {len(values)} {what}, but {n} {of}.")

    def close(self) -> None:
        """Close what the reader has open."""

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn the errors of other libraries into errors of the file; those that name a file pass."""
        try:
            yield
        except DataFileError:
            raise
        except Exception as error:  # of many kinds, where a file is damaged
            if isinstance(error, OSError) and error.filename is not None:
                raise
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> DataFileError:
        """The error of a file that a library cannot read."""
        return DataFileError(self._damage.format(in_one_line(error)), self.path)


class ValueKind:
    """The smallest type that holds all values seen so far exactly."""

    def __init__(self) -> None:
        self.lowest, self.highest, self.whole, self.single = 0.0, 0.0, True, True

    def see(self, values: np.ndarray) -> None:
        if not (self.whole or self.single):
            return
        lowest, highest, whole, single = value_range(np.ravel(values, order="K"))
        self.lowest, self.highest = min(self.lowest, lowest), max(self.highest, highest)
        self.whole, self.single = self.whole and whole, self.single and single

    def join(self, other: ValueKind) -> None:
        """Take the values that another one has seen into account."""
        self.lowest, self.highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        self.whole, self.single = self.whole and other.whole, self.single and other.single

    @property
    def dtype(self) -> np.dtype:
        if self.whole:
            for candidate in (np.uint8, np.int8, np.int16):
                limits = np.iinfo(candidate)
                if limits.min <= self.lowest and self.highest <= limits.max:
                    return np.dtype(candidate)
        return np.dtype(np.float32 if self.single else np.float64)


def row_block(rows: sparse.csr_array) -> RowBlock:
    """A CSR matrix as a block; repeated entries are summed."""
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return RowBlock(rows.indptr[1:].astype(np.int64), rows.indices, rows.data)


def check_compressed(matrix: Any) -> None:
    """Raise if a CSR, CSC or BSR matrix is none: kernels trust its indices, and so does SciPy.

    SciPy's own check leaves all of them out where the last start is 0.
    """
    if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
        raise ValueError("index pointers go backwards")
    matrix.check_format(full_check=True)


def usable_values(matrix: Any, path: Path) -> Any:
    """Check the type of a whole matrix and bring sparse ones to canonical CSC."""
    kind = matrix.dtype.kind
    if kind not in "biuf":
        raise DataFileError(f"values of type {matrix.dtype} are not real numbers.", path)
    if matrix.dtype == np.float16:
        matrix = matrix.astype(np.float32)
    elif matrix.dtype.itemsize > 8 or not matrix.dtype.isnative:
        matrix = matrix.astype(np.float64 if matrix.dtype.itemsize > 8 else matrix.dtype.newbyteorder("="))
    if not sparse.issparse(matrix):
        return matrix
    result = sparse.csc_array(matrix)
    result.sum_duplicates()
    return result


def whole_numbers(labels: np.ndarray) -> np.ndarray:
    """Labels as integers where all of them are."""
    if labels.dtype.kind != "f" or not np.isfinite(labels).all():
        return labels
    if (np.abs(labels) <= 2.0**53).all() and (labels == np.floor(labels)).all():
        return labels.astype(np.int64)
    return labels


# What people write where there is no value; compared in lower case.
MISSING_WORDS = frozenset(["", "na", "n/a", "nan", "null", "none", "<na>"])


def parse_labels(texts: Sequence[str]) -> np.ndarray:
    """Labels as integers or floats where all of them are finite numbers, else as strings."""
    for kind in (np.int64, np.float64):
        try:
            labels = np.fromiter(map(kind, texts), dtype=kind, count=len(texts))
        except (ValueError, OverflowError):
            continue
        if np.isfinite(labels).all():
            return labels
    return np.array(texts, dtype=object)


def labels_in_file(label: Any, path: Path) -> np.ndarray:
    """Labels from a text file with one a line."""
    if not isinstance(label, (str, os.PathLike)):
        raise ValueError(
            f"label={label!r}: the labels of {path.name} come from the file itself or from a text file with one a line."
        )
    file = Path(label)
    if not file.exists():
        raise FileNotFoundError(2, "label= names a text file with one label a line, but there is no such file", str(file))
    lines = [line.strip() for line in read_lines(file)]
    for number, line in enumerate(lines, start=1):
        if line.lower() in MISSING_WORDS:
            raise DataFileError("the label is missing. Give every sample one.", file, line=number)
    return parse_labels(lines)


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, pandas.NA or a word for nothing."""
    return label is None or str(label).strip().lower() in MISSING_WORDS


def missing_labels(missing: np.ndarray, policy: str, path: Path, what: str) -> np.ndarray:
    """The samples to keep: all but those without a label, which are dropped or refused."""
    if policy not in ("error", "drop"):
        raise ValueError(f"missing_labels={policy!r} must be 'error' or 'drop'.")
    count = int(np.count_nonzero(missing))
    if count and policy == "error":
        first = int(np.argmax(missing))
        raise DataFileError(
            f"{count} of {len(missing)} samples have no label in {what}, the first is sample {first}. Drop them with "
            "missing_labels='drop', or complete them.",
            path,
        )
    if count == len(missing):
        raise DataFileError(f"no sample has a label in {what}.", path)
    return np.flatnonzero(~missing)
