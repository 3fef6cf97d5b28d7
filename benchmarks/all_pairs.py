"""Correlation profile: all pairs of int8 genotypes compared with the bare BLAS product, and a trillion pairs of sparse text.

A slice of the psoriasis shape (2,176 x 529,651, int8) is used; the time of all its 1.4e11 pairs is extrapolated from the
time per pair. The bare product computes each pair once in single precision, without reading bytes, standardising or
counting. Both use the same number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _real import find_data, load
from _record import read_arguments, write_results
from _tables import print_table, verdict
from _timing import Timing, measure_in_turn
from threadpoolctl import threadpool_limits

from coterie import CorrelationProfile, correlation_profile

TEXT = "20news_bigrams"
PANEL = 4096
GOAL_RATIO = 2.0
PSORIASIS = (2176, 529_651)


def genotypes(n_samples: int, n_features: int, seed: int) -> np.ndarray:
    """Return minor allele counts with frequencies between 5 and 50 %, in runs of ten correlated neighbours."""
    rng = np.random.default_rng(seed)
    frequency = rng.uniform(0.05, 0.5, n_features)
    result = np.empty((n_samples, n_features), dtype=np.int8, order="F")
    for j in range(n_features):
        if j % 10 == 0:
            block = rng.random((n_samples, 2))
        fresh = rng.random((n_samples, 2))
        values = np.where(rng.random((n_samples, 2)) < 0.8, block, fresh)
        result[:, j] = (values < frequency[j]).sum(axis=1)
    return result


def bare_product(Z: np.ndarray, out: np.ndarray, threads: int) -> None:
    """Multiply every pair of rows once, in panels, without using the results."""
    with threadpool_limits(threads, user_api="blas"):
        for start in range(0, len(Z), PANEL):
            for other in range(start, len(Z), PANEL):
                a, b = Z[start : start + PANEL], Z[other : other + PANEL]
                if other == start:  # the diagonal square is symmetric: compute half of it
                    np.dot(a[: len(a) // 2], b.T, out=out[: len(a) // 2, : len(b)])
                else:
                    np.dot(a, b.T, out=out[: len(a), : len(b)])


def dense_row(n_samples: int, n_features: int, threads: int, repeats: int, seed: int) -> dict[str, Any]:
    X = genotypes(n_samples, n_features, seed)
    Z = np.ascontiguousarray(X.T, dtype=np.float32)
    out = np.empty((PANEL, PANEL), dtype=np.float32)
    correlation_profile(X[:, :2048], n_jobs=threads)  # compile kernels
    ours, bare = measure_in_turn(
        [lambda: correlation_profile(X, n_jobs=threads), lambda: bare_product(Z, out, threads)], repeats
    )
    pairs = n_features * (n_features - 1) / 2
    ratio = ours.best / bare.best
    all_pairs = PSORIASIS[1] * (PSORIASIS[1] - 1) / 2
    return {
        "slice": f"{n_samples:,} x {n_features:,}",
        "threads": threads,
        "best s": ours.best,
        "bare BLAS s": bare.best,
        "ours/bare": ratio,
        "goal": f"<= {GOAL_RATIO:g}",
        "verdict": verdict(ratio <= GOAL_RATIO),
        "ns a pair": 1e9 * ours.best / pairs,
        "all of psoriasis, h": ours.best / pairs * all_pairs / 3600 if n_samples == PSORIASIS[0] else None,
        "cores of other processes": ours.other_cores,
    }


def text_rows(options: Any) -> list[dict[str, Any]]:
    X = load(TEXT)[0].tocsc()
    if options.quick:
        X = X[:, :100_000]
    correlation_profile(X[:500], n_jobs=options.threads)
    exact, sample = measure_in_turn(
        [
            lambda: correlation_profile(X, n_jobs=options.threads),
            lambda: correlation_profile(X, n_pairs=1_000_000, n_jobs=options.threads, random_state=0),
        ],
        options.repeats,
    )
    return [_text_row("all pairs", X, exact), _text_row("a million drawn", X, sample)]


def _text_row(name: str, X: Any, timing: Timing) -> dict[str, Any]:
    profile: CorrelationProfile = timing.result
    return {
        "what": name,
        "features": X.shape[1],
        "pairs": profile.n_counted,
        "best s": timing.best,
        "pairs per second": f"{profile.n_counted / timing.best:.2g}",
        "share at 0.7 and over": f"{profile.survival[7]:.4%}",
        "cores of other processes": timing.other_cores,
    }


def main() -> None:
    options = read_arguments(__doc__)
    sizes = [(379, 4096)] if options.quick else [(PSORIASIS[0], 16_384), (379, 32_768)]
    rows = [
        dense_row(n, m, threads, options.repeats, options.seed) for n, m in sizes for threads in sorted({1, options.threads})
    ]
    print_table("Profile of int8 genotypes and the bare product", rows)
    text = text_rows(options) if find_data(f"{TEXT}.npz") else []
    if text:
        print_table("Profile of sparse text: 20 Newsgroups, word 1-2-grams", text)
    else:
        print(f"The sparse part is skipped: {TEXT}.npz not found in $COTERIE_DATA or ../shared/data.")
    write_results("all_pairs", options, rows=rows, text=text)


if __name__ == "__main__":
    main()
