"""Files and folders that are there whole or not at all, whenever the process is killed or the disk fills up.

Everything is made in a folder with a temporary name beside its place, flushed to the disk, and then renamed, which the file
system does in one step. A writer holds a lock on its temporary folder as long as it lives; the next writer of the same place
removes what killed ones have left. Long work claims its place first, so that a second writer is told so before it begins.
Nothing is deleted or replaced that Coterie did not write.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # then there are no locks

AnyPath = str | os.PathLike[str]

# The host's own name, without the dots that part a temporary name.
_HOST = re.sub("[^A-Za-z0-9-]", "-", socket.gethostname())[:63] or "host"
# Bytes of a target's name in its temporary name, which can have 255: the rest is for the dots, host, PID, token and suffix.
_NAME_BYTES = 150
# A temporary name. Host, PID and token have no dots, so that the target's name is told for certain, whatever is in it.
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<host>[A-Za-z0-9-]+)\.(?P<pid>[1-9][0-9]{0,9})\.[0-9a-f]{8}\.partial", re.DOTALL)
# What the file of a claim begins with; one with other words is not ours.
_CLAIM = "coterie claim"
# Seconds after which what another host has not touched is given up.
_DAY = 24 * 60 * 60
# The temporary names that this process is using.
_ours: set[str] = set()
# The claims that this process holds: process (a forked child has none) and thread by target.
_claims: dict[Path, tuple[int, int]] = {}
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
# What a write fails with that the disk has no room for, or that it cannot hold.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@contextmanager
def new_file(path: AnyPath, *, overwrite: bool = True) -> Iterator[Path]:
    """A path to write to; the file appears under its own name when the block ends without an error.

    Of several writers at the same time the last one wins. Who works long for a file claims it first (:func:`claimed`).

    Parameters
    ----------
    path : path
        Where the file is to be. A link is followed.
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
    target = resolved(path)
    _check_file(path, overwrite)
    with temporary_folder(target) as place:
        partial = place / target.name
        with writing(partial, target):
            yield partial
            sync(partial)
        _check_file(path, overwrite)  # another may have been faster
        os.replace(partial, target)
        sync(target.parent)


FilesOf = Callable[[Path], Collection[str]]


def _no_files(_: Path) -> Collection[str]:
    return ()


@contextmanager
def new_folder(path: AnyPath, *, overwrite: bool = False, files_of: FilesOf = _no_files) -> Iterator[Path]:
    """An empty folder to write to; it appears under its own name when the block ends without an error.

    The place is claimed as long as the block lasts.

    Parameters
    ----------
    path : path
        Where the folder is to be. A link is followed.
    overwrite : bool, default=False
        Whether a folder that is there already may be replaced, if all that is in it is ours.
    files_of : callable, optional
        Called with a folder that is there already: the names of what Coterie has written to it. Other names are other
        people's work, with which the folder is not replaced. By default only an empty folder is.
    """
    target = resolved(path)
    with claimed(path):
        check_folder(path, overwrite=overwrite, files_of=files_of)
        with temporary_folder(target) as place:
            partial = place / target.name
            partial.mkdir()
            yield partial
            for file in sorted(partial.rglob("*")):
                sync(file)
            sync(partial)
            check_folder(path, overwrite=overwrite, files_of=files_of)  # somebody may have put something there
            try:
                os.rename(partial, target)
            except OSError:
                if not (overwrite and target.is_dir()):
                    raise
                _exchange(partial, target, _former(place))
            sync(target.parent)


def check_folder(path: AnyPath, *, overwrite: bool, files_of: FilesOf) -> None:
    """Raise unless :func:`new_folder` may make a folder there; before the work, not after it."""
    target = resolved(path)
    check_parent(path)
    if not target.exists():
        return
    if not target.is_dir():
        raise FileExistsError(f"{path} is a file; choose another name for the folder.")
    names = sorted(os.listdir(target))
    foreign = set(names) - set(files_of(target)) if names else set()
    if foreign:
        raise FileExistsError(
            f"{path} holds something else than a result of Coterie ({min(foreign)}), so it is not replaced; choose another "
            "name."
        )
    if not overwrite:
        raise FileExistsError(f"{path} exists; choose another name, or replace it with overwrite=True.")


def _check_file(path: AnyPath, overwrite: bool) -> None:
    target = resolved(path)
    check_parent(path)
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file.")
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{path} is a device or a pipe, which cannot be replaced; give the name of a file.")
    if target.exists() and not overwrite:
        raise FileExistsError(f"{path} exists; choose another name, or replace it with overwrite=True.")


def resolved(path: AnyPath) -> Path:
    """Where something is to be written: what a link leads to, so that the link stays and its target is replaced."""
    return Path(os.path.realpath(path))


def read_record(path: Path, format: str, version: int | None = None) -> dict[str, Any]:
    """The content of a JSON file of Coterie's that says of itself which format it has, in one version or any (None)."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}.") from error
    if not isinstance(content, dict) or content.get("format") != format:
        raise ValueError(f"{path} is not that of a {format}.")
    if version is not None and content.get("version") != version:
        raise ValueError(f"{path} has version {content.get('version')}; this Coterie reads version {version}. Update it.")
    return content


def check_parent(path: AnyPath) -> None:
    """Raise unless the folder is there that something is to be written to; before the work, not after it."""
    place = resolved(path) if os.path.islink(path) else Path(path)
    if not place.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {place.parent} to write {place.name} to; make it first.")


# Claims ----------------------------------------------------------------------------------------


@contextmanager
def claimed(*paths: AnyPath | None) -> Iterator[None]:
    """Have places to write to for oneself for a block; a second writer is refused before it has begun.

    A claim is a lock on the file ``.NAME.claim`` beside the place, which says who holds it. The lock ends with its process,
    so that what a killed one has left is in nobody's way. The thread that has a claim may take it again. Where there are no
    locks, a claim counts as long as the process that is named in it lives on this host.

    Parameters
    ----------
    *paths : path or None
        The files or folders to be written; None for none.

    Raises
    ------
    BlockingIOError
        If another process or thread has a claim.

    Examples
    --------
    >>> import tempfile
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from pathlib import Path
    >>> from coterie.files import claimed
    >>> path = Path(tempfile.mkdtemp()) / "result"
    >>> def work():
    ...     with claimed(path):
    ...         return "done"
    >>> with claimed(path), ThreadPoolExecutor(1) as other:
    ...     other.submit(work).result()
    Traceback (most recent call last):
    BlockingIOError: Another writer (PID ... on ...) is at work on /...result; wait for its end, or choose another name.
    >>> work()
    'done'
    """
    with ExitStack() as stack:
        for path in paths:
            if path is not None:
                stack.enter_context(_claimed(path))
        yield


@contextmanager
def claimed_files(*paths: AnyPath | None) -> Iterator[None]:
    """Claim files, once it is clear that they can be written: not folders, devices, or in a folder that is not there."""
    for path in paths:
        if path is not None:
            _check_file(path, overwrite=True)
    with claimed(*paths):
        yield


@contextmanager
def _claimed(place: AnyPath) -> Iterator[None]:
    target = resolved(place)
    me = os.getpid(), threading.get_ident()
    if _claims.get(target) == me:
        yield
        return
    check_parent(place)
    path = target.parent / f"{_stem(target)}claim"
    handle = _locked_claim(path, target, place)
    try:
        _claims[target] = me
        with suppress(OSError):  # the words are for others to read; the lock counts
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, f"{_CLAIM}: PID {me[0]} on {_HOST}\n".encode())
        _remove_leftovers(target)
        yield
    finally:
        _claims.pop(target, None)
        if os.name == "nt":  # which removes no open file
            os.close(handle)
        with suppress(OSError):  # another user's, or another has it by now (Windows)
            path.unlink()  # while it is locked, so that nobody else has it
        if os.name != "nt":
            _unlock(handle)
            os.close(handle)


def _locked_claim(path: Path, target: Path, place: AnyPath) -> int:
    """The open and locked file of a claim."""
    while True:
        try:
            handle = _open_claim(path)
        except OSError as error:
            if error.errno in _FULL:
                raise full_disk(error, path, target) from error
            what = f"the folder cannot be written to ({error.strerror}); choose another one"
            raise OSError(error.errno, what, str(target.parent)) from error
        try:
            taken = lock(handle, wait=False)
            words = os.read(handle, 200).decode("utf-8", "replace").strip()
            if not (words.startswith(_CLAIM) or _CLAIM.startswith(words)):  # the latter where a full disk has cut it
                raise FileExistsError(f"{path} is in the way, and not of Coterie's; move it, or choose another name.")
            if taken is False or (taken is None and _lives(words, os.fstat(handle).st_mtime, target)):
                who = f" ({words.removeprefix(_CLAIM).lstrip(': ')})" if words else ""
                raise BlockingIOError(f"Another writer{who} is at work on {place}; wait for its end, or choose another name.")
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its former owner has removed it in between


def _open_claim(path: Path) -> int:
    no_links = getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | no_links, 0o666)
    except PermissionError:
        if not path.exists():
            raise
        return os.open(path, os.O_RDONLY | no_links)  # another user has left it: it can be locked, if not removed


def _lives(words: str, since: float, target: Path) -> bool:
    """Whether the one who has written a claim is at work; for those who have no locks."""
    if target in _claims and _claims[target][0] == os.getpid():
        return True
    found = re.fullmatch(rf"{_CLAIM}: PID (\d+) on {re.escape(_HOST)}", words)
    return found is not None and _runs(int(found[1]), since)


def _runs(pid: int, since: float) -> bool:
    """Whether another process has been running under a PID since some moment; our own PID was another's then."""
    if pid == os.getpid():
        return False
    import psutil  # for the few who have no locks

    try:
        return bool(psutil.Process(pid).create_time() <= since + 1.0)
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


# Temporary folders -----------------------------------------------------------------------------


@contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """A new folder beside a target, for this user alone and with a lock on it, that is removed when the block ends.

    Its name is ``.NAME.HOST.PID.TOKEN.partial``. A file is made in such a folder, too: a lock on the file itself would, on
    some network drives, keep all others from writing to it, even this process.

    Parameters
    ----------
    target : Path
        What is to be made. What killed writers of it have left is removed.
    """
    check_parent(target)
    _remove_leftovers(target)
    folder = target.parent / f"{_stem(target)}{_HOST}.{os.getpid()}.{secrets.token_hex(4)}.partial"
    with ExitStack() as stack:
        _ours.add(folder.name)  # before it is there, so that no thread takes it for left
        stack.callback(_ours.discard, folder.name)
        _make_locked(folder, stack)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder


def _make_locked(folder: Path, stack: ExitStack) -> None:
    """Make a folder and lock it; once more if another writer has removed it before it was locked."""
    while True:
        with writing(folder):
            folder.mkdir(0o700)
        with suppress(FileNotFoundError):
            stack.enter_context(locked(folder))
            return


def _former(place: Path) -> Path:
    """Where in a temporary folder the old target is while two names are exchanged in two steps."""
    return place / place.name  # which no target's name is equal to


def _remove_leftovers(target: Path) -> None:
    """Remove what killed writers of a target have left; an old target that one of them had put aside comes back first."""
    for path in target.parent.iterdir():
        writer = writer_of(path.name, target)
        if writer is None or path.name in _ours:
            continue
        with suppress(OSError), locked(path, wait=False) as taken:  # an error: it is gone, or another user's
            if _is_own_folder(path) and _is_stale(path, writer, taken):
                if _former(path).exists() and not target.exists():
                    os.rename(_former(path), target)
                shutil.rmtree(path, ignore_errors=True)


def _is_own_folder(path: Path) -> bool:
    """Whether this is a folder, not a link to one, and this user's: in a folder for all, anybody can make names like ours."""
    facts = path.lstat()
    return stat.S_ISDIR(facts.st_mode) and (not hasattr(os, "geteuid") or facts.st_uid == os.geteuid())


class Writer(NamedTuple):
    """Who makes, or has made, something under a temporary name."""

    host: str
    pid: int


def writer_of(name: str, target: Path) -> Writer | None:
    """Whose temporary name for a target this is; None if it is no such name."""
    stem = _stem(target)
    found = _TEMPORARY.fullmatch(name) if name.startswith(stem) else None
    return None if found is None or f".{found['name']}." != stem else Writer(found["host"], int(found["pid"]))


def is_trace(name: str, target: Path) -> bool:
    """Whether a name is what a killed writer of a target may have left: a temporary folder or a claim."""
    return writer_of(name, target) is not None or name == f"{_stem(target)}claim"


def _is_stale(path: Path, writer: Writer, taken: bool | None) -> bool:
    """Whether the writer of a temporary folder is gone: the one rule.

    - As long as another holds its lock, it is not.
    - A writer of this host is gone when its lock can be taken, because locks are reliable on one host. Where there are no
      locks, it is gone when no process has had its PID since then. If that is our own PID, it is gone as well, because what
      this process is writing was left out before: in a container every run has the same PID.
    - A writer of another host is gone when its lock can be taken (or there are no locks) and besides nothing was modified for
      a day, because locks may not reach across hosts.

    Parameters
    ----------
    path : Path
        The folder.
    writer : Writer
        From its name.
    taken : bool or None
        Whether its lock was taken, as :func:`lock` says it.
    """
    if taken is False:
        return False
    if writer.host != _HOST:
        return time.time() - max(file.lstat().st_mtime for file in [path, *path.rglob("*")]) > _DAY
    return taken is True or not _runs(writer.pid, path.stat().st_mtime)


def _stem(target: Path) -> str:
    """What all temporary names of a target begin with; a long name is cut, and told by its digest."""
    name = target.name
    if len(os.fsencode(name)) > _NAME_BYTES:
        digest = hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()
        while len(os.fsencode(name)) > _NAME_BYTES - len(digest) - 1:
            name = name[:-1]
        name = f"{name}~{digest}"
    return f".{name}."


# Locks and the disk ----------------------------------------------------------------------------


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


def _unlock(handle: int) -> None:
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
                _unlock(handle)
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
        if error.errno not in _FULL or isinstance(error, WriteError):
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


def _exchange(partial: Path, target: Path, aside: Path) -> None:
    """Let two folders change names: in one step on Linux, else in two, between which neither has the target's name."""
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):
            rename = ctypes.CDLL(None, use_errno=True).renameat2
            if rename(_AT_FDCWD, os.fsencode(partial), _AT_FDCWD, os.fsencode(target), _RENAME_EXCHANGE) == 0:
                return
    os.rename(target, aside)
    os.rename(partial, target)
