"""Transposition of entries from samples to features, in memory or in runs, and checks of values and columns."""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel


@kernel()
def count_columns(columns, counts):
    """Add the number of entries of each column to ``counts``."""
    for j in columns:
        counts[j] += 1


@kernel()
def scatter_rows(ends, first_row, columns, values, cursor, rows_out, values_out, start, stop):
    """Write the entries of the columns ``start <= j < stop`` of some rows to their positions.

    ``ends[i]`` is the number of entries up to the end of row ``i``. ``cursor[j]`` is the next position of column ``j`` and is
    advanced. Rows are in order, so the entries of a column are sorted.
    """
    entry = 0
    for i in range(len(ends)):
        while entry < ends[i]:
            j = columns[entry]
            if start <= j < stop:
                position = cursor[j]
                rows_out[position] = first_row + i
                values_out[position] = values[entry]
                cursor[j] = position + 1
            entry += 1


@kernel()
def append_columns(columns, starts, first, rows, values, offset, cursor, rows_out, values_out):
    """Append the entries of a run, sorted by column, to those of the columns so far.

    ``starts[c] - first`` is the position of the first entry of ``columns[c]`` in ``rows`` and ``values``.
    ``cursor[columns[c] - offset]`` is its position in the output.
    """
    for c in range(len(columns)):
        position = cursor[columns[c] - offset]
        for entry in range(starts[c] - first, starts[c + 1] - first):
            rows_out[position] = rows[entry]
            values_out[position] = values[entry]
            position += 1
        cursor[columns[c] - offset] = position


@kernel()
def value_range(values):
    """Return the smallest and largest value, whether all are integers, and whether float32 represents all exactly."""
    lowest, highest, integral, single = np.inf, -np.inf, True, True
    for value in values:
        x = np.float64(value)
        lowest, highest = min(lowest, x), max(highest, x)
        integral = integral and x == np.floor(x) and (x != 0.0 or np.copysign(1.0, x) > 0.0)
        single = single and np.float64(np.float32(x)) == x
    return lowest, highest, integral, single


@kernel()
def first_bad_column(indptr, indices, n_rows, start, stop):
    """Return the first column that is not sorted, or has repeated or invalid rows. -1 if there is none."""
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
    """Copy the entries of some columns of a sparse matrix, column by column. ``ends[k]`` is the start of column k."""
    for k in range(len(features)):
        first = indptr[features[k]]
        begin = ends[k]
        for p in range(indptr[features[k] + 1] - first):  # A slice assignment would add two seconds of compile time.
            out_indices[begin + p] = indices[first + p]
            out_values[begin + p] = values[first + p]
