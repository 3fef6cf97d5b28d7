"""The code of docs/do/single-cells.md runs, and prints what the page says."""

import contextlib
import importlib.util
import io
import re
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "do" / "single-cells.md"


def test_the_page_prints_what_it_says(real_data, monkeypatch):
    pytest.importorskip("anndata")
    monkeypatch.chdir(real_data)
    blocks = re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    names, n_checked = {}, 0
    for (language, code), (after, expected) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if language != "python" or ("import scanpy" in code and importlib.util.find_spec("scanpy") is None):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of anndata's, about its old files
            exec(compile(code, str(PAGE), "exec"), names)
        if after == "output" and "print(" in code:
            assert printed.getvalue() == expected
            n_checked += 1
    assert n_checked == 4
