"""One fit in a fresh process: its peak memory, and an end to what takes too long."""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from _models import Fit, selected_features, warm_up, warnings_counted
from _timing import measure
from scipy import sparse


@dataclass(frozen=True)
class ChildRun:
    """What one fit took in a fresh process.

    ``seconds`` is None where there is no time to tell: the run was ended at ``limit`` seconds (then its time is known to be
    longer), or it failed, which says nothing about speed.
    """

    seconds: float | None = None
    peak_increase: int | None = None
    features: Any = None
    limit: float | None = None
    failure: str | None = None


def run_in_child(
    fit: Fit,
    X: Any,
    y: np.ndarray,
    limit: float | None = None,
    *,
    tell: Callable[[Any], Any] = selected_features,
    most_bytes: int | None = None,
) -> ChildRun:
    """Fit once in a fresh process that holds X and little else, for the increase of its peak memory.

    The data go through a file and not through a pipe, whose buffers would count. ``fit`` must be picklable, and so must
    ``tell``, which says what the run is asked about its model. Beyond ``most_bytes`` of memory a fit fails (Linux).
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        _save(Path(folder), X, y)
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=_fit_and_tell, args=(folder, fit, tell, most_bytes, sender))
        child.start()
        sender.close()
        try:
            if not receiver.poll(limit):
                return ChildRun(limit=limit)
            return receiver.recv()
        except EOFError:  # it ended without a word: killed, or it could not even start
            child.join()
            return ChildRun(failure=f"process ended with exit code {child.exitcode}")
        finally:
            child.terminate()
            child.join()


def _fit_and_tell(folder: str, fit: Fit, tell: Callable[[Any], Any], most_bytes: int | None, sender: Connection) -> None:
    """The child's work: load, fit toy data (imports and compiled code do not count), fit, tell."""
    try:
        if most_bytes is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
        X, y = _load(Path(folder))
        warm_up(fit, X)
        before = _reset_peak()
        with warnings_counted():
            timing = measure(partial(fit, X, y), 1)
        answer = ChildRun(timing.best, max(0, _peak_memory() - before), tell(timing.result))
    except Exception as error:
        answer = ChildRun(failure=f"{type(error).__name__}: {error}")
    sender.send(answer)


def _save(folder: Path, X: Any, y: np.ndarray) -> None:
    parts = {"y": y}
    if sparse.issparse(X):
        parts |= {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
        (folder / "format").write_text(X.format)
    else:
        parts["X"] = X
    for name, part in parts.items():
        np.save(folder / f"{name}.npy", part)


def _load(folder: Path) -> tuple[Any, np.ndarray]:
    parts = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    if "X" in parts:
        return parts["X"], parts["y"]
    kind = {"csc": sparse.csc_array, "csr": sparse.csr_array}[(folder / "format").read_text()]
    return kind((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"])), parts["y"]


def _reset_peak() -> int:
    """Forget earlier peaks where the system allows it; returns the memory in use now, in bytes."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return psutil.Process().memory_info().rss


def _peak_memory() -> int:
    """Largest resident memory of this process so far, in bytes.

    Linux tells it in /proc. Its ``ru_maxrss`` would be wrong: a child inherits the value of its parent.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
