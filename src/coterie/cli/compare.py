"""``coterie compare``: methods of feature selection side by side on a file."""

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


def _show_methods(wanted: bool) -> None:
    if wanted:
        rows = []
        for name, method in (REGRESSION | METHODS).items():
            labels = [words for words, known in (("classes", METHODS), ("numbers", REGRESSION)) if name in known]
            shown = [p for p in parameters_of(method) if p.name not in ("n_features_to_select", *method.settings)]
            rows.append((name, ", ".join(labels), method, shown))
        show_methods("--set method.name=value", rows)


def compare(
    data: DataPath,
    *,
    methods: Annotated[
        str | None,
        option(_METHOD, "Names with commas between, or all; see --list. By default some quick ones.", "--methods -M"),
    ] = None,
    n_features: Annotated[
        str | None, option(_METHOD, "Numbers of features. \\[default: 5,10,20,50,100]", "--n-features -n")
    ] = None,
    settings: Annotated[
        list[str] | None, option(_METHOD, "A parameter of a method; may be repeated.", "--set", metavar="METHOD.NAME=VALUE")
    ] = None,
    standardize: Annotated[bool, option(_METHOD, "Give all methods features of unit variance.", "--standardize")] = False,
    show_list: Annotated[
        bool,
        option(_METHOD, "List the methods with their parameters, and exit.", "--list", callback=_show_methods, is_eager=True),
    ] = False,
    cv: Annotated[int, option(_EVALUATION, "Number of folds.")] = 5,
    task: Task = "auto",
    classifier: Annotated[
        str | None,
        option(_EVALUATION, "What judges a selection: linear_svm or knn; for numbers ridge or knn. \\[default: the first]"),
    ] = None,
    scoring: Annotated[
        str | None,
        option(
            _EVALUATION,
            "A score of scikit-learn's, such as balanced_accuracy or neg_root_mean_squared_error. \\[default: accuracy, "
            "or r2 for numbers]",
        ),
    ] = None,
    random_state: Annotated[int, option(_EVALUATION, "Seed of folds and methods.")] = 0,
    time_limit: Annotated[float | None, option(_LIMITS, "Seconds for a method on one fold.")] = None,
    memory_limit: Annotated[str | None, option(_LIMITS, "Memory for a method, such as 2GB.")] = None,
    n_jobs: Annotated[int, option(_LIMITS, "Methods that run at the same time.")] = 1,
    output: Annotated[
        Path | None, option("Output", "Folder for the results; by default the data's name with -comparison.", "--output -o")
    ] = None,
    overwrite: Annotated[bool, option("Output", "Start anew where a comparison is there already.", "--overwrite")] = False,
    options: DataOptions,
    cluster: Cluster,
    console: Console,
) -> None:
    """Compare methods by accuracy, redundancy, time and stability, against the number of features.

    Every method selects features on the training part of each fold, in a process of its own; one that fails or goes over a
    limit is a row that says so. The folder gets comparison.csv (one row a fit), summary.csv (means over folds),
    comparison.html (a page to read) and comparison.png. Run again, the command goes on where it was ended.

    Examples:
        coterie compare genes.csv --label diagnosis --standardize
        coterie compare data.svm --methods gdm,mrmr,l1-svm,svm-rfe --n-features 5,10,20 --time-limit 60 --memory-limit 2GB
        coterie compare data.npz --methods all --classifier knn --n-jobs 4 -o results
        coterie compare data.npz --methods gdm,daf --set gdm.C=10 --set daf.sampling=adaptive --set daf.criterion.n_neighbors=5
        coterie compare cohort.csv --label height --methods gdm,lasso,mrmr
        coterie compare shared/x.store --methods gdm,mrmr --time-limit 600 --dask tcp://scheduler:8786
        coterie compare --list
    """
    from coterie._parameters import read_size
    from coterie.comparison import compare as run
    from coterie.comparison.journal import results_folder
    from coterie.comparison.trial import check_for_task

    folder = output if output is not None else Path(f"{stem(data)}-comparison")
    if task not in ("auto", "classification", "regression"):
        raise ValueError(f"--task {task!r} must be one of auto, classification, regression.")
    # Before the data, which may take long to read: what is no method for any labels.
    check_for_task(partial(chosen_methods, methods, settings or []), task)
    limit = None if memory_limit is None else read_size(memory_limit)
    sizes = None if n_features is None else _whole_numbers(n_features)
    with results_folder(folder):
        dataset = options.open(data, console)
        if dataset.y is None:
            raise ValueError(f"{data} has no labels, which a comparison needs; say where they are with --label.")
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
        console.note("Stopped early; the same command goes on from here.")
        raise typer.Exit(128 + request.signal)


def chosen_methods(methods: str | None, settings: Sequence[str], task: str = "classification") -> dict[str, Settings]:
    """The parameters that were set for each method that was named."""
    from coterie.comparison.trial import default_methods

    words = [word.strip() for word in (methods or ",".join(default_methods(task))).split(",") if word.strip()]
    names = list(methods_for(task)) if [word.lower() for word in words] == ["all"] else words
    chosen: dict[str, Settings] = {}
    for name in names:
        method_named(name, task)
        if name in chosen:
            raise ValueError(f"--methods names {name!r} twice.")
        chosen[name] = {}
    given = parse_settings(settings, "--set")
    for key, value in given.items():
        name, dot, parameter = key.partition(".")
        mine = next((known for known in chosen if known.replace("-", "_") == name), None)
        if not dot or mine is None:
            raise ValueError(f"--set {key}: write method.name=value with one of the methods compared ({', '.join(chosen)}).")
        its_own = {rest: words for full, words in given.items() if (rest := full.removeprefix(f"{name}.")) != full}
        check_setting(method_named(mine, task), parameter, its_own, f"--set {key}: {mine}", hidden=["n_features_to_select"])
        put_setting(chosen[mine], parameter, value, "--set")
    return chosen


def selectors_of(chosen: Mapping[str, Settings], task: str = "classification") -> Settings:
    """A selector for each method."""
    from coterie.comparison.trial import selector_named

    return {name: selector_named(name, task=task, **with_criterion(parameters)) for name, parameters in chosen.items()}


def _whole_numbers(text: str) -> list[int]:
    values = parse_value(text)
    numbers = values if isinstance(values, list) else [values]
    if not numbers or not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        raise ValueError(f"--n-features {text!r} must be whole numbers with commas between, such as 5,10,20.")
    return numbers


def _note_scales(dataset: Dataset, console: Console) -> None:
    """Say so when the units of the features are far apart."""
    from coterie.discovery import scales_differ

    if not console.quiet and scales_differ(dataset.source):
        console.note(
            "The features have very different scales, on which some methods depend; --standardize gives all the same."
        )


def write_tables(folder: Path, found: Comparison, console: Console, name: str = "") -> list[str]:
    """Write the tables, the page and the figure; returns the names of the files."""
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
        console.note(f"{FIGURE} was left out; it needs: pip install 'coterie[plot,tabular]'")
        return files
    except ValueError as error:  # nothing went well
        console.note(f"{FIGURE} was left out: {error}")
        return files
    with new_file(folder / FIGURE) as partial:
        figure.savefig(partial, format="png", dpi=150)
    return [*files, FIGURE]


def show_summary(found: Comparison, console: Console) -> None:
    """The means as a table."""
    from coterie.comparison.result import summary_cells

    table = Table(title=f"Means over folds, of {found.n_features_in:,} features", title_justify="left")
    table.add_column("method", overflow="fold")
    numbers = found.task == "regression"
    score = "R²" if found.scoring == "r2" else found.scoring
    for column in ("features", score, *(["RMSE"] if numbers else []), "redundancy", "fit s", "stability"):
        table.add_column(column, justify="right")
    table.add_column("notes", overflow="fold")
    for row in found.summary_rows():
        asked, selected = row["n_features"], row["n_selected"]
        number = str(asked) if not row["n_ok"] or selected == asked else f"{round(selected, 1):g} of {asked}"
        accuracy, *others, note = summary_cells(row)
        rmse = [f"{row['rmse']:.4g}" if row["n_ok"] else "–"] if numbers else []
        table.add_row(Text(row["method"]), number, accuracy, *rmse, *others, Text(note))
    console.show(table)
