"""Workers that die, stop or fill up in the middle of a phase of a fit."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

# What a phase is known by: the beginning of what the client says that it waits for.
PHASES = {
    "moments": "means and norms",
    "scores": "the features with the best scores",
    "columns": "the columns",
    "correlations": "correlated features",
    "final scores": "numbers of each feature",
    "groups": "answers of largest",
}


@contextmanager
def sabotage(source: type, phase: str, act: Callable[[], None], *, nth: int = 1, delay: float = 0.0) -> Any:
    """Do something while the workers are at the n-th task of a phase; yields a list of the times that it was done.

    ``delay`` seconds after the tasks were sent, so that they may be waiting, running or done.
    """
    original, done, seen = source.ask_each, [], [0]

    def ask_each(self: Any, function: Any, arguments: Any, *, what: str, only: Any) -> Any:
        thread = None
        if what.startswith(PHASES.get(phase, phase)):
            seen[0] += 1
            if seen[0] == nth:
                thread = threading.Thread(target=lambda: (time.sleep(delay), act(), done.append(time.monotonic())))
                thread.start()
        try:
            return original(self, function, arguments, what=what, only=only)
        finally:
            if thread is not None:
                thread.join()

    source.ask_each = ask_each
    try:
        yield done
    finally:
        source.ask_each = original


def worker_pids(cluster: Any) -> list[int]:
    """Processes of the workers of a ``LocalCluster``."""
    # One that is killed while it starts is given up by its nanny.
    processes = [nanny.process for nanny in cluster.workers.values() if nanny.status.name == "running"]
    return [own.process.pid for own in processes if own is not None and own.status.name == "running"]


def kill_one(cluster: Any, which: int = 0) -> None:
    """Kill a worker, as the kernel does when memory runs out."""
    running = worker_pids(cluster)
    os.kill(running[which % len(running)], signal.SIGKILL)
