"""Sample groups: folds, half-samples and permutations keep the samples of a group together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut

import coterie
from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, GroupDiscoveryRegressorCV, group_confidence
from coterie.confidence.estimation import complementary, permute_labels
from coterie.data import open_store, write_store
from coterie.estimators.base import input_of
from coterie.inputs.folds import read_folds
from coterie.inputs.sample_groups import halves, is_constant_within, permutation_within, read_sample_groups


def repeated_rows(n_groups=30, n_rows=5, n_features=60, seed=0):
    """Return noise with several similar rows per subject, and a random label per subject."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), n_rows)
    X = rng.standard_normal((n_groups, n_features))[groups] + 0.3 * rng.standard_normal((len(groups), n_features))
    y = rng.permutation(np.arange(n_groups) % 2)[groups]
    order = rng.permutation(len(groups))
    return X[order], y[order], groups[order]


@pytest.mark.parametrize("classifier", [True, False])
def test_a_number_of_folds_divides_whole_groups(classifier):
    _, y, groups = repeated_rows()
    folds = read_folds(5, y, classifier=classifier, shuffle=True, random_state=0, groups=groups)
    assert len(folds) == 5
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(y)))


def test_splitters_get_the_groups():
    _, y, groups = repeated_rows(6)
    assert len(read_folds(LeaveOneGroupOut(), y, classifier=True, groups=groups)) == 6
    for train, test in read_folds(GroupKFold(3), y, classifier=True, groups=groups):
        assert not set(groups[train]) & set(groups[test])


def test_more_folds_than_groups_is_an_error():
    _, y, groups = repeated_rows(4)
    with pytest.raises(ValueError, match=r"cv=5 exceeds the number of sample groups \(4\)"):
        read_folds(5, y, classifier=True, groups=groups)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], "groups has 2 entries, but X has 3 samples"),
        ([[1], [2], [3]], "one-dimensional"),
        ([1.0, np.nan, 2.0], r"missing for 1 sample\(s\). The first is sample 1"),
        (["a", None, None], r"missing for 2 sample\(s\). The first is sample 1"),
        (["a", "a", "a"], "a single group"),
    ],
)
def test_invalid_groups(groups, message):
    with pytest.raises(ValueError, match=message):
        read_sample_groups(groups, 3)


def test_labels_of_different_types_are_different_groups():
    assert read_sample_groups(np.array([1, "1", 1], dtype=object), 3).tolist() == [0, 1, 0]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=12, max_size=60), st.integers(0, 2**16))
def test_halves_do_not_divide_groups(groups, seed):
    groups = np.array(groups)
    half = halves(groups, None, np.random.default_rng(seed))
    assert is_constant_within(half, groups)[np.unique(groups)].all()
    n_groups = len(np.unique(groups))
    assert abs(len(np.unique(groups[half])) - n_groups / 2) <= 0.5


def test_halves_balance_classes_and_sizes():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), np.repeat([2, 20], 20))
    codes = (np.arange(40) % 4 == 0)[groups].astype(int)
    for _ in range(20):
        half = halves(groups, codes, rng)
        assert abs(half.sum() - (~half).sum()) <= 40
        assert abs(len(np.unique(groups[half & (codes == 1)])) - 5) <= 1


def test_a_class_in_one_group_cannot_be_halved():
    groups = np.repeat(np.arange(4), 3)
    with pytest.raises(ValueError, match="two sample groups or more"):
        halves(groups, (groups == 0).astype(int), np.random.default_rng(0))


def test_constant_labels_are_permuted_between_groups():
    _, y, groups = repeated_rows()
    order = permutation_within(groups, y, np.random.default_rng(1))
    permuted = y[order]
    assert is_constant_within(permuted, groups).all()
    assert permuted.sum() == y.sum()
    assert (permuted != y).any()


def test_varying_labels_are_permuted_within_groups():
    groups = np.repeat(np.arange(10), 6)
    y = np.random.default_rng(0).standard_normal(60)
    order = permutation_within(groups, y, np.random.default_rng(1))
    assert (groups[order] == groups).all()
    assert sorted(order) == list(range(60))
    assert (order != np.arange(60)).any()


def test_labels_are_exchanged_between_groups_of_similar_size():
    sizes = np.repeat([2, 3, 50], 10)
    groups = np.repeat(np.arange(30), sizes)
    y = (np.arange(30) % 2)[groups]
    for seed in range(5):
        order = permutation_within(groups, y, np.random.default_rng(seed))
        source = groups[order]
        assert (sizes[source][sizes[groups] == 50] == 50).all()
        assert (sizes[source][sizes[groups] < 50] < 50).all()


def test_half_samples_and_permutations_of_a_model_respect_groups():
    X, y, groups = repeated_rows()
    model = GroupDiscoveryClassifier(5).fit(X, y, groups=groups)
    assert model.n_sample_groups_ == 30
    data = input_of(model, X, y, groups=groups)
    first, second = complementary(data, 0, 0, 3, stratified=True)
    assert ((first > 0) ^ (second > 0)).all()
    assert is_constant_within(first > 0, groups).all()
    assert is_constant_within(permute_labels(data, 0, 1).targets, groups).all()
    with pytest.raises(ValueError, match="Pass them with groups="):
        group_confidence(model, X, y)


def test_repeated_rows_do_not_predict_with_groups():
    X, y, groups = repeated_rows(40, 5, 200)
    blind = GroupDiscoveryClassifierCV(10, nested=True, random_state=0).fit(X, y)
    aware = GroupDiscoveryClassifierCV(10, nested=True, random_state=0).fit(X, y, groups=groups)
    assert blind.nested_scores_.mean() > 0.8
    assert aware.nested_scores_.mean() < 0.7


def test_regression_and_embedded_folds_accept_groups():
    X, y, groups = repeated_rows()
    target = y + 0.1 * X[:, 0]
    model = GroupDiscoveryRegressorCV(5, embedded_cv=3, random_state=0).fit(X, target, groups=groups)
    assert len(model.groups_)


def test_discover_uses_groups_and_reduces_folds():
    X, y, groups = repeated_rows(8, 12, 60)
    with pytest.warns(UserWarning, match="may be no better"):
        found = coterie.discover(X, y, groups=groups, n_pairs=3, n_permutations=1, max_features_to_select=5)
    assert found.model.cv == 4
    assert found.model.n_sample_groups_ == 8


def test_a_store_keeps_groups(tmp_path):
    X, y, groups = repeated_rows(6)
    names = [f"d{group}" for group in groups]
    store = open_store(write_store(tmp_path / "x.store", X, y, sample_groups=names))
    assert store.sample_groups.tolist() == names
    model = GroupDiscoveryClassifierCV(3, cv=3, random_state=0).fit(store)
    direct = GroupDiscoveryClassifierCV(3, cv=3, random_state=0).fit(X, y, groups=groups)
    assert model.n_sample_groups_ == 6
    assert model.best_score_ == direct.best_score_
