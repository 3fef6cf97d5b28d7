"""Cached products compared with recomputed products."""

import numpy as np
import pytest
from scipy import sparse

from coterie.data import FeatureView, as_source
from coterie.solver.design import CachedProducts, ScaledDesign, design_of


@pytest.mark.parametrize("n_strata", [0, 1, 2])
def test_cached_products_equal_recomputed_products(rng, n_strata):
    n, n_outputs = 60, 3
    X = rng.standard_normal((n, 8))
    strata = rng.integers(0, max(n_strata, 1), (n, n_outputs)).astype(np.int8)
    signs = np.where(strata == 1, -1.0, 1.0)
    weights = np.where(rng.random((n_outputs, n)) < 0.6, 0.7, 0.0)
    kept = CachedProducts(n_outputs, n, n_strata)
    # Most, few or no samples change, with or without additional columns. One output loses all samples.
    for n_columns, n_changed in ((3, n), (3, 5), (5, 4), (6, 0), (6, 0), (8, n), (8, 1)):
        samples = rng.permutation(n)[:n_changed]
        weights[:, samples] = np.where(rng.random((n_outputs, n_changed)) < 0.5, 0.7, 0.0)
        if n_columns == 8:
            weights[1] = 0.0
        kept.update(X[:, :n_columns], weights, strata, signs)
        fresh = CachedProducts(n_outputs, n, n_strata)
        fresh.update(X[:, :n_columns], weights, strata, signs)
        np.testing.assert_allclose(kept.squares, np.einsum("ia,ci,ib->cab", *[X[:, :n_columns], weights, X[:, :n_columns]]))
        np.testing.assert_allclose(kept.hessians(strata), fresh.hessians(strata), atol=1e-12)
        np.testing.assert_array_equal(kept.weights, weights)


def test_few_changes_leave_the_rest_alone(rng):
    """Unchanged products are not recomputed: impossible values in the cache remain."""
    X, nothing = rng.standard_normal((40, 2)), np.zeros((40, 1))
    kept = CachedProducts(1, 40, 0)
    weights = np.ones((1, 40))
    kept.update(X, weights, nothing, nothing)
    kept.squares += 5.0
    weights[0, 0] = 0.0
    kept.update(X, weights, nothing, nothing)
    np.testing.assert_allclose(kept.squares[0] - 5.0, X[1:].T @ X[1:], atol=1e-12)
    assert kept.has_shape(1, 40, 0)
    assert not kept.has_shape(1, 39, 0)


def hessians_by_formula(X, curvature, strata, signs, n_strata):
    result = []
    for c in range(curvature.shape[1]):
        hessian = X.T @ (curvature[:, [c]] * X)
        for e in range(n_strata):
            own = strata[:, c] == e
            mixed = X[own].T @ (curvature[own, c] * signs[own, c])
            hessian -= np.outer(mixed, mixed) / curvature[own, c].sum()
        result.append(hessian)
    return result


@pytest.mark.parametrize("is_sparse", [False, True])
def test_hessians_are_right_after_the_number_of_outputs_changes(rng, is_sparse, monkeypatch):
    monkeypatch.setattr("coterie.solver.design._MIN_CACHED", 0)
    X = rng.standard_normal((30, 4)) * (rng.random((30, 4)) < 0.6)
    view = FeatureView.of(as_source(sparse.csc_array(X) if is_sparse else X), centred=False)
    design = design_of(view)
    design.append(np.arange(4))
    columns = design.output(np.eye(4))
    for n_outputs in (1, 3, 3, 2, 1):
        strata = rng.integers(0, 2, (30, n_outputs)).astype(np.int8)
        signs = np.where(strata == 1, -1.0, 1.0)
        curvature = rng.random((30, n_outputs))
        found = design.hessians(curvature, strata, signs, 2)
        np.testing.assert_allclose(found, hessians_by_formula(columns, curvature, strata, signs, 2), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("min_cached", [0, 10**9])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_hessians_for_any_size_of_the_curvature(rng, is_sparse, min_cached, scale, monkeypatch):
    """Offsets are projected out if the curvatures are small. A stratum without curvature contributes nothing."""
    monkeypatch.setattr("coterie.solver.design._MIN_CACHED", min_cached)
    X = rng.standard_normal((25, 3)) * (rng.random((25, 3)) < 0.7)
    design = design_of(FeatureView.of(as_source(sparse.csc_array(X) if is_sparse else X), centred=False))
    design.append(np.arange(3))
    columns = design.output(np.eye(3))
    strata = rng.integers(0, 2, (25, 2)).astype(np.int8)
    signs, curvature = np.where(strata == 1, -1.0, 1.0), scale * rng.random((25, 2))
    found = design.hessians(curvature, strata, signs, 2)
    np.testing.assert_allclose(found, hessians_by_formula(columns, curvature, strata, signs, 2), atol=1e-12 * scale)
    np.testing.assert_allclose(design.hessians(curvature, strata, signs, 0), design.grams(curvature), atol=1e-12 * scale)
    curvature[strata == 1] = 0.0
    expected = hessians_by_formula(columns, curvature, strata, signs, 1)
    np.testing.assert_allclose(design.hessians(curvature, strata, signs, 2), expected, atol=1e-12 * scale)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_products_of_designs_by_naive_code(rng, is_sparse):
    X = rng.standard_normal((15, 6)) * (rng.random((15, 6)) < 0.6)
    design = design_of(FeatureView.of(as_source(sparse.csc_array(X) if is_sparse else X), centred=False))
    design.append(np.array([4, 1]))
    design.append(np.array([0, 5, 2]))
    columns = X[:, [4, 1, 0, 5, 2]]
    scaled = ScaledDesign(design, factor := rng.random((5, 1)))
    assert design.n_features == scaled.n_features == 5
    coef, residual, weight = rng.standard_normal((5, 2)), rng.standard_normal((15, 2)), rng.random((15, 2))
    weight[::4] = 0.0
    nothing = np.zeros((15, 2), dtype=np.int8)
    for own, values in ((design, columns), (scaled, columns * factor.T)):
        np.testing.assert_allclose(own.output(coef), values @ coef)
        np.testing.assert_allclose(own.scores(residual), values.T @ residual)
        np.testing.assert_allclose(own.sample_products(), values @ values.T, atol=1e-12)
        grams = [values.T @ (part[:, None] * values) for part in weight.T]
        np.testing.assert_allclose(own.hessians(weight, nothing, np.ones((15, 2)), 0), grams, atol=1e-12)
    np.testing.assert_allclose(design.grams(weight), [columns.T @ (part[:, None] * columns) for part in weight.T], atol=1e-12)
    np.testing.assert_allclose(design.sample_products(coef[:, 0] ** 2), columns * coef[:, 0] ** 2 @ columns.T, atol=1e-12)
