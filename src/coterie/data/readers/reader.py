"""Base class and helpers of the readers, which yield blocks of values and then provide labels and names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from coterie.data.errors import DataFileError, error_summary
from coterie.data.names import PackedStrings
from coterie.data.readers.byte_stream import read_lines
from coterie.kernels.transposition import value_range

if TYPE_CHECKING:
    from coterie.data.covariates import Covariates
    from coterie.data.encoding import TableEncoding

# Called with (done, total, what): bytes or features done, their total (None if unknown), and the current step.
Progress: TypeAlias = Callable[[int, int | None, str], object]


class RowBlock(NamedTuple):
    """Entries of some samples of a sparse matrix, by row. A row has each column at most once, in any order."""

    ends: np.ndarray  # cumulative number of entries at the end of each row
    columns: np.ndarray
    values: np.ndarray


Block: TypeAlias = "np.ndarray | RowBlock | sparse.csc_array"


class Reader:
    """Base class of the readers.

    A subclass yields blocks of samples (dense arrays or :class:`RowBlock`) or, if ``by`` is ``"features"``, blocks of
    features (F-ordered arrays or CSC). All other attributes are final only after the last block.

    Attributes
    ----------
    format : str
        Name of the format.
    by : {"samples", "features"}
        Axis along which the data are divided into blocks.
    shape : tuple
        Number of samples and features; None if unknown before the end.
    first_column : int
        Index of the first feature in the file: 1 for most LIBSVM files.
    dtype : dtype or None
        Type of the values; None (for text) means the smallest type that holds all of them exactly.
    units : int
        Divisor of the values: they are whole numbers of a unit if it is not 1.
    labels_replaced, other_labels : bool, ndarray or None
        Whether ``other_labels`` (labels from another file, or None) replace those of the file.
    sample_groups : ndarray of str of shape (n_samples,) or None
        Sample groups, always as text, so that a file and the store made from it give the same folds.
    sample_weight : ndarray of shape (n_samples,) or None
        Sample weights of the file.
    encoding : TableEncoding or None
        Encoding of the columns of a table, unless all are numbers.
    labels, sample_names, feature_names, feature_info, other_columns, notes
        As in :class:`coterie.data.Dataset`.
    """

    format = ""
    by = "samples"
    _damage_message = "{}."  # template for errors of other libraries

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shape: tuple[int | None, int | None] = (None, None)
        self.first_column = 0
        self.dtype: np.dtype | None = None
        self.units = 1
        self.labels: np.ndarray | None = None
        self.labels_replaced = False
        self.other_labels: np.ndarray | None = None
        self.sample_names: PackedStrings | None = None
        self.feature_names: PackedStrings | None = None
        self.feature_info: dict[str, np.ndarray | PackedStrings] = {}
        self.covariates: Covariates | None = None
        self.sample_groups: np.ndarray | None = None
        self.sample_weight: np.ndarray | None = None
        self.encoding: TableEncoding | None = None
        self.other_columns: dict[str, np.ndarray] = {}
        self.notes: dict[str, Any] = {}

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        """Yield the data in blocks of at most about ``n_values`` values."""
        raise NotImplementedError

    def finalize(self, n_samples: int, n_features: int) -> None:
        """Replace labels if requested and check all lengths. Called after the last block."""
        if self.labels_replaced:
            self.labels = self.other_labels
        for what, values, n, of in (
            ("labels", self.labels, n_samples, "samples"),
            ("sample names", self.sample_names, n_samples, "samples"),
            ("sample groups", self.sample_groups, n_samples, "samples"),
            ("feature names", self.feature_names, n_features, "features"),
        ):
            if values is not None and len(values) != n:
                raise ValueError(f"{self.path}: there are {len(values)} {what}, but {n} {of}.")

    def close(self) -> None:
        """Close open files."""

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Convert errors of other libraries to ``DataFileError``, except those that name a file."""
        try:
            yield
        except DataFileError:
            raise
        except Exception as error:  # damaged files cause errors of many types
            if isinstance(error, OSError) and error.filename is not None:
                raise
            raise self._read_error(error) from error

    def _read_error(self, error: Exception) -> DataFileError:
        """Return the error for a file that a library cannot read."""
        return DataFileError(self._damage_message.format(error_summary(error)), self.path)


class ValueKind:
    """Smallest type that holds all values so far exactly."""

    def __init__(self) -> None:
        self.lowest, self.highest, self.whole, self.single = 0.0, 0.0, True, True

    def update(self, values: np.ndarray) -> None:
        if not (self.whole or self.single):
            return
        lowest, highest, whole, single = value_range(np.ravel(values, order="K"))
        self.lowest, self.highest = min(self.lowest, lowest), max(self.highest, highest)
        self.whole, self.single = self.whole and whole, self.single and single

    def join(self, other: ValueKind) -> None:
        """Include the values of another instance."""
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
    """Convert a CSR matrix to a block, summing repeated entries."""
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return RowBlock(rows.indptr[1:].astype(np.int64), rows.indices, rows.data)


def check_compressed(matrix: Any) -> None:
    """Raise if a CSR, CSC or BSR matrix has invalid indices, which neither kernels nor SciPy check.

    SciPy skips its own full check if the last element of ``indptr`` is 0.
    """
    if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
        raise ValueError("indptr decreases")
    matrix.check_format(full_check=True)


def usable_values(matrix: Any, path: Path) -> Any:
    """Check and convert the type of a matrix, and convert a sparse matrix to canonical CSC."""
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


def as_integers(labels: np.ndarray) -> np.ndarray:
    """Convert labels to int64 if all of them are integers."""
    if labels.dtype.kind != "f" or not np.isfinite(labels).all():
        return labels
    if (np.abs(labels) <= 2.0**53).all() and (labels == np.floor(labels)).all():
        return labels.astype(np.int64)
    return labels


# Words that denote a missing value, compared in lower case.
MISSING_WORDS = frozenset(["", "na", "n/a", "nan", "null", "none", "<na>"])


def parse_labels(texts: Sequence[str]) -> np.ndarray:
    """Parse labels as integers or floats if all of them are finite numbers; else return strings."""
    for kind in (np.int64, np.float64):
        try:
            labels = np.fromiter(map(kind, texts), dtype=kind, count=len(texts))
        except (ValueError, OverflowError):
            continue
        if np.isfinite(labels).all():
            return labels
    return np.array(texts, dtype=object)


def labels_in_file(label: Any, path: Path) -> np.ndarray:
    """Read labels from a text file with one label per line."""
    if not isinstance(label, (str, os.PathLike)):
        raise ValueError(
            f"label={label!r} is not supported for {path.name}. Omit it, or pass a text file with one label per line."
        )
    file = Path(label)
    if not file.exists():
        raise FileNotFoundError(2, "Label file not found (a text file with one label per line)", str(file))
    lines = [line.strip() for line in read_lines(file)]
    for number, line in enumerate(lines, start=1):
        if line.lower() in MISSING_WORDS:
            raise DataFileError("the label is missing. Every sample requires a label.", file, line=number)
    return parse_labels(lines)


def sample_groups_in_file(groups: Any, path: Path) -> np.ndarray:
    """Read sample groups from a text file with one per line."""
    if not isinstance(groups, (str, os.PathLike)):
        raise ValueError(
            f"sample_groups={groups!r} is not supported for {path.name}. Pass a text file with one sample group per line."
        )
    file = Path(groups)
    if not file.exists():
        raise FileNotFoundError(
            2, f"{path.name} has no columns of sample groups. Text file with one sample group per line not found", str(file)
        )
    return group_labels([line.strip() for line in read_lines(file)], file, "this file")


def group_labels(values: Sequence[Any] | np.ndarray, path: Path | str, what: str) -> np.ndarray:
    """Return sample groups as text. Raises if one is missing, because a missing label says nothing about dependence."""
    missing = np.array([is_missing(value) for value in values], dtype=bool)
    if missing.any():
        raise DataFileError(
            f"the sample group is missing in {what} for {int(missing.sum())} of {len(missing)} samples. The first is sample "
            f"{int(np.argmax(missing))}. Complete the groups. A sample that belongs to no other needs a group of its own.",
            path,
        )
    texts = np.empty(len(values), dtype=object)
    texts[:] = [str(value).strip() for value in values]
    return texts


def is_missing(label: Any) -> bool:
    """Return True if a label is None, NaN, pandas.NA or a word that denotes a missing value."""
    return label is None or str(label).strip().lower() in MISSING_WORDS


def labelled_samples(missing: np.ndarray, policy: str, path: Path, what: str) -> np.ndarray:
    """Return the samples that have a label. With policy "error", raise if a label is missing."""
    if policy not in ("error", "drop"):
        raise ValueError(f"missing_labels={policy!r} must be 'error' or 'drop'.")
    count = int(np.count_nonzero(missing))
    if count and policy == "error":
        first = int(np.argmax(missing))
        raise DataFileError(
            f"{count} of {len(missing)} samples have no label in {what}. The first is sample {first}. Drop them with "
            "missing_labels='drop' or add the labels.",
            path,
        )
    if count == len(missing):
        raise DataFileError(f"no sample has a label in {what}.", path)
    return np.flatnonzero(~missing)
