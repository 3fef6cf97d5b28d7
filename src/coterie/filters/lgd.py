"""LGD: the unsupervised local and global discriminative score of the GRM paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._numba import read_only, thread_count
from coterie._validation import require_integer, source_of
from coterie.data.blocks import for_blocks
from coterie.data.source import Columns
from coterie.kernels import filters as kernels


def lgd_score(X: Any, y: Any = None, *, n_neighbors: int = 5, n_jobs: int | None = None) -> np.ndarray:
    r"""Local and global discriminative score: global variance over the variance among close values.

    .. math:: s = \frac{\sum_i (f(i) - \bar f)^2}{\sum_j \sum_{i \in o(j)} (f(i) - \bar f_j)^2}

    (eq. 29 of [1]_), where :math:`o(j)` are the ``n_neighbors`` samples with the values nearest to that of sample j,
    j itself among them, and :math:`\bar f_j` is their mean. High for a feature whose values fall into clusters.
    O(n log n) a feature.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data; sparse input is not densified.
    y : ignored
        Not used; present for scikit-learn's ``score_func``.
    n_neighbors : int, default=5
        Size of the neighbourhoods; the paper finds 5 to 8 good.
    n_jobs : int or None, default=None
        Number of threads; None for all cores the process may use.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        Higher is better; 0 for constant features.

    See Also
    --------
    laplacian_score : Smoothness on a graph of the samples in all features.

    Notes
    -----
    A feature of few different values (bits, grades) has a local variance of zero, since each value has enough equal
    ones. For such a feature the neighbours nearest in rank count instead: the windows that straddle the steps between
    the values. Its score is then finite, and for bits proportional to the variance. The paper does not say what it
    does about them.

    References
    ----------
    .. [1] D. Wang, F. Nie, H. Huang, "Feature selection via global redundancy minimization", IEEE TKDE
       27(10), 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.filters import lgd_score
    >>> even = np.arange(40.0)
    >>> clustered = even + 40.0 * (even >= 20)
    >>> clustered_score, even_score = lgd_score(np.column_stack([clustered, even]))
    >>> bool(clustered_score > even_score)
    True
    """
    require_integer("n_neighbors", n_neighbors, minimum=2)
    source = source_of(X)
    n_threads = thread_count(n_jobs)
    norm = source.moments(n_threads=n_threads).norm
    local = np.empty(source.shape[1])

    def look(first: int, columns: Columns) -> None:
        if isinstance(columns, np.ndarray):
            ordered = np.sort(columns.T.astype(np.float64), axis=1)
            kernels.dense_local_scatter(ordered, n_neighbors, local, first)
        else:
            column = np.repeat(np.arange(columns.shape[1]), np.diff(columns.indptr))
            ordered = columns.data[np.lexsort((columns.data, column))].astype(np.float64)
            kernels.csc_local_scatter(read_only(columns.indptr), ordered, source.shape[0], n_neighbors, local, first)

    for_blocks(source, look, n_threads)
    return np.divide(norm**2, local, out=np.zeros(len(norm)), where=(norm > 0) & (local > 0))
