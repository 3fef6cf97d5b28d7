"""Survival times: recovery of planted groups, growth with n, and concordance beside CoxnetSurvivalAnalysis.

Requires ``pip install -e '.[survival-peers]'``. Run ``python benchmarks/survival.py``, or name the parts ``recovery``,
``growth``, ``choosing`` (data sets with which defaults were chosen) and ``report`` (others).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

import coterie
from coterie import GroupDiscoveryRegressor, GroupDiscoverySurvival, GroupDiscoverySurvivalCV
from coterie.metrics import concordance_index

if TYPE_CHECKING:
    from sksurv.linear_model import CoxnetSurvivalAnalysis

_GROUP, _PLANTED = 5, 6
_KINDS = ("6 groups", "20 groups", "all")
Data: TypeAlias = "tuple[pd.DataFrame, np.ndarray]"


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


def prepared(X: pd.DataFrame, event: np.ndarray, time: np.ndarray) -> Data:
    """Return complete samples, at most 1,000, with dummy variables for categories, and their targets."""
    X = pd.get_dummies(X, drop_first=True).astype(float)
    y = np.zeros(len(X), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = event, time
    complete = np.flatnonzero(X.notna().all(axis=1) & np.isfinite(y["time"]))
    if len(complete) > 1000:
        complete = np.random.default_rng(0).choice(complete, 1000, replace=False)
    X = X.iloc[complete].reset_index(drop=True)
    return X.loc[:, X.nunique() > 1], y[complete]


def simulated(seed: int, n: int, p: int, kind: str) -> Data:
    """Return features in groups of five (correlation 0.8): six or twenty groups change the hazard, or all features."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, p // _GROUP))
    X = np.sqrt(0.8) * np.repeat(factors, _GROUP, axis=1) + np.sqrt(0.2) * rng.standard_normal((n, p))
    if kind == "all":
        risk = X @ rng.standard_normal(p)
        risk /= risk.std()
    else:
        strong = np.array([1.0, -1.0, 0.8, -0.8, 0.6, -0.6])
        weight = strong if kind == "6 groups" else 0.35 * rng.standard_normal(20)
        risk = factors[:, : len(weight)] @ weight
    times, ends = rng.exponential(np.exp(-risk)), rng.exponential(2.0, n)
    return prepared(pd.DataFrame(X).add_prefix("x"), times <= ends, np.minimum(times, ends))


def choosing_sets() -> dict[str, Data]:
    """Return the data sets with which defaults were chosen."""
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
        found[name] = prepared(X.drop(columns=["chapter"], errors="ignore"), *(y[own] for own in y.dtype.names))
    return found | {f"simulated, {kind}": simulated(100 + k, 200, 300, kind) for k, kind in enumerate(_KINDS)}


def report_sets() -> dict[str, Data]:
    """Return the data sets that were not used to choose."""
    from lifelines import datasets as lifelines_sets
    from sksurv import datasets

    X, y = datasets.load_aids()
    found = {"aids": prepared(X, *(y[own] for own in y.dtype.names))}
    X, y = datasets.load_cgvhd()
    status, time = (y[own] for own in y.dtype.names)
    found["cgvhd"] = prepared(X, np.asarray(status).astype(float) == 1, time)
    names = ["ctryname", "cowcode2", "politycode", "ehead", "leaderspellreg", "start_year"]
    for name, load, duration, event, other in (
        ("lung", lifelines_sets.load_lung, "time", "status", []),
        ("rossi", lifelines_sets.load_rossi, "week", "arrest", []),
        ("kidney_transplant", lifelines_sets.load_kidney_transplant, "time", "death", []),
        ("larynx", lifelines_sets.load_larynx, "time", "death", []),
        ("dd (governments)", lifelines_sets.load_dd, "duration", "observed", names),
    ):
        table = load().dropna()
        X = table.drop(columns=[duration, event, *other])
        found[name] = prepared(X, table[event].to_numpy(float) > 0, table[duration].to_numpy(float))
    return found | {f"simulated, {kind}": simulated(900 + k, 250, 400, kind) for k, kind in enumerate(_KINDS)}


class Coxnet:
    """CoxnetSurvivalAnalysis with the penalty of best concordance in five inner folds, on standardised features."""

    def __init__(self, X: pd.DataFrame, y: np.ndarray) -> None:
        alphas = self._path(X, y, alpha_min_ratio=0.01, n_alphas=50)[1].alphas_
        # The path ends when the deviance hardly changes any more, and much too early if columns are collinear.
        self.is_complete = len(alphas) >= 40
        scores = []
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y["event"]):
            scaler, model = self._path(X.iloc[train], y[train], alphas=alphas)
            scaled = scaler.transform(X.iloc[test])
            scores.append([concordance_index(y[test], model.predict(scaled, alpha=alpha)) for alpha in alphas])
        best = int(np.argmax(np.mean(scores, axis=0)))
        self._alpha = alphas[best]
        self._scaler, self._model = self._path(X, y, alphas=alphas)
        self.n_features_ = int(np.count_nonzero(self._model.coef_[:, best]))

    @staticmethod
    def _path(X: pd.DataFrame, y: np.ndarray, **options: object) -> tuple[StandardScaler, CoxnetSurvivalAnalysis]:
        from sksurv.linear_model import CoxnetSurvivalAnalysis

        scaler = StandardScaler().fit(X)
        return scaler, CoxnetSurvivalAnalysis(l1_ratio=0.9, max_iter=10**6, **options).fit(scaler.transform(X), y)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return risks."""
        return self._model.predict(self._scaler.transform(X), alpha=self._alpha)


# Variants of the validated estimator.
_VARIANTS: dict[str, dict[str, object]] = {
    "groups": {},
    "support": {"predict_with": "support"},
    "both": {"predict_with": ["support", "groups"]},
    "C-index": {"rule": "best"},
    "one_se": {"rule": "one_se"},
}


def sets(found: dict[str, Data], repeats: list[int]) -> None:
    """Print the mean concordance index of the whole procedures on outer folds, and the mean number of features.

    Sets for which the path of Coxnet ends early are marked and left out of the mean.
    """
    names = [*_VARIANTS, "Coxnet"]
    print("| data set | samples × features, events | " + " | ".join(names) + " | groups − Coxnet |")
    print("| --- " * (len(names) + 3) + "|")
    differences, means = [], []
    for name, (X, y) in found.items():
        scores, sizes, is_complete = [], [], True
        for repeat in repeats:
            for train, test in StratifiedKFold(5, shuffle=True, random_state=repeat).split(X, y["event"]):
                models: list[object] = [
                    GroupDiscoverySurvivalCV(min(50, X.shape[1]), random_state=repeat, **options).fit(X.iloc[train], y[train])
                    for options in _VARIANTS.values()
                ]
                peer = Coxnet(X.iloc[train], y[train])
                is_complete = is_complete and peer.is_complete
                models.append(peer)
                scores.append([concordance_index(y[test], model.predict(X.iloc[test])) for model in models])
                sizes.append([model.n_features_ for model in models])
        table, size = np.array(scores), np.mean(sizes, axis=0)
        own = table[:, 0] - table[:, -1]
        cells = [f"{mean:.3f} ({count:.0f})" for mean, count in zip(table.mean(axis=0), size, strict=True)]
        error = own.std(ddof=1) / np.sqrt(len(own))
        about = f"{len(X):,} × {X.shape[1]}, {int(y['event'].sum())}"
        print(
            f"| {name}{'' if is_complete else ' †'} | {about} | {' | '.join(cells)} | {own.mean():+.3f} ± {error:.3f} |",
            flush=True,
        )
        if is_complete:
            differences.append(own.mean())
            means.append(table.mean(axis=0))
    cells = [f"{mean:.3f}" for mean in np.mean(means, axis=0)]
    print(f"| mean | | {' | '.join(cells)} | {np.mean(differences):+.3f} |")


def main() -> None:
    """Run the named parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="recovery, growth, choosing, report; all by default")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    parts: dict[str, Callable[[], None]] = {
        "recovery": lambda: recovery(options.seeds),
        "growth": growth,
        "choosing": lambda: sets(choosing_sets(), [11 + k for k in range(options.repeats)]),
        "report": lambda: sets(report_sets(), [21 + k for k in range(options.repeats)]),
    }
    for part in options.parts or parts:
        parts[part]()


if __name__ == "__main__":
    main()
