"""All pairs in pieces that can be counted apart: whole numbers, which add up to the same in any order, on any machine."""

from __future__ import annotations

import threading
from typing import Protocol

import numpy as np

from coterie._numba import one_blas_thread, run_chunks
from coterie.correlation.profile.counted import Counted
from coterie.correlation.profile.dense import DenseTiles, dense_cost
from coterie.correlation.profile.sparse import SparseTiles, UniqueColumns
from coterie.data.source import FeatureSource, Moments
from coterie.progress import RoundProgress


class Tiles(Protocol):
    """All pairs of some features, in pieces.

    Attributes
    ----------
    total : int
        The whole of the work, in ``unit``.
    figure_words : str
        What the figure of a piece is about.
    """

    total: int
    unit: str
    figure_words: str

    def bounds(self, n_chunks: int | None = None) -> np.ndarray:
        """Where pieces may begin and end: so many pieces of about equal work, or as many as there are threads for."""
        ...

    def beforehand(self) -> np.ndarray:
        """Pairs that reach each edge apart from all pieces."""
        ...

    def count(self, start: int, stop: int) -> Counted:
        """The pairs of a piece."""
        ...


def tiles_of(source: FeatureSource, moments: Moments, features: np.ndarray, edges: np.ndarray, n_threads: int) -> Tiles:
    """All pairs of some features, by whichever way is quicker."""
    unique = UniqueColumns(source, moments, features, n_threads) if source.is_sparse else None
    if unique is not None and unique.cost(n_threads) <= dense_cost(source.shape[0], len(features)):
        return SparseTiles(unique, edges, n_threads)
    return DenseTiles(source, moments, features, edges)


class Tally:
    """The sum of what has been counted so far, and its progress."""

    def __init__(self, at_least: np.ndarray, bar: RoundProgress, words: str) -> None:
        self.at_least = at_least.copy()
        self._bar, self._words = bar, words
        self._done = self._figure = 0
        self._lock = threading.Lock()

    def add(self, piece: Counted) -> None:
        """Add a piece."""
        with self._lock:
            self.at_least += piece.at_least
            self._done += piece.done
            self._figure += piece.figure
            self._bar.update(self._done, f"{self._figure:,} {self._words}")


def count_here(tiles: Tiles, n_threads: int, verbose: int) -> np.ndarray:
    """Pairs at or over each edge, on the threads of this process."""
    with RoundProgress(tiles.total, verbose, "correlation profile", tiles.unit) as bar:
        tally = Tally(tiles.beforehand(), bar, tiles.figure_words)
        with one_blas_thread():  # threads of ours count pieces
            run_chunks(lambda start, stop: tally.add(tiles.count(start, stop)), tiles.bounds(), n_threads)
    return tally.at_least
