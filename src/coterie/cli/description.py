"""Facts that ``coterie info`` shows about columns, obs, layers and arrays of a file, and candidates for labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.bounds import DataFileError, open_regular
from coterie.cli.data import DataOptions
from coterie.cli.options import as_options
from coterie.data.readers.columns import listed

if TYPE_CHECKING:
    from coterie.data import Dataset

# Largest number of distinct values of a column that may be class labels.
_MAX_CLASSES = 20
# Notes of readers about the text of a table.
_DIALECT = ("delimiter", "decimal_mark", "thousands_separators", "sheet")
# Number of values of dense data up to which info looks for cautions, which takes two passes.
_MAX_VALUES = 10**9


def format_of(path: Path, options: DataOptions) -> str:
    """Return the format of a file; empty for a folder or a missing file."""
    from coterie.data.readers.formats import detect_format, resolve

    file = resolve(path)
    if not file.is_file():
        return ""
    return options.format or detect_format(file)


def table_facts(path: Path, kind: str, options: DataOptions) -> dict[str, Any]:
    """Return facts about a table with columns of any type; ``column table`` has one row per column."""
    import numpy as np

    from coterie.data.readers.formats import resolve
    from coterie.data.readers.survey import survey_table

    arguments = {name: value for name, value in options.arguments().items() if name not in ("format", "impute")}
    survey = survey_table(kind, resolve(path), **arguments)
    found, label, groups = survey.columns, survey.label, survey.groups
    columns = [{**_column(column), "use": use} for column, use in zip(found, survey.uses, strict=True)]
    features = survey.features
    incomplete = [column for column in features if column.n_missing and column.usable]
    left_out = [column.name for column, use in zip(found, survey.uses, strict=True) if use.startswith("left out")]
    facts: dict[str, Any] = {"samples": found[0].n_samples, "columns": len(found), "features": len(features)}
    facts["feature names"] = listed([column.name for column in features], 5) or "none"
    facts |= {name.replace("_", " "): value for name, value in survey.notes.items() if name in _DIALECT}
    if left_out:
        facts["columns left out"] = f"{len(left_out)} ({listed(left_out)})"
    if survey.problems:
        facts["problem"] = as_options(" ".join(survey.problems))
    if incomplete:
        facts["features with missing values"] = f"{len(incomplete)} ({listed([column.name for column in incomplete])})"
    facts["labels"] = "none" if label is None else f"{label.name}: {_summary(_column(label))}"
    if label is None:
        facts["candidates for labels"] = candidates(columns, found[0].n_samples)
    if survey.pairs and groups is not None:
        texts = np.array(survey.pairs)
        facts |= group_facts(texts[:, 0], None if label is None else texts[:, 1])
    words = ["--label", "NAME" if label is None else label.name]
    words += [] if groups is None else ["--sample-groups", groups.name]
    words += ["--impute", "median"] * bool(incomplete)
    facts["for instance"] = " ".join(
        ["coterie", "discover", str(path), *(f"'{word}'" if " " in word else word for word in words)]
    )
    return {**facts, "column table": columns}


def group_facts(groups: Any, labels: Any) -> dict[str, Any]:
    """Return the number of sample groups, their sizes, and whether the labels vary within them; nothing without groups."""
    import numpy as np

    from coterie.inputs.sample_groups import is_constant_within

    if groups is None:
        return {}
    _, codes, sizes = np.unique(groups.astype(str), return_inverse=True, return_counts=True)
    smallest, largest = int(sizes.min()), int(sizes.max())
    shown = f"{smallest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"
    facts: dict[str, Any] = {"sample groups": f"{len(sizes):,}, with {shown} sample{'s' * (largest > 1)} each"}
    if labels is not None:
        n_constant = int(is_constant_within(np.asarray(labels), codes).sum())
        facts["labels within sample groups"] = (
            "equal in all groups; permuted between groups"
            if n_constant == len(sizes)
            else "vary in all groups; permuted within groups"
            if n_constant == 0
            else f"equal in {n_constant:,} of {len(sizes):,} groups; permuted between those, and within the others"
        )
    return facts


def table_cautions(path: Path, options: DataOptions) -> dict[str, Any]:
    """Return the cautions about the features of a table; nothing if they cannot be read."""
    from dataclasses import replace

    from coterie.cli.output import Console

    numeric = replace(options, impute=options.impute or "median")
    try:
        return caution_facts(
            numeric.open(path, Console(quiet=True), allow_missing=True, adjusts=True, validates=True, weighs=True)
        )
    except (TypeError, ValueError):  # labels are missing, or no column is numeric
        return {}


def caution_facts(dataset: Dataset) -> dict[str, Any]:
    """Return the cautions about data as ``coterie discover`` would find them, with kind and text; nothing without any."""
    from coterie.cautions import AboutSamples, find_cautions
    from coterie.inputs.targets import task_of

    n_samples, n_features = dataset.shape
    if not dataset.source.is_sparse and n_samples * n_features > _MAX_VALUES:
        return {}
    about = AboutSamples(
        dataset.y,
        None if dataset.y is None else task_of(dataset.y),
        groups=dataset.sample_groups,
        covariates=dataset.covariates,
        columns=dataset.other_columns,
        is_genetic="chromosome" in dataset.feature_info,
    )
    found = find_cautions(dataset.source, about)
    return {"cautions": [caution.to_dict() for caution in found]} if found else {}


def annotated_facts(path: Path) -> dict[str, Any]:
    """Return facts about the obs columns and layers of an .h5ad file."""
    from coterie.data.readers.h5ad import H5adReader

    reader = H5adReader(path)
    try:
        obs, layers = reader.annotation()
    finally:
        reader.close()
    columns = [_column(column) for column in obs]
    n_samples = obs[0].n_samples if obs else 0
    return {
        "layers": ", ".join(layers) or "none",
        "candidates for labels": candidates(columns, n_samples),
        "column table": columns,
    }


def array_facts(path: Path) -> dict[str, Any]:
    """Return the names of the arrays in an .npz file, any of which may be the labels."""
    import zipfile

    with open_regular(path) as file:
        try:
            names = zipfile.ZipFile(file).namelist()
        except (zipfile.BadZipFile, ValueError) as error:
            raise DataFileError(f"The file is damaged or not an .npz file ({error}).", path) from error
    return {"arrays": listed([name.removesuffix(".npy") for name in names], 20)}


def _column(column: Any) -> dict[str, Any]:
    """Return the facts about a column, for JSON."""
    facts: dict[str, Any] = {"name": column.name, "kind": column.kind, "missing": column.n_missing}
    facts["distinct"] = column.n_distinct
    if column.lowest is not None and column.usable:
        facts |= {"lowest": column.lowest, "highest": column.highest}
    elif column.n_distinct is not None and column.n_distinct <= _MAX_CLASSES and len(column.counts) == 1:
        facts["values"] = sorted(str(value) for value in column.values)
    elif column.first_non_number is not None:
        facts["example"] = column.first_non_number[1]
    return facts


def _summary(column: dict[str, Any]) -> str:
    distinct = "more than 1,000" if column["distinct"] is None else f"{column['distinct']:,}"
    ends = f" from {column['lowest']:g} to {column['highest']:g}" if "lowest" in column else ""
    return f"{column['kind']}{ends}, {distinct} distinct values, {column['missing']:,} missing"


def column_rows(columns: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return one row per column for the terminal: name, kind, missing values, distinct values, examples and, if known, use."""
    rows: list[tuple[str, ...]] = []
    for column in columns:
        shown = f"{column['lowest']:g} … {column['highest']:g}" if "lowest" in column else ""
        if "values" in column:
            shown = listed([value if len(value) <= 20 else f"{value[:19]}…" for value in column["values"]], 4)
        elif "example" in column:
            shown = f"such as {column['example'][:40]}"
        distinct = "> 1,000" if column["distinct"] is None else f"{column['distinct']:,}"
        use = (column["use"],) if "use" in column else ()
        rows.append((column["name"], column["kind"], f"{column['missing']:,}", distinct, shown, *use))
    return rows


def candidates(columns: list[dict[str, Any]], n_samples: int) -> str:
    """Return the columns that may be labels: class labels (text before numbers, few classes first), or numeric targets."""
    few = [
        column
        for column in columns
        if column["distinct"] is not None
        and 2 <= column["distinct"] <= min(_MAX_CLASSES, max(2, n_samples // 2))
        and column["kind"] in ("text", "categories", "booleans", "numbers")
    ]
    few.sort(key=lambda column: (column["kind"] in ("numbers", "booleans"), column["distinct"]))
    n_numeric = sum(column["kind"] == "numbers" and column not in few for column in columns)
    classes = [f"{column['name']} ({column['distinct']} classes)" for column in few]
    numbers = [f"{n_numeric:,} numeric columns for regression"] if n_numeric else []
    return "; ".join([*([listed(classes, 10)] if classes else []), *numbers]) or "none"
