"""CSV, TSV and Parquet through pyarrow, which streams all three in bounded memory as the same record batches.

polars would read whole files faster, but it does not hand over a wide CSV file piece by piece with fixed types; and pandas
itself reads Parquet with pyarrow, so most users have it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.data.errors import DataFileError, missing_extra
from coterie.data.names import PackedStrings
from coterie.data.readers.byte_stream import ByteStream, open_binary
from coterie.data.readers.labels import MISSING_WORDS, is_missing, missing_labels, parse_labels
from coterie.data.readers.reader import Block, Progress, Reader, whole_numbers

# What the labels' column is called when nobody says.
_LABEL_NAMES = ("label", "y", "target", "class")
_NULLS = sorted({form for word in MISSING_WORDS for form in (word, word.upper(), word.capitalize(), "NaN")} | {"#N/A", "?"})
# Bytes of the first line that are looked at; 100,000 columns with names of 100 letters.
_LONGEST_HEADER = 1 << 27


class TabularReader(Reader):
    """What the readers of tables share: which columns are features, labels and sample names."""

    def __init__(self, path: Path, label: Any, sample_names: Any, missing_labels: str) -> None:
        super().__init__(path)
        self._label = label
        self._sample_names = sample_names
        self._policy = missing_labels

    def _choose_columns(self, names: Sequence[str] | None, n_columns: int) -> None:
        """Find the columns of labels and of sample names; the rest are features."""
        self._label_column = self._label_place(names, n_columns)
        self._name_column = self._name_place(names, n_columns)
        used = {self._label_column, self._name_column}
        self._features = [j for j in range(n_columns) if j not in used]
        if not self._features:
            raise DataFileError("no column is left for features.", self.path, line=1)
        self.shape = (None, len(self._features))
        if names is not None:
            self.feature_names = PackedStrings.pack(names[j] for j in self._features)

    def _label_place(self, names: Sequence[str] | None, n_columns: int) -> int | None:
        if self._label is False:
            return None
        if self._label is not None:
            return self._place("label", self._label, names, n_columns)
        found = [j for j, name in enumerate(names or ()) if name.strip().lower() in _LABEL_NAMES]
        if len(found) > 1:
            assert names is not None
            listed = ", ".join(repr(names[j]) for j in found)
            raise DataFileError(f"the columns {listed} could all be the labels: state label=.", self.path, line=1)
        return found[0] if found else None

    def _name_place(self, names: Sequence[str] | None, n_columns: int) -> int | None:
        if self._sample_names is not None:
            return self._place("sample_names", self._sample_names, names, n_columns)
        # pandas writes its index as a first column without a name, or with this one.
        index = [
            j for j, name in enumerate(names or ()) if name == "__index_level_0__" or (j == 0 and name in ("", "Unnamed: 0"))
        ]
        return index[0] if index else None

    def _place(self, option: str, column: Any, names: Sequence[str] | None, n_columns: int) -> int:
        if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
            if -n_columns <= column < n_columns:
                return int(column) % n_columns
            raise DataFileError(f"{option}={column}: there are {n_columns} columns.", self.path, line=1)
        if names is None:
            raise DataFileError(f"{option}={column!r}: the columns have no names; give a position.", self.path, line=1)
        places = [j for j, name in enumerate(names) if name == column]
        if len(places) != 1:
            problem = "two columns have that name" if places else f"the columns are {_some(names)}"
            raise DataFileError(f"{option}={column!r}: {problem}.", self.path, line=1)
        return places[0]

    def _collect(self, batches: Iterator[Any], dtype: np.dtype) -> Iterator[np.ndarray]:
        """Features of each batch; labels and sample names are put aside."""
        labels: list[Any] = []
        names: list[str] = []
        n_seen = n_dropped = 0
        for batch in batches:
            keep = np.arange(batch.num_rows)
            if self._label_column is not None:
                mine = batch.column(self._label_column).to_pylist()
                absent = np.array([is_missing(one) for one in mine], dtype=bool)
                if absent.any() and self._policy != "drop":
                    self._refuse_labels(n_seen + int(np.argmax(absent)))
                keep = np.flatnonzero(~absent)
                n_dropped += int(absent.sum())
                labels += [mine[i] for i in keep]
            if self._name_column is not None:
                mine = batch.column(self._name_column).to_pylist()
                names += ["" if mine[i] is None else str(mine[i]) for i in keep]
            block = np.empty((batch.num_rows, len(self._features)), dtype=dtype)
            for k, j in enumerate(self._features):
                block[:, k] = self._numbers(batch.column(j), k, n_seen, dtype)
            n_seen += batch.num_rows
            if len(keep):
                yield block if len(keep) == batch.num_rows else block[keep]
        if self._label_column is not None:
            if n_seen and not labels:
                missing_labels(np.ones(n_seen, dtype=bool), "drop", self.path, "the label column")
            self.labels = _label_array(labels)
            if n_dropped:
                self.notes["samples_without_label_dropped"] = n_dropped
        if self._name_column is not None:
            self.sample_names = PackedStrings.pack(names)

    def _refuse_labels(self, sample: int) -> None:
        missing_labels(np.array([False]), self._policy, self.path, "")  # the policy itself may be wrong
        raise DataFileError(
            f"the label of sample {sample} is missing. Drop such samples with missing_labels='drop', or complete them.",
            self.path,
        )

    def _numbers(self, column: Any, feature: int, first_sample: int, dtype: np.dtype) -> np.ndarray:
        if column.null_count and dtype.kind != "f":
            sample = first_sample + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            assert self.feature_names is not None
            raise DataFileError(
                f"feature {self.feature_names[feature]!r} has no value in sample {sample}. Impute it.", self.path
            )
        return column.to_numpy(zero_copy_only=False)

    def _failed(self, error: Exception) -> DataFileError:
        return DataFileError(f"{str(error).splitlines()[0] if str(error) else type(error).__name__}", self.path)


class CsvReader(TabularReader):
    """Reads comma-separated values.

    Parameters
    ----------
    path : Path
        The file, plain or compressed.
    label : str, int, False or None
        Column of the labels, by name or position. By default the one that is called label, y, target or class, if any.
    sample_names : str or int, optional
        Column of the samples' names. By default a first column without a name, as pandas writes its index.
    header : bool or "auto", default="auto"
        Whether the first line has names. ``"auto"``: unless all of it are numbers.
    missing_labels : {"error", "drop"}, default="error"
        What to do with samples whose label is missing.
    """

    format = "csv"
    delimiter = ","

    def __init__(
        self,
        path: Path,
        *,
        label: Any = None,
        sample_names: Any = None,
        header: bool | str = "auto",
        missing_labels: str = "error",
    ) -> None:
        super().__init__(path, label, sample_names, missing_labels)
        try:
            import pyarrow.csv
        except ImportError as error:
            raise missing_extra("Reading CSV files", "pyarrow", "tabular") from error
        self._csv = pyarrow.csv
        first, self._n_header_lines = self._first_row()
        if header not in (True, False, "auto"):
            raise ValueError(f"header={header!r} must be True, False or 'auto'.")
        if header == "auto":
            header = not all(_is_number(cell) for cell in first)
        self._n_columns = len(first)
        self._n_header_lines = self._n_header_lines if header else 0
        self._choose_columns(first if header else None, len(first))

    def _first_row(self) -> tuple[list[str], int]:
        """Cells of the first row, and the lines that it takes."""
        stream = ByteStream(self.path)
        try:
            head, size = stream.read(1 << 16), 1 << 16
            while b"\n" not in head and len(head) == size and size < _LONGEST_HEADER:
                head, size = head + stream.read(size), 2 * size
        finally:
            stream.close()
        try:
            lines = csv.reader(io.StringIO(head.decode("utf-8-sig", "surrogateescape")), delimiter=self.delimiter)
            row = next(lines)
        except (StopIteration, csv.Error) as error:
            raise DataFileError(f"the first line cannot be read ({error}).", self.path, line=1) from error
        if not row:
            raise DataFileError("the first line is empty.", self.path, line=1)
        return row, lines.line_num

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        """Some samples at a time."""
        import pyarrow as pa

        arrow = self._csv
        columns = [str(j) for j in range(self._n_columns)]
        words = {self._label_column, self._name_column}
        types = {str(j): pa.string() if j in words else pa.float64() for j in range(self._n_columns)}
        try:
            with open_binary(self.path) as file:
                batches = arrow.open_csv(
                    file,
                    read_options=arrow.ReadOptions(
                        column_names=columns,
                        skip_rows=self._n_header_lines,
                        block_size=int(min(max(8 * n_values, 1 << 20, 64 * self._n_columns), 1 << 28)),
                        use_threads=False,
                    ),
                    parse_options=arrow.ParseOptions(delimiter=self.delimiter),
                    convert_options=arrow.ConvertOptions(column_types=types, null_values=_NULLS, strings_can_be_null=True),
                )
                yield from self._collect(self._told(batches, progress), np.dtype(np.float64))
        except DataFileError:
            raise
        except OSError as error:
            if error.filename is not None:
                raise
            raise self._failed(error) from error
        except Exception as error:  # of pyarrow's parser, or of the decompressor
            raise self._failed(error) from error

    def _told(self, batches: Any, progress: Progress | None) -> Iterator[Any]:
        done = 0
        for batch in batches:
            done += batch.num_rows
            yield batch
            if progress is not None:
                progress(done, None, "reading samples")

    def _failed(self, error: Exception) -> DataFileError:
        """pyarrow's message with the column's name instead of our number."""
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        for j, name in zip(self._features, self.feature_names or (), strict=False):
            text = text.replace(f"In CSV column #{j}: ", f"in column {name!r}: ")
        row = re.search(r"Row #(\d+): ", text)
        text = text.replace(row.group(), "") if row else text
        advice = (
            " Features must be numbers: encode or drop the column, or name it as label=." if "conversion error" in text else ""
        )
        return DataFileError(f"{text}.{advice}", self.path, line=int(row.group(1)) if row else None)


class TsvReader(CsvReader):
    """Reads tab-separated values; the parameters are those of :class:`CsvReader`."""

    format = "tsv"
    delimiter = "\t"


class ParquetReader(TabularReader):
    """Reads a Parquet file.

    Parameters
    ----------
    path : Path
        The file.
    label, sample_names, missing_labels
        As for :class:`CsvReader`.
    """

    format = "parquet"

    def __init__(self, path: Path, *, label: Any = None, sample_names: Any = None, missing_labels: str = "error") -> None:
        super().__init__(path, label, sample_names, missing_labels)
        try:
            import pyarrow.parquet
        except ImportError as error:
            raise missing_extra("Reading Parquet files", "pyarrow", "tabular") from error
        try:
            self._file = pyarrow.parquet.ParquetFile(path)
            schema = self._file.schema_arrow
        except Exception as error:
            raise self._damaged(error) from error
        names, types = schema.names, schema.types  # each is a new list at every call
        self._choose_columns(names, len(names))
        kinds = []
        for j in self._features:
            kind = types[j]
            if not (_is_real(kind) or str(kind) == "bool"):
                advice = "Features must be numbers: encode or drop the column, or name it as label=."
                raise DataFileError(f"column {names[j]!r} has the type {kind}. {advice}", path)
            kinds.append(np.dtype(np.float64) if str(kind).startswith("decimal") else np.dtype(kind.to_pandas_dtype()))
        dtype = np.result_type(*kinds)
        self.dtype = np.dtype(np.float32) if dtype == np.float16 else dtype

    def _damaged(self, error: Exception) -> DataFileError:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return DataFileError(f"it is damaged or no Parquet file ({reason}).", self.path)

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        """Some samples at a time."""
        assert self.dtype is not None
        size = max(1, n_values // len(self._features))
        total = self._file.metadata.num_rows
        done = 0
        try:
            for block in self._collect(self._file.iter_batches(batch_size=size), self.dtype):
                done += len(block)
                yield block
                if progress is not None:
                    progress(done, total, "reading samples")
        except DataFileError:
            raise
        except OSError as error:
            if error.filename is not None:
                raise
            raise self._damaged(error) from error
        except Exception as error:  # of pyarrow's decoder
            raise self._damaged(error) from error

    def close(self) -> None:
        self._file.close()


def _is_real(kind: Any) -> bool:
    return any(str(kind).startswith(name) for name in ("int", "uint", "float", "double", "halffloat", "decimal"))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:10])
    return f"{shown}, …" if len(names) > 10 else shown


def _label_array(labels: list[Any]) -> np.ndarray:
    """Labels from text or from typed columns."""
    if all(isinstance(label, str) for label in labels):
        return parse_labels([label.strip() for label in labels])
    array = np.array(labels)
    return whole_numbers(array) if array.dtype.kind in "biuf" else np.array([str(label) for label in labels], dtype=object)
