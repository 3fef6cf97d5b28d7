"""Data frames without preparation: columns that are not numeric, missing values, feature-engine's attributes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.impute import SimpleImputer
from sklearn.utils.estimator_checks import parametrize_with_checks

import coterie
from coterie import CorrelationGroups
from coterie.correlation.missing import pairwise_pearson, pairwise_spearman
from tests.correlation.test_correlation_groups import brute_force, found_groups


@parametrize_with_checks(
    [CorrelationGroups(missing_values="ignore"), CorrelationGroups(missing_values="median", remainder="drop")]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def table(rng, n=80):
    a, b, c = rng.standard_normal((3, n))
    return pd.DataFrame(
        {
            "a": a,
            "city": np.where(b > 0, "Ulm", "Bonn"),
            "a too": a + 0.1 * c,
            "when": pd.date_range("2026-01-01", periods=n),
            "b": b,
            "kind": pd.Categorical(np.where(c > 0, "x", "y")),
            "b too": -b + 0.1 * c,
            "odd": np.arange(n) % 2 == 1,
        }
    )


@pytest.fixture
def messy():
    return table(np.random.default_rng(0))


@pytest.mark.parametrize("make", [lambda X: X, lambda X: pl.DataFrame(X.assign(kind=X["kind"].astype(str)).to_dict("list"))])
def test_a_messy_frame_needs_no_preparation(messy, make):
    X = make(messy)
    model = CorrelationGroups(0.8).fit(X)
    assert sorted(map(sorted, model.correlated_feature_sets_)) == [["a", "a too"], ["b", "b too"]]
    assert model.variables_ == ["a", "a too", "b", "b too", "odd"]
    assert len(model.features_to_drop_) == 2
    kept = [name for name in messy.columns if name not in model.features_to_drop_]
    small = model.transform(X)
    assert type(small) is type(X)  # An array could not keep the types.
    assert list(small.columns) == kept == model.get_feature_names_out().tolist()
    assert {"city", "when", "kind", "odd"} <= set(kept)
    assert small["when"].dtype == X["when"].dtype
    assert model.n_features_in_ == 8
    assert model.feature_names_in_.tolist() == list(messy.columns)
    assert [messy.columns[j] for j in model.other_features_] == ["city", "when", "kind"]
    shuffled = X[list(messy.columns[::-1])]
    assert list(model.transform(shuffled).columns) == kept


def test_remainder_is_dropped_or_raises(messy):
    model = CorrelationGroups(0.8, remainder="drop").fit(messy)
    assert model.get_feature_names_out().tolist() == [c for c in messy if c not in model.features_to_drop_]
    assert {"city", "when", "kind"} <= set(model.features_to_drop_)
    small = model.transform(messy)
    assert isinstance(small, np.ndarray)
    assert small.dtype.kind == "f"
    numbers = messy[model.variables_]
    assert found_groups(CorrelationGroups(0.8).fit(numbers)).keys() == {
        model.variables_.index(messy.columns[j]) for j in model.support_features_
    }
    with pytest.raises(
        ValueError, match=r"remainder='refuse', .*are not numeric: 'city' \(object\), 'when' \(datetime64\[ns\]\), 'kind'"
    ):
        CorrelationGroups(remainder="refuse").fit(messy)
    with pytest.raises(ValueError, match="remainder='keep' must be one of 'passthrough', 'drop', 'refuse'"):
        CorrelationGroups(remainder="keep").fit(messy)
    with pytest.raises(ValueError, match="no numeric columns to group"):
        CorrelationGroups().fit(messy[["city", "kind"]])


def test_variables(messy):
    model = CorrelationGroups(0.8, variables=["a too", "a"]).fit(messy)
    assert model.variables_ == ["a", "a too"]
    assert len(model.features_to_drop_) == 1
    assert {"b", "b too"} <= set(model.get_feature_names_out())
    numbers = messy.select_dtypes("float").to_numpy()
    for X in (numbers, sparse.csr_array(numbers), coterie.as_source(numbers), numbers.tolist()):
        part = CorrelationGroups(0.8, variables=[2, 3]).fit(X)
        assert part.other_features_.tolist() == [0, 1]
        assert part.transform(X).shape == (80, 3)
    for variables, message in (
        (["city"], r"variables has 'city' \(object\), whose values are not numbers"),
        (["town"], "variables contains 'town', which is not a feature of X"),
        ([], "variables has no features"),
    ):
        with pytest.raises(ValueError, match=message):
            CorrelationGroups(variables=variables).fit(messy)


def test_fixed_features_and_representatives_of_a_mixed_table(messy):
    for fixed in ("b too", 6):
        model = CorrelationGroups(0.8, fixed_features=[fixed]).fit(messy)
        assert model.groups_[0].labels == ["b too", "b"]
        assert model.groups_[0].support == 6
    with pytest.raises(ValueError, match="fixed_features has feature 'city', which is not grouped"):
        CorrelationGroups(fixed_features=["city"]).fit(messy)
    by_array = CorrelationGroups(0.8, representative=np.arange(8)).fit(messy)
    assert {"a too", "b too"} <= set(by_array.get_feature_names_out())
    by_function = CorrelationGroups(0.8, representative=lambda X: X.nunique()).fit(messy)  # Called with the grouped columns.
    assert by_function.scores_[7] == 2
    with pytest.raises(ValueError, match=r"scores of shape \(3,\), but X has 8 features"):
        CorrelationGroups(representative=np.ones(3)).fit(messy)


def test_a_model_of_a_mixed_table_can_be_saved(messy, tmp_path):
    model = CorrelationGroups(0.8, missing_values="ignore").fit(messy)
    coterie.save(model, tmp_path / "model")
    again = coterie.load(tmp_path / "model")
    pd.testing.assert_frame_equal(again.transform(messy), model.transform(messy))
    assert again.features_to_drop_ == model.features_to_drop_


# Missing values


def slow_correlation(x, y, weight, rank):
    """Return the correlation over the common samples, each repeated according to its weight."""
    common = ~np.isnan(x) & ~np.isnan(y) & (weight > 0)
    if common.sum() < 3:
        return 0.0
    x, y = np.repeat(x[common], weight[common]), np.repeat(y[common], weight[common])
    x, y = (stats.rankdata(v) if rank else v for v in (x, y))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


@st.composite
def tables_with_missing_values(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(st.integers(3, 14)), draw(st.integers(2, 7))
    X = rng.standard_normal((n, m)) if draw(st.booleans()) else rng.integers(-1, 3, (n, m)).astype(float)
    X = X + draw(st.sampled_from([0.0, 1e6]))
    X[:, -1] = X[:, 0] + 0.2 * rng.standard_normal(n)
    X[rng.random((n, m)) < draw(st.sampled_from([0.0, 0.2, 0.6]))] = np.nan
    return X, rng.integers(0, 3, n) if draw(st.booleans()) else np.ones(n, dtype=int)


@settings(max_examples=120, deadline=None)
@given(data=tables_with_missing_values(), rank=st.booleans())
def test_pairwise_complete_correlations_equal_slow_ones(data, rank):
    X, weight = data
    function = pairwise_spearman if rank else pairwise_pearson
    expected = [[slow_correlation(x, y, weight, rank) for y in X.T] for x in X.T]
    np.testing.assert_allclose(function(X, X, weight.astype(float)), expected, atol=1e-7)
    np.testing.assert_allclose(function(X[:, :1], X, weight.astype(float)), expected[:1], atol=1e-7)


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_pairwise_complete_correlations_equal_those_of_pandas(method):
    X = np.random.default_rng(0).standard_normal((50, 8)).cumsum(axis=1)
    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    function = {"pearson": pairwise_pearson, "spearman": pairwise_spearman}[method]
    np.testing.assert_allclose(function(X, X), pd.DataFrame(X).corr(method), atol=1e-12)


def test_a_column_that_is_constant_where_another_is_known():
    """Its variation over the common samples is rounding only, although it is large elsewhere."""
    x = np.concatenate([np.full(10, 0.1), np.linspace(0, 1e6, 10)])
    y = np.concatenate([np.arange(10.0), np.full(10, np.nan)])
    assert pairwise_pearson(x[:, None], y[:, None])[0, 0] == 0.0
    x[:10] += 1e-4 * np.arange(10)  # a small but real variation
    np.testing.assert_allclose(pairwise_pearson(x[:, None], y[:, None])[0, 0], 1.0, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(data=tables_with_missing_values(), threshold=st.sampled_from([0.5, 0.8]), rank=st.booleans())
def test_groups_of_tables_with_missing_values(data, threshold, rank):
    """Groups equal those of the greedy walk over the matrix of all pairwise-complete correlations."""
    X, weight = data
    C = np.array([[slow_correlation(x, y, weight, rank) for y in X.T] for x in X.T])
    varying = np.diag(C) != 0
    if not varying.any() or np.abs(np.abs(C) - threshold).min() < 1e-6:
        return
    scores = np.random.default_rng(0).permutation(X.shape[1]).astype(float)
    model = CorrelationGroups(
        threshold, representative=scores, missing_values="ignore", correlation="spearman" if rank else "pearson"
    )
    groups = found_groups(model.fit(X, sample_weight=weight))
    assert groups == brute_force(C, np.argsort(-scores), [], threshold)


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array, lambda X: pd.DataFrame(X).convert_dtypes()])
@pytest.mark.parametrize("correlation", ["pearson", "spearman"])
def test_formats_and_orders_of_columns_agree(make, correlation):
    rng = np.random.default_rng(4)
    X = np.repeat(rng.standard_normal((60, 5)), 3, axis=1) + 0.3 * rng.standard_normal((60, 15))
    X[rng.random(X.shape) < 0.15] = np.nan
    X[:, 7] = X[:, 8]
    model = CorrelationGroups(0.8, missing_values="ignore", correlation=correlation)
    expected = {frozenset(s) for s in model.fit(X).correlated_feature_sets_}
    assert len(expected) >= 4
    assert {frozenset(map(int, s)) for s in model.fit(make(X)).correlated_feature_sets_} == expected
    turned = model.fit(np.ascontiguousarray(X[:, ::-1]))
    assert {frozenset(14 - j for j in s) for s in turned.correlated_feature_sets_} == expected
    assert np.isnan(model.transform(np.ascontiguousarray(X[:, ::-1]))).any()  # Values are not imputed.


def test_without_missing_values_nothing_changes():
    X = np.random.default_rng(0).standard_normal((40, 6)).cumsum(axis=1)
    plain = CorrelationGroups(0.8).fit(X)
    for missing in ("ignore", "mean", "median", "most_frequent"):
        assert CorrelationGroups(0.8, missing_values=missing).fit(X).groups_.to_json() == plain.groups_.to_json()


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_imputed(strategy, make):
    X = np.random.default_rng(0).integers(0, 4, (60, 6)).astype(float).cumsum(axis=1)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    filled = make(SimpleImputer(strategy=strategy).fit_transform(X))
    model = CorrelationGroups(0.6, missing_values=strategy).fit(make(X))
    assert found_groups(model) == found_groups(CorrelationGroups(0.6).fit(filled))
    assert model.transform(make(X)).shape == (60, len(model.groups_))


def test_missing_values_that_raise():
    X = np.random.default_rng(0).standard_normal((20, 4))
    X[3, 2] = np.nan
    with pytest.raises(
        ValueError, match=r"1 NaN or infinite value\(s\) in 1 feature\(s\)\. The first is in sample 3 of feature 2"
    ):
        CorrelationGroups().fit(X)
    with pytest.raises(
        ValueError, match="missing_values='skip' must be one of 'raise', 'ignore', 'mean', 'median', 'most_frequent'"
    ):
        CorrelationGroups(missing_values="skip").fit(X)
    with pytest.raises(ValueError, match="missing_values='ignore' requires correlation='pearson' or 'spearman'"):
        CorrelationGroups(missing_values="ignore", correlation="su").fit(X)
    X[5, 1] = np.inf
    with pytest.raises(ValueError, match=r"1 infinite value\(s\), first in feature 1"):
        CorrelationGroups(missing_values="ignore").fit(X)
    with pytest.raises(ValueError, match="All features of X are constant"):
        CorrelationGroups(missing_values="ignore").fit(np.full((5, 2), np.nan))


def test_names_given_at_fit():
    X = sparse.csr_array([[1.0, 0.0, 2.0], [0.0, 2.0, 0.1], [1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])
    model = CorrelationGroups(0.8).fit(X, feature_names=["one", "two", "three"])
    assert set().union(*model.correlated_feature_sets_) <= {"one", "two", "three"}
