"""Embedded cross-validation: stability and accuracy of the selected features.

Resamplings of 80 % of the samples; the rest are test samples. Without folds, with five folds that use their training parts
(the default), and with five folds that use their own parts only (the paper's partitions).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from _real import load
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from scipy import sparse
from sklearn.model_selection import StratifiedShuffleSplit

from coterie import GroupDiscoveryClassifier
from coterie.metrics import tanimoto_stability, weighted_consistency

# Data, number of support features, whether to standardise.
TASKS = (("dorothea", 30, False), ("gisette_valid", 30, False), ("glioma", 20, True))
KINDS: dict[str, dict[str, Any]] = {
    "none": {},
    "cv=5, training parts": {"cv": 5},
    "cv=5, fold parts": {"cv": 5, "cv_part": "fold"},
}


def row(name: str, n_features: int, standardize: bool, kind: str, n_resamples: int, options: Any) -> dict[str, Any]:
    X, y = load(name)
    splits = StratifiedShuffleSplit(n_resamples, test_size=0.2, random_state=options.seed)
    accuracy, subsets, members = [], [], []
    for seed, (train, test) in enumerate(splits.split(X, y)):
        part = sparse.csc_array(X[train]) if sparse.issparse(X) else X[train]
        model = GroupDiscoveryClassifier(
            n_features,
            C=1.0,
            n_features_per_round=10,
            standardize=standardize,
            random_state=seed,
            n_jobs=options.threads,
            **KINDS[kind],
        )
        model.fit(part, y[train])
        accuracy.append(model.score(X[test], y[test]))
        subsets.append(model.support_features_)
        members.append(model.groups_.members)
    return {
        "data": name,
        "features": n_features,
        "cross-validation": kind,
        "accuracy": f"{np.mean(accuracy):.3f} ± {np.std(accuracy):.3f}",
        "Tanimoto index": tanimoto_stability(subsets),
        "CW_rel": weighted_consistency(subsets, X.shape[1]),
        "Tanimoto index, with affiliated": tanimoto_stability(members),
    }


def main() -> None:
    options = read_arguments(__doc__)
    n_resamples = 3 if options.quick else 20
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, n_features, standardize in TASKS[-1:] if options.quick else TASKS:
            rows += [row(name, n_features, standardize, kind, n_resamples, options) for kind in KINDS]
    print_table(f"Embedded cross-validation, {n_resamples} resamplings", rows)
    write_results("embedded_cv", options, rows=rows)
    if not options.quick:
        replace_section(DOCS / "family.md", "embedded cv", markdown_table(rows))


if __name__ == "__main__":
    main()
