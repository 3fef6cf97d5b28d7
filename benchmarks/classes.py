"""Several classes: accuracy by number of features, compared with the multi-class L1-SVM and recursive elimination.

One split (80 / 20), dense features scaled to unit variance, text as log counts. Every selector is tested with the same
linear SVM on its selected features; ``own model`` is the accuracy of our model itself. The C of the L1-SVM is tuned to the
number of features for at most two minutes. Coterie runs with its default rounds (one feature up to ten, then a tenth of
those found) and with twenty rounds. On text, the L1-SVM and recursive elimination are limited to words of at least 20 and
100 texts, because of their time; Coterie uses all 1.6 million words.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _models import tune, warnings_counted
from _real import load
from _record import read_arguments, write_results
from _side_by_side import held_out_accuracy
from _tables import DOCS, columns, markdown_table, print_table, replace_section
from scipy import sparse
from sklearn.feature_selection import RFE
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, l1_min_c

from coterie import GroupDiscoveryClassifier

SIZES = (10, 20, 50, 100)
TASKS = (
    ("mfeat", "y"),
    ("usps", "y"),
    ("pbmc68k_reduced", "bulk_labels"),
    ("coil20", "y"),
    ("20news_bigrams", "y20"),
)


class Task:
    """A data set, split and scaled."""

    def __init__(self, name: str, label: str, seed: int) -> None:
        X, y = load(name, label)
        self.name = name
        train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed, stratify=y)
        self.y, self.y_test = y[train], y[test]
        if sparse.issparse(X):
            X = X.astype(np.float64)
            X.data = np.log1p(X.data)
            self.X, self.X_test = sparse.csc_array(X[train]), sparse.csc_array(X[test])
        else:
            scaler = StandardScaler().fit(X[train].astype(np.float64))
            self.X, self.X_test = scaler.transform(X[train]), scaler.transform(X[test])

    def frequent(self, count: int) -> np.ndarray:
        """Return the features with at least ``count`` nonzeros; all features of dense data."""
        if not sparse.issparse(self.X):
            return np.arange(self.X.shape[1])
        return np.flatnonzero(np.diff(self.X.indptr) >= count)

    def judge(self, features: np.ndarray) -> float | None:
        return held_out_accuracy(self.X, self.y, self.X_test, self.y_test, features)


def fit_l1(X: Any, y: np.ndarray, C: float) -> LinearSVC:
    return LinearSVC(penalty="l1", dual=False, C=C, tol=1e-2, max_iter=100).fit(X, y)


def eliminated(task: Task, candidates: np.ndarray, sizes: tuple[int, ...]) -> dict[int, tuple[np.ndarray, float]]:
    """Return for each size the features that recursive elimination leaves and its seconds, from one elimination."""
    left, seconds, found = candidates, 0.0, {}
    for size in sorted(sizes, reverse=True):
        began = time.perf_counter()
        svm = LinearSVC(dual=len(candidates) > len(task.y), C=0.01, tol=1e-2, max_iter=50)
        left = left[RFE(svm, n_features_to_select=size, step=0.2).fit(task.X[:, left], task.y).support_]
        seconds += time.perf_counter() - began
        found[size] = left, seconds
    return found


def rows_of(task: Task, sizes: tuple[int, ...], threads: int) -> list[dict[str, Any]]:
    rows = []
    l1_features, rfe_features = task.frequent(20), task.frequent(100)
    start = 2.0 * l1_min_c(task.X[:, l1_features], task.y, loss="squared_hinge")
    elimination = eliminated(task, rfe_features, sizes)
    for size in sizes:
        began = time.perf_counter()
        ours = GroupDiscoveryClassifier(size, C=1.0, standardize=False, n_jobs=threads).fit(task.X, task.y)
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        slower = GroupDiscoveryClassifier(
            size, C=1.0, n_features_per_round=max(1, size // 20), standardize=False, n_jobs=threads
        ).fit(task.X, task.y)
        slower_seconds = time.perf_counter() - began
        l1_model = tune(fit_l1, task.X[:, l1_features], task.y, size, start, max_fits=12, max_seconds=120.0)
        start = l1_model.C
        theirs = l1_features[np.flatnonzero(np.abs(l1_model.model.coef_).max(axis=0))]
        rows.append(
            {
                "data": task.name,
                "features": size,
                "Coterie": task.judge(ours.support_features_),
                "Coterie, 20 rounds": task.judge(slower.support_features_),
                "own model": ours.score(task.X_test, task.y_test),
                "with affiliated": task.judge(ours.groups_.members) if len(ours.groups_.members) <= 2000 else None,
                "L1-SVM": task.judge(theirs),
                "its features": len(theirs),
                "RFE": task.judge(elimination[size][0]),
                "Coterie, s": seconds,
                "20 rounds, s": slower_seconds,
                "RFE, s": elimination[size][1],
            }
        )
        print_table("Latest row", rows[-1:])
    return rows


def main() -> None:
    options = read_arguments(__doc__, parts=[name for name, _ in TASKS])
    sizes = (5, 10) if options.quick else SIZES
    rows = []
    with warnings_counted():
        for name, label in TASKS[:1] if options.quick else TASKS:
            if options.only not in (None, name):
                continue
            rows += rows_of(Task(name, label, options.seed), sizes, options.threads)
            if not options.quick and options.only is None:  # the text takes long, so finished rows are saved
                names = [name for name in rows[0] if "20 rounds" not in name]
                replace_section(DOCS / "family.md", "classes", markdown_table(columns(rows, *names)))
    print_table("Several classes: accuracy by number of features", rows)
    write_results("classes", options, rows=rows)


if __name__ == "__main__":
    main()
