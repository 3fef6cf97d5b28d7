"""Functions shared by the examples: find and load data sets, save figures."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from scipy import sparse

_HERE = Path(__file__).resolve().parent


def data_file(name: str) -> Path | None:
    """Return the path of a data set in ``$COTERIE_DATA``, by default ``../shared/data``; None if it does not exist."""
    path = Path(os.environ.get("COTERIE_DATA") or _HERE.parents[1] / "shared" / "data") / name
    return path if path.exists() else None


def need(name: str) -> Path:
    """Return the path of a data set; exit with a message if it does not exist."""
    path = data_file(name)
    if path is None:
        sys.exit(
            f"This example requires {name}. Put it into a folder and set COTERIE_DATA to that folder "
            "(see docs/evidence/examples.md)."
        )
    return path


def load(path: Path, label: str = "y"):
    """Return the features (an array or CSR matrix) and the labels of an .npz file."""
    with np.load(path) as file:
        if "X" in file:
            return file["X"], file[label]
        shape = tuple(int(size) for size in file["shape"])
        return sparse.csr_array((file["data"], file["indices"], file["indptr"]), shape=shape), file[label]


def write(figure, name: str) -> None:
    """Save a figure to the folder given on the command line, by default examples/figures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else _HERE / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"example-{name}.png", dpi=90)
    print(f"Written: {folder / f'example-{name}.png'}")
