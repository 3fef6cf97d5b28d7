"""Many searches over the same features, which share passes over them.

Searches for different values of C, folds, half-samples or permuted labels differ in the loss, the sample weights or the
labels. On dense data in memory, each search makes its rounds in compiled calls on one of the threads
(:mod:`coterie.search.paths`). Searches that this does not complete, and searches on other data, advance in lockstep. In each
round, :class:`~coterie.search.scores.SharedPass` scores the features for all searches in one pass. Then every search takes its
own step on one of the threads. Inside ``joblib.parallel_config("loky", n_jobs=...)`` the searches are divided among processes,
each of which makes its own passes.

The result of a search does not depend on the others: it has the same support features in the same order, with weights that
agree to about ten digits. (The moments of dense features are computed for all weights at once, which rounds differently.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias, TypeVar

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from coterie._numba import one_blas_thread, run_chunks, thread_count
from coterie.data.memory import DenseSource, SparseSource
from coterie.data.source import Moments
from coterie.data.top import SharedTop
from coterie.data.view import FeatureView
from coterie.interruption import stop_requested
from coterie.search.loop import CuttingPlane, Round
from coterie.search.membership import EncounteredFeatures
from coterie.search.paths import follow_paths
from coterie.search.scores import LazyScores, SharedPass
from coterie.search.search import Search

# Memory of a search per feature (mean, norm, candidate mask) and per value of its design, and the limit for all concurrent
# searches.
_BYTES_PER_FEATURE = 24
_BYTES_PER_VALUE = 8
_MAX_BYTES = 1 << 31
# Searches per process, and values read per pass by all searches, that justify starting processes.
_MIN_SEARCHES = 2
_MIN_VALUES = 10**7

T = TypeVar("T")
# Results, one per search, of finished loops whose positions among all searches are given.
Finish: TypeAlias = Callable[[Sequence[int], Sequence[CuttingPlane]], list[T]]
OnRound: TypeAlias = Callable[[int, CuttingPlane], bool]


def run_searches(searches: Sequence[Search], finish: Finish[T], *, n_threads: int, on_round: OnRound | None = None) -> list[T]:
    """Run searches over one source to their ends and return one result per search.

    Parameters
    ----------
    searches : sequence of Search
        The searches. The state of all of them is in memory at the same time; see :func:`batches`.
    finish : callable
        Called with positions and finished loops; returns the result of each. It runs in the process that ran the loops, so it
        must be picklable if processes share the searches.
    n_threads : int
        Number of threads. The result does not depend on it.
    on_round : callable, optional
        Called with the position and the loop of a search after each of its rounds, by several threads concurrently. The
        search stops if it returns True. It is not called for searches in other processes.
    """
    n_processes = _process_count(searches)
    if n_processes < 2:
        with one_blas_thread():
            loops, _ = run_together(searches, n_threads=n_threads, on_round=on_round)
            return finish(range(len(searches)), loops)
    shares = [range(first, len(searches), n_processes) for first in range(n_processes)]
    parts = Parallel(n_jobs=n_processes)(
        delayed(_run_share)([_portable(searches[position]) for position in share], share, finish) for share in shares
    )
    results: dict[int, T] = {}
    for share, part in zip(shares, parts, strict=True):
        results |= dict(zip(share, part, strict=True))
    return [results[position] for position in range(len(searches))]


def _process_count(searches: Sequence[Search]) -> int:
    """Return the number of processes: that of the active joblib configuration, or fewer for small problems."""
    backend, n_jobs = get_active_backend()
    if n_jobs in (None, 1) or getattr(backend, "supports_sharedmem", False):
        return 1
    source = searches[0].data.source
    n_samples, n_features = source.shape
    if not isinstance(source, DenseSource | SparseSource) or len(searches) * n_samples * n_features < _MIN_VALUES:
        return 1
    return min(int(backend.effective_n_jobs(n_jobs)), len(searches) // _MIN_SEARCHES)


def _portable(search: Search) -> Search:
    """Return the search without the parts of its data that only the estimator needs."""
    return replace(search, data=replace(search.data, X=None, attributes={}))


def _run_share(searches: Sequence[Search], positions: Sequence[int], finish: Finish[T]) -> list[T]:
    """Run some of the searches in a worker process."""
    with one_blas_thread():
        loops, _ = run_together(searches, n_threads=thread_count(None))
        return finish(positions, loops)


def run_together(
    searches: Sequence[Search], *, n_threads: int, on_round: OnRound | None = None
) -> tuple[list[CuttingPlane], float]:
    """Run searches in lockstep and return the finished loops and the number of shared passes over the features."""
    with one_blas_thread():
        loops = _loops(searches, n_threads)
        shared = SharedPass([view for loop in loops for view in loop.oracle.views], n_threads)
        for position, loop in enumerate(loops):
            callback = None if on_round is None else partial(on_round, position, loop)
            loop.on_round = partial(_after_round, loop, callback)
        _advance(loops, shared, n_threads)
        for loop in loops:
            loop.on_round = None
    return loops, shared.n_passes


def _after_round(loop: CuttingPlane, callback: Callable[[], bool] | None, _: Round) -> bool:
    if loop.encountered is not None:
        loop.encountered.record(loop)
    return (callback is not None and callback()) or stop_requested()


def _advance(loops: Sequence[CuttingPlane], shared: SharedPass, n_threads: int) -> None:
    """Run loops to their ends, one round of all loops at a time."""
    for loop in loops:
        loop.begin()
    if isinstance(shared.top, SharedTop):
        follow_paths(loops, shared.top, n_threads)
    while unfinished := [loop for loop in loops if not loop.finished]:
        queries = [loop.queries() for loop in unfinished]
        answers = iter(shared.best([query for own in queries for query in own]))
        scores = [[next(answers) for _ in own] for own in queries]
        run_chunks(partial(_step, unfinished, scores), range(len(unfinished) + 1), n_threads)


def _step(loops: Sequence[CuttingPlane], scores: Sequence[Sequence[LazyScores]], start: int, stop: int) -> None:
    for loop, own in zip(loops[start:stop], scores[start:stop], strict=True):
        loop.step(own)


def _loops(searches: Sequence[Search], n_threads: int) -> list[CuttingPlane]:
    """Return the loops of some searches. Searches with the same sample weights and scale share one view."""
    source = searches[0].data.source
    weights = {id(search.data.weight): search.data.weight for search in searches}
    given = {key: weight for key, weight in weights.items() if weight is not None}
    moments: dict[int, Moments] = {}
    if given:
        moments = dict(zip(given, source.many_moments(list(given.values()), n_threads=n_threads), strict=True))
    views: dict[tuple[int, bool], FeatureView] = {}
    loops = []
    for search in searches:
        key = id(search.data.weight), search.standardizes
        loop = search.loop(moments.get(key[0]), views.get(key))
        views[key] = loop.oracle.view
        loop.warns = False  # Intermediate models: convergence warnings are raised by the final fit only.
        if search.records_members and not loop.oracle.complete:
            loop.encountered = EncounteredFeatures()
        loops.append(loop)
    return loops


def batches(items: Sequence[T], n_features: int, n_values: int = 0) -> Iterator[Sequence[T]]:
    """Yield items, one search each, in batches that fit into memory. ``n_values`` is the number of values in a design."""
    size = max(1, _MAX_BYTES // (_BYTES_PER_FEATURE * n_features + _BYTES_PER_VALUE * n_values))
    for first in range(0, len(items), size):
        yield items[first : first + size]
