"""Kernels of the filter scores and of redundancy minimisation on small data, with the compiler on and off."""

import numpy as np
import pytest
from scipy import sparse

from coterie._numba import read_only
from coterie.kernels import descent, filters


@pytest.fixture
def columns(rng):
    return rng.standard_normal((7, 5)) * (rng.random((7, 5)) < 0.6)


def csc(columns):
    matrix = sparse.csc_array(columns)
    return read_only(matrix.indptr), read_only(matrix.indices), read_only(matrix.data)


@pytest.mark.parametrize("squared", [True, False])
def test_variation(columns, squared, rng):
    G = np.triu(rng.random((7, 7)) * (rng.random((7, 7)) < 0.5), 1)
    expected = [sum(G[i, h] * abs(f[i] - f[h]) ** (1 + squared) for i in range(7) for h in range(7)) for f in columns.T]
    upper, both = sparse.csr_array(G), sparse.csr_array(G + G.T)
    dense, thin = np.empty(5), np.empty(5)
    filters.dense_variation(read_only(columns.T), upper.indptr, upper.indices, upper.data, squared, dense, 0)
    filters.csc_variation(*csc(columns), 7, both.indptr, both.indices, both.data, squared, thin, 0)
    np.testing.assert_allclose(dense, expected)
    np.testing.assert_allclose(thin, expected)


def test_manhattan(columns, rng):
    factor, probes = rng.random(5), np.array([1, 4])
    expected = np.array([[(factor * abs(columns[i] - columns[k])).sum() for k in range(7)] for i in probes])
    dense = np.zeros((2, 7))
    filters.dense_manhattan(read_only(columns.T), probes, factor, 0, dense)
    np.testing.assert_allclose(dense, expected)
    thin, size, place = np.zeros((2, 7)), np.zeros(7), np.full(7, -1)
    place[probes] = [0, 1]
    filters.csc_manhattan(*csc(columns), place, factor, 0, size, thin)
    np.testing.assert_allclose(thin + size[probes][:, None] + size, expected, atol=1e-12)


@pytest.mark.parametrize("width", [2, 3, 5, 9])
def test_local_scatter(columns, width):
    dense, thin = np.empty(5), np.empty(5)
    filters.dense_local_scatter(np.sort(columns.T, axis=1), width, dense, 0)
    indptr, _, values = csc(columns)
    ordered = np.concatenate([np.sort(values[indptr[j] : indptr[j + 1]]) for j in range(5)])
    filters.csc_local_scatter(indptr, ordered, 7, width, thin, 0)
    np.testing.assert_allclose(dense, thin)
    for f, found in zip(columns.T, dense, strict=True):
        total = 0.0
        for value in np.sort(f):
            # Among equally distant values the smaller one is used.
            near = np.sort(f)[np.lexsort((np.sort(f), abs(np.sort(f) - value)))[:width]]
            total += ((near - near.mean()) ** 2).sum()
        if total > 0:
            assert found == pytest.approx(total)


def test_information_gain(columns):
    codes = np.array([0, 1, 0, 2, 1, 0, 1])
    low, high = columns.min(axis=0), columns.max(axis=0)
    shares = np.bincount(codes) / 7
    entropy = -(shares * np.log(shares)).sum()
    dense, thin = np.empty(5), np.empty(5)
    filters.dense_information_gain(read_only(columns.T), codes, 3, low, high, 4, entropy, dense, 0)
    filters.csc_information_gain(*csc(columns), codes, np.bincount(codes), low, high, 4, entropy, thin, 0)
    np.testing.assert_allclose(dense, thin)
    for j in range(5):
        bins = np.minimum(((columns[:, j] - low[j]) / (high[j] - low[j]) * 4).astype(int), 3)
        left = 0.0
        for b in np.unique(bins):
            inside = np.bincount(codes[bins == b]) / (bins == b).sum()
            inside = inside[inside > 0]
            left -= (bins == b).mean() * (inside * np.log(inside)).sum()
        assert dense[j] == pytest.approx(entropy - left)


def test_descent(rng):
    """Both versions end at a point that satisfies the optimality conditions."""
    F = rng.standard_normal((6, 9))
    F = (F - F.mean(axis=0)) / np.linalg.norm(F - F.mean(axis=0), axis=0)
    A, s = (F.T @ F) ** 2, rng.random(9)
    x = np.zeros(9)
    x[0] = 1.0
    product = A @ x
    descent.descend(A, s, x, product, 1e-10, 5000)
    y, scatter = np.zeros(9), np.outer(F[:, 0], F[:, 0])
    y[0] = 1.0
    empty = np.zeros(10, dtype=np.int32)
    rows = np.ascontiguousarray(F.T)
    descent.descend_implicit(rows, s, scatter, y, np.zeros(9), empty, np.empty(0, np.int32), 0.0, np.empty(0), 1e-10, 5000)
    np.testing.assert_allclose(product, A @ x, atol=1e-9)
    for z in (x, y):
        tau = (s @ z) / z.sum()
        slack = A @ z - (s + tau) / np.sqrt(tau)
        assert slack.min() > -1e-7
        assert np.abs(slack[z > 0]).max() < 1e-7
