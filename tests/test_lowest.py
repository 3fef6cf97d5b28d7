"""`make test-lowest` installs the lowest versions that pyproject.toml allows."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_constraints_are_the_lower_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [project["optional-dependencies"][name] for name in ("plot", "tabular", "bio", "dosage", "dask")]
    bounds = {}
    for requirement in sum(extras, project["dependencies"]):
        name, parts, bound = re.fullmatch(r"([\w-]+)(?:\[([\w,]+)\])?>=([\d.]+)(?:; .*)?", requirement).groups()
        bounds |= dict.fromkeys([name, *(part for part in (parts or "").split(",") if part == "distributed")], bound)
    lines = (ROOT / "tests" / "lowest.txt").read_text().split("# Not dependencies")[0].splitlines()
    assert [line for line in lines if not line.startswith("#")] == [f"{name}=={bound}.*" for name, bound in bounds.items()]
