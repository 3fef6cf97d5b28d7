"""How much the selected features repeat each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_array

from coterie.correlation.pearson import PearsonCorrelation
from coterie.data.memory import as_source
from coterie.data.view import FeatureView


def redundancy_rate(X: Any, features: Any = None) -> float:
    """Mean absolute Pearson correlation over all pairs of (selected) features.

    ICML 2012, section 4: there the sum over pairs i > j is divided by k(k - 1), which is half of the
    mean that is meant and returned here. Constant features have no correlation and count as 0.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data.
    features : array-like of int, default=None
        The selected features; None for all columns of X.

    Returns
    -------
    rate : float
        Between 0 and 1; 0 for fewer than two features.

    Examples
    --------
    >>> from coterie.metrics import redundancy_rate
    >>> round(redundancy_rate([[0, 0, 1], [1, 2, 0], [2, 4, 1]]), 3)
    0.333
    """
    return _mean_over_pairs(X, features, np.abs)


def squared_redundancy(X: Any, features: Any = None) -> float:
    r"""Mean squared Pearson correlation over all pairs of (selected) features.

    TKDE 2015, eq. 31: :math:`\mathrm{Red} = \frac{1}{k(k-1)} \sum_{i \ne j} \rho_{ij}^2`. Constant features have no
    correlation and count as 0.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data.
    features : array-like of int, default=None
        The selected features; None for all columns of X.

    Returns
    -------
    redundancy : float
        Between 0 and 1; 0 for fewer than two features.

    See Also
    --------
    redundancy_rate : The mean of the absolute correlation.

    Examples
    --------
    >>> from coterie.metrics import squared_redundancy
    >>> round(squared_redundancy([[0, 0, 1], [1, 2, 0], [2, 4, 1]]), 3)
    0.333
    """
    return _mean_over_pairs(X, features, np.square)


def _mean_over_pairs(X: Any, features: Any, size: Callable[[np.ndarray], np.ndarray]) -> float:
    """Mean over all pairs of features of the size of their correlation."""
    X = check_array(X, accept_sparse=True, dtype=[np.float64, np.float32], ensure_min_samples=2)
    source = as_source(X if features is None else X[:, np.asarray(features)])
    n_features = source.shape[1]
    if n_features < 2:
        return 0.0
    view = FeatureView.of(source)
    varying = np.flatnonzero(view.moments.norm > 0)
    matrix = size(PearsonCorrelation(view).between(varying, varying))
    pairs = (matrix.sum() - np.trace(matrix)) / 2
    return float(pairs / (n_features * (n_features - 1) / 2))
