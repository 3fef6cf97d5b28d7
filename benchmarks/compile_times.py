"""Compile times: seconds per kernel and specialisation, for first fits in fresh processes with an empty numba cache.

Seconds are processor times, which other processes affect less than wall times. The seconds of a kernel exclude those of the
kernels that it calls, but include their optimisation as a part of a kernel that Python calls. Functions of numba that kernels
use (such as ``np.empty``) are listed together.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from _record import read_arguments, write_results
from _tables import print_table

FITS = {
    "dense": "GroupDiscoveryClassifier(20).fit(X, y > 0)",
    "sparse": "GroupDiscoveryClassifier(20).fit(sparse.csc_array(X), y > 0)",
    "regression": "GroupDiscoveryRegressor(20).fit(X, y)",
    "several classes": "GroupDiscoveryClassifier(20).fit(X, np.digitize(y, [-1.0, 1.0]))",
    "one class": "GroupDiscoveryOneClass(20).fit(X)",
    "cross-validation": "GroupDiscoveryClassifierCV(20).fit(X, y > 0)",
    "logistic loss, cross-validation": "GroupDiscoveryClassifierCV(20, loss='logistic').fit(X, y > 0)",
    "validation and confidence": (
        "model = GroupDiscoveryClassifierCV(20).fit(X, y > 0); group_confidence(model, X, y > 0, n_pairs=3, n_permutations=1)"
    ),
}
SCRIPT = """
import json, time
started = time.process_time()
import numpy as np
from scipy import sparse
from coterie import *
from coterie._numba import recorded_compilations
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 300)) * (rng.random((200, 300)) < 0.3)
y = X[:, :3].sum(axis=1) + 0.01
imported = time.process_time()
with recorded_compilations() as compilations:
    {fit}
fitted = time.process_time()
print(json.dumps([imported - started, fitted - imported, compilations]))
"""


def first_fit(name: str) -> tuple[float, float, list[Any]]:
    """Return the processor seconds of the import and of a first fit, and the compilations of the fit."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-c", SCRIPT.format(fit=FITS[name])]
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    imported, fitted, compilations = json.loads(done.stdout)
    return imported, fitted, compilations


def kernel_name(module: str, name: str) -> str:
    """Return the name of a kernel; functions of numba share one."""
    return f"{module.removeprefix('coterie.kernels.')}.{name}" if module.startswith("coterie.") else "functions of numba"


def fit_row(name: str, imported: float, fitted: float, compilations: list[Any]) -> dict[str, Any]:
    own = [one for one in compilations if one[0].startswith("coterie.")]
    return {
        "first fit": name,
        "import, cpu s": imported,
        "fit, cpu s": fitted,
        "compilation, cpu s": sum(one[3] for one in compilations),
        "kernels": len({(module, kernel) for module, kernel, _, _ in own}),
        "specialisations": len(own),
    }


def kernel_rows(found: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Return one row per kernel, slowest first. A specialisation that several fits need counts once, with its mean time."""
    times: dict[str, dict[tuple[str, ...], list[float]]] = {}
    for compilations in found.values():
        for module, name, types, seconds in compilations:
            times.setdefault(kernel_name(module, name), {}).setdefault(tuple(types), []).append(seconds)
    rows = [
        {
            "kernel": kernel,
            "specialisations": len(by_types),
            "cpu s": sum(sum(values) / len(values) for values in by_types.values()),
            "fits": sum(any(kernel_name(*one[:2]) == kernel for one in all_of) for all_of in found.values()),
        }
        for kernel, by_types in times.items()
    ]
    return sorted(rows, key=lambda row: -row["cpu s"])


def main() -> None:
    options = read_arguments(__doc__, repeats=1)
    names = list(FITS)[:1] if options.quick else list(FITS)
    rows, found = [], {}
    for name in names:
        imported, fitted, compilations = min((first_fit(name) for _ in range(options.repeats)), key=lambda run: run[1])
        rows.append(fit_row(name, imported, fitted, compilations))
        found[name] = compilations
    kernels = kernel_rows(found)
    print_table("First fits in fresh processes, empty cache", rows)
    print_table("Kernels", kernels)
    write_results("compile_times", options, rows=rows, kernels=kernels, compilations=found)


if __name__ == "__main__":
    main()
