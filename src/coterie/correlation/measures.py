"""Measures of correlation by name, and those of users: functions of two blocks of columns, or classes.

A new measure is a class in a file of its own and an entry of :data:`MEASURES` (``docs/development/adding-a-correlation.md``).
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
from coterie.correlation.spearman import SpearmanCorrelation
from coterie.correlation.uncertainty import SymmetricalUncertainty
from coterie.data.source import Columns, Exemplar, for_blocks
from coterie.data.view import FeatureView

# How each is made of a view and the number of bins (for those that have any).
MEASURES: dict[str, Callable[[FeatureView, int], Correlation]] = {
    "pearson": lambda view, n_bins: PearsonCorrelation(view),
    "spearman": lambda view, n_bins: SpearmanCorrelation(view),
    "su": lambda view, n_bins: SymmetricalUncertainty(view, n_bins=n_bins),
}

# What a parameter ``correlation`` may be, where there must be one.
CORRELATION: Rule = OneOf(*MEASURES) | Function()
CORRELATION_OR_NONE: Rule = OneOf(*MEASURES, None) | Function()
# How far beyond 1, or from its mirror image, a correlation may be by rounding.
TOLERANCE = 1e-6
_METHODS = ("between", "within", "strong")
# Values of a block that a function gets: 16 MB; and columns of it.
_MAX_VALUES = 1 << 21
_MAX_COLUMNS = 512

# A function of two blocks of columns that returns their correlations.
PairFunction = Callable[..., ArrayLike]


def measure_of(correlation: Any, view: FeatureView, n_bins: int) -> Correlation:
    """The measure that a parameter ``correlation`` means, on a view.

    It is a name, a function of two blocks of columns (see :class:`FunctionCorrelation`), or a class with the methods of
    :class:`Correlation` that is made of a view; ``n_bins`` is for symmetrical uncertainty.
    """
    if isinstance(correlation, str):
        return MEASURES[correlation](view, n_bins)
    if isinstance(correlation, type):
        return CheckedCorrelation(correlation, view)
    return FunctionCorrelation(view, correlation)


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
    """A measure made of a view by a user's class, whose results are checked; constant features are never passed to it.

    The class has the methods ``between``, ``within`` and ``strong`` of :class:`Correlation`, and perhaps its counters.
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
        step = max(1, min(_MAX_COLUMNS, _MAX_VALUES // self.view.n_samples))
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
    view: FeatureView, function: PairFunction, supports: np.ndarray, columns: list[np.ndarray], threshold: float
) -> Pairs:
    """Strong pairs of the features of a view with some others."""
    first = view.source.first_feature
    found = FunctionCorrelation(view, function).strong_among(supports - first, columns, threshold)
    return found._replace(feature=found.feature + first)


def _takes(function: PairFunction, name: str) -> bool:
    """Whether a function has a parameter of this name; one that does not tell is believed to."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())
