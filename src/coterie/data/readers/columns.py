"""Kinds of the columns of a table (numbers, booleans, dates, text), missing values, and messages about them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from coterie.data.encoding import PLAIN_NUMBERS, NumberFormat, is_text
from coterie.data.readers.dialect import POINT, forms_of, readable_forms

NUMBERS, BOOLEANS, DATES, TEXT, CATEGORIES, EMPTY = "numbers", "booleans", "dates", "text", "categories", "empty"
# Kinds that are read as features.
_USABLE = frozenset([NUMBERS, BOOLEANS, EMPTY])
# Maximum number of columns named in a message, and of distinct values counted.
_MAX_COLUMNS_SHOWN = 8
_MAX_DISTINCT = 1000
# Maximum number of distinct values of a column that is kept as codes.
_MAX_CODES = 1_000_000
# Dates such as 2024-02-29, 29.2.2024 and 2/29/24, with or without a time.
_DATE = (
    r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))"
    r"([ T]\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*(Z|[+-]\d{2}:?\d{2})?)?\s*$"
)
_NUMBER = r"(?i)^\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)\s*$"
_BOOLEAN_WORDS = ("true", "false")


@dataclass
class Column:
    """Summary of a column of a table."""

    name: str  # or its position if there are no names
    n_samples: int = 0
    n_missing: int = 0
    counts: dict[str, int] = field(default_factory=dict)  # number of values of each kind
    first_non_number: tuple[int, str] | None = None  # sample and text of the first value that is neither a number nor missing
    lowest: float | None = None
    highest: float | None = None
    # Distinct values as keys, if requested, in the order of the samples: at most 1001, or a million if no value repeats.
    values: dict[Any, None] = field(default_factory=dict)
    has_repeats: bool = False  # whether any value repeats, or there are too many to tell
    # For text: number, first sample and first text of each form of numbers (``dialect``), and the first value of no form.
    forms: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    first_of_no_form: tuple[int, str] | None = None
    n_words: int = 0  # in all text values, if distinct values are requested

    @property
    def kinds(self) -> list[str]:
        """Kinds of the values, the most frequent first."""
        return sorted(self.counts, key=lambda kind: (-self.counts[kind], kind))

    @property
    def kind(self) -> str:
        """Description of the kinds."""
        return " and ".join(self.kinds) if self.counts else EMPTY

    @property
    def usable(self) -> bool:
        """Whether the column can be a feature: all numbers, or all booleans."""
        return len(self.counts) <= 1 and self.kind in _USABLE

    @property
    def n_distinct(self) -> int | None:
        """Number of distinct values; None for more than a thousand, if any of them repeats."""
        return None if self.has_repeats and len(self.values) > _MAX_DISTINCT else len(self.values)

    @property
    def is_number_like(self) -> bool:
        """Whether the column is text in which every value is a number, with whatever decimal mark."""
        known = sum(count for count, _, _ in self.forms.values())
        return known > 0 and known == self.n_samples - self.n_missing

    def settle(self, numbers: NumberFormat) -> None:
        """Count the values as numbers that are numbers in a format."""
        if not self.forms or not (self.counts.keys() & {NUMBERS, TEXT}):
            return
        readable = readable_forms(numbers)
        n_numbers = sum(count for form, (count, _, _) in self.forms.items() if form in readable)
        n_others = self.counts.pop(NUMBERS, 0) + self.counts.pop(TEXT, 0) - n_numbers
        self.counts |= {kind: count for kind, count in ((NUMBERS, n_numbers), (TEXT, n_others)) if count}
        places = [(sample, text) for form, (_, sample, text) in self.forms.items() if form not in readable]
        places += [] if self.first_of_no_form is None else [self.first_of_no_form]
        self.first_non_number = min(places, default=None)

    def update(self, array: Any, *, values: bool = False, numbers: NumberFormat | None = PLAIN_NUMBERS) -> None:
        """Add samples, given as a pyarrow array.

        Distinct values are counted only if ``values`` is true. Text with numbers in the format ``numbers`` then counts as
        numbers; None keeps it as text.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_floating(array.type):
            array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)  # NaN counts as missing
        first = self.n_samples
        self.n_samples += len(array)
        self.n_missing += array.null_count
        for kind, count, where in _count_kinds(array):
            if count:
                self.counts[kind] = self.counts.get(kind, 0) + count
            if count and kind != NUMBERS and (self.first_non_number is None or first + where < self.first_non_number[0]):
                self.first_non_number = first + where, str(array[where].as_py())
        if is_text(array.type) and len(array) > array.null_count:
            self._update_forms(array, first)
        if values:
            self._update_values(array, numbers)

    def _update_forms(self, array: Any, first: int) -> None:
        """Count the forms of numbers in text."""
        if POINT in self.forms and _as_numbers(array) is not None:  # a further value with a decimal point tells nothing
            found = {POINT: np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=bool)}
        else:
            found = forms_of(array)
        for form, mask in found.items():
            if count := int(mask.sum()):
                where = int(np.argmax(mask))
                known = self.forms.get(form, (0, first + where, str(array[where].as_py())))
                self.forms[form] = known[0] + count, *known[1:]
        others = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=bool) & ~np.any(
            list(found.values()), axis=0
        )
        if self.first_of_no_form is None and others.any():
            where = int(np.argmax(others))
            self.first_of_no_form = first + where, str(array[where].as_py())

    def _update_values(self, array: Any, numbers: NumberFormat | None) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if is_text(array.type):
            self.n_words += int(pc.sum(pc.add(pc.count_substring_regex(array, r"\S\s+\S"), 1)).as_py() or 0)
        plain = array if numbers is None or not is_text(array.type) else numbers.plain(array)
        found = None if numbers is None and is_text(array.type) else _as_numbers(plain)
        if found is not None:
            array = found
        elif is_text(array.type):
            array = pc.utf8_trim_whitespace(array)
        if found is not None:
            ends = pc.min_max(array).as_py()
            if ends["min"] is not None:
                self.lowest = float(ends["min"] if self.lowest is None else min(self.lowest, ends["min"]))
                self.highest = float(ends["max"] if self.highest is None else max(self.highest, ends["max"]))
        if pa.types.is_nested(array.type) or (self.has_repeats and len(self.values) > _MAX_DISTINCT):
            return
        self.values.update((value, None) for value in pc.unique(array).to_pylist() if value is not None)
        n_values = len(self.values)
        self.has_repeats |= n_values < self.n_samples - self.n_missing or n_values > _MAX_CODES
        if self.has_repeats and n_values > _MAX_DISTINCT:
            self.values = dict.fromkeys(islice(self.values, _MAX_DISTINCT + 1))

    def description(self, n_header_lines: int | None = None) -> str:
        """Return the name of the column and the reason why it is not numeric."""
        if self.first_non_number is None or not self.counts:
            return f"{self.name!r} ({self.kind})"
        sample, example = self.first_non_number
        shown = repr(example if len(example) <= 30 else f"{example[:29]}…")
        if len(self.counts) == 1:
            return f"{self.name!r} ({self.kind}, such as {shown})"
        place = f"sample {sample}" if n_header_lines is None else f"line {sample + n_header_lines + 1}"
        return f"{self.name!r} ({self.kind}: {shown} in {place})"


class Codes:
    """Codes of the values of a column, in batches: equal values have equal codes. At most a million different values."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._parts: list[np.ndarray] = []
        self.repeat = True  # whether values repeat

    def add(self, column: Any, keep: np.ndarray) -> None:
        """Add the samples ``keep`` of a batch."""
        if not self.repeat:
            return
        encoded = column if str(column.type).startswith("dictionary") else column.dictionary_encode()
        own = [self._known.setdefault(value, len(self._known)) for value in encoded.dictionary.to_pylist()]
        places = np.array([*own, -1], dtype=np.int32)
        self._parts.append(places[encoded.indices.fill_null(len(own)).to_numpy(zero_copy_only=False)][keep])
        if len(self._known) > _MAX_CODES:
            self.repeat, self._parts = False, []

    @property
    def values(self) -> np.ndarray:
        """Codes of all samples; -1 for missing values."""
        return np.concatenate(self._parts) if self._parts else np.empty(0, dtype=np.int32)


def describe_problems(
    columns: Sequence[Column], n_header_lines: int | None = None, *, wrong: Sequence[Column] | None = None
) -> str:
    """Describe the columns that cannot be features (``wrong``, by default all that are not numeric) and how to fix them.

    Returns "" if there are none.
    """
    wrong = [column for column in columns if not column.usable] if wrong is None else wrong
    gaps = [column for column in columns if column.usable and column.n_missing]
    parts = []
    if wrong:
        shown = listed([column.description(n_header_lines) for column in wrong])
        are = "is not numeric" if len(wrong) == 1 else "are not numeric"
        names = _drop_argument(wrong)
        parts.append(
            f"{len(wrong)} of {len(columns)} columns {are}: {shown}. Correct the values, read columns as categories "
            f"(categories={names!r}), remove them (drop={names!r}), or ignore all columns that are not numeric "
            "(keep_numeric=True)."
        )
    if gaps:
        shown = listed([f"{column.name!r} ({column.n_missing})" for column in gaps])
        have = "has" if len(gaps) == 1 else "have"
        parts.append(
            f"{len(gaps)} of {len(columns)} columns {have} missing values: {shown}. Fill them (impute='median', 'mean' or "
            f"'most_frequent'), or remove the columns (drop={_drop_argument(gaps)!r})."
        )
    return " ".join(parts)


def _drop_argument(columns: Sequence[Column]) -> str:
    """Return the names of some columns as a value of ``drop``."""
    names = [column.name for column in columns[:_MAX_COLUMNS_SHOWN]]
    return ",".join(names) if not any("," in name for name in names) else names[0]


def listed(words: Sequence[str], most: int = _MAX_COLUMNS_SHOWN) -> str:
    """Join words with commas; of many words, the first ones and the number of the others.

    Examples
    --------
    >>> from coterie.data.readers.columns import listed
    >>> listed(["a", "b"]), listed(["a", "b", "c"], 2)
    ('a, b', 'a, b and 1 more')
    """
    more = len(words) - most
    return ", ".join(words) if more <= 0 else f"{', '.join(words[:most])} and {more:,} more"


def suggest_names(name: str, names: Iterable[str]) -> str:
    """Return a sentence with the names most similar to an unknown name; a list of names if none is similar.

    Examples
    --------
    >>> from coterie.data.readers.columns import suggest_names
    >>> suggest_names("diagnoses", ["age", "diagnosis"])
    "Did you mean 'diagnosis'?"
    >>> suggest_names("zz", ["age", "bmi"])
    'Available: age, bmi.'
    """
    known = list(names)
    question = did_you_mean(name, known)
    return question or (f"Available: {listed(known, 10)}." if known else "None are available.")


def did_you_mean(name: str, known: Iterable[str], end: str = "") -> str:
    """Return a question with the names most similar to an unknown name, followed by ``end``; "" if none is similar."""
    by_lower: dict[str, str] = {}
    for other in known:
        by_lower.setdefault(other.lower(), other)
    # difflib compares the full names, which would take minutes for millions of them.
    close = difflib.get_close_matches(name.lower(), list(by_lower)[:20_000], n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(repr(by_lower[match]) for match in close)}?{end}" if close else ""


def column_positions(wanted: Any, names: Sequence[str] | None, n_columns: int, option: str) -> list[int]:
    """Return the positions of columns given by name or position. A string may hold several names separated by commas.

    Raises ValueError with the most similar names for a column that does not exist.
    """
    items = [wanted] if isinstance(wanted, (str, int, np.integer)) else list(wanted)
    where = {name: j for j, name in reversed(list(enumerate(names or ())))}
    positions = (_position(name, where, n_columns, option) for item in items for name in _split_names(item, where))
    return list(dict.fromkeys(positions))


def _split_names(item: Any, where: dict[str, int]) -> Iterator[Any]:
    """Yield the names in an item, unless the item is itself a name that contains commas."""
    if not isinstance(item, str) or item in where:
        yield item
    else:
        yield from (word.strip() for word in item.split(",") if word.strip())


def _position(item: Any, where: dict[str, int], n_columns: int, option: str) -> int:
    if isinstance(item, str) and item in where:
        return where[item]
    number = item if isinstance(item, (int, np.integer)) and not isinstance(item, bool) else None
    if isinstance(item, str) and item.lstrip("-").isdigit():
        number = int(item)
    if number is not None:
        if -n_columns <= number < n_columns:
            return int(number) % n_columns
        raise ValueError(f"{option}={int(number)} is out of range. There are {n_columns} columns (0 to {n_columns - 1}).")
    if not where:
        raise ValueError(f"{option}={item!r}: the columns have no names. Pass positions.")
    raise ValueError(f"{option}={item!r}: column not found. {suggest_names(str(item), reversed(list(where)))}")


def _count_kinds(array: Any) -> list[tuple[str, int, int]]:
    """Return the kinds of the values of an array, with the number and the first position of each kind."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n_values = len(array) - array.null_count
    kind = array.type
    if n_values == 0:
        return []
    if pa.types.is_dictionary(kind):
        return _single_kind(CATEGORIES, array)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        if _as_numbers(array) is not None:
            return _single_kind(NUMBERS, array)
        numbers = pc.match_substring_regex(array, _NUMBER)
        truth = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(array)), pa.array(_BOOLEAN_WORDS, array.type))
        dates = pc.and_(pc.match_substring_regex(array, _DATE), pc.invert(numbers))
        others = pc.invert(pc.or_(pc.or_(numbers, truth), dates))
        masks = {NUMBERS: numbers, BOOLEANS: truth, DATES: dates, TEXT: others}
        found = []
        for name, mask in masks.items():
            here = np.asarray(pc.and_(pc.fill_null(mask, False), array.is_valid()).to_numpy(zero_copy_only=False), dtype=bool)
            found.append((name, int(here.sum()), int(np.argmax(here))))
        return found
    if pa.types.is_boolean(kind):
        return _single_kind(BOOLEANS, array)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _single_kind(NUMBERS, array)
    if pa.types.is_temporal(kind):
        return _single_kind(DATES, array)
    return _single_kind(
        TEXT if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else f"values of type {kind}", array
    )


def _single_kind(kind: str, array: Any) -> list[tuple[str, int, int]]:
    valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
    return [(kind, len(array) - array.null_count, int(np.argmax(valid)))]


def _as_numbers(array: Any) -> Any:
    """Return numbers, or text that consists of numbers only, as numbers; None for anything else."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return array
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_decimal(kind)):
        return None
    try:
        return pc.cast(pc.utf8_trim_whitespace(array) if not pa.types.is_decimal(kind) else array, pa.float64())
    except pa.ArrowInvalid:
        return None
