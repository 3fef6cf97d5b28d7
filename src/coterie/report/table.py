"""Tables as CSV, with all digits of the numbers, and no text that a spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from coterie.files import new_file
from coterie.metrics.class_statistics import ClassStatistics

CLASSES = "classes.csv"  # what the features of the groups are like in each class
Row = Mapping[str, Any]
# What a spreadsheet runs, or skips to see whether it can run what follows (alone, as a label "+", it is only a sign);
# apostrophes before it count, so that taking one away gives back every text.
_FORMULA = re.compile("'*[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20].", re.DOTALL)


def write_csv(
    path: str | os.PathLike[str], rows: Sequence[Row], columns: Sequence[str] | None = None, *, nan: str = "nan"
) -> None:
    """Write a table to a file, whole or not at all.

    Parameters
    ----------
    path : path
        The file.
    rows : sequence of mappings
        The values by column; None leaves a cell empty.
    columns : sequence of str, optional
        By default those of the first row.
    nan : str, default="nan"
        What stands for NaN.

    Notes
    -----
    Text that a spreadsheet would take for a formula (it begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return)
    gets an apostrophe before it; text that is a number, and numbers, stay as they are. :func:`unguarded` takes it away.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from coterie.report.table import write_csv
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> write_csv(path, [{"name": "a, b", "score": 0.1}, {"name": None, "score": float("nan")}], nan="")
    >>> print(path.read_text())
    name,score
    "a, b",0.1
    ,
    """
    with new_file(path) as partial, partial.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        write_rows(file, rows, list(rows[0]) if columns is None else columns, nan=nan)


def write_rows(file: TextIO, rows: Iterable[Row], columns: Sequence[str], *, nan: str = "nan") -> None:
    """Write a table to an open file; otherwise as :func:`write_csv`."""
    writer = csv.DictWriter(file, columns)
    writer.writerow({name: guarded(name) for name in columns})
    writer.writerows({name: _cell(value, nan) for name, value in row.items()} for row in rows)


def guarded(text: str) -> str:
    """Text that no spreadsheet takes for a formula.

    Examples
    --------
    >>> from coterie.report.table import guarded
    >>> [guarded(name) for name in ("=cmd()", "-0.5", "gene", "'=x")]
    ["'=cmd()", '-0.5', 'gene', "''=x"]
    """
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def unguarded(text: str) -> str:
    """The text that :func:`guarded` made a cell of.

    Examples
    --------
    >>> from coterie.report.table import unguarded
    >>> [unguarded(cell) for cell in ("'=cmd()", "-0.5", "gene", "''=x")]
    ['=cmd()', '-0.5', 'gene', "'=x"]
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip()  # a tab before it is no part of a number


def _cell(value: Any, nan: str) -> Any:
    if isinstance(value, str):
        return guarded(value)
    if not isinstance(value, float):
        return value
    return nan if math.isnan(value) else repr(float(value))  # NumPy's own repr names its type


def write_classes(path: Path, statistics: ClassStatistics) -> None:
    """Write one row for each feature of a group and each class; cells are empty where a figure has no meaning."""
    write_csv(path, statistics.rows(), statistics.columns, nan="")
