"""The only module that imports numba's compiler.

Every kernel of Coterie is a plain function made by :func:`kernel`: compiled lazily (so that
read-only memory maps, any value type and both index types work), cached on disk, and free of the
GIL. There is one compiled flavour. Its *parallel* use is :func:`run_chunks`, which splits the
columns among ordinary Python threads.

Why not ``njit(parallel=True)``? Its threading layers are the trouble: ``workqueue`` kills the
interpreter when two threads enter a kernel at once, GNU OpenMP kills a forked child, and either
at least doubles the compile time. GIL-free kernels on a thread pool of each process are safe under threads,
after a fork and inside worker processes, and every column is computed by exactly one call in a
fixed order of summation, so the result does not depend on the number of threads or chunks.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from numbers import Integral
from typing import Any, TypeVar

import numba
import numpy as np
from joblib import cpu_count
from numba.extending import intrinsic
from threadpoolctl import ThreadpoolController

F = TypeVar("F", bound=Callable[..., Any])

# NaN and infinity must survive (they are how bad values are found), so the "fast" flavour may
# only reorder and fuse operations.
_REORDER = {"reassoc", "contract", "nsz"}

_THREAD_LIMITS = ("COTERIE_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


def kernel(*, reorder: bool = False) -> Callable[[F], F]:
    """Compile a function to a cached kernel that releases the GIL.

    Parameters
    ----------
    reorder : bool, default=False
        Allow the compiler to reorder sums, which lets it use vector registers for reductions.
        The order is then still the same for every column of the same length.
    """

    def decorate(function: F) -> F:
        options: dict[str, Any] = {
            "nogil": True,
            "error_model": "numpy",
            "fastmath": _REORDER if reorder else False,
            "no_cfunc_wrapper": True,  # kernels are called from Python and from each other, never as C functions
        }
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # no folder on this machine can hold the cache
            return numba.njit(cache=False, **options)(function)

    return decorate


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """How many bits of an integer are set, in kernels; the processor counts those of many words at once."""
    return word(word), lambda context, builder, signature, arguments: builder.ctpop(arguments[0])


# Each thread costs memory and a few chunks; no machine has use for more.
_MAX_THREADS = 1024


def thread_count(n_jobs: int | None = None) -> int:
    """Turn ``n_jobs`` into a number of threads.

    ``None`` means all cores the process may use, but one inside a worker thread or a child
    process, where the caller already runs in parallel; the environment variables
    ``COTERIE_NUM_THREADS``, ``NUMBA_NUM_THREADS`` and ``OMP_NUM_THREADS`` (which joblib sets for
    its workers) are upper limits. A number is taken as it is, up to 1024; negative ones count from the number
    of cores as in joblib (-1: all).
    """
    if n_jobs is not None:
        if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool):
            raise ValueError(f"n_jobs={n_jobs!r} must be a whole number other than 0 (-1: all cores) or None.")
        if n_jobs == 0:
            raise ValueError("n_jobs=0 has no meaning; use None, a positive number, or -1 for all cores.")
        return min(int(n_jobs), _MAX_THREADS) if n_jobs > 0 else max(1, cpu_count() + 1 + int(n_jobs))
    if threading.current_thread() is not threading.main_thread():
        return 1
    if multiprocessing.parent_process() is not None:
        return 1
    limits = [int(v) for name in _THREAD_LIMITS if (v := os.environ.get(name, "")).isdigit() and int(v) > 0]
    return min([cpu_count(), *limits])


_limit = [_MAX_THREADS]  # threads of this process at the moment


@contextmanager
def threads_limited(n_threads: int) -> Iterator[None]:
    """Hold :func:`run_chunks` to so many threads for a while, for instance beside other processes."""
    _limit.append(min(n_threads, _limit[-1]))
    try:
        yield
    finally:
        _limit.pop()


_POOL = "coterie-pool"
_pools: dict[tuple[int, int], ThreadPoolExecutor | None] = {}


def _pool(n_threads: int) -> ThreadPoolExecutor | None:
    """Thread pool of this process; a forked child does not see its parent's (whose threads it lacks)."""
    key = (os.getpid(), n_threads)
    if key not in _pools:
        # Two threads may both come here; the pool that loses is dropped.
        _pools.setdefault(key, _started_pool(n_threads))
    return _pools[key]


def _started_pool(n_threads: int) -> ThreadPoolExecutor | None:
    """Pool whose threads are all running: fewer if the system allows no more, None if it allows less than two.

    A pool starts its threads with the first tasks, too late for a caller to do without: the task for which no thread could be
    started stays in the queue.
    """
    while n_threads > 1:
        pool, begin, n_started = ThreadPoolExecutor(n_threads, thread_name_prefix=_POOL), threading.Event(), 0
        try:
            while n_started < n_threads:
                pool.submit(begin.wait)
                n_started += 1
            return pool
        except RuntimeError:  # can't start new thread
            n_threads = n_started
        finally:
            begin.set()
        pool.shutdown()
    return None


def run_chunks(task: Callable[[int, int], object], boundaries: Sequence[int] | np.ndarray, n_threads: int) -> None:
    """Call ``task(start, stop)`` for each pair of neighbouring boundaries, on ``n_threads`` threads.

    Where the system does not allow so many threads, fewer are used, or the calling one alone.

    A task that calls this function itself runs its own chunks one after the other: waiting for the pool that it is in would
    not end.
    """
    n_threads = min(n_threads, _limit[-1])
    chunks = [(int(a), int(b)) for a, b in itertools.pairwise(boundaries) if b > a]
    alone = n_threads == 1 or len(chunks) < 2 or threading.current_thread().name.startswith(_POOL)
    pool = None if alone else _pool(n_threads)
    if pool is None:
        for start, stop in chunks:
            task(start, stop)
        return
    futures = [pool.submit(task, start, stop) for start, stop in chunks]
    try:
        for future in futures:
            future.result()
    finally:  # after an error or Ctrl-C nothing may go on writing to the caller's arrays
        for future in futures:
            future.cancel()
        wait(futures)


def run_evenly(task: Callable[[int, int], object], cost: np.ndarray | int, n_threads: int) -> None:
    """Call ``task(start, stop)`` for chunks of about equal cost that cover all items; see :func:`even_boundaries`."""
    run_chunks(task, even_boundaries(cost, n_threads), n_threads)


@lru_cache(maxsize=1)
def _blas() -> list[Any]:
    """The BLAS libraries of this process; looking for them takes longer than limiting them."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


# The blocks that hold BLAS to one thread now, in any thread, and the numbers of threads to restore after the last of them.
_blas_lock = threading.RLock()
_blas_blocks: set[object] = set()
_blas_threads: list[int] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread for a while.

    Our BLAS calls are small, so its threads cost more than they bring (the more so on a busy machine),
    and with one thread its sums do not depend on the number of cores. Blocks of several threads may overlap, and an interrupt
    at any moment leaves the numbers of threads as they were: threadpoolctl promises neither.
    """
    block = object()
    try:
        with _blas_lock:
            if not _blas_blocks:
                _blas_threads[:] = [library.num_threads for library in _blas()]
            _blas_blocks.add(block)
            for library in _blas():
                library.set_num_threads(1)
        yield
    finally:
        _leave_blas_block(block)


def _leave_blas_block(block: object) -> None:
    """Restore the threads of BLAS after the last block; an interrupt waits until that is done."""
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            with _blas_lock:
                _blas_blocks.discard(block)
                if not _blas_blocks:
                    for library, n_threads in zip(_blas(), _blas_threads, strict=False):
                        library.set_num_threads(n_threads)
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def even_boundaries(cost: np.ndarray | int, n_threads: int) -> np.ndarray:
    """Boundaries of chunks of about equal cost.

    ``cost`` is either a number of equally expensive items, or the cumulative cost of the items
    with a leading zero (a CSC matrix's ``indptr``).
    """
    return boundaries(cost, 1 if n_threads == 1 else 4 * n_threads)


def boundaries(cost: np.ndarray | int, n_chunks: int) -> np.ndarray:
    """Boundaries of so many chunks (or fewer) of about equal cost; see :func:`even_boundaries`."""
    if isinstance(cost, (int, np.integer)):
        return np.unique(np.linspace(0, int(cost), n_chunks + 1).astype(np.int64))
    # One unit for each item besides its own cost: empty columns are not free either.
    n_items = len(cost) - 1
    cuts = np.linspace(0, float(cost[-1]) + n_items, n_chunks + 1)[1:-1]
    inner = [_first_at_least(cost, cut) for cut in cuts]
    return np.unique(np.array([0, *inner, n_items], dtype=np.int64))


def _first_at_least(cumulative: np.ndarray, cut: float) -> int:
    """Smallest i with cumulative[i] + i >= cut; few entries are looked at, since the array may be a memory map."""
    return bisect_left(range(len(cumulative) - 1), cut, key=lambda i: float(cumulative[i]) + i)


def read_only(array: np.ndarray) -> np.ndarray:
    """View of an array that kernels only read.

    All inputs go through here so that writable arrays, memory maps and read-only buffers share
    one compiled version of a kernel. Booleans are seen as bytes.
    """
    view = np.asarray(array).view()
    if not view.flags.aligned:  # which a message may bring; such an array is summed in another order
        view = view.copy(order="K")
    if view.dtype == np.bool_:
        view = view.view(np.uint8)
    view.flags.writeable = False
    return view
