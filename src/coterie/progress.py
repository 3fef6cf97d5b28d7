"""Progress display: bars on a terminal or in a notebook, plain lines in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

from coterie.markup import join, tag
from coterie.terminal import printable

# Seconds between two updates in a notebook, which stores every update.
_PAUSE = 0.2


class _Progress:
    """Bars on a terminal or in a notebook, lines that start with the title elsewhere, nothing unless ``verbose``."""

    def __init__(self, verbose: int, title: str) -> None:
        self.verbose = verbose
        self.title = title
        self._bars: Any = None
        self._steps: dict[str, Any] = {}

    def __enter__(self) -> Self:
        if self.verbose and in_notebook():
            self._bars = _NotebookBars()
        elif self.verbose and sys.stderr.isatty():
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
        """Return the column of a bar that shows the completed amount."""
        from rich.progress import MofNCompleteColumn

        return MofNCompleteColumn()

    def _draw(self, step: str, done: int, total: int | None, note: str = "") -> None:
        """Create or update the bar of a step."""
        note = printable(note)
        if step not in self._steps:
            self._steps[step] = self._bars.add_task(printable(step), total=total, completed=done, note=note)
        self._bars.update(self._steps[step], completed=done, total=total, note=note)

    def _print(self, line: str) -> None:
        if self.verbose:
            print(printable(f"[{self.title}] {line}"), file=sys.stderr, flush=True)


def in_notebook() -> bool:
    """Return True in a notebook. IPython is not imported for the check."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class _NotebookBars:
    """HTML bars below the cell, in one display for all steps. Implements the methods of rich's ``Progress`` used here."""

    def __init__(self) -> None:
        self._tasks: list[dict[str, Any]] = []
        self._display: Any = None
        self._shown_at = -_PAUSE

    def add_task(self, description: str, *, total: int | None, completed: int = 0, note: str = "") -> int:
        """Add a bar and return its number."""
        began = time.perf_counter()
        self._tasks.append(
            {"title": description, "done": completed, "total": total, "note": note, "began": began, "seconds": 0.0}
        )
        return len(self._tasks) - 1

    def update(self, number: int, *, completed: int, total: int | None, note: str = "") -> None:
        """Update a bar."""
        task = self._tasks[number]
        task |= {"done": completed, "total": total, "note": note, "seconds": time.perf_counter() - task["began"]}
        if time.perf_counter() - self._shown_at >= _PAUSE or completed == total:
            self._show()

    def stop(self) -> None:
        """Show the final state."""
        if self._tasks:
            self._show()

    def _show(self) -> None:
        from IPython.display import HTML, display

        page = HTML(str(tag("div", *(self._bar(task) for task in self._tasks), class_="coterie-progress")))
        if self._display is None:
            self._display = display(page, display_id=True)
        else:
            self._display.update(page)
        self._shown_at = time.perf_counter()

    @staticmethod
    def _bar(task: dict[str, Any]) -> Any:
        total = task["total"]
        amount = f"{task['done']:,}" if total is None else f"{task['done']:,} of {total:,}"
        ends = {} if total is None else {"value": str(task["done"]), "max": str(max(1, total))}
        line = join([task["title"], amount, f"{task['seconds']:.1f} s", task["note"] or None], " · ")
        return tag("div", tag("progress", **ends), " ", tag("small", line))


class RoundProgress(_Progress):
    """Progress of work in rounds.

    Parameters
    ----------
    total : int or None
        Total amount, or None if it is unknown.
    verbose : int
        0 shows nothing; otherwise a bar on a terminal or in a notebook, or one line per round elsewhere.
    title : str
        Title of the display.
    unit : str
        Unit of the amount.
    first : int
        Amount that earlier work has completed. It does not count for the remaining time.
    """

    def __init__(self, total: int | None, verbose: int, title: str, unit: str = "support features", *, first: int = 0) -> None:
        super().__init__(verbose, title)
        self.total = total
        self.unit = unit
        self.first = first
        self._began = 0.0

    def __enter__(self) -> Self:
        super().__enter__()
        self._began = time.perf_counter()
        if self._bars is not None:
            self._draw(self.title, self.first, self.total)
        return self

    def update(self, done: int, note: str) -> None:
        """Show the completed amount."""
        if self._bars is not None:
            self._draw(self.title, done, self.total, note)
            return
        seconds = time.perf_counter() - self._began
        of = f"/{self.total}" if self.total is not None else ""
        new = done - self.first
        left = f", about {seconds * (self.total - done) / new:.1f} s left" if self.total and new > 0 else ""
        self._print(f"{done}{of} {self.unit}, {note}, {seconds:.1f} s{left}")


class StepProgress(_Progress):
    """Progress of work in several named steps.

    Parameters
    ----------
    verbose : int
        0 shows nothing; otherwise one bar per step on a terminal or in a notebook, or one line per step elsewhere.
    title : str
        Title of the display.
    """

    def update(self, done: int, total: int | None, step: str) -> None:
        """Show the completed amount of a step. Readers and writers of data call this method."""
        if self._bars is not None:
            self._draw(step, done, total)
        elif step not in self._steps:
            self._steps[step] = None
            self._print(step)

    def _amount(self) -> Any:
        """Return a column with the percentage, because amounts are in bytes."""
        from rich.progress import TaskProgressColumn

        return TaskProgressColumn()
