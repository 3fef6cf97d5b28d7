"""The store's format, version 1: its header, its array files, their checksums. See docs/reference/store.md."""

from __future__ import annotations

import json
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from coterie.bounds import DataFileError, open_regular, read_regular
from coterie.data.errors import in_one_line, is_address, missing_extra
from coterie.files import writing

FORMAT = "coterie-store"
VERSION = 1
HEADER = "header.json"
# Every array file begins with a .npy header of this length, which leaves the values aligned.
NPY_HEADER_BYTES = 128
# The types an array of a store can have: nothing that needs pickle.
TYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
# The header names arrays and has some notes.
_LONGEST_HEADER = 1 << 24
# Bytes that a checksum reads at a time.
_PIECE = 1 << 24


def npy_header(dtype: np.dtype, shape: tuple[int, ...], fortran: bool) -> bytes:
    """The .npy header (format 1.0) of an array, padded to a fixed length."""
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': {fortran}, 'shape': {tuple(shape)!r}, }}"
    length = NPY_HEADER_BYTES - 10
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text.ljust(length - 1).encode("ascii") + b"\n"


class ArrayFile:
    """A new .npy file written piece by piece, little-endian, with a checksum of its values."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self.path = path
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.n_bytes = 0
        self._crc = 0
        with writing(path):
            self._file = open(path, "xb")  # noqa: SIM115  # closed by finish or close
            self._file.write(bytes(NPY_HEADER_BYTES))

    def append(self, values: np.ndarray) -> None:
        """Add values: a vector, or whole columns in F order."""
        flat = np.asarray(values, dtype=self.dtype).ravel(order="K")
        view = np.ascontiguousarray(flat).view(np.uint8).data
        with writing(self.path):
            self._file.write(view)
        self._crc = zlib.crc32(view, self._crc)
        self.n_bytes += view.nbytes

    def finish(self, shape: tuple[int, ...] | None = None, *, fortran: bool = False) -> dict[str, Any]:
        """Write the header, bring everything to the disk, and return the entry for the store's header."""
        shape = (self.n_bytes // self.dtype.itemsize,) if shape is None else shape
        assert int(np.prod(shape, dtype=object)) * self.dtype.itemsize == self.n_bytes, (self.path.name, shape, self.n_bytes)
        with writing(self.path):
            self._file.seek(0)
            self._file.write(npy_header(self.dtype, shape, fortran))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        return {
            "file": self.path.name,
            "dtype": self.dtype.str,
            "shape": list(shape),
            "fortran_order": fortran,
            "crc32": f"{self._crc:08x}",
        }

    def close(self) -> None:
        with suppress(OSError):  # the disk is full: what is buffered is lost, as it should be
            self._file.close()


def checksum(path: Path) -> str:
    """CRC-32 of the values of an array file."""
    crc = 0
    with open_regular(path) as file:
        file.seek(NPY_HEADER_BYTES)
        while piece := file.read(_PIECE):
            crc = zlib.crc32(piece, crc)
    return f"{crc:08x}"


def write_header(folder: Path, content: dict[str, Any]) -> None:
    """Write ``header.json``, with its own checksum, to the disk."""
    full = {"format": FORMAT, "version": VERSION, **content}
    full["header_crc32"] = _header_checksum(full)
    path = folder / HEADER
    with writing(path), open(path, "w", encoding="utf-8") as file:
        file.write(_header_text(full))
        file.flush()
        os.fsync(file.fileno())


def _header_text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2) + "\n"


def check_header_bytes(folder: Path | Folder) -> None:
    """Refuse a header that is not, byte for byte, as it was written; blanks do not matter for its checksum."""
    place = place_of(folder)
    if place.read(HEADER, _LONGEST_HEADER) != _header_text(read_header(place)).encode("utf-8"):
        raise damaged(place.file(HEADER), "it was changed after it was written")


def _header_checksum(content: dict[str, Any]) -> str:
    """CRC-32 of the header without its checksum, as compact JSON with sorted keys."""
    plain = {key: value for key, value in content.items() if key != "header_crc32"}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(text.encode('ascii')):08x}"


def read_header(folder: Path | Folder) -> dict[str, Any]:
    """The checked header of a store."""
    place = place_of(folder)
    path = place.file(HEADER)
    try:
        content = json.loads(place.read(HEADER, _LONGEST_HEADER).decode("utf-8"))
    except DataFileError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        what = "there is no such folder" if not place.exists() else f"it has no {HEADER}, so it is not a Coterie store"
        raise FileNotFoundError(
            error.errno, f"{what}; make one with coterie.data.convert or `coterie convert`", str(place.path)
        ) from error
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise damaged(path, f"it is not JSON ({error})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataFileError(f'it does not say "format": "{FORMAT}", so this is not a Coterie store.', path)
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise DataFileError(
            f"the store has format version {version!r}; this Coterie reads version {VERSION}. Update Coterie or convert anew.",
            path,
        )
    if content.get("header_crc32") != _header_checksum(content):
        raise damaged(path, "its checksum does not match")
    return content


def damaged(path: Path | str, what: str) -> DataFileError:
    """The error of a damaged store."""
    return DataFileError(f"the store is damaged: {what}. Convert the original data again.", path)


def check_entry(folder: Path | Folder, name: str, entry: Any) -> None:
    """Refuse an array whose entry, size and .npy header do not agree."""
    place = place_of(folder)
    header = place.file(HEADER)
    keys = {"file", "dtype", "shape", "fortran_order", "crc32"}
    if not isinstance(entry, dict) or not keys <= entry.keys():
        raise damaged(header, f"the entry of array {name!r} is incomplete")
    file, shape = entry["file"], entry["shape"]
    if not isinstance(file, str) or Path(file).name != file or not file.endswith(".npy"):
        raise damaged(header, f"array {name!r} has the file name {file!r}")
    if entry["dtype"] not in TYPES or not isinstance(entry["fortran_order"], bool):
        raise damaged(header, f"array {name!r} has the type {entry['dtype']!r}")
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape) or len(shape) not in (1, 2):
        raise damaged(header, f"array {name!r} has the shape {shape!r}")
    path = place.file(file)
    dtype = np.dtype(entry["dtype"])
    expected = NPY_HEADER_BYTES + int(np.prod(shape, dtype=object)) * dtype.itemsize
    try:
        start, size = place.start(file, NPY_HEADER_BYTES)
    except FileNotFoundError as error:
        raise damaged(path, "the file is missing") from error
    if size != expected:
        raise damaged(path, f"the file has {size} bytes instead of {expected}")
    if start != npy_header(dtype, tuple(shape), entry["fortran_order"]):
        raise damaged(path, "its .npy header is not the one that the store's header announces")


def map_array(folder: Path | Folder, entry: Any, first: int = 0, last: int | None = None) -> np.ndarray:
    """A read-only memory map of an array whose entry was checked (bytes, from an address); or of its columns or numbers
    from ``first`` to before ``last``."""
    shape, dtype = tuple(entry["shape"]), np.dtype(entry["dtype"])
    along = -1 if entry["fortran_order"] else 0
    step = int(np.prod(shape, dtype=object)) // max(shape[along], 1)  # numbers of one column (or row, or a number itself)
    last = shape[along] if last is None else last
    offset = NPY_HEADER_BYTES + first * step * dtype.itemsize
    flat = place_of(folder).array(entry["file"], dtype, offset, (last - first) * step)
    if len(shape) == 1:
        return flat
    if entry["fortran_order"]:
        return flat.reshape(last - first, shape[0]).T
    return flat.reshape(last - first, shape[1])


class Folder:
    """The folder of a store on this machine, or on one whose files it sees; arrays are mapped."""

    path: Path | str

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def file(self, name: str) -> Path | str:
        """The path of a file of the store."""
        return Path(self.path) / name

    def exists(self) -> bool:
        return Path(self.path).is_dir()

    def read(self, name: str, most: int) -> bytes:
        """All of a small file; raises ``FileNotFoundError`` where there is none."""
        return read_regular(Path(self.file(name)), most)

    def start(self, name: str, count: int) -> tuple[bytes, int]:
        """The first bytes of a file, and its size."""
        with open_regular(Path(self.file(name))) as opened:
            return opened.read(count), os.fstat(opened.fileno()).st_size

    def array(self, name: str, dtype: np.dtype, offset: int, count: int) -> np.ndarray:
        """Some numbers that lie together in a file, from a byte on; mapped or fetched."""
        if not count:  # which cannot be mapped
            return np.empty(0, dtype=dtype)
        return np.memmap(self.file(name), dtype=dtype, mode="r", offset=offset, shape=(count,))


class Address(Folder):
    """A folder that fsspec finds (``s3://…``, ``gs://…``); a slice of an array is a range of bytes."""

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


def place_of(path: str | os.PathLike[str] | Folder) -> Folder:
    """The folder of a store, given as a path, an address or a place."""
    if is_address(path):
        return Address(path)
    return Folder(path) if isinstance(path, (str, os.PathLike)) else path
