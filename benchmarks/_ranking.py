"""What the benchmarks of the rankings share: the data, splits, accuracy curves, stability, figures and tables for docs/."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import _real
import numpy as np
import psutil
from _tables import DOCS
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from coterie.metrics import hamming_stability, tanimoto_stability, weighted_consistency

FIGURES = DOCS / "figures"
INFORMATIVE = np.array([28, 48, 64, 105, 128, 153, 241, 281, 318, 336, 338, 378, 433, 442, 451, 453, 455, 472, 475, 493])


def load(name: str) -> tuple[Any, np.ndarray]:
    """One of the real data sets, in double precision."""
    X, y = _real.load(name)
    return X.astype(np.float64), y


class Split(NamedTuple):
    """A stratified half to select and train on, and the other half to test on."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def halves(X: Any, y: np.ndarray, n_splits: int, seed: int, *, standardise: bool = False) -> Iterator[Split]:
    """Random halves with the same shares of the classes, as in the paper; scaled by the training half if wanted."""
    splitter = StratifiedShuffleSplit(n_splits, train_size=0.5, random_state=seed)
    for train, test in splitter.split(np.zeros((len(y), 1)), y):
        X_train, X_test = X[train], X[test]
        if standardise:
            scaler = StandardScaler().fit(X_train)
            X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
        yield Split(X_train, y[train], X_test, y[test])


Classifiers = dict[str, Callable[[], Any]]
Order = Callable[[int], np.ndarray]


def accuracies(split: Split, subset_of: Order, sizes: Sequence[int], classifiers: Classifiers) -> dict[str, list[float]]:
    """Test accuracy of each classifier on the best features, for each size."""
    result: dict[str, list[float]] = {name: [] for name in classifiers}
    for size in sizes:
        features = np.sort(subset_of(size))
        for name, make in classifiers.items():
            model = make().fit(split.X[:, features], split.y)
            result[name].append(float(model.score(split.X_test[:, features], split.y_test)))
    return result


class Curves:
    """Accuracy and stability against size, for each method, over the splits."""

    def __init__(self, sizes: Sequence[int], classifiers: Classifiers, n_features: int) -> None:
        self.sizes = list(sizes)
        self.classifiers = classifiers
        self.n_features = n_features
        self.accuracy: dict[str, dict[str, list[list[float]]]] = {}
        self.subsets: dict[str, list[list[np.ndarray]]] = {}

    def add(self, method: str, split: Split, subset_of: Order) -> None:
        """Judge what a method selected on a split."""
        found = accuracies(split, subset_of, self.sizes, self.classifiers)
        for name, values in found.items():
            self.accuracy.setdefault(method, {}).setdefault(name, []).append(values)
        self.subsets.setdefault(method, []).append([np.sort(subset_of(size)) for size in self.sizes])

    def mean(self, method: str, classifier: str) -> np.ndarray:
        return np.mean(self.accuracy[method][classifier], axis=0)

    def std(self, method: str, classifier: str) -> np.ndarray:
        return np.std(self.accuracy[method][classifier], axis=0)

    def stability(self, method: str) -> dict[str, list[float]]:
        runs = self.subsets[method]
        result: dict[str, list[float]] = {"CW_rel": [], "ATI": [], "ANHI": []}
        for number in range(len(self.sizes)):
            subsets = [run[number] for run in runs]
            result["CW_rel"].append(weighted_consistency(subsets, self.n_features))
            result["ATI"].append(tanimoto_stability(subsets))
            result["ANHI"].append(hamming_stability(subsets, self.n_features))
        return result

    def tables(self) -> dict[str, list[list[str]]]:
        """A table for each classifier (mean ± standard deviation in percent) and one for the stability (CW_rel)."""
        methods = list(self.accuracy)
        result = {}
        for name in self.classifiers:
            rows = [["features", *methods]]
            for i, size in enumerate(self.sizes):
                cells = [f"{100 * self.mean(m, name)[i]:.1f} ± {100 * self.std(m, name)[i]:.1f}" for m in methods]
                rows.append([str(size), *cells])
            result[f"Test accuracy, {name} (%)"] = rows
        stability = {m: self.stability(m) for m in methods}
        for measure in ("CW_rel", "ATI", "ANHI"):
            rows = [["features", *methods]]
            rows += [[str(size), *(f"{stability[m][measure][i]:.3f}" for m in methods)] for i, size in enumerate(self.sizes)]
            result[f"Stability, {measure}"] = rows
        return result

    def results(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "sizes": self.sizes,
            "accuracy": self.accuracy,
            "stability": {method: self.stability(method) for method in self.accuracy},
        }

    def draw(self, title: str, name: str) -> Path:
        """Accuracy with each classifier and the three stabilities, as in the paper's figures; a small PNG."""
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        n_panels = len(self.classifiers) + 3
        figure, axes = plt.subplots(1, n_panels, figsize=(3.1 * n_panels, 2.7), constrained_layout=True)
        for axis, classifier in zip(axes, self.classifiers, strict=False):
            for method in self.accuracy:
                mean, std = self.mean(method, classifier), self.std(method, classifier)
                (line,) = axis.plot(self.sizes, mean, label=method, linewidth=1.3)
                axis.fill_between(self.sizes, mean - std, mean + std, color=line.get_color(), alpha=0.12, linewidth=0)
            axis.set_title(f"accuracy, {classifier}", fontsize=9)
        for axis, measure in zip(axes[len(self.classifiers) :], ("CW_rel", "ATI", "ANHI"), strict=True):
            for method in self.accuracy:
                axis.plot(self.sizes, self.stability(method)[measure], label=method, linewidth=1.3)
            axis.set_title(f"stability, {measure}", fontsize=9)
        for axis in axes:
            axis.set_xlabel("features", fontsize=8)
            axis.tick_params(labelsize=7)
            axis.grid(alpha=0.25, linewidth=0.5)
            if self.sizes[-1] > 10 * self.sizes[0]:
                axis.set_xscale("log")
        axes[0].legend(fontsize=7)
        figure.suptitle(title, fontsize=10)
        FIGURES.mkdir(exist_ok=True)
        path = FIGURES / f"{name}.png"
        figure.savefig(path, dpi=80)
        plt.close(figure)
        return path


def order_of(scores: np.ndarray) -> Order:
    """The best features by score, for any size."""
    order = np.argsort(-scores, kind="stable")
    return lambda size: order[:size]


def found_informative(scores: np.ndarray) -> int:
    """How many of Madelon's 20 informative features are among the 20 best."""
    return len(np.intersect1d(np.argsort(-scores, kind="stable")[:20], INFORMATIVE))


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table; the first row is its head."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def load_average() -> str:
    """How busy the machine is, all processes together, in words."""
    return f"{psutil.getloadavg()[1]:.1f} on {os.cpu_count()} cores"
