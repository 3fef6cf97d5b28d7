"""The columns selected so far, in the form the master problem works on.

**Distinct samples.** Samples of weight zero (those that a fold or a half-sample leaves out) play no part. Samples of one kind
whose selected columns are equal get equal outputs whatever the weights, so they are one sample with the sum of their weights;
the dual variables of each are its share. Most samples of sparse data have none of the few selected features, and the problem
of millions of samples is one of some thousands. All of that is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from scipy import sparse

from coterie._numba import run_evenly
from coterie.data.source import Columns
from coterie.data.view import FeatureView
from coterie.kernels import blocks as kernels
from coterie.kernels.blocks import number_by_first

# Merging ends when it leaves more than this part of the samples: from then on each one stands for itself.
_WORTHWHILE = 0.75


class Rows:
    """Samples in classes of equal ones, finer with each column. Their order is that of their first samples.

    Parameters
    ----------
    kinds : ndarray of int of shape (n_samples,)
        What each sample is to the loss; -1 for those of weight zero. Samples of different kinds are never merged.
    merge : bool, default=True
        Whether to merge equal samples at all, or only to leave those of weight zero out.

    Attributes
    ----------
    owner : ndarray of int of shape (n_samples,)
        The row that each sample is part of, -1 for none.
    first : ndarray of int of shape (n_rows,)
        The first sample of each row.
    """

    def __init__(self, kinds: np.ndarray, *, merge: bool = True) -> None:
        self._kept = np.flatnonzero(kinds >= 0)
        self._merging = merge
        self.owner = np.array(kinds, dtype=np.int64)
        if merge:
            self._number(int(kinds.max(initial=-1)) + 1)
        else:
            self._release()

    @property
    def is_all(self) -> bool:
        """Whether every sample is a row of its own."""
        return len(self.first) == len(self.owner)

    def refine(self, columns: Columns) -> np.ndarray | None:
        """Tell samples apart by further columns; the former row of each row, or None where nothing has changed."""
        if not self._merging:
            return None
        n_before, before = len(self.first), self.owner.copy()
        n_names, most = n_before, _WORTHWHILE * len(self._kept)
        for samples, values in self._entries(columns):
            order = np.lexsort((values, self.owner[samples]))
            owner, value = self.owner[samples][order], values[order]
            begins = np.append(True, (owner[1:] != owner[:-1]) | (value[1:] != value[:-1]))
            n_fresh = int(np.count_nonzero(begins))
            self.owner[samples[order]] = n_names + np.cumsum(begins) - 1
            n_names += n_fresh
            if n_fresh > most:  # so many differ in this column alone
                break
        self._number(n_names)
        if len(self.first) > most:
            self._merging = False
            self._release()
        return None if len(self.first) == n_before else before[self.first]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums of the samples' values over the rows."""
        if self.is_all:
            return values
        if len(self._kept) == len(self.owner):  # as they are: samples can be many
            return np.bincount(self.owner, weights=values, minlength=len(self.first))
        return np.bincount(self.owner[self._kept], weights=values[self._kept], minlength=len(self.first))

    def _entries(self, columns: Columns) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Samples and values of each column; samples that do not come up have the value zero."""
        for k in range(columns.shape[1]):
            if isinstance(columns, np.ndarray):
                samples, values = self._kept, columns[self._kept, k]
            else:
                entries = slice(columns.indptr[k], columns.indptr[k + 1])
                samples, values = columns.indices[entries], columns.data[entries]
                counted = (values != 0.0) & (self.owner[samples] >= 0)
                samples, values = samples[counted], values[counted]
            if len(samples):
                yield samples, values

    def _number(self, n_names: int) -> None:
        """Number the rows, which have any names below a limit, in the order of their first samples."""
        first = np.empty(n_names, dtype=np.int64)
        self.first = first[: number_by_first(self.owner, first)].copy()

    def _release(self) -> None:
        """Let each sample stand for itself."""
        self.first = self._kept
        self.owner[self._kept] = np.arange(len(self._kept))


class KeptProducts:
    r"""Products :math:`X'\mathrm{diag}(h)X` and :math:`X's_e` of several outputs, brought up to date.

    From one step to the next few samples of a hinge become active or inactive, and from one round to the next a few columns
    are added: only these cost anything. Where most weights have changed (as those of a logistic loss do) the products are
    made anew, which is also more exact.

    Parameters
    ----------
    n_outputs, n_samples, n_strata : int
        Number of outputs, of samples, and of eliminated offsets of each output.
    """

    def __init__(self, n_outputs: int, n_samples: int, n_strata: int) -> None:
        self.weights = np.zeros((n_outputs, n_samples))
        self.squares = np.zeros((n_outputs, 0, 0))
        self.mixed = np.zeros((n_outputs, n_strata, 0))

    def fit(self, n_outputs: int, n_samples: int, n_strata: int) -> bool:
        """Whether they are those of a loss of this shape."""
        return (*self.weights.shape, self.mixed.shape[1]) == (n_outputs, n_samples, n_strata)

    def update(self, array: np.ndarray, weights: np.ndarray, strata: np.ndarray, signs: np.ndarray) -> None:
        """Make them those of the columns of ``array`` with other ``weights`` of shape (n_outputs, n_samples)."""
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
        """Signed weights of some samples of an output, in the row of their stratum."""
        result = np.zeros((self.mixed.shape[1], len(samples)))
        if len(result):
            result[strata[samples, c], np.arange(len(samples))] = weight[samples] * signs[samples, c]
        return result

    def hessians(self, strata: np.ndarray) -> np.ndarray:
        """Hessians of shape (n_outputs, p, p) with the eliminated offsets projected out."""
        if not self.mixed.shape[1]:
            return self.squares.copy()
        total = np.stack([np.where(e == strata.T, self.weights, 0.0).sum(axis=1) for e in range(self.mixed.shape[1])], axis=1)
        share = np.divide(self.mixed, total[:, :, None], out=np.zeros_like(self.mixed), where=total[:, :, None] > 0.0)
        return self.squares - np.matmul(share.transpose(0, 2, 1), self.mixed)


# Curvatures (samples times outputs) up to which Hessians are made anew at every step.
_FEW = 1 << 13


class DenseDesign:
    """Selected columns of a view as a centred and scaled float64 array.

    Centring changes nothing but the intercept, and keeps the digits of features with a large mean.
    """

    def __init__(self, view: FeatureView) -> None:
        self._view = view
        self._array = np.empty((view.n_samples, 0))  # by samples: few of them are active
        self._products: KeptProducts | None = None
        self.n_features = 0

    @classmethod
    def of_array(cls, array: np.ndarray) -> Self:
        """A design of given columns, to which nothing is appended."""
        design = cls.__new__(cls)
        design._array = np.ascontiguousarray(array)
        design._products = None
        design.n_features = array.shape[1]
        return design

    def append(self, features: np.ndarray, rows: Rows | None = None) -> None:
        """Append some features of the view, for the samples that ``rows`` tell apart (None: all); these get finer by it."""
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
        """``X coef``."""
        return self._array @ coef

    def scores(self, residual: np.ndarray) -> np.ndarray:
        """``X' residual``."""
        return self._array.T @ residual

    def grams(self, weights: np.ndarray) -> np.ndarray:
        """``X' diag(weight) X`` for each column of non-negative weights."""
        result = np.empty((weights.shape[1], self.n_features, self.n_features))
        for out, weight in zip(result, weights.T, strict=True):
            active = np.flatnonzero(weight)
            rows = self._array if len(active) == len(weight) else self._array[active]
            rows = rows * np.sqrt(weight if len(active) == len(weight) else weight[active])[:, None]
            np.matmul(rows.T, rows, out=out)
        return result

    def hessians(self, curvature: np.ndarray, strata: np.ndarray, signs: np.ndarray, n_strata: int) -> np.ndarray:
        """Hessians of a loss in the weights, of shape (n_outputs, p, p), with eliminated offsets projected out.

        ``curvature``, ``strata`` and ``signs`` of shape (n_samples, n_outputs) are those of a loss.
        """
        n_samples, n_outputs = curvature.shape
        if curvature.size < _FEW:
            return self._hessians_anew(curvature, strata, signs, n_strata)
        if self._products is None or not self._products.fit(n_outputs, n_samples, n_strata):
            self._products = KeptProducts(n_outputs, n_samples, n_strata)
        self._products.update(self._array, curvature.T, strata, signs)
        return self._products.hessians(strata)

    def _hessians_anew(self, curvature: np.ndarray, strata: np.ndarray, signs: np.ndarray, n_strata: int) -> np.ndarray:
        """The same without books about former ones, which cost more than they save where samples are few."""
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

    def sample_products(self, weight: np.ndarray | None = None) -> np.ndarray:
        """``X diag(weight) X'``."""
        return (self._array if weight is None else self._array * weight) @ self._array.T


class SparseDesign:
    """Selected columns of a view as scaled CSR: every operation is linear in the nonzeros of active samples."""

    def __init__(self, view: FeatureView) -> None:
        self._view = view
        nothing, indptr = np.empty(0, dtype=np.int64), np.zeros(view.n_samples + 1, dtype=np.int64)
        self._rows = sparse.csr_array((np.empty(0), nothing, indptr), shape=(view.n_samples, 0))
        self._former: tuple[np.ndarray, np.ndarray] | None = None  # curvature and products of the last Hessians
        self.n_features = 0

    def append(self, features: np.ndarray, rows: Rows | None = None) -> None:
        """Append some features of the view as above; they cannot be centred without filling them."""
        fresh, old = self._view.model_columns(features), self._rows
        assert not isinstance(fresh, np.ndarray)
        parent = None if rows is None else rows.refine(fresh)
        samples = np.arange(fresh.shape[0]) if rows is None or rows.is_all else rows.first
        if parent is None:
            parent = np.arange(len(samples)) if self.n_features else np.zeros(len(samples), dtype=np.int64)  # of nothing yet
        row_of = np.full(fresh.shape[0], -1, dtype=np.int64)
        row_of[samples] = np.arange(len(samples))
        indptr = np.zeros(len(samples) + 1, dtype=np.int64)
        indices, values = kernels.csr_with_columns(
            old.indptr, old.indices, old.data, parent, self.n_features,
            fresh.indptr, fresh.indices, fresh.data, row_of, indptr,
        )  # fmt: skip
        self._rows = sparse.csr_array((values, indices, indptr), shape=(len(samples), self.n_features + len(features)))
        self._former = None
        self.n_features += len(features)

    def output(self, coef: np.ndarray) -> np.ndarray:
        """``X coef``."""
        out = np.empty((self._rows.shape[0], coef.shape[1]))
        kernels.csr_output(self._rows.indptr, self._rows.indices, self._rows.data, coef, out)
        return out

    def scores(self, residual: np.ndarray) -> np.ndarray:
        """``X' residual``."""
        out = np.empty((self.n_features, residual.shape[1]))
        by_output = np.ascontiguousarray(residual.T)
        kernels.csr_scores(self._rows.indptr, self._rows.indices, self._rows.data, by_output, out)
        return out

    def grams(self, weights: np.ndarray) -> np.ndarray:
        """``X' diag(weight) X`` for each column of non-negative weights."""
        nowhere = np.zeros(weights.shape, dtype=np.int8)
        return self._updated(self._nothing(weights), weights, nowhere, np.zeros(weights.shape), 0)

    def hessians(self, curvature: np.ndarray, strata: np.ndarray, signs: np.ndarray, n_strata: int) -> np.ndarray:
        """Hessians of a loss in the weights as above; from one call to the next few samples become active or inactive."""
        if self._former is None or self._former[0].shape != curvature.shape[::-1]:
            self._former = self._nothing(curvature)
        return self._updated(self._former, curvature, strata, signs, n_strata)

    def _nothing(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights of zero, and the products of samples that go with them."""
        return np.zeros(weights.shape[::-1]), np.zeros((weights.shape[1], self.n_features, self.n_features))

    def _updated(
        self,
        former: tuple[np.ndarray, np.ndarray],
        curvature: np.ndarray,
        strata: np.ndarray,
        signs: np.ndarray,
        n_strata: int,
    ) -> np.ndarray:
        """Hessians from former products, which are brought up to date; several outputs on the threads."""
        by_output = np.ascontiguousarray(curvature.T)
        out = np.empty((len(by_output), self.n_features, self.n_features))
        values = (self._rows.indptr, self._rows.indices, self._rows.data, by_output, strata, signs, n_strata, *former, out)

        def task(first: int, last: int) -> None:
            kernels.csr_hessians(*values, first, last)

        run_evenly(task, len(by_output), self._view.n_threads)
        return out

    def sample_products(self, weight: np.ndarray | None = None) -> np.ndarray:
        """``X diag(weight) X'``."""
        left = self._rows if weight is None else self._rows * weight
        return np.asarray((left @ self._rows.T).toarray())


class ScaledDesign:
    """A design whose columns are multiplied by factors, without a copy of them."""

    def __init__(self, design: DenseDesign | SparseDesign, factor: np.ndarray) -> None:
        self._design = design
        self._factor = factor  # (n_features, 1)
        self.n_features = design.n_features

    def output(self, coef: np.ndarray) -> np.ndarray:
        """``X coef``."""
        return self._design.output(self._factor * coef)

    def scores(self, residual: np.ndarray) -> np.ndarray:
        """``X' residual``."""
        return self._factor * self._design.scores(residual)

    def hessians(self, curvature: np.ndarray, strata: np.ndarray, signs: np.ndarray, n_strata: int) -> np.ndarray:
        """Hessians of a loss in the weights."""
        return self._factor * self._design.hessians(curvature, strata, signs, n_strata) * self._factor.T

    def sample_products(self) -> np.ndarray:
        """``X X'``."""
        return self._design.sample_products(self._factor[:, 0] ** 2)


Design = DenseDesign | SparseDesign
AnyDesign = Design | ScaledDesign


def design_of(view: FeatureView) -> Design:
    """An empty design for features of a view."""
    return SparseDesign(view) if view.is_sparse else DenseDesign(view)
