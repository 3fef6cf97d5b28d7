"""Commands run in this process, and small files for them."""

import inspect
import json
import signal

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from coterie.cli.app import app
from tests.conftest import grouped_matrix


def runner():
    """A runner that keeps the standard error apart, which click before 8.2 does on demand."""
    apart = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
    return CliRunner(**apart)


class Shell:
    """Runs commands in a folder of their own."""

    def __init__(self, folder, monkeypatch):
        monkeypatch.chdir(folder)
        self.folder = folder

    def __call__(self, *words, code=0):
        result = runner().invoke(app, [str(word) for word in words])
        assert result.exit_code == code, result.output + result.stderr
        return result

    def json(self, *words):
        return json.loads(self(*words, "--json", "--quiet").stdout)

    def error(self, *words):
        """The one line of an error."""
        result = self(*words, "--quiet", code=2)
        lines = result.stderr.strip().splitlines()
        assert len(lines) == 1, result.stderr
        assert lines[0].startswith("coterie: ")
        assert result.stdout == ""
        return lines[0]


@pytest.fixture
def shell(tmp_path, monkeypatch):
    return Shell(tmp_path, monkeypatch)


@pytest.fixture
def svm(tmp_path):
    """60 samples, 40 features in bunches, two classes."""
    X, y = grouped_matrix(np.random.default_rng(0))
    dump_svmlight_file(X, y.astype(int), str(tmp_path / "data.svm"), zero_based=False)
    return tmp_path / "data.svm"


def listen_to_signals():
    """Even where the tests themselves run in the background, with SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def listening():
    before = signal.getsignal(signal.SIGINT)
    listen_to_signals()
    yield
    signal.signal(signal.SIGINT, before)
