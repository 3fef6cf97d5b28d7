import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.kernels.neighbours import count_right, count_right_again, smallest, smallest_in_turn, vote, workspace_size

ROWS = st.lists(st.integers(-5, 5), min_size=1, max_size=90)


@given(ROWS, st.integers(1, 6), st.integers(1, 40))
def test_smallest_values(row, q, n_groups):
    row = np.array(row, dtype=np.float32)
    q = min(q, len(row))
    n_groups = min(len(row), max(n_groups, q))
    values, places = np.empty(q, dtype=np.float32), np.empty(q, dtype=np.int64)
    smallest(row, np.empty(n_groups, dtype=np.float32), np.empty(q, dtype=np.int64), values, places)
    np.testing.assert_array_equal(values, np.sort(row)[:q])
    np.testing.assert_array_equal(row[places], values)
    assert len(set(places.tolist())) == q


@given(ROWS, st.integers(1, 6))
def test_heap_keeps_the_smallest(row, k):
    row = np.array(row, dtype=np.float64)
    k = min(k, len(row))
    values, places = np.empty(k), np.empty(k, dtype=np.int64)
    smallest_in_turn(row, values, places)
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
    queries = np.hstack([-2 * X, np.ones((n, 1))]).astype(np.float32)
    others = np.hstack([X, (X**2).sum(axis=1, keepdims=True)]).astype(np.float32)
    room = np.empty(workspace_size(len(train), d + 1), dtype=np.float32)
    unsure = np.zeros(len(test), dtype=np.bool_)
    slack = np.full(n, 1e-5)
    sure = count_right(queries, others, slack, codes, n_classes, k, False, train, test, unsure, room)
    assert unsure.sum() < 10
    assert sure == right[~unsure].sum()
    slack[:] = 0.3  # now most are unsure, and done again
    sure = count_right(queries, others, slack, codes, n_classes, k, False, train, test, unsure, room)
    assert unsure.sum() > 20
    again = count_right_again(X[test], X[train], codes[test], codes[train], n_classes, k, unsure)
    assert (sure, again) == (right[~unsure].sum(), right[unsure].sum())
