"""``--dask`` on the command line."""

import json

import numpy as np
import pytest

from coterie.cli.app import app
from coterie.data import write_store
from tests.golden.record import words

pytest.importorskip("distributed", reason="dask.distributed is not installed")


@pytest.fixture
def store(tmp_path):
    X, y = words(n=150, m=300)
    return write_store(tmp_path / "words.store", X, y=y)


def run(*words):
    with pytest.raises(SystemExit) as ended:
        app([str(word) for word in words], standalone_mode=True)
    return ended.value.code


OPTIONS = ("--n-features-to-select", "3", "--fast", "--json")


def test_discover_on_a_cluster(store, cluster, tmp_path, capsys):
    found = []
    for name, more in (("here", ()), ("there", ("--dask", cluster.scheduler_address))):
        assert run("discover", store, "-o", tmp_path / name, *OPTIONS, *more) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0]["groups"] == found[1]["groups"]
    from coterie.persistence import load

    here, there = (load(tmp_path / name / "model.coterie") for name in ("here", "there"))
    np.testing.assert_array_equal(here.scores_, there.scores_)
    np.testing.assert_array_equal(here.support_coef_, there.support_coef_)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("rank", "--method", "fisher", "--top", "4"), marks=pytest.mark.slow),
        ("rank", "--method", "grm", "--top", "4"),
        pytest.param(
            ("rank", "--method", "daf", "--top", "4", "--set", "n_probes=50", "--set", "random_state=0"),
            marks=pytest.mark.slow,
        ),
        ("profile", "--bins", "4"),
    ],
    ids=lambda words: "-".join(words[:3]),
)
def test_other_commands_on_a_cluster(words, store, cluster, tmp_path, capsys):
    found = []
    for name, more in (("here.csv", ()), ("there.csv", ("--dask", cluster.scheduler_address))):
        command, *options = words
        table = ("-o" if command == "rank" else "--csv", tmp_path / name)
        assert run(command, store, *options, *more, *table, "--json") == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    assert (tmp_path / "here.csv").read_text() == (tmp_path / "there.csv").read_text()


def test_errors_of_one_line(store, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("coterie.cli.data._TIMEOUT", 0.5)
    assert run("discover", store, "-o", tmp_path / "out", "--dask", "tcp://127.0.0.1:1", *OPTIONS) == 2
    assert (
        "coterie: --dask tcp://127.0.0.1:1: no scheduler with at least one worker could be reached" in capsys.readouterr().err
    )
    assert not (tmp_path / "out").exists()
    (tmp_path / "a.csv").write_text("y,a,b\n1,2,3\n0,3,1\n1,2,2\n0,1,1\n")
    assert run("discover", tmp_path / "a.csv", "-l", "y", "-o", tmp_path / "out", "--dask", "local", *OPTIONS) == 2
    assert "a cluster requires a store. Create one with: coterie convert" in capsys.readouterr().err
    assert run("rank", store, "--method", "mcfs", "--dask", "local") == 2
    assert "--method mcfs cannot run on a cluster because it needs all features together" in capsys.readouterr().err
