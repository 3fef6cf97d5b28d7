"""The other commands, the help, and the options made from signatures."""

import inspect
import json
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

from coterie import __version__, correlation_profile
from coterie._parameters import read_size
from coterie.cli.app import app, report
from coterie.cli.parameters import parse_settings, parse_value, put_setting, read_parameters
from coterie.cli.rank import known_methods
from coterie.data import open_features
from coterie.methods import DISCOVERY
from tests.cli.conftest import runner

COMMANDS = ["demo", "discover", "rank", "profile", "convert", "info", "predict", "replicate", "warm-up"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(shell, command):
    text = shell(command, "--help").stdout
    assert "Examples" in text
    assert f"coterie {command}" in text
    if command not in ("demo", "rank", "warm-up"):
        assert "DATA" in text or "PATH" in text


def test_the_start_page_lists_the_commands(shell):
    text = shell("--help").stdout
    assert all(command in text for command in COMMANDS)
    assert shell("--version").stdout.strip() == f"coterie {__version__}"
    nothing = runner().invoke(app, [])
    assert "Usage" in nothing.stdout + nothing.stderr
    assert nothing.exit_code in (0, 2)  # click before 8.2 and since


def test_unknown_commands(shell):
    assert "No such command 'dicsover'" in shell.error("dicsover").replace('"', "'")


@pytest.mark.parametrize("place", [*DISCOVERY.values(), *(method.place for method in known_methods().values())])
def test_signatures_read_from_the_source_are_the_real_ones(place):
    module, _, name = place.partition(":")
    real = inspect.signature(getattr(import_module(module), name))
    expected = {p.name: p.default for p in real.parameters.values() if p.name not in ("X", "y")}
    assert {p.name: p.default for p in read_parameters(place)} == expected
    assert all(p.help for p in read_parameters(place))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3), ("-2", -2), ("1e-3", 0.001), ("inf", np.inf), ("None", None), ("true", True), ("False", False),
        ("abc", "abc"), ("a,b", ["a", "b"]), ("1,2", [1, 2]), ('{"a": 1}', {"a": 1}), ("[1, 2]", [1, 2]), ("", ""), (7, 7),
    ],
)  # fmt: skip
def test_values(text, value):
    assert parse_value(text) == value


def test_settings(tmp_path):
    assert parse_settings(["n-bins=4", "a=b=c"], "--set") == {"n_bins": 4, "a": "b=c"}
    with pytest.raises(ValueError, match="name=value"):
        parse_settings(["=3"], "--set")
    chosen = {"a": 1}
    put_setting(chosen, "b.c", 2, "--set")
    put_setting(chosen, "b.d", 3, "--set")
    assert chosen == {"a": 1, "b": {"c": 2, "d": 3}}
    for wrong in ("a.b", "b."):
        with pytest.raises(ValueError, match=r"name\.key=value"):
            put_setting(chosen, wrong, 1, "--set")
    (tmp_path / "list").write_text("gene1\n\n7\n")
    assert parse_value(f"@{tmp_path / 'list'}") == ["gene1", 7]


def test_profile(shell, svm):
    content = shell.json("profile", svm, "--bins", "0,0.5,1", "--csv", "p.csv", "--png", "p.png")
    expected = correlation_profile(open_features(svm).source, bins=[0, 0.5, 1])
    assert content == json.loads(expected.to_json())
    assert (shell.folder / "p.csv").read_text().startswith("low,high,pairs")
    assert (shell.folder / "p.png").read_bytes()[1:4] == b"PNG"
    result = shell("profile", svm, "--pairs", "100", "--random-state", "0")
    assert "drawn at random" in result.stdout
    assert "does not exist. Create it before writing" in shell.error("profile", svm, "--png", "no/p.png")
    assert "increasing edges" in shell.error("profile", svm, "--bins", "0.5,1")


def test_convert_and_check(shell, svm):
    result = shell("convert", svm, "data.store", "--memory", "64M")
    assert "60 samples, 40 features" in result.stdout
    assert "[convert]" in result.stderr
    assert shell.json("info", "data.store", "--check")["checksums"] == "correct"
    assert shell.json("info", "data.store")["format"] == "store"
    assert "--overwrite" in shell.error("convert", svm, "data.store")
    assert shell.json("convert", svm, "data.store", "--overwrite")["features"] == 40
    first = shell.json("discover", "--fast", svm, "-o", "a", "--n-features-to-select", "4")
    second = shell.json("discover", "--fast", "data.store", "-o", "b", "--n-features-to-select", "4")
    assert first["groups"] == second["groups"]
    assert "is not a size of memory" in shell.error("convert", svm, "x.store", "--memory", "lots")


@pytest.mark.parametrize("text", ["", "G", "1X", "-1G", "nan", "inf"])
def test_sizes(text):
    with pytest.raises(ValueError, match="such as 500M or 4G"):
        read_size(text)


def test_a_flipped_byte_in_a_store_is_found(shell, svm):
    shell("convert", svm, "data.store", "--quiet")
    largest = max((shell.folder / "data.store").rglob("*.npy"), key=lambda path: path.stat().st_size)
    damaged = bytearray(largest.read_bytes())
    damaged[-3] ^= 1
    largest.write_bytes(damaged)
    assert "data.store" in shell.error("info", "data.store", "--check")


def test_demo(shell):
    result = shell("demo", "--seed", "3", "--n-features", "200")
    assert "Groups, in order of discovery" in result.stdout
    assert "Recovery:" in result.stdout
    assert "true weight" in result.stdout
    assert (shell.folder / "coterie-demo" / "report.html").exists()
    content = shell.json("demo", "--seed", "3", "--n-features", "200")  # replaces its own result
    assert content["recovery"] > 0.8
    assert shell.json("info", "coterie-demo")["groups"] == 16
    assert "--n-features" in shell.error("demo", "--n-features", "5")


def test_the_command_is_installed():
    result = subprocess.run([sys.executable, "-m", "coterie", "--version"], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == f"coterie {__version__}"


def test_help_does_not_import_the_heavy_libraries():
    code = (
        "import sys; sys.argv = ['coterie', 'discover', '--help']\n"
        "from coterie.cli import main\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        "assert not {'sklearn', 'numba', 'scipy', 'numpy', 'pandas'} & set(sys.modules), 'slow to start'"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(5, "Input/output error", "x.csv"), "coterie: x.csv: Input/output error."),
        (
            OSError(24, "Too many open files"),
            "System error: Too many open files. Raise the limit (ulimit -n).",
        ),
        (OSError(24, "Too many open files", "x.csv"), "coterie: x.csv: Too many open files. Raise the limit (ulimit -n)."),
        (OSError("x.csv is damaged."), "coterie: x.csv is damaged."),
    ],
)
def test_errors_of_the_system_have_no_numbers(error, words, capsys):
    assert report(error) == 2
    assert words in capsys.readouterr().err


def test_an_archive_that_is_none(shell):
    (shell.folder / "a.npz").write_text("1,2")
    assert shell.error("info", "a.npz", "--format", "npz").startswith(
        "coterie: a.npz: The file is damaged or not an .npz file"
    )
