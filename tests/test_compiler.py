"""Kernels that call kernels: one optimisation, private copies, equal bits with and without a cache, and errors."""

import gc
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from coterie._compiler import compiled, settings
from coterie._numba import numba, recorded_compilations

MODULE = """
import numpy as np
from coterie._numba import kernel

@kernel(reorder=True)
def total(values, shift):
    result = 0.0
    for i in range(values.shape[0]):
        result += values[i] + shift
    return result

@kernel()
def checked(values, shift):
    if shift < 0.0:
        raise ValueError("shift is negative")
    return total(values, shift)

@kernel()
def both(values, shift):
    parts = np.empty(2)
    parts[0] = checked(values[::2].copy(), shift)
    parts[1] = checked(values, 0.5)
    return parts
"""
SCRIPT = """
import json, sys
import numpy as np
from coterie._numba import recorded_compilations
import own
values = np.random.default_rng(0).standard_normal(1001)
with recorded_compilations() as compilations:
    for name in sys.argv[1:]:
        result = getattr(own, name)(values, 0.25)
    try:
        own.both(values, -1.0)
    except ValueError as error:
        message = str(error)
print(json.dumps([np.asarray(result).tobytes().hex(), message, [one.name for one in compilations if one.module == "own"]]))
"""


def run(folder, *names):
    """Call kernels in a fresh process, and return the last result, the message of an error and the compiled kernels."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", SCRIPT, *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_results_do_not_depend_on_what_was_compiled_or_loaded_before(tmp_path):
    (tmp_path / "own.py").write_text(MODULE)
    first, message, names = run(tmp_path, "total", "checked", "both")
    assert message == "shift is negative"
    assert sorted(names) == ["both", "checked", "total"]
    for names in (["both"], ["checked", "both"], ["total", "both"]):
        assert run(tmp_path, *names) == [first, message, []]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "own.py").write_text(MODULE)
    alone = run(tmp_path / "other", "both")
    assert alone[:2] == [first, message]


def test_untested_versions_of_numba_use_its_public_interface(tmp_path):
    (tmp_path / "own.py").write_text(MODULE)
    code = (
        "import numba, sys; numba.__version__ = '9.1.0'; import coterie._numba; assert 'coterie._compiler' not in sys.modules"
    )
    script = f"{code}{SCRIPT}"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script, "both"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found, expected = (np.frombuffer(bytes.fromhex(one[0])) for one in (json.loads(done.stdout), run(tmp_path, "both")))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def _half(values):
    if values.shape[0] == 0:
        raise ValueError("no values")
    return values[0] / 2.0


def _quarter(values):
    return half(values) / 2.0


half, quarter = (compiled(one, cache=False, options={"nogil": True}) for one in (_half, _quarter))
pytestmark = pytest.mark.skipif(settings.DISABLE_JIT, reason="nothing is compiled")


def test_functions_of_other_kernels_are_private():
    assert quarter(np.array([8.0])) == 2.0
    (result,) = quarter.overloads.values()
    linkages = {one.name: one.linkage.name for one in result.library.get_defined_functions()}
    assert linkages.pop(result.fndesc.llvm_cpython_wrapper_name) == "external"
    assert set(linkages.values()) <= {"internal"}


def test_a_kernel_that_is_called_and_calls_is_recorded_once():
    values = np.array([8.0], dtype=np.float32)
    with recorded_compilations() as compilations:
        assert quarter(values) == 2.0
        assert half(values) == 4.0
        assert quarter(values) == 2.0
    assert [one.name for one in compilations] == ["_half", "_quarter"]
    assert all(one.seconds > 0.0 for one in compilations)


def test_errors_of_inner_functions_have_their_message():
    with pytest.raises(ValueError, match="no values"):
        quarter(np.empty(0))


def test_a_kernel_can_be_pickled():
    assert pickle.loads(pickle.dumps(quarter))(np.array([4.0])) == 1.0


def test_collections_of_garbage_continue_after_an_error():
    with pytest.raises(numba.core.errors.TypingError):
        quarter("text")
    assert gc.isenabled()
