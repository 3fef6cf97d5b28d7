"""The folder of a store in the making: a temporary name until all is written and checked, then all or nothing."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from coterie.data.store.format import HEADER, ArrayFile, check_entry, checksum, damaged, read_header, write_header
from coterie.files import claimed, resolved, sync, temporary_folder

# The key of a header that lists files of the store's own that are no part of it (any more, or yet).
_LEFTOVER = "leftover"


class StoreFolder:
    """A folder under a temporary name that becomes the store when all is written, or goes away.

    A new store is renamed into place as a whole. An old one is replaced by putting new array files (with
    names of their own) beside the old ones and then its header, in one rename: a reader sees the old store
    or the new one, whenever the writer is killed. Before files come or go, the header lists them, so that the next
    writer knows what a killed one has left; other files in the folder stay where they are.

    Parameters
    ----------
    path : Path
        Where the store goes.
    overwrite : bool
        Whether a store may be there already.

    Attributes
    ----------
    folder : Path
        The folder under its temporary name, once it is entered.
    scratch : Path
        A folder for files that the store does not need in the end.
    """

    folder: Path
    scratch: Path

    def __init__(self, path: Path, overwrite: bool) -> None:
        self._given = path
        self.path = resolved(path)
        self.overwrite = overwrite
        self.replaces = False
        self._suffix = ""
        self._stack = ExitStack()

    def __enter__(self) -> StoreFolder:
        with ExitStack() as stack:
            stack.enter_context(claimed(self._given))
            self.replaces = self._may_replace()
            self._suffix = f"-{secrets.token_hex(4)}" if self.replaces else ""
            place = stack.enter_context(temporary_folder(self.path))
            self.folder, self.scratch = place / "store", place / "scratch"
            self.folder.mkdir()
            self.scratch.mkdir()
            self._stack = stack.pop_all()
        return self

    def _may_replace(self) -> bool:
        """Whether there is a store to be replaced; raises if that is not allowed, or if it is something else."""
        if not os.path.lexists(self.path):
            return False
        if not self.overwrite:
            raise FileExistsError(
                17, "it exists already; choose another name, or overwrite it (overwrite=True)", str(self._given)
            )
        try:
            read_header(self.path)
        except (OSError, ValueError) as error:
            raise FileExistsError(
                17,
                "it exists and is no Coterie store, or one whose header is damaged, so it is not overwritten; "
                "choose another name, or remove it",
                str(self._given),
            ) from error
        return True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def array(self, name: str, dtype: Any) -> ArrayFile:
        """A new array file."""
        file = ArrayFile(self.folder / f"{name}{self._suffix}.npy", dtype)
        self._stack.callback(file.close)
        return file

    def commit(self, header: dict[str, Any]) -> None:
        """Check everything against its checksums and put the store in its place."""
        write_header(self.folder, header)
        arrays = read_header(self.folder)["arrays"]
        for name, entry in arrays.items():
            check_entry(self.folder, name, entry)
            path = self.folder / entry["file"]
            if checksum(path) != entry["crc32"]:
                raise damaged(path, "what was written cannot be read back")
        if self.replaces:
            self._replace(header)
            return
        sync(self.folder)
        try:
            os.rename(self.folder, self.path)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}; nothing was kept", str(self.path)) from error
        sync(self.path.parent)

    def _replace(self, header: dict[str, Any]) -> None:
        """Exchange the store's header; the files of the old one go."""
        old, new = read_header(self.path), _array_files(header)
        former = _array_files(old)
        self._remove(_leftover_files(old) - former)  # of a killed writer
        self._exchange_header(old | {_LEFTOVER: sorted(new)})
        for file in sorted(new):
            os.rename(self.folder / file, self.path / file)
        sync(self.path)
        self._exchange_header(header | {_LEFTOVER: sorted(former)})
        self._remove(former - new)
        self._exchange_header(header)

    def _exchange_header(self, header: dict[str, Any]) -> None:
        write_header(self.folder, header)
        os.replace(self.folder / HEADER, self.path / HEADER)
        sync(self.path)

    def _remove(self, files: set[str]) -> None:
        for file in sorted(files):
            (self.path / file).unlink(missing_ok=True)
        sync(self.path)


def _array_files(header: dict[str, Any]) -> set[str]:
    """The files of a store's arrays."""
    entries = header.get("arrays")
    found = entries.values() if isinstance(entries, dict) else ()
    return _plain_names(entry.get("file") for entry in found if isinstance(entry, dict))


def _leftover_files(header: dict[str, Any]) -> set[str]:
    """The files that a killed writer may have left in a store."""
    names = header.get(_LEFTOVER)
    return _plain_names(names if isinstance(names, list) else ())


def _plain_names(names: Iterable[Any]) -> set[str]:
    """Names of array files in the folder itself: a header must not have files removed elsewhere."""
    return {name for name in names if isinstance(name, str) and Path(name).name == name and name.endswith(".npy")}
