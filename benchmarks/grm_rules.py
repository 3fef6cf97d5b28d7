"""Choice of GRM's chance level and of the strength of sets, on the data sets to choose with.

Every rule converts Fisher's scores to relevances: the share of variance between the classes or its logarithm, with or without
a chance level, which excludes features or is subtracted. Sets also differ in the strength of redundancy, and in whether
redundancy is measured within the classes. Writes two tables of docs/evidence/redundancy-evidence.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _record import caption, read_arguments
from _tables import DOCS, markdown_table, replace_section
from grm_mrmr import CHOSEN_ON, N_FOLDS, SIZES, Journal, judge, noise_case, samples_of, whole_madelon
from scipy import sparse, stats
from sklearn.model_selection import StratifiedKFold

from coterie import GlobalRedundancySelector
from coterie.baselines import MRMRSelector
from coterie.filters import fisher_score
from coterie.redundancy.measures import MatrixRedundancy
from coterie.redundancy.solver import choose_set


class Fold:
    """Scores of one training part, and the rules that use them."""

    def __init__(self, X: Any, y: np.ndarray) -> None:
        self.X, self.y = X, y
        self.scores = fisher_score(X, y, n_jobs=1)
        self.share = self.scores / (1.0 + self.scores)
        self.n_classes = len(np.unique(y))
        self.null = stats.beta((self.n_classes - 1) / 2, (len(y) - self.n_classes) / 2)
        self.order = np.argsort(-self.scores, kind="stable")

    def level(self, fdr: float, *, all_features: bool = False) -> float:
        """Return the chance level by Benjamini and Hochberg, or by Bonferroni for ``all_features``."""
        p_values = np.sort(self.null.sf(self.share[self.scores > 0.0]))
        n = len(p_values)
        passed = np.flatnonzero(p_values <= fdr * np.arange(1, n + 1) / n)
        count = 1 if all_features or not len(passed) else passed[-1] + 1
        return float(self.null.isf(fdr * count / n))

    def excess(self, fdr: float, **options: bool) -> np.ndarray:
        level = self.level(fdr, **options)
        return np.maximum(self.share - level, 0.0) / (1.0 - level)

    def weights(self, relevance: np.ndarray, size: int) -> np.ndarray:
        """Select by weights. Features of relevance 0 follow by their own scores."""
        candidates = np.flatnonzero(relevance)
        if len(candidates) <= size:
            return self.order[:size]
        X = self.X[:, candidates]
        found = GlobalRedundancySelector(relevance[candidates], size, solution="weights", n_jobs=1).fit(X)
        return candidates[found.support_features_]

    def set(self, relevance: np.ndarray, size: int, strength: float, *, within: bool = False) -> np.ndarray:
        """Select a set, with the redundancy of all samples or within the classes."""
        candidates = np.flatnonzero(relevance)
        if len(candidates) <= size:
            return self.order[:size]
        pool = candidates[np.argsort(-relevance[candidates], kind="stable")][: 20 * size]
        columns = self.X[:, pool].toarray() if sparse.issparse(self.X) else self.X[:, pool].astype(np.float64)
        columns = columns - columns.mean(axis=0)
        for label in np.unique(self.y) if within else ():
            columns[self.y == label] -= columns[self.y == label].mean(axis=0)
        length = np.linalg.norm(columns, axis=0)
        columns /= np.where(length > 1e-12, length, np.inf)
        matrix = (columns.T @ columns) ** 2
        np.fill_diagonal(matrix, 1.0)
        return pool[choose_set(relevance[pool], MatrixRedundancy(matrix), size, strength, 100 * size).members]


Rule = Callable[[Fold, int], np.ndarray]
WEIGHTS: dict[str, Rule] = {
    "Fisher's score alone": lambda fold, k: fold.order[:k],
    "score, no chance level (former default)": lambda fold, k: fold.weights(fold.scores, k),
    "share, no chance level": lambda fold, k: fold.weights(fold.share, k),
    "share of features above 5 %": lambda fold, k: fold.weights(np.where(fold.excess(0.05) > 0, fold.share, 0.0), k),
    "excess over 5 %": lambda fold, k: fold.weights(fold.excess(0.05), k),
    "**excess over 1 %** (default)": lambda fold, k: fold.weights(fold.excess(0.01), k),
    "excess over 5 %, Bonferroni": lambda fold, k: fold.weights(fold.excess(0.05, all_features=True), k),
    "logarithm, above 1 %": lambda fold, k: fold.weights(np.where(fold.excess(0.01) > 0, np.log1p(fold.scores), 0.0), k),
    "mRMR MID": lambda fold, k: MRMRSelector(k, n_jobs=1).fit(fold.X, fold.y).support_features_,
}
SETS: dict[str, Rule] = {
    "λ = 2, no chance level (former default)": lambda fold, k: fold.set(fold.share, k, 2.0),
    "λ = 2": lambda fold, k: fold.set(fold.excess(0.01), k, 2.0),
    "λ = 1": lambda fold, k: fold.set(fold.excess(0.01), k, 1.0),
    "**λ by the number of classes** (default)": lambda fold, k: fold.set(fold.excess(0.01), k, min(3.0, fold.n_classes / 2)),
    "within classes, λ = 2": lambda fold, k: fold.set(fold.excess(0.01), k, 2.0, within=True),
    "within classes, λ = 1": lambda fold, k: fold.set(fold.excess(0.01), k, 1.0, within=True),
}
RULES = WEIGHTS | SETS


def measure(
    journal: Journal, name: str, X: Any, y: np.ndarray, n_folds: int, n_neighbors: int, sizes: tuple[int, ...]
) -> None:
    """Measure all rules on one data set."""
    X = sparse.csc_array(X) if sparse.issparse(X) else X
    for number, (train, test) in enumerate(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(np.zeros(len(y)), y)):
        fold = Fold(samples_of(X, train), y[train])
        for size in sizes:
            for rule, select in RULES.items() if X.shape[1] > 2 * size else ():

                def result(fold: Fold = fold, size: int = size, select: Rule = select, parts: Any = (train, test)) -> Any:
                    return judge(X, y, *parts, np.sort(select(fold, size)), n_neighbors)

                journal.get((name, size, number, rule), result)
    print(name, flush=True)


def row_of(journal: Journal, rule: str) -> dict[str, str]:
    """Return the row of a rule: mean accuracies and redundancy, two classes alone, noise features, Madelon."""
    row = {"relevance" if rule in WEIGHTS else "set": rule}
    for size in SIZES:
        rows = {}
        for key, found in journal.rows.items():
            if key[1] == size and key[3] == rule and key[0] in CHOSEN_ON:
                rows.setdefault(key[0], []).append([(found["svm"] + found["knn"]) / 2, found["redundancy"]])
        accuracy, redundancy = np.mean([np.mean(one, axis=0) for one in rows.values()], axis=0)
        row[f"{size} features"] = f"{accuracy:.1f} / {redundancy:.3f}"
    noise = [found["noise"] for key, found in journal.rows.items() if key[0] == "noise case" and key[3] == rule]
    row["noise features of 10, 20 seeds"] = str(sum(noise))
    madelon = [found["knn"] for key, found in journal.rows.items() if key[:2] == ("madelon", 10) and key[3] == rule]
    return row | {"Madelon, 10 features": f"{np.mean(madelon):.1f}"}


def main() -> None:
    options = read_arguments(__doc__)
    warnings.simplefilter("ignore")
    journal = Journal(f"grm_rules{'-quick' if options.quick else ''}", options.source)
    for seed in range(100, 102 if options.quick else 120):
        fold = Fold(*noise_case(seed))
        for rule, select in RULES.items():
            journal.get(
                ("noise case", 10, seed, rule),
                lambda fold=fold, select=select: {"noise": int(np.count_nonzero(select(fold, 10) >= 16))},
            )
    for name, load in list(CHOSEN_ON.items())[: 1 if options.quick else None]:
        measure(journal, name, *load(), N_FOLDS, 5, SIZES[: 1 if options.quick else None])
    if options.quick:
        return
    measure(journal, "madelon", *whole_madelon(), 5, 3, SIZES[:1])
    page, source = DOCS / "redundancy-evidence.md", f"{caption()[:-1]} Source digest {options.source}.*\n\n"
    replace_section(page, "rules", source + markdown_table([row_of(journal, rule) for rule in WEIGHTS]))
    replace_section(page, "sets", source + markdown_table([row_of(journal, rule) for rule in SETS]))
    print("Written: docs/evidence/redundancy-evidence.md")


if __name__ == "__main__":
    main()
