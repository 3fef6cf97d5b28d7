"""Parallel, exact parsing of LIBSVM (SVMlight) text, in memory bounded by the input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from coterie._numba import run_chunks, thread_count
from coterie.bounds import DEFAULT_MAX_LENGTH
from coterie.data.errors import DataFileError
from coterie.data.readers.byte_stream import ByteStream
from coterie.data.readers.reader import Block, Progress, Reader, RowBlock, as_integers
from coterie.kernels import text as kernels

# Bytes parsed per call of the kernel: large enough to keep threads busy, small enough for results to stay in the cache.
_CHUNK_BYTES = 1 << 22
_MAX_TOKEN_LENGTH = 30

_MESSAGES = {
    kernels.NO_LABEL: "the line begins with {token!r}, so its label is missing. Every line must be 'label index:value ...'.",
    kernels.BAD_LABEL: "the label {token!r} is not a number. Replace labels by numbers.",
    kernels.MANY_LABELS: "{token!r} is more than one label. Only one label per sample is supported. Write one file per label.",
    kernels.BAD_INDEX: "{token!r} is not 'index:value'. Separate entries by blanks. Comments begin with '#'.",
    kernels.NO_COLON: "{token!r} has no ':' between index and value.",
    kernels.BAD_VALUE: "the value {token!r} is not a number. Correct or remove the entry.",
    kernels.NOT_FINITE: "{token!r} is not finite. Impute the value, or omit it if it stands for 0.",
    kernels.UNSORTED: "feature {token!r} follows a larger index. Sort the entries of each line by index.",
    kernels.REPEATED: "feature {token!r} occurs twice in the line. Remove one of the two.",
    kernels.BAD_QUERY: "{token!r} is not 'qid:number' directly after the label.",
    kernels.NEGATIVE: "{token!r} has a negative index. Indices start at 0 or 1.",
}


class PartSummary(NamedTuple):
    """Number of lines and of query ids, and smallest and largest index of a part of a file."""

    n_lines: int
    n_queries: int
    lowest: int
    highest: int


class LibsvmReader(Reader):
    """Reader of LIBSVM text, plain or compressed with gzip, bzip2 or xz.

    Parameters
    ----------
    path : Path
        LIBSVM file.
    zero_based : bool or "auto", default="auto"
        Whether the first feature has index 0 (else 1). ``"auto"``: 0 if that index occurs anywhere in the file.
    n_features : int, optional
        Number of features; by default determined by the largest index.
    dtype : dtype, optional
        Type of the values; by default the smallest type that holds all of them exactly.
    """

    format = "libsvm"

    def __init__(
        self, path: Path, *, zero_based: bool | str = "auto", n_features: int | None = None, dtype: Any = None
    ) -> None:
        super().__init__(path)
        if zero_based not in (True, False, "auto"):
            raise ValueError(f"zero_based={zero_based!r} must be True, False or 'auto'.")
        if n_features is not None and n_features < 1:
            raise ValueError(f"n_features={n_features} must be at least 1.")
        self._zero_based = zero_based
        self.shape = (None, n_features)
        self.dtype = None if dtype is None else np.dtype(dtype)
        self.span: tuple[int, int] | None = None
        self._n_lines = self._n_queries = 0
        self._lowest, self._highest = 1 << 62, -1

    @property
    def options(self) -> dict[str, Any]:
        """Options for a reader of the same file in another process."""
        return {"zero_based": self._zero_based, "n_features": self.shape[1], "dtype": self.dtype}

    @property
    def summary(self) -> PartSummary:
        """Summary of the part of the file read so far."""
        return PartSummary(self._n_lines, self._n_queries, self._lowest, self._highest)

    def merge_parts(self, parts: Sequence[PartSummary], labels: Sequence[np.ndarray]) -> None:
        """Merge the summaries and labels of readers of all parts of the file (each with its ``span``), in order."""
        self._n_lines, self._n_queries = (sum(part[k] for part in parts) for k in range(2))
        self._lowest, self._highest = min(part.lowest for part in parts), max(part.highest for part in parts)
        self._set_labels(labels)

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        stream = ByteStream(self.path, self.span)
        n_threads = thread_count()
        parser = _Parser(n_threads)
        labels: list[np.ndarray] = []
        n_bytes = 0
        try:
            for text in stream.line_blocks(min(n_threads * _CHUNK_BYTES, max(stream.n_bytes + 1, 1 << 12))):
                n_bytes += len(text)
                limit = self._largest_index(max(n_bytes, stream.n_bytes * (8 if stream.compression else 1)))
                for chunk in parser.parse(text, limit):
                    if chunk.error:
                        raise self._error(text, chunk, stream, limit)
                    self._n_lines += chunk.n_lines
                    self._lowest, self._highest = min(self._lowest, chunk.lowest), max(self._highest, chunk.highest)
                    self._n_queries += chunk.n_queries
                    labels.append(chunk.labels)
                    yield chunk.block
                if progress is not None:
                    progress(stream.done, stream.n_bytes, "reading")
        finally:
            stream.close()
        if self.span is None:
            self._set_labels(labels)
        else:  # merge_parts does the rest when all parts have been read
            self.labels = np.concatenate([np.empty(0), *labels])

    def _set_labels(self, labels: Sequence[np.ndarray]) -> None:
        self.labels = as_integers(np.concatenate([np.empty(0), *labels]))
        if self._n_queries:
            self.notes["query_ids_ignored"] = self._n_queries
        self._set_first_column()

    def _largest_index(self, n_bytes: int) -> int:
        stated = self.shape[1]
        if stated is not None:
            return stated - (self._zero_based is True)
        return max(DEFAULT_MAX_LENGTH, n_bytes)

    def _set_first_column(self) -> None:
        """Determine whether the first feature has index 0 or 1, after all indices are known."""
        if self._lowest == 0 and self._zero_based is False:
            raise DataFileError("index 0 occurs, but zero_based=False requires indices to start at 1.", self.path)
        zero_based = self._lowest == 0 if self._zero_based == "auto" else bool(self._zero_based)
        self.first_column = 0 if zero_based else 1
        stated = self.shape[1]
        if stated is not None and self._highest - self.first_column >= stated:
            raise DataFileError(
                f"index {self._highest} occurs and indices start at {self.first_column}, but n_features={stated}. Set "
                f"n_features={self._highest - self.first_column + 1}, or set zero_based.",
                self.path,
            )

    def _error(self, text: np.ndarray, chunk: _Chunk, stream: ByteStream, limit: int) -> DataFileError:
        content = text.tobytes()
        line_start = content.rfind(b"\n", 0, chunk.place) + 1
        line = self._n_lines + chunk.n_lines + 1
        shown = shown_token(content, chunk.place)
        if chunk.error == kernels.TOO_LARGE:
            message = self._too_large(shown, stream, limit)
        else:
            message = _MESSAGES[chunk.error].format(token=shown)
        if line == 1 and b"\x00" in content[:1000]:
            message = "the file is not text. If it has another format, set format=."
        return DataFileError(message, self.path, line=line, column=chunk.place - line_start + 1)

    def _too_large(self, token: str, stream: ByteStream, limit: int) -> str:
        if self.shape[1] is not None:
            return f"the index of {token!r} is larger than n_features={self.shape[1]} allows."
        return (
            f"the index of {token!r} requires more features than a file of {stream.n_bytes} bytes can hold. If it is correct, "
            "set n_features=."
        )


class _Chunk:
    """Result of parsing some lines."""

    def __init__(self, state: np.ndarray, labels: np.ndarray, block: RowBlock) -> None:
        self.n_lines, self.error, self.place = (int(state[i]) for i in (kernels.N_LINES, kernels.ERROR, kernels.POSITION))
        self.lowest, self.highest, self.n_queries = (
            int(state[i]) for i in (kernels.LOWEST, kernels.HIGHEST, kernels.N_QUERIES)
        )
        self.labels = labels
        self.block = block


class _Parser:
    """Multithreaded parser of blocks of text, with reusable buffers per thread."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._free: list[_Buffers] = []

    def parse(self, text: np.ndarray, limit: int) -> list[_Chunk]:
        """Return the chunks of a text in order."""
        found: dict[int, _Chunk] = {}
        text.flags.writeable = False
        column_type = np.dtype(np.int32 if limit < 2**31 else np.int64)

        def task(start: int, stop: int) -> None:
            try:
                buffers = self._free.pop()
            except IndexError:
                buffers = _Buffers()
            found[start] = buffers.parse(text, start, stop, limit, column_type)
            self._free.append(buffers)

        run_chunks(task, _line_boundaries(text, self.n_threads), self.n_threads)
        return [found[start] for start in sorted(found)]


class _Buffers:
    """Buffers for the results of one call. Pages that are never written do not use memory."""

    def __init__(self) -> None:
        self.size = -1
        self.column_type = np.dtype(np.int32)

    def _reserve(self, n_bytes: int, column_type: np.dtype) -> None:
        if n_bytes <= self.size and column_type == self.column_type:
            return
        self.size, self.column_type = n_bytes, column_type
        n_rows, n_entries = n_bytes // 2 + 1, n_bytes // 4 + 1  # "1\n" is the shortest row, " 1:1" the shortest entry
        self.labels, self.ends = np.empty(n_rows), np.empty(n_rows, dtype=np.int64)
        self.columns, self.values = np.empty(n_entries, dtype=column_type), np.empty(n_entries)
        self.hard = np.empty((2, n_rows), dtype=np.int64)

    def parse(self, text: np.ndarray, start: int, stop: int, limit: int, column_type: np.dtype) -> _Chunk:
        self._reserve(stop - start, column_type)
        state = np.zeros(kernels.STATE_SIZE, dtype=np.int64)
        kernels.parse_lines(
            text, start, stop, limit, self.labels, self.ends, self.columns, self.values, self.hard[0], self.hard[1], state
        )
        n_rows, n_entries = int(state[kernels.N_ROWS]), int(state[kernels.N_ENTRIES])
        if state[kernels.N_UNDECIDED] and not state[kernels.ERROR]:
            parse_uncertain_numbers(kernels, text, (start, stop), self.hard, self.values, self.labels, state)
        block = RowBlock(self.ends[:n_rows].copy(), self.columns[:n_entries].copy(), self.values[:n_entries].copy())
        return _Chunk(state, self.labels[:n_rows].copy(), block)


def parse_uncertain_numbers(
    kernels: ModuleType, text: np.ndarray, span: tuple[int, int], hard: np.ndarray, values: np.ndarray, labels: np.ndarray,
    state: np.ndarray,
) -> None:  # fmt: skip
    """Parse the numbers that a kernel could not convert with certainty. Their syntax has been checked."""
    start, stop = span
    for entry, place in hard[:, : int(state[kernels.N_UNDECIDED])].T.tolist():
        value = float(number_at(text, place, stop))
        if not np.isfinite(value):
            state[kernels.ERROR], state[kernels.POSITION] = kernels.NOT_FINITE, place
            state[kernels.N_LINES] = np.count_nonzero(text[start:place] == ord("\n"))
            return
        if entry < 0:
            labels[-1 - entry] = value
        else:
            values[entry] = value


def shown_token(content: bytes, place: int) -> str:
    """Return the word at a position, for a message."""
    words = content[place : place + 200].partition(b"\n")[0].split(b"#")[0].split()
    word = words[0].decode("utf-8", "replace") if words and not content[place : place + 1].isspace() else ""
    return word if len(word) <= _MAX_TOKEN_LENGTH else f"{word[:_MAX_TOKEN_LENGTH]}…"


def number_at(text: np.ndarray, place: int, stop: int) -> bytes:
    """Return the bytes up to the next blank, line end or comment."""
    size = 64
    while True:
        piece = text[place : min(place + size, stop)].tobytes()
        token = piece.split(b"#")[0].split(maxsplit=1)[0]
        if len(token) < len(piece) or place + size >= stop:
            return token
        size *= 2


def _line_boundaries(text: np.ndarray, n_threads: int) -> np.ndarray:
    """Return starts of lines that divide the text into chunks of about equal length."""
    few = len(text) <= n_threads * _CHUNK_BYTES
    n_chunks = max(1, min(n_threads, len(text) // 4096)) if few else -(-len(text) // _CHUNK_BYTES)
    cuts = [0]
    for cut in np.linspace(0, len(text), n_chunks + 1)[1:-1].astype(np.int64):
        place = int(cut)
        while place < len(text):  # search for the next line end in steps of 64 KB
            ends = np.flatnonzero(text[place : place + (1 << 16)] == ord("\n"))
            if len(ends):
                cuts.append(place + int(ends[0]) + 1)
                break
            place += 1 << 16
    return np.unique(np.array([*cuts, len(text)]))
