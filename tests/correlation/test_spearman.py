"""Rank correlations compared with SciPy: types, ties, weights, sparse columns, blocks, and estimators."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, GroupDiscoveryRegressor
from coterie.correlation import SpearmanCorrelation, spearman
from coterie.data import FeatureView, as_source, source
from tests import naive
from tests.conftest import grouped_matrix, sparse_counts


def truth(X, weight=None):
    """Return all pairs by SciPy. A sample of weight 2 is repeated; constant columns have 0."""
    A = np.asarray(X, dtype=np.float64)
    A = A if weight is None else np.repeat(A, np.asarray(weight, dtype=int), axis=0)
    varying = np.flatnonzero(np.ptp(A, axis=0) > 0)
    result = np.zeros((A.shape[1], A.shape[1]))
    if len(varying) > 2:  # For two columns SciPy returns a number.
        result[np.ix_(varying, varying)] = stats.spearmanr(A[:, varying]).statistic
    elif len(varying):
        i, j = varying[[0, -1]]
        result[i, i] = result[j, j] = 1.0
        result[i, j] = result[j, i] = stats.spearmanr(A[:, i], A[:, j]).statistic
    return result


def check(X, weight=None, threshold=0.4, is_sparse=False, expected=None):
    form = sparse.csc_array(X) if is_sparse else X
    view = FeatureView.of(as_source(form), weight, n_threads=2)
    R = truth(X, weight) if expected is None else expected
    varying = np.flatnonzero(view.moments.norm > 0)
    assert varying.tolist() == np.flatnonzero(np.diag(R) > 0.5).tolist()
    for prune in (True, False):
        measure = SpearmanCorrelation(view, prune=prune)
        np.testing.assert_allclose(measure.within(varying), R[np.ix_(varying, varying)], atol=1e-11)
        some, others = varying[::2], varying[::-1][:7]
        np.testing.assert_allclose(measure.between(some, others), R[np.ix_(some, others)], atol=1e-11)
        if not len(others) or (np.abs(np.abs(R) - threshold) < 1e-8).any():
            continue
        feature, position, value = measure.strong(others, threshold)
        rows, columns = np.nonzero(np.abs(R[:, others]) >= threshold)
        assert (feature.tolist(), position.tolist()) == (rows.tolist(), columns.tolist())
        np.testing.assert_allclose(value, R[feature, others[position]], atol=1e-11)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.int16, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("weighting", ["none", "whole numbers", "fold"])
def test_equal_to_scipy_in_every_type(rng, kind, weighting):
    X, _ = grouped_matrix(rng, 40, 12)
    X = np.round(3 * X)
    X = (X > 1 if kind is bool else np.abs(X) if kind is np.uint8 else X).astype(kind)
    X[:, 4] = 1
    weight = {"none": None, "whole numbers": rng.integers(0, 4, 40) * 1.0, "fold": (rng.random(40) < 0.7) * 1.0}[weighting]
    for is_sparse in (False, True):
        check(X, weight, is_sparse=is_sparse)
    check(np.asfortranarray(X), weight)


@given(
    seed=st.integers(0, 10**6), density=st.sampled_from([0.0, 0.1, 0.5, 1.0]), largest=st.integers(1, 4), signed=st.booleans(),
    weighted=st.booleans(), threshold=st.sampled_from([0.25, 0.5, 0.75, 0.95]),
)  # fmt: skip
def test_sparse_columns_with_ties(seed, density, largest, signed, weighted, threshold):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(3, 20), 8
    X = rng.integers(-largest if signed else 0, largest + 1, (n, m)) * (rng.random((n, m)) < density)
    X[:, 1] = -X[:, 0]
    weight = rng.integers(0, 3, n) * 1.0 if weighted else None
    if weight is not None:
        weight[:2] = 1
    for is_sparse in (False, True):
        check(X.astype(np.float64), weight, threshold, is_sparse)


def test_weights_of_any_size_are_shares(rng):
    """Ten times the weights, or fractional weights, give the same ranks up to scale."""
    X, _ = sparse_counts(rng, n_samples=30, n_features=40)
    weight = rng.integers(0, 4, 30).astype(float)
    R = truth(X, weight)
    for is_sparse in (False, True):
        check(X, weight / 7, is_sparse=is_sparse, expected=R)
        check(X, weight * 1e9, is_sparse=is_sparse, expected=R)


def test_explicit_zeros_are_zeros(rng):
    X, _ = sparse_counts(rng, n_samples=30, n_features=40)
    S = sparse.csc_array(X)
    S.data[rng.random(S.nnz) < 0.4] = 0
    measure, dense = (SpearmanCorrelation(FeatureView.of(as_source(A))) for A in (S, S.toarray()))
    varying = np.flatnonzero(dense.view.moments.norm > 0)
    np.testing.assert_allclose(measure.within(varying), dense.within(varying), atol=1e-12)
    assert measure.strong(varying, 0.3).feature.tolist() == dense.strong(varying, 0.3).feature.tolist()


@pytest.mark.parametrize("is_sparse", [False, True])
def test_blocks_and_threads_do_not_matter(rng, monkeypatch, is_sparse):
    X, _ = sparse_counts(rng, n_samples=40, n_features=90)
    form = sparse.csc_array(X) if is_sparse else X
    varying = np.flatnonzero(naive.norm(X) > 0)
    R, results = truth(X), []
    for most, columns, features, n_threads in ((1 << 22, 2048, 1024, 1), (1200, 30, 7, 2), (1, 30, 1, 3)):
        monkeypatch.setattr(spearman, "_MAX_RANKS", most)
        monkeypatch.setattr(spearman, "_MAX_COLUMNS", columns)
        monkeypatch.setattr(source, "_BLOCK_FEATURES", features)
        measure = SpearmanCorrelation(FeatureView.of(as_source(form), n_threads=n_threads))
        pairs = measure.strong(varying[:20], 0.3)
        results.append((pairs.feature.tolist(), pairs.position.tolist(), pairs.correlation.tolist()))
        np.testing.assert_allclose(
            measure.between(varying[:50], varying[9:]), R[np.ix_(varying[:50], varying[9:])], atol=1e-11
        )
    assert results[0] == results[1] == results[2]


def test_the_size_bound_prunes_ranks(rng):
    X, _ = sparse_counts(rng, n_samples=200, n_features=400, density=0.02)
    X[:, :3] = rng.random((200, 3))
    counts = []
    for prune in (True, False):
        measure = SpearmanCorrelation(FeatureView.of(as_source(sparse.csc_array(X))), prune=prune)
        measure.strong(np.arange(3), 0.6)
        counts.append(measure.n_evaluated)
    assert counts[0] < 0.2 * counts[1]


@pytest.mark.parametrize("affiliates", ["complete", "ranked"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_estimators_see_monotone_copies(rng, is_sparse, affiliates):
    X = rng.exponential(1.0, (150, 30)) * (rng.random((150, 30)) < (0.3 if is_sparse else 1))
    X[:, 20], X[:, 21] = np.expm1(4 * X[:, 4]), -(X[:, 4] ** 0.2)  # far from linear
    y = np.where(X[:, 4] + 0.3 * X[:, 9] > np.median(X[:, 4] + 0.3 * X[:, 9]), "yes", "no")
    form = sparse.csc_array(X) if is_sparse else X
    options = {"threshold": 0.9, "affiliates": affiliates, "standardize": True, "n_features_per_round": 4}
    for model in (
        GroupDiscoveryClassifier(12, correlation="spearman", **options),
        GroupDiscoveryClassifier(8, correlation="spearman", cv=3, random_state=0, **options),
    ):
        model.fit(form, y)
        home = next(group for group in model.groups_ if 4 in group.members)
        members = set(home.members.tolist())
        assert members == {4, 20, 21} if affiliates == "complete" else {4} < members <= {4, 20, 21}
        np.testing.assert_allclose(np.abs(home.correlation), 1.0, atol=1e-12)
    linear = GroupDiscoveryClassifier(12, **options).fit(form, y)
    assert all(len(group) < 3 for group in linear.groups_)
    order = rng.permutation(30)
    permuted = GroupDiscoveryClassifier(12, correlation="spearman", n_jobs=2, **options).fit(form[:, order], y)
    assert (
        order[permuted.support_features_].tolist()
        == GroupDiscoveryClassifier(12, correlation="spearman", **options).fit(form, y).support_features_.tolist()
    )


def test_other_estimators_accept_it(rng):
    X, y = grouped_matrix(rng, 60, 30)
    R = truth(X)
    validated = GroupDiscoveryClassifierCV(4, Cs=2, cv=2, correlation="spearman", threshold=0.6, random_state=0).fit(X, y)
    regressor = GroupDiscoveryRegressor(4, correlation="spearman", threshold=0.6, representative="medoid").fit(X, 1.0 * y)
    for model in (validated, regressor):
        for group in model.groups_:
            np.testing.assert_allclose(group.correlation, R[group.support, group.affiliated], atol=1e-11)
            assert (np.abs(group.correlation) >= 0.6).all()
