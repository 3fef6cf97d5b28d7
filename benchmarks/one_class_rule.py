"""One class by a fixed rule that does not use the other class: only the share of rejected training samples is given.

The eight tasks of ``one_class.py``. Coterie has one setting for dense data (50 features per round) and one for sparse data (50
features, whole groups, threshold 0.05, standardised). The C that rejects the share is found by bisection on the training
samples. LIBSVM's linear one-class SVM has the same share as its nu, on raw and on standardised columns. The accuracy is
measured on held-out samples of both classes and is not used for any choice. Writes a table of
docs/evidence/one-class-evidence.md.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from _models import warnings_counted
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from one_class import Task, all_tasks, make_task, typical_c
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from coterie import GroupDiscoveryOneClass

SHARES = (0.3, 0.5)
TOLERANCE = 0.01  # of the rejected share
MAX_STEPS = 14


def settings(X: Any) -> dict[str, Any]:
    """Return the settings for dense or sparse data."""
    if not sparse.issparse(X):
        return {"n_features_per_round": 50}
    return {
        "n_features_to_select": 50,
        "n_features_per_round": 50,
        "predict_with": "groups",
        "threshold": 0.05,
        "standardize": True,
    }


def by_share(task: Task, share: float, start: float, options: Any) -> GroupDiscoveryOneClass:
    """Return the model whose C rejects nearly this share of the training samples."""
    low, high, at = -np.inf, np.inf, np.log10(start)
    best: tuple[float, GroupDiscoveryOneClass] | None = None
    for _ in range(6 if options.quick else MAX_STEPS):
        model = GroupDiscoveryOneClass(
            C=10**at, threshold_rule="margin", n_jobs=options.threads, **settings(task.columns)
        ).fit(task.columns)
        rejected = float((model.predict(task.columns) == -1).mean())
        if best is None or abs(rejected - share) < best[0]:
            best = abs(rejected - share), model
        if best[0] <= TOLERANCE:
            break
        low, high = (at, high) if rejected > share else (low, at)
        at = (low + high) / 2 if np.isfinite(low + high) else at + (0.5 if rejected > share else -0.5)
    assert best is not None
    return best[1]


def ocsvm_accuracy(task: Task, scale: bool, share: float) -> float:
    """Return the accuracy of LIBSVM's one-class SVM with nu of this share; SciPy or NumPy computes the products faster."""
    rows, test = task.rows, task.test
    if scale:
        scaler = StandardScaler(with_mean=False).fit(rows)
        rows, test = scaler.transform(rows), scaler.transform(test)
    products = [left @ rows.T for left in (rows, test)]
    kernel, test_kernel = (p.toarray() if sparse.issparse(p) else np.asarray(p) for p in products)
    model = OneClassSVM(kernel="precomputed", nu=share, cache_size=1000).fit(kernel)
    return task.accuracy(model.predict(test_kernel))


def row(name: str, how: str, X: Any, y: np.ndarray, label: Any, share: float, options: Any) -> dict[str, Any]:
    task = make_task(X, y, label, options)
    scaled = settings(X).get("standardize", False)
    rows = StandardScaler(with_mean=False).fit_transform(task.rows) if scaled else task.rows
    model = by_share(task, share, typical_c(rows), options)
    ours, plain, standardised = (
        task.accuracy(model.predict(task.test)),
        ocsvm_accuracy(task, False, share),
        ocsvm_accuracy(task, True, share),
    )
    return {
        "data": name,
        "prepared as": how,
        "class": str(label),
        "share": share,
        "Coterie": ours,
        "rejected": float((model.predict(task.columns) == -1).mean()),
        "features": f"{len(model.support_features_):,} / {len(model.prediction_features_):,}",
        "OCSVM": plain,
        "OCSVM, columns / sd": standardised,
        "Coterie minus OCSVM, points": f"{100 * (ours - plain):+.1f}",
    }


def by_task(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per task with the accuracies at each share."""
    tasks: dict[tuple[str, ...], dict[str, Any]] = {}
    for one in rows:
        task = {name: one[name] for name in ("data", "prepared as", "class", "features")}
        cells = tasks.setdefault((one["data"], one["prepared as"], one["class"]), task)
        for name in ("Coterie", "OCSVM", "OCSVM, columns / sd", "Coterie minus OCSVM, points"):
            cells[f"{name}, {one['share']:g}"] = one[name]
    return list(tasks.values())


def main() -> None:
    options = read_arguments(__doc__)
    rows = []
    with warnings_counted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task in all_tasks(options):
            rows += [row(*task, share, options) for share in SHARES]
            print_table("One class by a fixed rule: latest rows", rows[-len(SHARES) :])
    print_table("One class by a fixed rule", rows)
    if not options.quick:
        replace_section(DOCS / "one-class-evidence.md", "one class, one rule", markdown_table(by_task(rows)))
    write_results("one_class_rule", options, rows=rows)


if __name__ == "__main__":
    main()
