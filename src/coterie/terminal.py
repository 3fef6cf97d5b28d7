"""Text from data and file names as a terminal may get it: nothing in it commands the terminal."""

from __future__ import annotations

import io
import re
from typing import TextIO

# C0 and C1 controls (but not the end of a line), marks that turn the direction of writing, separators that only some take for
# the end of a line, and halves of characters, which no terminal takes.
_UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Text with all that is no letter to a terminal in Python's escapes; the ends of lines stay.

    A name may hold any characters, and a terminal obeys some: it clears its screen, takes over a title, shows letters in
    another order. All that Coterie prints for people goes through here; files and ``--json`` have the names as they are.

    Examples
    --------
    >>> from coterie.terminal import printable
    >>> print(printable("a\\x1b[2Jb\\u202ec"))
    a\\x1b[2Jb\\u202ec
    """
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def encodable(text: str, encoding: str) -> str:
    """Text with all characters that an encoding does not have in Python's escapes.

    Examples
    --------
    >>> from coterie.terminal import encodable
    >>> print(encodable("R² … ü", "latin-1"))
    R² \\u2026 ü
    """
    return text.encode(encoding, "backslashreplace").decode(encoding)


def escape_unencodable(stream: TextIO) -> None:
    """Have a stream write escapes for what its encoding does not have, instead of raising ``UnicodeEncodeError``."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
