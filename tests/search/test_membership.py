"""Members of the groups at every size of a path."""

import numpy as np
import pytest

from coterie import GroupDiscoveryClassifier
from coterie.estimators.base import input_of
from coterie.search.lockstep import run_together
from coterie.search.membership import Membership, memberships
from coterie.search.search import Search
from tests import naive
from tests.conftest import grouped_matrix


def test_the_smallest_size_of_a_repeated_feature_counts():
    membership = Membership.of(np.array([7, 3, 7, 5, 3]), np.array([4, 1, 2, 3, 9]))
    assert membership.feature.tolist() == [3, 5, 7]
    assert membership.since.tolist() == [1, 3, 2]
    assert [membership.at(n).tolist() for n in range(4)] == [[], [3], [3, 7], [3, 5, 7]]


@pytest.mark.parametrize("affiliates", ["complete", "ranked"])
def test_members_of_paths_with_different_weights_and_thresholds(rng, affiliates):
    """Paths share passes only with paths of the same sample weights. The results are in the order of the paths."""
    X, y = grouped_matrix(rng, n_features=30, n_factors=10)
    inputs = [input_of(GroupDiscoveryClassifier(6), X, y, np.where(np.arange(60) % 3 == k, 0.0, 1.0)) for k in range(2)]
    searches = []
    for threshold in (0.5, 0.8):
        for C in (0.01, 1.0):
            for data in inputs:
                estimator = GroupDiscoveryClassifier(6, affiliates=affiliates, C=C, threshold=threshold)
                searches.append(Search(data, estimator._settings(), 6, records_members=True))
    loops, _ = run_together(searches, n_threads=1)
    found = memberships(loops)
    assert len(found) == 8
    for search, loop, membership in zip(searches, loops, found, strict=True):
        assert (loop.encountered is not None) == (affiliates == "ranked")
        supports = loop.oracle.supports.tolist()
        assert len(supports) == 6
        for n_support in range(1, 7):
            groups = naive.complete_groups(X, supports[:n_support], search.settings.threshold, search.data.weight)
            everything = sorted(set(groups).union(*groups.values()))
            members = membership.at(n_support).tolist()
            if affiliates == "complete":
                # A feature that is a support feature later is a member before if it is correlated with one.
                assert sorted(members) == everything
            else:
                assert set(supports[:n_support]) <= set(members) <= set(everything)
        if affiliates == "ranked":
            assert sorted(membership.feature) == sorted({*supports, *loop.oracle.collect().feature.tolist()})


def test_encountered_features_are_recorded_only_on_request(rng):
    X, y = grouped_matrix(rng)
    for affiliates, records in (("ranked", False), ("complete", True)):
        estimator = GroupDiscoveryClassifier(3, affiliates=affiliates)
        search = Search(input_of(estimator, X, y), estimator._settings(), 3, records_members=records)
        (loop,), _ = run_together([search], n_threads=1)
        assert loop.encountered is None
