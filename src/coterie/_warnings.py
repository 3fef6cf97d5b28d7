"""Recording the warnings of one thread, whatever the filters are, while other threads keep their filters."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TextIO

# One entry of ``warnings.filters``: action, message, category, module, line.
_Filter = tuple[str, re.Pattern[str] | None, type[Warning] | tuple[type[Warning], ...], re.Pattern[str] | None, int]
# The threads that record, with what each has recorded, and what to undo when the last of them is done.
_lock = threading.RLock()
_recording: dict[int, list[Warning]] = {}
_undo = ExitStack()


@contextmanager
def recorded_warnings() -> Iterator[list[Warning]]:
    """Record the warnings of this thread about users' data and computations, whatever the filters are.

    ``warnings.catch_warnings`` changes global state and restores what it found: if two threads leave it in the order in which
    they entered, the second one restores the filters of the first. So one context serves all threads that record at the same
    time. The first one enters it, and the last one leaves it. The warnings of other threads follow the filters as before.
    """
    thread, caught = threading.get_ident(), list[Warning]()
    before = _recording.get(thread)
    try:
        with _lock:
            if not _recording:
                _enter()
            _recording[thread] = caught
        yield caught
    finally:
        with _lock:
            if before is not None:
                _recording[thread] = before
            else:
                _recording.pop(thread, None)
            if not _recording:
                _undo.close()


def _enter() -> None:
    """Let all warnings of the recorded kinds through to the threads that record."""
    _undo.enter_context(warnings.catch_warnings())
    show, filters = warnings.showwarning, list(warnings.filters)

    def record(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        caught = _recording.get(threading.get_ident())
        if caught is not None and isinstance(message, (UserWarning, RuntimeWarning)):
            caught.append(message)
            return
        action = _action(filters, str(message), category, filename.removesuffix(".py"), lineno)
        if action == "error":
            raise message if isinstance(message, Warning) else category(message)
        if action != "ignore":
            show(message, category, filename, lineno, file, line)

    warnings.simplefilter("always", UserWarning)
    warnings.simplefilter("always", RuntimeWarning)
    warnings.showwarning = record


def _action(filters: Sequence[_Filter], text: str, category: type[Warning], module: str, lineno: int) -> str:
    """What filters say about a warning of another thread, as ``warnings.warn_explicit`` reads them."""
    for action, message, kind, where, line in filters:
        if (
            (message is None or message.match(text))
            and issubclass(category, kind)
            and (where is None or where.match(module))
            and line in (0, lineno)
        ):
            return action
    return "default"
