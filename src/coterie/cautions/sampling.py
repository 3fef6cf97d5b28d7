"""Samples of features and rows of bounded size, which do not depend on the order of the columns.

Features are drawn by a hash of their content: the product of the standardised column with a fixed random vector, rounded.
So the same features are drawn for any order of the columns, any scale of them, any number of threads and any format.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.data.source import FeatureSource, Moments
from coterie.order import SEED

# Largest numbers of drawn features, of rows that are compared with each other, of rows in which neighbours are searched, and
# of rows whose neighbours are searched.
_MAX_COLUMNS, MAX_ROWS, _MAX_CANDIDATES, _N_ANCHORS = 2000, 800, 20_000, 250
# Largest numbers of values that are read, and that are kept.
_MAX_VALUES_READ, _MAX_VALUES = 400_000_000, 10_000_000
# Features per pass, which limits the memory of products.
_PASS_FEATURES = 1 << 18
# Values per block of columns.
_BLOCK_VALUES = 1 << 22
# Digits of the content that enter the hash. Rounding errors are far below the last one.
_CONTENT_UNIT = 1e-8
# Largest standardised value. Outliers must not determine which rows are similar.
_MAX_VALUE = 5.0


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Values of the drawn features for some rows.

    Attributes
    ----------
    rows : ndarray of int
        Rows of the data, in ascending order.
    values : ndarray of shape (n_rows, n_drawn)
        Values as stored.
    """

    rows: np.ndarray
    values: np.ndarray

    def part(self, positions: np.ndarray) -> DrawnRows:
        """Return some of the rows, given by ascending positions."""
        return DrawnRows(self.rows[positions], self.values[positions])

    def standardized(self) -> np.ndarray:
        """Return the features that vary, standardised, without outliers."""
        values = self.values.astype(np.float64)
        scale = values.std(axis=0)
        varying = scale > 1e-12 * np.maximum(np.abs(values).max(axis=0, initial=0.0), 1e-300)
        return np.clip((values[:, varying] - values[:, varying].mean(axis=0)) / scale[varying], -_MAX_VALUE, _MAX_VALUE)


@dataclass(frozen=True, eq=False)
class Contents:
    """Content of each feature, and its correlation with the targets.

    Attributes
    ----------
    content : ndarray of shape (n_features,)
        Correlation with a fixed random vector.
    correlation : ndarray of shape (n_features,)
        Largest |correlation| with a column of the targets; 0 without targets.
    """

    content: np.ndarray
    correlation: np.ndarray


def read_contents(source: FeatureSource, moments: Moments, targets: np.ndarray | None) -> Contents:
    """Compute contents and correlations in one pass, in bounded memory."""
    n_samples, n_features = source.shape
    probe = np.random.default_rng(SEED).standard_normal((n_samples, 1))
    probe -= probe.mean()
    vectors = probe if targets is None else np.hstack([probe, targets])
    norms = np.maximum(np.sqrt((vectors**2).sum(axis=0)), 1e-300)
    content, correlation = np.zeros(n_features), np.zeros(n_features)
    for start in range(0, n_features, _PASS_FEATURES):
        features = np.arange(start, min(start + _PASS_FEATURES, n_features))
        scale = moments.norm[features]
        products = source.products(vectors, centre=moments.mean, features=features) / norms
        products = np.divide(products, scale[:, None], out=np.zeros_like(products), where=scale[:, None] > 0)
        content[features] = products[:, 0]
        if targets is not None:
            correlation[features] = np.abs(products[:, 1:]).max(axis=1)
    return Contents(content, correlation)


def draw_features(source: FeatureSource, moments: Moments, content: np.ndarray) -> np.ndarray:
    """Return the drawn features, in an order that depends on their content only.

    Features of a sparse source are drawn with probabilities that are about proportional to their share of nonzeros, because
    two rows share no value of rare features.
    """
    n_samples = source.shape[0]
    usable = np.flatnonzero(moments.norm > 0)
    n_drawn = min(_MAX_COLUMNS, _MAX_VALUES_READ // n_samples, _MAX_VALUES // min(n_samples, _MAX_CANDIDATES))
    key = -np.log(_hashed(content[usable]))
    if source.is_sparse:
        square = moments.mean[usable] ** 2
        share = square / (square + moments.scale[usable] ** 2)  # the share of nonzeros if these are equal, less otherwise
        key /= np.maximum(share, 1e-12)
    return usable[np.lexsort((content[usable], key))[: max(n_drawn, 1)]]


def _hashed(content: np.ndarray) -> np.ndarray:
    """Return a number in (0, 1] for each content."""
    bits = np.rint(content / _CONTENT_UNIT).astype(np.int64).view(np.uint64)
    with np.errstate(over="ignore"):  # splitmix64
        bits = bits + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits = bits ^ (bits >> np.uint64(31))
    return (np.asarray(bits >> np.uint64(11), dtype=np.float64) + 1.0) / 2.0**53


def read_rows(source: FeatureSource, features: np.ndarray) -> DrawnRows:
    """Return the drawn features for all rows, or for a random part of many rows."""
    n_samples = source.shape[0]
    rows = np.arange(n_samples)
    if n_samples > _MAX_CANDIDATES:
        rows = np.sort(np.random.default_rng(SEED).permutation(n_samples)[:_MAX_CANDIDATES])
    values = np.empty((len(rows), len(features)), dtype=np.float32)
    step = max(1, _BLOCK_VALUES // n_samples)
    for start in range(0, len(features), step):
        columns = source.columns(features[start : start + step])
        dense = columns if isinstance(columns, np.ndarray) else columns.toarray()
        values[:, start : start + step] = dense[rows]
    return DrawnRows(rows, values)


def row_parts(drawn: DrawnRows) -> list[DrawnRows]:
    """Return the parts of the rows that are compared with each other.

    All of them, if they are few. Otherwise a random part, which shows large sample groups, and a part that consists of some
    rows and their nearest neighbours, which shows small ones.
    """
    if len(drawn.rows) <= MAX_ROWS:
        return [drawn]
    order = np.random.default_rng(SEED + 1).permutation(len(drawn.rows))
    directions = unit_rows(drawn.standardized().astype(np.float32))
    anchors = order[:_N_ANCHORS]
    similarity = directions[anchors] @ directions.T
    similarity[np.arange(len(anchors)), anchors] = -np.inf
    nearest = np.argpartition(-similarity, 2, axis=1)[:, :2]
    return [drawn.part(np.sort(order[:MAX_ROWS])), drawn.part(np.unique(np.append(anchors, nearest)))]


def unit_rows(values: np.ndarray) -> np.ndarray:
    """Return rows scaled to norm 1; rows of zeros remain."""
    norms = np.sqrt(np.einsum("ij,ij->i", values, values, dtype=np.float64))
    return np.asarray(values / np.maximum(norms, 1e-12)[:, None], dtype=values.dtype)
