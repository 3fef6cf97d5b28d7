"""Bytes of a file, compressed or not, in blocks of whole lines."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from coterie.data.errors import DataFileError

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
_OPENERS: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


def compression_of(start: bytes) -> str | None:
    """gzip, bzip2 or xz by the first bytes, whatever the file's name; None for anything else."""
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)


class ByteStream:
    """A file read from its beginning, decompressed if need be.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._raw = open(path, "rb")  # noqa: SIM115  # closed by close
        start = self._raw.read(6)
        self._raw.seek(0)
        self.compression = compression_of(start)
        self.n_bytes = path.stat().st_size
        self._stream: IO[bytes] = self._raw if self.compression is None else _OPENERS[self.compression](self._raw)

    @property
    def done(self) -> int:
        """Bytes of the file that have been read."""
        return min(self._raw.tell(), self.n_bytes)

    def read_into(self, buffer: memoryview) -> int:
        """Fill a buffer; fewer bytes come only at the end of the file."""
        filled = 0
        try:
            while filled < len(buffer):
                count = self._stream.readinto(buffer[filled:])  # type: ignore[attr-defined]  # all three readers have it
                if not count:
                    break
                filled += count
        except (*_DAMAGE, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise OSError(error.errno, error.strerror, str(self.path)) from error
            raise self._damaged(error) from error
        return filled

    def read(self, n_bytes: int) -> bytes:
        """At most so many bytes."""
        buffer = bytearray(n_bytes)
        return bytes(buffer[: self.read_into(memoryview(buffer))])

    def _damaged(self, error: Exception) -> DataFileError:
        what = "ends too early" if isinstance(error, EOFError) else "is damaged"
        return DataFileError(f"the {self.compression} data {what} ({error}). Get or make the file again.", self.path)

    def line_blocks(self, n_bytes: int) -> Iterator[np.ndarray]:
        """The bytes in blocks of whole lines, of about ``n_bytes``.

        A block is valid until the next one is asked for. A longer line makes a longer block. A last line without an end
        gets one.
        """
        buffer = bytearray(n_bytes)
        kept = 0
        while True:
            count = kept + self.read_into(memoryview(buffer)[kept:])
            if count < len(buffer):  # the end
                if count and buffer[count - 1] != ord("\n"):
                    buffer[count] = ord("\n")
                    count += 1
                if count:
                    yield np.frombuffer(buffer, dtype=np.uint8)[:count]
                return
            end = buffer.rfind(b"\n") + 1
            if end == 0:  # not one whole line
                buffer, kept = buffer + bytearray(len(buffer)), count
                continue
            yield np.frombuffer(buffer, dtype=np.uint8)[:end]
            rest = buffer[end:]
            buffer[: len(rest)] = rest
            kept = len(rest)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        self._raw.close()


def open_binary(path: Path) -> IO[bytes]:
    """A file opened for reading its bytes, decompressed if need be."""
    with open(path, "rb") as file:
        kind = compression_of(file.read(6))
    return open(path, "rb") if kind is None else _OPENERS[kind](path)


def read_lines(path: Path) -> list[str]:
    """Lines of a small text file (names, labels), compressed or not, without their ends."""
    stream = ByteStream(path)
    try:
        parts = []
        while piece := stream.read(1 << 22):
            parts.append(piece)
    finally:
        stream.close()
    content = b"".join(parts)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataFileError("the text is not UTF-8. Convert it first, for instance with iconv.", path, line=line) from error
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
