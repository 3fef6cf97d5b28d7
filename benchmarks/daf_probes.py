"""Probes per second of the built-in criteria, compared with cross_val_score on the same subsets and folds of Madelon.

Both use all cores: Coterie as workers, scikit-learn's neighbours as OpenMP threads. A second comparison uses one thread for
both. All values must be equal. The neighbours are also compared with the bare single-precision products of test and training
samples that they require, in blocks of 128 test samples, on one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from _ranking import load, load_average
from _record import read_arguments, write_results
from _tables import print_table, verdict
from _timing import measure_in_turn
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import LeaveOneOut, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from coterie.data import as_source
from coterie.probing import KNNCriterion, LinearSVMCriterion, RidgeCriterion
from coterie.probing.criteria.base import Evaluator
from coterie.probing.evaluation import Workers, evaluate_subsets
from coterie.probing.probes import ProbePlan, read_key

GOAL = 20.0
GOAL_BARE = 1.3
BLOCK = 128


def ours(evaluate: Evaluator, prefer: str, subsets: list[np.ndarray], n_jobs: int) -> np.ndarray:
    workers = Workers(n_jobs, prefer)
    with workers.parallel() as pool:
        return evaluate_subsets(evaluate, subsets, workers, pool)


def theirs(score: Callable[[np.ndarray], float], subsets: list[np.ndarray], n_threads: int | None) -> np.ndarray:
    with threadpool_limits(n_threads):
        return np.array([score(subset) for subset in subsets])


def compare(
    name: str, criterion: Any, X: np.ndarray, y: np.ndarray, score: Any, subsets: Any, options: Any
) -> list[dict[str, Any]]:
    """Return the rows of one criterion: with all cores, and with one."""
    evaluate = criterion.bind(as_source(X), y, 3)
    rows = []
    for n_threads in (options.threads, 1):
        ours(evaluate, criterion.prefer, subsets[: 2 * n_threads], n_threads)  # compile and start workers
        mine, other = measure_in_turn(
            [
                lambda n=n_threads: ours(evaluate, criterion.prefer, subsets, n),
                lambda n=n_threads: theirs(score, subsets, None if n > 1 else 1),
            ],
            options.repeats,
        )
        ratio = other.best / mine.best
        print(f"{name}, {n_threads} thread(s): {ratio:.1f} x", flush=True)
        rows.append(
            {
                "criterion": name,
                "cores": n_threads,
                "probes": len(subsets),
                "ours, probes/s": len(subsets) / mine.best,
                "theirs, probes/s": len(subsets) / other.best,
                "ratio": ratio,
                "ratio of medians": other.median / mine.median,
                "values differ": int((mine.result != other.result).sum()),
                "goal": verdict(ratio >= GOAL) if name == "3-NN" else None,
                "cores of other processes": other.other_cores,
                "load": load_average(),
            }
        )
    return rows


def bare_products(X: np.ndarray, y: np.ndarray, subsets: list[np.ndarray]) -> None:
    """Compute only the products that the search for neighbours requires."""
    room = np.empty(BLOCK * len(y), dtype=np.float32)
    folds = list(StratifiedKFold(3).split(X, y))
    for subset in subsets:
        samples = np.ascontiguousarray(X[:, subset], dtype=np.float32)
        for train, test in folds:
            queries, others = samples[: len(test)], samples[: len(train)]  # any samples have the same cost
            for start in range(0, len(test), BLOCK):
                rows = queries[start : start + BLOCK]
                np.dot(rows, others.T, out=room[: len(rows) * len(others)].reshape(len(rows), len(others)))


def against_products(name: str, X: np.ndarray, y: np.ndarray, subsets: list[np.ndarray], options: Any) -> list[dict[str, Any]]:
    """Compare the neighbours with the bare products, one thread each."""
    criterion = KNNCriterion(3)
    evaluate = criterion.bind(as_source(X), y, 3)
    with threadpool_limits(1):
        mine, bare = measure_in_turn(
            [lambda: ours(evaluate, criterion.prefer, subsets, 1), lambda: bare_products(X, y, subsets)], options.repeats
        )
    ratio = mine.best / bare.best
    return [
        {
            "data": name,
            "probes": len(subsets),
            "ours, ms per probe": 1e3 * mine.best / len(subsets),
            "bare products, ms": 1e3 * bare.best / len(subsets),
            "ratio": ratio,
            "goal": verdict(ratio <= GOAL_BARE),
        }
    ]


def main() -> None:
    options = read_arguments(__doc__)
    X, y = load("madelon")
    rng = np.random.default_rng(options.seed)
    rows = np.sort(rng.choice(len(y), len(y) // 2, replace=False))
    X, y = X[rows], y[rows]
    scaled = StandardScaler().fit_transform(X)
    plan = ProbePlan(X.shape[1], 150, None, read_key(options.seed))
    n_probes = 20 if options.quick else 120
    subsets = [plan.draw(number) for number in range(n_probes)]
    nearest = KNeighborsClassifier(3, algorithm="brute")
    linear = LinearSVC(random_state=0)
    table = compare(
        "3-NN", KNNCriterion(3), X, y, lambda s: cross_val_score(nearest, X[:, s], y, cv=3).mean(), subsets, options
    )
    table += compare(
        "3-NN, real values",
        KNNCriterion(3),
        scaled,
        y,
        lambda s: cross_val_score(nearest, scaled[:, s], y, cv=3).mean(),
        subsets,
        options,
    )
    table += compare(
        "linear SVM",
        LinearSVMCriterion(),
        scaled,
        y,
        lambda s: cross_val_score(linear, scaled[:, s], y, cv=3).mean(),
        subsets[: n_probes // 4],
        options,
    )
    table += compare(
        "ridge, leave-one-out",
        RidgeCriterion(),
        scaled[:200],  # 200 fits per subset, not 1,300
        y[:200],
        lambda s: np.mean(cross_val_predict(RidgeClassifier(), scaled[:200, s], y[:200], cv=LeaveOneOut()) == y[:200]),
        subsets[: max(2, n_probes // 30)],
        options,
    )
    print_table("Probes per second, Coterie and scikit-learn's cross-validation", table)
    products = against_products("madelon", X, y, subsets, options)
    products += against_products("madelon, real values", scaled, y, subsets, options)
    print_table("Neighbours and the bare products that they require, one thread", products)
    write_results("daf_probes", options, table=table, products=products)


if __name__ == "__main__":
    main()
