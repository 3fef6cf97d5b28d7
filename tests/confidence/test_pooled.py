"""Groups of several searches together."""

from dataclasses import replace

import numpy as np
import pytest

import coterie
from coterie import GroupDiscoveryRegressor, group_confidence, pooled_false_share, pooled_groups
from coterie.confidence.result import false_share


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 90))
    return X, X[:, [4, 10, 20, 35, 50, 70]] @ [1.0, 0.5, 0.3, 0.5, 0.35, 0.4] + rng.standard_normal(80)


@pytest.fixture(scope="module")
def searches():
    X, y = data()
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


def test_the_groups_of_one_search_are_not_changed(searches):
    assert list(pooled_groups(searches[:1])[0]) == list(searches[0].candidates)


def test_pooled_groups_against_their_definition(searches):
    """At the evidence of a group, each search is expected to have as many false groups as the search of the group itself."""
    found = pooled_groups(searches)
    rows = [row for result in searches for row in result.candidate_errors.tolist()]
    expected = []
    for u, r in rows:
        before = [(v, s) for v, s in rows if (2 * 3 * v + s, v) <= (2 * 3 * u + r, u)]
        expected.append(min(1.0, (2 * 3 * max(v for v, _ in before) + sum(s for _, s in before)) / len(before)))
    order = sorted(range(len(rows)), key=lambda k: (2 * 3 * rows[k][0] + rows[k][1], rows[k][0]))
    monotone = {k: min(expected[later] for later in order[rank:]) for rank, k in enumerate(order)}
    values = [group.q_value for groups in found for group in groups]
    assert len(values) > 3
    np.testing.assert_allclose(values, [monotone[k] for k in range(len(values))])
    for result, groups in zip(searches, found, strict=True):
        assert [group.support for group in groups] == [group.support for group in result.candidates]
        assert [group.p_value for group in groups] == [min(1.0, 3 * group.p_value) for group in result.candidates]


def test_the_estimates_are_saved(searches, tmp_path):
    X, y = data()
    model = searches[0].attach_to(GroupDiscoveryRegressor(3).fit(X[:, :30], y))
    coterie.save(model, tmp_path / "model.coterie")
    read = coterie.load(tmp_path / "model.coterie").confidence_
    np.testing.assert_array_equal(read.candidate_errors, searches[0].candidate_errors)
    assert list(pooled_groups([read, *searches[1:]])[0]) == list(pooled_groups(searches)[0])


def test_results_without_evidence_are_refused(searches):
    earlier = replace(searches[0], candidate_errors=np.empty((0, 2)))
    with pytest.raises(ValueError, match=r"Search 2 was computed by an earlier version\."):
        pooled_groups([searches[1], earlier])
    unknown = searches[0].with_evidence(
        coterie.FeatureGroups([]), np.empty((0, 2)), np.full(3, np.nan), np.full(3, np.nan), (None,) * 3
    )
    with pytest.raises(ValueError, match=r"Search 1 has no p-values and q-values\."):
        pooled_groups([unknown, searches[1]])
