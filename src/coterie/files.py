"""Files and folders that are there whole or not at all, whenever the process is killed or the disk fills up.

Everything is made in a folder with a temporary name beside its place, flushed to the disk, and then renamed, which the file
system does in one step. A writer holds a lock on its temporary folder as long as it lives; the next writer of the same place
removes what killed ones have left.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import json
import os
import re
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # then there are no locks

_SUFFIX = ".partial"
# The host's own name, without the dots that part a temporary name.
_HOST = re.sub("[^A-Za-z0-9-]", "-", socket.gethostname())[:63] or "host"
# Bytes of a target's name in its temporary name, which can have 255: the rest is for the dots, host, PID, token and suffix.
_NAME_BYTES = 160
# The end of a temporary name; older versions left ".PID.partial" or ".TOKEN.partial".
_WRITER = re.compile(r"(?:(?P<host>[A-Za-z0-9-]+)\.(?P<pid>[1-9][0-9]{0,8})\.)?[0-9a-f]+\.partial")
# Seconds after which what another host has not touched is given up.
_DAY = 24 * 60 * 60
# The temporary names that this process is using.
_ours: set[str] = set()
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


@contextmanager
def new_file(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """A path to write to; the file appears under its own name when the block ends without an error.

    Parameters
    ----------
    path : path
        Where the file is to be.
    overwrite : bool, default=True
        Whether a file that is there already may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from coterie.files import new_file
    >>> folder = Path(tempfile.mkdtemp())
    >>> with new_file(folder / "a.txt") as partial:
    ...     _ = partial.write_text("whole")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give the name of a file.")
    _check(target, overwrite)
    with temporary_folder(target) as folder:
        partial = folder / target.name
        yield partial
        sync(partial)
        _check(target, overwrite)  # another may have been faster
        os.replace(partial, target)
        sync(target.parent)


@contextmanager
def new_folder(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """An empty folder to write to; it appears under its own name when the block ends without an error.

    Parameters
    ----------
    path : path
        Where the folder is to be.
    overwrite : bool, default=False
        Whether a folder that is there already may be replaced, with all that is in it.
    """
    target = Path(path)
    _check(target, overwrite)
    if target.exists() and not target.is_dir():
        raise FileExistsError(f"{target} is a file; choose another name for the folder.")
    with temporary_folder(target) as partial:
        yield partial
        for file in sorted(partial.rglob("*")):
            sync(file)
        sync(partial)
        _check(target, overwrite)  # another may have been faster
        try:
            os.rename(partial, target)
        except OSError:
            if not (overwrite and target.is_dir()):
                raise
            _exchange(partial, target)
        sync(target.parent)


def _check(target: Path, overwrite: bool) -> None:
    check_parent(target)
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists; choose another name or allow overwriting it.")


def read_record(path: Path, format: str, version: int | None = None) -> dict[str, Any]:
    """The content of a JSON file of Coterie's that says of itself which format it has, in one version or any (None)."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}.") from error
    if not isinstance(content, dict) or content.get("format") != format:
        raise ValueError(f"{path} is not that of a {format}.")
    if version is not None and content.get("version") != version:
        raise ValueError(f"{path} has version {content.get('version')}; this Coterie reads version {version}. Update it.")
    return content


def check_parent(path: Path) -> None:
    """Raise unless the folder is there that something is to be written to; before the work, not after it."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} to; make it first.")


@contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """A new folder beside a target, with a lock on it, that is removed when the block ends, unless it has been renamed.

    Its name is ``.NAME.HOST.PID.TOKEN.partial``. A file is made in such a folder, too: a lock on the file itself would, on
    some network drives, keep all others from writing to it, even this process.

    Parameters
    ----------
    target : Path
        What is to be made. What killed writers of it have left is removed.
    """
    _remove_leftovers(target)
    folder = target.parent / f"{_stem(target)}{_HOST}.{os.getpid()}.{secrets.token_hex(4)}{_SUFFIX}"
    with ExitStack() as stack:
        _ours.add(folder.name)  # before it is there, so that no thread takes it for left
        stack.callback(_ours.discard, folder.name)
        _make_locked(folder, stack)
        stack.callback(_remove, folder)
        yield folder


def _make_locked(folder: Path, stack: ExitStack) -> None:
    """Make a folder and lock it; once more if another writer has removed it before it was locked."""
    while True:
        folder.mkdir()
        with suppress(FileNotFoundError):
            stack.enter_context(locked(folder))
            return


def _remove_leftovers(target: Path) -> None:
    """Remove what killed writers of a target have left."""
    for path in target.parent.glob(f"{glob.escape(_stem(target))}*{_SUFFIX}"):
        writer = writer_of(path.name, target)
        if writer is None or path.name in _ours:
            continue
        with suppress(OSError), locked(path, wait=False) as taken:  # an error: it is gone, or another user's
            if _is_stale(path, writer, taken):
                _remove(path)


class Writer(NamedTuple):
    """Who makes, or has made, something under a temporary name; an older version left no host."""

    host: str | None
    pid: int


def writer_of(name: str, target: Path) -> Writer | None:
    """Whose temporary name for a target this is; None if it is no such name."""
    stem = _stem(target)
    found = _WRITER.fullmatch(name[len(stem) :]) if name.startswith(stem) else None
    return None if found is None else Writer(found["host"], int(found["pid"] or 0))


def _is_stale(path: Path, writer: Writer, taken: bool | None) -> bool:
    """Whether the writer of a temporary file or folder is gone: the one rule.

    - As long as another holds its lock, it is not.
    - A writer of this host is gone when its lock can be taken, because locks are reliable on one host. Where there are no
      locks, it is gone when no process has its PID. If that is our own PID, it is gone as well, because what this process is
      writing was left out before: in a container every run has the same PID.
    - A writer of another host, or of an older version, which left no host, is gone when its lock can be taken (or there are no
      locks) and besides nothing was modified for a day, because locks may not reach across hosts.

    Parameters
    ----------
    path : Path
        The file or folder.
    writer : Writer
        From its name.
    taken : bool or None
        Whether its lock was taken, as :func:`lock` says it.
    """
    if taken is False:
        return False
    if writer.host != _HOST:
        return time.time() - max(file.lstat().st_mtime for file in [path, *path.rglob("*")]) > _DAY
    if taken is True or writer.pid == os.getpid():
        return True
    import psutil  # for the few who have no locks

    return not psutil.pid_exists(writer.pid)


def _stem(target: Path) -> str:
    """What all temporary names of a target begin with."""
    name = target.name
    while len(os.fsencode(name)) > _NAME_BYTES:
        name = name[:-1]
    return f".{name}."


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


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
            if taken:  # by word, because a forked child may have the handle, too
                fcntl.flock(handle, fcntl.LOCK_UN)
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


def full_disk(error: OSError, path: Path) -> OSError:
    """An error of the disk, with the file and the remedy."""
    what = f"{error.strerror or error}; nothing was kept. Free some space or write to another folder"
    return OSError(error.errno, what, str(path))


def _exchange(partial: Path, target: Path) -> None:
    """Let two folders change names: in one step on Linux, else in two, between which neither has the target's name."""
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):
            rename = ctypes.CDLL(None, use_errno=True).renameat2
            if rename(_AT_FDCWD, os.fsencode(partial), _AT_FDCWD, os.fsencode(target), _RENAME_EXCHANGE) == 0:
                return
    aside = partial.with_name(partial.name + ".old")
    os.rename(target, aside)
    os.rename(partial, target)
    os.rename(aside, partial)
