"""The disk and its locks: where something is written, flushing, one writer at a time, errors that name the file."""

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
    fcntl = None  # type: ignore[assignment]  # then there are no locks

AnyPath = str | os.PathLike[str]

_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
# What a write fails with that the disk has no room for, or that it cannot hold.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def resolved(path: AnyPath) -> Path:
    """Where something is to be written: what a link leads to, so that the link stays and its target is replaced."""
    try:
        return Path(os.path.realpath(path))
    except FileNotFoundError:  # of the current folder, which a relative path needs
        raise FileNotFoundError(
            errno.ENOENT, "the current folder was removed. Change to another one or give an absolute path", os.fspath(path)
        ) from None


def check_parent(path: AnyPath) -> None:
    """Raise unless the folder is there that something is to be written to; before the work, not after it."""
    place = resolved(path) if os.path.islink(path) else Path(path)
    if not place.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {place.parent} to write {place.name} to; make it first.")


def check_file(path: AnyPath, overwrite: bool) -> None:
    """Raise unless a file can be written there; before the work, not after it."""
    target = resolved(path)
    check_parent(path)
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file.")
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{path} is a device or a pipe, which cannot be replaced; give the name of a file.")
    if target.exists() and not overwrite:
        raise FileExistsError(f"{path} exists; choose another name, or replace it with overwrite=True.")


def lock(file: int | BinaryIO, *, wait: bool = True) -> bool | None:
    """Take an exclusive lock on an open file or folder; it ends when the file is closed, at the latest with the process.

    Parameters
    ----------
    file : file or int
        The open file, or its descriptor.
    wait : bool, default=True
        Whether to wait while another has the lock.

    Returns
    -------
    taken : bool or None
        False if another has it; None if the system or the file system has no locks, and one has to go on without.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # the latter on network drives
        return False
    except OSError:
        return None
    return True


def unlock(handle: int) -> None:
    """End a lock by word, because a forked child may have the handle, too."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool | None]:
    """A :func:`lock` on a file or folder for a block, which gets what ``lock`` returns.

    Raises ``FileNotFoundError`` if, once there is the lock, the path does not lead to what was locked any more.
    """
    if fcntl is None:
        yield None
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        taken = lock(handle, wait=wait)
        if not os.path.samestat(os.fstat(handle), os.stat(path)):
            raise FileNotFoundError(errno.ENOENT, "it was replaced", str(path))
        try:
            yield taken
        finally:
            if taken:
                unlock(handle)
    finally:
        os.close(handle)


def sync(path: Path) -> None:
    """Have the disk hold a file, or a folder's list of names, where the system can."""
    try:
        handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)  # Windows flushes what one may write to
    except PermissionError:
        if path.is_dir():  # Windows, which needs no flush of folders
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
def writing(path: Path, target: Path | None = None, *, kept: str = "nothing was kept") -> Iterator[None]:
    """Name the file in an error of a full disk, which the system leaves bare.

    Parameters
    ----------
    path : Path
        The file that is written in the block.
    target : Path, optional
        What the user knows it by.
    kept : str
        What becomes of the data.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL or isinstance(error, WriteError):
            raise
        raise full_disk(error, path, target, kept) from error


class WriteError(OSError):
    """A write that failed, with the file, how much of it there was, and how much room is left."""


def full_disk(error: OSError, path: Path, target: Path | None = None, kept: str = "nothing was kept") -> OSError:
    """An error of the disk, with the file, the amounts and the remedy; otherwise as :func:`writing`."""
    facts = []
    with suppress(OSError):
        facts.append(f"{_megabytes(path.stat().st_size)} were written")
    with suppress(OSError):
        facts.append(f"{_megabytes(shutil.disk_usage(path.parent).free)} are free")
    amounts = f" ({', '.join(facts)})" if facts else ""
    what = f"{error.strerror or error}{amounts}; {kept}. Free some space or write to another folder"
    return WriteError(error.errno, what, str(target or path))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
