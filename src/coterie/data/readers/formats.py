"""The formats of data files: one entry each, with all that the rest of Coterie knows of them.

To add a format:

1. Write its reader in this folder, a subclass of :class:`coterie.data.readers.reader.Reader`; for a table whose columns have
   types, of :class:`coterie.data.readers.tabular.ArrowReader`. The keyword-only parameters of its ``__init__`` become options
   of ``open_features``, ``convert`` and ``--read``; its docstring says what they do.
2. Add its entry to ``_ENTRIES`` below.
3. Add its row to the table of docs/reference/store.md.

Finding out a file's format, opening it, messages and the command line's help are made from the entries, and
``tests/data/test_formats.py`` checks each one. Nothing is imported before a file is read: ``--help`` imports this module.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coterie.data.errors import DataFileError
from coterie.methods import load

# What names of compressed files end with, after the format's own suffix.
COMPRESSED = (".gz", ".bz2", ".xz")
# Bytes of a file by which its format is found.
_HEAD = 1 << 16


@dataclass(frozen=True)
class Format:
    """A format of data files.

    Attributes
    ----------
    name : str
        What ``format=`` says.
    reader : str
        Where its reader is: ``module:Class``.
    description : str
        What people call it.
    suffixes : tuple of str
        What names of its files end with, in lower case.
    magic : tuple of bytes
        What its files begin with (one of these); in text, in upper or lower case.
    text : bool
        Whether it is text, which may be compressed, and which its suffix tells where its content does not.
    looks_like : callable or None
        For text without magic bytes: whether the beginning of a file (64 KB, decompressed) looks like it. The formats are
        asked in their order.
    fileset : bool
        Whether it has several files with one prefix, so that the prefix or any of them can be given. The one with the first
        suffix is read.
    labels : str
        What ``label=`` names, in a few words; empty where that is a text file with one label a line.
    table : bool
        Whether its columns have names and can hold anything; the reader is a ``TabularReader``.

    Examples
    --------
    >>> from coterie.data import FORMATS
    >>> FORMATS["parquet"].description, FORMATS["parquet"].suffixes
    ('Parquet', ('.parquet', '.pq'))
    >>> FORMATS["parquet"].options()
    ('label', 'sample_names', 'missing_labels', 'drop', 'keep_numeric', 'columns')
    """

    name: str
    reader: str
    description: str
    suffixes: tuple[str, ...] = ()
    magic: tuple[bytes, ...] = ()
    text: bool = False
    looks_like: Callable[[bytes], bool] | None = None
    fileset: bool = False
    labels: str = ""
    table: bool = False

    def load(self) -> Any:
        """The class of its reader, whose docstring describes the options."""
        return load(self.reader)

    def options(self) -> tuple[str, ...]:
        """Names of the options that its reader takes; ``**options`` stands for those of the base class."""
        names: list[str] = []
        for kind in self.load().__mro__:
            parameters = inspect.signature(kind.__init__).parameters.values()
            names += [parameter.name for parameter in parameters if parameter.kind == parameter.KEYWORD_ONLY]
            if all(parameter.kind != parameter.VAR_KEYWORD for parameter in parameters):
                break
        return tuple(dict.fromkeys(names))

    def begins(self, start: bytes) -> bool:
        """Whether a file with these first bytes has its magic bytes."""
        if self.text:
            return start.lower().startswith(tuple(magic.lower() for magic in self.magic))
        return start.startswith(self.magic)


def _first_line(head: bytes) -> bytes:
    """The first line that is neither empty nor a comment."""
    lines = head.replace(b"\r", b"\n").split(b"\n")
    return next((line for line in lines if line.strip() and not line.lstrip().startswith(b"#")), b"")


def _looks_like_libsvm(head: bytes) -> bool:
    line = _first_line(head)
    tokens = line.split(b"#")[0].split()
    return any(b":" in token for token in tokens[1:]) or (len(tokens) == 1 and b"," not in line and is_number(tokens[0]))


def is_number(token: bytes | str) -> bool:
    """Whether a word is a number."""
    try:
        float(token)
    except ValueError:
        return False
    return True


_ENTRIES = (
    Format(
        name="libsvm",
        reader="coterie.data.readers.libsvm:LibsvmReader",
        description="LIBSVM text",
        suffixes=(".svm", ".libsvm", ".svmlight"),
        text=True,
        looks_like=_looks_like_libsvm,
    ),
    Format(
        name="npz",
        reader="coterie.data.readers.npz:NpzReader",
        description=".npz",
        suffixes=(".npz",),
        magic=(b"PK\x03\x04", b"PK\x05\x06"),
        labels="a key",
    ),
    Format(
        name="matrix-market",
        reader="coterie.data.readers.matrix_market:MatrixMarketReader",
        description="MatrixMarket",
        suffixes=(".mtx", ".mm"),
        magic=(b"%%matrixmarket",),
        text=True,
    ),
    Format(
        name="csv",
        reader="coterie.data.readers.tabular:CsvReader",
        description="CSV",
        suffixes=(".csv",),
        text=True,
        looks_like=lambda head: b"," in _first_line(head) and b"\t" not in _first_line(head),
        labels="a column",
        table=True,
    ),
    Format(
        name="tsv",
        reader="coterie.data.readers.tabular:TsvReader",
        description="TSV",
        suffixes=(".tsv",),
        text=True,
        looks_like=lambda head: b"\t" in _first_line(head),
        labels="a column",
        table=True,
    ),
    Format(
        name="parquet",
        reader="coterie.data.readers.tabular:ParquetReader",
        description="Parquet",
        suffixes=(".parquet", ".pq"),
        magic=(b"PAR1",),
        labels="a column",
        table=True,
    ),
    Format(
        name="h5ad",
        reader="coterie.data.readers.h5ad:H5adReader",
        description=".h5ad",
        suffixes=(".h5ad",),
        magic=(b"\x89HDF\r\n\x1a\n",),
        labels="a column of obs",
    ),
    Format(
        name="plink",
        reader="coterie.data.readers.plink:PlinkReader",
        description="PLINK .bed",
        suffixes=(".bed", ".bim", ".fam"),
        magic=(b"\x6c\x1b",),
        fileset=True,
        labels="a column of the phenotypes",
    ),
)
FORMATS = {entry.name: entry for entry in _ENTRIES}

# What is recognised but not read, by its first bytes, and what to do about it.
REFUSED = {b"\x93NUMPY": "this is a single NumPy array. Save it with its labels: numpy.savez(file, X=X, y=y)."}


def describe_formats() -> str:
    """All formats in one line."""
    return ", ".join(entry.description for entry in FORMATS.values())


def describe_tables() -> str:
    """The formats of tables in one line."""
    return ", ".join(entry.description for entry in FORMATS.values() if entry.table)


def describe_labels() -> str:
    """What ``label=`` names in each format, in one line."""
    places = dict.fromkeys(entry.labels for entry in FORMATS.values() if entry.labels)
    parts = [f"{place} ({', '.join(e.description for e in FORMATS.values() if e.labels == place)})" for place in places]
    return ", ".join([*parts, "or a text file with one label a line"])


def resolve(path: Path) -> Path:
    """The file to read for a path: a set of files may be named by its prefix or by any of them."""
    for entry in FORMATS.values():
        if not entry.fileset:
            continue
        main, *others = entry.suffixes
        if path.suffix in others and path.with_suffix(main).exists():
            return path.with_suffix(main)
        if not path.exists() and path.with_name(path.name + main).exists():
            return path.with_name(path.name + main)
    return path


def detect_format(path: Path) -> str:
    """Name of the format of a file: by its first bytes, then by its name, then by its look."""
    from coterie.data.readers.byte_stream import ByteStream, refuse_wide

    stream = ByteStream(path)
    try:
        head = stream.read(_HEAD)
    finally:
        stream.close()
    if not head and stream.n_bytes == 0:
        raise DataFileError("the file is empty.", path)
    for magic, advice in REFUSED.items():
        if head.startswith(magic):
            raise DataFileError(advice, path)
    found = next((entry for entry in FORMATS.values() if entry.begins(head)), None) or _by_name(path) or _by_look(head)
    if found is None or found.text:
        refuse_wide(head, path)
    if found is None:
        raise DataFileError(f"its format is unknown. State format=, one of {', '.join(FORMATS)}.", path)
    return found.name


def _by_name(path: Path) -> Format | None:
    """The text format that a file's name tells; a name that tells a binary one is wrong, or the file is damaged."""
    name = path.name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    suffix = Path(name).suffix
    named = next((entry for entry in FORMATS.values() if suffix in entry.suffixes), None)
    if named is not None and not named.text:
        message = f"the name says {named.name}, the content does not. Is the file damaged? Else state format=."
        raise DataFileError(message, path)
    return named


def _by_look(head: bytes) -> Format | None:
    if b"\x00" in head:  # this is no text
        return None
    return next((entry for entry in FORMATS.values() if entry.looks_like is not None and entry.looks_like(head)), None)
