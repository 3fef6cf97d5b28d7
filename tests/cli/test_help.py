"""The help: common options by default, all options in panels, and defaults that are really used."""

import re

import numpy as np
import pytest
import typer
from sklearn.datasets import dump_svmlight_file

from coterie.cli.app import app
from coterie.cli.help import PANELS
from coterie.cli.parameters import parse_value, read_parameters
from coterie.comparison import run as comparison_run
from coterie.comparison import trial
from tests.cli.conftest import runner

COMMANDS = typer.main.get_command(app).commands
# Words for defaults that are None in Python.
NONE = {"no limit", "all cores", "none", "the value of --threshold"}
SCORES = {"accuracy": "accuracy", "r2": "R²", "balanced_accuracy": "balanced accuracy"}


def page(*words, width=120):
    """The help as lines without frames."""
    result = runner().invoke(app, list(words), env={"COLUMNS": str(width)})
    assert result.exit_code == 0
    return result.stdout


def options(text):
    """Long names of the options that a help page lists."""
    return {name.replace("[no-]", "") for name in re.findall(r"^│ (--[\w\[\]-]+)", text, flags=re.MULTILINE)}


def names(command):
    """Long names of all options of a command, the first one of each."""
    found = [p for p in COMMANDS[command].params if p.param_type_name == "option"]
    return {next(name for name in option.opts if name.startswith("--")) for option in found} | {"--help"}


def default_of(option, task="classification"):
    """The default that the help of an option shows for a task; None if it shows none."""
    match = re.search(r"\\\[default: (.*)\]$", option.help)
    if match is None:
        return None
    first, *others = match[1].replace("\\[", "[").split("; ")
    own = [part.removesuffix(f" for {task}") for part in others if part.endswith(f" for {task}")]
    return (own or [first])[0]


def test_discover_shows_about_ten_options():
    text = page("discover", "--help")
    shown = options(text) - {"--help", "--help-all"}
    assert 8 <= len(shown) <= 12
    assert {"--label", "--task", "--output", "--overwrite", "--max-features-to-select", "--scoring", "--fast"} <= shown
    n_hidden = len(names("discover") - options(text))
    assert text.strip().splitlines()[-1].strip().endswith(f"{n_hidden} more options: coterie discover --help-all")
    for title in ("Data", "Genetics", "Cluster"):
        assert f"╭─ {title} ─" not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_all_options_are_shown_on_demand(command):
    text = page(command, "--help-all")
    assert options(text) == names(command)
    titles = re.findall(r"^╭─ ([\w ]+) ─", text, flags=re.MULTILINE)
    shown = [title for title in titles if title not in ("Arguments", "Options")]
    assert shown == [panel for panel in PANELS if panel in shown]
    assert "more option" not in text
    assert options(page(command, "--help")) <= options(text)  # and the options are as they were afterwards
    assert page(command, "--help-all") == text


def test_the_panels_of_discover():
    text = page("discover", "--help-all")
    parts = {part.split(" ─")[0]: options(part) for part in text.split("╭─ ")[1:]}
    assert parts["Cluster"] == {"--dask"}
    assert "--covar" in parts["Data"]
    assert {"--covar-name", "--clump-kb", "--association", "--phenotype"} <= parts["Genetics"]
    tables = {
        "--impute",
        "--keep-numeric",
        "--drop",
        "--categories",
        "--dates",
        "--weight",
        "--delimiter",
        "--decimal",
        "--sheet",
    }
    assert tables == parts["Tables"]
    assert {"--n-pairs", "--rule", "--cv", "--Cs"} <= parts["Validation"]
    assert {"--threshold", "--correlation"} <= parts["Group discovery"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("width", [80, 120])
def test_help_is_plain_text(command, width):
    text = page(command, "--help-all", width=width)
    for mark in (
        ":class:",
        ":func:",
        ":meth:",
        "``",
        "docs/",
        " VALUE ",
        "<bool>",
        "<str>",
        "<int",
        "<float>",
        "[dim]",
        "\\[",
    ):
        assert mark not in text
    assert "…" not in text  # no name or word is cut
    boxes = [line for line in text.splitlines() if line.startswith(("│", "╭", "╰"))]
    assert {len(line) for line in boxes} == {width}


@pytest.mark.parametrize("command", COMMANDS)
def test_descriptions_are_sentences(command):
    for parameter in COMMANDS[command].params:
        text = re.sub(r" \\\[default: .*\]$", "", parameter.help)
        assert text[0].isupper() or text[0] in ".", parameter.name
        assert text.endswith("."), (parameter.name, text)


@pytest.fixture
def small(shell):
    """30 samples of each class, 8 features; the file has the labels of a task."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, -1], 30)
    X = (
        np.repeat(rng.standard_normal((60, 4)), 2, axis=1)
        + 0.1 * rng.standard_normal((60, 8))
        + y[:, None] * np.tile([1, 0], 4)
    )
    for task, labels in {"classification": y, "regression": X[:, 0] + rng.standard_normal(60), "one-class": y}.items():
        dump_svmlight_file(X, labels, f"{task}.svm", zero_based=False)
    return shell


@pytest.mark.parametrize("task", ["classification", "regression", "one-class"])
def test_defaults_of_discover_are_those_of_a_run(small, task):
    """Every default in the help is compared with the settings in result.json of a run without options."""
    content = small.json("discover", f"{task}.svm", "--task", task)
    parameters, checked = content["parameters"], set()
    for option in COMMANDS["discover"].params:
        if option.name not in parameters:
            continue
        shown = default_of(option, task)
        if option.is_flag and shown is None:
            assert parameters[option.name] is option.opts[0].startswith("--no-")
        elif option.name == "scoring":
            assert content["held_out"]["score"] == SCORES[shown]
        else:
            expected = None if shown in NONE else parse_value(shown)
            assert parameters[option.name] == expected, option.name
        checked.add(option.name)
    assert {"rule", "Cs", "cv", "random_state", "max_features_to_select", "threshold"} <= checked
    # --max-distance sets compatibility.
    assert set(parameters) - checked <= {"verbose", "nested", "compatibility"}
    for name in ("n_features_to_select", "C"):
        option = next(option for option in COMMANDS["discover"].params if option.name == name)
        assert default_of(option) == "chosen by validation"
        assert name not in parameters
    for name in ("n_pairs", "n_permutations") if task != "one-class" else ("n_pairs",):
        option = next(option for option in COMMANDS["discover"].params if option.name == name)
        shown = default_of(option)
        assert content["confidence"][name] in (range(5, 10) if shown == "auto" else [int(shown)])


def test_defaults_of_a_fast_run(small):
    parameters = small.json("discover", "classification.svm", "--fast")["parameters"]
    assert parameters["n_features_to_select"] == "auto"  # up to 100 features
    assert {p.name: p.default for p in read_parameters("coterie.estimators.classifier:GroupDiscoveryClassifier")}[
        "n_features_to_select"
    ] == 100
    assert parameters["C"] == "auto"
    assert parameters["cv"] is None


def test_defaults_of_the_other_commands():
    compare = {option.name: option for option in COMMANDS["compare"].params}
    assert default_of(compare["methods"]).split(", ") == trial.default_methods("classification")
    assert default_of(compare["methods"], "regression").split(", ") == trial.default_methods("regression")
    assert parse_value(default_of(compare["n_features"])) == list(comparison_run._SIZES)
    profile = {option.name: option for option in COMMANDS["profile"].params}
    defaults = {p.name: p.default for p in read_parameters("coterie.correlation.profile:correlation_profile")}
    assert (profile["bins"].default, profile["confidence"].default) == (str(defaults["bins"]), defaults["confidence"])


@pytest.mark.parametrize(
    ("command", "words", "expected"),
    [
        ("discover", ["--target", "y"], "No such option: --target. Did you mean --label?"),
        ("discover", ["--y", "y"], "No such option: --y. Did you mean --label?"),
        ("rank", ["-y", "y"], "No such option: -y. Did you mean --label?"),
        ("discover", ["--treshold", "0.5"], "No such option: --treshold. Did you mean --threshold or --thresholds?"),
        ("discover", ["--n-bin", "5"], "No such option: --n-bin. Did you mean --n-bins"),  # not among the common options
        ("discover", ["--threads", "2"], "No such option: --threads. Did you mean --n-jobs?"),
        ("discover", ["--seed", "2"], "No such option: --seed. Did you mean --random-state?"),
    ],
)
def test_unknown_options_get_a_suggestion(shell, svm, command, words, expected):
    assert shell.error(command, svm, *words).startswith(f"coterie: {expected}")


@pytest.mark.parametrize("command", ["discover", "compare"])
def test_unknown_scores_get_a_suggestion(shell, svm, command):
    message = shell.error(command, svm, "--scoring", "auc")
    assert message.startswith("coterie: --scoring auc must be the name of a score of scikit-learn")
    assert message.endswith("Did you mean 'roc_auc'?")
