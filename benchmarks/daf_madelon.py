"""Madelon: number of the 20 informative features that DAF finds, and test accuracy.

20 of 500 features are informative, none of them alone: 5 features and 15 mixtures of them. Nearly all of them form pairs
with a correlation of 0.99. Three of them have standard deviations (9 to 15) below those of most uninformative features (22)
and hardly change a Euclidean distance. Everything is therefore run with raw and with standardised values. ``--slow`` uses
the paper's number of probes and an SVM tuned once per split; only then are the curves written to
docs/evidence/ranking-evidence.md.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _ranking import INFORMATIVE, PAGE, Curves, halves, load, order_of, tuned
from _record import caption, read_arguments, write_results
from _tables import markdown_table, print_table, replace_section
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from coterie import DependencyAwareSelector
from coterie.baselines import BestIndividualSelector

SIZES = (1, 2, 3, 5, 8, 12, 16, 20, 30, 50)
CLASSIFIERS = {
    "3-NN": lambda: KNeighborsClassifier(3, algorithm="brute"),
    "SVM (rbf)": lambda: make_pipeline(StandardScaler(), SVC()),
}


Rows = list[dict[str, Any]]


def selector(seed: int, n_jobs: int, **options: Any) -> DependencyAwareSelector:
    options = {"sampling": "uniform", "min_coverage": None, **options}
    return DependencyAwareSelector("knn", n_features_to_select=20, cv=3, random_state=seed, n_jobs=n_jobs, **options)


def curves(
    X: np.ndarray, y: np.ndarray, n_splits: int, n_probes: int, seed: int, n_jobs: int, standardise: bool, tune: bool
) -> Curves:
    """Return accuracy and stability of DAF0, DAF1, DAF2 and BIF over random halves."""
    result = Curves(SIZES, CLASSIFIERS, X.shape[1])
    for number, split in enumerate(halves(X, y, n_splits, seed, standardise=standardise)):
        model = selector(seed, n_jobs, n_probes=n_probes).fit(split.X, split.y)
        classifiers = tuned(split) if tune else None
        for name, scores in model.scores_.items():
            result.add(name.upper(), split, order_of(scores), classifiers)
        single = BestIndividualSelector("knn", n_features_to_select=20, cv=3, n_jobs=n_jobs).fit(split.X, split.y)
        result.add("BIF", split, order_of(single.scores_), classifiers)
        print(f"split {number}: {informative_found(result)}", flush=True)
    return result


def informative_found(curves: Curves) -> dict[str, list[int]]:
    """Return informative features among the first 20, for each method and split."""
    place = curves.sizes.index(20)
    return {m: [len(np.intersect1d(run[place], INFORMATIVE)) for run in runs] for m, runs in curves.subsets.items()}


def curves_part(X: np.ndarray, y: np.ndarray, options: Any) -> dict[str, str]:
    """Return sections of the page: informative features by split; accuracy and stability on standardised values."""
    n_splits, n_probes = (2, 100) if options.quick else (options.splits or 20, 25_000) if options.slow else (5, 10_000)
    counts, content, sections = [], {}, {}
    for scaled in (True, False):
        found = curves(X, y, n_splits, n_probes, options.seed, options.threads, scaled, options.slow)
        kind = "standardised" if scaled else "raw"
        content[kind] = {"rows": found.table().to_dict("records"), "informative": informative_found(found)}
        for title, table in found.tables().items():
            print_table(f"{kind} values: {title}", table)
        by_method = {method: " ".join(map(str, values)) for method, values in informative_found(found).items()}
        counts.append({"values": kind, "probes": n_probes, **by_method})
        if scaled:
            sections["madelon"] = markdown_table(found.page_table())
    write_results("daf_madelon-curves", options, **content)
    return {"madelon found": markdown_table(counts), **sections} if options.slow else {}


def main() -> None:
    slow = "use the paper's number of probes (25,000) and 20 splits (hours)"
    options = read_arguments(__doc__, slow=slow, parts=("curves", "time", "size"))
    X, y = load("madelon")
    if options.only in (None, "curves"):
        for section, text in curves_part(X, y, options).items():
            write_section(section, text, options)
    for name, figure in (("time", accuracy_by_time), ("size", accuracy_by_size)):
        if options.only in (None, name):
            rows = figure(X, y, options)
            print_table(name, rows)
            write_results(f"daf_madelon-{name}", options, rows=rows)
            write_section(name, markdown_table(rows), options)


def write_section(name: str, table: str, options: Any) -> None:
    """Replace a table of the page, unless the run is quick."""
    if not options.quick:
        replace_section(PAGE, name, f"{caption()}\n\n{table}")


def accuracy_by_time(X: np.ndarray, y: np.ndarray, options: Any) -> Rows:
    """Return Fig. 6 of the paper: effect of the number of probes, mean over splits, uniform and adaptive."""
    n_splits, marks = (1, (20, 40)) if options.quick else (2, (500, 1_000, 2_000, 4_000, 8_000))
    found: dict[tuple[str, int], list[list[float]]] = {}
    for split in halves(X, y, n_splits, options.seed, standardise=True):
        for sampling in ("uniform", "adaptive"):
            model = selector(options.seed, options.threads, warm_start=True, sampling=sampling)
            spent = 0.0
            for mark in marks:
                start = time.process_time()
                model.set_params(n_probes=mark).fit(split.X, split.y)
                spent += time.process_time() - start
                found.setdefault((sampling, mark), []).append([spent, *judged(model, split)])
    return [mean_row({"sampling": key[0], "probes": key[1]}, rows) for key, rows in found.items()]


def accuracy_by_size(X: np.ndarray, y: np.ndarray, options: Any) -> Rows:
    """Return Fig. 7 of the paper: effect of the largest probe size (tau), mean over splits."""
    n_splits, sizes, n_probes = (1, (5, 20), 40) if options.quick else (2, (5, 15, 50, 150, 300, 500), 4_000)
    found: dict[tuple[str, int], list[list[float]]] = {}
    for split in halves(X, y, n_splits, options.seed, standardise=True):
        for sampling in ("uniform", "adaptive"):
            for size in sizes:
                start = time.process_time()
                model = selector(options.seed, options.threads, sampling=sampling, max_probe_size=size, n_probes=n_probes)
                model.fit(split.X, split.y)
                row = [time.process_time() - start, *judged(model, split)]
                found.setdefault((sampling, size), []).append(row)
    return [mean_row({"sampling": key[0], "largest probe size": key[1]}, rows) for key, rows in found.items()]


def judged(model: DependencyAwareSelector, split: Any) -> list[float]:
    """Return informative features among the first 20, and test accuracy (%) with the first 20, for each classifier."""
    best = np.flatnonzero(model.ranking_ <= 20)
    models = [classifier().fit(split.X[:, best], split.y) for classifier in CLASSIFIERS.values()]
    shares = [100.0 * model.score(split.X_test[:, best], split.y_test) for model in models]
    return [float(np.isin(INFORMATIVE, best).sum()), *shares]


def mean_row(head: dict[str, Any], rows: list[list[float]]) -> dict[str, Any]:
    names = ("processor seconds", "informative", *CLASSIFIERS)
    return {**head, **{name: f"{value:.1f}" for name, value in zip(names, np.mean(rows, axis=0), strict=True)}}


if __name__ == "__main__":
    main()
