"""Escaping of text from data and file names, so that it cannot control a terminal."""

from __future__ import annotations

import io
import re
from typing import TextIO

# C0 and C1 control characters except newline, direction marks, Unicode line separators and surrogates.
_UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Return text with control characters as Python escapes. Newlines are kept.

    A name can contain any characters, and some of them control a terminal: they clear the screen, set the title or reorder
    letters. All output for readers passes through this function. Files and ``--json`` contain the names unchanged.

    Examples
    --------
    >>> from coterie.terminal import printable
    >>> print(printable("a\\x1b[2Jb\\u202ec"))
    a\\x1b[2Jb\\u202ec
    """
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def encodable(text: str, encoding: str) -> str:
    """Return text with characters outside an encoding as Python escapes.

    Examples
    --------
    >>> from coterie.terminal import encodable
    >>> print(encodable("R² … ü", "latin-1"))
    R² \\u2026 ü
    """
    return text.encode(encoding, "backslashreplace").decode(encoding)


def escape_unencodable(stream: TextIO) -> None:
    """Make a stream write escapes for characters outside its encoding instead of raising ``UnicodeEncodeError``."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
