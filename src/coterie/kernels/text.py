"""LIBSVM text to arrays: one pass over the bytes, exact numbers, errors with their place.

A line is ``label [qid:number] index:value index:value ... [# comment]``. Numbers are read digit by digit into
an integer ``m`` of at most 18 digits and an exponent ``e``. Then

* ``m < 2^53`` and ``|e| <= 22``: both ``m`` and ``10^|e|`` are floats, so one rounding gives the nearest one
  (Clinger 1990);
* otherwise ``m * 10^e`` comes from a 128-bit product with a truncated power of five, which decides the rounding in
  all but rare cases (Lemire 2021, "Number parsing at a gigabyte per second");
* numbers of more digits, tiny ones and the rare cases are *hard*: the kernel notes their place, and Python's ``float``
  reads them.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# What a kernel says of a chunk (entries of its ``state``).
N_ROWS, N_ENTRIES, N_LINES, ERROR, PLACE, LOWEST, HIGHEST, N_HARD, N_QUERIES = range(9)
STATE_SIZE = 9

# Errors.
FINE, NO_LABEL, BAD_LABEL, MANY_LABELS, BAD_INDEX, NO_COLON, BAD_VALUE, NOT_FINITE = range(8)
UNSORTED, REPEATED, TOO_LARGE, BAD_QUERY, NEGATIVE = range(8, 13)

# How reading a number can end.
NUMBER, HARD, NO_NUMBER, INFINITE = range(4)

_MAX_DIGITS = 18
_TENS = 10.0 ** np.arange(23)
_TWOS = np.ldexp(1.0, np.arange(-1074, 1024))
_FIRST_FIVE, _LAST_FIVE = -325, 308
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ZERO, _ONE, _TWO, _THREE, _FOUR = (np.uint64(k) for k in range(5))


def _power_of_five(exponent: int) -> int:
    """The 128 leading bits of ``5^exponent``: cut off for positive exponents, rounded up for negative ones."""
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
    """Upper and lower half of the product of two 64-bit numbers."""
    a_low, a_high = a & _LOW_HALF, a >> _HALF
    b_low, b_high = b & _LOW_HALF, b >> _HALF
    low, cross, other, high = a_low * b_low, a_low * b_high, a_high * b_low, a_high * b_high
    middle = (low >> _HALF) + (cross & _LOW_HALF) + (other & _LOW_HALF)
    return high + (cross >> _HALF) + (other >> _HALF) + (middle >> _HALF), (low & _LOW_HALF) | (middle << _HALF)


@kernel()
def nearest_float(mantissa, exponent):
    """``mantissa * 10^exponent`` (0 < mantissa < 10^18) as the nearest float, and whether that is certain."""
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
    if (high & np.uint64(0x1FF)) == np.uint64(0x1FF):  # the bits below the rounding place are not decided yet
        more, _ = product_128(scaled, _FIVES_LOW[five])
        low += more
        if low < more:
            high += np.uint64(1)
    if low == np.uint64(0xFFFFFFFFFFFFFFFF):
        return 0.0, False
    top = high >> np.uint64(63)
    shift = top + np.uint64(9)
    bits = high >> shift  # 53 bits and one for rounding
    # floor(log2(5^e)) + e + 63 is the place of the product's leading bit.
    power = ((217706 * exponent) >> 16) + 63 + np.int64(top) - zeros
    if low <= np.uint64(1) and -4 <= exponent <= 23 and (bits & np.uint64(3)) == np.uint64(1) and (bits << shift) == high:
        bits -= np.uint64(1)  # exactly half way: to the even neighbour
    bits = (bits + (bits & np.uint64(1))) >> np.uint64(1)
    scale = power - 52
    if power < -1022 or scale + 1074 >= len(_TWOS) or power > 1022:  # subnormal or close to the largest float
        return 0.0, False
    return np.float64(bits) * _TWOS[np.uint64(scale + 1074)], True


@kernel()
def is_digit(c):
    return 48 <= c <= 57


@kernel()
def is_blank(c):
    """Space, tab, vertical tab, form feed, carriage return."""
    return c == 32 or (9 <= c <= 13 and c != 10)


@kernel()
def read_number(text, place):
    """The number that begins at ``place``: value, place after it, and how it ended."""
    negative = text[place] == 45
    if negative or text[place] == 43:
        place += _ONE
    begin = place
    mantissa, exponent = np.int64(0), np.int64(0)
    while is_digit(text[place]):
        mantissa = mantissa * 10 + (np.int64(text[place]) - 48)
        place += _ONE
    n_digits = np.int64(place - begin)
    if text[place] == 46:
        place += _ONE
        after = place
        while is_digit(text[place]):
            mantissa = mantissa * 10 + (np.int64(text[place]) - 48)
            place += _ONE
        exponent = -np.int64(place - after)
        n_digits -= exponent
    if n_digits == 0:
        return 0.0, begin, INFINITE if names_infinity(text, begin) else NO_NUMBER
    if n_digits > _MAX_DIGITS:  # zeros in front do not count
        while text[begin] == 48 or text[begin] == 46:
            n_digits -= np.int64(text[begin] == 48)
            begin += _ONE
    if (text[place] | 32) == 101:
        place += _ONE
        minus = text[place] == 45
        if minus or text[place] == 43:
            place += _ONE
        first, power = place, np.int64(0)
        while is_digit(text[place]):
            power = min(power * 10 + (np.int64(text[place]) - 48), 100_000)
            place += _ONE
        if place == first:
            return 0.0, place, NO_NUMBER
        exponent += -power if minus else power
    if n_digits > _MAX_DIGITS:
        return 0.0, place, HARD
    if mantissa == 0:
        return (-0.0 if negative else 0.0), place, NUMBER
    value, certain = np.float64(mantissa), True
    if mantissa <= 9007199254740992 and -22 <= exponent <= 0:
        value /= _TENS[np.uint64(-exponent)]
    elif mantissa <= 9007199254740992 and 0 < exponent <= 22:
        value *= _TENS[np.uint64(exponent)]
    else:
        value, certain = nearest_float(mantissa, exponent)
    return (-value if negative else value), place, NUMBER if certain else HARD


@kernel()
def names_infinity(text, place):
    """Whether the bytes begin with ``nan`` or ``inf``, in any case."""
    if (text[place] | 32) == 110:
        return (text[place + _ONE] | 32) == 97 and (text[place + _TWO] | 32) == 110
    return (text[place] | 32) == 105 and (text[place + _ONE] | 32) == 110 and (text[place + _TWO] | 32) == 102


@kernel()
def line_end(text, place):
    """The next line feed."""
    while text[place] != 10:
        place += _ONE
    return place


@kernel()
def after_blanks(text, place):
    """The next byte that is not blank."""
    while is_blank(text[place]):
        place += _ONE
    return place


@kernel()
def ends_token(c):
    return c == 32 or 9 <= c <= 13 or c == 35


@kernel()
def read_index(text, place):
    """The whole number at ``place`` (at most 10^17) and the place after it."""
    index = np.int64(0)
    while is_digit(text[place]):
        index = min(index * 10 + (np.int64(text[place]) - 48), 100_000_000_000_000_000)
        place += _ONE
    return index, place


@kernel()
def read_query(text, place):
    """The place after ``qid:number``, or ``place`` if this is something else."""
    if text[place] != 113 or text[place + _ONE] != 105 or text[place + _TWO] != 100 or text[place + _THREE] != 58:
        return place
    first = place + _FOUR
    _, after = read_index(text, first)
    return after if after > first and ends_token(text[after]) else place


@kernel()
def parse_lines(text, start, stop, limit, labels, ends, columns, values, hard_entries, hard_places, state):
    """Parse the lines of ``text[start:stop]``, which must end with a line feed: no loop looks for the end of the text.

    Places are unsigned, so that the compiler need not think of negative ones. Writes the label of each row, the
    number of entries up to its end, and the entries. Hard numbers are noted as (entry, place); the label of
    row ``i`` counts as entry ``-1 - i``. Stops at the first error.
    """
    n_rows, n_entries, n_lines, n_hard, n_queries = _ZERO, _ZERO, _ZERO, _ZERO, _ZERO
    lowest, highest = np.int64(1) << 62, np.int64(-1)
    error, place, stop = FINE, np.uint64(start), np.uint64(stop)
    while place < stop:
        place = after_blanks(text, place)
        if text[place] == 35:
            place = line_end(text, place)
        if text[place] == 10:
            place += _ONE
            n_lines += _ONE
            continue
        token = place
        value, place, how = read_number(text, place)
        if how == HARD:
            hard_entries[n_hard], hard_places[n_hard] = -1 - np.int64(n_rows), token
            n_hard += _ONE
        if how == INFINITE:
            error, place = NOT_FINITE, token
            break
        if how == NO_NUMBER or not ends_token(text[place]):
            error, place = (MANY_LABELS if text[place] == 44 else NO_LABEL if text[place] == 58 else BAD_LABEL), token
            break
        labels[n_rows] = value
        previous = np.int64(-1)
        first = True
        while True:
            place = after_blanks(text, place)
            token = place
            if not is_digit(text[place]):
                if text[place] == 35:
                    place = line_end(text, place)
                if text[place] == 10:
                    break
                place = read_query(text, token)
                if first and place > token:
                    n_queries += _ONE
                    first = False
                    continue
                error = BAD_QUERY if text[token] == 113 else NEGATIVE if text[token] == 45 else BAD_INDEX
                break
            first = False
            index, place = read_index(text, place)
            if text[place] != 58:
                error = NO_COLON
                break
            place += _ONE
            number = place
            value, place, how = read_number(text, place)
            if how != NUMBER or not ends_token(text[place]):
                if how == HARD and ends_token(text[place]):
                    hard_entries[n_hard], hard_places[n_hard] = n_entries, number
                    n_hard += _ONE
                else:
                    error, token = (NOT_FINITE if how == INFINITE else BAD_VALUE), number
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
        if error != FINE:
            place = token
            break
        highest = max(highest, previous)
        ends[n_rows] = n_entries
        n_rows += _ONE
    state[N_ROWS], state[N_ENTRIES], state[N_LINES], state[ERROR], state[PLACE] = n_rows, n_entries, n_lines, error, place
    state[LOWEST], state[HIGHEST], state[N_HARD], state[N_QUERIES] = lowest, highest, n_hard, n_queries
