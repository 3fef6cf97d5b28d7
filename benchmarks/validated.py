"""Accuracy of whole procedures on outer folds: group discovery with validation, other selectors, models on all features.

Three stratified, shuffled folds; selection and every choice are made inside the training part. Every data set and method
adds a line to results/validated.jsonl. Lines from the same source are not run again, so a run can be stopped and continued.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from _procedures import ALL, METHODS, N_FOLDS, NONE, OURS, SELECTOR, n_used
from _real import find_data, load
from _record import RESULTS, read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from scipy import sparse
from sklearn.model_selection import StratifiedKFold, train_test_split

# Number of samples to draw (None: all) by data set, from small to large in each part.
WIDE = {
    "khan": None,
    "glioma": None,
    "shipp": None,
    "su": None,
    "gravier": None,
    "christensen": None,
    "gordon": None,
    "chowdary": None,
}
OTHER = {"spambase": 1500, "madelon": 1000, "basehock": None, "gisette_valid": None}
MAIN = next(name for name, (kind, _) in METHODS.items() if kind == OURS)
COSTLY = "Coterie, thresholds 0.5, 0.7"
GOAL_POINTS = 3.0
N_OUTER = 3

Found = dict[tuple[str, str], dict[str, Any]]  # a line of results by set and method


def read(name: str, n_samples: int | None, seed: int) -> tuple[Any, np.ndarray]:
    """Return float64 features, so that all methods have the same dtype, and labels as integers."""
    X, y = load(name)
    X = sparse.csr_array(X, dtype=np.float64) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    y = np.unique(y, return_inverse=True)[1]
    if n_samples is not None and n_samples < len(y):
        kept, _ = train_test_split(np.arange(len(y)), train_size=n_samples, stratify=y, random_state=seed)
        X, y = X[np.sort(kept)], y[np.sort(kept)]
    return X, y


def run(name: str, X: Any, y: np.ndarray, method: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run one method on the outer folds of one data set; seconds are processor seconds, as the machine may be shared."""
    kind, make = METHODS[method]
    scores, used, chosen, cpu, wall = [], [], [], [], []
    for train, test in StratifiedKFold(2 if options.quick else N_OUTER, shuffle=True, random_state=options.seed).split(X, y):
        start, clock = time.process_time(), time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make(X, options.seed, options.threads).fit(X[train], y[train])
        cpu.append(time.process_time() - start)
        wall.append(time.perf_counter() - clock)
        scores.append(float(np.mean(model.predict(X[test]) == y[test])))
        used.append(n_used(model, X.shape[1]))
        chosen.append(choices(model))
    facts = {"data": name, "shape": X.shape, "kind": kind, "method": method, "source": options.source, "seed": options.seed}
    return {**facts, "accuracy": scores, "features": used, "chosen": chosen, "cpu_s": cpu, "wall_s": wall}


def choices(model: Any) -> dict[str, Any]:
    """Return the settings chosen by validation, for the file of results."""
    if hasattr(model, "predict_with_"):
        names = ("n_features_", "C_", "threshold_", "standardize_", "predict_with_", "best_score_")
        return {name: _plain(getattr(model, name)) for name in names}
    if hasattr(model, "best_params_"):
        return {key: _plain(value) for key, value in model.best_params_.items()}
    return {}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def read_lines(path: Path, options: argparse.Namespace) -> Found:
    """Return the earlier results of the same source and seed, by data set and method."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {(x["data"], x["method"]): x for x in lines if (x["source"], x["seed"]) == (options.source, options.seed)}


def done(found: Found, methods: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the data sets on which all these methods have been run."""
    methods = list(methods)
    return [name for name in names if all((name, method) in found for method in methods)]


def rows_of(found: Found, value: str, share: float) -> list[dict[str, Any]]:
    """Return one row per method and one column per data set, with means (medians) over the same data sets for all.

    A method that lacks one of these data sets has no mean.
    """
    sets = [name for name in (*WIDE, *OTHER) if any((name, method) in found for method in METHODS)]
    summary, digits = (np.mean, 1) if value == "accuracy" else (np.median, 0 if value == "features" else 1)
    rows = []
    for method in METHODS:
        cell = {s: share * float(summary(found[s, method][value])) for s in sets if (s, method) in found}
        for title, part in (("wide", WIDE), ("all", (*WIDE, *OTHER))):
            common = done(found, METHODS.keys() - {COSTLY}, part)
            if common and all(name in cell for name in common):
                cell[title] = float(summary([cell[name] for name in common]))
        text = {name: f"{cell[name]:,.{digits}f}" if name in cell else "–" for name in (*sets, "wide", "all")}
        rows.append({"method": method, **text})
    return rows


def difference_rows(found: Found, ours: str) -> list[dict[str, Any]]:
    """Return our accuracy minus that of each method, in points: mean over common data sets, standard error, counts."""
    rows = []
    for method, (kind, _) in METHODS.items():
        if method == ours or kind == NONE:
            continue
        row: dict[str, Any] = {"method": method, "kind": kind}
        for title, part in (("wide", WIDE), ("all", (*WIDE, *OTHER))):
            sets = done(found, (ours, method), part)
            gains = np.array(
                [100 * (np.mean(found[s, ours]["accuracy"]) - np.mean(found[s, method]["accuracy"])) for s in sets]
            )
            error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
            ahead, behind = int((gains > 0.05).sum()), int((gains < -0.05).sum())
            row[f"_{title}"] = gains.mean() if len(gains) else np.nan
            row[f"{title}, points"] = f"{row[f'_{title}']:+.1f} ± {error:.1f}"
            row[f"{title}: ahead, level, behind"] = f"{ahead}, {len(gains) - ahead - behind}, {behind}"
        rows.append(row)
    return rows


def summary_rows(
    differences: list[dict[str, Any]], features: list[dict[str, Any]], seconds: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the differences, our method first, with the median numbers of features and seconds."""
    empty = dict.fromkeys(differences[0], "") | {"method": MAIN, "kind": OURS}
    sizes, times = ({row["method"]: row for row in rows} for rows in (features, seconds))
    return [
        {
            **row,
            "features, wide": sizes[row["method"]]["wide"],
            "features, all": sizes[row["method"]]["all"],
            "CPU s, wide": times[row["method"]]["wide"],
            "CPU s, all": times[row["method"]]["all"],
        }
        for row in (empty, *differences)
    ]


def judge(rows: list[dict[str, Any]], ours: str) -> str:
    """Return a sentence on the goal, from the means over the wide data sets."""
    selectors = [row for row in rows if row["kind"] == SELECTOR]
    short = [f"{row['method']} ({row['_wide']:+.1f})" for row in selectors if row["_wide"] < GOAL_POINTS]
    behind = [f"{row['method']} ({row['_wide']:+.1f})" for row in rows if row["kind"] == ALL and row["_wide"] < 0]
    first = f"missed against {', '.join(short)}" if short else "met against every selector"
    second = f"behind {', '.join(behind)}" if behind else "not behind any of them"
    return f"{ours}: {GOAL_POINTS:.0f} points ahead on wide data: {first}. All features: {second}."


def main() -> None:
    options = read_arguments(__doc__, repeats=1, parts=("wide", "other", "table"))
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"validated{'-quick' if options.quick else ''}.jsonl"
    if options.quick:
        path.unlink(missing_ok=True)
    found = read_lines(path, options)
    sets = {"wide": WIDE, "other": OTHER, "table": {}, None: {**WIDE, **OTHER}}[options.only]
    # The most expensive method comes last, so that a stopped run has the other methods on every data set.
    for methods in (METHODS.keys() - {COSTLY}, set() if options.quick else {COSTLY}):
        for name, n_samples in {"khan": None}.items() if options.quick else sets.items():
            missing = [method for method in METHODS if method in methods and (name, method) not in found]
            if not missing or find_data(f"{name}.npz") is None:
                continue
            X, y = read(name, n_samples, options.seed)
            X = X[:, ::16] if options.quick else X
            for method in missing:
                line = found[name, method] = run(name, X, y, method, options)
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                score, seconds = 100 * np.mean(line["accuracy"]), np.sum(line["cpu_s"])
                print(f"{name:14} {method:28} {score:5.1f} {seconds:7.1f} s", flush=True)
    report(found, options)


def report(found: Found, options: argparse.Namespace) -> None:
    """Print the tables, write the results and, after a full run, the page."""
    tables = {
        "accuracy": rows_of(found, "accuracy", 100.0),
        "features": rows_of(found, "features", 1.0),
        "seconds": rows_of(found, "cpu_s", 1.0),
    }
    differences = {name: difference_rows(found, name) for name, (kind, _) in METHODS.items() if kind == OURS}
    shown = {name: [{k: v for k, v in row.items() if k[0] != "_"} for row in rows] for name, rows in differences.items()}
    words = [judge(rows, name) for name, rows in differences.items()]
    print_table(f"Accuracy on outer folds, %; choices by {N_FOLDS} inner folds", tables["accuracy"])
    print_table("Features used to predict, median over the folds", tables["features"])
    print_table("Processor seconds per fit including validation, median over the folds", tables["seconds"])
    print_table(f"{MAIN}, minus the method: mean over the data sets ± its standard error", shown[MAIN])
    print("\n" + "\n".join(words))
    write_results("validated", options, **tables, differences=shown, verdict=words, lines=list(found.values()))
    page = DOCS / "validated-evidence.md"
    if not options.quick and page.exists():
        replace_section(page, "accuracy", markdown_table(tables["accuracy"]))
        replace_section(page, "summary", markdown_table(summary_rows(shown[MAIN], tables["features"], tables["seconds"])))


if __name__ == "__main__":
    main()
