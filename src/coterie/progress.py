"""Progress of long work: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any


class RoundProgress:
    """Shows how far work has come that goes on in rounds.

    Parameters
    ----------
    total : int or None
        The number asked for; None when it is not known in advance.
    verbose : int
        0 shows nothing; otherwise a bar on a terminal, or a line for each step elsewhere.
    title : str
        What is going on.
    unit : str
        What is counted.
    """

    def __init__(self, total: int | None, verbose: int, title: str, unit: str = "support features") -> None:
        self.total = total
        self.title = title
        self.unit = unit
        self.verbose = verbose
        self._bar: Any = None
        self._task: Any = None
        self._began = 0.0

    def __enter__(self) -> RoundProgress:
        self._began = time.perf_counter()
        if self.verbose and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task(self.title, total=self.total, note="")
        return self

    def update(self, done: int, note: str) -> None:
        """Say how far the work is."""
        if not self.verbose:
            return
        if self._bar is not None:
            self._bar.update(self._task, completed=done, note=note)
            return
        seconds = time.perf_counter() - self._began
        of = f"/{self.total}" if self.total is not None else ""
        left = f", about {seconds * (self.total - done) / done:.1f} s left" if self.total and done else ""
        print(f"[{self.title}] {done}{of} {self.unit}, {note}, {seconds:.1f} s{left}", file=sys.stderr)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
