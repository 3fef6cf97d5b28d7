"""Caches of compiled kernels are valid for one version of the files of all kernels."""

import os
import subprocess
import sys

SCRIPT = """
import numpy as np
from coterie._numba import recorded_compilations
from coterie.kernels.columns import kth_largest
with recorded_compilations() as compilations:
    kth_largest(np.arange(5.0), np.inf, 2)
print(sum(own.name == "kth_largest" for own in compilations))
"""


def _n_compiled(cache, before=""):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", before + SCRIPT], env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_a_kernel_is_compiled_again_if_the_file_of_another_kernel_changes(tmp_path):
    assert _n_compiled(tmp_path) == 1
    assert _n_compiled(tmp_path) == 0
    other = "import coterie._numba as own\nown._kernel_files_stamp = lambda: 'other files'\n"
    assert _n_compiled(tmp_path, other) == 1
    assert _n_compiled(tmp_path, other) == 0
