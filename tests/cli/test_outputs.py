"""Output files: errors before the work if they cannot be written, full disks, and control characters."""

import csv
import io
import os
import pty
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie import DependencyAwareSelector
from coterie.cli.app import app
from coterie.comparison import run
from coterie.data import open_features
from coterie.files import claimed
from coterie.progress import RoundProgress
from coterie.report.table import guarded, unguarded, write_rows
from coterie.terminal import printable
from tests.cli.conftest import runner
from tests.comparison.conftest import Inline

EVIL = ["\x1b[2J", "\x1b]0;owned\x07", "\x9b31m", "a\u202eb", "\r", "\x7f", "\u2066x", "\ud800"]
SHORT = ("--n-features-to-select", "3")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def model(shell, svm):
    shell("discover", "--fast", svm, "-o", "out", *SHORT, "--quiet")
    return "out"


# Before the work -------------------------------------------------------------------------------


def commands(model="out"):
    """Every option that names a file or folder to write, with the place to put it."""
    return {
        "discover -o": ["discover", "--fast", "data.svm", "-o", "{}"],
        "discover --model": ["discover", "--fast", "data.svm", "-o", "new", "--model", "{}"],
        "predict": ["predict", model, "data.svm", "-o", "{}"],
        "rank": ["rank", "data.svm", "-o", "{}"],
        "checkpoint": ["rank", "data.svm", "--method", "daf", "--set", "checkpoint={}"],
        "profile --csv": ["profile", "data.svm", "--csv", "{}"],
        "profile --png": ["profile", "data.svm", "--png", "{}"],
        "convert": ["convert", "data.svm", "{}"],
        "compare": ["compare", "data.svm", "-o", "{}", "--methods", "fisher"],
        "demo": ["demo", "-o", "{}"],
    }


@pytest.fixture
def lazy(monkeypatch):
    """Data that must not be opened."""

    def never(*_, **__):
        pytest.fail("refused only after work")

    monkeypatch.setattr("coterie.data.open_features", never)
    monkeypatch.setattr("coterie.data.readers.collect.read_into_memory", never)
    monkeypatch.setattr("coterie.data.store.writing.pieces", never)
    monkeypatch.setattr("coterie.datasets.make_support_affiliated", never)


@pytest.mark.parametrize("name", commands())
def test_a_place_that_is_not_there_is_refused_before_the_work(shell, svm, model, lazy, name):
    words = [word.format("nowhere/x") for word in commands()[name]]
    assert "Folder nowhere does not exist" in shell.error(*words)
    assert names(shell.folder) == ["data.svm", "out"]


@pytest.mark.parametrize("name", commands())
def test_a_place_that_another_writes_to_is_refused_before_the_work(shell, svm, model, lazy, name):
    words = [word.format("place") for word in commands()[name]]
    target = shell.folder / "place"
    if name == "compare":  # which claims its rows, in the folder
        target.mkdir()
        target /= "rows.jsonl"
    with ThreadPoolExecutor(1) as other, claimed(target):
        message = other.submit(shell.error, *words).result()
    assert re.search(r"Another writer \(PID \d+ on .*\) is writing to .*place.*\. Wait until it has finished", message)


def test_a_checkpoint_has_one_run_at_a_time(shell, svm):
    data = open_features(svm)
    selector = DependencyAwareSelector(checkpoint=shell.folder / "probes", n_probes=100, random_state=0)
    with claimed(shell.folder / "probes"), ThreadPoolExecutor(1) as other:
        with pytest.raises(BlockingIOError, match="Another writer"):
            other.submit(selector.fit, data.source, data.y).result()
        selector.fit(data.source, data.y)
    assert names(shell.folder) == ["data.svm", "probes"]


def test_a_result_with_other_files_in_it_is_not_replaced(shell, svm, model):
    (shell.folder / "out" / "notes.txt").write_text("mine")
    for words in (["discover", "--fast", svm, "-o", "out", "--overwrite"], ["demo", "-o", "out"]):
        assert "out contains files that are not part of a Coterie result (notes.txt)" in shell.error(*words)
    assert (shell.folder / "out" / "notes.txt").read_text() == "mine"
    (shell.folder / "out" / "notes.txt").unlink()
    shell("discover", "--fast", svm, "-o", "out", "--overwrite", *SHORT, "--quiet")


def test_only_our_own_store_is_replaced(shell, svm):
    (shell.folder / "m").mkdir()
    (shell.folder / "m" / "header.json").write_text("{}")
    (shell.folder / "m" / "precious.npy").write_text("precious")
    assert "not a Coterie store" in shell.error("convert", svm, "m", "--overwrite")
    assert names(shell.folder / "m") == ["header.json", "precious.npy"]


def test_a_link_stays_and_its_target_is_replaced(shell, svm, model):
    (shell.folder / "link").symlink_to("out")
    shell("discover", "--fast", svm, "-o", "link", "--overwrite", "--n-features-to-select", "2", "--quiet")
    assert (shell.folder / "link").is_symlink()
    assert len((shell.folder / "out" / "groups.csv").read_text().splitlines()) > 1
    assert names(shell.folder) == ["data.svm", "link", "out"]


# Full disks ------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="needs a small file system of one's own")
@pytest.mark.parametrize(
    "name",
    [
        *("discover -o", "predict", "convert"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("discover --model", "rank", "profile --csv", "compare")),
    ],
)
def test_a_full_disk_is_one_line_with_file_and_amounts(shell, svm, model, name):
    """On a file system of a few pages; the kernel may not allow to mount one."""
    words = [word.format("small/x") for word in commands()[name]]
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no name spaces for mounts")
    (shell.folder / "small").mkdir()
    # Room for a claim and the folders, and not for the file.
    script = 'mount -t tmpfs -o size=4k none small && head -c 4096 /dev/zero > small/filler; exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", sys.executable, "-m", "coterie", *words, "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=shell.folder)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert re.fullmatch(
        r"coterie: .*small/.*: No space left on device \((.* were written, )?0\.0 MB are free\)\. Nothing was saved\. .*", line
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_standard_output(shell, svm, model):
    for words in (["predict", "out", "data.svm"], ["info", "data.svm"], ["info", "data.svm", "--json"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "coterie", *words, "--quiet"],
                stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=shell.folder,
            )  # fmt: skip
        assert (done.returncode, done.stderr) == (2, "coterie: standard output: No space left on device.\n")


# Terminals -------------------------------------------------------------------------------------


def is_harmless(text):
    return not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", text)


@given(st.text())
def test_printable_text_commands_nothing(text):
    assert is_harmless(printable(text))
    assert printable(printable(text)) == printable(text)


def test_ordinary_text_is_printed_as_it_is():
    for text in ("Ångström µ 基因 🧬", "two\nlines", "± – … “x”", "e\u0301", "क्ष", "\u200d"):
        assert printable(text) == text


@pytest.fixture
def inline(monkeypatch):
    monkeypatch.setattr(run, "Schedule", Inline)


@pytest.fixture
def evil_table(shell):
    """Features, classes and a file with names that command terminals."""
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    columns = [f"{name.strip() or 'cr'}{j}" for j, name in enumerate(EVIL[:-1])]
    path = shell.folder / "evil\x1b[31m.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, "label"])
        for label in y:
            writer.writerow([*(rng.standard_normal(len(columns)) + label).round(3), f"class\x1b[{label}m"])
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["info", "{data}"],
        ["discover", "--fast", "{data}", "-o", "out\x1b[0m", *SHORT],
        ["rank", "{data}"],
        ["profile", "{data}"],
        ["compare", "{data}", "-o", "cmp\x9b1m", "--methods", "fisher", "--n-features", "2", "--cv", "2"],
        ["convert", "{data}", "store\x1b[0m"],
        ["discover", "--fast", "{data}", "--label", "no\x1b[2Jsuch"],
        ["rank", "{data}", "--method", "\x1b[2J"],
        ["info", "missing\x1b[2J"],
        ["info", "{data}", "--no\x1b[2J"],
        ["info", "missing\x1b[2J", "--debug"],
    ],
)
def test_names_do_not_command_the_terminal(shell, evil_table, words, inline):
    done = runner().invoke(app, [word.format(data=evil_table.name) for word in words])
    assert done.exit_code in (0, 2), done.output
    assert is_harmless(done.stdout)
    assert is_harmless(done.stderr)
    assert "\\x1b" in done.stdout + done.stderr


@given(st.lists(st.sampled_from(EVIL), max_size=3))
def test_progress_is_harmless(parts):
    error = io.StringIO()
    before, sys.stderr = sys.stderr, error
    try:
        with RoundProgress(3, 1, "compare") as bar:
            bar.update(1, "".join(parts))
    finally:
        sys.stderr = before
    assert is_harmless(error.getvalue())


@pytest.mark.skipif(not hasattr(os, "forkpty"), reason="needs a terminal")
def test_predictions_on_a_terminal_and_in_a_pipe(shell, evil_table):
    shell("discover", "--fast", evil_table.name, "-o", "out", *SHORT, "--quiet")
    words = [sys.executable, "-m", "coterie", "predict", "out", evil_table.name, "--quiet"]
    piped = subprocess.run(words, capture_output=True, text=True, check=True, cwd=shell.folder).stdout
    assert "class\x1b[0m" in piped  # programs get the names as they are
    master, slave = pty.openpty()
    with subprocess.Popen(words, stdout=slave, stderr=slave, cwd=shell.folder) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
    os.close(master)
    assert process.returncode == 0
    assert b"class\\x1b[0m" in shown
    assert b"\x1b" not in shown


# Tables ----------------------------------------------------------------------------------------


@given(st.text())
def test_every_text_comes_back(text):
    assert unguarded(guarded(text)) == text


@pytest.mark.parametrize("text", ["=cmd()", "+1+2", "-2+3", "@SUM(A1)", "\t=x", "\r=x", "'=x", "-1e", "＝cmd()"])
def test_formulas_are_guarded(text):
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-0.5", "+1", "-1e-9", "-inf", "gene", "5'UTR", "'x'", "", "+", "-", "a=b", "-0"])
def test_what_is_no_formula_stays(text):
    assert guarded(text) == text


def test_cells_of_tables():
    file = io.StringIO()
    write_rows(file, [{"=a": "=b", "x": -0.5, "y": -3, "z": "-0.5"}], ["=a", "x", "y", "z"])
    assert list(csv.reader(io.StringIO(file.getvalue()))) == [["'=a", "x", "y", "z"], ["'=b", "-0.5", "-3", "-0.5"]]


@pytest.mark.parametrize(
    "settings",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "ascii:strict"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=lambda settings: "-".join(settings.values()),
)
def test_an_output_that_has_few_characters(shell, settings):
    """The files are written, so the command must not fail because of a name or an ellipsis."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 8))
    X[:, 1:7] = X[:, :1] + 0.01 * X[:, 1:7]
    rows = [",".join([*(f"gén{j}→" for j in range(8)), "y"])]
    rows += [",".join([*map(repr, row.tolist()), "αβ"[int(row[0] > 0)]]) for row in X]
    (shell.folder / "data.csv").write_text("\n".join(rows), encoding="utf-8")
    command = [sys.executable, "-m", "coterie", "discover", "--fast", "data.csv", "-o", "out", *SHORT]
    environment = os.environ | settings
    done = subprocess.run(command, capture_output=True, check=False, cwd=shell.folder, env=environment)
    assert done.returncode == 0, done.stderr
    assert b"\\u2192" in done.stdout
    assert b"Traceback" not in done.stderr
    lines = [line for line in done.stdout.decode("latin-1").splitlines() if line.startswith(("|", "+"))]
    assert len({len(line) for line in lines}) <= 1  # the table was laid out with the escapes
    assert "result.json" in names(shell.folder / "out")
    help = subprocess.run([sys.executable, "-m", "coterie", "--help"], capture_output=True, check=False, env=environment)
    assert help.returncode == 0
