"""Format of a store, version 1: header, array files and checksums. See docs/reference/store.md."""

from __future__ import annotations

import errno
import json
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from coterie.bounds import DataFileError, open_regular, read_regular
from coterie.data.errors import error_summary, is_address, missing_extra
from coterie.files import writing

FORMAT = "coterie-store"
VERSION = 1
HEADER = "header.json"
# Length of the .npy header of every array file, which keeps the values aligned.
NPY_HEADER_BYTES = 128
# Types of arrays in a store. None of them requires pickle.
TYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
# Maximum size of a header, which lists the arrays and some notes.
_MAX_HEADER_BYTES = 1 << 24
# Bytes read at a time for a checksum.
_CHUNK_BYTES = 1 << 24


def npy_header(dtype: np.dtype, shape: tuple[int, ...], fortran: bool) -> bytes:
    """Return the .npy header (format 1.0) of an array, padded to a fixed length."""
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': {fortran}, 'shape': {tuple(shape)!r}, }}"
    length = NPY_HEADER_BYTES - 10
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text.ljust(length - 1).encode("ascii") + b"\n"


class ArrayFile:
    """New little-endian .npy file that is written in pieces, with a checksum of its values."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self.path = path
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.n_bytes = 0
        self._crc = 0
        with writing(path):
            self._file = open(path, "xb")  # noqa: SIM115  # closed by finish or close
            self._file.write(bytes(NPY_HEADER_BYTES))

    def append(self, values: np.ndarray) -> None:
        """Append values: a vector, or whole columns in F order."""
        flat = np.asarray(values, dtype=self.dtype).ravel(order="K")
        view = np.ascontiguousarray(flat).view(np.uint8).data
        with writing(self.path):
            self._file.write(view)
        self._crc = zlib.crc32(view, self._crc)
        self.n_bytes += view.nbytes

    def finish(self, shape: tuple[int, ...] | None = None, *, fortran: bool = False) -> dict[str, Any]:
        """Write the header, flush everything to disk, and return the entry for the header of the store."""
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
        with suppress(OSError):  # on a full disk, buffered data are discarded intentionally
            self._file.close()


def checksum(path: Path) -> str:
    """Return the CRC-32 of the values of an array file."""
    crc = 0
    with open_regular(path) as file:
        file.seek(NPY_HEADER_BYTES)
        while piece := file.read(_CHUNK_BYTES):
            crc = zlib.crc32(piece, crc)
    return f"{crc:08x}"


def write_header(folder: Path, content: dict[str, Any]) -> None:
    """Write ``header.json``, including its checksum, and flush it to disk."""
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
    """Raise if a header is not byte for byte as it was written, because its checksum ignores white space."""
    place = place_of(folder)
    if place.read(HEADER, _MAX_HEADER_BYTES) != _header_text(read_header(place)).encode("utf-8"):
        raise damaged(place.file(HEADER), "the header was changed after it was written")


def _header_checksum(content: dict[str, Any]) -> str:
    """Return the CRC-32 of the header without its checksum, as compact JSON with sorted keys."""
    plain = {key: value for key, value in content.items() if key != "header_crc32"}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(text.encode('ascii')):08x}"


def read_header(folder: Path | Folder) -> dict[str, Any]:
    """Read and check the header of a store."""
    place = place_of(folder)
    path = place.file(HEADER)
    try:
        content = json.loads(place.read(HEADER, _MAX_HEADER_BYTES).decode("utf-8"))
    except DataFileError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        what = "Folder not found" if not place.exists() else f"The folder has no {HEADER}, so it is not a Coterie store"
        raise FileNotFoundError(
            errno.ENOENT, f"{what}. Create a store with coterie.data.convert or `coterie convert`", str(place.path)
        ) from error
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise damaged(path, f"the header is not JSON ({error})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataFileError(f'the header lacks "format": "{FORMAT}", so this is not a Coterie store.', path)
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise DataFileError(
            f"the store has format version {version!r}, but this version of Coterie reads version {VERSION}. Update Coterie "
            "or convert the original data again.",
            path,
        )
    if content.get("header_crc32") != _header_checksum(content):
        raise damaged(path, "the checksum of the header does not match")
    return content


def damaged(path: Path | str, what: str) -> DataFileError:
    """Return the error for a damaged store."""
    return DataFileError(f"the store is damaged: {what}. Convert the original data again.", path)


def check_entry(folder: Path | Folder, name: str, entry: Any) -> None:
    """Raise if the header entry, the size and the .npy header of an array do not agree."""
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
        raise damaged(path, "the .npy header does not match the header of the store")


def map_array(folder: Path | Folder, entry: Any, first: int = 0, last: int | None = None) -> np.ndarray:
    """Return a read-only memory map of an array, or of its columns or values from ``first`` to before ``last``.

    The entry must have been checked. Arrays of a store at a URL are fetched instead of mapped.
    """
    shape, dtype = tuple(entry["shape"]), np.dtype(entry["dtype"])
    along = -1 if entry["fortran_order"] else 0
    step = int(np.prod(shape, dtype=object)) // max(shape[along], 1)  # number of values per column (or row); 1 for a vector
    last = shape[along] if last is None else last
    offset = NPY_HEADER_BYTES + first * step * dtype.itemsize
    flat = place_of(folder).array(entry["file"], dtype, offset, (last - first) * step)
    if len(shape) == 1:
        return flat
    if entry["fortran_order"]:
        return flat.reshape(last - first, shape[0]).T
    return flat.reshape(last - first, shape[1])


class Folder:
    """Folder of a store on a local or mounted file system, whose arrays are mapped."""

    path: Path | str

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def file(self, name: str) -> Path | str:
        """Return the path of a file of the store."""
        return Path(self.path) / name

    def exists(self) -> bool:
        return Path(self.path).is_dir()

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a small file. Raises ``FileNotFoundError`` if it does not exist."""
        return read_regular(Path(self.file(name)), most)

    def start(self, name: str, count: int) -> tuple[bytes, int]:
        """Return the first bytes of a file, and its size."""
        with open_regular(Path(self.file(name))) as opened:
            return opened.read(count), os.fstat(opened.fileno()).st_size

    def array(self, name: str, dtype: np.dtype, offset: int, count: int) -> np.ndarray:
        """Return ``count`` contiguous values of a file from a byte offset on, mapped or fetched."""
        if not count:  # an empty range cannot be mapped
            return np.empty(0, dtype=dtype)
        return np.memmap(self.file(name), dtype=dtype, mode="r", offset=offset, shape=(count,))


class Address(Folder):
    """Folder at a URL that fsspec opens (``s3://…``, ``gs://…``). A slice of an array is fetched as a range of bytes."""

    def __init__(self, path: str) -> None:
        self.path = path.rstrip("/")
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise missing_extra(f"Opening {path}", "fsspec", "dask") from error
        try:
            self._system, self._root = url_to_fs(self.path)
        except (ImportError, ValueError) as error:
            raise DataFileError(f"fsspec cannot open this URL ({error_summary(error)}).", path) from error

    def file(self, name: str) -> str:
        return f"{self.path}/{name}"

    def exists(self) -> bool:
        return bool(self._system.exists(self._root))

    def read(self, name: str, most: int) -> bytes:
        found, size = self._fetch(name, 0, most), self._size(name)
        if size > most:
            raise DataFileError(f"the file has {size} bytes. The maximum is {most}.", self.file(name))
        return found

    def start(self, name: str, count: int) -> tuple[bytes, int]:
        return self._fetch(name, 0, count), self._size(name)

    def array(self, name: str, dtype: np.dtype, offset: int, count: int) -> np.ndarray:
        found = self._fetch(name, offset, offset + count * dtype.itemsize) if count else b""
        if len(found) != count * dtype.itemsize:
            message = f"{count * dtype.itemsize} bytes were requested, but {len(found)} were received."
            raise DataFileError(message, self.file(name))
        return np.frombuffer(found, dtype=dtype)

    def _size(self, name: str) -> int:
        return int(self._system.size(f"{self._root}/{name}"))

    def _fetch(self, name: str, start: int, stop: int) -> bytes:
        try:
            return bytes(self._system.cat_file(f"{self._root}/{name}", start=start, end=stop))
        except FileNotFoundError:
            raise
        except Exception as error:  # from any library used by fsspec
            raise DataFileError(f"the file could not be fetched ({error_summary(error)}).", self.file(name)) from error


def place_of(path: str | os.PathLike[str] | Folder) -> Folder:
    """Return the folder of a store, given as a path, a URL or a folder."""
    if is_address(path):
        return Address(path)
    return Folder(path) if isinstance(path, (str, os.PathLike)) else path
