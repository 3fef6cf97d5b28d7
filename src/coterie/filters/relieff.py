"""ReliefF: features that differ between close samples of different classes, and not between those of the same class."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from coterie._numba import thread_count
from coterie._parameters import Whole, check
from coterie.data.source import FeatureSource, Moments
from coterie.data.view import FeatureView
from coterie.filters.sample_graph import by_probes, manhattan_distances, nearest, variation
from coterie.filters.univariate import feature_ranges
from coterie.inputs.opening import opened, source_of
from coterie.inputs.targets import class_codes


def relieff_score(
    X: Any,
    y: Any,
    *,
    n_neighbors: int = 10,
    n_probes: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    r"""ReliefF weight of each feature for the classes in y.

    For each of m samples (*probes*) i of class c, with its k nearest samples of each class,

    .. math:: s = \frac1m \sum_i \Big( \sum_{c' \ne c} \frac{P(c')}{1 - P(c)} \bar d_{c'}(i) - \bar d_c(i) \Big)

    where :math:`\bar d_{c'}(i)` is the mean of :math:`|x_i - x_h|` over the neighbours h of class c' (misses, or hits for
    c' = c), with differences over the feature's range. Samples are near in the sum of these differences over all
    features (Manhattan distance). [1]_

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data; sparse input is not densified.
    y : array-like of shape (n_samples,)
        Labels of two or more classes.
    n_neighbors : int, default=10
        Hits, and misses of each class; all of them where a class has fewer.
    n_probes : int or None, default=None
        Number of samples to look from, drawn at random; None for all.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.
    n_jobs : int or None, default=None
        Number of threads; None for all cores the process may use.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        Between -1 and 1, higher is better, 0 for constant features. Noise scores about 0, below it as often as above.

    See Also
    --------
    fisher_score : Looks at each feature alone.

    Notes
    -----
    Time is O(m n d) for the distances. All features count as numbers; skrebate compares features of up to ten
    different values by equality.

    References
    ----------
    .. [1] I. Kononenko, "Estimating attributes: analysis and extensions of RELIEF", ECML 1994.

    Examples
    --------
    The class is the exclusive or of the first two features, which no look at single features can see:

    >>> import numpy as np
    >>> from coterie.filters import relieff_score
    >>> X = np.random.default_rng(0).integers(0, 2, (200, 5))
    >>> scores = relieff_score(X, X[:, 0] ^ X[:, 1])
    >>> bool(scores[:2].min() > scores[2:].max())
    True
    """
    check("n_neighbors", n_neighbors, Whole(1))
    X, y = opened(X, y)
    source = source_of(X)
    n_samples = source.shape[0]
    _, codes = class_codes(y, n_samples, "relieff_score")
    probes = np.arange(n_samples)
    if n_probes is not None:
        check("n_probes", n_probes, Whole(1))
        if n_probes > n_samples:
            raise ValueError(f"n_probes={n_probes} is more than the {n_samples} samples.")
        probes = np.sort(check_random_state(random_state).choice(n_samples, n_probes, replace=False))
    view = FeatureView.of(source, n_threads=thread_count(n_jobs))
    return view.map_features(_weights, _comparisons(view, codes, probes, int(n_neighbors)))


def _weights(view: FeatureView, graph: sparse.csr_array) -> np.ndarray:
    """The scores of the features of a block."""
    return _factors(view.source, view.moments, view.n_threads) * variation(view.source, graph, False, view.n_threads)


def _factors(source: FeatureSource, moments: Moments, n_threads: int = 1) -> np.ndarray:
    """One over the range of each feature."""
    low, high = feature_ranges(source, n_threads)
    # A range too small for the moments is none: its inverse could overflow.
    return np.divide(1.0, high - low, out=np.zeros(len(low)), where=moments.norm > 0.0)


def _comparisons(view: FeatureView, codes: np.ndarray, probes: np.ndarray, k: int) -> sparse.csr_array:
    """Symmetric graph whose weights are what each pair of samples counts in the score."""
    n_samples = len(codes)
    factor = view.source.prepare(_factors, view.moments)
    arguments = factor, codes, k, len(probes)
    parts = by_probes(view.source, view.moments, _edges, *arguments, probes=probes, n_threads=view.n_threads)
    rows, columns, weights = (np.concatenate([edge[k] for part in parts for edge in part]) for k in range(3))
    one_way = sparse.csr_array((weights, (rows, columns)), shape=(n_samples, n_samples))
    return sparse.csr_array(one_way + one_way.T)


def _edges(
    source: FeatureSource,
    moments: Moments,
    mine: np.ndarray,
    factor: np.ndarray,
    codes: np.ndarray,
    k: int,
    n_probes: int,
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Some probes with their nearest samples of each class, and what these count."""
    share = np.bincount(codes) / len(codes)
    members = [np.flatnonzero(codes == c) for c in range(len(share))]
    found = []
    for i, row in zip(mine, manhattan_distances(source, moments, mine, factor), strict=True):
        for c, candidates in enumerate(members):
            own = c == codes[i]
            near = nearest(row, candidates[candidates != i] if own else candidates, k)
            if not len(near):
                continue
            weight = -1.0 if own else share[c] / (1.0 - share[codes[i]])
            found.append((np.full(len(near), i), near, np.full(len(near), weight / (len(near) * n_probes))))
    return found
