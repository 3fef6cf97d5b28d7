"""Where the files of a store are: a folder of this machine, whose arrays are mapped, or an address whose bytes are fetched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

import numpy as np

from coterie.bounds import DataFileError, open_regular, read_regular
from coterie.data.addresses import is_address
from coterie.data.errors import in_one_line, missing_extra


class Place(Protocol):
    """The folder of a store."""

    @property
    def path(self) -> Path | str:
        """The folder, or its address."""
        ...

    def file(self, name: str) -> Path | str:
        """The path of one of its files, for messages."""
        ...

    def exists(self) -> bool:
        """Whether there is such a folder."""
        ...

    def read(self, name: str, most: int) -> bytes:
        """All of a small file; a ``FileNotFoundError`` where there is none."""
        ...

    def start(self, name: str, count: int) -> tuple[bytes, int]:
        """The first bytes of a file, and its size."""
        ...

    def array(self, name: str, dtype: np.dtype, offset: int, count: int) -> np.ndarray:
        """Some numbers that lie together in a file, from a byte on; mapped or fetched."""
        ...


class Folder:
    """A folder of this machine, or of one whose files it sees."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def file(self, name: str) -> Path:
        return self.path / name

    def exists(self) -> bool:
        return self.path.is_dir()

    def read(self, name: str, most: int) -> bytes:
        return read_regular(self.file(name), most)

    def start(self, name: str, count: int) -> tuple[bytes, int]:
        with open_regular(self.file(name)) as opened:
            return opened.read(count), os.fstat(opened.fileno()).st_size

    def array(self, name: str, dtype: np.dtype, offset: int, count: int) -> np.ndarray:
        if not count:  # which cannot be mapped
            return np.empty(0, dtype=dtype)
        return np.memmap(self.file(name), dtype=dtype, mode="r", offset=offset, shape=(count,))


class Address:
    """A folder that fsspec knows the way to (``s3://…``, ``gs://…``); a slice of an array is a range of bytes."""

    def __init__(self, path: str) -> None:
        self.path = path.rstrip("/")
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise missing_extra(f"The address {path}", "fsspec", "dask") from error
        try:
            self._system, self._root = url_to_fs(self.path)
        except (ImportError, ValueError) as error:
            raise DataFileError(f"there is no way to this address ({in_one_line(error)}).", path) from error

    def file(self, name: str) -> str:
        return f"{self.path}/{name}"

    def exists(self) -> bool:
        return bool(self._system.exists(self._root))

    def read(self, name: str, most: int) -> bytes:
        found, size = self._fetch(name, 0, most), self._size(name)
        if size > most:
            raise DataFileError(f"it has {size} bytes, more than the {most} that such a file has.", self.file(name))
        return found

    def start(self, name: str, count: int) -> tuple[bytes, int]:
        return self._fetch(name, 0, count), self._size(name)

    def array(self, name: str, dtype: np.dtype, offset: int, count: int) -> np.ndarray:
        found = self._fetch(name, offset, offset + count * dtype.itemsize) if count else b""
        if len(found) != count * dtype.itemsize:
            raise DataFileError(f"{count * dtype.itemsize} bytes were asked for, {len(found)} came.", self.file(name))
        return np.frombuffer(found, dtype=dtype)

    def _size(self, name: str) -> int:
        return int(self._system.size(f"{self._root}/{name}"))

    def _fetch(self, name: str, start: int, stop: int) -> bytes:
        try:
            return bytes(self._system.cat_file(f"{self._root}/{name}", start=start, end=stop))
        except FileNotFoundError:
            raise
        except Exception as error:  # of any library behind fsspec
            raise DataFileError(f"it could not be fetched ({in_one_line(error)}).", self.file(name)) from error


def place_of(path: str | os.PathLike[str] | Place) -> Place:
    """The folder of a store, given as a path, an address or a place."""
    if is_address(path):
        return Address(path)
    return Folder(path) if isinstance(path, (str, os.PathLike)) else path
