"""Ctrl-C and SIGTERM end long work after the round that is under way, so that what has been done is kept.

Nothing changes for programs that do not ask for it: only inside :func:`stopping_gracefully` does a signal wait for the end of
a round, and the second one stops at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Terminated(BaseException):
    """SIGTERM has come; not an ``Exception``, like ``KeyboardInterrupt``."""


class Interrupted(BaseException):
    """Ctrl-C has come, for those who want to tell it from what typer makes of a ``KeyboardInterrupt``."""


class StopRequest:
    """Whether, and by which signal, the user has asked to stop.

    Attributes
    ----------
    signal : int or None
        The first signal that came.
    """

    def __init__(self) -> None:
        self.signal: int | None = None


_current: list[StopRequest] = []


def stop_requested() -> bool:
    """Whether work that can stop with a result should do so now."""
    return bool(_current) and _current[-1].signal is not None


@contextmanager
def stopping_gracefully(say: Callable[[str], object]) -> Iterator[StopRequest]:
    """Let the first SIGINT or SIGTERM wait for the end of a round; ``say`` tells the user so.

    Examples
    --------
    >>> import signal
    >>> from coterie.interruption import stop_requested, stopping_gracefully
    >>> with stopping_gracefully(print) as request:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     stop_requested()
    Stopping after this round, with what has been found so far; once more to stop at once.
    True
    >>> stop_requested()
    False
    """
    request = StopRequest()

    def on_signal(number: int, _: FrameType | None) -> None:
        if request.signal is not None:
            raise (KeyboardInterrupt if number == signal.SIGINT else Terminated)
        request.signal = number
        say("Stopping after this round, with what has been found so far; once more to stop at once.")

    with _handlers(on_signal):
        _current.append(request)
        try:
            yield request
        finally:
            _current.remove(request)


@contextmanager
def interrupting() -> Iterator[StopRequest]:
    """Let SIGTERM interrupt like Ctrl-C, for methods that keep their result at a ``KeyboardInterrupt``; it is remembered."""
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
    """Turn SIGTERM into :class:`Terminated`, so that temporary files are removed on the way out."""

    def on_signal(number: int, _: FrameType | None) -> None:
        raise Terminated

    with _handlers(on_signal, (signal.SIGTERM,)):
        yield


@contextmanager
def _handlers(handler: Any, signals: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM)) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    # Who starts a command in the background (nohup, `&`) may have its signals ignored; that stays as it is.
    wanted = [number for number in signals if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in wanted}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def ignore_signal(number: int) -> Iterator[None]:
    """Ignore a signal for a moment, so that processes that are started in it ignore it for ever.

    Elsewhere than in the main thread, which alone may say so, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)
