"""The folder of a store in the making: a temporary name until all is written and checked, then all or nothing."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from coterie.data.store.format import HEADER, ArrayFile, check_entry, checksum, damaged, read_header, write_header
from coterie.data.store.reading import is_store
from coterie.files import locked, sync, temporary_folder


class StoreFolder:
    """A folder under a temporary name that becomes the store when all is written, or goes away.

    A new store is renamed into place as a whole. An old one is replaced by putting new array files (with
    names of their own) beside the old ones and then its header, in one rename: a reader sees the old store
    or the new one, whenever the writer is killed.

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
        A folder in it for files that the store does not need in the end.
    """

    folder: Path
    scratch: Path

    def __init__(self, path: Path, overwrite: bool) -> None:
        self.path = Path(os.path.realpath(path))
        self.replaces = self.path.exists()
        if self.replaces:
            if not overwrite:
                raise FileExistsError(
                    17, "it exists already; choose another name, or overwrite it (overwrite=True)", str(path)
                )
            if not is_store(self.path):
                raise FileExistsError(
                    17, "it exists and is no Coterie store, so it is not overwritten; choose another name", str(path)
                )
        self._suffix = f"-{secrets.token_hex(4)}" if self.replaces else ""
        self._stack = ExitStack()

    def __enter__(self) -> StoreFolder:
        try:
            with ExitStack() as stack:
                self.folder = stack.enter_context(temporary_folder(self.path))
                self.scratch = self.folder / "scratch"
                self.scratch.mkdir()
                self._stack = stack.pop_all()
        except FileNotFoundError as error:
            what = "there is no such folder to write to; make it first"
            raise FileNotFoundError(error.errno, what, str(self.path.parent)) from error
        except OSError as error:
            what = f"{error.strerror}: the folder cannot be written to; choose another one"
            raise OSError(error.errno, what, str(self.path.parent)) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def array(self, name: str, dtype: Any) -> ArrayFile:
        """A new array file."""
        file = ArrayFile(self.folder / f"{name}{self._suffix}.npy", dtype)
        self._stack.callback(file.close)
        return file

    def commit(self, header: dict[str, Any]) -> None:
        """Check everything against its checksums and put the store in its place."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        write_header(self.folder, header)
        arrays = read_header(self.folder)["arrays"]
        for name, entry in arrays.items():
            path = check_entry(self.folder, name, entry)
            if checksum(path) != entry["crc32"]:
                raise damaged(path, "what was written cannot be read back")
        if self.replaces:
            self._replace({entry["file"] for entry in arrays.values()})
            return
        sync(self.folder)
        try:
            os.rename(self.folder, self.path)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}; nothing was kept", str(self.path)) from error
        sync(self.path.parent)

    def _replace(self, files: set[str]) -> None:
        """Exchange the store's header, then remove the array files that it does not know."""
        with locked(self.path):  # one writer at a time
            for file in files:
                os.rename(self.folder / file, self.path / file)
            sync(self.path)
            os.replace(self.folder / HEADER, self.path / HEADER)
            sync(self.path)
            for old in self.path.glob("*.npy"):
                if old.name not in files:
                    old.unlink(missing_ok=True)
