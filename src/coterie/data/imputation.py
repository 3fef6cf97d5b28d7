"""Dense features with imputed values and their positions, so that folds can impute from their own samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coterie.data.memory import DenseSource
from coterie.data.source import annotated


def _most_frequent(values: np.ndarray) -> float:
    distinct, counts = np.unique(values, return_counts=True)
    return float(distinct[np.argmax(counts)])


_STATISTICS: dict[str, Callable[[np.ndarray], float]] = {"median": np.median, "mean": np.mean, "most_frequent": _most_frequent}
STRATEGIES = tuple(_STATISTICS)


class ImputedSource(DenseSource):
    """Dense features whose missing values (NaN) are replaced by each feature's median, mean or most frequent value.

    Held-out samples must not influence a model through the imputed values. The source therefore keeps the positions of the
    missing values, and :meth:`refilled` imputes them from a subset of the samples.

    Parameters
    ----------
    array : ndarray of shape (n_samples, n_features)
        Features, with NaN for missing values. Copied if a value is missing.
    strategy : {"median", "mean", "most_frequent"}
        Statistic that replaces missing values. Of equally frequent values, the smallest is used.
    feature_names : sequence of str, optional
        One name per feature.

    Attributes
    ----------
    strategy : str
        As given.
    fill_values : ndarray of shape (n_features,)
        Replacement value per feature, also for features without missing values: new samples may have some.
    gaps : tuple of ndarray
        Sample and feature indices of the missing values, ordered by feature.

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
        self.gaps = _missing_positions(array)
        n_samples, n_features = array.shape
        counts = np.bincount(self.gaps[1], minlength=n_features)
        if len(empty := np.flatnonzero(counts == n_samples)):
            name = int(empty[0]) if feature_names is None else str(feature_names[int(empty[0])])
            raise ValueError(f"All values of feature {name!r} are missing ({len(empty)} such feature(s)). Drop it.")
        self.fill_values = _statistics(array, range(n_features), strategy)
        super().__init__(_filled(array, self.gaps, self.fill_values), feature_names)

    @property
    def n_missing(self) -> np.ndarray:
        return np.bincount(self.gaps[1], minlength=self.shape[1])

    def with_gaps(self) -> np.ndarray:
        """Return the features with NaN for missing values."""
        return _filled(self.array, self.gaps, np.full(self.shape[1], np.nan))

    def refilled(self, samples: np.ndarray) -> DenseSource:
        """Return the features imputed from some samples (indices or a mask); 0 if these have no value."""
        if not len(self.gaps[0]):
            return self
        rows, columns = self.gaps
        features, positions = np.unique(columns, return_inverse=True)
        incomplete = np.array(self.array[:, features], dtype=np.float64, order="F")
        incomplete[rows, positions] = np.nan
        values = np.zeros(self.shape[1])
        values[features] = np.nan_to_num(_statistics(incomplete[samples], range(len(features)), self.strategy))
        return annotated(DenseSource(_filled(self.array, self.gaps, values), self.feature_names), self.annotations)


def _missing_positions(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
    """Return the replacement value of each feature; NaN for a feature without values."""
    values = np.full(len(features), np.nan)
    for place, feature in enumerate(features):
        column = np.asarray(array[:, feature], dtype=np.float64)
        known = column[~np.isnan(column)]
        if len(known):
            with np.errstate(all="ignore"):  # infinite values are rejected later, by the moments
                values[place] = _STATISTICS[strategy](known)
    # Round to the type of the features, so that new samples of another type are filled with the same number.
    return values.astype(array.dtype).astype(np.float64) if array.dtype.kind == "f" else values
