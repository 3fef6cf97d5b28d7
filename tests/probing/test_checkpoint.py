"""Checkpoints: killed runs can be resumed."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import zipfile

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.model_selection import KFold

from coterie import DependencyAwareSelector, EstimatorCriterion, KNNCriterion
from tests.conftest import grouped_matrix
from tests.probing.test_selector import assert_same

SCRIPT = """
import os
import time
import numpy as np
from coterie import DependencyAwareSelector

def slow(X, y):
    time.sleep(float(os.environ.get("SECONDS_PER_PROBE", 0)))
    return float(np.abs(np.corrcoef(X.sum(axis=1), y)[0, 1]))

def fit(**options):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 25)), rng.standard_normal(40)
    return DependencyAwareSelector(slow, n_features_to_select=3, n_probes=300, random_state=7, **options).fit(X, y)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9")
def test_killed_in_the_middle_and_resumed(tmp_path, monkeypatch):
    (tmp_path / "slow_ranking.py").write_text(SCRIPT)
    checkpoint = tmp_path / "run.npz"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    script = "import sys; from slow_ranking import fit; fit(checkpoint=sys.argv[1])"
    # The run takes at least 30 seconds, so that a busy machine does not miss the moment between two checkpoints.
    environment = {**os.environ, "SECONDS_PER_PROBE": "0.1"}
    process = subprocess.Popen([sys.executable, "-c", script, str(checkpoint)], env=environment)
    deadline = time.monotonic() + 60
    try:
        while time.monotonic() < deadline and process.poll() is None:
            if checkpoint.exists() and 0 < saved_probes(checkpoint) < 300:
                break
            time.sleep(0.01)
        assert process.poll() is None, "the run ended before it could be killed"
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    n_saved = saved_probes(checkpoint)
    assert 0 < n_saved < 300
    from slow_ranking import fit

    resumed = fit(checkpoint=checkpoint)
    assert_same(resumed, fit())
    assert saved_probes(checkpoint) == 300
    assert [path.name for path in tmp_path.glob("*.npz*")] == ["run.npz"]


def saved_probes(path):
    with np.load(path, allow_pickle=False) as archive:
        return len(archive["values"])


@pytest.fixture
def data(rng):
    return grouped_matrix(rng)


def selector(path, **options):
    return DependencyAwareSelector(
        **{"criterion": "ridge", "n_features_to_select": 3, "n_probes": 100, "random_state": 0, "checkpoint": path, **options}
    )


def test_continues_from_the_checkpoint(data, tmp_path):
    path = tmp_path / "run"
    selector(path, n_probes=60).fit(*data)
    model = selector(path).fit(*data)
    assert_same(model, selector(None).fit(*data))
    assert saved_probes(path) == 100
    fewer = selector(path, n_probes=30).fit(*data)  # uses the first 30 and leaves the file unchanged
    assert_same(fewer, selector(None, n_probes=30).fit(*data))
    assert saved_probes(path) == 100
    coverage = selector(path, n_probes=None, min_coverage=5).fit(*data)
    assert_same(coverage, selector(None, n_probes=None, min_coverage=5).fit(*data))


def test_saved_probes_are_not_evaluated_again(data, tmp_path):
    path, n_calls = tmp_path / "run", [0]

    def counted(X, y):
        n_calls[0] += 1
        return float(X.sum())

    selector(path, criterion=counted, n_probes=60).fit(*data)
    assert n_calls == [60]
    selector(path, criterion=counted).fit(*data)
    assert n_calls == [100]


def test_seed_of_an_unseeded_run_is_saved(data, tmp_path):
    path = tmp_path / "run"
    first = selector(path, random_state=None, n_probes=60).fit(*data)
    again = selector(path, random_state=None, n_probes=60).fit(*data)
    assert_same(first, again)
    longer = selector(path, random_state=None).fit(*data)
    np.testing.assert_array_equal(longer._sums.values[:60], first._sums.values)


def test_warm_start_with_a_checkpoint(data, tmp_path):
    path = tmp_path / "run"
    model = selector(path, warm_start=True, n_probes=60).fit(*data)
    model.set_params(n_probes=100).fit(*data)
    assert_same(model, selector(None).fit(*data))
    assert saved_probes(path) == 100


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": 1}, r"made with different data \(X\)"),
        ({"y": 1}, r"made with different labels \(y\)"),
        ({"cv": KFold(3)}, r"made with different folds \(cv\)"),
        ({"criterion": KNNCriterion(5)}, "made with a different criterion"),
        ({"max_probe_size": 7}, "made with a different max_probe_size"),
        ({"random_state": 1}, "made with a different random_state"),
    ],
)
def test_checkpoint_of_another_run_is_refused(data, tmp_path, change, message):
    X, y = data
    path = tmp_path / "run"
    selector(path, criterion="knn").fit(X, y)
    before = path.read_bytes()
    X, y = X + change.pop("X", 0), y * (1 - 2 * change.pop("y", 0))
    with pytest.raises(ValueError, match=message):
        selector(path, **{"criterion": "knn", **change}).fit(X, y)
    assert path.read_bytes() == before


def test_other_stopping_rules_and_workers_are_accepted(data, tmp_path):
    path = tmp_path / "run"
    common = {"sampling": "uniform"}  # adaptive probes depend on the number of features to select
    selector(path, n_probes=50, **common).fit(*data)
    other = selector(path, n_jobs=2, variant="daf1", n_features_to_select=5, max_seconds=100, **common).fit(*data)
    assert_same(other, selector(None, variant="daf1", n_features_to_select=5, **common).fit(*data))


def test_nested_parameters_count(data, tmp_path):
    path = tmp_path / "run"
    selector(path, criterion=EstimatorCriterion(LogisticRegression(C=1)), n_probes=30, max_probe_size=40).fit(*data)
    with pytest.raises(ValueError, match="a different criterion"):
        selector(path, criterion=EstimatorCriterion(LogisticRegression(C=2)), n_probes=30, max_probe_size=40).fit(*data)


@pytest.mark.parametrize("damage", ["empty", "cut", "text", "flipped", "other"])
def test_damaged_files_are_refused(data, tmp_path, damage):
    path = tmp_path / "run"
    selector(path).fit(*data)
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 0xFF
    path.write_bytes({"empty": b"", "cut": content[:-300], "text": b"hello", "flipped": content, "other": content}[damage])
    if damage == "other":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", b"1")
    with pytest.raises(ValueError, match=r"is damaged or not a Coterie checkpoint\. Remove it"):
        selector(path).fit(*data)


@pytest.mark.parametrize("damage", ["method", "encrypted", "bomb", "key", "keys", "values", "text"])
def test_malformed_archives_are_refused(data, tmp_path, damage):
    path = tmp_path / "run"
    selector(path).fit(*data)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    changes = {
        "key": lambda text: text.replace(b'"key": [', b'"key": [-1, '),
        "keys": lambda text: re.sub(rb'"key": \[[0-9]+', b'"key": [' + b"9" * 30, text),
        "text": lambda text: b"[" * len(text),
    }
    if damage in changes:
        header = np.load(io.BytesIO(parts["header.npy"])).tobytes()
        buffer = io.BytesIO()
        np.save(buffer, np.frombuffer(changes[damage](header), dtype=np.uint8))
        parts["header.npy"] = buffer.getvalue()
    if damage == "values":
        parts["values.npy"] = parts["values.npy"][:-8] + np.float64(np.nan).tobytes()
    if damage == "bomb":
        parts["values.npy"] += bytes(10_000_000)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if damage == "bomb" else zipfile.ZIP_STORED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    content = bytearray(path.read_bytes())
    if damage in ("method", "encrypted"):
        for start, at in ((b"PK\x03\x04", (8, 6)), (b"PK\x01\x02", (10, 8))):
            content[content.index(start) + at[damage == "encrypted"]] = 99 if damage == "method" else 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"is damaged or not a Coterie checkpoint\. Remove it"):
        selector(path).fit(*data)


def test_pickles_are_not_loaded(data, tmp_path):
    path = tmp_path / "run"
    np.savez(tmp_path / "run.npz", header=np.array([{"a": 1}], dtype=object), values=np.zeros(3))
    os.replace(tmp_path / "run.npz", path)
    with pytest.raises(ValueError, match="is damaged or not a Coterie checkpoint"):
        selector(path).fit(*data)


def test_unwritable_path_is_refused_before_evaluation(data, tmp_path):
    def never(X, y):
        raise AssertionError

    with pytest.raises(ValueError, match=r"the folder .* does not exist"):
        selector(tmp_path / "no" / "run", criterion=never).fit(*data)
    with pytest.raises(ValueError, match="is a folder"):
        selector(tmp_path, criterion=never).fit(*data)


def test_full_disk_warns(data, tmp_path, monkeypatch):
    path = tmp_path / "run"
    original, n_saves = os.replace, [0]

    def full(*arguments):
        n_saves[0] += 1
        if n_saves[0] > 1:
            raise OSError(28, "No space left on device")
        return original(*arguments)

    monkeypatch.setattr("coterie.files.atomic.os.replace", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        model = selector(path).fit(*data)
    assert model.n_probes_ == 100
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    monkeypatch.undo()
    assert_same(selector(path).fit(*data), model)


def test_files_left_by_a_killed_run_are_removed(data, tmp_path):
    code = f"""
        import os, signal
        from coterie.probing.checkpoint import Checkpoint
        os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
        Checkpoint({str(tmp_path / "run")!r}, {{}}).save([1.0], (1, 2))
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    selector(tmp_path / "run").fit(*data)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_only_format_version_1_is_read(data, tmp_path):
    path = tmp_path / "run"
    selector(path).fit(*data)
    with np.load(path, allow_pickle=False) as archive:
        header, values = json.loads(archive["header"].tobytes()), archive["values"]
    assert (header["format"], header["version"]) == ("coterie probes", 1)
    text = json.dumps(header | {"version": 2}).encode()
    np.savez(tmp_path / "other.npz", header=np.frombuffer(text, dtype=np.uint8), values=values)
    with pytest.raises(ValueError, match=r"has format version 2, but this version of Coterie reads version 1\. Remove it\."):
        selector(tmp_path / "other.npz").fit(*data)


def mean_of_columns(X, y):
    return float(X.mean())


def spread_of_columns(X, y):
    return float(X.std())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (mean_of_columns, spread_of_columns),
        (EstimatorCriterion(LogisticRegression(), scoring=make_scorer(accuracy_score)),
         EstimatorCriterion(LogisticRegression(), scoring=make_scorer(f1_score))),
        (EstimatorCriterion(LogisticRegression(class_weight={-1: 1, 1: 2})),
         EstimatorCriterion(LogisticRegression(class_weight={-1: 1, 1: 3}))),
    ],
)  # fmt: skip
def test_functions_and_dictionaries_distinguish_criteria(data, tmp_path, first, second):
    path = tmp_path / "run"
    selector(path, criterion=first, n_probes=30).fit(*data)
    selector(path, criterion=first, n_probes=31).fit(*data)
    with pytest.raises(ValueError, match="a different criterion"):
        selector(path, criterion=second, n_probes=31).fit(*data)
