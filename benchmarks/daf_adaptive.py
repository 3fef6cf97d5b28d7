"""Adaptive and uniform probes: informative features found on Madelon, and accuracy on Gisette, by number of probes.

Seconds are processor seconds, summed over all workers. Tables go to
docs/evidence/ranking-evidence.md.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from _ranking import INFORMATIVE, PAGE, Split, halves, load, load_average
from _record import caption, read_arguments, write_results
from _tables import markdown_table, print_table, replace_section
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from coterie import DependencyAwareSelector
from coterie.baselines import BestIndividualSelector

MARKS = (1_000, 2_000, 4_000, 8_000)
GISETTE_SIZES = (1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200)
# n_features_to_select of the adaptive fits, and the sizes at which each ranking is tested.
CUTS = {50: (1, 2, 5, 10, 20, 35, 50), 200: (75, 100, 150, 200)}

Row = dict[str, Any]


def grown(split: Split, sampling: str, marks: tuple[int, ...], seed: int, **options: Any) -> Iterator[tuple[Any, Row]]:
    """Yield a selector after each number of probes in ``marks``, and its cost."""
    model = DependencyAwareSelector("knn", sampling=sampling, cv=3, random_state=seed, warm_start=True, **options)
    spent = clock = 0.0
    for mark in marks:
        start, began = time.process_time(), time.perf_counter()
        model.set_params(n_probes=mark, min_coverage=None).fit(split.X, split.y)
        spent, clock = spent + time.process_time() - start, clock + time.perf_counter() - began
        yield model, {"probes": mark, "processor seconds": spent, "seconds": clock}


def madelon(options: Any) -> list[Row]:
    """Return informative features among the first 20, by split, sampling and probes."""
    X, y = load("madelon")
    n_splits, marks = (1, (50, 100)) if options.quick else (5, MARKS)
    rows = []
    for sampling in ("adaptive", "uniform"):
        for number, split in enumerate(halves(X, y, n_splits, options.seed, standardise=True)):
            common = {"n_features_to_select": 20, "n_jobs": options.threads}
            for model, cost in grown(split, sampling, marks, options.seed, **common):
                found = int((model.ranking_[INFORMATIVE] <= 20).sum())
                rows.append({"sampling": sampling, "split": number, "found": found, **cost})
                print(rows[-1], load_average(), flush=True)
    return rows


def madelon_table(rows: list[Row]) -> list[Row]:
    """Return one row per number of probes."""
    table = []
    for key in dict.fromkeys((row["sampling"], row["probes"]) for row in rows):
        mine = [row for row in rows if (row["sampling"], row["probes"]) == key]
        seconds = float(np.mean([row["processor seconds"] for row in mine]))
        found = [row["found"] for row in mine]
        cells = {"found, by split": " ".join(map(str, found)), "fewest": min(found)}
        table.append({"sampling": key[0], "probes": key[1], "processor seconds": f"{seconds:.0f}", **cells})
    return table


def accuracy(split: Split, features: np.ndarray) -> Row:
    """Return the test accuracy in %."""
    models = {"3-NN": KNeighborsClassifier(3, algorithm="brute"), "SVM (rbf)": make_pipeline(StandardScaler(), SVC())}
    X, X_test = split.X[:, features], split.X_test[:, features]
    return {name: 100.0 * model.fit(X, split.y).score(X_test, split.y_test) for name, model in models.items()}


def gisette(options: Any) -> list[Row]:
    """Return the test accuracy by split, method and size."""
    X, y = load("gisette_valid")
    n_splits, n_probes = (1, 60) if options.quick else (3, 12_000)
    rows = []
    for number, split in enumerate(halves(X, y, n_splits, options.seed)):
        common = {"n_jobs": options.threads, "max_probe_size": 200}
        single = BestIndividualSelector("knn", n_features_to_select=1, cv=3, n_jobs=options.threads).fit(split.X, split.y)
        rankings = [("BIF", single, GISETTE_SIZES, {"probes": X.shape[1]})]
        model, cost = next(grown(split, "uniform", (n_probes,), options.seed, n_features_to_select=50, **common))
        rankings.append(("uniform", model, GISETTE_SIZES, cost))
        for cut, sizes in CUTS.items():
            model, cost = next(grown(split, "adaptive", (n_probes,), options.seed, n_features_to_select=cut, **common))
            rankings.append(("adaptive", model, sizes, cost))
        for method, model, sizes, cost in rankings:
            for size in sizes:
                judged = accuracy(split, np.flatnonzero(model.ranking_ <= size))
                rows.append({"method": method, "split": number, "features": size, **judged, **cost})
        print_table(f"Gisette, {number + 1} splits ({load_average()})", gisette_table(rows))
    return rows


def gisette_table(rows: list[Row]) -> list[Row]:
    """Return one row per number of features."""
    table = []
    for size in GISETTE_SIZES:
        line: Row = {"features": size}
        for classifier in ("3-NN", "SVM (rbf)"):
            for method in ("BIF", "uniform", "adaptive"):
                values = [row[classifier] for row in rows if (row["method"], row["features"]) == (method, size)]
                line[f"{method}, {classifier}"] = f"{np.mean(values):.1f}"
        table.append(line)
    return table


def main() -> None:
    parts = (
        ("madelon", "adaptive madelon", madelon, madelon_table),
        ("gisette", "adaptive gisette", gisette, gisette_table),
    )
    options = read_arguments(__doc__, parts=[part[0] for part in parts])
    for name, section, measure, tabled in parts:
        if options.only in (None, name):
            rows = measure(options)
            table = tabled(rows)
            print_table(name, table)
            write_results(f"daf_adaptive-{name}", options, rows=rows)
            if not options.quick:
                replace_section(PAGE, section, f"{caption()}\n\n{markdown_table(table)}")


if __name__ == "__main__":
    main()
