"""The rule for ties: compared with naive code, and independent of the column order in every ranking method."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import coterie
from coterie import baselines
from coterie.data import as_source
from coterie.filters.selector import FilterSelector
from coterie.order import best_of, by_content, in_order, ranked, ranks
from tests import naive


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    levels=st.integers(1, 6),
    named=st.booleans(),
    is_sparse=st.booleans(),
    noise=st.sampled_from([0.0, 1e-14]),
)
def test_order_is_that_of_naive_code(seed, levels, named, is_sparse, noise):
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, (12, 15)).astype(float)
    X[:, 5:8], X[:, 9] = X[:, [0]], -X[:, 1]  # equal columns, and one negated column
    scores = rng.integers(-1, levels, 15) * (1.0 + noise * rng.standard_normal(15))
    names = [f"n{j}" for j in rng.permutation(15)] if named else None
    source = as_source(sparse.csc_array(X) if is_sparse else X, names)
    expected = naive.order(X, scores, names)
    assert ranked(source, scores).tolist() == expected
    assert best_of(source, np.arange(15), scores) == expected[0]
    some = rng.permutation(15)[:8]
    found = some[in_order(source, some, scores[some], tie=1e-10 * np.abs(scores).max())]
    assert found.tolist() == [j for j in expected if j in some]


def test_votes_come_before_scores_and_content_after_them():
    source = as_source(np.eye(4))
    votes, scores = np.array([1, 2, 2, 1]), np.array([9.0, 1.0, 1.0, 9.0])
    first = by_content(source, np.array([1, 2])).tolist()
    assert in_order(source, np.arange(4), scores, votes=votes).tolist()[:2] == first


def test_many_small_steps_are_not_one_level():
    """Scores of a level differ from its first score, not only from the next one, by at most the tie."""
    source = as_source(np.eye(5))
    scores = 1.0 - 0.6e-10 * np.arange(5)
    order = ranked(source, scores).tolist()
    assert {*order[:2]} == {0, 1}
    assert {*order[2:4]} == {2, 3}
    assert order[4] == 4


def test_infinite_scores_are_tied_with_each_other():
    order = ranked(as_source(np.eye(4)), np.array([-np.inf, 0.5, -np.inf, 0.5])).tolist()
    assert {*order[:2]} == {1, 3}


def test_ranks_of_a_part():
    assert ranks(np.array([3, 1]), 5).tolist() == [3, 2, 3, 1, 3]


METHODS = [
    FilterSelector("fisher", 5),
    FilterSelector("relieff", 5),
    coterie.GlobalRedundancySelector("fisher", 5),
    coterie.GlobalRedundancySelector("fisher", 5, solution="weights"),
    coterie.GroupDiscoveryClassifier(5, n_features_per_round=2),
    coterie.GroupDiscoveryClassifier(5, n_features_per_round=2, cv=3, random_state=0),
    coterie.GroupDiscoveryRegressor(5),
    coterie.GroupDiscoveryOneClass(5),
    baselines.MRMRSelector(5),
    baselines.MRMRSelector(5, scheme="miq"),
    baselines.FCBFSelector(),
    baselines.RCFSSelector(5),
    baselines.BestIndividualSelector("ridge", n_features_to_select=5),
    baselines.FloatingSelector("ridge", n_features_to_select=3, look_ahead=1),
]


@pytest.mark.filterwarnings("ignore:.*better than chance")
@pytest.mark.parametrize("selector", METHODS, ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_no_method_depends_on_the_order_of_the_columns(selector, seed):
    """Small integers make scores tie, and some columns are negated copies."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (40, 18)).astype(float)
    X[:, 9:] = 2.0 - X[:, :9]
    y = (X[:, 0] + X[:, 3] + rng.integers(0, 2, 40) > 2).astype(int)
    order = rng.permutation(18)
    found = clone(selector).fit(X, y).support_features_
    permuted = clone(selector).fit(np.ascontiguousarray(X[:, order]), y).support_features_
    np.testing.assert_array_equal(np.sort(order[permuted]), np.sort(found))
