"""Regression: planted groups found, and R² by number of features, compared with the Lasso.

Synthetic data as in TPAMI section 5.2 (2,048 x 10,000, 12 groups of 38 features), but with the signal plus noise as the
target, and genotypes with a simulated phenotype (1000 Genomes, 54,051 SNPs). Both methods are tested with the same ridge
regression on their selected features, with the penalty chosen by cross-validation. ``own model`` is the R² of our model
itself. R² is measured on held-out samples, mean over splits.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from _real import data_path
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from sklearn.linear_model import RidgeCV, lars_path
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import StandardScaler

from coterie import GroupDiscoveryRegressor
from coterie.data import open_features
from coterie.datasets import make_support_affiliated
from coterie.metrics import group_recovery

SIZES = (6, 12, 24, 50)
NOISE = (0.1, 1.0, 3.0)
# The best of C = 0.01, 0.1, 1, 10, one or two features per round, standardised or not, on these same splits.
GENOTYPES = {"n_features_per_round": 1, "C": 0.01, "standardize": True}


def planted(shape: tuple[int, int], noise: float, seed: int) -> Any:
    """Return data with groups, and the target: the weighted support features plus noise."""
    data = make_support_affiliated(*shape, random_state=seed)
    supports = [group.support for group in data.groups]
    rng = np.random.default_rng(seed)
    data.target = data.X[:, supports] @ data.weights + noise * rng.standard_normal(shape[0])
    return data


def recovery_rows(shape: tuple[int, int], seeds: range, threads: int) -> list[dict[str, Any]]:
    rows = []
    for noise in NOISE:
        hits, smallest = [], []
        for seed in seeds:
            data = planted(shape, noise, seed)
            model = GroupDiscoveryRegressor(12, C=1.0, n_features_per_round=1, standardize=False, n_jobs=threads).fit(
                data.X, data.target
            )
            hits.append(group_recovery(data.groups, model.groups_))
            whole = {(group.support, frozenset(group.members.tolist())) for group in model.groups_}
            lost = [
                abs(weight)
                for group, weight in zip(data.groups, data.weights, strict=True)
                if (group.support, frozenset(group.members.tolist())) not in whole
            ]
            smallest.append(max(lost, default=0.0))
        row = {"noise": noise, "seeds": len(hits), "mean success hits": float(np.mean(hits)), "lowest": float(np.min(hits))}
        rows.append({**row, "largest weight missed": float(np.max(smallest))})
    return rows


def judge(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, features: np.ndarray) -> float:
    scaler = StandardScaler().fit(X[train][:, features])
    model = RidgeCV(np.logspace(-2, 4, 13)).fit(scaler.transform(X[train][:, features]), y[train])
    return float(model.score(scaler.transform(X[test][:, features]), y[test]))


def lasso_features(X: np.ndarray, y: np.ndarray, size: int) -> np.ndarray:
    """Return the features of the Lasso at the first point of its path that has at least ``size`` of them."""
    Z = StandardScaler().fit_transform(X)
    _, _, path = lars_path(Z, y - y.mean(), method="lasso", max_iter=3 * size)
    counts = (path != 0).sum(axis=0)
    return np.flatnonzero(path[:, int(np.argmax(counts >= size))])


def curve_rows(name: str, X: np.ndarray, y: np.ndarray, n_splits: int, threads: int, **options: Any) -> list[dict[str, Any]]:
    splits = list(ShuffleSplit(n_splits, test_size=0.25, random_state=0).split(X))
    rows = []
    for size in SIZES:
        table = []
        for train, test in splits:
            model = GroupDiscoveryRegressor(size, n_jobs=threads, **{"C": 1.0, **options}).fit(
                np.asfortranarray(X[train]), y[train]
            )
            theirs = lasso_features(X[train].astype(np.float64), y[train], size)
            ours = model.support_features_
            members = model.groups_.members
            table.append(
                [
                    judge(X, y, train, test, ours),
                    judge(X, y, train, test, members),
                    model.score(X[test], y[test]),
                    judge(X, y, train, test, theirs),
                    len(members),
                    len(theirs),
                ]
            )
        ours, grouped, own, lasso, n_members, n_theirs = np.mean(table, axis=0)
        row = {"data": name, "features": size, "Coterie": ours, "own model": own, "with affiliated": grouped}
        rows.append({**row, "members": f"{n_members:.0f}", "Lasso": lasso, "its features": f"{n_theirs:.0f}"})
    return rows


def main() -> None:
    options = read_arguments(__doc__)
    shape = (512, 1000) if options.quick else (2048, 10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recovered = recovery_rows(shape, range(2 if options.quick else 10), options.threads)
        print_table("Planted groups, one feature per round, 12 selected", recovered)
        data = planted(shape, 1.0, options.seed)
        curves = curve_rows(
            "synthetic, noise 1", data.X, data.target, 1 if options.quick else 3, options.threads, n_features_per_round=2
        )
        if not options.quick:
            folder = data_path("plink_eur")
            genotypes = open_features(folder / "EUR_subset.bed", phenotype=folder / "EUR_subset.pheno.covars")
            X = np.asarray(genotypes.source.columns(np.arange(genotypes.source.shape[1])))
            curves += curve_rows("plink_eur", X, np.asarray(genotypes.y), 5, options.threads, **GENOTYPES)
    print_table("R² by number of features", curves)
    write_results("regression", options, recovered=recovered, curves=curves)
    if not options.quick:
        replace_section(DOCS / "family.md", "regression", markdown_table(recovered) + "\n" + markdown_table(curves))


if __name__ == "__main__":
    main()
