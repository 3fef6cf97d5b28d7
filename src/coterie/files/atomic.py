"""Files and folders that are there whole or not at all."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from coterie.bounds import DataFileError, read_regular
from coterie.files.claims import claimed
from coterie.files.disk import AnyPath, check_file, check_parent, resolved, sync, writing
from coterie.files.temporary import former, temporary_folder

FilesOf = Callable[[Path], Collection[str]]

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


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
    check_file(path, overwrite)
    with temporary_folder(target) as place:
        partial = place / target.name
        with writing(partial, target):
            yield partial
            sync(partial)
        check_file(path, overwrite)  # another may have been faster
        os.replace(partial, target)
        sync(target.parent)


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
                _exchange(partial, target, former(place))
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


def _exchange(partial: Path, target: Path, aside: Path) -> None:
    """Let two folders change names: in one step on Linux, else in two, between which neither has the target's name."""
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):
            rename = ctypes.CDLL(None, use_errno=True).renameat2
            if rename(_AT_FDCWD, os.fsencode(partial), _AT_FDCWD, os.fsencode(target), _RENAME_EXCHANGE) == 0:
                return
    os.rename(target, aside)
    os.rename(partial, target)


def read_record(path: Path, format: str, version: int | None = None) -> dict[str, Any]:
    """The content of a JSON file of Coterie's that says of itself which format it has, in one version or any (None)."""
    try:
        content = json.loads(read_regular(path).decode("utf-8"))
    except DataFileError:  # which has the path
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {str(error).rstrip('.')}.") from error
    if not isinstance(content, dict) or content.get("format") != format:
        raise ValueError(f"{path} is not that of a {format}.")
    if version is not None and content.get("version") != version:
        raise ValueError(
            f"{path} has format version {content.get('version')!r}; this Coterie reads version {version}. Update Coterie."
        )
    return content
