"""Pearson correlation between all features and a few, exact, after exact pruning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie._numba import even_boundaries, run_chunks
from coterie.data.source import FeatureSource, Moments
from coterie.kernels import correlation as kernels

# Correlations this close are one value: what separates rounding from a real difference.
ROUNDING = 1e-10
# Features of one correlation pass that are worked on together, which bounds its memory.
_BLOCK = 1 << 18
# Support features whose vectors are filled at a time.
_BATCH = 16


@dataclass(frozen=True)
class Exemplar:
    r"""Scores of all features with one vector, which the angle bound compares.

    Attributes
    ----------
    scores : ndarray of shape (n_features,)
        :math:`f_j'\tilde\alpha`.
    shift : float
        What the mean is multiplied by to centre the scores: 0 when they are centred already, else
        the sum of :math:`\tilde\alpha`.
    norm : float
        Norm of the centred exemplar :math:`\tilde\alpha / \omega` in the weighted inner product.
    """

    scores: np.ndarray
    shift: float
    norm: float


class PearsonCorrelation:
    """Correlations of the features of a source, weighted by the sample weights.

    Parameters
    ----------
    source : FeatureSource
        The features.
    moments : Moments
        Their moments with the same sample weights.
    sample_weight : ndarray of shape (n_samples,) or None
        Weights of the samples; None for equal ones.
    prune : bool, default=True
        Whether to skip pairs that a bound excludes; the result is the same.
    n_threads : int, default=1
        Number of threads.

    Attributes
    ----------
    n_evaluated : int
        Pairs whose correlation was computed.
    n_features_read : int
        Features that were read for it.
    """

    def __init__(
        self,
        source: FeatureSource,
        moments: Moments,
        sample_weight: np.ndarray | None = None,
        *,
        prune: bool = True,
        n_threads: int = 1,
    ) -> None:
        self.source = source
        self.moments = moments
        self.sample_weight = sample_weight
        self.prune = prune
        self.n_threads = n_threads
        self.n_evaluated = 0
        self.n_features_read = 0

    def exemplar(self, scores: np.ndarray, residual: np.ndarray, centred: bool) -> Exemplar:
        """The angle bound's exemplar for a residual and the scores it gives."""
        total = float(residual.sum())
        weight = self.sample_weight
        if weight is None:
            squares = float(residual @ residual)
        else:
            used = weight > 0
            squares = float((residual[used] ** 2 / weight[used]).sum())
        norm = np.sqrt(max(squares - total**2 / self.moments.total_weight, 0.0))
        return Exemplar(scores, 0.0 if centred else total, float(norm))

    def vectors(self, features: np.ndarray) -> np.ndarray:
        """Weighted, centred and normalised columns: their products with a feature give correlation times norm."""
        columns = self.source.columns(features)
        dense = columns if isinstance(columns, np.ndarray) else columns.toarray()
        vectors = (dense - self.moments.mean[features]) / self.moments.norm[features]
        if self.sample_weight is not None:
            vectors *= self.sample_weight[:, None]
        return np.asarray(vectors)

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Matrix of correlations of some features (not constant) with some others."""
        result = np.empty((len(features), len(others)))
        for first in range(0, len(others), _BATCH):
            batch = others[first : first + _BATCH]
            products = self._products(features, self.vectors(batch))
            result[:, first : first + len(batch)] = products / self.moments.norm[features][:, None]
        return np.clip(result, -1.0, 1.0)

    def strong(
        self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All pairs (feature, position in ``supports``, correlation) with a correlation of at least the threshold."""
        found = []
        for first in range(0, len(supports), _BATCH):
            batch = supports[first : first + _BATCH]
            vectors = self.vectors(batch)
            candidates = self._candidates(batch, threshold, exemplar)
            for begin in range(0, len(candidates), _BLOCK):
                block = candidates[begin : begin + _BLOCK]
                products = self._products(block, vectors)
                feature, position, value = kernels.strong_correlations(
                    products, block, self.moments.norm, threshold - ROUNDING
                )
                found.append((feature, position + first, value))
        if not found:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        feature, position, value = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return feature, position, value

    def _products(self, features: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        self.n_evaluated += len(features) * vectors.shape[1]
        self.n_features_read += len(features)
        # All features in order are read without the detour of an index.
        everything = len(features) == self.source.shape[1] and bool(features[0] == 0 and features[-1] == len(features) - 1)
        return self.source.products(
            vectors,
            centre=self.moments.mean,
            features=None if everything and bool((np.diff(features) == 1).all()) else features,
            n_threads=self.n_threads,
        )

    def _candidates(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None) -> np.ndarray:
        """Features that no bound excludes for all of the support features, in order."""
        moments = self.moments
        n_features = self.source.shape[1]
        if not self.prune:
            return np.arange(n_features)
        lowest, highest = self._angle_intervals(supports, threshold, exemplar)
        if exemplar is None or exemplar.norm == 0.0:
            exemplar = Exemplar(moments.norm, 0.0, 1.0)  # any scores do: the intervals are open
        use_size = moments.n_nonzero is not None and moments.largest is not None
        table, starts, lengths, roots = self._size_tables(supports) if use_size else _no_tables(len(supports))
        keep = np.empty(n_features, dtype=np.bool_)
        run_chunks(
            lambda start, stop: kernels.may_affiliate(
                exemplar.scores, exemplar.shift, moments.mean, moments.norm, exemplar.norm, lowest, highest,
                use_size, moments.n_nonzero if use_size else moments.norm, moments.largest if use_size else moments.norm,
                moments.total_weight, moments.nonnegative,
                table, starts, moments.mean[supports], moments.norm[supports], lengths, roots, threshold,
                keep, start, stop,
            ),
            even_boundaries(n_features, self.n_threads),
            self.n_threads,
        )  # fmt: skip
        kept = np.flatnonzero(keep)
        # Reading every column in order beats skipping a few.
        return kept if use_size or len(kept) < 0.8 * n_features else np.arange(n_features)

    def _angle_intervals(
        self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None
    ) -> tuple[np.ndarray, np.ndarray]:
        if exemplar is None or exemplar.norm == 0.0:
            return np.full(len(supports), -np.inf), np.full(len(supports), np.inf)
        centred = exemplar.scores[supports] - exemplar.shift * self.moments.mean[supports]
        r = np.clip(np.abs(centred) / (self.moments.norm[supports] * exemplar.norm), 0.0, 1.0)
        angle, width = np.arccos(r), np.arccos(max(threshold - ROUNDING, 0.0))
        return np.cos(np.minimum(angle + width, np.pi / 2)), np.cos(np.maximum(angle - width, 0.0))

    def _size_tables(self, supports: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Norms of the c largest entries of each support feature, and what else the size bound needs."""
        columns = self.source.columns(supports)
        assert not isinstance(columns, np.ndarray)
        tables, starts, lengths, roots = [], [0], [], []
        for k in range(len(supports)):
            entries = slice(columns.indptr[k], columns.indptr[k + 1])
            values = columns.data[entries].astype(np.float64)
            weight = np.ones(len(values)) if self.sample_weight is None else self.sample_weight[columns.indices[entries]]
            squares = np.sort(weight * values**2)[::-1]
            table = np.sqrt(np.concatenate([[0.0], np.cumsum(squares)]))
            tables.append(table)
            starts.append(starts[-1] + len(table))
            lengths.append(table[-1])
            roots.append(np.sqrt(weight[values != 0].sum()))
        return np.concatenate(tables), np.array(starts), np.array(lengths), np.array(roots)


def _no_tables(n_supports: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros(1), np.zeros(n_supports + 1, dtype=np.int64), np.zeros(n_supports), np.zeros(n_supports)
