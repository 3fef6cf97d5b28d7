"""What is needed to make a result again: versions, and a fingerprint of the data."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from coterie import __version__
from coterie.data.source import FeatureSource

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
# A larger one is known by a sample of its columns.
_ENTRIES = 50_000_000
_COLUMNS = 256


def versions() -> dict[str, str]:
    """Versions of Python, Coterie and what it computes with."""
    found = {"coterie": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # put on the path without being installed
            continue
    return found


def fingerprint(source: FeatureSource, y: Any = None) -> str:
    """A short digest of features and labels: the same for the same data, whatever file or type they came from.

    Of large data, some columns at even steps stand for all.
    """
    n_samples, n_features = source.shape
    digest = hashlib.sha256(f"{n_samples} {n_features}".encode())
    n_columns = n_features if n_samples * n_features <= _ENTRIES else min(n_features, _COLUMNS)
    chosen = np.unique(np.linspace(0, n_features - 1, n_columns).round().astype(np.int64))
    step = max(1, _ENTRIES // 8 // max(1, n_samples))
    for start in range(0, len(chosen), step):
        columns = source.columns(chosen[start : start + step])
        values = np.asarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), dtype=np.float64)
        digest.update((values + 0.0).tobytes(order="F"))  # no negative zeros
    if y is not None:
        digest.update("\0".join(str(label) for label in np.asarray(y).tolist()).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()[:16]
