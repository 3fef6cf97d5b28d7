"""Shares, expected numbers and bounds against slow code; what a result shows; seeds, digests and interrupted runs."""

import ast
import inspect
import re
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie import FeatureGroup, FeatureGroups, GroupDiscoveryClassifier, GroupDiscoveryRegressor, group_confidence
from coterie.confidence import estimation
from coterie.confidence.estimation import complementary, permute_labels
from coterie.confidence.result import Choices, GroupConfidence, expected_false, false_share, shah_samworth

GROUPS = FeatureGroups(
    [
        FeatureGroup(4, [9, 2], [0.95, -0.8], round=1),
        FeatureGroup(7, [], [], round=2),
        FeatureGroup(0, [1], [0.9], round=0),  # a fixed feature
    ]
)
CHOSEN = tuple(np.array(own) for own in ([0, 4, 7], [0, 2, 9], [0, 3, 5], [0, 9, 7], [0, 8, 6], [0, 4, 2]))
PERMUTED = (np.array([0.5, 0.0]), np.array([1.0, 0.25]))


def made(groups=GROUPS, chosen=CHOSEN, permuted=PERMUTED, n_features=10):
    return GroupConfidence.of(groups, chosen, permuted, n_features=n_features, seed=3, digest="d")


@given(st.integers(0, 10_000))
def test_shares_are_counts_of_half_samples(seed):
    rng = np.random.default_rng(seed)
    chosen = [rng.permutation(12)[: rng.integers(0, 6)] for _ in range(rng.integers(1, 8))]
    members = rng.permutation(12)[: rng.integers(1, 6)]
    choices = Choices(chosen)
    sets = [set(own.tolist()) for own in chosen]
    assert choices.group_share(members) == pytest.approx(np.mean([bool(own & set(members.tolist())) for own in sets]))
    expected = [np.mean([feature in own for own in sets]) for feature in members.tolist()]
    np.testing.assert_allclose(choices.member_shares(members), expected)


@given(st.integers(0, 10_000))
def test_expected_numbers_and_shares_of_false_groups_by_counting(seed):
    rng = np.random.default_rng(seed)
    confidence = rng.integers(0, 11, rng.integers(1, 8)) / 10
    permuted = tuple(rng.integers(0, 11, rng.integers(0, 6)) / 10 for _ in range(rng.integers(1, 4)))
    expected = expected_false(confidence, permuted)
    slow = [sum(sum(value >= level for value in own) for own in permuted) / len(permuted) for level in confidence]
    np.testing.assert_allclose(expected, slow)
    careful = [
        min((number * len(permuted) + 1) / (len(permuted) + 1) / sum(confidence >= level), 1.0)
        for number, level in zip(slow, confidence, strict=True)
    ]
    # A level has the smallest share of all levels that are not above it.
    least = [min(own for own, other in zip(careful, confidence, strict=True) if other <= level) for level in confidence]
    np.testing.assert_allclose(false_share(confidence, expected, len(permuted)), least)


def test_rounding_does_not_decide_whether_a_confidence_is_reached():
    confidence = np.array([0.1 + 0.2, 0.3])
    np.testing.assert_array_equal(expected_false(confidence, (np.array([0.3]),)), [1.0, 1.0])
    np.testing.assert_allclose(false_share(confidence, np.zeros(2), 1), [0.25, 0.25])


def slow_bound(level, q, p, B):
    """C(tau, B) of theorem 2 of Shah and Samworth, piece by piece, times q^2 / p."""
    theta = q / p
    lowest = min(0.5 + theta**2, 0.5 + 1 / (2 * B) + 0.75 * theta**2)
    if theta <= 1 / np.sqrt(3) and 0.75 < level <= 1:
        return 4 * (1 - level + 1 / (2 * B)) / (1 + 1 / B) * q**2 / p
    if theta <= 1 / np.sqrt(3) and lowest < level <= 0.75 and 2 * level - 1 > 1 / (2 * B):
        return q**2 / p / (2 * (2 * level - 1 - 1 / (2 * B)))
    return np.nan


@pytest.mark.parametrize("n_pairs", [1, 2, 5, 50])
@pytest.mark.parametrize(("n_chosen", "n_features"), [(1.0, 100), (30.0, 100), (50.0, 100), (57.0, 100), (58.0, 100)])
def test_bound_of_shah_and_samworth_at_every_level(n_chosen, n_features, n_pairs):
    levels = np.append(np.arange(2 * n_pairs + 1) / (2 * n_pairs), [0.75, 0.5 + 1e-6, np.nan])
    found = shah_samworth(levels, n_chosen, n_features, n_pairs)
    np.testing.assert_allclose(found, [slow_bound(level, n_chosen, n_features, n_pairs) for level in levels])


def test_a_result_by_hand():
    result = made()
    np.testing.assert_allclose(result.confidence, [4 / 6, 2 / 6, np.nan])
    np.testing.assert_allclose(result.support_confidence, [2 / 6, 2 / 6, 1.0])
    np.testing.assert_allclose(result.shares[0], [2 / 6, 2 / 6, 2 / 6])
    assert (result.n_pairs, result.n_permutations, result.n_features, result.seed) == (3, 2, 10, 3)
    np.testing.assert_allclose(result.expected_false, [0.5, 1.0, np.nan])
    np.testing.assert_allclose(result.false_share, [0.5, 0.5, np.nan])  # (0.5 * 2 + 1) / 3 of 1; (1 * 2 + 1) / 3 of 2
    # The fixed feature is in every half-sample and does not count: 2 of 10 are chosen.
    np.testing.assert_allclose(result.bound, shah_samworth(result.confidence, 2.0, 10, 3))
    assert result.reached_by_chance == 1.0
    assert np.isnan(made(permuted=()).reached_by_chance)
    assert made(permuted=(np.empty(0),)).reached_by_chance == 0.0
    rows = result.rows()
    assert [row["group"] for row in rows] == [1, 2, 3]
    assert rows[1]["confidence"] == pytest.approx(2 / 6)
    record = result.to_dict()
    assert record["permuted"] == [[0.5, 0.0], [1.0, 0.25]]
    assert (record["n_pairs"], record["n_permutations"], record["seed"]) == (3, 2, 3)
    assert record["confidence"][2] is None
    page = result._repr_html_()
    for words in (
        "3 groups, 3 pairs of half-samples, 2 permutations",
        "0.67",
        "fixed",
        "expected by chance",
        "false share",
    ):
        assert words in page
    assert "expected by chance" not in made(permuted=())._repr_html_()


def test_a_result_fits_its_own_groups_only():
    result = made()
    assert result.fits(GROUPS)
    assert made(permuted=()).fits(GROUPS)
    assert not result.fits(GROUPS[:2])
    assert not result.fits(list(GROUPS))
    changed = FeatureGroups([FeatureGroup(4, [9], [0.95]), *GROUPS[1:]])
    assert not result.fits(changed)  # as many groups, but one has another size
    for wrong in (
        {"confidence": result.confidence[:2]},
        {"confidence": result.confidence.tolist()},
        {"bound": np.array([1, 2, 3])},
        {"shares": list(result.shares)},
        {"shares": result.shares[:2]},
        {"permuted": (np.array([1, 2]), np.array([0.5]))},
        {"permuted": result.permuted[:1]},
        {"permuted": (result.permuted[0][None], result.permuted[1])},
        {"chosen": tuple(own.astype(float) for own in CHOSEN)},
        {"chosen": CHOSEN[:4]},
        {"n_pairs": 4},
        {"n_permutations": 1},
        {"n_features": -1},
        {"n_features": 10.0},
        {"seed": -1},
        {"seed": True},
        {"digest": None},
    ):
        assert not replace(result, **wrong).fits(GROUPS), wrong
    assert replace(result, seed=0, n_features=0).fits(GROUPS)


@pytest.fixture(scope="module")
def cohort():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12))
    covariates = rng.standard_normal((60, 2))
    return X, X[:, 3] - X[:, 5] + covariates[:, 0] + 0.3 * rng.standard_normal(60), covariates


def test_permuted_labels_take_their_covariates_along_and_leave_out_samples_of_weight_zero(cohort):
    X, y, covariates = cohort
    weight = np.ones(60)
    weight[::4] = 0.0
    model = GroupDiscoveryRegressor(3).fit(X, y, covariates=covariates)
    data = replace(model._read(X, y, covariates=covariates), weight=weight)
    other = permute_labels(data, 5, 1)
    np.testing.assert_array_equal(other.targets[::4], y[::4])
    assert sorted(other.targets) == sorted(y)
    assert (other.targets[weight > 0] != y[weight > 0]).mean() > 0.8
    place = {value: k for k, value in enumerate(y.tolist())}
    order = [place[value] for value in other.targets.tolist()]
    np.testing.assert_array_equal(other.covariates, covariates[order])
    np.testing.assert_array_equal(other.y, y[order])
    for seed, permutation in ((5, 2), (6, 1)):
        assert (permute_labels(data, seed, permutation).targets != other.targets).any()
    np.testing.assert_array_equal(permute_labels(data, 5, 1).targets, other.targets)
    first, second = complementary(data, 5, 0, 0, stratified=False)
    np.testing.assert_array_equal(first + second, weight)
    assert not (first * second).any()


def test_seeds(cohort):
    X, y, _ = cohort
    model = GroupDiscoveryRegressor(2).fit(X, y)
    options = {"n_pairs": 1, "n_permutations": 0}
    assert group_confidence(model, X, y, random_state=np.int64(7), **options).seed == 7
    assert group_confidence(model, X, y, random_state=0, **options).seed == 0
    drawn = [group_confidence(model, X, y, random_state=np.random.RandomState(k), **options).seed for k in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    with pytest.raises(ValueError, match=r"[Ss]eed"):
        group_confidence(model, X, y, random_state=-1, **options)


@pytest.mark.parametrize("changed", ["y", "sample_weight", "covariates", "groups"])
def test_only_the_same_work_is_resumed(cohort, changed):
    X, y, covariates = cohort
    weight = np.linspace(0.5, 1.5, 60)
    data = {"y": y, "sample_weight": weight, "covariates": covariates}
    model = GroupDiscoveryRegressor(3).fit(X, **data)
    part = group_confidence(model, X, n_pairs=1, n_permutations=0, random_state=0, **data)
    assert group_confidence(model, X, n_pairs=2, n_permutations=0, resume=part, **data).n_pairs == 2
    if changed == "groups":
        model = GroupDiscoveryRegressor(2).fit(X, **data)
    else:
        data[changed] = data[changed] + 0.25
    with pytest.raises(ValueError, match="another model or other data"):
        group_confidence(model, X, n_pairs=2, n_permutations=0, resume=part, **data)


def test_a_signal_keeps_the_batches_that_are_done(cohort, monkeypatch):
    """Five pairs are done first; the signal comes during the next batch, or during a permutation."""
    X, y, _ = cohort
    model = GroupDiscoveryRegressor(2).fit(X, y)
    run = estimation.run_searches
    for last, n_permutations, done in ((2, 0, (5, 0)), (3, 2, (12, 0)), (4, 3, (12, 1))):
        calls = []

        def counted(searches, finish, calls=calls, **options):
            calls.append(len(searches))
            return run(searches, finish, **options)

        monkeypatch.setattr(estimation, "run_searches", counted)
        monkeypatch.setattr(estimation, "stop_requested", lambda calls=calls, last=last: len(calls) >= last)
        with pytest.warns(
            UserWarning, match=rf"Stopped after {done[0]} of 12 pairs .* and {done[1]} of {n_permutations} perm"
        ):
            result = group_confidence(model, X, y, n_pairs=12, n_permutations=n_permutations, random_state=0)
        assert (result.n_pairs, result.n_permutations) == done
        assert calls[:2] == [10, 14]
        assert calls[2:] == [25] * (last - 2)


def test_progress_announces_the_permutations(cohort, capsys):
    X, y, _ = cohort
    model = GroupDiscoveryRegressor(2).fit(X, y)
    began = time.perf_counter()
    group_confidence(model, X, y, n_pairs=2, n_permutations=2, random_state=0, verbose=1)
    taken = time.perf_counter() - began
    words = "".join(capsys.readouterr())
    assert "label permutations remaining" in words
    assert int(re.search(r"about (\d+) s", words)[1]) <= 10 * taken + 1  # ten more fits are announced after four
    assert "Permutation 2" in words
    group_confidence(model, X, y, n_pairs=2, n_permutations=0, random_state=0, verbose=1)
    assert "label permutations remaining" not in "".join(capsys.readouterr())
    group_confidence(model, X, y, n_pairs=2, n_permutations=1, random_state=0)
    assert not "".join(capsys.readouterr())


def test_two_samples_of_each_class_can_be_halved(cohort):
    X = cohort[0][:4]
    y = np.array(["a", "b", "a", "b"])
    model = GroupDiscoveryClassifier(1).fit(X, y)
    result = group_confidence(model, X, y, n_pairs=2, n_permutations=0, random_state=0)
    assert result.n_pairs == 2


def test_default_values_are_the_documented_ones():
    for parameter in inspect.signature(group_confidence).parameters.values():
        documented = re.search(rf"^ *{parameter.name} : [^\n]*default=(\S+)$", group_confidence.__doc__, re.MULTILINE)
        if parameter.default is not inspect.Parameter.empty:
            assert documented is not None, parameter.name
            assert ast.literal_eval(documented[1]) == parameter.default


def test_samples_of_weight_zero_cannot_be_halved(cohort):
    """A class with two samples, of which one has weight zero, has one sample."""
    X, y = cohort[0][:6], np.array(["a", "b", "a", "b", "a", "a"])
    model = GroupDiscoveryClassifier(1).fit(X, y)
    weight = np.array([1.0, 2.0, 1.0, 0.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="Class 'b' has one sample, which cannot be halved"):
        group_confidence(model, X, y, weight, n_pairs=1, n_permutations=0)
    weight[3] = 0.5
    assert group_confidence(model, X, y, weight, n_pairs=1, n_permutations=0).n_pairs == 1


def test_drawn_seeds_have_31_bits():
    drawn = [estimation._seed(np.random.RandomState(k)) for k in range(40)]
    assert 2**30 < max(drawn) < 2**31 - 1
    assert len(set(drawn)) == 40
    assert estimation._seed(2**40) == 2**40  # A given seed is used as it is.


def test_other_data_than_those_of_the_fit_are_refused(cohort):
    X, y, _ = cohort
    model = GroupDiscoveryRegressor(2).fit(X, y)
    with pytest.raises(ValueError, match="X has 11 features, but the model was fitted to 12"):
        group_confidence(model, X[:, :11], y)
    labels = np.where(y > 0, "a", "b")
    with pytest.raises(ValueError, match="y has other classes than the model"):
        group_confidence(GroupDiscoveryClassifier(2).fit(X, labels), X, np.where(y > 0, "a", "c"))


def task_of(cohort, **options):
    X, y, _ = cohort
    model = GroupDiscoveryRegressor(2).fit(X, y)
    return estimation._Task(model, model._read(X, y), 1, options.get("verbose", 0), 0)


def test_batches_are_limited_by_time(cohort):
    task = task_of(cohort)
    assert task._batch_size() == 5
    for seconds_per_path, expected in ((1.0, 15), (0.5, 30), (1e3, 8)):
        task._n_paths, task._seconds = 4, 4 * seconds_per_path
        assert task._batch_size() == expected


def test_batches_are_limited_by_memory(cohort, monkeypatch):
    task = task_of(cohort)
    task._n_paths, task._seconds = 1, 1e-9
    for n_searches, expected in ((7, 3), (1, 1), (40, 20)):
        monkeypatch.setattr(estimation, "batches", lambda searches, n, k=n_searches: iter([searches[:k]]))
        assert task._batch_size() == expected


def test_announced_time_of_permutations(cohort, capsys):
    """One search on all samples and two per pair, for each permutation, at the mean time so far."""
    task = task_of(cohort, verbose=1)
    task._n_paths, task._seconds = 10, 20.0
    task.report_permutation_cost(3, 4)
    assert "about 54 s" in "".join(capsys.readouterr())
    task.report_permutation_cost(0, 4)
    task._n_paths = 0
    task.report_permutation_cost(3, 4)
    assert not "".join(capsys.readouterr())


def test_varying_features_are_counted(cohort):
    X, y, _ = cohort
    X = X.copy()
    X[:, 7] = 4.0
    model = GroupDiscoveryRegressor(2).fit(X, y)
    assert group_confidence(model, X, y, n_pairs=1, n_permutations=0, random_state=0).n_features == 11


def test_more_permutations_are_made_while_they_can_decide():
    """A single group needs nine permutations for a false share of 0.1; noise is decided after five."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 30))
    strong = GroupDiscoveryRegressor(1).fit(X, X[:, 4] + 0.5 * rng.standard_normal(80))
    result = group_confidence(
        strong, X, X[:, 4] + 0.5 * rng.standard_normal(80), n_pairs=3, n_permutations="auto", random_state=0
    )
    assert result.n_permutations == 9
    assert result.false_share[0] == pytest.approx(0.1)
    y = rng.standard_normal(80)
    noise = group_confidence(GroupDiscoveryRegressor(3).fit(X, y), X, y, n_pairs=3, n_permutations="auto", random_state=0)
    assert noise.n_permutations == 5
    assert (noise.false_share > 0.1).all()


def test_a_given_number_of_permutations_is_made():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 30))
    model = GroupDiscoveryRegressor(1).fit(X, X[:, 4])
    assert group_confidence(model, X, X[:, 4], n_pairs=3, n_permutations=6, random_state=0).n_permutations == 6
