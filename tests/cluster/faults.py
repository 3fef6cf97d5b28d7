"""Workers that are killed, stopped or out of memory during a phase of a fit."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

# Phases by the beginning of the description of their requests.
PHASES = {
    "moments": "means and norms",
    "scores": "the features with the best scores",
    "columns": "the columns",
    "correlations": "correlated features",
    "final scores": "values per feature",
    "groups": "results of largest",
}


@contextmanager
def sabotage(source: type, phase: str, act: Callable[[], None], *, nth: int = 1, delay: float = 0.0) -> Any:
    """Run ``act`` during the n-th request of a phase, and yield a list of the times at which it was run.

    It runs ``delay`` seconds after the tasks were sent, so that they may be waiting, running or done.
    """
    original, done, seen = source._run_tasks, [], [0]

    def answers(self: Any, function: Any, arguments: Any, places: Any, homes: Any, what: str, *more: Any) -> Any:
        thread = None
        if what.startswith(PHASES.get(phase, phase)):
            seen[0] += 1
            if seen[0] == nth:
                thread = threading.Thread(target=lambda: (time.sleep(delay), act(), done.append(time.monotonic())))
                thread.start()
        try:
            return original(self, function, arguments, places, homes, what, *more)
        finally:
            if thread is not None:
                thread.join()

    source._run_tasks = answers
    try:
        yield done
    finally:
        source._run_tasks = original


class Workers:
    """Worker processes without nannies, so that a killed worker is only replaced by :meth:`fill`."""

    def __init__(self, address: str, n_workers: int) -> None:
        self.address = address
        self.processes: list[Any] = []
        self.fill(n_workers)

    def fill(self, n_workers: int) -> None:
        """Start workers until there are ``n_workers``."""
        self.processes = [one for one in self.processes if one.poll() is None]
        command = [sys.executable, "-m", "dask", "worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        while len(self.processes) < n_workers:
            self.processes.append(
                subprocess.Popen([*command, "--memory-limit", "2GB"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )

    def signal(self, which: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to a worker: kill it, as the kernel does if memory is exhausted, or stop it."""
        self.processes[which % len(self.processes)].send_signal(number)

    def close(self) -> None:
        """End all workers."""
        for one in self.processes:
            one.kill()
        for one in self.processes:
            one.wait()
