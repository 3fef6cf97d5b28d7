"""The body of a MatrixMarket file to arrays: lines of ``row column value``, ``row column``, or ``value``."""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel
from coterie.kernels.text import HARD, INFINITE, NUMBER, after_blanks, is_blank, is_digit, line_end, read_index, read_number

# What the kernel says of a chunk (entries of its ``state``).
N_ENTRIES, N_LINES, ERROR, PLACE, N_HARD = range(5)
STATE_SIZE = 5

# Errors.
FINE, BAD_ROW, BAD_COLUMN, ROW_RANGE, COLUMN_RANGE, BAD_VALUE, NOT_FINITE, TOO_MANY = range(8)

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@kernel()
def parse_entries(text, start, stop, shape, rows, columns, values, hard_entries, hard_places, state):
    """Parse the lines of ``text[start:stop]``, which must end with a line feed.

    ``rows`` is empty for lines of values alone, ``values`` for lines without them. Indices become 0-based and are
    checked against ``shape``. Stops at the first error.
    """
    n_entries, n_lines, n_hard = _ZERO, _ZERO, _ZERO
    has_indices, has_values = len(rows) > 0, len(values) > 0
    error, place, stop = FINE, np.uint64(start), np.uint64(stop)
    while place < stop:
        place = after_blanks(text, place)
        if text[place] == 37:  # a comment
            place = line_end(text, place)
        if text[place] == 10:
            place += _ONE
            n_lines += _ONE
            continue
        token = place
        if has_indices:
            row, place = read_index(text, place)
            if place == token or not is_blank(text[place]):
                error = BAD_ROW
                break
            if row < 1 or row > shape[0]:
                error = ROW_RANGE
                break
            place = token = after_blanks(text, place)
            column, place = read_index(text, place)
            if place == token or is_digit(text[place]) or not (is_blank(text[place]) or text[place] == 10):
                error = BAD_COLUMN
                break
            if column < 1 or column > shape[1]:
                error = COLUMN_RANGE
                break
            rows[n_entries] = row - 1
            columns[n_entries] = column - 1
        if has_values:
            place = token = after_blanks(text, place)
            value, place, how = read_number(text, place)
            if how == HARD:
                hard_entries[n_hard], hard_places[n_hard] = n_entries, token
                n_hard += _ONE
            elif how != NUMBER:
                error = NOT_FINITE if how == INFINITE else BAD_VALUE
                break
            values[n_entries] = value
        if not (is_blank(text[place]) or text[place] == 10):
            error = BAD_VALUE
            break
        place = after_blanks(text, place)
        if text[place] != 10:
            token = place
            error = TOO_MANY
            break
        n_entries += _ONE
    if error != FINE:
        place = token
    state[N_ENTRIES], state[N_LINES], state[ERROR], state[PLACE], state[N_HARD] = n_entries, n_lines, error, place, n_hard
