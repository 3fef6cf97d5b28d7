"""The columns selected so far, in the form the master problem works on."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy import sparse

from coterie._numba import run_evenly
from coterie.data.view import FeatureView
from coterie.kernels import blocks as kernels
from coterie.solver.products import KeptProducts
from coterie.solver.rows import Rows

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
