"""Scores from neighbouring samples: ReliefF, and the local and global discriminative score (LGD)."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from coterie._numba import read_only, thread_count
from coterie._parameters import Integer, OneOf, check
from coterie.data.source import Columns, FeatureSource, Moments, for_blocks
from coterie.data.view import FeatureView
from coterie.filters.graph import by_probes, manhattan_distances, nearest, nearest_neighbours, variation
from coterie.filters.univariate import feature_ranges
from coterie.inputs.opening import opened, source_of
from coterie.inputs.targets import class_codes
from coterie.inputs.types import FeaturesLike, RandomStateLike, TargetsLike
from coterie.kernels import filters as kernels

# Added to the local scatter: this share of the scatter of evenly spread values over the feature's range or, among samples,
# this share of the global scatter.
_EVEN_SHARE = 0.1
_GLOBAL_SHARE = 0.01


def relieff_score(
    X: FeaturesLike,
    y: TargetsLike,
    *,
    n_neighbors: int = 10,
    n_probes: int | None = None,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    r"""Return the ReliefF weight of each feature for the classes in y.

    With m samples (*probes*) i of class c, and their k nearest samples of each class,

    .. math:: s = \frac1m \sum_i \Big( \sum_{c' \ne c} \frac{P(c')}{1 - P(c)} \bar d_{c'}(i) - \bar d_c(i) \Big)

    where :math:`\bar d_{c'}(i)` is the mean of :math:`|x_i - x_h|` over the neighbours h of class c' (misses, or hits for
    c' = c). Differences are divided by the feature's range. The distance of samples is the sum of these differences over all
    features (Manhattan distance). [1]_

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data. Sparse input is not densified.
    y : array-like of shape (n_samples,)
        Labels of two or more classes.
    n_neighbors : int, default=10
        Number of hits, and of misses per class. Smaller classes are used completely.
    n_probes : int or None, default=None
        Number of probes, drawn at random. None means all samples.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.
    n_jobs : int or None, default=None
        Number of threads. None means all cores available to the process.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        Between -1 and 1; 0 for constant features. Higher is better. Scores of noise are about 0, with either sign.

    See Also
    --------
    fisher_score : Score of each single feature.

    Notes
    -----
    The time is O(m n d) for the distances. All features are treated as numbers; skrebate compares features of up to ten
    different values by equality.

    References
    ----------
    .. [1] I. Kononenko, "Estimating attributes: analysis and extensions of RELIEF", ECML 1994.

    Examples
    --------
    The class is the exclusive or of the first two features, which scores of single features cannot detect:

    >>> import numpy as np
    >>> from coterie.filters import relieff_score
    >>> X = np.random.default_rng(0).integers(0, 2, (200, 5))
    >>> scores = relieff_score(X, X[:, 0] ^ X[:, 1])
    >>> bool(scores[:2].min() > scores[2:].max())
    True
    """
    check("n_neighbors", n_neighbors, Integer(1))
    X, y = opened(X, y)
    source = source_of(X)
    n_samples = source.shape[0]
    _, codes = class_codes(y, n_samples, "relieff_score")
    probes = np.arange(n_samples)
    if n_probes is not None:
        check("n_probes", n_probes, Integer(1))
        if n_probes > n_samples:
            raise ValueError(f"n_probes={n_probes} is larger than the number of samples, {n_samples}.")
        probes = np.sort(check_random_state(random_state).choice(n_samples, n_probes, replace=False))
    view = FeatureView.of(source, n_threads=thread_count(n_jobs))
    return view.map_features(_weights, _comparisons(view, codes, probes, int(n_neighbors)))


def _weights(view: FeatureView, graph: sparse.csr_array) -> np.ndarray:
    """Return the scores of the features of a block."""
    return _factors(view.source, view.moments, view.n_threads) * variation(view.source, graph, False, view.n_threads)


def _factors(source: FeatureSource, moments: Moments, n_threads: int = 1) -> np.ndarray:
    """Return the inverse range of each feature, or 0 for constant features."""
    low, high = feature_ranges(source, n_threads)
    # Features with too small a range for the moments are treated as constant, because the inverse could overflow.
    return np.divide(1.0, high - low, out=np.zeros(len(low)), where=moments.norm > 0.0)


def _comparisons(view: FeatureView, codes: np.ndarray, probes: np.ndarray, k: int) -> sparse.csr_array:
    """Return the symmetric graph with the weight of each pair of samples in the score."""
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
    """Return edges between probes and their nearest samples of each class, with their weights."""
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


def lgd_score(
    X: FeaturesLike, y: TargetsLike = None, *, n_neighbors: int = 5, neighborhood: str = "values", n_jobs: int | None = None
) -> np.ndarray:
    r"""Return the local and global discriminative score: global variance over the variance among neighbours.

    .. math:: s = \frac{\sum_i (f(i) - \bar f)^2}{\sum_j \sum_{i \in o(j)} (f(i) - \bar f_j)^2}

    (eq. 29 of [1]_), where :math:`o(j)` are the ``n_neighbors`` samples nearest to sample j, including j, and
    :math:`\bar f_j` is their mean. The score is high for a feature whose values form clusters. The denominator has a lower
    limit, see Notes.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
        Data. Sparse input is not densified.
    y : ignored
        Not used, present for the ``score_func`` of scikit-learn.
    n_neighbors : int, default=5
        Size of the neighbourhoods. The paper recommends 5 to 8.
    neighborhood : {"values", "samples"}, default="values"
        Definition of neighbours: similar values of the feature itself, in O(n log n) per feature, or a small Euclidean
        distance over all features, in O(n² m) once for all features. The paper describes the former; its tables resemble
        the latter.
    n_jobs : int or None, default=None
        Number of threads. None means all cores available to the process.

    Returns
    -------
    scores : ndarray of shape (n_features,)
        Higher is better; 0 for constant features.

    See Also
    --------
    laplacian_score : Smoothness on a graph of the samples in all features.

    Notes
    -----
    A feature with few different values (such as bits or grades) has no local variance, because each value occurs often
    enough. Its score would be infinite. A tenth of the value of the denominator for n evenly spread values over the range r
    of the feature, :math:`n\,k(k^2-1)/12\,(r/(n-1))^2`, is therefore added to the denominator (with ``"samples"``, a
    hundredth of the numerator). The score stays finite and increases if the local variance decreases. A column of bits and
    the same column with a little noise have nearly the same score. It is above that of noise if both bits are common.
    Columns of bits are ordered by their variances. The paper does not describe this case.

    With ``"values"``, the score does not depend on other features. On gene expression data it is hardly related to the
    classes. Genes that are related to the classes tend to be correlated with each other, so that less redundancy means less
    relevance. If redundancy is minimised afterwards, ``"samples"`` is the better choice for such data (measured in
    ``docs/evidence/redundancy-evidence.md``).

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
    check("n_neighbors", n_neighbors, Integer(2))
    check("neighborhood", neighborhood, OneOf("values", "samples"))
    source = source_of(X)
    width = min(int(n_neighbors), source.shape[0])
    view = FeatureView.of(source, n_threads=thread_count(n_jobs))
    if neighborhood == "values":
        return view.map_features(_ratios_among_values, width)
    return view.map_features(_ratios_among_samples, _shared_neighbourhoods(view, width))


def _ratios_among_values(view: FeatureView, width: int) -> np.ndarray:
    """Return the scores of the features of a block."""
    return _ratios(view, _scatter_among_values(view, width))


def _ratios_among_samples(view: FeatureView, together: sparse.csr_array) -> np.ndarray:
    """Return the scores of the features of a block."""
    return _ratios(view, variation(view.source, together, True, view.n_threads) + _GLOBAL_SHARE * view.moments.norm**2)


def _ratios(view: FeatureView, local: np.ndarray) -> np.ndarray:
    whole = view.moments.norm**2
    return np.divide(whole, local, out=np.zeros(len(local)), where=(whole > 0) & (local > 0))


def _scatter_among_values(view: FeatureView, n_neighbors: int) -> np.ndarray:
    """Return the scatter of the windows of sorted values plus the lower limit."""
    n_samples = view.n_samples
    local = np.empty(view.n_features)

    def process(first: int, columns: Columns) -> None:
        if isinstance(columns, np.ndarray):
            ordered = np.sort(columns.T.astype(np.float64), axis=1)
            kernels.dense_local_scatter(ordered, n_neighbors, local, first)
        else:
            column = np.repeat(np.arange(columns.shape[1]), np.diff(columns.indptr))
            ordered = columns.data[np.lexsort((columns.data, column))].astype(np.float64)
            kernels.csc_local_scatter(read_only(columns.indptr), ordered, n_samples, n_neighbors, local, first)

    for_blocks(view.source, process, view.n_threads)
    low, high = feature_ranges(view.source, view.n_threads)
    windows = n_samples * n_neighbors * (n_neighbors**2 - 1) / 12.0
    return local + _EVEN_SHARE * windows * ((high - low) / (n_samples - 1)) ** 2


def _shared_neighbourhoods(view: FeatureView, n_neighbors: int) -> sparse.csr_array:
    r"""Return the graph of all neighbourhoods.

    The scatter about the mean of k values is :math:`\frac1k\sum_{i<h}(f_i - f_h)^2`, so the sum over all neighbourhoods is
    the variation on one graph.
    """
    n_samples = view.n_samples
    others = nearest_neighbours(view.source, view.moments, n_neighbors - 1, view.n_threads).samples
    members = np.hstack([np.arange(n_samples)[:, None], others])
    rows = np.repeat(np.arange(n_samples), members.shape[1])
    belongs = sparse.csr_array((np.ones(members.size), (rows, members.ravel())), shape=(n_samples, n_samples))
    together = sparse.csr_array(belongs.T @ belongs) / members.shape[1]
    together.setdiag(0.0)
    together.eliminate_zeros()
    return sparse.csr_array(together)
