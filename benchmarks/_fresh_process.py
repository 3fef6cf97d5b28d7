"""One fit in a fresh process, with its peak memory and a time limit."""

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
    """Time and memory of one fit in a fresh process.

    ``seconds`` is None if the run was stopped after ``limit`` seconds or if it failed.
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
    summarize: Callable[[Any], Any] = selected_features,
    max_bytes: int | None = None,
) -> ChildRun:
    """Fit once in a fresh process that holds X and little else, to measure the increase of its peak memory.

    The data are passed through a file, because the buffers of a pipe would be counted. ``fit`` and ``summarize`` must be
    picklable. ``summarize`` returns what is kept of the fitted model. A fit fails above ``max_bytes`` of memory (Linux).
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        _save(Path(folder), X, y)
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=_fit_and_send, args=(folder, fit, summarize, max_bytes, sender))
        child.start()
        sender.close()
        try:
            if not receiver.poll(limit):
                return ChildRun(limit=limit)
            return receiver.recv()
        except EOFError:  # no reply: the process was killed or could not start
            child.join()
            return ChildRun(failure=f"process ended with exit code {child.exitcode}")
        finally:
            child.terminate()
            child.join()


def _fit_and_send(folder: str, fit: Fit, summarize: Callable[[Any], Any], max_bytes: int | None, sender: Connection) -> None:
    """Load the data, fit toy data (imports and compilation are not counted), fit, and send the result."""
    try:
        if max_bytes is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_DATA, (max_bytes, max_bytes))
        X, y = _load(Path(folder))
        warm_up(fit, X)
        before = _reset_peak()
        with warnings_counted():
            timing = measure(partial(fit, X, y), 1)
        answer = ChildRun(timing.best, max(0, _peak_memory() - before), summarize(timing.result))
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
    """Reset the recorded peak if the system allows it, and return the memory in use, in bytes."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return psutil.Process().memory_info().rss


def _peak_memory() -> int:
    """Return the peak resident memory of this process, in bytes.

    On Linux it is read from /proc, because a child inherits the ``ru_maxrss`` of its parent.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
