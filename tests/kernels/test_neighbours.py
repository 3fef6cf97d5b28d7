import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.kernels.neighbours import (
    count_right,
    count_right_again,
    gather_factors,
    room_for,
    smallest,
    smallest_in_turn,
    squared_norms,
    vote,
)

ROWS = st.lists(st.integers(-5, 5), min_size=1, max_size=90)


@given(ROWS, st.integers(1, 6), st.integers(1, 40), st.integers(1, 4))
def test_smallest_values(row, q, n_groups, n_strides):
    row = np.array(row, dtype=np.float32)
    q = min(q, len(row))
    n_groups = min(len(row), max(n_groups, q))
    values, places = np.empty(q, dtype=np.float32), np.empty(q, dtype=np.int64)
    stride, minima = np.empty(n_groups * n_strides, dtype=np.float32), np.empty(n_groups, dtype=np.float32)
    smallest(row, stride, minima, np.empty(q, dtype=np.int64), values, places)
    np.testing.assert_array_equal(values, np.sort(row)[:q])
    np.testing.assert_array_equal(row[places], values)
    assert len(set(places.tolist())) == q


@given(ROWS, st.integers(1, 6))
def test_heap_keeps_the_smallest(row, k):
    turn = np.random.default_rng(len(row)).permutation(len(row))
    row = np.array(row, dtype=np.float64)
    k = min(k, len(row))
    values, places = np.empty(k), np.empty(k, dtype=np.int64)
    smallest_in_turn(row, turn, values, places)
    np.testing.assert_array_equal(np.sort(values), np.sort(row)[:k])
    np.testing.assert_array_equal(row[places], values)
    assert len(set(places.tolist())) == k


def test_votes():
    codes, votes = np.array([2, 0, 1, 1, 2]), np.empty(3, dtype=np.int64)
    assert vote(np.array([2, 3, 0]), codes, votes) == 1
    assert vote(np.array([0, 1]), codes, votes) == 0  # a tie: the first class
    assert vote(np.array([4, 0, 1, 2]), codes, votes) == 2


@pytest.mark.parametrize("k", [1, 3, 5])
def test_count_of_right_votes(k, rng):
    n, d, n_classes = 300, 6, 3
    X = rng.standard_normal((n, d))
    codes = rng.integers(0, n_classes, n)
    test, train = np.arange(0, n, 2), np.arange(1, n, 2)
    distances = ((X[test][:, None] - X[train][None]) ** 2).sum(axis=2)
    near = codes[train][np.argsort(distances, axis=1)[:, :k]]
    right = np.array([np.bincount(row, minlength=n_classes).argmax() for row in near]) == codes[test]
    columns, centre, norms = np.ascontiguousarray(X.T), rng.standard_normal(d), np.empty(n)
    squared_norms(columns, centre, norms)
    np.testing.assert_allclose(norms, ((X - centre) ** 2).sum(axis=1))
    queries, others = np.empty((n, d + 1), dtype=np.float32), np.empty((n, d + 1), dtype=np.float32)
    gather_factors(columns, centre, 0.5, norms, np.append(test, train), queries, others)
    values = queries[:150] @ others[150:].T + 0.25 * norms[test][:, None]
    np.testing.assert_allclose(values, 0.25 * distances, atol=1e-4)
    turn, room = np.arange(len(train)), np.empty(room_for(len(train)), dtype=np.float32)

    def count(slack, fine_slack, unsure):
        slacks = np.full(n, slack), np.full(n, fine_slack)
        return count_right(
            queries[:150], others[150:], *slacks, codes, test, train, turn, columns, n_classes, k, False, unsure, room
        )

    unsure = np.zeros(len(test), dtype=np.bool_)
    assert count(1e-5, 1e-12, unsure) == right.sum()
    assert not unsure.any()
    assert count(0.1, 1e-12, unsure) == right.sum()  # most rows are settled in double precision
    assert not unsure.any()
    sure = count(0.1, 0.4, unsure)  # and now most of these are unsure, and done again
    assert unsure.sum() > 20
    again = count_right_again(X[test], X[train], codes[test], codes[train], n_classes, k, unsure)
    assert (sure, again) == (right[~unsure].sum(), right[unsure].sum())
