r"""Redundancy of the candidates: products with the matrix A of the problem, and submatrices of it.

:class:`SquaredCosine` stores no more of A than requested. With unit-length centred features F and weights z on
a support S, :math:`(Az)_i = \sum_{j \in S} (f_i'f_j)^2 z_j = f_i' M f_i` with
:math:`M = F_S\,\mathrm{diag}(z_S)\,F_S'`. The second form is cheaper if S is larger than the number of samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import enet_path

from coterie._numba import run_chunks
from coterie._warnings import ignored
from coterie.correlation.uncertainty import SymmetricalUncertainty
from coterie.data.source import LARGEST_NORM, SMALLEST_NORM, Columns, FeatureSource
from coterie.data.view import FeatureView

# Largest number of candidates per block of a pass, and of entries per block, which limits blocks of long columns.
_BLOCK_FEATURES = 1024
_BLOCK_ENTRIES = 1 << 22
# Largest number of candidates for measures that need the matrix of all pairs (800 MB).
MAX_MATRIX = 10_000
# Largest number of candidates for the sparse representation, which solves one regression per candidate.
MAX_REPRESENTATION = 2_000
# Tolerance for positive semidefinite matrices: smallest eigenvalue relative to minus the largest.
_ROUNDING = 1e-9


class Redundancy(Protocol):
    """Positive semidefinite matrix A of the candidates, with the operations of the solver."""

    @property
    def size(self) -> int:
        """Number of candidates."""
        ...

    def within(self, candidates: np.ndarray) -> np.ndarray:
        """Return the matrix between some candidates."""
        ...

    def product(self, support: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return ``A z`` for all candidates, where z is ``weights`` on ``support`` and zero elsewhere."""
        ...


class SquaredCosine:
    """Squared cosine of the centred features (eq. 2 of the paper), which is the squared Pearson correlation.

    The candidates are ``features`` of the view. None of them is constant.
    """

    def __init__(self, view: FeatureView, features: np.ndarray) -> None:
        self.source = view.source
        self.moments = view.moments
        self.features = features
        self.n_threads = view.n_threads
        self.n_samples = view.n_samples
        # Sparse columns are centred after the product. This is accurate if means are not far above the deviations.
        self._is_sparse = view.is_sparse and not view.moments.is_far(features).any()
        self._storage_order = np.argsort(features, kind="stable")

    @property
    def size(self) -> int:
        """Number of candidates."""
        return len(self.features)

    def unit_columns(self, candidates: np.ndarray) -> np.ndarray:
        """Return centred columns of unit length, in F order."""
        chosen = self.features[candidates]
        return self._unit(self.source.columns(chosen), chosen)

    def within(self, candidates: np.ndarray) -> np.ndarray:
        """Return the matrix between some candidates."""
        if self._is_sparse:
            chosen = self.features[candidates]
            columns = sparse.csc_array(self.source.columns(chosen), dtype=np.float64)
            means = self.moments.mean[chosen]
            products = (columns.T @ columns).toarray() - self.n_samples * np.outer(means, means)
            products /= self.moments.norm[chosen]
            products /= self.moments.norm[chosen][:, None]
        else:
            unit = self.unit_columns(candidates)
            products = unit.T @ unit
        np.clip(products, -1.0, 1.0, out=products)
        products *= products
        np.fill_diagonal(products, 1.0)
        return products

    def product(self, support: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return ``A z`` for all candidates, computed in blocks."""
        result = np.empty(self.size)
        part = self._sparse_part(support, weights) if self._is_sparse else self._dense_part(support, weights)
        size = max(16, min(_BLOCK_FEATURES, _BLOCK_ENTRIES // self.n_samples))

        def block(start: int, stop: int) -> None:
            positions = self._storage_order[start:stop]
            chosen = self.features[positions]
            first, last = int(chosen[0]), int(chosen[-1]) + 1
            contiguous = last - first == len(chosen)
            result[positions] = part(self.source.block(first, last) if contiguous else self.source.columns(chosen), chosen)

        run_chunks(block, [*range(0, self.size, size), self.size], self.n_threads)
        return result

    def _unit(self, columns: Columns, chosen: np.ndarray) -> np.ndarray:
        dense = columns if isinstance(columns, np.ndarray) else columns.toarray(order="F")
        unit = dense.astype(np.float64, order="F")
        unit -= self.moments.mean[chosen]
        unit /= self.moments.norm[chosen]
        return unit

    def _dense_part(self, support: np.ndarray, weights: np.ndarray) -> Callable[[Columns, np.ndarray], np.ndarray]:
        few = self.unit_columns(support)
        if len(support) < self.n_samples:

            def from_support(columns: Columns, chosen: np.ndarray) -> np.ndarray:
                products = few.T @ self._unit(columns, chosen)
                products *= products
                return weights @ products

            return from_support
        scatter = (few * weights) @ few.T

        def from_scatter(columns: Columns, chosen: np.ndarray) -> np.ndarray:
            unit = self._unit(columns, chosen)
            products = scatter @ unit
            products *= unit
            return products.sum(axis=0)

        return from_scatter

    def _sparse_part(self, support: np.ndarray, weights: np.ndarray) -> Callable[[Columns, np.ndarray], np.ndarray]:
        r"""Return a function for :math:`\sum_j z_j (g_{ij} - n\mu_i\mu_j)^2 / \|f_j\|^2` from the sparse products g."""
        mine = self.features[support]
        few = sparse.csr_array(self.source.columns(mine), dtype=np.float64)
        means, scaled = self.moments.mean[mine], weights / self.moments.norm[mine] ** 2

        def from_products(columns: Columns, chosen: np.ndarray) -> np.ndarray:
            products = sparse.csr_array(columns.T.astype(np.float64) @ few)
            centre = self.n_samples * self.moments.mean[chosen]
            linear = products @ (scaled * means)
            products.data *= products.data
            total = products @ scaled - 2.0 * centre * linear + centre**2 * (scaled @ means**2)
            return np.maximum(total, 0.0) / self.moments.norm[chosen] ** 2

        return from_products


class MatrixRedundancy:
    """Positive semidefinite matrix that is given and has been checked."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    @property
    def size(self) -> int:
        """Number of candidates."""
        return len(self.matrix)

    def within(self, candidates: np.ndarray) -> np.ndarray:
        """Return the matrix between some candidates."""
        return self.matrix[np.ix_(candidates, candidates)]

    def product(self, support: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return ``A z`` for all candidates."""
        return np.asarray(self.matrix[:, support] @ weights)


def mutual_information(view: FeatureView, features: np.ndarray, *, n_bins: int = 10) -> np.ndarray:
    r"""Return the matrix of :math:`I(f_i; f_j) / \sqrt{H(f_i) H(f_j)}` on bins of equal width, with a diagonal of 1.

    Without the division by the entropies, a feature of low entropy would have a low redundancy with all features, itself
    included. Matrices of mutual information are usually not positive semidefinite, but nearly so. If the smallest eigenvalue
    is negative, its absolute value is added to the diagonal.
    """
    measure = SymmetricalUncertainty(view, n_bins=int(n_bins))
    matrix = measure.between(features, features)
    entropy = measure.entropy[features]
    safe = np.where(entropy > 0, entropy, 1.0)
    matrix *= 0.5 * (entropy[:, None] + entropy) / np.sqrt(np.outer(safe, safe))
    return _made_semidefinite(matrix)


def sparse_representation(view: FeatureView, features: np.ndarray, *, alpha: float = 0.1, l1_ratio: float = 0.9) -> np.ndarray:
    r"""Return the matrix of :math:`\frac12(|c_{ij}| + |c_{ji}|)`, with :math:`c_i` the sparse representation of feature i.

    .. math:: \min_{c,\ c_{ii} = 0}\ \tfrac12 \|f_i - \textstyle\sum_j c_{ij} f_j\|^2
        + \alpha\big(\theta \|c_i\|_1 + \tfrac{1-\theta}2 \|c_i\|^2\big)

    for centred features of unit length. Correlations below :math:`\alpha\theta` therefore have no effect. The paper names
    the measure (Algorithm 3) without a formula. The quadratic term makes the representation unique: without it a feature
    could be represented by any of several copies.
    The diagonal is 1. If the smallest eigenvalue is negative, its absolute value is added to the diagonal.
    """
    n_samples = view.n_samples
    # scikit-learn divides the loss by the number of samples. Columns of length sqrt(n_samples) compensate for this.
    columns = SquaredCosine(view, features).unit_columns(np.arange(len(features))) * np.sqrt(n_samples)
    gram = columns.T @ columns
    matrix = np.zeros_like(gram)
    candidates = np.arange(len(features))
    with ignored(ConvergenceWarning):  # the precision is sufficient for a measure of similarity
        for i in candidates if len(features) > 1 else ():
            others = np.delete(candidates, i)
            own = gram[np.ix_(others, others)]
            _, coef, _ = enet_path(
                np.asfortranarray(columns[:, others]), columns[:, i], l1_ratio=float(l1_ratio), alphas=[float(alpha)],
                precompute=own, Xy=np.ascontiguousarray(gram[others, i]), check_input=False, tol=1e-6,
            )  # fmt: skip
            matrix[i, others] = np.abs(coef[:, 0])
    return _made_semidefinite(matrix)


def _made_semidefinite(matrix: np.ndarray) -> np.ndarray:
    """Return the symmetric part of a matrix with a diagonal of 1, or more if required for positive semidefiniteness."""
    matrix = 0.5 * (matrix + matrix.T)
    np.fill_diagonal(matrix, 1.0)
    lowest = float(np.linalg.eigvalsh(matrix)[0])
    if lowest < 0.0:
        matrix[np.diag_indices_from(matrix)] += (1.0 + _ROUNDING) * -lowest
    return matrix


def as_numbers(values: ArrayLike, wrong: str) -> np.ndarray:
    """Return a new float64 array of real numbers. The error for text or complex numbers starts with ``wrong``."""
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biufO":
            raise TypeError(f"the values have type {given.dtype}")
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{wrong}: {str(error).rstrip('.')}.") from error


def checked_matrix(matrix: ArrayLike | sparse.sparray | sparse.spmatrix, n_features: int, origin: str) -> np.ndarray:
    """Return a float64 matrix. Raise an error unless it is square, finite, symmetric and positive semidefinite."""
    dense = matrix.toarray() if isinstance(matrix, (sparse.sparray, sparse.spmatrix)) else matrix
    result = as_numbers(dense, f"{origin} must be a matrix of numbers")
    if result.ndim != 2 or result.shape[0] != result.shape[1]:
        raise ValueError(f"{origin} must be a square matrix of features by features, but has shape {result.shape}.")
    if len(result) != n_features:
        raise ValueError(f"{origin} has shape {result.shape}, but there are {n_features} features.")
    bad = np.argwhere(~np.isfinite(result))
    if len(bad):
        raise ValueError(f"{origin} contains NaN or infinity, first between features {bad[0][0]} and {bad[0][1]}.")
    scale = float(np.abs(result).max(initial=0.0))
    if scale > LARGEST_NORM or 0.0 < scale < SMALLEST_NORM:
        raise ValueError(f"{origin} has a largest value of {scale:.0e}, which is too far from 1. Divide it by this value.")
    uneven = np.argwhere(np.abs(result - result.T) > 1e-8 * scale)
    if len(uneven):
        i, j = uneven[0]
        raise ValueError(f"{origin} is not symmetric: {result[i, j]:g} and {result[j, i]:g} between features {i} and {j}.")
    result = 0.5 * (result + result.T)
    values = np.linalg.eigvalsh(result)
    if values[0] < -_ROUNDING * max(values[-1], 0.0) or values[-1] <= 0.0:
        raise ValueError(
            f"{origin} is not positive semidefinite (smallest eigenvalue {values[0]:.3g}, largest {values[-1]:.3g}), so the "
            "problem would not be convex. Square the correlations, or increase the diagonal."
        )
    return result


def given_matrix(redundancy: object, X: Any, n_features: int) -> np.ndarray | None:
    """Return the checked matrix of all features, or None unless the user provides it."""
    if isinstance(redundancy, str) and redundancy == "precomputed":
        if isinstance(X, FeatureSource):
            raise ValueError("redundancy='precomputed' requires X to be an array of features by features.")
        return checked_matrix(X, n_features, "X, the redundancy matrix,")
    if isinstance(redundancy, str) or callable(redundancy):
        return None
    return checked_matrix(cast("ArrayLike", redundancy), n_features, "redundancy")
