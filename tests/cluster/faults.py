"""Workers that die, stop or fill up in the middle of a phase of a fit."""

from __future__ import annotations

import signal
import subprocess
import sys
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
    original, done, seen = source._answers, [], [0]

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

    source._answers = answers
    try:
        yield done
    finally:
        source._answers = original


class Workers:
    """Worker processes without nannies, so that one that is killed stays dead until it is replaced here."""

    def __init__(self, address: str, n_workers: int) -> None:
        self.address = address
        self.processes: list[Any] = []
        self.fill(n_workers)

    def fill(self, n_workers: int) -> None:
        """Start workers until there are so many."""
        self.processes = [one for one in self.processes if one.poll() is None]
        command = [sys.executable, "-m", "dask", "worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        while len(self.processes) < n_workers:
            self.processes.append(
                subprocess.Popen([*command, "--memory-limit", "2GB"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )

    def signal(self, which: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to a worker: kill it, as the kernel does when memory runs out, or stop it."""
        self.processes[which % len(self.processes)].send_signal(number)

    def close(self) -> None:
        """End all of them."""
        for one in self.processes:
            one.kill()
        for one in self.processes:
            one.wait()
