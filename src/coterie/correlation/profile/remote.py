"""Pairs counted by the workers of a cluster, each of which opens the store itself; the client adds up whole numbers."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from coterie._numba import one_blas_thread
from coterie.cluster.parts import Recipe
from coterie.cluster.source import DistributedSource
from coterie.cluster.work import moments_and_bad_values
from coterie.correlation.profile.counted import Counted
from coterie.correlation.profile.sampled import correlations_of
from coterie.correlation.profile.tiles import Tally, Tiles, tiles_of
from coterie.data.source import Moments
from coterie.progress import RoundProgress

# Pieces for each thread of the cluster, so that those that are done early find more to do.
_PIECES = 8
# Drawn pairs of a piece.
_PAIRS = 1 << 16


class _Varying(NamedTuple):
    """The features that are not constant, in a source of all of them."""

    moments: Moments
    features: np.ndarray


def count_there(source: DistributedSource, edges: np.ndarray, verbose: int) -> np.ndarray:
    """Pairs at or over each edge."""
    tiles = source.recipe(_tiles, _varying(source), edges).passing()
    n_pieces = _PIECES * max(1, source.engine.n_threads)
    (plan,) = source.ask_anybody(_plan, [(tiles, n_pieces)], what="a plan of the pairs")
    total, unit, words, bounds, beforehand = plan
    with RoundProgress(total, verbose, "correlation profile", unit) as bar:
        tally = Tally(beforehand, bar, words)
        pieces = [(tiles, int(a), int(b)) for a, b in itertools.pairwise(bounds)]
        source.ask_anybody(_count, pieces, what="pairs of features", on_answer=lambda _, piece: tally.add(piece))
    return tally.at_least


def drawn_there(source: DistributedSource, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Correlations of pairs, given by their places among the features that are not constant."""
    varying = _varying(source)
    cuts = [*range(0, len(first), _PAIRS), len(first)]
    pieces = [(varying, first[a:b], second[a:b]) for a, b in itertools.pairwise(cuts)]
    return np.concatenate(source.ask_anybody(_drawn, pieces, what="correlations of pairs of features"))


def _varying(source: DistributedSource) -> Recipe:
    moments = source.recipe(moments_and_bad_values, None).item(0)
    return source.recipe(_features, moments)


def _features(source: Any, moments: Moments) -> _Varying:
    return _Varying(moments, np.flatnonzero(moments.norm > 0))


def _tiles(source: Any, varying: _Varying, edges: np.ndarray) -> Tiles:
    return tiles_of(source, varying.moments, varying.features, edges, 1)


def _plan(source: Any, tiles: Tiles, n_pieces: int) -> tuple[int, str, str, np.ndarray, np.ndarray]:
    return tiles.total, tiles.unit, tiles.figure_words, tiles.bounds(n_pieces), tiles.beforehand()


def _count(source: Any, tiles: Tiles, start: int, stop: int) -> Counted:
    with one_blas_thread():
        return tiles.count(start, stop)


def _drawn(source: Any, varying: _Varying, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return correlations_of(source, varying.moments, varying.features[first], varying.features[second], 1)
