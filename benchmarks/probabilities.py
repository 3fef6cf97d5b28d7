"""Probabilities of GroupDiscoveryClassifierCV on held-out samples, and scikit-learn's calibration of the same model.

Log-loss and Brier score on a stratified 40 % of the samples. "sigmoid" is ``CalibratedClassifierCV(model, ensemble=False)``
of the plain estimator with the chosen settings and the same number of folds. "shares" predicts the class shares for every
sample.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from _real import find_data, load
from _record import source_digest, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn import datasets
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import cross_val_predict, train_test_split

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV

FOLDS = 3
MAX_SAMPLES = 700
BUILT_IN = {"breast cancer": "load_breast_cancer", "wine": "load_wine", "iris": "load_iris", "digits": "load_digits"}
FROM_FILES = ("spambase", "khan", "chowdary", "usps")


def tables() -> dict[str, tuple[Any, np.ndarray]]:
    """Return the data sets, with at most ``MAX_SAMPLES`` samples each."""
    found: dict[str, tuple[Any, np.ndarray]] = {
        name: getattr(datasets, loader)(return_X_y=True) for name, loader in BUILT_IN.items()
    }
    for name in FROM_FILES:
        if find_data(f"{name}.npz") is not None:
            found[name] = load(name)
    rng = np.random.default_rng(0)
    for name, (X, y) in found.items():
        chosen = np.sort(rng.permutation(X.shape[0])[:MAX_SAMPLES])
        found[name] = X[chosen], np.asarray(y)[chosen]
    return found


def _chosen(model: GroupDiscoveryClassifierCV) -> GroupDiscoveryClassifier:
    """Return the plain estimator with the chosen settings."""
    return GroupDiscoveryClassifier(
        model.n_features_,
        C=model.C_,
        threshold=model.threshold_,
        standardize=model.standardize_,
        predict_with=model.predict_with_,
        random_state=model.random_state,
    )


def row_of(name: str, X: Any, y: np.ndarray, seed: int) -> dict[str, Any]:
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
    model = GroupDiscoveryClassifierCV(20, Cs=4, cv=FOLDS, random_state=seed).fit(X, y)
    calibrated = CalibratedClassifierCV(_chosen(model), ensemble=False, cv=FOLDS).fit(X, y)
    shares = np.tile(np.unique(y, return_counts=True)[1] / len(y), (len(y_test), 1))
    row: dict[str, Any] = {"data": name, "samples": len(y), "classes": len(model.classes_), "features": model.n_features_}
    found = {"Coterie": model.predict_proba(X_test), "sigmoid": calibrated.predict_proba(X_test), "shares": shares}
    row |= {f"log-loss, {method}": f"{log_loss(y_test, p):.3f}" for method, p in found.items()}
    return row | {f"Brier, {method}": f"{brier_score_loss(y_test, p):.3f}" for method, p in found.items()}


def rare_sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of which about 9 % are positive, with three informative features of 30."""
    X = rng.standard_normal((n, 30))
    return X, (X[:, :3].sum(axis=1) - 3.3 + rng.logistic(size=n) > 0).astype(int)


def calibration_error(y: np.ndarray, share: np.ndarray, n_bins: int = 10) -> float:
    """Return the mean difference between probability and share of positives, over bins of equal numbers of samples."""
    bins = np.array_split(np.argsort(share, kind="stable"), n_bins)
    return float(sum(len(own) * abs(share[own].mean() - y[own].mean()) for own in bins) / len(y))


def slope_only(model: GroupDiscoveryClassifierCV, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """Return probabilities by a slope without offset, fitted to decision values of the folds."""
    values = cross_val_predict(_chosen(model), X, y, cv=5, method="decision_function")

    def loss(log_slope: float) -> float:
        return float(np.logaddexp(0.0, np.exp(log_slope) * np.where(y == 1, -values, values)).mean())

    start = -np.log(np.abs(values).mean())
    found = minimize_scalar(loss, bounds=(start - 5, start + 8), method="bounded")
    return expit(np.exp(found.x) * model.decision_function(X_test))


def rare_row(n: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Return mean probability and calibration error for a rare class, on 5,000 new samples."""
    figures = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        (X, y), (X_test, y_test) = rare_sample(rng, n), rare_sample(rng, 5000)
        model = GroupDiscoveryClassifierCV(10, Cs=4, random_state=seed).fit(X, y)
        figures += [
            [y.mean(), share.mean(), calibration_error(y_test, share), np.mean((share - y_test) ** 2), y_test.mean()]
            for share in (model.predict_proba(X_test)[:, 1], slope_only(model, X, y, X_test))
        ]
    ours, before = (np.array(figures[k::2]).mean(axis=0) for k in (0, 1))
    return {
        "samples": n,
        "sets": len(seeds),
        "positives": f"{ours[0]:.3f}",
        "positives, new samples": f"{ours[4]:.3f}",
        **{
            f"{name}, {method}": f"{found[k]:.3f}"
            for k, name in ((1, "mean probability"), (2, "calibration error"), (3, "Brier"))
            for method, found in (("slope and offset", ours), ("slope only", before))
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="use two data sets only")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.source = source_digest()
    rows = []
    for name, (X, y) in list(tables().items())[: 2 if options.quick else None]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # convergence warnings of intermediate fits
            rows.append(row_of(name, X, y, options.seed))
        print(rows[-1], flush=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rare = [rare_row(n, range(2 if options.quick else 20)) for n in ((200,) if options.quick else (200, 1000))]
    print_table("Probabilities on held-out samples", rows)
    print_table("Probabilities of a rare class", rare)
    write_results("probabilities", options, rows=rows, rare=rare)
    if not options.quick:
        replace_section(DOCS / "probabilities-evidence.md", "probabilities", markdown_table(rows))
        replace_section(DOCS / "probabilities-evidence.md", "rare class", markdown_table(rare))


if __name__ == "__main__":
    main()
