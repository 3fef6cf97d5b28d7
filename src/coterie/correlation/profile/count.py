"""The distribution of all pairwise correlations, exact or sampled."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.utils import check_random_state

from coterie._numba import read_only, run_evenly, thread_count
from coterie._parameters import Number, Whole, check
from coterie.correlation.profile.result import CorrelationProfile
from coterie.correlation.profile.tiles import Counted, Tally, Tiles, tiles_of
from coterie.correlation.protocol import ROUNDING
from coterie.data.source import FeatureSource, Moments
from coterie.inputs.opening import opened, source_of
from coterie.inputs.placing import placed
from coterie.kernels.correlation import csc_pair_correlations, dense_pair_correlations
from coterie.progress import RoundProgress

# Pieces for each thread of a cluster, so that workers that are done early find more to do; and drawn pairs of a piece.
_PIECES, _PAIRS = 8, 1 << 16
# Values of the columns that are gathered at a time.
_BATCH_VALUES = 1 << 24


def correlation_profile(
    X: Any,
    *,
    n_pairs: int | None = None,
    bins: Any = 10,
    confidence: float = 0.95,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    client: Any = None,
) -> CorrelationProfile:
    r"""Distribution of the absolute Pearson correlations of all pairs of features.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource, path, store} of shape (n_samples, n_features)
        The data; neither copied nor, if sparse, made dense.

    n_pairs : int, default=None
        Number of pairs to draw at random (with replacement); None counts all pairs, exactly.

    bins : int or array-like, default=10
        Number of bins of equal width over [0, 1], or the rising edges of the bins from 0 to 1.

    confidence : float, default=0.95
        Probability of the confidence limits that come with a sample.

    n_jobs : int, default=None
        Number of threads; None means all cores. The result does not depend on it.

    random_state : int, RandomState instance or None, default=None
        Seed of the drawing.

    verbose : int, default=0
        Show progress: a bar on a terminal, lines elsewhere.

    client : distributed.Client, default=None
        Client of a Dask cluster whose workers count the pairs; X is a store (its name, its address, or opened), which each
        of them opens. None takes the active client, if there is one.

    Returns
    -------
    profile : CorrelationProfile
        Edges, counts, shares; ``print(profile)`` shows a histogram.

    See Also
    --------
    coterie.metrics.redundancy_rate : The mean absolute correlation of a few features.

    Notes
    -----
    *Dense data* are standardised block by block and multiplied by BLAS in single precision. The error of such a product
    is at most :math:`(n + 4) 2^{-24}`, so a correlation that comes closer than that to an edge is computed again in double
    precision: the counts are those of double precision throughout. No more than a few blocks are in memory.

    *Sparse data*: columns with equal entries are counted as one with a weight. Two columns without a common sample have
    the correlation :math:`-\rho_a\rho_b`, :math:`\rho = \sqrt n\,\bar f/\|f - \bar f\|`. So all pairs are counted as if
    they were disjoint, by one walk over the sorted :math:`|\rho|` for each edge, and then only the pairs that do meet in a
    sample are enumerated and corrected. That takes time in proportion to the sum of the squared numbers of (different)
    nonzero features of the samples instead of the :math:`m^2` of all pairs.

    Correlations within 1e-10 of an edge count as equal to it, as everywhere in Coterie.

    References
    ----------
    .. [1] Y. Zhai, Y.-S. Ong, I. W. Tsang, "Making trillion correlations feasible in feature grouping and selection",
       IEEE TPAMI 38(12), 2016, Fig. 1.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import correlation_profile
    >>> X = np.random.default_rng(0).standard_normal((500, 40))
    >>> correlation_profile(X).counts
    array([760,  20,   0,   0,   0,   0,   0,   0,   0,   0])
    >>> sample = correlation_profile(X, n_pairs=2000, random_state=0)
    >>> sample.limits[1].round(4)
    array([0.0212, 0.0362])
    """
    edges = _read_edges(bins)
    check("confidence", confidence, Number(at_most=1))
    if n_pairs is not None:
        check("n_pairs", n_pairs, Whole(1))
    if n_jobs is not None:
        check("n_jobs", n_jobs, Whole())
    n_threads = thread_count(n_jobs)
    X, _ = placed(X, None, client, reader="correlation_profile")
    # A Dask array is with workers part by part; pairs need features of any two of them.
    X, _ = opened(X, cluster=not hasattr(X, "chunks"))
    source = source_of(X)
    moments = source.moments(n_threads=n_threads)
    n_varying = moments.n_varying
    n_all = n_varying * (n_varying - 1) // 2
    if n_all == 0:
        raise ValueError(f"A profile needs at least 2 features that are not constant; X has {n_varying}.")
    inner = edges[1:-1] - ROUNDING
    if n_pairs is None:
        over = _all_pairs(source, moments, inner, n_threads, verbose)
        drawn, total = None, n_all
    else:
        pairs = drawn_pairs(n_varying, int(n_pairs), random_state)
        correlations = _correlations(source, moments, pairs, n_threads)
        over = np.array([np.count_nonzero(np.abs(correlations) >= edge) for edge in inner], dtype=np.int64)
        drawn = total = int(n_pairs)
    counts = -np.diff(np.concatenate([[total], over, [0]]).astype(np.int64))
    limits = np.repeat(counts[:, None] / total, 2, axis=1) if drawn is None else _limits(counts, total, confidence)
    return CorrelationProfile(
        edges, counts, source.shape[1], source.shape[1] - n_varying, n_all, drawn, float(confidence), limits
    )


def _all_pairs(source: FeatureSource, moments: Moments, edges: np.ndarray, n_threads: int, verbose: int) -> np.ndarray:
    """Pairs at or over each edge."""
    if not len(edges):
        return np.zeros(0, dtype=np.int64)
    here = source.n_workers is None
    tiles = source.prepare(_tiles, moments, edges, n_threads if here else 1, large=True)
    n_pieces = None if here else _PIECES * source.concurrency(n_threads)
    (plan,) = source.map_tasks(_plan, [(tiles, n_pieces)], what="a plan of the pairs")
    with RoundProgress(plan.total, verbose, "correlation profile", plan.unit) as bar:
        tally = Tally(plan.beforehand, bar, plan.figure_words)
        pieces = [(tiles, int(start), int(stop)) for start, stop in itertools.pairwise(plan.bounds)]
        source.map_tasks(
            _count, pieces, what="pairs of features", n_threads=n_threads, on_answer=lambda _, piece: tally.add(piece)
        )
    return tally.at_least


class _Plan(NamedTuple):
    """All pairs, in pieces; see :class:`Tiles`."""

    total: int
    unit: str
    figure_words: str
    bounds: np.ndarray
    beforehand: np.ndarray


def _tiles(source: FeatureSource, moments: Moments, edges: np.ndarray, n_threads: int) -> Tiles:
    return tiles_of(source, moments, np.flatnonzero(moments.norm > 0), edges, n_threads)


def _plan(_: FeatureSource, tiles: Tiles, n_pieces: int | None) -> _Plan:
    return _Plan(tiles.total, tiles.unit, tiles.figure_words, tiles.bounds(n_pieces), tiles.beforehand())


def _count(_: FeatureSource, tiles: Tiles, start: int, stop: int) -> Counted:
    return tiles.count(start, stop)


def _correlations(source: FeatureSource, moments: Moments, pairs: tuple[np.ndarray, np.ndarray], n_threads: int) -> np.ndarray:
    """Correlations of pairs, given by their places among the features that are not constant."""
    here = source.n_workers is None
    n_pairs = len(pairs[0])
    cuts = [0, n_pairs] if here else [*range(0, n_pairs, _PAIRS), n_pairs]
    features, own_threads = source.prepare(_varying, moments), n_threads if here else 1
    tasks = [(moments, features, pairs[0][a:b], pairs[1][a:b], own_threads) for a, b in itertools.pairwise(cuts)]
    return np.concatenate(source.map_tasks(_drawn, tasks, what="correlations of pairs of features"))


def _varying(_: FeatureSource, moments: Moments) -> np.ndarray:
    return np.flatnonzero(moments.norm > 0)


def _drawn(
    source: FeatureSource, moments: Moments, features: np.ndarray, first: np.ndarray, second: np.ndarray, n_threads: int
) -> np.ndarray:
    return correlations_of(source, moments, features[first], features[second], n_threads)


def drawn_pairs(n_features: int, n_pairs: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of different features, each pair as likely as any other, with replacement."""
    rng = check_random_state(random_state)
    first = rng.randint(0, n_features, n_pairs, dtype=np.int64)
    second = rng.randint(0, n_features - 1, n_pairs, dtype=np.int64)
    second += second >= first
    return first, second


def correlations_of(
    source: FeatureSource, moments: Moments, first: np.ndarray, second: np.ndarray, n_threads: int
) -> np.ndarray:
    """Correlations of pairs of features."""
    n_pairs = len(first)
    size = max(1, min(n_pairs, _BATCH_VALUES // (2 * source.shape[0]) if not source.is_sparse else 1 << 18))
    parts = [
        _batch_correlations(source, moments, first[start : start + size], second[start : start + size], n_threads)
        for start in range(0, n_pairs, size)
    ]
    return np.concatenate(parts)


def _batch_correlations(
    source: FeatureSource, moments: Moments, first: np.ndarray, second: np.ndarray, n_threads: int
) -> np.ndarray:
    used, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    firsts, seconds = read_only(places[: len(first)]), read_only(places[len(first) :])
    means, norms = read_only(moments.mean[used]), read_only(moments.norm[used])
    columns = source.columns(used)
    out = np.empty(len(first))
    if isinstance(columns, np.ndarray):
        matrix = read_only(columns.T)
        run_evenly(
            lambda start, stop: dense_pair_correlations(matrix, means, norms, firsts, seconds, out, start, stop),
            len(first),
            n_threads,
        )
        return out
    parts = read_only(columns.indptr), read_only(columns.indices), read_only(columns.data)
    n_samples = float(source.shape[0])
    run_evenly(
        lambda start, stop: csc_pair_correlations(*parts, means, norms, n_samples, firsts, seconds, out, start, stop),
        len(first),
        n_threads,
    )
    return out


def _read_edges(bins: Any) -> np.ndarray:
    if np.ndim(bins) == 0:
        check("bins", bins, Whole(1))
        return np.linspace(0.0, 1.0, int(bins) + 1)
    edges = np.asarray(bins, dtype=np.float64)
    if edges.ndim != 1 or len(edges) < 2 or edges[0] != 0.0 or edges[-1] != 1.0 or not (np.diff(edges) > 0).all():
        raise ValueError("bins must be a number, or edges that rise from 0 to 1, for instance [0, 0.5, 0.7, 1].")
    return edges


def _limits(counts: np.ndarray, total: int, confidence: float) -> np.ndarray:
    """Clopper and Pearson's limits of the share of each bin."""
    tail = (1.0 - confidence) / 2.0
    low = np.where(counts == 0, 0.0, stats.beta.ppf(tail, np.maximum(counts, 1), total - counts + 1))
    high = np.where(counts == total, 1.0, stats.beta.ppf(1.0 - tail, counts + 1, np.maximum(total - counts, 1)))
    return np.column_stack([low, high])
