"""One-class tasks on real data: one class is normal, the others are outliers.

The tasks are divided into two sets, which share no class. Settings and rules were chosen on ``TO_CHOOSE`` only. The evidence
shows ``TO_REPORT``, which had no part in any choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from _real import load
from scipy import sparse
from sklearn.preprocessing import normalize

# Data set and the labels of its classes that are normal in turn.
TO_CHOOSE = {
    "20news_bigrams": (0, 2, 7, 15),
    "mnist_3v8": (3, 8),
    "usps": (0, 1),
    "mfeat": (0, 1),
    "coil20": (0, 1),
}
TO_REPORT = {
    "20news_bigrams": (4, 9, 13, 18),
    "basehock": (0, 1),
    "usps": (4, 7),
    "mfeat": (5, 8),
    "coil20": (8, 13),
    "gisette_valid": (0, 1),
    "pbmc68k_reduced": (0, 1),
    "spambase": (0, 1),
}
MAX_NORMAL, MAX_OUTLIERS = 1000, 500
# Words of at least this number of documents; fewer say little about a class of 1,000.
MIN_DOCUMENTS = 5


class Split(NamedTuple):
    """Training samples of the normal class, and test samples: normal ones and outliers."""

    train: Any
    normal: Any
    outliers: Any


class NormalityTask(NamedTuple):
    """Normal samples and outliers of a task."""

    data: str
    label: str
    normal: Any
    outliers: Any

    def splits(self, n_splits: int, seed: int = 0) -> Iterator[Split]:
        """Yield random divisions of the normal samples: two thirds to train, one third to test."""
        n_samples = self.normal.shape[0]
        for number in range(n_splits):
            order = np.random.default_rng([seed, number]).permutation(n_samples)
            n_train = round(2 * n_samples / 3)
            yield Split(self.normal[order[:n_train]], self.normal[order[n_train:]], self.outliers)


def tasks(sets: dict[str, tuple[int, ...]]) -> Iterator[NormalityTask]:
    """Yield the tasks of some data sets. Classes are numbered in sorted order; those of pbmc68k_reduced by size."""
    for name, numbers in sets.items():
        X, y = _loaded(name)
        classes, counts = np.unique(y, return_counts=True)
        if name == "pbmc68k_reduced":
            classes = classes[np.argsort(-counts, kind="stable")]
        for number in numbers:
            label = number if name == "mnist_3v8" else classes[number]
            rng = np.random.default_rng(number)
            normal = rng.permutation(np.flatnonzero(y == label))[:MAX_NORMAL]
            outliers = rng.permutation(np.flatnonzero(y != label))[:MAX_OUTLIERS]
            yield NormalityTask(name, str(label), X[normal], X[outliers])


def _loaded(name: str) -> tuple[Any, np.ndarray]:
    """Return prepared features and labels: text as rows of length 1, pixels and intensities divided by their maximum."""
    label = {"20news_bigrams": "y20", "pbmc68k_reduced": "bulk_labels"}.get(name, "y")
    X, y = load(name, label)
    if sparse.issparse(X):
        X = sparse.csr_array(X, dtype=np.float64)
        n_documents = np.bincount(X.indices, minlength=X.shape[1])
        return normalize(sparse.csr_array(X[:, np.flatnonzero(n_documents >= MIN_DOCUMENTS)])), y
    X = np.asarray(X, dtype=np.float64)
    return X / np.abs(X).max(), y
