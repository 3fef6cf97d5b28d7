"""The kernels are also valid Python: the same tests with the compiler switched off."""

import os
import subprocess
import sys
from pathlib import Path

import numba


def test_kernels_without_the_compiler():
    if numba.config.DISABLE_JIT:
        return  # This is the inner run.
    here = Path(__file__).parent
    names = (
        "test_columns.py",
        "test_blocks.py",
        "test_filters.py",
        "test_neighbours.py",
        "test_ranks.py",
        "test_shrinkage.py",
        "test_transposition.py",
    )
    files = [str(here / name) for name in names]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=here.parents[1], check=False)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert "passed" in result.stdout
