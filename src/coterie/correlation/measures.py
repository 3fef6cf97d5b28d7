"""Correlation measures by name, and user-defined measures: functions of two column blocks, or classes.

A new measure is a class in its own file and an entry of :data:`MEASURES` (``docs/development/adding-a-correlation.md``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coterie._parameters import Function, OneOf, Rule
from coterie.correlation.pearson import PearsonCorrelation
from coterie.correlation.protocol import ROUNDING, Correlation, Pairs
from coterie.data.source import Columns, Exemplar, for_blocks
from coterie.data.view import FeatureView


def _spearman(view: FeatureView, n_bins: int) -> Correlation:
    from coterie.correlation.spearman import SpearmanCorrelation

    return SpearmanCorrelation(view)


def _uncertainty(view: FeatureView, n_bins: int) -> Correlation:
    from coterie.correlation.uncertainty import SymmetricalUncertainty

    return SymmetricalUncertainty(view, n_bins=n_bins)


# Constructors from a view and the number of bins, which only binned measures use. A measure is imported when it is used.
MEASURES: dict[str, Callable[[FeatureView, int], Correlation]] = {
    "pearson": lambda view, n_bins: PearsonCorrelation(view),
    "spearman": _spearman,
    "su": _uncertainty,
}

# Rules for parameters ``correlation``, without and with None.
CORRELATION: Rule = OneOf(*MEASURES) | Function()
CORRELATION_OR_NONE: Rule = OneOf(*MEASURES, None) | Function()
# Tolerance for rounding beyond 1, and between the two values of a pair.
TOLERANCE = 1e-6
_METHODS = ("between", "within", "strong")
# Limits of a block that is passed to a function: values (16 MB) and columns.
_MAX_VALUES = 1 << 21
_MAX_COLUMNS = 512

# A function of two column blocks that returns their correlations.
PairFunction = Callable[..., ArrayLike]


def measure_of(correlation: Any, view: FeatureView, n_bins: int) -> Correlation:
    """Return the measure for the value of a parameter ``correlation``, on a view.

    The value is a name, a function of two column blocks (see :class:`FunctionCorrelation`), or a class with the methods of
    :class:`Correlation`, which is constructed from a view. ``n_bins`` is used by symmetrical uncertainty.
    """
    if isinstance(correlation, str):
        return MEASURES[correlation](view, n_bins)
    if isinstance(correlation, type):
        return CheckedCorrelation(correlation, view)
    return FunctionCorrelation(view, correlation)


def checked_values(values: Any, shape: tuple[int, int], name: str) -> np.ndarray:
    """Return a matrix of correlations as float64, clipped to [-1, 1]. Raise a ``ValueError`` if it is invalid."""
    try:
        matrix = np.asarray(values)
        matrix = matrix.astype(np.float64) if matrix.dtype.kind in "biuf" else matrix
    except ValueError:  # Rows have different lengths.
        matrix = np.empty(0, dtype=object)
    if matrix.dtype != np.float64:
        raise _invalid_result(name, "a result that is not an array of real numbers")
    if matrix.shape != shape:
        raise _invalid_result(name, f"an array of shape {matrix.shape} for {shape[0]} and {shape[1]} features")
    if not np.isfinite(matrix).all():
        raise _invalid_result(name, "NaN or infinite values")
    largest = float(np.abs(matrix).max(initial=0.0))
    if largest > 1.0 + TOLERANCE:
        raise _invalid_result(name, f"the value {matrix.flat[np.abs(matrix).argmax()]:.6g}")
    return np.clip(matrix, -1.0, 1.0)


def check_symmetry(matrix: np.ndarray, name: str) -> None:
    """Raise a ``ValueError`` unless a matrix with the same features in rows and columns is symmetric."""
    if np.abs(matrix - matrix.T).max(initial=0.0) > TOLERANCE:
        raise _invalid_result(name, "different values for a pair of features in the two orders")


def _invalid_result(name: str, what: str) -> ValueError:
    return ValueError(
        f"correlation={name} returned {what}. It must return the matrix of correlations of the first features (rows) with "
        "the second (columns), symmetric, finite and in [-1, 1]."
    )


class CheckedCorrelation:
    """A measure of a user-defined class, whose results are checked. Constant features are never passed to it.

    The class has the methods ``between``, ``within`` and ``strong`` of :class:`Correlation`. Its counters are optional.
    """

    def __init__(self, kind: type, view: FeatureView) -> None:
        missing = [method for method in _METHODS if not callable(getattr(kind, method, None))]
        if missing:
            raise ValueError(
                f"correlation={kind.__name__} is a class without the method {missing[0]!r}. It must define "
                f"{', '.join(_METHODS)} as in coterie.correlation.Correlation."
            )
        self.view = view
        self._measure: Any = kind(view)
        self._name = kind.__name__
        self._n_evaluated = 0
        self._n_features_read = 0

    @property
    def n_evaluated(self) -> int:
        """Number of pairs computed so far, or requested so far if the measure has no counter."""
        return int(getattr(self._measure, "n_evaluated", self._n_evaluated))

    @property
    def n_features_read(self) -> int:
        """Number of features read so far."""
        return int(getattr(self._measure, "n_features_read", self._n_features_read))

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the matrix of correlations of some features with some others."""
        self._count(len(features) * len(others), len(features))

        def compute(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            return checked_values(self._measure.between(rows, columns), (len(rows), len(columns)), self._name)

        return of_varying(self.view, features, others, compute)

    def within(self, features: np.ndarray) -> np.ndarray:
        """Return the matrix of correlations between a few features."""
        self._count(len(features) * (len(features) - 1) // 2, len(features))

        def compute(rows: np.ndarray, _: np.ndarray) -> np.ndarray:
            matrix = checked_values(self._measure.within(rows), (len(rows), len(rows)), self._name)
            check_symmetry(matrix, self._name)
            return matrix

        return of_varying(self.view, features, features, compute)

    def strong(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None) -> Pairs:
        """Return all pairs of a feature and one of ``supports`` that reach the threshold, in order."""
        self._count(self.view.n_features * len(supports), self.view.n_features)
        positions = np.flatnonzero(self.view.moments.norm[supports] > 0.0)
        feature, position, value = (
            np.asarray(part) for part in self._measure.strong(supports[positions], threshold, exemplar)
        )
        fits = feature.ndim == 1 and feature.shape == position.shape == value.shape
        if not fits or not feature.dtype.kind == position.dtype.kind == "i":
            raise _invalid_result(
                self._name, "other than three arrays of equal length (features, positions, correlations) from strong()"
            )
        inside = (feature >= 0) & (feature < self.view.n_features) & (position >= 0) & (position < len(positions))
        if not inside.all():
            raise _invalid_result(self._name, "a feature or position out of range from strong()")
        value = checked_values(value[:, None], (len(value), 1), self._name)[:, 0]
        kept = (np.abs(value) >= threshold - ROUNDING) & (self.view.moments.norm[feature] > 0.0)
        order = np.lexsort((position, feature))
        order = order[kept[order]]
        return Pairs(feature[order].astype(np.int64), positions[position[order]], value[order])

    def _count(self, n_pairs: int, n_features: int) -> None:
        self._n_evaluated += n_pairs
        self._n_features_read += n_features


def of_varying(
    view: FeatureView, features: np.ndarray, others: np.ndarray, compute: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return the matrix of correlations of two lists of features, 0 for features that are constant in the view."""
    rows, columns = (np.flatnonzero(view.moments.norm[chosen] > 0.0) for chosen in (features, others))
    if len(rows) == len(features) and len(columns) == len(others):
        return compute(features, others)
    result = np.zeros((len(features), len(others)))
    result[np.ix_(rows, columns)] = compute(features[rows], others[columns])
    return result


class FunctionCorrelation:
    """Correlations computed by a function of dense column blocks.

    Parameters
    ----------
    view : FeatureView
        The features. They are passed in blocks, as dense float64 arrays even if the data are sparse.
    function : callable
        ``function(columns, others)`` with arrays of shape (n_samples, k) and (n_samples, l) returns the correlations of shape
        (k, l), in [-1, 1]. The value of a pair must not depend on the order of its features. Columns are never constant.
        Samples of weight zero (those outside a fold) are removed. If the weights of the others differ, they are passed as
        ``sample_weight=``. The function must not modify the arrays, and may be called from ``n_jobs`` threads concurrently.

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

    def __init__(self, view: FeatureView, function: PairFunction) -> None:
        self.view = view
        self.function = function
        self.name = str(getattr(function, "__name__", None) or type(function).__name__)
        self.n_evaluated = 0
        self.n_features_read = 0
        self._used, self._options = self._weights(view.sample_weight)

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the matrix of correlations of some features with some others."""
        self.n_evaluated += len(features) * len(others)
        return of_varying(self.view, features, others, self._matrix)

    def within(self, features: np.ndarray) -> np.ndarray:
        """Return the matrix of correlations between a few features."""
        self.n_evaluated += len(features) * (len(features) - 1) // 2
        matrix = of_varying(self.view, features, features, self._matrix)
        check_symmetry(matrix, self.name)
        return matrix

    def strong(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None) -> Pairs:
        """Return all pairs of a feature and one of ``supports`` that reach the threshold. Every pair is computed."""
        positions = np.flatnonzero(self.view.moments.norm[supports] > 0.0)
        supports = supports[positions]
        columns = [self._columns(some) for some in self._pieces(supports)]
        parts = self.view.map_blocks(_strong_pairs, self.function, supports, columns, threshold)
        self.n_evaluated += self.view.moments.n_varying * len(supports)
        self.n_features_read += self.view.moments.n_varying
        feature, position, value = (np.concatenate([part[i] for part in parts]) for i in range(3))
        return Pairs(feature, positions[position], value)

    def strong_among(self, supports: np.ndarray, columns: list[np.ndarray], threshold: float) -> Pairs:
        """Return all strong pairs of the view's features with ``supports``, given by index in the view and by columns.

        The indices of support features that are not in the view are out of range.
        """
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
        """Return the strong pairs of the features of a block."""
        own = self._dense(block)
        matrix = np.hstack([np.empty((len(features), 0)), *(self._call(own, others) for others in columns)])
        _, row, column = np.intersect1d(features, supports, assume_unique=True, return_indices=True)
        check_symmetry(matrix[np.ix_(row, column)], self.name)
        matrix[row, column] = 1.0
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
        """Return pieces of the features whose columns are passed together."""
        step = max(1, min(_MAX_COLUMNS, _MAX_VALUES // self.view.n_samples))
        return (features[first : first + step] for first in range(0, len(features), step))

    def _columns(self, features: np.ndarray) -> np.ndarray:
        return self._dense(self.view.columns(features))

    def _dense(self, columns: Columns) -> np.ndarray:
        """Return columns as they are passed to the function."""
        dense = columns if isinstance(columns, np.ndarray) else columns.toarray(order="F")
        dense = np.asarray(dense if self._used is None else dense[self._used], dtype=np.float64, order="F")
        dense.flags.writeable = False
        return dense

    def _call(self, columns: np.ndarray, others: np.ndarray) -> np.ndarray:
        values = self.function(columns, others, **self._options)
        return checked_values(values, (columns.shape[1], others.shape[1]), self.name)

    def _weights(self, weight: np.ndarray | None) -> tuple[np.ndarray | None, dict[str, Any]]:
        """Return the samples of nonzero weight (None: all), and the weights as an option of the function if they differ."""
        if weight is None:
            return None, {}
        used = np.flatnonzero(weight > 0.0)
        own = np.asarray(weight[used], dtype=np.float64)
        options: dict[str, Any] = {} if len(own) == 0 or own.min() == own.max() else {"sample_weight": own}
        if options and not _accepts(self.function, "sample_weight"):
            raise ValueError(
                f"The samples have different weights, but correlation={self.name} has no parameter sample_weight. Add this "
                "parameter, or omit sample_weight and class_weight."
            )
        return used if len(used) < len(weight) else None, options


def _strong_pairs(
    view: FeatureView, function: PairFunction, supports: np.ndarray, columns: list[np.ndarray], threshold: float
) -> Pairs:
    """Return the strong pairs of the features of a view with ``supports``."""
    first = view.source.first_feature
    found = FunctionCorrelation(view, function).strong_among(supports - first, columns, threshold)
    return found._replace(feature=found.feature + first)


def _accepts(function: PairFunction, name: str) -> bool:
    """Return True if a function accepts a parameter of this name, or if its signature is unknown."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    return name in parameters or any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
