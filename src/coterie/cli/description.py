"""What ``coterie info`` says of what a file has besides features: columns, obs, layers, arrays; and which may be labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coterie.bounds import DataFileError, open_regular
from coterie.cli.data import DataOptions
from coterie.data.readers.columns import listed

# Different values up to which a column may be the labels of classes.
_MAX_CLASSES = 20


def format_of(path: Path, options: DataOptions) -> str:
    """The format of a file; empty for a folder, or where opening will tell."""
    from coterie.data.readers.formats import detect_format, resolve

    file = resolve(path)
    if not file.is_file():
        return ""
    return options.format or detect_format(file)


def table_facts(path: Path, kind: str, options: DataOptions) -> dict[str, Any]:
    """A table, whatever its columns hold; ``column table`` has a row a column."""
    from coterie.data.readers.formats import resolve
    from coterie.data.readers.tabular import table_columns

    arguments = {name: value for name, value in options.arguments().items() if name not in ("format", "impute")}
    found, label = table_columns(kind, resolve(path), **arguments)
    columns = [_column(column) for column in found]
    features = [column for column in found if column.usable and column is not label]
    gaps = [column for column in features if column.n_missing]
    others = [column for column in found if not column.usable and column is not label]
    facts: dict[str, Any] = {"samples": found[0].n_samples, "columns": len(found), "features": len(features)}
    facts["feature names"] = listed([column.name for column in features], 5) or "none"
    if others:
        facts["columns that are not numeric"] = f"{len(others)} ({listed([column.name for column in others])})"
    if gaps:
        facts["features with missing values"] = f"{len(gaps)} ({listed([column.name for column in gaps])})"
    facts["labels"] = "none" if label is None else f"{label.name}: {_in_words(_column(label))}"
    if label is None:
        facts["candidates for labels"] = candidates(columns, found[0].n_samples)
    wanted = [*(["--label", "NAME"] if label is None else ["--label", label.name])]
    wanted += ["--keep-numeric"] * bool(others) + ["--impute", "median"] * bool(gaps)
    facts["for instance"] = " ".join(["coterie", "discover", str(path), *(f"'{w}'" if " " in w else w for w in wanted)])
    return {**facts, "column table": columns}


def annotated_facts(path: Path) -> dict[str, Any]:
    """The obs columns and layers of an .h5ad file."""
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
    """The names of the arrays in an .npz file, any of which may be the labels."""
    import zipfile

    with open_regular(path) as file:
        try:
            names = zipfile.ZipFile(file).namelist()
        except (zipfile.BadZipFile, ValueError) as error:
            raise DataFileError(f"it is damaged or no .npz file ({error}).", path) from error
    return {"arrays": listed([name.removesuffix(".npy") for name in names], 20)}


def _column(column: Any) -> dict[str, Any]:
    """What is known of a column, for programs."""
    facts: dict[str, Any] = {"name": column.name, "kind": column.kind, "missing": column.n_missing}
    facts["distinct"] = column.n_distinct
    if column.lowest is not None and column.usable:
        facts |= {"lowest": column.lowest, "highest": column.highest}
    elif column.n_distinct is not None and column.n_distinct <= _MAX_CLASSES and len(column.counts) == 1:
        facts["values"] = sorted(str(value) for value in column.values)
    elif column.odd is not None:
        facts["example"] = column.odd[1]
    return facts


def _in_words(column: dict[str, Any]) -> str:
    distinct = "more than 1,000" if column["distinct"] is None else f"{column['distinct']:,}"
    ends = f" from {column['lowest']:g} to {column['highest']:g}" if "lowest" in column else ""
    return f"{column['kind']}{ends}, {distinct} different, {column['missing']:,} missing"


def column_rows(columns: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Columns for people: name, kind, missing, different values, and some of these."""
    rows: list[tuple[str, ...]] = []
    for column in columns:
        shown = f"{column['lowest']:g} … {column['highest']:g}" if "lowest" in column else ""
        if "values" in column:
            shown = listed([value if len(value) <= 20 else f"{value[:19]}…" for value in column["values"]], 4)
        elif "example" in column:
            shown = f"such as {column['example'][:40]}"
        distinct = "> 1,000" if column["distinct"] is None else f"{column['distinct']:,}"
        rows.append((column["name"], column["kind"], f"{column['missing']:,}", distinct, shown))
    return rows


def candidates(columns: list[dict[str, Any]], n_samples: int) -> str:
    """Columns that may be labels: of classes, words before numbers and few before many; or of a quantitative trait."""
    few = [
        column
        for column in columns
        if column["distinct"] is not None
        and 2 <= column["distinct"] <= min(_MAX_CLASSES, max(2, n_samples // 2))
        and column["kind"] in ("text", "categories", "booleans", "numbers")
    ]
    few.sort(key=lambda column: (column["kind"] in ("numbers", "booleans"), column["distinct"]))
    traits = sum(column["kind"] == "numbers" and column not in few for column in columns)
    words = [f"{column['name']} ({column['distinct']} classes)" for column in few]
    numbers = [f"{traits:,} numeric columns for a quantitative trait"] if traits else []
    return "; ".join([*([listed(words, 10)] if words else []), *numbers]) or "none"
