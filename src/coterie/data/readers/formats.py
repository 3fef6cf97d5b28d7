"""Registry of the data file formats, with one entry per format.

To add a format:

1. Write its reader in this folder, as a subclass of :class:`coterie.data.readers.reader.Reader` or, for a table with typed
   columns, of :class:`coterie.data.readers.typed_tables.ArrowReader`. The keyword-only parameters of its ``__init__`` become
   options of ``open_features``, ``convert`` and ``--read``, and are described in its docstring.
2. Add its entry to ``_ENTRIES`` below.
3. Add its row to the table of docs/reference/store.md.

Format detection, opening, messages and the help of the command line use the entries, and ``tests/data/test_formats.py``
checks each of them. Readers are imported only when a file is read, because ``--help`` imports this module.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coterie.data.errors import DataFileError
from coterie.methods import load

# Suffixes of compressed files, which follow the suffix of the format.
COMPRESSED = (".gz", ".bz2", ".xz")
# Number of bytes from which the format of a file is detected.
_HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class Format:
    """A format of data files.

    Attributes
    ----------
    name : str
        Name, as passed to ``format=``.
    reader : str
        Import path of its reader: ``module:Class``.
    description : str
        Common name of the format.
    suffixes : tuple of str
        File name suffixes, in lower case.
    magic : tuple of bytes
        First bytes of its files (alternatives). For text, case is ignored.
    text : bool
        Whether the format is text, which may be compressed. If its content is ambiguous, the suffix decides.
    looks_like : callable or None
        Function that returns True if the beginning of a file (64 KB, decompressed) has this format. For text without magic
        bytes, the formats are tried in order. For a binary format, it is required in addition to the magic bytes.
    fileset : bool
        Whether it consists of several files with a common prefix. The prefix or any of the files may be given; the file with
        the first suffix is read.
    labels : str
        Short description of ``label=``; empty if that is a text file with one label per line.
    table : bool
        Whether it is a table with column names and arbitrary values. Its reader must be a ``TabularReader``.

    Examples
    --------
    >>> from coterie.data import FORMATS
    >>> FORMATS["parquet"].description, FORMATS["parquet"].suffixes
    ('Parquet', ('.parquet', '.pq'))
    >>> FORMATS["parquet"].options()[:3]
    ('label', 'sample_names', 'sample_groups')
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
        """Import and return the reader class, whose docstring describes the options."""
        return load(self.reader)

    def options(self) -> tuple[str, ...]:
        """Return the names of the reader's options; ``**options`` stands for those of the base class."""
        names: list[str] = []
        for kind in self.load().__mro__:
            parameters = inspect.signature(kind.__init__).parameters.values()
            names += [parameter.name for parameter in parameters if parameter.kind == parameter.KEYWORD_ONLY]
            if all(parameter.kind != parameter.VAR_KEYWORD for parameter in parameters):
                break
        return tuple(dict.fromkeys(names))

    def begins(self, start: bytes) -> bool:
        """Return True if these first bytes of a file start with the magic bytes of the format."""
        if self.text:
            return start.lower().startswith(tuple(magic.lower() for magic in self.magic))
        return start.startswith(self.magic) and (self.looks_like is None or self.looks_like(start))


def _first_line(head: bytes) -> bytes:
    """Return the first line that is neither empty nor a comment."""
    lines = head.replace(b"\r", b"\n").split(b"\n")
    return next((line for line in lines if line.strip() and not line.lstrip().startswith(b"#")), b"")


def _looks_like_libsvm(head: bytes) -> bool:
    line = _first_line(head)
    tokens = line.split(b"#")[0].split()
    return any(b":" in token for token in tokens[1:]) or (len(tokens) == 1 and b"," not in line and is_number(tokens[0]))


def _looks_like_xlsx(head: bytes) -> bool:
    """Return True if the first entry of a zip archive is one of a spreadsheet."""
    name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    return name.endswith((b".xml", b".rels")) or name.startswith((b"xl/", b"docProps/", b"_rels/"))


def is_number(token: bytes | str) -> bool:
    """Return True if a word is a number."""
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
        name="xlsx",
        reader="coterie.data.readers.spreadsheet:XlsxReader",
        description=".xlsx",
        suffixes=(".xlsx", ".xlsm"),
        magic=(b"PK\x03\x04",),
        looks_like=_looks_like_xlsx,
        labels="a column",
        table=True,
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
        reader="coterie.data.readers.delimited:CsvReader",
        description="CSV",
        suffixes=(".csv",),
        text=True,
        looks_like=lambda head: (
            any(mark in _first_line(head) for mark in (b",", b";", b"|")) and b"\t" not in _first_line(head)
        ),
        labels="a column",
        table=True,
    ),
    Format(
        name="tsv",
        reader="coterie.data.readers.delimited:TsvReader",
        description="TSV",
        suffixes=(".tsv",),
        text=True,
        looks_like=lambda head: b"\t" in _first_line(head),
        labels="a column",
        table=True,
    ),
    Format(
        name="parquet",
        reader="coterie.data.readers.typed_tables:ParquetReader",
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
        name="h5mu",
        reader="coterie.data.readers.h5mu:H5muReader",
        description=".h5mu",
        suffixes=(".h5mu",),
        magic=(b"MuData",),
        labels="a column of obs",
    ),
    Format(
        name="plink",
        reader="coterie.data.readers.plink:PlinkReader",
        description="PLINK .bed",
        suffixes=(".bed", ".bim", ".fam"),
        magic=(b"\x6c\x1b\x01", b"\x6c\x1b\x00"),
        fileset=True,
        labels="a column of the phenotypes",
    ),
    Format(
        name="pgen",
        reader="coterie.data.readers.dosages:PgenReader",
        description="PLINK 2 .pgen",
        suffixes=(".pgen", ".pvar", ".psam"),
        magic=tuple(b"\x6c\x1b" + bytes([mode]) for mode in (0x02, 0x03, 0x04, 0x10, 0x11, 0x20, 0x21)),
        fileset=True,
        labels="a column of the phenotypes",
    ),
    Format(
        name="vcf",
        reader="coterie.data.readers.dosages:VcfReader",
        description="VCF",
        suffixes=(".vcf",),
        magic=(b"##fileformat=vcf",),
        text=True,
        labels="a column of the phenotypes",
    ),
)
FORMATS = {entry.name: entry for entry in _ENTRIES}

# First bytes of formats that are detected but not supported, and what to do instead.
REFUSED = {
    b"\x93NUMPY": "this is a single NumPy array. Save it with its labels: numpy.savez(file, X=X, y=y).",
    b"\xd0\xcf\x11\xe0": "this is an old Excel file (.xls) or another file of Microsoft Office. Save it as .xlsx or CSV.",
}


# The same for formats that are detected by their suffix only.
REFUSED_SUFFIXES = {
    ".ods": "OpenDocument spreadsheets are not read. Save the file as .xlsx or CSV.",
    ".bgen": "BGEN is not read. Convert it: plink2 --bgen FILE.bgen ref-first --sample FILE.sample --make-pgen --out FILE.",
    ".bcf": "BCF is not read. Convert it: bcftools view FILE.bcf -O z -o FILE.vcf.gz.",
}


def describe_formats() -> str:
    """Return the descriptions of all formats, separated by commas."""
    return ", ".join(entry.description for entry in FORMATS.values())


def describe_tables() -> str:
    """Return the descriptions of the table formats, separated by commas."""
    return ", ".join(entry.description for entry in FORMATS.values() if entry.table)


def describe_labels() -> str:
    """Return the meaning of ``label=`` in each format, separated by commas."""
    places = dict.fromkeys(entry.labels for entry in FORMATS.values() if entry.labels)
    parts = [f"{place} ({', '.join(e.description for e in FORMATS.values() if e.labels == place)})" for place in places]
    return ", ".join([*parts, "or a text file with one label per line"])


def resolve(path: Path) -> Path:
    """Return the file to read for a path. A fileset may be given by its prefix or by any of its files."""
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
    """Return the format of a file, detected from its first bytes, its name and its content, in this order."""
    from coterie.data.readers.byte_stream import ByteStream, check_encoding

    stream = ByteStream(path)
    try:
        head = stream.read(_HEAD_BYTES)
    finally:
        stream.close()
    if not head and stream.n_bytes == 0:
        raise DataFileError("the file is empty. Check that it was written completely.", path)
    for magic, advice in REFUSED.items():
        if head.startswith(magic):
            raise DataFileError(advice, path)
    if advice := REFUSED_SUFFIXES.get(path.suffix.lower(), ""):
        raise DataFileError(advice.replace("FILE", path.stem), path)
    found = next((entry for entry in FORMATS.values() if entry.begins(head)), None) or _by_name(path) or _by_content(head)
    if found is None or found.text:
        check_encoding(head, path)
    if found is None:
        raise DataFileError(f"the format of the file is unknown. Set format= to one of {', '.join(FORMATS)}.", path)
    return found.name


def _by_name(path: Path) -> Format | None:
    """Return the text format of a file name's suffix. Raises for a binary format, whose magic bytes are missing."""
    name = path.name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    suffix = Path(name).suffix
    named = next((entry for entry in FORMATS.values() if suffix in entry.suffixes), None)
    if named is not None and not named.text:
        message = f"the suffix indicates {named.name}, but the content does not. Is the file damaged? If not, set format=."
        raise DataFileError(message, path)
    return named


def _by_content(head: bytes) -> Format | None:
    if b"\x00" in head:  # not text
        return None
    return next((entry for entry in FORMATS.values() if entry.looks_like is not None and entry.looks_like(head)), None)
