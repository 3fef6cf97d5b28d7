from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_selection import SelectKBest, f_regression

from coterie import FeatureGroup, GroupDiscoveryClassifier
from coterie.metrics import (
    group_hamming_stability,
    group_tanimoto_stability,
    group_weighted_consistency,
    hamming_stability,
    selection_stability,
    tanimoto_stability,
    weighted_consistency,
)
from tests.conftest import grouped_matrix

SUBSETS = st.integers(1, 7).flatmap(
    lambda m: st.tuples(st.just(m), st.lists(st.sets(st.integers(0, m - 1)), min_size=2, max_size=5))
)
GROUPS = st.lists(
    st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=3), max_size=4, unique_by=lambda group: group[0]),
    min_size=2,
    max_size=4,
)


def naive_consistency(subsets, m):
    """CW between the least and the largest CW that N, R and |Y| allow, each by its definition (Somol 2010)."""
    R = len(subsets)
    counts = [sum(f in s for s in subsets) for f in range(m)]
    N = sum(counts)
    if N == 0:
        return 1.0

    def plain(counts):
        return sum(Fraction(c, N) * Fraction(c - 1, R - 1) for c in counts)

    least = plain([N // m + (f < N % m) for f in range(m)])  # as even as possible
    most = plain([R] * (N // R) + [N % R])  # as many as possible in all subsets
    return float((plain(counts) - least) / (most - least) if most > least else plain(counts))


def naive_matching(first, second):
    """Largest number of disjoint overlapping pairs, by trying all assignments."""
    if len(first) > len(second):
        first, second = second, first
    return max(sum(bool(set(a) & set(b)) for a, b in zip(first, p, strict=False)) for p in permutations(second, len(first)))


@given(SUBSETS)
def test_measures_against_their_definitions(case):
    m, subsets = case
    pairs = list(combinations(subsets, 2))
    lists = [sorted(s) for s in subsets]
    masks = [np.isin(np.arange(m), sorted(s)) for s in subsets]
    for form in (subsets, lists, masks):
        assert weighted_consistency(form, m) == pytest.approx(naive_consistency(subsets, m), abs=1e-12)
        assert tanimoto_stability(form) == pytest.approx(
            np.mean([len(a & b) / len(a | b) if a | b else 1.0 for a, b in pairs])
        )
        assert hamming_stability(form, m) == pytest.approx(np.mean([1 - len(a ^ b) / m for a, b in pairs]))


@given(SUBSETS)
def test_groups_of_one_feature_are_subsets(case):
    m, subsets = case
    groupings = [[[f] for f in sorted(s)] for s in subsets]
    assert group_weighted_consistency(groupings, m) == weighted_consistency(subsets, m)
    assert group_tanimoto_stability(groupings) == tanimoto_stability(subsets)
    assert group_hamming_stability(groupings, m) == pytest.approx(hamming_stability(subsets, m))


@given(GROUPS)
def test_groups_agree_where_they_overlap(groupings):
    supports = [[group[0] for group in run] for run in groupings]
    pairs = [(len(a), len(b), naive_matching(a, b)) for a, b in combinations(groupings, 2)]
    expected = np.mean([M / (a + b - M) if a + b else 1.0 for a, b, M in pairs])
    assert group_tanimoto_stability(groupings) == pytest.approx(expected)
    assert group_hamming_stability(groupings, 7) == pytest.approx(np.mean([1 - (a + b - 2 * M) / 7 for a, b, M in pairs]))
    at_least = [weighted_consistency(supports, 7), tanimoto_stability(supports), hamming_stability(supports, 7)]
    found = [group_weighted_consistency(groupings, 7), expected, group_hamming_stability(groupings, 7)]
    for low, value in zip(at_least, found, strict=True):
        assert low - 1e-12 <= value <= 1 + 1e-12


def test_hand_computed_cases():
    # F = (3, 2, 1, 0): N = 6, D = 6 mod 4 = 2, H = 6 mod 3 = 0; (4(6-2+8) - 36 + 4) / (4(0+18-2) - 36 + 4) = 16 / 32
    subsets = [[0, 1], [0, 1], [0, 2]]
    assert weighted_consistency(subsets, 4) == 0.5
    assert tanimoto_stability(subsets) == pytest.approx((1 + 1 / 3 + 1 / 3) / 3)
    assert hamming_stability(subsets, 4) == pytest.approx((1 + 0.5 + 0.5) / 3)
    # One large group counts as one agreement only: the matching is one to one.
    runs = [[[0, 1, 2, 3]], [[0], [1], [2]]]
    assert group_tanimoto_stability(runs) == 1 / 3
    assert group_hamming_stability(runs, 10) == 1 - 2 / 10
    # N = 4, D = 4, H = 0, M = 1: (10(0+2) - 0) / (10(8-4) - 0)
    assert group_weighted_consistency([[[0, 1], [5]], [[1, 0], [6]]], 10) == 0.5


def test_known_extremes():
    same = [[0, 3, 4]] * 5
    assert weighted_consistency(same, 9) == tanimoto_stability(same) == hamming_stability(same, 9) == 1.0
    spread = [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert weighted_consistency(spread, 9) == tanimoto_stability(spread) == 0.0
    assert hamming_stability([[0, 1], [2, 3]], 4) == 0.0
    evenly = [[0, 1], [1, 2], [2, 3], [3, 0]]  # each feature twice: as even as N = 8 allows
    assert weighted_consistency(evenly, 4) == 0.0
    full = [[0, 1], [0, 1]]
    assert weighted_consistency(full, 2) == 1.0
    assert weighted_consistency([[], []], 3) == tanimoto_stability([[], []]) == hamming_stability([[], []], 3) == 1.0
    assert weighted_consistency([[0], []], 3) == 0.0


def test_random_subsets_are_not_consistent(rng):
    subsets = [rng.choice(400, 40, replace=False) for _ in range(40)]
    assert weighted_consistency(subsets, 400) == pytest.approx(1 / 40, abs=0.01)  # about 1 / R for any sizes


@pytest.mark.parametrize(
    ("subsets", "message"),
    [
        ([[0, 1]], "at least 2 subsets"),
        ([[0, 1], [0, 0]], "Subset 1 contains a feature twice"),
        ([[0, 9], [0]], "Subset 0 has feature 9, but n_features=4"),
        ([[0], [-1]], "Subset 1 has feature -1"),
        ([[0], [0.5]], "Subset 1 must be a list of feature indices"),
        ([[0], [[1]]], "Subset 1 must be a list"),
        ([[True, False], [True, True]], "mask of length 2, but n_features=4"),
    ],
)
def test_wrong_subsets(subsets, message):
    with pytest.raises(ValueError, match=message):
        weighted_consistency(subsets, 4)
    with pytest.raises(ValueError, match=message):
        hamming_stability(subsets, 4)


@pytest.mark.parametrize(
    ("groupings", "message"),
    [
        ([[[0, 1]]], "at least 2 runs"),
        ([[[0, 1]], [[]]], "run 1 must be"),
        ([[[0, 1]], [[0], [0, 2]]], "Two groups of run 1 have the same support"),
        ([[[0, 9]], [[0]]], "A group of run 0 has feature 9"),
    ],
)
def test_wrong_groups(groupings, message):
    with pytest.raises(ValueError, match=message):
        group_weighted_consistency(groupings, 4)
    with pytest.raises(ValueError, match="n_features=0"):
        group_hamming_stability([[[0]], [[0]]], 0)


def test_feature_groups_are_groupings():
    runs = [[FeatureGroup(0, [1, 2])], [FeatureGroup(1, [0])]]
    assert group_tanimoto_stability(runs) == 1.0


class Ranker(SelectKBest):
    """Selector with a ranking by the F test."""

    def fit(self, X, y):
        super().fit(X, y)
        self.ranking_ = np.empty(X.shape[1], dtype=int)
        self.ranking_[np.argsort(-self.scores_)] = np.arange(1, X.shape[1] + 1)
        return self


def test_selection_stability_is_that_of_the_fits(rng):
    X, y = grouped_matrix(rng)
    table = selection_stability(Ranker(k=5), X, y, n_resamples=6, random_state=1)
    assert len(table) == 1
    assert table[0].n_selected == 5
    assert table[0][1:4] == (
        weighted_consistency(table.subsets[0], 40),
        tanimoto_stability(table.subsets[0]),
        hamming_stability(table.subsets[0], 40),
    )
    assert table.frequency().sum() == 30
    assert list(table.to_frame().columns) == ["n_selected", "weighted_consistency", "tanimoto", "hamming"]
    curve = selection_stability(Ranker(), X, y, n_resamples=6, sizes=[1, 5, 40], random_state=1, n_jobs=2)
    assert curve[1] == table[0]
    assert curve[2].weighted_consistency == 1.0
    for other in (sparse.csc_array(X), pd.DataFrame(X)):
        assert selection_stability(Ranker(k=5), other, y, n_resamples=6, random_state=1)[0] == table[0]


def test_selection_stability_with_groups_and_with_numbers(rng):
    X, y = grouped_matrix(rng, n_samples=120)
    row = selection_stability(GroupDiscoveryClassifier(3), X, y, n_resamples=4, random_state=0)[0]
    assert row.weighted_consistency <= row.group_weighted_consistency <= 1
    assert row.tanimoto <= row.group_tanimoto
    assert row.hamming <= row.group_hamming
    numbers = selection_stability(Ranker(f_regression, k=2), X, X[:, 0] + 0.1 * y, n_resamples=3, random_state=0)
    assert numbers.frequency()[0] == 3


def test_selection_stability_refuses_invalid_input(rng):
    X, y = grouped_matrix(rng)
    with pytest.raises(ValueError, match="sizes requires a selector that ranks all features"):
        selection_stability(SelectKBest(k=2), X, y, sizes=[1, 2])
    with pytest.raises(ValueError, match="sizes contains 41"):
        selection_stability(Ranker(), X, y, sizes=[41])
    with pytest.raises(ValueError, match=r"train_size=1\.0 makes all resamples equal"):
        selection_stability(SelectKBest(k=2), X, y, train_size=1.0)
    with pytest.raises(ValueError, match="n_resamples=1 must be a whole number of at least 2"):
        selection_stability(SelectKBest(k=2), X, y, n_resamples=1)
