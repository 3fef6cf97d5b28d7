"""Survival times: recovery of planted groups, growth with n, and concordance beside CoxnetSurvivalAnalysis.

Requires ``pip install -e '.[survival-peers]'``. Run ``python benchmarks/survival.py``, or name the parts ``recovery``,
``growth`` and ``sets``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coterie
from coterie import GroupDiscoveryRegressor, GroupDiscoverySurvival, GroupDiscoverySurvivalCV
from coterie.metrics import concordance_index

_GROUP, _PLANTED = 5, 6


def planted(seed: int, n: int = 300, p: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Return features in groups of five (correlation 0.8), of which six groups change the hazard, and survival times."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, p // _GROUP))
    X = np.sqrt(0.8) * np.repeat(factors, _GROUP, axis=1) + np.sqrt(0.2) * rng.standard_normal((n, p))
    risk = factors[:, :_PLANTED] @ np.array([1.0, -1.0, 0.8, -0.8, 0.6, -0.6])
    times, ends = rng.exponential(np.exp(-risk)), rng.exponential(2.0, n)
    return X, np.column_stack([np.minimum(times, ends), times <= ends])


def recovery(n_seeds: int) -> None:
    """Print the share of planted groups among those found, and found among those planted."""
    rows = []
    for seed in range(n_seeds):
        X, y = planted(seed)
        given = GroupDiscoverySurvival(_PLANTED, n_features_per_round=1).fit(X, y)
        found = coterie.discover(X, y, task="survival", n_pairs=10, max_features_to_select=20, random_state=seed)
        chosen = [group for group in found.groups if group.q_value <= 0.1]
        parts = (given.groups_, list(found.groups), chosen)
        hits = [[group.support // _GROUP < _PLANTED for group in groups] for groups in parts]
        rows.append([value for own in hits for value in (sum(own) / _PLANTED, np.mean(own) if own else 1.0)])
    mean = np.mean(rows, axis=0)
    for name, k in (("six groups requested", 0), ("validated (one_se)", 2), ("q-value at most 0.1", 4)):
        print(f"{name:24s} recall {mean[k]:.3f}  precision {mean[k + 1]:.3f}  ({n_seeds} seeds)")


def seconds(fit: Callable[[], object]) -> float:
    """Return the smallest of three times."""
    found = []
    for _ in range(3):
        began = time.perf_counter()
        fit()
        found.append(time.perf_counter() - began)
    return min(found)


def growth(sizes: tuple[int, ...] = (500, 2000, 8000, 32000)) -> None:
    """Print seconds per fit for survival times and for numbers."""
    for n in sizes:
        X, y = planted(0, n)
        survival, numbers = GroupDiscoverySurvival(30), GroupDiscoveryRegressor(30)
        survival.fit(X[:100], y[:100]), numbers.fit(X[:100], y[:100, 0])  # compiles the kernels
        own, other = seconds(lambda: survival.fit(X, y)), seconds(lambda: numbers.fit(X, np.log(y[:, 0])))  # noqa: B023
        print(f"n = {n:6d}, p = 500: survival {own:.3f} s, squared loss {other:.3f} s, ratio {own / other:.2f}")


def real_sets() -> dict[str, tuple[pd.DataFrame, np.ndarray]]:
    """Return data sets of scikit-survival with dummy variables for categories."""
    from sksurv import datasets

    loaders = {
        "breast_cancer": datasets.load_breast_cancer,
        "gbsg2": datasets.load_gbsg2,
        "whas500": datasets.load_whas500,
        "veterans": datasets.load_veterans_lung_cancer,
        "flchain": datasets.load_flchain,
    }
    found = {}
    for name, load in loaders.items():
        X, y = load()
        X = pd.get_dummies(X.drop(columns=["chapter"], errors="ignore"), drop_first=True).astype(float)
        complete = X.notna().all(axis=1).to_numpy()
        X, y = X[complete], y[complete]
        if len(X) > 2000:
            kept = np.random.default_rng(0).choice(len(X), 2000, replace=False)
            X, y = X.iloc[kept], y[kept]
        found[name] = X.reset_index(drop=True), y
    return found


def coxnet(X: pd.DataFrame, y: np.ndarray) -> object:
    """Return CoxnetSurvivalAnalysis with the penalty of best concordance in five folds, as its documentation advises."""
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    def model(**options: object) -> object:
        return make_pipeline(StandardScaler(), CoxnetSurvivalAnalysis(l1_ratio=0.9, max_iter=10**6, **options))

    alphas = model(alpha_min_ratio=0.01, n_alphas=50).fit(X, y)[-1].alphas_
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y[y.dtype.names[0]]))
    grid = {"coxnetsurvivalanalysis__alphas": [[alpha] for alpha in alphas]}
    return GridSearchCV(model(), grid, cv=folds, error_score=0.5).fit(X, y)


def sets(n_repeats: int) -> None:
    """Print the mean concordance index of the whole procedures on outer folds."""
    for name, (X, y) in real_sets().items():
        event = y[y.dtype.names[0]]
        scores = []
        for repeat in range(n_repeats):
            for train, test in StratifiedKFold(5, shuffle=True, random_state=repeat).split(X, event):
                own = GroupDiscoverySurvivalCV(min(50, X.shape[1]), random_state=repeat).fit(X.iloc[train], y[train])
                fewest = GroupDiscoverySurvivalCV(min(50, X.shape[1]), rule="one_se", random_state=repeat)
                fewest.fit(X.iloc[train], y[train])
                other = coxnet(X.iloc[train], y[train])
                risks = [model.predict(X.iloc[test]) for model in (own, fewest, other)]
                sizes = [own.n_features_, fewest.n_features_, np.count_nonzero(other.best_estimator_[-1].coef_)]
                scores.append([*(concordance_index(y[test], risk) for risk in risks), *sizes])
        mean = np.mean(scores, axis=0)
        difference = np.array(scores)[:, 0] - np.array(scores)[:, 2]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        print(
            f"{name:14s} {X.shape[0]:5d} x {X.shape[1]:3d}, {event.sum():4d} events: coterie {mean[0]:.3f} "
            f"({mean[3]:.0f} features), one_se {mean[1]:.3f} ({mean[4]:.0f}), Coxnet {mean[2]:.3f} ({mean[5]:.0f}), "
            f"difference {difference.mean():+.3f} ± {error:.3f}",
            flush=True,
        )


def main() -> None:
    """Run the named parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="recovery, growth, sets; all by default")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in options.parts or ("recovery", "growth", "sets"):
        {"recovery": lambda: recovery(options.seeds), "growth": growth, "sets": lambda: sets(options.repeats)}[part]()


if __name__ == "__main__":
    main()
