"""Correlation with a numeric target: the score of single features for a quantitative trait."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._numba import thread_count
from coterie.data.view import FeatureView
from coterie.inputs.arrays import source_of
from coterie.inputs.targets import numeric_targets


def correlation_score(X: Any, y: Any, *, n_jobs: int | None = None) -> np.ndarray:
    r"""Absolute Pearson correlation of each feature with the numbers in y.

    It orders features as the F statistic of ``sklearn.feature_selection.f_regression`` does, which is
    :math:`(n - 2) r^2 / (1 - r^2)`.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data; sparse input is not densified.
    y : array-like of shape (n_samples,)
        Numbers, such as a quantitative trait.
    n_jobs : int or None, default=None
        Number of threads; None for all cores the process may use.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        Between 0 and 1; 0 for constant features.

    See Also
    --------
    fisher_score : For classes.

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
    """The scores of the features of a block; the residual has length 1."""
    moments = view.moments
    products = np.abs(view.source.products(residual[:, None], centre=moments.mean, n_threads=view.n_threads)[:, 0])
    scores = np.divide(products, moments.norm, out=np.zeros(len(products)), where=moments.norm > 0)
    return np.minimum(scores, 1.0)
