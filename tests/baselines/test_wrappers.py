"""Best individual features and sequential floating search."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from coterie.baselines import BestIndividualSelector, FloatingSelector
from tests import naive
from tests.conftest import grouped_matrix


@parametrize_with_checks(
    [
        BestIndividualSelector("ridge", n_features_to_select=1),
        FloatingSelector("ridge", n_features_to_select=1, look_ahead=1),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_best_individual_features(rng):
    X, y = grouped_matrix(rng, n_features=15)
    model = BestIndividualSelector(n_features_to_select=4).fit(X, y)
    with threadpool_limits(1):
        expected = [cross_val_score(KNeighborsClassifier(3, algorithm="brute"), X[:, [j]], y, cv=3).mean() for j in range(15)]
    np.testing.assert_array_equal(model.scores_, expected)
    order = naive.order(X, expected)
    assert len(set(expected)) < 15  # some are tied
    assert model.support_features_.tolist() == order[:4]
    assert np.argsort(model.ranking_).tolist() == order
    assert model.transform(sparse.csc_array(X)).shape == (60, 4)
    threads = BestIndividualSelector(n_features_to_select=4, n_jobs=3).fit(X, y)
    np.testing.assert_array_equal(threads.scores_, expected)


class Table:
    """Criterion with an arbitrary value per subset. The first row of X contains the indices of the columns."""

    def __init__(self, values):
        self.values = values

    def __call__(self, X, y):
        return self.values[frozenset(X[0].astype(int).tolist())]


def table_of(seed, n_features, n_levels):
    rng = np.random.default_rng(seed)
    subsets = [frozenset(s) for size in range(1, n_features + 1) for s in combinations(range(n_features), size)]
    return {subset: float(rng.integers(0, n_levels)) / n_levels + 0.2 * len(subset) for subset in subsets}


def naive_floating(J, X_, largest):
    """Pudil's algorithm as in the paper, with the best subset of each size."""
    m, content = X_.shape[1], naive.content(X_)
    best, X = {}, frozenset()
    while len(X) < largest:
        f = max((f for f in range(m) if f not in X), key=lambda f: (J[X | {f}], content[f]))
        k = len(X) + 1
        if k not in best or J[X | {f}] > J[best[k]]:
            best[k] = X | {f}
        X = best[k]
        while len(X) > 2:
            f = max(X, key=lambda f: (J[X - {f}], content[f]))
            if not J[X - {f}] > J[best[len(X) - 1]]:
                break
            X = X - {f}
            best[len(X)] = X
    return best


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(2, 50), st.integers(0, 3))
@settings(max_examples=60)
def test_floating_search_against_naive_code(seed, n_features, n_levels, look_ahead):
    J = table_of(seed, n_features, n_levels)
    X = np.arange(n_features) + 10.0 * np.arange(6)[:, None]
    wanted = max(1, n_features // 2)
    model = FloatingSelector(Table(J), n_features_to_select=wanted, look_ahead=look_ahead).fit(X, np.arange(6))
    expected = naive_floating(J, X, min(n_features, wanted + look_ahead))
    assert {size: frozenset(subset.features.tolist()) for size, subset in model.subsets_.items()} == expected
    assert frozenset(model.support_features_.tolist()) == expected[wanted]
    assert model.value_ == J[expected[wanted]]
    forward, content = frozenset(), naive.content(X)  # plain forward search is never better
    for size in range(1, wanted + 1):
        others = [f for f in range(n_features) if f not in forward]
        forward |= {max(others, key=lambda f: (J[forward | {f}], content[f]))}
        assert model.subsets_[size].value >= J[forward]


def test_floating_search_drops_features():
    """The best pair does not contain the best feature: forward search misses it, floating search does not."""
    value = {frozenset(s): 0.1 * len(s) for size in (1, 2, 3) for s in combinations(range(3), size)}
    value[frozenset({0})] = 0.5
    value[frozenset({0, 1})] = 0.6
    value[frozenset({1, 2})] = 0.9
    value[frozenset({0, 1, 2})] = 0.95
    X = np.arange(3) + 10.0 * np.arange(4)[:, None]
    assert FloatingSelector(Table(value), n_features_to_select=2, look_ahead=0).fit(
        X, range(4)
    ).support_features_.tolist() == [0, 1]
    model = FloatingSelector(Table(value), n_features_to_select=2, look_ahead=1).fit(X, range(4))
    assert model.support_features_.tolist() == [1, 2]
    assert model.n_evaluations_ >= 3 + 2 + 1 + 3


def test_floating_workers_and_time(rng):
    X, y = grouped_matrix(rng, n_features=10)
    model = FloatingSelector(n_features_to_select=3, look_ahead=2).fit(X, y)
    other = FloatingSelector(n_features_to_select=3, look_ahead=2, n_jobs=3).fit(X, y)
    assert [s.features.tolist() for s in model.subsets_.values()] == [s.features.tolist() for s in other.subsets_.values()]
    short = FloatingSelector(n_features_to_select=3, look_ahead=7, max_seconds=1e-6).fit(X, y)
    assert max(short.subsets_) == 3
    assert short.get_support().sum() == 3


def test_wrong_parameters(rng):
    X, y = grouped_matrix(rng)
    with pytest.raises(ValueError, match="look_ahead=-1 must be a whole number"):
        FloatingSelector(look_ahead=-1).fit(X, y)
    with pytest.raises(ValueError, match="max_seconds=0 must be"):
        FloatingSelector(max_seconds=0).fit(X, y)
    with pytest.raises(ValueError, match="returned nan for the features"):
        FloatingSelector(lambda X, y: np.nan, n_features_to_select=2).fit(X, y)
    with pytest.raises(ValueError, match=r"returned nan for the features \[0\]"):
        BestIndividualSelector(lambda X, y: np.nan).fit(X, y)


def test_floating_selector_ranks_all_features(rng):
    X, y = grouped_matrix(rng, n_features=12)
    model = FloatingSelector("ridge", n_features_to_select=4).fit(X, y)
    assert sorted(model.ranking_) == list(range(1, 13))
    assert set(np.flatnonzero(model.ranking_ <= 4)) == set(model.support_features_)
    held = np.array([sum(f in subset.features for subset in model.subsets_.values()) for f in range(12)])
    for part in (model.support_features_, np.setdiff1d(np.arange(12), model.support_features_)):
        order = part[np.argsort(model.ranking_[part])]
        assert (np.diff(held[order]) <= 0).all()
