"""``coterie compare``: a table and a figure of a user's CSV with one command."""

import csv
import json
import signal

import numpy as np
import pandas as pd
import pytest

import coterie
from coterie.cli.compare import chosen_methods, selectors_of
from coterie.comparison import run
from coterie.methods import METHODS
from tests.comparison.conftest import Inline
from tests.conftest import grouped_matrix

FILES = ["comparison.csv", "comparison.html", "comparison.png", "rows.jsonl", "settings.json", "summary.csv"]


@pytest.fixture
def inline(monkeypatch):
    monkeypatch.setattr(run, "Schedule", Inline)


@pytest.fixture
def table(tmp_path):
    """A CSV with names, a column of words for labels, and scales far apart."""
    X, y = grouped_matrix(np.random.default_rng(0), n_features=12)
    frame = pd.DataFrame(X * np.logspace(0, 3, 12), columns=[f"gene {j}" for j in range(12)])
    frame["diagnosis"] = np.where(y > 0, "ill", "well")
    frame.to_csv(tmp_path / "genes.csv", index=False)
    return frame


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_one_command_on_a_csv(shell, table, monkeypatch):
    result = shell(
        "compare", "genes.csv", "--label", "diagnosis", "-M", "mrmr,fisher", "-n", "2,4", "--cv", "2", "--standardize"
    )
    folder = shell.folder / "genes-comparison"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert (folder / "comparison.png").read_bytes()[1:4] == b"PNG"
    X, y = table.drop(columns="diagnosis"), table["diagnosis"]
    monkeypatch.setattr(run, "Schedule", Inline)
    expected = coterie.compare(["mrmr", "fisher"], X, y, n_features=[2, 4], cv=2, standardize=True)
    found = pd.read_csv(folder / "comparison.csv", keep_default_na=False, float_precision="round_trip")
    assert list(found.columns) == list(expected.table.columns)
    pd.testing.assert_frame_equal(
        found.drop(columns="fit_seconds"), expected.table.drop(columns="fit_seconds"), check_dtype=False, check_exact=True
    )
    summary = pd.read_csv(folder / "summary.csv", float_precision="round_trip")
    assert summary.accuracy.tolist() == expected.summary().accuracy.tolist()
    for measure in ("weighted_consistency", "tanimoto_stability", "hamming_stability"):
        assert summary[measure].tolist() == expected.summary()[measure].tolist()
    for words in ("mrmr", "fisher", f"{summary.accuracy[0]:.3f}", "Written to genes-comparison: comparison.csv"):
        assert words in result.stdout
    assert "[compare] 8/8 rows" in result.stderr


def test_json_resume_and_overwrite(shell, table, inline):
    command = ["compare", "genes.csv", "-l", "diagnosis", "-M", "fisher,variance", "-n", "3", "--cv", "2", "-o", "out"]
    first = shell.json(*command)
    assert first["files"] == ["comparison.csv", "summary.csv", "comparison.html", "comparison.png"]
    assert not first["interrupted"]
    assert [row["method"] for row in first["summary"]] == ["fisher", "variance"]
    assert len(first["rows"]) == 4
    assert shell.json(*command)["rows"] == first["rows"]  # the times, too: nothing was done again
    refusal = shell.error(*command, "--cv", "3")
    assert "different folds" in refusal
    assert refusal.endswith("replace it with --overwrite.")
    other = shell.json(*command, "--cv", "3", "--overwrite")
    assert len(other["rows"]) == 6
    assert "Unknown method" in shell.error(*command, "-M", "gdn", "--overwrite")
    assert "exceeds the number of samples (60)" in shell.error(*command, "--cv", "300", "--overwrite")
    assert shell.json(*command, "--cv", "3")["rows"] == other["rows"]  # a slip costs nothing


def test_parameters_of_methods(shell, table, inline):
    content = shell.json(
        *["compare", "genes.csv", "-l", "diagnosis", "-M", "svm-rfe,relieff,gdm", "-n", "3", "--cv", "2", "-o", "out"],
        *[
            "--set",
            "svm-rfe.step=1",
            "--set",
            "relieff.n_neighbors=3",
            "--set",
            "gdm.C=10",
            "--set",
            "gdm.fixed_features=gene 3",
        ],
        *["--time-limit", "600"],
        *["--memory-limit", "8GB", "--classifier", "knn", "--scoring", "balanced_accuracy"],
    )
    assert {row["status"] for row in content["rows"]} == {"ok"}
    lines = [json.loads(line) for line in (shell.folder / "out" / "rows.jsonl").read_text().splitlines()]
    assert all(3 in line["features"] for line in lines if line["method"] == "gdm")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--methods", "gdn"], "Unknown method 'gdn'"),
        (["--methods", "gdm,gdm"], "'gdm' twice"),
        (["--set", "C=1"], "must have the form method.name=value"),
        (["--set", "oscar.alpha=1"], "with one of the methods compared"),
        (
            ["--methods", "daf", "--set", "daf.criterion.C=1"],
            "daf with criterion knn has no such parameter. Its parameters are n_neighbors",
        ),
        (["--methods", "daf", "--set", "daf.criterion.C=1", "--set", "daf.criterion=x"], "daf has no criterion 'x'"),
        (["--set", "gdm.criterion.C=1"], "gdm has no such parameter. Its parameters are"),
        (["--set", "gdm.c=1"], "gdm has no such parameter. Its parameters are"),
        (["--set", "gdm.n_features_to_select=1"], "no such parameter"),
        (["--n-features", "two"], "--n-features two must be whole numbers"),
        (["--n-features", "20"], "--n-features has 20, but X has 12"),
        (["--memory-limit", "much"], "'much' is not a size of memory"),
        (["--classifier", "svm"], "must be one of linear_svm, knn"),
        (["--cv", "1"], "--cv 1 must be"),
        (["-o", "genes.csv"], "is a file"),
        (["-o", "a/b"], "Folder a does not exist"),
    ],
)
def test_errors(shell, table, words, message):
    assert message in shell.error("compare", "genes.csv", "-l", "diagnosis", *words)
    assert sorted(path.name for path in shell.folder.iterdir()) == ["genes.csv"]


def test_labels_that_are_none(shell, table):
    table.drop(columns="diagnosis").to_csv("numbers.csv", index=False)
    assert "has no labels" in shell.error("compare", "numbers.csv", "-l", "none")
    assert "continuous" in shell.error("compare", "numbers.csv", "-l", "gene 0", "--task", "classification")


def test_scales_are_noted(shell, table, inline):
    command = ["compare", "genes.csv", "-l", "diagnosis", "-M", "fisher", "-n", "2", "--cv", "2"]
    assert "very different scales" in shell(*command).stderr
    assert "scales" not in shell(*command, "--standardize", "-o", "b").stderr


def test_methods_are_listed(shell):
    text = shell("compare", "--list").stdout
    assert all(method in text for method in METHODS)
    assert "step=" not in text.split("svm-rfe")[1].split("l1-svm")[0]


def test_failures_are_reported(shell, tmp_path, inline):
    X, _ = grouped_matrix(np.random.default_rng(0), n_features=6)
    np.savez(tmp_path / "three.npz", X=X, y=np.tile([0, 1, 2], 20))
    text = shell("compare", "three.npz", "-M", "oscar", "-n", "2", "--cv", "2").stdout
    assert "failed (2 of 2 folds)" in text
    rows = read(tmp_path / "three-comparison" / "comparison.csv")
    assert {row["status"] for row in rows} == {"failed"}
    assert {row["accuracy"] for row in rows} == {""}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_what_is_done(shell, table, monkeypatch, listening, number, code):
    class Stopped(Inline):
        def run(self, units, on_row):
            super().run(units[:1], on_row)
            signal.raise_signal(number)

    monkeypatch.setattr(run, "Schedule", Stopped)
    command = ["compare", "genes.csv", "-l", "diagnosis", "-M", "fisher", "-n", "2,3", "--cv", "2"]
    assert "Run it again to continue" in shell(*command, code=code).stderr
    assert len(read(shell.folder / "genes-comparison" / "comparison.csv")) == 2
    monkeypatch.setattr(run, "Schedule", Inline)
    shell(*command)
    assert len(read(shell.folder / "genes-comparison" / "comparison.csv")) == 4
    lines = (shell.folder / "genes-comparison" / "rows.jsonl").read_text().splitlines()
    assert len({(json.loads(line)["n_features"], json.loads(line)["fold"]) for line in lines}) == len(lines) == 4


def test_a_store_is_used_where_it_is(shell, table, inline, monkeypatch):
    shell("convert", "genes.csv", "genes.store", "--label", "diagnosis")
    monkeypatch.setattr(run, "write_store", lambda *_, **__: pytest.fail("a copy"))
    content = shell.json("compare", "genes.store", "-M", "fisher", "-n", "2", "--cv", "2")
    assert {row["status"] for row in content["rows"]} == {"ok"}


def test_parameters_of_a_criterion():
    given = ["daf.criterion.kernel=poly", "daf.criterion=svm", "daf.n_probes=30", "bif.criterion.n_neighbors=5"]
    found = selectors_of(chosen_methods("daf,bif", given))
    assert (found["daf"].criterion.kernel, found["daf"].n_probes) == ("poly", 30)
    assert found["bif"].criterion.n_neighbors == 5
