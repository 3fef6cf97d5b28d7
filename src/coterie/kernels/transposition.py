"""Entries by sample to entries by feature, in memory and run by run; and what their values need of a type."""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel


@kernel()
def count_columns(columns, counts):
    """Add the entries of each column to ``counts``."""
    for j in columns:
        counts[j] += 1


@kernel()
def scatter_rows(ends, first_row, columns, values, cursor, rows_out, values_out, start, stop):
    """Put the entries of the columns ``start <= j < stop`` of some rows in their places.

    ``ends[i]`` is the number of entries up to the end of row ``i``; ``cursor[j]`` is the next place of column ``j``
    and moves on. Rows come in order, so the entries of a column are sorted.
    """
    entry = 0
    for i in range(len(ends)):
        while entry < ends[i]:
            j = columns[entry]
            if start <= j < stop:
                place = cursor[j]
                rows_out[place] = first_row + i
                values_out[place] = values[entry]
                cursor[j] = place + 1
            entry += 1


@kernel()
def append_columns(columns, starts, first, rows, values, offset, cursor, rows_out, values_out):
    """Append the entries of a run, sorted by column, to those of the columns so far.

    ``starts[c] - first`` is the place of the first entry of ``columns[c]`` in ``rows`` and ``values``;
    ``cursor[columns[c] - offset]`` is where it goes.
    """
    for c in range(len(columns)):
        place = cursor[columns[c] - offset]
        for entry in range(starts[c] - first, starts[c + 1] - first):
            rows_out[place] = rows[entry]
            values_out[place] = values[entry]
            place += 1
        cursor[columns[c] - offset] = place


@kernel()
def value_range(values):
    """Smallest and largest value, whether all are whole numbers, and whether float32 holds all of them."""
    lowest, highest, whole, single = np.inf, -np.inf, True, True
    for value in values:
        x = np.float64(value)
        lowest, highest = min(lowest, x), max(highest, x)
        whole = whole and x == np.floor(x) and (x != 0.0 or np.copysign(1.0, x) > 0.0)
        single = single and np.float64(np.float32(x)) == x
    return lowest, highest, whole, single


@kernel()
def first_bad_column(indptr, indices, n_rows, start, stop):
    """The first column in the range that is not sorted, or has a row twice or out of range; -1 if there is none."""
    for j in range(start, stop):
        previous = np.int64(-1)
        for entry in range(indptr[j], indptr[j + 1]):
            row = np.int64(indices[entry])
            if row <= previous or row >= n_rows:
                return j
            previous = row
    return -1


@kernel()
def csc_take(indptr, indices, values, features, ends, out_indices, out_values):
    """Copy the entries of some columns of a sparse matrix, one column after the other; ``ends`` is where each begins."""
    for k in range(len(features)):
        first = indptr[features[k]]
        begin = ends[k]
        for p in range(indptr[features[k] + 1] - first):  # by hand: numba compiles a copy's check of shapes for two seconds
            out_indices[begin + p] = indices[first + p]
            out_values[begin + p] = values[first + p]
