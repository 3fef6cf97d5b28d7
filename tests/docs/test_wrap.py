"""Wrapping changes line ends and nothing in the rendered page."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.docs.test_pages import name, pages

markdown_it = pytest.importorskip("markdown_it", reason="markdown-it-py is not installed (a dependency of rich)")


def rendered(text):
    """Return the rendered page, with white space normalised."""
    return re.sub(r"\s+", " ", markdown_it.MarkdownIt("commonmark").enable("table").render(text))


@pytest.mark.parametrize("page", pages.pages(), ids=name)
def test_rendered_pages_are_unchanged(page):
    text = page.read_text()
    assert rendered(pages.wrapped(text, 40)) == rendered(text)


def test_paragraphs_lists_and_quotations():
    text = (
        "One two three four.\n\n- a b c d e f\n  g h\n  1. i j k l m n\n\n> q r s t u v w\n> x\n\n"
        "    code stays as long as it is\n"
    )
    assert pages.wrapped(text, 12) == (
        "One two\nthree four.\n\n- a b c d e\n  f g h\n  1. i j k l\n     m n\n\n> q r s t u\n> v w x\n\n"
        "    code stays as long as it is\n"
    )


def test_unwrapped_elements():
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
    """Words that would start a list or a heading are never moved to the start of a line."""
    text = "Begin " + " ".join(words)
    assert rendered(pages.wrapped(text, 10)) == rendered(text)
    again = pages.wrapped(pages.wrapped(text, 10), 10)
    assert again == pages.wrapped(text, 10)
