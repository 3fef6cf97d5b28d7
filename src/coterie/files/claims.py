"""Claims: lock files that reserve an output path, so that a second writer fails before it starts."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from coterie.files.disk import DISK_ERRORS, AnyPath, check_file, check_parent, full_disk, lock, resolved, unlock
from coterie.files.temporary import HOST, is_running, remove_leftovers, stem

# Beginning of the content of a claim. Files with other content were not written by Coterie.
_CLAIM_PREFIX = "coterie claim"
# Claims held by this process: (process, thread) by target. The process distinguishes forked children, which hold none.
_claims: dict[Path, tuple[int, int]] = {}


@contextmanager
def claimed(*paths: AnyPath | None) -> Iterator[None]:
    """Reserve output paths during a block.

    A claim is a lock on the file ``.NAME.claim`` next to the path, which names its holder. The lock ends with its process, so
    the claim of a killed process has no effect. The thread that holds a claim may claim the path again. On systems without
    locks, a claim is valid as long as the process named in it runs on this host.

    Parameters
    ----------
    *paths : path or None
        Files or folders to be written. None is ignored.

    Raises
    ------
    BlockingIOError
        If another process or thread holds a claim.

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
    BlockingIOError: Another writer (PID ... on ...) is writing to /...result. Wait until it has finished ...
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
    """Claim files after checking that they can be written: no folders or devices, and the parent folder exists."""
    for path in paths:
        if path is not None:
            check_file(path, overwrite=True)
    with claimed(*paths):
        yield


@contextmanager
def _claimed(place: AnyPath) -> Iterator[None]:
    target = resolved(place)
    owner = os.getpid(), threading.get_ident()
    if _claims.get(target) == owner:
        yield
        return
    check_parent(place)
    path = target.parent / f"{stem(target)}claim"
    handle = _locked_claim(path, target, place)
    try:
        _claims[target] = owner
        with suppress(OSError):  # the content is informative only; the lock is what counts
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, f"{_CLAIM_PREFIX}: PID {owner[0]} on {HOST}\n".encode())
        remove_leftovers(target)
        yield
    finally:
        _claims.pop(target, None)
        if os.name == "nt":  # Windows cannot remove an open file
            os.close(handle)
        with suppress(OSError):  # the file belongs to another user, or (on Windows) another writer has it open
            path.unlink()  # while it is locked, so that no other process holds it
        if os.name != "nt":
            unlock(handle)
            os.close(handle)


def _locked_claim(path: Path, target: Path, place: AnyPath) -> int:
    """Open and lock the file of a claim, and return its descriptor."""
    while True:
        try:
            handle = _open_claim(path)
        except OSError as error:
            if error.errno in DISK_ERRORS:
                raise full_disk(error, path, target) from error
            what = f"Folder is not writable ({error.strerror}). Choose another folder"
            raise OSError(error.errno, what, str(target.parent)) from error
        try:
            taken = lock(handle, wait=False)
            content = os.read(handle, 200).decode("utf-8", "replace").strip()
            # A full disk may have truncated the content.
            if not (content.startswith(_CLAIM_PREFIX) or _CLAIM_PREFIX.startswith(content)):
                raise FileExistsError(f"{path} exists and was not written by Coterie. Move it or choose another name.")
            if taken is False or (taken is None and _is_active(content, os.fstat(handle).st_mtime, target)):
                holder = f" ({content.removeprefix(_CLAIM_PREFIX).lstrip(': ')})" if content else ""
                raise BlockingIOError(
                    f"Another writer{holder} is writing to {place}. Wait until it has finished or choose another name."
                )
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the previous holder removed the file in the meantime


def _open_claim(path: Path) -> int:
    no_links = getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | no_links, 0o666)
    except PermissionError:
        if not path.exists():
            raise
        return os.open(path, os.O_RDONLY | no_links)  # left by another user: it can be locked but not removed


def _is_active(content: str, since: float, target: Path) -> bool:
    """Return True if the process that wrote a claim is running; for systems without locks."""
    if target in _claims and _claims[target][0] == os.getpid():
        return True
    found = re.fullmatch(rf"{_CLAIM_PREFIX}: PID (\d+) on {re.escape(HOST)}", content)
    return found is not None and is_running(int(found[1]), since)
