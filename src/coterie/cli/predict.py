"""``coterie predict``: a saved model on data."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.data import TABLES, DataOptions, DataPath
from coterie.cli.output import Output

if TYPE_CHECKING:
    from coterie.data import Dataset


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model file, or the folder of a discovery.", show_default=False)
    ],
    data: DataPath,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="CSV file for the predictions; standard output by default.", rich_help_panel="Output"
        ),
    ] = None,
    options: DataOptions,
    voice: Output,
) -> None:
    """Predict with a saved model: one line a sample, and the score where the data have labels.

    The data must have the features that the model was trained on, in the same order. Other columns of a table (dates, names,
    what was left out when the model was trained) are not looked at, and gaps are filled with what --impute found in the
    training data.

    Examples:
        coterie predict results new.svm -o predictions.csv
        coterie predict model.coterie genes.csv --label diagnosis --json
    """
    from coterie.files import claimed_files
    from coterie.persistence import load
    from coterie.report.folder import MODEL
    from coterie.report.table import write_csv, write_rows

    estimator = load(model / MODEL if model.is_dir() else model)
    if not hasattr(estimator, "predict"):
        raise ValueError(f"{model} holds a {type(estimator).__name__}, which selects features but does not predict.")
    if options.impute is not None:
        raise ValueError("--impute belongs to the training: a model trained with it fills the gaps of new data by itself.")
    with claimed_files(output):
        dataset = options.open(data, voice, gaps=hasattr(estimator, "fill_values_"), **_columns(estimator, data, options))
        check_names(estimator, dataset, data)
        columns, rows = _table(estimator, dataset)
        score = _score(estimator, dataset, voice)
        if output is not None:
            write_csv(output, rows, columns)
            voice.show(f"Written to {output}: {len(rows):,} predictions.")
    if output is None and not voice.json:
        table = io.StringIO()
        write_rows(table, rows, columns)
        voice.write(table.getvalue())
    words = "R²" if hasattr(estimator, "coef_") and not hasattr(estimator, "classes_") else "accuracy"
    if score is not None:
        voice.note(f"{words}: {score:.4f}")
    voice.result({"model": str(model), "data": str(data), "score": score, "predictions": rows})


def _columns(estimator: Any, path: Path, options: DataOptions) -> dict[str, Any]:
    """The columns of a table that the model knows by name: all others may hold anything."""
    from coterie.data.readers.detection import detect_format, resolve

    known = getattr(estimator, "feature_names_in_", None)
    file = resolve(path)
    if known is None or not file.is_file():  # opening it will tell
        return {}
    kind = options.format or detect_format(file)
    return {"columns": [str(name) for name in known]} if kind in TABLES else {}


def check_names(estimator: Any, dataset: Dataset, path: Path) -> None:
    """Raise when data with names are not those that the model knows."""
    known, names = getattr(estimator, "feature_names_in_", None), dataset.source.feature_names
    if dataset.source.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"{path} has {dataset.source.shape[1]:,} features, but the model was trained on {estimator.n_features_in_:,}."
        )
    if known is None or names is None:
        return
    for position, (theirs, ours) in enumerate(zip(names, known, strict=True)):
        if str(theirs) != str(ours):
            raise ValueError(
                f"{path} has {str(theirs)!r} where the model knows feature {position} as {str(ours)!r}; "
                "put the features in the order of the training data."
            )


def _table(estimator: Any, dataset: Dataset) -> tuple[list[str], list[dict[str, Any]]]:
    """The names of the columns, and a row a sample: its name, the prediction, decision values."""
    import numpy as np

    source = dataset.source
    predictions = estimator.predict(source)
    samples = dataset.sample_names if dataset.sample_names is not None else range(len(predictions))
    columns: dict[str, Any] = {"sample": [_plain(s) for s in samples], "prediction": [_plain(p) for p in predictions]}
    if hasattr(estimator, "decision_function"):
        decision = np.atleast_2d(estimator.decision_function(source).T)
        labels = [""] if len(decision) == 1 else [f" {label}" for label in estimator.classes_]
        columns |= {f"decision{label}": values for label, values in zip(labels, decision.tolist(), strict=True)}
    return list(columns), [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _score(estimator: Any, dataset: Dataset, voice: Output) -> float | None:
    """Score on data that have the labels of the model's kind."""
    if dataset.y is None or not hasattr(estimator, "score"):
        return None
    try:
        with voice.collecting_warnings():
            return float(estimator.score(dataset.source, dataset.y))
    except (TypeError, ValueError) as error:
        voice.note(f"No score: {error}")
        return None


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value if isinstance(value, (int, float)) else str(value)
