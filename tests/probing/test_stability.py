"""Stability of the selection: expected agreement against simulation, and the stopping rule on criteria with known truth."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from coterie import DependencyAwareSelector
from coterie.probing.adaptive import AdaptivePlan, AdaptiveSums
from coterie.probing.estimator import _LEAST_LIMIT
from coterie.probing.evaluation import ProbeBudget, Workers, expected_probes, run_probes
from coterie.probing.probes import ProbePlan, ProbeSums, read_key
from coterie.probing.stability import CHECKS, StabilityGoal, expected_agreement, next_check, shared_share, stability_of
from tests.probing.test_selector import assert_same, together


@pytest.mark.parametrize(("n_features", "n_selected"), [(30, 5), (200, 20), (40, 30)])
def test_expected_agreement_against_repetitions(n_features, n_selected, rng):
    """Two repetitions select the features above the same cut; the cut gives the right number of features on average."""
    scores = rng.standard_normal(n_features)
    errors = rng.uniform(0.05, 0.8, n_features)
    found = expected_agreement(scores, errors, n_selected)
    noise = rng.standard_normal((2, 1500, n_features))
    repeated = scores + errors * noise
    cuts = np.linspace(-3, 3, 241)
    cut = cuts[np.argmin([abs((repeated > one).sum(axis=2).mean() - n_selected) for one in cuts])]
    chosen = repeated > cut
    assert found == pytest.approx((chosen[0] & chosen[1]).sum(axis=1).mean() / n_selected, abs=0.03)


@given(st.integers(0, 10**6), st.integers(2, 40), st.floats(1e-6, 1e3), st.booleans())
def test_properties_of_the_expected_agreement(seed, n_features, scale, with_ties):
    rng = np.random.default_rng(seed)
    n_selected = int(rng.integers(1, n_features + 1))
    scores = rng.integers(0, 4, n_features).astype(float) if with_ties else rng.standard_normal(n_features)
    errors = rng.uniform(0.01, 1.0, n_features) * rng.integers(0, 2, n_features)
    found = expected_agreement(scores, errors, n_selected)
    assert 0.0 <= found <= 1.0
    assert expected_agreement(scale * scores - 3.0, scale * errors, n_selected) == pytest.approx(found, abs=1e-6)
    order = rng.permutation(n_features)
    assert expected_agreement(scores[order], errors[order], n_selected) == pytest.approx(found, abs=1e-9)
    assert found >= n_selected / n_features - 1e-9  # no less than by chance


def test_expected_agreement_by_hand():
    sure = np.full(3, 1e-9)
    assert expected_agreement(np.array([3.0, 2.0, 1.0]), sure, 2) == pytest.approx(1.0)
    # One certain feature, and two with equal scores for the second place: 1 + 2 / 4 of 2.
    assert expected_agreement(np.array([3.0, 1.0, 1.0]), sure, 2) == pytest.approx(0.75)
    assert expected_agreement(np.array([3.0, 1.0, 1.0]), np.zeros(3), 2) == pytest.approx(0.75)
    assert expected_agreement(np.zeros(10), np.zeros(10), 3) == pytest.approx(0.3)
    assert expected_agreement(np.array([3.0, 2.0, 1.0]), np.array([1e-9, np.inf, 1e-9]), 1) == 0.0
    assert expected_agreement(np.zeros(4), np.ones(4), 4) == 1.0
    # Two features with a difference d: both are drawn with probabilities Phi(d / 2) and 1 - Phi(d / 2).
    p = norm.cdf(0.7)
    assert expected_agreement(np.array([1.4, 0.0]), np.ones(2), 1) == pytest.approx(p**2 + (1 - p) ** 2)


def test_shared_features_by_hand():
    first, second = np.array([5.0, 4.0, 3.0, 2.0]), np.array([5.0, 1.0, 4.0, 2.0])
    assert shared_share(first, second, 2) == 0.5
    assert shared_share(first, first, 3) == 1.0
    assert shared_share(np.zeros(4), np.zeros(4), 2) == 0.0  # equal scores: nothing is known
    assert shared_share(first, second, 4) == 1.0


def test_checks_grow_by_a_tenth():
    numbers = sorted(CHECKS)
    assert numbers[0] == 100
    assert all(later == int(np.ceil(1.1 * earlier)) for earlier, later in itertools.pairwise(numbers[:80]))
    assert (next_check(1), next_check(100), next_check(101)) == (100, 100, numbers[1])


def record(n_features, n_selected, seed, max_size=20):
    return AdaptiveSums(AdaptivePlan(n_features, max_size, None, read_key(seed), n_selected))


def played(sums, value_of, rule):
    """Add probes until the rule is met, without workers and waves."""
    reason = None
    while reason is None:
        sums.add(value_of(sums.design.draw(sums.n_probes), sums.n_probes))
        reason = rule.is_reached(sums, 0.0)
    return reason


def clear(noise, n_true=5):
    """Return a criterion with equal effects of the first features, and noise that depends on the probe's number only."""

    def value_of(features, number):
        return (features < n_true).sum() + noise * np.random.default_rng(number).standard_normal()

    return value_of


@pytest.mark.parametrize("noise", [0.3, 3.0])
@pytest.mark.parametrize("kind", ["adaptive", "uniform"])
def test_clear_effects_are_found_before_the_rule_stops_and_long_before_the_limit(kind, noise):
    for seed in range(2):
        sums = record(60, 5, seed) if kind == "adaptive" else ProbeSums(ProbePlan(60, 20, None, read_key(seed)))
        rule = ProbeBudget(_LEAST_LIMIT, None, 100, StabilityGoal(0.95, 5))
        assert played(sums, clear(noise), rule) == "min_stability"
        assert set(np.argsort(-sums.estimate.benefit)[:5]) == {0, 1, 2, 3, 4}
        assert sums.n_probes < 0.3 * _LEAST_LIMIT
        assert sums.n_probes in CHECKS
        assert rule.stability.latest == stability_of(sums, 5)


def test_more_noise_takes_more_probes():
    numbers = []
    for noise in (1.0, 6.0):
        sums = record(60, 5, 0)
        played(sums, clear(noise), ProbeBudget(None, None, None, StabilityGoal(0.95, 5)))
        numbers.append(sums.n_probes)
    assert numbers[1] > 2 * numbers[0]


def test_the_cut_in_the_middle_of_equal_features_is_never_stable():
    """Ten features have the same effect, five are selected: any five of them."""
    sums = record(60, 5, 0)
    assert played(sums, clear(1.0, n_true=10), ProbeBudget(3000, None, 100, StabilityGoal(0.95, 5))) == "n_probes"
    assert stability_of(sums, 5).value < 0.9
    assert stability_of(sums, 10).value > 0.9


def test_the_stability_of_one_run_is_close_to_the_agreement_of_two():
    """A criterion with effects around the cut, over many seeds."""
    effects = np.linspace(1.0, 0.0, 40)

    def selected(seed):
        noise = np.random.default_rng(100 + seed)
        sums = record(40, 8, seed, max_size=10)
        for _ in range(1000):
            features = sums.design.draw(sums.n_probes)
            sums.add(effects[features].sum() + 0.5 * noise.standard_normal())
        found = stability_of(sums, 8)
        return set(np.argsort(-sums.estimate.benefit)[:8]), found

    runs = [selected(seed) for seed in range(8)]
    agreement = np.mean([len(a & b) / 8 for (a, _), (b, _) in itertools.combinations(runs, 2)])
    assert np.mean([found.expected for _, found in runs]) == pytest.approx(agreement, abs=0.12)
    assert np.mean([found.halves for _, found in runs]) < agreement + 0.1  # each half has half the probes


def test_the_rule_does_not_depend_on_workers_waves_and_interruptions(rng, monkeypatch, tmp_path):
    X, y = together(rng, n_samples=60)
    model = DependencyAwareSelector("ridge", n_features_to_select=2, random_state=0, min_stability=0.9, n_probes=3000)
    alone = clone(model).fit(X, y)
    assert alone.stopped_by_ == "min_stability"
    assert alone.stability_.value >= 0.9
    assert_same(clone(model).set_params(n_jobs=3).fit(X, y), alone)
    first = alone.n_probes_ // 2
    partial = clone(model).set_params(n_probes=first, warm_start=True, checkpoint=tmp_path / "probes").fit(X, y)
    assert partial.n_probes_ == first
    assert_same(partial.set_params(n_probes=3000, checkpoint=None).fit(X, y), alone)
    assert_same(clone(model).set_params(checkpoint=tmp_path / "probes").fit(X, y), alone)
    longer = clone(model).set_params(min_stability=None, checkpoint=tmp_path / "long").fit(X, y)
    assert longer.n_probes_ == 3000
    assert_same(clone(model).set_params(checkpoint=tmp_path / "long").fit(X, y), alone)  # uses the first probes of the file
    monkeypatch.setattr("coterie.probing.evaluation._WAVE_SECONDS", 1e-9)
    again = clone(model).fit(X, y)
    assert_same(again, alone)
    assert again.stability_ == alone.stability_
    for name, errors in alone.scores_std_error_.items():
        np.testing.assert_array_equal(again.scores_std_error_[name], errors)


def test_both_goals_must_be_met():
    plan = ProbePlan(8, 5, None, read_key(0))
    sums = ProbeSums(plan)
    rule = ProbeBudget(None, None, 400, StabilityGoal(0.01, 8))  # all features are selected: stable at the first check
    played(sums, lambda features, number: float(len(features)), rule)
    assert sums.coverage >= 400
    assert sums.n_probes in CHECKS
    # One check earlier, the coverage was too low.
    earlier = ProbeSums.replay(plan, sums.values[: max(number for number in CHECKS if number < sums.n_probes)])
    assert earlier.coverage < 400


@pytest.mark.filterwarnings("default:Low stability")
def test_a_criterion_without_differences_ends_at_the_limit_with_a_warning(monkeypatch):
    monkeypatch.setattr("coterie.probing.estimator._LEAST_LIMIT", 400)
    monkeypatch.setattr("coterie.probing.estimator._PROBES_PER_FEATURE", 2)
    X = np.random.default_rng(0).standard_normal((20, 100))
    model = DependencyAwareSelector(lambda X: float(np.sin(1e6 * X.sum())), n_features_to_select=10, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"Low stability after 400 probes: of the 10 selected features") as caught:
        model.fit(X)
    assert (model.stopped_by_, model.n_probes_) == ("n_probes", 400)
    text = str(caught[0].message)
    assert f"expected to select {10 * model.stability_.expected:.1f} again" in text
    assert f"select {10 * model.stability_.halves:.0f}, but min_stability is 0.7" in text
    assert "limit without n_probes and max_seconds. The criterion may not distinguish" in text
    with pytest.warns(ConvergenceWarning, match=r"min_stability is 0\.9\. Increase n_probes or max_seconds\."):
        clone(model).set_params(n_probes=300, min_stability=0.9).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).set_params(n_probes=300, min_stability=None).fit(X)
        clone(model).set_params(n_probes=300, min_coverage=3).fit(X)  # the paper's rule alone


def waves_of(sums, rule, value_of):
    """Return the estimate of the number of probes after each wave, and the number of probes."""
    estimates = []

    def evaluate(features):
        return value_of(features, int(features.sum()))

    def on_wave(so_far, rate):
        estimates.append((so_far.n_probes, expected_probes(so_far, rule)))

    done, reason = run_probes(evaluate, sums, rule, Workers(1, "threads"), on_wave)
    return done, reason, estimates


@pytest.mark.parametrize("goal", [(300, None), (None, 0.95)])
def test_the_estimated_number_of_probes_is_that_of_the_rule(goal, monkeypatch):
    """In the last third of a run, the estimate is within a factor of three of the number at which the rule stops it."""
    monkeypatch.setattr("coterie.probing.evaluation._next_size", lambda *rest: 50)
    coverage, stability = goal
    for seed in range(2):
        rule = ProbeBudget(None, None, coverage, None if stability is None else StabilityGoal(stability, 5))
        done, reason, estimates = waves_of(record(60, 5, seed), rule, clear(2.0))
        assert reason == ("min_coverage" if stability is None else "min_stability")
        late = [expected for number, expected in estimates if 0.7 * done.n_probes < number < done.n_probes]
        assert len(late) >= 3
        assert all(1 / 3 < expected / done.n_probes < 3 for expected in late)
        assert estimates[-1] == (done.n_probes, done.n_probes)


def test_progress_shows_what_the_rule_uses(rng, capsys):
    X, y = together(rng, n_samples=60)
    model = DependencyAwareSelector("ridge", n_features_to_select=2, random_state=0, verbose=1).fit(X, y)
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"{model.n_probes_}/{model.n_probes_} probes" in line
    assert f"coverage {model._sums.coverage} of 100" in line
    assert f"stability {model.stability_.value:.2f} of 0.95" in line
    assert "about 0.0 s left" in line
    # Time and probes of an earlier fit do not count for the remaining time.
    warm = DependencyAwareSelector("ridge", n_features_to_select=2, n_probes=900, random_state=0, warm_start=True).fit(X, y)
    warm.set_params(n_probes=1000, verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("[DependencyAwareSelector] 1000/1000 probes")
