"""Parts shared by the benchmarks of the rankings: data, splits, accuracy, stability and tables for docs/evidence."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import _real
import numpy as np
import pandas as pd
import psutil
from _tables import DOCS
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from coterie.data import open_features
from coterie.metrics import hamming_stability, tanimoto_stability, weighted_consistency

PAGE = DOCS / "ranking-evidence.md"
STABILITIES = ("CW_rel", "ATI", "ANHI")
INFORMATIVE = np.array([28, 48, 64, 105, 128, 153, 241, 281, 318, 336, 338, 378, 433, 442, 451, 453, 455, 472, 475, 493])


def load(name: str) -> tuple[Any, np.ndarray]:
    """Load a real data set in double precision."""
    X, y = _real.load(name)
    return X.astype(np.float64), y


def wide(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a data set as an array; one of them is LIBSVM text."""
    if name != "duke":
        X, y = _real.load(name)
        return np.asarray(X, dtype=np.float64), y
    data = open_features(_real.data_path("duke.svm"))
    X = data.source.block(0, data.source.shape[1])
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float64), np.asarray(data.y)


class Split(NamedTuple):
    """A stratified half for selection and training, and the other half for testing."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def halves(X: Any, y: np.ndarray, n_splits: int, seed: int, *, standardise: bool = False) -> Iterator[Split]:
    """Yield random stratified halves, as in the paper, optionally standardised by the training half."""
    splitter = StratifiedShuffleSplit(n_splits, train_size=0.5, random_state=seed)
    for train, test in splitter.split(np.zeros((len(y), 1)), y):
        X_train, X_test = X[train], X[test]
        if standardise:
            scaler = StandardScaler().fit(X_train)
            X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
        yield Split(X_train, y[train], X_test, y[test])


Classifiers = dict[str, Callable[[], Any]]
Order = Callable[[int], np.ndarray]


class Curves:
    """Accuracy and stability against size, for each method, over the splits.

    One fit of DAF gives three rankings, each tested with several classifiers. `coterie.compare` is not used, because it would
    evaluate all probes once for each ranking and classifier.
    """

    def __init__(self, sizes: Sequence[int], classifiers: Classifiers, n_features: int) -> None:
        self.sizes = list(sizes)
        self.classifiers = classifiers
        self.n_features = n_features
        self.subsets: dict[str, list[list[np.ndarray]]] = {}
        self._rows: list[dict[str, Any]] = []

    def add(self, method: str, split: Split, subset_of: Order, tuned: Classifiers | None = None) -> None:
        """Test the features that a method selected on a split; ``tuned`` replaces classifiers."""
        runs = self.subsets.setdefault(method, [])
        subsets = [np.sort(subset_of(size)) for size in self.sizes]
        for size, features in zip(self.sizes, subsets, strict=True):
            row: dict[str, Any] = {"method": method, "n_features": size, "fold": len(runs), "status": "ok"}
            for name, make in {**self.classifiers, **(tuned or {})}.items():
                model = make().fit(split.X[:, features], split.y)
                row[name] = float(model.score(split.X_test[:, features], split.y_test))
            self._rows.append(row)
        runs.append(subsets)

    def table(self) -> pd.DataFrame:
        """Return one row per method, size and split, with the stability over all splits."""
        stability = pd.DataFrame(
            {
                "method": method,
                "n_features": size,
                **(self._stability(subsets) if len(subsets) > 1 else dict.fromkeys(STABILITIES, float("nan"))),
            }
            for method, runs in self.subsets.items()
            for size, subsets in zip(self.sizes, zip(*runs, strict=True), strict=True)
        )
        return pd.DataFrame(self._rows).merge(stability, on=["method", "n_features"])

    def _stability(self, subsets: Sequence[np.ndarray]) -> dict[str, float]:
        return {
            "CW_rel": weighted_consistency(subsets, self.n_features),
            "ATI": tanimoto_stability(subsets),
            "ANHI": hamming_stability(subsets, self.n_features),
        }

    def tables(self) -> dict[str, list[dict[str, str]]]:
        """Return tables by title: accuracy of each classifier (mean ± standard deviation in per cent), and each stability."""
        groups = self.table().groupby(["method", "n_features"])
        result = {}
        for name in self.classifiers:
            mean, std = 100 * groups[name].mean(), 100 * groups[name].std(ddof=0)
            cells = {key: f"{mean[key]:.1f} ± {std[key]:.1f}" for key in mean.index}
            result[f"Test accuracy, {name} (%)"] = self._by_method(cells)
        for measure in STABILITIES:
            cells = {key: f"{value:.3f}" for key, value in groups[measure].first().items()}
            result[f"Stability, {measure}"] = self._by_method(cells)
        return result

    def _by_method(self, cells: dict[tuple[str, int], str]) -> list[dict[str, str]]:
        return [{"features": str(size), **{method: cells[method, size] for method in self.subsets}} for size in self.sizes]

    def page_table(self) -> list[dict[str, str]]:
        """Return one row per size; each cell has the accuracy with each classifier and, from two splits on, CW_rel.

        DAF1 is omitted if its accuracies equal those of DAF0 to 0.1 points.
        """
        groups = self.table().groupby(["method", "n_features"])
        several = {method: len(runs) > 1 for method, runs in self.subsets.items()}
        parts: dict[tuple[str, int], list[str]] = {key: [] for key in groups.groups}
        shown = [method for method in self.subsets if method != "DAF1" or not self._same(groups, "DAF0", "DAF1")]
        for name in self.classifiers:
            mean, std = 100 * groups[name].mean(), 100 * groups[name].std(ddof=0)
            for key, cell in parts.items():
                cell.append(f"{mean[key]:.1f} ± {std[key]:.1f}" if several[key[0]] else f"{mean[key]:.1f}")
        consistency = groups["CW_rel"].first()
        for key, cell in parts.items():
            if several[key[0]]:
                cell.append(f"{consistency[key]:.3f}")
        cells = {key: " / ".join(cell) for key, cell in parts.items()}
        return [{"features": str(size), **{method: cells[method, size] for method in shown}} for size in self.sizes]

    def _same(self, groups: Any, first: str, second: str) -> bool:
        means = [groups[name].mean() for name in self.classifiers]
        return all(abs(mean[first, size] - mean[second, size]) < 0.0015 for mean in means for size in self.sizes)


def tuned(split: Split) -> Classifiers:
    """Return the SVM with a Gaussian kernel, with parameters chosen once on the training half with all features.

    As in the paper, they are then used for all subsets.
    """
    grid = {"svc__C": [1.0, 10.0, 100.0], "svc__gamma": [1e-4, 1e-3, 1e-2, 1e-1]}
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=3).fit(split.X, split.y)
    return {"SVM (rbf)": lambda: clone(search.best_estimator_)}


def tuned_linear(split: Split) -> float:
    """Return the C of the linear SVM, chosen once on the training half with all features."""
    search = GridSearchCV(LinearSVC(random_state=0), {"C": [0.01, 0.1, 1.0, 10.0]}, cv=3).fit(split.X, split.y)
    return float(search.best_params_["C"])


def order_of(scores: np.ndarray) -> Order:
    """Return a function that gives the best features by score for any size."""
    order = np.argsort(-scores, kind="stable")
    return lambda size: order[:size]


def load_average() -> str:
    """Return the load average of the machine as text."""
    return f"{psutil.getloadavg()[1]:.1f} on {os.cpu_count()} cores"
