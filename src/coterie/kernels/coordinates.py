"""Parser of the body of a MatrixMarket file: lines of ``row column value``, ``row column``, or ``value``."""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel
from coterie.kernels.text import (
    INFINITE,
    NUMBER,
    UNDECIDED,
    after_blanks,
    is_blank,
    is_digit,
    line_end,
    read_index,
    read_number,
)

# Results of the kernel for a chunk (entries of its ``state``).
N_ENTRIES, N_LINES, ERROR, POSITION, N_UNDECIDED = range(5)
STATE_SIZE = 5

# Errors.
NO_ERROR, BAD_ROW, BAD_COLUMN, ROW_RANGE, COLUMN_RANGE, BAD_VALUE, NOT_FINITE, TOO_MANY = range(8)

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@kernel()
def parse_entries(text, start, stop, shape, rows, columns, values, hard_entries, hard_positions, state):
    """Parse the lines of ``text[start:stop]``, which must end with a line feed.

    ``rows`` is empty for lines with values only, ``values`` for lines without values. Indices become 0-based and are
    checked against ``shape``. Stops at the first error.
    """
    n_entries, n_lines, n_undecided = _ZERO, _ZERO, _ZERO
    has_indices, has_values = len(rows) > 0, len(values) > 0
    error, position, stop = NO_ERROR, np.uint64(start), np.uint64(stop)
    while position < stop:
        position = after_blanks(text, position)
        if text[position] == 37:  # "%" starts a comment.
            position = line_end(text, position)
        if text[position] == 10:
            position += _ONE
            n_lines += _ONE
            continue
        token = position
        if has_indices:
            row, position = read_index(text, position)
            if position == token or not is_blank(text[position]):
                error = BAD_ROW
                break
            if row < 1 or row > shape[0]:
                error = ROW_RANGE
                break
            position = token = after_blanks(text, position)
            column, position = read_index(text, position)
            if position == token or is_digit(text[position]) or not (is_blank(text[position]) or text[position] == 10):
                error = BAD_COLUMN
                break
            if column < 1 or column > shape[1]:
                error = COLUMN_RANGE
                break
            rows[n_entries] = row - 1
            columns[n_entries] = column - 1
        if has_values:
            position = token = after_blanks(text, position)
            value, position, status = read_number(text, position)
            if status == UNDECIDED:
                hard_entries[n_undecided], hard_positions[n_undecided] = n_entries, token
                n_undecided += _ONE
            elif status != NUMBER:
                error = NOT_FINITE if status == INFINITE else BAD_VALUE
                break
            values[n_entries] = value
        if not (is_blank(text[position]) or text[position] == 10):
            error = BAD_VALUE
            break
        position = after_blanks(text, position)
        if text[position] != 10:
            token = position
            error = TOO_MANY
            break
        n_entries += _ONE
    if error != NO_ERROR:
        position = token
    state[N_ENTRIES], state[N_LINES], state[N_UNDECIDED] = n_entries, n_lines, n_undecided
    state[ERROR], state[POSITION] = error, position
