"""Temporary folders of output, their writers, and removal of what killed writers have left."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from coterie.files.disk import check_parent, locked, writing

# Host name without dots, which separate the parts of a temporary name.
HOST = re.sub("[^A-Za-z0-9-]", "-", socket.gethostname())[:63] or "host"
# Maximum bytes of the target's name in a temporary name, which is limited to 255 including dots, host, PID, token and suffix.
_NAME_BYTES = 150
# Pattern of temporary names. Host, PID and token contain no dots, so the target's name is unambiguous.
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<host>[A-Za-z0-9-]+)\.(?P<pid>[1-9][0-9]{0,9})\.[0-9a-f]{8}\.partial", re.DOTALL)
# Seconds without modification after which a temporary folder of another host is stale: one day.
_STALE_SECONDS = 24 * 60 * 60
# Names of the temporary folders in use by this process.
_active_folders: set[str] = set()


@contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder next to a target, private to this user and locked; it is removed when the block ends.

    Its name is ``.NAME.HOST.PID.TOKEN.partial``. Single files are written to such a folder, too: on some network drives, a
    lock on the file itself would prevent all writing to it, even by this process.

    Parameters
    ----------
    target : Path
        File or folder to be created. What killed writers of it have left is removed.
    """
    check_parent(target)
    remove_leftovers(target)
    folder = target.parent / f"{stem(target)}{HOST}.{os.getpid()}.{secrets.token_hex(4)}.partial"
    with ExitStack() as stack:
        _active_folders.add(folder.name)  # before it exists, so that no thread treats it as a leftover
        stack.callback(_active_folders.discard, folder.name)
        _make_locked(folder, stack)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder


def _make_locked(folder: Path, stack: ExitStack) -> None:
    """Create and lock a folder. Repeat if another writer removes it before it is locked."""
    while True:
        with writing(folder):
            folder.mkdir(0o700)
        with suppress(FileNotFoundError):
            stack.enter_context(locked(folder))
            return


def former_path(place: Path) -> Path:
    """Return the path in a temporary folder of the old target, while it is exchanged by two renames."""
    return place / place.name  # differs from the name of any target


def remove_leftovers(target: Path) -> None:
    """Remove what killed writers of a target have left, after restoring an old target that one of them had moved."""
    for path in target.parent.iterdir():
        writer = writer_of(path.name, target)
        if writer is None or path.name in _active_folders:
            continue
        with suppress(OSError), locked(path, wait=False) as taken:  # an error means it is gone or belongs to another user
            if _is_own_folder(path) and _is_stale(path, writer, taken):
                if former_path(path).exists() and not target.exists():
                    os.rename(former_path(path), target)
                shutil.rmtree(path, ignore_errors=True)


def _is_own_folder(path: Path) -> bool:
    """Return True if a path is a folder (not a link) of this user, because in /tmp any user can create such names."""
    facts = path.lstat()
    return stat.S_ISDIR(facts.st_mode) and (not hasattr(os, "geteuid") or facts.st_uid == os.geteuid())


class Writer(NamedTuple):
    """Host and process that created a temporary folder."""

    host: str
    pid: int


def writer_of(name: str, target: Path) -> Writer | None:
    """Return the writer of a temporary name of a target; None if it is not such a name."""
    start = stem(target)
    found = _TEMPORARY.fullmatch(name) if name.startswith(start) else None
    return None if found is None or f".{found['name']}." != start else Writer(found["host"], int(found["pid"]))


def is_leftover(name: str, target: Path) -> bool:
    """Return True if a name is one that a killed writer of a target may leave: a temporary folder or a claim."""
    return writer_of(name, target) is not None or name == f"{stem(target)}claim"


def _is_stale(path: Path, writer: Writer, taken: bool | None) -> bool:
    """Return True if the writer of a temporary folder has ended.

    - While another process holds its lock, the writer has not ended.
    - A writer on this host has ended if its lock can be acquired, because locks are reliable on one host. Without locks, it
      has ended if no process has had its PID since then. It has also ended if it has the PID of this process, because folders
      that this process is writing are skipped before. In a container, every run has the same PID.
    - A writer on another host has ended if its lock can be acquired (or there are no locks) and nothing was modified for a
      day, because locks may not work across hosts.

    Parameters
    ----------
    path : Path
        Temporary folder.
    writer : Writer
        Writer, from the name of the folder.
    taken : bool or None
        Whether the lock was acquired, as returned by :func:`lock`.
    """
    if taken is False:
        return False
    if writer.host != HOST:
        return time.time() - max(file.lstat().st_mtime for file in [path, *path.rglob("*")]) > _STALE_SECONDS
    return taken is True or not is_running(writer.pid, path.stat().st_mtime)


def is_running(pid: int, since: float) -> bool:
    """Return True if another process with this PID has been running since a time. False for the PID of this process."""
    if pid == os.getpid():
        return False
    import psutil  # imported here because it is needed only on systems without locks

    try:
        return bool(psutil.Process(pid).create_time() <= since + 1.0)
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def stem(target: Path) -> str:
    """Return the prefix of all temporary names of a target. A long name is truncated and identified by its digest."""
    name = target.name
    if len(os.fsencode(name)) > _NAME_BYTES:
        digest = hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()
        while len(os.fsencode(name)) > _NAME_BYTES - len(digest) - 1:
            name = name[:-1]
        name = f"{name}~{digest}"
    return f".{name}."
