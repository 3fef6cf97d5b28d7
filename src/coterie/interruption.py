"""Graceful handling of Ctrl-C and SIGTERM: a computation ends after its current round, and its result is kept.

Signals are handled only inside :func:`stopping_gracefully` and the other context managers here. Other programs are not
affected. The first signal takes effect at the end of a round, the second one immediately.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Terminated(BaseException):
    """Raised for SIGTERM; like ``KeyboardInterrupt``, not an ``Exception``."""


class Interrupted(BaseException):
    """Raised for Ctrl-C instead of ``KeyboardInterrupt``, which typer handles itself."""


class StopRequest:
    """Request of the user to stop, by a signal.

    Attributes
    ----------
    signal : int or None
        First signal received, or None.
    """

    def __init__(self) -> None:
        self.signal: int | None = None


_current: list[StopRequest] = []


def stop_requested() -> bool:
    """Return True if a computation that can stop with a result should do so now."""
    return bool(_current) and _current[-1].signal is not None


@contextmanager
def stopping_gracefully(say: Callable[[str], object]) -> Iterator[StopRequest]:
    """Delay the first SIGINT or SIGTERM to the end of a round; ``say`` displays a message to the user.

    Examples
    --------
    >>> import signal
    >>> from coterie.interruption import stop_requested, stopping_gracefully
    >>> with stopping_gracefully(print) as request:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     stop_requested()
    Stopping after this round. The results so far are kept. A second signal (Ctrl-C) stops immediately.
    True
    >>> stop_requested()
    False
    """
    request = StopRequest()

    def on_signal(number: int, _: FrameType | None) -> None:
        if request.signal is not None:
            raise (KeyboardInterrupt if number == signal.SIGINT else Terminated)
        request.signal = number
        say("Stopping after this round. The results so far are kept. A second signal (Ctrl-C) stops immediately.")

    with _handlers(on_signal):
        _current.append(request)
        try:
            yield request
        finally:
            _current.remove(request)


@contextmanager
def interrupting() -> Iterator[StopRequest]:
    """Treat SIGTERM like Ctrl-C, for methods that keep their result after a ``KeyboardInterrupt``; yield the request."""
    request = StopRequest()

    def on_signal(number: int, _: FrameType | None) -> None:
        request.signal = number
        raise KeyboardInterrupt

    with _handlers(on_signal):
        try:
            yield request
        except KeyboardInterrupt:
            if request.signal == signal.SIGTERM:
                raise Terminated from None
            raise


@contextmanager
def terminating_cleanly() -> Iterator[None]:
    """Convert SIGTERM to :class:`Terminated`, so that temporary files are removed before the process ends."""

    def on_signal(number: int, _: FrameType | None) -> None:
        raise Terminated

    with _handlers(on_signal, (signal.SIGTERM,)):
        yield


@contextmanager
def _handlers(handler: Any, signals: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM)) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    # If signals are ignored because the command runs in the background (nohup, `&`), they remain ignored.
    wanted = [number for number in signals if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in wanted}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def ignore_signal(number: int) -> Iterator[None]:
    """Ignore a signal during a block, so that processes started in the block always ignore it.

    Has no effect outside the main thread, because only the main thread can set signal handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)
