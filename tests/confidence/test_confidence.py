"""Confidence of groups: comparison with separate fits, interruption, resumption, saving."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import coterie
from coterie import (
    GroupDiscoveryClassifier,
    GroupDiscoveryOneClass,
    GroupDiscoveryRegressor,
    group_confidence,
)
from coterie.confidence import estimation
from coterie.confidence.estimation import complementary, permute_labels
from coterie.confidence.result import expected_false, false_share, shah_samworth
from coterie.datasets import make_support_affiliated

QUICK = {"n_pairs": 4, "n_permutations": 1, "random_state": 0}


@pytest.fixture(scope="module")
def planted():
    return make_support_affiliated(300, 120, n_support=4, n_true=10, random_state=3)


def fitted(planted, **options):
    return GroupDiscoveryClassifier(8, **options).fit(planted.X, planted.y)


def naive(model, X, y, seed, permutation, n_pairs):
    """Return the confidences from separate fits on the half-samples and on all samples."""
    data = permute_labels(model._read(X, y), seed, permutation)
    labels = np.asarray(y) if permutation == 0 else data.y
    estimator = clone(model).set_params(n_features_to_select=len(model.groups_))
    chosen = []
    for pair in range(n_pairs):
        for weight in complementary(data, seed, permutation, pair, stratified=hasattr(model, "classes_")):
            part = np.flatnonzero(weight)
            chosen.append(set(clone(estimator).fit(X[part], labels[part]).support_features_))
    groups = clone(estimator).fit(X, labels).groups_
    return np.array([np.mean([not features.isdisjoint(group.members.tolist()) for features in chosen]) for group in groups])


@pytest.mark.parametrize("kind", ["dense", "sparse", "int8"])
@pytest.mark.parametrize("estimator", [GroupDiscoveryClassifier(8, standardize=True), GroupDiscoveryRegressor(8)])
def test_equal_to_separate_fits(planted, estimator, kind):
    X = planted.X
    if kind == "sparse":
        X = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    elif kind == "int8":
        X = np.round(5 * X).astype(np.int8)
    y = planted.X[:, planted.groups.support] @ planted.weights if isinstance(estimator, GroupDiscoveryRegressor) else planted.y
    model = clone(estimator).fit(X, y)
    result = group_confidence(model, X, y, n_pairs=3, n_permutations=2, random_state=7)
    np.testing.assert_allclose(result.confidence, naive(model, X, y, 7, 0, 3))
    for number, values in enumerate(result.permuted, start=1):
        np.testing.assert_allclose(np.sort(values), np.sort(naive(model, X, y, 7, number, 3)))


def test_true_groups_have_higher_confidence_than_false_ones(planted):
    model = fitted(planted)
    result = group_confidence(model, planted.X, planted.y, n_pairs=15, n_permutations=2, random_state=0)
    true = np.array([bool(set(group.members) & set(planted.groups.members)) for group in model.groups_])
    assert result.confidence[true].min() > 0.7 > 0.6 > result.confidence[~true].max()
    assert result.false_share[true].max() < 0.4
    assert result.attach(model.groups_).at_least(0.7) == coterie.FeatureGroups(
        [g for g, ok in zip(model.groups_, true, strict=True) if ok]
    )


def test_no_signal():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 300)), np.arange(100) % 2
    model = GroupDiscoveryClassifier(10).fit(X, y)
    result = group_confidence(model, X, y, n_pairs=10, n_permutations=3, random_state=0)
    assert result.confidence.max() < 0.9
    assert result.false_share.min() > 0.2  # One group is found again by chance, which three permutations do not show.


def test_attaching_to_groups_and_model(planted, tmp_path):
    model = fitted(planted)
    with pytest.raises(ValueError, match="have no confidence yet"):
        model.groups_.at_least(0.5)
    result = group_confidence(model, planted.X, planted.y, **QUICK)
    assert not hasattr(model, "confidence_")
    assert all(group.confidence is None for group in model.groups_)
    assert result.attach_to(model) is model
    assert model.confidence_ is result
    assert [group.confidence for group in model.groups_] == result.confidence.tolist()
    frame = model.groups_.to_frame()
    first = frame[frame.group == 1]
    assert set(first.confidence) == {result.confidence[0]}
    assert first.share.tolist() == result.shares[0].tolist()
    assert first.share.iloc[0] == result.support_confidence[0] <= result.confidence[0]
    assert f"[{result.confidence[0]:.2f}]" in repr(model.groups_)
    assert json.loads(model.groups_.to_json())[0]["confidence"] == result.confidence[0]
    assert list(result.to_frame().columns)[:3] == ["group", "confidence", "support_confidence"]
    assert "4 pairs of half-samples, 1 permutations" in repr(result)
    json.dumps(result.to_dict(), allow_nan=False)
    coterie.save(model, tmp_path / "model.coterie")
    loaded = coterie.load(tmp_path / "model.coterie")
    np.testing.assert_array_equal(loaded.confidence_.confidence, result.confidence)
    assert [group.confidence for group in loaded.groups_] == result.confidence.tolist()
    again = group_confidence(loaded, planted.X, planted.y, n_pairs=6, n_permutations=1, resume=loaded.confidence_)
    assert again.n_pairs == 6
    model.fit(planted.X, planted.y)
    assert not hasattr(model, "confidence_")


def test_resumed_result_equals_that_of_a_single_call(planted):
    model = fitted(planted)
    whole = group_confidence(model, planted.X, planted.y, n_pairs=6, n_permutations=2, random_state=5)
    part = group_confidence(model, planted.X, planted.y, n_pairs=3, n_permutations=0, random_state=5)
    assert np.isnan(part.expected_false).all()
    assert np.isnan(part.false_share).all()
    more = group_confidence(model, planted.X, planted.y, n_pairs=6, n_permutations=2, resume=part)
    np.testing.assert_array_equal(more.confidence, whole.confidence)
    for a, b in zip(more.permuted, whole.permuted, strict=True):
        np.testing.assert_array_equal(a, b)
    few = group_confidence(model, planted.X, planted.y, n_pairs=3, n_permutations=2, random_state=5)
    again = group_confidence(model, planted.X, planted.y, n_pairs=6, n_permutations=2, resume=few)
    np.testing.assert_array_equal(again.expected_false, whole.expected_false)  # Permutations with three pairs are dropped.
    same = group_confidence(model, planted.X, planted.y, n_pairs=2, n_permutations=2, resume=whole)
    assert same.n_pairs == 6
    for a, b in zip(same.permuted, whole.permuted, strict=True):  # those of six pairs, although two are requested
        assert a is b
    with pytest.raises(ValueError, match="another model or other data"):
        group_confidence(fitted(planted, C=2.0), planted.X, planted.y, resume=part)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_same_seed_same_result(planted, n_jobs):
    model = fitted(planted)
    order = np.random.default_rng(0).permutation(planted.X.shape[1])
    result = group_confidence(model, planted.X, planted.y, n_jobs=n_jobs, **QUICK)
    moved = group_confidence(fitted_to(planted.X[:, order], planted.y), planted.X[:, order], planted.y, **QUICK)
    np.testing.assert_array_equal(result.confidence, moved.confidence)
    np.testing.assert_array_equal(result.expected_false, moved.expected_false)


def fitted_to(X, y):
    return GroupDiscoveryClassifier(8).fit(X, y)


def test_interrupted(planted, monkeypatch):
    """Ctrl-C keeps the completed pairs."""
    model = fitted(planted)
    calls = []
    run = estimation.run_searches

    def interrupted(paths, finish, **options):
        calls.append(len(paths))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run(paths, finish, **options)

    monkeypatch.setattr(estimation, "run_searches", interrupted)
    with pytest.warns(UserWarning, match="Stopped after 5 of 9 pairs of half-samples and 0 of 2 permutations"):
        result = group_confidence(model, planted.X, planted.y, n_pairs=9, n_permutations=2, random_state=0)
    assert result.n_pairs == 5
    calls[:] = [0]
    model = fitted(planted)
    with pytest.raises(KeyboardInterrupt):
        group_confidence(model, planted.X, planted.y, n_pairs=9)
    assert not hasattr(model, "confidence_")


def test_a_signal_stops_after_a_batch(planted, monkeypatch):
    model = fitted(planted)
    asked = []
    monkeypatch.setattr(estimation, "stop_requested", lambda: len(asked) > 0)
    run = estimation.run_searches

    def last(paths, finish, **options):
        loops = run(paths, finish, **options)
        if len(paths) > 3:
            asked.extend(paths[4:])
        return loops

    monkeypatch.setattr(estimation, "run_searches", last)
    with pytest.raises(KeyboardInterrupt):  # The first batch was incomplete.
        group_confidence(model, planted.X, planted.y, n_pairs=5)


def test_fixed_features_have_no_confidence(planted):
    model = fitted(planted, fixed_features=[100])
    result = group_confidence(model, planted.X, planted.y, **QUICK)
    assert np.isnan(result.confidence[0])
    assert not np.isnan(result.confidence[1:]).any()
    assert len(result.permuted[0]) <= 7
    assert 100 not in result.attach(model.groups_).at_least(0.0).support
    assert "1. fixed" in repr(result)


def test_one_class_has_no_labels_to_permute(planted):
    X = np.abs(planted.X)
    model = GroupDiscoveryOneClass(4).fit(X)
    result = group_confidence(model, X, n_pairs=3, random_state=0)
    assert result.n_permutations == 0
    assert result.confidence.shape == (len(model.groups_),)


def test_weights_are_repetitions(planted):
    """A sample of weight 0 counts as absent."""
    weight = np.ones(len(planted.y))
    weight[::5] = 0.0
    X, y = planted.X[weight > 0], planted.y[weight > 0]
    model = GroupDiscoveryClassifier(6).fit(planted.X, planted.y, weight)
    whole = group_confidence(model, planted.X, planted.y, weight, **QUICK)
    part = group_confidence(GroupDiscoveryClassifier(6).fit(X, y), X, y, **QUICK)
    np.testing.assert_array_equal(whole.confidence, part.confidence)


def test_three_classes():
    X, y = make_classification(200, 60, n_informative=6, n_redundant=0, n_classes=3, random_state=0)
    model = GroupDiscoveryClassifier(5).fit(X, y)
    assert group_confidence(model, X, y, **QUICK).confidence[0] > 0.7


def test_halves(planted):
    model = fitted(planted)
    data = model._read(planted.X, planted.y)
    for pair in range(3):
        first, second = complementary(data, 1, 0, pair, stratified=True)
        np.testing.assert_array_equal(first + second, 1.0)
        for label in (0, 1):
            assert abs(first[data.targets == label].sum() - second[data.targets == label].sum()) <= 1
    again = complementary(data, 1, 0, 2, stratified=True)
    np.testing.assert_array_equal(again[0], first)
    other = permute_labels(data, 1, 1)
    assert sorted(other.targets) == sorted(data.targets)
    assert (other.targets != data.targets).any()
    assert permute_labels(data, 1, 0) is data


@pytest.mark.parametrize("sizes", [(5, 7, 4, 3), (1, 1, 1), (6, 2), (3, 4)])
def test_extra_samples_of_odd_classes_alternate(planted, sizes):
    targets = np.repeat(np.arange(len(sizes)), sizes)
    data = replace(fitted(planted)._read(planted.X, planted.y), targets=targets, weight=None)
    odd = [k for k, size in enumerate(sizes) if size % 2]
    extra = np.array([0 if k not in odd else 1 - 2 * (odd.index(k) % 2) for k in range(len(sizes))])
    for pair in range(5):
        first, second = complementary(data, 1, 0, pair, stratified=True)
        assert (np.bincount(targets, first) - np.bincount(targets, second)).tolist() == extra.tolist()


@pytest.mark.parametrize("n_samples", [1, 2, 9, 10])
def test_the_first_half_has_the_odd_sample(planted, n_samples):
    data = replace(fitted(planted)._read(planted.X, planted.y), targets=np.zeros(n_samples), weight=None)
    halves = [complementary(data, 1, 0, pair, stratified=False) for pair in range(20)]
    assert all((first.sum(), second.sum()) == ((n_samples + 1) // 2, n_samples // 2) for first, second in halves)
    assert all((first + second == 1.0).all() for first, second in halves)
    for pair, (first, _) in enumerate(halves):  # The halves of a seed must not change between versions.
        rng = np.random.default_rng([1, 0, 1 + pair])
        order = rng.permutation(n_samples)
        order = order[::-1] if rng.random() < 0.5 else order
        assert np.flatnonzero(first).tolist() == sorted(order[::2])


def test_estimates_by_hand():
    confidence = np.array([1.0, 0.5, 0.8, np.nan, 0.2])
    permuted = (np.array([0.5, 0.1]), np.array([0.9, 0.3]))
    expected = expected_false(confidence, permuted)
    np.testing.assert_array_equal(expected, [0.0, 1.0, 0.5, np.nan, 1.5])
    # One more permutation, with one false group: (0 + 1) / 3 of 1, (2 + 1) / 3 of 3, (1 + 1) / 3 of 2, (3 + 1) / 3 of 4.
    np.testing.assert_allclose(false_share(confidence, expected, 2), [1 / 3, 1 / 3, 1 / 3, np.nan, 1 / 3])
    np.testing.assert_allclose(
        false_share(confidence, np.array([0.0, 5.0, 0.5, np.nan, 9.0]), 2), [1 / 3, 1, 1 / 3, np.nan, 1]
    )
    # A level takes the smallest ratio at or below it.
    np.testing.assert_allclose(false_share(np.array([0.9, 0.8, 0.8]), np.full(3, 0.2), 3), [0.4 / 3] * 3)


def test_bound_of_shah_and_samworth_by_hand():
    """C = 4 (1 - tau + 1/2B) / (1 + 1/B) above 3/4, 1 / (2 (2 tau - 1 - 1/2B)) below; times q^2 / p."""
    bound = shah_samworth(np.array([1.0, 0.9, 0.6, 0.5, np.nan]), 10.0, 1000, 50)
    np.testing.assert_allclose(bound[:2], [0.1 * 4 * 0.01 / 1.02, 0.1 * 4 * 0.11 / 1.02])
    np.testing.assert_allclose(bound[2], 0.1 / (2 * (0.2 - 0.01)))
    assert np.isnan(bound[3:]).all()
    assert np.isnan(shah_samworth(np.array([1.0]), 10.0, 12, 50)).all()


def test_wrong_input(planted):
    model = fitted(planted)
    for options, match in [
        ({"n_pairs": 0}, "n_pairs=0 must be a whole number of at least 1"),
        ({"n_permutations": -1}, "n_permutations=-1"),
        ({"n_pairs": 2.5}, "n_pairs=2.5"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ]:
        with pytest.raises(ValueError, match=match):
            group_confidence(model, planted.X, planted.y, **options)
    with pytest.raises(ValueError, match="X has 119 features, but the model was fitted to 120"):
        group_confidence(model, planted.X[:, 1:], planted.y)
    with pytest.raises(ValueError, match="y has other classes"):
        group_confidence(model, planted.X, np.where(planted.y > 0, "a", "b"))
    with pytest.raises(NotFittedError):
        group_confidence(GroupDiscoveryClassifier(), planted.X, planted.y)
    with pytest.raises(ValueError, match="model is a LogisticRegression"):
        group_confidence(LogisticRegression(), planted.X, planted.y)
    y = np.zeros(len(planted.y), dtype=int)
    y[3], y[4:90] = 1, 2
    weight = np.where(y == 1, 2.0, 1.0)
    with pytest.raises(ValueError, match="Class 1 has one sample, which cannot be halved"):
        group_confidence(GroupDiscoveryClassifier(3).fit(planted.X, y, weight), planted.X, y, weight)
    assert not hasattr(model, "confidence_")
