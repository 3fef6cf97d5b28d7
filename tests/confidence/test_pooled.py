"""The share of false groups of several searches together."""

import numpy as np
import pytest

from coterie import GroupDiscoveryRegressor, group_confidence, pooled_false_share
from coterie.confidence.result import false_share


@pytest.fixture(scope="module")
def searches():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 90))
    y = X[:, 4] + rng.standard_normal(80)
    results = []
    for part in np.split(X, 3, axis=1):
        model = GroupDiscoveryRegressor(3).fit(part, y)
        results.append(group_confidence(model, part, y, n_pairs=5, n_permutations=6, random_state=0))
    return results


def test_one_search_is_not_changed(searches):
    np.testing.assert_array_equal(pooled_false_share(searches[:1])[0], searches[0].false_share)


def test_against_counts(searches):
    found = pooled_false_share(searches)
    confidence = np.concatenate([result.confidence for result in searches])
    expected = [
        sum(sum((own >= value - 1e-9).sum() for own in result.permuted) / 6 for result in searches) for value in confidence
    ]
    np.testing.assert_allclose(np.concatenate(found), false_share(confidence, np.array(expected), 6))
    assert [len(own) for own in found] == [3, 3, 3]


def test_permutations_are_required(searches):
    with pytest.raises(ValueError, match="requires permutations"):
        pooled_false_share([searches[0], group_of_no_permutations()])


def group_of_no_permutations():
    X = np.random.default_rng(0).standard_normal((20, 5))
    model = GroupDiscoveryRegressor(1).fit(X, X[:, 0])
    return group_confidence(model, X, X[:, 0], n_pairs=2, n_permutations=0, random_state=0)
