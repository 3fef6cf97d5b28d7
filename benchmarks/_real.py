"""The real data sets, where they are at hand."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

ROOT = Path(__file__).resolve().parents[1]


def find_data(name: str) -> Path | None:
    """A file or folder of that name in ``$COTERIE_DATA``, then in ``../shared/data``; None where neither has it."""
    for folder in (os.environ.get("COTERIE_DATA"), ROOT.parent / "shared" / "data"):
        if folder and (Path(folder) / name).exists():
            return Path(folder) / name
    return None


def data_path(name: str) -> Path:
    """The same; ends the script where there is none."""
    found = find_data(name)
    if found is None:
        sys.exit(f"There is no {name} in $COTERIE_DATA or ../shared/data.")
    return found


def load(name: str, label: str = "y") -> tuple[Any, np.ndarray]:
    """Features (an array, or CSR) and labels of one of the .npz files, or of the .h5ad file of that name."""
    annotated = find_data(f"{name}.h5ad")
    if annotated is not None:
        import anndata

        data = anndata.read_h5ad(annotated)
        return np.asarray(data.X), data.obs[label].to_numpy(dtype=str)
    with np.load(data_path(f"{name}.npz")) as file:
        if "X" in file:
            return file["X"], file[label]
        shape = tuple(int(size) for size in file["shape"])
        return sparse.csr_array((file["data"], file["indices"], file["indptr"]), shape=shape), file[label]
