"""``coterie predict``: a saved model on data."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from coterie.cli.data import DataOptions, DataPath
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

    The data must have the features that the model was trained on, in the same order.

    Examples:
        coterie predict results new.svm -o predictions.csv
        coterie predict model.coterie genes.csv --label diagnosis --json
    """
    from coterie.persistence import load
    from coterie.report.folder import MODEL

    estimator = load(model / MODEL if model.is_dir() else model)
    if not hasattr(estimator, "predict"):
        raise ValueError(f"{model} holds a {type(estimator).__name__}, which selects features but does not predict.")
    dataset = options.open(data, voice)
    check_names(estimator, dataset, data)
    rows, names = _table(estimator, dataset)
    score = _score(estimator, dataset, voice)
    if output is not None:
        from coterie.files import new_file

        with new_file(output) as partial, partial.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
            _write(file, names, rows)
        voice.show(f"Written to {output}: {len(rows):,} predictions.")
    elif not voice.json:
        _write(sys.stdout, names, rows)
    words = "R²" if hasattr(estimator, "coef_") and not hasattr(estimator, "classes_") else "accuracy"
    if score is not None:
        voice.note(f"{words}: {score:.4f}")
    predictions = [dict(zip(names, row, strict=True)) for row in rows]
    voice.result({"model": str(model), "data": str(data), "score": score, "predictions": predictions})


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


def _table(estimator: Any, dataset: Dataset) -> tuple[list[list[Any]], list[str]]:
    """Rows of (sample, prediction, decision values), and the names of the columns."""
    import numpy as np

    source = dataset.source
    predictions = estimator.predict(source)
    samples = dataset.sample_names if dataset.sample_names is not None else range(len(predictions))
    columns: list[Any] = [[_plain(s) for s in samples], [_plain(p) for p in predictions]]
    names = ["sample", "prediction"]
    if hasattr(estimator, "decision_function"):
        decision = np.atleast_2d(estimator.decision_function(source).T)
        labels = [""] if len(decision) == 1 else [f" {label}" for label in estimator.classes_]
        names += [f"decision{label}" for label in labels]
        columns += decision.tolist()
    return [list(row) for row in zip(*columns, strict=True)], names


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


def _write(file: TextIO, names: list[str], rows: list[list[Any]]) -> None:
    writer = csv.writer(file)
    writer.writerow(names)
    writer.writerows([[repr(cell) if isinstance(cell, float) else cell for cell in row] for row in rows])


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value if isinstance(value, (int, float)) else str(value)
