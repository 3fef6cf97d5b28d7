"""Probabilities of GroupDiscoveryClassifierCV on held-out samples, and scikit-learn's calibration of the same model.

Log-loss and Brier score on a stratified 40 % of the samples. "sigmoid" is ``CalibratedClassifierCV(model, ensemble=False)``
of the plain estimator with the chosen settings and the same number of folds. "shares" predicts the class shares for every
sample.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from _real import find_data, load
from _record import source_digest, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from sklearn import datasets
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import train_test_split

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


def row_of(name: str, X: Any, y: np.ndarray, seed: int) -> dict[str, Any]:
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
    model = GroupDiscoveryClassifierCV(20, Cs=4, cv=FOLDS, random_state=seed).fit(X, y)
    plain = GroupDiscoveryClassifier(
        model.n_features_,
        C=model.C_,
        threshold=model.threshold_,
        standardize=model.standardize_,
        predict_with=model.predict_with_,
        random_state=seed,
    )
    calibrated = CalibratedClassifierCV(plain, ensemble=False, cv=FOLDS).fit(X, y)
    shares = np.tile(np.unique(y, return_counts=True)[1] / len(y), (len(y_test), 1))
    row: dict[str, Any] = {"data": name, "samples": len(y), "classes": len(model.classes_), "features": model.n_features_}
    found = {"Coterie": model.predict_proba(X_test), "sigmoid": calibrated.predict_proba(X_test), "shares": shares}
    row |= {f"log-loss, {method}": f"{log_loss(y_test, p):.3f}" for method, p in found.items()}
    return row | {f"Brier, {method}": f"{brier_score_loss(y_test, p):.3f}" for method, p in found.items()}


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
    print_table("Probabilities on held-out samples", rows)
    write_results("probabilities", options, rows=rows)
    if not options.quick:
        replace_section(DOCS / "probabilities-evidence.md", "probabilities", markdown_table(rows))


if __name__ == "__main__":
    main()
