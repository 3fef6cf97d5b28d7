"""Number of source files that a fit executes, and of switches from one file to another, as a measure of readability.

    python benchmarks/fit_hops.py

Counted with ``sys.setprofile`` over a fit of three rounds, after a first fit that compiles. Only files of Coterie count. A
switch is a call of a function in a different file from that of the previous call.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import coterie

ROOT = str(Path(coterie.__file__).parent)


def hops(action: Any) -> tuple[list[str], int]:
    """Return the files that an action executes, and the number of switches between them."""
    visited: list[str] = []
    switches = 0

    def look(frame: Any, event: str, _: Any) -> None:
        nonlocal switches
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(ROOT):
            switches += bool(visited) and visited[-1] != file
            visited.append(file)

    sys.setprofile(look)
    try:
        action()
    finally:
        sys.setprofile(None)
    return sorted({str(Path(file).relative_to(ROOT)) for file in visited}), switches


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 300))
    y = X[:, :6].sum(axis=1) > 0
    model = coterie.GroupDiscoveryClassifier(6, n_features_per_round=2, n_jobs=1)
    model.fit(X, y)
    files, switches = hops(lambda: model.fit(X, y))
    lines = {file: len((Path(ROOT) / file).read_text().splitlines()) for file in Path(ROOT).rglob("*.py")}
    print(f"package: {len(lines)} files, {sum(lines.values()):,} lines")
    print(f"Fit of three rounds: {len(files)} files, {switches} switches")
    print("  " + "\n  ".join(files))


if __name__ == "__main__":
    main()
