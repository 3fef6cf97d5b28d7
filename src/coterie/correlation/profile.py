"""The distribution of all pairwise correlations (TPAMI 2016, Fig. 1), exact or sampled."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.utils import check_random_state

from coterie._numba import read_only, run_evenly, thread_count
from coterie._parameters import Integer, Number, check
from coterie.correlation.protocol import ROUNDING
from coterie.correlation.tiles import Counted, Tally, Tiles, tiles_of
from coterie.data.source import FeatureSource, Moments
from coterie.groups.columns import Record, data_frame, plain
from coterie.inputs.opening import opened, source_of
from coterie.inputs.placement import move_to_cluster
from coterie.inputs.types import ClientLike, FeaturesLike, RandomStateLike
from coterie.kernels.correlation import csc_pair_correlations, dense_pair_correlations
from coterie.markup import notebook_table
from coterie.progress import RoundProgress

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = ["low", "high", "pairs", "share", "share_at_least", "share_low", "share_high"]
# Pieces per thread of a cluster, which balances the work, and drawn pairs per task.
_PIECES_PER_THREAD, _PAIRS_PER_TASK = 8, 1 << 16
# Largest number of values in the columns that are gathered at a time.
_BATCH_VALUES = 1 << 24


@dataclass(frozen=True, eq=False)
class CorrelationProfile:
    """Distribution of the absolute correlations of all pairs of features.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins, from 0 to 1. A bin includes its lower edge; the last bin includes both edges.
    counts : ndarray of int of shape (n_bins,)
        Number of pairs in each bin, among all pairs or among the drawn pairs.
    n_features : int
        Number of features.
    n_constant : int
        Number of constant features. They have no correlation, so pairs with them are excluded.
    n_pairs : int
        Number of pairs of features that are not constant.
    n_drawn : int or None
        Number of pairs drawn at random. None if all pairs were counted.
    confidence : float
        Confidence level of the limits.
    limits : ndarray of shape (n_bins, 2)
        Clopper-Pearson confidence limits of the shares. If all pairs were counted, these are the shares themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import correlation_profile
    >>> X = np.array([[0, 0, 1], [0, 0, 0], [1, 2, 1], [1, 2, 0]])
    >>> profile = correlation_profile(X, bins=2)
    >>> profile.counts
    array([2, 1])
    >>> profile.share_at_least(0.5)
    0.3333333333333333
    >>> print(profile)
    |correlation|  share of pairs
    0.0 - 0.5      66.667 %        ##########################  2
    0.5 - 1.0      33.333 %        ####################        1
    3 of 3 pairs of 3 features; bars are logarithmic
    """

    edges: np.ndarray
    counts: np.ndarray
    n_features: int
    n_constant: int
    n_pairs: int
    n_drawn: int | None
    confidence: float
    limits: np.ndarray

    @property
    def n_counted(self) -> int:
        """Number of counted pairs."""
        return self.n_pairs if self.n_drawn is None else self.n_drawn

    @property
    def exact(self) -> bool:
        """Whether all pairs were counted."""
        return self.n_drawn is None

    @property
    def fractions(self) -> np.ndarray:
        """Share of the pairs in each bin."""
        return self.counts / self.n_counted if self.n_counted else np.full(len(self.counts), np.nan)

    @property
    def survival(self) -> np.ndarray:
        """Share of the pairs at or above the lower edge of each bin: one minus the distribution function, as in Fig. 1."""
        totals = np.cumsum(self.counts[::-1])[::-1]
        return totals / self.n_counted if self.n_counted else np.full(len(self.counts), np.nan)

    def share_at_least(self, threshold: float) -> float:
        """Return the share of the pairs with an absolute correlation of at least ``threshold``.

        Parameters
        ----------
        threshold : float
            An edge of a bin.
        """
        position = np.flatnonzero(np.isclose(self.edges[:-1], threshold, rtol=0, atol=1e-9))
        if not len(position):
            raise ValueError(f"threshold={threshold} is not an edge of the profile's bins. Pass bins with this edge.")
        return float(self.survival[position[0]])

    def rows(self) -> list[Record]:
        """Return one dictionary per bin."""
        columns = (self.edges[:-1], self.edges[1:], self.counts, self.fractions, self.survival, *self.limits.T)
        values = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
        return [dict(zip(_COLUMNS, row, strict=True)) for row in values]

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per bin (requires ``pip install coterie[tabular]``)."""
        return data_frame(self.rows(), _COLUMNS)

    def to_dict(self) -> Record:
        """Return the profile as a dictionary of plain numbers."""
        return {
            "n_features": self.n_features,
            "n_constant": self.n_constant,
            "n_pairs": self.n_pairs,
            "n_drawn": self.n_drawn,
            "exact": self.exact,
            "confidence": self.confidence,
            "bins": plain(self.rows()),
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the profile as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)

    def text(self, width: int = 30, mark: str = "#") -> str:
        """Return a histogram as text. Bars are logarithmic, because the shares span many orders of magnitude.

        Parameters
        ----------
        width : int, default=30
            Length of the longest bar.
        mark : str, default="#"
            Character of the bars.
        """
        digits = max(1, *(len(f"{edge:.4f}".rstrip("0")) - 2 for edge in self.edges))
        longest = math.log10(max(self.n_counted, 1)) + 1.0
        lines = []
        for row in self.rows():
            length = 0 if not row["pairs"] else max(1, round(width * (math.log10(row["pairs"]) + 1.0) / longest))
            share = f"{100 * row['share']:.3f} %" if not 0 < row["share"] < 1e-5 else f"{100 * row['share']:.1e} %"
            if not self.exact:
                share += f" ({100 * row['share_low']:.3g} to {100 * row['share_high']:.3g})"
            lines.append((f"{row['low']:.{digits}f} - {row['high']:.{digits}f}", share, mark * length, f"{row['pairs']:,}"))
        lines.insert(0, ("|correlation|", "share of pairs", "", ""))
        sizes = [max(len(line[i]) for line in lines) for i in range(3)]
        text = [
            f"{a.ljust(sizes[0])}  {b.ljust(sizes[1])}  {bar.ljust(sizes[2])}  {count}".rstrip() for a, b, bar, count in lines
        ]
        return "\n".join([*text, self._summary()])

    def _summary(self) -> str:
        constant = f" ({self.n_constant:,} constant, excluded)" if self.n_constant else ""
        sampling = "" if self.exact else f" drawn at random; in brackets: limits of {self.confidence:.0%} confidence"
        pairs = f"{self.n_counted:,} of {self.n_pairs:,} pairs of {self.n_features:,} features"
        return f"{pairs}{constant}{sampling}; bars are logarithmic"

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        rows = [
            [
                f"{row['low']:.3g} – {row['high']:.3g}",
                f"{100 * row['share']:.3g} %",
                f"{100 * row['share_at_least']:.3g} %",
                f"{row['pairs']:,}",
            ]
            for row in self.rows()
        ]
        heads = ["|correlation|", "share of pairs", "at or above", "pairs"]
        kind = "all pairs" if self.exact else f"{self.n_counted:,} pairs drawn"
        return notebook_table(f"Correlations of {self.n_features:,} features, {kind}", heads, rows, most=50)

    def plot(self, ax: Axes | None = None, *, title: str | None = None) -> Figure:
        """Draw the shares as bars on a logarithmic axis, as in the paper's Fig. 1 (requires ``pip install coterie[plot]``).

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw into. By default, a new figure is created.
        title : str, optional
            Title of the plot.

        Returns
        -------
        figure : matplotlib Figure
            The figure. Its axes are ``figure.axes``.
        """
        try:
            import matplotlib.figure  # noqa: F401  # first, so that the error refers to matplotlib

            from coterie._figure import Picture
        except ImportError as error:
            raise ImportError("plot() requires matplotlib: pip install 'coterie[plot]'.") from error
        if ax is None:
            ax = Picture(figsize=(6.4, 3.6), layout="constrained").add_subplot()
        shown = self.counts > 0
        share = 100 * self.fractions
        errors = None if self.exact else np.abs(100 * self.limits.T - share)[:, shown]
        middle, width = (self.edges[:-1] + self.edges[1:]) / 2, np.diff(self.edges)
        ax.bar(middle[shown], share[shown], 0.92 * width[shown], yerr=errors, color="#4477aa", label="pairs in the bin")
        over = self.survival > 0
        ax.plot(
            self.edges[:-1][over], 100 * self.survival[over], "o-", color="#cc6677", markersize=3, label="pairs at or above"
        )
        ax.set_yscale("log")
        ax.set_xlim(-0.01, 1.01)
        ax.set_xlabel("absolute Pearson correlation")
        ax.set_ylabel("% of feature pairs")
        ax.legend(frameon=False)
        if title:
            ax.set_title(title)
        return ax.figure.figure


def correlation_profile(
    X: FeaturesLike,
    *,
    n_pairs: int | None = None,
    bins: ArrayLike = 10,
    confidence: float = 0.95,
    n_jobs: int | None = None,
    random_state: RandomStateLike = None,
    verbose: int = 0,
    client: ClientLike = None,
) -> CorrelationProfile:
    r"""Compute the distribution of the absolute Pearson correlations of all pairs of features.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, FeatureSource, path, store} of shape (n_samples, n_features)
        The data. They are not copied, and sparse data are not made dense.

    n_pairs : int, default=None
        Number of pairs to draw at random with replacement. None counts all pairs exactly.

    bins : int or array-like, default=10
        Number of bins of equal width over [0, 1], or the increasing edges of the bins from 0 to 1.

    confidence : float, default=0.95
        Confidence level of the limits of a sample.

    n_jobs : int, default=None
        Number of threads. None means all cores. The result does not depend on it.

    random_state : int, RandomState instance or None, default=None
        Seed of the random pairs.

    verbose : int, default=0
        Show progress: a bar on a terminal, lines elsewhere.

    client : distributed.Client, default=None
        Client of a Dask cluster whose workers count the pairs. X must be a store (its name, its address, or opened), which
        each worker opens. None uses the active client, if there is one.

    Returns
    -------
    profile : CorrelationProfile
        Edges, counts and shares. ``print(profile)`` shows a histogram.

    See Also
    --------
    coterie.metrics.redundancy_rate : Mean absolute correlation of a few features.

    Notes
    -----
    *Dense data* are standardised in blocks and multiplied by BLAS in single precision. The error of such a product is at most
    :math:`(n + 4) 2^{-24}`, so a correlation that is closer than this to an edge is recomputed in double precision. The counts
    are therefore those of double precision. Only a few blocks are in memory at a time.

    *Sparse data*: columns with equal entries are counted as one column with a weight. Two columns without a common sample have
    the correlation :math:`-\rho_a\rho_b`, :math:`\rho = \sqrt n\,\bar f/\|f - \bar f\|`. So all pairs are first counted as if
    they were disjoint, by one walk over the sorted :math:`|\rho|` per edge. Then only the pairs with a common sample are
    enumerated and corrected. The time is proportional to the sum over the samples of the squared number of (distinct) nonzero
    features, instead of the :math:`m^2` of all pairs.

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
        check("n_pairs", n_pairs, Integer(1))
    if n_jobs is not None:
        check("n_jobs", n_jobs, Integer())
    n_threads = thread_count(n_jobs)
    X, _ = move_to_cluster(X, None, client, reader="correlation_profile")
    # The parts of a Dask array are on different workers, but pairs require features of any two parts.
    X, _ = opened(X, cluster=not hasattr(X, "chunks"))
    source = source_of(X)
    moments = source.moments(n_threads=n_threads)
    n_varying = moments.n_varying
    n_all = n_varying * (n_varying - 1) // 2
    if n_all == 0:
        raise ValueError(f"A profile requires at least 2 features that are not constant, but X has {n_varying}.")
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
    """Return the number of pairs at or above each edge."""
    if not len(edges):
        return np.zeros(0, dtype=np.int64)
    is_local = source.n_workers is None
    tiles = source.prepare(_tiles, moments, edges, n_threads if is_local else 1, large=True)
    n_pieces = None if is_local else _PIECES_PER_THREAD * source.concurrency(n_threads)
    (plan,) = source.map_tasks(_plan, [(tiles, n_pieces)], what="a plan of the pairs")
    with RoundProgress(plan.total, verbose, "correlation profile", plan.unit) as bar:
        tally = Tally(plan.base_counts, bar, plan.figure_label)
        pieces = [(tiles, int(start), int(stop)) for start, stop in itertools.pairwise(plan.bounds)]
        source.map_tasks(
            _count, pieces, what="pairs of features", n_threads=n_threads, on_answer=lambda _, piece: tally.add(piece)
        )
    return tally.at_least


class _Plan(NamedTuple):
    """All pairs, in pieces; see :class:`Tiles`."""

    total: int
    unit: str
    figure_label: str
    bounds: np.ndarray
    base_counts: np.ndarray


def _tiles(source: FeatureSource, moments: Moments, edges: np.ndarray, n_threads: int) -> Tiles:
    return tiles_of(source, moments, np.flatnonzero(moments.norm > 0), edges, n_threads)


def _plan(_: FeatureSource, tiles: Tiles, n_pieces: int | None) -> _Plan:
    return _Plan(tiles.total, tiles.unit, tiles.figure_label, tiles.bounds(n_pieces), tiles.base_counts())


def _count(_: FeatureSource, tiles: Tiles, start: int, stop: int) -> Counted:
    return tiles.count(start, stop)


def _correlations(source: FeatureSource, moments: Moments, pairs: tuple[np.ndarray, np.ndarray], n_threads: int) -> np.ndarray:
    """Return the correlations of pairs, given by positions among the features that are not constant."""
    is_local = source.n_workers is None
    n_pairs = len(pairs[0])
    cuts = [0, n_pairs] if is_local else [*range(0, n_pairs, _PAIRS_PER_TASK), n_pairs]
    features, own_threads = source.prepare(_varying, moments), n_threads if is_local else 1
    tasks = [(moments, features, pairs[0][a:b], pairs[1][a:b], own_threads) for a, b in itertools.pairwise(cuts)]
    return np.concatenate(source.map_tasks(_drawn_correlations, tasks, what="correlations of pairs of features"))


def _varying(_: FeatureSource, moments: Moments) -> np.ndarray:
    return np.flatnonzero(moments.norm > 0)


def _drawn_correlations(
    source: FeatureSource, moments: Moments, features: np.ndarray, first: np.ndarray, second: np.ndarray, n_threads: int
) -> np.ndarray:
    return correlations_of(source, moments, features[first], features[second], n_threads)


def drawn_pairs(n_features: int, n_pairs: int, random_state: RandomStateLike) -> tuple[np.ndarray, np.ndarray]:
    """Draw pairs of different features uniformly, with replacement."""
    rng = check_random_state(random_state)
    first = rng.randint(0, n_features, n_pairs, dtype=np.int64)
    second = rng.randint(0, n_features - 1, n_pairs, dtype=np.int64)
    second += second >= first
    return first, second


def correlations_of(
    source: FeatureSource, moments: Moments, first: np.ndarray, second: np.ndarray, n_threads: int
) -> np.ndarray:
    """Return the correlations of pairs of features."""
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
    used, positions = np.unique(np.concatenate([first, second]), return_inverse=True)
    firsts, seconds = read_only(positions[: len(first)]), read_only(positions[len(first) :])
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


def _read_edges(bins: ArrayLike) -> np.ndarray:
    if np.ndim(bins) == 0:
        check("bins", bins, Integer(1))
        return np.linspace(0.0, 1.0, int(np.asarray(bins)) + 1)
    edges = np.asarray(bins, dtype=np.float64)
    if edges.ndim != 1 or len(edges) < 2 or edges[0] != 0.0 or edges[-1] != 1.0 or not (np.diff(edges) > 0).all():
        raise ValueError("bins must be a number, or increasing edges from 0 to 1, for example [0, 0.5, 0.7, 1].")
    return edges


def _limits(counts: np.ndarray, total: int, confidence: float) -> np.ndarray:
    """Return the Clopper-Pearson limits of the share of each bin."""
    tail = (1.0 - confidence) / 2.0
    low = np.where(counts == 0, 0.0, stats.beta.ppf(tail, np.maximum(counts, 1), total - counts + 1))
    high = np.where(counts == total, 1.0, stats.beta.ppf(1.0 - tail, counts + 1, np.maximum(total - counts, 1)))
    return np.column_stack([low, high])
