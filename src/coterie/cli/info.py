"""``coterie info``: content of a file or folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from coterie.cli.data import TABLES, DataOptions
from coterie.cli.options import option
from coterie.cli.output import Console

_SHOWN_CLASSES = 10
# Number of columns of a table that are listed; JSON has all.
_SHOWN_COLUMNS = 40
_COLUMNS = "column table"
_CAUTIONS = "cautions"


def info(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="Data in any format, a store, a model, or a result folder.", show_default=False),
    ],
    *,
    check: Annotated[bool, option(None, "Read the whole store and verify its checksums.", "--check", common=True)] = False,
    options: DataOptions,
    console: Console,
) -> None:
    """Describe a data file, a store, a model or a result folder.

    For tables and for the obs of AnnData files, info lists every column with its type and number of missing values, and
    the columns that may be labels. For tables it also states what discover would do with each column. Tables that discover
    rejects are described, too.

    With labels, info warns of samples that belong together, identifiers, leaks, relatives and population structure.

    Examples:
        - coterie info data.svm.gz
        - coterie info patients.csv
        - coterie info cells.h5ad --json
        - coterie info news20.store --check
        - coterie info results
    """
    if not path.exists() and not Path(f"{path}.bed").exists():
        raise FileNotFoundError(f"File or folder {path} not found. Check the path.")
    facts = _facts(path, check, options)
    table = Table(show_header=False, box=None)
    for name, value in facts.items():
        if name not in (_COLUMNS, _CAUTIONS):
            table.add_row(name.replace("_", " "), Text(_text(value)))
    console.show(table)
    if facts.get(_COLUMNS):
        _show_columns(facts[_COLUMNS], console)
    for caution in facts.get(_CAUTIONS, ()):
        console.show(Text(f"Caution ({caution['kind']}): {caution['text']}"))
    console.result(facts)


def _show_columns(columns: list[dict[str, Any]], console: Console) -> None:
    from coterie.cli.description import column_rows

    table = Table("column", "kind")
    for name in ("missing", "distinct"):
        table.add_column(name, justify="right")
    table.add_column("values", overflow="fold")
    if "use" in columns[0]:
        table.add_column("in discover", overflow="fold")
    for row in column_rows(columns[:_SHOWN_COLUMNS]):
        table.add_row(*map(Text, row))
    console.show(table)
    if len(columns) > _SHOWN_COLUMNS:
        console.show(f"… and {len(columns) - _SHOWN_COLUMNS:,} more columns. --json lists all.")


def _facts(path: Path, check: bool, options: DataOptions) -> dict[str, Any]:
    from coterie.persistence.archive import is_model
    from coterie.report.folder import RESULT, read_result

    if path.is_dir() and (path / RESULT).exists():
        content = read_result(path)
        read_result(path, model=True)  # raises an error if the model is damaged
        return {
            "kind": "result of coterie discover",
            **{k: content[k] for k in ("written_by", "written_at", "task", "estimator", "interrupted")},
            **{f"data {k}": v for k, v in content["data"].items()},
            **content["summary"],
        }
    if path.is_file() and is_model(path):
        return _model_facts(path)
    if check:
        from coterie.data import check_store

        check_store(path)
    return {**_data_facts(path, options), **({"checksums": "correct"} if check else {})}


def _model_facts(path: Path) -> dict[str, Any]:
    from coterie.persistence import load

    model = load(path)
    fitted = hasattr(model, "n_features_in_")
    facts = {"kind": "model", "class": type(model).__name__, "fitted": fitted}
    if fitted:
        facts["features"] = model.n_features_in_
        groups = getattr(model, "groups_", None)
        facts |= {} if groups is None else {"groups": len(groups), "features in groups": sum(len(g) for g in groups)}
        facts |= {"classes": model.classes_.tolist()} if hasattr(model, "classes_") else {}
    return {**facts, **{f"parameter {k}": v for k, v in model.get_params(deep=False).items()}}


def _data_facts(path: Path, options: DataOptions) -> dict[str, Any]:
    import numpy as np

    from coterie.cli.description import (
        annotated_facts,
        array_facts,
        caution_facts,
        format_of,
        group_facts,
        table_cautions,
        table_facts,
    )

    kind = format_of(path, options)
    if kind in TABLES:
        return {"kind": "data", "format": kind, **table_facts(path, kind, options), **table_cautions(path, options)}
    more = annotated_facts(path) if kind == "h5ad" else array_facts(path) if kind == "npz" else {}
    dataset = options.open(path, Console(quiet=True), adjusts=True, validates=True, weighs=True)
    source = dataset.source
    n_samples, n_features = source.shape
    facts: dict[str, Any] = {"kind": "data", "format": dataset.format, "samples": n_samples, "features": n_features}
    block = source.block(0, min(1, n_features))
    facts["values"] = str(block.dtype)
    if source.is_sparse:
        nonzeros = sum(columns.nnz for _, columns in source.blocks(1 << 20))  # type: ignore[union-attr]  # blocks of a sparse source are sparse
        facts |= {"nonzeros": nonzeros, "density": nonzeros / max(1, n_samples * n_features)}
    else:
        facts["density"] = "dense"
    names = source.feature_names
    facts["feature names"] = (
        "none"
        if names is None
        else ", ".join(str(names[j]) for j in range(min(5, n_features))) + (", …" if n_features > 5 else "")
    )
    if dataset.y is None:
        facts["labels"] = "none"
    else:
        values, counts = np.unique(dataset.y.astype(str) if dataset.y.dtype.kind == "O" else dataset.y, return_counts=True)
        if dataset.y.dtype.kind == "f" and len(values) > _SHOWN_CLASSES:
            facts["labels"] = f"{values[0]:g} to {values[-1]:g}"
        else:
            shown = [f"{v}: {c:,}" for v, c in zip(values[:_SHOWN_CLASSES], counts, strict=False)]
            facts["labels"] = ", ".join(shown) + (f", … ({len(values)} classes)" if len(values) > _SHOWN_CLASSES else "")
    facts |= group_facts(dataset.sample_groups, dataset.y)
    if kind == "plink":  # the term for labels in genetics
        facts["phenotype"] = facts.pop("labels")
    return {**facts, **dataset.notes, **more, **caution_facts(dataset)}


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
