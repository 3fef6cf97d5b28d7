"""The real data sets, where they are at hand, and tables for the docs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def data_folder() -> Path:
    """``$COTERIE_DATA``, then ``../shared/data``; ends the script where neither is there."""
    for folder in (os.environ.get("COTERIE_DATA"), ROOT.parent / "shared" / "data"):
        if folder and Path(folder).is_dir():
            return Path(folder)
    sys.exit("The real data sets are neither in $COTERIE_DATA nor in ../shared/data.")


def load(name: str, label: str = "y") -> tuple[Any, np.ndarray]:
    """Features (an array, or CSR) and labels of one of the .npz files, or of the .h5ad file of that name."""
    annotated = data_folder() / f"{name}.h5ad"
    if annotated.exists():
        import anndata

        data = anndata.read_h5ad(annotated)
        return np.asarray(data.X), data.obs[label].to_numpy(dtype=str)
    with np.load(data_folder() / f"{name}.npz") as file:
        if "X" in file:
            return file["X"], file[label]
        shape = tuple(int(size) for size in file["shape"])
        return sparse.csr_array((file["data"], file["indices"], file["indptr"]), shape=shape), file[label]


def markdown_table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows of the same keys as a table; floats with three digits."""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([_text(row[name]) for name in names] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (float, np.floating)):
        return f"{value:.3g}" if abs(value) < 0.1 else f"{value:.3f}"
    return f"{value:,}" if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else str(value)


def replace_section(page: Path, name: str, text: str) -> None:
    """Put a measured section between its marks ``<!-- name -->`` and ``<!-- end name -->`` of a page."""
    first, last = f"<!-- {name} -->\n", f"<!-- end {name} -->\n"
    old = page.read_text(encoding="utf-8")
    if first not in old or last not in old:
        sys.exit(f"{page.name} has no marks for the section {name!r}.")
    before, rest = old.split(first, 1)
    after = rest.split(last, 1)[1]
    page.write_text(f"{before}{first}{text.strip()}\n{last}{after}", encoding="utf-8")
