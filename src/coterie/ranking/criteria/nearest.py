"""Cross-validated accuracy of the k-nearest-neighbour classifier."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import numpy as np

from coterie._numba import read_only
from coterie._validation import read_labels, require_integer
from coterie.data.source import FeatureSource
from coterie.kernels.neighbours import count_right, count_right_again, workspace_size
from coterie.ranking.criteria.base import Criterion, Fold, dense_columns, mean_over_folds, read_cv

# Whole numbers with squared norms up to here have products free of rounding in single precision.
_EXACT = 2.0**22
_EXACT_DOUBLE = 2.0**51
_SINGLE, _DOUBLE = 2.0**-24, 2.0**-53
_BLOCK = 1024


class KNNCriterion(Criterion):
    """Accuracy of the k nearest neighbours (Euclidean, equal votes), cross-validated.

    The same number as ``cross_val_score(KNeighborsClassifier(n_neighbors, algorithm="brute"), X[:, features], y,
    cv=cv).mean()`` for float64 data, many times faster.

    Parameters
    ----------
    n_neighbors : int, default=3
        Number of neighbours that vote.

    See Also
    --------
    LinearSVMCriterion, RidgeCriterion : Linear classifiers.
    EstimatorCriterion : Any estimator of scikit-learn.

    Notes
    -----
    Neighbours are found from products in single precision. Where the distance to the next sample is larger than a bound on
    all rounding errors, scikit-learn's own included, the neighbours are proved to be the same. All other samples (those
    with ties, mostly) are done again exactly as scikit-learn does them: the same blocks of double-precision products by the
    same BLAS, and the same heap. Whole numbers of moderate size have no rounding errors to begin with.

    What *exactly* rests on: of several samples at the same distance scikit-learn keeps those that its heap happens to keep,
    which depends on its number of threads from 257 training samples on. This criterion keeps those of one thread. With
    ``algorithm="auto"`` and at most 15 features scikit-learn uses a tree, and on sparse matrices a partial sort; both break
    ties differently again. Sparse data have the value of the same columns as an array.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie import DependencyAwareSelector
    >>> from coterie.ranking import KNNCriterion
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = DependencyAwareSelector(KNNCriterion(n_neighbors=5), n_features_to_select=2, n_probes=50, random_state=0)
    >>> selector.fit(X, y).get_support()
    array([False, False,  True,  True])
    """

    prefer: ClassVar[str] = "threads"

    def __init__(self, n_neighbors: int = 3) -> None:
        self.n_neighbors = n_neighbors

    def bind(self, source: FeatureSource, y: np.ndarray, cv: Any) -> NeighbourAccuracy:
        """Check the parameters against the data and return what evaluates subsets."""
        require_integer("n_neighbors", self.n_neighbors, minimum=1)
        classes, codes = read_labels(y, None)
        folds = read_cv(cv, codes, classifier=True)
        fewest = min(len(train) for train, _ in folds)
        if self.n_neighbors > fewest:
            raise ValueError(f"n_neighbors={self.n_neighbors} is more than the {fewest} training samples of a fold.")
        return NeighbourAccuracy(source, codes, len(classes), int(self.n_neighbors), folds)


class NeighbourAccuracy:
    """Cross-validated accuracy of the nearest neighbours on some features."""

    def __init__(self, source: FeatureSource, codes: np.ndarray, n_classes: int, k: int, folds: list[Fold]) -> None:
        self.source = source
        self.codes = codes.astype(np.int64)
        self.n_classes = n_classes
        self.k = k
        self.folds: list[Fold] | None = folds
        mean = source.moments().mean
        self.whole = _whole_numbers(source)
        # Distances do not depend on the centre; a whole one keeps whole numbers whole.
        self.centre = np.where(self.whole, np.rint(mean), mean)
        self._local = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_local"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._local = threading.local()

    def __call__(self, features: np.ndarray) -> float:
        """Mean accuracy over the folds."""
        raw = dense_columns(self.source, features)
        n_samples, n_features = raw.shape
        matrix = raw - self.centre[features]
        norms = np.einsum("ij,ij->i", matrix, matrix)
        raw_norms = np.einsum("ij,ij->i", raw, raw)
        largest = float(norms.max())
        exact = bool(self.whole[features].all()) and largest <= _EXACT and float(raw_norms.max()) <= _EXACT_DOUBLE
        if exact:
            slack = np.zeros(n_samples)
        else:
            scale = 2.0 ** -np.round(np.log2(max(largest, 1e-300)) / 2)  # no overflow, no underflow
            matrix *= scale
            norms *= scale**2
            slack = _slack(np.sqrt(norms), np.sqrt(raw_norms) * scale, n_features)
        queries, others, space = self._arrays(n_samples, n_features + 1)
        np.multiply(matrix, -2.0, out=queries[:, :-1], casting="same_kind")
        queries[:, -1] = 1.0
        others[:, :-1] = matrix
        others[:, -1] = norms
        assert self.folds is not None
        return mean_over_folds(
            [self._right(raw, queries, others, slack, exact, fold, space) for fold in self.folds], self.folds
        )

    def _right(
        self,
        raw: np.ndarray,
        queries: np.ndarray,
        others: np.ndarray,
        slack: np.ndarray,
        exact: bool,
        fold: Fold,
        space: np.ndarray,
    ) -> int:
        """Test samples of a fold whose neighbours vote for their own class."""
        train, test = fold
        codes, n_classes, k = self.codes, self.n_classes, self.k
        unsure = np.zeros(len(test), dtype=np.bool_)
        right = count_right(queries, others, slack, codes, n_classes, k, exact, train, test, unsure, space)
        if unsure.any():
            right += count_right_again(raw[test], raw[train], codes[test], codes[train], n_classes, k, unsure)
        return int(right)

    def _arrays(self, n_samples: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Room for the two factors and for the kernel, kept from call to call: fresh memory is slow."""
        assert self.folds is not None
        needed = 2 * n_samples * width + max(workspace_size(len(train), width) for train, _ in self.folds)
        if len(getattr(self._local, "room", ())) < needed:
            self._local.room = np.empty(needed, dtype=np.float32)
        room = self._local.room
        half = n_samples * width
        return room[:half].reshape(n_samples, width), room[half : 2 * half].reshape(n_samples, width), room[2 * half :]


def _slack(norms: np.ndarray, raw_norms: np.ndarray, n_features: int) -> np.ndarray:
    r"""Gap behind the k-th neighbour that rounding cannot close, for each sample.

    With :math:`\gamma = (d + 5) u / (1 - (d + 5) u)`, the values ``|z_j|^2 - 2 z_i.z_j`` that single precision finds are
    off by at most :math:`\gamma_{32} (N^2 + 2 |z_i| N)`, N the largest norm, and the squared distances of scikit-learn by
    at most :math:`\gamma_{64} (|x_i| + N_x)^2`, from the data as they are. Two values are involved.
    """
    single, double = ((n_features + 5) * unit / (1 - (n_features + 5) * unit) for unit in (_SINGLE, _DOUBLE))
    largest, raw_largest = norms.max(), raw_norms.max()
    return 2.0 * (single * (largest**2 + 2 * norms * largest) + double * (raw_norms + raw_largest) ** 2)


def _whole_numbers(source: FeatureSource) -> np.ndarray:
    """Which features hold whole numbers only."""
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
