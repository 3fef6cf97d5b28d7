"""Every example runs as a user would run it, says something, and draws a picture."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.examples.conftest import EXAMPLES

# What each example says on the real data.
SAYS = {
    "digits": r"mnist_3v8, 3 or 8: test accuracy 9\d\.\d\d%",
    "faces": r"100 groups +7\d\d +6\d",
    "single_cells": r"CD79A \(marks CD19\+ B\) ~ MS4A1",
    "snps": r"19 +28797962 +rs5028988",
    "text": r"cramer \(marks 18\) ~ clayton",
}


def run(script, *arguments, data=None):
    environment = {key: value for key, value in os.environ.items() if key != "COTERIE_DATA"}
    environment |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"} | ({"COTERIE_DATA": str(data)} if data else {})
    command = [sys.executable, "-W", "error::UserWarning", str(script), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def picture(folder, name):
    return (folder / f"example-{name.replace('_', '-')}.png").read_bytes()


def test_every_example_is_tested():
    scripts = {path.stem for path in EXAMPLES.glob("*.py")}
    assert scripts == {*SAYS, "_gallery", "spectral_embedded_clustering"}


@pytest.mark.slow  # one of them runs with every test, without the data
@pytest.mark.parametrize("name", SAYS)
def test_example(name, real_data, tmp_path):
    done = run(EXAMPLES / f"{name}.py", tmp_path, data=real_data)
    assert done.returncode == 0, done.stderr
    assert re.search(SAYS[name], done.stdout), done.stdout
    assert done.stderr == ""
    assert picture(tmp_path, name).startswith(b"\x89PNG")
    assert len(picture(tmp_path, name)) < 150_000  # they are shown in the docs


def test_without_the_data_folder(tmp_path):
    """The digits are then scikit-learn's; the other examples say in one line what they need."""
    folder = tmp_path / "project" / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("figures", "__pycache__"))
    done = run(folder / "digits.py")
    assert done.returncode == 0, done.stderr
    assert "load_digits, 3 or 8: test accuracy " in done.stdout
    assert picture(folder / "figures", "digits").startswith(b"\x89PNG")
    done = run(folder / "snps.py")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "requires plink_eur. Put it into a folder and set COTERIE_DATA" in done.stderr
