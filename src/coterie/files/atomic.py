"""Atomic creation and replacement of files and folders."""

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
from coterie.files.temporary import former_path, temporary_folder

FilesOf = Callable[[Path], Collection[str]]

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextmanager
def new_file(path: AnyPath, *, overwrite: bool = True) -> Iterator[Path]:
    """Yield a temporary path; when the block ends without an error, the file is renamed to its final path.

    Of several concurrent writers, the last one wins. Long computations should claim the path first (:func:`claimed`).

    Parameters
    ----------
    path : path
        Final path of the file. Links are followed.
    overwrite : bool, default=True
        Whether an existing file may be replaced.

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
        check_file(path, overwrite)  # another writer may have created it in the meantime
        os.replace(partial, target)
        sync(target.parent)


def _no_files(_: Path) -> Collection[str]:
    return ()


@contextmanager
def new_folder(path: AnyPath, *, overwrite: bool = False, files_of: FilesOf = _no_files) -> Iterator[Path]:
    """Yield an empty temporary folder; when the block ends without an error, it is renamed to its final path.

    The path is claimed during the block.

    Parameters
    ----------
    path : path
        Final path of the folder. Links are followed.
    overwrite : bool, default=False
        Whether an existing folder may be replaced, if Coterie wrote everything in it.
    files_of : callable, optional
        Called with an existing folder, returns the names of the files that Coterie wrote to it. A folder with other files is
        not replaced. By default only an empty folder is replaced.
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
            check_folder(path, overwrite=overwrite, files_of=files_of)  # files may have been added in the meantime
            try:
                os.rename(partial, target)
            except OSError:
                if not (overwrite and target.is_dir()):
                    raise
                _exchange(partial, target, former_path(place))
            sync(target.parent)


def check_folder(path: AnyPath, *, overwrite: bool, files_of: FilesOf) -> None:
    """Raise if :func:`new_folder` may not create a folder at this path; for a check before the computation."""
    target = resolved(path)
    check_parent(path)
    if not target.exists():
        return
    if not target.is_dir():
        raise FileExistsError(f"{path} is a file, but a folder is required. Choose another name.")
    names = sorted(os.listdir(target))
    foreign = set(names) - set(files_of(target)) if names else set()
    if foreign:
        raise FileExistsError(
            f"{path} contains files that are not part of a Coterie result ({min(foreign)}), so it is not replaced. Choose "
            "another name."
        )
    if not overwrite:
        raise FileExistsError(f"{path} exists. Choose another name, or replace it with overwrite=True.")


def _exchange(partial: Path, target: Path, aside: Path) -> None:
    """Exchange two folders: atomically on Linux, else by two renames, between which the target does not exist."""
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):
            rename = ctypes.CDLL(None, use_errno=True).renameat2
            if rename(_AT_FDCWD, os.fsencode(partial), _AT_FDCWD, os.fsencode(target), _RENAME_EXCHANGE) == 0:
                return
    os.rename(target, aside)
    os.rename(partial, target)


def read_record(path: Path, format: str, version: int | None = None) -> dict[str, Any]:
    """Read a JSON file of Coterie that states its format, in a given version or any (None)."""
    try:
        content = json.loads(read_regular(path).decode("utf-8"))
    except DataFileError:  # includes the path
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {str(error).rstrip('.')}.") from error
    if not isinstance(content, dict) or content.get("format") != format:
        raise ValueError(f"{path} does not have the format {format!r}.")
    if version is not None and content.get("version") != version:
        raise ValueError(
            f"{path} has format version {content.get('version')!r}, but this version of Coterie reads version {version}. "
            "Update Coterie."
        )
    return content
