"""Adaptive probes: unbiased estimates, independent of the number of workers."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import coterie
from coterie import DependencyAwareSelector
from coterie.probing import adaptive
from coterie.probing.adaptive import N_LEVELS, AdaptivePlan, AdaptiveSums, Focus
from coterie.probing.probes import read_key
from coterie.probing.scores import daf_scores, summarise
from tests.probing.test_selector import assert_same, together


def plan_of(n_features=5, max_size=3, probability=None, seed=0, n_wanted=2):
    return AdaptivePlan(n_features, max_size, probability, read_key(seed), n_wanted)


SETS = (np.arange(32)[:, None] >> np.arange(5)) % 2 == 1


def mean_benefit(values, probability, centre):
    """E[J(R + f) - J(R)] per feature as a sum over all sets. The empty set has the value of the centre."""
    values = np.where(SETS.any(axis=1), values, centre)
    chance = np.where(SETS, probability, 1 - probability).prod(axis=1)
    with_it, without = SETS / probability, ~SETS / (1 - probability)
    return (chance * values) @ with_it - (chance * values) @ without


def play(sums, values, n_probes):
    """Add probes with values from the table, and return the sum of the weights times the mean benefits of their rounds."""
    target, round_number = np.zeros(5), len(sums.starts)
    for _ in range(n_probes):
        if len(sums.starts) > round_number:
            target, round_number = adaptive._KEPT * target, len(sums.starts)
        focus, found = sums.focus, sums.found
        row, features = focus.draw_with_row(sums.n_probes)
        total, count = found.centres.sum(axis=0)
        middle = total / count if count else found.reference
        if middle is not None:
            near, n_near = found.centres[row * len(found.centres) // len(focus.probability)]
            centre = (near + adaptive._N_PRIOR_PROBES * middle) / (n_near + adaptive._N_PRIOR_PROBES)
            chance = focus.probability[row][focus.levels]
            weight = chance * (1 - chance) / (1 - np.prod(1 - chance))
            target += weight * mean_benefit(values, chance, centre)
        sums.add(values[(1 << features).sum()])
    return target if len(sums.starts) == round_number else adaptive._KEPT * target


VALUES = np.random.default_rng(8).standard_normal(32) + SETS @ np.array([0.0, 0.5, 1.0, 0.0, -1.0])


def assert_zero_on_average(errors, largest_error):
    standard_error = np.std(errors, axis=0) / np.sqrt(len(errors))
    assert (np.abs(np.mean(errors, axis=0)) < 4 * standard_error).all()
    assert (standard_error < largest_error).all()


@pytest.mark.parametrize("probability", [None, 0.35])
def test_the_means_of_a_round_are_unbiased(probability):
    """For any levels, the mean over many seeds equals the mean over all sets, for an arbitrary table of values."""
    errors, targets = [], []
    for seed in range(150):
        sums = AdaptiveSums(plan_of(probability=probability, seed=seed))
        sums._begin(np.array([0, 2, 1, 3, 0], dtype=np.int8))
        target = play(sums, VALUES, 30)
        assert len(sums.starts) == 2
        weight = sums.found._totals(sums.focus)[1]
        errors.append(sums.estimate.benefit - target / weight)
        targets.append(target / weight)
    assert_zero_on_average(errors, 0.12)
    assert np.abs(np.mean(targets, axis=0)).max() > 0.5  # the test is not trivial


def test_rounds_add_up_without_bias(monkeypatch):
    """For any earlier rounds, the sums have the expectation computed over all sets.

    The divisors depend on the earlier rounds. The quotient of a feature with a low estimate by chance is therefore slightly
    too low. No quotient is too high for this reason.
    """
    monkeypatch.setattr(adaptive, "_FIRST_ROUND", 4.0)
    monkeypatch.setattr(adaptive, "_MIN_CUT", 1)
    errors, quotients = [], []
    for seed in range(250):
        sums = AdaptiveSums(plan_of(seed=seed))
        target = play(sums, VALUES, 40)
        assert len(sums.starts) >= 3
        numerator, weight, _, _ = sums.found._totals(sums.focus)
        errors.append(numerator - target)
        quotients.append((numerator - target) / weight)
    assert sums.focus.levels.max() >= 2
    assert_zero_on_average(errors, 0.3)
    assert (np.mean(quotients, axis=0) < 3 * np.std(quotients, axis=0) / np.sqrt(len(quotients))).all()


@pytest.mark.parametrize("max_size", [12, 30])  # fewer sizes than ranges of sizes, and more
def test_estimates_against_the_formula(max_size):
    """The running sums per level and size agree with a matrix of probes by features."""
    plan = plan_of(30, max_size, n_wanted=4)
    values = np.random.default_rng(1).random(700)
    sums = AdaptiveSums.replay(plan, values)
    assert len(sums.starts) >= 3
    numerator, weight, square, variance = np.zeros((4, 30))
    halves = np.zeros((2, 2, 30))
    centres, reference = None, None
    for i, value in enumerate(values):
        place = np.searchsorted(sums.starts, i, side="right") - 1
        focus = Focus(plan, sums.levels[place])
        if i in sums.starts:
            reference = reference if centres is None else centres[:, 0].sum() / centres[:, 1].sum()
            centres = np.zeros((16, 2))
            for sums_so_far in (numerator, weight, square, halves):
                sums_so_far *= 0.9
            variance *= 0.81
        row, features = focus.draw_with_row(i)
        middle = centres[:, 0].sum() / centres[:, 1].sum() if centres[:, 1].any() else reference
        near = centres[row * 16 // max_size]
        if middle is not None:
            difference = value - (near[0] + 2 * middle) / (near[1] + 2)
            chance = np.array([focus.probability[row, level] for level in focus.levels])
            gain = (np.isin(np.arange(30), features) - chance) * difference
            share = chance * (1 - chance) / (1 - np.prod(1 - chance))
            numerator += gain
            weight += share
            square += share * difference**2
            variance += share * difference**2
            halves[i % 2] += (gain, share)
        near += (value, 1)
    np.testing.assert_allclose(sums.estimate.benefit, numerator / weight, atol=1e-12)
    np.testing.assert_allclose(sums.estimate.error, np.sqrt(variance) / weight, atol=1e-12)
    np.testing.assert_allclose(sums.estimate.spread, np.sqrt(square / weight), atol=1e-12)
    np.testing.assert_allclose(sums.halves, halves[:, 0] / halves[:, 1], atol=1e-12)
    for mine, theirs in zip(sums.benefit_of(values), sums.estimate, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    scores, errors = daf_scores(sums, summarise(sums))
    np.testing.assert_allclose(scores["daf1"] * sums.estimate.spread, scores["daf0"], atol=1e-12)
    scaled = np.array([next(e.scale for e in summarise(sums) if e.size == size) for size in sums.sizes])
    np.testing.assert_array_equal(scores["daf2"], sums.benefit_of(values / scaled).benefit)
    np.testing.assert_array_equal(errors["daf2"], sums.benefit_of(values / scaled).error)
    np.testing.assert_allclose(errors["daf1"] * scores["daf0"], errors["daf0"] * scores["daf1"], atol=1e-12)


def test_features_are_drawn_with_the_stated_probabilities():
    levels = np.array([0] * 3 + [1] * 5 + [4] * 20 + [8] * 2, dtype=np.int8)
    focus = Focus(plan_of(30, 10), levels)
    assert focus.probability.max() == 0.5
    expected, held, n_draws = np.zeros(30), np.zeros(30), 4000
    for i in range(n_draws):
        row, features = focus.draw_with_row(i)
        np.testing.assert_array_equal(focus.draw(i), features)
        assert len(features)
        assert (np.diff(features) > 0).all()
        held[features] += 1
        expected += focus.probability[row][levels] / focus.not_empty[row]
    assert (np.abs(held - expected) < 4.5 * np.sqrt(expected + 1)).all()


def test_features_are_drawn_independently():
    """All 8 subsets of three features, of which one is drawn with probability 0.9, against products of probabilities."""
    focus = Focus(plan_of(3, 3, probability=0.9), np.array([0, 0, 2], dtype=np.int8))
    chance = focus.probability[0][focus.levels]
    n_draws = 6000
    found = np.bincount([(1 << focus.draw(i)).sum() for i in range(n_draws)], minlength=8)
    members = (np.arange(8)[:, None] >> np.arange(3)) % 2 == 1
    expected = np.where(members, chance, 1 - chance).prod(axis=1)
    expected[0] = 0.0
    expected *= n_draws / expected.sum()
    assert found[0] == 0
    assert (np.abs(found - expected) <= 4.5 * np.sqrt(expected)).all()


def test_rare_probes_are_still_drawn():
    assert {len(Focus(plan_of(5, 5, probability=1e-9), np.zeros(5, dtype=np.int8)).draw(i)) for i in range(40)} >= {1}
    assert len(Focus(plan_of(1, 1), np.zeros(1, dtype=np.int8)).draw(0)) == 1


def test_best_features_are_drawn_most_and_worst_still_drawn(rng, monkeypatch):
    monkeypatch.setattr(adaptive, "_MIN_CUT", 1)
    gain = np.zeros(60)
    gain[[7, 33]] = 1.0
    sums = AdaptiveSums(plan_of(60, 20, n_wanted=2))
    for _ in range(1500):
        features = sums.focus.draw(sums.n_probes)
        sums.add(gain[features].sum() + rng.normal(scale=0.5))
    assert set(np.flatnonzero(sums.focus.levels == 0)) == {7, 33}
    assert np.median(sums.focus.levels) >= 5
    assert sums.count[[7, 33]].min() > 1.5 * np.median(np.delete(sums.count, [7, 33]))
    assert (np.argsort(-sums.estimate.benefit)[:2] == [7, 33]).all() or (
        np.argsort(-sums.estimate.benefit)[:2] == [33, 7]
    ).all()
    held = sums.count[sums.focus.levels < 2]
    least = min(held.min(), 1500 - held.max())
    assert sums.covers(least)
    assert not sums.covers(least + 1)
    assert sums.coverage == least  # of the open features, as in the rule
    assert sums.count.min() < least


def test_all_features_requested_or_all_equal(monkeypatch):
    monkeypatch.setattr(adaptive, "_MIN_CUT", 1)
    sums = AdaptiveSums.replay(plan_of(6, 4, n_wanted=6), np.random.default_rng(0).random(200))
    assert not np.any(sums.levels)
    sums = AdaptiveSums.replay(plan_of(6, 4, n_wanted=2), np.full(200, 0.7))
    assert {int(level) for level in sums.levels[-1]} == {1}  # all features are equal
    np.testing.assert_allclose(sums.estimate.benefit, 0.0, atol=1e-12)


def model_of(**options):
    return DependencyAwareSelector("ridge", sampling="adaptive", n_features_to_select=2, random_state=3, **options)


def test_workers_and_batches_do_not_change_the_result(rng, monkeypatch):
    X, y = together(rng, n_samples=60)
    model = model_of(n_probes=400)
    alone = clone(model).fit(X, y)
    assert len(alone._sums.starts) >= 2
    assert_same(clone(model).set_params(n_jobs=3).fit(X, y), alone)
    monkeypatch.setattr("coterie.probing.evaluation._WAVE_SECONDS", 1e-9)
    assert_same(clone(model).fit(X, y), alone)


def test_warm_start_checkpoint_and_file_are_continued(rng, tmp_path):
    X, y = together(rng, n_samples=60)
    long = model_of(n_probes=500).fit(X, y)
    short = model_of(n_probes=230, warm_start=True, checkpoint=tmp_path / "probes").fit(X, y)
    coterie.save(short, tmp_path / "model")
    loaded = coterie.load(tmp_path / "model")
    assert_same(short.set_params(n_probes=500, checkpoint=None).fit(X, y), long)
    assert_same(loaded.set_params(n_probes=500, checkpoint=None).fit(X, y), long)
    assert_same(model_of(n_probes=500, checkpoint=tmp_path / "probes").fit(X, y), long)
    for other in ({"sampling": "uniform"}, {"n_features_to_select": 3}):
        with pytest.raises(ValueError, match="sampling"):
            model_of(n_probes=500, checkpoint=tmp_path / "probes").set_params(**other).fit(X, y)
    # Uniform probes do not depend on the number of features to select.
    uniform = model_of(n_probes=30, checkpoint=tmp_path / "uniform").set_params(sampling="uniform").fit(X, y)
    again = clone(uniform).set_params(n_features_to_select=3).fit(X, y)
    np.testing.assert_array_equal(again.ranking_, uniform.ranking_)


def test_finds_features_that_are_useful_only_in_combination(rng):
    X, y = together(rng)
    model = DependencyAwareSelector(sampling="adaptive", n_features_to_select=2, random_state=0).fit(X, y)
    assert set(model.support_features_) == {2, 7}
    assert model.stopped_by_ == "min_stability"
    assert model.stability_.value >= 0.95
    assert model.coverage_[model._sums.focus.open].min() >= 100


@pytest.mark.filterwarnings("default:Low coverage")
def test_low_coverage_warns_with_the_coverage_of_the_rule(rng):
    X, y = together(rng, n_samples=60)
    model = model_of(n_probes=200, min_coverage=300)
    with pytest.warns(ConvergenceWarning, match=r"Low coverage after 200 probes: .* min_coverage is 300") as caught:
        model.fit(X, y)
    assert f"the best is {model._sums.coverage}, but" in str(caught[0].message)


def test_levels_are_bounded_and_the_cut_is_at_least_20():
    sums = AdaptiveSums(plan_of(40, 10, n_wanted=1))
    assert adaptive._MIN_CUT == 20
    for _ in range(3000):
        features = sums.focus.draw(sums.n_probes)
        sums.add(float((features < 20).sum() + 0.01 * (sums.n_probes % 7)))
    assert sums.focus.levels.max() == N_LEVELS - 1
    assert set(np.flatnonzero(sums.focus.levels == 0)) == set(range(20))
