"""What the columns of a table hold: numbers, booleans, dates, words; how much is missing; and what to say of it all."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

NUMBERS, BOOLEANS, DATES, TEXT, CATEGORIES, EMPTY = "numbers", "booleans", "dates", "text", "categories", "empty"
# Kinds that are read as features.
_USABLE = frozenset([NUMBERS, BOOLEANS, EMPTY])
# Columns that a message names, and different values that are counted.
_SHOWN = 8
_MAX_DISTINCT = 1000
# How dates are written: 2024-02-29, 29.2.2024, 2/29/24, with a time or without.
_DATE = (
    r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))"
    r"([ T]\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*(Z|[+-]\d{2}:?\d{2})?)?\s*$"
)
_NUMBER = r"(?i)^\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)\s*$"
_WORDS_OF_TRUTH = ("true", "false")


@dataclass
class Column:
    """What is known of a column."""

    name: str  # or its position where there are no names
    n_samples: int = 0
    n_missing: int = 0
    counts: dict[str, int] = field(default_factory=dict)  # number of values of each kind
    odd: tuple[int, str] | None = None  # the first value that is neither a number nor missing, with its sample
    lowest: float | None = None
    highest: float | None = None
    values: set[Any] = field(default_factory=set)  # different values, up to a thousand and one, if they are requested

    @property
    def kinds(self) -> list[str]:
        """The kinds of its values, the most frequent one first."""
        return sorted(self.counts, key=lambda kind: (-self.counts[kind], kind))

    @property
    def kind(self) -> str:
        """What it holds, in words."""
        return " and ".join(self.kinds) if self.counts else EMPTY

    @property
    def usable(self) -> bool:
        """Whether it can be a feature: all numbers, or all True and False."""
        return len(self.counts) <= 1 and self.kind in _USABLE

    @property
    def n_distinct(self) -> int | None:
        """Number of different values; None for more than a thousand."""
        return len(self.values) if len(self.values) <= _MAX_DISTINCT else None

    def see(self, array: Any, *, values: bool = False) -> None:
        """Take more samples, a pyarrow array, into account; the different values only if they are wanted."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_floating(array.type):
            array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)  # a number that is none is a gap
        first = self.n_samples
        self.n_samples += len(array)
        self.n_missing += array.null_count
        for kind, count, where in _kinds_in(array):
            if count:
                self.counts[kind] = self.counts.get(kind, 0) + count
            if count and kind != NUMBERS and (self.odd is None or first + where < self.odd[0]):
                self.odd = first + where, str(array[where].as_py())
        if values:
            self._see_values(array)

    def _see_values(self, array: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        numbers = _as_numbers(array)
        if numbers is not None:
            array = numbers
            ends = pc.min_max(array).as_py()
            if ends["min"] is not None:
                self.lowest = float(ends["min"] if self.lowest is None else min(self.lowest, ends["min"]))
                self.highest = float(ends["max"] if self.highest is None else max(self.highest, ends["max"]))
        if len(self.values) > _MAX_DISTINCT or pa.types.is_nested(array.type):
            return
        for value in pc.unique(array).to_pylist():
            if value is not None:
                self.values.add(value)
                if len(self.values) > _MAX_DISTINCT:
                    return

    def description(self, n_header_lines: int | None = None) -> str:
        """Its name, and why it is no feature."""
        if self.odd is None or not self.counts:
            return f"{self.name!r} ({self.kind})"
        sample, example = self.odd
        shown = repr(example if len(example) <= 30 else f"{example[:29]}…")
        if len(self.counts) == 1:
            return f"{self.name!r} ({self.kind}, such as {shown})"
        place = f"sample {sample}" if n_header_lines is None else f"line {sample + n_header_lines + 1}"
        return f"{self.name!r} ({self.kind}: {shown} in {place})"


def describe_problems(columns: Sequence[Column], n_header_lines: int | None = None) -> str:
    """All that keeps columns from being features, in one sentence each, and what to do about it; empty where nothing does."""
    wrong = [column for column in columns if not column.usable]
    gaps = [column for column in columns if column.usable and column.n_missing]
    parts = []
    if wrong:
        shown = listed([column.description(n_header_lines) for column in wrong])
        are = "is not numeric" if len(wrong) == 1 else "are not numeric"
        parts.append(
            f"{len(wrong)} of {len(columns)} columns {are}: {shown}. Leave columns out by name (drop={_several(wrong)!r}) or "
            "all that are not numeric (keep_numeric=True), encode them beforehand, or name the one with the labels "
            "(label=NAME)."
        )
    if gaps:
        shown = listed([f"{column.name!r} ({column.n_missing})" for column in gaps])
        have = "has" if len(gaps) == 1 else "have"
        parts.append(
            f"{len(gaps)} of {len(columns)} columns {have} missing values: {shown}. Fill them (impute='median', 'mean' or "
            "'most_frequent'), or leave the columns out."
        )
    return " ".join(parts)


def _several(columns: Sequence[Column]) -> str:
    """Names of some columns as ``drop`` takes them."""
    names = [column.name for column in columns[:_SHOWN]]
    return ",".join(names) if not any("," in name for name in names) else names[0]


def listed(words: Sequence[str], most: int = _SHOWN) -> str:
    """Some words with commas between; of many the first ones, and how many more there are.

    Examples
    --------
    >>> from coterie.data.readers.columns import listed
    >>> listed(["a", "b"]), listed(["a", "b", "c"], 2)
    ('a, b', 'a, b and 1 more')
    """
    more = len(words) - most
    return ", ".join(words) if more <= 0 else f"{', '.join(words[:most])} and {more:,} more"


def nearest(name: str, names: Iterable[str]) -> str:
    """A sentence with the names that are most like one that does not exist; a list of some where none is.

    Examples
    --------
    >>> from coterie.data.readers.columns import nearest
    >>> nearest("diagnoses", ["age", "diagnosis"])
    "did you mean 'diagnosis'?"
    >>> nearest("zz", ["age", "bmi"])
    'there are age, bmi.'
    """
    known = list(names)
    question = did_you_mean(name, known)
    return question or (f"there are {listed(known, 10)}." if known else "there are none.")


def did_you_mean(name: str, known: Iterable[str], end: str = "") -> str:
    """A question with the names that are most like one that does not exist, and an end; nothing where none is."""
    by_lower: dict[str, str] = {}
    for one in known:
        by_lower.setdefault(one.lower(), one)
    # difflib compares with each name in full: of millions it would take minutes.
    close = difflib.get_close_matches(name.lower(), list(by_lower)[:20_000], n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(by_lower[one]) for one in close)}?{end}" if close else ""


def places_of(wanted: Any, names: Sequence[str] | None, n_columns: int, option: str) -> list[int]:
    """Positions of columns given by name or position, one or several; text may have several names with commas between.

    Raises ValueError, which suggests the nearest names, for one that is not there.
    """
    items = [wanted] if isinstance(wanted, (str, int, np.integer)) else list(wanted)
    where = {name: j for j, name in reversed(list(enumerate(names or ())))}
    places = (_place(one, where, n_columns, option) for item in items for one in _single(item, where))
    return list(dict.fromkeys(places))


def _single(item: Any, where: dict[str, int]) -> Iterator[Any]:
    """The names in an item, which may be one with commas in it."""
    if not isinstance(item, str) or item in where:
        yield item
    else:
        yield from (word.strip() for word in item.split(",") if word.strip())


def _place(item: Any, where: dict[str, int], n_columns: int, option: str) -> int:
    if isinstance(item, str) and item in where:
        return where[item]
    number = item if isinstance(item, (int, np.integer)) and not isinstance(item, bool) else None
    if isinstance(item, str) and item.lstrip("-").isdigit():
        number = int(item)
    if number is not None:
        if -n_columns <= number < n_columns:
            return int(number) % n_columns
        raise ValueError(f"{option}={int(number)}: there are {n_columns} columns.")
    if not where:
        raise ValueError(f"{option}={item!r}: the columns have no names; give positions.")
    raise ValueError(f"{option}={item!r}: there is no such column; {nearest(str(item), reversed(list(where)))}")


def _kinds_in(array: Any) -> list[tuple[str, int, int]]:
    """The kinds of an array's values, how many there are of each, and the place of the first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n_values = len(array) - array.null_count
    kind = array.type
    if n_values == 0:
        return []
    if pa.types.is_dictionary(kind):
        return _whole(CATEGORIES, array)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        if _as_numbers(array) is not None:
            return _whole(NUMBERS, array)
        numbers = pc.match_substring_regex(array, _NUMBER)
        truth = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(array)), pa.array(_WORDS_OF_TRUTH, array.type))
        dates = pc.and_(pc.match_substring_regex(array, _DATE), pc.invert(numbers))
        others = pc.invert(pc.or_(pc.or_(numbers, truth), dates))
        masks = {NUMBERS: numbers, BOOLEANS: truth, DATES: dates, TEXT: others}
        found = []
        for name, mask in masks.items():
            here = np.asarray(pc.and_(pc.fill_null(mask, False), array.is_valid()).to_numpy(zero_copy_only=False), dtype=bool)
            found.append((name, int(here.sum()), int(np.argmax(here))))
        return found
    if pa.types.is_boolean(kind):
        return _whole(BOOLEANS, array)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _whole(NUMBERS, array)
    if pa.types.is_temporal(kind):
        return _whole(DATES, array)
    return _whole(TEXT if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else f"values of type {kind}", array)


def _whole(kind: str, array: Any) -> list[tuple[str, int, int]]:
    valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
    return [(kind, len(array) - array.null_count, int(np.argmax(valid)))]


def _as_numbers(array: Any) -> Any:
    """Numbers, or text that all are numbers, as numbers; None for anything else."""
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
