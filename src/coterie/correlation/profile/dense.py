"""All pairs of dense columns: BLAS products of standardised blocks, checked near the edges."""

from __future__ import annotations

import threading

import numpy as np

from coterie._numba import one_blas_thread, read_only, run_chunks
from coterie.data.source import FeatureSource, Moments
from coterie.kernels.pairs import standardise, tile_counts
from coterie.progress import RoundProgress

# Features of a block: large enough for BLAS, small enough for a product to stay in the caches.
BLOCK = 1024
# Samples from which on single precision leaves too much to be checked.
_SINGLE_PRECISION = 100_000
# Multiplications and additions a second of one core in single precision, to choose between dense and sparse.
_SPEED = 5e10


def dense_cost(n_samples: int, n_features: int) -> float:
    """About how many seconds of one core the products take."""
    return n_features * n_features * n_samples / _SPEED


def dense_at_least(
    source: FeatureSource, moments: Moments, features: np.ndarray, edges: np.ndarray, n_threads: int, bar: RoundProgress
) -> np.ndarray:
    r"""Pairs whose absolute correlation reaches each edge.

    With unit roundoff u, a product of two rounded unit vectors in any order of summation has an error of at most
    :math:`(n + 2) u / (1 - (n + 2) u)` (Higham, *Accuracy and stability of numerical algorithms*, section 3.1, and
    Cauchy-Schwarz); (n + 4) u covers it and the rounding of the edges for all n for which single precision is used.
    """
    n_samples = source.shape[0]
    kind = np.float32 if n_samples <= _SINGLE_PRECISION else np.float64
    error = (n_samples + 4) * float(np.finfo(kind).eps) * 0.51
    means, norms = read_only(moments.mean[features]), read_only(moments.norm[features])
    at_least = np.zeros(len(edges), dtype=np.int64)
    lock = threading.Lock()
    done = [0]

    def block(first: int) -> np.ndarray:
        chosen = features[first : first + BLOCK]
        if len(chosen) == chosen[-1] - chosen[0] + 1:  # no constant feature in between
            columns = source.block(int(chosen[0]), int(chosen[-1]) + 1)
        else:
            columns = source.columns(chosen)
        return read_only((columns if isinstance(columns, np.ndarray) else columns.toarray(order="F")).T)

    def standardised(columns: np.ndarray, first: int) -> np.ndarray:
        out = np.empty(columns.shape, dtype=kind)
        standardise(columns, means, norms, first, out)
        return out

    def row_of_blocks(start: int, stop: int) -> None:
        counts, checked = np.zeros(len(edges), dtype=np.int64), np.zeros(1, dtype=np.int64)
        for number in range(start, stop):
            first = number * BLOCK
            left = block(first)
            left_unit = standardised(left, first)
            for other in range(first, len(features), BLOCK):
                right = left if other == first else block(other)
                right_unit = left_unit if other == first else standardised(right, other)
                tile = left_unit @ right_unit.T
                tile_counts(tile, left, right, means, norms, first, other, read_only(edges), error, counts, checked)
            with lock:
                done[0] += len(left)
                bar.update(done[0], f"{checked[0]:,} products computed again")
        with lock:
            at_least[:] += counts

    with one_blas_thread():  # a thread of ours for each row of blocks
        run_chunks(row_of_blocks, range(-(-len(features) // BLOCK) + 1), n_threads)
    return at_least
