"""The one rule for ties: scores closer than rounding are equal, and equal ones go by the content of their columns.

So no order of features depends on that of the columns.
"""

from __future__ import annotations

import itertools

import numpy as np

from coterie.data.source import FeatureSource

# Scores that differ by less than this part of the best score are tied.
TIE = 1e-10


def in_order(
    features: np.ndarray, strength: np.ndarray, tie: float, source: FeatureSource, sample_weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Sort by strength; the tied ones by content, then by name (or position) where that is equal too."""
    order = np.argsort(-strength, kind="stable")
    features, strength = features[order], strength[order]
    starts = [0]
    for i in range(1, len(features)):
        if strength[starts[-1]] - strength[i] > tie:
            starts.append(i)
    for first, last in zip(starts, [*starts[1:], len(features)], strict=True):
        if last - first > 1:
            features[first:last] = by_content(features[first:last], source, sample_weight)
    return features, strength


def by_content(features: np.ndarray, source: FeatureSource, sample_weight: np.ndarray | None = None) -> np.ndarray:
    """Order features by a fingerprint of their values, identical ones by name or position.

    The fingerprint is the product with one fixed random vector: different columns differ in it
    (with probability one), and no accident of storage enters it. Samples of weight zero do not enter it either:
    they are as good as absent.
    """
    used = slice(None) if sample_weight is None else np.flatnonzero(sample_weight)
    probe = np.zeros((source.shape[0], 1))
    probe[used] = np.random.default_rng(20120626).standard_normal(probe[used].shape)
    prints = source.products(probe, features=features)[:, 0]
    order = np.argsort(-prints, kind="stable")
    features, prints = features[order], prints[order]
    close = 1e-9 * max(float(np.abs(prints).max()), np.finfo(float).tiny)
    starts = [0, *(np.flatnonzero(prints[:-1] - prints[1:] > close) + 1), len(features)]
    names = source.feature_names
    for first, last in itertools.pairwise(starts):
        same = features[first:last]
        features[first:last] = sorted(same, key=(int) if names is None else (lambda j: str(names[j])))
    return features
