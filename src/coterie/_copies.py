"""Copies of this process that do a part of some work and send back what they have found.

Kernels leave the interpreter alone, but between them Python decides what comes next, one thread at a time: searches in
lockstep gain little by threads, the less the more of their work is compiled. A fork has all data at once (its memory is that
of its parent until one of them writes) and an interpreter of its own.

What makes forks safe here: a copy runs our kernels and NumPy with one BLAS thread, never enters OpenMP, prints nothing, and
ends without returning to the caller's code. It changes nothing here before its answer has come whole. One that is lost (killed
for its memory), fails, or stands still for long is given up, and its part is done here, with the same result or error.
"""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, NoReturn, Self

from coterie._numba import threads_limited

# What a part of the work calls now and then, with whether it wants all to stop; it is told whether to stop.
Beat = Callable[[bool], bool]
Part = Callable[[Beat], Any]
# Seconds without a sign of life after which a copy is given up, or how many times the longest pause that was seen here.
_PATIENCE, _LONGER = 60.0, 20.0
_LOOK = 0.5  # seconds between two looks at it
_LENGTH = 8  # bytes before an answer that say how long it is: who else has the pipe open does not matter


def can_copy() -> bool:
    """Whether forks are safe on this system, and nobody has forbidden them (``COTERIE_FORK=0``)."""
    return sys.platform == "linux" and os.environ.get("COTERIE_FORK", "1") != "0"


def in_copies(parts: Sequence[Part], known: Sequence[Any] = (), *, n_threads: int = 1) -> list[Any]:
    """The results of some parts, the first of which is done here and each of the others in a copy of this process.

    Parameters
    ----------
    parts : sequence of callables
        Each calls the function that it is given after every round, say; the longest pause tells what is to be expected.
    known : sequence of objects
        What results may refer to and everybody has already, such as the data: they are not sent, but found again by identity.
    n_threads : int, default=1
        Threads of each process.

    Examples
    --------
    >>> from coterie._copies import in_copies
    >>> in_copies([lambda _: 1, lambda _: 2])
    [1, 2]
    """
    with threads_limited(n_threads), _Signs(len(parts)) as signs:
        copies = [_Copy(part, number, signs, known) for number, part in enumerate(parts[1:], start=1)]
        try:
            results = [parts[0](signs.beat)]
            for part, copy in zip(parts[1:], copies, strict=True):
                answer = copy.answer()
                results.append(part(signs.beat) if answer is None else answer)
        finally:
            for copy in copies:
                copy.end()
    return results


class _Signs:
    """Memory that all processes share: how often each has given a sign of life, and whether to stop."""

    def __init__(self, n_processes: int) -> None:
        self._memory = mmap.mmap(-1, 8 * (n_processes + 1))
        self.number = 0  # of this process
        self.longest, self._last = 0.0, time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.close()

    def beat(self, stop: bool) -> bool:
        """Give a sign of life, and tell all processes to stop if this one wants to; whether to stop."""
        now = time.monotonic()
        self._last, self.longest = now, max(self.longest, now - self._last)
        self._write(self.number, self.count(self.number) + 1)
        if stop:
            self._write(-1, 1)
        return bool(self.count(-1))

    def count(self, number: int) -> int:
        """How often a process has given a sign of life; of -1, whether to stop."""
        return int.from_bytes(self._memory[8 * number + 8 : 8 * number + 16], "little")

    def _write(self, number: int, value: int) -> None:
        self._memory[8 * number + 8 : 8 * number + 16] = value.to_bytes(8, "little")


class _Copy:
    """A fork that does a part."""

    def __init__(self, part: Part, number: int, signs: _Signs, known: Sequence[Any]) -> None:
        self._number, self._signs, self._known = number, signs, known
        self._pid = 0
        self._read, write = os.pipe()
        with contextlib.suppress(OSError), warnings.catch_warnings():  # no room for another process: its part is done here
            warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads: see above
            self._pid = os.fork()
            if not self._pid:
                self._work(part, write)
        os.close(write)

    def _work(self, part: Part, write: int) -> NoReturn:
        """What the copy does: the part; it ends here, whatever happens."""
        failed = 1
        try:
            # Ctrl-C of a terminal comes to all; what it means is decided by the parent.
            for name in (signal.SIGINT, signal.SIGTERM):
                signal.signal(name, signal.SIG_IGN)
            gc.freeze()  # what the parent has thrown away is the parent's to finish
            os.close(self._read)
            parent, signs = os.getppid(), self._signs
            signs.number = self._number

            def beat(stop: bool) -> bool:
                if os.getppid() != parent:  # nobody waits for this any more
                    os._exit(1)
                return signs.beat(stop)

            answer = _written(part(beat), self._known)
            with os.fdopen(write, "wb") as pipe:
                pipe.write(len(answer).to_bytes(_LENGTH, "little"))
                pipe.write(answer)
            failed = 0
        finally:
            os._exit(failed)

    def answer(self) -> Any:
        """What the copy has found; None where it is lost."""
        received, expected = bytearray(), _LENGTH
        seen, since = self._signs.count(self._number), time.monotonic()
        ready = select.poll()
        ready.register(self._read, select.POLLIN)
        while self._pid and len(received) < expected:
            if ready.poll(1000 * _LOOK):
                if not (chunk := os.read(self._read, 1 << 20)):
                    return None
                received += chunk
                since = time.monotonic()
                if len(received) >= _LENGTH:
                    expected = _LENGTH + int.from_bytes(received[:_LENGTH], "little")
            elif self._signs.count(self._number) != seen:
                seen, since = self._signs.count(self._number), time.monotonic()
            elif time.monotonic() - since > max(_PATIENCE, _LONGER * self._signs.longest):
                return None
        return _read(received[_LENGTH:], self._known) if self._pid else None

    def end(self) -> None:
        """End the copy, if it has not ended."""
        os.close(self._read)
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


def _written(result: Any, known: Sequence[Any]) -> bytes:
    """A result as bytes, with places in ``known`` for the objects that are there."""
    file = BytesIO()
    _Writer(file, known).dump(result)
    return file.getvalue()


def _read(data: bytes | bytearray, known: Sequence[Any]) -> Any:
    """What :func:`_written` has written, by a process that is this one but for its part."""
    return _Reader(BytesIO(data), known).load()


class _Writer(pickle.Pickler):
    def __init__(self, file: BytesIO, known: Sequence[Any]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._places = {id(one): place for place, one in enumerate(known)}

    def persistent_id(self, one: Any) -> int | None:
        return self._places.get(id(one))


class _Reader(pickle.Unpickler):
    def __init__(self, file: BytesIO, known: Sequence[Any]) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, place: int) -> Any:
        return self._known[place]
