"""Files and folders that are there whole or not at all, whenever the process is killed or the disk fills up.

Everything is written under a temporary name beside its place, flushed to the disk, and then renamed, which the
file system does in one step.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SUFFIX = ".partial"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


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
    partial = _partial_name(target, overwrite)
    try:
        yield partial
        _flush(partial)
        os.replace(partial, target)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()
    _flush(target.parent)


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
    partial = _partial_name(target, overwrite)
    if target.exists() and not target.is_dir():
        raise FileExistsError(f"{target} is a file; choose another name for the folder.")
    try:
        partial.mkdir()
        yield partial
        for file in sorted(partial.rglob("*")):
            _flush(file)
        _flush(partial)
        if target.exists():
            _exchange(partial, target)
        else:
            os.rename(partial, target)
        _flush(target.parent)
    finally:  # what was begun, or what has been replaced
        shutil.rmtree(partial, ignore_errors=True)


def _partial_name(target: Path, overwrite: bool) -> Path:
    """A free temporary name beside the target; what killed processes have left there is removed."""
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}; make it first.")
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists; choose another name or allow overwriting it.")
    for old in target.parent.glob(f".{glob_escape(target.name)}.*{_SUFFIX}"):
        owner = old.name[len(target.name) + 2 : -len(_SUFFIX)]
        if owner.isdigit() and not _is_running(int(owner)):
            shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)
    return target.parent / f".{target.name}.{os.getpid()}{_SUFFIX}"


def glob_escape(name: str) -> str:
    """A name in which no character has a meaning for ``glob``."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _is_running(pid: int) -> bool:
    if pid == os.getpid():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError, OSError):
        return True
    return True


def _flush(path: Path) -> None:
    """Have the disk hold a file, or a folder's list of names; where a folder cannot be opened (Windows) it needs no flush."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:
        if path.is_dir():
            return
        raise
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
