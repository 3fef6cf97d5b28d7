"""Table files: CSV with full precision and without spreadsheet formulas, and clumps of SNPs in PLINK's format."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

from coterie.files import new_file
from coterie.groups import FeatureGroup, FeatureGroups
from coterie.groups.columns import Content, Record
from coterie.metrics.class_statistics import ClassStatistics

if TYPE_CHECKING:
    from coterie.report.result import Discovery

CLASSES = "classes.csv"  # statistics of the groups' features per class
Row = Content
# Text that a spreadsheet evaluates: a formula character followed by anything (alone, such as a label "+", it is harmless).
# Leading apostrophes are included, so that removing one apostrophe restores every text.
_FORMULA = re.compile("'*[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20].", re.DOTALL)
CLUMPS = "groups.clumps"
_COLUMNS = ("CHR", "F", "SNP", "BP", "P", "TOTAL", "NSIG", "S05", "S01", "S001", "S0001", "SP2", "CS95")
# Limits of the p-value classes in which members are counted.
_LEVELS = (0.0001, 0.001, 0.01, 0.05)
# Column widths of PLINK's table; the columns of lists have none.
_WIDTHS = (4, 4, 14, 10, 10, 8, 6, 6, 6, 6, 7)


def write_csv(
    path: str | os.PathLike[str], rows: Sequence[Row], columns: Sequence[str] | None = None, *, nan: str = "nan"
) -> None:
    """Write a table to a file atomically.

    Parameters
    ----------
    path : path
        CSV file.
    rows : sequence of mappings
        Values by column. None is an empty cell.
    columns : sequence of str, optional
        Column names; by default those of the first row.
    nan : str, default="nan"
        Text for NaN.

    Notes
    -----
    Text that a spreadsheet would evaluate as a formula (starting with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return)
    is prefixed with an apostrophe. Numbers, and text that is a number, are unchanged. :func:`unguarded` removes the prefix.

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
    """Write a table to an open file. For the parameters see :func:`write_csv`."""
    writer = csv.DictWriter(file, columns)
    writer.writerow({name: guarded(name) for name in columns})
    writer.writerows({name: _cell(value, nan) for name, value in row.items()} for row in rows)


def guarded(text: str) -> str:
    """Return text that no spreadsheet evaluates as a formula.

    Examples
    --------
    >>> from coterie.report.table import guarded
    >>> [guarded(name) for name in ("=cmd()", "-0.5", "gene", "'=x")]
    ["'=cmd()", '-0.5', 'gene', "''=x"]
    """
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def unguarded(text: str) -> str:
    """Return the text from which :func:`guarded` made a cell.

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
    return text == text.strip()  # with a leading tab it is not a plain number


def _cell(value: object, nan: str) -> object:
    if isinstance(value, str):
        return guarded(value)
    if not isinstance(value, float):
        return value
    return nan if math.isnan(value) else repr(float(value))  # the repr of NumPy floats contains the type


def write_classes(path: Path, statistics: ClassStatistics) -> None:
    """Write one row per feature of a group and class. Cells without a meaningful value are empty."""
    write_csv(path, statistics.rows(), statistics.columns, nan="")


def write_clumps(path: Path, result: Discovery, *, kb: float | None = 250.0, r2: float | None = None, p2: float = 1.0) -> None:
    """Write one line per group in the columns of PLINK 1.9, the smallest p-value first, and the likely members.

    Parameters
    ----------
    path : Path
        Output file.
    result : Discovery
        Discovery whose groups are annotated, or whose ``feature_info`` can annotate them.
    kb, r2, p2
        See :meth:`coterie.FeatureGroups.clumps`.

    Notes
    -----
    ``SNP`` is the support feature. ``P`` and the columns that count p-values are NA if no association was computed. The
    p-values come from the samples in which the groups were found and are therefore too small.
    """
    groups = result.model.groups_
    if "chromosome" not in groups.annotations:
        groups = groups.annotated(result.feature_info)
    with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
        print(_line(list(_COLUMNS)), file=file)
        for row in groups.clumps(kb=kb, r2=r2, p2=p2):
            print(_line([_token(row[name]) for name in _COLUMNS]), file=file)


def clumps_of(groups: FeatureGroups, *, kb: float | None, r2: float | None, p2: float) -> list[Record]:
    """Return the rows of PLINK's table, the smallest p-value first. See :meth:`coterie.FeatureGroups.clumps`."""
    for name, value, most in (("kb", kb, np.inf), ("r2", r2, 1.0), ("p2", p2, 1.0)):
        if value is not None and not 0.0 <= value <= most:
            limit = "" if most == np.inf else " and at most 1"
            raise ValueError(f"{name}={value!r} must be a number of at least 0{limit}.")
    rows = [{name: row[name] for name in _COLUMNS} for row in (_clump(group, kb, r2, p2) for group in groups)]
    return sorted(rows, key=lambda row: np.inf if row["P"] is None else row["P"])


def _clump(group: FeatureGroup, kb: float | None, r2: float | None, p2: float) -> Record:
    """Return a row of PLINK's table."""
    known = group.annotations or {}
    if "chromosome" not in known or "position" not in known:
        raise ValueError(
            "The features of the groups have no chromosome and position. Fit the result of coterie.open_features on a .bed "
            "file, or add them with groups.annotated({'chromosome': ..., 'position': ...})."
        )
    chromosome, position = known["chromosome"], known["position"]
    p_values = known.get("p_value", (None,) * len(group))
    p_values = tuple(None if p is None or np.isnan(p) else float(p) for p in p_values)
    squares = [1.0, *(group.correlation**2).tolist()]
    inside = [
        k
        for k in range(1, len(group))
        if chromosome[k] == chromosome[0]
        and (kb is None or abs(position[k] - position[0]) <= 1000.0 * kb)
        and (r2 is None or squares[k] >= r2)
    ]
    known_p = [p for k in inside if (p := p_values[k]) is not None]
    counts = np.bincount(np.searchsorted(_LEVELS, known_p, side="right"), minlength=len(_LEVELS) + 1).tolist()
    counted = counts if len(known_p) == len(inside) and (inside or p_values[0] is not None) else [None] * len(counts)
    labels, members = group.labels, group.members.tolist()
    listed = [f"{labels[k]}(1)" for k in inside if (p := p_values[k]) is None or p < p2 or p2 >= 1.0]
    return {
        "CHR": chromosome[0],
        "F": 1,
        "SNP": labels[0],
        "BP": position[0],
        "P": p_values[0],
        "TOTAL": len(inside),
        **dict(zip(("S0001", "S001", "S01", "S05", "NSIG"), counted, strict=True)),
        "SP2": ",".join(listed) or "NONE",
        "CS95": None if group.probabilities is None else ",".join(labels[members.index(k)] for k in group.likely_members()),
    }


def _line(words: list[str]) -> str:
    numbers, lists = words[: len(_WIDTHS)], words[len(_WIDTHS) :]
    return " ".join(
        [*(word.rjust(width) for word, width in zip(numbers, _WIDTHS, strict=True)), *(f"  {word}" for word in lists)]
    )


def _token(value: object) -> str:
    """Format a value without white space, which would break the columns."""
    if value is None:
        return "NA"
    return f"{value:.4g}" if isinstance(value, float) else "_".join(str(value).split()) or "."
