"""All pairs of dense columns: BLAS products of standardised blocks, checked near the edges."""

from __future__ import annotations

import numpy as np

from coterie._numba import boundaries, read_only
from coterie.correlation.profile.counted import Counted
from coterie.data.source import FeatureSource, Moments
from coterie.kernels.pairs import standardise, tile_counts

# Features of a block: large enough for BLAS, small enough for a product to stay in the caches.
BLOCK = 1024
# Samples from which on single precision leaves too much to be checked.
_SINGLE_PRECISION = 100_000
# Multiplications and additions a second of one core in single precision, to choose between dense and sparse.
_SPEED = 5e10


def dense_cost(n_samples: int, n_features: int) -> float:
    """About how many seconds of one core the products take."""
    return n_features * n_features * n_samples / _SPEED


class DenseTiles:
    r"""All pairs of dense columns, in rows of blocks: a block with itself and all that come after it.

    With unit roundoff u, a product of two rounded unit vectors in any order of summation has an error of at most
    :math:`(n + 2) u / (1 - (n + 2) u)` (Higham, *Accuracy and stability of numerical algorithms*, section 3.1, and
    Cauchy-Schwarz); (n + 4) u covers it and the rounding of the edges for all n for which single precision is used.

    Parameters
    ----------
    source : FeatureSource
        The features; sparse columns are made dense, a block at a time.
    moments : Moments
        Their moments.
    features : ndarray of int
        Those that are not constant.
    edges : ndarray
        Absolute correlations to reach.
    """

    unit = "features"
    figure_words = "products computed again"

    def __init__(self, source: FeatureSource, moments: Moments, features: np.ndarray, edges: np.ndarray) -> None:
        n_samples = source.shape[0]
        self.source, self.features, self.edges = source, features, read_only(edges)
        self.kind = np.float32 if n_samples <= _SINGLE_PRECISION else np.float64
        self.error = (n_samples + 4) * float(np.finfo(self.kind).eps) * 0.51
        self.means, self.norms = read_only(moments.mean[features]), read_only(moments.norm[features])
        self.total = len(features)

    def bounds(self, n_chunks: int | None = None) -> np.ndarray:
        """Rows of blocks; the first ones are the longest."""
        n_rows = -(-self.total // BLOCK)
        if n_chunks is None or n_chunks >= n_rows:
            return np.arange(n_rows + 1)
        return boundaries(np.concatenate([[0], np.cumsum(np.arange(n_rows, 0, -1))]), n_chunks)

    def beforehand(self) -> np.ndarray:
        """Nothing: every pair is in a row."""
        return np.zeros(len(self.edges), dtype=np.int64)

    def count(self, start: int, stop: int) -> Counted:
        """The pairs of some rows of blocks."""
        counts, checked = np.zeros(len(self.edges), dtype=np.int64), np.zeros(1, dtype=np.int64)
        for number in range(start, stop):
            self._count_row(number * BLOCK, counts, checked)
        return Counted(counts, min(stop * BLOCK, self.total) - start * BLOCK, int(checked[0]))

    def _count_row(self, first: int, counts: np.ndarray, checked: np.ndarray) -> None:
        left = self._block(first)
        left_unit = self._standardised(left, first)
        for other in range(first, self.total, BLOCK):
            right = left if other == first else self._block(other)
            right_unit = left_unit if other == first else self._standardised(right, other)
            tile = left_unit @ right_unit.T
            tile_counts(tile, left, right, self.means, self.norms, first, other, self.edges, self.error, counts, checked)

    def _block(self, first: int) -> np.ndarray:
        chosen = self.features[first : first + BLOCK]
        if len(chosen) == chosen[-1] - chosen[0] + 1:  # no constant feature in between
            columns = self.source.block(int(chosen[0]), int(chosen[-1]) + 1)
        else:
            columns = self.source.columns(chosen)
        return read_only((columns if isinstance(columns, np.ndarray) else columns.toarray(order="F")).T)

    def _standardised(self, columns: np.ndarray, first: int) -> np.ndarray:
        out = np.empty(columns.shape, dtype=self.kind)
        standardise(columns, self.means, self.norms, first, out)
        return out
