"""Wrapping changes where lines end and nothing that a reader sees."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.docs.test_pages import name, pages

markdown_it = pytest.importorskip("markdown_it", reason="rich brings it along")


def seen(text):
    """What a reader sees, blanks aside."""
    return re.sub(r"\s+", " ", markdown_it.MarkdownIt("commonmark").enable("table").render(text))


@pytest.mark.parametrize("page", pages.pages(), ids=name)
def test_pages_say_the_same(page):
    text = page.read_text()
    assert seen(pages.wrapped(text, 40)) == seen(text)


def test_paragraphs_lists_and_quotations():
    text = (
        "One two three four.\n\n- a b c d e f\n  g h\n  1. i j k l m n\n\n> q r s t u v w\n> x\n\n"
        "    code stays as long as it is\n"
    )
    assert pages.wrapped(text, 12) == (
        "One two\nthree four.\n\n- a b c d e\n  f g h\n  1. i j k l\n     m n\n\n> q r s t u\n> v w x\n\n"
        "    code stays as long as it is\n"
    )


def test_what_stays():
    text = (
        "# A heading that is long\n\n| a table | of one row |\n|---|---|\n\n"
        "```python\na = 'code that is longer'\n```\n\n<!-- a comment\nover lines -->\n"
    )
    assert pages.wrapped(text, 8) == text


def test_code_in_backticks_stays_in_one_piece():
    assert pages.wrapped("see `a b c d` and", 6) == "see\n`a b c d`\nand"


@settings(max_examples=40)
@given(st.lists(st.sampled_from(["word", "a", "-", "1.", "2.", "#", "> ", "`x y`", "|", "*b*", "[l](u)"]), min_size=1))
def test_any_paragraph(words):
    """Words that would begin a list or a heading at the beginning of a line never get there."""
    text = "Begin " + " ".join(words)
    assert seen(pages.wrapped(text, 10)) == seen(text)
    again = pages.wrapped(pages.wrapped(text, 10), 10)
    assert again == pages.wrapped(text, 10)
