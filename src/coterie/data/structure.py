"""The structure of sparse matrices: compiled code follows their indices, so nothing may lead out of the matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from coterie._numba import read_only, run_evenly, thread_count
from coterie.kernels.transposition import first_bad_column

# Numbers that are looked at a time; the array may be larger than memory likes.
_PIECE = 1 << 22


def canonical_csc(X: Any) -> sparse.csc_array | sparse.csc_matrix:
    """A sparse matrix in CSC, sorted and without repeated entries, not copied where it is so already.

    Examples
    --------
    >>> from scipy import sparse
    >>> from coterie.data.structure import canonical_csc
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
    """The pointers of CSC, CSR or BSR."""
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
