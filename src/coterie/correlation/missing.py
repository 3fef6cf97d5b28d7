r"""Correlations of columns with missing values: each pair over the samples in which both values are known.

Pearson's coefficients of all pairs of two blocks are computed from six matrix products. With zeros in place of missing values
and the mask M of known values, :math:`n = M'M`, :math:`s = X'M`, :math:`q = (X^2)'M` and :math:`X'X` contain all weights, sums
and squares over the common samples. Columns are centred first. Pairs whose variation over the common samples is small relative
to the remaining squares are recomputed in two passes. Spearman's coefficients of columns with missing values are computed pair
by pair, because every pair has its own ranks.

A correlation over fewer than three samples is not informative (over two it is always 1 or -1) and is defined as 0. It is also
0 if one of the two features is constant over the common samples.
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
# Smallest share of variation in the sum of squares. Below it, the difference of large sums has lost too many digits.
_MIN_VARIATION = 1e-3


def pairwise_pearson(columns: np.ndarray, others: np.ndarray, sample_weight: np.ndarray | None = None) -> np.ndarray:
    """Return Pearson's coefficients of two column blocks with NaN for missing values.

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
    inaccurate = (count >= MIN_SAMPLES) & ~(
        (left_x > _MIN_VARIATION * square_x) & (left_y > _MIN_VARIATION * square_y) & np.isfinite(result)
    )
    result[count < MIN_SAMPLES] = 0.0
    first, second = np.nonzero(inaccurate)
    if len(first):
        recomputed = np.empty(len(first))
        kernels.common_pearson(_rows(columns), _rows(others), first, second, read_only(weight), MIN_SAMPLES, recomputed)
        result[first, second] = recomputed
    return np.clip(result, -1.0, 1.0)


def pairwise_spearman(columns: np.ndarray, others: np.ndarray, sample_weight: np.ndarray | None = None) -> np.ndarray:
    """Return Spearman's coefficients of two column blocks with NaN for missing values.

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
    order, other_order = (read_only(np.argsort(own, axis=1)) for own in (rows, other_rows))  # NaN is sorted last.
    complete, others_complete = (np.flatnonzero(~np.isnan(own).any(axis=1)) for own in (rows, other_rows))
    result = np.empty((len(rows), len(other_rows)))
    todo = np.ones(result.shape, dtype=bool)
    if len(complete) and len(others_complete) and np.count_nonzero(weight) >= MIN_SAMPLES:
        ranks, other_ranks = (
            _unit_ranks(own[chosen], sorting[chosen], weight)
            for own, sorting, chosen in ((rows, order, complete), (other_rows, other_order, others_complete))
        )
        result[np.ix_(complete, others_complete)] = (ranks * weight) @ other_ranks.T
        todo[np.ix_(complete, others_complete)] = False
    first, second = np.nonzero(todo)
    values = np.empty(len(first))
    kernels.common_spearman(rows, order, other_rows, other_order, first, second, weight, MIN_SAMPLES, values)
    result[first, second] = values
    return np.clip(result, -1.0, 1.0)


_FUNCTIONS = {"pearson": pairwise_pearson, "spearman": pairwise_spearman}


def pairwise_measure(correlation: Any, view: FeatureView) -> FunctionCorrelation:
    """Return the measure of this name over the samples in which both features are known."""
    if not isinstance(correlation, str) or correlation not in _FUNCTIONS:
        raise ValueError(
            "missing_values='ignore' requires correlation='pearson' or 'spearman'. For other measures, impute missing values, "
            "for example with missing_values='median'."
        )
    return FunctionCorrelation(view, _FUNCTIONS[correlation])


def view_with_missing(source: FeatureSource, weight: np.ndarray | None, n_threads: int) -> FeatureView | None:
    """Return a view whose moments are those of the known values, or None if no values are missing.

    Infinite values raise a ValueError.
    """
    n_samples, n_features = source.shape
    weights = np.ones(n_samples) if weight is None else weight
    mean, scale = np.zeros(n_features), np.zeros(n_features)
    n_missing, infinite = np.zeros(n_features, dtype=np.int64), np.zeros(n_features, dtype=np.int64)

    def process_block(first: int, columns: Columns) -> None:
        own = slice(first, first + columns.shape[1])
        values = _dense(columns)
        known = ~np.isnan(values)
        n_missing[own], infinite[own] = (~known).sum(axis=0), np.isinf(values).sum(axis=0)
        with np.errstate(invalid="ignore", over="ignore"):
            x, known_here = _centred(values, weights)
            mass = np.maximum(weights @ known_here, np.finfo(float).tiny)
            mean[own] = np.where(known, weights[:, None] * values, 0.0).sum(axis=0) / mass
            scale[own] = np.sqrt(weights @ x**2 / mass)
            largest = np.abs(np.where(known, values, 0.0)).max(axis=0)
        enough = ((weights[:, None] > 0) & known).sum(axis=0) >= MIN_SAMPLES
        varies = enough & (scale[own] > 1e-14 * largest)
        scale[own] = np.where(varies, scale[own], 0.0)

    for_blocks(source, process_block, n_threads)
    names = source.feature_names

    def describe(feature: int) -> str:
        return f"feature {feature}" + (f" ({names[feature]!r})" if names is not None else "")

    if infinite.any():
        raise ValueError(
            f"Input X contains {int(infinite.sum())} infinite value(s), first in {describe(int(np.argmax(infinite > 0)))}."
        )
    if not n_missing.any():
        return None
    total = float(weights.sum())
    norm = scale * np.sqrt(total)
    if norm.max(initial=0.0) > LARGEST_NORM:
        raise ValueError(f"The values of {describe(int(np.argmax(norm)))} are too large to compute with. Rescale the feature.")
    norm[norm < SMALLEST_NORM] = 0.0
    return FeatureView(source, Moments(mean, norm, total), weight, n_threads=n_threads)


def imputed(source: FeatureSource, strategy: str) -> FeatureSource:
    """Return the features with missing values replaced by the mean, median or most frequent value of their column."""
    columns = source.columns(np.arange(source.shape[1]))
    if columns.dtype.kind != "f" or not np.isnan(columns if isinstance(columns, np.ndarray) else columns.data).any():
        return source
    filled = SimpleImputer(strategy=strategy, keep_empty_features=True).fit_transform(columns)
    return as_source(filled, source.feature_names)


class ContentWithMissing:
    """The part of a source that :mod:`coterie.order` uses, for columns with missing values, which affect the content."""

    def __init__(self, view: FeatureView) -> None:
        self.shape = view.source.shape
        self.feature_names = view.source.feature_names
        self._view = view

    def products(self, vectors: np.ndarray, *, features: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """Return products of columns with vectors. Missing values count as the mean plus half a standard deviation."""
        result = np.empty((len(features), vectors.shape[1]))
        fill = self._view.moments.mean + 0.5 * self._view.moments.scale
        for first in range(0, len(features), 512):
            some = features[first : first + 512]
            values = _dense(self._view.columns(some))
            result[first : first + len(some)] = np.where(np.isnan(values), fill[some], values).T @ vectors
        return result


def _centred(columns: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return columns minus the means of their known values, 0 for missing values, and the mask of known values."""
    known = ~np.isnan(columns)
    mass = np.maximum(weight @ known, np.finfo(float).tiny)
    mean = weight @ np.where(known, columns, 0.0) / mass
    return np.where(known, columns - mean, 0.0), known.astype(np.float64)


def _unit_ranks(rows: np.ndarray, order: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the centred ranks of columns without missing values, divided by their norms. 0 for constant columns."""
    ranks, norm = np.empty(rows.shape), np.empty(len(rows))
    dense_ranks(read_only(rows), read_only(order), weight, float(weight.sum()), ranks, norm)
    return np.divide(ranks, norm[:, None], out=np.zeros_like(ranks), where=norm[:, None] > 0.0)


def _rows(columns: np.ndarray) -> np.ndarray:
    return read_only(np.ascontiguousarray(columns.T))


def _dense(columns: Columns) -> np.ndarray:
    return np.asarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), dtype=np.float64)
