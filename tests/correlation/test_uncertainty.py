"""Symmetrical uncertainty compared with naive code, dense and sparse, pruned and not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from coterie import GroupDiscoveryClassifier
from coterie.correlation.uncertainty import SymmetricalUncertainty
from coterie.data import FeatureView, as_source
from tests.conftest import grouped_matrix, sparse_counts


def naive_bins(x, n_bins):
    low, high = x.min(), x.max()
    return np.zeros(len(x), int) if high == low else np.minimum(((x - low) / (high - low) * n_bins).astype(int), n_bins - 1)


def naive_uncertainty(X, weight=None, n_bins=10):
    """Return all pairs, computed one by one."""
    weight = np.ones(len(X)) if weight is None else weight
    X, weight = X[weight > 0], weight[weight > 0]
    bins = [naive_bins(X[:, j], n_bins) for j in range(X.shape[1])]

    def entropy(*numbers):
        table = np.zeros((n_bins,) * len(numbers))
        np.add.at(table, numbers, weight / weight.sum())
        return -(table[table > 0] * np.log(table[table > 0])).sum()

    m = X.shape[1]
    single = [entropy(own) for own in bins]
    U = np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            both = single[i] + single[j]
            if both > 1e-12:  # Rounding of weights that sum to 1 can leave an entropy just above 0 in a single bin.
                U[i, j] = 2 * (both - entropy(bins[i], bins[j])) / both
    return U


def measure(X, weight=None, **options):
    n_threads = options.pop("n_threads", 1)
    return SymmetricalUncertainty(FeatureView.of(as_source(X), weight, n_threads=n_threads), **options)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["dense", "counts", "binary", "int8"]),
    n_samples=st.sampled_from([40, 64, 131, 300]),  # less than one 64-bit word, one, three, and more than four
    n_bins=st.sampled_from([2, 10, 33]),
    threshold=st.sampled_from([0.2, 0.6, 0.9, 1.0]),
    weights=st.sampled_from(["none", "a fold", "repeats", "fractions"]),
)
def test_strong_pairs_are_those_of_brute_force(seed, kind, n_samples, n_bins, threshold, weights):
    rng = np.random.default_rng(seed)
    if kind == "dense":
        X, _ = grouped_matrix(rng, n_samples=n_samples, n_features=15, noise=0.2)
    else:
        X, _ = sparse_counts(rng, n_samples=n_samples, n_features=31, density=0.3)
        X = X[:, :15] > 0 if kind == "binary" else X[:, :15]
        X[:, 3] = 1 - X[:, 5]
        X[:, 9] = X[:, 11] * (X[:, 12] == 0)  # exclusive
    X[:, 7] = X[0, 7]
    X = X.astype(np.int8) if kind == "int8" else X.astype(float)
    top = {"none": 2, "a fold": 2, "repeats": 4, "fractions": 3}[weights]
    weight = rng.integers(0, top, n_samples) * (0.3 if weights == "fractions" else 1.0)
    weight = None if weights == "none" else weight
    U = naive_uncertainty(X, weight, n_bins)
    varying = np.flatnonzero(np.diag(U) > 0)
    expected = {(int(j), k) for j in varying for k, z in enumerate(varying) if U[j, z] >= threshold - 1e-9}
    for matrix in (X, np.asfortranarray(X), sparse.csc_array(X)):
        for prune in (True, False):
            su = measure(matrix, weight, n_bins=n_bins, prune=prune, n_threads=2)
            feature, position, value = su.strong(varying, threshold)
            assert (np.diff(feature * len(varying) + position) > 0).all()
            found = set(zip(feature.tolist(), position.tolist(), strict=True))
            assert found == expected or all(abs(U[j, varying[k]] - threshold) < 1e-8 for j, k in found ^ expected)
            np.testing.assert_allclose(value, U[feature, varying[position]], atol=1e-9)
        np.testing.assert_allclose(su.between(varying[:4], varying), U[np.ix_(varying[:4], varying)], atol=1e-9)


@pytest.mark.parametrize("is_sparse", [True, False])
def test_results_are_bit_identical_for_any_order_threads_batch_and_table(rng, monkeypatch, is_sparse):
    X, _ = sparse_counts(rng, n_samples=150, n_features=45, density=0.3)
    X[:, 20:30] = np.round(X[:, :10] + rng.random((150, 10)), 1)
    X = X[:, np.ptp(X, axis=0) > 0]
    make = sparse.csc_array if is_sparse else np.asarray
    everyone, order = np.arange(X.shape[1]), rng.permutation(X.shape[1])
    U = measure(make(X)).between(everyone, everyone)
    permuted = measure(make(X[:, order]), n_threads=2)
    assert (permuted.between(everyone, everyone) == U[np.ix_(order, order)]).all()
    feature, position, value = permuted.strong(everyone[:9], 0.1)
    assert (value == U[order[feature], order[position]]).all()
    alone = [measure(make(X)).between(everyone, everyone[j : j + 1])[:, 0] for j in range(3)]
    assert (U[:, :3] == np.array(alone).T).all()
    monkeypatch.setattr("coterie.correlation.uncertainty._MAX_TABLE_COUNT", 20)
    assert (measure(make(X)).between(everyone, everyone) == U).all()
    assert (measure(make(X), np.ones(150)).between(everyone, everyone) == U).all()


def test_exclusive_features_need_no_histogram(rng):
    X = np.zeros((200, 60))
    for j in range(60):
        X[3 * j : 3 * j + 3, j] = 1.0
    X[:100, 58], X[100:, 58], X[:100, 59], X[100:, 59] = 1, 0, 0, 1  # Exclusive, and each determines the other.
    su = measure(sparse.csc_array(X))
    feature, position, value = su.strong(np.array([2, 58]), 0.6)
    assert list(zip(feature.tolist(), position.tolist(), strict=True)) == [(2, 0), (58, 1), (59, 1)]
    assert value.tolist() == [1.0, 1.0, 1.0]
    assert su.n_evaluated == 3


def test_entropy_bound_prunes(rng):
    X, _ = sparse_counts(rng, n_samples=200, n_features=400, density=0.02)
    X[:, :3] = rng.random((200, 3))
    pruned, whole = measure(X), measure(X, prune=False)
    for su in (pruned, whole):
        su.strong(np.arange(3), 0.6)
    assert whole.n_evaluated == 3 * int((whole.entropy > 0).sum())
    assert pruned.n_evaluated < 0.2 * whole.n_evaluated


@pytest.mark.parametrize("is_sparse", [True, False])
def test_classifier_finds_nonlinear_copies(rng, is_sparse):
    n = 400
    X = np.round(rng.random((n, 30)), 3)
    X[:, 20] = (X[:, 4] - 0.5) ** 2  # No linear correlation, but half of the information.
    X[:, 21] = -np.exp(X[:, 4])
    y = np.where(X[:, 4] + 0.2 * X[:, 9] > 0.6, "yes", "no")
    make = sparse.csc_array if is_sparse else np.asarray
    options = {"n_features_to_select": 2, "n_features_per_round": 1, "standardize": True}
    nonlinear = GroupDiscoveryClassifier(correlation="su", threshold=0.45, **options).fit(make(X), y)
    linear = GroupDiscoveryClassifier(threshold=0.45, **options).fit(make(X), y)
    assert set(nonlinear.groups_[0].members.tolist()) == {4, 20, 21}
    assert set(linear.groups_[0].members.tolist()) == {4, 21}
    U = naive_uncertainty(X)
    for group in nonlinear.groups_:
        np.testing.assert_allclose(group.correlation, U[group.support, group.affiliated], atol=1e-9)
        assert set(np.flatnonzero(U[group.support] >= 0.45)) >= set(group.members.tolist())
    ranked = GroupDiscoveryClassifier(correlation="su", threshold=0.45, affiliates="ranked", **options).fit(make(X), y)
    assert ranked.support_features_.tolist() == nonlinear.support_features_.tolist()
    order = rng.permutation(30)
    permuted = GroupDiscoveryClassifier(correlation="su", threshold=0.45, n_jobs=2, **options).fit(make(X[:, order]), y)
    assert order[permuted.support_features_].tolist() == nonlinear.support_features_.tolist()


def test_no_others_and_columns_without_entries():
    view = FeatureView.of(as_source(sparse.csc_array(np.eye(6, 4))))
    measure = SymmetricalUncertainty(view)
    assert measure.between(np.array([0, 1]), np.empty(0, dtype=np.int64)).shape == (2, 0)
    empty = SymmetricalUncertainty(FeatureView.of(as_source(sparse.csc_array((6, 4)))))
    assert empty.between(np.arange(2), np.arange(2, 4)).tolist() == [[0.0, 0.0], [0.0, 0.0]]
