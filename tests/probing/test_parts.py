"""Small parts of probing compared with naive code: rules, waves, designs, pooled scales, leave-one-out fits, folds."""

import ast
import inspect
import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, ShuffleSplit

from coterie import DependencyAwareSelector
from coterie.data import as_source
from coterie.data.source import LARGEST_NORM
from coterie.probing import adaptive, estimator, evaluation
from coterie.probing.adaptive import AdaptivePlan, AdaptiveSums, Focus
from coterie.probing.criteria import nearest
from coterie.probing.criteria.base import check_value, mean_over_folds
from coterie.probing.criteria.ridge import LeaveOneOut
from coterie.probing.evaluation import ProbeBudget, Workers, evaluate_subsets, expected_probes
from coterie.probing.probes import ProbePlan, ProbeSums, read_key
from coterie.probing.scores import ProbeSize, summarise

PLAN = ProbePlan(8, 5, None, read_key(0))


def test_default_values_of_the_selector_are_the_documented_ones():
    for parameter in inspect.signature(DependencyAwareSelector).parameters.values():
        documented = re.search(rf"^ *{parameter.name} : [^\n]*default=(\S+)$", DependencyAwareSelector.__doc__, re.MULTILINE)
        assert documented is not None, parameter.name
        assert ast.literal_eval(documented[1]) == parameter.default


@pytest.mark.parametrize(
    ("parameters", "n_features", "expected"),
    [
        ({}, 9, (20_000, None, 100, 0.95)),
        ({}, 3000, (60_000, None, 100, 0.95)),
        ({"sampling": "uniform"}, 9, (20_000, None, 100, 0.95)),
        ({"n_probes": 7}, 9, (7, None, None, None)),
        ({"max_seconds": 2.0}, 9, (None, 2.0, None, None)),
        ({"n_probes": 7, "max_seconds": 2.0}, 9, (7, 2.0, None, None)),
        ({"min_coverage": 5}, 9, (None, None, 5, None)),
        ({"min_coverage": 5, "n_probes": 7}, 9, (7, None, 5, None)),
        ({"min_coverage": None}, 9, (1000, None, None, None)),
        ({"min_coverage": None, "n_probes": 7}, 9, (7, None, None, None)),
        ({"min_coverage": None, "max_seconds": 2.0}, 9, (None, 2.0, None, None)),
        ({"min_stability": 0.8}, 9, (20_000, None, 100, 0.8)),
        ({"min_stability": 0.8, "n_probes": 7}, 9, (7, None, None, 0.8)),
        ({"min_stability": 0.8, "max_seconds": 2.0}, 9, (None, 2.0, None, 0.8)),
        ({"min_stability": 0.8, "min_coverage": 5}, 9, (20_000, None, 5, 0.8)),
        ({"min_stability": 0.8, "min_coverage": None}, 9, (20_000, None, None, 0.8)),
        ({"min_stability": None}, 9, (None, None, 100, None)),
        ({"min_stability": None, "min_coverage": None}, 9, (1000, None, None, None)),
        ({}, 1, (1000, None, None, None)),
        ({"n_probes": 7}, 1, (7, None, None, None)),
        ({"min_coverage": 5}, 1, (1000, None, None, None)),
        ({"min_coverage": 5, "max_seconds": 2.0}, 1, (None, 2.0, None, None)),
    ],
)
def test_stopping_rules_of_parameters(parameters, n_features, expected):
    *rest, goal = DependencyAwareSelector(**parameters)._rule(n_features, 4)
    assert (*rest, None if goal is None else goal.least) == expected
    assert goal is None or goal.n_selected == 4


@pytest.mark.parametrize(
    ("rate", "size", "max_seconds", "seconds", "expected"),
    [
        (100.0, 50, None, 0.0, 50),  # half a second
        (1000.0, 10, None, 0.0, 80),  # growth by a factor of eight
        (100.0, 50, 1.0, 0.75, 25),  # the remaining time
        (100.0, 50, 1.0, 0.2, 50),
        (100.0, 50, 1.0, 1.5, 1),  # at least one per worker
        (0.1, 1, None, 0.0, 1),
    ],
)
def test_size_of_the_next_wave(rate, size, max_seconds, seconds, expected):
    rule = ProbeBudget(None, max_seconds, None)
    assert evaluation._next_size(rate, size, rule, seconds, Workers(1, "threads")) == expected
    # The number is a multiple of the number of workers.
    assert evaluation._next_size(rate, size, rule, seconds, Workers(4, "threads")) == max(4, expected // 4 * 4)


def test_workers_count_their_jobs():
    assert (Workers(1, "threads").count, Workers(1, "threads").sequential) == (1, True)
    assert (Workers(3, "threads").count, Workers(3, "threads").sequential) == (3, False)
    assert (Workers(3, "threads").parallel().n_jobs, Workers(1, "threads").wave_seconds) == (3, 0.5)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("count", [1, 3, 8, 30])
def test_values_of_subsets_are_in_order(n_jobs, count):
    subsets = [np.arange(k % 7 + 1) for k in range(count)]
    workers = Workers(n_jobs, "threads")
    with workers.parallel() as pool:
        values = evaluate_subsets(lambda features: float(len(features)), subsets, workers, pool)
    assert values.tolist() == [len(subset) for subset in subsets]
    with workers.parallel() as pool, pytest.raises(ValueError, match=r"returned nan for the features \[0\]"):
        evaluate_subsets(lambda features: np.nan, subsets[:1], workers, pool)


def test_the_largest_value_of_a_criterion():
    check_value(LARGEST_NORM, str)
    check_value(-LARGEST_NORM, str)
    for value in (np.nextafter(LARGEST_NORM, np.inf), np.nextafter(-LARGEST_NORM, -np.inf), np.nan):
        with pytest.raises(ValueError, match="It must return a finite number"):
            check_value(value, str)


def test_expected_probes_of_a_given_probability():
    """About mean + spread: the rarest of m features is in q K - sqrt(2 q K ln m) of K probes."""
    for probability in (0.2, 0.8):
        expected = expected_probes(ProbeSums(ProbePlan(50, 50, probability, read_key(0))), ProbeBudget(None, None, 40))
        mean = 0.2 * expected
        assert mean - np.sqrt(2 * mean * np.log(50)) == pytest.approx(40.0, abs=0.5)
    adaptive = AdaptiveSums(AdaptivePlan(50, 50, None, read_key(0), 5))
    uniform = ProbeSums(ProbePlan(50, 50, None, read_key(0)))
    first = expected_probes(adaptive, ProbeBudget(None, None, 40))
    assert first == pytest.approx(expected_probes(uniform, ProbeBudget(None, None, 40)), rel=0.5)
    assert expected_probes(adaptive, ProbeBudget(9, None, 40)) == 9
    assert expected_probes(ProbeSums(PLAN), ProbeBudget(None, 1.0, 40)) is None


def test_seeds_of_probes():
    assert read_key(3) == read_key(np.int64(3)) == read_key(3)
    assert read_key(0) != read_key(1)
    assert read_key(None) != read_key(None)
    assert read_key(np.random.RandomState(0)) == read_key(np.random.RandomState(0)) != read_key(np.random.RandomState(1))
    assert all(0 <= part < 2**64 for part in read_key(5))


@pytest.mark.parametrize("probability", [None, 0.3])
def test_a_probe_is_sorted_and_without_repetitions(probability):
    plan = ProbePlan(12, 12, probability, read_key(2))
    sizes = []
    for number in range(300):
        features = plan.draw(number)
        assert (np.diff(features) > 0).all()
        assert 0 <= features[0] <= features[-1] < 12
        sizes.append(len(features))
    assert min(sizes) == 1
    assert max(sizes) == 12 if probability is None else 5 < max(sizes) < 12


def test_coverage_by_counting():
    sums = ProbeSums(PLAN)
    assert (sums.coverage, sums.covers(0), sums.covers(1), sums.shift) == (0, True, False, 0.0)
    held = np.zeros(8, dtype=int)
    for number in range(60):
        held[PLAN.draw(number)] += 1
        sums.add(float(number))
        expected = min(held.min(), number + 1 - held.max())
        assert sums.coverage == expected
        assert sums.covers(expected)
        assert not sums.covers(expected + 1)
    np.testing.assert_array_equal(sums.count, held)
    assert (sums.shift, sums.total, sums.total_square) == (0.0, sum(range(60)), sum(k * k for k in range(60)))


@pytest.mark.parametrize("n_features", [3, 40])
def test_coverage_of_adaptive_probes_is_that_of_undecided_features(n_features, rng):
    sums = AdaptiveSums(AdaptivePlan(n_features, n_features, None, read_key(1), 2))
    while len(sums.levels) < 3:
        sums.add(float(rng.random()))
    near = np.flatnonzero(sums.focus.levels < 2)
    expected = min(sums.count[near].min(), (sums.n_probes - sums.count[near]).min())
    assert sums.covers(expected)
    assert not sums.covers(expected + 1)


@pytest.mark.parametrize("probability", [None, 0.2, 0.7])
def test_probabilities_of_a_design(probability):
    levels = np.array([0, 0, 1, 3, 8, 8], dtype=np.int8)
    focus = Focus(AdaptivePlan(6, 4, probability, read_key(0), 2), levels)
    share = 2.0 ** -levels.astype(float)
    wanted = [1.0, 2.0, 3.0, 4.0] if probability is None else [max(1.0, 6 * probability)]
    most = 0.5 if probability is None else max(0.5, probability)
    expected = [np.minimum(most, size * share / share.sum()) for size in wanted]
    np.testing.assert_allclose(focus.probability[:, levels], expected)
    np.testing.assert_allclose(focus.not_empty, [1.0 - np.prod(1.0 - row) for row in expected])
    assert focus.mean_probability == pytest.approx(np.mean([row[0] for row in expected]))
    np.testing.assert_array_equal(focus.open, [0, 1, 2])
    for number in range(20):
        row, features = focus.draw_with_row(number)
        np.testing.assert_array_equal(focus.draw(number), features)
        assert 0 <= row < len(wanted)
        assert len(features) > 0


def test_rounds_of_adaptive_probes_grow_by_a_tenth(rng):
    sums = AdaptiveSums(AdaptivePlan(30, 10, None, read_key(1), 5))
    assert sums.design_ends == np.ceil(60.0 / sums.focus.mean_probability)
    for number in range(3):
        start, ends = sums.n_probes, sums.design_ends
        assert sums.starts[-1] == start
        assert ends - start == np.ceil(60.0 * 1.1**number / sums.focus.mean_probability)
        while sums.n_probes < ends:
            assert sums.design is sums.focus
            sums.add(float(rng.random()))
    assert len(sums.starts) == len(sums.levels) == 4
    np.testing.assert_allclose(sums.benefit_of(sums.values), sums.estimate, rtol=1e-9)


def test_rounding_differences_are_no_benefit():
    plan = AdaptivePlan(6, 6, None, read_key(0), 2)
    for relative, differs in ((1e-14, False), (1e-10, True)):
        sums = AdaptiveSums(plan)
        for number in range(20):
            sums.add(1e6 * (1.0 + relative * (number % 2)))
        assert sums.estimate.benefit.any() == differs
    assert adaptive.N_LEVELS == 9


@pytest.mark.parametrize("n_wanted", [3, 25])
def test_levels_by_the_probability_to_be_among_the_best(rng, monkeypatch, n_wanted):
    """The cut is halfway between the last of the best features (at least 20) and the next one."""
    sums = AdaptiveSums(AdaptivePlan(60, 60, None, read_key(0), n_wanted))
    for _ in range(10):
        benefit, error = rng.standard_normal(60), rng.random(60) * (rng.random(60) < 0.9)
        estimate = adaptive.Estimate(benefit, error, error)
        monkeypatch.setattr(AdaptiveSums, "estimate", property(lambda _, own=estimate: own))
        best = np.sort(benefit)[::-1]
        rank = max(n_wanted, 20)
        cut = 0.5 * (best[rank - 1] + best[rank])
        gaps = [(own - cut) / wide if wide > 0 else 0.0 for own, wide in zip(benefit, error, strict=True)]
        expected = [min(int(-stats.norm.logcdf(gap) / np.log(2.0)), 8) for gap in gaps]
        levels = sums._next_levels()
        np.testing.assert_array_equal(levels, expected)
        assert levels.max() == 8


def slow_scale(values, sizes, size):
    for reach in range(sizes.max() + 1):
        near = values[np.abs(sizes - size) <= reach]
        everything = len(near) == len(values) and size - reach <= 0 and size + reach >= sizes.max()
        if (len(near) >= 10 or everything) and near.std() > 1e-12 * np.abs(values).max():
            return near.std(), reach
        if everything:
            return 1.0, reach
    raise AssertionError


@pytest.mark.parametrize("n_probes", [1, 9, 10, 60])
@pytest.mark.parametrize("n_values", [1, 2, 50])
def test_pooled_scales_by_naive_code(rng, n_probes, n_values):
    sums = ProbeSums.replay(ProbePlan(9, 7, None, read_key(4)), 3.0 + rng.integers(0, n_values, n_probes))
    summary = summarise(sums)
    assert [entry.size for entry in summary] == sorted(set(sums.sizes.tolist()))
    for entry in summary:
        own = sums.values[sums.sizes == entry.size]
        scale, reach = slow_scale(sums.values, sums.sizes, entry.size)
        expected = ProbeSize(entry.size, len(own), own.mean(), own.std(), scale, reach)
        np.testing.assert_allclose(entry, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("alpha", "n_features"),
    # Without a penalty and with about as many features as samples, the fits are nearly singular.
    [*itertools.product([0.5, 50.0], [2, 11, 12, 13, 25]), *itertools.product([1e-13], [2, 13, 25])],
)
def test_left_out_predictions_are_those_of_separate_fits(rng, alpha, n_features):
    X, y = rng.standard_normal((12, n_features)), rng.standard_normal((12, 2))
    evaluate = LeaveOneOut(as_source(X), alpha, y, None)
    found = evaluate.predictions(np.arange(n_features))
    for sample in range(12):
        others = np.arange(12) != sample
        if alpha < 1e-6:
            middle, mean = X[others].mean(axis=0), y[others].mean(axis=0)
            expected = mean + (X[sample] - middle) @ np.linalg.pinv(X[others] - middle) @ (y[others] - mean)
        else:
            expected = Ridge(alpha).fit(X[others], y[others]).predict(X[[sample]])[0]
        np.testing.assert_allclose(found[sample], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(evaluate._without(X.copy(), sample), expected, rtol=1e-5, atol=1e-6)


def test_a_constant_column_predicts_the_mean_of_the_others():
    y = np.array([1.0, 2.0, 4.0, 9.0])
    evaluate = LeaveOneOut(as_source(np.ones((4, 1))), 1.0, y[:, None], None)
    np.testing.assert_allclose(evaluate.predictions(np.array([0]))[:, 0], (y.sum() - y) / 3)
    assert evaluate(np.array([0])) == pytest.approx(1.0 - (((y.sum() - y) / 3 - y) ** 2).sum() / ((y - 4.0) ** 2).sum())


def test_the_mean_over_folds_is_not_the_mean_over_samples():
    folds = [(np.arange(3), np.arange(3, 4)), (np.arange(1), np.arange(4))]
    assert mean_over_folds([1, 2], folds) == 0.75


@pytest.mark.parametrize("shuffle", [False, True])
def test_folds_that_test_every_sample_once_share_a_batch(shuffle):
    folds = list(KFold(3, shuffle=shuffle, random_state=0 if shuffle else None).split(np.zeros((10, 1))))
    (batch,) = nearest._batches(folds, 10)
    assert (batch.twice, batch.n_rows) == (True, 20)
    doubled = np.tile(batch.samples, 2)
    for part, (train, test) in zip(batch.parts, folds, strict=True):
        np.testing.assert_array_equal(batch.samples[part.rows], test)
        np.testing.assert_array_equal(doubled[part.columns], part.placed)
        np.testing.assert_array_equal(part.placed[part.turn], train)


@pytest.mark.parametrize("kind", ["repeated", "some", "smaller"])
def test_other_folds_have_their_own_batches(kind):
    folds = list(ShuffleSplit(3, test_size=4, random_state=0).split(np.zeros((10, 1))))
    if kind == "some":  # Sample 0 is never tested.
        folds = [(np.setdiff1d(np.arange(10), test), test) for test in (np.arange(1, 5), np.arange(5, 10))]
    elif kind == "smaller":  # One training sample is left out.
        folds = [(np.arange(5, 9), np.arange(5)), (np.arange(5), np.arange(5, 10))]
    batches = nearest._batches(folds, 10)
    assert len(batches) == len(folds)
    for batch, (train, test) in zip(batches, folds, strict=True):
        (part,) = batch.parts
        assert (batch.twice, batch.n_rows) == (False, len(test) + len(train))
        np.testing.assert_array_equal(batch.samples[part.rows], test)
        np.testing.assert_array_equal(batch.samples[part.columns], train)
        np.testing.assert_array_equal(part.placed[part.turn], train)


def test_slack_exceeds_the_rounding_errors(rng):
    """Zero for exact products; otherwise at least the difference between single and double precision."""
    norms = np.sqrt((rng.standard_normal((50, 8)) ** 2).sum(axis=1))
    assert not any(part.any() for part in nearest._slack(norms, 1.0, 8, 1.0, True))
    for n_features, scale, offset in ((1, 1.0, 0.0), (8, 4.0, 3.0), (400, 0.25, 1e6)):
        coarse, fine = nearest._slack(norms, offset, n_features, scale, False)
        gammas = [(n_features + 5) * u / (1 - (n_features + 5) * u) for u in (2.0**-24, 2.0**-53)]
        own = 2 * gammas[0] * (norms.max() ** 2 + 2 * norms * norms.max())
        theirs = 4 * gammas[1] * (norms + norms.max() + 2 * offset) ** 2
        np.testing.assert_allclose(fine, theirs)
        np.testing.assert_allclose(coarse, scale**2 * (own + theirs))


@pytest.mark.parametrize("convert", [np.asarray, sparse.csc_array])
def test_features_with_whole_numbers_only(convert):
    X = np.array([[1.0, 0.5, -3.0, 0.0], [2.0, 1.0, 0.0, 1e-9], [0.0, 2.0, 7.0, 0.0]])
    assert nearest._whole_numbers(as_source(convert(X))).tolist() == [True, False, True, False]
    assert nearest._whole_numbers(as_source(convert(X.astype(np.int32)))).all()


def test_small_dense_data_are_kept_by_feature(rng, monkeypatch):
    X = rng.standard_normal((6, 4))
    np.testing.assert_array_equal(nearest._by_feature(as_source(X)), X.T)
    assert nearest._by_feature(as_source(sparse.csc_array(X))) is None
    monkeypatch.setattr(nearest, "_MAX_TABLE_VALUES", 24)
    assert nearest._by_feature(as_source(X)) is not None
    monkeypatch.setattr(nearest, "_MAX_TABLE_VALUES", 23)
    assert nearest._by_feature(as_source(X)) is None


class Saved:
    """A checkpoint that records its writes, each of which takes two seconds of a clock."""

    path = "run"

    def __init__(self, clock):
        self.sizes, self.clock = [], clock

    def save(self, values, key):
        self.clock[0] += 2.0
        self.sizes.append(len(values))


def test_a_checkpoint_is_written_if_there_are_more_probes_and_enough_time_has_passed(monkeypatch):
    """The interval is twenty times the duration of a write."""
    clock = [0.0]
    monkeypatch.setattr(estimator, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    sums, saved = ProbeSums(PLAN), Saved(clock)
    writer = estimator._CheckpointWriter(saved, sums)
    sums.add(1.0)
    for now, sizes in ((41.9, [0]), (42.0, [0, 1]), (83.9, [0, 1]), (84.0, [0, 1])):  # No probe was added after the second.
        clock[0] = now
        writer.save_if_due(sums)
        assert saved.sizes == sizes
    sums.add(1.0)
    writer.save_if_due(sums)
    assert saved.sizes == [0, 1, 2]
    sums.add(1.0)
    writer.save(sums)  # At the end of a run, the interval does not matter.
    assert saved.sizes == [0, 1, 2, 3]
    later = Saved(clock)
    estimator._CheckpointWriter(later, sums, n_saved=4).save(sums)  # The file has more probes already.
    assert later.sizes == []
