"""The top of a ranking of features, in an order that does not depend on the order of the columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coterie.data.source import FeatureSource
from coterie.kernels.columns import kth_largest, positions_between

# Scores that differ by less than this part of the best score are tied.
TIE = 1e-10


def ranked_chunks(strength: np.ndarray, source: FeatureSource, first_size: int) -> Iterator[np.ndarray]:
    """Features with a non-negative strength, strongest first, in chunks that double in size.

    Only the part that is asked for is ever found and put in order.
    """
    tie = TIE * max(float(strength.max(initial=0.0)), 0.0)
    below, size = np.inf, first_size
    while True:
        low = float(kth_largest(strength, below, size))
        if low < 0.0:
            return
        low = max(low - tie, 0.0)
        chunk = positions_between(strength, low, below)
        yield _in_order(chunk, strength[chunk], tie, source)
        below, size = low, 2 * size


def _in_order(features: np.ndarray, strength: np.ndarray, tie: float, source: FeatureSource) -> np.ndarray:
    """Sort by strength; the tied ones by content, then by name (or position) where that is equal too."""
    order = np.argsort(-strength, kind="stable")
    features, strength = features[order], strength[order]
    starts = [0]
    for i in range(1, len(features)):
        if strength[starts[-1]] - strength[i] > tie:
            starts.append(i)
    for first, last in zip(starts, [*starts[1:], len(features)], strict=True):
        if last - first > 1:
            features[first:last] = by_content(features[first:last], source)
    return features


def by_content(features: np.ndarray, source: FeatureSource) -> np.ndarray:
    """Order features by a fingerprint of their values, identical ones by name or position.

    The fingerprint is the product with one fixed random vector: different columns differ in it
    (with probability one), and no accident of storage enters it.
    """
    probe = np.random.default_rng(20120626).standard_normal((source.shape[0], 1))
    prints = source.products(probe, features=features)[:, 0]
    order = np.argsort(-prints, kind="stable")
    features, prints = features[order], prints[order]
    close = 1e-9 * max(float(np.abs(prints).max()), np.finfo(float).tiny)
    starts = [0, *(np.flatnonzero(prints[:-1] - prints[1:] > close) + 1), len(features)]
    names = source.feature_names
    for first, last in zip(starts[:-1], starts[1:], strict=True):
        same = features[first:last]
        features[first:last] = sorted(same, key=(lambda j: int(j)) if names is None else (lambda j: str(names[j])))
    return features
