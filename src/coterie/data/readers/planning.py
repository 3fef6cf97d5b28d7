"""Treatment of each column of a table: number, 1 and 0, one feature per level, days, or left out with a reason.

The rules are those of docs/do/tables.md. They use no labels, so that encoding all samples at once gives no information about
held-out samples to a model.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from coterie.data.encoding import (
    COVARIATE,
    DATE,
    FEATURE,
    INDICATOR,
    LEVELS,
    MISSING_LEVEL,
    NUMBER,
    ColumnEncoding,
    date_order,
)
from coterie.data.readers.columns import BOOLEANS, CATEGORIES, DATES, EMPTY, NUMBERS, TEXT, Column

# Largest number of levels of a column that is encoded without request, and smallest mean number of samples per level.
MAX_LEVELS = 30
MIN_SAMPLES_PER_LEVEL = 5
# Largest number of levels of a column that is encoded on request.
_MAX_REQUESTED_LEVELS = 1000
# Mean number of words per value from which text counts as free text.
_FREE_TEXT_WORDS = 3.0
# Pairs of values of which the first one is 1, compared without regard to case.
_YES_NO = (
    ("yes", "no"), ("y", "n"), ("ja", "nein"), ("j", "n"), ("oui", "non"), ("o", "n"), ("si", "no"), ("sí", "no"),
    ("sì", "no"), ("s", "n"),
    ("sim", "não"), ("sim", "nao"), ("tak", "nie"), ("ano", "ne"), ("ja", "nej"), ("ja", "nee"), ("on", "off"),
    ("true", "false"), ("t", "f"), ("positive", "negative"), ("positiv", "negativ"), ("pos", "neg"), ("+", "-"),
    ("present", "absent"),
)  # fmt: skip
# Reason why a column with a different text in every sample is left out.
_IDENTIFIER = "identifier"


@dataclass(frozen=True)
class Treatment:
    """How a column is used.

    Attributes
    ----------
    column : Column
        Summary of the column.
    encoding : ColumnEncoding or None
        Encoding of a feature or covariate; None for a column that is left out or cannot be read.
    reason : str
        Why the column is left out.
    is_problem : bool
        Whether the column can only be used or left out if the user says so.
    """

    column: Column
    encoding: ColumnEncoding | None = None
    reason: str = ""
    is_problem: bool = False

    @property
    def names_samples(self) -> bool:
        """Whether a column that is left out has a different text in every sample, such as an identifier."""
        return self.reason.startswith(_IDENTIFIER) and not self.column.n_missing

    @property
    def text(self) -> str:
        """Description in a few words."""
        encoding = self.encoding
        if encoding is None:
            return f"{'refused' if self.is_problem else 'left out'}: {self.reason}"
        words = encoding.role
        if encoding.kind == INDICATOR:
            return f"{words}, {encoding.levels[1]} = 1, {encoding.levels[0]} = 0"
        if encoding.kind == LEVELS:
            return f"{words}, one-hot with {len(encoding.levels)} level{'s' * (len(encoding.levels) != 1)}"
        if encoding.kind == DATE:
            return f"{words}, days since 1970-01-01"
        if self.column.kind == BOOLEANS:
            return f"{words}, true = 1, false = 0"
        return f"{words}, constant" if self.column.lowest is not None and self.column.lowest == self.column.highest else words


def treatment_of(
    column: Column, *, requested: bool = False, dates: bool | str = False, encodes: bool = True, role: str = FEATURE
) -> Treatment:
    """Return the treatment of a column whose distinct values have been counted, unless it has numbers only.

    Parameters
    ----------
    column : Column
        Summary of all values.
    requested : bool, default=False
        Whether the user has named the column as one of categories.
    dates : bool, "day-first" or "month-first", default=False
        Whether dates are encoded, and their order of day and month if the values prove none.
    encodes : bool, default=True
        Whether columns that are not numeric may be encoded.
    role : {"feature", "covariate"}, default="feature"
        Use of the column.
    """
    kinds = set(column.counts)
    if requested:
        return _categories(column, role, requested=True)
    if column.usable:
        if column.kind == EMPTY and encodes:
            return Treatment(column, reason="no values")
        return Treatment(column, ColumnEncoding(column.name, NUMBER, role=role))
    if not encodes:
        return Treatment(column, reason="not numeric")
    if kinds == {DATES}:
        return _dates(column, dates, role)
    if NUMBERS in kinds or not kinds <= {TEXT, CATEGORIES, BOOLEANS, DATES}:
        return Treatment(column, reason=column.kind, is_problem=True)
    return _categories(column, role, requested=False)


def _dates(column: Column, dates: bool | str, role: str) -> Treatment:
    if not dates:
        return Treatment(column, reason="dates")
    texts = [value for value in column.values if isinstance(value, str)]
    order = date_order(texts)
    if order is None and isinstance(dates, str):
        order = dates
    if order is None:
        return Treatment(column, reason="dates whose order of day and month is unclear", is_problem=True)
    return Treatment(column, ColumnEncoding(column.name, DATE, order=order, role=role))


def _categories(column: Column, role: str, *, requested: bool) -> Treatment:
    """Return the treatment of a column of categories: its levels, or the reason why it has too many."""
    n_known, n_levels = column.n_samples - column.n_missing, column.n_distinct
    most = _MAX_REQUESTED_LEVELS if requested else max(2, min(MAX_LEVELS, n_known // MIN_SAMPLES_PER_LEVEL))
    if n_levels is None or n_levels > most:
        return Treatment(column, reason=_too_many(column, n_levels, n_known), is_problem=requested or role == COVARIATE)
    levels = sorted({_text(value) for value in column.values})
    if len(levels) < 2 and not (levels and column.n_missing):
        return Treatment(column, reason="constant" if levels else "no values")
    if len(levels) == 2 and not requested:
        return Treatment(column, ColumnEncoding(column.name, INDICATOR, _ordered(levels), role=role))
    return Treatment(
        column, ColumnEncoding(column.name, LEVELS, (*levels, *[MISSING_LEVEL] * bool(column.n_missing)), role=role)
    )


def _text(value: object) -> str:
    """Return a value as :func:`coterie.data.encoding.as_texts` does."""
    return f"{value:.15g}" if isinstance(value, float) else str(value).strip()


def _too_many(column: Column, n_levels: int | None, n_known: int) -> str:
    shown = "more than 1,000" if n_levels is None else f"{n_levels:,}"
    if column.n_words >= _FREE_TEXT_WORDS * n_known:
        return f"free text ({shown} different values)"
    if n_levels == n_known:
        return f"{_IDENTIFIER} ({shown} different values)"
    return f"too many levels ({shown})"


def _ordered(levels: list[str]) -> tuple[str, ...]:
    """Return two levels, that of 0 first: no before yes, else in alphabetical order."""
    first, second = (level.casefold() for level in levels)
    return (levels[1], levels[0]) if (first, second) in _YES_NO else (levels[0], levels[1])


def treated(column: Column, encodings: Collection[ColumnEncoding]) -> Treatment:
    """Return the treatment of a column with an encoding from training data: a number must be one, anything else may change."""
    encoding = next(encoding for encoding in encodings if encoding.column == column.name)
    wrong = (encoding.kind == NUMBER and not column.usable) or (encoding.kind == DATE and set(column.counts) - {DATES})
    return Treatment(column, reason=column.kind, is_problem=True) if wrong else Treatment(column, encoding)
