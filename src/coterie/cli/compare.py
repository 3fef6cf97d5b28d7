"""``coterie compare``: comparison of feature-selection methods on one data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from coterie.cli.data import Cluster, DataOptions, DataPath, Task, settle_task, show_methods, stem
from coterie.cli.options import option
from coterie.cli.output import Console, command_line
from coterie.cli.parameters import (
    Settings,
    check_setting,
    parameters_of,
    parse_settings,
    parse_value,
    put_setting,
    with_criterion,
)
from coterie.interruption import interrupting
from coterie.methods import METHODS, REGRESSION, method_named, methods_for

if TYPE_CHECKING:
    from coterie.comparison import Comparison
    from coterie.data import Dataset

TABLE, SUMMARY, FIGURE, PAGE = "comparison.csv", "summary.csv", "comparison.png", "comparison.html"
_METHOD, _EVALUATION, _LIMITS = "Methods", "Evaluation", "Limits"


def _show_methods(value: bool) -> None:
    if value:
        rows = []
        for name, method in (REGRESSION | METHODS).items():
            labels = [kind for kind, known in (("classes", METHODS), ("numbers", REGRESSION)) if name in known]
            shown = [p for p in parameters_of(method) if p.name not in ("n_features_to_select", *method.settings)]
            rows.append((name, ", ".join(labels), method, shown))
        show_methods("--set method.name=value", rows)


def compare(
    data: DataPath,
    *,
    options: DataOptions,
    task: Task = "auto",
    methods: Annotated[
        str | None,
        option(
            _METHOD,
            "Methods to compare, or all; --list shows them.",
            "--methods -M",
            common=True,
            metavar="NAME,...",
            default="gdm, fgm, mrmr, fcbf, l1-svm, svm-rfe, grm, fisher; gdm, fgm, mrmr, lasso, grm, correlation for "
            "regression",
        ),
    ] = None,
    n_features: Annotated[
        str | None,
        option(
            _METHOD,
            "Numbers of features to select.",
            "--n-features -n",
            common=True,
            metavar="INTEGER,...",
            default="5,10,20,50,100",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        option(_METHOD, "Parameter of a method. May be repeated.", "--set", metavar="METHOD.NAME=VALUE"),
    ] = None,
    standardize: Annotated[
        bool, option(_METHOD, "Scale features to unit variance for all methods.", "--standardize", common=True)
    ] = False,
    show_list: Annotated[
        bool,
        option(
            _METHOD,
            "List the methods with their parameters and exit.",
            "--list",
            common=True,
            callback=_show_methods,
            is_eager=True,
        ),
    ] = False,
    cv: Annotated[int, option(_EVALUATION, "Number of folds.", common=True)] = 5,
    classifier: Annotated[
        str | None,
        option(
            _EVALUATION,
            "Model that predicts from the selected features: linear_svm or knn; for regression ridge or knn.",
            default="linear_svm; ridge for regression",
        ),
    ] = None,
    scoring: Annotated[
        str | None,
        option(
            _EVALUATION,
            "Score: a name of scikit-learn, such as balanced_accuracy or neg_root_mean_squared_error.",
            common=True,
            default="accuracy; r2 for regression",
        ),
    ] = None,
    random_state: Annotated[int, option(_EVALUATION, "Seed of the folds and the methods.")] = 0,
    time_limit: Annotated[float | None, option(_LIMITS, "Time limit per method and fold, in seconds.", common=True)] = None,
    memory_limit: Annotated[str | None, option(_LIMITS, "Memory limit per method, such as 2GB.", metavar="SIZE")] = None,
    n_jobs: Annotated[int, option(_LIMITS, "Number of methods that run at the same time.", common=True)] = 1,
    output: Annotated[
        Path | None,
        option(
            "Output",
            "Folder for the results.",
            "--output -o",
            common=True,
            metavar="FOLDER",
            default="name of the data with -comparison",
        ),
    ] = None,
    overwrite: Annotated[bool, option("Output", "Discard an existing comparison in the folder.", "--overwrite")] = False,
    cluster: Cluster,
    console: Console,
) -> None:
    """Compare methods by score, redundancy, time and stability for several numbers of features.

    Every method selects features on the training part of each fold, in a separate process. A method that fails or exceeds a
    limit gets a row with the reason. The folder contains comparison.csv (one row per fit), summary.csv (means over folds),
    comparison.html and comparison.png. Run the command again to continue a comparison that was stopped.

    Examples:
        - coterie compare genes.csv --label diagnosis --standardize
        - coterie compare data.svm --methods gdm,mrmr,l1-svm,svm-rfe --n-features 5,10,20 --time-limit 60 --memory-limit 2GB
        - coterie compare data.npz --methods all --classifier knn --n-jobs 4 -o results
        - coterie compare data.npz --methods gdm,daf --set gdm.C=10 --set daf.criterion.n_neighbors=5
        - coterie compare cohort.csv --label height --methods gdm,lasso,mrmr
        - coterie compare shared/x.store --methods gdm,mrmr --time-limit 600 --dask tcp://scheduler:8786
        - coterie compare --list
    """
    from coterie._parameters import Scoring, check, read_size
    from coterie.comparison import compare as run
    from coterie.comparison.journal import results_folder
    from coterie.comparison.trial import check_for_task

    folder = output if output is not None else Path(f"{stem(data)}-comparison")
    if task not in ("auto", "classification", "regression"):
        raise ValueError(f"--task {task} must be one of auto, classification, regression.")
    # Check the methods before the data are read, which may take long.
    check_for_task(partial(chosen_methods, methods, settings or []), task)
    check("scoring", scoring, Scoring())
    limit = None if memory_limit is None else read_size(memory_limit, "--memory-limit")
    sizes = None if n_features is None else _whole_numbers(n_features)
    with results_folder(folder):
        dataset = options.open(data, console, validates=True)
        if dataset.y is None:
            raise ValueError(f"{data} has no labels, but a comparison requires labels. Name them with --label.")
        task = settle_task(task, dataset.y, data)
        chosen = chosen_methods(methods, settings or [], task)
        if not standardize:
            _note_scales(dataset, console)
        with cluster.client(data) as client, console.collecting_warnings(), interrupting() as request:
            found = run(
                selectors_of(chosen, task),
                dataset,
                n_features=sizes,
                cv=cv,
                task=task,
                classifier=classifier,
                scoring=scoring,
                standardize=standardize,
                time_limit=time_limit,
                memory_limit=limit,
                results=folder,
                overwrite=overwrite,
                n_jobs=n_jobs,
                random_state=random_state,
                verbose=console.verbose,
                client=client,
            )
        files = write_tables(folder, found, console, data.name)
    show_summary(found, console)
    console.show(f"Written to {folder}: {', '.join(files)}.")
    content = {"output": str(folder), "files": files, "task": found.task, "interrupted": found.interrupted}
    console.result({**content, "summary": found.summary_dicts(), "rows": found.row_dicts()})
    if request.signal is not None:
        console.note("The command was stopped. Run it again to continue.")
        raise typer.Exit(128 + request.signal)


def chosen_methods(methods: str | None, settings: Sequence[str], task: str = "classification") -> dict[str, Settings]:
    """Return the parameters set for each method to compare."""
    from coterie.comparison.trial import default_methods

    words = [word.strip() for word in (methods or ",".join(default_methods(task))).split(",") if word.strip()]
    names = list(methods_for(task)) if [word.lower() for word in words] == ["all"] else words
    chosen: dict[str, Settings] = {}
    for name in names:
        method_named(name, task)
        if name in chosen:
            raise ValueError(f"--methods lists {name!r} twice. Remove one of them.")
        chosen[name] = {}
    given = parse_settings(settings, "--set")
    for key, value in given.items():
        name, dot, parameter = key.partition(".")
        method = next((known for known in chosen if known.replace("-", "_") == name), None)
        if not dot or method is None:
            raise ValueError(
                f"--set {key} must have the form method.name=value with one of the methods compared ({', '.join(chosen)})."
            )
        own = {rest: text for full, text in given.items() if (rest := full.removeprefix(f"{name}.")) != full}
        check_setting(method_named(method, task), parameter, own, f"--set {key}: {method}", hidden=["n_features_to_select"])
        put_setting(chosen[method], parameter, value, "--set")
    return chosen


def selectors_of(chosen: Mapping[str, Settings], task: str = "classification") -> Settings:
    """Return one selector per method."""
    from coterie.comparison.trial import selector_named

    return {name: selector_named(name, task=task, **with_criterion(parameters)) for name, parameters in chosen.items()}


def _whole_numbers(text: str) -> list[int]:
    values = parse_value(text)
    numbers = values if isinstance(values, list) else [values]
    if not numbers or not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        raise ValueError(f"--n-features {text} must be whole numbers separated by commas, such as 5,10,20.")
    return numbers


def _note_scales(dataset: Dataset, console: Console) -> None:
    """Print a note if the features have very different scales."""
    from coterie.discovery import scales_differ

    if not console.quiet and scales_differ(dataset.source):
        console.note(
            "The features have very different scales, and the results of some methods depend on scale. --standardize scales "
            "all features to unit variance."
        )


def write_tables(folder: Path, found: Comparison, console: Console, name: str = "") -> list[str]:
    """Write the tables, the page and the figure, and return the names of the files."""
    from coterie.files import new_file
    from coterie.report import report
    from coterie.report.table import write_csv

    write_csv(folder / TABLE, found.row_dicts(), nan="")
    write_csv(folder / SUMMARY, found.summary_dicts(), nan="")
    report(found, name=name, command=command_line(), path=folder / PAGE)
    files = [TABLE, SUMMARY, PAGE]
    try:
        figure = found.plot()
    except ImportError:  # the extra is not installed
        console.note(f"{FIGURE} was not written. It requires: pip install 'coterie[plot,tabular]'")
        return files
    except ValueError as error:  # no method succeeded
        console.note(f"{FIGURE} was not written: {error}")
        return files
    with new_file(folder / FIGURE) as partial:
        figure.savefig(partial, format="png", dpi=150)
    return [*files, FIGURE]


def show_summary(found: Comparison, console: Console) -> None:
    """Print the means as a table."""
    from coterie.comparison.result import summary_cells
    from coterie.markup import of_requested

    table = Table(title=f"Means over folds, of {found.n_features_in:,} features", title_justify="left")
    table.add_column("method", overflow="fold")
    numbers = found.task == "regression"
    score = "R²" if found.scoring == "r2" else found.scoring
    for column in ("features", score, *(["RMSE"] if numbers else []), "redundancy", "fit s", "stability"):
        table.add_column(column, justify="right")
    table.add_column("notes", overflow="fold")
    for row in found.summary_rows():
        number = of_requested(row["n_selected"], row["n_features"])
        accuracy, *others, note = summary_cells(row)
        rmse = [f"{row['rmse']:.4g}" if row["n_ok"] else "–"] if numbers else []
        table.add_row(Text(row["method"]), number, accuracy, *rmse, *others, Text(note))
    console.show(table)
