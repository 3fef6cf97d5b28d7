"""``coterie predict``: predictions of a saved model."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.blocks import BlockOptions
from coterie.cli.columns import model_columns, opening_options, with_labels
from coterie.cli.data import DataOptions, DataPath
from coterie.cli.offset import OffsetFile
from coterie.cli.options import option
from coterie.cli.output import Console
from coterie.cli.survival import SurvivalOptions

if TYPE_CHECKING:
    from coterie.data import Dataset
    from coterie.inputs.substitution import Substitutes


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file, or a result folder.", show_default=False)],
    data: DataPath,
    *,
    output: Annotated[
        Path | None,
        option(
            "Output", "CSV file for the predictions.", "--output -o", common=True, metavar="FILE", default="standard output"
        ),
    ] = None,
    at: Annotated[
        str | None,
        option(
            "Survival", "Times at which to predict the probability of survival, such as 1,3,5.", "--at", metavar="TIME,..."
        ),
    ] = None,
    missing: Annotated[
        str,
        option(
            "Data",
            "Treatment of features of the model that the data lack: error, or substitute. A substitute is another member of "
            "the group of the feature, which predicts it.",
            metavar="error|substitute",
        ),
    ] = "error",
    options: DataOptions,
    survival: SurvivalOptions,
    blocks: BlockOptions,
    offsets: OffsetFile,
    console: Console,
) -> None:
    """Predict with a saved model: one line per sample, and the score if the data have labels.

    A model of several labels has one prediction per label. The prediction of a survival model is the risk: the logarithm of
    the hazard relative to the baseline.

    If model and data have feature names, columns are matched by name. They may be in any order, and only the features that
    the model uses are required. With --missing substitute, other members of the groups take the place of absent features,
    and a note states which. Data without names must have all features of the training data, in the same order. If the
    model was trained with --impute, missing values are filled from the training data.

    Examples:
        - coterie predict results new.svm -o predictions.csv
        - coterie predict model.coterie genes.csv --label diagnosis --json
        - coterie predict results other-array.csv --missing substitute
    """
    import numpy as np

    from coterie.files import claimed_files
    from coterie.inputs.naming import AbsentFeaturesError
    from coterie.persistence import load
    from coterie.report.folder import MODEL
    from coterie.report.table import write_csv, write_rows

    estimator = load(model / MODEL if model.is_dir() else model)
    if not hasattr(estimator, "predict"):
        raise ValueError(
            f"{model} contains a {type(estimator).__name__}, which selects features but cannot predict. Use a model written "
            "by coterie discover."
        )
    if missing not in ("error", "substitute"):
        raise ValueError(f"--missing {missing} must be error or substitute.")
    substitutes = missing == "substitute"
    if options.impute is not None:
        raise ValueError(
            "--impute applies to training only. A model trained with --impute fills missing values itself. Remove --impute."
        )
    with claimed_files(output):
        others = [] if offsets.exposure is None else [offsets.exposure]
        read = estimator.prediction_features_
        if substitutes:
            read = np.union1d(read, estimator.groups_.members)
        columns_of = partial(model_columns, estimator, read)
        own = columns_of(data, options, others=others, block=blocks.name_of(data))
        with_times = survival.settle("auto", options.labels) == "survival"
        used = survival.data_options(options, data) if with_times else opening_options(options, data)
        dataset = used.open(
            data, console, adjusts=True, allow_missing=substitutes or hasattr(estimator, "fill_values_"), **own
        )
        dataset = survival.with_targets(dataset, data, used) if with_times else with_labels(dataset, data, options)
        dataset = blocks.joined(dataset, data, options, console, columns_of)
        known = _covariates(estimator, dataset) | offsets.for_prediction(estimator, dataset)
        found = None
        if substitutes:
            dataset, found = _substituted(estimator, dataset, console)
        try:
            columns, rows = _table(estimator, dataset, known, at)
        except AbsentFeaturesError as error:
            remedy = " Use --missing substitute to replace them by members of their groups." if error.has_substitutes else ""
            hint = "" if not blocks.block else f" DATA is the matrix {blocks.name_of(data)!r} here: --block-name renames it."
            raise ValueError(f"{error.problem}{hint}{remedy}") from error
        score = _score(estimator, dataset, known, console)
        if output is not None:
            write_csv(output, rows, columns)
            console.show(f"Written to {output}: {len(rows):,} predictions.")
    if output is None and not console.json:
        table = io.StringIO()
        write_rows(table, rows, columns)
        console.write(table.getvalue())
    if score is not None:
        console.note(f"{_score_name(estimator)}: {score:.4f}")
    about = {"model": str(model), "data": str(data), "score": score}
    console.result(about | ({} if found is None else {"missing": found.to_dict()}) | {"predictions": rows})


def _substituted(estimator: Any, dataset: Dataset, console: Console) -> tuple[Dataset, Substitutes]:
    """Return the data with substitutes for absent features, and print which."""
    from coterie import substituted

    new = substituted(estimator, dataset.source)
    console.note(f"--missing substitute: {new.substitutes!r}")
    return replace(dataset, source=new, feature_info={}), new.substitutes


def _table(estimator: Any, dataset: Dataset, known: dict[str, Any], at: str | None) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the names of the columns, and one row per sample: name, prediction, decision values, probabilities.

    ``at`` contains the times of the probabilities of survival.
    """
    import numpy as np

    source = dataset.source
    predictions = estimator.predict(source, **known)
    samples = dataset.sample_names if dataset.sample_names is not None else range(len(predictions))
    columns: dict[str, Any] = {"sample": [_plain(s) for s in samples]}
    if predictions.ndim == 2:
        targets = estimator.target_names_
        columns |= {f"prediction {name}": own.tolist() for name, own in zip(targets, predictions.T, strict=True)}
    else:
        columns["prediction"] = [_plain(p) for p in predictions]
    if hasattr(estimator, "decision_function"):
        decision = np.atleast_2d(estimator.decision_function(source, **known).T)
        labels = [""] if len(decision) == 1 else [f" {label}" for label in estimator.classes_]
        columns |= {f"decision{label}": values for label, values in zip(labels, decision.tolist(), strict=True)}
    if hasattr(estimator, "predict_proba"):
        probabilities = estimator.predict_proba(source, **known).T.tolist()
        columns |= {f"probability {label}": values for label, values in zip(estimator.classes_, probabilities, strict=True)}
    if at is not None:
        columns |= _survival(estimator, dataset, known, at)
    return list(columns), [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _survival(estimator: Any, dataset: Dataset, known: dict[str, Any], at: str) -> dict[str, Any]:
    """Return the probabilities of survival at some times as columns."""
    if not hasattr(estimator, "predict_survival_function"):
        raise ValueError(f"--at requires a survival model, but the model is a {type(estimator).__name__}. Remove --at.")
    try:
        times = [float(word) for word in at.split(",")]
    except ValueError as error:
        raise ValueError(f"--at {at} must be numbers separated by commas, such as 1,3,5.") from error
    names = getattr(dataset.y, "dtype", None)
    strata = dataset.y["stratum"] if dataset.y is not None and "stratum" in (getattr(names, "names", None) or ()) else None
    found = estimator.predict_survival_function(dataset.source, times, strata=strata, **known)
    return {f"survival {time:g}": values for time, values in zip(times, found.T.tolist(), strict=True)}


def _covariates(estimator: Any, dataset: Dataset) -> dict[str, Any]:
    """Return the argument ``covariates`` for a model that was fitted with covariates."""
    if not hasattr(estimator, "covariate_names_"):
        return {}
    if dataset.covariates is None:
        raise ValueError(
            f"The model was fitted with covariates ({', '.join(estimator.covariate_names_)}). "
            "Pass those of the new samples with --covar."
        )
    return {"covariates": dataset.covariates}


def _score(estimator: Any, dataset: Dataset, known: dict[str, Any], console: Console) -> float | None:
    """Return the score; None if the data have no labels of the model's kind."""
    if dataset.y is None or not hasattr(estimator, "score"):
        return None
    try:
        with console.collecting_warnings():
            return float(estimator.score(dataset.source, dataset.y, **known))
    except (TypeError, ValueError) as error:
        console.note(f"No score: {error}")
        return None


def _score_name(estimator: Any) -> str:
    """Return the name of the estimator's own score."""
    from coterie.estimators.base import GroupDiscovery, task_of
    from coterie.report.held_out import default_score_title

    if isinstance(estimator, GroupDiscovery) and task_of(estimator) in ("regression", "survival"):
        return default_score_title(estimator)
    return "R²" if hasattr(estimator, "coef_") and not hasattr(estimator, "classes_") else "accuracy"


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value if isinstance(value, (int, float)) else str(value)
