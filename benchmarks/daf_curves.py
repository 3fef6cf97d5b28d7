"""DAF against BIF (and SFFS) on Gisette, Spambase and BASEHOCK: accuracy and stability against the number of features.

As in figures 2 to 5 of the paper: select on a random stratified half, test on the other half, with the criterion's own
classifier and with another one. Fewer splits and probes than there, unless ``--slow`` says otherwise; the tables say how many.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from _ranking import Classifiers, Curves, Split, halves, load, load_average, order_of
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from coterie import DependencyAwareSelector
from coterie.baselines import BestIndividualSelector, FloatingSelector


def nearest(k: int) -> KNeighborsClassifier:
    return KNeighborsClassifier(k, algorithm="brute")


def rbf() -> Any:
    return make_pipeline(StandardScaler(), SVC())


class Experiment(NamedTuple):
    """A data set, the criterion, and the classifiers that judge (the criterion's own first)."""

    data: str
    criterion: str
    classifiers: Classifiers
    sizes: tuple[int, ...]
    max_probe_size: int
    n_probes: int
    n_splits: int
    paper_probes: int
    standardise: bool = False
    floating: int = 0


EXPERIMENTS = (
    Experiment(
        "gisette_valid",
        "knn",
        {"3-NN": lambda: nearest(3), "SVM (rbf)": rbf},
        (1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200),
        200,
        8_000,
        5,
        46_400,
    ),
    Experiment(
        "spambase",
        "knn",
        {"3-NN": lambda: nearest(3), "SVM (rbf)": rbf},
        (1, 2, 3, 5, 7, 10, 15, 20, 25),
        57,
        3_000,
        5,
        160_000,
        standardise=True,
        floating=25,
    ),
    Experiment(
        "basehock",
        "linear_svm",
        {"SVM (linear)": LinearSVC, "1-NN": lambda: nearest(1)},
        (1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200),
        200,
        3_000,
        5,
        148_000,
    ),
)


def run(experiment: Experiment, n_splits: int, share: float, seed: int, n_jobs: int) -> tuple[Curves, list[dict[str, Any]]]:
    """Curves of all methods over the splits, and what selecting took."""
    X, y = load(experiment.data)
    curves = Curves(experiment.sizes, experiment.classifiers, X.shape[1])
    costs: list[dict[str, Any]] = []
    for number, split in enumerate(halves(X, y, n_splits, seed, standardise=experiment.standardise)):
        one_split(experiment, split, share, seed, n_jobs, curves, costs)
        print(f"{experiment.data}, split {number} done", flush=True)
    return curves, costs


def one_split(
    experiment: Experiment, split: Split, share: float, seed: int, n_jobs: int, curves: Curves, costs: list[dict[str, Any]]
) -> None:
    common: dict[str, Any] = {"criterion": experiment.criterion, "n_features_to_select": 1, "cv": 3, "n_jobs": n_jobs}
    ranked = DependencyAwareSelector(
        **common,
        sampling="uniform",
        n_probes=max(1, int(experiment.n_probes * share)),
        max_probe_size=experiment.max_probe_size,
        random_state=seed,
    )
    start = time.perf_counter()
    ranked.fit(split.X, split.y)
    costs.append(cost("DAF", start, ranked.n_probes_, int(ranked.coverage_.min())))
    for name, scores in ranked.scores_.items():
        curves.add(name.upper(), split, order_of(scores))
    start = time.perf_counter()
    single = BestIndividualSelector(**common).fit(split.X, split.y)
    costs.append(cost("BIF", start, split.X.shape[1]))
    curves.add("BIF", split, order_of(single.scores_))
    if experiment.floating:
        start = time.perf_counter()
        wanted = experiment.floating if share == 1 else 3
        floating = FloatingSelector(**{**common, "n_features_to_select": wanted}, look_ahead=1).fit(split.X, split.y)
        costs.append(cost("SFFS", start, floating.n_evaluations_))
        curves.add("SFFS", split, lambda size: floating.subsets_[min(size, max(floating.subsets_))].features)


def cost(method: str, start: float, n_subsets: int, coverage: int | None = None) -> dict[str, Any]:
    seconds = time.perf_counter() - start
    return {"method": method, "seconds": round(seconds, 1), "subsets": n_subsets, "coverage": coverage, "load": load_average()}


def page(experiment: Experiment, curves: Curves, costs: list[dict[str, Any]], n_splits: int, n_jobs: int) -> str:
    """A page for docs/."""
    first, second = experiment.classifiers
    name = experiment.data.split("_", maxsplit=1)[0].capitalize()
    kind = "standardised features, " if experiment.standardise else ""
    path = curves.draw(f"{name}, criterion: {first}, {n_splits} splits, {experiment.n_probes:,} probes", f"daf-{name.lower()}")
    methods = dict.fromkeys(row["method"] for row in costs)
    table = []
    for method in methods:
        mine = [row for row in costs if row["method"] == method]
        covered = "" if mine[0]["coverage"] is None else str(min(row["coverage"] for row in mine))
        mean = sum(row["seconds"] for row in mine) / len(mine)
        subsets = sum(row["subsets"] for row in mine) // len(mine)
        seconds = {"seconds a split": f"{mean:.1f}", "smallest coverage": covered}
        table.append({"method": method, "subsets evaluated": subsets, **seconds})
    text = [
        f"# DAF on {name}",
        f"Written by `benchmarks/daf_curves.py`. Criterion: accuracy of {first}, 3 folds, {kind}on a random stratified half;\n"
        f"uniform probes of 1 to {experiment.max_probe_size} features. "
        f"Tested on the other half with {first} and with {second}.\n"
        f"{n_splits} splits.",
        markdown_table(table).strip(),
        f"Workers: {n_jobs}; load average during the run: {costs[-1]['load']}, these included.",
        f"![curves](figures/{path.name})",
        *(f"## {title}\n\n{markdown_table(rows).strip()}" for title, rows in curves.tables().items()),
    ]
    return "\n\n".join(text) + "\n"


def main() -> None:
    slow = "the paper's own numbers of probes, and 20 splits; hours"
    options = read_arguments(__doc__, slow=slow, parts=[experiment.data for experiment in EXPERIMENTS])
    content = {}
    for experiment in EXPERIMENTS:
        if options.only not in (None, experiment.data):
            continue
        if options.slow:
            experiment = experiment._replace(n_probes=experiment.paper_probes, n_splits=options.splits or 20)  # noqa: PLW2901
        n_splits, share = (2, 0.02) if options.quick else (experiment.n_splits, 1)
        curves, costs = run(experiment, n_splits, share, options.seed, options.threads)
        for title, table in curves.tables().items():
            print_table(f"{experiment.data}: {title}", table)
        print_table(f"{experiment.data}: cost", costs)
        content[experiment.data] = {"rows": curves.table().to_dict("records"), "costs": costs}
        if not options.quick:
            name = experiment.data.split("_", maxsplit=1)[0]
            (DOCS / f"daf-{name}.md").write_text(page(experiment, curves, costs, n_splits, options.threads), encoding="utf-8")
    write_results("daf_curves" if options.only is None else f"daf_curves-{options.only}", options, **content)


if __name__ == "__main__":
    main()
