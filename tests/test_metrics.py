import numpy as np
import pytest
from scipy import sparse

from coterie import FeatureGroup
from coterie.metrics import correct_move_rate, group_recovery, redundancy_rate, squared_redundancy

TRUTH = [FeatureGroup(0, [1, 2]), FeatureGroup(3, [4]), FeatureGroup(5, [])]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (TRUTH, 6 / 6),
        ([], 0.0),
        ([FeatureGroup(0, []), FeatureGroup(3, []), FeatureGroup(5, [])], 3 / 6),
        ([FeatureGroup(1, [0, 2])], 1 / 6),  # wrong roles of 0 and 1; 2 is affiliated, as it should be
        ([FeatureGroup(0, [1]), FeatureGroup(2, [])], 2 / 6),  # split group: its best part counts
        ([FeatureGroup(0, [1, 2, 4]), FeatureGroup(9, [3, 5])], 3 / 6),  # members in a wrong group count for nothing
        ([FeatureGroup(5, [8, 9])], 1 / 6),  # features that are not true do not matter
    ],
)
def test_group_recovery(found, expected):
    assert group_recovery(TRUTH, found) == pytest.approx(expected)


def test_group_recovery_of_nothing():
    with pytest.raises(ValueError, match="empty"):
        group_recovery([], TRUTH)


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
    with pytest.raises(ValueError, match="nothing to move"):
        correct_move_rate(before, after, [[3]])
    with pytest.raises(ValueError, match=r"groups\[1\]"):
        correct_move_rate(before, after, [[0, 1], [0, 6]])
    with pytest.raises(ValueError, match="one length"):
        correct_move_rate(before, after[:5], [[0, 1]])
