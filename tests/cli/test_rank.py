"""``coterie rank``: every method by its name."""

import csv
import os
import signal

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from coterie.baselines import BestIndividualSelector
from coterie.cli import rank
from coterie.cli.rank import known_methods
from coterie.data import open_features
from coterie.filters import lgd_score
from coterie.methods import Method
from coterie.probing import SVMCriterion


def name_score(X, y=None, *, factor=1.0):
    """A score with known values."""
    return factor * np.arange(X.shape[1], dtype=float)


class Stoppable(BaseEstimator):
    """A selector that a signal ends and that keeps its ranking so far."""

    def __init__(self, number=signal.SIGTERM, keep=True):
        self.number = number
        self.keep = keep

    def fit(self, X, y):
        try:
            os.kill(os.getpid(), self.number)
        except KeyboardInterrupt:
            if not self.keep:
                raise
        self.ranking_ = np.arange(X.shape[1]) + 1
        return self


@pytest.fixture
def with_own_methods(monkeypatch):
    known = {
        "names": Method("tests.cli.test_rank:name_score", "names", False),
        "stop": Method("tests.cli.test_rank:Stoppable", "signals", True),
    }
    monkeypatch.setattr(rank, "_ALL", {**rank._ALL, **known})


def test_options_of_a_named_score(shell, svm):
    settings = ["--set", "score_func=lgd", "--set", "score_parameters.n_neighbors=7", "--set", "n_features_to_select=5"]
    content = shell.json("rank", svm, "--method", "grm", "--top", "3", *settings)
    assert content["parameters"]["score_parameters"] == {"n_neighbors": 7}
    scores = lgd_score(open_features(svm).source, n_neighbors=7)
    assert [row["score"] for row in content["ranking"]] == pytest.approx(
        [scores[row["feature"]] for row in content["ranking"]]
    )
    wrong = shell("rank", svm, "--method", "grm", "--set", "score_parameters.clusters=7", code=2)
    assert "is not a parameter of fisher_score" in wrong.stderr


@pytest.mark.parametrize("method", known_methods())
def test_every_method_ranks(shell, svm, method):
    settings = {
        "daf": ["--set", "n_probes=40", "--set", "random_state=0"],
        "grm": ["--set", "n_features_to_select=5"],
        "sffs": ["--set", "criterion=ridge", "--set", "n_features_to_select=3"],
    }
    content = shell.json("rank", svm, "--method", method, "--top", "5", *settings.get(method, []), "-o", "ranking.csv")
    assert [row["rank"] for row in content["ranking"]] == [1, 2, 3, 4, 5]
    with (shell.folder / "ranking.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(int(row["feature"]) for row in rows) == list(range(40))
    assert [int(row["feature"]) for row in rows[:5]] == [row["feature"] for row in content["ranking"]]
    table = shell("rank", svm, "--method", method, *settings.get(method, []))
    assert f"Features by {known_methods()[method].description}" in table.stdout


def test_scores_and_order(shell, svm, with_own_methods):
    content = shell.json("rank", svm, "--method", "names", "--set", "factor=-2", "--top", "3")
    assert [(row["feature"], row["score"]) for row in content["ranking"]] == [(0, -0.0), (1, -2.0), (2, -4.0)]


def test_json_has_no_nan(shell, svm, with_own_methods):
    content = shell.json("rank", svm, "--method", "names", "--set", "factor=nan", "--top", "1")
    assert content["ranking"][0]["score"] is None


def test_methods_are_listed_with_their_parameters(shell, with_own_methods):
    text = shell("rank", "--methods").stdout
    assert "factor=1.0" in text
    assert all(method in text for method in known_methods())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_the_ranking_so_far(shell, svm, with_own_methods, listening, number, code):
    result = shell("rank", svm, "--method", "stop", "--set", f"number={int(number)}", "-o", "r.csv", code=code)
    assert "ranking so far" in result.stderr
    assert (shell.folder / "r.csv").exists()
    result = shell("rank", svm, "--method", "stop", "--set", f"number={int(number)}", "--set", "keep=false", code=code)
    assert "nothing was written" in result.stderr


def test_bad_input(shell, svm, with_own_methods):
    assert "--method magic must be one of" in shell.error("rank", svm, "--method", "magic")
    assert "names has no such parameter. Its parameters are factor" in shell.error(
        "rank", svm, "--method", "names", "--set", "x=3"
    )
    assert "name=value" in shell.error("rank", svm, "--method", "names", "--set", "x")
    assert "does not exist. Create it before writing" in shell.error("rank", svm, "--method", "names", "-o", "no/r.csv")


def test_parameters_of_the_criterion(shell, svm):
    few = ["--set", "n_probes=60", "--set", "random_state=0", "--set", "min_coverage=none"]
    by_default = shell.json("rank", svm, "--method", "daf", *few)
    assert (
        shell.json("rank", svm, "--method", "daf", *few, "--set", "criterion.n_neighbors=3")["ranking"]
        == by_default["ranking"]
    )
    other = shell.json("rank", svm, "--method", "daf", *few, "--set", "criterion.n_neighbors=9")
    assert other["ranking"] != by_default["ranking"]
    assert other["parameters"]["criterion.n_neighbors"] == 9
    kernel = ["--set", "criterion=svm", "--set", "criterion.kernel=poly", "--set", "criterion.C=10"]
    dataset = open_features(svm)
    expected = BestIndividualSelector(SVMCriterion(10, kernel="poly")).fit(dataset.source, dataset.y)
    found = shell.json("rank", svm, "--method", "bif", *kernel, "--top", 40)["ranking"]
    assert [row["feature"] for row in found] == np.argsort(expected.ranking_).tolist()
    assert "bif with criterion knn has no such parameter. Its parameters are n_neighbors" in shell.error(
        "rank", svm, "--method", "bif", "--set", "criterion.C=1"
    )
    assert "no criterion 'magic'" in shell.error(
        "rank", svm, "--method", "bif", "--set", "criterion=magic", "--set", "criterion.C=1"
    )
    assert "has no such parameter" in shell.error("rank", svm, "--method", "fisher", "--set", "criterion.C=1")
    text = " ".join(shell("rank", "--methods").stdout.split())
    assert "n_neighbors=3" in text


def test_criteria_without_labels(shell):
    rows = "".join(f"{j % 2 * 9 + j % 3},{j % 7},{j % 5}\n" for j in range(40))
    (shell.folder / "plain.csv").write_text(f"a,b,c\n{rows}")
    common = ["rank", "plain.csv", "--label", "none"]
    assert shell.json(*common, "--method", "bif", "--set", "criterion=clustering")["ranking"][0]["name"] == "a"
    assert "has no labels" in shell.error(*common, "--method", "bif")


def test_labels_are_required(svm, monkeypatch):
    dataset = open_features(svm, label=False)
    method = Method("tests.cli.test_rank:name_score", "names", True)
    with pytest.raises(ValueError, match="has no labels, but this method requires labels"):
        rank.rank_features(method, {}, dataset, svm, rank.Console(), 5)


def test_fewer_features_than_a_method_selects_by_default(shell):
    rows = "".join(f"{j % 5},{j % 3},{'yes' if j % 5 > 1 else 'no'}\n" for j in range(30))
    (shell.folder / "narrow.csv").write_text(f"a,b,y\n{rows}")
    assert "a" in shell("rank", "narrow.csv", "--method", "grm", "--top", 1).stdout
    expected = "coterie: narrow.csv:1: --label 'z': column not found. Available: a, b, y."
    assert shell.error("rank", "narrow.csv", "--label", "z") == expected
