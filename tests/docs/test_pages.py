"""Pages are correct: their code runs, outputs match, links resolve, and lines are wrapped."""

import importlib.util
import re
from pathlib import Path

import pytest

from tests.docs import blocks

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_spec = importlib.util.spec_from_file_location("pages", DOCS / "scripts" / "pages.py")
pages = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(pages)

GUIDES = [
    ROOT / "README.md",
    DOCS / "index.md",
    *(page for kind in ("learn", "do", "reference", "development") for page in sorted((DOCS / kind).glob("*.md"))),
    DOCS / "architecture.md",
]
# These need data or workers: tests/examples/test_single_cells_page.py and tests/cluster run their code.
OWN_TEST = {"single-cells.md", "cluster.md"}
FOR_USERS = [page for page in GUIDES if page.parent.name != "development" and page.name != "architecture.md"]
CODE = [page for page in GUIDES if page.name not in OWN_TEST]
WITH_CODE = [page for page in CODE if blocks.RUN & {language for _, language in blocks.languages(page.read_text())}]


def name(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_code_runs_and_output_matches(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert blocks.run(page) > 0, "Every block is skipped."


@pytest.mark.parametrize("page", GUIDES, ids=name)
def test_every_block_has_a_known_language(page):
    known = blocks.RUN | blocks.SHOWN
    unknown = [
        f"{name(page)}:{line}: {language!r}"
        for line, language in blocks.languages(page.read_text())
        if language not in known and not re.fullmatch(r"\{[\w-]+\}", language)
    ]
    assert not unknown, f"The tests run python, sh and output; text and json are only shown: {unknown}"


@pytest.mark.parametrize("page", FOR_USERS, ids=name)
def test_code_fits_into_the_column(page):
    """The column of the site shows 79 characters; output is not limited."""
    code = re.findall(r"^```(?:python|sh)\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert [line for block in code for line in block.splitlines() if len(line) > 79] == []


def test_home_page_shows_the_readme():
    """The home page includes a part of the README, so that the two cannot differ."""
    included = re.search(r"```\{include\} \.\./README\.md\n(.*?)```", (DOCS / "index.md").read_text(), flags=re.DOTALL)
    start, end = (re.search(rf":{option}: (.*)", included[1])[1] for option in ("start-after", "end-before"))
    readme = (ROOT / "README.md").read_text()
    assert readme.count(start) == readme.count(end) == 1
    part = readme.split(start)[1].split(end)[0]
    assert "docs/groups.png" in part
    assert "```sh\npip install" in part
    (code,) = re.findall(r"^```python\n(.*?)^```$", part, flags=re.DOTALL | re.MULTILINE)
    assert len(code.splitlines()) <= 20
    assert "```output\n" in part


@pytest.mark.parametrize("page", pages.pages(), ids=name)
def test_links_resolve(page):
    assert pages.lost(page) == []


def test_pages_are_in_a_folder():
    """`python docs/scripts/pages.py place docs/new.md do` moves a page."""
    assert {page.name for page in DOCS.glob("*.md")} == {"index.md", "architecture.md"}


@pytest.mark.parametrize("page", pages.pages(), ids=name)
def test_lines_are_wrapped(page):
    text = page.read_text()
    assert pages.wrapped(text) == text, "Run `make wrap`."


def test_no_table_of_measurements_in_a_guide():
    """Measured sections are between marks that scripts look for. They belong on pages of evidence."""
    for page in GUIDES:
        assert not re.search(r"^<!-- end (?!run )", page.read_text(), flags=re.MULTILINE), name(page)
