"""Run the code blocks of a page and write what they print into its ``output`` blocks.

    python docs/scripts/outputs.py docs/learn/coming-from-*.md

Pages that show other tools require these tools: feature-engine and scanpy in the environment, plink1.9 on the path. Blocks
that the tests skip if a tool is missing are run here, so that every call on the page has been run. The line between
``<!-- run -->`` and ``<!-- end run -->``, if there is one, gets the date and the versions.

An output block that contains ``...`` is left as it is if it still matches.
"""

from __future__ import annotations

import contextlib
import datetime
import doctest
import io
import os
import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

_BLOCK = re.compile(
    r"^(?P<skip><!--- skip: next \"[^\n]*-->\n\n)?"
    r"(?:```(?P<language>python|sh|output)\n(?P<source>.*?)^```$|<!--- invisible-code-block: python\n(?P<hidden>.*?)-->)",
    flags=re.DOTALL | re.MULTILINE,
)


def refresh(page: Path) -> str:
    """Return the text of the page with the outputs of this run."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""

    def run(match: re.Match[str]) -> str:
        nonlocal printed
        if match["skip"]:  # A block that is skipped without a condition is not meant to be run.
            return match[0]
        if match["language"] == "output":
            kept = "..." in match["source"] and _matches(match["source"], printed)
            return match[0] if kept else f"```output\n{printed.rstrip()}\n```"
        if match["language"] == "sh":
            printed = _shell(match["source"])
        else:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(match["source"] or match["hidden"], str(page), "exec"), names)
            printed = out.getvalue()
        return match[0]

    return _BLOCK.sub(run, text)


def _matches(expected: str, printed: str) -> bool:
    """Return True if the output matches in the way that the tests compare it."""
    return doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


def _shell(source: str) -> str:
    command = f'coterie() {{ "{sys.executable}" -m coterie "$@"; }}\nset -e\n{source}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{source}\n{done.stdout}{done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.splitlines())


def stamped(text: str) -> str:
    """Return the page with the date and the versions of the tools that its run line names."""

    def line(match: re.Match[str]) -> str:
        tools = [name for name in ("feature-engine", "scanpy", "scikit-learn") if name in match[0]]
        versions = [f"{name} {metadata.version(name)}" for name in tools]
        if "plink" in match[0].lower():
            words = subprocess.run(["plink1.9", "--version"], capture_output=True, text=True, check=True).stdout.split()
            versions.append(f"PLINK {words[1].removeprefix('v')}")
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        return f"<!-- run -->\n*Both calls were run on {today} with {', '.join(versions)}.*\n<!-- end run -->"

    return re.sub(r"<!-- run -->\n.*?<!-- end run -->", line, text, flags=re.DOTALL)


def main() -> None:
    """Refresh the pages that the command line names."""
    for name in sys.argv[1:]:
        page = Path(name).resolve()
        before = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                new = stamped(refresh(page))
            finally:
                os.chdir(before)
        page.write_text(new, encoding="utf-8")
        print(f"Run: {page.name}")


if __name__ == "__main__":
    main()
