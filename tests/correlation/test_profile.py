"""Counts of all correlations, compared with the matrix of all correlations, in every layout."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from coterie import CorrelationProfile, GroupDiscoveryClassifier, correlation_profile
from coterie.correlation import profile as profiles
from coterie.correlation import tiles
from coterie.data import as_source
from tests import naive
from tests.conftest import grouped_matrix, sparse_counts


def brute_force(X, edges):
    """Return counts by bin from the full matrix. A correlation within 1e-10 of an edge counts as equal to it."""
    X = np.asarray(X, dtype=np.float64)
    X = X[:, np.ptp(X, axis=0) > 0]
    r = np.abs(naive.correlation(X)[np.triu_indices(X.shape[1], 1)])
    over = [len(r), *(np.count_nonzero(r >= edge - 1e-10) for edge in edges[1:-1]), 0]
    return -np.diff(over)


@pytest.fixture(params=["dense way", "sparse way"])
def way(request, monkeypatch):
    """Force each of the two algorithms for sparse data."""
    monkeypatch.setattr(tiles, "dense_cost", lambda n, m: 0.0 if request.param == "dense way" else np.inf)
    return request.param


@pytest.mark.parametrize("bins", [1, 2, 10, 37, [0, 0.25, 0.5, 0.7, 1]])
@pytest.mark.parametrize("layout", ["C", "F", "csc", "csr", "frame", "source"])
def test_counts_are_those_of_brute_force(rng, layout, bins):
    X, _ = grouped_matrix(rng, 50, 70)
    X[:, 3], X[:, 4] = 2.0, X[:, 5]
    form = {"C": np.ascontiguousarray, "F": np.asfortranarray, "csc": sparse.csc_array, "csr": sparse.csr_matrix}
    form |= {"frame": pd.DataFrame, "source": as_source}
    profile = correlation_profile(form[layout](X), bins=bins)
    assert profile.counts.tolist() == brute_force(X, profile.edges).tolist()
    assert (profile.n_features, profile.n_constant, profile.n_pairs) == (70, 1, 69 * 68 // 2)
    assert profile.exact
    assert profile.counts.sum() == profile.n_pairs


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.float32, np.float64, bool])
def test_value_types(rng, kind, way):
    X, _ = sparse_counts(rng)
    X = X.astype(kind)
    expected = brute_force(X, np.linspace(0, 1, 11)).tolist()
    assert correlation_profile(X).counts.tolist() == expected
    assert correlation_profile(sparse.csc_array(X)).counts.tolist() == expected


def test_blocks_and_threads_do_not_matter(rng, monkeypatch):
    X, _ = grouped_matrix(rng, 40, 90)
    X[:, 10] = 1.0
    expected = correlation_profile(X, n_jobs=1).counts.tolist()
    for size in (1, 7, 89, 90):
        monkeypatch.setattr(tiles, "BLOCK", size)
        for n_jobs in (1, 3):
            assert correlation_profile(X, n_jobs=n_jobs).counts.tolist() == expected
    S = sparse.csc_array(X * (np.abs(X) > 1))
    assert correlation_profile(S, n_jobs=1).counts.tolist() == correlation_profile(S, n_jobs=3).counts.tolist()


def test_many_samples_use_double_precision(rng, monkeypatch):
    monkeypatch.setattr(tiles, "_MAX_SINGLE_SAMPLES", 10)
    X, _ = grouped_matrix(rng)
    assert correlation_profile(X).counts.tolist() == brute_force(X, np.linspace(0, 1, 11)).tolist()


small = st.integers(2, 9).flatmap(
    lambda n: st.integers(2, 12).flatmap(
        lambda m: st.lists(st.lists(st.integers(-2, 2), min_size=m, max_size=m), min_size=n, max_size=n)
    )
)


@given(small, st.sampled_from([4, 10]))
def test_correlations_on_an_edge(rows, bins):
    """Small integers: many correlations of exactly 0.5 or 0.75, and equal, constant and negated columns."""
    X = np.array(rows, dtype=np.int8)
    if (np.ptp(X, axis=0) > 0).sum() < 2:
        return
    edges = np.linspace(0, 1, bins + 1)
    expected = brute_force(X, edges).tolist()
    assert correlation_profile(X, bins=bins).counts.tolist() == expected
    from unittest import mock

    for cost in (0.0, np.inf):
        with mock.patch.object(tiles, "dense_cost", lambda n, m, cost=cost: cost):
            assert correlation_profile(sparse.csc_array(X), bins=bins).counts.tolist() == expected


def test_a_correlation_in_single_precision_is_not_enough(rng):
    """Correlations differ from an edge by less than single precision."""
    x = rng.standard_normal(200)
    x -= x.mean()
    z = rng.standard_normal(200)
    z -= z.mean() + x * (x @ z) / (x @ x)
    x, z = x / np.linalg.norm(x), z / np.linalg.norm(z)
    steps = np.linspace(-2e-8, 2e-8, 41)
    X = np.column_stack([x, *(((0.5 + s) * x + np.sqrt(1 - (0.5 + s) ** 2) * z) for s in steps)])
    profile = correlation_profile(X, bins=[0, 0.5, 0.9, 1])
    assert profile.counts.tolist() == [20, 21, 41 * 40 // 2]


def test_explicit_zeros_and_unsorted_entries(rng, way):
    X, _ = sparse_counts(rng)
    S = sparse.csc_array(X)
    S.data[rng.random(S.nnz) < 0.3] = 0
    assert correlation_profile(S).counts.tolist() == brute_force(S.toarray(), np.linspace(0, 1, 11)).tolist()


def test_equal_columns_are_counted_as_often_as_they_occur(way):
    X = np.zeros((30, 60))
    X[0, :20] = X[1, 20:50] = 1
    X[2, 50:] = 3
    profile = correlation_profile(sparse.csc_array(X))
    assert profile.counts[-1] == 20 * 19 // 2 + 30 * 29 // 2 + 10 * 9 // 2
    assert profile.counts.sum() == 60 * 59 // 2
    assert profile.counts[0] == 20 * 30 + 20 * 10 + 30 * 10


@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array])
def test_limits_of_a_sample_are_valid(rng, form):
    X, _ = grouped_matrix(rng, 50, 80)
    exact = correlation_profile(X).fractions
    inside = 0
    for seed in range(20):
        profile = correlation_profile(form(X), n_pairs=500, random_state=seed, confidence=0.9)
        assert profile.counts.sum() == profile.n_drawn == 500
        assert not profile.exact
        inside += np.count_nonzero((profile.limits[:, 0] <= exact) & (exact <= profile.limits[:, 1]))
    assert inside >= 0.9 * 200
    again = correlation_profile(form(X), n_pairs=500, random_state=19, n_jobs=1)
    assert again.counts.tolist() == profile.counts.tolist()


def test_a_large_sample_is_drawn_in_batches(rng, monkeypatch):
    X, _ = grouped_matrix(rng)
    expected = correlation_profile(X, n_pairs=300, random_state=1).counts.tolist()
    monkeypatch.setattr(profiles, "_BATCH_VALUES", 1000)
    assert correlation_profile(X, n_pairs=300, random_state=1).counts.tolist() == expected


def test_pairs_are_drawn_evenly_and_never_of_one_feature():
    X = np.eye(5)[:, :4]  # four features, six pairs, all with the correlation -1/4
    assert correlation_profile(X, n_pairs=1000, random_state=0).counts[2] == 1000


def test_the_result_in_other_forms(rng):
    X, _ = grouped_matrix(rng)
    profile = correlation_profile(X, bins=5)
    frame = profile.to_frame()
    assert frame["pairs"].tolist() == profile.counts.tolist()
    assert frame["share_at_least"].iloc[0] == 1.0
    assert profile.share_at_least(0.6) == frame["share_at_least"][3]
    with pytest.raises(ValueError, match="not an edge of the profile's bins"):
        profile.share_at_least(0.65)
    assert json.loads(profile.to_json())["bins"][2]["pairs"] == profile.counts[2]
    text = str(correlation_profile(X, n_pairs=100, random_state=0))
    assert "limits of 95% confidence" in text
    assert len(text.splitlines()) == 12


def test_plot(rng, tmp_path):
    X, _ = grouped_matrix(rng)
    for profile in (correlation_profile(X), correlation_profile(X, n_pairs=50, random_state=0)):
        axes = profile.plot(title="a title").axes[0]
        axes.figure.savefig(tmp_path / "profile.png")
        assert (tmp_path / "profile.png").stat().st_size > 1000
        assert axes.get_title() == "a title"


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.ones((5, 4)), {}, "at least 2 features that are not constant, but X has 0"),
        (np.eye(3)[:, :1], {}, "X has 1"),
        ([[1.0, np.nan], [2.0, 3.0]], {}, "1 NaN or infinite value.*sample 0 of feature 1"),
        (np.eye(3), {"bins": 0}, "bins=0 must be a whole number of at least 1"),
        (np.eye(3), {"bins": [0, 0.5]}, "increasing edges from 0 to 1"),
        (np.eye(3), {"bins": [0, 0.5, 0.5, 1]}, "increasing edges from 0 to 1"),
        (np.eye(3), {"n_pairs": 0}, "n_pairs=0 must be a whole number"),
        (np.eye(3), {"n_jobs": 1.5}, "n_jobs=1.5"),
        (np.eye(3), {"confidence": 2}, "confidence=2 must be"),
        ([["a", "b"], ["c", "d"]], {}, "Features must be numbers"),
        ([1, 2, 3], {}, "Expected 2D array"),
    ],
)
def test_bad_input(X, options, message):
    with pytest.raises(ValueError, match=message):
        correlation_profile(X, **options)


def test_20news_against_a_product_of_a_part(real_data):
    """Real text: 1,500 columns compared with the matrix of all their correlations."""
    with np.load(real_data / "20news_bigrams.npz") as file:
        X = sparse.csr_array((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"])).tocsc()
    part = X[:, np.random.default_rng(0).choice(X.shape[1], 1500, replace=False)]
    part = part[np.unique(part.indices)]  # the samples that have any of them
    profile = correlation_profile(part)
    assert profile.counts.tolist() == brute_force(part.toarray(), profile.edges).tolist()
    assert profile.counts[-1] > 0


def test_profile_and_strong_pairs_agree(rng):
    """Both parts of the package find the same number of strong pairs."""
    X, y = grouped_matrix(rng, 60, 40)
    strong = correlation_profile(X, bins=[0, 0.7, 1]).counts[1]
    model = GroupDiscoveryClassifier("auto", affiliates="complete").fit(X, y)
    assert sum(len(group) - 1 for group in model.groups_) <= strong


def test_names_are_public():
    assert isinstance(correlation_profile(np.eye(3)), CorrelationProfile)
