"""Proximal steps compared with SciPy and scikit-learn."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from sklearn.isotonic import isotonic_regression

from coterie.kernels.descent import decreasing_fit, fuse


@pytest.mark.parametrize("seed", range(10))
def test_decreasing_fit_is_isotonic_regression(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(-4, 8, rng.integers(1, 30)).astype(float)  # with ties
    expected = np.maximum(isotonic_regression(values, increasing=False), 0.0)
    decreasing_fit(values, np.empty(len(values)), np.empty(len(values), dtype=np.int64))
    np.testing.assert_allclose(values, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_fuse_is_a_bounded_least_squares_problem(seed):
    """The step is v - D'z, where z solves a box-constrained least-squares problem, for any initial guess of z."""
    rng = np.random.default_rng(seed)
    n_features, n_edges = 8, 10
    pairs = np.array([rng.choice(n_features, 2, replace=False) for _ in range(n_edges)])
    first, second = np.ascontiguousarray(pairs.T)
    sign, bound = rng.choice([-1.0, 1.0], n_edges), rng.uniform(0.0, 1.0, n_edges)
    D = np.zeros((n_edges, n_features))
    D[np.arange(n_edges), first] += 1.0
    D[np.arange(n_edges), second] -= sign
    v = rng.standard_normal(n_features)
    z = lsq_linear(D.T, v, (-bound - 1e-300, bound + 1e-300), tol=1e-14).x
    point, dual = v.copy(), rng.standard_normal(n_edges)
    assert fuse(point, first, second, sign, bound, dual, 1e-13, 100_000) < 100_000
    np.testing.assert_allclose(point, v - D.T @ z, atol=1e-6)
    np.testing.assert_allclose(point, v - D.T @ dual, atol=1e-12)
    assert (np.abs(dual) <= bound).all()


def test_fuse_stops_after_the_sweeps_allowed():
    first, second, ones = np.array([0, 1]), np.array([1, 2]), np.ones(2)
    assert fuse(np.array([3.0, 0.0, -3.0]), first, second, ones, 10 * ones, np.zeros(2), 0.0, 3) == 3
