"""Excluded phrases and long sentences, counted by ``docs/scripts/language.py``; the rules are in CONTRIBUTING.md."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("language", ROOT / "docs" / "scripts" / "language.py")
language = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(language)


@pytest.mark.parametrize("part", ["src", "docs", "README and other top-level pages"])
def test_no_excluded_phrases(part):
    found = [
        f"{path.relative_to(ROOT)}:{line}: {kind}: {text[:120]}"
        for path in language.parts(ROOT)[part]
        for kind, line, text in language.findings(path)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("content", "kinds"),
    [
        ('"""Nobody reads this."""\n', ["people"]),
        ("# one row a feature\n", ["per"]),
        ("# Values in [0, 1], one row per feature, a file of ten rows, a second time.\n", []),
        ('raise ValueError("The file has 60 bytes a feature.")\n', ["per"]),
        (f'"""{"word " * 40}end."""\n', ["long"]),
        (f'"""{"word " * 39}end."""\n', []),
        (f'"""{"word " * 20}end. {"Word " * 20}end."""\n', []),
    ],
)
def test_what_is_found_in_modules(tmp_path, content, kinds):
    path = tmp_path / "module.py"
    path.write_text(content)
    assert [kind for kind, _, _ in language.findings(path)] == kinds


def test_what_is_found_in_pages(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("Whoever reads.\n\n```sh\none row a line, nobody\n```\n\n| one file a run | ok |\n\n- item\n")
    assert [(kind, line) for kind, line, _ in language.findings(path)] == [("people", 1), ("per", 7)]
