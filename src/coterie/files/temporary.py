"""Temporary folders: where everything is made, who makes it, and what killed writers have left."""

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

# The host's own name, without the dots that part a temporary name.
HOST = re.sub("[^A-Za-z0-9-]", "-", socket.gethostname())[:63] or "host"
# Bytes of a target's name in its temporary name, which can have 255: the rest is for the dots, host, PID, token and suffix.
_NAME_BYTES = 150
# A temporary name. Host, PID and token have no dots, so that the target's name is told for certain, whatever is in it.
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<host>[A-Za-z0-9-]+)\.(?P<pid>[1-9][0-9]{0,9})\.[0-9a-f]{8}\.partial", re.DOTALL)
# Seconds after which what another host has not touched is given up.
_DAY = 24 * 60 * 60
# The temporary names that this process is using.
_ours: set[str] = set()


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
    remove_leftovers(target)
    folder = target.parent / f"{stem(target)}{HOST}.{os.getpid()}.{secrets.token_hex(4)}.partial"
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


def former(place: Path) -> Path:
    """Where in a temporary folder the old target is while two names are exchanged in two steps."""
    return place / place.name  # which no target's name is equal to


def remove_leftovers(target: Path) -> None:
    """Remove what killed writers of a target have left; an old target that one of them had put aside comes back first."""
    for path in target.parent.iterdir():
        writer = writer_of(path.name, target)
        if writer is None or path.name in _ours:
            continue
        with suppress(OSError), locked(path, wait=False) as taken:  # an error: it is gone, or another user's
            if _is_own_folder(path) and _is_stale(path, writer, taken):
                if former(path).exists() and not target.exists():
                    os.rename(former(path), target)
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
    start = stem(target)
    found = _TEMPORARY.fullmatch(name) if name.startswith(start) else None
    return None if found is None or f".{found['name']}." != start else Writer(found["host"], int(found["pid"]))


def is_trace(name: str, target: Path) -> bool:
    """Whether a name is what a killed writer of a target may have left: a temporary folder or a claim."""
    return writer_of(name, target) is not None or name == f"{stem(target)}claim"


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
    if writer.host != HOST:
        return time.time() - max(file.lstat().st_mtime for file in [path, *path.rglob("*")]) > _DAY
    return taken is True or not runs(writer.pid, path.stat().st_mtime)


def runs(pid: int, since: float) -> bool:
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


def stem(target: Path) -> str:
    """What all temporary names of a target begin with; a long name is cut, and told by its digest."""
    name = target.name
    if len(os.fsencode(name)) > _NAME_BYTES:
        digest = hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()
        while len(os.fsencode(name)) > _NAME_BYTES - len(digest) - 1:
            name = name[:-1]
        name = f"{name}~{digest}"
    return f".{name}."
