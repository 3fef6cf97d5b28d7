"""Wide sparse data: 10,000 x 200,000 with 2 M nonzeros, power-law column counts, counts as values.

The class depends on some features of medium frequency; each has affiliated features, which are near copies of it. The goal is
that Coterie is faster than the L1 models tuned to as many features, and than the matrix of all products, which selectors by
correlation require.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _fresh_process import run_in_child
from _record import read_arguments, write_results
from _side_by_side import Outcome, fit_in_turn, held_out_accuracy, judged_rows, slow_row, usual_contenders, work_facts
from _tables import print_facts, print_table
from _timing import measure_bare_pass
from scipy import sparse

from coterie import FeatureGroup
from coterie.metrics import group_recovery

N_AFFILIATED = 4


class Planted(NamedTuple):
    """Sparse data and the groups on which the class depends."""

    X: sparse.csc_array
    y: np.ndarray
    groups: list[FeatureGroup]


def column_counts(n_samples: int, n_features: int, n_nonzeros: int) -> np.ndarray:
    """Return counts that decrease as a power of the rank, at most a fifth of the samples, about ``n_nonzeros`` in total."""
    max_count, ranks = n_samples // 5, np.arange(1.0, n_features + 1)
    low, high = 0.0, 3.0
    for _ in range(60):  # bisection for the exponent of this total
        exponent = 0.5 * (low + high)
        counts = np.maximum(1, np.round(max_count * ranks**-exponent)).astype(np.int64)
        low, high = (exponent, high) if counts.sum() > n_nonzeros else (low, exponent)
    return counts


def random_columns(rng: np.random.Generator, counts: np.ndarray, n_samples: int) -> sparse.coo_array:
    """Return columns with entries in random samples; entries of the same sample are added."""
    features = np.repeat(np.arange(len(counts)), counts)
    samples = rng.integers(0, n_samples, size=len(features))
    return sparse.coo_array((rng.geometric(0.7, size=len(features)), (samples, features)), shape=(n_samples, len(counts)))


def near_copy(
    rng: np.random.Generator, samples: np.ndarray, values: np.ndarray, n_samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return a copy of a column without a tenth of its entries and with some new ones."""
    kept = rng.random(len(samples)) >= 0.1
    own = rng.integers(0, n_samples, size=len(samples) // 20)
    return np.append(samples[kept], own), np.append(values[kept], np.ones(len(own), dtype=values.dtype))


def make_planted(n_samples: int, n_features: int, n_nonzeros: int, n_support: int, seed: int) -> Planted:
    """Return background columns, some of them replaced by groups of a support feature and its near copies."""
    rng = np.random.default_rng(seed)
    n_planted = n_support * (1 + N_AFFILIATED)
    frequency = rng.uniform(0.03, 0.1, size=n_support)
    n_background = n_nonzeros - int(frequency.sum() * n_samples * (1 + N_AFFILIATED))
    background = random_columns(rng, column_counts(n_samples, n_features - n_planted, n_background), n_samples)
    places = rng.permutation(n_features)
    parts = [(background.coords[0], places[background.coords[1]], background.data)]
    planted = places[n_features - n_planted :].reshape(n_support, 1 + N_AFFILIATED)
    total = rng.standard_normal(n_samples)
    for (support, *affiliated), share, weight in zip(planted, frequency, rng.choice([-3.0, 3.0], size=n_support), strict=True):
        samples = np.flatnonzero(rng.random(n_samples) < share)
        values = rng.geometric(0.7, size=len(samples))
        total[samples] += weight * values
        parts.append((samples, np.full(len(samples), support), values))
        for feature in affiliated:
            copied, copied_values = near_copy(rng, samples, values, n_samples)
            parts.append((copied, np.full(len(copied), feature), copied_values))
    rows, columns, values = (np.concatenate([part[i] for part in parts]) for i in range(3))
    places_32 = (rows.astype(np.int32), columns.astype(np.int32))  # celer does not support 64-bit indices
    X = sparse.coo_array((values.astype(np.float64), places_32), shape=(n_samples, n_features)).tocsc()
    y = np.where(total > np.median(total), 1, -1)
    return Planted(X, y, [FeatureGroup(int(line[0]), line[1:]) for line in planted])


def fit_all_products(X: sparse.csc_array, y: np.ndarray) -> Any:
    """Compute the matrix of all products, the first step of a selector by correlation."""
    return X.T @ X


def found_by(outcome: Outcome, groups: list[FeatureGroup]) -> dict[str, Any]:
    """Return the planted groups with a selected feature and, for Coterie, the share of planted features in their roles."""
    features = {int(j) for j in outcome.features}
    hit = sum(bool(features & {int(j) for j in group.members}) for group in groups)
    whole = getattr(outcome.model, "groups_", None)
    return {"groups hit": hit, "recovery": None if whole is None else group_recovery(groups, whole)}


def main() -> None:
    options = read_arguments(__doc__, slow="also compute X'X (half a minute, 5 GB)")
    shape = (2000, 20_000, 200_000, 10) if options.quick else (10_000, 200_000, 2_000_000, 20)
    n_train, n_features, n_nonzeros, n_support = shape
    n_test = n_train // 4  # additional samples with their own nonzeros
    data = make_planted(n_train + n_test, n_features, n_nonzeros * 5 // 4, n_support, options.seed)
    by_sample = data.X.tocsr()
    X, X_test, y, y_test = by_sample[:n_train].tocsc(), by_sample[n_train:].tocsc(), data.y[:n_train], data.y[n_train:]
    outcomes = fit_in_turn(usual_contenders(X, X.tocsr(), y, n_support, options.threads), y, options.repeats)
    ours = outcomes[0]
    rows = judged_rows(outcomes, partial(found_by, groups=data.groups), partial(held_out_accuracy, X, y, X_test, y_test))
    if options.slow:
        rows.append(slow_row("X'X", run_in_child(fit_all_products, X, y, options.limit), ours))
    facts = work_facts(ours.model, ours, measure_bare_pass(X, options.threads, options.repeats), X)
    size = f"{n_train:,} x {n_features:,}, {X.nnz:,} nonzeros"
    print_table(f"wide-sparse: {size}, {n_support} groups with signal (* not converged)", rows)
    dense, correlations = 8 * n_train * n_features / 1e9, 8 * n_features**2 / 1e9
    print(f"SmartCorrelatedSelection has no sparse mode: {dense:.1f} GB of dense data, {correlations:.1f} GB of correlations.")
    print_facts(f"Work of {ours.name}", facts)
    write_results("wide_sparse", options, rows=rows, work=facts)


if __name__ == "__main__":
    main()
