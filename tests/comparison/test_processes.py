"""Processes that hang, end, use too much memory or outlive the comparison."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import psutil
import pytest

import coterie
from coterie.comparison import run
from coterie.comparison.process import group_memory, own_memory
from tests.cli.conftest import listen_to_signals
from tests.comparison.conftest import Inline
from tests.comparison.misbehaving import Exits, Hangs, HangsOnFewSamples, KillsItself, Selector, UsesTooMuchMemory
from tests.conftest import grouped_matrix

X, y = grouped_matrix(np.random.default_rng(3), n_samples=80, n_features=12)
SPLIT = [(np.arange(50), np.arange(50, 80))]


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_ended(pids, seconds=20):
    deadline = time.monotonic() + seconds
    while any(is_running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [pid for pid in pids if is_running(pid)]


@pytest.fixture(scope="module")
def comparison_with_failures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("misbehaved")
    methods = {
        "good": Selector(),
        "hangs": Hangs(at=(3,), pid_file=str(folder / "pids")),
        "eats": UsesTooMuchMemory(),
        "killed": KillsItself(),
        "exits": Exits(),
        "fisher": "fisher",
    }
    limits = {"time_limit": 15.0, "memory_limit": "500MB"}  # allocation takes seconds on a busy machine
    comparison = coterie.compare(methods, X, y, n_features=[2, 3], cv=SPLIT, n_jobs=2, results=folder / "out", **limits)
    return comparison, folder, methods, limits


def test_each_failure_is_a_row(comparison_with_failures):
    table = comparison_with_failures[0].table.set_index(["method", "n_features"])
    assert table.status.to_dict() == {
        ("good", 2): "ok",
        ("good", 3): "ok",
        ("hangs", 2): "ok",  # rows finished before are kept
        ("hangs", 3): "timed out",
        ("eats", 2): "out of memory",
        ("eats", 3): "out of memory",
        ("killed", 2): "failed",
        ("killed", 3): "failed",
        ("exits", 2): "failed",
        ("exits", 3): "failed",
        ("fisher", 2): "ok",
        ("fisher", 3): "ok",
    }
    assert table.message["hangs", 3] == "over 15 s for a fold"
    assert "over the limit of 524 MB" in table.message["eats", 2]
    assert "SIGKILL" in table.message["killed", 2]
    assert table.message["exits", 2] == "its process ended with code 7: goodbye"


@pytest.mark.skipif(sys.platform != "linux", reason="requires /proc")
def test_child_processes_of_a_method_end_with_it(comparison_with_failures):
    pids = [int(pid) for pid in (comparison_with_failures[1] / "pids").read_text().split()]
    assert len(pids) == 2
    assert wait_until_ended(pids) == []


def test_finished_rows_are_not_run_again(comparison_with_failures, monkeypatch):
    comparison, folder, methods, limits = comparison_with_failures
    monkeypatch.setattr("coterie.comparison.run.Schedule.run", lambda *_: None)  # rows can only come from the journal
    again = coterie.compare(methods, X, y, n_features=[2, 3], cv=SPLIT, results=folder / "out", **limits)
    assert again.table.equals(comparison.table)
    more = coterie.compare(methods, X, y, n_features=[2, 3], cv=SPLIT, results=folder / "out", time_limit=60)
    lost = {("hangs", 3), ("eats", 2), ("eats", 3)}  # run again with other limits
    assert {(row.method, row.n_features) for row in comparison.rows} - {(r.method, r.n_features) for r in more.rows} == lost


def test_a_new_process_takes_the_next_fold():
    folds = [(np.arange(30), np.arange(50, 80)), (np.arange(50), np.arange(50, 80))]
    comparison = coterie.compare({"m": HangsOnFewSamples()}, X, y, n_features=2, cv=folds, time_limit=5.0)
    assert comparison.table.status.tolist() == ["timed out", "ok"]


def test_the_result_does_not_depend_on_the_number_of_processes(monkeypatch):
    options = {"n_features": [2, 5], "cv": 2}
    two = coterie.compare(["mrmr"], X, y, n_jobs=2, **options)  # one process per fold
    monkeypatch.setattr(run, "Schedule", Inline)
    one = coterie.compare(["mrmr"], X, y, **options)
    assert one.table.drop(columns="fit_seconds").equals(two.table.drop(columns="fit_seconds"))
    assert set(one.table.status) == {"ok"}
    assert all(np.array_equal(one.selections[key], two.selections[key]) for key in one.selections)


SCRIPT = """
    import sys
    import numpy as np
    import coterie
    from tests.comparison.misbehaving import Hangs, Selector
    from tests.comparison.test_processes import SPLIT, X, y

    class Mine(Selector):  # in a script without an "if __name__" guard
        pass

    methods = {"mine": Mine(), "hangs": Hangs(pid_file=sys.argv[1] + "/pids")}
    comparison = coterie.compare(methods, X, y, n_features=[2, 3], cv=SPLIT, results=sys.argv[1] + "/out", verbose=1)
    print(comparison)
"""


def started(folder):
    """Start a script that has finished one method and hangs in the next."""
    (folder / "script.py").write_text(textwrap.dedent(SCRIPT))
    script = subprocess.Popen(
        [sys.executable, "-c", "import runpy, sys; sys.path.insert(0, '.'); runpy.run_path(sys.argv[2], run_name='__main__')",
         str(folder), str(folder / "script.py")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listen_to_signals,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (folder / "pids").exists() or len((folder / "pids").read_text().split()) < 2:
        assert time.monotonic() < deadline
        assert script.poll() is None, script.communicate()
        time.sleep(0.05)
    return script, [int(pid) for pid in (folder / "pids").read_text().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="requires /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_signal_keeps_finished_rows_and_leaves_no_process(tmp_path, number):
    script, pids = started(tmp_path)
    script.send_signal(number)
    printed, errors = script.communicate(timeout=60)
    left = wait_until_ended(pids[:1])
    for pid in pids[1:]:  # the method's own child process is unknown if the parent is killed
        if number == signal.SIGKILL and is_running(pid):
            os.kill(pid, signal.SIGKILL)
    assert left == []
    assert wait_until_ended(pids) == []
    rows = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text().splitlines()]
    assert [(row["method"], row["n_features"], row["status"]) for row in rows] == [("mine", 2, "ok"), ("mine", 3, "ok")]
    if number == signal.SIGINT:
        assert script.returncode == 0, errors
        assert "(interrupted)" in printed
        assert "[compare] 2/4 rows, mine, 3 features, fold 0" in errors


def test_ctrl_c_before_the_first_row_is_passed_on(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("coterie.comparison.run.Schedule.run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        coterie.compare("fisher", X, y, n_features=2)


@pytest.fixture
def parent_and_child():
    """Start a process with a child, each with 100 MB of private memory and a mapped file of 150 MB."""
    code = (
        "import mmap, tempfile; own = bytearray(100_000_000); file = tempfile.TemporaryFile(); file.truncate(150_000_000); "
        "mapped = mmap.mmap(file.fileno(), 0); mapped[::4096] = bytes(len(mapped[::4096])); "
    )
    start_child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code + 'print(1, flush=True); input()'!r}])"
    process = subprocess.Popen(
        [sys.executable, "-c", code + start_child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdout.readline() == b"1\n"
        yield process
    finally:
        process.communicate(b"\n")


@pytest.mark.skipif(sys.platform != "linux", reason="mapped files are counted on other systems")
def test_memory_of_a_process_and_its_children(parent_and_child, monkeypatch):
    pid = parent_and_child.pid
    assert psutil.Process(pid).memory_info().rss > 250e6  # including the file
    assert 100e6 < own_memory(pid) < 180e6
    assert 200e6 < group_memory(pid) < 360e6
    monkeypatch.delattr(os, "getpgid")  # as on systems without process groups
    assert 200e6 < group_memory(pid) < 360e6


def test_memory_of_ended_process(monkeypatch):
    ended = subprocess.Popen([sys.executable, "-c", "pass"], start_new_session=True)
    ended.wait()
    monkeypatch.setattr(psutil, "pids", lambda: [ended.pid, os.getpid()])
    assert own_memory(ended.pid) == 0
    assert group_memory(ended.pid) == 0
    assert group_memory(os.getpgid(0)) > 0
    monkeypatch.delattr(os, "getpgid")
    assert group_memory(ended.pid) == 0
