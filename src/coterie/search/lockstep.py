"""Paths in lockstep: many searches over the same features, with one pass over these a round for all of them.

Values of C, folds, half-samples and permuted labels make paths that differ in the loss, the weights of the samples or the
labels. They advance round by round together: :class:`~coterie.search.scores.SharedPass` scores the features for
all, then every path takes its own step. Where they can be forked, processes share the paths, each with passes of its own
(:mod:`coterie._copies`); elsewhere the steps are taken side by side on the threads. What a path finds is what it would
have found alone: the same support features in the same order, with weights that agree to about ten digits (the moments of
dense features are computed for all weights at once, and so rounded differently).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie._copies import Beat, can_copy, in_copies
from coterie._numba import one_blas_thread, run_chunks
from coterie.data.memory import DenseSource, SparseSource
from coterie.data.view import FeatureView
from coterie.interruption import stop_requested
from coterie.search.loop import CuttingPlane
from coterie.search.membership import MetOnTheWay
from coterie.search.scores import SharedPass

# Bytes of a path for each feature (mean, norm, whether it is free) and each value of a column in its design; and what all
# paths at the same time may take.
_PER_FEATURE = 24
_PER_VALUE = 8
_MOST_BYTES = 1 << 31
# Paths that a process must have for itself to be worth its start.
_LEAST_PATHS = 2


@dataclass(frozen=True)
class Path:
    """A search: by which estimator, for which targets, on which samples, how far.

    Attributes
    ----------
    estimator : GroupDiscovery
        Its parameters are those of the search.
    data : Samples
        The features with the labels or targets of this path.
    weight : ndarray of shape (n_samples,) or None
        Weights of the samples. Paths that share an array share the moments of the features.
    n_features : int or None
        Support features to find; None for the estimator's own rule.
    noting : bool, default=False
        Whether the groups along the path are wanted: where the walk alone tells their members, these are written down.
    """

    estimator: Any
    data: Any
    weight: np.ndarray | None
    n_features: int | None
    noting: bool = False


def run_together(
    paths: Sequence[Path], *, n_threads: int, on_round: Callable[[int, CuttingPlane], bool] | None = None
) -> tuple[list[CuttingPlane], float]:
    """The finished loops of some paths over one source, and how many times the features were read for their scores.

    Parameters
    ----------
    paths : sequence of Path
        All of them have their state in memory at the same time; see :func:`batches`.
    n_threads : int
        Number of threads, or of processes that share the paths; never changes a result.
    on_round : callable, optional
        Called with the position and the loop of each path after each of its rounds, by several threads at the same time;
        a true answer ends the path. Paths that other processes take are not shown; a signal that asks to stop ends all.
    """
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # nobody sees these models; the one that is fitted in the end warns
        loops = _loops(paths, n_threads)
        views = [view for loop in loops for view in loop.oracle.views]
        shared = SharedPass(views, n_threads)

        def advance(share: Sequence[int], beat: Beat) -> list[tuple[CuttingPlane, float]]:
            """The loops of a share at their ends, and the passes of all of them together beside the first."""
            for position in share:
                shown = partial(on_round, position, loops[position]) if on_round and 0 in share else None
                loops[position].on_round = partial(_after_round, loops[position], shown, beat)
            _advance([loops[position] for position in share], shared, n_threads)
            for position in share:
                loops[position].on_round = None
            return [(loops[position], shared.n_passes * (position == share[0])) for position in share]

        known = [*views, *(view.moments for view in views), *(loop.master.loss for loop in loops), paths[0].data.source]
        results = among_processes(advance, loops, paths[0].estimator, known, n_threads=n_threads)
    return [loop for loop, _ in results], sum(n_passes for _, n_passes in results)


def among_processes(
    compute: Callable[[Sequence[int], Beat], list[Any]],
    loops: Sequence[CuttingPlane],
    estimator: Any,
    known: Sequence[Any] = (),
    *,
    n_threads: int,
) -> list[Any]:
    """What is computed for each of some loops, which processes share where that is safe.

    Neighbours, which are alike, go to different processes, to and fro: of rising values of C nobody gets the larger ones. One
    process takes all where they are few, the features are elsewhere, or functions of the user's are called on the way.

    Parameters
    ----------
    compute : callable
        Given positions, and what to call after each step (see :func:`coterie._copies.in_copies`); returns a result for each.
    loops : sequence of CuttingPlane
        The loops.
    estimator : GroupDiscovery
        Whose loops they are, or one like it.
    known : sequence of objects
        What results may refer to and need not be sent.
    n_threads : int
        Number of threads, or processes.
    """
    own = callable(estimator.representative) or not isinstance(estimator.correlation, str | None)
    near = isinstance(loops[0].oracle.view.source, DenseSource | SparseSource)
    n_copies = min(n_threads, len(loops) // _LEAST_PATHS) if near and not own and can_copy() else 1
    shares: list[list[int]] = [[] for _ in range(max(n_copies, 1))]
    for position in range(len(loops)):
        turn, place = divmod(position, len(shares))
        shares[len(shares) - 1 - place if turn % 2 else place].append(position)
    parts = in_copies([partial(compute, share) for share in shares], known, n_threads=n_threads // len(shares))
    results: list[Any] = [None] * len(loops)
    for share, part in zip(shares, parts, strict=True):
        for position, result in zip(share, part, strict=True):
            results[position] = result
    return results


def _after_round(loop: CuttingPlane, shown: Callable[[], bool] | None, beat: Beat, _: Any) -> bool:
    if loop.met is not None:
        loop.met.note(loop)
    ended = shown is not None and shown()
    return beat(stop_requested()) or ended


def _advance(loops: Sequence[CuttingPlane], shared: SharedPass, n_threads: int) -> None:
    """Take loops to their ends, round by round together."""
    for loop in loops:
        loop.begin()
    while going := [loop for loop in loops if not loop.finished]:
        queries = [loop.queries() for loop in going]
        answers = iter(shared.best([query for own in queries for query in own]))
        scores = [[next(answers) for _ in own] for own in queries]

        def steps(start: int, stop: int, going: Any = going, scores: Any = scores) -> None:
            for loop, own in zip(going[start:stop], scores[start:stop], strict=True):
                loop.step(own)

        run_chunks(steps, range(len(going) + 1), n_threads)


def _loops(paths: Sequence[Path], n_threads: int) -> list[CuttingPlane]:
    """The loops of some paths, with one view for all that have the same weights and scale."""
    weights = {id(path.weight): path.weight for path in paths}
    source = paths[0].data.source
    given = {key: weight for key, weight in weights.items() if weight is not None}
    moments: dict[int, Any] = (
        dict(zip(given, source.many_moments(list(given.values()), n_threads=n_threads), strict=True)) if given else {}
    )
    views: dict[tuple[int, Any], FeatureView] = {}
    loops = []
    for path in paths:
        key = id(path.weight), path.estimator.standardize
        loop = path.estimator._loop(path.data, path.weight, path.n_features, moments.get(key[0]), views.get(key))
        views[key] = loop.oracle.view
        loop.met = MetOnTheWay() if path.noting and not loop.oracle.complete else None
        loops.append(loop)
    return loops


def batches(items: Sequence[Any], n_features: int, n_values: int = 0) -> Iterator[Sequence[Any]]:
    """Items, a path each, in parts that fit into memory together; ``n_values`` are those of the columns a path selects."""
    size = max(1, _MOST_BYTES // (_PER_FEATURE * n_features + _PER_VALUE * n_values))
    for first in range(0, len(items), size):
        yield items[first : first + size]
