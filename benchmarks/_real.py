"""Real data sets, if available."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

ROOT = Path(__file__).resolve().parents[1]


def find_data(name: str) -> Path | None:
    """Return the file or folder of that name in ``$COTERIE_DATA`` or ``../shared/data``; None if neither has it."""
    for folder in (os.environ.get("COTERIE_DATA"), ROOT.parent / "shared" / "data"):
        if folder and (Path(folder) / name).exists():
            return Path(folder) / name
    return None


def data_path(name: str) -> Path:
    """Return the file or folder of that name; exit the script if it is missing."""
    found = find_data(name)
    if found is None:
        sys.exit(f"{name} not found in $COTERIE_DATA or ../shared/data. Set COTERIE_DATA to the folder that has it.")
    return found


def load(name: str, label: str = "y") -> tuple[Any, np.ndarray]:
    """Return features (array or CSR) and labels of the .npz or .h5ad file of that name."""
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
