"""Number of probes for wide data: test accuracy of uniform and adaptive DAF by coverage, with BIF and random features.

The default of ``min_coverage`` was chosen on data sets of gene expression and methylation (part ``choice``) and is tested on
other ones (part ``report``). Features are selected and standardised on random stratified halves and tested on the other
halves. Tables go to docs/evidence/ranking-evidence.md.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from _ranking import PAGE, Split, halves, load_average, wide
from _record import caption, read_arguments, write_results
from _tables import markdown_table, print_table, replace_section
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from coterie import DependencyAwareSelector
from coterie.baselines import BestIndividualSelector

CHOICE = ("khan", "christensen", "gravier", "su", "shipp", "gordon", "chowdary")
REPORT = ("duke", "glioma")
SIZES = (10, 50)
COVERAGES = {"uniform": (10, 30, 100, 300), "adaptive": (100, 300, 1000)}
N_RANDOM = 20

Row = dict[str, Any]


def judged(split: Split, features: np.ndarray) -> Row:
    """Return the test accuracy (%) of the criterion's classifier and of another one."""
    X, X_test = split.X[:, features], split.X_test[:, features]
    models = {"3-NN": KNeighborsClassifier(3), "SVM": LinearSVC(max_iter=5000)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return {name: 100.0 * model.fit(X, split.y).score(X_test, split.y_test) for name, model in models.items()}


def of_split(split: Split, seed: int, n_jobs: int, max_probes: int) -> Iterator[Row]:
    """Yield the rows of all methods on one split, with at most ``max_probes`` probes."""
    n_features = split.X.shape[1]
    common: dict[str, Any] = {"cv": 3, "n_jobs": n_jobs}
    for sampling, coverages in COVERAGES.items():
        for size in SIZES:
            model = DependencyAwareSelector(
                "knn", sampling=sampling, n_features_to_select=size, random_state=seed, warm_start=True, **common
            )
            seconds = 0.0
            for coverage in coverages:
                start = time.perf_counter()
                model.set_params(min_coverage=coverage, n_probes=max(max_probes, getattr(model, "n_probes_", 0))).fit(
                    split.X, split.y
                )
                seconds += time.perf_counter() - start
                sizes = SIZES if sampling == "uniform" else (size,)
                cost = {"probes": model.n_probes_, "seconds": seconds, "coverage": float(np.median(model.coverage_))}
                for wanted in sizes:
                    best = np.flatnonzero(model.ranking_ <= wanted)
                    yield {"method": f"{sampling}, {coverage}", "features": wanted, **judged(split, best), **cost}
            if sampling == "uniform":
                break  # one ranking is used for all sizes
    start = time.perf_counter()
    single = BestIndividualSelector("knn", n_features_to_select=1, **common).fit(split.X, split.y)
    cost = {"probes": n_features, "seconds": time.perf_counter() - start, "coverage": None}
    rng = np.random.default_rng(seed)
    for size in SIZES:
        yield {"method": "BIF", "features": size, **judged(split, np.flatnonzero(single.ranking_ <= size)), **cost}
        draws = [judged(split, rng.choice(n_features, size, replace=False)) for _ in range(N_RANDOM)]
        mean = {name: float(np.mean([draw[name] for draw in draws])) for name in draws[0]}
        yield {"method": "random", "features": size, **mean, "probes": 0, "seconds": 0.0, "coverage": None}


def run(names: tuple[str, ...], options: Any) -> list[Row]:
    """Return the rows of all splits of the named data sets."""
    n_splits, max_probes = (1, 300) if options.quick else (3, 40_000)
    rows = []
    for name in names:
        X, y = wide(name)
        for number, split in enumerate(halves(X, y, n_splits, options.seed, standardise=True)):
            rows += [
                {"data": name, "split": number, **row} for row in of_split(split, options.seed, options.threads, max_probes)
            ]
        print_table(f"{name} ({load_average()})", summary([row for row in rows if row["data"] == name]))
    return rows


def summary(rows: list[Row], each: bool = False) -> list[Row]:
    """Return means over data sets and splits and, with ``each``, the accuracies on every data set."""
    table = []
    for key in dict.fromkeys((row["method"], row["features"]) for row in rows):
        mine = [row for row in rows if (row["method"], row["features"]) == key]
        line = {"method": key[0], "features": key[1], **_accuracies(mine)}
        if each:
            for name in dict.fromkeys(row["data"] for row in mine):
                own = _accuracies([row for row in mine if row["data"] == name])
                line[f"{name}, 3-NN / SVM"] = f"{own['3-NN']} / {own['SVM']}"
        coverage = [row["coverage"] for row in mine if row["coverage"] is not None]
        line["probes"] = int(np.mean([row["probes"] for row in mine]))
        line["median coverage"] = f"{np.mean(coverage):.0f}" if coverage else ""
        table.append(line)
    return table


def _accuracies(rows: list[Row]) -> Row:
    return {name: f"{np.mean([row[name] for row in rows]):.1f}" for name in ("3-NN", "SVM")}


def main() -> None:
    options = read_arguments(__doc__, parts=("choice", "report"))
    for part, names in (("choice", CHOICE), ("report", REPORT)):
        if options.only not in (None, part):
            continue
        rows = run(names, options)
        table = summary(rows, each=part == "report")
        print_table(part, table)
        write_results(f"daf_wide-{part}", options, rows=rows)
        if not options.quick:
            replace_section(PAGE, f"wide {part}", f"{caption()}\n\n{markdown_table(table)}")


if __name__ == "__main__":
    main()
