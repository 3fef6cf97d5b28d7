"""Encoding of table columns as numbers: 1 and 0 for two values, one feature per level of a category, days for dates.

An encoding is decided once, from the training data (:mod:`coterie.data.readers.planning`). It is saved with the model, so that
new tables are read in the same way. The annotation ``column`` names the column that a feature encodes. Features of the same
column stay together in groups; see :class:`coterie.correlation.UnitCorrelation`.
"""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

NUMBER, INDICATOR, LEVELS, DATE = "number", "indicator", "levels", "date"
KINDS = (NUMBER, INDICATOR, LEVELS, DATE)
FEATURE, COVARIATE, SAMPLE_NAMES = "feature", "covariate", "sample names"
ROLES = (FEATURE, COVARIATE, SAMPLE_NAMES)
# Level of the samples without a value, in columns of categories that have such samples.
MISSING_LEVEL = "(missing)"
# Annotations of the features of a table with categories.
COLUMN, LEVEL = "column", "level"
# Order of day and month in dates that do not begin with the year.
DATE_ORDERS = ("day-first", "month-first")
_EPOCH = datetime.datetime(1970, 1, 1)
_DAY_SECONDS = 86400.0
_WORDS = {True: ("true",), False: ("false",)}


class NumberFormat(NamedTuple):
    """How text represents numbers. The other of point and comma separates thousands.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from coterie.data.encoding import NumberFormat
    >>> NumberFormat(",").numbers(pa.array(["1.234,5", " 7", None])).tolist()
    [1234.5, 7.0, nan]
    """

    decimal: str = "."

    def plain(self, texts: Any) -> Any:
        """Return text (a pyarrow array) with decimal points, without thousands separators and outer spaces."""
        import pyarrow.compute as pc

        texts = pc.utf8_trim_whitespace(texts)
        if self.decimal == ",":
            return pc.replace_substring(pc.replace_substring(texts, ".", ""), ",", ".")
        return pc.replace_substring(texts, ",", "")

    def numbers(self, column: Any) -> np.ndarray:
        """Return numbers, booleans, or text that represents them, as numbers; NaN for missing values."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if is_text(column.type):
            lower = pc.utf8_lower(pc.utf8_trim_whitespace(column))
            truth = {value: pc.is_in(lower, pa.array(words, column.type)) for value, words in _WORDS.items()}
            plain = pc.if_else(truth[True], "1", pc.if_else(truth[False], "0", self.plain(column)))
            column = pc.cast(plain, pa.float64())
        elif pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8()).cast(pa.float64())
        result: np.ndarray = column.to_numpy(zero_copy_only=False)
        return result


# Numbers with decimal points, as in files with types.
PLAIN_NUMBERS = NumberFormat()


@dataclass(frozen=True)
class ColumnEncoding:
    """Encoding of one column of a table.

    Attributes
    ----------
    column : str
        Name of the column.
    kind : {"number", "indicator", "levels", "date"}
        ``"number"``: the values. ``"indicator"``: 1 for the second of two levels, 0 for the first. ``"levels"``: one feature
        per level, 1 for samples with this level. ``"date"``: days since 1970-01-01.
    levels : tuple of str
        Levels of an indicator or of categories.
    order : {"", "day-first", "month-first"}
        Order of day and month in dates that do not begin with the year.
    role : {"feature", "covariate", "sample names"}
        Use of the column. Categories of a covariate have one column less, because the first level is the reference.
    """

    column: str
    kind: str = NUMBER
    levels: tuple[str, ...] = ()
    order: str = ""
    role: str = FEATURE

    @property
    def encoded_levels(self) -> tuple[str, ...]:
        """Level of each feature; empty text for a number or a date."""
        if self.kind == INDICATOR:
            return self.levels[1:]
        if self.kind == LEVELS:
            return self.levels if self.role == FEATURE else self.levels[1:]
        return ("",)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, such as ``city=Ulm``."""
        if self.role == COVARIATE and self.kind in (LEVELS, INDICATOR):
            return tuple(f"{self.column}={level} (not {self.levels[0]})" for level in self.encoded_levels)
        return tuple(f"{self.column}={level}" if level else self.column for level in self.encoded_levels)

    def encode(self, values: Any, numbers: NumberFormat, unknown: dict[str, dict[str, int]]) -> np.ndarray:
        """Return the features of a batch, of shape (n_samples, n_features).

        Parameters
        ----------
        values : pyarrow array
            Values of the column.
        numbers : NumberFormat
            Format of numbers in text.
        unknown : dict
            Counts of values that are no level of the column, by column and value, to which those of this batch are added.
        """
        if self.kind == NUMBER:
            return numbers.numbers(values)[:, None]
        if self.kind == DATE:
            return days(values, self.order)[:, None]
        texts = as_texts(values).to_pylist()
        own = {level: k for k, level in enumerate(self.levels)}
        missing = own.get(MISSING_LEVEL, -1)
        codes = np.array([missing if text is None else own.get(text, -2) for text in texts], dtype=np.int64)
        for text, code in zip(texts, codes.tolist(), strict=True):
            if code == -2 or (code == -1 and self.kind == LEVELS):
                counts = unknown.setdefault(self.column, {})
                shown = MISSING_LEVEL if text is None else text
                counts[shown] = counts.get(shown, 0) + 1
        if self.kind == INDICATOR:  # a gap is a missing value, as in a column of numbers
            return np.where(codes == -1, np.nan, codes == 1)[:, None]
        first = len(self.levels) - len(self.encoded_levels)
        return np.asarray(codes[:, None] == np.arange(first, len(self.levels)), dtype=np.float64)


@dataclass(frozen=True)
class TableEncoding:
    """Encoding of the columns of a table, as saved with a model.

    Attributes
    ----------
    columns : tuple of ColumnEncoding
        Encodings of the covariates, and of the features that are not numbers, and the column of the sample names, if it was
        recognised by its values or stated. All other features are numbers.

    Examples
    --------
    >>> from coterie.data.encoding import ColumnEncoding, TableEncoding
    >>> encoding = TableEncoding((ColumnEncoding("city", "levels", ("Bonn", "Ulm", "Wien")),))
    >>> [column.column for column in encoding.reading(["age", "city=Ulm"])]
    ['city', 'age']
    """

    columns: tuple[ColumnEncoding, ...]

    def to_json(self) -> list[dict[str, Any]]:
        """Return the content as plain values."""
        return [{**asdict(column), "levels": list(column.levels)} for column in self.columns]

    @classmethod
    def from_json(cls, content: Any) -> TableEncoding | None:
        """Return the encoding of plain values, as made by :meth:`to_json`; None if they are invalid."""
        try:
            found = cls(tuple(ColumnEncoding(**{**entry, "levels": tuple(entry["levels"])}) for entry in content))
        except (TypeError, KeyError, ValueError):
            return None
        return found if found.fits() else None

    def fits(self) -> bool:
        """Return True if the content, which may come from a file, is valid."""
        return isinstance(self.columns, tuple) and all(isinstance(c, ColumnEncoding) and _is_valid(c) for c in self.columns)

    def without_covariates(self) -> TableEncoding:
        """Return the encodings without those of the covariates."""
        return TableEncoding(tuple(column for column in self.columns if column.role != COVARIATE))

    @classmethod
    def joined(cls, encodings: Mapping[str, TableEncoding | None]) -> TableEncoding | None:
        """Return the encoding of several matrices, whose columns are named ``matrix:column``; None if none has one."""
        columns = [
            replace(column, column=f"{block}:{column.column}")
            for block, encoding in encodings.items()
            for column in (() if encoding is None else encoding.columns)
        ]
        return cls(tuple(columns)) if columns else None

    def of_block(self, block: str) -> TableEncoding | None:
        """Return the encoding of one of several matrices, with its own names; None if it has none.

        Examples
        --------
        >>> from coterie.data.encoding import ColumnEncoding, TableEncoding
        >>> encoding = TableEncoding((ColumnEncoding("city", "levels", ("Bonn", "Ulm")),))
        >>> joined = TableEncoding.joined({"clinical": encoding, "rna": None})
        >>> joined.columns[0].names
        ('clinical:city=Bonn', 'clinical:city=Ulm')
        >>> joined.of_block("clinical") == encoding, joined.of_block("rna")
        (True, None)
        """
        own = [(column, strip_block(column.column, block)) for column in self.columns]
        columns = tuple(replace(column, column=name) for column, name in own if name is not None)
        return TableEncoding(columns) if columns else None

    def reading(self, feature_names: Iterable[str]) -> list[ColumnEncoding]:
        """Return the encodings of the columns that hold some features, all covariates and the sample names."""
        wanted = dict.fromkeys(feature_names)
        found = [c for c in self.columns if c.role != FEATURE or not wanted.keys().isdisjoint(c.names)]
        encoded = {name for column in found if column.role == FEATURE for name in column.names}
        return [*found, *(ColumnEncoding(name) for name in wanted if name not in encoded)]


def strip_block(name: str, block: str) -> str | None:
    """Return a name such as ``rna:TP53`` without the name of its block; None if it is that of another block."""
    return name.removeprefix(f"{block}:") if name.startswith(f"{block}:") else None


def annotations_of(columns: Iterable[ColumnEncoding]) -> dict[str, list[str]]:
    """Return column and level of each feature; nothing if no column has levels."""
    features = [column for column in columns if column.role == FEATURE]
    if all(column.kind in (NUMBER, DATE) for column in features):
        return {}
    parts = [(column.column, level) for column in features for level in column.encoded_levels]
    return {COLUMN: [column for column, _ in parts], LEVEL: [level for _, level in parts]}


def is_text(kind: Any) -> bool:
    """Return True for a pyarrow type of text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view")


def as_texts(values: Any) -> Any:
    """Return values as text without outer spaces: categories, numbers (12.0 as 12), booleans; missing and empty as null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_floating(values.type):
        known = [None if value is None or math.isnan(value) else f"{value:.15g}" for value in values.to_pylist()]
        values = pa.array(known, pa.string())
    elif not is_text(values.type):
        values = pa.array([None if value is None else str(value) for value in values.to_pylist()], pa.string())
    texts = pc.utf8_trim_whitespace(values)
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)


def days(values: Any, order: str) -> np.ndarray:
    """Return dates (text, or a date type of pyarrow) as days since 1970-01-01; NaN for missing values."""
    if not is_text(values.type):
        return np.array([_days_of(value) for value in values.to_pylist()], dtype=np.float64)
    return np.array([np.nan if text is None else _days_in(text, order) for text in values.to_pylist()], dtype=np.float64)


def _days_of(value: Any) -> float:
    if value is None:
        return np.nan
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return float((value - _EPOCH).total_seconds()) / _DAY_SECONDS


def _days_in(text: str, order: str) -> float:
    """Parse a date such as 2024-02-29, 29.2.2024 or 2/29/24, with or without a time."""
    date, _, time = text.strip().replace("T", " ").partition(" ")
    parts = [int(part) for part in date.replace("/", "-").replace(".", "-").split("-")]
    if len(date) >= 4 and date[:4].isdigit():
        year, month, day = parts
    else:
        day, month, year = parts if order != "month-first" else (parts[1], parts[0], parts[2])
        if year < 100:  # as in POSIX
            year += 1900 if year >= 69 else 2000
    value = datetime.datetime(year, month, day)
    if time:
        found = datetime.datetime.fromisoformat(f"{value:%Y-%m-%d} {_padded(time)}")
        return _days_of(found)
    return _days_of(value)


def _padded(time: str) -> str:
    """Return a time in ISO format: 8:05 as 08:05."""
    time = time.replace(" ", "").replace(",", ".")
    return time if time[1:2] != ":" else f"0{time}"


def date_order(texts: Iterable[str | None]) -> str | None:
    """Return the order of day and month that the dates of a column prove; "" if the year comes first, None if none does.

    Dates with points are in the order of day, month and year.

    Examples
    --------
    >>> from coterie.data.encoding import date_order
    >>> date_order(["3/4/2024", "13/4/2024"]), date_order(["3.4.2024"]), date_order(["3/4/2024"]), date_order(["2024-04-03"])
    ('day-first', 'day-first', None, '')
    """
    orders = {_order_of(text.strip().replace("T", " ").partition(" ")[0]) for text in texts if text is not None}
    proven = orders - {"", None}
    if len(proven) > 1:
        return None
    return proven.pop() if proven else None if None in orders else ""


def _order_of(date: str) -> str | None:
    if date[:4].isdigit() and len(date) >= 8:
        return ""
    if "." in date:
        return "day-first"
    first, second, *_ = (int(part) for part in date.replace("/", "-").split("-"))
    return "day-first" if first > 12 else "month-first" if second > 12 else None


def warn_of_unknown(unknown: Mapping[str, Mapping[str, int]], where: str) -> None:
    """Warn of values of columns that are no level of the training data, for which all features of the column are 0."""
    for column, counts in unknown.items():
        shown = ", ".join(f"{value!r} ({count})" for value, count in list(counts.items())[:5])
        more = f" and {len(counts) - 5} more" if len(counts) > 5 else ""
        warnings.warn(
            f"{where}: column {column!r} has {len(counts)} level{'s' * (len(counts) > 1)} that the training data do not have: "
            f"{shown}{more}. These samples count as none of its levels.",
            UserWarning,
            stacklevel=3,
        )


def _is_valid(column: ColumnEncoding) -> bool:
    if column.kind not in KINDS or column.role not in ROLES or column.order not in ("", *DATE_ORDERS):
        return False
    names = (column.column, *column.levels) if isinstance(column.levels, tuple) else (None,)
    if not all(isinstance(name, str) for name in names):
        return False
    return column.kind not in (INDICATOR, LEVELS) or len(column.levels) >= 2 - (column.kind == LEVELS)
