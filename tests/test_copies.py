"""Parts of some work in copies of this process: the same results, whatever becomes of the copies."""

import os
import resource
import signal
import threading
import time

import numpy as np
import psutil
import pytest

from coterie import _copies
from coterie._copies import can_copy, in_copies
from coterie._numba import run_chunks

pytestmark = pytest.mark.skipif(not can_copy(), reason="forks are not safe on this system")


@pytest.fixture(autouse=True)
def no_copy_is_left():
    """No process is left behind, running or dead; other tests may have children of their own."""
    before = {child.pid for child in psutil.Process().children()}
    yield
    assert {child.pid for child in psutil.Process().children()} <= before


def test_every_part_is_done_once_by_a_process_of_its_own():
    results = in_copies([lambda beat, k=k: (k, os.getpid(), beat(False)) for k in range(4)])
    assert [k for k, _, _ in results] == [0, 1, 2, 3]
    processes = [pid for _, pid, _ in results]
    assert processes[0] == os.getpid()
    assert len(set(processes)) == 4


def test_what_everybody_has_is_not_sent():
    data = np.zeros(10)
    (first, second) = in_copies([lambda _: [data, "a"], lambda _: [data, "b"]], [data])
    assert first[0] is data
    assert second[0] is data
    assert second[1] == "b"


@pytest.mark.parametrize("end", [lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: os._exit(3), lambda: 1 / 0])
def test_what_a_lost_copy_should_have_done_is_done_here(end):
    here = os.getpid()

    def part(_):
        if os.getpid() != here:
            end()
        return "done"

    assert in_copies([part, part]) == ["done", "done"]


def test_an_error_in_a_copy_is_raised_here():
    def fails(_):
        raise ValueError("one clear error")

    with pytest.raises(ValueError, match="one clear error"):
        in_copies([lambda _: 1, fails])


def test_a_copy_that_stands_still_is_given_up(monkeypatch):
    monkeypatch.setattr(_copies, "_PATIENCE", 0.2)
    monkeypatch.setattr(_copies, "_LOOK", 0.05)
    here = os.getpid()

    def part(_):
        while os.getpid() != here:
            time.sleep(0.01)
        return "done"

    assert in_copies([lambda _: "mine", part]) == ["mine", "done"]


def test_a_copy_that_gives_signs_of_life_is_waited_for(monkeypatch):
    monkeypatch.setattr(_copies, "_PATIENCE", 0.3)
    monkeypatch.setattr(_copies, "_LOOK", 0.05)

    def slow(beat):
        for _ in range(30):
            time.sleep(0.03)
            beat(False)
        return os.getpid()

    assert in_copies([lambda _: 0, slow])[1] != os.getpid()


def test_whoever_wants_to_stop_stops_all():
    def until_told(beat):
        for k in range(10_000):
            if beat(False):
                return k
            time.sleep(0.001)
        return None

    assert in_copies([lambda beat: beat(True), until_told])[1] is not None


def test_no_copy_outlives_an_interruption():
    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_copies([interrupted, lambda _: time.sleep(60)])


def test_no_copy_outlives_its_parent():
    """A copy whose parent is gone ends by itself at its next sign of life."""
    read, write = os.pipe()

    def orphan(beat):
        os.write(write, b"%d\n" % os.getpid())
        while True:
            beat(False)
            time.sleep(0.01)

    def dies(_):
        os.read(read, 100)  # the copy has begun
        os._exit(0)

    parent = os.fork()
    if not parent:
        try:
            in_copies([dies, orphan])
        finally:
            os._exit(1)
    assert os.waitpid(parent, 0)[1] == 0
    os.close(write)
    assert os.read(read, 100) == b""  # the end of the file: nobody is left who could write
    os.close(read)


def test_a_large_answer_comes_whole():
    large = in_copies([lambda _: None, lambda _: np.arange(3_000_000)])[1]
    np.testing.assert_array_equal(large, np.arange(3_000_000))


def test_from_a_thread_beside_others():
    """Whoever forks is alone in the copy; what others hold at that moment is not needed."""
    stop = threading.Event()
    busy = [threading.Thread(target=lambda: [np.ones(1000).sum() for _ in iter(stop.is_set, True)]) for _ in range(2)]
    results = []
    caller = threading.Thread(target=lambda: results.extend(in_copies([lambda _, k=k: k for k in range(3)])))
    for thread in [*busy, caller]:
        thread.start()
    caller.join(30)
    stop.set()
    for thread in busy:
        thread.join()
    assert results == [0, 1, 2]


def test_descriptors_beyond_a_thousand():
    """More open files than ``select`` can tell apart."""
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < 1200:
        pytest.skip("this system does not allow so many open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit, 1200), most))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1050)]
    try:
        assert in_copies([lambda _: 1, lambda _: 2]) == [1, 2]
    finally:
        for number in files:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))


def test_no_room_for_a_process(monkeypatch):
    def refuse():
        raise BlockingIOError("too many")

    monkeypatch.setattr(os, "fork", refuse)
    assert in_copies([lambda _: 1, lambda _: 2]) == [1, 2]


def test_threads_are_shared_out():
    """No process takes more threads than its share, however many a function asks for."""

    def names(_):
        found = set()
        run_chunks(lambda a, b: (time.sleep(0.01), found.add(threading.current_thread().name)), range(9), 4)
        return len(found)

    assert in_copies([names, names], n_threads=1) == [1, 1]
    assert names(None) > 1
