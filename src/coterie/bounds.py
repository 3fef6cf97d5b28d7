"""What a file may make us open and allocate: the one place that says so.

A file says how large its content is before anybody has seen the content, and it may lie, or be damaged, or never end. So
files are opened by :func:`open_regular` (no pipes, no devices), and whoever is about to allocate by what a file says
calls :func:`require_memory` first. A claim is compared with the limit that the user has set, and with the memory that is free.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# Claims up to here are granted unasked: they hurt nobody, and reading stays quick.
FREE_BYTES = 1 << 26
# Without a word of the user's, a file may have this many samples or features, or as many as it can hold values: arrays by
# feature must not outgrow the input because of one wrong number.
FREE_LENGTH = 1 << 25
# Deflate, HDF5's usual filter and that of zip files, cannot pack better than this. (bzip2 and xz can; what they unpack is
# claimed piece by piece.)
BEST_RATIO = 1040

_UNLIMITED = 1 << 62
_BUFFER_BYTES = 1 << 16
_limit: ContextVar[int | None] = ContextVar("limit", default=None)


class DataFileError(ValueError):
    """A data file that cannot be read: damaged, or not what it claims to be.

    Parameters
    ----------
    message : str
        What is wrong and what to do.
    path : path-like
        The file.
    line, column : int, optional
        The place in a text file, both counted from 1.

    Attributes
    ----------
    message, path, line, column
        As given.

    Examples
    --------
    >>> from coterie.data import DataFileError
    >>> str(DataFileError("a label is missing.", "train.svm", line=3, column=1))
    'train.svm:3:1: a label is missing.'
    """

    def __init__(
        self, message: str, path: str | os.PathLike[str], *, line: int | None = None, column: int | None = None
    ) -> None:
        self.message = message
        self.path = Path(path)
        self.line = line
        self.column = column
        place = "".join(f":{number}" for number in (line, column) if number is not None)
        super().__init__(f"{path}{place}: {message}")

    def __reduce__(self) -> Any:  # an error of a worker is raised here
        return partial(type(self), line=self.line, column=self.column), (self.message, self.path)


class _NamedFile(io.FileIO):
    """An open file whose read errors name it; the system leaves them bare."""

    def __init__(self, number: int, path: str | os.PathLike[str]) -> None:
        super().__init__(number, "rb")
        self._path = os.fspath(path)

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        """Read bytes into a buffer."""
        with self._named():
            return super().readinto(buffer)

    def readall(self) -> bytes:
        """Read all bytes that are left."""
        with self._named():
            return super().readall()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from error


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A file opened for reading; anything that is not a regular file (it may never end) is refused, not waited for."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        number = os.open(path, flags)
    except OSError as error:
        raise _irregular(path) or error from None
    if stat.S_ISREG(os.fstat(number).st_mode):
        return io.BufferedReader(_NamedFile(number, path), _BUFFER_BYTES)
    os.close(number)
    raise _irregular(path) or AssertionError(path)


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse what is not a regular file, before a library opens it by its name."""
    error = _irregular(path)
    if error is not None:
        raise error


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _irregular(path: str | os.PathLike[str]) -> DataFileError | None:
    try:
        mode = os.stat(path).st_mode
    except OSError:  # opening it says why
        return None
    kind = next((words for check, words in _KINDS if check(mode)), None)
    return None if kind is None else DataFileError(f"it is {kind}, not a file. Save the content to a file first.", path)


def read_regular(path: str | os.PathLike[str], most: int = _UNLIMITED) -> bytes:
    """All bytes of a regular file, which may have ``most`` of them."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise DataFileError(f"it has {in_bytes(size)}, but what it should be never has more than {in_bytes(most)}.", path)
        require_memory(size, path, "the file")
        return file.read(size)


@contextmanager
def memory_limit(n_bytes: int | None) -> Iterator[None]:
    """Inside, claims are compared with this limit, besides the memory that is free; None: with that alone."""
    token = _limit.set(n_bytes)
    try:
        yield
    finally:
        _limit.reset(token)


def require_memory(n_bytes: int, path: str | os.PathLike[str], what: str, *, line: Callable[[], int] | None = None) -> None:
    """Say that reading ``what`` of a file takes so much memory, before it is taken; refused where that is too much.

    ``line`` finds the line of a text file; it is called for an error alone.
    """
    if n_bytes <= FREE_BYTES:
        return
    limit = _limit.get()
    if limit is not None and n_bytes > limit + FREE_BYTES:
        bound, remedy = f"memory_limit is {in_bytes(limit)}", "raise memory_limit"
    elif n_bytes > (free := free_memory()):
        bound, remedy = f"{in_bytes(free)} are free", "use a machine with more memory"
    else:
        return
    message = f"{what} would take {in_bytes(n_bytes)} of memory, and {bound}. If the file is not damaged, {remedy}."
    raise DataFileError(message, path, line=None if line is None else line())


def check_length(n: int, n_bytes: int, path: str | os.PathLike[str], what: str) -> None:
    """Refuse a number of samples or features that a file of so many (unpacked) bytes cannot fill."""
    if not 0 <= n <= max(FREE_LENGTH, n_bytes):
        size = os.stat(path).st_size
        raise DataFileError(f"{what} cannot be right for a file of {size} bytes. Get or make the file again.", path)


def in_bytes(n: int) -> str:
    """A number of bytes in words."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= size:
            return f"{n / size:,.4g} {unit}"
    return f"{n} bytes"


def free_memory() -> int:
    """Bytes that this process can still get: of the machine, of its container, and of its own limit."""
    return max(0, min(_of_machine(), _of_container(), _of_process()))


def _of_machine() -> int:
    with suppress(OSError, ValueError):
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return sum(int(lines[key].split()[0]) << 10 for key in ("MemAvailable", "SwapFree") if key in lines)
    with suppress(OSError, ValueError, AttributeError):  # not Linux: what the machine has
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _UNLIMITED


def _of_container() -> int:
    """What the control group (version 2) leaves, counting the cache of files, which the kernel gives back."""
    with suppress(OSError, ValueError, IndexError):
        name = Path("/proc/self/cgroup").read_text().split("::", 1)[1].split("\n")[0]
        folder = Path(f"/sys/fs/cgroup{name}")
        most = int((folder / "memory.max").read_text())  # "max" where there is no limit
        used = int((folder / "memory.current").read_text())
        counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return most - used + int(counts.get("inactive_file", 0)) + int(counts.get("active_file", 0))
    return _UNLIMITED


def _of_process() -> int:
    with suppress(ImportError, OSError, ValueError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            return most - int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return _UNLIMITED
