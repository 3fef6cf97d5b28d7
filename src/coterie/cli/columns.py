"""Targets in several columns: several labels, or times with events. Data are opened with the first one as the label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from coterie.cli.data import TABLES, DataOptions

if TYPE_CHECKING:
    import numpy as np

    from coterie.data import Dataset
    from coterie.data.encoding import TableEncoding


def opening_options(options: DataOptions, path: Path, names: Sequence[str] | None = None) -> DataOptions:
    """Return the options that open the data with the first column as label, and without the others as features.

    ``names`` are the columns, by default the labels of the options.
    """
    names = (options.labels or []) if names is None else names
    if len(names) < 2:
        return options
    repeated = next((name for name in names if list(names).count(name) > 1), None)
    if repeated is not None:
        raise ValueError(f"Column {repeated!r} is named twice. Name each column of the target once.")
    from coterie.data.readers.formats import detect_format, resolve

    file = resolve(path)
    kind = options.format or (detect_format(file) if file.is_file() else "")
    others = list(names[1:]) if kind in TABLES else []
    return replace(options, labels=list(names[:1]), drop=[*(options.drop or []), *others])


def model_columns(
    estimator: Any,
    features: np.ndarray,
    path: Path,
    options: DataOptions,
    others: Sequence[str] = (),
    block: str | None = None,
) -> dict[str, Any]:
    """Return the argument ``columns`` for a table: features of a model and some others, and no more.

    They are columns by name, or with the encoding of the training data. One of several matrices (``block``) is read in full
    unless it has an encoding.
    """
    from coterie.data.readers.formats import detect_format, resolve
    from coterie.inputs.naming import names_at
    from coterie.inputs.opening import NamedColumns

    known = names_at(estimator, features)
    file = resolve(path)
    if known is None or not file.is_file():  # opening the file reports the error
        return {}
    kind = options.format or detect_format(file)
    encoding: TableEncoding | None = getattr(estimator, "encoding_", None)
    if block is not None:
        own = NamedColumns(encoding=encoding, features=known).of_block(block)
        if own is None:
            return {}
        encoding, known = own.encoding, list(own.features or ())
    wanted = [*known, *others]
    if kind == "h5ad" and encoding is not None:
        return {"columns": encoding.reading(())}
    if kind not in TABLES:
        return {}
    return {"columns": wanted if encoding is None else encoding.reading(wanted)}


def other_columns(dataset: Dataset, names: Sequence[str], path: Path, options: DataOptions) -> dict[str, np.ndarray]:
    """Return the values of all columns but the first, with which the data were opened."""
    found = {}
    for name in names[1:]:
        found[name] = _values(name, names[0], dataset, path, options)
        if len(found[name]) != dataset.shape[0]:
            raise ValueError(
                f"{name} has {len(found[name])} values, but the data have {dataset.shape[0]} samples with {names[0]}. "
                f"Complete both, or remove the samples without {names[0]}."
            )
    return found


def with_labels(dataset: Dataset, path: Path, options: DataOptions) -> Dataset:
    """Return data that were opened with the first of several labels, with all of them."""
    import numpy as np

    from coterie.inputs.several_targets import TargetTable

    names = options.labels or []
    if len(names) < 2:
        return dataset
    used = opening_options(options, path)
    columns = {names[0]: np.asarray(dataset.y), **other_columns(dataset, names, path, used)}
    others = {name: codes for name, codes in dataset.other_columns.items() if name not in columns}
    table = cast("np.ndarray", TargetTable(columns))  # Targets are read as a frame, whose columns have types of their own.
    return replace(dataset, y=table, other_columns=others)


def _values(name: str, first: str, dataset: Dataset, path: Path, options: DataOptions) -> np.ndarray:
    """Return the values of a column, read as labels."""
    from coterie.data import open_features
    from coterie.data.errors import with_scheme
    from coterie.data.readers.reader import labels_in_file

    if dataset.format == "store":
        return labels_in_file(name, path)
    other: tuple[str, ...] = (
        "label", "sample_groups", "drop", "impute", "keep_numeric", "covariates", "covariate_names", "categories", "weight",
    )  # fmt: skip
    arguments: dict[str, Any] = {key: value for key, value in options.arguments().items() if key not in other}
    if dataset.format in TABLES:
        arguments["columns"] = [first]  # reads no other features
    found = open_features(with_scheme(path), label=name, **arguments).y
    assert found is not None
    return found
