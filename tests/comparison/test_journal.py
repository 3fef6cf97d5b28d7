"""A stopped comparison continues; a folder with a different comparison is refused."""

import errno
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import coterie
from coterie.comparison.journal import Journal, results_folder
from coterie.comparison.process import Limits
from coterie.comparison.result import Row
from coterie.comparison.trial import selector_named
from tests.conftest import grouped_matrix

X, y = grouped_matrix(np.random.default_rng(3), n_samples=60, n_features=12)
OPTIONS = {"n_features": [2, 4], "cv": 3}


def run(folder, methods=("gdm", "fisher"), X=X, y=y, **options):
    return coterie.compare(methods, X, y, results=folder, **{**OPTIONS, **options})


@pytest.mark.parametrize("kept", [0, 1, 5, 11])
def test_resumed_equals_uninterrupted(inline, tmp_path, kept):
    whole = run(tmp_path / "whole")
    assert len(whole.rows) == 12
    run(tmp_path / "cut")
    rows = (tmp_path / "cut" / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "cut" / "rows.jsonl").write_bytes(
        b"".join(rows[:kept]) + rows[kept][: len(rows[kept]) // 2]
    )  # as after a kill
    resumed = run(tmp_path / "cut")
    assert resumed.table.drop(columns="fit_seconds").equals(whole.table.drop(columns="fit_seconds"))
    assert all(np.array_equal(resumed.selections[key], whole.selections[key]) for key in whole.selections)
    lines = (tmp_path / "cut" / "rows.jsonl").read_bytes().splitlines(keepends=True)
    assert lines[:kept] == rows[:kept]
    assert len(lines) == 12
    assert run(tmp_path / "cut").table.equals(resumed.table)  # including the times
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == ["rows.jsonl", "settings.json"]


def test_methods_and_numbers_can_be_added(inline, tmp_path):
    first = run(tmp_path / "out")
    more = run(tmp_path / "out", ["fisher", "mrmr"], n_features=[2, 4, 6])
    assert len((tmp_path / "out" / "rows.jsonl").read_text().splitlines()) == 12 + 3 + 9
    old, new = first.table, more.table
    assert (
        old[old.method == "fisher"]
        .reset_index(drop=True)
        .equals(new[(new.method == "fisher") & (new.n_features < 6)].reset_index(drop=True))
    )
    assert run(tmp_path / "out").table.equals(first.table)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": X + 1e-9}, "different data"),
        ({"y": -y}, "different data"),
        ({"cv": 2}, "different folds"),
        ({"random_state": 1}, "different folds"),
        ({"classifier": "knn"}, "different classifier"),
        ({"classifier": DecisionTreeClassifier()}, "different classifier"),
        ({"scoring": "balanced_accuracy"}, "different classifier, scoring"),
        ({"standardize": True}, "standardize or share_fits"),
        ({"share_fits": False}, "standardize or share_fits"),
        ({"methods": {"gdm": selector_named("gdm", C=2.0)}}, "different parameters of 'gdm'"),
        ({"methods": {"gdm": selector_named("fisher")}}, "different parameters of 'gdm'"),
    ],
)
def test_different_comparison_is_refused(inline, tmp_path, change, words):
    run(tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(ValueError, match=words) as caught:
        run(tmp_path / "out", **change)
    assert "Choose another folder" in str(caught.value)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_equivalent_arguments_are_accepted(inline, tmp_path):
    first = run(tmp_path / "out")
    again = run(
        tmp_path / "out", {"gdm": selector_named("gdm", C="auto"), "fisher": "fisher"}, X=np.asfortranarray(X), n_jobs=1
    )
    assert again.table.equals(first.table)


def test_digests_are_the_same_in_every_process():
    code = (
        "from sklearn.ensemble import RandomForestClassifier; from sklearn.feature_selection import RFE, SelectKBest, chi2; "
        "from coterie.comparison.trial import estimator_digest as d; "
        "print(d(RFE(RandomForestClassifier(max_features='log2'), step=0.1)), d(SelectKBest(chi2)), d(SelectKBest()))"
    )
    seeds = [subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True,
                            check=True).stdout for seed in ("1", "2")]  # fmt: skip
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0].split())) == 3


def test_unsuitable_folders_are_refused(inline, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    for place, words in (
        (tmp_path / "file", "is a file"),
        (tmp_path / "full", "thesis.tex"),
        (tmp_path / "a" / "b", "does not exist"),
    ):
        with pytest.raises(OSError, match=words):
            run(place)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "damaged"),
        ("[]", "does not have the format 'coterie comparison'"),
        (
            '{"format": "coterie comparison", "version": 9}',
            r"format version 9, but this version of Coterie reads version 1\. Update Coterie",
        ),
    ],
)
def test_damaged_settings(inline, tmp_path, content, words):
    run(tmp_path / "out")
    (tmp_path / "out" / "settings.json").write_text(content)
    with pytest.raises(ValueError, match=words):
        run(tmp_path / "out")


def test_damaged_rows(inline, tmp_path):
    run(tmp_path / "out")
    path = tmp_path / "out" / "rows.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[1].replace('"fold"', '"fald"'), *lines[2:]]))
    with pytest.raises(ValueError, match=r"rows.jsonl, line 2, is damaged \('fold'\)"):
        run(tmp_path / "out")
    path.write_text("".join([lines[0], *lines[2:]]))
    assert len(run(tmp_path / "out").rows) == 12


def test_second_writer_is_refused(inline, tmp_path):
    run(tmp_path / "out")
    with results_folder(tmp_path / "out"), ThreadPoolExecutor(1) as pool:
        other = pool.submit(run, tmp_path / "out", X=None)  # refused before the data are looked at
        with pytest.raises(BlockingIOError, match=r"Another writer \(PID \d+ on .*\) is writing to"):
            other.result()
    run(tmp_path / "out")


def test_foreign_rows_are_never_overwritten(inline, tmp_path):
    """A folder with rows.jsonl but without settings is not a comparison."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "rows.jsonl").write_text("mine\n")
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match=r"do not belong to a comparison \(rows.jsonl\)"):
            run(tmp_path / "out", overwrite=overwrite)
    assert (tmp_path / "out" / "rows.jsonl").read_text() == "mine\n"
    assert os.listdir(tmp_path / "out") == ["rows.jsonl"]


def test_other_files_in_the_folder_stay(inline, tmp_path):
    run(tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    run(tmp_path / "out", cv=2, overwrite=True)
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_an_error_leaves_no_folder(inline, tmp_path):
    with pytest.raises(ValueError, match="n_features"):
        run(tmp_path / "out", n_features=100)
    assert os.listdir(tmp_path) == []


def test_data_copy_of_a_killed_comparison_is_removed_by_the_next(inline, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = f"""if True:
        import os, signal, tempfile
        import numpy as np
        import coterie
        from coterie.comparison import run
        tempfile.tempdir = {str(tmp_path)!r}
        run._run = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        coterie.compare(["fisher"], np.eye(20), np.arange(20) % 2, n_features=[2])
    """
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    (left,) = os.listdir(tmp_path)
    assert (tmp_path / left / "data" / "header.json").exists()
    assert (tmp_path / left).stat().st_mode & 0o777 == 0o700  # private, because its pickles are loaded
    run(None)
    assert os.listdir(tmp_path) == []


def test_a_full_disk_names_the_file(inline, tmp_path):
    with results_folder(tmp_path / "out") as folder, closing(Journal(folder, {}, {}, Limits())) as journal:
        journal._file.close()
        journal._file = Path("/dev/full").open("r+b", buffering=0)  # noqa: SIM115  # closed by close
        with pytest.raises(OSError, match=r"No space left on device \(.*[Tt]he rows before it are kept.*rows.jsonl'"):
            journal.add(Row.without_result("gdm", 2, 0, "failed", ""), np.arange(2))


def test_comparison_runs_after_a_kill_before_the_settings(inline, tmp_path):
    code = f"""if True:
        import os, signal
        from coterie.comparison.journal import Journal, results_folder
        from coterie.comparison.process import Limits
        os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
        with results_folder({str(tmp_path / "out")!r}) as folder:
            Journal(folder, {{}}, {{}}, Limits(None, None))
    """
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert len(os.listdir(tmp_path / "out")) == 3
    assert len(run(tmp_path / "out").rows) == 12
    assert sorted(os.listdir(tmp_path / "out")) == ["rows.jsonl", "settings.json"]


@pytest.mark.parametrize("locks", ["none", "refused"])
def test_comparison_runs_without_file_locks(inline, tmp_path, monkeypatch, locks):
    fcntl = pytest.importorskip("fcntl")

    def refuse(file, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("coterie.files.disk.fcntl", None) if locks == "none" else monkeypatch.setattr(fcntl, "flock", refuse)
    assert len(run(tmp_path / "out").rows) == 12


def test_rows_are_plain_json(inline, tmp_path):
    run(tmp_path / "out", ["oscar"], y=np.tile([0, 1, 2], 20))  # a failed row, whose measures are NaN
    lines = (tmp_path / "out" / "rows.jsonl").read_text().splitlines()
    entries = [json.loads(line, parse_constant=lambda _: pytest.fail("NaN")) for line in lines]
    assert {entry["accuracy"] for entry in entries} == {None}
    assert run(tmp_path / "out", ["oscar"], y=np.tile([0, 1, 2], 20)).table.accuracy.isna().all()
