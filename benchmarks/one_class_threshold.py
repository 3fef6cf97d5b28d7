"""One-class thresholds: share of normal samples rejected, and accuracy, beside one-class SVMs and the isolation forest.

The normal samples of each task are divided at random into two thirds to train and one third to test. All methods are asked to
reject the same share of the normal samples. The settings of Coterie were chosen on other tasks (``python
benchmarks/one_class_threshold.py --only choose``). Writes tables of
docs/evidence/one-class-evidence.md.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from _models import warnings_counted
from _normality import TO_CHOOSE, TO_REPORT, NormalityTask, Split, tasks
from _real import load
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from _timing import measure
from one_class import typical_c
from scipy import sparse
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import OneClassSVM

from coterie import GroupDiscoveryOneClass

SHARES = (0.1, 0.3)
N_SPLITS = 3
N_FEATURES = 50
Make = Callable[[Any, float], Any]


def default(rule: str) -> Make:
    """Return a function that makes Coterie's estimator with its defaults."""
    return lambda X, share: GroupDiscoveryOneClass(threshold_rule=rule, contamination=share)


def fixed(rule: str) -> Make:
    """Return a function that makes Coterie's estimator with the settings for dense or sparse data."""

    def make(X: Any, share: float) -> GroupDiscoveryOneClass:
        size = min(N_FEATURES, X.shape[1])
        wide: dict[str, Any] = {"predict_with": "groups", "threshold": 0.05} if sparse.issparse(X) else {}
        scaled = StandardScaler(with_mean=False).fit_transform(X)
        return GroupDiscoveryOneClass(
            size,
            n_features_per_round=size,
            standardize=True,
            C=typical_c(scaled),
            contamination=share,
            threshold_rule=rule,
            n_jobs=1,
            **wide,
        )

    return make


def one_class_svm(kernel: str, *, scale: bool = False) -> Make:
    """Return a function that makes a one-class SVM, on standardised columns if ``scale``."""

    def make(X: Any, share: float) -> Any:
        model = OneClassSVM(kernel=kernel, nu=share)
        return make_pipeline(StandardScaler(with_mean=not sparse.issparse(X)), model) if scale else model

    return make


METHODS: dict[str, Make] = {
    "Coterie, defaults": default("quantile"),
    "Coterie, fixed settings": fixed("quantile"),
    "Coterie, fixed settings, held_out": fixed("held_out"),
    "Coterie, fixed settings, margin": fixed("margin"),
    "OCSVM, linear": one_class_svm("linear"),
    "OCSVM, linear, columns / sd": one_class_svm("linear", scale=True),
    "OCSVM, RBF": one_class_svm("rbf"),
    "OCSVM, RBF, columns / sd": one_class_svm("rbf", scale=True),
    "isolation forest": lambda X, share: IsolationForest(contamination=share, random_state=0),
}


def by_feature(X: Any) -> Any:
    """Return a matrix in the layout that stores features contiguously."""
    return sparse.csc_array(X) if sparse.issparse(X) else np.asfortranarray(X)


def measured(task: NormalityTask, number: int, split: Split, method: str, share: float) -> dict[str, Any]:
    """Return the result of one method on one split of a task."""
    ours = method.startswith("Coterie")
    train, normal, outliers = (by_feature(part) if ours else part for part in split)
    model = METHODS[method](split.train, share)
    began = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - began
    inside, outside = model.decision_function(normal), model.decision_function(outliers)
    truth = np.repeat([1, 0], [len(inside), len(outside)])
    return {
        "task": f"{task.data}, {task.label}",
        "split": number,
        "method": method,
        "share": share,
        "rejected": float((model.predict(normal) == -1).mean()),
        "rejected in training": float((model.predict(train) == -1).mean()),
        "outliers rejected": float((model.predict(outliers) == -1).mean()),
        "balanced accuracy": float(((inside >= 0).mean() + (outside < 0).mean()) / 2),
        "roc_auc": float(roc_auc_score(truth, np.r_[inside, outside])),
        "seconds": seconds,
    }


def speed(options: Any) -> list[dict[str, Any]]:
    """Return the seconds of fits to a large class of text, and how many times faster they are than LIBSVM's linear kernel."""
    X, y = _loaded_text()
    train = X[y == 1]
    columns, C = by_feature(train), typical_c(train)
    began = time.perf_counter()
    OneClassSVM(kernel="linear", nu=0.5, cache_size=1000).fit(train)
    svm = time.perf_counter() - began
    found = [{"method": "OCSVM, linear", "seconds": svm, "times faster": 1.0}]
    for size in (10, 50):
        for rule in ("margin", "quantile", "held_out"):
            model = GroupDiscoveryOneClass(
                n_features_per_round=size, C=C, reuse_features=False, threshold_rule=rule, contamination=0.5, n_jobs=1
            )
            seconds = measure(lambda model=model: model.fit(columns), options.repeats).best
            found.append({"method": f"Coterie, {size} per round, {rule}", "seconds": seconds, "times faster": svm / seconds})
    return found


def _loaded_text() -> tuple[Any, np.ndarray]:
    X, y = load("20news_bigrams")
    return normalize(sparse.csr_array(X, dtype=np.float64)), y


def by_method(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one row per method with means over the tasks."""
    found = []
    for method in METHODS:
        entry: dict[str, Any] = {"method": method}
        for share in SHARES:
            own = rows[(rows["method"] == method) & (rows["share"] == share)].groupby("task").mean(numeric_only=True)
            missed = (own["rejected"] - share).abs()
            entry |= {
                f"rejected, asked {share:g}": own["rejected"].mean(),
                f"mean deviation, {share:g}": missed.mean(),
                f"within two points, {share:g}": f"{int((missed <= 0.02).sum())} of {len(missed)}",
                f"balanced accuracy, {share:g}": own["balanced accuracy"].mean(),
            }
        entry["ROC AUC"] = own["roc_auc"].mean()
        found.append(entry)
    return found


def by_chance(seed: int, n_draws: int = 2000) -> list[dict[str, Any]]:
    """Return how many tasks are within two points by chance alone, for thresholds that are right on average.

    A *known* threshold has the asked share of the population below it. A *training quantile* is that of a score which does not
    depend on the training samples. The samples of a task are divided as in the benchmark.
    """
    rng = np.random.default_rng(seed)
    divisions = [[_division(task.normal.shape[0], seed, k) for k in range(N_SPLITS)] for task in tasks(TO_REPORT)]
    found = []
    for share in SHARES:
        within = {"known threshold": np.zeros(n_draws), "training quantile": np.zeros(n_draws)}
        for splits in divisions:
            scores = rng.random((n_draws, len(splits[0][0]) + len(splits[0][1])))
            known = np.mean([(scores[:, test] < share).mean(axis=1) for _, test in splits], axis=0)
            levels = [np.quantile(scores[:, train], share, axis=1, keepdims=True) for train, _ in splits]
            trained = np.mean(
                [(scores[:, test] < level).mean(axis=1) for (_, test), level in zip(splits, levels, strict=True)], axis=0
            )
            for name, rejected in (("known threshold", known), ("training quantile", trained)):
                within[name] += np.abs(rejected - share) <= 0.02
        for name, counts in within.items():
            low, high = np.quantile(counts, [0.05, 0.95])
            cells = {"tasks": len(divisions), "within two points, mean": f"{counts.mean():.1f}"}
            found.append({"threshold": name, "asked": share, **cells, "5 to 95 %": f"{low:.0f} to {high:.0f}"})
    return found


def _division(n_samples: int, seed: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training and test samples of a split, as in :meth:`NormalityTask.splits`."""
    order = np.random.default_rng([seed, number]).permutation(n_samples)
    n_train = round(2 * n_samples / 3)
    return order[:n_train], order[n_train:]


def by_task(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one row per task with the balanced accuracies of the methods at the first share, and the shares rejected."""
    chosen = rows[rows["share"] == SHARES[0]]
    table = chosen.groupby(["task", "method"], sort=False).mean(numeric_only=True)
    found = []
    for task in chosen["task"].unique():
        own = table.loc[task]
        kept = [name for name in METHODS if not name.endswith("margin")]
        found.append(
            {
                "task": task,
                "rejected, held_out": own.loc["Coterie, fixed settings, held_out", "rejected"],
                **{name: own.loc[name, "balanced accuracy"] for name in kept},
            }
        )
    return found


def differences(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the mean differences of balanced accuracies in points, with one standard error over the tasks."""
    found = []
    means = rows.groupby(["share", "task", "method"]).mean(numeric_only=True)["balanced accuracy"]
    for ours in ("Coterie, defaults", "Coterie, fixed settings, held_out"):
        for other in ("OCSVM, linear", "OCSVM, RBF", "isolation forest"):
            entry: dict[str, Any] = {"method": ours, "minus": other}
            for share in SHARES:
                own = means.loc[share].unstack()
                gain = 100 * (own[ours] - own[other])
                entry[f"points, {share:g}"] = f"{gain.mean():+.1f} ± {gain.std() / np.sqrt(len(gain)):.1f}"
                entry[f"ahead, {share:g}"] = f"{int((gain > 0).sum())} of {len(gain)}"
            found.append(entry)
    return found


def main() -> None:
    options = read_arguments(__doc__, parts=("choose", "speed", "chance"))
    if options.only == "chance":
        found = by_chance(options.seed)
        print_table("One class: tasks within two points by chance", found)
        replace_section(DOCS / "one-class-evidence.md", "one class, thresholds, chance", markdown_table(found))
        return
    if options.only == "speed":
        found = speed(options)
        print_table("One class: seconds per fit", found)
        replace_section(DOCS / "one-class-evidence.md", "one class, thresholds, speed", markdown_table(found))
        write_results("one_class_threshold_speed", options, rows=found)
        return
    rows: list[dict[str, Any]] = []
    sets = TO_CHOOSE if options.only == "choose" else TO_REPORT
    with warnings_counted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task in tasks(sets):
            if options.quick and task.data != "mfeat":
                continue
            for number, split in enumerate(task.splits(1 if options.quick else N_SPLITS, options.seed)):
                rows += [measured(task, number, split, method, share) for method in METHODS for share in SHARES]
            print(pd.DataFrame(rows[-2 * len(METHODS) :]).round(3).to_string(), flush=True)
    frame = pd.DataFrame(rows)
    print_table("One class: thresholds", by_method(frame))
    print_table("One class: balanced accuracy at the first share", by_task(frame))
    if not options.quick and options.only is None:
        page = DOCS / "one-class-evidence.md"
        replace_section(page, "one class, thresholds", markdown_table(by_method(frame)))
        replace_section(page, "one class, thresholds, differences", markdown_table(differences(frame)))
        replace_section(page, "one class, thresholds, tasks", markdown_table(by_task(frame)))
    write_results("one_class_threshold" + ("_choose" if options.only else ""), options, rows=rows)


if __name__ == "__main__":
    main()
