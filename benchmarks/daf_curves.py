"""DAF compared with BIF (and SFFS) on Gisette, Spambase and BASEHOCK: accuracy and stability by number of features.

As in Figs 2 to 5 of the paper: select on a random stratified half, test on the other half, with the criterion's own
classifier and with another one. ``--slow`` uses the paper's numbers of probes and SVMs tuned once per split, and writes the
tables of docs/evidence/ranking-evidence.md; without it there are fewer probes and the results are only printed. The part
``tau`` measures the effect of the largest probe size on text.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from _ranking import PAGE, Classifiers, Curves, Split, halves, load, load_average, order_of, tuned, tuned_linear
from _record import caption, read_arguments, write_results
from _tables import markdown_table, print_table, replace_section
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from coterie import DependencyAwareSelector
from coterie.baselines import BestIndividualSelector, FloatingSelector
from coterie.probing import LinearSVMCriterion


def nearest(k: int) -> KNeighborsClassifier:
    return KNeighborsClassifier(k, algorithm="brute")


def rbf() -> Any:
    return make_pipeline(StandardScaler(), SVC())


class Experiment(NamedTuple):
    """A data set, the criterion, and the classifiers used for testing (the criterion's own first)."""

    data: str
    criterion: str
    classifiers: Classifiers
    sizes: tuple[int, ...]
    max_probe_size: int
    n_probes: int
    n_splits: int
    paper_probes: int
    slow_splits: int
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
        3,
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
        2,
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
        1,
    ),
)


def run(
    experiment: Experiment, n_splits: int, share: float, seed: int, n_jobs: int, tune: bool
) -> tuple[Curves, list[dict[str, Any]]]:
    """Return the curves of all methods over the splits, and the cost of selecting."""
    X, y = load(experiment.data)
    curves = Curves(experiment.sizes, experiment.classifiers, X.shape[1])
    costs: list[dict[str, Any]] = []
    for number, split in enumerate(halves(X, y, n_splits, seed, standardise=experiment.standardise)):
        one_split(experiment, split, share, seed, n_jobs, tune, curves, costs)
        print(f"{experiment.data}, split {number} done", flush=True)
    return curves, costs


def one_split(
    experiment: Experiment,
    split: Split,
    share: float,
    seed: int,
    n_jobs: int,
    tune: bool,
    curves: Curves,
    costs: list[dict[str, Any]],
) -> None:
    criterion: Any = experiment.criterion
    classifiers: Classifiers | None = None
    if tune and criterion == "linear_svm":
        weight = tuned_linear(split)
        criterion, classifiers = LinearSVMCriterion(weight), {"SVM (linear)": lambda: LinearSVC(C=weight)}
    elif tune:
        classifiers = tuned(split)
    common: dict[str, Any] = {"criterion": criterion, "n_features_to_select": 1, "cv": 3, "n_jobs": n_jobs}
    ranked = DependencyAwareSelector(
        **common,
        sampling="uniform",
        n_probes=max(1, int(experiment.n_probes * share)),
        max_probe_size=experiment.max_probe_size,
        random_state=seed,
    )
    start = time.perf_counter()
    ranked.fit(split.X, split.y)
    held = float(ranked._sums.count.mean())  # Table II of the paper
    costs.append({**cost("DAF", start, ranked.n_probes_, int(ranked.coverage_.min())), "mean probes per feature": held})
    for name, scores in ranked.scores_.items():
        curves.add(name.upper(), split, order_of(scores), classifiers)
    start = time.perf_counter()
    single = BestIndividualSelector(**common).fit(split.X, split.y)
    costs.append(cost("BIF", start, split.X.shape[1]))
    curves.add("BIF", split, order_of(single.scores_), classifiers)
    if experiment.floating:
        start = time.perf_counter()
        wanted = experiment.floating if share == 1 else 3
        floating = FloatingSelector(**{**common, "n_features_to_select": wanted}, look_ahead=1).fit(split.X, split.y)
        costs.append(cost("SFFS", start, floating.n_evaluations_))
        curves.add("SFFS", split, lambda size: floating.subsets_[min(size, max(floating.subsets_))].features, classifiers)


def cost(method: str, start: float, n_subsets: int, coverage: int | None = None) -> dict[str, Any]:
    seconds = time.perf_counter() - start
    return {"method": method, "seconds": round(seconds, 1), "subsets": n_subsets, "coverage": coverage, "load": load_average()}


def text_by_size(options: Any) -> list[dict[str, Any]]:
    """Return the test accuracy on BASEHOCK by largest probe size (tau), with the same number of probes."""
    X, y = load("basehock")
    n_probes, taus = (30, (50, 200)) if options.quick else (4_000, (50, 200, 1_000, 4_000))
    split = next(halves(X, y, 1, options.seed))
    rows = []
    for tau in taus:
        start = time.process_time()
        model = DependencyAwareSelector(
            "linear_svm",
            sampling="uniform",
            n_features_to_select=1,
            n_probes=n_probes,
            max_probe_size=tau,
            min_stability=None,
            n_jobs=options.threads,
            random_state=options.seed,
        ).fit(split.X, split.y)
        row: dict[str, Any] = {"largest probe size": tau, "probes": n_probes}
        for size in (10, 50, 200):
            best = np.flatnonzero(model.ranking_ <= size)
            score = LinearSVC().fit(split.X[:, best], split.y).score(split.X_test[:, best], split.y_test)
            row[f"{size} words"] = f"{100 * score:.1f}"
        rows.append({**row, "processor seconds": f"{time.process_time() - start:.0f}"})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    slow = "use the paper's numbers of probes (about an hour)"
    options = read_arguments(__doc__, slow=slow, parts=[*(experiment.data for experiment in EXPERIMENTS), "tau"])
    content = {}
    for experiment in EXPERIMENTS:
        if options.only not in (None, experiment.data):
            continue
        if options.slow:
            n_splits = options.splits or experiment.slow_splits
            experiment = experiment._replace(n_probes=experiment.paper_probes, n_splits=n_splits)  # noqa: PLW2901
        n_splits, share = (2, 0.02) if options.quick else (experiment.n_splits, 1)
        curves, costs = run(experiment, n_splits, share, options.seed, options.threads, options.slow)
        for title, table in curves.tables().items():
            print_table(f"{experiment.data}: {title}", table)
        print_table(f"{experiment.data}: cost", costs)
        content[experiment.data] = {"rows": curves.table().to_dict("records"), "costs": costs}
        if options.slow and not options.quick:
            replace_section(PAGE, experiment.data, f"{caption()}\n\n{markdown_table(curves.page_table())}")
    if options.only in (None, "tau"):
        table = text_by_size(options)
        print_table("BASEHOCK: largest probe size", table)
        content["tau"] = {"rows": table, "costs": []}
        if not options.quick:
            replace_section(PAGE, "tau", f"{caption()}\n\n{markdown_table(table)}")
    write_results("daf_curves" if options.only is None else f"daf_curves-{options.only}", options, **content)


if __name__ == "__main__":
    main()
