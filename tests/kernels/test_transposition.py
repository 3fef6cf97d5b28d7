"""Transposition of entries compared with SciPy, and ranges and types of values compared with NumPy."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from coterie.kernels import transposition as kernels
from tests.conftest import random_sparse


def entries(rng, n_rows=23, n_columns=17, density=0.3):
    return random_sparse(rng, (n_rows, n_columns), density=density, format="csr")


@pytest.mark.parametrize("cuts", [[0, 17], [0, 5, 17], [0, 1, 2, 16, 17]])
def test_rows_to_columns(rng, cuts):
    S = entries(rng)
    expected = S.tocsc()
    counts = np.zeros(17, dtype=np.int64)
    kernels.count_columns(S.indices, counts)
    np.testing.assert_array_equal(counts, np.diff(expected.indptr))
    cursor = expected.indptr[:-1].astype(np.int64)
    rows, values = np.full(S.nnz, -1, dtype=np.int32), np.zeros(S.nnz)
    for start, stop in itertools.pairwise(cuts):
        kernels.scatter_rows(S.indptr[1:].astype(np.int64), 100, S.indices, S.data, cursor, rows, values, start, stop)
    np.testing.assert_array_equal(rows, expected.indices + 100)
    np.testing.assert_array_equal(values, expected.data)
    np.testing.assert_array_equal(cursor, expected.indptr[1:])


def test_runs_are_appended(rng):
    """Append columns 5 to 11 of two runs."""
    first, second = entries(rng).tocsc()[:, 5:12], entries(rng, density=0.1).tocsc()[:, 5:12]
    expected = sparse.vstack([first, second]).tocsc()
    rows, values = np.empty(expected.nnz, dtype=np.int64), np.empty(expected.nnz)
    cursor = expected.indptr[:-1].astype(np.int64)
    for run, offset in ((first, 0), (second, 23)):
        used = np.flatnonzero(np.diff(run.indptr))
        starts = np.append(run.indptr[used], run.indptr[-1]).astype(np.int64) + 7
        kernels.append_columns(used + 5, starts, 7, run.indices + offset, run.data, 5, cursor, rows, values)
    np.testing.assert_array_equal(rows, expected.indices)
    np.testing.assert_array_equal(values, expected.data)


@pytest.mark.parametrize(
    ("values", "whole", "single"),
    [([1.0, 255.0], True, True), ([0.5], False, True), ([0.1], False, False), ([-0.0], False, True), ([np.nan], False, False)],
)
def test_value_range(values, whole, single):
    low, high, is_whole, is_single = kernels.value_range(np.array(values))
    assert (is_whole, is_single) == (whole, single)
    if not np.isnan(values).any():
        assert (low, high) == (min(values), max(values))


@pytest.mark.parametrize(("row", "value"), [(4, -1), (4, 23), (4, 10**9), (1, None)])
def test_bad_columns_are_found(rng, row, value):
    S = entries(rng, density=0.6).tocsc()
    assert kernels.first_bad_column(S.indptr, S.indices, 23, 0, 17) == -1
    indices = S.indices.copy()
    place = S.indptr[9] + row
    indices[place] = indices[place - 1] if value is None else value  # None: a repeated row
    assert kernels.first_bad_column(S.indptr, indices, 23, 0, 17) == 9
    assert kernels.first_bad_column(S.indptr, indices, 23, 0, 9) == -1
