"""Ctrl-C, SIGTERM and SIGKILL: every file that exists is complete."""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from coterie import load
from coterie.interruption import Terminated, stop_requested, stopping_gracefully, terminating_cleanly
from coterie.report import read_result
from tests.cli.conftest import listen_to_signals
from tests.cli.process_starter import ProcessStarter


@pytest.fixture
def slow_data(tmp_path):
    """Enough rounds to be interrupted: 120 of them, one feature each."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 600))
    dump_svmlight_file(X, np.sign(X[:, :40].sum(axis=1)).astype(int), str(tmp_path / "data.svm"), zero_based=False)
    return tmp_path


def start(folder, *words):
    command = [sys.executable, "-u", "-m", "coterie", "discover", "--fast", "data.svm", "-o", "out", *words]
    return subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=listen_to_signals
    )


def wait_for_rounds(process, count):
    """Read the progress until some rounds are done."""
    seen = 0
    while seen < count:
        line = process.stderr.readline()
        assert line, "ended too early"
        seen += "support features" in line


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_the_rounds_that_are_done(slow_data, number, code):
    process = start(slow_data, "--n-features-to-select", "400", "--n-features-per-round", "1", "--json")
    wait_for_rounds(process, 3)
    process.send_signal(number)
    printed, errors = process.communicate(timeout=300)
    assert process.returncode == code
    assert "Stopping after this round" in errors
    content = read_result(slow_data / "out")
    assert content["interrupted"]
    assert json.loads(printed)["groups"] == content["groups"]
    assert 3 <= content["summary"]["groups"] < 400
    assert content["summary"]["groups"] == len(load(slow_data / "out" / "model.coterie").groups_)
    assert sorted(path.name for path in slow_data.iterdir()) == ["data.svm", "out"]


def test_before_the_first_round_nothing_is_written(tmp_path):
    piece = gzip.compress(b"1 1:1\n-1 2:1\n" * 1_000_000, 1)
    (tmp_path / "data.svm").write_bytes(piece * 100)  # a file that takes long to read
    process = start(tmp_path, "--format", "libsvm")
    time.sleep(1.0)
    while process.poll() is None:  # the first ones may come before Python is ready for them
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
    _, errors = process.communicate()
    assert process.returncode in (143, -signal.SIGTERM)
    assert "Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["data.svm"]


def kill_at_random(folder, times, seed):
    """Kill a discovery at random moments: a result that is there is whole.

    Returns how often one was there, and how often the kill came in the middle of the writing.
    """
    moments = random.Random(seed)
    command = (
        "discover",
        "--fast",
        "data.svm",
        "-o",
        "out",
        "--n-features-to-select",
        "20",
        "--n-jobs",
        "1",
        "--overwrite",
        "--quiet",
    )
    results = halfway = 0
    with ProcessStarter(folder) as starter:
        assert starter.run(*command)[0] == 0
        code, whole = starter.run(*command)
        assert code == 0
        expected, model = read_result(folder / "out")["groups"], load(folder / "out" / "model.coterie")
        for attempt in range(times):
            fresh = attempt % 2 == 0  # in turn: where nothing is, and where an old result is
            if fresh:
                shutil.rmtree(folder / "out")
            process = starter.started(*command)
            # Most kills near the end, where the writing is.
            time.sleep(whole * moments.choice([1.2 * moments.random(), 0.6 + 0.5 * moments.random()]))
            os.kill(process, signal.SIGKILL)
            starter.ended()
            halfway += any(path.name.endswith(".partial") for path in folder.iterdir())
            assert fresh or (folder / "out").is_dir()  # the old one or the new one, never none
            if (folder / "out").exists():
                results += 1
                assert read_result(folder / "out")["groups"] == expected
                again = load(folder / "out" / "model.coterie")
                assert again.groups_ == model.groups_
                assert np.array_equal(again.support_coef_, model.support_coef_)
                files = {path.name for path in (folder / "out").iterdir()}
                assert files == {"classes.csv", "groups.csv", "methods.txt", "model.coterie", "report.html", "result.json"}
            else:
                assert starter.run(*command)[0] == 0  # files left by the killed command do not matter
        assert starter.run(*command)[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["data.svm", "out"]
    return results, halfway


def small(folder):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 200))
    dump_svmlight_file(X, np.sign(X[:, :4].sum(axis=1)).astype(int), str(folder / "data.svm"), zero_based=False)
    return folder


def test_kill_leaves_whole_results_only(tmp_path):
    assert kill_at_random(small(tmp_path), 8, seed=1)[0] >= 4


@pytest.mark.slow
def test_kill_a_hundred_times(tmp_path):
    results, halfway = kill_at_random(small(tmp_path), 100, seed=2)
    print(f"{results} results after 100 kills, {halfway} of which came in the middle of the writing")
    assert results >= 50
    assert halfway > 0


def test_the_second_signal_stops_at_once(listening):
    notes = []
    with stopping_gracefully(notes.append) as request:
        assert not stop_requested()
        signal.raise_signal(signal.SIGINT)
        assert request.signal == signal.SIGINT
        assert stop_requested()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
    assert len(notes) == 1
    assert not stop_requested()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ignored_signals_stay_ignored(listening):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stopping_gracefully(print) as request:
        signal.raise_signal(signal.SIGINT)
        assert request.signal is None
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_sigterm_becomes_an_exception_only_inside():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Terminated), terminating_cleanly():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m coterie discover --help | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
