"""The README's example prints what the README says."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_example_prints_what_it_says():
    blocks = re.findall(r"```(\w*)\n(.*?)```", README.read_text(), flags=re.DOTALL)
    position = next(i for i, (language, _) in enumerate(blocks) if language == "python")
    code, expected = blocks[position][1], blocks[position + 1][1]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == expected
