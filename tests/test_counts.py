"""Counts in ``coterie.discover`` and in the commands, and whole numbers that could be classes or a quantity."""

import csv
import warnings

import numpy as np
import pytest

import coterie
from coterie._parameters import ParameterError
from coterie.inputs.offsets import log_exposure
from coterie.inputs.targets import settle_by_labels
from tests.cli.conftest import Shell


@pytest.fixture
def shell(tmp_path, monkeypatch):
    return Shell(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def visits():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 20))
    X[:, 5] = X[:, 3] + 0.4 * X[:, 5]
    months = rng.uniform(0.5, 4.0, 200)
    return X, rng.poisson(months * np.exp(0.3 + 0.5 * X[:, 3] - 0.4 * X[:, 9])), months


FEW = {"max_features_to_select": 6, "n_pairs": 3, "n_permutations": 0}


def test_counts_with_an_exposure(visits):
    X, y, months = visits
    found = coterie.discover(X, y, task="counts", exposure=months, **FEW)
    assert found.model.loss == "poisson"
    assert {tuple(sorted(group.members.tolist())) for group in found.groups} >= {(3, 5), (9,)}
    assert found.held_out.score == "D² (deviance)"
    assert found.held_out.baseline == "offset alone"
    assert "D² (deviance)" in found.judgement
    by_offset = coterie.discover(X, y, task="regression", loss="poisson", offset=np.log(months), **FEW)
    np.testing.assert_array_equal(found.model.coef_, by_offset.model.coef_)
    np.testing.assert_array_equal(found.confidence.q_value, by_offset.confidence.q_value)
    # The effect is the logarithm of a rate ratio.
    group = next(group for group in found.groups if 3 in group.members)
    assert group.effect == pytest.approx(0.5, abs=0.15)
    report = found.report()
    assert "D² (deviance)" in report.html


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "counts", "loss": "squared"}, r"loss='squared' cannot be used with task='counts'"),
        ({"exposure": np.ones(200)}, r"exposure requires task='counts', got task='auto'"),
        ({"task": "counts", "exposure": np.ones(200), "offset": np.ones(200)}, "exposure and offset cannot be combined"),
        ({"task": "counts", "class_weight": "balanced"}, "class_weight cannot be used with task='counts'"),
    ],
)
def test_wrong_options(visits, options, message):
    X, y, _ = visits
    with pytest.raises(ParameterError, match=message):
        coterie.discover(X, y, **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: np.where(t > 3, 0.0, t), r"exposure must be positive, but is 0 for sample \d+ \(\d+ such sample"),
        (lambda t: -t, "exposure must be positive"),
        (lambda t: np.where(t > 3, np.nan, t), "exposure is missing or infinite"),
        (lambda t: t[:5], "has 5 entries, but X has 200 samples"),
        (lambda t: t[:, None], "exposure must be one-dimensional"),
        (lambda t: t.astype(str) + "x", "exposure is not numeric"),
    ],
)
def test_wrong_exposures(visits, change, message):
    X, y, months = visits
    with pytest.raises(ValueError, match=message):
        coterie.discover(X, y, task="counts", exposure=change(months), fast=True)


def test_the_logarithm_of_exposures():
    np.testing.assert_array_equal(log_exposure([1, 10]), np.log([1, 10]))


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_losses_by_name(visits, loss):
    """The name of the loss decides the task."""
    X, y, _ = visits
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few samples
        found = coterie.discover(X, y > 2 if loss == "logistic" else y, loss=loss, **FEW)
    assert found.task == ("classification" if loss == "logistic" else "regression")
    assert found.model.loss == loss
    assert 3 in found.groups[0].members


def test_small_integers_are_classes_without_a_word():
    assert settle_by_labels(np.arange(100) % 10) == ("classification", "")
    assert settle_by_labels(np.arange(400) % 40) == ("classification", "")  # persons of a balanced data set
    assert settle_by_labels(np.array(["a", "b", "c", "c"])) == ("classification", "")
    assert settle_by_labels(np.arange(100)) == ("regression", "")
    assert settle_by_labels(np.arange(100) / 7) == ("regression", "")


def test_many_unequal_integers_are_announced():
    y = np.repeat(np.arange(17), np.maximum(40 - 3 * np.arange(17), 2))
    task, note = settle_by_labels(y)
    assert task == "classification"
    assert note == "y is taken as 17 classes. For a quantity, use task='counts' or task='regression'."


def test_integers_that_no_fold_can_hold_are_a_quantity():
    y = np.array([0] * 20 + [1] * 10 + [2] * 5 + [3])
    task, note = settle_by_labels(y)
    assert task == "regression"
    assert "because only one sample has the value 3" in note
    # Two samples of one sample group are in one fold.
    y[-2:] = 3
    assert settle_by_labels(y).task == "classification"
    groups = np.arange(36)
    groups[-1] = groups[-2]
    assert "only one sample group has the value 3" in settle_by_labels(y, groups).note


@pytest.mark.parametrize("mean", [0.5, 2.0, 6.0])
def test_auto_never_ends_in_an_error_about_folds(mean):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((90, 5)), rng.poisson(mean, 90)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = coterie.discover(X, y, n_pairs=0, max_features_to_select=2)
        assert found.task in ("classification", "regression")


def write(path, visits):
    X, y, months = visits
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["visits", "months", *(f"gene{j}" for j in range(20))])
        rows.writerows([y[i], months[i], *X[i]] for i in range(200))
    return path


def test_the_command(shell, visits):
    X, y, months = visits
    table = write(shell.folder / "visits.csv", visits)
    options = ["--max-features-to-select", "6", "--n-pairs", "3", "--n-permutations", "0"]
    counts = ["--task", "counts", "--exposure", "months"]
    content = shell.json("discover", table, "--label", "visits", *counts, *options, "-o", "out")
    expected = coterie.discover(X, y, task="counts", exposure=months, feature_names=[f"gene{j}" for j in range(20)], **FEW)
    assert [group["support"] for group in content["groups"]] == [group.support for group in expected.groups]
    assert content["held_out"]["value"] == pytest.approx(expected.held_out.value, rel=1e-9)
    result = shell("predict", "out", table, "--label", "visits", "--exposure", "months", "-o", "predicted.csv")
    assert "D² (deviance): " in result.stderr
    with (shell.folder / "predicted.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    np.testing.assert_allclose([float(row[-1]) for row in rows], expected.model.predict(X, offset=np.log(months)), rtol=1e-5)


def test_the_command_announces_what_it_takes_y_for(shell, visits):
    table = write(shell.folder / "visits.csv", visits)
    result = shell("discover", table, "--label", "visits", "--n-pairs", "0", "--max-features-to-select", "2")
    assert "taken as a quantity (regression)" in result.stderr
    assert "--task counts" in result.stderr


def test_errors_of_the_command(shell, visits):
    table = write(shell.folder / "visits.csv", visits)
    start = ["discover", table, "--label", "visits"]
    assert "--exposure requires --task counts" in shell.error(*start, "--exposure", "months")
    counts = [*start, "--task", "counts"]
    assert "--exposure weeks: the data have no numeric column" in shell.error(*counts, "--exposure", "weeks")
    assert "exposure must be positive" in shell.error(*counts, "--exposure", "gene3")
    both = [*counts, "--exposure", "months", "--offset", table]
    assert "--exposure and another offset cannot be combined" in shell.error(*both)
