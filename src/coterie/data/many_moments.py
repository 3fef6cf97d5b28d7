"""Moments of the same features with many sample weights: folds, halves, permutations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.data.memory import DenseSource
from coterie.data.source import SMALLEST_NORM, Columns, FeatureSource, Moments, for_blocks

# Variation that is a smaller part than this of what varies about the common mean is computed again, with all its digits.
_SMALL_PART = 1e-3


def many_moments(source: FeatureSource, weights: Sequence[np.ndarray], *, n_threads: int = 1) -> list[Moments]:
    """Moments of all features for each of many weights of the samples; the values must be known to be finite.

    Dense features are read once for all weights, by BLAS, about their common mean; the result agrees with
    :meth:`FeatureSource.moments` to about twelve digits, and features that are constant where the weight is have a norm
    of exactly 0. Sparse features are read once for some dozens of weights, with the bits of one after the other.

    Parameters
    ----------
    source : FeatureSource
        The features.
    weights : sequence of ndarray of shape (n_samples,)
        Weights of the samples.
    n_threads : int, default=1
        Number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data import as_source
    >>> from coterie.data.many_moments import many_moments
    >>> source = as_source(np.array([[0.0, 1.0], [2.0, 1.0], [7.0, 3.0]]))
    >>> [moments.norm for moments in many_moments(source, [np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0])])]
    [array([1.41421356, 0.        ]), array([3.53553391, 1.41421356])]
    """
    own = getattr(source, "many_moments", None)  # of a source that is sparse, or whose features are on other machines
    if own is not None:
        return list(own(weights, n_threads=n_threads))
    if len(weights) == 1:
        return [source.moments(weights[0], n_threads=n_threads)]
    matrix = np.column_stack(weights)
    total = matrix.sum(axis=0)
    mean, norm = (np.empty((len(weights), source.shape[1])) for _ in range(2))

    def task(start: int, block: Columns) -> None:
        values = np.asarray(block, dtype=np.float64)
        centre = values.mean(axis=0)
        values = values - centre
        sums = values.T @ matrix
        squares = (values * values).T @ matrix
        left = squares - sums**2 / total
        here = slice(start, start + values.shape[1])
        mean[:, here] = (centre[:, None] + sums / total).T
        norm[:, here] = np.sqrt(np.maximum(left, 0.0)).T
        for position in np.flatnonzero((left < _SMALL_PART * squares).any(axis=0)).tolist():
            few = np.flatnonzero(left[:, position] < _SMALL_PART * squares[:, position])
            exact = DenseSource(np.asarray(block)[:, few]).moments(weights[position])
            mean[position, start + few], norm[position, start + few] = exact.mean, exact.norm

    for_blocks(source, task, n_threads)
    norm[norm < SMALLEST_NORM] = 0.0
    return [Moments(mean[k], norm[k], float(total[k])) for k in range(len(weights))]
