"""Features whose missing values are filled, and that remember which these were, so that folds can fill them anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coterie.data.memory import DenseSource


def _most_frequent(values: np.ndarray) -> float:
    different, counts = np.unique(values, return_counts=True)
    return float(different[np.argmax(counts)])


_STATISTICS: dict[str, Callable[[np.ndarray], float]] = {"median": np.median, "mean": np.mean, "most_frequent": _most_frequent}
STRATEGIES = tuple(_STATISTICS)


class ImputedSource(DenseSource):
    """Dense features with their missing values (NaN) filled by the median, mean or most frequent value of each feature.

    A model that is scored on held-out samples must not have seen them, not even in a median. So the source keeps the places
    of the gaps, and :meth:`refilled` fills them from some of the samples alone.

    Parameters
    ----------
    array : ndarray of shape (n_samples, n_features)
        Features, NaN where a value is missing. It is copied if there is any.
    strategy : {"median", "mean", "most_frequent"}
        What a gap is filled with. Of equally frequent values the smallest one.
    feature_names : sequence of str, optional
        One name a feature.

    Attributes
    ----------
    strategy : str
        As given.
    fill_values : ndarray of shape (n_features,)
        What gaps are filled with, for features without any as well: new samples may have some.
    gaps : tuple of ndarray
        Samples and features of the missing values, feature by feature.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data import ImputedSource
    >>> source = ImputedSource(np.array([[1.0, 5.0], [3.0, np.nan], [8.0, 6.0]]), "mean")
    >>> source.array[:, 1], source.refilled(np.array([True, True, False])).array[:, 1]
    (array([5. , 5.5, 6. ]), array([5., 5., 6.]))
    """

    def __init__(self, array: np.ndarray, strategy: str, feature_names: Sequence[str] | None = None) -> None:
        if strategy not in STRATEGIES:
            raise ValueError(f"impute={strategy!r} must be one of {', '.join(STRATEGIES)}.")
        self.strategy = strategy
        self.gaps = _gaps_of(array)
        n_samples, n_features = array.shape
        counts = np.bincount(self.gaps[1], minlength=n_features)
        if len(empty := np.flatnonzero(counts == n_samples)):
            name = int(empty[0]) if feature_names is None else str(feature_names[int(empty[0])])
            raise ValueError(f"Feature {name!r} has no value at all ({len(empty)} such feature(s)); leave it out.")
        self.fill_values = _statistics(array, range(n_features), strategy)
        super().__init__(_filled(array, self.gaps, self.fill_values), feature_names)

    @property
    def n_missing(self) -> np.ndarray:
        return np.bincount(self.gaps[1], minlength=self.shape[1])

    def refilled(self, samples: np.ndarray) -> DenseSource:
        """The same features with gaps filled from some samples (indices or a mask); 0 where these have no value."""
        if not len(self.gaps[0]):
            return self
        rows, columns = self.gaps
        features, places = np.unique(columns, return_inverse=True)
        some = np.array(self.array[:, features], dtype=np.float64, order="F")
        some[rows, places] = np.nan
        values = np.zeros(self.shape[1])
        values[features] = np.nan_to_num(_statistics(some[samples], range(len(features)), self.strategy))
        return DenseSource(_filled(self.array, self.gaps, values), self.feature_names)


def _gaps_of(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if array.dtype.kind != "f":
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    columns, rows = np.nonzero(np.isnan(array).T)
    return rows, columns


def _filled(array: np.ndarray, gaps: tuple[np.ndarray, np.ndarray], values: np.ndarray) -> np.ndarray:
    if not len(gaps[0]):
        return array
    result = np.array(array, order="K")
    result[gaps] = values[gaps[1]]
    return result


def _statistics(array: np.ndarray, features: Sequence[int], strategy: str) -> np.ndarray:
    """The value of each feature that stands for those missing; NaN for a feature without any."""
    values = np.full(len(features), np.nan)
    for place, feature in enumerate(features):
        column = np.asarray(array[:, feature], dtype=np.float64)
        known = column[~np.isnan(column)]
        if len(known):
            with np.errstate(all="ignore"):  # infinite values are refused when they are computed with
                values[place] = _STATISTICS[strategy](known)
    # As the features hold it: new samples in another type are filled with the same number.
    return values.astype(array.dtype).astype(np.float64) if array.dtype.kind == "f" else values
