"""``coterie rank``: features ranked by a score or a selection method."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.table import Table
from rich.text import Text

from coterie.cli.data import Cluster, DataOptions, DataPath, Task, names_of, settle_task, show_methods
from coterie.cli.options import option
from coterie.cli.output import Console
from coterie.cli.parameters import (
    Settings,
    check_setting,
    parameters_of,
    parse_settings,
    put_setting,
    with_criterion,
)
from coterie.interruption import interrupting
from coterie.methods import METHODS, REGRESSION, Method

if TYPE_CHECKING:
    import numpy as np

    from coterie.data import Dataset

_PANEL = "Method"
RANKED_TASKS = ("auto", "classification", "regression")
_ALL = {name: method for name, method in METHODS.items() if method.ranks}
# Number of features up to which scores are read one by one from a cluster.
_FEW = 10_000
# Default methods, for classes and for a numeric target.
_DEFAULT = {"classification": "fisher", "regression": "correlation"}


class Ranking(NamedTuple):
    """The best features in order, and the scores of all features by name of the score."""

    features: np.ndarray
    scores: dict[str, np.ndarray]


def known_methods(task: str = "classification") -> dict[str, Method]:
    """Return the methods that rank all features for a task, by name."""
    return {name: method for name, method in REGRESSION.items() if method.ranks} if task == "regression" else dict(_ALL)


def _show_methods(value: bool) -> None:
    if value:
        methods = (known_methods("regression") | known_methods()).items()
        show_methods("--set name=value", [(name, _labels_of(name, one), one, parameters_of(one)) for name, one in methods])


def _labels_of(name: str, method: Method) -> str:
    """Return the kind of labels that a method takes."""
    if not method.supervised:
        return "none"
    return "classes or numbers" if name in METHODS and name in REGRESSION else "classes" if name in METHODS else "numbers"


def rank(
    data: DataPath,
    *,
    options: DataOptions,
    task: Task = "auto",
    method: Annotated[
        str | None,
        option(
            _PANEL,
            "Ranking method; --methods lists all.",
            common=True,
            default="fisher for classes, correlation for numbers",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        option(_PANEL, "Parameter of the method. May be repeated.", "--set", common=True, metavar="NAME=VALUE"),
    ] = None,
    methods: Annotated[
        bool,
        option(
            _PANEL,
            "List the methods with their parameters and exit.",
            "--methods",
            common=True,
            callback=_show_methods,
            is_eager=True,
        ),
    ] = False,
    top: Annotated[int, option("Output", "Number of features to show.", "--top -n", common=True, min=1)] = 20,
    output: Annotated[
        Path | None, option("Output", "CSV file for the whole ranking.", "--output -o", common=True, metavar="FILE")
    ] = None,
    cluster: Cluster,
    console: Console,
) -> None:
    """Rank features by a score of each feature, or by a method that considers features jointly.

    Examples:
        - coterie rank data.svm --method fisher --top 50
        - coterie rank genes.csv --label diagnosis --method relieff --set n_neighbors=7 -o ranking.csv
        - coterie rank data.npz --method grm --set score_func=fisher --set n_features_to_select=30 --set n_candidates=cv
        - coterie rank data.npz --method grm --set score_func=lgd --set score_parameters.n_neighbors=7
        - coterie rank data.npz --method daf --set sampling=adaptive --set criterion=svm --set criterion.C=10
        - coterie rank data.npz --method bif --set criterion.n_neighbors=7
        - coterie rank cohort.csv --label height --method daf
        - coterie rank shared/x.store --method fisher --dask tcp://scheduler:8786
        - coterie rank --methods
    """
    known = known_methods("regression") | known_methods()
    if method is not None and method not in known:
        raise ValueError(f"--method {method} must be one of {', '.join(known)}.")
    if task not in RANKED_TASKS:
        raise ValueError(f"--task {task} must be one of {', '.join(RANKED_TASKS)}.")
    chosen: Settings = {}
    for name, value in parse_settings(settings or [], "--set").items():
        put_setting(chosen, name, value, "--set")
    for name in chosen:
        supposed = method or _DEFAULT.get(task, "fisher")
        check_setting(known[supposed], name, chosen, f"--set {name}: {supposed}")
    from coterie.files import claimed_files
    from coterie.report.table import write_csv

    checkpoint = chosen.get("checkpoint")
    with claimed_files(output, None if checkpoint is None else str(checkpoint)):
        if method is not None:
            cluster.check(bool(known[method].on_cluster), f"--method {method}")
        with cluster.opened(data, options, console, validates=True) as dataset:
            settled = "classification" if dataset.y is None else settle_task(task, dataset.y, data)
            name = method or _DEFAULT[settled]
            chosen_method = method_for(name, settled, task)
            if options.sample_groups is not None:
                _check_groups(name, chosen_method)
            n_features = dataset.source.shape[1]
            with console.collecting_warnings(), interrupting() as request:
                ranking = rank_features(chosen_method, chosen, dataset, data, console, top if output is None else n_features)
            if output is not None:
                write_csv(output, _rows(ranking, dataset, n_features))
            rows = _rows(ranking, dataset, top)
    console.show(f"Features by {chosen_method.description}")
    table = Table()
    for column in rows[0]:
        table.add_column(column, justify="left" if column == "name" else "right")
    for row in rows:
        table.add_row(*(Text("" if v is None else f"{v:.6g}" if isinstance(v, float) else str(v)) for v in row.values()))
    console.show(table)
    if output is not None:
        console.show(f"Written to {output}: {len(ranking.features):,} features.")
    content = {
        "method": name,
        "task": settled if chosen_method.supervised else None,
        "parameters": {**chosen_method.settings, **chosen},
    }
    console.result({**content, "interrupted": request.signal is not None, "ranking": rows})
    if request.signal is not None:
        console.note("The command was stopped. This is the ranking so far.")
        raise typer.Exit(128 + request.signal)


def method_for(name: str, task: str, given_task: str) -> Method:
    """Return the method for a task; the error lists the methods for that task."""
    known = known_methods(task)
    if name in known:
        return known[name]
    kind, required, other = (
        ("numbers", "classes", "classification") if task == "regression" else ("classes", "numbers", "regression")
    )
    hint = f" If the labels are {required}, use --task {other}." if given_task == "auto" else ""
    raise ValueError(
        f"--method {name} requires labels that are {required}, but the labels are {kind}. Methods for {kind}: "
        f"{', '.join(known)}.{hint}"
    )


def _check_groups(name: str, method: Method) -> None:
    """Raise a ``ValueError`` if a method has no use for sample groups."""
    from coterie.inputs.sample_groups import accepts_groups

    target = method.load()
    if not (inspect.isclass(target) and accepts_groups(target)):
        raise ValueError(f"--sample-groups: --method {name} divides no samples into folds. Remove --sample-groups.")


def rank_features(method: Method, chosen: Settings, dataset: Dataset, path: Path, console: Console, count: int) -> Ranking:
    """Run a method and return the best ``count`` features."""
    import numpy as np

    from coterie.inputs.sample_groups import accepts_groups
    from coterie.order import FeatureRanks, Ranked

    target: Any = method.load()
    chosen = {**method.settings, **chosen}
    if inspect.isclass(target):
        defaults = {name: parameter.default for name, parameter in inspect.signature(target).parameters.items()}
        if "verbose" in defaults:
            chosen = {**chosen, "verbose": console.verbose}
        if isinstance(default := defaults.get("n_features_to_select"), int):  # at most the number of features
            chosen = {"n_features_to_select": min(default, dataset.source.shape[1]), **chosen}
        model: Any = target(**with_criterion(chosen))
        if model.__sklearn_tags__().target_tags.required and dataset.y is None:
            raise ValueError(f"{path} has no labels, but this method requires labels. Name them with --label.")
        model.fit(dataset.source, dataset.y, **({"groups": dataset.sample_groups} if accepts_groups(target) else {}))
        if isinstance(model.ranking_, FeatureRanks) and count <= len(model.ranking_.first):
            return Ranking(model.ranking_.first[:count], _scores(model))
        return Ranking(np.argsort(np.asarray(model.ranking_), kind="stable")[:count], _scores(model))
    if method.supervised and dataset.y is None:
        raise ValueError(f"{path} has no labels, but this method requires labels. Name them with --label.")
    scores = target(dataset.source, dataset.y, **chosen)
    return Ranking(Ranked(dataset.source, scores).first(count), {"score": scores})


def _scores(model: Any) -> dict[str, np.ndarray]:
    """Return the scores of a selector by name: plain, refined, or several."""
    found: Settings = {}
    if hasattr(model, "refined_scores_"):
        found["refined score"] = model.refined_scores_
    scores = getattr(model, "scores_", None)
    if scores is not None:
        found |= dict(scores) if hasattr(scores, "keys") else {"score": scores}
    return found


def _rows(ranking: Ranking, dataset: Dataset, count: int) -> list[Settings]:
    import numpy as np

    features = ranking.features[:count]
    names = names_of(dataset.source, features)
    # On a cluster, the scores of a few features are one request, and those of all are read part by part.
    scores = {
        name: np.asarray(values)[features] if count > _FEW else values[features] for name, values in ranking.scores.items()
    }
    return [
        {
            "rank": place,
            "feature": int(feature),
            **({"name": name} if name is not None else {}),
            **{score: float(values[place - 1]) for score, values in scores.items()},
        }
        for place, (feature, name) in enumerate(zip(features, names, strict=True), start=1)
    ]
