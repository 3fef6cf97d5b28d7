"""Tables: base class of their readers, which pyarrow streams in bounded memory as record batches.

A reader finds the roles of the columns (features, labels, sample names and groups, covariates, weights), decides how each is
encoded (:mod:`coterie.data.readers.planning`), and encodes one batch after the other. A subclass yields the batches.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from coterie.bounds import require_memory
from coterie.data.covariates import Covariates
from coterie.data.encoding import (
    COVARIATE,
    FEATURE,
    INDICATOR,
    LEVELS,
    NUMBER,
    PLAIN_NUMBERS,
    SAMPLE_NAMES,
    ColumnEncoding,
    NumberFormat,
    TableEncoding,
    annotations_of,
    is_text,
    warn_of_unknown,
)
from coterie.data.errors import DataFileError
from coterie.data.names import PackedStrings, require_unique_names
from coterie.data.readers.columns import Codes, Column, column_positions, describe_problems, listed, suggest_names
from coterie.data.readers.dialect import DECIMALS, NAMES, detect_numbers, thousands_form
from coterie.data.readers.planning import Treatment, treated, treatment_of
from coterie.data.readers.reader import (
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
# Bytes per text label: a Python string, and its copy while the classes are determined.
_STRING_BYTES = 150
_MAX_NAME_LENGTH = 60
# Maximum number of columns that are not features but kept as codes.
_MAX_CODED_COLUMNS = 20
_DATE_ORDERS = (False, True, "auto", "day-first", "month-first")


class TabularReader(Reader):
    """Base class of the readers of tables (formats with ``Format.table``).

    Columns of categories are encoded, and columns that no rule encodes are left out with a warning. With ``keep_numeric``,
    only numeric and boolean columns are read. The parameters are described in :class:`CsvReader`.
    """

    delimiter: str | None = None  # None if the format is not text
    _n_columns: int
    _n_header_lines: int | None = None  # None if the format has no lines
    _name_line: int | None = 1  # line of the names in messages

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
        categories: Any = None,
        dates: bool | str = False,
        covariates: Any = None,
        weight: Any = None,
        columns: Sequence[str] | Sequence[ColumnEncoding] | None = None,
    ) -> None:
        super().__init__(path)
        self._label, self._sample_names, self._missing_labels = label, sample_names, missing_labels
        self._groups = None if sample_groups is False else sample_groups
        self._drop, self._keep_numeric = drop, keep_numeric
        # Encodings of a fitted model, for new data.
        self._known = [c for c in columns or () if isinstance(c, ColumnEncoding)] or None
        self._wanted = None if columns is None else [c if isinstance(c, str) else c.column for c in columns]
        self._requested, self._covariates, self._weight = categories, covariates, weight
        if dates not in _DATE_ORDERS:
            raise ValueError(f"dates={dates!r} must be True, False, 'auto', 'day-first' or 'month-first'.")
        self._dates = dates
        self._numbers = PLAIN_NUMBERS
        self._decimal: str | None = None  # stated decimal mark
        self._others: list[int] = []  # columns that are not features, kept as codes
        self._as_text: set[int] = set()  # columns of numbers that are read as text
        self.treatments: dict[int, Treatment] = {}  # of features and covariates, unless all are numbers

    # Roles of the columns

    def _set_columns(self, names: Sequence[str] | None, n_columns: int) -> None:
        """Set the columns of labels, sample names, groups, covariates, weights and features."""
        self._column_names = names
        self._label_column = self._label_position(names, n_columns)
        self._name_column = self._name_position(names, n_columns)
        self._group_column = None
        if self._groups is not None:
            self._group_column = self._find_column("sample_groups", self._groups, names, n_columns)
            if self._group_column == self._label_column:
                raise DataFileError(
                    f"sample_groups={self._groups!r} is the column of the labels.", self.path, line=self._name_line
                )
        self._weight_column = None
        if self._weight is not None:
            self._weight_column = self._find_column("weight", self._weight, names, n_columns)
            if self._weight_column == self._label_column:
                raise DataFileError(f"weight={self._weight!r} is the column of the labels.", self.path, line=self._name_line)
        if self._known is None:
            self._covariate_columns = self._positions("covariates", self._covariates, names, n_columns)
        else:
            covariates = [column.column for column in self._known if column.role == COVARIATE]
            self._covariate_columns = self._positions("covariates", covariates, names, n_columns)
        dropped = set(self._positions("drop", self._drop, names, n_columns))
        self._categories = set(self._positions("categories", self._requested, names, n_columns))
        roles = (("drop", dropped), ("covariates", set(self._covariate_columns)), ("categories", self._categories))
        for option, columns in roles:
            if self._label_column is not None and self._label_column in columns:
                raise DataFileError(f"{option}={self._name(self._label_column)!r} is the column of the labels.", self.path)
        if self._name_column in dropped:
            self._name_column = None
        if self._name_column is None and names is not None:
            own = {c.column for c in self._known or () if c.role == SAMPLE_NAMES}
            self._name_column = next((j for j, name in enumerate(names) if name in own and j not in dropped), None)
        if both := sorted(dropped.intersection(self._covariate_columns)):
            raise DataFileError(f"drop={self._name(both[0])!r} is a covariate. Remove it from one of the lists.", self.path)
        special = (self._label_column, self._name_column, self._group_column, self._weight_column)
        used = {*special, *dropped, *self._covariate_columns}
        wanted = None if self._wanted is None else set(self._wanted)
        self._others = sorted(dropped) if wanted is None else []
        self._features = [
            j for j in range(n_columns) if j not in used and (wanted is None or names is None or names[j] in wanted)
        ]
        self._encodings = {j: ColumnEncoding(self._name(j)) for j in self._features}
        self._encodings |= {j: ColumnEncoding(self._name(j), role=COVARIATE) for j in self._covariate_columns}
        self._set_features()

    def _positions(self, option: str, wanted: Any, names: Sequence[str] | None, n_columns: int) -> list[int]:
        if isinstance(wanted, PathLike):
            raise TypeError(f"{option}={str(wanted)!r} must name columns. Covariate files are supported for PLINK data only.")
        try:
            return column_positions(wanted if wanted is not None else [], names, n_columns, option)
        except ValueError as error:
            raise DataFileError(str(error), self.path, line=self._name_line) from error

    def _set_features(self) -> None:
        """Set shape, names and annotations from the feature columns and their encodings."""
        if not self._features:
            wanted = self._wanted
            missing = "" if not wanted else f" The file has none of the columns {listed([repr(name) for name in wanted], 5)}."
            raise DataFileError(f"no column is left for features.{missing}", self.path, line=self._name_line)
        own = [self._encodings[j] for j in self._features]
        self._ends = np.cumsum([len(encoding.encoded_levels) for encoding in own])
        self.shape = (None, int(self._ends[-1]))
        self._others = [j for j in self._others if self._can_be_coded(j)][:_MAX_CODED_COLUMNS]
        special = (self._label_column, self._name_column, self._group_column, self._weight_column)
        others = (*special, *self._covariate_columns, *self._others)
        self._used = sorted({*self._features, *(j for j in others if j is not None)})
        self._position_in_batch = {column: position for position, column in enumerate(self._used)}
        if self._column_names is not None or any(encoding.kind in (LEVELS, INDICATOR) for encoding in own):
            names = [name for encoding in own for name in encoding.names]
            try:
                require_unique_names(names, [j for j in self._features for _ in self._encodings[j].names])
            except ValueError as error:
                raise DataFileError(str(error), self.path) from error
            self.feature_names = PackedStrings.pack(names)
        self.feature_info = {name: PackedStrings.pack(texts) for name, texts in annotations_of(own).items()}
        kept = [e for e in self._encodings.values() if e.kind != NUMBER or e.role == COVARIATE]
        if self._name_column is not None and (self._sample_names is not None or "sample_names" in self.notes):
            kept.append(ColumnEncoding(self._name(self._name_column), role=SAMPLE_NAMES))
        self.encoding = TableEncoding(tuple(kept)) if kept and self._column_names is not None else None

    def _name(self, column: int) -> str:
        return str(column) if self._column_names is None else self._column_names[column]

    # Treatment of the columns

    def survey(
        self,
        *,
        all_columns: bool = True,
        values: bool = False,
        columns: Sequence[int] | None = None,
        numbers: NumberFormat | None = PLAIN_NUMBERS,
    ) -> list[Column]:
        """Summarise all columns, some, or the feature columns only, in a pass over the whole file.

        With ``values``, also determine ranges and numbers of distinct values.
        """
        selected = columns if columns is not None else list(range(self._n_columns)) if all_columns else self._features
        found = [Column(self._name(j)) for j in selected]
        for batch in self._raw_batches(selected):
            for position, column in enumerate(found):
                column.update(batch.column(position), values=values, numbers=numbers)
        return found

    def _raw_batches(self, columns: Sequence[int]) -> Iterator[Any]:
        """Yield batches of some columns with the types of the file; text if it has no types."""
        raise NotImplementedError

    def _plan(self, doubtful: bool) -> None:
        """Decide how the columns are encoded. This takes passes over the file, unless all columns are surely numbers."""
        plain = self._known is None and not self._categories and not self._keep_numeric
        if not doubtful and plain:
            return
        used = [*self._features, *self._covariate_columns]
        judged = [*used, *(j for j in (self._label_column, self._weight_column) if j is not None)]
        found = dict(zip(judged, self.survey(columns=judged), strict=True))
        try:
            self._numbers = (
                detect_numbers(found.values(), self.delimiter, self.path, self._n_header_lines)
                if self._decimal is None
                else NumberFormat(self._decimal)
            )
        except DataFileError as error:
            self._refuse(str(error))
        thousands = []
        for j, column in found.items():
            column.settle(self._numbers)
            form = thousands_form(self._numbers)
            if column.is_number_like and form in column.forms:
                thousands.append(column.name)
            if column.is_number_like and (self._numbers.decimal == "," or form in column.forms or "point" in column.forms):
                self._as_text.add(j)
        if self._numbers.decimal == ",":
            self.notes["decimal_mark"] = "comma"
        if thousands:
            self.notes["thousands_separators"] = f"in {listed(thousands)}"
        self._count_values(found, used)
        self._set_treatments({j: self._treatment(j, found[j]) for j in used})

    def _count_values(self, found: dict[int, Column], used: Sequence[int]) -> None:
        """Determine the distinct values of the columns that may be encoded."""
        for requested in (False, True):
            columns = [j for j in used if (j in self._categories) == requested and (requested or not found[j].usable)]
            if not columns:
                continue
            numbers = None if requested else self._numbers
            for j, column in zip(columns, self.survey(columns=columns, values=True, numbers=numbers), strict=True):
                column.settle(self._numbers)
                found[j] = column

    def _treatment(self, j: int, column: Column) -> Treatment:
        if self._known is not None:
            return treated(column, self._known)
        role = COVARIATE if j in self._covariate_columns else FEATURE
        encodes = not self._keep_numeric or role == COVARIATE
        return treatment_of(column, requested=j in self._categories, dates=self._dates, encodes=encodes, role=role)

    def _set_treatments(self, treatments: dict[int, Treatment]) -> None:
        """Encode, leave out or refuse columns, and state which."""
        self.treatments = treatments
        columns = [treatment.column for treatment in treatments.values()]
        problems = [treatment for treatment in treatments.values() if treatment.is_problem]
        problems += [
            t for j, t in treatments.items() if t.encoding is None and j in self._covariate_columns and not t.is_problem
        ]
        if problems:
            hint = self._other_delimiter()
            if hint:
                self._refuse(f"the only column is not numeric. {hint}")
            self._refuse(self._describe(problems, columns))
        left_out = {j: t for j, t in treatments.items() if t.encoding is None}
        encoded = {j: t.encoding for j, t in treatments.items() if t.encoding is not None}
        if not left_out and all(encoding.kind == NUMBER for encoding in encoded.values()):
            return
        if not any(encoding.role == FEATURE for encoding in encoded.values()) and left_out and not self._keep_numeric:
            hint = self._other_delimiter()
            if hint:
                self._refuse(f"the only column is not numeric. {hint}")
        self._features = [j for j in self._features if j not in left_out]
        self._covariate_columns = [j for j in self._covariate_columns if j not in left_out]
        self._encodings = encoded
        if self._name_column is None and self._wanted is None:
            names_samples = [j for j, treatment in left_out.items() if treatment.names_samples]
            for j in names_samples[:1]:
                self._name_column = j
                self.notes["sample_names"] = left_out.pop(j).column.name
        if self._wanted is None:  # columns of levels can also identify what samples belong to
            self._others += [*left_out, *(j for j, encoding in encoded.items() if encoding.kind == LEVELS)]
        words = [t.text.removeprefix("feature, ") for t in treatments.values()]
        shown = [f"{t.column.name} ({text})" for t, text in zip(treatments.values(), words, strict=True)
                 if t.encoding is not None and t.encoding.kind != NUMBER]  # fmt: skip
        if shown and self._known is None:
            self.notes["columns_encoded"] = f"{len(shown)} ({listed(shown)})"
        if left_out:
            self.notes["columns_ignored"] = f"{len(left_out)} ({listed([t.column.name for t in left_out.values()])})"
        self._set_features()
        if left_out:
            self._warn_of(left_out)

    def _describe(self, problems: Sequence[Treatment], columns: Sequence[Column]) -> str:
        """Return the message about columns that cannot be read as they are."""
        mixed = [t.column for t in problems if t.is_problem and not t.column.usable and t.reason == t.column.kind]
        parts = [describe_problems(columns, self._n_header_lines, wrong=mixed)] if mixed else []
        for treatment in problems:
            name = treatment.column.name
            if treatment.reason.startswith("dates whose"):
                example = (treatment.column.first_non_number or (0, ""))[1]
                parts.append(
                    f"column {name!r} has {treatment.reason}, such as {example!r}. State it (dates='day-first' or "
                    f"dates='month-first'), or remove the column (drop={name!r})."
                )
            elif treatment.reason == "dates":
                parts.append(f"the covariate {name!r} has dates. Read them as days (dates=True), or omit the covariate.")
            elif not any(treatment.column is column for column in mixed):
                parts.append(f"column {name!r} cannot be read as categories: {treatment.reason}.")
        return " ".join(parts)

    def _refuse(self, problem: str) -> None:
        """Raise the error for columns that cannot be read."""
        raise DataFileError(problem.removeprefix(f"{self.path}: "), self.path)

    def _warn_of(self, left_out: dict[int, Treatment]) -> None:
        """Warn of columns that are left out, with the reasons; with ``keep_numeric``, of those that could be encoded."""
        shown, remedy = [f"{t.column.name!r} ({t.reason})" for t in left_out.values()], ""
        if self._keep_numeric:
            usable = [treatment_of(treatment.column) for treatment in left_out.values()]
            shown = [f"{t.column.name!r} ({t.text.removeprefix('feature, ')})" for t in usable if t.encoding is not None]
            if not shown:
                return
            remedy = " They can carry information. Without keep_numeric=True they are encoded."
        elif any(treatment.reason == "dates" for treatment in left_out.values()):
            remedy = " Read dates as days with dates=True."
        are = "column is" if len(shown) == 1 else "columns are"
        ignored = "ignored because of keep_numeric=True" if self._keep_numeric else "left out"
        warnings.warn(f"{len(shown)} {are} {ignored}: {listed(shown)}.{remedy}", UserWarning, stacklevel=2)

    def _other_delimiter(self) -> str:
        """Return sentences about the delimiter if the name of the only column contains another one; "" otherwise."""
        if self.delimiter is None or self._n_columns != 1 or not self._column_names:
            return ""
        name = self._column_names[0]
        mark = next((mark for mark in NAMES if mark in name and mark != self.delimiter), None)
        if mark is None:
            return ""
        shown = name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 1]}…"
        return f"The file has one column named {shown!r}. Is the delimiter a {NAMES[mark]}? Set delimiter={mark!r}."

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
            raise DataFileError(
                f"the columns {several} could all be the labels. Set label=NAME.", self.path, line=self._name_line
            )
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
            raise DataFileError(message, self.path, line=self._name_line)
        if names is None:
            raise DataFileError(
                f"{option}={column!r}: the columns have no names. Pass a position.", self.path, line=self._name_line
            )
        positions = [j for j, name in enumerate(names) if name == column]
        if len(positions) != 1:
            hint = self._other_delimiter() or suggest_names(str(column), names)
            problem = "two columns have this name." if positions else f"column not found. {hint}"
            raise DataFileError(f"{option}={column!r}: {problem}", self.path, line=self._name_line)
        return positions[0]

    # Values

    def _collect(
        self, batches: Iterator[Any], dtype: np.dtype, progress: Progress | None, total: int | None = None
    ) -> Iterator[np.ndarray]:
        """Yield the features of each batch, and collect everything else."""
        labels: list[np.ndarray | PackedStrings] = []
        names: list[PackedStrings] = []
        groups: list[PackedStrings] = []
        weights: list[np.ndarray] = []
        covariates: list[np.ndarray] = []
        unknown: dict[str, dict[str, int]] = {}
        coded = {j: Codes() for j in self._others}
        n_seen = n_kept = 0
        for batch in batches:
            keep = np.arange(batch.num_rows)

            def column(j: int, batch: Any = batch) -> Any:
                return batch.column(self._position_in_batch[j])

            if self._label_column is not None:
                values, absent = _labels_in(self._plain(self._label_column, column(self._label_column)))
                if absent.any() and self._missing_labels != "drop":
                    self._raise_missing_label(n_seen + int(np.argmax(absent)))
                keep = np.flatnonzero(~absent)
                labels.append(
                    values[keep] if isinstance(values, np.ndarray) else PackedStrings.pack(values[i] for i in keep.tolist())
                )
            for texts, j in ((names, self._name_column), (groups, self._group_column)):
                if j is not None:
                    found = column(j).to_pylist()
                    texts.append(PackedStrings.pack("" if found[i] is None else str(found[i]) for i in keep.tolist()))
            for j, codes in coded.items():
                codes.add(column(j), keep)
            if self._weight_column is not None:
                weights.append(self._encoded(self._weight_column, column(self._weight_column), unknown)[keep, 0])
            if self._covariate_columns:
                covariates.append(np.hstack([self._encoded(j, column(j), unknown)[keep] for j in self._covariate_columns]))
            block = self._block([column(j) for j in self._features], dtype, unknown)
            dtype = block.dtype
            n_seen, n_kept = n_seen + batch.num_rows, n_kept + len(keep)
            self._require_string_memory(labels, "labels")
            self._require_string_memory(names, "sample names")
            self._require_string_memory(groups, "sample groups")
            if len(keep):
                yield block if len(keep) == batch.num_rows else block[keep]
            if progress is not None:
                progress(n_seen, total, "reading samples")
        warn_of_unknown(unknown, str(self.path))
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
        if weights:
            self.sample_weight = self._checked_weight(np.concatenate(weights))
        if covariates:
            self.covariates = self._checked_covariates(np.vstack(covariates))
        self.other_columns = {self._name(j): codes.values for j, codes in coded.items() if codes.repeat}

    def _block(self, columns: Sequence[Any], dtype: np.dtype, unknown: dict[str, dict[str, int]]) -> np.ndarray:
        """Return the features of a batch. Integers become floats if values are missing."""
        encoded = any(self._encodings[j].kind != NUMBER for j in self._features)
        if dtype.kind != "f" and (encoded or any(column.null_count for column in columns)):
            self.dtype = dtype = np.dtype(np.float64)
        n_samples = len(columns[0])
        block = np.empty((n_samples, int(self._ends[-1])), dtype=dtype)
        start = 0
        for j, column, end in zip(self._features, columns, self._ends.tolist(), strict=True):
            block[:, start:end] = self._encoded(j, column, unknown)
            start = end
        return block

    def _encoded(self, j: int, column: Any, unknown: dict[str, dict[str, int]]) -> np.ndarray:
        """Return the features of a column of a batch, of shape (n_samples, n_features)."""
        encoding = self._encodings.get(j)
        if (encoding is None or encoding.kind == NUMBER) and not is_text(column.type) and str(column.type) != "bool":
            values: np.ndarray = column.to_numpy(zero_copy_only=False)[:, None]  # in its own type
            return values
        try:
            return (encoding or ColumnEncoding("")).encode(column, self._numbers, unknown)
        except ValueError as error:
            raise DataFileError(f"column {self._name(j)!r} cannot be read ({error}).", self.path) from error

    def _plain(self, j: int, column: Any) -> Any:
        """Return a column, with the marks of numbers in text replaced if it has any."""
        return self._numbers.plain(column) if j in self._as_text and is_text(column.type) else column

    def _checked_weight(self, weight: np.ndarray) -> np.ndarray:
        """Return the sample weights. Raises if one is missing or negative."""
        weight = weight.astype(np.float64)
        wrong = ~(np.isfinite(weight) & (weight >= 0.0))
        if wrong.any():
            raise DataFileError(
                f"the weight in column {self._weight!r} is missing, negative or infinite for {int(wrong.sum())} of "
                f"{len(weight)} samples. The first is sample {int(np.argmax(wrong))}. Correct the weights.",
                self.path,
            )
        return weight

    def _checked_covariates(self, values: np.ndarray) -> Covariates:
        """Return the covariates. Raises if one is missing."""
        own = [self._encodings[j] for j in self._covariate_columns]
        names = tuple(name for encoding in own for name in encoding.names)
        columns = [encoding.column for encoding in own for _ in encoding.names]
        absent = ~np.isfinite(values)
        if absent.any():
            k = int(np.argmax(absent.any(axis=0)))
            raise DataFileError(
                f"the covariate {columns[k]!r} is missing or infinite for {int(absent[:, k].sum())} of {len(values)} samples. "
                f"The first is sample {int(np.argmax(absent[:, k]))}. Complete the column, or drop these samples.",
                self.path,
            )
        return Covariates(values, names)

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


def check_decimal(decimal: str | None) -> str | None:
    """Return a stated decimal mark. Raises ``ValueError`` for anything but a point, a comma or None."""
    if decimal is not None and decimal not in DECIMALS:
        raise ValueError(f"decimal={decimal!r} must be '.' or ','.")
    return decimal


def is_real(kind: Any) -> bool:
    """Return True for a pyarrow type of numbers."""
    return any(str(kind).startswith(name) for name in ("int", "uint", "float", "double", "halffloat", "decimal"))


def _labels_in(column: Any) -> tuple[np.ndarray | list[str], np.ndarray]:
    """Return the labels of a batch, as numbers if the column is numeric, and a mask of missing labels."""
    if is_real(column.type) and not str(column.type).startswith("decimal"):
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
