from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from coterie.data import as_source
from coterie.kernels.neighbours import (
    buffer_size,
    count_correct,
    count_correct_exactly,
    gather_factors,
    predict_tied_votes,
    smallest,
    smallest_in_order,
    squared_norms,
    vote,
)
from coterie.probing import KNNCriterion

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
    smallest_in_order(row, turn, values, places)
    np.testing.assert_array_equal(np.sort(values), np.sort(row)[:k])
    np.testing.assert_array_equal(row[places], values)
    assert len(set(places.tolist())) == k


def test_votes():
    codes, votes = np.array([2, 0, 1, 1, 2]), np.empty(3, dtype=np.int64)
    assert vote(np.array([2, 3, 0]), codes, votes) == 1
    assert vote(np.array([0, 1]), codes, votes) == 0  # In a tie the first class wins.
    assert vote(np.array([4, 0, 1, 2]), codes, votes) == 2


@given(st.lists(st.integers(0, 2), max_size=3), st.lists(st.integers(0, 2), min_size=1, max_size=5), st.integers(0, 2))
def test_a_predicted_vote_holds_for_every_choice(sure, possible, own):
    """Checks all ways to complete the first k with possible ones. An undecided vote must have both outcomes."""
    for n_left in range(1, len(possible) + 1):
        k, votes = len(sure) + n_left, np.empty(3, dtype=np.int64)
        outcomes = {vote(np.arange(k), np.array([*sure, *some]), votes) == own for some in combinations(possible, n_left)}
        counts = (np.bincount(np.array(codes, dtype=np.int64), minlength=3) for codes in (sure, possible))
        verdict = predict_tied_votes(*counts, k, own)
        if verdict >= 0:
            assert outcomes == {bool(verdict)}
        elif own != 2 and 2 not in {*sure, *possible}:  # With two classes the prediction is exact.
            assert outcomes == {True, False}


@pytest.mark.parametrize("k", [1, 3, 5])
def test_many_samples_at_the_same_distance(k, rng):
    """Ties between hundreds of samples, in double and single precision, with one and with several classes."""
    X = np.round(rng.standard_normal((900, 2)), 0) / 3
    X[:300] = X[0]
    for codes in (rng.integers(0, 3, 900), np.repeat([0, 1, 2], 300)):
        evaluate = KNNCriterion(k).bind(as_source(X), codes, 3)
        with threadpool_limits(1):
            expected = cross_val_score(KNeighborsClassifier(k, algorithm="brute"), X, codes, cv=3).mean()
        assert evaluate(np.arange(2)) == expected


@pytest.mark.parametrize("k", [1, 3, 5])
def test_count_of_correct_votes(k, rng):
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
    turn, room = np.arange(len(train)), np.empty(buffer_size(len(train)), dtype=np.float32)

    def count(slack, fine_slack, unsure):
        slacks = np.full(n, slack), np.full(n, fine_slack)
        return count_correct(
            queries[:150], others[150:], *slacks, codes, test, train, turn, columns, n_classes, k, False, unsure, room
        )

    unsure = np.zeros(len(test), dtype=np.bool_)
    assert count(1e-5, 1e-12, unsure) == right.sum()
    assert not unsure.any()
    assert count(0.1, 1e-12, unsure) == right.sum()  # Most rows are decided in double precision.
    assert not unsure.any()
    sure = count(0.1, 0.4, unsure)  # Now most of these are uncertain and are recomputed.
    assert unsure.sum() > 20
    again = count_correct_exactly(X[test], X[train], codes[test], codes[train], n_classes, k, unsure)
    assert (sure, again) == (right[~unsure].sum(), right[unsure].sum())
