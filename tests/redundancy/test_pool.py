"""Pool of candidates: its growth, its warnings, and members of prior groups outside it."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.metrics import squared_redundancy
from coterie.redundancy.refinement import PoolRule, Refinement
from coterie.redundancy.solver import RefinedWeights
from tests import naive
from tests.redundancy import by_weights


def copies_first(n_samples=60, n_copies=40, n_others=60, seed=0):
    """Return near copies of one feature with the highest scores, and other features."""
    rng = np.random.default_rng(seed)
    one = rng.standard_normal((n_samples, 1))
    X = np.hstack([one + 0.01 * rng.standard_normal((n_samples, n_copies)), rng.standard_normal((n_samples, n_others))])
    return X, np.linspace(2.0, 1.0, n_copies + n_others)


def solved_by_hand(X, s, pool):
    """Return the weights of one pool by projected gradient on the simplex (slow reference)."""
    from coterie.redundancy.solver import project_to_simplex

    A = naive.correlation(X[:, pool]) ** 2
    s = s[pool] / s.max()
    z = np.full(len(pool), 1 / len(pool))
    for _ in range(20000):
        t = s @ z
        z = project_to_simplex(z - 0.02 * (2 * (A @ z) / t - (z @ A @ z) / t**2 * s))
    return z


def test_the_pool_grows_until_there_are_enough_weights():
    X, s = copies_first()
    model = by_weights(s, 5).fit(X)
    sizes = list(model.pool_sizes_)
    assert sizes == [25, 38, 57]  # the first two contain copies only
    assert model.n_weighted_ >= 5
    assert model.n_weighted_ == np.count_nonzero(model.refined_scores_)
    assert len(model.candidates_) == sizes[-1]
    assert (np.diff(s[model.candidates_]) <= 0).all()
    weights = solved_by_hand(X, s, model.candidates_)
    np.testing.assert_allclose(model.refined_scores_[model.candidates_], weights, atol=2e-4)
    with pytest.warns(UserWarning, match="Only 1 of the 25 candidates"):
        fixed = by_weights(s, 5, n_candidates=25).fit(X)
    assert squared_redundancy(X, model._kept()) < 0.3 * squared_redundancy(X, fixed._kept())


def test_number_of_candidates_is_used_as_given():
    X, s = copies_first()
    with pytest.warns(UserWarning, match="4 of the 5 features are selected by their own scores.*Increase n_candidates"):
        model = by_weights(s, 5, n_candidates=30).fit(X)
    assert list(model.pool_sizes_) == [30]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone = by_weights(s, 5, n_candidates=5).fit(X)  # the score alone, as requested
    assert sorted(alone._kept()) == [0, 1, 2, 3, 4]


def test_large_growth_warns():
    X, s = copies_first(n_copies=190)
    with pytest.warns(UserWarning, match=r"redundant that \d{3} candidates instead of 20 were needed") as caught:
        model = by_weights(s, 4).fit(X)
    assert caught[0].filename == __file__  # where the user called fit
    assert model.n_weighted_ >= 4


def test_no_more_candidates():
    """Copies only: the pool contains all of them, and the other features are selected by score."""
    X, s = copies_first(n_others=0)
    with pytest.warns(UserWarning, match="Only 1 of the 40 candidates.*Select fewer features"):
        model = by_weights(s, 3).fit(X)
    assert list(model.pool_sizes_) == [15, 23, 35, 40]
    assert sorted(model._kept()) == [0, 1, 2]


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_growth_ends_with_the_first_sufficient_pool(seed, wanted):
    X, s = copies_first(30, 12, 20, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = by_weights(s, wanted).fit(X)
        fixed = [by_weights(s, wanted, n_candidates=int(size)).fit(X) for size in model.pool_sizes_]
    assert all(one.n_weighted_ < wanted for one in fixed[:-1])
    assert fixed[-1].n_weighted_ >= wanted or model.pool_sizes_[-1] == 32
    np.testing.assert_array_equal(fixed[-1].ranking_, model.ranking_)
    assert model.duality_gap_ <= 1e-5


def test_growth_stops_where_the_matrix_would_be_too_large(monkeypatch):
    monkeypatch.setattr("coterie.redundancy.estimator.MAX_MATRIX", 40)
    X, s = copies_first()
    with pytest.warns(UserWarning, match="of the 38 candidates"):
        model = by_weights(s, 5, redundancy="mutual_info").fit(X)
    assert list(model.pool_sizes_) == [25, 38]


def test_members_of_groups_are_candidates():
    X, s = copies_first()
    plain = by_weights(s, 2, n_candidates=4, groups=None)
    with pytest.warns(UserWarning, match="Only 1 of the 4"):
        plain.fit(X)
    model = by_weights(s, 2, n_candidates=4, groups=[[0, 90], [95, 99]], options={"group_strength": 5.0}).fit(X)
    assert set(model.candidates_) == {0, 1, 2, 3, 90, 95, 99}
    assert (np.diff(s[model.candidates_]) <= 0).all()
    free = by_weights(s[[0, 1, 2, 3, 90, 95, 99]], 2, n_candidates=None).fit(X[:, [0, 1, 2, 3, 90, 95, 99]])
    spread = abs(model.refined_scores_[0] - model.refined_scores_[90])
    assert spread < 0.5 * abs(free.refined_scores_[0] - free.refined_scores_[4])


def test_members_with_a_score_of_zero_and_constant_ones():
    X, s = copies_first()
    s = s.copy()
    s[90] = 0.0
    X[:, 80] = 3.0
    with pytest.warns(UserWarning, match=r"1 feature\(s\) of the groups are constant .* The first is 80\."):
        model = by_weights(s, 2, groups=[[0, 90, 80]]).fit(X)
    assert 90 in model.candidates_
    assert 80 not in model.candidates_


@pytest.mark.parametrize("power", [0.5, 2.0, 4])
def test_power_of_the_scores(power):
    X, s = copies_first()
    model = by_weights(s, 5, options={"power": power}, n_candidates=None).fit(X)
    same = by_weights(s**power, 5, n_candidates=None).fit(X)
    np.testing.assert_allclose(model.refined_scores_, same.refined_scores_, atol=1e-9)
    assert model.objective_ == pytest.approx(same.objective_)
    np.testing.assert_array_equal(model.scores_, s)
    assert model.power_ == power


def test_tied_weights_keep_the_order_of_the_scores():
    """Weights that differ by less than 1e-9 of the largest are tied, and those below half of that are 0."""
    weights = np.array([0.3, 0.3 + 4e-10, 1.0, 1.0 - 4e-10, 6e-10, 4e-10, 0.3 + 6e-10])
    n = len(weights)

    def solve(objective, tol, max_iter):
        return RefinedWeights(np.arange(n), weights, 1.0, 1.0, 0.0, 1, n, True)

    refinement = Refinement(
        np.linspace(2, 1, n),
        np.ones(n),
        False,
        np.arange(n),
        np.ones(n, dtype=bool),
        lambda pool: None,
        [],
        0.0,
        solve,
        1e-6,
        10,
        None,
    )
    found = refinement.refine(3, PoolRule(n))
    assert found.order.tolist() == [2, 3, 6, 0, 1, 4, 5]
    assert found.n_weighted == 6
