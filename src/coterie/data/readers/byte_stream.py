"""Reading of plain and compressed files in blocks of whole lines."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from coterie.bounds import format_bytes, open_regular, require_memory
from coterie.data.errors import DataFileError

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
_OPENERS: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
# UTF-32 comes first, because its mark begins with that of UTF-16.
_BYTE_ORDER_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
# Memory per byte of a line while it is read: the text and its copy while a buffer grows, the numbers in it, and the copy of
# those that is kept.
_MEMORY_PER_BYTE = 9
# The same for text that becomes Python strings, one per line. Short lines are the worst case.
_MEMORY_PER_LINE_BYTE = 12
# Number of bytes from which the encoding of a text is detected.
_ENCODING_BYTES = 1 << 12


def compression_of(start: bytes) -> str | None:
    """Detect gzip, bzip2 or xz from the first bytes of a file; return None for anything else."""
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)


def check_encoding(text: bytes | bytearray, path: Path) -> None:
    """Raise ``DataFileError`` if text is UTF-16 or UTF-32: a byte order mark, or zeros at regular positions."""
    start = text[:_ENCODING_BYTES]
    wide = next((name for mark, name in _BYTE_ORDER_MARKS.items() if start.startswith(mark)), None)
    zeros = [start[offset::4].count(0) * 8 > len(start) for offset in range(4)]  # most characters have a code below 256
    if wide is None and sum(zeros) == 3:
        wide = "UTF-32"
    elif wide is None and zeros in ([True, False] * 2, [False, True] * 2):
        wide = "UTF-16"
    if wide is not None:
        raise DataFileError(f"the file is encoded as {wide}. Save it as UTF-8.", path)


class ByteStream:
    """Sequential reader of a file, which decompresses if necessary.

    A ``span`` of bytes restricts an uncompressed file to the lines that begin in it.
    """

    def __init__(self, path: Path, span: tuple[int, int] | None = None) -> None:
        self.path = path
        self._raw = open_regular(path)
        self.n_bytes = path.stat().st_size
        self._first, self._left = 0, None
        try:
            self.compression = compression_of(self._raw.read(6))
            if span is not None:
                self._first, last = (_next_line_start(self._raw, position) for position in span)
                self._left = max(0, last - self._first)
            self._raw.seek(self._first)
        except OSError:
            self._raw.close()
            raise
        self._stream: IO[bytes] = self._raw if self.compression is None else _OPENERS[self.compression](self._raw)

    @property
    def done(self) -> int:
        """Number of bytes of the file read so far."""
        return min(self._raw.tell(), self.n_bytes)

    def read_into(self, buffer: memoryview) -> int:
        """Fill a buffer and return the number of bytes read, which is smaller only at the end of the file."""
        filled = 0
        if self._left is not None:
            buffer = buffer[: self._left]
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
        if self._left is not None:
            self._left -= filled
        return filled

    def read(self, n_bytes: int) -> bytes:
        buffer = bytearray(n_bytes)
        return bytes(buffer[: self.read_into(memoryview(buffer))])

    def _damaged(self, error: Exception) -> DataFileError:
        what = "ends too early" if isinstance(error, EOFError) else "is damaged"
        return DataFileError(f"the {self.compression} data {what} ({error}). Download or create the file again.", self.path)

    def line_blocks(self, n_bytes: int) -> Iterator[np.ndarray]:
        """Yield blocks of whole lines, of about ``n_bytes`` bytes.

        A block is valid until the next block is requested. A longer line makes a longer block, if there is enough memory. A
        line feed is appended to a last line without one.
        """
        buffer = bytearray(n_bytes)
        kept = done = 0
        while True:
            count = kept + self.read_into(memoryview(buffer)[kept:])
            if done == kept == self._first == 0:
                check_encoding(buffer[:count], self.path)
            if count < len(buffer):  # the end
                if count and buffer[count - 1] != ord("\n"):
                    buffer[count] = ord("\n")
                    count += 1
                if count:
                    yield np.frombuffer(buffer, dtype=np.uint8)[:count]
                return
            end = buffer.rfind(b"\n") + 1
            if end == 0:  # the buffer holds no complete line
                what, start = f"a line of more than {format_bytes(count)}", self._first + done
                require_memory(2 * _MEMORY_PER_BYTE * count, self.path, what, line=lambda: _line_number(self.path, start))  # noqa: B023
                buffer, kept = buffer + bytearray(len(buffer)), count
                continue
            done += end
            yield np.frombuffer(buffer, dtype=np.uint8)[:end]
            rest = buffer[end:]
            buffer[: len(rest)] = rest
            kept = len(rest)

    def close(self) -> None:
        self._stream.close()
        self._raw.close()


def _next_line_start(file: IO[bytes], position: int) -> int:
    """Return the position of the first line that begins at or after a position, or the end of the file."""
    if position == 0:
        return 0
    file.seek(position - 1)
    while piece := file.read(1 << 16):
        end = piece.find(b"\n")
        if end >= 0:
            return file.tell() - len(piece) + end + 1
    return file.tell()


def open_binary(path: Path) -> IO[bytes]:
    """Open a file for reading, with decompression if necessary."""
    with open_regular(path) as file:
        kind = compression_of(file.read(6))
    return open_regular(path) if kind is None else _OPENERS[kind](path)


def skip(file: IO[bytes], n_bytes: int) -> None:
    """Skip the first bytes of a file, which may be compressed."""
    while n_bytes > 0 and (piece := file.read(min(n_bytes, 1 << 20))):
        n_bytes -= len(piece)


def _line_number(path: Path, position: int) -> int:
    """Return the number of the line that contains a byte of the text."""
    stream = ByteStream(path)
    try:
        line = 1
        while position > 0 and (piece := stream.read(min(position, 1 << 20))):
            line, position = line + piece.count(b"\n"), position - len(piece)
    finally:
        stream.close()
    return line


def read_lines(path: Path) -> list[str]:
    """Return the lines of a small text file (names, labels), plain or compressed, without line ends."""
    stream = ByteStream(path)
    content = bytearray()
    try:
        while piece := stream.read(1 << 22):
            content += piece
            require_memory(_MEMORY_PER_LINE_BYTE * len(content), path, "the text")
    finally:
        stream.close()
    check_encoding(content, path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataFileError("the text is not UTF-8. Convert it, for instance with iconv.", path, line=line) from error
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
