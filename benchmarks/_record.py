"""Options of a run, facts about the machine and the source, and the file of results."""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import coterie

RESULTS = Path(__file__).parent / "results"
LIBRARIES = (
    *("coterie", "numpy", "scipy", "scikit-learn", "numba", "celer", "sortedl1", "feature-engine"),
    *("pysusie", "knockpy", "hidimstat"),
)


def read_arguments(
    description: str | None, *, slow: str | None = None, repeats: int = 3, parts: Sequence[str] = ()
) -> argparse.Namespace:
    """Parse the options common to all benchmarks.

    ``slow`` is the help text of ``--slow``, ``parts`` are the choices of ``--only``.
    """
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, about 20 seconds; not for timings")
    parser.add_argument("--repeats", type=int, default=None, help=f"number of timed runs (default {repeats}; quick: 1)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of Coterie (default: all cores)")
    parser.add_argument("--seed", type=int, default=0, help="seed of data and splits (default 0)")
    if parts:
        parser.add_argument("--only", choices=parts, default=None, help="part to run (default: all)")
    if slow is not None:
        parser.add_argument("--slow", action="store_true", help=slow)
        parser.add_argument("--splits", type=int, default=None, help="number of splits with --slow, if the script uses splits")
        parser.add_argument("--limit", type=float, default=300.0, help="time limit of a slow run in seconds (default 300)")
    options = parser.parse_args()
    options.source = source_digest()
    if options.repeats is None:
        options.repeats = 1 if options.quick else repeats
    return options


def write_results(name: str, options: argparse.Namespace, **content: Any) -> None:
    """Write results and facts about the machine as JSON; a quick run does not replace the results of a full one."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}{'-quick' if options.quick else ''}.json"
    unchanged = source_digest() == options.source
    if not unchanged:
        print("\nCoterie's source changed during this run. The numbers may mix two versions. Run the script again.")
    facts = {"benchmark": name, "options": vars(options), "source_unchanged": unchanged, "machine": machine_facts()}
    document = {**facts, **content}
    path.write_text(json.dumps(document, indent=2, default=_plain) + "\n", encoding="utf-8")
    print(f"\nWritten: {path.relative_to(RESULTS.parent.parent)}")


def caption(*options: str) -> str:
    """Return version, date and command of this run as the caption of a table.

    ``options`` replace those of the command line. Paths of the command line become ``DIR``.
    """
    words = options or ["DIR" if os.sep in word else word for word in sys.argv[1:]]
    command = " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words])
    number = coterie.__version__.replace(".dev0", " development")
    return f"*Coterie {number}, {datetime.datetime.now(datetime.UTC).date()}; `{command}`.*"


def machine_facts() -> dict[str, Any]:
    """Return facts about the machine that matter for the results, without its name."""
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "libraries": {name: found for name in LIBRARIES if (found := _version(name)) is not None},
    }


def source_digest() -> str:
    """Return a short digest of Coterie's Python source."""
    folder = Path(coterie.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _plain(value: Any) -> Any:
    """Convert NumPy scalars, arrays and paths for JSON."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, Path):
        return value.name  # results contain no folder of this machine
    raise TypeError(f"Values of type {type(value).__name__} cannot be written to the results.")
