"""Fisher score: scatter between the classes over scatter within them."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._numba import thread_count
from coterie.data.view import FeatureView
from coterie.inputs.arrays import source_of
from coterie.inputs.containers import opened
from coterie.inputs.targets import class_codes

# Scatter within the classes counts as at least this part of the whole: below it there is only rounding.
_LEAST_WITHIN = 1e-10


def fisher_score(X: Any, y: Any, *, n_jobs: int | None = None) -> np.ndarray:
    r"""Fisher score of each feature for the classes in y.

    .. math:: s = \frac{\sum_c n_c (\mu_c - \mu)^2}{\sum_c n_c \sigma_c^2}

    with the size, mean and variance of each class. It orders features as the F statistic of
    ``sklearn.feature_selection.f_classif`` does, which is this times (n - C) / (C - 1).

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data; sparse input is not densified.
    y : array-like of shape (n_samples,)
        Labels of two or more classes.
    n_jobs : int or None, default=None
        Number of threads; None for all cores the process may use.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        Higher is better; 0 for constant features, at most 1e10 for those that are constant in each class.

    See Also
    --------
    relieff_score : Looks at neighbouring samples, so sees features that matter together.

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
    """The scores of the features of a block."""
    moments = view.moments
    counts = np.bincount(codes)
    total = moments.norm**2
    # One pass a few classes at a time: many classes must not need a table of all features by classes.
    between = np.zeros(view.n_features)
    for first in range(0, len(counts), 16):
        batch = np.arange(first, min(first + 16, len(counts)))
        indicator = (codes[:, None] == batch).astype(np.float64)
        sums = view.source.products(indicator, centre=moments.mean, n_threads=view.n_threads)
        sums *= sums
        for place, count in enumerate(counts[batch].tolist()):  # no BLAS, whose sums depend on how many features there are
            between += sums[:, place] / count
    between = np.minimum(between, total)
    within = np.maximum(total - between, _LEAST_WITHIN * total)
    return np.divide(between, within, out=np.zeros(len(total)), where=total > 0)
