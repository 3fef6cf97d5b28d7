"""The cutting-plane loop: schedule, stopping, the record of each round and its counts."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coterie import GroupDiscoveryClassifier, GroupDiscoveryRegressor
from coterie.estimators.base import input_of
from coterie.search import oracle as oracle_module
from coterie.search.loop import StoppingRule
from coterie.search.outcome import outcome_of
from coterie.search.scores import LazyScores
from coterie.search.search import Search
from tests.conftest import grouped_matrix


def make_loop(estimator, X, y, n_features, **options):
    return Search(input_of(estimator, X, y), estimator._settings(), n_features, **options).loop()


def regression_data(rng, n_samples=60, n_features=30):
    X = rng.standard_normal((n_samples, n_features))
    weights = np.resize([3, -2, 2, 1.5, -1, 1], min(n_features, 6))
    return X, X[:, :6] @ weights + 0.5 * rng.standard_normal(n_samples)


# Schedule


def test_automatic_schedule_adds_a_tenth_of_the_features_found():
    rule = StoppingRule(None, None, None, 1e-4)
    assert [rule.size(n) for n in (0, 1, 10, 11, 20, 21, 100, 101)] == [1, 1, 1, 2, 2, 3, 10, 11]
    assert [rule.max_new(n) for n in (0, 10, 11, 101)] == [1, 1, 2, 11]
    assert rule.most_rounds() is None


def test_blocks_are_no_larger_than_the_number_of_features():
    rule = StoppingRule(10, 4, None, 1e-4)
    assert [rule.size(n) for n in (0, 4, 8)] == [4, 4, 4]
    assert [rule.max_new(n) for n in (0, 4, 8, 10)] == [4, 4, 2, 0]
    assert StoppingRule(3, 4, None, 1e-4).size(0) == 3


@pytest.mark.parametrize(
    ("n_features", "per_round", "max_rounds", "expected"),
    [(10, None, None, 10), (13, None, None, 12), (10, 4, None, 3), (8, 4, None, 2), (10, 4, 2, 2), (10, 4, 7, 3),
     (None, 4, 7, 7), (0, None, None, 0)],
)  # fmt: skip
def test_number_of_rounds_is_known_before_the_search(rng, n_features, per_round, max_rounds, expected):
    assert StoppingRule(n_features, per_round, max_rounds, 1e-4).most_rounds() == expected
    if n_features:
        X, y = regression_data(rng)
        options = {"n_features_per_round": per_round or "auto", "max_rounds": max_rounds, "threshold": 0.9}
        estimator = GroupDiscoveryRegressor(n_features, **options)
        loop = make_loop(estimator, X, y, n_features)
        loop.run()
        assert len(loop.history) == expected


# Stopping


def test_fixed_features_are_round_zero_and_count(rng):
    X, y = regression_data(rng)
    estimator = GroupDiscoveryRegressor(7, fixed_features=[20, 3], n_features_per_round=2, threshold=0.9)
    loop = make_loop(estimator, X, y, 7)
    loop.run()
    assert [entry.round for entry in loop.history] == [0, 1, 2, 3]
    assert loop.history[0].features.tolist() == [20, 3]
    assert np.isnan(loop.history[0].scores).all()
    assert loop.history[0].violation == np.inf
    assert [entry.n_support for entry in loop.history] == [2, 4, 6, 7]
    assert [entry.set_size for entry in loop.history] == [0, 2, 2, 2]
    assert loop.finished
    assert not loop.exhausted


def test_a_search_without_candidates_is_exhausted(rng):
    X, y = regression_data(rng, n_features=3)
    loop = make_loop(GroupDiscoveryRegressor("auto", C=100.0, tol=1e-9, n_features_per_round=2), X, y, None)
    loop.run()
    assert loop.exhausted or loop.settled
    assert sorted(loop.oracle.supports) == [0, 1, 2]
    constant = np.c_[X[:, :2], np.ones((len(X), 3))]
    loop = make_loop(GroupDiscoveryRegressor(4), constant, y, 4)
    loop.run()
    assert loop.exhausted
    assert loop.finished
    assert sorted(loop.oracle.supports) == [0, 1]
    assert len(loop.history) == 2


def test_a_callback_stops_the_loop(rng):
    X, y = regression_data(rng)
    loop = make_loop(GroupDiscoveryRegressor(9), X, y, 9)
    entries = []
    loop.on_round = lambda entry: entries.append(entry) or entry.round == 4
    loop.run()
    assert loop.stopped
    assert entries == loop.history
    assert len(entries) == 4


def test_search_settles_when_the_objective_changes_little(rng):
    """As in TPAMI Algorithm 1: after the first round whose relative change is below the tolerance, but not after round 1."""
    X, y = regression_data(rng)
    for tol in (0.9, 0.05, 0.01):
        loop = make_loop(GroupDiscoveryRegressor("auto", n_features_per_round=1, C=0.1, tol=tol), X, y, None)
        loop.run()
        theta = np.array([loop.master.start.objective, *(entry.objective for entry in loop.history)])
        small = np.abs(np.diff(theta)) < tol * np.abs(theta[1:])
        assert loop.settled
        assert len(loop.history) < 30
        assert not small[1:-1].any()  # No earlier round could have ended the search, except for the first.
        assert (
            small[-1]
            or loop.history[-1].round == loop.converged_at
            or loop._violation(loop.oracle.find_block(loop.solution.residual, 1)) <= tol
        )


@pytest.mark.parametrize("reuse", [False, True])
def test_convergence_is_recorded_as_soon_as_the_bounds_agree(rng, reuse):
    X, y = regression_data(rng)
    n_within = 0
    for tol in np.geomspace(1e-4, 0.5, 40):
        options = {"n_features_per_round": 2, "reuse_features": reuse, "C": 0.02, "tol": tol, "threshold": 0.3}
        loop = make_loop(GroupDiscoveryRegressor("auto", **options), X, y, None)
        while not loop.finished:
            assert loop.converged_at is None
            n_rounds = len(loop.history)
            loop.step()
            agree = loop.upper - loop.lower <= tol * abs(loop.solution.objective)
            assert (loop.converged_at is not None) == agree
            if agree:
                assert loop.settled
                assert loop.converged_at == len(loop.history)
                n_within += len(loop.history) > n_rounds
        assert loop.settled
        assert not loop.exhausted
        if reuse:
            assert loop.converged_at == len(loop.history)
    assert n_within > 0 or not reuse  # Some searches converge by the lower bound of a round.


def test_convergence_shown_by_the_search_for_the_best_set(rng):
    """The clique bound exceeds all sets here: the first feature conflicts with the others, which have no conflicts."""
    Z = rng.standard_normal((50, 5))
    Z = np.linalg.qr(Z - Z.mean(axis=0))[0] * 7
    X = np.column_stack([Z[:, :3].sum(axis=1) / np.sqrt(3), Z[:, :3]])
    y = Z[:, :3] @ [1.4, 1.0, 0.7] + 0.5 * Z[:, 4]
    options = {"n_features_per_round": 3, "reuse_features": True, "threshold": 0.5, "C": 0.1, "tol": 1e-6}
    loop = make_loop(GroupDiscoveryRegressor("auto", standardize=False, **options), X, y, None)
    loop.run()
    assert loop.converged_at == len(loop.history)
    scores = loop.oracle.final_scores(loop.solution.residual)
    assert loop._objective_with(loop.oracle.sets.upper_bound_of(scores, 3)) > loop.upper + 1e-6
    assert loop.final_bounds(scores) == (loop.lower, loop.upper, loop.converged_at)


def test_larger_blocks_are_another_problem(rng):
    """Bounds for smaller sets do not bound the problem over larger sets."""
    X, y = regression_data(rng)
    loop = make_loop(GroupDiscoveryRegressor(13, C=0.1, tol=0.01, threshold=0.9), X, y, 13)
    sizes, uppers = [], []
    while not loop.finished:
        loop.step()
        sizes.append(loop.set_size)
        uppers.append(loop.upper)
    assert sizes == [1] * 11 + [2]
    assert uppers[-1] > uppers[-2]
    assert (np.diff(uppers[:-1]) <= 0).all()
    loop = make_loop(GroupDiscoveryRegressor(13, C=0.1, tol=0.01, threshold=0.9), X, y, 13)
    loop.set_size, loop.upper, loop.converged_at, loop.settled = 0, -1.0, 5, True
    loop.queries()
    assert (loop.set_size, loop.upper, loop.converged_at, loop.settled) == (1, np.inf, None, False)
    loop.upper = 2.0
    loop.queries()  # The size has not grown.
    assert loop.upper == 2.0


def test_final_bounds_may_show_convergence(rng):
    """The final scores bound the last solution, which the upper bound of the last round does not cover."""
    X, y = regression_data(rng)
    estimator = GroupDiscoveryRegressor("auto", n_features_per_round=2, reuse_features=True, C=0.02, tol=1e-3, threshold=0.3)
    loop = make_loop(estimator, X, y, None)
    loop.run()
    n_rounds, seen = len(loop.history), set()
    for max_rounds in range(1, n_rounds + 1):
        loop = make_loop(estimator.set_params(max_rounds=max_rounds), X, y, None)
        loop.run()
        lower, upper, converged_at = loop.final_bounds(loop.oracle.final_scores(loop.solution.residual))
        assert lower == loop.lower
        assert upper <= loop.upper
        assert upper >= loop.solution.objective
        agree = upper - lower <= 1e-3 * abs(loop.solution.objective)
        assert converged_at == (max_rounds if agree else None)
        seen.add(agree)
    assert seen == {False, True}


@pytest.mark.parametrize("warns", [True, False])
def test_gaps_above_the_tolerance_warn(rng, warns):
    X, y = regression_data(rng)
    loop = make_loop(GroupDiscoveryRegressor(2, tol=1e-300), X, y, 2)
    loop.warns = warns
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loop.run()
    n_above = sum(entry.gap > 1e-300 for entry in loop.history)
    assert n_above > 0
    assert len(caught) == warns * n_above
    assert all(one.category is ConvergenceWarning and "tol=1e-300" in str(one.message) for one in caught)


# Records


@pytest.mark.parametrize("estimator", [GroupDiscoveryRegressor(9, C=0.1), GroupDiscoveryClassifier(9, C=0.1)], ids=repr)
def test_records_of_the_rounds(rng, estimator):
    X, y = regression_data(rng)
    if isinstance(estimator, GroupDiscoveryClassifier):
        y = y > 0
    estimator.set_params(n_features_per_round=3, standardize=False, tol=1e-7, threshold=0.9)
    loop = make_loop(estimator, X, y, 9)
    centred = X - X.mean(axis=0)
    start = loop.solution
    residuals = [start.residual]
    loop.on_round = lambda entry: residuals.append(loop.solution.residual) and False
    loop.run()
    assert len(loop.history) == 3
    lower = start.bound
    for number, (entry, before, after) in enumerate(zip(loop.history, residuals[:-1], residuals[1:], strict=True), 1):
        assert entry.round == number
        scores = np.abs(centred.T @ before[:, 0])
        np.testing.assert_allclose(entry.scores, scores[entry.features], rtol=1e-9)
        level = max((0.5 * (scores[old.features] ** 2).sum() for old in loop.history[: number - 1]), default=0.0)
        objective = loop.history[number - 2].objective if number > 1 else start.objective
        assert entry.violation == pytest.approx((0.5 * (entry.scores**2).sum() - level) / abs(objective), rel=1e-3)
        assert entry.n_active == np.count_nonzero(after[:, 0])
        lower = max(lower, entry.bound)
        assert entry.lower == lower
        assert entry.gap <= 1e-7
        assert entry.coef.shape == (3 * number, 1)
    uppers = [entry.upper for entry in loop.history]
    assert (np.diff(uppers) <= 0).all()
    assert np.isfinite(uppers).all()
    assert loop.set_size == 3
    np.testing.assert_array_equal(loop.history[-1].coef, loop.coef)


@pytest.mark.parametrize(
    "options",
    [{}, {"affiliates": "ranked"}, {"reuse_features": True}, {"representative": "medoid"}, {"correlation": None}],
    ids=repr,
)
def test_passes_and_correlations_are_counted(rng, monkeypatch, options):
    """The counts of the rounds add up to those of the oracle, which are the sums over everything that it computed."""
    created = []

    class Recorded(LazyScores):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            created.append(self)

    monkeypatch.setattr(oracle_module, "LazyScores", Recorded)
    X, y = grouped_matrix(rng, n_features=30)
    loop = make_loop(GroupDiscoveryClassifier(7, n_features_per_round=2, threshold=0.5, **options), X, y, 7)
    oracle, counts = loop.oracle, []
    assert (oracle.n_passes, oracle.n_evaluated) == (0.0, 0)
    loop.on_round = lambda entry: counts.append((oracle.n_passes, oracle.n_evaluated)) and False
    loop.run()
    np.testing.assert_allclose(np.cumsum([entry.passes for entry in loop.history]), [passes for passes, _ in counts])
    assert np.cumsum([entry.n_correlations_evaluated for entry in loop.history]).tolist() == [pairs for _, pairs in counts]
    assert all(entry.passes > 0 for entry in loop.history)
    if not options.get("reuse_features"):
        assert len(created) == len(loop.history)  # The bound uses the scores of the walk.

    def expected_passes():
        return (sum(scores.n_scored for scores in created) + oracle.correlation.n_features_read) / 30

    assert oracle.n_passes == pytest.approx(expected_passes())
    before = oracle.n_passes
    oracle.final_scores(loop.solution.residual)
    assert oracle.n_passes - before == pytest.approx(1.0)
    outcome = outcome_of(loop, "support", None)
    assert oracle.n_passes == pytest.approx(expected_passes())
    assert outcome.n_passes == pytest.approx(1.0 + oracle.n_passes)
    assert outcome.n_correlations_possible == 30 * 29 // 2
    assert outcome.n_correlations_evaluated == min(oracle.n_evaluated, 30 * 29 // 2)
    assert oracle.n_evaluated == oracle.correlation.n_evaluated
