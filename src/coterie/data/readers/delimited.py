"""Text tables: comma-, semicolon- and tab-separated values, with decimal points or commas.

polars would read whole files faster than pyarrow, but it does not stream a wide file with fixed types.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.bounds import require_memory
from coterie.data.encoding import NUMBER
from coterie.data.errors import DataFileError, error_summary, missing_extra
from coterie.data.readers.byte_stream import ByteStream, open_binary, skip
from coterie.data.readers.columns import BOOLEANS, describe_problems
from coterie.data.readers.dialect import DELIMITERS, NAMES, detect_delimiter
from coterie.data.readers.formats import is_number
from coterie.data.readers.reader import MISSING_WORDS, Block, Progress
from coterie.data.readers.tabular import TabularReader, check_decimal, is_real

_NULLS = sorted({form for word in MISSING_WORDS for form in (word, word.upper(), word.capitalize(), "NaN")} | {"#N/A", "?"})
# Bytes per column in addition to its values: its name in Python and in pyarrow, its type, its builder.
_COLUMN_BYTES = 2000
# Bytes and lines of the beginning of a file from which the delimiter is detected.
_HEAD_BYTES, _HEAD_LINES = 1 << 16, 200
# Words that pyarrow reads as booleans.
_TRUE, _FALSE = ("1", "true", "True", "TRUE"), ("0", "false", "False", "FALSE")


class CsvReader(TabularReader):
    """Reader of comma-separated values.

    Parameters
    ----------
    path : Path
        Plain or compressed file.
    label : str, int, False or None
        Column of the labels, by name or position. By default the column named label, y, target or class, if any.
    sample_names : str or int, optional
        Column of the sample names. By default a first column without a name, as pandas writes its index.
    sample_groups : str or int, optional
        Column of the sample groups, such as the patient of each visit. It is not a feature.
    delimiter : {",", ";", "\\t", "|", "auto"}, default="auto"
        Character between cells. ``"auto"``: the first of tab, semicolon, vertical bar and comma that gives all of the first
        hundred records the same number of cells.
    decimal : {".", ","}, optional
        Decimal mark. The other of the two separates thousands. By default, numbers that allow only one reading decide.
    header : bool or "auto", default="auto"
        Whether the first line holds column names. ``"auto"``: true unless all its cells are numbers.
    missing_labels : {"error", "drop"}, default="error"
        Treatment of samples whose label is missing.
    drop : str, int or list of them, optional
        Columns to omit, by name (a string may hold several, separated by commas) or position.
    keep_numeric : bool, default=False
        Whether to omit all columns that are neither numeric nor boolean, instead of encoding them. Requires an additional
        pass over the file.
    categories : str, int or list of them, optional
        Columns to encode as categories whatever their values and their number of levels, such as codes of regions.
    dates : bool or {"auto", "day-first", "month-first"}, default=False
        Whether to read dates as days since 1970-01-01, and the order of day and month if the dates do not prove it.
    covariates : str, int or list of them, optional
        Columns of covariates. They are not features.
    weight : str or int, optional
        Column of sample weights. It is not a feature.
    columns : sequence of str, optional
        Columns to read as features, or encodings of a fitted model. Names that the file does not have are ignored.
    """

    format = "csv"
    delimiter = ","

    def __init__(
        self, path: Path, *, delimiter: str = "auto", decimal: str | None = None, header: bool | str = "auto", **options: Any
    ) -> None:
        super().__init__(path, **options)
        try:
            import pyarrow.csv
        except ImportError as error:
            raise missing_extra("Reading CSV files", "pyarrow", "tabular") from error
        self._csv = pyarrow.csv
        self._decimal = check_decimal(decimal)
        self.delimiter = self._delimiter(delimiter)
        first, n_lines, self._n_header_bytes = self._first_row()
        if header not in (True, False, "auto"):
            raise ValueError(f"header={header!r} must be True, False or 'auto'.")
        if header == "auto":
            header = not all(
                is_number(cell) or (self.delimiter != "," and is_number(cell.replace(",", "."))) for cell in first
            )
        self._n_columns = len(first)
        self._n_header_lines = n_lines if header else 0
        if not header:
            self._n_header_bytes = 0
        self._booleans: set[int] = set()
        self._set_columns(first if header else None, len(first))
        self._plan(self._detect_kinds())
        self._booleans |= {j for j, treatment in self.treatments.items() if treatment.column.kind == BOOLEANS}

    def _delimiter(self, delimiter: str) -> str:
        """Return the stated delimiter, or detect it and note if it is not the usual one of the format."""
        usual = type(self).delimiter
        assert usual is not None
        if delimiter == "auto":
            lines = list(self._first_lines())
            found = detect_delimiter(lines[:_HEAD_LINES], usual)
        else:
            found = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
            if found not in DELIMITERS:
                raise ValueError(f"delimiter={delimiter!r} must be ',', ';', '|', 'tab' or 'auto'.")
        if found != usual:
            self.notes["delimiter"] = NAMES[found]
        return found

    def _first_lines(self) -> Iterator[str]:
        """Yield the complete lines at the beginning of the file, with their ends."""
        stream = ByteStream(self.path)
        try:
            for block in stream.line_blocks(_HEAD_BYTES):
                for number, line in enumerate(block.tobytes().split(b"\n")[:-1]):
                    yield line.decode("utf-8" if number else "utf-8-sig", "surrogateescape") + "\n"
                return
        finally:
            stream.close()

    def _first_row(self) -> tuple[list[str], int, int]:
        """Return the cells of the first row, which may span several lines, and its numbers of lines and bytes."""
        stream = ByteStream(self.path)
        n_bytes = 0

        def lines() -> Iterator[str]:
            nonlocal n_bytes
            for block in stream.line_blocks(1 << 16):
                for line in block.tobytes().split(b"\n")[:-1]:
                    encoding = "utf-8" if n_bytes else "utf-8-sig"
                    n_bytes += len(line) + 1
                    yield line.decode(encoding, "surrogateescape") + "\n"

        try:
            cells = csv.reader(lines(), delimiter=self.delimiter, strict=True)
            row = next(cells)
        except (StopIteration, csv.Error) as error:
            raise DataFileError(f"the first line cannot be read ({error_summary(error)}).", self.path, line=1) from error
        finally:
            stream.close()
        if not row:
            raise DataFileError("the first line is empty.", self.path, line=1)
        require_memory(_COLUMN_BYTES * len(row), self.path, f"a table of {len(row)} columns", line=lambda: 1)
        return row, cells.line_num, n_bytes

    def _batches(self, columns: Sequence[int], types: Mapping[str, Any], n_values: int = 0) -> Iterator[Any]:
        """Yield batches of some columns, with types by position; pyarrow infers other types from the first batch."""
        arrow = self._csv
        with open_binary(self.path) as file:
            skip(file, self._n_header_bytes)
            if not file.peek(1):  # type: ignore[attr-defined]  # all four file types have it
                return
            yield from arrow.open_csv(
                file,
                read_options=arrow.ReadOptions(
                    column_names=[str(j) for j in range(self._n_columns)],
                    block_size=int(min(max(2 * n_values, 1 << 20, 64 * self._n_columns), 1 << 28)),
                    use_threads=False,
                ),
                parse_options=arrow.ParseOptions(delimiter=self.delimiter),
                convert_options=arrow.ConvertOptions(
                    include_columns=[str(j) for j in columns],
                    column_types=types,
                    null_values=_NULLS,
                    strings_can_be_null=True,
                    true_values=_TRUE,
                    false_values=_FALSE,
                ),
            )

    def _raw_batches(self, columns: Sequence[int]) -> Iterator[Any]:
        import pyarrow as pa

        with self._translate_errors():
            yield from self._batches(columns, {str(j): pa.string() for j in columns})

    def _detect_kinds(self) -> bool:
        """Find boolean columns in the first batch. Return True if others may not be numeric, or numbers may be ambiguous."""
        import pyarrow as pa

        used = [*self._features, *self._covariate_columns]
        batches = self._batches(used, {})
        try:
            first = next(batches, None)
        except Exception:  # the error is reported when the file is read
            return False
        finally:
            batches.close()  # type: ignore[attr-defined]  # a generator
        types = [] if first is None else first.schema.types
        self._booleans = {j for j, kind in zip(used, types, strict=False) if pa.types.is_boolean(kind)}
        unclear = self.delimiter == ";" and (self._decimal is None or self._decimal == ",")
        return unclear or self._decimal == "," or any(not (is_real(kind) or pa.types.is_boolean(kind)) for kind in types)

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        import pyarrow as pa

        text = {self._label_column, self._name_column, self._group_column, *self._as_text}
        text |= {j for j, encoding in self._encodings.items() if encoding.kind != NUMBER}
        types = {str(j): pa.string() if j in text else pa.bool_() if j in self._booleans else pa.float64() for j in self._used}
        types |= {str(j): pa.binary() for j in self._others if j not in text}  # any bytes, because no text is needed
        with self._translate_errors():
            yield from self._collect(self._batches(self._used, types, n_values), np.dtype(np.float64), progress)

    def _read_error(self, error: Exception) -> DataFileError:
        """Return an error with all columns that are not numeric, or the message of pyarrow with the column's name."""
        text = error_summary(error)
        ragged = re.search(r"Expected (\d+) columns, got (\d+)", text)
        not_a_number = "conversion error to" in text and "conversion error to string" not in text
        if not_a_number:  # otherwise the survey, which reads text, would fail too
            problems = describe_problems(self.survey(all_columns=False), self._n_header_lines)
            if problems:
                return DataFileError(problems, self.path)
        for j in self._features:
            text = text.replace(f"In CSV column #{j}: ", f"in column {self._name(j)!r}: ")
        row = re.search(r"Row #(\d+): ", text)
        text = text.replace(row.group(), "") if row else text
        advice = (
            " Features must be numeric. Encode the column, omit it (drop=NAME), or set it as the labels (label=NAME)."
            if not_a_number
            else ""
        )
        line = int(row.group(1)) + (self._n_header_lines or 0) if row else None
        if ragged:
            got = f"{ragged[2]} column{'s' * (ragged[2] != '1')}"
            message = f"this line has {got}, but the first line has {ragged[1]}. Correct or remove the line."
            return DataFileError(message, self.path, line=line)
        return DataFileError(f"{text}.{advice}", self.path, line=line)


class TsvReader(CsvReader):
    """Reader of tab-separated values, with the parameters of :class:`CsvReader`."""

    format = "tsv"
    delimiter = "\t"
