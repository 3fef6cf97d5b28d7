"""``coterie discover``: groups of features in a file, and a folder with all about them."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from coterie.cli.data import TASKS, DataOptions, DataPath, Task, settle_task, stem
from coterie.cli.output import Output
from coterie.cli.parameters import parameter_options, read_parameters
from coterie.interruption import stopping_gracefully
from coterie.methods import DISCOVERY, DISCOVERY_CV, load

if TYPE_CHECKING:
    from coterie.data import Dataset
    from coterie.report import DiscoveryResult

_SHOWN_GROUPS = 20
_FEW_FEATURES = 100
_SHOWN_MEMBERS = 4
Parameters = Annotated[
    dict[str, Any],
    parameter_options(*DISCOVERY.values(), *DISCOVERY_CV.values(), skip=("verbose",), panel="Group discovery"),
]


def discover(
    data: DataPath,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder for the results; by default the data's name with -groups.", rich_help_panel="Output"
        ),
    ] = None,
    task: Task = "auto",
    options: DataOptions,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="Save the model to this file, too.", rich_help_panel="Output")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace results that are there already.", rich_help_panel="Output")
    ] = False,
    voice: Output,
    parameters: Parameters,
) -> None:
    """Find support features and their groups, and write a folder with the results.

    The folder has groups.csv (one row a feature), result.json, model.coterie (for coterie predict), report.html, and for SNPs
    groups.clumps, for AnnData a copy with the groups in var. Ctrl-C ends the search after the current round and keeps what
    has been found. With --n-features-to-select cv, cross-validation (--cv, 5 folds by default) finds their number and C.

    Examples:
        coterie discover data.svm --n-features-to-select 50
        coterie discover genes.csv --label diagnosis --standardize -o results
        coterie discover genes.csv --label diagnosis --n-features-to-select cv --max-features-to-select 60
        coterie discover cohort.bed --phenotype pheno.txt --label HEIGHT --threshold 0.5
        coterie discover cells.h5ad --label bulk_labels --task classification
    """
    folder = output if output is not None else Path(f"{stem(data)}-groups")
    from coterie.files import claimed, claimed_files
    from coterie.persistence import save
    from coterie.report.folder import check_output, write_result

    with claimed(folder), claimed_files(model):
        check_output(folder, overwrite=overwrite)
        check_parameters(task, parameters)  # before the data, which may take long to read
        dataset = options.open(data, voice)
        result, code = fit(dataset, settle_task(task, dataset.y, data), parameters, voice)
        with voice.collecting_warnings():
            files = write_result(
                folder, result, overwrite=overwrite, extras=partial(write_extras, dataset=dataset, result=result)
            )
        if model is not None:
            save(result.model, model)
    show_groups(result, voice)
    voice.show(f"Written to {folder}: {', '.join(files)}.")
    if "report.html" not in files:
        voice.note("report.html was left out; it needs: pip install 'coterie[report]'")
    voice.result({"output": str(folder), "files": files, **result.to_dict()})
    if code:
        raise typer.Exit(code)


def fit(dataset: Dataset, task: str, parameters: dict[str, Any], voice: Output) -> tuple[DiscoveryResult, int]:
    """The fitted model with what is to be told of it, and the exit code (of a signal that ended it early)."""
    from coterie.report import DiscoveryResult

    model = _estimator(task, _with_labels(parameters, dataset)).set_params(verbose=voice.verbose)
    if "n_features_to_select" not in parameters and dataset.source.shape[1] <= _FEW_FEATURES:
        model.set_params(n_features_to_select="auto")  # the default asks for more than there are
    began = time.perf_counter()
    with voice.collecting_warnings(), stopping_gracefully(voice.note) as request:
        model.fit(dataset.source, dataset.y) if task != "one-class" else model.fit(dataset.source)
    seconds = time.perf_counter() - began
    score = None if task == "one-class" else float(model.score(dataset.source, dataset.y))
    n_samples, n_features = dataset.source.shape
    about = {
        "path": str(dataset.path),
        "format": dataset.format,
        "samples": n_samples,
        "features": n_features,
        **({"notes": dataset.notes} if dataset.notes else {}),
    }
    stopped = request.signal is not None
    info = dataset.feature_info
    result = DiscoveryResult(model, about, task, seconds, score, tuple(voice.warnings), stopped, info)
    return result, 0 if request.signal is None else 128 + request.signal


def check_parameters(task: str, parameters: dict[str, Any]) -> None:
    """Raise what ``fit`` would, without data; whichever task it will be, the parameters mean the same."""
    from coterie._parameters import check_parameters as check_estimator

    if task not in TASKS:
        raise ValueError(f"--task {task!r} must be one of {', '.join(TASKS)}.")
    check_estimator(_estimator("classification" if task == "auto" else task, parameters))


def _estimator(task: str, parameters: dict[str, Any]) -> Any:
    place, chosen = DISCOVERY[task], dict(parameters)
    if chosen.get("n_features_to_select") == "cv":
        if task not in DISCOVERY_CV:
            raise ValueError(f"--n-features-to-select cv needs labels or targets, not --task {task}; give a number or auto.")
        place = DISCOVERY_CV[task]
        del chosen["n_features_to_select"]
        if "C" in chosen:
            chosen["Cs"] = [chosen.pop("C")]  # the only one to choose from
    known = {parameter.name for parameter in read_parameters(place)}
    for foreign in sorted(set(chosen) - known):
        option = f"--{foreign.replace('_', '-')}"
        if foreign in _size_search_only():
            raise ValueError(f"{option} goes with --n-features-to-select cv; add that, or leave it out.")
        raise ValueError(f"{option} has no meaning for --task {task}; leave it out.")
    return load(place)(**chosen)


def _size_search_only() -> set[str]:
    plain = {parameter.name for parameter in read_parameters(DISCOVERY["classification"])}
    return {parameter.name for place in DISCOVERY_CV.values() for parameter in read_parameters(place)} - plain


def _with_labels(parameters: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """Weights of classes under the labels themselves: JSON has text for keys, labels may be numbers."""
    weights = parameters.get("class_weight")
    if not isinstance(weights, dict) or dataset.y is None:
        return parameters
    labels = {str(label): label for label in dict.fromkeys(dataset.y.tolist())}
    return {**parameters, "class_weight": {labels.get(key, key): weight for key, weight in weights.items()}}


def write_extras(folder: Path, dataset: Dataset, result: DiscoveryResult) -> None:
    """What users of PLINK and AnnData expect on top."""
    if "chromosome" in dataset.feature_info:  # PLINK, or a store made of it
        from coterie.report.clumps import CLUMPS, write_clumps

        write_clumps(folder / CLUMPS, result)
    if dataset.format == "h5ad":
        from coterie.report.annotated import ANNOTATED, write_annotated

        write_annotated(folder / ANNOTATED, dataset.path, result)


def show_groups(result: DiscoveryResult, voice: Output) -> None:
    """The groups as a table, and the main figures."""
    groups = result.model.groups_
    table = Table(title="Groups, in order of discovery", title_justify="left")
    table.add_column("#", justify="right")
    table.add_column("support feature", overflow="fold")
    table.add_column("weight", justify="right")
    table.add_column("features", justify="right")
    table.add_column("affiliated (correlation)", overflow="fold")
    for number, group in enumerate(groups[:_SHOWN_GROUPS], start=1):
        support, *others = group.labels
        shown = [f"{name} ({r:+.2f})" for name, r in zip(others, group.correlation, strict=True)][:_SHOWN_MEMBERS]
        more = [f"… {len(others) - len(shown):,} more"] if len(others) > len(shown) else []
        weight = "" if group.weight is None else f"{group.weight:+.4g}"
        table.add_row(str(number), Text(support), weight, f"{len(group):,}", Text(", ".join([*shown, *more]) or "–"))
    voice.show(table)
    if len(groups) > _SHOWN_GROUPS:
        voice.show(f"… and {len(groups) - _SHOWN_GROUPS:,} more groups in groups.csv.")
    voice.show("; ".join(f"{words}: {_figure(value)}" for words, value in result.summary.items() if value is not None))


def _figure(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
