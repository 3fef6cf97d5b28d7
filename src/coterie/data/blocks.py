"""Passes over all columns of a source, block by block, on threads."""

from __future__ import annotations

from collections.abc import Callable

from coterie._numba import run_chunks
from coterie.data.source import Columns, FeatureSource

# Columns of a block, about 16 MB of float64 for 2,000 samples; and entries of one, which bounds long columns.
_BLOCK_FEATURES = 1024
_BLOCK_ENTRIES = 1 << 24


def for_blocks(source: FeatureSource, task: Callable[[int, Columns], object], n_threads: int) -> None:
    """Call ``task(first feature, columns)`` for all blocks of columns, on ``n_threads`` threads.

    A task writes what it finds about each column to the column's own place, so that neither threads nor
    the size of the blocks can change a result.
    """
    n_samples, n_features = source.shape
    size = max(1, min(_BLOCK_FEATURES, _BLOCK_ENTRIES // max(n_samples, 1)))
    if source.is_sparse:
        size = max(size, n_features // (16 * n_threads) + 1)  # views cost nothing
    bounds = [*range(0, n_features, size), n_features]
    run_chunks(lambda start, stop: task(start, source.block(start, stop)), bounds, n_threads)
