"""Compiled rounds on a working set give the paths of the general loop."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie import GroupDiscoveryClassifier, GroupDiscoveryRegressor, GroupDiscoverySurvival
from coterie.estimators.base import input_of
from coterie.kernels.path import features_above
from coterie.search import lockstep, paths
from coterie.search.lockstep import run_together
from coterie.search.search import Search

SMALL = {"_FIRST_FEATURES": 6, "_MORE_FEATURES": 3, "_FIRST_ROUNDS": 5, "_MIN_ROUNDS": 2, "_MAX_ROUNDS": 7}


def _data(seed, n_samples=70, n_features=60):
    """Return correlated features of different scales, some of them constant, and a target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    X[:, 40:] = X[:, :20] + 0.5 * X[:, 40:]
    X[:, 39] = 2.0
    X = X * rng.uniform(0.2, 5.0, n_features) + rng.uniform(-3, 3, n_features)
    return X, X[:, :5] @ rng.standard_normal(5) + rng.standard_normal(n_samples)


def _loops(estimator, X, y, weights, n_features, monkeypatch, compiled, n_threads=1, on_round=None, **constants):
    data = input_of(estimator, X, y)
    for name, value in constants.items():
        monkeypatch.setattr(paths, name, value)
    monkeypatch.setattr(lockstep, "follow_paths", paths.follow_paths if compiled else lambda *_: None)
    searches = [Search(replace(data, weight=weight), estimator._settings(), n_features) for weight in weights]
    return run_together(searches, n_threads=n_threads, on_round=on_round)[0]


def _weights(seed, n_samples):
    rng = np.random.default_rng([seed, 1])
    half = (rng.permutation(n_samples) < n_samples // 2).astype(float)
    return [None, half, 1.0 - half, rng.integers(0, 3, n_samples).astype(float)]


def _same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.oracle.supports, other.oracle.supports)
        np.testing.assert_array_equal(one.oracle.candidates.taken, other.oracle.candidates.taken)
        assert len(one.history) == len(other.history)
        assert (one.exhausted, one.set_size) == (other.exhausted, other.set_size)
        for a, b in zip(one.history, other.history, strict=True):
            np.testing.assert_array_equal(a.features, b.features)
            assert (a.round, a.n_support, a.set_size) == (b.round, b.n_support, b.set_size)
            # The error of a residual is of the order of the square root of the gap.
            np.testing.assert_allclose(a.scores, b.scores, rtol=2e-5)
            np.testing.assert_allclose(a.coef, b.coef, rtol=1e-4, atol=1e-6 * np.abs(b.coef).max(initial=1e-300))
            np.testing.assert_allclose(a.intercept, b.intercept, rtol=1e-4, atol=1e-6)
            assert a.objective == pytest.approx(b.objective, rel=1e-8)
            assert a.gap <= max(1e-7, b.gap)
            if np.isfinite(b.violation):
                assert a.violation == pytest.approx(b.violation, rel=1e-3, abs=1e-6)
        found, expected = one.oracle.collect(), other.oracle.collect()
        np.testing.assert_array_equal(found.feature, expected.feature)
        np.testing.assert_array_equal(found.support, expected.support)


OPTIONS = st.fixed_dictionaries(
    {
        "C": st.sampled_from([0.01, 0.3, 10.0, 1e3]),
        "threshold": st.sampled_from([0.5, 0.7, 0.95]),
        "n_features_per_round": st.sampled_from(["auto", 1, 3]),
        "standardize": st.booleans(),
        "correlation": st.sampled_from(["pearson", None]),
        "fixed_features": st.sampled_from([None, [2, 41]]),
    }
)


def _survival(seed, target):
    """Return times with ties, of which a third are censored."""
    rng = np.random.default_rng([seed, 2])
    times = np.ceil(20.0 * rng.exponential(np.exp(-0.5 * target)))
    return np.column_stack([times, rng.random(len(times)) < 0.67])


@pytest.mark.parametrize("kind", ["two classes", "three classes", "numbers", "survival"])
@settings(max_examples=12)
@given(seed=st.integers(0, 1000), options=OPTIONS, n_features=st.integers(3, 25))
def test_compiled_rounds_are_those_of_the_general_loop(kind, seed, options, n_features):
    X, target = _data(seed)
    y = target if kind == "numbers" else np.digitize(target, np.quantile(target, [0.5] if kind[1] == "w" else [0.4, 0.7]))
    if kind == "numbers":
        estimator = GroupDiscoveryRegressor(n_features, **options)
    elif kind == "survival":
        y, C = _survival(seed, target), min(options["C"], 10.0)  # With large C, rounding limits both solvers.
        estimator = GroupDiscoverySurvival(n_features, ties="efron" if seed % 2 else "breslow", **{**options, "C": C})
    else:
        estimator = GroupDiscoveryClassifier(n_features, class_weight="balanced" if seed % 2 else None, **options)
    with pytest.MonkeyPatch.context() as monkeypatch:
        weights = _weights(seed, len(X))
        theirs = _loops(estimator, X, y, weights, n_features, monkeypatch, False)
        for constants in ({}, SMALL):
            ours = _loops(estimator, X, y, weights, n_features, monkeypatch, True, **constants)
            _same(ours, theirs)


def test_most_rounds_are_compiled_and_failed_rounds_are_repeated(monkeypatch):
    X, target = _data(0)
    estimator, made, kept = GroupDiscoveryClassifier(15), [], []
    verify = paths._CompiledPath._verify

    def counted(self, record, n_rounds):
        result = verify(self, record, n_rounds)
        made.append(n_rounds)
        kept.append(result[0])
        return result

    monkeypatch.setattr(paths._CompiledPath, "_verify", counted)
    loops = _loops(estimator, X, target > 0, [None], 15, monkeypatch, True, **SMALL)
    assert sum(kept) == len(loops[0].history)
    assert sum(made) > sum(kept)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_results_do_not_depend_on_threads_or_the_order_of_columns(monkeypatch, n_threads):
    """Bits do not depend on threads. Moments of many weights, computed by BLAS, depend on the columns in the last digit."""
    X, target = _data(1)
    estimator, weights = GroupDiscoveryClassifier(12), _weights(1, len(X))
    first = _loops(estimator, X, target > 0, weights, 12, monkeypatch, True)
    others = _loops(estimator, X, target > 0, weights, 12, monkeypatch, True, n_threads=n_threads)
    order = np.random.default_rng(0).permutation(X.shape[1])
    permuted = _loops(estimator, X[:, order], target > 0, weights, 12, monkeypatch, True, n_threads=n_threads)
    for one, other, third in zip(first, others, permuted, strict=True):
        np.testing.assert_array_equal(one.oracle.supports, other.oracle.supports)
        np.testing.assert_array_equal(one.history[-1].coef, other.history[-1].coef)
        np.testing.assert_array_equal(one.oracle.supports, order[third.oracle.supports])
        np.testing.assert_allclose(one.history[-1].coef, third.history[-1].coef, rtol=1e-10)


def test_tied_features_are_left_to_the_tie_rule(monkeypatch):
    """Equal columns, and columns that are equal up to the sign and scale."""
    X, target = _data(2)
    X = np.hstack([X, X[:, :8], -3.0 * X[:, :8]])
    estimator, weights = GroupDiscoveryClassifier(12), _weights(2, len(X))
    _same(*(_loops(estimator, X, target > 0, weights, 12, monkeypatch, compiled) for compiled in (True, False)))


def test_a_search_ends_when_no_candidate_is_left(monkeypatch):
    X, target = _data(3, n_features=60)
    X = X[:, :12]
    estimator = GroupDiscoveryClassifier(12, threshold=0.2)
    ours, theirs = (_loops(estimator, X, target > 0, [None], 12, monkeypatch, compiled) for compiled in (True, False))
    assert ours[0].exhausted
    _same(ours, theirs)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_separable_classes_are_solved_in_compiled_rounds(monkeypatch, n_classes):
    X, target = _data(4, n_samples=24)
    y = np.digitize(target, np.quantile(target, np.arange(1, n_classes) / n_classes))
    estimator = GroupDiscoveryClassifier(20, C=1e3, threshold=0.95)
    ours, theirs = (_loops(estimator, X, y, _weights(4, 24), 20, monkeypatch, compiled) for compiled in (True, False))
    _same(ours, theirs)
    assert all(loop.master.is_separable for loop in ours)
    assert max(entry.gap for loop in ours for entry in loop.history) < 1e-9
    # A search is separable only because of rounds that are verified, so small working sets give the same bits.
    small = _loops(estimator, X, y, _weights(4, 24), 20, monkeypatch, True, n_threads=3, **SMALL)
    for one, other in zip(ours, small, strict=True):
        for a, b in zip(one.history, other.history, strict=True):
            np.testing.assert_array_equal(a.coef, b.coef)


def test_a_problem_that_no_kernel_solves_is_left_to_the_general_solver(monkeypatch):
    X, target = _data(4, n_samples=24)

    def useless(design, loss, blocks):
        return np.zeros((design.n_features, 1)), loss.signs / len(loss.signs)

    monkeypatch.setattr("coterie.solver.master.compiled_interior_point", useless)
    estimator = GroupDiscoveryClassifier(20, C=1e4, threshold=0.95)
    ours, theirs = (_loops(estimator, X, target > 0, [None], 20, monkeypatch, compiled) for compiled in (True, False))
    _same(ours, theirs)
    assert max(entry.gap for entry in ours[0].history) < 1e-9


def test_survival_times_are_solved_in_compiled_rounds(monkeypatch):
    X, target = _data(0)
    monkeypatch.setattr("coterie.solver.master.Master._newton", lambda *_: pytest.fail("the general solver was used"))
    y = _survival(0, target)
    loops = _loops(GroupDiscoverySurvival(12), X, y, _weights(0, len(X)), 12, monkeypatch, True)
    assert max(entry.gap for loop in loops for entry in loop.history) < 1e-9


def test_a_callback_sees_every_round_and_can_stop_the_path(monkeypatch):
    X, target = _data(5)
    estimator, seen = GroupDiscoveryClassifier(20, n_features_per_round=1), []

    def on_round(_, loop):
        seen.append((len(loop.history), len(loop.oracle.supports)))
        return len(seen) == 5

    loops = _loops(estimator, X, target > 0, [None], 20, monkeypatch, True, on_round=on_round)
    assert loops[0].stopped
    assert seen == [(k, k) for k in range(1, 6)]
    assert len(loops[0].master.blocks) == 6
    assert loops[0].solution.coef.shape == (5, 1)


def test_the_number_of_rounds_is_limited(monkeypatch):
    X, target = _data(6)
    estimator = GroupDiscoveryClassifier(20, n_features_per_round=2, max_rounds=4)
    ours, theirs = (_loops(estimator, X, target > 0, [None], 20, monkeypatch, compiled) for compiled in (True, False))
    assert len(ours[0].history) == 4
    _same(ours, theirs)


def test_features_that_may_reach_the_lowest_score():
    """Rounding errors count, closed features do not, and scores are divided by the scale."""
    products = np.array([[3.0, 0.1, 5.0, 1.0], [4.0, 0.1, 0.0, 1.0], [0.9, 0.2, 9.0, 8.0], [0.0, 0.0, 0.0, 0.0]], np.float32)
    scale, length = np.array([1.0, 1.0, 1.0, 10.0]), np.array([1.0, 1.0, 1.0, 2.0])
    is_open, found = np.array([True, True, False, True]), np.empty(4, np.int64)

    def above(floors, errors, first=0):
        number, count = features_above(products, scale, length, is_open, 2, np.array(errors), np.array(floors), first, found)
        return number, found[:count].tolist()

    assert above([5.0, 1.0], [0.0, 0.0]) == (0, [0])
    assert above([5.1, 1.0], [0.0, 0.0]) == (2, [])
    assert above([5.1, 1.0], [0.2, 0.0]) == (0, [0])
    assert above([5.0, 1.0], [0.0, 0.11], first=1) == (1, [0, 3])
    assert above([5.0, 1.0], [0.0, 0.09], first=1) == (2, [])
