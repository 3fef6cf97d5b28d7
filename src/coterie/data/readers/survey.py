"""Summaries of the columns of a table, numeric or not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from coterie.data.readers.columns import Column
from coterie.data.readers.formats import FORMATS
from coterie.data.readers.reader import is_missing


class TableSurvey(NamedTuple):
    """Summaries of the columns of a table, and their treatment in a discovery.

    Attributes
    ----------
    columns : list of Column
        Summaries of all columns.
    uses : list of str
        Use of each column: its role, its encoding, or the reason why it is left out or refused.
    features : list of Column
        Columns that are features.
    label, groups : Column or None
        Labels and sample groups.
    pairs : list of (str, str)
        Text of sample group and label of the samples.
    notes : dict
        Notes of the reader, such as the delimiter.
    problems : list of str
        Messages about columns that a discovery refuses.
    """

    columns: list[Column]
    uses: list[str]
    features: list[Column]
    label: Column | None
    groups: Column | None
    pairs: list[tuple[str, str]]
    notes: dict[str, Any]
    problems: list[str]


def survey_table(format: str, path: Path, **options: Any) -> TableSurvey:
    """Return summaries of the columns of a table, numeric or not. Samples without a group or label are not in the pairs."""
    kind: Any = FORMATS[format].load()

    class SurveyReader(kind):
        """Reader that accepts columns of any kind."""

        problems: list[str]

        def _plan(self, doubtful: bool) -> None:
            """Decide how all columns are encoded."""
            self.problems = []
            super()._plan(True)

        def _refuse(self, problem: str) -> None:
            """Keep the message."""
            self.problems.append(problem)

        def _warn_of(self, left_out: Any) -> None:
            """Raise no warning, because the uses state the columns that are left out."""

        def _set_features(self) -> None:
            """Accept tables of which no column is a feature."""
            if self._features:
                super()._set_features()

    reader = SurveyReader(path, **options)
    try:
        columns = reader.survey(values=True, numbers=reader._numbers)
        for column in columns:
            column.settle(reader._numbers)
        label, groups, pairs = reader._label_column, reader._group_column, list[tuple[str, str]]()
        if groups is not None:
            wanted = [groups] if label is None else [groups, label]
            for batch in reader._raw_batches(wanted):
                rows = zip(*(batch.column(place).to_pylist() for place in (0, len(wanted) - 1)), strict=True)
                pairs += [(str(group), str(text)) for group, text in rows if not (is_missing(group) or is_missing(text))]
    finally:
        reader.close()
    uses = _uses(reader, columns)
    known = [None if j is None else columns[j] for j in (label, groups)]
    features = [
        columns[j] for j in reader._features if j not in reader.treatments or reader.treatments[j].encoding is not None
    ]
    return TableSurvey(columns, uses, features, known[0], known[1], pairs, dict(reader.notes), reader.problems)


def _uses(reader: Any, columns: list[Column]) -> list[str]:
    """Return the use of each column."""
    roles = {
        reader._label_column: "label",
        reader._name_column: "sample names",
        reader._group_column: "sample groups",
        reader._weight_column: "sample weights",
    }
    found = []
    for j, column in enumerate(columns):
        treatment = reader.treatments.get(j)
        if treatment is None or j == reader._name_column:
            found.append(roles.get(j, "left out: drop"))
        else:
            found.append(replace(treatment, column=column).text)
    return found
