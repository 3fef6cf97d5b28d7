"""Which format a file has: by its first bytes, then by its name."""

from __future__ import annotations

from pathlib import Path

from coterie.data.errors import DataFileError
from coterie.data.readers.byte_stream import ByteStream

FORMATS = ("store", "libsvm", "npz", "matrix-market", "csv", "tsv", "parquet", "h5ad", "plink")

_MAGIC = {
    b"\x89HDF\r\n\x1a\n": "h5ad",
    b"PAR1": "parquet",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
    b"\x6c\x1b": "plink",
}
_SUFFIXES = {
    ".svm": "libsvm", ".libsvm": "libsvm", ".svmlight": "libsvm", ".npz": "npz",
    ".mtx": "matrix-market", ".mm": "matrix-market",
    ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet", ".h5ad": "h5ad",
    ".bed": "plink", ".bim": "plink", ".fam": "plink",
}  # fmt: skip
_COMPRESSED = (".gz", ".bz2", ".xz")
_HEAD = 1 << 16


def resolve(path: Path) -> Path:
    """The file to read for a path: PLINK sets may be named by their prefix or by any of their files."""
    if path.suffix in (".bim", ".fam") and path.with_suffix(".bed").exists():
        return path.with_suffix(".bed")
    if not path.exists() and path.with_name(path.name + ".bed").exists():
        return path.with_name(path.name + ".bed")
    return path


def detect_format(path: Path) -> str:
    """Name of the format of a file."""
    with open(path, "rb") as file:
        start = file.read(16)
    if not start:
        raise DataFileError("the file is empty.", path)
    if start.startswith(b"\x93NUMPY"):
        raise DataFileError("this is a single NumPy array. Save it with its labels: numpy.savez(file, X=X, y=y).", path)
    found = _by_magic(start)
    if found is not None:
        return found
    stream = ByteStream(path)
    try:
        head = stream.read(_HEAD)
    finally:
        stream.close()
    return _by_magic(head) or _of_text(head, path)


def _by_magic(start: bytes) -> str | None:
    if start.lower().startswith(b"%%matrixmarket"):
        return "matrix-market"
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


def _of_text(head: bytes, path: Path) -> str:
    """Format of a text file by its name, then by the look of its first line of data."""
    name = path.name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    named = _SUFFIXES.get(Path(name).suffix)
    if named in ("libsvm", "csv", "tsv", "matrix-market"):
        return named
    if named is not None:
        raise DataFileError(f"the name says {named}, the content does not. Is the file damaged? Else state format=.", path)
    lines = [line for line in head.replace(b"\r", b"\n").split(b"\n") if line.strip() and not line.lstrip().startswith(b"#")]
    first = lines[0] if lines else b""
    tokens = first.split(b"#")[0].split()
    if b"\x00" not in head and tokens:
        if any(b":" in token for token in tokens[1:]) or (len(tokens) == 1 and b"," not in first and _is_number(tokens[0])):
            return "libsvm"
        if b"\t" in first:
            return "tsv"
        if b"," in first:
            return "csv"
    raise DataFileError(f"its format is unknown. State format=, one of {', '.join(FORMATS)}.", path)


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True
