"""Limits on files that are opened and on memory that is allocated for them.

A file states the size of its content before the content is read. The file may be damaged, forged or endless. So files are
opened by :func:`open_regular` (no pipes, no devices), and code that allocates memory of a size stated in a file calls
:func:`require_memory` first. The required memory is compared with the limit set by the user and with the free memory.
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

# Required memory up to this size is not checked: it is harmless, and checks would slow down reading.
MIN_CHECKED_BYTES = 1 << 26
# Unless the user states a number, a file may have this many samples or features, or as many as it can hold values: one wrong
# number must not allocate arrays per feature that are larger than the input.
DEFAULT_MAX_LENGTH = 1 << 25
# Maximum compression ratio of Deflate, which zip files and usually HDF5 use. The ratios of bzip2 and xz can be higher, so the
# memory of their content is required piece by piece.
MAX_DEFLATE_RATIO = 1040

_UNLIMITED = 1 << 62
_BUFFER_BYTES = 1 << 16
_limit: ContextVar[int | None] = ContextVar("limit", default=None)


class DataFileError(ValueError):
    """Error of a data file that cannot be read, because it is damaged or has another format.

    Parameters
    ----------
    message : str
        Problem and remedy.
    path : path-like
        Path of the file.
    line, column : int, optional
        Position in a text file, both counted from 1.

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

    def __reduce__(self) -> Any:  # errors of workers are pickled
        return partial(type(self), line=self.line, column=self.column), (self.message, self.path)


class _NamedFile(io.FileIO):
    """Open file whose read errors include its path, which the system omits."""

    def __init__(self, number: int, path: str | os.PathLike[str]) -> None:
        super().__init__(number, "rb")
        self._path = os.fspath(path)

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        """Read bytes into a buffer."""
        with self._errors_with_path():
            return super().readinto(buffer)

    def readall(self) -> bytes:
        """Read all remaining bytes."""
        with self._errors_with_path():
            return super().readall()

    @contextmanager
    def _errors_with_path(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from error


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading. Raises, without waiting, if it is not a regular file, which may be endless."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        number = os.open(path, flags)
    except OSError as error:
        raise _irregular_file_error(path) or error from None
    if stat.S_ISREG(os.fstat(number).st_mode):
        return io.BufferedReader(_NamedFile(number, path), _BUFFER_BYTES)
    os.close(number)
    raise _irregular_file_error(path) or AssertionError(path)


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise if a path is not a regular file; for a check before a library opens it by its path."""
    error = _irregular_file_error(path)
    if error is not None:
        raise error


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _irregular_file_error(path: str | os.PathLike[str]) -> DataFileError | None:
    try:
        mode = os.stat(path).st_mode
    except OSError:  # opening the file reports the problem
        return None
    kind = next((name for check, name in _KINDS if check(mode)), None)
    return None if kind is None else DataFileError(f"this is {kind}, not a file. Save the content to a file first.", path)


def read_regular(path: str | os.PathLike[str], max_bytes: int = _UNLIMITED) -> bytes:
    """Return the content of a regular file of at most ``max_bytes``."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            message = f"the file has {format_bytes(size)}. The maximum for its kind is {format_bytes(max_bytes)}."
            raise DataFileError(message, path)
        require_memory(size, path, "the file")
        return file.read(size)


@contextmanager
def memory_limit(n_bytes: int | None) -> Iterator[None]:
    """Set the limit of required memory during a block, in addition to the free memory; None for no limit."""
    token = _limit.set(n_bytes)
    try:
        yield
    finally:
        _limit.reset(token)


def require_memory(n_bytes: int, path: str | os.PathLike[str], what: str, *, line: Callable[[], int] | None = None) -> None:
    """Raise ``DataFileError`` if ``what`` of a file requires more memory than the limit or the free memory.

    Must be called before the memory is allocated. ``line`` returns the line of a text file and is called for an error only.
    """
    if n_bytes <= MIN_CHECKED_BYTES:
        return
    limit = _limit.get()
    if limit is not None and n_bytes > limit + MIN_CHECKED_BYTES:
        bound, remedy = f"memory_limit is {format_bytes(limit)}", "increase memory_limit"
    elif n_bytes > (free := free_memory()):
        bound, remedy = f"{format_bytes(free)} are free", "use a machine with more memory"
    else:
        return
    message = f"{what} would take {format_bytes(n_bytes)} of memory, but {bound}. If the file is not damaged, {remedy}."
    raise DataFileError(message, path, line=None if line is None else line())


def check_length(n: int, n_bytes: int, path: str | os.PathLike[str], what: str) -> None:
    """Raise if a file of ``n_bytes`` (uncompressed) cannot hold ``n`` samples or features."""
    if not 0 <= n <= max(DEFAULT_MAX_LENGTH, n_bytes):
        size = os.stat(path).st_size
        raise DataFileError(f"{what} is impossible for a file of {size} bytes. Download or create the file again.", path)


def format_bytes(n: int) -> str:
    """Return a number of bytes with a unit."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= size:
            return f"{n / size:,.4g} {unit}"
    return f"{n} bytes"


def free_memory() -> int:
    """Return the bytes that this process can still allocate: limited by machine, container and process."""
    return max(0, min(_machine_memory(), _container_memory(), _process_memory()))


def _machine_memory() -> int:
    with suppress(OSError, ValueError):
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return sum(int(lines[key].split()[0]) << 10 for key in ("MemAvailable", "SwapFree") if key in lines)
    with suppress(OSError, ValueError, AttributeError):  # not Linux: the memory of the machine
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _UNLIMITED


def _container_memory() -> int:
    """Return the free memory of the control group (version 2), including the file cache, which the kernel can release."""
    with suppress(OSError, ValueError, IndexError):
        name = Path("/proc/self/cgroup").read_text().split("::", 1)[1].split("\n")[0]
        folder = Path(f"/sys/fs/cgroup{name}")
        limit = int((folder / "memory.max").read_text())  # "max" (a ValueError) if there is no limit
        used = int((folder / "memory.current").read_text())
        counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return limit - used + int(counts.get("inactive_file", 0)) + int(counts.get("active_file", 0))
    return _UNLIMITED


def _process_memory() -> int:
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            return limit - int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return _UNLIMITED
