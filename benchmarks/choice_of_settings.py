"""Accuracy and time of the choice of settings: the default, an earlier rule, fixed settings, L1 and L2 penalties.

The sets of CHOOSE were used to decide on the rule, the sets of REPORT were not looked at before it was decided. Every data set
and method adds a line to results/choice_of_settings.jsonl. Lines from the same source are not run again.

The rule, fixed before any set of REPORT was evaluated: the smallest mean held-out deviance, with the outputs of each model
calibrated by one slope per fold, among C = 0.001, 0.01, 0.1 and 1 (for standardised features), all sizes up to 100, and models
of the support features or of whole groups, at threshold 0.7. Ties go to fewer features. It missed its goals. The candidates
were then reduced to whole groups and C up to 0.1, which is equal on CHOOSE. Its figures on REPORT are therefore a second look.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _real import data_path, find_data, load
from _record import RESULTS, read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_svmlight_file, load_wine
from sklearn.linear_model import LogisticRegressionCV, RidgeClassifierCV
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV

# Training samples, test samples and draws of each set. None: five outer folds, with two seeds.
Spec = tuple[int, int, int] | None
CHOOSE: dict[str, Spec] = {
    "shipp": None,
    "gravier": None,
    "khan": None,
    "christensen": None,
    "madelon": (200, 600, 4),
    "basehock": (100, 600, 4),
    "coil20": (150, 300, 3),
    "spambase": (150, 600, 4),
}
REPORT: dict[str, Spec] = {
    "gordon": None,
    "su": None,
    "chowdary": None,
    "glioma": None,
    "duke": None,
    "gisette_valid": (100, 600, 4),
    "dorothea": (300, 600, 3),
    "orl": (50, 50, 4),
    "pbmc68k_reduced": (150, 500, 3),
    "usps": (150, 600, 3),
    "mnist_3v8": (100, 600, 4),
    "mfeat": (150, 600, 3),
    "binaryalphadigs": (200, 300, 3),
    "breast_cancer": (100, 469, 4),
    "wine": (50, 128, 4),
}
N_PERSONS = 10  # of orl
MIN_CLASS_SIZE = 8
MAIN, FIRST = "Coterie", "first rule"
RIVALS = ("L1 logistic", "L2 logistic", "ridge classifier")
GOAL_POINTS, GOAL_TIME = 1.0, 2.0

Found = dict[tuple[str, str], dict[str, Any]]  # a line of results by set and method


def _peer(model: Any, X: Any) -> Any:
    return make_pipeline(StandardScaler(with_mean=not sparse.issparse(X)), model)


def _logistic(X: Any, y: np.ndarray, ratio: float) -> Any:
    solver = "liblinear" if ratio else "lbfgs"
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = LogisticRegressionCV(
        Cs=10, cv=folds, l1_ratios=(ratio,), solver=solver, scoring="accuracy", max_iter=1000, use_legacy_attributes=False
    )
    return _peer(OneVsRestClassifier(model) if ratio and len(np.unique(y)) > 2 else model, X)


def _fixed(threshold: float, C: float) -> Callable[..., Any]:
    def make(X: Any, y: np.ndarray, threads: int) -> Any:
        same = {"predict_with": "groups", "threshold": threshold, "C": C, "standardize": True, "n_jobs": threads}
        return GroupDiscoveryClassifier(min(50, X.shape[1]), **same)

    return make


METHODS: dict[str, Callable[..., Any]] = {
    MAIN: lambda X, y, threads: GroupDiscoveryClassifierCV(random_state=0, n_jobs=threads),
    FIRST: lambda X, y, threads: GroupDiscoveryClassifierCV(
        Cs=4, predict_with=["support", "groups"], random_state=0, n_jobs=threads
    ),
    "same, by accuracy": lambda X, y, threads: GroupDiscoveryClassifierCV(rule="best", random_state=0, n_jobs=threads),
    "fixed, 0.5, C = 0.003": _fixed(0.5, 0.003),
    "fixed, 0.7, C = 0.03": _fixed(0.7, 0.03),
    "L1 logistic": lambda X, y, threads: _logistic(X, y, 1.0),
    "L2 logistic": lambda X, y, threads: _logistic(X, y, 0.0),
    "ridge classifier": lambda X, y, threads: _peer(RidgeClassifierCV(alphas=np.logspace(-3, 6, 13)), X),
}


def warm_up(threads: int) -> None:
    """Compile the kernels, so that no fit is timed with it."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 30)), np.arange(40) % 3
    for labels in (y, y > 0):
        for features in (X, sparse.csc_array(X * (X > 1.5))):
            for make in (METHODS[MAIN], _fixed(0.5, 0.003)):
                make(features, labels, threads).fit(features, labels)


def read(name: str) -> tuple[Any, np.ndarray]:
    """Return float64 features and class codes; classes of fewer than eight samples are left out."""
    if name in ("breast_cancer", "wine"):
        X, y = (load_breast_cancer if name == "breast_cancer" else load_wine)(return_X_y=True)
    elif name == "duke":
        X, y = load_svmlight_file(str(data_path("duke.svm")))
        X = X.toarray()
    else:
        X, y = load(name, "bulk_labels" if name == "pbmc68k_reduced" else "y")
    X = sparse.csr_array(X, dtype=np.float64) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    kept = np.flatnonzero(counts >= MIN_CLASS_SIZE)[: N_PERSONS if name == "orl" else len(labels)]
    rows = np.isin(codes, kept)
    return X[rows], np.unique(codes[rows], return_inverse=True)[1]


def splits(y: np.ndarray, spec: Spec) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the training and the test samples of each outer split."""
    if spec is None:
        for seed in (0, 1):
            yield from StratifiedKFold(5, shuffle=True, random_state=seed).split(y, y)
        return
    n_train, n_test, n_draws = spec
    for seed in range(n_draws):
        sizes = {"train_size": n_train, "test_size": min(n_test, len(y) - n_train)}
        train, test = train_test_split(np.arange(len(y)), **sizes, stratify=y, random_state=seed)
        yield np.sort(train), np.sort(test)


def run(name: str, X: Any, y: np.ndarray, spec: Spec, method: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run one method on the outer splits of one set. Seconds are processor seconds, as the machine may be shared."""
    scores, seconds, chosen = [], [], []
    for number, (train, test) in enumerate(splits(y, spec)):
        if options.quick and number == 2:
            break
        model = METHODS[method](X, y, options.threads)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X[train], y[train])
        seconds.append(time.process_time() - start)
        scores.append(float(np.mean(model.predict(X[test]) == y[test])))
        names = ("n_features_", "smallest_n_features_", "C_", "standardize_", "predict_with_")
        chosen.append({key: getattr(model, key) for key in names if hasattr(model, "cv_results_")})
    facts = {"data": name, "shape": X.shape, "method": method, "source": options.source}
    return {**facts, "accuracy": scores, "cpu_s": seconds, "chosen": chosen}


def rows_of(found: Found, sets: dict[str, Spec], value: str) -> list[dict[str, Any]]:
    """Return one row per method: the mean over the splits of each set (accuracy in %, or seconds), and over the sets."""
    factor, digits = (100.0, 1) if value == "accuracy" else (1.0, 2)
    done = complete(found, sets)
    rows = []
    for method in METHODS:
        cells = {name: factor * float(np.mean(found[name, method][value])) for name in done if (name, method) in found}
        shown = {name: f"{cells[name]:.{digits}f}" if name in cells else "–" for name in done}
        mean = f"{np.mean(list(cells.values())):.2f}" if cells and len(cells) == len(done) else "–"
        rows.append({"method": method, **shown, "mean": mean})
    return rows


def complete(found: Found, sets: dict[str, Spec], methods: Iterable[str] = (MAIN, *RIVALS)) -> list[str]:
    """Return the sets on which these methods have been run."""
    return [name for name in sets if all((name, method) in found for method in methods)]


def difference_rows(found: Found, sets: dict[str, Spec]) -> list[dict[str, Any]]:
    """Return the default's accuracy minus that of each method in points, and the ratio of the times."""
    mean = {key: 100 * float(np.mean(line["accuracy"])) for key, line in found.items()}
    rows = []
    for method in METHODS:
        done = complete(found, sets, (MAIN, method))
        if method == MAIN or not done:
            continue
        gains = np.array([mean[name, MAIN] - mean[name, method] for name in done])
        times = [np.sum(found[name, MAIN]["cpu_s"]) / np.sum(found[name, method]["cpu_s"]) for name in done]
        rows.append(
            {
                "method": method,
                "sets": len(done),
                "points": f"{gains.mean():+.2f} ± {gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0:.2f}",
                "ahead, level, behind": f"{(gains > 0.05).sum()}, {(abs(gains) <= 0.05).sum()}, {(gains < -0.05).sum()}",
                "worst": f"{gains.min():+.1f} ({done[int(gains.argmin())]})",
                "time, median ratio": f"{np.median(times):.2f}",
                "time, largest ratio": f"{np.max(times):.1f} ({done[int(np.argmax(times))]})",
            }
        )
    done = complete(found, sets)
    if done:
        best = np.array([mean[name, MAIN] - max(mean[name, method] for method in RIVALS) for name in done])
        rows.append({**dict.fromkeys(rows[0], ""), "method": "best of the three on each set", "points": f"{best.mean():+.2f}"})
    return rows


def read_lines(path: Path, options: argparse.Namespace) -> Found:
    """Return the earlier results of the same source, by data set and method. Peers do not depend on the source."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {(x["data"], x["method"]): x for x in lines if x["source"] == options.source or x["method"] in RIVALS}


def main() -> None:
    options = read_arguments(__doc__, repeats=1, parts=("choose", "report", "table"))
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"choice_of_settings{'-quick' if options.quick else ''}.jsonl"
    if options.quick:
        path.unlink(missing_ok=True)
    found = read_lines(path, options)
    sets = {"choose": CHOOSE, "report": REPORT, "table": {}, None: {**CHOOSE, **REPORT}}[options.only]
    warm_up(options.threads)
    used = {"khan": None} if options.quick else sets
    for name, spec in used.items():
        missing = [method for method in METHODS if (name, method) not in found]
        own = name in ("breast_cancer", "wine")
        if not missing or not (own or any(find_data(f"{name}.{kind}") for kind in ("npz", "svm", "h5ad"))):
            continue
        X, y = read(name)
        for method in missing:
            line = found[name, method] = run(name, X, y, spec, method, options)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(f"{name:16} {method:22} {100 * np.mean(line['accuracy']):5.1f} {np.mean(line['cpu_s']):7.2f} s", flush=True)
    report(found, options)


def report(found: Found, options: argparse.Namespace) -> None:
    """Print the tables, write the results and, after a full run, the page."""
    content: dict[str, Any] = {}
    for part, sets in (("choose", CHOOSE), ("report", REPORT)):
        tables = {value: rows_of(found, sets, value) for value in ("accuracy", "cpu_s")}
        tables["differences"] = difference_rows(found, sets)
        if not tables["differences"]:
            continue  # no set of this part is complete
        for title, rows in tables.items():
            print_table(f"{part}: {title}", rows)
        content[part] = tables
    goal = {"points": GOAL_POINTS, "time": GOAL_TIME}
    write_results("choice_of_settings", options, **content, goal=goal, lines=list(found.values()))
    page = DOCS / "choice-of-settings.md"
    if not options.quick and page.exists():
        for part, tables in content.items():
            for title, rows in tables.items():
                replace_section(page, f"{part} {title}", markdown_table(rows))


if __name__ == "__main__":
    main()
