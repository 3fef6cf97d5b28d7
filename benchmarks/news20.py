"""Real text with the shape of news20: word 1-2-gram counts of 20 Newsgroups, half for training.

100 support features with complete groups, compared with an L1-SVM and celer's L1 logistic regression tuned to as many
features. Then the accuracy at 20, 50 and 100 features, for all methods with the same linear SVM on the selected features.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _models import fit_celer, fit_l1_svm, fit_ours, selected_features, tune_celer, tune_l1_svm
from _real import load
from _record import read_arguments, write_results
from _side_by_side import Contender, comparison_row, fit_in_turn, held_out_accuracy, work_facts
from _tables import print_facts, print_table, verdict
from _timing import measure_bare_pass
from scipy import sparse
from sklearn.model_selection import train_test_split

GOAL_RATIO = 0.2
ROUND_SIZES = (10, 2)


class Split(NamedTuple):
    """Training data in the layouts of the contenders, and the test half."""

    X: sparse.csc_array
    by_sample: sparse.csr_array
    X_test: sparse.csc_array
    y: np.ndarray
    y_test: np.ndarray


def load_split(seed: int, n_samples: int | None) -> Split:
    """Return a split with a stratified half of the samples (or of ``n_samples`` of them) for training."""
    X, y = load("20news_bigrams")
    used = np.random.default_rng(seed).permutation(len(y))[:n_samples]
    train, test = train_test_split(used, test_size=0.5, stratify=y[used], random_state=seed)
    if n_samples is not None:  # a quick run also drops features without values in its samples
        X = X[:, np.unique(X[used].indices)]
    # The L1 models require float64. Coterie uses the bytes directly.
    return Split(X[train].tocsc(), X[train].astype(np.float64), X[test].tocsc(), y[train], y[test])


def contenders(data: Split, tuned: dict[str, dict[int, Any]], n_features: int, threads: int) -> list[Contender]:
    """Return Coterie with two round sizes and with one thread, and the L1 models at their tuned C."""
    ours = partial(fit_ours, n_features_to_select=n_features)
    result = [
        Contender(f"Coterie, {size} per round", partial(ours, n_features_per_round=size, n_jobs=threads), data.X)
        for size in ROUND_SIZES
    ]
    return [
        *result,
        Contender(
            f"Coterie, {ROUND_SIZES[0]} per round, 1 thread",
            partial(ours, n_features_per_round=ROUND_SIZES[0], n_jobs=1),
            data.X,
        ),
        Contender("L1-SVM", partial(fit_l1_svm, C=tuned["L1-SVM"][n_features].C), data.by_sample),
        Contender("celer L1 logistic", partial(fit_celer, C=tuned["celer L1 logistic"][n_features].C), data.X.astype(float)),
    ]


def tune_l1_models(data: Split, counts: tuple[int, ...]) -> dict[str, dict[int, Any]]:
    """Return L1 models with about each number of features in ``counts``."""
    by_feature = data.X.astype(np.float64)
    return {
        "L1-SVM": {k: tune_l1_svm(data.by_sample, data.y, k) for k in counts},
        "celer L1 logistic": {k: tune_celer(by_feature, data.y, k) for k in counts},
    }


def accuracy_row(name: str, data: Split, chosen: dict[int, np.ndarray]) -> dict[str, Any]:
    """Return the held-out accuracy for each requested number of features, and the actual number."""
    row: dict[str, Any] = {"method": name}
    for k, features in chosen.items():
        row[f"at {k}"] = held_out_accuracy(data.X, data.y, data.X_test, data.y_test, features)
        row[f"features for {k}"] = len(features)
    return row


def not_below(rows: list[dict[str, Any]], counts: tuple[int, ...]) -> dict[str, str]:
    """Compare our accuracy with that of the L1-SVM at each count (goal: not below)."""
    l1_svm = next(row for row in rows if row["method"] == "L1-SVM")
    return {
        f"{row['method']}, at {k}": f"{row[f'at {k}'] - l1_svm[f'at {k}']:+.4f} {verdict(row[f'at {k}'] >= l1_svm[f'at {k}'])}"
        for row in rows
        if row["method"].startswith("Coterie")
        for k in counts
    }


def main() -> None:
    options = read_arguments(__doc__)
    counts = (10, 20) if options.quick else (20, 50, 100)
    data = load_split(options.seed, 2000 if options.quick else None)
    print(
        f"Training: {data.X.shape[0]:,} x {data.X.shape[1]:,}, {data.X.nnz:,} nonzeros; Coterie with {options.threads} threads"
    )
    tuned = tune_l1_models(data, counts)
    outcomes = fit_in_turn(contenders(data, tuned, counts[-1], options.threads), data.y, options.repeats)
    ours = outcomes[0]
    rows = [comparison_row(one, ours, _goal(one.name)) for one in outcomes]
    print_table(f"news20: fit with {counts[-1]} features (* not converged)", rows)
    found = {one.name: {k: one.features[:k] for k in counts} for one in outcomes[: len(ROUND_SIZES)]}
    found |= {name: {k: selected_features(one.model) for k, one in models.items()} for name, models in tuned.items()}
    accuracies = [accuracy_row(name, data, chosen) for name, chosen in found.items()]
    print_table("Test accuracy of a linear SVM on the selected features", accuracies)
    comparison = not_below(accuracies, counts)
    print_facts("Accuracy of Coterie minus that of the L1-SVM (goal: not below)", comparison)
    bare_pass = measure_bare_pass(data.X, options.threads, options.repeats)
    work = {one.name: work_facts(one.model, one, bare_pass, data.X) for one in outcomes[: len(ROUND_SIZES)]}
    for name, facts in work.items():
        print_facts(f"Work of {name}", facts)
    write_results("news20", options, rows=rows, accuracies=accuracies, comparison=comparison, work=work)


def _goal(name: str) -> float | None:
    """Return the goal for the ratio of times: the performance goal for the L1-SVM, below 1 for celer."""
    return None if name.startswith("Coterie") else GOAL_RATIO if name == "L1-SVM" else 1.0


if __name__ == "__main__":
    main()
