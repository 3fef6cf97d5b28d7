"""Cold start: import, a first small fit and the demo in fresh processes, with an empty and a warm numba cache.

The time of a fresh process includes starting Python, importing the libraries, and compiling kernels or loading them from the
cache. The cache is a temporary folder, so that the user's cache is neither used nor changed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _record import read_arguments, write_results
from _tables import print_table, verdict
from _timing import Timing, measure

IMPORT = "import coterie"
IMPORT_ALL = "from coterie import GroupDiscoveryClassifier"
FIT = """
import numpy as np
from scipy import sparse
from coterie import GroupDiscoveryClassifier
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 300)) * (rng.random((200, 300)) < 0.3)
GroupDiscoveryClassifier(20).fit({data}, np.sign(X[:, :3].sum(axis=1) + 0.01))
"""
DENSE, SPARSE = FIT.format(data="X"), FIT.format(data="sparse.csc_array(X)")
DEMO = Path(sys.executable).with_name("coterie")


def run(command: list[str], cache: str | None = None) -> None:
    """Run a fresh process to its end; if it fails, exit with its error output."""
    environment = dict(os.environ) if cache is None else os.environ | {"NUMBA_CACHE_DIR": cache}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or done.stdout.strip())


def measure_cold(command: list[str], repeats: int) -> Timing:
    """Time runs that each have an empty cache."""

    def once() -> None:
        with tempfile.TemporaryDirectory() as cache:
            run(command, cache)

    return measure(once, repeats)


def measure_warm(command: list[str], repeats: int) -> Timing:
    """Time runs after an untimed run that fills the cache."""
    with tempfile.TemporaryDirectory() as cache:
        run(command, cache)
        return measure(lambda: run(command, cache), repeats)


def row(what: str, timing: Timing, start: float, goal: float | None = None) -> dict[str, Any]:
    """Return the times of the whole process and without the start of the interpreter, to which the goal applies."""
    own = timing.best - start
    return {
        "what": what,
        "best s": timing.best,
        "median s": timing.median,
        "without python's start": own,
        "goal": None if goal is None else f"<= {goal:g}",
        "verdict": None if goal is None else verdict(own <= goal),
    }


def fit_rows(name: str, command: list[str], start: float, repeats: int, goals: tuple[float, float] | None) -> list[dict]:
    """Time a command with an empty and with a warm cache."""
    cold, warm = goals or (None, None)
    return [
        row(f"{name}, empty cache", measure_cold(command, repeats), start, cold),
        row(f"{name}, warm cache", measure_warm(command, repeats), start, warm),
    ]


def demo_rows(start: float, repeats: int) -> list[dict]:
    """Time ``coterie demo``; no rows if it fails."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            command = [str(DEMO), "demo", "--output", str(Path(folder) / "demo")]
            return fit_rows("coterie demo", command, start, repeats, (30.0, 5.0))
    except (OSError, RuntimeError) as error:
        print(f"coterie demo is skipped: {str(error).splitlines()[-1].split('/')[-1]}")
        return []


def main() -> None:
    options = read_arguments(__doc__)
    python = [sys.executable, "-c"]
    run([*python, IMPORT_ALL])  # fill the bytecode and file caches
    start = measure(lambda: run([*python, "pass"]), options.repeats + 2)
    rows = [row("python alone", start, 0.0)]
    rows[0]["without python's start"] = None
    rows.append(row("import coterie", measure(lambda: run([*python, IMPORT]), options.repeats + 2), start.best, 1.0))
    imported = measure(lambda: run([*python, IMPORT_ALL]), options.repeats)
    rows.append(row("import of the estimator", imported, start.best))
    cold_repeats = 1 if options.quick else options.repeats
    for name, script in (("first dense fit", DENSE), ("first sparse fit", SPARSE)):
        if not (options.quick and script is SPARSE):
            rows += fit_rows(name, [*python, script], start.best, cold_repeats, None)
    if not options.quick:
        rows += demo_rows(start.best, cold_repeats)
    print_table("Cold start in fresh processes", rows)
    write_results("cold_start", options, rows=rows)


if __name__ == "__main__":
    main()
