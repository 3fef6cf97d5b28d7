"""Symmetrical uncertainty: complete groups compared with brute force, and the pairs pruned by the bounds.

The brute force is independent of Coterie: joint counts of one-hot encoded bins by a matrix product, for every support
feature with every feature. It is given the support features, while a fit discovers them. The same pairs alone are therefore
timed as well, and the same fit with Pearson's coefficient.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from _real import data_path, load
from _record import read_arguments, write_results
from _tables import DOCS, columns, markdown_table, print_table, replace_section
from _timing import measure_in_turn
from scipy import sparse

from coterie import GroupDiscoveryClassifier
from coterie._numba import thread_count
from coterie.correlation.protocol import Pairs
from coterie.correlation.uncertainty import SymmetricalUncertainty
from coterie.data import FeatureView, as_source, open_features

THRESHOLD = 0.6
N_BINS = 10


def bins_of(X: np.ndarray) -> np.ndarray:
    """Return the index of the bin of each value: ten bins of equal width over each column's range."""
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return np.minimum((X - low) / width * N_BINS, N_BINS - 1).astype(int)


def entropy(p: np.ndarray, axis: Any) -> np.ndarray:
    return -(p * np.log(p, out=np.zeros_like(p), where=p > 0)).sum(axis=axis)


def brute_force(X: np.ndarray, supports: np.ndarray) -> np.ndarray:
    """Return the symmetrical uncertainty of every feature with each support feature."""
    bins = bins_of(X.astype(np.float64))
    n_samples, n_features = bins.shape
    few = (bins[:, supports, None] == np.arange(N_BINS)).reshape(n_samples, -1).astype(np.float32)
    result = np.empty((n_features, len(supports)))
    for j in range(n_features):
        one = (bins[:, j, None] == np.arange(N_BINS)).astype(np.float32)
        joint = (one.T @ few).reshape(N_BINS, len(supports), N_BINS).astype(np.float64) / n_samples
        h_one = entropy(joint.sum(axis=2), 0)
        h_few = entropy(joint.sum(axis=0), 1)
        total = h_one + h_few
        shared = total - entropy(joint, (0, 2))
        result[j] = np.divide(2 * shared, total, out=np.zeros_like(total), where=total > 0)
    return result


def fit(X: Any, y: np.ndarray, correlation: str, n_supports: int, threads: int | None) -> GroupDiscoveryClassifier:
    return GroupDiscoveryClassifier(
        n_supports,
        n_features_per_round=10,
        correlation=correlation,
        threshold=THRESHOLD,
        standardize=True,
        n_jobs=threads,
    ).fit(X, y)


def pairs_alone(X: Any, supports: np.ndarray, threads: int | None) -> Pairs:
    """Return all strong pairs of known support features, as the brute force does."""
    view = FeatureView.of(as_source(X), n_threads=thread_count(threads))
    return SymmetricalUncertainty(view, n_bins=N_BINS).strong(supports, THRESHOLD)


def row(name: str, X: Any, y: np.ndarray, n_supports: int, options: Any) -> dict[str, Any]:
    threads = options.threads
    began = time.perf_counter()
    model = fit(X, y, "su", n_supports, threads)
    seconds = time.perf_counter() - began
    fit(X, y, "pearson", n_supports, threads)
    again, linear, alone = measure_in_turn(
        [
            lambda: fit(X, y, "su", n_supports, threads),
            lambda: fit(X, y, "pearson", n_supports, threads),
            lambda: pairs_alone(X, model.support_features_, threads),
        ],
        options.repeats,
    )
    supports = model.support_features_
    dense = X.toarray() if sparse.issparse(X) else X
    began = time.perf_counter()
    U = brute_force(dense, supports)
    brute_seconds = time.perf_counter() - began
    strong = U >= THRESHOLD - 1e-10
    expected = set(np.flatnonzero(strong.any(axis=1)).tolist()) | set(supports.tolist())
    nearest = {int(j): int(supports[np.argmax(U[j])]) for j in expected - set(supports.tolist())}
    found = {int(j): int(group.support) for group in model.groups_ for j in group.affiliated}
    apart = [j for j in set(nearest) | set(found) if nearest.get(j) != found.get(j)]
    # If two support features are equally near, either is correct.
    apart = [j for j in apart if j not in nearest or j not in found or abs(np.ptp(np.sort(U[j])[-2:])) > 1e-9]
    closest = U[np.ix_(supports, np.arange(len(supports)))] - np.eye(len(supports))
    return {
        "data": name,
        "samples x features": f"{X.shape[0]:,} x {X.shape[1]:,}",
        "stored": "sparse" if sparse.issparse(X) else str(X.dtype),
        "support": len(supports),
        "affiliated": len(found),
        "differ from brute force": len(apart),
        "largest U of two supports": float(closest.max()),
        "pairs evaluated": model.n_correlations_evaluated_,
        "share of support x features": model.n_correlations_evaluated_ / (len(supports) * X.shape[1]),
        "first fit, s": seconds,
        "fit, s": again.best,
        "fit with Pearson, s": linear.best,
        "pairs alone, s": alone.best,
        "brute force, s": brute_seconds,
        "fit / brute force": again.best / brute_seconds,
        "pairs alone / brute force": alone.best / brute_seconds,
    }


def sets(quick: bool) -> Iterator[tuple[str, Any, np.ndarray]]:
    for name in ("basehock", "gisette_valid", "glioma", "coil20", "su", "gordon", "spambase"):
        X, y = load(name)
        X = X[:, :500] if quick else X
        if sparse.issparse(X):
            yield name, X.tocsc(), y
        yield name, X.toarray() if sparse.issparse(X) else X, y
    folder = data_path("plink_eur")
    genotypes = open_features(folder / "EUR_subset.bed", phenotype=folder / "EUR_subset.pheno.covars")
    X = np.asarray(genotypes.source.columns(np.arange(500 if quick else genotypes.source.shape[1])))
    yield "plink_eur", X, genotypes.y > np.median(genotypes.y)


def main() -> None:
    options = read_arguments(__doc__)
    rows = [row(name, X, y, 50, options) for name, X, y in sets(options.quick)]
    print_table(f"Symmetrical uncertainty, threshold {THRESHOLD}, complete groups", rows)
    write_results("uncertainty", options, rows=rows)
    if not options.quick:
        left_out = ("support", "largest U of two supports", "first fit, s", "pairs alone / brute force")
        names = [name for name in rows[0] if name not in left_out]
        replace_section(DOCS / "family.md", "uncertainty", markdown_table(columns(rows, *names)))


if __name__ == "__main__":
    main()
