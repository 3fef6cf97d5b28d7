"""Compilation in advance: what is in the cache is not compiled again, in another process and with other data."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from coterie import _numba, compilation
from coterie._numba import cache_folder, recorded_compilations
from coterie.kernels.columns import kth_largest
from tests.cli.conftest import Shell

# Count the compiled kernels of Coterie while a script runs.
COUNTED = """
import json, numpy as np
from scipy import sparse
from coterie._numba import recorded_compilations
from coterie.compilation import warm_up
from coterie import *
X = np.random.default_rng(1).standard_normal((150, 40))
S = sparse.csc_array(X * (X > 0.5))
y = X[:, 0] + X[:, 1]
with recorded_compilations() as compilations:
{script}
print(json.dumps([one.name for one in compilations if one.module.startswith("coterie")]))
"""


def compiled(script, cache):
    """Return the kernels that a script compiles in a fresh process with a folder for the cache."""
    code = COUNTED.format(script="\n".join(f"    {line}" for line in script))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_is_compiled_after_a_warm_up(tmp_path):
    first = compiled(["warm_up(['one class'])"], tmp_path)
    assert {"feature_major_products", "sample_major_products", "csc_products"} <= set(first)
    fits = [f"GroupDiscoveryOneClass(5).fit({X})" for X in ("X", "np.asfortranarray(X)", "S")]
    assert compiled(fits, tmp_path) == []
    assert "feature_major_products" in compiled(["GroupDiscoveryOneClass(5).fit(X[:, ::2].T.copy().T[::2])"], tmp_path)


@pytest.mark.slow
def test_the_command_compiles_what_usual_fits_need(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "coterie", "warm-up", "--json", "--quiet"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    result = json.loads(done.stdout)
    assert result["n_kernels"] > 150
    assert result["folder"].startswith(str(tmp_path))
    fits = [
        *(
            f"GroupDiscoveryClassifier(5).fit({X}, y > 0)"
            for X in ("X", "X.astype(np.float32)", "S", "(X > 0).astype(np.int8)")
        ),
        "model = GroupDiscoveryRegressor(5).fit(X, y)",
        "group_confidence(model, X, y, n_pairs=3, n_permutations=1)",
        "GroupDiscoveryClassifierCV(4, cv=3, nested=True).fit(S, y > 0)",
        "discover(X, y > 0, n_pairs=3, n_permutations=1)",
        *(f"GroupDiscoveryClassifier(4, loss='logistic').fit({X}, y > 0)" for X in ("X", "S")),
        *(f"GroupDiscoveryRegressor(4, loss='{loss}').fit(X, np.floor(np.exp(0.5 * y)))" for loss in ("poisson", "huber")),
        "GroupDiscoveryRegressorCV(4, cv=3).fit(X, np.column_stack([y, X[:, 2] - X[:, 3]]))",
        "GroupDiscoveryClassifierCV(4, cv=3, loss='logistic').fit(X, y > 0)",
        "GroupDiscoverySurvivalCV(4, cv=3).fit(X, np.column_stack([np.exp(-y), y > 0]))",
        "correlation_profile(X)",
        "GlobalRedundancySelector().fit(X, y > 0)",
        "DependencyAwareSelector(n_probes=20, random_state=0).fit(X, y > 0)",
    ]
    assert compiled(fits, tmp_path) == []


def test_every_compilation_is_recorded_with_its_types():
    compiler = _numba.numba.njit  # without a cache, which would keep the functions from run to run

    @compiler
    def half(value):
        return value / 2.0

    @compiler
    def quarter(value):
        return half(half(value))

    with recorded_compilations() as first:
        assert quarter(6.0) == 1.5
    with recorded_compilations() as again:
        assert quarter(8.0) == 2.0
    assert [(one.name, one.types) for one in first] == [("half", ("float64",)), ("quarter", ("float64",))]
    assert all(one.module == __name__ and one.seconds > 0.0 for one in first)
    assert again == []
    quarter(np.float32(1.0))
    assert len(first) == 2


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    folder = cache_folder(kth_largest)
    assert folder.is_dir()
    monkeypatch.setattr(_numba.numba.config, "CACHE_DIR", str(folder.parent))
    assert cache_folder(kth_largest) == folder
    monkeypatch.setattr(_numba.numba.config, "CACHE_DIR", str(tmp_path / "read only"))
    with pytest.raises(ValueError, match=r"Folder .*read only \(NUMBA_CACHE_DIR\) cannot be written"):
        cache_folder(kth_largest)
    monkeypatch.setattr(_numba.numba.config, "CACHE_DIR", "")
    with pytest.raises(ValueError, match="No folder for compiled code can be written"):
        cache_folder(SimpleNamespace(stats=SimpleNamespace(cache_path=None)))
    monkeypatch.setattr(_numba.numba.config, "DISABLE_JIT", True)
    with pytest.raises(ValueError, match="NUMBA_DISABLE_JIT is set"):
        cache_folder(kth_largest)


def test_the_command_reports_problems_and_result(tmp_path, monkeypatch):
    shell = Shell(tmp_path, monkeypatch)
    monkeypatch.setattr(compilation, "PROBLEMS", {"first": lambda data: None, "second": lambda data: data.dense()})
    done = shell("warm-up")
    assert done.stderr.splitlines() == ["1/2 first", "2/2 second"]
    assert done.stdout.startswith("0 kernels compiled in 0 s. Cache: ")
    result = shell.json("warm-up")
    assert result["n_kernels"] == 0
    assert result["folder"] == str(cache_folder(kth_largest))
    monkeypatch.setattr(_numba.numba.config, "CACHE_DIR", str(tmp_path / "read only"))
    assert "cannot be written. Set NUMBA_CACHE_DIR" in shell.error("warm-up")


def test_all_problems_run_with_every_type():
    data = compilation.Example.make()
    assert data.X.min() == 0
    assert data.X.max() == 3
    for dtype, index_type in compilation._SPARSE_TYPES:
        matrix = data.sparse(dtype, index_type)
        assert (matrix.dtype, matrix.indices.dtype, matrix.indptr.dtype) == (dtype, index_type, index_type)
    for dtype in compilation._DENSE_TYPES:
        assert data.dense(dtype, "C").flags.c_contiguous
        assert data.dense(dtype, "F").flags.f_contiguous
        assert data.dense(dtype, "C").dtype == dtype
