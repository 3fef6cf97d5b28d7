"""Delimiter of a text table, and the format of its numbers, detected by stated rules.

**Delimiter.** Of tab, semicolon, vertical bar and comma, in this order, the first one that gives the same number of cells, and
at least two, in all of the first records. Delimiters within quotes do not count.

**Decimal mark.** Some numbers prove a decimal comma (``1,5`` or ``1.234,5``), some a decimal point (``1.5`` or ``1,234.5``),
and some fit both (``1.234``). Evidence in one column that consists of numbers is valid for the whole file. Numbers that fit
both are then read accordingly. If a file has evidence for both, or only numbers that fit both, reading it is an error. In
files with another delimiter than the semicolon, ``1.234`` alone is read as 1.234.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.data.encoding import NumberFormat
from coterie.data.errors import DataFileError

if TYPE_CHECKING:
    from coterie.data.readers.columns import Column

# In order of precedence: text with decimal commas has commas in every record.
DELIMITERS = ("\t", ";", "|", ",")
NAMES = {"\t": "tab", ";": "semicolon", "|": "vertical bar", ",": "comma"}
DECIMALS = (".", ",")
# Number of records from which the delimiter is detected.
_N_RECORDS = 100
# Forms of numbers in text.
WHOLE, COMMA, POINT, COMMA_OR_THOUSANDS, POINT_OR_THOUSANDS = "whole", "comma", "point", "comma?", "point?"
_SIGN, _END, _EXPONENT = r"(?i)^\s*[+-]?", r"\s*$", r"(e[+-]?\d+)?"
_FORMS = {
    WHOLE: rf"{_SIGN}(\d+{_EXPONENT}|inf|infinity|nan){_END}",
    COMMA_OR_THOUSANDS: rf"{_SIGN}[1-9]\d{{0,2}},\d{{3}}{_END}",
    POINT_OR_THOUSANDS: rf"{_SIGN}[1-9]\d{{0,2}}\.\d{{3}}{_END}",
    COMMA: rf"{_SIGN}(\d+,\d*|,\d+|[1-9]\d{{0,2}}(\.\d{{3}})+,\d*|[1-9]\d{{0,2}}(\.\d{{3}}){{2,}}){_EXPONENT}{_END}",
    POINT: rf"{_SIGN}(\d+\.\d*|\.\d+|[1-9]\d{{0,2}}(,\d{{3}})+\.\d*|[1-9]\d{{0,2}}(,\d{{3}}){{2,}}){_EXPONENT}{_END}",
}
# Forms that each decimal mark allows.
_UNCLEAR = (COMMA_OR_THOUSANDS, POINT_OR_THOUSANDS)
_READABLE = {",": (WHOLE, COMMA, *_UNCLEAR), ".": (WHOLE, POINT, *_UNCLEAR)}


def detect_delimiter(lines: Sequence[str], usual: str) -> str:
    """Return the delimiter of the first lines of a text.

    Parameters
    ----------
    lines : sequence of str
        First lines, with their line ends. The last one is complete.
    usual : str
        Delimiter of the format, for text with a single column or with records of different lengths.

    Examples
    --------
    >>> from coterie.data.readers.dialect import detect_delimiter
    >>> detect_delimiter(["age;weight\\n", "30;71,5\\n"], ","), detect_delimiter(["one column\\n"], ",")
    (';', ',')
    """
    first: dict[str, int] = {}
    for delimiter in DELIMITERS:
        sizes = []
        try:
            for cells in csv.reader(lines, delimiter=delimiter, strict=True):
                if cells:
                    sizes.append(len(cells))
                if len(sizes) == _N_RECORDS:
                    break
        except csv.Error:
            pass  # quotes of another delimiter, or a record that the lines do not complete
        if sizes:
            first[delimiter] = sizes[0]
        if sizes and sizes[0] > 1 and len(set(sizes)) == 1:
            return delimiter
    if first.get(usual, 0) > 1:
        return usual
    return max(first, key=lambda one: first[one], default=usual) if max(first.values(), default=0) > 1 else usual


def forms_of(texts: Any) -> dict[str, np.ndarray]:
    """Return for each form of numbers the mask of the texts (a pyarrow array) that have it. No text has two forms."""
    import pyarrow.compute as pc

    found = {}
    taken = np.zeros(len(texts), dtype=bool)
    for form, pattern in _FORMS.items():
        matches = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
        mask = np.asarray(matches.to_numpy(zero_copy_only=False), dtype=bool)
        found[form] = mask & ~taken
        taken |= mask
    return found


def detect_numbers(columns: Iterable[Column], delimiter: str | None, path: Path, n_header_lines: int | None) -> NumberFormat:
    """Return the format of the numbers in a table, from the forms in its columns of numbers.

    Raises ``DataFileError`` with examples if the columns contradict each other or prove nothing.
    """
    examples: dict[str, tuple[Column, int, str]] = {}
    for column in columns:
        if column.is_number_like:
            for form, (_, sample, text) in column.forms.items():
                examples.setdefault(form, (column, sample, text))

    def place(form: str) -> str:
        column, sample, text = examples[form]
        where = f"sample {sample}" if n_header_lines is None else f"line {sample + n_header_lines + 1}"
        return f"{text.strip()!r} in {where} of column {column.name!r}"

    if COMMA in examples and POINT in examples:
        raise DataFileError(
            f"decimal commas and decimal points occur in one table: {place(COMMA)}, but {place(POINT)}. State the decimal "
            "mark (decimal=',' or decimal='.'), or omit one of the columns (drop=NAME).",
            path,
        )
    if COMMA in examples:
        return NumberFormat(",")
    if POINT in examples:
        return NumberFormat(".")
    unclear = [form for form in _UNCLEAR if form in examples]
    if unclear == [POINT_OR_THOUSANDS] and delimiter != ";":
        return NumberFormat(".")
    if unclear == [COMMA_OR_THOUSANDS] and delimiter == ",":
        return NumberFormat(".")
    if unclear:
        first = examples[unclear[0]][2].strip()
        shown = [first.replace("." if mark == "," else ",", "").replace(",", ".") for mark in DECIMALS]
        raise DataFileError(
            f"the decimal mark is ambiguous: {place(unclear[0])} can be {shown[0]} or {shown[1]}, and no number of the file "
            "decides. State the decimal mark (decimal='.' or decimal=','). The other one separates thousands.",
            path,
        )
    return NumberFormat(".")


def thousands_form(numbers: NumberFormat) -> str:
    """Return the form of numbers with a separator of thousands, in a format."""
    return POINT_OR_THOUSANDS if numbers.decimal == "," else COMMA_OR_THOUSANDS


def readable_forms(numbers: NumberFormat) -> tuple[str, ...]:
    """Return the forms that are numbers in a format."""
    return _READABLE[numbers.decimal]
