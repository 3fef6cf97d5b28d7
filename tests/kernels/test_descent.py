"""Coordinate descent of the redundancy problem: steps against numerical derivatives, both forms against each other."""

import numpy as np
import pytest

from coterie.kernels.descent import descend, descend_implicit


def unit_columns(rng, n_samples, n_features):
    X = rng.standard_normal((n_samples, n_features))
    return X / np.linalg.norm(X, axis=0)


def objective(A, s, x):
    """The function that is minimised, as the module writes it down."""
    return 0.5 * x @ A @ x - 2.0 * np.sqrt((s @ x) * x.sum())


def derivatives(A, s, x, i, h=1e-4):
    unit = np.eye(len(x))[i]
    low, middle, high = (objective(A, s, x + k * h * unit) for k in (-1, 0, 1))
    return (high - low) / (2 * h), (high - 2 * middle + low) / h**2


def implicit(X, s, x, tol, n_sweeps, groups=(), strength=0.0):
    """Descent without the matrix; groups are lists of features."""
    x = x.copy()
    of_feature = [[g for g, group in enumerate(groups) if i in group] for i in range(len(x))]
    indptr = np.append(0, np.cumsum([len(own) for own in of_feature])).astype(np.int32)
    indices = np.array([g for own in of_feature for g in own], dtype=np.int32)
    degree = np.array([sum(len(groups[g]) for g in own) for own in of_feature], dtype=float)
    sums = np.array([x[list(group)].sum() for group in groups])
    rows = np.ascontiguousarray(X.T)
    scatter = (X * x) @ X.T
    done = descend_implicit(rows, s, scatter, x, degree, indptr, indices, strength, sums, tol, n_sweeps)
    return done, x, scatter, sums


@pytest.mark.parametrize("seed", range(5))
def test_a_step_is_one_of_newton(seed):
    rng = np.random.default_rng(seed)
    X, s, x = unit_columns(rng, 10, 5), rng.random(5), rng.random(5) + 0.5
    A = (X.T @ X) ** 2
    slope, curvature = derivatives(A, s, x, 0)
    expected = max(0.0, x[0] - slope / curvature)
    found = x.copy()
    assert descend(A, s, found, A @ x, 0.0, 1) == 1
    assert found[0] == pytest.approx(expected, rel=1e-5)
    assert implicit(X, s, x, 0.0, 1)[1][0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_descent_ends_at_the_minimum_and_keeps_its_sums(seed, grouped):
    rng = np.random.default_rng(seed)
    n_features = 8
    X, s = unit_columns(rng, 12, n_features), rng.random(n_features)
    groups = [[0, 3, 4], [4, 6]] if grouped else []
    A = (X.T @ X) ** 2
    for group in groups:
        A[np.ix_(group, group)] += 0.5 * (len(group) * np.eye(len(group)) - 1.0)
    x = np.ones(n_features)
    product = A @ x
    assert 1 < descend(A, s, x, product, 1e-12, 5000) < 5000
    np.testing.assert_allclose(product, A @ x, atol=1e-10)
    gradient = A @ x - (s * x.sum() + s @ x) / np.sqrt((s @ x) * x.sum())
    assert np.abs(gradient[x > 0]).max() <= 1e-9
    assert (gradient[x == 0] >= -1e-9).all()
    n_sweeps, other, scatter, sums = implicit(X, s, np.ones(n_features), 1e-12, 5000, groups, 0.5)
    assert n_sweeps < 5000
    np.testing.assert_allclose(other, x, atol=1e-9)
    np.testing.assert_allclose(scatter, (X * other) @ X.T, atol=1e-10)
    np.testing.assert_allclose(sums, [other[group].sum() for group in groups], atol=1e-10)


def test_the_last_feature_that_counts_stays():
    """A feature with the only score is halved where its step would remove it."""
    A = np.eye(2) * [1e6, 1.0]
    s, x = np.array([1.0, 0.0]), np.array([1.0, 1e-3])
    descend(A, s, x, A @ x, 1e-12, 1)
    assert 0.0 < x[0] <= 0.5
    assert s @ x > 0


def test_sweeps_end_at_the_limit_and_at_the_tolerance():
    rng = np.random.default_rng(0)
    X, s = unit_columns(rng, 10, 6), rng.random(6)
    A = (X.T @ X) ** 2
    needed = []
    for tol in (1e-2, 1e-6, 1e-12):
        x = np.ones(6)
        needed.append(descend(A, s, x, A @ x, tol, 1000))
        assert needed[-1] == implicit(X, s, np.ones(6), tol, 1000)[0]
        assert descend(A, s, x, A @ x, tol, 1000) == 1  # nothing is left to do
    assert needed[0] < needed[1] < needed[2] < 1000
    x = np.ones(6)
    assert descend(A, s, x, A @ x, 0.0, 3) == 3
    assert implicit(X, s, np.ones(6), 0.0, 3)[0] == 3
