"""Exact Pearson correlations between all features and a few, with exact pruning."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from coterie.correlation.protocol import ROUNDING, Pairs
from coterie.data.source import Columns, Exemplar, StrongPairs, StrongQuery
from coterie.data.view import FeatureView
from coterie.kernels.correlation import SAFETY, csc_cross, min_nonzeros

# Support features whose dense vectors are in memory at a time.
_BATCH_SUPPORTS = 16
# Values of the dense vectors of sparse features whose means are far above their variation, at a time.
_MAX_FAR_VALUES = 1 << 22


class PearsonCorrelation:
    """Pearson's coefficients of the features of a source, weighted by the sample weights, as a :class:`Correlation`.

    Parameters
    ----------
    view : FeatureView
        The features.
    prune : bool, default=True
        Whether to skip pairs that a bound excludes. The result is the same.
    """

    def __init__(self, view: FeatureView, *, prune: bool = True) -> None:
        self.view = view
        self.source = view.source
        self.moments = view.moments
        self.sample_weight = view.sample_weight
        self.prune = prune
        self.n_evaluated = 0
        self.n_features_read = 0
        self._cumulative_weight: np.ndarray | None = None

    def vectors(self, features: np.ndarray) -> np.ndarray:
        """Return weighted, centred and normalised columns. Their product with a feature is the correlation times its norm."""
        vectors = self._units(features)
        if self.sample_weight is not None:
            vectors *= self.sample_weight[:, None]
        return vectors

    def _units(self, features: np.ndarray) -> np.ndarray:
        """Return centred and normalised dense columns."""
        columns = self.source.columns(features)
        dense = columns if isinstance(columns, np.ndarray) else columns.toarray()
        return np.asarray((dense - self.moments.mean[features]) / self._norm(features))

    def _norm(self, features: np.ndarray) -> np.ndarray:
        """Return norms to divide by: infinity for features that are constant in a fold, which makes correlations 0."""
        norm = self.moments.norm[features]
        return np.where(norm > 0.0, norm, np.inf)

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the matrix of correlations of some features with some others."""
        self.n_evaluated += len(features) * len(others)
        self.n_features_read += len(features)
        if self.source.is_sparse:
            return self._sparse_matrix(features, others)
        result = np.empty((len(features), len(others)))
        for first in range(0, len(others), _BATCH_SUPPORTS):
            batch = others[first : first + _BATCH_SUPPORTS]
            products = self.source.products(self.vectors(batch), centre=self.moments.mean, features=features)
            result[:, first : first + len(batch)] = products / self._norm(features)[:, None]
        return np.clip(result, -1.0, 1.0)

    def within(self, features: np.ndarray) -> np.ndarray:
        """Return the matrix of correlations between a few features. Reads their columns once."""
        self.n_evaluated += len(features) * (len(features) - 1) // 2
        self.n_features_read += len(features)
        if self.source.is_sparse:
            return self._sparse_matrix(features, features)
        columns = self.source.columns(features)
        vectors = (np.asarray(columns) - self.moments.mean[features]) / self._norm(features)
        weighted = vectors if self.sample_weight is None else vectors * self.sample_weight[:, None]
        return np.clip(weighted.T @ vectors, -1.0, 1.0)

    def strong(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None) -> Pairs:
        """Return all pairs of a feature and one of ``supports`` whose absolute correlation reaches the threshold."""
        query = self.query(supports, threshold, exemplar)
        found = self.source.strong_products(query, self.moments, n_threads=self.view.n_threads)
        self.n_evaluated += found.n_evaluated
        self.n_features_read += found.n_read
        norm = self.moments.norm
        pairs = as_pairs(found, norm[found.feature], norm[supports][found.position], is_sparse=self.source.is_sparse)
        return self._with_far(pairs, supports, threshold - ROUNDING) if len(self._far_features) else pairs

    @cached_property
    def _far_features(self) -> np.ndarray:
        """Sparse features whose means are far above their variation. Products with their stored values lose most digits."""
        if not self.source.is_sparse:
            return np.empty(0, dtype=np.int64)
        return np.concatenate(self.view.map_blocks(_far_features))

    def _with_far(self, pairs: Pairs, supports: np.ndarray, limit: float) -> Pairs:
        """Return the pairs with those of the far features computed again, from centred columns."""
        far = self._far_features
        parts = [Pairs(*(part[~np.isin(pairs.feature, far)] for part in pairs))]
        step = max(1, _MAX_FAR_VALUES // self.view.n_samples)
        for first in range(0, len(far), step):
            features = far[first : first + step]
            matrix = self.between(features, supports)
            row, position = np.nonzero(np.abs(matrix) >= limit)
            parts.append(Pairs(features[row], position, matrix[row, position]))
        feature, position, correlation = (np.concatenate([part[i] for part in parts]) for i in range(3))
        order = np.lexsort((position, feature))
        return Pairs(feature[order], position[order], correlation[order])

    def query(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None) -> StrongQuery:
        """Return the query to a source for the features that are correlated with some support features."""
        limit = threshold - ROUNDING
        mean, norm = self.moments.mean[supports], self.moments.norm[supports]
        use_angle = self.prune and exemplar is not None and exemplar.norm > 0.0
        lowest, highest = np.full(len(supports), -np.inf), np.full(len(supports), np.inf)
        if use_angle:
            assert exemplar is not None
            lowest, highest = self._angle_intervals(supports, limit, exemplar)
        if self.source.is_sparse:
            centred = self.moments.is_far(supports)
            mean = np.where(centred, 0.0, mean)
            lowest[centred], highest[centred] = -np.inf, np.inf  # Their scores lose digits, too.
            columns: Columns = (weighted := self._weighted(supports, centred))
            limits = limit * norm
            fewest = self._min_nonzeros(weighted, mean, norm, limit)
        else:
            columns = self.vectors(supports)
            limits = np.full(len(supports), limit)
            fewest = np.zeros(len(supports), dtype=np.int64)
        return StrongQuery(
            columns=columns,
            means=mean,
            limits=limits,
            fewest=fewest,
            exemplar=exemplar if use_angle else None,
            lowest=lowest,
            highest=highest,
            tail_bound=self.prune and self.sample_weight is None,
        )

    def _weighted(self, features: np.ndarray, centred: np.ndarray) -> sparse.csc_array:
        """Return sparse columns, some of them centred, times the sample weights, without explicit zeros."""
        columns = sparse.csc_array(self.source.columns(features), dtype=np.float64)
        if centred.any():
            far = np.flatnonzero(centred)
            dense = self._units(features[far]) * self._norm(features[far])
            dense -= np.average(dense, axis=0, weights=self.sample_weight)  # removes the rounding error of the mean
            apart = sparse.hstack([columns[:, np.flatnonzero(~centred)], sparse.csc_array(dense)], format="csc")
            columns = sparse.csc_array(apart[:, np.argsort(np.argsort(centred, kind="stable"), kind="stable")])
        if self.sample_weight is not None:
            columns.data = columns.data * self.sample_weight[columns.indices]
        columns.eliminate_zeros()
        return columns

    def _sparse_matrix(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        products = self._sparse_products(features, others)
        mean = self.moments.mean
        centred = products - self.moments.total_weight * np.outer(mean[features], mean[others])
        result = centred / np.outer(self._norm(features), self._norm(others))
        far, far_others = (np.flatnonzero(self.moments.is_far(chosen)) for chosen in (features, others))
        if len(far):  # Centring cancels nearly all digits of these features, so dense vectors are used.
            result[far] = self._units(features[far]).T @ self.vectors(others)
        if len(far_others):
            result[:, far_others] = self._units(features).T @ self.vectors(others[far_others])
        return np.clip(result, -1.0, 1.0)

    def _sparse_products(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return weighted products of sparse columns. SciPy's setup would take longer than the products of a few columns."""
        columns: Any = self.source.columns(features)
        second: Any = columns if others is features else self.source.columns(others)
        values = np.asarray(second.data, dtype=np.float64)
        if self.sample_weight is not None:
            values = values * self.sample_weight[second.indices]
        symmetric = others is features and self._commutes
        result = np.zeros((len(features), len(others)))
        heads = np.zeros(self.source.shape[0], dtype=np.int32 if len(values) < 2**31 - 1 else np.int64)
        csc_cross(
            columns.indptr, columns.indices, np.asarray(columns.data, dtype=np.float64),
            second.indptr, second.indices, values, heads, symmetric, result,
        )  # fmt: skip
        return result

    @cached_property
    def _commutes(self) -> bool:
        """Whether the product of two values and a weight is bit-identical in any order."""
        weight = self.sample_weight
        return weight is None or bool(((weight == 0.0) | (weight == 1.0)).all())

    def _angle_intervals(self, supports: np.ndarray, threshold: float, exemplar: Exemplar) -> tuple[np.ndarray, np.ndarray]:
        """Return, per support feature, the interval in which a feature's correlation with the exemplar must lie."""
        centred = exemplar.scores[supports] - exemplar.shift * self.moments.mean[supports]
        r = np.clip(np.abs(centred) / (self.moments.norm[supports] * exemplar.norm), 0.0, 1.0)
        angle, width = np.arccos(r), np.arccos(max(threshold, 0.0))
        lowest, highest = np.cos(np.minimum(angle + width, np.pi / 2)), np.cos(np.maximum(angle - width, 0.0))
        return lowest - SAFETY, highest + SAFETY

    def _min_nonzeros(self, columns: sparse.csc_array, mean: np.ndarray, norm: np.ndarray, threshold: float) -> np.ndarray:
        """Return, per support feature, the smallest number of stored entries of an affiliated feature (the size bound)."""
        fewest = np.zeros(len(mean), dtype=np.int64)
        if not self.prune:
            return fewest
        squares = columns.data**2
        if self.sample_weight is not None:
            squares = squares / self.sample_weight[columns.indices]
        counts = np.diff(columns.indptr)
        squares = squares[np.lexsort((-squares, np.repeat(np.arange(len(mean)), counts)))]
        shares = self._largest_shares(int(counts.max(initial=0)) + 1) / self.moments.total_weight
        min_nonzeros(
            columns.indptr, squares, shares, self.moments.total_weight, self.moments.nonnegative,
            mean, norm, threshold, fewest,
        )  # fmt: skip
        return fewest

    def _largest_shares(self, length: int) -> np.ndarray:
        """Return the largest total weight of 0, 1, 2, … samples."""
        if self.sample_weight is None:
            return np.arange(length, dtype=np.float64)
        if self._cumulative_weight is None:
            self._cumulative_weight = np.append(0.0, np.cumsum(np.sort(self.sample_weight)[::-1]))
        return self._cumulative_weight[:length]


def _far_features(view: FeatureView) -> np.ndarray:
    """Return the features of a block whose means are far above their variation."""
    return view.source.first_feature + np.flatnonzero(view.moments.is_far(slice(None)))


def as_pairs(found: StrongPairs, norm: np.ndarray, other: np.ndarray, *, is_sparse: bool) -> Pairs:
    """Return pairs with correlations instead of products. ``norm`` and ``other`` are the norms of each pair's features."""
    scale = norm * (other if is_sparse else 1.0)
    return Pairs(found.feature, found.position, np.clip(found.product / scale, -1.0, 1.0))
