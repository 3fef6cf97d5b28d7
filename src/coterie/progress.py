"""Progress of long work: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

from coterie.terminal import printable


class _Progress:
    """Bars on a terminal, lines that begin with the title elsewhere, nothing unless ``verbose``."""

    def __init__(self, verbose: int, title: str) -> None:
        self.verbose = verbose
        self.title = title
        self._bars: Any = None
        self._steps: dict[str, Any] = {}

    def __enter__(self) -> Self:
        if self.verbose and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            self._bars = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                self._amount(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}", markup=False),
                console=Console(stderr=True),
            )
            self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bars is not None:
            self._bars.stop()

    def _amount(self) -> Any:
        """The column of a bar that tells how much is done."""
        from rich.progress import MofNCompleteColumn

        return MofNCompleteColumn()

    def _draw(self, step: str, done: int, total: int | None, note: str = "") -> None:
        """Move the bar of a step; the first time, it appears."""
        note = printable(note)
        if step not in self._steps:
            self._steps[step] = self._bars.add_task(printable(step), total=total, note=note)
        self._bars.update(self._steps[step], completed=done, total=total, note=note)

    def _say(self, words: str) -> None:
        if self.verbose:
            print(printable(f"[{self.title}] {words}"), file=sys.stderr, flush=True)


class RoundProgress(_Progress):
    """Shows how far work has come that goes on in rounds.

    Parameters
    ----------
    total : int or None
        The number asked for; None when it is not known in advance.
    verbose : int
        0 shows nothing; otherwise a bar on a terminal, or a line for each round elsewhere.
    title : str
        What is going on.
    unit : str
        What is counted.
    """

    def __init__(self, total: int | None, verbose: int, title: str, unit: str = "support features") -> None:
        super().__init__(verbose, title)
        self.total = total
        self.unit = unit
        self._began = 0.0

    def __enter__(self) -> Self:
        super().__enter__()
        self._began = time.perf_counter()
        if self._bars is not None:
            self._draw(self.title, 0, self.total)
        return self

    def update(self, done: int, note: str) -> None:
        """Say how far the work is."""
        if self._bars is not None:
            self._draw(self.title, done, self.total, note)
            return
        seconds = time.perf_counter() - self._began
        of = f"/{self.total}" if self.total is not None else ""
        left = f", about {seconds * (self.total - done) / done:.1f} s left" if self.total and done else ""
        self._say(f"{done}{of} {self.unit}, {note}, {seconds:.1f} s{left}")


class StepProgress(_Progress):
    """Shows how far work has come that has several steps, which it names itself.

    Parameters
    ----------
    verbose : int
        0 shows nothing; otherwise a bar for each step on a terminal, or a line when it begins elsewhere.
    title : str
        What is going on.
    """

    def update(self, done: int, total: int | None, step: str) -> None:
        """Say how far a step is; what readers and writers of data call."""
        if self._bars is not None:
            self._draw(step, done, total)
        elif step not in self._steps:
            self._steps[step] = None
            self._say(step)

    def _amount(self) -> Any:
        """Bytes mean nothing to people, a share of them does."""
        from rich.progress import TaskProgressColumn

        return TaskProgressColumn()
