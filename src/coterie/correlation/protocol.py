"""What the oracle needs of a measure of correlation."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from coterie.data.source import Exemplar
from coterie.data.view import FeatureView

# Correlations this close are one value: what separates rounding from a real difference.
ROUNDING = 1e-10


class Pairs(NamedTuple):
    """Pairs of correlated features, by feature.

    Attributes
    ----------
    feature : ndarray of int
        A feature.
    position : ndarray of int
        The place, in a list of others, of the one that it is correlated with.
    correlation : ndarray
        Their correlation.
    """

    feature: np.ndarray
    position: np.ndarray
    correlation: np.ndarray


class Correlation(Protocol):
    """A measure between features with absolute values in [0, 1], and how much of it was computed."""

    view: FeatureView
    n_evaluated: int
    n_features_read: int

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Matrix of correlations of some features (not constant) with some others."""
        ...

    def within(self, features: np.ndarray) -> np.ndarray:
        """Matrix of correlations between a few features (not constant)."""
        ...

    def strong(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None) -> Pairs:
        """All pairs of a feature and one of the ``supports`` that reach the threshold in absolute value."""
        ...
