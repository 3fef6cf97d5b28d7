"""Planted categories in tables: levels of one column together, apart, and the group lasso.

A table has 30 columns of categories and 30 columns of numbers. Three of the former and one of the latter cause the outcome.
Effects of levels are normal and centred. The causes explain half of the variance of the outcome, or of its log-odds with the
logistic noise. All columns are independent. Columns found are those with a selected level, or of the support features of
groups that the model uses. Scores are those of 2,000 new samples. Seeds below 100 were used to write the script, those from
100 on are reported. adelie and mlxtend are required (pip install adelie mlxtend); they are not dependencies of Coterie.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from sklearn.linear_model import LassoCV, LogisticRegression, LogisticRegressionCV, Ridge
from sklearn.metrics import r2_score, roc_auc_score

from coterie import GroupDiscoveryClassifierCV, GroupDiscoveryRegressorCV
from coterie.data import as_source, open_features

PAGE = DOCS / "tables-evidence.md"
N_TRAIN, N_TEST, N_CATEGORIES, N_NUMBERS = 300, 2000, 30, 30
CAUSES = ("c0", "c1", "c2", "x0")
LEVELS = (3, 8)
FIRST_REPORTED = 100


class Found(NamedTuple):
    """Predictions of the test samples, columns of the model, and number of columns divided between several groups."""

    predicted: np.ndarray
    columns: set[str]
    n_divided: int = 0


class Task(NamedTuple):
    """A table, its encoding and its test samples."""

    frame: pd.DataFrame
    X: np.ndarray
    names: list[str]
    columns: list[str]
    y: np.ndarray
    X_test: np.ndarray
    is_classes: bool


def planted(n_levels: int, is_classes: bool, seed: int) -> tuple[Task, np.ndarray]:
    """Return a table and the outcome of its test samples."""
    rng = np.random.default_rng(seed)
    n = N_TRAIN + N_TEST
    codes = np.column_stack([rng.choice(n_levels, n, p=rng.dirichlet(np.full(n_levels, 5.0))) for _ in range(N_CATEGORIES)])
    numbers = rng.standard_normal((n, N_NUMBERS))
    signal = np.zeros(n)
    for j in range(3):
        own = rng.standard_normal(n_levels)[codes[:, j]]
        signal += (own - own.mean()) / own.std()
    signal += numbers[:, 0]
    noise = rng.logistic(size=n) if is_classes else rng.standard_normal(n)
    outcome = signal * noise.std() / signal.std() + noise
    y = (outcome > 0).astype(int) if is_classes else outcome
    letters = np.array([f"level {k}" for k in range(n_levels)])
    frame = pd.DataFrame(
        {f"c{j}": letters[codes[:, j]] for j in range(N_CATEGORIES)} | {f"x{j}": numbers[:, j] for j in range(N_NUMBERS)}
    )
    data = open_features(frame, label=False)
    X, names = np.ascontiguousarray(data.source.array), list(data.feature_names)
    columns = list(data.feature_info["column"]) if data.feature_info else names
    return Task(frame[:N_TRAIN], X[:N_TRAIN], names, columns, y[:N_TRAIN], X[N_TRAIN:], is_classes), y[N_TRAIN:]


def _discovered(task: Task, X: Any) -> Found:
    kind = GroupDiscoveryClassifierCV if task.is_classes else GroupDiscoveryRegressorCV
    model = kind(rule="one_se", predict_with=["support", "groups"], random_state=0, nested=False).fit(X, task.y)
    test = as_source(task.X_test, task.names)
    used = [task.columns[group.support] for group in model.groups_ if group.used]
    predicted = model.decision_function(test) if task.is_classes else model.predict(test)
    return Found(predicted, set(used), len(used) - len(set(used)))


def together(task: Task) -> Found:
    return _discovered(task, open_features(task.frame, label=False).source)


def apart(task: Task) -> Found:
    return _discovered(task, as_source(task.X, task.names))


def group_lasso(task: Task) -> Found:
    import adelie

    codes = pd.factorize(np.array(task.columns))[0]
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    mean, scale = task.X.mean(axis=0), task.X.std(axis=0)
    X = np.asfortranarray((task.X - mean) / np.where(scale > 0, scale, 1.0))
    family = adelie.glm.binomial if task.is_classes else adelie.glm.gaussian
    options = {"groups": starts, "progress_bar": False}
    y = task.y.astype(np.float64)
    chosen = adelie.cv_grpnet(X, family(y), n_folds=5, seed=0, **options)
    state = chosen.fit(X, family(y), **options)
    coef = state.betas[-1].toarray()[0]
    test = (task.X_test - mean) / np.where(scale > 0, scale, 1.0)
    return Found(test @ coef + state.intercepts[-1], {task.columns[j] for j in np.flatnonzero(coef)})


def lasso(task: Task) -> Found:
    mean, scale = task.X.mean(axis=0), task.X.std(axis=0)
    X, test = ((part - mean) / np.where(scale > 0, scale, 1.0) for part in (task.X, task.X_test))
    if task.is_classes:
        model = LogisticRegressionCV(penalty="l1", solver="liblinear", Cs=10, cv=5, scoring="neg_log_loss", random_state=0)
        model.fit(X, task.y)
        return Found(model.decision_function(test), {task.columns[j] for j in np.flatnonzero(model.coef_[0])})
    model = LassoCV(cv=5, random_state=0).fit(X, task.y)
    return Found(model.predict(test), {task.columns[j] for j in np.flatnonzero(model.coef_)})


def forward(task: Task) -> Found:
    from mlxtend.feature_selection import SequentialFeatureSelector

    groups = [np.flatnonzero(np.array(task.columns) == name).tolist() for name in dict.fromkeys(task.columns)]
    base = LogisticRegression() if task.is_classes else Ridge()
    scoring = "neg_log_loss" if task.is_classes else "r2"
    search = SequentialFeatureSelector(
        base, k_features=(1, 8), forward=True, scoring=scoring, cv=5, feature_groups=groups
    ).fit(task.X, task.y)
    kept = list(search.k_feature_idx_)
    model = base.fit(task.X[:, kept], task.y)
    test = task.X_test[:, kept]
    predicted = model.decision_function(test) if task.is_classes else model.predict(test)
    return Found(predicted, {task.columns[j] for j in kept})


METHODS: dict[str, Callable[[Task], Found]] = {
    "Coterie, levels together": together,
    "Coterie, levels apart": apart,
    "group lasso (adelie)": group_lasso,
    "L1 on levels (scikit-learn)": lasso,
    "forward selection by column (mlxtend)": forward,
}


def main() -> None:
    options = read_arguments(__doc__, repeats=10)
    seeds = range(options.repeats) if options.quick else range(FIRST_REPORTED, FIRST_REPORTED + options.repeats)
    warnings.simplefilter("ignore")
    rows = []
    for is_classes in (False, True):
        for n_levels in LEVELS:
            results: dict[str, list[dict[str, float]]] = {name: [] for name in METHODS}
            for seed in seeds:
                task, y_test = planted(n_levels, is_classes, seed)
                for name, method in METHODS.items():
                    began = time.process_time()
                    found = method(task)
                    seconds = time.process_time() - began
                    score = roc_auc_score if is_classes else r2_score
                    results[name].append(
                        {
                            "score": float(score(y_test, found.predicted)),
                            "causes found (of 4)": len(found.columns & set(CAUSES)),
                            "other columns": len(found.columns - set(CAUSES)),
                            "groups of a divided column": found.n_divided,
                            "CPU s": seconds,
                        }
                    )
            for name, own in results.items():
                means = {key: float(np.mean([result[key] for result in own])) for key in own[0]}
                outcome = "classes (AUC)" if is_classes else "numbers (R²)"
                rows.append({"outcome": outcome, "levels": n_levels, "method": name} | _rounded(means))
            print_table(f"{len(seeds)} tables", rows[-len(METHODS) :])
    if not options.quick:
        replace_section(PAGE, "table", markdown_table(rows))
    write_results("table_categories", options, rows=rows, seeds=list(seeds))


def _rounded(means: dict[str, float]) -> dict[str, Any]:
    return {key: f"{value:.3f}" if key == "score" else f"{value:.1f}" for key, value in means.items()}


if __name__ == "__main__":
    main()
