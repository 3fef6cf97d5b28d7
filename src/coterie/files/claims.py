"""Claims: who works long for a place has it for itself, and a second writer is told so before it begins."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from coterie.files.disk import FULL, AnyPath, check_file, check_parent, full_disk, lock, resolved, unlock
from coterie.files.temporary import HOST, remove_leftovers, runs, stem

# What the file of a claim begins with; one with other words is not ours.
_CLAIM = "coterie claim"
# The claims that this process holds: process (a forked child has none) and thread by target.
_claims: dict[Path, tuple[int, int]] = {}


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
            check_file(path, overwrite=True)
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
    path = target.parent / f"{stem(target)}claim"
    handle = _locked_claim(path, target, place)
    try:
        _claims[target] = me
        with suppress(OSError):  # the words are for others to read; the lock counts
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, f"{_CLAIM}: PID {me[0]} on {HOST}\n".encode())
        remove_leftovers(target)
        yield
    finally:
        _claims.pop(target, None)
        if os.name == "nt":  # which removes no open file
            os.close(handle)
        with suppress(OSError):  # another user's, or another has it by now (Windows)
            path.unlink()  # while it is locked, so that nobody else has it
        if os.name != "nt":
            unlock(handle)
            os.close(handle)


def _locked_claim(path: Path, target: Path, place: AnyPath) -> int:
    """The open and locked file of a claim."""
    while True:
        try:
            handle = _open_claim(path)
        except OSError as error:
            if error.errno in FULL:
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
    found = re.fullmatch(rf"{_CLAIM}: PID (\d+) on {re.escape(HOST)}", words)
    return found is not None and runs(int(found[1]), since)
