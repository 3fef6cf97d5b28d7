import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from coterie import FeatureGroup
from coterie.metrics import correct_move_rate, group_recovery, redundancy_rate, squared_redundancy, success_hits

TRUTH = [FeatureGroup(0, [1, 2]), FeatureGroup(3, [4]), FeatureGroup(5, [])]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (TRUTH, 6 / 6),
        ([], 0.0),
        ([FeatureGroup(0, []), FeatureGroup(3, []), FeatureGroup(5, [])], 3 / 6),
        ([FeatureGroup(1, [0, 2])], 1 / 6),  # wrong roles of 0 and 1; 2 is affiliated, as in truth
        ([FeatureGroup(0, [1]), FeatureGroup(2, [])], 2 / 6),  # split group: its best part counts
        ([FeatureGroup(0, [1, 2, 4]), FeatureGroup(9, [3, 5])], 3 / 6),  # members in a wrong group do not count
        ([FeatureGroup(5, [8, 9])], 1 / 6),  # features outside the true groups are ignored
    ],
)
def test_group_recovery(found, expected):
    assert group_recovery(TRUTH, found) == pytest.approx(expected)


def test_group_recovery_without_true_groups():
    with pytest.raises(ValueError, match="empty"):
        group_recovery([], TRUTH)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (TRUTH, (3, 3, 0)),
        ([], (0, 0, 0)),
        ([FeatureGroup(1, [0, 2])], (0, 1, 2)),  # roles of 0 and 1 exchanged
        ([FeatureGroup(0, [1]), FeatureGroup(2, [])], (1, 1, 1)),  # split group: its other part is wrong
        ([FeatureGroup(1, [2]), FeatureGroup(0, [])], (1, 0, 2)),  # of two equal matches, the one with the support feature
        ([FeatureGroup(0, [1, 2, 4]), FeatureGroup(9, [3, 5])], (1, 2, 4)),
        ([0, 1, 2, 4, 9, 3, 5], (3, 3, 1)),  # a selection has no roles
        (np.array([8, 1, 1]), (0, 1, 1)),
        (range(3), (1, 2, 0)),
    ],
)
def test_success_hits(found, expected):
    hits = success_hits(TRUTH, found)
    assert hits == expected
    assert str(hits) == "/".join(map(str, expected))


def test_success_hits_of_invalid_input():
    with pytest.raises(ValueError, match="empty"):
        success_hits([], [1])
    for wrong in ([True, False], np.array([True]), [FeatureGroup(0, []), 1], ["0"], [1.0]):
        with pytest.raises(TypeError, match="indices"):
            success_hits(TRUTH, wrong)


@st.composite
def partitions(draw):
    """Disjoint groups of some of twelve features."""
    places = draw(st.lists(st.integers(0, 4), min_size=12, max_size=12))
    order = draw(st.permutations(range(12)))
    groups = [[j for j in order if places[j] == number] for number in range(1, 5)]
    return [FeatureGroup(group[0], group[1:]) for group in groups if group]


@settings(max_examples=200, deadline=None)
@given(truth=partitions().filter(bool), found=partitions())
def test_success_hits_feature_by_feature(truth, found):
    """Compare the true and the found role of each feature separately."""

    def role(groups, feature):
        for number, group in enumerate(groups):
            if feature == group.support:
                return number, "support"
            if feature in group.affiliated.tolist():
                return number, "affiliated"
        return None

    def right(feature, chosen):
        true, mine = role(truth, feature), role(found, feature)
        return true is not None and mine is not None and mine[1] == true[1] and chosen[true[0]] == mine[0]

    # Best assignment, for each true group, of a found group whose support feature belongs to it, or of none.
    options = [
        [number for number, group in enumerate(found) if group.support in one.members.tolist()] or [None] for one in truth
    ]
    chosen = [max(mine, key=lambda number, t=t: _value(right, role, truth, t, number)) for t, mine in enumerate(options)]
    counts = {"support": 0, "affiliated": 0, "wrong": 0}
    for feature in range(12):
        if right(feature, chosen):
            counts[role(truth, feature)[1]] += 1
        elif role(found, feature) is not None:
            counts["wrong"] += 1
    hits = success_hits(truth, found)
    assert hits._asdict() == counts
    n_true = sum(len(group) for group in truth)
    assert group_recovery(truth, found) == pytest.approx((hits.support + hits.affiliated) / n_true)
    features = [int(j) for group in found for j in group.members]
    kinds = [(role(truth, feature) or (None, "wrong"))[1] for feature in features]
    assert success_hits(truth, features) == tuple(map(kinds.count, ("support", "affiliated", "wrong")))


def _value(right, role, truth, t, number):
    mine = [j for j in range(12) if (role(truth, j) or (None,))[0] == t and right(j, {t: number})]
    return len(mine), truth[t].support in mine


def test_redundancy_rate(rng):
    X = rng.standard_normal((30, 5))
    X[:, 4] = 2.0
    C = np.abs(np.corrcoef(X[:, :4], rowvar=False))
    pairs = C[np.triu_indices(4, 1)]
    assert redundancy_rate(X[:, :4]) == pytest.approx(pairs.mean())
    assert redundancy_rate(X) == pytest.approx(pairs.sum() / 10)
    assert redundancy_rate(X, [1, 3]) == pytest.approx(C[1, 3])
    assert redundancy_rate(sparse.csr_array(X), [1, 3]) == pytest.approx(C[1, 3])
    assert redundancy_rate(X, [2]) == 0.0
    assert squared_redundancy(X[:, :4]) == pytest.approx((pairs**2).mean())
    assert squared_redundancy(X) == pytest.approx((pairs**2).sum() / 10)
    assert squared_redundancy(sparse.csr_array(X), [1, 3]) == pytest.approx(C[1, 3] ** 2)
    assert squared_redundancy(X, [2]) == 0.0


def test_correct_move_rate():
    before = [1, 2, 3, 4, 5, 6]
    after = [1, 5, 2, 6, 3, 4]
    # Differences of the pairs: 0-2 from 2 to 1, 1-3 from 2 to 1, 4-5 from 1 to 1 (not smaller).
    assert correct_move_rate(before, after, [[0, 2], [1, 3], [4, 5]]) == pytest.approx(2 / 3)
    assert correct_move_rate(before, after, [FeatureGroup(0, [2]), FeatureGroup(4, [])]) == 1.0
    assert correct_move_rate(before, after, [[0, 2, 4]]) == 1.0  # from 4 to 2
    with pytest.raises(ValueError, match="no group of two or more features"):
        correct_move_rate(before, after, [[3]])
    with pytest.raises(ValueError, match=r"groups\[1\]"):
        correct_move_rate(before, after, [[0, 1], [0, 6]])
    with pytest.raises(ValueError, match="the same length"):
        correct_move_rate(before, after[:5], [[0, 1]])
