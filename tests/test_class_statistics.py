"""Statistics of features by class, compared with a naive implementation."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from coterie import FeatureGroups, GroupDiscoveryClassifier, GroupDiscoveryRegressor, class_statistics

FIGURES = ["mean", "mean_rest", "variance", "variance_rest", "detected", "detected_rest", "log_fold_change", "effect"]


def naive(X, y):
    """Compute the statistics by their definitions, one feature and class at a time."""
    classes = sorted(set(y.tolist()))
    made = {name: np.full((X.shape[1], len(classes)), np.nan) for name in FIGURES}
    for j in range(X.shape[1]):
        for c, label in enumerate(classes):
            inside, outside = X[y == label, j].astype(float), X[y != label, j].astype(float)
            within = ((inside - inside.mean()) ** 2).sum() + ((outside - outside.mean()) ** 2).sum()
            row = {
                "mean": inside.mean(),
                "mean_rest": outside.mean(),
                "variance": inside.var(ddof=1) if len(inside) > 1 else np.nan,
                "variance_rest": outside.var(ddof=1) if len(outside) > 1 else np.nan,
            }
            if (X[:, j] >= 0).all():
                row["detected"], row["detected_rest"] = np.mean(inside > 0), np.mean(outside > 0)
                row["log_fold_change"] = np.log2((np.expm1(inside.mean()) + 1e-9) / (np.expm1(outside.mean()) + 1e-9))
            difference = inside.mean() - outside.mean()
            row["effect"] = difference / np.sqrt(within / (len(y) - 2)) if within > 1e-12 else np.nan
            for name, value in row.items():
                made[name][j, c] = value
    return made


@given(st.integers(0, 10**6), st.integers(2, 4), st.sampled_from(["dense", "sparse", "int8", "negative"]))
def test_against_the_definitions(seed, n_classes, kind):
    rng = np.random.default_rng(seed)
    X = np.log1p(rng.poisson(1.0, (23, 6)) * (rng.random((23, 6)) < 0.6))
    if kind == "int8":
        X = rng.integers(0, 4, (23, 6)).astype(np.int8)
    if kind == "negative":
        X[:, 2:] -= 0.5
    y = rng.integers(0, n_classes, 23)
    y[: 2 * n_classes] = np.repeat(np.arange(n_classes), 2)
    given_as = sparse.csc_matrix(X) if kind in ("sparse", "negative") else X
    found, expected = class_statistics(given_as, y), naive(X, y)
    for name in FIGURES:
        own, wanted = getattr(found, name), expected[name]
        known = ~np.isnan(wanted) if name == "effect" else np.ones(wanted.shape, dtype=bool)
        np.testing.assert_allclose(own[known], wanted[known], rtol=1e-9, atol=1e-9, err_msg=name)
    inside, outside = X[y == 1].astype(float), X[y != 1].astype(float)
    sure = (inside.std(axis=0) > 1e-9) & (outside.std(axis=0) > 1e-9)
    wanted = stats.ttest_ind(inside[:, sure], outside[:, sure], equal_var=False).pvalue
    np.testing.assert_allclose(found.p_value[sure, 1], wanted, rtol=1e-7)


def test_blocks_do_not_matter(rng, monkeypatch):
    X, y = rng.random((30, 11)), np.arange(30) % 3
    whole = class_statistics(X, y)
    order = rng.permutation(11)
    mixed = class_statistics(X[:, order], y)
    monkeypatch.setitem(class_statistics.__globals__, "_BLOCK_VALUES", 30)  # one column at a time
    parts = class_statistics(X, y)
    for name in FIGURES:
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
        np.testing.assert_array_equal(getattr(mixed, name), getattr(whole, name)[order])


def test_groups_bring_their_weights(rng):
    counts = rng.poisson(2.0, (90, 30))
    y = np.repeat(["B", "NK", "T"], 30)
    for c, label in enumerate(["B", "NK", "T"]):
        counts[y == label, c] += 6
    counts[:, 9] = counts[:, 0]  # a copy of the marker of B
    X = pd.DataFrame(np.log1p(counts), columns=[f"g{j}" for j in range(30)])
    model = GroupDiscoveryClassifier(3).fit(X, y)
    found = class_statistics(X, y, model)
    frame = found.to_frame()
    assert frame.columns.tolist() == found.columns
    assert len(frame) == 4 * 3
    assert frame["role"].tolist().count("affiliated") == 3
    support = frame[frame["role"] == "support"]
    np.testing.assert_array_equal(support["weight"].to_numpy().reshape(3, 3), model.groups_.class_weights)
    assert frame[frame["role"] == "affiliated"]["weight"].isna().all()
    best = support.loc[support.groupby("group")["weight"].idxmax()]
    assert best["class"].tolist() == [group.marks for group in model.groups_]
    assert (best["log_fold_change"] > 1).all()
    assert (best["effect"] > 1).all()
    other = X[X.columns[::-1]].assign(more=1.0)  # features are matched by name in another order
    pd.testing.assert_frame_equal(
        class_statistics(other, y, model.groups_).to_frame().drop(columns="feature"), frame.drop(columns="feature")
    )
    assert class_statistics(X, y, ["g3", "g1"]).names == ("g3", "g1")
    assert class_statistics(X, y, [3, 1]).features.tolist() == [3, 1]
    assert repr(found) == "<ClassStatistics of 4 features in 3 classes>"


def test_no_dense_copy_of_sparse_data(rng, monkeypatch):
    X = sparse.random(200, 50, 0.1, "csr", random_state=0)
    y = np.arange(200) % 2
    expected = class_statistics(X.toarray(), y)
    for kind in (sparse.csc_matrix, sparse.csc_array, sparse.csr_matrix):
        monkeypatch.setattr(kind, "toarray", lambda *_, **__: pytest.fail("made dense"))
    np.testing.assert_allclose(class_statistics(X, y).effect, expected.effect, rtol=1e-9, atol=1e-12)


def test_single_sample_has_no_variance():
    with pytest.warns(UserWarning, match="has one sample"):
        found = class_statistics([[1.0], [2.0], [3.0], [9.0]], ["a", "a", "a", "b"])
    assert np.isnan(found.variance[0, 1])
    assert np.isnan(found.p_value[0, 1])
    assert found.mean[0].tolist() == [2.0, 9.0]


def test_bad_input(rng):
    X, y = rng.random((20, 5)), np.arange(20) % 2
    with pytest.raises(ValueError, match="class_statistics requires y to be passed"):
        class_statistics(X)
    with pytest.raises(ValueError, match="only one class"):
        class_statistics(X, np.zeros(20))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        class_statistics(X, y[:-1])
    with pytest.raises(ValueError, match="features has index 7, but X has 5 features"):
        class_statistics(X, y, [7])
    model = GroupDiscoveryClassifier(2).fit(X, y)
    with pytest.raises(ValueError, match="The model has the classes 0, 1, but y has 'a', 'b'"):
        class_statistics(X, np.where(y, "a", "b"), model)
    with pytest.raises(ValueError, match="but X has 1 features"):
        class_statistics(X[:, :1], y, FeatureGroups([model.groups_[0]] if model.groups_[0].support else model.groups_[1:]))
    Y = X.copy()
    Y[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN or infinity in 1 of the features\. The first is 2"):
        class_statistics(Y, y)
    assert class_statistics(Y, y, [0, 1]).mean.shape == (2, 2)  # of the others it is not asked
    regression = GroupDiscoveryRegressor(2).fit(X, X[:, 0])
    assert np.isnan(class_statistics(X, y, regression).weight).all()
