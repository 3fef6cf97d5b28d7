"""Messages: no markup, no stray spaces, no repr of NumPy scalars; and the texts of ``tests/messages.txt``."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import coterie
from coterie import GroupDiscoveryClassifier
from coterie.cli.app import as_options
from tests.bad_inputs.messages import FILE, as_text, comparable, entries
from tests.conftest import grouped_matrix

ROOT = Path(coterie.__file__).parent
# Functions that print or raise a message.
FUNCTIONS = ("warn", "say", "note", "show", "damaged")
# Two spaces, or one before the end of a sentence.
STRAY = re.compile(r"\S  \S| [.,;:](\s|$)")


def messages():
    """The place and the text of every message in the source, with ``…`` for values."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            call = node.exc if isinstance(node, ast.Raise) else node if isinstance(node, ast.Call) else None
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if isinstance(node, ast.Raise) or name in FUNCTIONS:
                for argument in call.args[:2]:
                    text = text_of(argument)
                    if text is not None:
                        yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def text_of(node):
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    return None


def test_messages_are_plain_text():
    found = list(messages())
    assert len(found) > 400  # the search finds them
    wrong = [
        (place, text)
        for place, text in found
        if STRAY.search(text) or any(word in text for word in (":class:", ":func:", ":meth:", "``", "np.int64", "np.float64"))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (np.ones(20), {}, r"only one class \(1\.0\)"),
        (np.ones(20, dtype=int), {}, r"only one class \(1\)"),
        (np.array(["a"] * 20), {}, r"only one class \('a'\)"),
        (np.arange(20) % 2, {"class_weight": {0: -1.0, 1: 2.0}}, r"got \{0: -1\.0, 1: 2\.0\}"),
        (np.arange(20) % 2, {"n_features_to_select": np.int64(0)}, "n_features_to_select=0 must be"),
        (np.arange(20) % 2, {"C": np.float64(-1)}, "C=-1.0 must be"),
    ],
)
def test_numbers_are_shown_as_numbers(rng, y, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        GroupDiscoveryClassifier(**options).fit(rng.standard_normal((20, 3)), y)
    assert "np." not in str(caught.value)


def test_options_are_called_as_on_the_command_line():
    text = "label='z': no such column. Say drop='a,b' or keep_numeric=True; missing_labels='drop'; phenotype=."
    expected = "--label 'z': no such column. Say --drop 'a,b' or --keep-numeric; --read missing_labels=drop; --phenotype."
    assert as_options(text) == expected


def test_weights_that_are_no_numbers():
    X, y = grouped_matrix(np.random.default_rng(0))
    with pytest.raises(ValueError, match="sample_weight must be numbers: sample 0 has 'heavy'"):
        GroupDiscoveryClassifier(2).fit(X, y, sample_weight=["heavy"] * len(y))


def test_messages_for_mistakes_are_those_of_the_file():
    """If this fails, review the changes: ``python -m tests.bad_inputs.messages``; then write the file with ``--write``."""
    written, now = (comparable(text).splitlines() for text in (FILE.read_text(encoding="utf-8"), as_text(entries())))
    assert [line for line in now if line not in written] == []
    assert written == now
