"""Which format a file has: by its first bytes, then by its name, then by its look."""

from __future__ import annotations

from pathlib import Path

from coterie.data.errors import DataFileError
from coterie.data.readers.byte_stream import ByteStream, refuse_wide
from coterie.data.readers.formats import COMPRESSED, FORMATS, REFUSED, Format

# Bytes of a file that are looked at.
_HEAD = 1 << 16


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
    """Name of the format of a file."""
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
