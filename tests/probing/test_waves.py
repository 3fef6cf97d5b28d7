"""Waves of probes, stopping rules and warnings of a run."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from coterie import DependencyAwareSelector
from coterie.probing.evaluation import ProbeBudget, Workers, expected_probes, run_probes
from coterie.probing.probes import ProbePlan, ProbeSums, read_key

PLAN = ProbePlan(8, 5, None, read_key(0))


def waves_of(rule, sums=None):
    """Run probes whose values cost nothing; returns the sums, the reason, and the probes after each wave."""
    waves = []
    evaluate = len
    sums = ProbeSums(PLAN) if sums is None else sums
    done, reason = run_probes(evaluate, sums, rule, Workers(1, "threads"), lambda so_far, rate: waves.append(so_far.n_probes))
    return done, reason, waves


def test_waves_grow_by_a_factor_of_eight_at_most():
    done, reason, waves = waves_of(ProbeBudget(500, None, None))
    assert (done.n_probes, reason) == (500, "n_probes")
    sizes = np.diff([0, *waves])
    assert sizes[0] == 1
    assert (sizes[1:] <= 8 * sizes[:-1]).all()
    assert len(waves) <= 20  # quick probes go out many at a time
    np.testing.assert_array_equal(done.values, done.sizes)


def test_a_wave_does_not_go_beyond_the_number_of_probes():
    for wanted in (1, 2, 9, 10):
        done, _, waves = waves_of(ProbeBudget(wanted, None, None))
        assert done.n_probes == waves[-1] == wanted
    done, reason, waves = waves_of(ProbeBudget(10, None, None), done)
    assert (done.n_probes, reason, waves) == (10, "n_probes", [])


def test_the_first_rule_that_is_met():
    sums = ProbeSums.replay(PLAN, np.ones(40))
    least = sums.coverage
    assert ProbeBudget(None, None, None).is_reached(sums, 1e9) is None
    assert ProbeBudget(41, 5.0, least + 1).is_reached(sums, 4.9) is None
    assert ProbeBudget(40, 5.0, least).is_reached(sums, 5.0) == "n_probes"
    assert ProbeBudget(41, 5.0, least).is_reached(sums, 5.0) == "min_coverage"
    assert ProbeBudget(41, 5.0, least + 1).is_reached(sums, 5.0) == "max_seconds"
    assert ProbeBudget(None, 5.0, None).is_reached(ProbeSums(PLAN), 9.0) is None  # one probe at least


def test_about_how_many_probes_a_rule_takes():
    assert expected_probes(ProbeSums(PLAN), ProbeBudget(70, None, None)) == 70
    assert expected_probes(ProbeSums(PLAN), ProbeBudget(70, 5.0, 10)) is None
    for coverage in (20, 100):
        expected = expected_probes(ProbeSums(PLAN), ProbeBudget(None, None, coverage))
        taken = [
            waves_of(ProbeBudget(None, None, coverage), ProbeSums(ProbePlan(8, 5, None, read_key(seed))))[0].n_probes
            for seed in range(8)
        ]
        assert 0.7 < expected / np.mean(taken) < 1.4
    assert expected_probes(ProbeSums(PLAN), ProbeBudget(15, None, 100)) == 15


def features_and_labels(n_features):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, n_features))
    return X, (X[:, 0] > 0).astype(int)


def test_one_feature_is_in_all_probes_without_a_warning(recwarn):
    X, y = features_and_labels(1)
    model = DependencyAwareSelector("ridge", n_features_to_select=1, random_state=0).fit(X, y)
    assert (model.n_probes_, model.stopped_by_) == (1000, "n_probes")
    assert clone(model).set_params(n_probes=7).fit(X, y).n_probes_ == 7
    assert clone(model).set_params(min_coverage=5, n_probes=6).fit(X, y).n_probes_ == 6
    assert not recwarn.list


@pytest.mark.filterwarnings("default:Low coverage")
def test_two_features_of_which_too_little_is_known():
    X, y = features_and_labels(2)
    model = DependencyAwareSelector("ridge", sampling="uniform", n_features_to_select=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"\d of 2 features are in none or in all of the 1 probes"):
        clone(model).set_params(n_probes=1).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="Low coverage after 30 probes"):
        clone(model).set_params(n_probes=30, min_coverage=100).fit(X, y)


def test_time_alone_decides(monkeypatch):
    """More probes than the number that is taken without any rule."""
    monkeypatch.setattr("coterie.probing.estimator._DEFAULT_PROBES", 3)
    X, y = features_and_labels(4)
    model = DependencyAwareSelector(lambda X, y: float(X.shape[1]), n_features_to_select=1, max_seconds=0.3)
    model.fit(X, y)
    assert model.stopped_by_ == "max_seconds"
    assert model.n_probes_ > 3
