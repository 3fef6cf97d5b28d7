"""Shares of several classes in the selected features: the default, balanced class weights, equal shares and turns.

The support features of a model with given C="auto" are counted by the class that they mark. A linear SVM on them predicts
held-out samples. Simulated cells and blood cells also have known markers. "In turn" scores the features of each round by the
residual of one class only, the classes in turn.

Simulated cells of the seeds 100 to 102, blood cells of the first five types, and the sets khan and su were used to choose.
Everything else was computed once, after the choice. Writes the tables of docs/evidence/marker-genes-evidence.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from _cells import Cells, blood, simulated
from _record import caption, read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from choice_of_settings import read
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC

from coterie import GroupDiscoveryClassifier
from coterie.data.top import TopQuery
from coterie.search import search
from coterie.search.oracle import Block, Oracle
from coterie.search.scores import LazyScores
from coterie.search.shares import EqualSharesOracle

PAGE = DOCS / "marker-genes-evidence.md"
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    'class_weight="balanced"': {"class_weight": "balanced"},
    "equal_classes=True": {"equal_classes": True},
    "both": {"class_weight": "balanced", "equal_classes": True},
    "in turn": {"equal_classes": True, "n_features_per_round": 1},
}
SIZES = (10, 20)
FIRST_TYPES = ("CD14+ Monocyte", "CD19+ B", "CD34+", "CD4+/CD25 T Reg", "CD4+/CD45RA+/CD25- Naive T")
OTHER_TYPES = ("CD4+/CD45RO+ Memory", "CD56+ NK", "CD8+ Cytotoxic T", "CD8+/CD45RA+ Naive Cytotoxic", "Dendritic")


class InTurnOracle(Oracle):
    """An oracle that scores features by the residual of one class, the classes in turn."""

    def _of_one_class(self, residual: np.ndarray) -> np.ndarray:
        chosen = np.zeros_like(residual)
        own = len(self.supports) % residual.shape[1]
        chosen[:, own] = residual[:, own]
        return chosen

    def query(self, residual: np.ndarray, n_new: int) -> TopQuery:
        return super().query(self._of_one_class(residual), n_new)

    def find_block(self, residual: np.ndarray, n_new: int, scores: Sequence[LazyScores] | None = None) -> Block:
        block = super().find_block(self._of_one_class(residual), n_new, scores)
        return replace(block, scores=LazyScores(self.view, residual).of(block.features))


@dataclass(frozen=True)
class Samples:
    """Features and classes, with the known markers of each class by name, if there are any."""

    X: Any
    kind: np.ndarray
    names: np.ndarray
    markers: dict[str, set[str]]
    seed: int
    n_folds: int


def of_cells(cells: Cells, seed: int, n_folds: int, kinds: Sequence[str] | None = None) -> Samples:
    adata = cells.adata if kinds is None else cells.adata[np.isin(np.asarray(cells.adata.obs["kind"]), kinds)]
    kind = np.asarray(adata.obs["kind"]).astype(str)
    markers = {name: set().union(*(own[name] for own in cells.markers.values())) for name in np.unique(kind)}
    return Samples(adata.X.tocsc(), kind, np.asarray(adata.var_names).astype(str), markers, seed, n_folds)


def of_set(name: str) -> Samples:
    X, y = read(name)
    return Samples(X, np.asarray(y).astype(str), np.arange(X.shape[1]).astype(str), {}, 0, 3)


def parts(which: str, *, quick: bool) -> dict[str, list[Samples]]:
    """Return the data by the row of the table."""
    if quick:
        return {"simulated cells": [of_cells(simulated(100, 300, 200), 100, 2)]}
    if which == "choose":
        return {
            "simulated cells": [of_cells(simulated(seed), seed, 3) for seed in (100, 101, 102)],
            "blood, first five types": [of_cells(blood(), 0, 3, FIRST_TYPES)],
            **{name: [of_set(name)] for name in ("khan", "su")},
        }
    return {
        "simulated cells": [of_cells(simulated(seed), seed, 3) for seed in range(5)],
        "blood, other five types": [of_cells(blood(), 0, 5, OTHER_TYPES)],
        "blood, ten types": [of_cells(blood(), 0, 5)],
        **{name: [of_set(name)] for name in ("glioma", "mfeat", "usps")},
    }


def measured(samples: Samples, threads: int) -> Iterator[dict[str, Any]]:
    """Yield figures of each fold, method and number of features."""
    folds = StratifiedKFold(samples.n_folds, shuffle=True, random_state=samples.seed)
    kinds = np.unique(samples.kind)
    for train, test in folds.split(np.zeros(len(samples.kind)), samples.kind):
        for method, options in METHODS.items():
            search.EqualSharesOracle = InTurnOracle if method == "in turn" else EqualSharesOracle  # type: ignore[misc]
            model = GroupDiscoveryClassifier(max(SIZES), n_jobs=threads, **options)
            model.fit(samples.X[train], samples.kind[train])
            marks = np.array([str(group.marks) for group in model.groups_])
            for size in SIZES:
                own = model.groups_.support[:size]
                scaler = MaxAbsScaler().fit(samples.X[train][:, own])
                svm = LinearSVC(C=1.0, max_iter=5000, random_state=0)
                svm.fit(scaler.transform(samples.X[train][:, own]), samples.kind[train])
                predicted = svm.predict(scaler.transform(samples.X[test][:, own]))
                counts = [int((marks[:size] == kind).sum()) for kind in kinds]
                known = sum(len(set(samples.names[own]) & markers) for markers in samples.markers.values())
                yield {
                    "method": method,
                    "features": size,
                    "accuracy": float((predicted == samples.kind[test]).mean()),
                    "balanced accuracy": float(balanced_accuracy_score(samples.kind[test], predicted)),
                    "fewest": min(counts),
                    "most": max(counts),
                    "without": sum(count == 0 for count in counts),
                    "known": known if samples.markers else None,
                }


def table(which: str, threads: int, *, quick: bool) -> list[dict[str, Any]]:
    """Return one row per data set, number of features and method."""
    rows = []
    for name, data in parts(which, quick=quick).items():
        found = [row for samples in data for row in measured(samples, threads)]
        for size in SIZES:
            for method in METHODS:
                own = [row for row in found if (row["method"], row["features"]) == (method, size)]
                mean = {key: float(np.mean([row[key] for row in own])) for key in ("accuracy", "balanced accuracy")}
                counts = {key: float(np.mean([row[key] for row in own])) for key in ("fewest", "most", "without")}
                known = [row["known"] for row in own]
                rows.append(
                    {
                        "data": name,
                        "features": size,
                        "method": method,
                        **{key: f"{value:.3f}" for key, value in mean.items()},
                        "fewest / most per class": f"{counts['fewest']:.1f} / {counts['most']:.1f}",
                        "classes without": f"{counts['without']:.1f}",
                        "known markers": "–" if None in known else f"{np.mean(known):.1f}",
                    }
                )
    return rows


def main() -> None:
    options = read_arguments(__doc__, parts=["choose", "report"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = [which for which in ("choose", "report") if options.only in (None, which)]
        results = {which: table(which, options.threads, quick=options.quick) for which in wanted}
    for which, rows in results.items():
        print_table(which, rows)
        if not options.quick:
            replace_section(PAGE, f"shares {which}", f"{caption()}\n\n{markdown_table(rows)}")
    write_results("class_shares", options, **results)


if __name__ == "__main__":
    main()
