"""Defaults of the plain estimators: held-out scores by rule for C, compared with C = 1 and with the L1-SVM.

The rule was chosen on one part of the data sets and is reported on the others (``_plain_sets.py``). Scores are means over
shuffled folds (five, or three from 1,000 samples; stratified for classes) of estimators with 10, 20 and 50 features. The
L1-SVM has its C tuned by bisection to as many features; it predicts with its own weights, or with those of a linear SVM
refitted on its features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _models import tune, warnings_counted
from _plain_sets import CHOOSE, CHOOSE_NUMBERS, REPORT, REPORT_NUMBERS, Data
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from scipy import sparse
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.svm import LinearSVC, l1_min_c

from coterie import (
    GroupDiscoveryClassifier,
    GroupDiscoveryClassifierCV,
    GroupDiscoveryRegressor,
    GroupDiscoveryRegressorCV,
)
from coterie.data.memory import as_source
from coterie.data.view import FeatureView
from coterie.search.penalty import mean_variance, typical_variance

PAGE = DOCS / "plain-estimators.md"
SIZES = (10, 20, 50)
# Values of C times a typical variance at which the sets to choose with are scored.
GRID = tuple(10.0 ** (exponent / 2) for exponent in range(-6, 6))
FACTORS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
# Rules C = factor / variance * (TYPICAL / n_samples) ** power.
POWERS = (0.0, 0.5, 1.0)
TYPICAL = 300
MANY = 1000


def folds_of(X: Any, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield training and test samples of the folds."""
    kind = KFold if y.dtype.kind == "f" else StratifiedKFold
    n_folds = 5 if len(y) < MANY else 3
    yield from kind(n_folds, shuffle=True, random_state=0).split(np.zeros(len(y)), y)


def by_column(X: Any) -> Any:
    return sparse.csc_array(X) if sparse.issparse(X) else np.asfortranarray(X)


class Curves:
    """Mean scores of a data set by scale, size and C times a typical variance, interpolated."""

    def __init__(self, name: str, X: Any, y: np.ndarray, threads: int) -> None:
        self.name, self.n_samples, self.is_sparse = name, len(y), sparse.issparse(X)
        self.curves: dict[tuple[bool, int], dict[float, float]] = {}  # scores by C times variance, in increasing order
        self.variance: dict[bool, float] = {}
        make = GroupDiscoveryRegressorCV if y.dtype.kind == "f" else GroupDiscoveryClassifierCV
        for scaled in (False, True) if self.is_sparse else (True,):
            view = FeatureView.of(as_source(by_column(X)), standardize=scaled, centred=True)
            variance = self.variance[scaled] = typical_variance(view)
            values = sorted({*GRID, variance})  # the variance is the value of C = 1
            for size in SIZES:
                model = make(
                    size,
                    min_features_to_select=size,
                    Cs=[value / variance for value in values],
                    standardize=scaled,
                    predict_with="support",  # as plain estimators do
                    cv=list(folds_of(X, y)),
                    n_jobs=threads,
                ).fit(by_column(X), y)
                found = model.cv_results_
                last = found["n_features"] == found["n_features"].max()
                order = np.argsort(found["C"][last])
                self.curves[scaled, size] = dict(zip(values, found["mean_test_score"][last][order].tolist(), strict=True))

    def score(self, scaled: bool, size: int, value: float) -> float:
        """Return the score at C = value / variance."""
        curve = self.curves[scaled or not self.is_sparse, size]
        return float(np.interp(np.log(value), np.log(list(curve)), list(curve.values())))

    def before(self, size: int) -> float:
        """Return the score at C = 1."""
        return self.score(False, size, self.variance[not self.is_sparse])


def chosen_rows(sets: list[Curves]) -> list[dict[str, Any]]:
    """Return the mean score over the sets of each rule."""
    rows: list[dict[str, Any]] = []
    means = [np.mean([one.before(size) for one in sets]) for size in SIZES]
    rows.append({"C": "1", "sparse data": "unscaled", **_sized(means), "mean": float(np.mean(means))})
    for scaled in (False, True) if any(one.is_sparse for one in sets) else (False,):
        for power in POWERS:
            for factor in FACTORS:
                values = [
                    [one.score(scaled, size, factor * (TYPICAL / one.n_samples) ** power) for one in sets] for size in SIZES
                ]
                means = [float(np.mean(own)) for own in values]
                rule = f"{factor:g} / v" + {0.0: "", 0.5: f" · √({TYPICAL} / n)", 1.0: f" · {TYPICAL} / n"}[power]
                text = "scaled" if scaled else "unscaled"
                rows.append({"C": rule, "sparse data": text, **_sized(means), "mean": float(np.mean(means))})
    return rows


def _sized(values: Any) -> dict[str, float]:
    return {f"{size} features": float(value) for size, value in zip(SIZES, values, strict=True)}


def curve_rows(sets: list[Curves]) -> list[dict[str, Any]]:
    """Return the score of each set by factor, as the mean over the sizes."""
    rows = []
    for one in sets:
        for scaled in sorted({scaled for scaled, _ in one.curves}):
            cells = {f"{f:g} / v": float(np.mean([one.score(scaled, size, f) for size in SIZES])) for f in (0.01, *FACTORS)}
            name = one.name + ("" if not one.is_sparse else ", scaled" if scaled else ", unscaled")
            before = float(np.mean([one.before(size) for size in SIZES])) if scaled != one.is_sparse else None
            rows.append({"data": name, "n": one.n_samples, "C = 1": before, **cells})
    return rows


def raw_scores(name: str, X: Any, y: np.ndarray, threads: int) -> list[dict[str, Any]]:
    """Return the scores on dense data that are not standardised: C = 1, and C relative to two means of the variances."""
    if sparse.issparse(X):
        return []
    numbers = y.dtype.kind == "f"
    make, factor = (GroupDiscoveryRegressor, 0.3) if numbers else (GroupDiscoveryClassifier, 1.0)
    rows = []
    for size in SIZES:
        scores: dict[str, list[float]] = {"C = 1": [], "weighted mean": [], "geometric mean": []}
        for train, test in folds_of(X, y):
            ours = by_column(X[train])
            view = FeatureView.of(as_source(ours), standardize=False, centred=True)
            for title, C in zip(scores, (1.0, factor / typical_variance(view), factor / mean_variance(view)), strict=True):
                model = make(size, C=C, standardize=False, n_jobs=threads).fit(ours, y[train])
                scores[title].append(float(model.score(X[test], y[test])))
        rows.append({"data": name, "n × m": f"{X.shape[0]:,} × {X.shape[1]:,}", "features": size, **_means(scores)})
    return rows


def _means(scores: dict[str, list[float]]) -> dict[str, float]:
    return {title: float(np.mean(values)) for title, values in scores.items()}


def fit_l1(X: Any, y: np.ndarray, C: float) -> LinearSVC:
    """Fit the L1-SVM and record its features: those with a weight in any class."""
    model = LinearSVC(penalty="l1", dual=False, C=C, tol=1e-2, max_iter=300, random_state=0).fit(X, y)
    model.support_features_ = np.flatnonzero(model.coef_.any(axis=0))
    return model


def scale_of(X: Any) -> np.ndarray:
    """Return the standard deviations of dense features, 1 for constant and for sparse ones."""
    scale = np.ones(X.shape[1]) if sparse.issparse(X) else X.std(axis=0)
    return np.where(scale > 0, scale, 1.0)


def l1_scores(X: Any, y: np.ndarray, test: Any, truth: np.ndarray) -> dict[int, tuple[float, float, int]]:
    """Return by size the accuracy of the L1-SVM, of a linear SVM on its features, and their number."""
    if not sparse.issparse(X):
        mean, scale = X.mean(axis=0), scale_of(X)
        X, test = (X - mean) / scale, (test - mean) / scale
    start, found = 2.0 * l1_min_c(X, y, loss="squared_hinge"), {}
    for size in SIZES:
        tuned = tune(fit_l1, X, y, min(size, X.shape[1]), start, max_fits=12, max_seconds=40.0)
        start, features = tuned.C, tuned.model.support_features_
        own = float(np.mean(tuned.model.predict(test) == truth))
        refit = LinearSVC(dual=False, random_state=0).fit(X[:, features], y) if len(features) else None
        again = own if refit is None else float(np.mean(refit.predict(test[:, features]) == truth))
        found[size] = own, again, len(features)
    return found


def reported(name: str, X: Any, y: np.ndarray, threads: int) -> list[dict[str, Any]]:
    """Return one row per size for a set of classes."""
    settings: dict[str, dict[str, Any]] = {
        "C = 1": {"C": 1.0},
        'C = "auto"': {},
        "raw, C = 1": {"C": 1.0, "standardize": False},
        'raw, C = "auto"': {"standardize": False},
        'scaled, C = "auto"': {"standardize": True},
    }
    scores: dict[tuple[str, int], list[float]] = {}
    zeros: dict[tuple[str, int], list[float]] = {}
    for train, test in folds_of(X, y):
        ours = by_column(X[train])
        for title, options in settings.items():
            for size in SIZES:
                model = GroupDiscoveryClassifier(size, n_jobs=threads, **options).fit(ours, y[train])
                scores.setdefault((title, size), []).append(float(np.mean(model.predict(X[test]) == y[test])))
                zeros.setdefault((title, size), []).append(float(np.mean(~model.support_coef_.any(axis=0))))
        for size, (own, refit, number) in l1_scores(X[train], y[train], X[test], y[test]).items():
            scores.setdefault(("L1-SVM", size), []).append(own)
            scores.setdefault(("L1-SVM, refitted", size), []).append(refit)
            zeros.setdefault(("its features", size), []).append(number)
    rows = []
    for size in SIZES:
        cells = {title: float(np.mean(scores[title, size])) for title, own in scores if own == size}
        rows.append(
            {
                "data": name,
                "n × m": f"{X.shape[0]:,} × {X.shape[1]:,}",
                "classes": len(np.unique(y)),
                "sparse": sparse.issparse(X),
                "features": size,
                **cells,
                "its features": float(np.mean(zeros["its features", size])),
                "zeros, C = 1": float(np.mean(zeros["C = 1", size])),
                "zeros": float(np.mean(zeros['C = "auto"', size])),
                "zeros, raw, C = 1": float(np.mean(zeros["raw, C = 1", size])),
                "zeros, raw": float(np.mean(zeros['raw, C = "auto"', size])),
            }
        )
    return rows


def reported_numbers(name: str, X: Any, y: np.ndarray, threads: int) -> list[dict[str, Any]]:
    """Return one row per size for a set with a numeric target: R² with C = 1 and ``"auto"``, on standardised and raw data."""
    settings: dict[str, dict[str, Any]] = {
        "C = 1": {"C": 1.0},
        'C = "auto"': {},
        "raw, C = 1": {"C": 1.0, "standardize": False},
        'raw, C = "auto"': {"standardize": False},
    }
    rows = []
    for size in SIZES:
        cells = {}
        for title, options in settings.items():
            scores = [
                GroupDiscoveryRegressor(size, n_jobs=threads, **options)
                .fit(by_column(X[train]), y[train])
                .score(X[test], y[test])
                for train, test in folds_of(X, y)
            ]
            cells[title] = float(np.mean(scores))
        rows.append({"data": name, "n × m": f"{X.shape[0]:,} × {X.shape[1]:,}", "features": size, **cells})
    return rows


def wide_rows(rows: list[dict[str, Any]], *titles: str) -> list[dict[str, Any]]:
    """Return one row per data set with the score of each title at each size in one cell, and the means."""
    table = []
    for name in [*dict.fromkeys(row["data"] for row in rows), "mean"]:
        own = [row for row in rows if name in (row["data"], "mean")]
        cells = {"data": name, "n × m": own[0]["n × m"] if name != "mean" else ""}
        for title in titles:
            by_size = [np.mean([row[title] for row in own if row["features"] == size]) for size in SIZES]
            cells[title] = " / ".join(f"{value:.3f}" for value in by_size)
        table.append(cells)
    return table


def difference_rows(rows: list[dict[str, Any]], ours: str, others: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return our score minus that of each other column in points: mean over the sets, standard error, counts."""
    table = []
    for other in others:
        for size in SIZES:
            gains = np.array([100 * (row[ours] - row[other]) for row in rows if row["features"] == size])
            error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
            ahead, behind = int((gains > 0.05).sum()), int((gains < -0.05).sum())
            table.append(
                {
                    "compared with": other,
                    "features": size,
                    "points": f"{gains.mean():+.1f} ± {error:.1f}",
                    "sets ahead, level, behind": f"{ahead}, {len(gains) - ahead - behind}, {behind}",
                }
            )
    return table


def run_all(
    sets: dict[str, Callable[[], Data]], measure: Callable[..., Any], options: Any, quick: tuple[str, ...]
) -> list[Any]:
    """Return what ``measure`` returns for each set; only some sets in a quick run."""
    found = []
    for name, make in sets.items():
        if options.quick and name not in quick:
            continue
        with warnings_counted():
            found.append(measure(name, *make(), options.threads))
        print(name, flush=True)
    return found


def main() -> None:
    options = read_arguments(__doc__, parts=("choose", "report", "numbers"))
    results: dict[str, Any] = {}
    sections: dict[str, str] = {}
    if options.only in (None, "choose"):
        sets = run_all(CHOOSE, Curves, options, ("khan", "news, two classes"))
        results["choose"], results["curves"] = chosen_rows(sets), curve_rows(sets)
        print_table("Mean accuracy on the sets to choose with", results["choose"])
        print_table("By set", results["curves"])
        numbers = run_all(CHOOSE_NUMBERS, Curves, options, ("planted 0",))
        results["choose numbers"] = chosen_rows(numbers)
        print_table("Mean R² on the sets to choose with", results["choose numbers"])
        columns = {name: make for name, make in CHOOSE_NUMBERS.items() if name.startswith("column")}
        raw_sets = run_all({**CHOOSE, **columns}, raw_scores, options, ("spambase",))
        results["choose raw"] = [row for own in raw_sets for row in own]
        sections["choose raw"] = markdown_table(wide_rows(results["choose raw"], "C = 1", "weighted mean", "geometric mean"))
        print(f"\n{sections['choose raw']}")
        sections["choose"] = markdown_table(results["choose"])
        sections["curves"] = markdown_table(results["curves"])
        sections["choose numbers"] = markdown_table(
            [{name: value for name, value in row.items() if name != "sparse data"} for row in results["choose numbers"]]
        )
    if options.only in (None, "report"):
        rows = [row for own in run_all(REPORT, reported, options, ("glioma", "news, religion")) for row in own]
        results["report"] = rows
        titles = ("C = 1", 'C = "auto"', "L1-SVM", "L1-SVM, refitted")
        raw = ("raw, C = 1", 'raw, C = "auto"', "zeros, raw, C = 1", "zeros, raw")
        thin = [row for row in rows if row["sparse"]]
        sections["report"] = markdown_table(wide_rows(rows, *titles))
        sections["differences"] = markdown_table(difference_rows(rows, titles[1], (titles[0], *titles[2:])))
        sections["raw"] = markdown_table(wide_rows(rows, *raw))
        sections["sparse"] = markdown_table(
            wide_rows(thin, *titles[:2], 'scaled, C = "auto"', *titles[2:], "zeros, C = 1", "zeros")
        )
        for name in ("report", "differences", "raw", "sparse"):
            print(f"\n{sections[name]}")
    if options.only in (None, "numbers"):
        quick = ("diabetes", "strong 120")
        rows = [row for own in run_all(REPORT_NUMBERS, reported_numbers, options, quick) for row in own]
        results["numbers"] = rows
        titles = ("C = 1", 'C = "auto"', "raw, C = 1", 'raw, C = "auto"')
        sections["numbers"] = markdown_table(wide_rows(rows, *titles))
        sections["number differences"] = markdown_table(difference_rows(rows, titles[1], (titles[0], *titles[2:3])))
        print(f"\n{sections['numbers']}\n{sections['number differences']}")
    if not options.quick:
        for name, text in sections.items():
            replace_section(PAGE, name, text)
    write_results("plain_estimators" + (f"-{options.only}" if options.only else ""), options, **results)


if __name__ == "__main__":
    main()
