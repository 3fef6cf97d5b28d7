"""MatrixMarket files: one matrix as text, with labels in a separate file.

SciPy reads them too, but its parser (1.17) can crash the interpreter on damaged files, and allocates the sizes stated in the
header without a check.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie.bounds import MAX_DEFLATE_RATIO, check_length, require_memory
from coterie.data.errors import DataFileError
from coterie.data.readers.byte_stream import ByteStream
from coterie.data.readers.libsvm import parse_uncertain_numbers, shown_token
from coterie.data.readers.reader import Block, Progress, Reader, ValueKind, usable_values
from coterie.kernels import coordinates as kernels

_BLOCK_BYTES = 1 << 22
# Bytes per entry while all entries are joined, checked for duplicates and sorted.
_ENTRY_BYTES = 64
_FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")

_MESSAGES = {
    kernels.BAD_ROW: "the row {token!r} is not an integer.",
    kernels.BAD_COLUMN: "the column {token!r} is not an integer.",
    kernels.ROW_RANGE: "row {token} is out of range. The header states {shape[0]} rows.",
    kernels.COLUMN_RANGE: "column {token} is out of range. The header states {shape[1]} columns.",
    kernels.BAD_VALUE: "the value {token!r} is not a number. Correct or remove the entry.",
    kernels.NOT_FINITE: "the value {token!r} is not finite. Impute it.",
    kernels.TOO_MANY: "unexpected {token!r}. The line has too many values.",
}


class _Header(NamedTuple):
    layout: str
    field: str
    symmetry: str
    shape: tuple[int, int]
    n_entries: int
    n_lines: int
    n_bytes: int


class MatrixMarketReader(Reader):
    """Reader of MatrixMarket files with one sample per row.

    Parameters
    ----------
    path : Path
        Plain or compressed file.
    transpose : bool, default=False
        Whether the file has one feature per row, as is common for gene expression.
    """

    format = "matrix-market"
    by = "features"

    def __init__(self, path: Path, *, transpose: bool = False) -> None:
        super().__init__(path)
        self._transpose = transpose

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        """Yield one block with all data, because entries may be in any order."""
        header = self._header()
        parts = list(self._entries(header, progress))
        values: Any = np.concatenate([part[2] for part in parts] or [np.empty(0)])
        kind = ValueKind()
        kind.update(values)
        matrix: Any
        if header.layout == "array":
            matrix = self._dense(values.astype(kind.dtype), header)
        else:
            if header.field == "pattern":
                values = np.ones(sum(len(part[0]) for part in parts), dtype=np.uint8)
            elif header.symmetry == "general":
                values = values.astype(kind.dtype)
            rows, columns = (np.concatenate([part[k] for part in parts] or [np.empty(0, dtype=np.int32)]) for k in (0, 1))
            matrix = self._sparse(rows, columns, values, header)
        yield usable_values(matrix.T if self._transpose else matrix, self.path)

    def _header(self) -> _Header:
        """Read the banner and the sizes. Raises if the file cannot hold that many values."""
        stream = ByteStream(self.path)
        try:
            head = stream.read(1 << 20)
        finally:
            stream.close()
        lines = head.split(b"\n")
        words = [word.decode("latin1") for word in lines[0].lower().split()]
        if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"] or words[2] not in ("coordinate", "array"):
            message = "the first line is not '%%MatrixMarket matrix coordinate|array field symmetry'."
            raise DataFileError(message, self.path, line=1)
        layout, field, symmetry = words[2:]
        if field not in _FIELDS or symmetry not in _SYMMETRIES or (field == "pattern" and layout == "array"):
            raise DataFileError(f"matrices of type '{layout} {field} {symmetry}' are not supported.", self.path, line=1)
        number = next((k for k, line in enumerate(lines[1:], 1) if line.strip() and not line.startswith(b"%")), None)
        if number is None:
            raise DataFileError("the line with the sizes is missing.", self.path, line=2)
        sizes = lines[number].split()
        expected = 3 if layout == "coordinate" else 2
        if len(sizes) != expected or not all(size.isdigit() and len(size) < 19 for size in sizes):
            raise DataFileError(f"the line with the sizes must contain {expected} integers.", self.path, line=number + 1)
        shape = (int(sizes[0]), int(sizes[1]))
        for n in shape:
            check_length(n, stream.n_bytes * (MAX_DEFLATE_RATIO if stream.compression else 1), self.path, f"the size {n}")
        if symmetry != "general" and shape[0] != shape[1]:
            raise DataFileError(f"a {symmetry} matrix of shape {shape} is not square.", self.path, line=number + 1)
        n_entries = int(sizes[2]) if layout == "coordinate" else _array_entries(shape[0], shape[1], symmetry)
        n_bytes = len(b"\n".join(lines[: number + 1])) + 1
        return _Header(layout, field, symmetry, shape, n_entries, number + 1, n_bytes)

    def _entries(self, header: _Header, progress: Progress | None) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield rows, columns and values, of some megabytes of text at a time."""
        stream = ByteStream(self.path)
        n_lines, n_entries = header.n_lines, 0
        shape = np.array(header.shape, dtype=np.int64)
        index_type = np.int32 if max(header.shape) < 2**31 else np.int64
        try:
            stream.read(header.n_bytes)
            for text in stream.line_blocks(min(_BLOCK_BYTES, max(stream.n_bytes + 1, 1 << 12))):
                capacity = len(text) // 2 + 1
                rows = np.empty(capacity if header.layout == "coordinate" else 0, dtype=index_type)
                columns = np.empty_like(rows)
                values = np.empty(capacity if header.field != "pattern" else 0)
                hard = np.empty((2, capacity), dtype=np.int64)
                state = np.zeros(kernels.STATE_SIZE, dtype=np.int64)
                text.flags.writeable = False
                kernels.parse_entries(text, 0, len(text), shape, rows, columns, values, hard[0], hard[1], state)
                if not state[kernels.ERROR]:
                    parse_uncertain_numbers(kernels, text, (0, len(text)), hard, values, values, state)
                if state[kernels.ERROR]:
                    raise self._error(text, state, n_lines, header)
                count = int(state[kernels.N_ENTRIES])
                n_lines += int(state[kernels.N_LINES])
                n_entries += count
                if n_entries > header.n_entries:
                    raise self._wrong_count(n_entries, header)
                require_memory(_ENTRY_BYTES * n_entries, self.path, f"a matrix of more than {n_entries} entries")
                yield rows[:count].copy(), columns[:count].copy(), values[:count].copy()
                if progress is not None:
                    progress(stream.done, stream.n_bytes, "reading")
        finally:
            stream.close()
        if n_entries != header.n_entries:
            raise self._wrong_count(n_entries, header)

    def _wrong_count(self, n_entries: int, header: _Header) -> DataFileError:
        what, least = ("truncated", "") if n_entries < header.n_entries else ("too long", "at least ")
        return DataFileError(
            f"the file is {what}: it has {least}{n_entries} entries instead of the {header.n_entries} stated in line "
            f"{header.n_lines}.",
            self.path,
        )

    def _error(self, text: np.ndarray, state: np.ndarray, n_lines: int, header: _Header) -> DataFileError:
        content, place = text.tobytes(), int(state[kernels.POSITION])
        column = place - (content.rfind(b"\n", 0, place) + 1) + 1
        message = _MESSAGES[int(state[kernels.ERROR])].format(token=shown_token(content, place), shape=header.shape)
        return DataFileError(message, self.path, line=n_lines + int(state[kernels.N_LINES]) + 1, column=column)

    def _sparse(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, header: _Header) -> Any:
        if header.symmetry != "general":
            below = rows != columns
            mirrored = -values[below] if header.symmetry == "skew-symmetric" else values[below]
            rows, columns = np.concatenate([rows, columns[below]]), np.concatenate([columns, rows[below]])
            values = np.concatenate([values, mirrored])
            kind = ValueKind()
            kind.update(values)
            values = values.astype(kind.dtype)
        keys = rows.astype(np.int64) * header.shape[1] + columns
        repeated = np.diff(np.sort(keys)) == 0
        if repeated.any():
            row, column = divmod(int(np.sort(keys)[:-1][repeated][0]), header.shape[1])
            message = f"the entry in row {row + 1}, column {column + 1} occurs twice. Remove one of them."
            raise DataFileError(message, self.path)
        return sparse.coo_array((values, (rows, columns)), shape=header.shape)

    def _dense(self, values: np.ndarray, header: _Header) -> np.ndarray:
        """Return a dense matrix from its values by column, or from the lower triangle of a symmetric matrix."""
        n, m = header.shape
        if header.symmetry == "general":
            return values.reshape((n, m), order="F")
        strict = header.symmetry == "skew-symmetric"
        matrix = np.zeros((n, n), dtype=np.float64 if strict else values.dtype, order="F")
        column, row = np.triu_indices(n, k=int(strict))
        matrix[row, column] = values
        matrix[column, row] = -values.astype(np.float64) if strict else values
        return matrix


def _array_entries(n: int, m: int, symmetry: str) -> int:
    """Return the number of values of a dense matrix in the file."""
    if symmetry == "general":
        return n * m
    return n * (n + 1) // 2 if symmetry == "symmetric" else n * (n - 1) // 2
