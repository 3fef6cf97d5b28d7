"""Blocks with and without shared features: objective, bounds, held-out score and time on ten real tasks.

Ten features per block, as in the papers. Once for 20 support features, once until the search ends (``"auto"``, at most 100
rounds). Each task has three random splits with three quarters of the samples for training; the figures are means. *Short of
the optimum* is the gap between the bounds, (phi - beta) / theta, where the optimum is over all admissible sets of ten
features.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from _real import find_data, load
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.model_selection import train_test_split

from coterie import GroupDiscoveryClassifier, GroupDiscoveryOneClass, GroupDiscoveryRegressor

BUILT_IN = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits, "diabetes": load_diabetes}
ESTIMATORS = {
    "classes": GroupDiscoveryClassifier,
    "regression": GroupDiscoveryRegressor,
    "one class": GroupDiscoveryOneClass,
}
# Data, kind of task, C.
TASKS = (
    ("breast cancer", "classes", 0.1),
    ("wine", "classes", 0.1),
    ("spambase", "classes", 0.1),
    ("madelon", "classes", 0.1),
    ("gisette_valid", "classes", 0.1),
    ("basehock", "classes", 0.1),
    ("gordon", "classes", 0.1),
    ("diabetes", "regression", 0.1),
    ("digits", "one class", 0.01),
    ("mnist_3v8", "one class", 0.01),
)
SPLITS = 3
MAX_ROUNDS = 100


def data_of(name: str, kind: str) -> tuple[Any, np.ndarray] | None:
    """Return features and labels, or None if the data are missing; one-class tasks have labels 1 and -1."""
    if name in BUILT_IN:
        X, y = BUILT_IN[name](return_X_y=True)
    elif find_data(f"{name}.npz") is None:
        return None
    else:
        X, y = load(name)
    if kind == "one class":
        X, y = X / float(X.max()), np.where(y == np.unique(y)[-1], 1, -1)
    return X, y


def fit(kind: str, X: Any, y: np.ndarray, test: Any, truth: np.ndarray, **parameters: Any) -> dict[str, float]:
    """Fit once and return objective, bounds, score and time."""
    if kind == "one class":
        X, y = X[y == 1], None
    X = sparse.csc_array(X) if sparse.issparse(X) else np.asfortranarray(X)
    if kind == "one class":
        parameters |= {"threshold_rule": "margin"}  # the papers' decision
    model = ESTIMATORS[kind](n_features_per_round=10, max_rounds=MAX_ROUNDS, **parameters)
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    score = float((model.predict(test) == truth).mean()) if kind == "one class" else model.score(test, truth)
    return {
        "features": len(model.support_features_),
        "rounds": model.n_rounds_,
        "theta": model.objective_,
        "short": (model.upper_bound_ - model.lower_bound_) / abs(model.objective_),
        "converged": float(model.converged_at_ is not None),
        "score": score,
        "s": seconds,
    }


def rows_of(name: str, kind: str, C: float, n_splits: int, options: Any) -> list[dict[str, Any]]:
    """Return a row for 20 features and one for the end of the search."""
    data = data_of(name, kind)
    if data is None:
        return []
    X, y = data
    rows = []
    for n_features in (20, "auto"):
        means = {}
        for reuse in (False, True):
            found = []
            for seed in range(n_splits):
                stratify = None if kind == "regression" else y
                parts = train_test_split(
                    np.arange(len(y)), test_size=0.25, random_state=options.seed + seed, stratify=stratify
                )
                train, test = parts
                parameters = {"n_features_to_select": n_features, "reuse_features": reuse, "C": C, "n_jobs": options.threads}
                found.append(fit(kind, X[train], y[train], X[test], y[test], **parameters))
            means[reuse] = {key: float(np.mean([entry[key] for entry in found])) for key in found[0]}
        without, reused = means[False], means[True]
        pairs = {
            "features": "{features:.0f}",
            "rounds": "{rounds:.0f}",
            "short of the optimum": "{short:.1e}",
            "held-out score": "{score:.3f}",
            "s": "{s:.2f}",
        }
        rows.append(
            {
                "data": name,
                "task": kind,
                "requested": str(n_features),
                **{key: f"{form.format(**without)} / {form.format(**reused)}" for key, form in pairs.items()},
                "objective gained": f"{(reused['theta'] - without['theta']) / abs(without['theta']):.1%}",
                "converged": f"{without['converged']:.0%} / {reused['converged']:.0%}",
            }
        )
        print_table("Reuse: latest row (without / with)", rows[-1:])
    return rows


def by_data(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per data set: results at 20 features and at the end of the search, without / with reuse."""
    few = {row["data"]: row for row in rows if row["requested"] == "20"}
    return [
        {
            "data": row["data"],
            "features, 20": few[row["data"]]["features"],
            "score, 20": few[row["data"]]["held-out score"],
            "features, auto": row["features"],
            "score, auto": row["held-out score"],
            **{name: row[name] for name in ("short of the optimum", "converged", "objective gained", "s")},
        }
        for row in rows
        if row["requested"] == "auto"
    ]


def main() -> None:
    options = read_arguments(__doc__)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, kind, C in TASKS[:2] if options.quick else TASKS:
            rows += rows_of(name, kind, C, 1 if options.quick else SPLITS, options)
    print_table("Reuse (without / with)", rows)
    write_results("reuse", options, rows=rows)
    if not options.quick:
        replace_section(DOCS / "family.md", "reuse", markdown_table(by_data(rows)))


if __name__ == "__main__":
    main()
