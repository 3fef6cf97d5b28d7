"""The same real data in every format that supports them: equality of the groups, and time to read and to convert.

20news_bigrams (19,997 x 1,619,506) as .npz, SciPy's .npz, LIBSVM text (plain and gzip), MatrixMarket, .h5ad and as a store of
each. The small real data sets are compared in the tests (tests/data/test_opening.py).
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _real import load
from _record import read_arguments, write_results
from _tables import print_table, verdict
from scipy import sparse

from coterie import GroupDiscoveryClassifier
from coterie.data import convert, open_features


def write_text(path: Path, S: sparse.csr_array, y: np.ndarray) -> None:
    """Write LIBSVM text of counts; scikit-learn's writer would take minutes."""
    with open(path, "w") as file:
        for i in range(S.shape[0]):
            entries = slice(S.indptr[i], S.indptr[i + 1])
            pairs = zip((S.indices[entries] + 1).tolist(), S.data[entries].tolist(), strict=True)
            file.write(f"{y[i]} " + " ".join(f"{j}:{v}" for j, v in pairs) + "\n")


def write_matrix_market(path: Path, S: sparse.csr_array) -> None:
    with open(path, "w") as file:
        file.write(f"%%MatrixMarket matrix coordinate integer general\n{S.shape[0]} {S.shape[1]} {S.nnz}\n")
        rows = np.repeat(np.arange(1, S.shape[0] + 1), np.diff(S.indptr)).tolist()
        file.writelines(f"{i} {j} {v}\n" for i, j, v in zip(rows, (S.indices + 1).tolist(), S.data.tolist(), strict=True))


def files(folder: Path, n_samples: int | None) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Yield name, file and options of every format."""
    S, y = load("20news_bigrams")
    S, y = S[:n_samples], y[:n_samples]
    S.sort_indices()
    np.savez(folder / "ours.npz", data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=y)
    np.savetxt(folder / "y.txt", y, fmt="%d")
    labels = {"label": folder / "y.txt"}
    yield "npz", folder / "ours.npz", {}
    sparse.save_npz(folder / "scipy.npz", S, compressed=False)
    yield "npz of SciPy", folder / "scipy.npz", labels
    write_text(folder / "text.svm", S, y)
    yield "LIBSVM", folder / "text.svm", {"n_features": S.shape[1]}
    with open(folder / "text.svm", "rb") as plain, gzip.open(folder / "text.svm.gz", "wb", compresslevel=1) as packed:
        shutil.copyfileobj(plain, packed)
    yield "LIBSVM, gzip", folder / "text.svm.gz", {"n_features": S.shape[1]}
    write_matrix_market(folder / "text.mtx", S)
    yield "MatrixMarket", folder / "text.mtx", labels
    import anndata
    import pandas as pd

    obs = pd.DataFrame({"y": y}, index=[str(i) for i in range(len(y))])
    anndata.AnnData(sparse.csr_matrix(S), obs=obs).write_h5ad(folder / "data.h5ad")
    # Names break ties between equal columns, so the names "0", "1", ... of this file are removed.
    yield "h5ad", folder / "data.h5ad", {"label": "y"}


def main() -> None:
    options = read_arguments(__doc__)
    folder = Path(tempfile.mkdtemp())
    rows, expected = [], None
    try:
        for name, path, reading in files(folder, 2000 if options.quick else None):
            began = time.perf_counter()
            data = open_features(path, **reading)
            read = time.perf_counter() - began
            convert(path, folder / "store", overwrite=True, **reading)
            converted = time.perf_counter() - began - read
            stored = open_features(folder / "store")
            for one in (data, stored):
                one.source.feature_names = None  # type: ignore[misc]  # for comparison with formats without names
            groups = [GroupDiscoveryClassifier(20 if options.quick else 100, C=1.0).fit(one).groups_ for one in (data, stored)]
            expected = expected or groups[0]
            rows.append(
                {
                    "format": name,
                    "MB": path.stat().st_size / 1e6,
                    "read, s": read,
                    "convert, s": converted,
                    "same groups": verdict(groups[0] == expected),
                    "from the store": verdict(groups[1] == expected),
                }
            )
            print(rows[-1], flush=True)
    finally:
        shutil.rmtree(folder)
    print_table("20news_bigrams in every format", rows)
    write_results("same_groups", options, rows=rows)


if __name__ == "__main__":
    main()
