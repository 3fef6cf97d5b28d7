"""CSV, TSV and Parquet files, which pyarrow streams in bounded memory as record batches.

polars would read whole files faster, but it does not stream a wide CSV file with fixed types. pandas itself reads Parquet
with pyarrow, so most users have it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.bounds import MIN_CHECKED_BYTES, require_memory
from coterie.data.errors import DataFileError, error_summary, missing_extra
from coterie.data.names import PackedStrings, require_unique_names
from coterie.data.readers.byte_stream import ByteStream, open_binary, skip
from coterie.data.readers.columns import Codes, Column, column_positions, describe_problems, listed, suggest_names
from coterie.data.readers.formats import FORMATS, is_number
from coterie.data.readers.reader import (
    MISSING_WORDS,
    Block,
    Progress,
    Reader,
    as_integers,
    group_labels,
    is_missing,
    labelled_samples,
    parse_labels,
)

# Default names of the label column.
_LABEL_NAMES = ("label", "y", "target", "class")
_NULLS = sorted({form for word in MISSING_WORDS for form in (word, word.upper(), word.capitalize(), "NaN")} | {"#N/A", "?"})
# Bytes per column in addition to its values: its name in Python and in pyarrow, its type, its builder.
_COLUMN_BYTES = 2000
# Minimum bytes per sample while one column and the labels are in memory.
_ROW_BYTES = 32
# Bytes per text label: a Python string, and its copy while the classes are determined.
_STRING_BYTES = 150
# Delimiters to look for in the name of a single column, with the remedy if another format has this delimiter.
_DELIMITERS = {";": "", "\t": "Set format='tsv'.", "|": "", ",": "Set format='csv'."}
_MAX_NAME_LENGTH = 60
# Maximum number of columns that are not features but kept as codes.
_MAX_CODED_COLUMNS = 20
# Words that pyarrow reads as booleans.
_TRUE, _FALSE = ("1", "true", "True", "TRUE"), ("0", "false", "False", "FALSE")


class TabularReader(Reader):
    """Base class of the readers of tables (formats with ``Format.table``).

    Columns that are neither numeric nor boolean are omitted if ``keep_numeric`` is true. Otherwise one error lists all of
    them. The parameters are described in :class:`CsvReader`.
    """

    delimiter: str | None = None  # None if the format is not text
    _n_columns: int
    _n_header_lines: int | None = None  # None if the format has no lines

    def __init__(
        self,
        path: Path,
        *,
        label: Any = None,
        sample_names: Any = None,
        sample_groups: Any = None,
        missing_labels: str = "error",
        drop: Any = None,
        keep_numeric: bool = False,
        columns: Sequence[str] | None = None,
    ) -> None:
        super().__init__(path)
        self._label, self._sample_names, self._missing_labels = label, sample_names, missing_labels
        self._groups = None if sample_groups is False else sample_groups
        self._drop, self._keep_numeric, self._wanted = drop, keep_numeric, columns
        self._booleans: set[int] = set()
        self._others: list[int] = []  # columns that are not features, kept as codes

    def _set_columns(self, names: Sequence[str] | None, n_columns: int) -> None:
        """Set the columns of labels, sample names and features, given the names of all columns."""
        self._column_names = names
        self._label_column = self._label_position(names, n_columns)
        self._name_column = self._name_position(names, n_columns)
        self._group_column = None
        if self._groups is not None:
            self._group_column = self._find_column("sample_groups", self._groups, names, n_columns)
            if self._group_column == self._label_column:
                raise DataFileError(f"sample_groups={self._groups!r} is the column of the labels.", self.path, line=1)
        try:
            dropped = set(column_positions(self._drop or [], names, n_columns, "drop"))
        except ValueError as error:
            raise DataFileError(str(error), self.path, line=1) from error
        if self._label_column in dropped:
            raise DataFileError(f"drop={self._name(self._label_column)!r} is the column of the labels.", self.path)
        if self._name_column in dropped:
            self._name_column = None
        used = {self._label_column, self._name_column, self._group_column, *dropped}
        wanted = None if self._wanted is None else set(self._wanted)
        self._others = sorted(dropped) if wanted is None else []
        self._features = [
            j for j in range(n_columns) if j not in used and (wanted is None or names is None or names[j] in wanted)
        ]
        self._set_features()

    def _set_features(self) -> None:
        """Set shape and names from the feature columns."""
        if not self._features:
            wanted = self._wanted
            missing = "" if not wanted else f" The file has none of the columns {listed([repr(name) for name in wanted], 5)}."
            raise DataFileError(f"no column is left for features.{missing}", self.path, line=1)
        self.shape = (None, len(self._features))
        self._others = [j for j in self._others if self._can_be_coded(j)][:_MAX_CODED_COLUMNS]
        others = (self._label_column, self._name_column, self._group_column, *self._others)
        self._used = sorted({*self._features, *(j for j in others if j is not None)})
        self._position_in_batch = {column: position for position, column in enumerate(self._used)}
        if self._column_names is not None:
            names = [self._column_names[j] for j in self._features]
            try:
                require_unique_names(names, self._features)
            except ValueError as error:
                raise DataFileError(str(error), self.path) from error
            self.feature_names = PackedStrings.pack(names)

    def _name(self, column: int) -> str:
        return str(column) if self._column_names is None else self._column_names[column]

    def survey(self, *, all_columns: bool = True, values: bool = False) -> list[Column]:
        """Summarise all columns, or the feature columns only, in a pass over the whole file.

        With ``values``, also determine ranges and numbers of distinct values.
        """
        selected = list(range(self._n_columns)) if all_columns else self._features
        columns = [Column(self._name(j)) for j in selected]
        for batch in self._raw_batches(selected):
            for position, column in enumerate(columns):
                column.update(batch.column(position), values=values)
        return columns

    def _raw_batches(self, columns: Sequence[int]) -> Iterator[Any]:
        """Yield batches of some columns with the types of the file; text if it has no types."""
        raise NotImplementedError

    def _check_kinds(self, doubtful: bool) -> None:
        """Reject or omit the columns that are not numeric. This takes a pass over the file, unless all are numeric."""
        if not doubtful and not self._keep_numeric:
            return
        found = self.survey(all_columns=False)
        wrong = {j: column for j, column in zip(self._features, found, strict=True) if not column.usable}
        if wrong and not self._keep_numeric:
            hint = self._other_delimiter()
            problems = f"the only column is not numeric. {hint}" if hint else describe_problems(found, self._n_header_lines)
            raise DataFileError(problems, self.path)
        self._booleans = {j for j, column in zip(self._features, found, strict=True) if column.kind == "booleans"}
        if wrong:
            self._features = [j for j in self._features if j not in wrong]
            self._others += [] if self._wanted is not None else list(wrong)
            self.notes["columns_ignored"] = f"{len(wrong)} ({listed([column.name for column in wrong.values()])})"
            self._set_features()

    def _other_delimiter(self) -> str:
        """Return sentences about the delimiter if the name of the only column contains another one; "" otherwise."""
        if self.delimiter is None or self._n_columns != 1 or not self._column_names:
            return ""
        name = self._column_names[0]
        mark = next((mark for mark in _DELIMITERS if mark in name and mark != self.delimiter), None)
        if mark is None:
            return ""
        shown = name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 1]}…"
        remedy = _DELIMITERS[mark] or f"Convert the file to {'commas' if self.delimiter == ',' else 'tabs'}."
        return f"The file has one column named {shown!r}. Is the delimiter {mark!r}? {remedy}"

    def _label_position(self, names: Sequence[str] | None, n_columns: int) -> int | None:
        label = self._label
        if label is False:
            return None
        if label is not None:
            return self._find_column("label", label, names, n_columns)
        found = [j for j, name in enumerate(names or ()) if name.strip().lower() in _LABEL_NAMES]
        if len(found) > 1:
            assert names is not None
            several = ", ".join(repr(names[j]) for j in found)
            raise DataFileError(f"the columns {several} could all be the labels. Set label=NAME.", self.path, line=1)
        return found[0] if found else None

    def _name_position(self, names: Sequence[str] | None, n_columns: int) -> int | None:
        if self._sample_names is not None:
            return self._find_column("sample_names", self._sample_names, names, n_columns)
        # pandas writes its index as a first column without a name, or with one of these names.
        index = [
            j for j, name in enumerate(names or ()) if name == "__index_level_0__" or (j == 0 and name in ("", "Unnamed: 0"))
        ]
        return index[0] if index else None

    def _find_column(self, option: str, column: Any, names: Sequence[str] | None, n_columns: int) -> int:
        if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
            if -n_columns <= column < n_columns:
                return int(column) % n_columns
            message = f"{option}={column} is out of range. There are {n_columns} columns (0 to {n_columns - 1})."
            raise DataFileError(message, self.path, line=1)
        if names is None:
            raise DataFileError(f"{option}={column!r}: the columns have no names. Pass a position.", self.path, line=1)
        positions = [j for j, name in enumerate(names) if name == column]
        if len(positions) != 1:
            hint = self._other_delimiter() or suggest_names(str(column), names)
            problem = "two columns have this name." if positions else f"column not found. {hint}"
            raise DataFileError(f"{option}={column!r}: {problem}", self.path, line=1)
        return positions[0]

    def _collect(
        self, batches: Iterator[Any], dtype: np.dtype, progress: Progress | None, total: int | None = None
    ) -> Iterator[np.ndarray]:
        """Yield the features of each batch, and collect labels, sample names and sample groups."""
        labels: list[np.ndarray | PackedStrings] = []
        names: list[PackedStrings] = []
        groups: list[PackedStrings] = []
        coded = {j: Codes() for j in self._others}
        n_seen = n_kept = 0
        for batch in batches:
            keep = np.arange(batch.num_rows)
            if self._label_column is not None:
                values, absent = _labels_in(batch.column(self._position_in_batch[self._label_column]))
                if absent.any() and self._missing_labels != "drop":
                    self._raise_missing_label(n_seen + int(np.argmax(absent)))
                keep = np.flatnonzero(~absent)
                labels.append(
                    values[keep] if isinstance(values, np.ndarray) else PackedStrings.pack(values[i] for i in keep.tolist())
                )
            if self._name_column is not None:
                texts = batch.column(self._position_in_batch[self._name_column]).to_pylist()
                names.append(PackedStrings.pack("" if texts[i] is None else texts[i] for i in keep.tolist()))
            if self._group_column is not None:
                texts = batch.column(self._position_in_batch[self._group_column]).to_pylist()
                groups.append(PackedStrings.pack("" if texts[i] is None else str(texts[i]) for i in keep.tolist()))
            for j, codes in coded.items():
                codes.add(batch.column(self._position_in_batch[j]), keep)
            columns = [batch.column(self._position_in_batch[j]) for j in self._features]
            if dtype.kind != "f" and any(column.null_count for column in columns):  # missing values become NaN
                self.dtype = dtype = np.dtype(np.float64)
            block = np.empty((batch.num_rows, len(self._features)), dtype=dtype)
            for k, column in enumerate(columns):
                block[:, k] = self._numbers(column, self._features[k])
            n_seen, n_kept = n_seen + batch.num_rows, n_kept + len(keep)
            self._require_string_memory(labels, "labels")
            self._require_string_memory(names, "sample names")
            self._require_string_memory(groups, "sample groups")
            if len(keep):
                yield block if len(keep) == batch.num_rows else block[keep]
            if progress is not None:
                progress(n_seen, total, "reading samples")
        if self._label_column is not None:
            if n_seen and not n_kept:
                labelled_samples(np.ones(n_seen, dtype=bool), "drop", self.path, "the label column")
            self.labels = _join_labels(labels)
            if self.labels.dtype == object:
                require_memory(_STRING_BYTES * len(self.labels), self.path, f"{len(self.labels)} text labels")
            if n_kept < n_seen:
                self.notes["samples_without_label_dropped"] = n_seen - n_kept
        if self._name_column is not None:
            self.sample_names = PackedStrings.join(names)
        if self._group_column is not None:
            place = f"column {self._name(self._group_column)!r}"
            self.sample_groups = group_labels(PackedStrings.join(groups), self.path, place)
        self.other_columns = {self._name(j): codes.values for j, codes in coded.items() if codes.repeat}

    def _can_be_coded(self, column: int) -> bool:
        """Return True if the values of a column that is not a feature can be read and compared."""
        return True

    def _require_string_memory(self, parts: Sequence[np.ndarray | PackedStrings], what: str) -> None:
        """Require the memory of strings, one per sample, and of their copy when they are joined.

        Numeric labels are included in the memory of the rows.
        """
        strings = [part for part in parts if isinstance(part, PackedStrings)]
        n_bytes = sum(2 * (part.letters.nbytes + part.offsets.nbytes) for part in strings)
        require_memory(n_bytes, self.path, f"{sum(map(len, strings))} {what}")

    def _raise_missing_label(self, sample: int) -> None:
        labelled_samples(np.array([False]), self._missing_labels, self.path, "")  # raises if the policy is invalid
        raise DataFileError(
            f"the label of sample {sample} is missing. Drop samples without a label (missing_labels='drop'), or add the "
            "labels.",
            self.path,
        )

    def _numbers(self, column: Any, position: int) -> np.ndarray:
        if position in self._booleans or str(column.type) == "bool":
            column = _zeros_and_ones(column)
        return column.to_numpy(zero_copy_only=False)


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
    header : bool or "auto", default="auto"
        Whether the first line holds column names. ``"auto"``: true unless all its cells are numbers.
    missing_labels : {"error", "drop"}, default="error"
        Treatment of samples whose label is missing.
    drop : str, int or list of them, optional
        Columns to omit, by name (a string may hold several, separated by commas) or position.
    keep_numeric : bool, default=False
        Whether to omit all columns that are neither numeric nor boolean, instead of raising an error. Requires an additional
        pass over the file.
    columns : sequence of str, optional
        Columns to read as features. Names that the file does not have are ignored.
    """

    format = "csv"
    delimiter = ","

    def __init__(self, path: Path, *, header: bool | str = "auto", **options: Any) -> None:
        super().__init__(path, **options)
        try:
            import pyarrow.csv
        except ImportError as error:
            raise missing_extra("Reading CSV files", "pyarrow", "tabular") from error
        self._csv = pyarrow.csv
        first, n_lines, self._n_header_bytes = self._first_row()
        if header not in (True, False, "auto"):
            raise ValueError(f"header={header!r} must be True, False or 'auto'.")
        if header == "auto":
            header = not all(is_number(cell) for cell in first)
        self._n_columns = len(first)
        self._n_header_lines = n_lines if header else 0
        if not header:
            self._n_header_bytes = 0
        self._set_columns(first if header else None, len(first))
        self._check_kinds(self._detect_kinds())

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
        """Find boolean columns in the first batch. Return True if others are not numeric."""
        import pyarrow as pa

        batches = self._batches(self._features, {})
        try:
            first = next(batches, None)
        except Exception:  # the error is reported when the file is read
            return False
        finally:
            batches.close()  # type: ignore[attr-defined]  # a generator
        types = [] if first is None else first.schema.types
        self._booleans = {j for j, kind in zip(self._features, types, strict=False) if pa.types.is_boolean(kind)}
        return any(not (_is_real(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)) for kind in types)

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        import pyarrow as pa

        text = {self._label_column, self._name_column, self._group_column}
        types = {str(j): pa.string() if j in text else pa.bool_() if j in self._booleans else pa.float64() for j in self._used}
        types |= {str(j): pa.binary() for j in self._others}  # any bytes, because no text is needed
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
        for j, name in zip(self._features, self.feature_names or (), strict=False):
            text = text.replace(f"In CSV column #{j}: ", f"in column {name!r}: ")
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


class ArrowReader(TabularReader):
    """Base class of the readers of tables with typed columns, which pyarrow reads by name.

    A subclass opens its file and yields record batches.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, **options)
        description = FORMATS[self.format].description
        self._damage_message = f"the file is damaged or not a {description} file ({{}})."
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise missing_extra(f"Reading {description} files", "pyarrow", "tabular") from error
        with self._translate_errors():
            schema, self._n_rows = self._open()
        names, types = schema.names, schema.types  # each access creates a new list
        require_memory(_COLUMN_BYTES * len(names), path, f"a table of {len(names)} columns")
        require_memory(_ROW_BYTES * (self._n_rows or 0), path, f"a column of {self._n_rows} samples")
        self._n_columns = len(names)
        self._types = types
        self._set_columns(names, len(names))
        self._check_kinds(any(not (_is_real(types[j]) or str(types[j]) == "bool") for j in self._features))
        dtype = np.result_type(*(_dtype_of(types[j]) for j in self._features))
        self.dtype = np.dtype(np.float32) if dtype == np.float16 else dtype

    def _can_be_coded(self, column: int) -> bool:
        kind = str(self._types[column])
        return kind.startswith(("int", "uint", "string", "large_string", "dictionary<values=string"))

    def _open(self) -> tuple[Any, int | None]:
        """Return the schema of the file, and its number of samples if known without reading it."""
        raise NotImplementedError

    def _record_batches(self, size: int, names: list[str] | None) -> Iterator[Any]:
        """Yield batches of at most ``size`` samples, of some columns (None: all)."""
        raise NotImplementedError

    def _raw_batches(self, columns: Sequence[int]) -> Iterator[Any]:
        names = [self._name(j) for j in columns]
        if len(set(names)) < len(names):  # pyarrow would select both columns for each
            raise DataFileError("two columns have the same name. Rename one of them.", self.path)
        with self._translate_errors():
            for batch in self._record_batches(max(1, (1 << 22) // len(names)), names):
                batch.validate(full=True)  # text kernels of pyarrow do not check their input
                yield batch.select(names)

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        assert self.dtype is not None
        # Columns are selected by name only if necessary, because a name may occur twice.
        names = None if len(self._used) == self._n_columns else [self._name(j) for j in self._used]
        with self._translate_errors():
            batches = self._record_batches(max(1, n_values // len(self._features)), names)
            chosen = (batch if names is None else batch.select(names) for batch in batches)
            yield from self._collect(chosen, self.dtype, progress, self._n_rows)


class ParquetReader(ArrowReader):
    """Reader of Parquet files.

    Parameters
    ----------
    path : Path
        Parquet file.
    label, sample_names, sample_groups, missing_labels, drop, keep_numeric, columns
        As for :class:`CsvReader`.
    """

    format = "parquet"

    def _open(self) -> tuple[Any, int | None]:
        from pyarrow.parquet import ParquetFile

        self._file = ParquetFile(self.path)
        content = self._file.metadata
        groups = [content.row_group(k).total_byte_size for k in range(content.num_row_groups)]
        if max(groups, default=0) > MIN_CHECKED_BYTES:  # read page by page instead of whole row groups
            piece = max(1 << 12, min(1 << 20, MIN_CHECKED_BYTES // content.num_columns))
            self._file.close()
            self._file = ParquetFile(self.path, metadata=content, pre_buffer=False, buffer_size=piece)
        return self._file.schema_arrow, content.num_rows

    def _record_batches(self, size: int, names: list[str] | None) -> Iterator[Any]:
        yield from self._file.iter_batches(batch_size=size, columns=names)

    def close(self) -> None:
        self._file.close()


def _is_real(kind: Any) -> bool:
    return any(str(kind).startswith(name) for name in ("int", "uint", "float", "double", "halffloat", "decimal"))


def _dtype_of(kind: Any) -> np.dtype:
    if str(kind) == "bool":
        return np.dtype(np.bool_)
    return np.dtype(kind.to_pandas_dtype() if _is_real(kind) and not str(kind).startswith("decimal") else np.float64)


def _zeros_and_ones(column: Any) -> Any:
    """Convert booleans, or the words true and false, to 1 and 0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_boolean(column.type):
        column = pc.equal(pc.utf8_lower(pc.utf8_trim_whitespace(column)), pa.scalar("true", column.type))
    return column.cast(pa.uint8()).cast(pa.float64())


def _labels_in(column: Any) -> tuple[np.ndarray | list[str], np.ndarray]:
    """Return the labels of a batch, as numbers if the column is numeric, and a mask of missing labels."""
    if _is_real(column.type) and not str(column.type).startswith("decimal"):
        absent = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        kind = np.dtype(np.float64 if str(column.type) in ("float", "double", "halffloat") else column.type.to_pandas_dtype())
        return column.fill_null(0).to_numpy(zero_copy_only=False).astype(kind, copy=False), absent
    if str(column.type) == "bool":
        return column.fill_null(False).to_numpy(zero_copy_only=False), column.is_null().to_numpy(zero_copy_only=False)
    values = column.to_pylist()
    absent = np.array([is_missing(value) for value in values], dtype=bool)
    return [str(value).strip() for value in values], absent


def _join_labels(parts: list[np.ndarray | PackedStrings]) -> np.ndarray:
    """Join the labels of all batches: numbers if all of them are, integers as int64 if they fit."""
    strings = [part for part in parts if isinstance(part, PackedStrings)]
    if strings or not parts:
        return parse_labels(PackedStrings.join(strings))
    labels = np.concatenate(parts)
    if labels.dtype.kind in "iu" and labels.max(initial=0) <= np.iinfo(np.int64).max:
        return labels.astype(np.int64, copy=False)
    return as_integers(labels)
