"""Criteria from the k nearest neighbours: cross-validated accuracy or coefficient of determination."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.neighbors import KNeighborsRegressor

from coterie._numba import read_only
from coterie._parameters import Integer, Rule, check_parameters
from coterie.data.source import FeatureSource
from coterie.inputs.folds import Fold, read_folds
from coterie.inputs.targets import read_labels, read_targets
from coterie.inputs.types import FoldsLike
from coterie.kernels.neighbours import buffer_size, count_correct, count_correct_exactly, gather_factors, squared_norms
from coterie.probing.criteria.base import Criterion, CrossValidatedScore, mean_over_folds

# Products of integer vectors with squared norms up to this value have no rounding errors in single precision.
_EXACT = 2.0**22
_EXACT_DOUBLE = 2.0**51
_SINGLE, _DOUBLE = 2.0**-24, 2.0**-53
_BLOCK = 1024
# Largest number of values of a matrix that is kept in memory in feature-major order (64 MB).
_MAX_TABLE_VALUES = 1 << 23


class KNNCriterion(Criterion):
    """Cross-validated accuracy of the k nearest neighbours (Euclidean distance, equal votes).

    The value equals ``cross_val_score(KNeighborsClassifier(n_neighbors, algorithm="brute"), X[:, features], y,
    cv=cv).mean()`` for float64 data, and is computed many times faster.

    Parameters
    ----------
    n_neighbors : int, default=3
        Number of neighbours that vote.

    See Also
    --------
    LinearSVMCriterion, RidgeCriterion : Linear classifiers.
    EstimatorCriterion : Any scikit-learn estimator.

    Notes
    -----
    Neighbours are computed from products in single precision. If the distance to the next sample exceeds a bound on all
    rounding errors, including those of scikit-learn, the neighbours are proved to be the same. All other samples (mostly
    those with ties) are recomputed exactly as in scikit-learn: with the same blocks of double-precision products, the same
    BLAS and the same heap. Integers of moderate size have no rounding errors.

    *Exactly* has one condition. Of several samples at the same distance, scikit-learn keeps those that remain in its heap.
    From 257 training samples on, these depend on its number of threads. This criterion keeps those of one thread. With
    ``algorithm="auto"`` and at most 15 features scikit-learn uses a tree, and for sparse matrices a partial sort. Both break
    ties differently. The value for sparse data is that of the same columns as an array.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie import DependencyAwareSelector
    >>> from coterie.probing import KNNCriterion
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = DependencyAwareSelector(KNNCriterion(n_neighbors=5), n_features_to_select=2, n_probes=50, random_state=0)
    >>> selector.fit(X, y).get_support()
    array([False, False,  True,  True])
    """

    prefer: ClassVar[str] = "threads"
    _allowed: ClassVar[Mapping[str, Rule]] = {"n_neighbors": Integer(1)}

    def __init__(self, n_neighbors: int = 3) -> None:
        self.n_neighbors = n_neighbors

    def bind(self, source: FeatureSource, y: np.ndarray, cv: FoldsLike) -> NeighbourAccuracy:
        """Check the parameters against the data and return an evaluator."""
        check_parameters(self)
        classes, codes = read_labels(y, None)
        folds = read_folds(cv, codes, classifier=True)
        _require_enough(self.n_neighbors, folds)
        return NeighbourAccuracy(source, codes, len(classes), int(self.n_neighbors), folds)


def _require_enough(n_neighbors: int, folds: list[Fold]) -> None:
    fewest = min(len(train) for train, _ in folds)
    if n_neighbors > fewest:
        raise ValueError(f"n_neighbors={n_neighbors} is more than the {fewest} training samples of a fold.")


class KNNRegressionCriterion(Criterion):
    """Cross-validated coefficient of determination (R²) of the mean of the k nearest neighbours.

    The value is ``cross_val_score(KNeighborsRegressor(n_neighbors), X[:, features], y, cv=cv).mean()``.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours that are averaged.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from coterie import DependencyAwareSelector
    >>> X, y = load_diabetes(return_X_y=True)
    >>> selector = DependencyAwareSelector("knn_regression", n_features_to_select=2, n_probes=60, random_state=0)
    >>> sorted(selector.fit(X, y).support_features_.tolist())
    [2, 8]
    """

    _allowed: ClassVar[Mapping[str, Rule]] = {"n_neighbors": Integer(1)}

    def __init__(self, n_neighbors: int = 5) -> None:
        self.n_neighbors = n_neighbors

    def bind(self, source: FeatureSource, y: np.ndarray, cv: FoldsLike) -> CrossValidatedScore:
        """Check the parameters against the data and return an evaluator."""
        check_parameters(self)
        targets = read_targets(y)
        folds = read_folds(cv, targets, classifier=False)
        _require_enough(self.n_neighbors, folds)
        return CrossValidatedScore(source, targets, KNeighborsRegressor(int(self.n_neighbors)), None, folds)


@dataclass(frozen=True)
class _Part:
    """One fold of a batch: rows of its test samples, its training samples, and their order in scikit-learn."""

    fold: int
    rows: slice
    columns: slice
    placed: np.ndarray
    turn: np.ndarray


@dataclass(frozen=True)
class _Batch:
    """Samples whose factors are gathered once, for one fold or for all folds.

    Folds that test every sample once share a batch. Its samples are ordered by fold and repeated (``twice``), so that the
    training samples of a fold are contiguous: they extend from its end to its second beginning.
    """

    samples: np.ndarray
    twice: bool
    parts: list[_Part]

    @property
    def n_rows(self) -> int:
        """Number of rows of the second factor."""
        return len(self.samples) * (1 + self.twice)


def _batches(folds: list[Fold], n_samples: int) -> list[_Batch]:
    order = np.concatenate([test for _, test in folds])
    ends = np.cumsum([len(test) for _, test in folds])
    place = np.full(n_samples, -1)
    place[order] = np.arange(len(order))
    partition = len(order) == n_samples and (place >= 0).all()
    if partition and all(len(train) + len(test) == n_samples for train, test in folds):
        turns = [(place[train] - end) % n_samples for (train, _), end in zip(folds, ends, strict=True)]
        if all(turn.max() < n_samples - len(test) for turn, (_, test) in zip(turns, folds, strict=True)):
            parts = [
                _Part(
                    number, slice(end - len(test), end), slice(end, end - len(test) + n_samples), train[np.argsort(turn)], turn
                )
                for number, ((train, test), end, turn) in enumerate(zip(folds, ends.tolist(), turns, strict=True))
            ]
            return [_Batch(order, True, parts)]
    return [
        _Batch(
            np.append(test, train),
            False,
            [_Part(number, slice(len(test)), slice(len(test), None), train, np.arange(len(train)))],
        )
        for number, (train, test) in enumerate(folds)
    ]


class NeighbourAccuracy:
    """Cross-validated accuracy of the nearest neighbours, as a function of the features."""

    def __init__(self, source: FeatureSource, codes: np.ndarray, n_classes: int, k: int, folds: list[Fold]) -> None:
        self.source = source
        self.codes = codes.astype(np.int64)
        self.n_classes = n_classes
        self.k = k
        self.folds: list[Fold] | None = folds
        self.batches = _batches(folds, len(codes))
        mean = source.moments().mean
        self.whole = _whole_numbers(source)
        # Distances do not depend on the centre. An integer centre keeps integer features integer.
        self.centre = np.where(self.whole, np.rint(mean), mean)
        self.by_feature = _by_feature(source)
        self._local = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_local"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._local = threading.local()

    def __call__(self, features: np.ndarray) -> float:
        """Return the mean accuracy over the folds."""
        table = self._table(features)
        centre = self.centre[features]
        norms = np.empty(table.shape[1])
        squared_norms(table, centre, norms)
        largest, offset = float(norms.max()), float(centre @ centre)
        exact = bool(self.whole[features].all()) and largest <= _EXACT and 2 * (largest + offset) <= _EXACT_DOUBLE
        # Scaling by a power of 2 prevents overflow and underflow without rounding.
        scale = 1.0 if exact else 2.0 ** -np.round(np.log2(max(largest, 1e-300)) / 2)
        slack = _slack(np.sqrt(norms), np.sqrt(offset), len(features), scale, exact)
        assert self.folds is not None
        n_correct = [0] * len(self.folds)
        for batch in self.batches:
            queries, others, room = self._arrays(batch, len(features) + 1)
            gather_factors(table, centre, scale, norms, batch.samples, queries, others)
            if batch.twice:
                others[len(batch.samples) :] = others[: len(batch.samples)]
            for part in batch.parts:
                factors = queries[part.rows], others[part.columns]
                n_correct[part.fold] = self._count_correct(table, factors, slack, exact, part, room)
        return mean_over_folds(n_correct, self.folds)

    def _count_correct(
        self,
        table: np.ndarray,
        factors: tuple[np.ndarray, np.ndarray],
        slack: tuple[np.ndarray, np.ndarray],
        exact: bool,
        part: _Part,
        room: np.ndarray,
    ) -> int:
        """Return the number of test samples of a fold whose neighbours vote for their own class."""
        assert self.folds is not None
        (train, test), codes, n_classes, k = self.folds[part.fold], self.codes, self.n_classes, self.k
        unsure = np.zeros(len(test), dtype=np.bool_)
        n_correct = count_correct(
            *factors, *slack, codes, test, part.placed, part.turn, table, n_classes, k, exact, unsure, room
        )
        if unsure.any():
            raw = np.ascontiguousarray(table.T)
            n_correct += count_correct_exactly(raw[test], raw[train], codes[test], codes[train], n_classes, k, unsure)
        return int(n_correct)

    def _table(self, features: np.ndarray) -> np.ndarray:
        """Return the values of features, one row per feature."""
        if self.by_feature is None:
            columns = self.source.columns(features)
            dense = columns if isinstance(columns, np.ndarray) else columns.toarray(order="F")
            return dense.T.astype(np.float64, copy=False)
        size = len(features) * len(self.codes)
        if len(getattr(self._local, "table", ())) < size:
            self._local.table = np.empty(size)
        table = self._local.table[:size].reshape(len(features), len(self.codes))
        return np.take(self.by_feature, features, axis=0, out=table, mode="clip")  # other modes make another copy

    def _arrays(self, batch: _Batch, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return buffers for the two factors and the kernel. They are reused, because allocation is slow."""
        n_samples, n_rows = len(batch.samples), batch.n_rows
        ends = np.cumsum([n_samples * width, n_rows * width, buffer_size(len(self.codes))])
        if len(getattr(self._local, "room", ())) < ends[-1]:
            self._local.room = np.empty(ends[-1], dtype=np.float32)
        queries, others, room = np.split(self._local.room[: ends[-1]], ends[:-1])
        return queries.reshape(n_samples, width), others.reshape(n_rows, width), room


def _slack(norms: np.ndarray, offset: float, n_features: int, scale: float, exact: bool) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the smallest gaps after the k-th neighbour that exceed rounding errors, per sample, in single and double.

    Let :math:`\gamma = (d + 5) u / (1 - (d + 5) u)`. The errors of the values ``|z_j|^2 - 2 z_i.z_j`` in single precision
    are at most :math:`\gamma_{32} (N^2 + 2 |z_i| N)`, where N is the largest norm. The errors of scikit-learn's squared
    distances, from products of the uncentred data, are at most :math:`\gamma_{64} (|x_i| + N_x)^2`. The same bound holds
    for squared distances summed over features. Norms of x are at most those of z plus that of the centre (``offset``). Two
    values are compared, hence the factor 2. Values in single precision are scaled; distances are not.
    """
    if exact:
        return np.zeros(len(norms)), np.zeros(len(norms))
    single, double = ((n_features + 5) * unit / (1 - (n_features + 5) * unit) for unit in (_SINGLE, _DOUBLE))
    largest = norms.max()
    fine = 4.0 * double * (norms + largest + 2 * offset) ** 2
    return 2.0 * single * scale**2 * (largest**2 + 2 * norms * largest) + fine * scale**2, fine


def _by_feature(source: FeatureSource) -> np.ndarray | None:
    """Return all values, one row per feature, if they are dense and small; this makes gathering columns fast."""
    n_samples, n_features = source.shape
    if source.is_sparse or n_samples * n_features > _MAX_TABLE_VALUES:
        return None
    return read_only(np.ascontiguousarray(np.asarray(source.block(0, n_features)).T, dtype=np.float64))


def _whole_numbers(source: FeatureSource) -> np.ndarray:
    """Return a mask of the features with integer values only."""
    whole = np.ones(source.shape[1], dtype=np.bool_)
    for start, block in source.blocks(_BLOCK):
        if block.dtype.kind in "biu":
            continue
        if not isinstance(block, np.ndarray):
            broken = block.data != np.rint(block.data)
            columns = np.repeat(np.arange(block.shape[1]), np.diff(block.indptr))
            whole[start + columns[broken]] = False
        else:
            whole[start : start + block.shape[1]] = (block == np.rint(block)).all(axis=0)
    return read_only(whole).view(np.bool_)
