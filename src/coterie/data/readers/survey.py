"""Summaries of the columns of a table, numeric or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from coterie.data.readers.columns import Column
from coterie.data.readers.formats import FORMATS
from coterie.data.readers.reader import is_missing


class TableSurvey(NamedTuple):
    """Summaries of all columns, of the labels and of the sample groups; and the (group, label) text of the samples."""

    columns: list[Column]
    label: Column | None
    groups: Column | None
    pairs: list[tuple[str, str]]


def survey_table(format: str, path: Path, **options: Any) -> TableSurvey:
    """Return summaries of the columns of a table, numeric or not. Samples without a group or label are not in the pairs."""
    kind: Any = FORMATS[format].load()

    class SurveyReader(kind):
        """Reader that accepts columns of any kind."""

        def _check_kinds(self, doubtful: bool) -> None:
            """Accept all columns."""

    reader = SurveyReader(path, **options)
    try:
        columns = reader.survey(values=True)
        label, groups, pairs = reader._label_column, reader._group_column, list[tuple[str, str]]()
        if groups is not None:
            wanted = [groups] if label is None else [groups, label]
            for batch in reader._raw_batches(wanted):
                rows = zip(*(batch.column(place).to_pylist() for place in (0, len(wanted) - 1)), strict=True)
                pairs += [(str(group), str(text)) for group, text in rows if not (is_missing(group) or is_missing(text))]
    finally:
        reader.close()
    return TableSurvey(columns, None if label is None else columns[label], None if groups is None else columns[groups], pairs)
