"""The columns selected so far, in the form that the master problem uses.

**Distinct samples.** Samples of weight zero (those that a fold or a half-sample leaves out) are dropped. Samples with the same
merge key and equal selected columns have equal outputs for all weights. They are merged into one sample with the sum of their
weights, and the dual variable of each is its share. Most samples of sparse data have none of the few selected features, so a
problem with millions of samples reduces to one with some thousands. The reduction is exact.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Protocol, Self

import numpy as np
from scipy import sparse

from coterie._numba import run_evenly
from coterie.data.source import Columns
from coterie.data.view import FeatureView
from coterie.kernels import blocks as kernels
from coterie.kernels.blocks import number_by_first, shares_by_label, sums_by_label, values_by_label

# Merging ends if more than this share of the samples would remain. From then on every sample has its own row.
_MAX_MERGED_SHARE = 0.75
# Number of samples from which row numbers need 64 bits. There are temporarily up to twice as many numbers as samples.
_MAX_INT32_SAMPLES = 2**30
# Number of values of sparse columns that are dense at a time.
_MAX_DENSE = 1 << 24


class Coupling(Protocol):
    r"""A matrix K, for a loss whose second derivative in the outputs is :math:`\mathrm{diag}(h) - K'K`."""

    def apply(self, columns: np.ndarray) -> np.ndarray:
        """Return the product of K with columns of shape (n_samples, p)."""
        ...

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        """Return the product of the transpose of K with values of shape (n_rows, p)."""
        ...


class Rows:
    """Partition of the samples into rows of equal samples, refined by each column.

    Rows are in the order of their first samples.

    Parameters
    ----------
    kinds : ndarray of int of shape (n_samples,)
        Merge key per sample, from the loss: -1 for samples of weight zero. Samples with different keys are never merged.
    merge : bool, default=True
        Whether to merge equal samples. If False, only samples of weight zero are dropped.

    Attributes
    ----------
    owner : ndarray of int32 of shape (n_samples,)
        Row of each sample, -1 for none. Of type int64 for 2**30 samples or more.
    first : ndarray of int of shape (n_rows,)
        First sample of each row.
    """

    def __init__(self, kinds: np.ndarray, *, merge: bool = True) -> None:
        # Arrays with one entry per sample are small: there can be many samples.
        kept = np.flatnonzero(kinds >= 0)
        self._n_kept = len(kept)
        self._kept = None if len(kept) == len(kinds) else kept  # None for all samples.
        self._merging = merge
        self.owner = np.array(kinds, dtype=np.int32 if len(kinds) < _MAX_INT32_SAMPLES else np.int64)
        if merge:
            self._number(int(kinds.max(initial=-1)) + 1)
        else:
            self._separate()

    @property
    def is_all(self) -> bool:
        """Whether every sample has its own row."""
        return len(self.first) == len(self.owner)

    def refine(self, columns: Columns) -> np.ndarray | None:
        """Split rows by the values of further columns.

        Returns the previous row of each row, or None if no row was split.
        """
        if not self._merging:
            return None
        n_before, before = len(self.first), self.owner.copy()
        n_names, max_rows = n_before, _MAX_MERGED_SHARE * self._n_kept
        for samples, values in self._entries(columns):
            order = np.lexsort((values, self.owner[samples]))
            owner, value = self.owner[samples][order], values[order]
            begins = np.append(True, (owner[1:] != owner[:-1]) | (value[1:] != value[:-1]))
            n_fresh = int(np.count_nonzero(begins))
            self.owner[samples[order]] = n_names + np.cumsum(begins) - 1
            n_names += n_fresh
            if n_fresh > max_rows:  # This column alone distinguishes too many samples.
                break
            if n_names > len(self.owner):  # Otherwise the numbers of many columns could overflow.
                self._number(n_names)
                n_names = len(self.first)
        self._number(n_names)
        if len(self.first) > max_rows:
            self._merging = False
            self._separate()
        return None if len(self.first) == n_before else before[self.first]

    def of_first(self, samples: np.ndarray) -> np.ndarray:
        """Return the row of each of some samples that is the first sample of its row, -1 for the others."""
        row = self.owner[samples]
        row[self.first[row] != samples] = -1
        return row

    def copy(self) -> Rows:
        """Return an independent copy."""
        result = copy.copy(self)
        if self._merging:  # otherwise no array changes any more
            result.owner = self.owner.copy()
        return result

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of the samples' values per row."""
        if self.is_all:
            return values
        result = np.zeros(len(self.first))
        sums_by_label(self.owner, np.asarray(values, dtype=np.float64), result)
        return result

    def expand(self, values: np.ndarray) -> np.ndarray:
        """Return ``values[owner]``: the values of the samples' rows. A sample without a row gets those of the last row."""
        result = np.empty((len(self.owner), *values.shape[1:]))
        by_row = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
        values_by_label(self.owner, by_row, result.reshape(len(result), -1))
        return result

    def divide(self, values: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the values of the rows, of shape (n_rows, k), divided among their samples in proportion to the weights."""
        result = np.empty((len(self.owner), values.shape[1]))
        shares_by_label(self.owner, np.ascontiguousarray(values), weight, self.sums(weight), result)
        return result

    def _entries(self, columns: Columns) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the samples and values of each column. Samples that are not listed have the value zero."""
        for k in range(columns.shape[1]):
            if isinstance(columns, np.ndarray):
                samples = np.arange(len(self.owner)) if self._kept is None else self._kept
                values = columns[samples, k]
            else:
                entries = slice(columns.indptr[k], columns.indptr[k + 1])
                samples, values = columns.indices[entries], columns.data[entries]
                counted = (values != 0.0) & (self.owner[samples] >= 0)
                samples, values = samples[counted], values[counted]
            if len(samples):
                yield samples, values

    def _number(self, n_names: int) -> None:
        """Renumber the rows, whose numbers are below ``n_names``, in the order of their first samples."""
        first = np.empty(n_names, dtype=np.int64)
        self.first = first[: number_by_first(self.owner, first)].copy()

    def _separate(self) -> None:
        """Give each sample its own row."""
        self.first = np.arange(len(self.owner)) if self._kept is None else self._kept
        self.owner[self.first] = np.arange(len(self.first))


class CachedProducts:
    r"""Products :math:`X'\mathrm{diag}(h)X` and :math:`X's_e` of several outputs, updated incrementally.

    Between two steps only a few samples of a hinge loss become active or inactive, and between two rounds only a few columns
    are added. The update costs only those. If most weights have changed (as with a logistic loss), the products are
    recomputed, which is also more accurate.

    Parameters
    ----------
    n_outputs, n_samples, n_strata : int
        Number of outputs, of samples, and of eliminated offsets per output.
    """

    def __init__(self, n_outputs: int, n_samples: int, n_strata: int) -> None:
        self.weights = np.zeros((n_outputs, n_samples))
        self.squares = np.zeros((n_outputs, 0, 0))
        self.mixed = np.zeros((n_outputs, n_strata, 0))

    def copy(self) -> CachedProducts:
        """Return an independent copy."""
        result = copy.copy(self)
        result.weights, result.squares, result.mixed = self.weights.copy(), self.squares.copy(), self.mixed.copy()
        return result

    def has_shape(self, n_outputs: int, n_samples: int, n_strata: int) -> bool:
        """Return True if the products have the shape of such a loss."""
        return (*self.weights.shape, self.mixed.shape[1]) == (n_outputs, n_samples, n_strata)

    def update(self, array: np.ndarray, weights: np.ndarray, strata: np.ndarray, signs: np.ndarray) -> None:
        """Update the products for the columns of ``array`` and new ``weights`` of shape (n_outputs, n_samples)."""
        n_old, n_columns = self.squares.shape[1], array.shape[1]
        if n_columns > n_old:
            more = n_columns - n_old
            self.squares = np.pad(self.squares, ((0, 0), (0, more), (0, more)))
            self.mixed = np.pad(self.mixed, ((0, 0), (0, 0), (0, more)))
        for c, (old, new) in enumerate(zip(self.weights, weights, strict=True)):
            changed, active = np.flatnonzero(new != old), np.flatnonzero(new)
            if 2 * len(changed) >= len(active):
                rows = array if len(active) == len(new) else array[active]
                roots = rows * np.sqrt(new[active])[:, None]
                np.matmul(roots.T, roots, out=self.squares[c])
                self.mixed[c] = self._signed(new, strata, signs, c, active) @ rows
                continue
            if n_columns > n_old:
                before = np.flatnonzero(old)
                rows = array[before]
                fresh = rows[:, n_old:]
                cross = (fresh * old[before, None]).T @ rows
                self.squares[c, n_old:], self.squares[c, :n_old, n_old:] = cross, cross[:, :n_old].T
                self.mixed[c, :, n_old:] = self._signed(old, strata, signs, c, before) @ fresh
            if len(changed):
                rows, change = array[changed], new - old
                self.squares[c] += (rows * change[changed, None]).T @ rows
                self.mixed[c] += self._signed(change, strata, signs, c, changed) @ rows
        self.weights[...] = weights

    def _signed(self, weight: np.ndarray, strata: np.ndarray, signs: np.ndarray, c: int, samples: np.ndarray) -> np.ndarray:
        """Return the signed weights of some samples of an output, each in the row of its stratum."""
        result = np.zeros((self.mixed.shape[1], len(samples)))
        if len(result):
            result[strata[samples, c], np.arange(len(samples))] = weight[samples] * signs[samples, c]
        return result

    def hessians(self, strata: np.ndarray) -> np.ndarray:
        """Return Hessians of shape (n_outputs, p, p) with the eliminated offsets projected out."""
        if not self.mixed.shape[1]:
            return self.squares.copy()
        total = np.stack([np.where(e == strata.T, self.weights, 0.0).sum(axis=1) for e in range(self.mixed.shape[1])], axis=1)
        share = np.divide(self.mixed, total[:, :, None], out=np.zeros_like(self.mixed), where=total[:, :, None] > 0.0)
        return self.squares - np.matmul(share.transpose(0, 2, 1), self.mixed)


# Number of curvatures (samples times outputs) from which Hessians are cached; smaller ones are recomputed at every step.
_MIN_CACHED = 1 << 13


class DenseDesign:
    """Selected columns of a view as a centred and scaled float64 array.

    Centring changes only the intercept, and preserves the precision of features with a large mean.
    """

    def __init__(self, view: FeatureView) -> None:
        self._view = view
        self._array = np.empty((view.n_samples, 0))  # Row-major, because few samples are active.
        self._products: CachedProducts | None = None
        self.n_features = 0

    def copy(self) -> DenseDesign:
        """Return an independent copy. The columns are never changed in place, so it shares them."""
        result = copy.copy(self)
        result._products = None if self._products is None else self._products.copy()
        return result

    @classmethod
    def of_array(cls, array: np.ndarray) -> Self:
        """Return a design of given columns, to which nothing can be appended."""
        design = cls.__new__(cls)
        design._array = np.ascontiguousarray(array)
        design._products = None
        design.n_features = array.shape[1]
        return design

    def emptied(self) -> Self:
        """Return an empty design of the same view."""
        return type(self)(self._view)

    def append(self, features: np.ndarray, rows: Rows | None = None) -> None:
        """Append features of the view, with one row per row of ``rows`` (None: per sample). This refines ``rows``."""
        fresh, old = self._view.model_columns(features), self._array
        if rows is not None:
            parent = rows.refine(fresh)
            fresh = fresh if rows.is_all else fresh[rows.first]
            old = old[: len(fresh)] if not self.n_features else old if parent is None else old[parent]
            if parent is not None:
                self._products = None
        self._array = np.ascontiguousarray(np.hstack([old, fresh]))
        self.n_features += len(features)

    def output(self, coef: np.ndarray) -> np.ndarray:
        """Return ``X coef``."""
        return self._array @ coef

    def scores(self, residual: np.ndarray) -> np.ndarray:
        """Return ``X' residual``."""
        return self._array.T @ residual

    def grams(self, weights: np.ndarray) -> np.ndarray:
        """Return ``X' diag(weight) X`` for each column of non-negative weights."""
        result = np.empty((weights.shape[1], self.n_features, self.n_features))
        for out, weight in zip(result, weights.T, strict=True):
            active = np.flatnonzero(weight)
            rows = self._array if len(active) == len(weight) else self._array[active]
            rows = rows * np.sqrt(weight if len(active) == len(weight) else weight[active])[:, None]
            np.matmul(rows.T, rows, out=out)
        return result

    def hessians(self, curvature: np.ndarray, strata: np.ndarray, signs: np.ndarray, n_strata: int) -> np.ndarray:
        """Return Hessians of a loss in the weights, of shape (n_outputs, p, p), with eliminated offsets projected out.

        ``curvature``, ``strata`` and ``signs`` of shape (n_samples, n_outputs) are those of a loss.
        """
        n_samples, n_outputs = curvature.shape
        if curvature.size < _MIN_CACHED:
            return self._compute_hessians(curvature, strata, signs, n_strata)
        if self._products is None or not self._products.has_shape(n_outputs, n_samples, n_strata):
            self._products = CachedProducts(n_outputs, n_samples, n_strata)
        self._products.update(self._array, curvature.T, strata, signs)
        return self._products.hessians(strata)

    def _compute_hessians(self, curvature: np.ndarray, strata: np.ndarray, signs: np.ndarray, n_strata: int) -> np.ndarray:
        """Return the Hessians without the cache, which costs more than it saves for few samples."""
        hessians = self.grams(curvature)
        if not n_strata:
            return hessians
        n_samples, n_outputs = curvature.shape
        offsets = np.zeros((n_samples, n_outputs * n_strata))
        np.put_along_axis(offsets, strata + n_strata * np.arange(n_outputs), curvature * signs, axis=1)
        total = np.abs(offsets).sum(axis=0)
        total[total == 0.0] = 1.0
        mixed = (self.scores(offsets) / np.sqrt(total)).T.reshape(n_outputs, n_strata, self.n_features)
        hessians -= np.matmul(mixed.transpose(0, 2, 1), mixed)
        return hessians

    def coupled(self, coupling: Coupling) -> np.ndarray:
        """Return the product ``K X`` with the matrix of a loss; see :class:`coterie.solver.loss.Coupling`."""
        return coupling.apply(self._array)

    @property
    def array(self) -> np.ndarray:
        """The columns, of shape (n_rows, n_features)."""
        return self._array

    def sample_products(self, weight: np.ndarray | None = None) -> np.ndarray:
        """Return ``X diag(weight) X'``."""
        return (self._array if weight is None else self._array * weight) @ self._array.T


class SparseDesign:
    """Selected columns of a view as a scaled CSR matrix. All operations are linear in the nonzeros of active samples."""

    def __init__(self, view: FeatureView) -> None:
        self._view = view
        nothing, indptr = np.empty(0, dtype=np.int64), np.zeros(view.n_samples + 1, dtype=np.int64)
        self._rows = sparse.csr_array((np.empty(0), nothing, indptr), shape=(view.n_samples, 0))
        self._cached: tuple[np.ndarray, np.ndarray] | None = None  # Curvature and products of the last Hessians.
        self.n_features = 0

    def copy(self) -> SparseDesign:
        """Return an independent copy. The columns are never changed in place, so it shares them."""
        result = copy.copy(self)
        result._cached = None if self._cached is None else (self._cached[0].copy(), self._cached[1].copy())
        return result

    def append(self, features: np.ndarray, rows: Rows | None = None) -> None:
        """Append features as :meth:`DenseDesign.append` does, without centring, which would make them dense."""
        fresh, old = self._view.model_columns(features), self._rows
        assert not isinstance(fresh, np.ndarray)
        parent = None if rows is None else rows.refine(fresh)
        samples = np.arange(fresh.shape[0]) if rows is None or rows.is_all else rows.first
        if parent is None:
            # The old rows of an empty design have no entries, so any of them serves as parent.
            parent = np.arange(len(samples)) if self.n_features else np.zeros(len(samples), dtype=np.int64)
        # The row of each fresh entry. An array with the row of each sample would be large.
        row_of = fresh.indices if rows is None else rows.of_first(fresh.indices)
        indptr = np.zeros(len(samples) + 1, dtype=np.int64)
        indices, values = kernels.csr_with_columns(
            old.indptr, old.indices, old.data, parent, self.n_features,
            fresh.indptr, np.arange(fresh.nnz), fresh.data, row_of, indptr,
        )  # fmt: skip
        self._rows = sparse.csr_array((values, indices, indptr), shape=(len(samples), self.n_features + len(features)))
        self._cached = None
        self.n_features += len(features)

    def output(self, coef: np.ndarray) -> np.ndarray:
        """Return ``X coef``."""
        out = np.empty((self._rows.shape[0], coef.shape[1]))
        kernels.csr_output(self._rows.indptr, self._rows.indices, self._rows.data, coef, out)
        return out

    def scores(self, residual: np.ndarray) -> np.ndarray:
        """Return ``X' residual``."""
        out = np.empty((self.n_features, residual.shape[1]))
        by_output = np.ascontiguousarray(residual.T)
        kernels.csr_scores(self._rows.indptr, self._rows.indices, self._rows.data, by_output, out)
        return out

    def grams(self, weights: np.ndarray) -> np.ndarray:
        """Return ``X' diag(weight) X`` for each column of non-negative weights."""
        nowhere = np.zeros(weights.shape, dtype=np.int8)
        return self._updated(self._zero_products(weights), weights, nowhere, np.zeros(weights.shape), 0)

    def hessians(self, curvature: np.ndarray, strata: np.ndarray, signs: np.ndarray, n_strata: int) -> np.ndarray:
        """Return Hessians as :meth:`DenseDesign.hessians` does. Few samples become active or inactive between two calls."""
        if self._cached is None or self._cached[0].shape != curvature.shape[::-1]:
            self._cached = self._zero_products(curvature)
        return self._updated(self._cached, curvature, strata, signs, n_strata)

    def coupled(self, coupling: Coupling) -> np.ndarray:
        """Return the product ``K X`` with the matrix of a loss, from a few dense columns at a time."""
        step = max(1, _MAX_DENSE // max(1, self._rows.shape[0]))
        parts = [self._rows[:, first : first + step].toarray() for first in range(0, self.n_features, step)]
        return np.hstack([coupling.apply(part) for part in parts])

    def _zero_products(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weights of zero and the corresponding products."""
        return np.zeros(weights.shape[::-1]), np.zeros((weights.shape[1], self.n_features, self.n_features))

    def _updated(
        self,
        former: tuple[np.ndarray, np.ndarray],
        curvature: np.ndarray,
        strata: np.ndarray,
        signs: np.ndarray,
        n_strata: int,
    ) -> np.ndarray:
        """Return Hessians from cached products, which are updated. The outputs are divided among the threads."""
        by_output = np.ascontiguousarray(curvature.T)
        out = np.empty((len(by_output), self.n_features, self.n_features))
        values = (self._rows.indptr, self._rows.indices, self._rows.data, by_output, strata, signs, n_strata, *former, out)

        def task(first: int, last: int) -> None:
            kernels.csr_hessians(*values, first, last)

        run_evenly(task, len(by_output), self._view.n_threads)
        return out

    def sample_products(self, weight: np.ndarray | None = None) -> np.ndarray:
        """Return ``X diag(weight) X'``."""
        left = self._rows if weight is None else self._rows * weight
        return np.asarray((left @ self._rows.T).toarray())


class ScaledDesign:
    """A design whose columns are multiplied by factors, without copying them."""

    def __init__(self, design: DenseDesign | SparseDesign, factor: np.ndarray) -> None:
        self._design = design
        self._factor = factor  # (n_features, 1)
        self.n_features = design.n_features

    def output(self, coef: np.ndarray) -> np.ndarray:
        """Return ``X coef``."""
        return self._design.output(self._factor * coef)

    def scores(self, residual: np.ndarray) -> np.ndarray:
        """Return ``X' residual``."""
        return self._factor * self._design.scores(residual)

    def hessians(self, curvature: np.ndarray, strata: np.ndarray, signs: np.ndarray, n_strata: int) -> np.ndarray:
        """Return the Hessians of a loss in the weights."""
        return self._factor * self._design.hessians(curvature, strata, signs, n_strata) * self._factor.T

    def coupled(self, coupling: Coupling) -> np.ndarray:
        """Return the product ``K X`` with the matrix of a loss."""
        return self._design.coupled(coupling) * self._factor.T

    def sample_products(self) -> np.ndarray:
        """Return ``X X'``."""
        return self._design.sample_products(self._factor[:, 0] ** 2)


Design = DenseDesign | SparseDesign
AnyDesign = Design | ScaledDesign


def design_of(view: FeatureView) -> Design:
    """Return an empty design for features of a view."""
    return SparseDesign(view) if view.is_sparse else DenseDesign(view)
