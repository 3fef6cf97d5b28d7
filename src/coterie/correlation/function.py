"""A function of two blocks of columns as a measure of correlation (``docs/development/adding-a-correlation.md``)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from coterie.correlation.checks import check_symmetry, checked_values, of_varying
from coterie.correlation.protocol import ROUNDING, Pairs
from coterie.data.source import Columns, Exemplar, for_blocks
from coterie.data.view import FeatureView

# Values of a block that a function gets: 16 MB; and columns of it.
_MOST_VALUES = 1 << 21
_MOST_COLUMNS = 512

Function = Callable[..., Any]


class FunctionCorrelation:
    """Correlations by a function of dense blocks of columns.

    Parameters
    ----------
    view : FeatureView
        The features. They are handed over block by block, as float64, and dense ones of sparse data, too.
    function : callable
        ``function(columns, others)`` with arrays of shape (n_samples, k) and (n_samples, l) returns the correlations of shape
        (k, l), in [-1, 1], the same for a pair in either order. Columns are never constant. Samples of weight zero (those
        outside of a fold) are left out; where the weights of the others differ, they come as ``sample_weight=``. It must not
        change the arrays, and may be called from ``n_jobs`` threads at a time.

    Attributes
    ----------
    n_evaluated : int
        Pairs whose correlation was computed.
    n_features_read : int
        Features that were read for it.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.correlation import FunctionCorrelation
    >>> from coterie.data import FeatureView, as_source
    >>> def sign_agreement(columns, others):
    ...     return np.sign(columns).T @ np.sign(others) / len(columns)
    >>> X = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, 3.0], [-2.0, -1.0]])
    >>> FunctionCorrelation(FeatureView.of(as_source(X)), sign_agreement).within(np.array([0, 1]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    def __init__(self, view: FeatureView, function: Function) -> None:
        self.view = view
        self.function = function
        self.name = str(getattr(function, "__name__", None) or type(function).__name__)
        self.n_evaluated = 0
        self.n_features_read = 0
        self._used, self._options = self._weights(view.sample_weight)

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Matrix of correlations of some features (not constant) with some others."""
        self.n_evaluated += len(features) * len(others)
        return of_varying(self.view, features, others, self._matrix)

    def within(self, features: np.ndarray) -> np.ndarray:
        """Matrix of correlations between a few features (not constant)."""
        self.n_evaluated += len(features) * (len(features) - 1) // 2
        matrix = of_varying(self.view, features, features, self._matrix)
        check_symmetry(matrix, self.name)
        return matrix

    def strong(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None) -> Pairs:
        """All pairs of a feature and one of the ``supports`` that reach the threshold: every pair is computed."""
        places = np.flatnonzero(self.view.moments.norm[supports] > 0.0)
        supports = supports[places]
        columns = [self._columns(some) for some in self._pieces(supports)]
        parts = self.view.map_blocks(_strong_pairs, self.function, supports, columns, threshold)
        self.n_evaluated += self.view.moments.n_varying * len(supports)
        self.n_features_read += self.view.moments.n_varying
        feature, position, value = (np.concatenate([part[i] for part in parts]) for i in range(3))
        return Pairs(feature, places[position], value)

    def strong_among(self, supports: np.ndarray, columns: list[np.ndarray], threshold: float) -> Pairs:
        """All strong pairs of the view's features with others, given by their numbers here (if they are) and columns."""
        varying = self.view.moments.norm > 0.0
        parts: dict[int, Pairs] = {}

        def search(first: int, block: Columns) -> None:
            own = first + np.flatnonzero(varying[first : first + block.shape[1]])
            for features in self._pieces(own):
                if len(features):
                    parts[int(features[0])] = self._strong(block[:, features - first], features, supports, columns, threshold)

        for_blocks(self.view.source, search, self.view.n_threads)
        empty = Pairs(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
        found = [parts[first] for first in sorted(parts)] or [empty]
        return Pairs(*(np.concatenate([part[i] for part in found]) for i in range(3)))

    def _strong(
        self, block: Columns, features: np.ndarray, supports: np.ndarray, columns: list[np.ndarray], threshold: float
    ) -> Pairs:
        """The strong pairs of the features of a block."""
        own = self._dense(block)
        matrix = np.hstack([np.empty((len(features), 0)), *(self._call(own, others) for others in columns)])
        _, mine, place = np.intersect1d(features, supports, assume_unique=True, return_indices=True)
        check_symmetry(matrix[np.ix_(mine, place)], self.name)
        matrix[mine, place] = 1.0
        row, position = np.nonzero(np.abs(matrix) >= threshold - ROUNDING)
        return Pairs(features[row], position, matrix[row, position])

    def _matrix(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        self.n_features_read += len(features)
        result = np.empty((len(features), len(others)))
        top = 0
        for some in self._pieces(features):
            own, left = self._columns(some), 0
            for rest in self._pieces(others):
                result[top : top + len(some), left : left + len(rest)] = self._call(own, self._columns(rest))
                left += len(rest)
            top += len(some)
        return result

    def _pieces(self, features: np.ndarray) -> Iterator[np.ndarray]:
        """Features whose columns are handed over together."""
        step = max(1, min(_MOST_COLUMNS, _MOST_VALUES // self.view.n_samples))
        return (features[first : first + step] for first in range(0, len(features), step))

    def _columns(self, features: np.ndarray) -> np.ndarray:
        return self._dense(self.view.columns(features))

    def _dense(self, columns: Columns) -> np.ndarray:
        """Columns as a function gets them."""
        dense = columns if isinstance(columns, np.ndarray) else columns.toarray(order="F")
        dense = np.asarray(dense if self._used is None else dense[self._used], dtype=np.float64, order="F")
        dense.flags.writeable = False
        return dense

    def _call(self, columns: np.ndarray, others: np.ndarray) -> np.ndarray:
        values = self.function(columns, others, **self._options)
        return checked_values(values, (columns.shape[1], others.shape[1]), self.name)

    def _weights(self, weight: np.ndarray | None) -> tuple[np.ndarray | None, dict[str, Any]]:
        """The samples that count (None: all), and the weights as an option of the function, where they differ."""
        if weight is None:
            return None, {}
        used = np.flatnonzero(weight > 0.0)
        own = np.asarray(weight[used], dtype=np.float64)
        options: dict[str, Any] = {} if len(own) == 0 or own.min() == own.max() else {"sample_weight": own}
        if options and not _takes(self.function, "sample_weight"):
            raise ValueError(
                f"The samples have different weights, and correlation={self.name} takes none: give it a parameter "
                "sample_weight, or leave out sample_weight and class_weight."
            )
        return used if len(used) < len(weight) else None, options


def _strong_pairs(
    view: FeatureView, function: Function, supports: np.ndarray, columns: list[np.ndarray], threshold: float
) -> Pairs:
    """Strong pairs of the features of a view with some others."""
    first = view.source.first_feature
    found = FunctionCorrelation(view, function).strong_among(supports - first, columns, threshold)
    return found._replace(feature=found.feature + first)


def _takes(function: Function, name: str) -> bool:
    """Whether a function has a parameter of this name; one that does not tell is believed to."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())
