"""Correlations of pairs of features drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from coterie._numba import read_only, run_evenly
from coterie.data.source import FeatureSource, Moments
from coterie.kernels.pairs import csc_pair_correlations, dense_pair_correlations

# Values of the columns that are gathered at a time.
_BATCH_VALUES = 1 << 24


def drawn_pairs(n_features: int, n_pairs: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of different features, each pair as likely as any other, with replacement."""
    rng = check_random_state(random_state)
    first = rng.randint(0, n_features, n_pairs, dtype=np.int64)
    second = rng.randint(0, n_features - 1, n_pairs, dtype=np.int64)
    second += second >= first
    return first, second


def correlations_of(
    source: FeatureSource, moments: Moments, first: np.ndarray, second: np.ndarray, n_threads: int
) -> np.ndarray:
    """Correlations of pairs of features."""
    n_pairs = len(first)
    size = max(1, min(n_pairs, _BATCH_VALUES // (2 * source.shape[0]) if not source.is_sparse else 1 << 18))
    parts = [
        _correlations(source, moments, first[start : start + size], second[start : start + size], n_threads)
        for start in range(0, n_pairs, size)
    ]
    return np.concatenate(parts)


def _correlations(
    source: FeatureSource, moments: Moments, first: np.ndarray, second: np.ndarray, n_threads: int
) -> np.ndarray:
    used, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    firsts, seconds = read_only(places[: len(first)]), read_only(places[len(first) :])
    means, norms = read_only(moments.mean[used]), read_only(moments.norm[used])
    columns = source.columns(used)
    out = np.empty(len(first))
    if isinstance(columns, np.ndarray):
        matrix = read_only(columns.T)
        run_evenly(
            lambda start, stop: dense_pair_correlations(matrix, means, norms, firsts, seconds, out, start, stop),
            len(first),
            n_threads,
        )
        return out
    parts = read_only(columns.indptr), read_only(columns.indices), read_only(columns.data)
    n_samples = float(source.shape[0])
    run_evenly(
        lambda start, stop: csc_pair_correlations(*parts, means, norms, n_samples, firsts, seconds, out, start, stop),
        len(first),
        n_threads,
    )
    return out
