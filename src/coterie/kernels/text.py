"""Parser from LIBSVM text to arrays: one pass over the bytes, correctly rounded numbers, errors with their position.

A line is ``label [qid:number] index:value index:value ... [# comment]``. Numbers are read digit by digit into
an integer ``m`` of at most 18 digits and an exponent ``e``. Then

* if ``m < 2^53`` and ``|e| <= 22``, both ``m`` and ``10^|e|`` are floats, so one rounding gives the nearest float
  (Clinger 1990);
* otherwise ``m * 10^e`` is computed by a 128-bit product with a truncated power of five, which decides the rounding in
  all but rare cases (Lemire 2021, "Number parsing at a gigabyte per second");
* numbers with more digits, tiny numbers and the rare cases are *hard*: the kernel records their position, and Python's
  ``float`` reads them.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# Results of a kernel for a chunk (entries of its ``state``).
N_ROWS, N_ENTRIES, N_LINES, ERROR, POSITION, LOWEST, HIGHEST, N_UNDECIDED, N_QUERIES = range(9)
STATE_SIZE = 9

# Errors.
NO_ERROR, NO_LABEL, BAD_LABEL, MANY_LABELS, BAD_INDEX, NO_COLON, BAD_VALUE, NOT_FINITE = range(8)
UNSORTED, REPEATED, TOO_LARGE, BAD_QUERY, NEGATIVE = range(8, 13)

# Status after reading a number.
NUMBER, UNDECIDED, NO_NUMBER, INFINITE = range(4)

_MAX_DIGITS = 18
_TENS = 10.0 ** np.arange(23)
_TWOS = np.ldexp(1.0, np.arange(-1074, 1024))
_FIRST_FIVE, _LAST_FIVE = -325, 308
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ZERO, _ONE, _TWO, _THREE, _FOUR = (np.uint64(k) for k in range(5))


def _power_of_five(exponent: int) -> int:
    """Return the 128 leading bits of ``5^exponent``, truncated for positive exponents and rounded up for negative ones."""
    power = 5 ** abs(exponent)
    if exponent >= 0:
        shift = power.bit_length() - 128
        return power >> shift if shift > 0 else power << -shift
    shift = power.bit_length() + 127
    return (1 << shift) // power + 1


_FIVES = [_power_of_five(e) for e in range(_FIRST_FIVE, _LAST_FIVE + 1)]
_FIVES_HIGH = np.array([five >> 64 for five in _FIVES], dtype=np.uint64)
_FIVES_LOW = np.array([five & 0xFFFFFFFFFFFFFFFF for five in _FIVES], dtype=np.uint64)


@kernel()
def product_128(a, b):
    """Return the upper and lower half of the product of two 64-bit numbers."""
    a_low, a_high = a & _LOW_HALF, a >> _HALF
    b_low, b_high = b & _LOW_HALF, b >> _HALF
    low, cross, other, high = a_low * b_low, a_low * b_high, a_high * b_low, a_high * b_high
    middle = (low >> _HALF) + (cross & _LOW_HALF) + (other & _LOW_HALF)
    return high + (cross >> _HALF) + (other >> _HALF) + (middle >> _HALF), (low & _LOW_HALF) | (middle << _HALF)


@kernel()
def nearest_float(mantissa, exponent):
    """Return the float nearest to ``mantissa * 10^exponent`` (0 < mantissa < 10^18), and whether this is certain."""
    if exponent < _FIRST_FIVE or exponent > _LAST_FIVE:
        return 0.0, False
    zeros = 0
    scaled = np.uint64(mantissa)
    for step in (32, 16, 8, 4, 2, 1):
        if scaled < np.uint64(1) << np.uint64(64 - step):
            scaled <<= np.uint64(step)
            zeros += step
    five = np.uint64(exponent - _FIRST_FIVE)
    high, low = product_128(scaled, _FIVES_HIGH[five])
    if (high & np.uint64(0x1FF)) == np.uint64(0x1FF):  # The bits below the rounding position are not decided yet.
        more, _ = product_128(scaled, _FIVES_LOW[five])
        low += more
        if low < more:
            high += np.uint64(1)
    if low == np.uint64(0xFFFFFFFFFFFFFFFF):
        return 0.0, False
    top = high >> np.uint64(63)
    shift = top + np.uint64(9)
    bits = high >> shift  # 53 bits and one for rounding
    # floor(log2(5^e)) + e + 63 is the position of the product's leading bit.
    power = ((217706 * exponent) >> 16) + 63 + np.int64(top) - zeros
    if low <= np.uint64(1) and -4 <= exponent <= 23 and (bits & np.uint64(3)) == np.uint64(1) and (bits << shift) == high:
        bits -= np.uint64(1)  # Exactly halfway: round to the even neighbour.
    bits = (bits + (bits & np.uint64(1))) >> np.uint64(1)
    scale = power - 52
    if power < -1022 or scale + 1074 >= len(_TWOS) or power > 1022:  # Subnormal, or close to the largest float.
        return 0.0, False
    return np.float64(bits) * _TWOS[np.uint64(scale + 1074)], True


@kernel()
def is_digit(c):
    return 48 <= c <= 57


@kernel()
def is_blank(c):
    """Return True for space, tab, vertical tab, form feed and carriage return."""
    return c == 32 or (9 <= c <= 13 and c != 10)


@kernel()
def read_number(text, position):
    """Read the number at ``position``. Return its value, the position after it, and the status."""
    negative = text[position] == 45
    if negative or text[position] == 43:
        position += _ONE
    begin = position
    mantissa, exponent = np.int64(0), np.int64(0)
    while is_digit(text[position]):
        mantissa = mantissa * 10 + (np.int64(text[position]) - 48)
        position += _ONE
    n_digits = np.int64(position - begin)
    if text[position] == 46:
        position += _ONE
        after = position
        while is_digit(text[position]):
            mantissa = mantissa * 10 + (np.int64(text[position]) - 48)
            position += _ONE
        exponent = -np.int64(position - after)
        n_digits -= exponent
    if n_digits == 0:
        return 0.0, begin, INFINITE if spells_non_finite(text, begin) else NO_NUMBER
    if n_digits > _MAX_DIGITS:  # Leading zeros do not count.
        while text[begin] == 48 or text[begin] == 46:
            n_digits -= np.int64(text[begin] == 48)
            begin += _ONE
    if (text[position] | 32) == 101:
        position += _ONE
        minus = text[position] == 45
        if minus or text[position] == 43:
            position += _ONE
        first, power = position, np.int64(0)
        while is_digit(text[position]):
            power = min(power * 10 + (np.int64(text[position]) - 48), 100_000)
            position += _ONE
        if position == first:
            return 0.0, position, NO_NUMBER
        exponent += -power if minus else power
    if n_digits > _MAX_DIGITS:
        return 0.0, position, UNDECIDED
    if mantissa == 0:
        return (-0.0 if negative else 0.0), position, NUMBER
    value, certain = np.float64(mantissa), True
    if mantissa <= 9007199254740992 and -22 <= exponent <= 0:
        value /= _TENS[np.uint64(-exponent)]
    elif mantissa <= 9007199254740992 and 0 < exponent <= 22:
        value *= _TENS[np.uint64(exponent)]
    else:
        value, certain = nearest_float(mantissa, exponent)
    return (-value if negative else value), position, NUMBER if certain else UNDECIDED


@kernel()
def spells_non_finite(text, position):
    """Return True if the bytes start with ``nan`` or ``inf``, in upper or lower case."""
    if (text[position] | 32) == 110:
        return (text[position + _ONE] | 32) == 97 and (text[position + _TWO] | 32) == 110
    return (text[position] | 32) == 105 and (text[position + _ONE] | 32) == 110 and (text[position + _TWO] | 32) == 102


@kernel()
def line_end(text, position):
    """Return the position of the next line feed."""
    while text[position] != 10:
        position += _ONE
    return position


@kernel()
def after_blanks(text, position):
    """Return the position of the next byte that is not blank."""
    while is_blank(text[position]):
        position += _ONE
    return position


@kernel()
def ends_token(c):
    return c == 32 or 9 <= c <= 13 or c == 35


@kernel()
def read_index(text, position):
    """Return the non-negative integer at ``position`` (at most 10^17) and the position after it."""
    index = np.int64(0)
    while is_digit(text[position]):
        index = min(index * 10 + (np.int64(text[position]) - 48), 100_000_000_000_000_000)
        position += _ONE
    return index, position


@kernel()
def read_query(text, position):
    """Return the position after ``qid:number``, or ``position`` if there is no such token."""
    if text[position] != 113 or text[position + _ONE] != 105 or text[position + _TWO] != 100 or text[position + _THREE] != 58:
        return position
    first = position + _FOUR
    _, after = read_index(text, first)
    return after if after > first and ends_token(text[after]) else position


@kernel()
def parse_lines(text, start, stop, limit, labels, ends, columns, values, hard_entries, hard_positions, state):
    """Parse the lines of ``text[start:stop]``, which must end with a line feed, because no loop checks for the end.

    Positions are unsigned, which avoids the handling of negative indices. Writes the label of each row, the number of entries
    up to its end, and the entries. Hard numbers are recorded as (entry, position), where the label of row ``i`` is entry
    ``-1 - i``. Stops at the first error.
    """
    n_rows, n_entries, n_lines, n_undecided, n_queries = _ZERO, _ZERO, _ZERO, _ZERO, _ZERO
    lowest, highest = np.int64(1) << 62, np.int64(-1)
    error, position, stop = NO_ERROR, np.uint64(start), np.uint64(stop)
    while position < stop:
        position = after_blanks(text, position)
        if text[position] == 35:
            position = line_end(text, position)
        if text[position] == 10:
            position += _ONE
            n_lines += _ONE
            continue
        token = position
        value, position, status = read_number(text, position)
        if status == UNDECIDED:
            hard_entries[n_undecided], hard_positions[n_undecided] = -1 - np.int64(n_rows), token
            n_undecided += _ONE
        if status == INFINITE:
            error, position = NOT_FINITE, token
            break
        if status == NO_NUMBER or not ends_token(text[position]):
            error, position = (MANY_LABELS if text[position] == 44 else NO_LABEL if text[position] == 58 else BAD_LABEL), token
            break
        labels[n_rows] = value
        previous = np.int64(-1)
        first = True
        while True:
            position = after_blanks(text, position)
            token = position
            if not is_digit(text[position]):
                if text[position] == 35:
                    position = line_end(text, position)
                if text[position] == 10:
                    break
                position = read_query(text, token)
                if first and position > token:
                    n_queries += _ONE
                    first = False
                    continue
                error = BAD_QUERY if text[token] == 113 else NEGATIVE if text[token] == 45 else BAD_INDEX
                break
            first = False
            index, position = read_index(text, position)
            if text[position] != 58:
                error = NO_COLON
                break
            position += _ONE
            number = position
            value, position, status = read_number(text, position)
            if status != NUMBER or not ends_token(text[position]):
                if status == UNDECIDED and ends_token(text[position]):
                    hard_entries[n_undecided], hard_positions[n_undecided] = n_entries, number
                    n_undecided += _ONE
                else:
                    error, token = (NOT_FINITE if status == INFINITE else BAD_VALUE), number
                    break
            if index <= previous:
                error = REPEATED if index == previous else UNSORTED
                break
            if index > limit:
                error = TOO_LARGE
                break
            if previous < 0:
                lowest = min(lowest, index)
            previous = index
            columns[n_entries] = index
            values[n_entries] = value
            n_entries += _ONE
        if error != NO_ERROR:
            position = token
            break
        highest = max(highest, previous)
        ends[n_rows] = n_entries
        n_rows += _ONE
    state[N_ROWS], state[N_ENTRIES], state[N_LINES] = n_rows, n_entries, n_lines
    state[ERROR], state[POSITION] = error, position
    state[LOWEST], state[HIGHEST], state[N_UNDECIDED], state[N_QUERIES] = lowest, highest, n_undecided, n_queries
