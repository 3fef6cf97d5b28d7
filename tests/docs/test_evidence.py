"""Every page of evidence has the date and the scripts of its measurement."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
EVIDENCE = BENCHMARKS.parent / "docs" / "evidence"


@pytest.fixture(scope="module")
def evidence():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("evidence", BENCHMARKS / "evidence.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARKS))
    return module


def test_every_page_has_scripts(evidence):
    """A new page requires an entry in PAGES of benchmarks/evidence.py."""
    assert {page.stem for page in EVIDENCE.glob("*.md")} == {"index", *evidence.PAGES}


def test_scripts_exist(evidence):
    lost = [line for page in evidence.PAGES.values() for line in page.scripts if not (BENCHMARKS / line.split()[0]).exists()]
    assert lost == []


def test_every_page_is_dated(evidence):
    """`python benchmarks/evidence.py --stamp NAME DATE` adds the line."""
    for name in evidence.PAGES:
        text = (EVIDENCE / f"{name}.md").read_text()
        date = re.search(r"<!-- measured -->\n\*Measured (\D*\d{4}-\d\d-\d\d) by", text)
        assert date, name
        again = re.sub(r"\s+", " ", evidence.stamped(text, name, date[1]))
        assert again == re.sub(r"\s+", " ", text), f"The scripts of {name}.md differ from PAGES."


def test_a_page_is_dated_once(evidence):
    text = evidence.stamped("# Title\n\nText.\n", "family", "2026-01-01")
    assert text.startswith("# Title\n\n<!-- measured -->\n*Measured 2026-01-01 by `benchmarks/uncertainty.py`")
    assert text.endswith("<!-- end measured -->\n\nText.\n")
    assert evidence.stamped(text, "family", "2026-01-01") == text
    assert "2026-01-02" in evidence.stamped(text, "family", "2026-01-02")
