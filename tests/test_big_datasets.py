"""Data with the shape of large real data sets: shape, density, power law, planted groups, and stores."""

import numpy as np
import pytest
from scipy import sparse

from coterie import GroupDiscoveryClassifier
from coterie.data import check_store
from coterie.datasets import make_big_dimensional
from coterie.metrics import group_recovery
from tests import naive


@pytest.mark.parametrize("shape", ["news20", "kdd2010", "webspam"])
def test_sparse_shapes(shape):
    scale = {"news20": 0.05, "kdd2010": 1e-4, "webspam": 2e-3}[shape]
    data = make_big_dimensional(shape, scale=scale, random_state=0, n_support=5)
    n, m, nnz = {"news20": (499, 67_759, 180_000), "kdd2010": (1926, 2989, 58_600), "webspam": (560, 33_218, 2_080_000)}[shape]
    assert data.X.shape == (n, m)
    assert data.X.nnz == pytest.approx(nnz, rel=0.06)
    assert data.X.dtype == (np.uint8 if shape == "kdd2010" else np.float32)
    assert data.X.has_canonical_format
    assert set(np.unique(data.y)) == {-1, 1}
    counts = np.sort(np.diff(data.X.indptr))[::-1]
    assert counts[0] > 20 * np.median(counts) or counts[0] >= 0.4 * n  # a long tail
    members = np.concatenate([group.members for group in data.groups])
    assert len(np.unique(members)) == len(members)
    for group in data.groups:
        C = naive.correlation(data.X[:, group.members].toarray().astype(float))
        np.testing.assert_allclose(group.correlation, C[0, 1:], atol=1e-6)
        assert (np.abs(group.correlation) > 0.55).all()


def test_genotypes():
    data = make_big_dimensional("psoriasis", scale=0.2, n_features=4000, random_state=1, n_support=4)
    assert data.X.shape == (435, 4000)
    assert data.X.dtype == np.int8
    assert data.X.flags.f_contiguous
    assert set(np.unique(data.X)) == {0, 1, 2}
    frequency = data.X.mean(axis=0) / 2
    assert 0.02 < frequency.min() < 0.1
    assert 0.4 < frequency.max() < 0.6
    neighbours = [
        abs(np.corrcoef(data.X[:, j].astype(float), data.X[:, j + 1].astype(float))[0, 1]) for j in range(0, 4000, 10)
    ]
    assert 0.6 < np.median(neighbours) < 0.999  # linkage
    assert np.mean(np.array(neighbours) < 0.2) > 0.03  # no linkage between blocks
    for group in data.groups:
        C = naive.correlation(data.X[:, group.members].astype(float))
        np.testing.assert_allclose(group.correlation, C[0, 1:], atol=1e-9)
        assert (np.abs(group.correlation) >= 0.7).all()


@pytest.mark.parametrize("shape", ["news20", "psoriasis"])
def test_store_contains_the_same_data(tmp_path, shape):
    options = {"scale": 0.01, "random_state": 3, "n_support": 3}
    in_memory = make_big_dimensional(shape, **options)
    stored = make_big_dimensional(shape, path=tmp_path / "s", **options)
    assert stored.path == tmp_path / "s"
    store = check_store(stored.path)
    columns = store.source.block(0, store.shape[1])
    dense = [X.toarray() if sparse.issparse(X) else X for X in (columns, in_memory.X)]
    np.testing.assert_array_equal(dense[0], dense[1])
    np.testing.assert_array_equal(store.y, in_memory.y)
    assert stored.groups == in_memory.groups
    np.testing.assert_array_equal(stored.y, in_memory.y)


@pytest.mark.parametrize(("shape", "options"), [("news20", {"scale": 0.2}), ("psoriasis", {"n_features": 5000})])
def test_planted_groups_are_found(shape, options):
    data = make_big_dimensional(shape, n_support=5, random_state=0, **options)
    model = GroupDiscoveryClassifier(5, n_features_per_round=1).fit(data.X, data.y)
    assert group_recovery(data.groups, model.groups_) > 0.6
    assert len(set(data.groups.support) & set(model.groups_.members)) == 5


def test_seed_determines_the_data():
    first, second, third = (make_big_dimensional(scale=0.002, n_support=2, random_state=seed) for seed in (1, 1, 2))
    assert (first.X != second.X).nnz == 0
    assert first.X.nnz != third.X.nnz or (first.X != third.X).nnz > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": "iris"}, "shape='iris' must be one of 'news20'"),
        ({"scale": 0}, "scale=0 must be a number above 0"),
        ({"n_features": 20}, "planted features are more than n_features=20"),
        ({"n_support": 0}, "n_support=0 must be at least 1"),
        ({"shape": "psoriasis", "n_samples": 10, "n_features": 30}, "is more than the .* linkage blocks"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        make_big_dimensional(**options)
