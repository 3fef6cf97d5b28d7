"""Many searches over the same features in lockstep, with one pass over the features per round for all of them.

Values of C, folds, half-samples and permuted labels make searches that differ in the loss, the sample weights or the labels.
They advance round by round together: :class:`~coterie.search.scores.SharedPass` scores the features for all, then every search
takes its own step on one of the threads. Inside ``joblib.parallel_config("loky", n_jobs=...)`` processes share the searches,
each with passes of its own. The result of a search does not depend on the others: the same support features in the same order,
with weights that agree to about ten digits (the moments of dense features are computed for all weights at once, and so rounded
differently).
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
from coterie.data.view import FeatureView
from coterie.interruption import stop_requested
from coterie.search.loop import CuttingPlane, Round
from coterie.search.membership import EncounteredFeatures
from coterie.search.scores import LazyScores, SharedPass
from coterie.search.search import Search

# Bytes of a search for each feature (mean, norm, whether it is free) and each value of a column in its design; and what all
# searches at the same time may take.
_PER_FEATURE = 24
_PER_VALUE = 8
_MAX_BYTES = 1 << 31
# Searches that a process must have for itself, and values that all searches read in a pass, to be worth its start.
_MIN_SEARCHES = 2
_MIN_VALUES = 10**7

T = TypeVar("T")
# Results, one per search, of finished loops whose positions among all searches are given.
Finish: TypeAlias = Callable[[Sequence[int], Sequence[CuttingPlane]], list[T]]
OnRound: TypeAlias = Callable[[int, CuttingPlane], bool]


def run_searches(searches: Sequence[Search], finish: Finish[T], *, n_threads: int, on_round: OnRound | None = None) -> list[T]:
    """Run searches over one source to their ends; one result for each.

    Parameters
    ----------
    searches : sequence of Search
        All of them have their state in memory at the same time; see :func:`batches`.
    finish : callable
        Given positions and finished loops, returns what is wanted of each. It runs in the process that ran them, so it must
        be picklable where processes share the searches.
    n_threads : int
        Number of threads; never changes a result.
    on_round : callable, optional
        Called with the position and the loop of a search after each of its rounds, by several threads at the same time; a
        true answer ends the search. Not called for searches of other processes.
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
    """Number of processes that the active configuration of joblib asks for and the work is worth."""
    backend, n_jobs = get_active_backend()
    if n_jobs in (None, 1) or getattr(backend, "supports_sharedmem", False):
        return 1
    source = searches[0].data.source
    n_samples, n_features = source.shape
    if not isinstance(source, DenseSource | SparseSource) or len(searches) * n_samples * n_features < _MIN_VALUES:
        return 1
    return min(int(backend.effective_n_jobs(n_jobs)), len(searches) // _MIN_SEARCHES)


def _portable(search: Search) -> Search:
    """The search without what only the estimator needs of its data."""
    return replace(search, data=replace(search.data, X=None, attributes={}))


def _run_share(searches: Sequence[Search], positions: Sequence[int], finish: Finish[T]) -> list[T]:
    """Run some of the searches in a worker process."""
    with one_blas_thread():
        loops, _ = run_together(searches, n_threads=thread_count(None))
        return finish(positions, loops)


def run_together(
    searches: Sequence[Search], *, n_threads: int, on_round: OnRound | None = None
) -> tuple[list[CuttingPlane], float]:
    """The finished loops of some searches, and how many times the features were read for their scores; see above."""
    with one_blas_thread():
        loops = _loops(searches, n_threads)
        shared = SharedPass([view for loop in loops for view in loop.oracle.views], n_threads)
        for position, loop in enumerate(loops):
            shown = None if on_round is None else partial(on_round, position, loop)
            loop.on_round = partial(_after_round, loop, shown)
        _advance(loops, shared, n_threads)
        for loop in loops:
            loop.on_round = None
    return loops, shared.n_passes


def _after_round(loop: CuttingPlane, shown: Callable[[], bool] | None, _: Round) -> bool:
    if loop.encountered is not None:
        loop.encountered.record(loop)
    return (shown is not None and shown()) or stop_requested()


def _advance(loops: Sequence[CuttingPlane], shared: SharedPass, n_threads: int) -> None:
    """Take loops to their ends, round by round together."""
    for loop in loops:
        loop.begin()
    while unfinished := [loop for loop in loops if not loop.finished]:
        queries = [loop.queries() for loop in unfinished]
        answers = iter(shared.best([query for own in queries for query in own]))
        scores = [[next(answers) for _ in own] for own in queries]
        run_chunks(partial(_step, unfinished, scores), range(len(unfinished) + 1), n_threads)


def _step(loops: Sequence[CuttingPlane], scores: Sequence[Sequence[LazyScores]], start: int, stop: int) -> None:
    for loop, own in zip(loops[start:stop], scores[start:stop], strict=True):
        loop.step(own)


def _loops(searches: Sequence[Search], n_threads: int) -> list[CuttingPlane]:
    """The loops of some searches, with one view for all that have the same sample weights and scale."""
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
        loop.warns = False  # these models are intermediate: the final fit warns
        if search.records_members and not loop.oracle.complete:
            loop.encountered = EncounteredFeatures()
        loops.append(loop)
    return loops


def batches(items: Sequence[T], n_features: int, n_values: int = 0) -> Iterator[Sequence[T]]:
    """Items, one search each, in parts that fit into memory together; ``n_values`` are those of the columns in a design."""
    size = max(1, _MAX_BYTES // (_PER_FEATURE * n_features + _PER_VALUE * n_values))
    for first in range(0, len(items), size):
        yield items[first : first + size]
