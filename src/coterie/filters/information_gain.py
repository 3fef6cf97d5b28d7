"""Information gain: how much a binned feature tells about the class."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._numba import read_only, thread_count
from coterie._parameters import Whole, check
from coterie.data.source import Columns, for_blocks
from coterie.data.view import FeatureView
from coterie.filters.ranges import feature_ranges
from coterie.inputs.arrays import source_of
from coterie.inputs.containers import opened
from coterie.inputs.targets import class_codes
from coterie.kernels import filters as kernels

# Each thread has a table of all bins and classes.
_MOST_BINS = 1 << 16


def information_gain_score(X: Any, y: Any, *, n_bins: int = 10, n_jobs: int | None = None) -> np.ndarray:
    """Information gain of each feature: the entropy of y minus its entropy given the feature's bin.

    Features are cut into ``n_bins`` bins of equal width over their range, as in ``correlation="su"`` of
    the group-discovery estimators. In nats.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data; sparse input is not densified.
    y : array-like of shape (n_samples,)
        Labels of two or more classes.
    n_bins : int, default=10
        Number of bins, at most 65536.
    n_jobs : int or None, default=None
        Number of threads; None for all cores the process may use.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        Between 0 (also for constant features) and the entropy of y; higher is better.

    See Also
    --------
    sklearn.feature_selection.mutual_info_classif : The same quantity from nearest neighbours, without bins.

    Examples
    --------
    >>> from coterie.filters import information_gain_score
    >>> information_gain_score([[0, 1], [0, 2], [1, 1], [1, 2]], [0, 0, 1, 1]).round(4)
    array([0.6931, 0.    ])
    """
    check("n_bins", n_bins, Whole(2, _MOST_BINS))
    X, y = opened(X, y)
    source = source_of(X)
    _, codes = class_codes(y, source.shape[0], "information_gain_score")
    return FeatureView.of(source, n_threads=thread_count(n_jobs)).map_features(_gains, codes, int(n_bins))


def _gains(view: FeatureView, codes: np.ndarray, n_bins: int) -> np.ndarray:
    """The scores of the features of a block."""
    low, high = feature_ranges(view.source, view.n_threads)
    counts = np.bincount(codes)
    shares = counts / len(codes)
    entropy = -float(shares @ np.log(shares))
    gain = np.empty(view.n_features)

    def look(first: int, columns: Columns) -> None:
        if isinstance(columns, np.ndarray):
            kernels.dense_information_gain(
                read_only(columns.T), read_only(codes), len(counts), low, high, n_bins, entropy, gain, first
            )
        else:
            kernels.csc_information_gain(
                read_only(columns.indptr), read_only(columns.indices), read_only(columns.data),
                read_only(codes), read_only(counts), low, high, n_bins, entropy, gain, first,
            )  # fmt: skip

    for_blocks(view.source, look, view.n_threads)
    gain[view.moments.norm == 0.0] = 0.0
    return gain
