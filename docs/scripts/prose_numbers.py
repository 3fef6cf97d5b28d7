"""Check that the numbers in the text of a page of evidence stand in the tables of that page.

    python docs/scripts/prose_numbers.py                               list the numbers that no table has
    python docs/scripts/prose_numbers.py docs/evidence/family.md       the same for some pages

Checked are all numbers with a decimal point, and in paragraphs that begin with ``Result`` and in the list after them also
whole numbers from ten on. A number is found if it is a rounded number of a table or a printed output, also as a percentage
(0.853 as 85.3 %). Code in the text, captions, links and dates are omitted.

A number that comes from elsewhere is named in a comment of the page, with its origin::

    <!-- numbers: 2.2 (mean of the column), 76.5 (TPAMI Table 4) -->

An entry of the comment that the text does not contain is reported, too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "docs" / "evidence"

_NUMBER = re.compile(r"(?<![\w.,/^])[+−-]?(\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w/]|[.,]\d)")
_COMMENT = re.compile(r"<!-- numbers: (.*?) -->", flags=re.DOTALL)
_ENTRY = re.compile(r"(\d[\d.,]*(?:e[+-]?\d+)?)\s\([^)]+\)")
_TABLE = re.compile(r"^\|.*\|$", flags=re.MULTILINE)
_BLOCK = re.compile(r"^```\w*\n.*?^```$", flags=re.DOTALL | re.MULTILINE)
_CAPTION = re.compile(r"^\*(?:Coterie|Measured) .*?\*$", flags=re.DOTALL | re.MULTILINE)
_SMALLEST_WHOLE = 10


class Number(NamedTuple):
    """A number as written, its value, and the largest distance of the numbers that are rounded to it."""

    text: str
    value: float
    tolerance: float


def missing(text: str) -> list[str]:
    """Return the numbers in the text of a page that neither its tables nor its comments have, as they are written."""
    known = [
        number.value for part in (_TABLE, _BLOCK) for rows in part.findall(text) for number in _numbers(rows.replace("`", ""))
    ]
    named = set(_named(text))
    return [number.text for number in _checked(text) if number.text not in named and not _is_rounded(number, known)]


def unused(text: str) -> list[str]:
    """Return the numbers in the comments of a page that its text does not contain."""
    used = {number.text for number in _checked(text)}
    return [number for number in _named(text) if number not in used]


def _named(text: str) -> list[str]:
    return [number for comment in _COMMENT.findall(text) for number in _ENTRY.findall(comment)]


def _checked(text: str) -> Iterator[Number]:
    """Yield the numbers to check."""
    for part in (_BLOCK, _TABLE, _CAPTION, re.compile(r"<!--.*?-->", flags=re.DOTALL)):
        text = part.sub("", text)
    is_result = False
    for paragraph in re.split(r"\n\s*\n", text):
        continues = re.match(r"[-*] |\d\. ", paragraph) is not None
        is_result = re.match(r"\**Results?\b", paragraph) is not None or (is_result and continues)
        for number in _numbers(paragraph):
            if "." in number.text or (is_result and number.value >= _SMALLEST_WHOLE):
                yield number


def _is_rounded(number: Number, known: list[float]) -> bool:
    """Return True if a known number is rounded to this one, as it is or as a percentage."""
    return any(
        abs(value * factor - number.value) <= number.tolerance * (1 + 1e-9) + 1e-12
        for value in known
        for factor in (1.0, 100.0)
    )


def _numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of a text, without their signs."""
    text = re.sub(r"\]\([^)]*\)|\d{4}-\d\d-\d\d|`[^`]*`", " ", text)
    for match in _NUMBER.finditer(text):
        digits = match[1].replace(",", "")
        mantissa, _, exponent = digits.partition("e")
        decimals = len(mantissa.partition(".")[2])
        yield Number(match[1], float(digits), 0.5 * 10.0 ** (int(exponent or 0) - decimals))


def main() -> None:
    """Run the command line."""
    lines = []
    for page in [Path(name) for name in sys.argv[1:]] or sorted(EVIDENCE.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        lines += [f"{page.name}: {number} stands in no table of the page" for number in missing(text)]
        lines += [f"{page.name}: {number} is named in a comment, but not in the text" for number in unused(text)]
    print("\n".join(lines))
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
