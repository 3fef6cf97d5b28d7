"""Variance: the simplest unsupervised score."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._numba import thread_count
from coterie.data.view import FeatureView
from coterie.inputs.arrays import source_of


def variance_score(X: Any, y: Any = None, *, n_jobs: int | None = None) -> np.ndarray:
    """Variance of each feature (division by the number of samples).

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data; sparse input is not densified.
    y : ignored
        Not used; present for scikit-learn's ``score_func``.
    n_jobs : int or None, default=None
        Number of threads; None for all cores the process may use.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        Higher is better; 0 for constant features.

    See Also
    --------
    lgd_score : Variance relative to that among close values.

    Examples
    --------
    >>> from coterie.filters import variance_score
    >>> variance_score([[0, 1, 5], [2, 1, 9]])
    array([1., 0., 4.])
    """
    return FeatureView.of(source_of(X), n_threads=thread_count(n_jobs)).map_features(_variances)


def _variances(view: FeatureView) -> np.ndarray:
    """The scores of the features of a block."""
    return view.moments.norm**2 / view.n_samples
