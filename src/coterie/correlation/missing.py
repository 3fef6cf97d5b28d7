r"""Correlations of columns with missing values: of each pair over the samples in which both are known.

Pearson's coefficient of all pairs of two blocks comes from six products of matrices: with zeros in place of what is not known
and M for what is, :math:`n = M'M`, :math:`s = X'M`, :math:`q = (X^2)'M` and :math:`X'X` tell all weights, sums and squares
over the common samples. Columns are taken about their means first; pairs whose variation over the common samples is small
beside what is left are computed again, in two passes. Spearman's coefficient of columns with holes goes pair by pair,
because every pair has its own ranks.

Over fewer than three samples a correlation says nothing (over two it is 1 or -1, always) and is 0 here, as it is where one of
the two is constant over the common samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer

from coterie._numba import read_only
from coterie.correlation.measures import FunctionCorrelation
from coterie.data.memory import as_source
from coterie.data.source import LARGEST_NORM, SMALLEST_NORM, Columns, FeatureSource, Moments, for_blocks
from coterie.data.view import FeatureView
from coterie.kernels import correlation as kernels
from coterie.kernels.filters import dense_ranks

MIN_SAMPLES = 3
# A share of the squares that variation must have; below it the differences of large sums have lost too many digits.
_SMALL = 1e-3


def pairwise_pearson(columns: np.ndarray, others: np.ndarray, sample_weight: np.ndarray | None = None) -> np.ndarray:
    """Pearson's coefficients of two blocks of columns with NaN for what is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.correlation.missing import pairwise_pearson
    >>> a = np.array([[1.0], [2.0], [np.nan], [3.0], [5.0]])
    >>> b = np.array([[2.0], [4.0], [9.0], [6.0], [np.nan]])
    >>> pairwise_pearson(a, b)
    array([[1.]])
    """
    weight = np.ones(len(columns)) if sample_weight is None else sample_weight
    x, known = _centred(columns, weight)
    y, others_known = (x, known) if others is columns else _centred(others, weight)
    wx, w_known = weight[:, None] * x, weight[:, None] * known
    mass = w_known.T @ others_known
    count = (known * (weight > 0.0)[:, None]).T @ others_known
    with np.errstate(divide="ignore", invalid="ignore"):
        sum_x, sum_y = wx.T @ others_known, w_known.T @ y
        square_x, square_y = (wx * x).T @ others_known, w_known.T @ y**2
        left_x, left_y = square_x - sum_x**2 / mass, square_y - sum_y**2 / mass
        result = (wx.T @ y - sum_x * sum_y / mass) / np.sqrt(left_x * left_y)
    doubtful = (count >= MIN_SAMPLES) & ~((left_x > _SMALL * square_x) & (left_y > _SMALL * square_y) & np.isfinite(result))
    result[count < MIN_SAMPLES] = 0.0
    first, second = np.nonzero(doubtful)
    if len(first):
        again = np.empty(len(first))
        kernels.common_pearson(_rows(columns), _rows(others), first, second, read_only(weight), MIN_SAMPLES, again)
        result[first, second] = again
    return np.clip(result, -1.0, 1.0)


def pairwise_spearman(columns: np.ndarray, others: np.ndarray, sample_weight: np.ndarray | None = None) -> np.ndarray:
    """Spearman's coefficients of two blocks of columns with NaN for what is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.correlation.missing import pairwise_spearman
    >>> a = np.array([[1.0], [2.0], [np.nan], [3.0], [5.0]])
    >>> b = np.array([[2.0], [40.0], [9.0], [600.0], [np.nan]])
    >>> pairwise_spearman(a, b)
    array([[1.]])
    """
    weight = read_only(np.ones(len(columns)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64))
    rows, other_rows = _rows(columns), _rows(others)
    order, other_order = (read_only(np.argsort(own, axis=1)) for own in (rows, other_rows))  # NaN are last
    whole, others_whole = (np.flatnonzero(~np.isnan(own).any(axis=1)) for own in (rows, other_rows))
    result = np.empty((len(rows), len(other_rows)))
    todo = np.ones(result.shape, dtype=bool)
    if len(whole) and len(others_whole) and np.count_nonzero(weight) >= MIN_SAMPLES:
        ranks, other_ranks = (
            _unit_ranks(own[places], sorting[places], weight)
            for own, sorting, places in ((rows, order, whole), (other_rows, other_order, others_whole))
        )
        result[np.ix_(whole, others_whole)] = (ranks * weight) @ other_ranks.T
        todo[np.ix_(whole, others_whole)] = False
    first, second = np.nonzero(todo)
    values = np.empty(len(first))
    kernels.common_spearman(rows, order, other_rows, other_order, first, second, weight, MIN_SAMPLES, values)
    result[first, second] = values
    return np.clip(result, -1.0, 1.0)


_FUNCTIONS = {"pearson": pairwise_pearson, "spearman": pairwise_spearman}


def pairwise_measure(correlation: Any, view: FeatureView) -> FunctionCorrelation:
    """The measure of this name over the samples in which both features are known."""
    if not isinstance(correlation, str) or correlation not in _FUNCTIONS:
        raise ValueError(
            "missing_values='ignore' is for correlation='pearson' and 'spearman', which are defined for what is known of a "
            "pair. Impute for other measures: missing_values='median'."
        )
    return FunctionCorrelation(view, _FUNCTIONS[correlation])


def view_of_known(source: FeatureSource, weight: np.ndarray | None, n_threads: int) -> FeatureView | None:
    """A view whose moments are those of the known values; None where all are known. Infinite values are refused."""
    n_samples, n_features = source.shape
    weights = np.ones(n_samples) if weight is None else weight
    mean, scale = np.zeros(n_features), np.zeros(n_features)
    holes, infinite = np.zeros(n_features, dtype=np.int64), np.zeros(n_features, dtype=np.int64)

    def look(first: int, columns: Columns) -> None:
        own = slice(first, first + columns.shape[1])
        values = _dense(columns)
        known = ~np.isnan(values)
        holes[own], infinite[own] = (~known).sum(axis=0), np.isinf(values).sum(axis=0)
        with np.errstate(invalid="ignore", over="ignore"):
            x, known_here = _centred(values, weights)
            mass = np.maximum(weights @ known_here, np.finfo(float).tiny)
            mean[own] = np.where(known, weights[:, None] * values, 0.0).sum(axis=0) / mass
            scale[own] = np.sqrt(weights @ x**2 / mass)
            largest = np.abs(np.where(known, values, 0.0)).max(axis=0)
        enough = ((weights[:, None] > 0) & known).sum(axis=0) >= MIN_SAMPLES
        varies = enough & (scale[own] > 1e-14 * largest)
        scale[own] = np.where(varies, scale[own], 0.0)

    for_blocks(source, look, n_threads)
    names = source.feature_names

    def place(feature: int) -> str:
        return f"feature {feature}" + (f" ({names[feature]!r})" if names is not None else "")

    if infinite.any():
        raise ValueError(
            f"Input X contains {int(infinite.sum())} infinite value(s), first in {place(int(np.argmax(infinite > 0)))}."
        )
    if not holes.any():
        return None
    total = float(weights.sum())
    norm = scale * np.sqrt(total)
    if norm.max(initial=0.0) > LARGEST_NORM:
        raise ValueError(f"The values of {place(int(np.argmax(norm)))} are too large to compute with. Rescale the feature.")
    norm[norm < SMALLEST_NORM] = 0.0
    return FeatureView(source, Moments(mean, norm, total), weight, n_threads=n_threads)


def imputed(source: FeatureSource, strategy: str) -> FeatureSource:
    """The features with every missing value replaced by the mean, median or most frequent value of its column."""
    columns = source.columns(np.arange(source.shape[1]))
    if columns.dtype.kind != "f" or not np.isnan(columns if isinstance(columns, np.ndarray) else columns.data).any():
        return source
    filled = SimpleImputer(strategy=strategy, keep_empty_features=True).fit_transform(columns)
    return as_source(filled, source.feature_names)


class KnownContent:
    """What :mod:`coterie.order` wants of a source, for columns with holes: a content that the holes are a part of."""

    def __init__(self, view: FeatureView) -> None:
        self.shape = view.source.shape
        self.feature_names = view.source.feature_names
        self._view = view

    def products(self, vectors: np.ndarray, *, features: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """Products of some columns with vectors: holes count as values of their own, half a deviation above the mean."""
        result = np.empty((len(features), vectors.shape[1]))
        fill = self._view.moments.mean + 0.5 * self._view.moments.scale
        for first in range(0, len(features), 512):
            some = features[first : first + 512]
            values = _dense(self._view.columns(some))
            result[first : first + len(some)] = np.where(np.isnan(values), fill[some], values).T @ vectors
        return result


def _centred(columns: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns about the means of what is known, 0 for what is not; and 1 for what is known, 0 for what is not."""
    known = ~np.isnan(columns)
    mass = np.maximum(weight @ known, np.finfo(float).tiny)
    mean = weight @ np.where(known, columns, 0.0) / mass
    return np.where(known, columns - mean, 0.0), known.astype(np.float64)


def _unit_ranks(rows: np.ndarray, order: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Ranks of columns without holes, about their mean, over their norms; 0 for constant ones."""
    ranks, norm = np.empty(rows.shape), np.empty(len(rows))
    dense_ranks(read_only(rows), read_only(order), weight, float(weight.sum()), ranks, norm)
    return np.divide(ranks, norm[:, None], out=np.zeros_like(ranks), where=norm[:, None] > 0.0)


def _rows(columns: np.ndarray) -> np.ndarray:
    return read_only(np.ascontiguousarray(columns.T))


def _dense(columns: Columns) -> np.ndarray:
    return np.asarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), dtype=np.float64)
