"""Kernels of the master problem compared with naive code; also run with the JIT off."""

import itertools

import numpy as np
import pytest
from scipy import optimize, sparse

from coterie.data import as_source
from coterie.data.view import FeatureView
from coterie.kernels import blocks as kernels
from coterie.solver import design as design_module
from coterie.solver.design import DenseDesign, design_of


def test_csr_kernels(rng):
    X = rng.standard_normal((20, 6)) * (rng.random((20, 6)) < 0.4)
    S = sparse.csr_array(X)
    coef, residual = rng.standard_normal((6, 2)), rng.standard_normal((20, 2))
    out = np.empty((20, 2))
    kernels.csr_output(S.indptr, S.indices, S.data, coef, out)
    np.testing.assert_allclose(out, X @ coef, atol=1e-13)
    out = np.empty((6, 2))
    kernels.csr_scores(S.indptr, S.indices, S.data, np.ascontiguousarray(residual.T), out)
    np.testing.assert_allclose(out, X.T @ residual, atol=1e-13)


@pytest.mark.parametrize("n_strata", [0, 1, 2])
def test_sparse_and_dense_hessians_are_those_of_the_formula(rng, n_strata):
    X = rng.standard_normal((30, 5)) * (rng.random((30, 5)) < 0.5)
    strata = rng.integers(0, max(n_strata, 1), (30, 3)).astype(np.int8)
    signs = np.where(strata == 1, -1.0, 1.0)
    S, former, products, out = sparse.csr_array(X), np.zeros((3, 30)), np.zeros((3, 5, 5)), np.empty((3, 5, 5))
    curvature = rng.random((30, 3)) * (rng.random((30, 3)) < 0.7)
    for changed in (30, 30, 4, 0, 2):  # Most, few or no samples change between calls.
        rows = rng.permutation(30)[:changed]
        curvature[rows] = rng.random((changed, 3)) * (rng.random((changed, 3)) < 0.7)
        expected = _hessians(X, curvature, strata, signs, n_strata)
        dense = DenseDesign.of_array(X).hessians(curvature, strata, signs, n_strata)
        np.testing.assert_allclose(dense, expected, atol=1e-12)
        by_output = np.ascontiguousarray(curvature.T)
        values = (S.indptr, S.indices, S.data, by_output, strata, signs, n_strata, former, products, out)
        for first, last in ((0, 1), (1, 3)):
            kernels.csr_hessians(*values, first, last)
        np.testing.assert_allclose(out, expected, atol=1e-12)


def _hessians(X, curvature, strata, signs, n_strata):
    expected = []
    for c in range(3):
        hessian = X.T @ (curvature[:, [c]] * X)
        for e in range(n_strata):
            own = strata[:, c] == e
            u = X[own].T @ (curvature[own, c] * signs[own, c])
            hessian -= np.outer(u, u) / curvature[own, c].sum()
        expected.append(hessian)
    return expected


@pytest.mark.parametrize("others", [0.0, 0.5, 100.0])
def test_block_radius(rng, others):
    curvature, linear = rng.random(4) * 5, rng.standard_normal(4)
    r = kernels.block_radius(curvature, linear, others)

    def objective(v):
        return 0.5 * (others + np.linalg.norm(v)) ** 2 + 0.5 * (curvature * v**2).sum() + linear @ v

    v = -linear * r / ((1 + curvature) * r + others) if r > 0 else np.zeros(4)
    assert np.linalg.norm(v) == pytest.approx(r, rel=1e-12)
    best = min(optimize.minimize(objective, x0, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14}).fun
               for x0 in (np.zeros(4), v + 0.1))  # fmt: skip
    assert objective(v) <= best + 1e-9


def test_block_descent_reaches_a_fixed_point_of_every_block(rng):
    p, blocks = 7, np.array([0, 3, 5, 7])
    A = rng.standard_normal((2, 10, p))
    hessian = np.einsum("cni,cnj->cij", A, A)
    linear = rng.standard_normal((p, 2))
    values, vectors = np.empty((2, p)), np.zeros((2, p, 3))
    for c in range(2):
        for first, last in itertools.pairwise(blocks):
            value, vector = np.linalg.eigh(hessian[c, first:last, first:last])
            values[c, first:last], vectors[c, first:last, : last - first] = value, vector
    coef = np.zeros((p, 2))
    sweeps = kernels.block_descent(hessian, linear, blocks, values, vectors, coef, 5000, 1e-14)
    assert 1 < sweeps < 5000
    norms = [np.linalg.norm(coef[a:b]) for a, b in itertools.pairwise(blocks)]
    gradient = linear + np.einsum("cij,jc->ic", hessian, coef)
    for t, (a, b) in enumerate(itertools.pairwise(blocks)):
        if norms[t] > 0:
            np.testing.assert_allclose(gradient[a:b] + sum(norms) * coef[a:b] / norms[t], 0, atol=1e-9)
        else:
            assert np.linalg.norm(gradient[a:b]) <= sum(norms) + 1e-9


def test_rows_with_columns(rng):
    X = rng.standard_normal((12, 4)) * (rng.random((12, 4)) < 0.5)
    fresh = sparse.csc_array(rng.standard_normal((30, 3)) * (rng.random((30, 3)) < 0.5))
    samples, parent = rng.permutation(30)[:20], rng.integers(0, 12, 20)  # Rows are split, each with its own sample.
    row_of = np.full(30, -1)
    row_of[samples] = np.arange(20)
    old, indptr = sparse.csr_array(X), np.zeros(21, dtype=np.int64)
    values = (old.indptr, old.indices, old.data, parent, 4, fresh.indptr, fresh.indices, fresh.data, row_of, indptr)
    indices, data = kernels.csr_with_columns(*values)
    found = sparse.csr_array((data, indices, indptr), shape=(20, 7)).toarray()
    np.testing.assert_array_equal(found, np.hstack([X[parent], fresh.toarray()[samples]]))


def test_dense_hessians_follow_changes_and_new_columns(rng, monkeypatch):
    """Tests the cache of Hessians, which is not used for few samples by default."""
    monkeypatch.setattr(design_module, "_MIN_CACHED", 0)
    X = rng.standard_normal((40, 6))
    design = design_of(FeatureView.of(as_source(X), centred=True))
    strata = rng.integers(0, 2, (40, 3)).astype(np.int8)
    signs = np.where(strata == 1, -1.0, 1.0)
    curvature = np.where(rng.random((40, 3)) < 0.7, 0.5, 0.0)
    for features in ([0, 1], [2], [3, 4, 5]):
        design.append(np.array(features))
        for changed in (3, 0, 40):
            curvature[rng.permutation(40)[:changed]] = np.where(rng.random((changed, 3)) < 0.7, 0.5, 0.0)
            own = X[:, : design.n_features] - X[:, : design.n_features].mean(axis=0)
            found = design.hessians(curvature, strata, signs, 2)
            np.testing.assert_allclose(found, _hessians(own, curvature, strata, signs, 2), atol=1e-12)
