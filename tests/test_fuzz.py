"""The small form of what ``tests/fuzz`` does at length: kills at some steps of each command, and a few writers at once."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent / "fuzz"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks children that kill themselves")


@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_killed_commands(times):
    words = ["--times", str(times), "--seed", "1", "--random-share", "0", "--inline"]
    done = subprocess.run([sys.executable, FUZZ / "kill.py", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for command in ("convert", "discover", "compare", "rank"):
        assert f"{times} kills of {command}" in done.stdout
    assert done.stdout.count(f"'killed at a step': {times}") == 4


@pytest.fixture(scope="module")
def writers():
    spec = importlib.util.spec_from_file_location("writers", FUZZ / "writers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "apart",
    [
        pytest.param(False, marks=pytest.mark.slow, id="one name space"),
        pytest.param(True, id="PID name spaces"),  # the harder case: processes do not see each other
    ],
)
def test_writers_at_the_same_time(writers, apart):
    if apart and not writers.can_unshare():
        pytest.skip("this system does not permit PID name spaces")
    counts = writers.race("convert", 3, overwrite=False, apart=apart)
    assert counts["wrote"] == 1
    assert counts["told that another writes"] + counts["told that it exists"] == 2
