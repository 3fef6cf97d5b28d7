"""Small data sets with and without signal, used to compare the nominal share of false groups with the realised one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from _real import find_data, load
from _truth import strong_neighbours
from scipy import sparse

from coterie.datasets import make_big_dimensional, make_support_affiliated

N_PLANTED = 6


@dataclass(frozen=True)
class DataSet:
    """Features, labels, planted groups (none without signal), their support features, and whether to standardise."""

    X: Any
    y: np.ndarray
    planted: list[np.ndarray]
    standardize: bool = False

    @property
    def supports(self) -> np.ndarray:
        return np.array([members[0] for members in self.planted], dtype=np.int64)

    def without_signal(self, seed: int) -> DataSet:
        """Return the same features with permuted labels, so that every group is false."""
        return DataSet(self.X, np.random.default_rng([seed, 1]).permutation(self.y), [], self.standardize)


def dense(seed: int, shape: tuple[int, int]) -> DataSet:
    """Return Gaussian features of equal scale and labels with noise."""
    data = make_support_affiliated(*shape, n_support=N_PLANTED, n_true=3 * N_PLANTED, noise=0.5, random_state=seed)
    return DataSet(data.X, data.y, [group.members for group in data.groups])


def unequal(seed: int, shape: tuple[int, int], standardize: bool = False) -> DataSet:
    """Return the same data with lognormal scales of the features, so that chance favours the largest ones."""
    data = dense(seed, shape)
    scale = np.random.default_rng([seed, 2]).lognormal(size=shape[1])
    return DataSet(data.X * scale, data.y, data.planted, standardize)


def unequal_standardized(seed: int, shape: tuple[int, int]) -> DataSet:
    """Return the data of unequal scale for a fit that standardises them."""
    return unequal(seed, shape, standardize=True)


def text(seed: int, shape: tuple[int, int]) -> DataSet:
    """Return word counts with effects of some words: random documents and words of 20 Newsgroups if available."""
    rng = np.random.default_rng([seed, 3])
    if find_data("20news_bigrams.npz") is None:
        X: Any = make_big_dimensional(
            "news20", n_samples=shape[0], n_features=shape[1], n_values=shape[1] * shape[0] // 50, random_state=seed
        ).X
    else:
        words = _news()
        X = words[np.sort(rng.choice(words.shape[0], shape[0], replace=False))].tocsc()
        common = np.flatnonzero(np.diff(X.indptr) >= 5)  # words in at least five of these documents
        X = X[:, np.sort(rng.choice(common, min(shape[1], len(common)), replace=False))]
    share = np.diff(X.indptr) / X.shape[0]
    likely = np.flatnonzero((share >= 0.08) & (share <= 0.4))
    return _with_effects(sparse.csc_array(X), likely, rng)


@cache
def _news() -> sparse.csr_array:
    return load("20news_bigrams")[0]


def _with_effects(X: Any, candidates: np.ndarray, rng: np.random.Generator) -> DataSet:
    """Return labels that depend on the presence of some features.

    A planted group is such a feature with all features whose correlation with it is at least 0.7.
    """
    signal, planted = np.zeros(X.shape[0]), []
    for support in rng.choice(candidates, N_PLANTED, replace=False).tolist():
        present = (X[:, [support]].toarray()[:, 0] > 0).astype(np.float64)
        signal += rng.uniform(1.0, 2.0) * rng.choice([-1.0, 1.0]) * (present - present.mean()) / present.std()
        planted.append(strong_neighbours(X, support))
    noisy = signal + 0.5 * rng.standard_normal(len(signal))
    return DataSet(X, np.where(noisy > np.median(noisy), 1, -1), planted)


def snps(seed: int, shape: tuple[int, int]) -> DataSet:
    """Return genotypes in linkage blocks, with causal SNPs."""
    data = make_big_dimensional("psoriasis", n_samples=shape[0], n_features=shape[1], n_support=N_PLANTED, random_state=seed)
    return DataSet(data.X, data.y, [group.members for group in data.groups])


KINDS = {
    "dense, equal scale": dense,
    "dense, unequal scale": unequal,
    "the same, standardised": unequal_standardized,
    "text counts": text,
    "SNPs": snps,
}
