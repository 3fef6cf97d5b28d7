"""Spreadsheets (.xlsx), which openpyxl reads as values."""

from __future__ import annotations

import datetime
import itertools
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coterie._warnings import ignored
from coterie.bounds import check_regular, require_memory
from coterie.data.errors import DataFileError, missing_extra
from coterie.data.readers.columns import suggest_names
from coterie.data.readers.reader import MISSING_WORDS
from coterie.data.readers.tabular import check_decimal
from coterie.data.readers.typed_tables import ArrowReader

# Memory per byte of decompressed XML: openpyxl holds shared texts, and the cells of a sheet become Python objects.
_BYTES_PER_XML_BYTE = 3
# Text of cells with errors.
_ERRORS = frozenset(["#N/A", "#VALUE!", "#REF!", "#DIV/0!", "#NUM!", "#NAME?", "#NULL!"])


class XlsxReader(ArrowReader):
    """Reader of a sheet of a spreadsheet, whose first row that is not empty holds the column names.

    Parameters
    ----------
    path : Path
        .xlsx or .xlsm file. Formulas have the values that were saved with them.
    sheet : str, optional
        Name of the sheet. Required if several sheets are not empty.
    decimal : {".", ","}, optional
        Decimal mark of numbers that are stored as text.
    label, sample_names, sample_groups, missing_labels, drop, keep_numeric, categories, dates, covariates, weight, columns
        As for :class:`CsvReader`.
    """

    format = "xlsx"

    def __init__(self, path: Path, *, sheet: str | None = None, decimal: str | None = None, **options: Any) -> None:
        self._sheet, self._decimal_given = sheet, check_decimal(decimal)
        check_regular(path)
        super().__init__(path, **options)

    def _open(self) -> tuple[Any, int | None]:
        try:
            import openpyxl
        except ImportError as error:
            raise missing_extra("Reading .xlsx files", "openpyxl", "tabular") from error
        self._decimal = self._decimal_given
        with zipfile.ZipFile(self.path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        require_memory(_BYTES_PER_XML_BYTE * size, self.path, "the sheets")
        with ignored():  # warnings about styles and extensions
            book = openpyxl.load_workbook(self.path, read_only=True, data_only=True)
            try:
                rows = self._rows(book)
            finally:
                book.close()
        self._table = _table_of(rows, self.path)
        return self._table.schema, self._table.num_rows

    def _rows(self, book: Any) -> list[tuple[Any, ...]]:
        """Return the rows of the sheet that are not empty."""
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        if self._sheet is not None:
            if self._sheet not in sheets:
                raise DataFileError(f"sheet={self._sheet!r}: sheet not found. {suggest_names(self._sheet, sheets)}", self.path)
            return _filled_rows(sheets[self._sheet])
        found = {title: rows for title, sheet in sheets.items() if (rows := _filled_rows(sheet))}
        if not found:
            raise DataFileError("the file contains no data (all sheets are empty).", self.path)
        if len(found) > 1:
            shown = ", ".join(repr(title) for title in found)
            raise DataFileError(
                f"{len(found)} sheets have data: {shown}. State the sheet (sheet={next(iter(found))!r}).", self.path
            )
        (title, rows), *_ = found.items()
        if len(sheets) > 1:
            self.notes["sheet"] = title
        return rows

    def _record_batches(self, size: int, names: list[str] | None) -> Iterator[Any]:
        table = self._table if names is None else self._table.select(names)
        yield from table.to_batches(max_chunksize=size)


def _filled_rows(sheet: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a sheet that are not empty, with None for empty cells and cells with errors."""
    sheet.reset_dimensions()  # those stated in the file may be wrong
    rows = (tuple(_value(cell) for cell in row) for row in sheet.iter_rows(values_only=True))
    return [row for row in rows if any(cell is not None for cell in row)]


def _value(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    return None if text.lower() in MISSING_WORDS or text in _ERRORS else cell


def _table_of(rows: list[tuple[Any, ...]], path: Path) -> Any:
    """Return rows, of which the first one has the names, as a pyarrow table."""
    import pyarrow as pa

    if not rows:
        raise DataFileError("the sheet is empty.", path)
    header, *body = rows
    width = max(map(len, rows))
    names = ["" if cell is None else str(cell) for cell in itertools.chain(header, [None] * (width - len(header)))]
    columns = list(itertools.zip_longest(*body)) if body else [()] * width
    columns += [()] * (width - len(columns))
    kept = [k for k in range(width) if names[k] or any(value is not None for value in columns[k])]
    unnamed = next((k for k in kept if not names[k] and k > 0), None)
    if unnamed is not None:
        raise DataFileError(f"column {unnamed + 1} of the sheet has values but no name in the first row. Name it.", path)
    return pa.table([_array(columns[k]) for k in kept], names=[names[k] for k in kept])


def _array(values: tuple[Any, ...]) -> Any:
    """Return the cells of a column as an array of one type: numbers, booleans, dates, or text."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds <= {datetime.datetime, datetime.date}:
        return pa.array([_moment(value) for value in values], pa.timestamp("us"))
    return pa.array([None if value is None else _cell_text(value) for value in values], pa.string())


def _moment(value: Any) -> datetime.datetime | None:
    if value is None or isinstance(value, datetime.datetime):
        return value
    return datetime.datetime(value.year, value.month, value.day)


def _cell_text(value: Any) -> str:
    """Return a cell of a column with values of several types as text."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)
