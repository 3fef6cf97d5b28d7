"""Pages say what is so: their code runs, their outputs are right, their links lead somewhere, their lines are short."""

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
    *(page for kind in ("learn", "do", "reference", "development") for page in sorted((DOCS / kind).glob("*.md"))),
    DOCS / "architecture.md",
]
# What these need does not ship: tests/examples/test_single_cells_page.py, tests/cluster.
OWN_TEST = {"single-cells.md", "cluster.md"}
CODE = [page for page in GUIDES if page.name not in OWN_TEST]
WITH_CODE = [page for page in CODE if blocks.RUN & {language for _, language in blocks.languages(page.read_text())}]


def name(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_code_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert blocks.run(page) > 0, "every block is skipped"


@pytest.mark.parametrize("page", GUIDES, ids=name)
def test_every_block_says_what_it_is(page):
    known = blocks.RUN | blocks.SHOWN
    unknown = [
        f"{name(page)}:{line}: {language!r}"
        for line, language in blocks.languages(page.read_text())
        if language not in known and not re.fullmatch(r"\{[\w-]+\}", language)
    ]
    assert not unknown, f"python, sh and output run in the tests; text and json do not: {unknown}"


@pytest.mark.parametrize("page", pages.pages(), ids=name)
def test_links_lead_somewhere(page):
    assert pages.lost(page) == []


def test_pages_have_a_kind():
    """`python docs/scripts/pages.py place docs/new.md do` puts one in its place."""
    assert {page.name for page in DOCS.glob("*.md")} == {"index.md", "architecture.md"}


@pytest.mark.parametrize("page", pages.pages(), ids=name)
def test_lines_are_wrapped(page):
    text = page.read_text()
    assert pages.wrapped(text) == text, "run `make wrap`"


def test_no_table_of_measurements_in_a_guide():
    """Measured sections are between marks that scripts look for; these stand on pages of evidence."""
    for page in GUIDES:
        assert not re.search(r"^<!-- end (?!run )", page.read_text(), flags=re.MULTILINE), name(page)
