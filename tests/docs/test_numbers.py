"""Numbers in the text of the pages of evidence stand in their tables; see ``docs/scripts/prose_numbers.py``."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
SPEC = importlib.util.spec_from_file_location("numbers_of_pages", DOCS / "scripts" / "prose_numbers.py")
numbers = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(numbers)

TABLE = "| method | accuracy | seconds |\n|---|---|---|\n| GDM | 0.8532 | 1,204 |\n| FGM | −0.021 | 3.5e-5 |\n"


@pytest.mark.parametrize("page", sorted((DOCS / "evidence").glob("*.md")), ids=lambda page: page.stem)
def test_numbers_stand_in_the_tables(page):
    """If a number comes from elsewhere, name it in a comment: ``<!-- numbers: 2.2 (where it comes from) -->``."""
    text = page.read_text(encoding="utf-8")
    assert numbers.missing(text) == []
    assert numbers.unused(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Result: GDM has 0.853, 0.85, 85.3 % or 85 % after 1,204 s.", []),
        ("Result: GDM has 0.854 after 1,205 s and 3 rounds.", ["0.854", "1,205"]),
        ("Result: −0.02 and 3.5e-5, against +2.1 points.", []),
        ("Result: see below.\n\n- It is 0.7.\n- It takes 77 s.", ["0.7", "77"]),
        ("**Result**: 77 features.", ["77"]),
        ("The data have 77 samples and a threshold of 0.7.", ["0.7"]),
        ("Result: 77 features.\n\n<!-- numbers: 77 (of the data), 0.9\n(elsewhere) -->", []),
        ("*Coterie 0.1.0, 2026-01-01; `python x.py --c 0.5`.*\n\n[page](a-0.7.md), TPAMI 2016, `0.7`.", []),
        ("```text\nR² 0.61\n```\n\nR² is 0.61 here, not 0.62.", ["0.62"]),
    ],
)
def test_what_is_missing(text, expected):
    assert numbers.missing(f"{text}\n\n{TABLE}") == expected


def test_entries_without_use():
    assert numbers.unused(f"Result: 0.9.\n\n<!-- numbers: 0.9 (a), 0.91 (b) -->\n\n{TABLE}") == ["0.91"]
