"""What the oracle needs of a measure of correlation."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from coterie.data.source import Exemplar, FeatureSource, Moments


class Correlation(Protocol):
    """A measure between features with absolute values in [0, 1], and how much of it was computed."""

    source: FeatureSource
    moments: Moments
    sample_weight: np.ndarray | None
    n_threads: int
    n_evaluated: int
    n_features_read: int

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Matrix of correlations of some features (not constant) with some others."""
        ...

    def within(self, features: np.ndarray) -> np.ndarray:
        """Matrix of correlations between a few features (not constant)."""
        ...

    def strong(
        self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All pairs (feature, position in ``supports``, correlation) that reach the threshold in absolute value."""
        ...
