"""Tables as CSV, with all digits of the numbers."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from coterie.files import new_file

Row = Mapping[str, Any]


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
    writer.writeheader()
    writer.writerows({name: _cell(value, nan) for name, value in row.items()} for row in rows)


def _cell(value: Any, nan: str) -> Any:
    if not isinstance(value, float):
        return value
    return nan if math.isnan(value) else repr(float(value))  # NumPy's own repr names its type
