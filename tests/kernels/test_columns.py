"""Kernels compared with naive code. This file is also run with the JIT off (see test_jit_off.py)."""

import numpy as np
import pytest
from scipy import sparse

from coterie._numba import read_only
from coterie.kernels import columns as kernels
from coterie.kernels.correlation import csc_cross
from coterie.kernels.moments import csc_moments, feature_major_moments, sample_major_moments
from tests import naive

DTYPES = [np.float64, np.float32, np.int8, np.uint8, np.bool_]
NO_FEATURES = np.empty(0, dtype=np.int64)


def integer_matrix(rng, dtype, shape=(37, 23)):
    X = rng.integers(0, 2 if dtype == np.bool_ else 4, shape)
    if np.dtype(dtype).kind != "b":
        X[:, 3] = 2
        X[:, 4] = 0
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_vectors", [1, 3, 4, 9])
def test_dense_products(rng, dtype, n_vectors):
    X = integer_matrix(rng, dtype)
    V = rng.standard_normal((37, n_vectors))
    centre = X.mean(axis=0)
    expected = (naive.dense(X) - centre).T @ V
    for matrix, product in (
        (np.ascontiguousarray(X.T), kernels.feature_major_products),
        (X, kernels.sample_major_products),
    ):
        out = np.full((23, n_vectors), np.nan)
        args = (read_only(matrix), read_only(np.ascontiguousarray(V.T)), centre)
        product(*args, NO_FEATURES, True, out, 0, 10)
        product(*args, NO_FEATURES, True, out, 10, 23)
        np.testing.assert_allclose(out, expected, atol=1e-12)
        some = np.array([22, 0, 7, 7])
        out = np.empty((4, n_vectors))
        product(*args, some, False, out, 0, 4)
        np.testing.assert_allclose(out, expected[some], atol=1e-12)
        out = np.empty((23, n_vectors))
        product(*args[:2], np.empty(0), NO_FEATURES, True, out, 0, 23)
        np.testing.assert_allclose(out, naive.dense(X).T @ V, atol=1e-12)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_vectors", [1, 5])
def test_csc_products(rng, dtype, index, n_vectors):
    S = sparse.csc_array(integer_matrix(rng, dtype))
    V = rng.standard_normal((37, n_vectors))
    arrays = [read_only(a) for a in (S.indptr.astype(index), S.indices.astype(index), S.data)]
    centre = naive.mean(S)
    out = np.empty((23, n_vectors))
    kernels.csc_products(*arrays, V, V.sum(axis=0), centre, NO_FEATURES, True, out, 0, 23)
    np.testing.assert_allclose(out, (naive.dense(S) - centre).T @ V, atol=1e-12)
    some = np.array([5, 1])
    out = np.empty((2, n_vectors))
    kernels.csc_products(*arrays, V, V.sum(axis=0), np.empty(0), some, False, out, 0, 2)
    np.testing.assert_allclose(out, naive.dense(S).T[some] @ V, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_moments(rng, dtype, weighted):
    X = integer_matrix(rng, dtype)
    weight = rng.integers(0, 3, 37).astype(float) if weighted else np.ones(37)
    weight[0] = 0.0 if weighted else 1.0
    first = int(np.argmax(weight > 0))
    expected_mean, expected_norm = naive.mean(X, weight), naive.norm(X, weight)
    S = sparse.csc_array(X)
    for run in ("feature", "sample", "csc"):
        mean, norm, finite = np.empty(23), np.empty(23), np.empty(23, dtype=bool)
        if run == "feature":
            feature_major_moments(read_only(np.ascontiguousarray(X.T)), weight, first, mean, norm, finite, 0, 23)
        elif run == "sample":
            sample_major_moments(read_only(X), weight, first, mean, norm, finite, 0, 23)
        else:
            arrays = [read_only(a) for a in (S.indptr, S.indices, S.data)]
            csc_moments(*arrays, weight, mean, norm, finite, 0, 23)
        np.testing.assert_allclose(mean, expected_mean, atol=1e-12)
        np.testing.assert_allclose(norm, expected_norm, atol=1e-11)
        np.testing.assert_array_equal(norm == 0, expected_norm == 0)
        assert finite.all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_moments_detect_bad_values_in_samples_without_weight(rng, bad):
    X = rng.standard_normal((9, 3))
    X[4, 1] = bad
    weight = np.ones(9)
    weight[4] = 0.0
    for matrix, task in (
        (np.ascontiguousarray(X.T), feature_major_moments),
        (X, sample_major_moments),
    ):
        mean, norm, finite = np.empty(3), np.empty(3), np.empty(3, dtype=bool)
        with np.errstate(invalid="ignore"):  # Without the compiler, NumPy would warn.
            task(read_only(matrix), weight, 0, mean, norm, finite, 0, 3)
        assert finite.tolist() == [True, False, True]


def test_large_mean_costs_no_digits(rng):
    X = rng.standard_normal((200, 4))
    shifted = X + 1e9
    for matrix, task in (
        (shifted.T.copy(), feature_major_moments),
        (shifted, sample_major_moments),
    ):
        mean, norm, finite = np.empty(4), np.empty(4), np.empty(4, dtype=bool)
        task(read_only(matrix), np.ones(200), 0, mean, norm, finite, 0, 4)
        np.testing.assert_allclose(norm, naive.norm(shifted - 1e9), rtol=1e-9)


@pytest.mark.parametrize("head", [37, 20, 5])
def test_dense_strong_products_are_complete(rng, head):
    X = rng.standard_normal((37, 50))
    X[:, 10:20] = X[:, :10] * -3 + 0.3 * rng.standard_normal((37, 10)) + 7
    mean, norm = naive.mean(X), naive.norm(X)
    V = ((X - mean) / norm)[:, [0, 3, 11]]
    products = ((X - mean).T @ V) / norm[:, None]
    expected = {(f, k) for f in range(50) for k in range(3) if abs(products[f, k]) >= 0.6}
    rows = np.ascontiguousarray(V.T)
    tails = np.sqrt((rows[:, head:] ** 2).sum(axis=1))
    wanted = np.full(50, 7, dtype=np.uint16)
    for matrix, task in (
        (X.T.copy(), kernels.feature_major_strong_products),
        (X, kernels.sample_major_strong_products),
    ):
        found = np.empty((200, 3))
        count = task(read_only(matrix), rows, tails, head, mean, norm, 0.6, wanted, found, 0, 50)
        assert {(int(f), int(k)) for f, k, _ in found[:count]} == expected
        for f, k, value in found[:count]:
            assert value == pytest.approx(products[int(f), int(k)] * norm[int(f)], abs=1e-10)
        assert task(read_only(matrix), rows, tails, head, mean, norm, 0.6, wanted, np.empty((1, 3)), 0, 50) == count


def test_kth_largest_and_positions(rng):
    scores = rng.integers(-1, 30, 200).astype(float)
    ranked = np.sort(scores[scores >= 0])[::-1]
    for k in (1, 2, 7, 64, 150):
        assert kernels.kth_largest(scores, np.inf, k) == ranked[min(k, len(ranked)) - 1]
        below = 20.0
        under = ranked[ranked < below]
        assert kernels.kth_largest(scores, below, k) == under[min(k, len(under)) - 1]
    assert kernels.kth_largest(np.full(5, -1.0), np.inf, 3) == -1.0
    assert kernels.kth_largest(np.empty(0), np.inf, 3) == -1.0
    np.testing.assert_array_equal(kernels.positions_between(scores, 3.0, 9.0), np.flatnonzero((scores >= 3) & (scores < 9)))


@pytest.mark.parametrize("layout", ["feature", "sample", "csc"])
def test_results_do_not_depend_on_the_position_of_a_column(rng, layout):
    """Results are bit-identical, so that they do not depend on column order, threads or chunks."""
    X = rng.standard_normal((53, 40)) * (rng.random((53, 40)) < 0.6)
    X[:, 39] = X[:, 0]
    V = rng.standard_normal((53, 5))
    order = rng.permutation(40)

    def products(matrix, start=0, stop=40):
        out = np.zeros((40, 5))
        if layout == "csc":
            S = sparse.csc_array(matrix)
            kernels.csc_products(S.indptr, S.indices, S.data, V, V.sum(0), np.empty(0), NO_FEATURES, True, out, start, stop)
        elif layout == "feature":
            kernels.feature_major_products(matrix.T.copy(), V.T.copy(), np.empty(0), NO_FEATURES, True, out, start, stop)
        else:
            kernels.sample_major_products(matrix.copy(), V.T.copy(), np.empty(0), NO_FEATURES, True, out, start, stop)
        return out

    whole = products(X)
    np.testing.assert_array_equal(products(X[:, order]), whole[order])
    np.testing.assert_array_equal(products(X, 0, 11) + products(X, 11, 40), whole)
    np.testing.assert_array_equal(whole[39], whole[0])


def test_row_norms(rng):
    products, out = rng.standard_normal((50, 7)), np.zeros(50)
    for first, last in ((0, 13), (13, 50)):
        kernels.row_norms(products, out, first, last)
    np.testing.assert_allclose(out, np.linalg.norm(products, axis=1), rtol=1e-14)


def test_products_of_sparse_columns(rng):
    X, Z = (sparse.csc_array(rng.standard_normal((40, k)) * (rng.random((40, k)) < 0.3)) for k in (6, 9))
    out = np.zeros((6, 9))
    csc_cross(X.indptr, X.indices, X.data, Z.indptr, Z.indices, Z.data, np.zeros(41, dtype=np.int64), False, out)
    np.testing.assert_allclose(out, (X.T @ Z).toarray(), atol=1e-14)
    one = np.zeros((1, 1))  # The result of a pair does not depend on other columns.
    x, z = X[:, [4]], Z[:, [2]]
    csc_cross(x.indptr, x.indices, x.data, z.indptr, z.indices, z.data, np.zeros(41, dtype=np.int64), False, one)
    assert one[0, 0] == out[4, 2]
    both, half = np.zeros((9, 9)), np.zeros((9, 9))
    csc_cross(Z.indptr, Z.indices, Z.data, Z.indptr, Z.indices, Z.data, np.zeros(41, dtype=np.int64), False, both)
    csc_cross(Z.indptr, Z.indices, Z.data, Z.indptr, Z.indices, Z.data, np.zeros(41, dtype=np.int64), True, half)
    np.testing.assert_array_equal(half, both)
