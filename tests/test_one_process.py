"""Validated fits and confidences run in one process, without changing signals, threads or descriptors of the caller."""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import psutil
import pytest

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, group_confidence
from tests.conftest import grouped_matrix
from tests.fuzz import interrupt


def in_new_process(code, seconds=120):
    """Run code in a new process, which must succeed within the time limit."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False, timeout=seconds
    )
    assert result.returncode == 0, result.stderr


WORK = """
import numpy as np
from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, group_confidence
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 80))
y = X[:, 0] + X[:, 1] > 0

def work():
    GroupDiscoveryClassifierCV(4, Cs=2, cv=3, nested=True, random_state=0, n_jobs=2).fit(X, y)
    model = GroupDiscoveryClassifier(3, n_jobs=2).fit(X, y)
    return group_confidence(model, X, y, n_pairs=3, n_permutations=1, random_state=0, n_jobs=2)
"""


def test_no_process_is_started(rng, monkeypatch):
    def refuse(*_):
        raise AssertionError("a process was started")

    X, y = grouped_matrix(rng)
    for name in ("fork", "posix_spawn"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    model = GroupDiscoveryClassifierCV(5, Cs=2, cv=3, nested=True, random_state=0, n_jobs=2).fit(X, y)
    group_confidence(model, X, y, n_pairs=4, n_permutations=1, random_state=0, n_jobs=2)


def test_first_fits_in_threads_do_not_wait_for_each_other():
    """The first fits of a process compile, possibly in several threads and an event loop at the same time."""
    in_new_process(
        WORK
        + """
import asyncio, threading
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]

async def main():
    await asyncio.gather(*(asyncio.to_thread(work) for _ in range(2)))

asyncio.run(main())
[thread.join() for thread in threads]
"""
    )


@pytest.mark.parametrize("handler", ["signal.SIG_IGN", "lambda *_: None"])
def test_any_sigchld_handler(handler):
    in_new_process(WORK + f"\nimport signal\nsignal.signal(signal.SIGCHLD, {handler})\nwork()")


def test_no_descriptor_is_left_open(rng):
    X, y = grouped_matrix(rng)
    model = GroupDiscoveryClassifier(3).fit(X, y)
    group_confidence(model, X, y, n_pairs=2, n_permutations=0, n_jobs=2)
    before = psutil.Process().num_fds()
    for _ in range(3):
        GroupDiscoveryClassifierCV(4, Cs=2, cv=3, n_jobs=2).fit(X, y)
        group_confidence(model, X, y, n_pairs=2, n_permutations=0, n_jobs=2)
    assert psutil.Process().num_fds() <= before


def test_threads_and_main_thread_have_equal_results(rng):
    X, y = grouped_matrix(rng)
    expected = GroupDiscoveryClassifierCV(5, Cs=2, cv=3, random_state=0).fit(X, y)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(GroupDiscoveryClassifierCV(5, Cs=2, cv=3, random_state=0).fit(X, y)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    for model in found:
        np.testing.assert_array_equal(model.coef_, expected.coef_)


@pytest.mark.parametrize("times", [2, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", ["main", "thread", "asyncio"])
def test_interrupts_stop_the_work(mode, times):
    """A few of the interrupts of ``python -m tests.fuzz.interrupt``."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.interrupt", "--times", str(times), "--seed", "3", "--modes", mode],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{times} passed, 0 failed" in result.stdout
    assert mode in interrupt.MODES
