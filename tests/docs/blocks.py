"""What the blocks of a page do when the tests run it.

``python``  runs; the blocks of a page share their names.
``sh``      runs the ``coterie`` commands in it, one after the other, in the page's folder.
``output``  is compared with what the block before it has printed (``...`` stands for anything).
``text``    and a few more are shown and not run: they are no code.

An HTML comment ``<!--- skip: next "reason" -->`` leaves a block out; ``installed("package")`` and ``program("name")`` serve as
conditions. ``<!--- invisible-code-block: python … -->`` runs what a reader need not see.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import shutil
import subprocess
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
    """Run a block of Python and keep what it prints."""
    code = "\n" * (example.line - 1 + example.parsed.line_offset) + str(example.parsed)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, example.path, "exec", dont_inherit=True), example.namespace)
    example.namespace["__printed__"] = printed.getvalue()


def shell(example: Example) -> None:
    """Run the commands of a block; anything but ``coterie`` must be skipped by the page, with a reason."""
    printed = []
    for line in re.sub(r"\\\n\s*", " ", str(example.parsed)).splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] in _TOOLS:
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            printed.append(done.stdout)
            continue
        assert words[0] == "coterie", f"{example.path}: the tests run no {words[0]!r}: {line}"
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}{result.stderr}"
        printed.append(result.stdout)
    example.namespace["__printed__"] = "".join(printed)


def output(example: Example) -> None:
    """Compare with what was printed last."""
    printed, expected = example.namespace.pop("__printed__"), str(example.parsed)
    checker = doctest.OutputChecker()
    if not checker.check_output(expected, printed, _FLAGS):
        case = doctest.Example("", expected)
        raise AssertionError(f"{example.path}, line {example.line}:\n{checker.output_difference(case, printed, _FLAGS)}")


def sybil() -> Sybil:
    """The parser of a page."""
    parsers = [
        CodeBlockParser("python", python),
        CodeBlockParser("sh", shell),
        CodeBlockParser("output", output),
        SkipParser(),
    ]
    return Sybil(parsers=parsers)


def run(page: Path) -> int:
    """Run the blocks of a page in the working directory; says how many were run."""
    done = 0
    document = sybil().parse(page)
    document.namespace |= {"installed": lambda name: find_spec(name) is not None, "program": shutil.which}
    for example in document.examples():
        with contextlib.suppress(SkipTest):
            example.evaluate()
            done += 1
    return done


def languages(text: str) -> list[tuple[int, str]]:
    """Line and language of every fence that opens."""
    found, fence = [], ""
    for number, line in enumerate(text.splitlines(), start=1):
        if mark := re.match(r"\s*(```+|~~~+|:::+)\s*(\S*)", line):
            if fence and mark[1].startswith(fence) and not mark[2]:
                fence = ""
            elif not fence:
                fence = mark[1]
                found.append((number, mark[2]))
    return found
