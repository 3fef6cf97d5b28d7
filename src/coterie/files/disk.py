"""Checks of output paths, locks, flushing to disk, and errors that name the file."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # no locks on this system

AnyPath = str | os.PathLike[str]

_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
# Errors of a write to a full or failing disk.
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def resolved(path: AnyPath) -> Path:
    """Return a path with links resolved, so that writing replaces the target of a link and keeps the link."""
    try:
        return Path(os.path.realpath(path))
    except FileNotFoundError:  # the current folder, which a relative path requires, does not exist
        raise FileNotFoundError(
            errno.ENOENT, "The current folder was removed. Change to another folder or use an absolute path", os.fspath(path)
        ) from None


def check_parent(path: AnyPath) -> None:
    """Raise if the parent folder of a path does not exist; for a check before the computation."""
    place = resolved(path) if os.path.islink(path) else Path(path)
    if not place.parent.is_dir():
        raise FileNotFoundError(f"Folder {place.parent} does not exist. Create it before writing {place.name}.")


def check_file(path: AnyPath, overwrite: bool) -> None:
    """Raise if a file cannot be written at this path; for a check before the computation."""
    target = resolved(path)
    check_parent(path)
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Pass the name of a file.")
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{path} is a device or a pipe, which cannot be replaced. Pass the name of a file.")
    if target.exists() and not overwrite:
        raise FileExistsError(f"{path} exists. Choose another name, or replace it with overwrite=True.")


def lock(file: int | BinaryIO, *, wait: bool = True) -> bool | None:
    """Acquire an exclusive lock on an open file or folder, which ends when the file is closed or the process ends.

    Parameters
    ----------
    file : file or int
        Open file, or its descriptor.
    wait : bool, default=True
        Whether to wait while another process holds the lock.

    Returns
    -------
    taken : bool or None
        Whether the lock was acquired; None if the system or the file system does not support locks.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # PermissionError on network drives
        return False
    except OSError:
        return None
    return True


def unlock(handle: int) -> None:
    """Release a lock explicitly, because a forked child may hold the descriptor, too."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool | None]:
    """Hold a :func:`lock` on a file or folder during a block, and yield the result of ``lock``.

    Raises ``FileNotFoundError`` if the path was replaced before the lock was acquired.
    """
    if fcntl is None:
        yield None
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        taken = lock(handle, wait=wait)
        if not os.path.samestat(os.fstat(handle), os.stat(path)):
            raise FileNotFoundError(errno.ENOENT, "Path was replaced", str(path))
        try:
            yield taken
        finally:
            if taken:
                unlock(handle)
    finally:
        os.close(handle)


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk if the system supports it."""
    try:
        handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)  # Windows flushes only writable files
    except PermissionError:
        if path.is_dir():  # Windows, where folders need not be flushed
            return
        raise
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(handle)


@contextmanager
def writing(path: Path, target: Path | None = None, *, kept: str = "nothing was saved") -> Iterator[None]:
    """Add the file name to an error of a full disk, in which the system omits it.

    Parameters
    ----------
    path : Path
        File that is written in the block.
    target : Path, optional
        Path to name in the message, by default ``path``.
    kept : str
        Sentence about the data that remain, without a full stop.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_ERRORS or isinstance(error, WriteError):
            raise
        raise full_disk(error, path, target, kept) from error


class WriteError(OSError):
    """Failed write, with the file, the bytes written and the free space."""


def full_disk(error: OSError, path: Path, target: Path | None = None, kept: str = "nothing was saved") -> OSError:
    """Return an error of the disk with file, amounts and remedy. The parameters are those of :func:`writing`."""
    facts = []
    with suppress(OSError):
        facts.append(f"{_megabytes(path.stat().st_size)} were written")
    with suppress(OSError):
        facts.append(f"{_megabytes(shutil.disk_usage(path.parent).free)} are free")
    amounts = f" ({', '.join(facts)})" if facts else ""
    what = f"{error.strerror or error}{amounts}. {kept[:1].upper()}{kept[1:]}. Free some space or write to another folder"
    return WriteError(error.errno, what, str(target or path))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
