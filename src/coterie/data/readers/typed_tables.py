"""Tables with typed columns: Parquet files and data frames in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coterie.bounds import MIN_CHECKED_BYTES, require_memory
from coterie.data.covariates import Covariates
from coterie.data.encoding import COVARIATE, ColumnEncoding, TableEncoding
from coterie.data.errors import DataFileError, missing_extra
from coterie.data.readers.formats import FORMATS
from coterie.data.readers.reader import Block, Progress, is_missing
from coterie.data.readers.tabular import TabularReader, check_decimal, is_real

# Bytes per column in addition to its values: its name in Python and in pyarrow, its type, its builder.
_COLUMN_BYTES = 2000
# Minimum bytes per sample while one column and the labels are in memory.
_ROW_BYTES = 32


class ArrowReader(TabularReader):
    """Base class of the readers of tables with typed columns, which pyarrow reads by name.

    A subclass opens its file and yields record batches.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, **options)
        description = FORMATS[self.format].description if self.format in FORMATS else self.format
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
        used = [*self._features, *self._covariate_columns]
        self._plan(any(not (is_real(types[j]) or str(types[j]) == "bool") for j in used))
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
    label, sample_names, sample_groups, missing_labels, drop, keep_numeric, categories, dates, covariates, weight, columns
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


class FrameReader(ArrowReader):
    """Reader of a data frame of pandas or polars, or a pyarrow table, with the parameters of a Parquet file.

    Examples
    --------
    >>> import pandas as pd
    >>> from coterie.data.readers.typed_tables import FrameReader
    >>> reader = FrameReader(pd.DataFrame({"age": [31, 52], "sex": ["f", "m"]}))
    >>> list(reader.feature_names)
    ['age', 'sex=m']
    """

    format = "data frame"
    place = "the data frame"
    _name_line = None

    def __init__(self, frame: Any, *, decimal: str | None = None, **options: Any) -> None:
        self._frame = frame
        self._decimal_given = check_decimal(decimal)
        super().__init__(Path(self.place), **options)

    def _open(self) -> tuple[Any, int | None]:
        self._decimal = self._decimal_given
        self._table = _arrow_table(self._frame)
        return self._table.schema, self._table.num_rows

    def _record_batches(self, size: int, names: list[str] | None) -> Iterator[Any]:
        table = self._table if names is None else self._table.select(names)
        yield from table.to_batches(max_chunksize=size)


class SampleColumns(NamedTuple):
    """Covariates and sample weights from columns of a frame of samples, and the encoding of the covariates."""

    covariates: Covariates | None
    weight: np.ndarray | None
    encoding: TableEncoding | None


def sample_columns(
    obs: Any, covariates: Any, weight: Any, columns: Sequence[ColumnEncoding] | None, place: Path | str
) -> SampleColumns:
    """Return covariates and weights from columns of ``obs`` of an AnnData object, read like those of a table.

    ``columns`` are the encodings of a fitted model, if there is one. Errors name ``place``.
    """
    if columns is None and covariates is None and weight is None:
        return SampleColumns(None, None, None)
    dummy = "sample" if "sample" not in obs.columns else "sample".ljust(2 + max(map(len, map(str, obs.columns))), "_")
    wanted = [dummy] if columns is None else [ColumnEncoding(dummy), *(c for c in columns if c.role == COVARIATE)]
    frame = obs.assign(**{dummy: np.arange(len(obs))})
    try:
        reader = FrameReader(frame, label=False, covariates=covariates, weight=weight, columns=wanted)
        for _ in reader.blocks(1 << 22):
            pass
    except ValueError as error:
        raise ValueError(f"{place}: {str(error).removeprefix(f'{FrameReader.place}: ')}") from error
    return SampleColumns(reader.covariates, reader.sample_weight, reader.encoding)


def _arrow_table(frame: Any) -> Any:
    """Return a frame as a pyarrow table. Objects of several types, intervals and periods become text."""
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        table = frame
    elif hasattr(frame, "to_arrow"):  # polars
        table = frame.to_arrow()
    else:
        names = [str(name) for name in frame.columns]
        table = pa.table([_arrow_column(frame.iloc[:, j]) for j in range(len(names))], names=names)
    views = {"string_view": pa.string(), "binary_view": pa.binary()}
    fields = [field.with_type(views.get(str(field.type), field.type)) for field in table.schema]
    return table.cast(pa.schema(fields)).combine_chunks()


def _arrow_column(values: Any) -> Any:
    """Return a series of pandas as a pyarrow array."""
    import pyarrow as pa

    try:
        found = pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError):
        found = None
    if found is None or isinstance(found.type, pa.BaseExtensionType):
        found = pa.array([None if is_missing(value) else str(value) for value in values], pa.string())
    return found


def _dtype_of(kind: Any) -> np.dtype:
    if str(kind) == "bool":
        return np.dtype(np.bool_)
    return np.dtype(kind.to_pandas_dtype() if is_real(kind) and not str(kind).startswith("decimal") else np.float64)
