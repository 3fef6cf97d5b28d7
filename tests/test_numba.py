"""Threads, forks and worker processes: kernels must run everywhere with equal results."""

import contextlib
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController, threadpool_limits

from coterie import GroupDiscoveryClassifier, _numba
from coterie._numba import even_boundaries, one_blas_thread, read_only, run_chunks, thread_count
from tests.conftest import grouped_matrix


def fit_supports(seed, n_jobs=2):
    X, y = grouped_matrix(np.random.default_rng(seed), n_features=30, noise=1.0)
    return GroupDiscoveryClassifier(4, n_features_per_round=2, n_jobs=n_jobs).fit(X, y).support_features_.tolist()


def test_thread_count(monkeypatch):
    for name in ("COTERIE_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    everything = thread_count(-1)
    assert thread_count() == everything >= 1
    assert thread_count(3) == 3
    assert thread_count(-2) == max(1, everything - 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert thread_count() == 1
    assert thread_count(3) == 3  # An explicit number is not limited by the environment.
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert thread_count() == everything
    with pytest.raises(ValueError, match="n_jobs=0"):
        thread_count(0)
    assert thread_count(10**30) == 1024  # Chunks for more threads would not fit into memory.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(thread_count).result() == 1


def test_chunks_cover_everything_once():
    for n_threads in (1, 2, 5):
        seen = np.zeros(103, dtype=int)
        run_chunks(
            lambda a, b, seen=seen: seen.__setitem__(slice(a, b), seen[a:b] + 1), even_boundaries(103, n_threads), n_threads
        )
        assert (seen == 1).all()
    assert even_boundaries(0, 2).tolist() == [0]
    run_chunks(lambda a, b: pytest.fail("nothing to do"), even_boundaries(0, 2), 2)


def test_boundaries_balance_cost(rng):
    counts = rng.zipf(1.5, 1000).clip(max=10**4)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    bounds = even_boundaries(indptr, 2)
    assert bounds[0] == 0
    assert bounds[-1] == 1000
    cost = np.diff(indptr[bounds] + bounds)
    assert cost.max() <= (indptr[-1] + 1000) / 8 + counts.max() + 1


class Counted:
    """An array that counts the entries that are read."""

    def __init__(self, array):
        self.array, self.n_reads = array, 0

    def __len__(self):
        return len(self.array)

    def __getitem__(self, place):
        self.n_reads += 1
        return self.array[place]


def test_boundaries_are_found_without_reading_everything(rng):
    for counts in (rng.integers(0, 9, 100_000), np.zeros(1000, dtype=int), np.array([10**6, 0, 0, 1])):
        indptr = Counted(np.concatenate([[0], np.cumsum(counts)]))
        bounds = even_boundaries(indptr, 2)
        cost = indptr.array + np.arange(len(indptr))
        cuts = np.linspace(0, cost[-1], 9)[1:-1]
        assert bounds.tolist() == sorted({0, *(int(np.argmax(cost >= cut)) for cut in cuts), len(counts)})
        assert indptr.n_reads <= 1 + 7 * len(counts).bit_length()


def test_errors_are_raised_after_all_tasks_ended():
    running = threading.Event()

    def task(start, stop):
        if start == 0:
            raise RuntimeError("chunk 0")
        running.set()

    with pytest.raises(RuntimeError, match="chunk 0"):
        run_chunks(task, [0, 1, 2, 3], 2)


def test_read_only_views():
    X = np.ones((2, 2), dtype=bool)
    view = read_only(X)
    assert view.dtype == np.uint8
    assert not view.flags.writeable
    assert X.flags.writeable
    assert np.shares_memory(view, X)


def test_from_many_threads_at_once():
    expected = [fit_supports(seed, n_jobs=1) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(fit_supports, range(6))) == expected


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_in_workers(backend):
    expected = [fit_supports(seed, n_jobs=1) for seed in range(3)]
    assert Parallel(n_jobs=2, backend=backend)(delayed(fit_supports)(seed) for seed in range(3)) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork():
    """A forked child must be able to use its own threads after the parent has used its threads."""
    script = (
        "import multiprocessing as mp, sys\n"
        "from tests.test_numba import fit_supports\n"
        "if __name__ == '__main__':\n"
        "    expected = fit_supports(0)\n"
        "    with mp.get_context('fork').Pool(2) as pool:\n"
        "        assert pool.map(fit_supports, [0] * 4) == [expected] * 4\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr


def test_children_use_one_thread():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(thread_count) == 1


def test_without_a_writable_cache_folder(tmp_path):
    """A read-only installation without a writable home still works, but compiles every time."""
    script = (
        "import numba.core.caching as caching\n"
        "caching.CacheImpl._locator_classes = []\n"
        "from coterie._numba import kernel\n"
        "@kernel()\n"
        "def twice(x):\n    return 2 * x\n"
        "assert twice(21) == 42\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr


def test_import_is_light():
    """``import coterie`` must not import numba or scikit-learn, which are imported on first use."""
    script = (
        "import sys, coterie; assert not {'numba', 'sklearn', 'scipy'} & set(sys.modules); coterie.GroupDiscoveryClassifier"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr


def test_a_task_may_use_the_threads_itself():
    done = []
    run_chunks(lambda start, _: run_chunks(lambda a, b: done.append((start, a, b)), range(4), 2), range(6), 2)
    assert sorted(done) == [(start, a, a + 1) for start in range(5) for a in range(3)]


@pytest.mark.parametrize("allowed", [0, 1, 2, 3, 5])
def test_fewer_threads_than_requested(allowed, monkeypatch):
    """Under RLIMIT_NPROC, all chunks run once, on the threads that can be started or on the calling thread."""
    start, running = threading.Thread.start, []

    def limited(thread):
        if sum(other.is_alive() for other in running) >= allowed:
            raise RuntimeError("can't start new thread")
        start(thread)
        running.append(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    monkeypatch.setattr(_numba, "_pools", {})
    seen, workers = np.zeros(103, dtype=int), set()

    def task(a, b):
        seen[a:b] += 1
        workers.add(threading.current_thread().name)

    for _ in range(2):
        run_chunks(task, even_boundaries(103, 4), 4)
    assert (seen == 2).all()
    assert (workers == {threading.current_thread().name}) == (allowed < 2)
    assert sum(thread.is_alive() for thread in running) == (min(allowed, 4) if allowed > 1 else 0)


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_NPROC")
def test_a_fit_where_no_thread_can_be_started():
    script = (
        "import resource\n"
        "from tests.test_numba import fit_supports\n"
        "expected = fit_supports(0, n_jobs=1)\n"
        "import os\n"
        "if os.getuid() == 0: os.setuid(65534)\n"  # The limit does not apply to root.
        "resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))\n"
        "assert fit_supports(0, n_jobs=3) == expected\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr


def blas_threads():
    return [library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers]


def test_overlapping_blocks_of_threads_leave_blas_as_it_was():
    """Two blocks overlap and end in the order in which they started."""
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        entered, left = threading.Event(), threading.Event()

        def first():
            with one_blas_thread():
                entered.set()
                left.wait(10)

        thread = threading.Thread(target=first)
        thread.start()
        entered.wait(10)
        with one_blas_thread():
            left.set()
            thread.join()
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
        with one_blas_thread(), one_blas_thread():
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


@pytest.mark.parametrize("moment", range(8))
def test_an_interrupt_leaves_blas_as_it_was(moment, monkeypatch):
    """Ctrl-C while the number of threads is set or restored."""
    calls = []

    class Library:
        num_threads = 4

        def set_num_threads(self, n_threads):
            calls.append(n_threads)
            if len(calls) == moment + 1:
                raise KeyboardInterrupt
            self.num_threads = n_threads

    libraries = [Library(), Library()]
    monkeypatch.setattr(_numba, "_blas", lambda: libraries)
    with contextlib.suppress(KeyboardInterrupt), one_blas_thread():
        pass
    assert [library.num_threads for library in libraries] == [4, 4]
    assert not _numba._blas_blocks
