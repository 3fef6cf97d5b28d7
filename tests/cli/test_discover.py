"""``coterie discover`` and ``coterie predict``: the same as in Python, and whole folders only."""

import csv
import json
import re

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from coterie import (
    GroupDiscoveryClassifier,
    GroupDiscoveryClassifierCV,
    GroupDiscoveryOneClass,
    GroupDiscoveryRegressor,
    group_confidence,
    load,
)
from coterie.cli.data import stem
from coterie.report import read_result


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_holds_what_python_finds(shell, svm):
    result = shell(
        "discover", "--fast", svm, "-o", "out", "--n-features-to-select", "5", "--threshold", "0.6", "--standardize"
    )
    assert "Groups, in order of discovery" in result.stdout
    assert "Written to out: classes.csv, groups.csv, methods.txt, model.coterie, report.html, result.json." in result.stdout
    assert "60 samples, 40 features" in result.stderr
    assert "5/5 support features" in result.stderr  # plain lines of progress
    X, y = load_svmlight_file(str(svm))
    expected = GroupDiscoveryClassifier(5, threshold=0.6, standardize=True).fit(X.tocsc(), y)
    folder = shell.folder / "out"
    assert names(folder) == ["classes.csv", "groups.csv", "methods.txt", "model.coterie", "report.html", "result.json"]
    assert load(folder / "model.coterie").groups_ == expected.groups_
    with (folder / "groups.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["feature"]) for row in rows if row["role"] == "support"] == expected.support_features_.tolist()
    assert [float(row["correlation"]) for row in rows] == [row["correlation"] for row in expected.groups_.rows()]
    content = read_result(folder)
    assert content["parameters"]["threshold"] == 0.6
    assert content["summary"]["groups"] == 5
    assert [group["support"] for group in content["groups"]] == expected.support_features_.tolist()
    assert not content["interrupted"]


def test_json_and_default_folder(shell, svm):
    content = shell.json("discover", "--fast", svm, "--n-features-to-select", "3")
    assert content["output"] == "data-groups"
    assert len(content["groups"]) == 3
    assert names(shell.folder / "data-groups") == content["files"]


def test_few_features_go_on_to_convergence(shell, svm):
    assert shell.json("discover", "--fast", svm)["parameters"]["n_features_to_select"] == "auto"


QUICK = ("--max-features-to-select", "6", "--n-pairs", "3", "--n-permutations", "1", "--random-state", "0")


def test_validated_by_default(shell, svm):
    """The number of features and C are chosen, and the scores are those of held-out samples."""
    result = shell("discover", svm, *QUICK, "--predict-with", "support")
    figures, judgement = re.split("[Hh]eld-out accuracy 0", result.stdout)  # the judgement follows the figures
    score = r"held-out accuracy +0\.\d+ \(95% interval 0\.\d+ to "
    for words in (score, r"baseline \(constant\) +0\.\d+", r"groups +\d+ with", r"seconds +\d"):
        assert re.search(words, figures)
    assert "groups" in judgement
    quiet = shell("discover", svm, *QUICK, "--predict-with", "support", "--quiet", "--overwrite").stdout
    assert re.search("[Hh]eld-out accuracy 0", quiet)
    assert "seconds" not in quiet
    assert "confidence" in result.stdout
    content = read_result(shell.folder / "data-groups")
    assert content["estimator"] == "GroupDiscoveryClassifierCV"
    assert content["parameters"]["max_features_to_select"] == 6
    X, y = load_svmlight_file(str(svm))
    model = GroupDiscoveryClassifierCV(6, rule="one_se", predict_with="support", nested=True, random_state=0).fit(X.tocsc(), y)
    held_out = content["held_out"]
    assert held_out["folds"] == pytest.approx(model.nested_scores_.tolist())
    assert held_out["score"] == "accuracy"
    assert held_out["constant"] == pytest.approx(model.baseline_scores_["accuracy"])
    assert held_out["value"] == pytest.approx(model.held_out_scores_["accuracy"])
    assert held_out["interval"] == pytest.approx(model.held_out_intervals_["accuracy"])
    assert content["verdict"]["score"]["value"] == held_out["value"]
    assert held_out["training"] == content["summary"]["accuracy on the training data"]
    confidence = group_confidence(model, X.tocsc(), y, n_pairs=3, n_permutations=1, random_state=0)
    assert content["confidence"]["confidence"] == pytest.approx(confidence.confidence.tolist())
    assert content["target"]["classes"] == {
        f"{label:g}": count for label, count in zip(*np.unique(y, return_counts=True), strict=True)
    }
    assert load(shell.folder / "data-groups" / "model.coterie").confidence_.n_pairs == 3
    with (shell.folder / "data-groups" / "groups.csv").open(newline="") as file:
        assert float(next(csv.DictReader(file))["confidence"]) == content["groups"][0]["confidence"]
    assert len(shell.json("predict", "data-groups", svm)["predictions"]) == 60


def test_given_options_are_used(shell, svm):
    options = ("--n-features-to-select", "4", "--C", "0.1", "--task", "regression", "--predict-with", "support,groups")
    content = shell.json("discover", svm, *options, "--n-pairs", "0", "--random-state", "0", "--no-standardize", "--cv", "3")
    assert content["estimator"] == "GroupDiscoveryRegressorCV"
    assert content["summary"]["groups"] == 4
    assert content["summary"]["C"] == 0.1
    assert content["parameters"]["standardize"] is False
    assert content["held_out"]["score"] == "R²"
    assert len(content["held_out"]["folds"]) == 3
    assert content["confidence"] is None
    assert "|correlation| ≥ 0.7" in (shell.folder / "data-groups" / "report.html").read_text()


def test_other_ways_to_say_how_many(shell, svm):
    content = shell.json("discover", svm, "--n-features-to-select", "auto", "--n-pairs", "2", "--n-permutations", "0")
    assert content["estimator"] == "GroupDiscoveryClassifier"
    assert content["held_out"] is None
    assert content["confidence"]["n_pairs"] == 2
    content = shell.json("discover", svm, "--overwrite", "--n-features-to-select", "0.1", "--C", "1", "--n-pairs", "0")
    assert content["summary"]["groups"] == 4
    content = shell.json(
        "discover", svm, "--overwrite", "--task", "one-class", "--n-features-to-select", "3", "--n-pairs", "2"
    )
    assert content["confidence"]["n_permutations"] == 0
    assert content["estimator"] == "GroupDiscoveryOneClassCV"  # the labels are 1 and -1
    content = shell.json("discover", svm, "--overwrite", "--task", "one-class", "--n-features-to-select", "3", "--fast")
    assert content["parameters"]["reuse_features"] is True  # the default of the estimator, not that of the others


def test_a_warning_without_signal(shell):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 200)), np.arange(60) % 2
    dump_svmlight_file(X, y, "noise.svm", zero_based=False)
    options = ("--max-features-to-select", "5", "--n-pairs", "4", "--n-permutations", "1", "--C", "1", "--random-state", "0")
    result = shell("discover", "noise.svm", *options)
    assert re.search("(no better than|may predict better than) a constant", " ".join(result.stdout.split()))
    assert "better than a constant prediction" in result.stderr


def test_what_makes_a_result_doubtful(shell, rng):
    X = rng.standard_normal((40, 12)) * np.logspace(-3, 3, 12)
    y = np.repeat([0, 1, 2], [33, 5, 2])
    np.savez("data.npz", X=X, y=y)
    result = shell("discover", "data.npz", "--no-standardize", "--max-features-to-select", "2", "--n-pairs", "0", "--cv", "2")
    assert "Classes with few samples: 1 (5), 2 (2)" in result.stderr
    assert "very different scales" in result.stderr
    assert read_result(shell.folder / "data-groups")["held_out"] is None  # a class of two cannot be held out twice


def test_fast_says_what_it_is(shell, svm):
    result = shell("discover", "--fast", svm, "--n-features-to-select", "3")
    assert "Scores are from the training data only" in result.stdout
    content = read_result(shell.folder / "data-groups")
    assert content["held_out"] is None
    assert content["confidence"] is None
    assert "All figures are from the training data" in (shell.folder / "data-groups" / "report.html").read_text()


def test_the_report_has_the_image_and_the_command(shell, svm):
    options = ("--fast", svm, "--n-features-to-select", "3", "--overwrite")
    n_features = shell.json("discover", *options)["data"]["features"]
    content = shell.json("discover", *options, "--image-shape", f"1,{n_features}")
    assert content["pictures"]["image"]["columns"] == n_features
    assert content["command"].startswith("coterie discover --fast ")
    assert f" --image-shape 1,{n_features} --json" in content["command"]
    assert content["versions"]["coterie"] == content["written_by"].split()[1]
    assert len(content["data"]["fingerprint"]) == 16
    error = shell.error("discover", *options, "--image-shape", f"2,{n_features}")
    assert error.startswith(
        f"coterie: An image of 2 x {n_features} has {2 * n_features} pixels, but X has {n_features} features."
    )
    assert "rows and columns separated by a comma" in shell.error("discover", *options, "--image-shape", "8")


def test_quiet_says_nothing_but_the_result(shell, svm):
    assert shell("discover", "--fast", svm, "--quiet", "--n-features-to-select", "3").stderr == ""


def test_every_parameter_can_be_reached(shell, svm, tmp_path):
    (tmp_path / "fixed.txt").write_text("3\n7\n")
    shell(
        "discover", "--fast", svm, "-o", "out", "--n-features-to-select", "auto", "--n-features-per-round", "2",
        "--reuse-features", "--correlation", "su",
        "--threshold", "0.5", "--n-bins", "4", "--affiliates", "ranked", "--fixed-features", "@fixed.txt", "--keep", "groups",
        "--C", "2.5", "--no-fit-intercept", "--standardize", "--class-weight", '{"-1": 2, "1": 1}', "--cv", "3",
        "--max-rounds", "4", "--tol", "1e-3", "--n-jobs", "1", "--random-state", "5", "--representative", "score",
        "--predict-with", "groups", "--cv-part", "fold", "--quiet",
    )  # fmt: skip
    assert load("out/model.coterie").get_params() == {
        "n_features_to_select": "auto",
        "loss": "squared_hinge",
        "n_features_per_round": 2,
        "reuse_features": True,
        "correlation": "su",
        "threshold": 0.5,
        "n_bins": 4,
        "compatibility": None,
        "affiliates": "ranked",
        "representative": "score",
        "predict_with": "groups",
        "fixed_features": [3, 7],
        "keep": "groups",
        "C": 2.5,
        "fit_intercept": False,
        "standardize": True,
        "class_weight": {-1: 2, 1: 1},
        "equal_classes": False,
        "cv": 3,
        "cv_part": "fold",
        "max_rounds": 4,
        "tol": 1e-3,
        "n_jobs": 1,
        "random_state": 5,
        "verbose": 0,
    }


def test_measures_of_correlation_by_name(shell, svm):
    shell("discover", "--fast", svm, "-o", "out", "--correlation", "spearman", "--n-features-to-select", "4", "--quiet")
    assert load("out/model.coterie").correlation == "spearman"


def test_the_task_follows_the_labels(shell, rng):
    X = rng.standard_normal((60, 10))
    targets = {
        "classification": X[:, 0] > 0,
        "regression": X[:, 0] + 0.1 * rng.standard_normal(60),
    }
    for task, y in targets.items():
        dump_svmlight_file(X, y, "data.svm", zero_based=False)
        assert shell.json("discover", "--fast", "data.svm", "--overwrite", "--n-features-to-select", "2")["task"] == task
    content = shell.json("discover", "--fast", "data.svm", "--overwrite", "--task", "one-class", "--n-features-to-select", "2")
    assert content["estimator"] == "GroupDiscoveryOneClass"
    assert "accuracy on the training data" not in content["summary"]


def test_one_class_is_validated_where_outliers_are_known(shell, rng):
    X = np.repeat(rng.gamma(2.0, size=(90, 5)), 2, axis=1) + rng.random((90, 10))
    X[:60, :4] += 3.0
    dump_svmlight_file(X, np.repeat([1, -1], [60, 30]), "data.svm", zero_based=False)
    options = ("--task", "one-class", "--max-features-to-select", "3", "--n-pairs", "2", "--cv", "3", "--random-state", "0")
    content = shell.json("discover", "data.svm", *options)
    assert content["estimator"] == "GroupDiscoveryOneClassCV"
    assert content["held_out"]["score"] == "balanced accuracy"
    assert content["held_out"]["constant"] == 0.5 < content["held_out"]["mean"] < content["held_out"]["training"] + 0.2
    assert content["confidence"]["n_permutations"] == 0
    for labels in (np.repeat([1, 0], [60, 30]), np.repeat([1, -1], [88, 2])):
        dump_svmlight_file(X, labels, "data.svm", zero_based=False)
        assert "only applies to validation, which --fast and --n-features-to-select auto skip. Validation with" in shell.error(
            "discover", "data.svm", "--overwrite", *options
        )
        words = ("--task", "one-class", "--n-pairs", "0", "--overwrite")
        assert "requires labels 1 and -1, with at least" in shell.error(
            "discover", "data.svm", *words, "--n-features-to-select", "cv"
        )
        content = shell.json("discover", "data.svm", *words, "--n-features-to-select", "2")
        assert content["estimator"] == "GroupDiscoveryOneClass"
        assert content["held_out"] is None


def test_whole_numbers_that_hardly_repeat_are_targets():
    from coterie.inputs.targets import task_of

    assert task_of(np.arange(100)) == "regression"
    assert task_of(np.arange(300) % 30) == "classification"
    assert task_of(np.arange(10)) == "classification"
    assert task_of(np.array(["a", "b"])) == "classification"
    assert task_of(np.array([True, False])) == "classification"


def test_only_results_are_replaced_and_only_with_overwrite(shell, svm):
    options = ("--n-features-to-select", "3", "--quiet")
    shell("discover", "--fast", svm, "-o", "out", *options)
    assert "out exists. Choose another name, or replace it with --overwrite" in shell.error(
        "discover", "--fast", svm, "-o", "out"
    )
    shell("discover", "--fast", svm, "-o", "out", "--overwrite", "--n-features-to-select", "4", "--quiet")
    assert read_result("out")["summary"]["groups"] == 4
    mine = shell.folder / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    assert "are not part of a Coterie result" in shell.error("discover", "--fast", svm, "-o", "mine", "--overwrite")
    assert names(mine) == ["thesis.txt"]
    (shell.folder / "file").write_text("")
    assert "file is a file" in shell.error("discover", "--fast", svm, "-o", "file", "--overwrite")
    assert "Folder nowhere does not exist" in shell.error("discover", "--fast", svm, "-o", "nowhere/out")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--n-pairs", "-1"], "--n-pairs -1 must be a whole number of at least 0"),
        (["--n-permutations", "some"], "--n-permutations some must be a whole number of at least 0"),
        (
            ["--fast", "--rule", "best"],
            "--rule only applies to validation, which --fast and --n-features-to-select auto skip. Omit it, or allow",
        ),
        (["--fast", "--n-features-to-select", "cv"], "--n-features-to-select cv requires validation, which --fast skips"),
        (["--n-features-to-select", "all"], "--n-features-to-select all must be a whole number, a fraction, 'auto' or 'cv'."),
        (
            ["--task", "numbers"],
            "--task numbers must be one of auto, classification, regression, survival, counts, one-class.",
        ),
        (["--task", "regression", "--class-weight", "balanced"], "--class-weight cannot be used with --task regression. Omit"),
    ],
)
def test_errors_name_options_and_not_parameters(shell, svm, words, message):
    assert shell.error("discover", svm, *words).startswith(f"coterie: {message}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.svm"], "missing.svm"),
        (["data.svm", "--C", "abc"], "--C abc must be a number of at least 1e-20"),
        (["data.svm", "--task", "clustering"], "must be one of auto, classification"),
        (
            ["data.svm", "--task", "regression", "--class-weight", "balanced"],
            "--class-weight cannot be used with --task regression",
        ),
        (["data.svm", "--task", "one-class", "--n-features-to-select", "cv"], "cv requires validation, which --fast skips"),
        (["data.svm", "--max-features-to-select", "9"], "--max-features-to-select only applies to validation"),
        (["data.svm", "--class-weight", "{1: 2"], "is not valid JSON"),
        (["data.svm", "--correlation", "kendall"], "must be one of 'pearson', 'spearman', 'su', None"),
        (["data.svm", "--fixed-features", "gene7"], "names, but X has no feature names"),
        (["data.svm", "--fixed-features", "@nothing.txt"], "nothing.txt"),
        (["data.svm", "--format", "xml"], "must be one of"),
        (["data.svm", "--read", "x"], "must have the form name=value"),
        (["data.svm", "--read", "x=1"], "x"),
        (["data.svm", "--xyzzy"], "No such option: --xyzzy. See: coterie discover --help-all"),
        (["one.svm"], "only one class"),
        (["constant.svm"], "All features of X are constant"),
        (["empty.svm"], "empty.svm"),
        (["broken.svm"], "broken.svm"),
        (["binary.svm"], "binary.svm"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(shell, svm, words, message):
    (shell.folder / "one.svm").write_text("1 1:1 2:3\n1 1:2\n1 2:5\n")
    (shell.folder / "constant.svm").write_text("1 1:1\n-1 1:1\n1 1:1\n-1 1:1\n")
    (shell.folder / "empty.svm").write_text("")
    (shell.folder / "broken.svm").write_text("1 1:1 2:x\n-1 1:3\n")
    (shell.folder / "binary.svm").write_bytes(bytes(range(256)))
    before = names(shell.folder)
    assert message in shell.error("discover", "--fast", *words)
    assert names(shell.folder) == before


def test_debug_shows_the_traceback(shell, svm):
    result = shell("discover", "--fast", svm, "--C", "abc", "--debug", code=2)
    assert "Traceback" in result.stderr
    assert result.stderr.strip().splitlines()[-1].startswith("coterie: --C abc must be")


def test_warnings_are_notes_and_are_kept(shell, svm):
    result = shell("discover", "--fast", svm, "--n-features-to-select", "40", "-o", "out")
    assert "coterie: warning: Only" in result.stderr
    assert "support features were found" in read_result("out")["warnings"][0]


@pytest.mark.parametrize("estimator", [GroupDiscoveryClassifier, GroupDiscoveryRegressor, GroupDiscoveryOneClass])
def test_predictions_are_those_of_the_model(shell, svm, estimator):
    X, y = load_svmlight_file(str(svm))
    task = {"C": "classification", "R": "regression", "O": "one-class"}[estimator.__name__[len("GroupDiscovery")]]
    shell(
        "discover",
        "--fast",
        svm,
        "-o",
        "out",
        "--model",
        "kept.coterie",
        "--task",
        task,
        "--n-features-to-select",
        "5",
        "--quiet",
    )
    model = estimator(5).fit(X.tocsc(), y)
    printed = shell("predict", "out", svm)
    rows = list(csv.DictReader(printed.stdout.splitlines()))
    assert [float(row["prediction"]) for row in rows] == model.predict(X.tocsc()).tolist()
    if task != "regression":
        assert [float(row["decision"]) for row in rows] == model.decision_function(X.tocsc()).tolist()
    if task != "one-class":
        assert f": {model.score(X.tocsc(), y):.4f}" in printed.stderr
    shell("predict", "kept.coterie", svm, "-o", "predictions.csv", "--quiet")
    assert (shell.folder / "predictions.csv").read_text() == printed.stdout
    assert len(shell.json("predict", "out", svm)["predictions"]) == 60


def test_predictions_of_several_classes_and_names(shell, rng):
    X = rng.standard_normal((90, 6))
    X[:, 0] += np.repeat([0, 3, 6], 30)
    dump_svmlight_file(X, np.repeat([0, 1, 2], 30), "data.svm", zero_based=False)
    shell("discover", "--fast", "data.svm", "-o", "out", "--n-features-to-select", "2", "--quiet")
    content = shell.json("predict", "out", "data.svm")
    assert {"sample", "prediction", "decision 0", "decision 1", "decision 2"} == set(content["predictions"][0])
    assert content["score"] > 0.8


def test_what_cannot_be_predicted(shell, svm):
    shell("discover", "--fast", svm, "-o", "out", "--n-features-to-select", "3", "--quiet")
    (shell.folder / "narrow.svm").write_text("1 1:1\n-1 2:1\n")
    assert "X has 2 features, but GroupDiscoveryClassifier is expecting 40 features" in shell.error(
        "predict", "out", "narrow.svm"
    )
    assert "Model file nothing not found" in shell.error("predict", "nothing", "data.svm")
    assert "not an intact Coterie model" in shell.error("predict", "data.svm", "data.svm")
    damaged = bytearray((shell.folder / "out" / "model.coterie").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (shell.folder / "out" / "model.coterie").write_bytes(damaged)
    assert "not an intact Coterie model" in shell.error("predict", "out", "data.svm")


def test_info_about_results_models_and_data(shell, svm):
    shell("discover", "--fast", svm, "-o", "out", "--n-features-to-select", "3", "--quiet")
    assert shell.json("info", "out")["groups"] == 3
    assert shell.json("info", "out/model.coterie")["class"] == "GroupDiscoveryClassifier"
    facts = shell.json("info", svm)
    assert (facts["samples"], facts["features"], facts["format"]) == (60, 40, "libsvm")
    assert facts["labels"].startswith("-1: ")
    assert "60" in shell("info", svm).stdout
    (shell.folder / "out" / "result.json").write_text("{")
    assert "result.json is damaged" in shell.error("info", "out")
    assert "File or folder nothing not found" in shell.error("info", "nothing")


def test_names_of_folders():
    from pathlib import Path

    assert stem(Path("a/news20.svm.bz2")) == "news20"
    assert stem(Path("news20.store")) == "news20"
    assert stem(Path("cells.h5ad")) == "cells"


def test_result_json_has_no_nan(shell, svm):
    shell("discover", "--fast", svm, "-o", "out", "--fixed-features", "3", "--n-features-to-select", "3", "--quiet")

    def refuse(value):
        raise AssertionError(value)

    json.loads((shell.folder / "out" / "result.json").read_text(), parse_constant=refuse)
