"""mRMR and FCBF, compared with naive implementations."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import mutual_info_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie.baselines import FCBFSelector, MRMRSelector
from coterie.baselines.relevance import greedy_order
from coterie.data import as_source
from tests import naive
from tests.conftest import grouped_matrix, sparse_counts


@parametrize_with_checks([MRMRSelector(1), MRMRSelector(1, scheme="miq"), FCBFSelector()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def bins_of(X, n_bins=10):
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return np.clip(((X - low) / width * n_bins).astype(int), 0, n_bins - 1)


def naive_mrmr(B, y, n_wanted, scheme):
    chosen = []
    relevance = [mutual_info_score(y, b) for b in B.T]
    while len(chosen) < n_wanted:
        values = {}
        for j in set(range(B.shape[1])) - set(chosen):
            redundancy = np.mean([mutual_info_score(B[:, s], B[:, j]) for s in chosen]) if chosen else None
            if redundancy is None:
                values[j] = relevance[j]
            else:
                values[j] = relevance[j] - redundancy if scheme == "mid" else relevance[j] / max(redundancy, 1e-10)
        chosen.append(max(sorted(values), key=values.get))
    return chosen


def naive_uncertainty(a, b):
    both = mutual_info_score(a, a) + mutual_info_score(b, b)
    return 2 * mutual_info_score(a, b) / both if both else 0.0


def naive_fcbf(X, y, threshold):
    B = bins_of(X)
    relevance = [naive_uncertainty(b, y) for b in B.T]
    left = [j for j in naive.order(X, relevance) if relevance[j] > max(threshold, 1e-10)]
    groups = {}
    while left:
        best = left.pop(0)
        groups[best] = {j for j in left if naive_uncertainty(B[:, best], B[:, j]) >= relevance[j] - 1e-10}
        left = [j for j in left if j not in groups[best]]
    return groups


def three_classes(y, rng):
    return np.array(["a", "b", "c"])[np.where(y > 0, 2, rng.integers(0, 2, len(y)))]


@pytest.mark.parametrize("scheme", ["mid", "miq"])
def test_mrmr_against_naive_code(rng, scheme):
    X, y = grouped_matrix(rng, n_features=15)
    y = three_classes(y, rng)
    model = MRMRSelector(6, scheme=scheme).fit(X, y)
    assert model.support_features_.tolist() == naive_mrmr(bins_of(X), y, 6, scheme)
    np.testing.assert_allclose(model.relevance_, [mutual_info_score(y, b) for b in bins_of(X).T], atol=1e-12)
    assert model.scores_[0] == model.relevance_.max()
    assert model.ranking_[model.support_features_].tolist() == [1, 2, 3, 4, 5, 6]
    assert (model.ranking_ == 7).sum() == 9


@pytest.mark.parametrize("scheme", ["mid", "miq"])
def test_mrmr_on_sparse_data(rng, scheme):
    X, y = sparse_counts(rng, n_features=25, density=0.3, n_copies=5)
    expected = naive_mrmr(bins_of(X), y, 5, scheme)
    for data in (X, sparse.csc_array(X), sparse.csr_matrix(X)):
        model = MRMRSelector(5, scheme=scheme, n_jobs=2).fit(data, y)
        assert model.support_features_.tolist() == expected
    assert model.transform(sparse.csc_array(X)).format == "csc"


@pytest.mark.parametrize("scheme", ["mid", "miq"])
def test_mrmr_on_the_example_of_the_grm_paper(scheme):
    """Scores 10, 9.8, 9.5, 1; the first feature is correlated with the second and the third: greedy selects 10 and 1."""
    redundancy = np.array([[10, 9, 9, 0.1], [9, 10, 0, 0], [9, 0, 10, 0], [0.1, 0, 0, 10]])
    order, scores = greedy_order(as_source(np.eye(4)), np.array([10, 9.8, 9.5, 1]), redundancy.__getitem__, 2, scheme)
    assert order.tolist() == [0, 3]
    np.testing.assert_allclose(scores, [10, 1 - 0.1 if scheme == "mid" else 1 / 0.1])


def test_fcbf_against_naive_code(rng):
    X, y = grouped_matrix(rng, n_samples=200, n_features=20)
    X[:, 7] = y  # maximum relevance
    X[:, 3] = -X[:, 7]
    y = three_classes(y, rng)
    for threshold in (0.0, 0.1):
        model = FCBFSelector(threshold=threshold).fit(X, y)
        expected = naive_fcbf(X, y, threshold)
        assert model.support_features_.tolist() == list(expected)
        assert {g.support: set(g.affiliated.tolist()) for g in model.groups_} == expected
        assert len(expected) > 1
    group = model.groups_[0]
    first, second = sorted((3, 7), key=lambda j: -naive.content(X)[j])  # one is the other with its sign changed
    assert (group.support, group.affiliated[0], group.correlation[0]) == (first, second, pytest.approx(1.0))
    np.testing.assert_array_equal(np.sort(group.correlation)[::-1], group.correlation)


def test_fcbf_on_sparse_data_and_with_a_number(rng):
    X, y = sparse_counts(rng, n_features=30, density=0.3)
    expected = naive_fcbf(X, y, 0.0)
    assert FCBFSelector(n_jobs=2).fit(sparse.csc_array(X), y).support_features_.tolist() == list(expected)
    two = FCBFSelector(2).fit(sparse.csr_array(X), y)
    assert two.support_features_.tolist() == list(expected)[:2]
    assert [set(g.affiliated.tolist()) for g in two.groups_] == list(expected.values())[:2]


def test_irrelevant_features():
    X, y = np.ones((6, 3)), [0, 1, 0, 1, 0, 1]
    for selector in (FCBFSelector(), MRMRSelector(2)):
        with pytest.raises(ValueError, match="All features of X are constant"):
            selector.fit(X, y)
    X[:, 1] = [0, 0, 1, 1, 2, 2]  # varies, but is independent of y
    np.testing.assert_allclose(FCBFSelector().fit(X, y).scores_, 0.0, atol=1e-15)
    np.testing.assert_allclose(MRMRSelector(2).fit(X, y).relevance_, 0.0, atol=1e-15)


def test_wrong_parameters(rng):
    X, y = grouped_matrix(rng, n_features=5)
    for wrong, match in [
        ({"n_features_to_select": "auto"}, "n_features_to_select='auto' must be"),
        ({"n_features_to_select": 2, "scheme": "mix"}, "scheme='mix' must be one of"),
        ({"n_features_to_select": 2, "n_bins": 1}, "n_bins=1"),
        ({"n_features_to_select": 2, "n_bins": 300}, "at most 255"),
    ]:
        with pytest.raises(ValueError, match=match):
            MRMRSelector(**wrong).fit(X, y)
    with pytest.raises(ValueError, match="threshold=2"):
        FCBFSelector(threshold=2).fit(X, y)
    model = MRMRSelector(2).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((4, 3), np.nan), [0, 0, 1, 1])
    assert model.n_features_in_ == 5  # a failed fit changes nothing
