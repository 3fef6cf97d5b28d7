"""What the oracle needs of a measure of correlation."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from coterie.data.source import Exemplar
from coterie.data.view import FeatureView

# Correlations this close are one value: what separates rounding from a real difference.
ROUNDING = 1e-10


class Pairs(NamedTuple):
    """Pairs of correlated features, in order of feature, then position."""

    feature: np.ndarray
    position: np.ndarray  # the place, in a list of others, of the feature that it is correlated with
    correlation: np.ndarray


class Correlation(Protocol):
    """A measure between features with absolute values in [0, 1], symmetric, and how much of it was computed.

    A pair has one value, whatever the order of the columns, the threads and the method that is asked; what rounding adds is
    far below ``ROUNDING``. Sample weights are those of the view: folds have samples of weight zero, as good as absent.

    Attributes
    ----------
    view : FeatureView
        The features.
    """

    view: FeatureView

    @property
    def n_evaluated(self) -> int:
        """Pairs whose correlation was computed so far."""
        ...

    @property
    def n_features_read(self) -> int:
        """Features that were read for it."""
        ...

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Matrix of correlations of some features (not constant) with some others."""
        ...

    def within(self, features: np.ndarray) -> np.ndarray:
        """Matrix of correlations between a few features (not constant)."""
        ...

    def strong(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None) -> Pairs:
        """All pairs of a feature and one of the ``supports`` that reach the threshold (less ``ROUNDING``) in absolute value.

        A support feature is in a pair with itself; constant features are in none. ``exemplar`` may help a linear measure to
        leave pairs out unseen, and can be ignored.
        """
        ...
