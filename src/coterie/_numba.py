"""Compilation of kernels and threads. Only this module and :mod:`coterie._compiler` import numba.

Every kernel of Coterie is a plain function decorated with :func:`kernel`. It is compiled lazily (so that read-only memory
maps, all value types and both index types work), cached on disk, and releases the GIL. There is one compiled version. For
parallel use, :func:`run_chunks` divides the columns among ordinary Python threads.

``njit(parallel=True)`` is not used because of its threading layers: ``workqueue`` kills the interpreter when two threads enter
a kernel at once, GNU OpenMP kills a forked child, and both at least double the compile time. Kernels that release the GIL on a
thread pool per process are safe under threads, after a fork and inside worker processes. Every column is computed by exactly
one call in a fixed order of summation, so the result does not depend on the number of threads or chunks.
"""

from __future__ import annotations

import hashlib
import itertools
import multiprocessing
import os
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from joblib import cpu_count
from numba.core import event
from numba.extending import intrinsic
from threadpoolctl import ThreadpoolController

# Oldest and newest version of numba whose internal parts coterie._compiler is tested with.
_TESTED_VERSIONS = (0, 61), (0, 68)

if _TESTED_VERSIONS[0] <= tuple(map(int, numba.__version__.split(".")[:2])) <= _TESTED_VERSIONS[1]:
    from coterie._compiler import compiled as compile_kernel
else:

    def compile_kernel(function: Callable[..., Any], *, cache: bool, options: dict[str, Any]) -> Any:
        """Return a function as a kernel by numba's public interface, which compiles longer."""
        return numba.njit(cache=cache, **options)(function)


F = TypeVar("F", bound=Callable[..., Any])

# NaN and infinity must be preserved, because invalid values are detected by them. So the "fast" flags may only reorder and
# fuse operations.
_REORDER_FLAGS = {"reassoc", "contract", "nsz"}

_THREAD_VARIABLES = ("COTERIE_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


def kernel(*, reorder: bool = False) -> Callable[[F], F]:
    """Compile a function to a cached kernel that releases the GIL.

    Parameters
    ----------
    reorder : bool, default=False
        Allow the compiler to reorder sums, so that it can use vector registers for reductions. The order is still the same
        for all columns of the same length.
    """

    def decorate(function: F) -> F:
        options: dict[str, Any] = {
            "nogil": True,
            "error_model": "numpy",
            "fastmath": _REORDER_FLAGS if reorder else False,
            "no_cfunc_wrapper": True,  # Kernels are called from Python and from each other, never as C functions.
        }
        try:
            compiled: Any = compile_kernel(function, cache=True, options=options)
        except RuntimeError:  # No writable folder for the cache exists.
            return cast(F, compile_kernel(function, cache=False, options=options))
        # numba compares only the time of the kernel's own file. A kernel contains the kernels that it calls, and the index of
        # its cache refers to their types, so the files of all kernels count.
        index = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
        if index is not None:
            index._version = f"{index._version} {_kernel_files_stamp()}"
        return cast(F, compiled)

    return decorate


@lru_cache(maxsize=1)
def _kernel_files_stamp() -> str:
    """Return a digest of the names, times and sizes of the files with kernels and of their compiler."""
    digest, folder = hashlib.sha256(), Path(__file__).parent
    for path in [folder / "_compiler.py", *sorted((folder / "kernels").glob("*.py"))]:
        status = path.stat()
        digest.update(f"{path.name} {status.st_mtime_ns} {status.st_size};".encode())
    return digest.hexdigest()


def is_compiled(function: Any) -> bool:
    """Return True if this process has compiled or loaded a kernel."""
    return bool(function.signatures)


class Compilation(NamedTuple):
    """Compilation of one specialisation of a function. ``seconds`` is processor time.

    The seconds do not include the translation of the functions that it calls to intermediate code. They include the time to
    optimise that code as a part of a function that Python calls.
    """

    module: str
    name: str
    types: tuple[str, ...]
    seconds: float


class _CompilationRecorder(event.Listener):
    """Record compilations. One compilation contains those of the functions that are called, so open ones form a stack."""

    def __init__(self) -> None:
        self.compilations: list[Compilation] = []
        self._places: dict[tuple[str, str, tuple[str, ...]], int] = {}
        self._open: list[list[float]] = []  # start, and seconds of the functions called

    def on_start(self, event: Any) -> None:
        """Start the time of a function."""
        self._open.append([time.thread_time(), 0.0])

    def on_end(self, event: Any) -> None:
        """Record a function."""
        started, inner = self._open.pop()
        seconds = time.thread_time() - started
        if self._open:
            self._open[-1][1] += seconds
        function, types = event.data["dispatcher"].py_func, event.data["args"]
        key = function.__module__, function.__name__, tuple(map(str, types))
        # A kernel has an inner and an outer function; see coterie._compiler.
        place = self._places.setdefault(key, len(self.compilations))
        if place == len(self.compilations):
            self.compilations.append(Compilation(*key, 0.0))
        before = self.compilations[place]
        self.compilations[place] = before._replace(seconds=before.seconds + seconds - inner)


@contextmanager
def recorded_compilations() -> Iterator[list[Compilation]]:
    """Record the functions compiled in the block, by any thread. Functions loaded from the cache are not compiled."""
    recorder = _CompilationRecorder()
    with event.install_listener("numba:compile", recorder):
        yield recorder.compilations


def cache_folder(function: Any) -> Path:
    """Return the folder in which numba stores a compiled kernel. Raises an error if nothing is stored."""
    settings: Any = numba.config  # sets its attributes from the environment
    if settings.DISABLE_JIT:
        raise ValueError("The environment variable NUMBA_DISABLE_JIT is set, so nothing is compiled. Unset it.")
    wanted, found = settings.CACHE_DIR, function.stats.cache_path
    if wanted and (found is None or Path(wanted).resolve() not in Path(found).resolve().parents):  # numba uses another one
        raise ValueError(f"Folder {wanted} (NUMBA_CACHE_DIR) cannot be written. Set NUMBA_CACHE_DIR to a writable folder.")
    if found is None:
        raise ValueError("No folder for compiled code can be written. Set NUMBA_CACHE_DIR to a writable folder.")
    return Path(found)


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Return the number of set bits of an integer in a kernel. The compiler vectorises it."""
    return word(word), lambda context, builder, signature, arguments: builder.ctpop(arguments[0])


# Each thread costs memory and a few chunks. More threads are never useful.
_MAX_THREADS = 1024


def thread_count(n_jobs: int | None = None) -> int:
    """Return the number of threads for a value of ``n_jobs``.

    ``None`` means all cores available to the process, but one thread inside a worker thread or a child process, where the
    caller already runs in parallel. The environment variables ``COTERIE_NUM_THREADS``, ``NUMBA_NUM_THREADS`` and
    ``OMP_NUM_THREADS`` (which joblib sets for its workers) are upper limits. A positive number is used unchanged, up to 1024.
    Negative numbers count back from the number of cores as in joblib (-1: all cores).
    """
    if n_jobs is not None:
        if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool):
            raise ValueError(f"n_jobs={n_jobs!r} must be a whole number other than 0 (-1: all cores) or None.")
        if n_jobs == 0:
            raise ValueError("n_jobs=0 is not valid. Use None, a positive number, or -1 for all cores.")
        return min(int(n_jobs), _MAX_THREADS) if n_jobs > 0 else max(1, cpu_count() + 1 + int(n_jobs))
    if threading.current_thread() is not threading.main_thread():
        return 1
    if multiprocessing.parent_process() is not None:
        return 1
    limits = [int(v) for name in _THREAD_VARIABLES if (v := os.environ.get(name, "")).isdigit() and int(v) > 0]
    return min([cpu_count(), *limits])


_THREAD_PREFIX = "coterie-pool"
_pools: dict[tuple[int, int], ThreadPoolExecutor | None] = {}


def _pool(n_threads: int) -> ThreadPoolExecutor | None:
    """Return the thread pool of this process. A forked child does not use its parent's, whose threads it lacks."""
    key = (os.getpid(), n_threads)
    if key not in _pools:
        # If two threads create a pool at the same time, one of them is discarded.
        _pools.setdefault(key, _started_pool(n_threads))
    return _pools[key]


def _started_pool(n_threads: int) -> ThreadPoolExecutor | None:
    """Return a pool whose threads are all running. It has fewer threads if the system allows no more, None if fewer than two.

    A pool starts its threads with the first tasks. That is too late to react to a failure, because the task for which no
    thread could be started stays in the queue.
    """
    while n_threads > 1:
        pool, release, n_started = ThreadPoolExecutor(n_threads, thread_name_prefix=_THREAD_PREFIX), threading.Event(), 0
        try:
            while n_started < n_threads:
                pool.submit(release.wait)
                n_started += 1
            return pool
        except RuntimeError:  # The system cannot start another thread.
            n_threads = n_started
        finally:
            release.set()
        pool.shutdown()
    return None


def run_chunks(task: Callable[[int, int], object], boundaries: Sequence[int] | np.ndarray, n_threads: int) -> None:
    """Call ``task(start, stop)`` for each pair of neighbouring boundaries, on ``n_threads`` threads.

    If the system does not allow this many threads, fewer are used, or only the calling thread.

    If a task calls this function itself, its chunks run sequentially, because waiting for its own pool would be a deadlock.
    """
    n_threads = min(n_threads, _MAX_THREADS)
    chunks = [(int(a), int(b)) for a, b in itertools.pairwise(boundaries) if b > a]
    sequential = n_threads == 1 or len(chunks) < 2 or threading.current_thread().name.startswith(_THREAD_PREFIX)
    pool = None if sequential else _pool(n_threads)
    if pool is None:
        for start, stop in chunks:
            task(start, stop)
        return
    futures = [pool.submit(task, start, stop) for start, stop in chunks]
    try:
        for future in futures:
            future.result()
    finally:  # After an error or Ctrl-C, no task may continue to write to the caller's arrays.
        for future in futures:
            future.cancel()
        wait(futures)


def run_evenly(task: Callable[[int, int], object], cost: np.ndarray | int, n_threads: int) -> None:
    """Call ``task(start, stop)`` for chunks of about equal cost that cover all items. See :func:`even_boundaries`."""
    run_chunks(task, even_boundaries(cost, n_threads), n_threads)


@lru_cache(maxsize=1)
def _blas() -> list[Any]:
    """Return the BLAS libraries of this process. Cached, because finding them takes longer than limiting them."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


# Active blocks of all threads that limit BLAS to one thread, and the numbers of threads to restore after the last block.
_blas_lock = threading.RLock()
_blas_blocks: set[object] = set()
_blas_threads: list[int] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in the block.

    The BLAS calls of Coterie are small, so BLAS threads cost more than they gain, especially on a busy machine. With one
    thread the sums do not depend on the number of cores. Blocks of several threads may overlap, and an interrupt at any time
    restores the numbers of threads. threadpoolctl guarantees neither.
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
        _release_blas_block(block)


def _release_blas_block(block: object) -> None:
    """Restore the threads of BLAS after the last block. An interrupt is raised after that."""
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
    """Return the boundaries of chunks of about equal cost.

    ``cost`` is either a number of equally expensive items, or the cumulative cost of the items with a leading zero (such as
    the ``indptr`` of a CSC matrix).
    """
    return boundaries(cost, 1 if n_threads == 1 else 4 * n_threads)


def boundaries(cost: np.ndarray | int, n_chunks: int) -> np.ndarray:
    """Return the boundaries of at most ``n_chunks`` chunks of about equal cost. See :func:`even_boundaries`."""
    if isinstance(cost, (int, np.integer)):
        return np.unique(np.linspace(0, int(cost), n_chunks + 1).astype(np.int64))
    # Each item costs one additional unit, because empty columns are not free.
    n_items = len(cost) - 1
    cuts = np.linspace(0, float(cost[-1]) + n_items, n_chunks + 1)[1:-1]
    inner = [_first_at_least(cost, cut) for cut in cuts]
    return np.unique(np.array([0, *inner, n_items], dtype=np.int64))


def _first_at_least(cumulative: np.ndarray, cut: float) -> int:
    """Return the smallest i with cumulative[i] + i >= cut. Reads few entries, because the array may be a memory map."""
    return bisect_left(range(len(cumulative) - 1), cut, key=lambda i: float(cumulative[i]) + i)


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view of an array for a kernel.

    All inputs of kernels are passed through this function, so that writable arrays, memory maps and read-only buffers share
    one compiled version. Booleans are viewed as bytes.
    """
    view = np.asarray(array).view()
    if not view.flags.aligned:  # Arrays from messages can be unaligned, and are summed in another order.
        view = view.copy(order="K")
    if view.dtype == np.bool_:
        view = view.view(np.uint8)
    view.flags.writeable = False
    return view
