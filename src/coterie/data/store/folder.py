"""The folder of a store in the making: a temporary name until all is written and checked, then all or nothing."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any

from coterie.data.store.format import HEADER, ArrayFile, check_entry, checksum, damaged, read_header, write_header
from coterie.data.store.reading import is_store

try:
    import fcntl
except ImportError:  # no locks on this system: folders of killed runs are left for their owner
    fcntl = None  # type: ignore[assignment]  # Windows has no such module


class StoreFolder:
    """A folder under a temporary name that becomes the store when all is written, or goes away.

    A new store is renamed into place as a whole. An old one is replaced by putting new array files (with
    names of their own) beside the old ones and then its header, in one rename: a reader sees the old store
    or the new one, whenever the writer is killed. What a killed run has left is removed by the next run for the same store.

    Parameters
    ----------
    path : Path
        Where the store goes.
    overwrite : bool
        Whether a store may be there already.
    """

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
        self.token = secrets.token_hex(4)
        self.folder = self.path.parent / f".{self.path.name}.{self.token}.partial"
        self.scratch = self.folder / "scratch"  # for files that the store does not need in the end
        self._lock = -1
        self._files: list[ArrayFile] = []

    def __enter__(self) -> StoreFolder:
        try:
            self.folder.mkdir()
        except FileNotFoundError as error:
            what = "there is no such folder to write to; make it first"
            raise FileNotFoundError(error.errno, what, str(self.path.parent)) from error
        except OSError as error:
            what = f"{error.strerror}: the folder cannot be written to; choose another one"
            raise OSError(error.errno, what, str(self.path.parent)) from error
        self._lock = _locked(self.folder)
        self.scratch.mkdir()
        self._remove_leftovers()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for file in self._files:
            file.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)

    def _remove_leftovers(self) -> None:
        """Remove temporary folders for the same store whose writer is gone (its lock is free)."""
        for other in self.path.parent.glob(f".{glob.escape(self.path.name)}.*.partial"):
            if other == self.folder or fcntl is None:
                continue
            try:
                lock = _locked(other, wait=False)
            except OSError:  # still at work, or gone meanwhile
                continue
            shutil.rmtree(other, ignore_errors=True)
            os.close(lock)

    def array(self, name: str, dtype: Any) -> ArrayFile:
        """A new array file."""
        suffix = f"-{self.token}" if self.replaces else ""
        file = ArrayFile(self.folder / f"{name}{suffix}.npy", dtype)
        self._files.append(file)
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
        sync_folder(self.folder)
        try:
            os.rename(self.folder, self.path)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}; nothing was kept", str(self.path)) from error
        sync_folder(self.path.parent)

    def _replace(self, files: set[str]) -> None:
        """Exchange the store's header, then remove the array files that it does not know."""
        lock = _locked(self.path)  # one writer at a time
        try:
            for file in files:
                os.rename(self.folder / file, self.path / file)
            sync_folder(self.path)
            os.replace(self.folder / HEADER, self.path / HEADER)
            sync_folder(self.path)
            for old in self.path.glob("*.npy"):
                if old.name not in files:
                    old.unlink(missing_ok=True)
        finally:
            os.close(lock)


def _locked(folder: Path, *, wait: bool = True) -> int:
    """A handle of a folder with an exclusive lock on it, where the system has such locks."""
    if fcntl is None:
        return os.open(os.devnull, os.O_RDONLY)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
