"""The protocol of a correlation measure, as required by the oracle."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from coterie.data.source import Exemplar
from coterie.data.view import FeatureView

# Correlations that differ by less than this count as equal.
ROUNDING = 1e-10


class Pairs(NamedTuple):
    """Pairs of correlated features, in order of feature, then position."""

    feature: np.ndarray
    position: np.ndarray  # Position of the other feature of the pair in a given list of features.
    correlation: np.ndarray


class Correlation(Protocol):
    """A symmetric correlation measure with absolute values in [0, 1], with counters of its evaluations.

    The value of a pair does not depend on the order of the columns, the threads or the method called, up to rounding errors
    far below ``ROUNDING``. Sample weights are those of the view. In folds, some samples have weight zero and count as absent.

    Attributes
    ----------
    view : FeatureView
        The features.
    """

    view: FeatureView

    @property
    def n_evaluated(self) -> int:
        """Number of pairs whose correlation was computed so far."""
        ...

    @property
    def n_features_read(self) -> int:
        """Number of features read so far."""
        ...

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the matrix of correlations of some features with some others. None of them is constant."""
        ...

    def within(self, features: np.ndarray) -> np.ndarray:
        """Return the matrix of correlations between a few features. None of them is constant."""
        ...

    def strong(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None) -> Pairs:
        """Return all pairs of a feature and one of ``supports`` whose absolute correlation is >= threshold - ``ROUNDING``.

        Each support feature forms a pair with itself. Constant features are in no pair. ``exemplar`` may help a linear measure
        to exclude pairs without evaluating them, and can be ignored.
        """
        ...
