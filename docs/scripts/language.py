"""Count phrases that the style rules exclude, and long sentences.

    python docs/scripts/language.py              one row per part: src, docs, README
    python docs/scripts/language.py --list       every place, for editing
    python docs/scripts/language.py --root DIR   the same for another checkout

The rules are in CONTRIBUTING.md; ``tests/docs/test_language.py`` enforces them.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONG = 40

PEOPLE = re.compile(r"\b(nobody|somebody|everybody|anybody|whoever|whom|whomever)\b", re.IGNORECASE)
# "one row a feature", "seconds a fit", "60 bytes a feature": the unit, then "a", then a noun.
_UNITS = (
    "rows?|lines?|files?|pass(?:es)?|columns?|tasks?|entr(?:y|ies)|pages?|labels?|bytes?|bits?|seconds?|minutes?|hours?|times?|"
    "numbers?|values?|words?|folders?|steps?|features?|samples?|groups?|MB|GB|kB|KiB|MiB|GiB|ms|s"
)
PER = re.compile(
    rf"\b(?:one|two|three|four|five|ten|\d[\d,.]*|some|many|few|how many)\s+(?:{_UNITS})\s+an?\s+"
    r"(?!(?:few|single|second time|lot|time|row of|column of|file of|copy|different|new)\b)[a-z]+",
)
_END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`*(\[\"'])")


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the prose of a file as (line, text): paragraphs of a page; docstrings, comments and strings of a module."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _of_module(content)
    else:
        yield from _of_page(content)


def _of_module(content: str) -> Iterator[tuple[int, str]]:
    comment: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            if comment and token.start[0] != last + 1:
                yield start, " ".join(comment)
                comment = []
            if not comment:
                start = token.start[0]
            comment.append(token.string.lstrip("# ").strip())
            last = token.start[0]
    if comment:
        yield start, " ".join(comment)
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for paragraph in _paragraphs(node.value):
                yield node.lineno + paragraph[0], paragraph[1]


def _of_page(content: str) -> Iterator[tuple[int, str]]:
    fence = False
    kept = []
    for line in content.splitlines():
        if re.match(r"\s*(```|~~~)", line):
            fence = not fence
            kept.append("")
        else:
            kept.append("" if fence else line)
    yield from ((line + 1, text) for line, text in _paragraphs("\n".join(kept)))


def _paragraphs(content: str) -> Iterator[tuple[int, str]]:
    """Yield paragraphs; list items, table cells and lines of examples are paragraphs of their own."""
    words: list[str] = []
    start = 0
    for number, line in enumerate([*content.splitlines(), ""]):
        text = line.strip()
        parameter = re.match(r"[\w*][\w*, ]* : \S", text)  # of numpydoc
        new = not text or parameter or re.match(r"([-*+]|\d+[.)])\s|\||#|>>>|\.\.\.|:\w+", text)
        if new and words:
            yield start, " ".join(words)
            words = []
        if text.startswith("|"):
            yield from ((number, cell.strip()) for cell in text.strip("|").split("|") if cell.strip())
        elif text and not parameter and not text.startswith((">>>", "...")):
            if not words:
                start = number
            words.append(text)


def long_sentences(text: str) -> list[str]:
    """Return the sentences of more than ``LONG`` words."""
    return [sentence for sentence in _END.split(text) if len(re.findall(r"[A-Za-z]{2,}", sentence)) > LONG]


def findings(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield (kind, line, text) for every phrase that the rules exclude."""
    for line, text in texts(path):
        yield from (("people", line, match[0]) for match in PEOPLE.finditer(text))
        yield from (("per", line, match[0]) for match in PER.finditer(text))
        yield from (("long", line, sentence) for sentence in long_sentences(text))


def parts(root: Path) -> dict[str, list[Path]]:
    """Return the files of each part of the project."""
    docs = [page for page in (root / "docs").rglob("*.md") if not {"_build", "generated", "gallery"} & set(page.parts)]
    return {
        "src": sorted((root / "src").rglob("*.py")),
        "docs": sorted(docs),
        "README and other top-level pages": sorted(root.glob("*.md")),
    }


def main() -> None:
    """Print the counts, or every place."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    print(f"{'part':<34}{'people':>8}{'per':>8}{'long':>8}")
    for part, files in parts(arguments.root).items():
        found = [(path, *finding) for path in files for finding in findings(path)]
        counts = {kind: sum(kind == finding[1] for finding in found) for kind in ("people", "per", "long")}
        print(f"{part:<34}{counts['people']:>8}{counts['per']:>8}{counts['long']:>8}")
        if arguments.list:
            for path, kind, line, text in found:
                print(f"  {path.relative_to(arguments.root)}:{line}: {kind}: {text[:200]}")


if __name__ == "__main__":
    main()
