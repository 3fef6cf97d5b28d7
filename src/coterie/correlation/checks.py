"""What a measure of somebody else's must return: looked at before the groups rest on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.correlation.protocol import ROUNDING, Pairs
from coterie.data.source import Exemplar
from coterie.data.view import FeatureView

# How far beyond 1, or from its mirror image, a correlation may be by rounding.
TOLERANCE = 1e-6
_METHODS = ("between", "within", "strong")


def checked_values(values: Any, shape: tuple[int, int], name: str) -> np.ndarray:
    """A matrix of correlations as float64, within [-1, 1]; a ``ValueError`` that says what is wrong with any other."""
    try:
        matrix = np.asarray(values)
        matrix = matrix.astype(np.float64) if matrix.dtype.kind in "biuf" else matrix
    except ValueError:  # rows of different lengths
        matrix = np.empty(0, dtype=object)
    if matrix.dtype != np.float64:
        raise _refusal(name, "something that is not an array of real numbers")
    if matrix.shape != shape:
        raise _refusal(name, f"an array of shape {matrix.shape} for {shape[0]} and {shape[1]} features")
    if not np.isfinite(matrix).all():
        raise _refusal(name, "NaN or infinite values")
    largest = float(np.abs(matrix).max(initial=0.0))
    if largest > 1.0 + TOLERANCE:
        raise _refusal(name, f"the value {matrix.flat[np.abs(matrix).argmax()]:.6g}")
    return np.clip(matrix, -1.0, 1.0)


def check_symmetry(matrix: np.ndarray, name: str) -> None:
    """Raise a ``ValueError`` unless a matrix of the same features on both sides is symmetric."""
    if np.abs(matrix - matrix.T).max(initial=0.0) > TOLERANCE:
        raise _refusal(name, "different values for a pair of features and the same pair the other way round")


def _refusal(name: str, what: str) -> ValueError:
    return ValueError(
        f"correlation={name} returned {what}. It must be symmetric: the matrix of correlations of the first features (rows) "
        "with the second (columns), finite and in [-1, 1]."
    )


class CheckedCorrelation:
    """A measure made by a class of somebody else's, whose answers are checked; it is never asked about constant features.

    Parameters
    ----------
    kind : type
        With the methods ``between``, ``within`` and ``strong`` of :class:`Correlation`, and perhaps with its counters; made of
        a view.
    view : FeatureView
        The view.
    """

    def __init__(self, kind: type, view: FeatureView) -> None:
        missing = [method for method in _METHODS if not callable(getattr(kind, method, None))]
        if missing:
            raise ValueError(
                f"correlation={kind.__name__} is a class without the method {missing[0]!r}; it needs {', '.join(_METHODS)} as "
                "coterie.correlation.Correlation has them."
            )
        self.view = view
        self._measure: Any = kind(view)
        self._name = kind.__name__
        self._n_evaluated = 0
        self._n_features_read = 0

    @property
    def n_evaluated(self) -> int:
        """Pairs whose correlation was computed so far; all that were asked for, where the measure does not count."""
        return int(getattr(self._measure, "n_evaluated", self._n_evaluated))

    @property
    def n_features_read(self) -> int:
        """Features that were read for it."""
        return int(getattr(self._measure, "n_features_read", self._n_features_read))

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Matrix of correlations of some features (not constant) with some others."""
        self._count(len(features) * len(others), len(features))

        def compute(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            return checked_values(self._measure.between(rows, columns), (len(rows), len(columns)), self._name)

        return of_varying(self.view, features, others, compute)

    def within(self, features: np.ndarray) -> np.ndarray:
        """Matrix of correlations between a few features (not constant)."""
        self._count(len(features) * (len(features) - 1) // 2, len(features))

        def compute(rows: np.ndarray, _: np.ndarray) -> np.ndarray:
            matrix = checked_values(self._measure.within(rows), (len(rows), len(rows)), self._name)
            check_symmetry(matrix, self._name)
            return matrix

        return of_varying(self.view, features, features, compute)

    def strong(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None) -> Pairs:
        """All pairs of a feature and one of the ``supports`` that reach the threshold, in order, and none that does not."""
        self._count(self.view.n_features * len(supports), self.view.n_features)
        places = np.flatnonzero(self.view.moments.norm[supports] > 0.0)
        feature, position, value = (np.asarray(part) for part in self._measure.strong(supports[places], threshold, exemplar))
        fits = feature.ndim == 1 and feature.shape == position.shape == value.shape
        if not fits or not feature.dtype.kind == position.dtype.kind == "i":
            raise _refusal(self._name, "other than three arrays of one length (features, positions, correlations) in strong()")
        inside = (feature >= 0) & (feature < self.view.n_features) & (position >= 0) & (position < len(places))
        if not inside.all():
            raise _refusal(self._name, "a feature or position in strong() that is none")
        value = checked_values(value[:, None], (len(value), 1), self._name)[:, 0]
        kept = (np.abs(value) >= threshold - ROUNDING) & (self.view.moments.norm[feature] > 0.0)
        order = np.lexsort((position, feature))
        order = order[kept[order]]
        return Pairs(feature[order].astype(np.int64), places[position[order]], value[order])

    def _count(self, n_pairs: int, n_features: int) -> None:
        self._n_evaluated += n_pairs
        self._n_features_read += n_features


def of_varying(
    view: FeatureView, features: np.ndarray, others: np.ndarray, compute: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """A matrix of correlations that is computed for the features that vary, and 0 for those that a fold finds constant."""
    rows, columns = (np.flatnonzero(view.moments.norm[chosen] > 0.0) for chosen in (features, others))
    if len(rows) == len(features) and len(columns) == len(others):
        return compute(features, others)
    result = np.zeros((len(features), len(others)))
    result[np.ix_(rows, columns)] = compute(features[rows], others[columns])
    return result
