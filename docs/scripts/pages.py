"""Check links, wrap lines and move pages of the documentation.

    python docs/scripts/pages.py links          list broken links
    python docs/scripts/pages.py links --fix    correct links to pages that were moved
    python docs/scripts/pages.py wrap           break lines at 100 characters (all pages, or those that are named)
    python docs/scripts/pages.py place docs/new.md do    move a page into a folder and update links to it

Names of pages are unique, so that a link to a page that was moved can be corrected from its name.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
KINDS = ("learn", "do", "reference", "evidence", "development")
WIDTH = 100

_LINK = re.compile(r"(?P<before>!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()(?P<target>[^()\s]+)(?P<after>\))")
_FENCE = re.compile(r"\s*(```+|~~~+|:::+)")
_ITEM = re.compile(r"(\s*)([-*+]|\d+[.)])(\s+)(?=\S)")
_CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")


def pages() -> list[Path]:
    """Return all pages, including the README and the other pages of the project root."""
    written = [page for page in DOCS.rglob("*.md") if not {"_build", "generated"} & set(page.relative_to(DOCS).parts)]
    return [*sorted(ROOT.glob("*.md")), *sorted(written)]


# Links


def links(text: str) -> Iterator[str]:
    """Yield the targets of the links of a page, outside of code."""
    for match in _LINK.finditer(_without_code(text)):
        yield match["target"]


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and MyST define them."""
    found: dict[str, int] = {}
    names = set()
    for line in _without_code(page.read_text(encoding="utf-8"), spans=False).splitlines():
        if match := re.match(r"#+\s+(.*?)\s*#*$", line):
            words = re.sub(r"[^\w\s-]", "", re.sub(r"[`*]", "", match[1]).lower())
            name = re.sub(r"\s", "-", words.strip())
            again = found.get(name, 0)
            found[name] = again + 1
            names.add(f"{name}-{again}" if again else name)
        if match := re.match(r"\((\S+)\)=$", line):
            names.add(match[1])
    return names


def lost(page: Path) -> list[str]:
    """Return the links of a page to files or headings that do not exist."""
    return [target for target in links(page.read_text(encoding="utf-8")) if not _found(page, target)]


def _found(page: Path, target: str) -> bool:
    if re.match(r"[a-z][a-z+.-]*:", target):
        return True
    name, _, anchor = target.partition("#")
    file = (page.parent / name).resolve() if name else page
    return file.exists() and (not anchor or file.suffix != ".md" or anchor in anchors(file))


def mend(page: Path) -> list[str]:
    """Correct links to moved files if exactly one file has the name; return the targets that remain broken."""
    text = page.read_text(encoding="utf-8")
    homes: dict[str, list[Path]] = {}
    for file in [*pages(), *DOCS.rglob("*.png")]:
        homes.setdefault(file.name, []).append(file)
    left = []

    def replacement(match: re.Match[str]) -> str:
        name, mark, anchor = match["target"].partition("#")
        if _found(page, name or "."):
            return match[0]
        places = homes.get(Path(name).name, [])
        if len(places) != 1:
            left.append(match["target"])
            return match[0]
        way = Path(os.path.relpath(places[0], page.parent)).as_posix()
        return f"{match['before']}{way}{mark}{anchor}{match['after']}"

    new = _LINK.sub(replacement, text)
    if new != text:
        page.write_text(new, encoding="utf-8")
    return left


def _without_code(text: str, spans: bool = True) -> str:
    kept, fence = [], ""
    for line in text.splitlines():
        if mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
            continue
        if not fence:
            kept.append(_CODE.sub("", line) if spans else line)
    return "\n".join(kept)


# Lines


def wrapped(text: str, width: int = WIDTH) -> str:
    """Return the page with paragraphs wrapped at ``width``; tables, code, headings and comments are unchanged."""
    lines = text.split("\n")
    result: list[str] = []
    paragraph: list[str] = []
    lead = follow = ""
    list_indents: list[int] = []
    fence = comment = ""
    front = lines[:1] == ["---"]

    def flush() -> None:
        nonlocal lead, follow
        if paragraph:
            result.extend(_broken(" ".join(paragraph), lead, follow, width))
            paragraph.clear()
        lead = follow = ""

    for number, line in enumerate(lines):
        bare = line.strip()
        if front and (number == 0 or bare != "---"):
            result.append(line)
            continue
        if front:
            front = False
            result.append(line)
            continue
        if fence or comment:
            result.append(line)
            if fence and bare.startswith(fence) and not bare.strip(fence[0]):
                fence = ""
            elif comment and "-->" in line:
                comment = ""
            continue
        if mark := _FENCE.match(line):
            flush()
            fence = mark[1]
            result.append(line)
            continue
        if bare.startswith("<!--"):
            flush()
            comment = "" if "-->" in line else "open"
            result.append(line)
            continue
        if not bare:
            flush()
            result.append(line)
            continue
        indent = len(line) - len(line.lstrip())
        item = _ITEM.match(line)
        if not paragraph and not item:
            while list_indents and indent < list_indents[-1]:
                list_indents.pop()
        base = list_indents[-1] if list_indents else 0
        if _stands(bare) or (not paragraph and indent >= base + 4):
            flush()
            result.append(line)
        elif item and (not paragraph or _begins_item(item, lead)):
            flush()
            while list_indents and indent < list_indents[-1]:
                list_indents.pop()
            list_indents.append(item.end())
            lead, follow = line[: item.end()], " " * item.end()
            paragraph.append(line[item.end() :].strip())
        elif paragraph:
            paragraph.append(bare.removeprefix("> ") if lead.endswith("> ") else bare)
        else:
            lead = follow = " " * indent + ("> " if bare.startswith("> ") else "")
            paragraph.append(bare.removeprefix("> "))
    flush()
    return "\n".join(result)


def _stands(bare: str) -> bool:
    """Return True if a line is never joined with others."""
    return bool(re.match(r"#{1,6}\s|\||!\[[^\]]*\]\([^)]*\)$|\(\S+\)=$|%|-{3,}$|\*{3,}$|>$", bare))


def _begins_item(item: re.Match[str], lead: str) -> bool:
    """Return True if a list starts here: inside a paragraph only with number 1 (CommonMark), or inside an item."""
    return not item[2][0].isdigit() or item[2][:-1] == "1" or _ITEM.match(lead + "x") is not None


def _broken(text: str, lead: str, follow: str, width: int) -> Iterator[str]:
    words = _words(text)
    line = lead + next(words)
    for word in words:
        # A line must not start with a character that would make it a heading, a list or a quotation.
        risky = re.match(r"([-+*>#|=]|\d+[.)]$|:::)", word)
        if len(line) + 1 + len(word) > width and not risky:
            yield line
            line = follow + word
        else:
            line += " " + word
    yield line


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text; code in backticks is one word."""
    held: list[str] = []

    def hold(match: re.Match[str]) -> str:
        held.append(match[0])
        return f"\0{len(held) - 1}\0"

    for word in _CODE.sub(hold, text).split():
        yield re.sub(r"\0(\d+)\0", lambda match: held[int(match[1])], word)


# Commands


def _named(names: Iterable[str]) -> list[Path]:
    return [Path(name).resolve() for name in names] or pages()


def _links(options: argparse.Namespace) -> int:
    wrong = 0
    for page in pages():
        if options.fix:
            mend(page)
        for target in lost(page):
            wrong += 1
            print(f"{page.relative_to(ROOT)}: {target}")
    return 1 if wrong else 0


def _wrap(options: argparse.Namespace) -> int:
    for page in _named(options.pages):
        old = page.read_text(encoding="utf-8")
        if (new := wrapped(old)) != old:
            page.write_text(new, encoding="utf-8")
            print(f"wrapped: {page.relative_to(ROOT)}")
    return 0


def _place(options: argparse.Namespace) -> int:
    page = Path(options.page).resolve()
    home = DOCS / options.kind / page.name
    subprocess.run(["git", "mv", str(page), str(home)], cwd=ROOT, check=True)
    for other in pages():
        mend(other)
    return _links(argparse.Namespace(fix=False))


def main() -> int:
    """Run the command that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("links")
    command.add_argument("--fix", action="store_true")
    command.set_defaults(run=_links)
    command = commands.add_parser("wrap")
    command.add_argument("pages", nargs="*")
    command.set_defaults(run=_wrap)
    command = commands.add_parser("place")
    command.add_argument("page")
    command.add_argument("kind", choices=KINDS)
    command.set_defaults(run=_place)
    options = parser.parse_args()
    result: int = options.run(options)
    return result


if __name__ == "__main__":
    sys.exit(main())
