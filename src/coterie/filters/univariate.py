"""Univariate scores: Fisher score, variance, correlation, information gain."""

from __future__ import annotations

import numpy as np

from coterie._numba import read_only, thread_count
from coterie._parameters import Integer, check
from coterie.data.source import Columns, FeatureSource, for_blocks
from coterie.data.view import FeatureView
from coterie.inputs.opening import opened, source_of
from coterie.inputs.targets import class_codes, numeric_targets
from coterie.inputs.types import FeaturesLike, TargetsLike
from coterie.kernels import filters as kernels
from coterie.kernels.information import csc_ranges, dense_ranges

# Lower limit of the within-class scatter, as a share of the total scatter. Smaller values are rounding errors.
_MIN_WITHIN = 1e-10
# Limited because each thread has a table of all bins by all classes.
_MAX_BINS = 1 << 16


def fisher_score(X: FeaturesLike, y: TargetsLike, *, n_jobs: int | None = None) -> np.ndarray:
    r"""Return the Fisher score of each feature for the classes in y.

    .. math:: s = \frac{\sum_c n_c (\mu_c - \mu)^2}{\sum_c n_c \sigma_c^2}

    with the size, mean and variance of each class. The order of the features is that of the F statistic of
    ``sklearn.feature_selection.f_classif``, which is this score times (n - C) / (C - 1).

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data. Sparse input is not densified.
    y : array-like of shape (n_samples,)
        Labels of two or more classes.
    n_jobs : int or None, default=None
        Number of threads. None means all cores available to the process.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        Higher is better; 0 for constant features, and at most 1e10 for features that are constant in each class.

    See Also
    --------
    relieff_score : Score from neighbouring samples, which finds features that are relevant in combination.

    Examples
    --------
    >>> from coterie.filters import fisher_score
    >>> fisher_score([[0.0, 1.0], [2.0, 2.0], [5.0, 1.0], [7.0, 2.0]], [0, 0, 1, 1])
    array([6.25, 0.  ])
    """
    X, y = opened(X, y)
    source = source_of(X)
    _, codes = class_codes(y, source.shape[0], "fisher_score")
    return FeatureView.of(source, n_threads=thread_count(n_jobs)).map_features(_ratios, codes)


def _ratios(view: FeatureView, codes: np.ndarray) -> np.ndarray:
    """Return the scores of the features of a block."""
    moments = view.moments
    counts = np.bincount(codes)
    total = moments.norm**2
    # One pass per 16 classes, so that many classes require no table of all features by all classes.
    between = np.zeros(view.n_features)
    for first in range(0, len(counts), 16):
        batch = np.arange(first, min(first + 16, len(counts)))
        indicator = (codes[:, None] == batch).astype(np.float64)
        sums = view.source.products(indicator, centre=moments.mean, n_threads=view.n_threads)
        sums *= sums
        for place, count in enumerate(counts[batch].tolist()):  # not BLAS, whose sums depend on the number of features
            between += sums[:, place] / count
    between = np.minimum(between, total)
    within = np.maximum(total - between, _MIN_WITHIN * total)
    return np.divide(between, within, out=np.zeros(len(total)), where=total > 0)


def variance_score(X: FeaturesLike, y: TargetsLike = None, *, n_jobs: int | None = None) -> np.ndarray:
    """Return the variance of each feature (divided by the number of samples).

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data. Sparse input is not densified.
    y : ignored
        Not used, present for the ``score_func`` of scikit-learn.
    n_jobs : int or None, default=None
        Number of threads. None means all cores available to the process.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        Higher is better; 0 for constant features.

    See Also
    --------
    lgd_score : Variance relative to that among similar values.

    Examples
    --------
    >>> from coterie.filters import variance_score
    >>> variance_score([[0, 1, 5], [2, 1, 9]])
    array([1., 0., 4.])
    """
    return FeatureView.of(source_of(X), n_threads=thread_count(n_jobs)).map_features(_variances)


def _variances(view: FeatureView) -> np.ndarray:
    """Return the scores of the features of a block."""
    return view.moments.norm**2 / view.n_samples


def correlation_score(X: FeaturesLike, y: TargetsLike, *, n_jobs: int | None = None) -> np.ndarray:
    r"""Return the absolute Pearson correlation of each feature with the numbers in y.

    The order of the features is that of the F statistic of ``sklearn.feature_selection.f_regression``, which is
    :math:`(n - 2) r^2 / (1 - r^2)`.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data. Sparse input is not densified.
    y : array-like of shape (n_samples,)
        Numbers, such as a quantitative trait.
    n_jobs : int or None, default=None
        Number of threads. None means all cores available to the process.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        Between 0 and 1; 0 for constant features.

    See Also
    --------
    fisher_score : Score for classes.

    Examples
    --------
    >>> from coterie.filters import correlation_score
    >>> correlation_score([[0.0, 1.0], [2.0, 2.0], [5.0, 1.0], [7.0, 2.0]], [0.5, 2.5, 5.5, 7.5]).round(3)
    array([1.   , 0.371])
    """
    source = source_of(X)
    targets = numeric_targets(y, source.shape[0], "correlation_score")
    residual = targets - targets.mean()
    residual /= np.linalg.norm(residual)
    return FeatureView.of(source, n_threads=thread_count(n_jobs)).map_features(_correlations, residual)


def _correlations(view: FeatureView, residual: np.ndarray) -> np.ndarray:
    """Return the scores of the features of a block. The residual has length 1."""
    moments = view.moments
    products = np.abs(view.source.products(residual[:, None], centre=moments.mean, n_threads=view.n_threads)[:, 0])
    scores = np.divide(products, moments.norm, out=np.zeros(len(products)), where=moments.norm > 0)
    return np.minimum(scores, 1.0)


def information_gain_score(X: FeaturesLike, y: TargetsLike, *, n_bins: int = 10, n_jobs: int | None = None) -> np.ndarray:
    """Return the information gain of each feature: the entropy of y minus its entropy given the feature's bin.

    Features are divided into ``n_bins`` bins of equal width over their range, as in ``correlation="su"`` of the
    group-discovery estimators. The unit is nats.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data. Sparse input is not densified.
    y : array-like of shape (n_samples,)
        Labels of two or more classes.
    n_bins : int, default=10
        Number of bins, at most 65536.
    n_jobs : int or None, default=None
        Number of threads. None means all cores available to the process.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        Between 0 (also for constant features) and the entropy of y; higher is better.

    See Also
    --------
    sklearn.feature_selection.mutual_info_classif : Estimate of the same quantity from nearest neighbours, without bins.

    Examples
    --------
    >>> from coterie.filters import information_gain_score
    >>> information_gain_score([[0, 1], [0, 2], [1, 1], [1, 2]], [0, 0, 1, 1]).round(4)
    array([0.6931, 0.    ])
    """
    check("n_bins", n_bins, Integer(2, _MAX_BINS))
    X, y = opened(X, y)
    source = source_of(X)
    _, codes = class_codes(y, source.shape[0], "information_gain_score")
    return FeatureView.of(source, n_threads=thread_count(n_jobs)).map_features(_gains, codes, int(n_bins))


def _gains(view: FeatureView, codes: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the scores of the features of a block."""
    shares = np.bincount(codes) / len(codes)
    gain = information_gains(view, codes, -float(shares @ np.log(shares)), feature_ranges(view.source, view.n_threads), n_bins)
    gain[view.moments.norm == 0.0] = 0.0
    return gain


def information_gains(
    view: FeatureView, codes: np.ndarray, entropy: float, ranges: tuple[np.ndarray, np.ndarray], n_bins: int
) -> np.ndarray:
    """Return the mutual information (in nats) of all binned features with a discrete variable of the given entropy."""
    counts = np.bincount(codes)
    gain = np.empty(view.n_features)

    def process(first: int, columns: Columns) -> None:
        if isinstance(columns, np.ndarray):
            kernels.dense_information_gain(
                read_only(columns.T), read_only(codes), len(counts), *ranges, n_bins, entropy, gain, first
            )
        else:
            kernels.csc_information_gain(
                read_only(columns.indptr), read_only(columns.indices), read_only(columns.data),
                read_only(codes), read_only(counts), *ranges, n_bins, entropy, gain, first,
            )  # fmt: skip

    for_blocks(view.source, process, view.n_threads)
    return gain


def feature_ranges(source: FeatureSource, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest value of each feature, including the zeros of sparse features."""
    n_samples, n_features = source.shape
    weight = np.ones(n_samples)
    low, high = np.empty(n_features), np.empty(n_features)

    def process(first: int, columns: Columns) -> None:
        if isinstance(columns, np.ndarray):
            dense_ranges(read_only(columns.T), weight, low, high, first)
        else:
            indptr, indices, values = read_only(columns.indptr), read_only(columns.indices), read_only(columns.data)
            csc_ranges(indptr, indices, values, weight, n_samples, low, high, first)

    for_blocks(source, process, n_threads)
    return low, high
