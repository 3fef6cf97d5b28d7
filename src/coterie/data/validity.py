"""Checks of kernel input: sparse indices out of range, and values that are NaN, infinite or too large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from coterie._numba import read_only, run_evenly, thread_count
from coterie.data.source import LARGEST_NORM, FeatureSource
from coterie.kernels.transposition import first_bad_column

# Offsets compared at a time. The array may be a large memory map.
_CHUNK_VALUES = 1 << 22
# Values read at a time to count bad values.
_BLOCK_ENTRIES = 1 << 22
# Maximum number of features named in a message.
_MAX_FEATURES_SHOWN = 8


def canonical_csc(X: Any) -> sparse.csc_array | sparse.csc_matrix:
    """Return a sparse matrix as CSC, sorted and without repeated entries; a canonical CSC matrix is not copied.

    Examples
    --------
    >>> from scipy import sparse
    >>> from coterie.data.validity import canonical_csc
    >>> canonical_csc(sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))).data
    array([3.])
    """
    if X.format != "csc":
        check_structure(X)
    else:
        _check_compressed(X)  # the indices are checked below
    matrix = X.tocsc()
    if first_invalid_column(matrix.indptr, matrix.indices, matrix.shape[0]) < 0:
        return matrix
    check_structure(matrix)
    matrix = matrix.copy() if matrix is X else matrix
    matrix.has_canonical_format = matrix.has_sorted_indices = False  # the flags may be wrong
    matrix.sum_duplicates()
    return matrix


def check_structure(X: Any) -> None:
    """Raise ``ValueError`` if a SciPy sparse matrix of any format has indices out of range."""
    if X.format in ("csc", "csr", "bsr"):
        _check_compressed(X)
        along = 0 if X.format == "csc" else 1
        step = X.blocksize[1] if X.format == "bsr" else 1
        _check_range(X.indices, X.shape[along] // step, "row" if along == 0 else "column")
    elif X.format == "coo":
        if any(len(part) != len(X.data) or part.dtype.kind != "i" for part in X.coords):
            raise _invalid_matrix("its values and coordinates differ in number, or the coordinates are not integers")
        for part, size, name in zip(X.coords, X.shape, ("row", "column"), strict=True):
            _check_range(part, size, name)
    elif X.format == "lil":
        check_structure(X.tocsr())  # concatenates the rows without using the indices
    elif X.format == "dok":
        check_structure(X.tocoo())


def _check_compressed(X: Any) -> None:
    n_parts = X.shape[1] if X.format == "csc" else X.shape[0] // (X.blocksize[0] if X.format == "bsr" else 1)
    if X.indptr.dtype.kind != "i" or X.indices.dtype.kind != "i" or X.indices.ndim != 1:
        raise _invalid_matrix("its indices are not integers")
    if len(X.indptr) != n_parts + 1 or not is_partition(X.indptr, int(X.indptr[-1])):
        raise _invalid_matrix("indptr must start at 0 and be non-decreasing")
    if X.indptr[-1] > min(len(X.indices), len(X.data)):
        n_entries = min(len(X.indices), len(X.data))
        raise _invalid_matrix(f"indptr ends at {X.indptr[-1]}, but there are {n_entries} entries")


def _check_range(indices: np.ndarray, size: int, name: str) -> None:
    if len(indices) and not 0 <= indices.min() <= indices.max() < size:
        place = int(np.argmax((indices < 0) | (indices >= size)))
        raise _invalid_matrix(f"entry {place} has {name} index {indices[place]}, but there are {size} {name}s")


def _invalid_matrix(what: str) -> ValueError:
    return ValueError(f"The sparse matrix X is invalid: {what}. Rebuild it from its values and coordinates.")


def is_partition(starts: np.ndarray, length: int) -> bool:
    """Return True if the numbers increase (not strictly) from 0 to ``length``."""
    if len(starts) == 0 or starts[0] != 0 or starts[-1] != length:
        return False
    pieces = (starts[begin : begin + _CHUNK_VALUES + 1] for begin in range(0, max(len(starts) - 1, 1), _CHUNK_VALUES))
    # Compare instead of subtracting: a difference of unsigned or extreme values may overflow.
    return all(bool((part[1:] >= part[:-1]).all()) for part in pieces)


def first_invalid_column(indptr: np.ndarray, indices: np.ndarray, n_rows: int) -> int:
    """Return the first column whose rows are not strictly increasing and in range, or -1. ``indptr`` must be valid."""
    starts, rows = read_only(indptr), read_only(indices)
    found: list[int] = []

    def task(start: int, stop: int) -> None:
        bad = first_bad_column(starts, rows, n_rows, start, stop)
        if bad >= 0:
            found.append(int(bad))

    run_evenly(task, starts, thread_count())
    return min(found, default=-1)


@dataclass(frozen=True)
class BadValues:
    """NaN, infinite and too large values of a matrix or a part of it. False if there are none.

    Features are numbered as in the whole matrix.
    """

    n_values: int = 0
    n_features: int = 0
    first: tuple[int, int] | None = None  # sample and feature
    too_large: int | None = None  # first feature whose finite values exceed the largest norm
    features: tuple[int, ...] = ()  # first features with NaN or infinite values

    @classmethod
    def find(
        cls, source: FeatureSource, finite: np.ndarray, mean: np.ndarray, norm: np.ndarray, first_feature: int
    ) -> BadValues:
        """Return the bad values of a source, given the results of a pass over it.

        ``finite`` is a mask of the features with only finite values; ``mean`` and ``norm`` are the means and centred norms.
        ``first_feature`` is the index of the first column in the whole matrix.
        """
        if finite.all() and max(norm.max(initial=0.0), mean.max(initial=0.0), -mean.min(initial=0.0)) <= LARGEST_NORM:
            return cls()
        usable = (norm <= LARGEST_NORM) & (np.abs(mean) <= LARGEST_NORM)
        bad, huge = np.flatnonzero(~finite), np.flatnonzero(finite & ~usable)
        first = (_first_sample(source, bad[:1]), first_feature + int(bad[0])) if len(bad) else None
        too_large = first_feature + int(huge[0]) if len(huge) else None
        shown = tuple(first_feature + int(j) for j in bad[:_MAX_FEATURES_SHOWN])
        return cls(_count_bad_values(source, bad), len(bad), first, too_large, shown)

    def joined(self, later: BadValues) -> BadValues:
        """Return the bad values of this part and of a part with later features."""
        return BadValues(
            self.n_values + later.n_values,
            self.n_features + later.n_features,
            later.first if self.first is None else self.first,
            later.too_large if self.too_large is None else self.too_large,
            (*self.features, *later.features)[:_MAX_FEATURES_SHOWN],
        )

    def __bool__(self) -> bool:
        return self.first is not None or self.too_large is not None

    def raise_if_any(self, names: Sequence[str] | None, *, first_feature: int = 0, path: Path | None = None) -> None:
        """Raise ``ValueError`` with the number of bad values and the place of the first, if there are any.

        ``names`` holds the names of the features from ``first_feature`` on. With a path, the message begins with it.
        """

        def describe(feature: int) -> str:
            position = feature - first_feature
            # The number of names is checked after the last block, so names may be missing here.
            return f"{feature} ({names[position]!r})" if names is not None and position < len(names) else f"{feature}"

        def feature_list() -> str:
            positions = [feature - first_feature for feature in self.features]
            if names is None or self.n_features < 2 or max(positions) >= len(names):
                return ""
            more = self.n_features - len(positions)
            return f" ({', '.join(repr(names[j]) for j in positions)}{f' and {more:,} more' if more else ''})"

        if self.first is not None:
            sample, feature = self.first
            raise ValueError(
                f"{'Input X' if path is None else f'{path}: the file'} contains {self.n_values} NaN or infinite value(s) in "
                f"{self.n_features} feature(s). The first is in sample {sample} of feature {describe(feature)}. Impute them "
                f"(for instance with sklearn.impute.SimpleImputer) or drop these features{feature_list()} or samples."
            )
        if self.too_large is not None:
            raise ValueError(
                f"{'The' if path is None else f'{path}: the'} values of feature {describe(self.too_large)} are too large to "
                f"compute with (above about {LARGEST_NORM:.0e}). Rescale the feature."
            )


def _count_bad_values(source: FeatureSource, features: np.ndarray) -> int:
    """Return the number of NaN and infinite values of some features."""
    width = max(1, _BLOCK_ENTRIES // max(1, source.shape[0]))
    count = 0
    for start in range(0, len(features), width):
        columns = source.columns(features[start : start + width])
        values = columns if isinstance(columns, np.ndarray) else columns.data
        count += int(np.count_nonzero(~np.isfinite(values)))
    return count


def _first_sample(source: FeatureSource, feature: np.ndarray) -> int:
    """Return the first sample in which a feature (an array of length one) is NaN or infinite."""
    column = source.columns(feature)
    if isinstance(column, np.ndarray):
        return int(np.argmin(np.isfinite(column[:, 0])))
    return int(column.indices[~np.isfinite(column.data)].min())
