"""Tests of the code blocks of a page, by language.

``python``  is run; the blocks of a page share one namespace.
``sh``      its ``coterie`` commands are run one after the other, in the page's folder.
``output``  is compared with the output of the previous block (``...`` matches anything).
``text``    and a few others are shown and not run.

An HTML comment ``<!--- skip: next "reason" -->`` skips a block; ``installed("package")`` and ``program("name")`` can be
used as conditions. ``<!--- invisible-code-block: python … -->`` runs code that is not shown.

``python -m tests.docs.blocks PAGE...`` replaces outputs that have changed.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from unittest import SkipTest

from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, SkipParser
from typer.testing import CliRunner

from coterie.cli.app import app

SHOWN = {"text", "json", "toml", "diff"}
RUN = {"python", "sh", "output"}
_TOOLS = {"plink1.9", "cat"}
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def python(example: Example) -> None:
    """Run a block of Python and keep its output."""
    code = "\n" * (example.line - 1 + example.parsed.line_offset) + str(example.parsed)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, example.path, "exec", dont_inherit=True), example.namespace)
    example.namespace["__printed__"] = printed.getvalue()


def shell(example: Example) -> None:
    """Run the commands of a block; the page must skip commands other than ``coterie``, with a reason."""
    printed = []
    for line in re.sub(r"\\\n\s*", " ", str(example.parsed)).splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] in _TOOLS:
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            printed.append(done.stdout)
            continue
        assert words[0] == "coterie", f"{example.path}: The tests do not run {words[0]!r}: {line}"
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}{result.stderr}"
        printed.append(result.stdout)
    example.namespace["__printed__"] = "".join(printed)


def output(example: Example) -> None:
    """Compare a block with the last output."""
    printed, expected = example.namespace.pop("__printed__"), str(example.parsed)
    checker = doctest.OutputChecker()
    if not checker.check_output(expected, printed, _FLAGS):
        case = doctest.Example("", expected)
        raise AssertionError(f"{example.path}, line {example.line}:\n{checker.output_difference(case, printed, _FLAGS)}")


def sybil(compare: Callable[[Example], None] = output) -> Sybil:
    """Return the parser of a page. ``compare`` is called with each block of output."""
    parsers = [
        CodeBlockParser("python", python),
        CodeBlockParser("sh", shell),
        CodeBlockParser("output", compare),
        SkipParser(),
    ]
    return Sybil(parsers=parsers)


def run(page: Path, compare: Callable[[Example], None] = output) -> int:
    """Run the blocks of a page in the working directory, and return their number."""
    done = 0
    document = sybil(compare).parse(page)
    document.namespace |= {"installed": lambda name: find_spec(name) is not None, "program": shutil.which}
    for example in document.examples():
        with contextlib.suppress(SkipTest):
            example.evaluate()
            done += 1
    return done


def record(page: Path) -> int:
    """Replace the outputs of a page that differ from what its code prints, and return their number. Review the change."""
    text = page.read_text()
    changes: list[tuple[int, int, str]] = []

    def collect(example: Example) -> None:
        printed, expected = example.namespace.pop("__printed__"), str(example.parsed)
        if not doctest.OutputChecker().check_output(expected, printed, _FLAGS):
            lines = [re.sub(r"^(seconds\s+)\S+$", r"\1...", line.rstrip()) for line in printed.rstrip().splitlines()]
            changes.append((example.region.start, example.region.end, "\n".join(lines)))

    run(page, collect)
    for start, end, printed in reversed(changes):
        block = text[start:end]
        first, last = block.index("\n") + 1, block.rindex("\n```") if "\n```" in block else len(block)
        text = text[:start] + block[:first] + printed + block[last:] + text[end:]
    page.write_text(text)
    return len(changes)


def languages(text: str) -> list[tuple[int, str]]:
    """Return line and language of every code block."""
    found, fence = [], ""
    for number, line in enumerate(text.splitlines(), start=1):
        if mark := re.match(r"\s*(```+|~~~+|:::+)\s*(\S*)", line):
            if fence and mark[1].startswith(fence) and not mark[2]:
                fence = ""
            elif not fence:
                fence = mark[1]
                found.append((number, mark[2]))
    return found


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name).resolve()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(f"{name}: {record(page)} outputs replaced")
