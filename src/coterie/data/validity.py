"""What kernels cannot compute with: sparse indices out of range, and values that are NaN, infinite or too large."""

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

# Numbers that are looked at a time; the array may be larger than memory likes.
_PIECE = 1 << 22
# Values that are looked at again at a time.
_BLOCK_ENTRIES = 1 << 22
# Features that a message names.
_SHOWN = 8


def canonical_csc(X: Any) -> sparse.csc_array | sparse.csc_matrix:
    """A sparse matrix in CSC, sorted and without repeated entries, not copied where it is so already.

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
        _check_compressed(X)  # of the indices, the next lines think
    matrix = X.tocsc()
    if first_bad(matrix.indptr, matrix.indices, matrix.shape[0]) < 0:
        return matrix
    check_structure(matrix)
    matrix = matrix.copy() if matrix is X else matrix
    matrix.has_canonical_format = matrix.has_sorted_indices = False  # whatever it said before
    matrix.sum_duplicates()
    return matrix


def check_structure(X: Any) -> None:
    """Raise a ``ValueError`` if a sparse matrix of SciPy's, in any format, has indices that lead out of it."""
    if X.format in ("csc", "csr", "bsr"):
        _check_compressed(X)
        along = 0 if X.format == "csc" else 1
        step = X.blocksize[1] if X.format == "bsr" else 1
        _check_range(X.indices, X.shape[along] // step, "row" if along == 0 else "column")
    elif X.format == "coo":
        if any(len(part) != len(X.data) or part.dtype.kind != "i" for part in X.coords):
            raise _broken("its values and places are of different number or type")
        for part, size, name in zip(X.coords, X.shape, ("row", "column"), strict=True):
            _check_range(part, size, name)
    elif X.format == "lil":
        check_structure(X.tocsr())  # which only joins the rows
    elif X.format == "dok":
        check_structure(X.tocoo())


def _check_compressed(X: Any) -> None:
    n_parts = X.shape[1] if X.format == "csc" else X.shape[0] // (X.blocksize[0] if X.format == "bsr" else 1)
    if X.indptr.dtype.kind != "i" or X.indices.dtype.kind != "i" or X.indices.ndim != 1:
        raise _broken("its indices are no whole numbers")
    if len(X.indptr) != n_parts + 1 or not is_partition(X.indptr, int(X.indptr[-1])):
        raise _broken("its pointers (indptr) do not begin with 0 and rise")
    if X.indptr[-1] > min(len(X.indices), len(X.data)):
        raise _broken(f"its pointers (indptr) end at {X.indptr[-1]}, but it has {min(len(X.indices), len(X.data))} entries")


def _check_range(indices: np.ndarray, size: int, name: str) -> None:
    if len(indices) and not 0 <= indices.min() <= indices.max() < size:
        place = int(np.argmax((indices < 0) | (indices >= size)))
        raise _broken(f"entry {place} has the {name} {indices[place]}, but there are {size} {name}s")


def _broken(what: str) -> ValueError:
    return ValueError(f"The sparse matrix X is broken: {what}. Make it anew from its values and places.")


def is_partition(starts: np.ndarray, length: int) -> bool:
    """Whether the numbers go from 0 to ``length`` without going back."""
    if len(starts) == 0 or starts[0] != 0 or starts[-1] != length:
        return False
    pieces = (starts[begin : begin + _PIECE + 1] for begin in range(0, max(len(starts) - 1, 1), _PIECE))
    return all(bool((part[1:] >= part[:-1]).all()) for part in pieces)  # no difference: it might not be a number of that type


def first_bad(indptr: np.ndarray, indices: np.ndarray, n_rows: int) -> int:
    """The first column whose rows are not sorted, different and in range, or -1; the pointers are trusted."""
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
    """NaN and infinite values of (a part of) a matrix; features are counted in the whole matrix. False if there are none."""

    n_values: int = 0
    n_features: int = 0
    first: tuple[int, int] | None = None  # sample and feature
    too_large: int | None = None  # the first feature whose finite values are too large to compute with
    features: tuple[int, ...] = ()  # the first ones

    @classmethod
    def find(
        cls, source: FeatureSource, finite: np.ndarray, mean: np.ndarray, norm: np.ndarray, first_feature: int
    ) -> BadValues:
        """Those of a source, from one pass over it.

        ``finite`` says which features have only finite values, ``mean`` and ``norm`` are the means and centred norms.
        ``first_feature`` is what the first column is in the whole matrix.
        """
        if finite.all() and max(norm.max(initial=0.0), mean.max(initial=0.0), -mean.min(initial=0.0)) <= LARGEST_NORM:
            return cls()
        usable = (norm <= LARGEST_NORM) & (np.abs(mean) <= LARGEST_NORM)
        bad, huge = np.flatnonzero(~finite), np.flatnonzero(finite & ~usable)
        first = (_first_sample(source, bad[:1]), first_feature + int(bad[0])) if len(bad) else None
        too_large = first_feature + int(huge[0]) if len(huge) else None
        shown = tuple(first_feature + int(j) for j in bad[:_SHOWN])
        return cls(_count(source, bad), len(bad), first, too_large, shown)

    def joined(self, later: BadValues) -> BadValues:
        """Those of this part and of one with later features."""
        return BadValues(
            self.n_values + later.n_values,
            self.n_features + later.n_features,
            later.first if self.first is None else self.first,
            later.too_large if self.too_large is None else self.too_large,
            (*self.features, *later.features)[:_SHOWN],
        )

    def __bool__(self) -> bool:
        return self.first is not None or self.too_large is not None

    def refuse(self, names: Sequence[str] | None, *, first_feature: int = 0, path: Path | None = None) -> None:
        """Raise an error that counts and places them, if there are any.

        ``names`` are those of the features from ``first_feature`` on. The error of a file begins with its path.
        """

        def called(feature: int) -> str:
            place = feature - first_feature
            # Names are checked after the last block, so there may be too few of them here.
            return f"{feature} ({names[place]!r})" if names is not None and place < len(names) else f"{feature}"

        def named() -> str:
            places = [feature - first_feature for feature in self.features]
            if names is None or self.n_features < 2 or max(places) >= len(names):
                return ""
            more = self.n_features - len(places)
            return f" ({', '.join(repr(names[j]) for j in places)}{f' and {more:,} more' if more else ''})"

        if self.first is not None:
            sample, feature = self.first
            raise ValueError(
                f"{'Input X' if path is None else f'{path}: it'} contains {self.n_values} NaN or infinite value(s) in "
                f"{self.n_features} feature(s); the first is in sample {sample} of feature {called(feature)}. Impute them "
                f"(for instance with sklearn.impute.SimpleImputer) or drop those features{named()} or samples."
            )
        if self.too_large is not None:
            raise ValueError(
                f"{'The' if path is None else f'{path}: the'} values of feature {called(self.too_large)} are too large to "
                f"compute with (over about {LARGEST_NORM:.0e}). Rescale the feature."
            )


def _count(source: FeatureSource, features: np.ndarray) -> int:
    """Number of values of some features that are NaN or infinite."""
    width = max(1, _BLOCK_ENTRIES // max(1, source.shape[0]))
    count = 0
    for start in range(0, len(features), width):
        columns = source.columns(features[start : start + width])
        values = columns if isinstance(columns, np.ndarray) else columns.data
        count += int(np.count_nonzero(~np.isfinite(values)))
    return count


def _first_sample(source: FeatureSource, feature: np.ndarray) -> int:
    """The first sample in which a feature (an array of one) is NaN or infinite."""
    column = source.columns(feature)
    if isinstance(column, np.ndarray):
        return int(np.argmin(np.isfinite(column[:, 0])))
    return int(column.indices[~np.isfinite(column.data)].min())
