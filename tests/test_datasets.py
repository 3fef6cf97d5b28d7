import numpy as np
import pytest

from coterie.datasets import make_block_gaussian, make_feature_groups, make_support_affiliated
from tests import naive


def test_support_affiliated():
    data = make_support_affiliated(2048, 200, random_state=5)
    assert data.X.shape == (2048, 200)
    assert set(data.y) == {-1, 1}
    assert len(data.groups) == 12
    assert len(data.groups.members) == 38
    assert max(len(g) for g in data.groups) <= 6
    assert (np.diff(np.abs(data.weights)) <= 0).all()
    np.testing.assert_array_equal(data.y > 0, data.X[:, data.groups.support] @ data.weights > 0)
    C = naive.correlation(data.X)
    for group in data.groups:
        np.testing.assert_allclose(C[group.support, group.affiliated], group.correlation, atol=0.05)
        assert (np.abs(group.correlation) >= 0.75).all()
    noise = np.setdiff1d(np.arange(200), data.groups.members)
    assert np.abs(C[np.ix_(noise, noise)] - np.eye(len(noise))).max() < 0.15
    again = make_support_affiliated(2048, 200, random_state=5)
    np.testing.assert_array_equal(again.X, data.X)
    assert again.groups == data.groups


def test_feature_groups():
    data = make_feature_groups(50, 600, random_state=0)
    sizes = [len(g) for g in data.groups]
    assert len(sizes) == 200
    assert sum(s > 1 for s in sizes) == 30
    assert all(s == 1 or 3 <= s <= 11 for s in sizes)
    assert len(data.groups.members) == sum(sizes)


def test_noise_flips_labels():
    data = make_support_affiliated(500, 50, random_state=0, noise=3.0)
    clean = data.X[:, data.groups.support] @ data.weights > 0
    assert 0.1 < (clean != (data.y > 0)).mean() < 0.5


def test_block_gaussian():
    data = make_block_gaussian(4000, 4, 5, correlation=0.6, random_state=2)
    assert data.X.shape == (4000, 20)
    assert np.bincount(data.y + 1).tolist() == [2000, 0, 2000]
    np.testing.assert_allclose(data.X[data.y > 0].mean(axis=0) - data.X[data.y < 0].mean(axis=0), data.shift, atol=0.15)
    C = naive.correlation(data.X - np.outer(data.y / 2, data.shift))
    member = np.zeros(20, dtype=int)
    for g, group in enumerate(data.groups):
        assert len(group) == 5
        assert (np.abs(data.shift[group.affiliated]) <= np.abs(data.shift[group.support])).all()
        member[group.members] = g
    same = member[:, None] == member
    np.testing.assert_allclose(C, np.where(np.eye(20), 1.0, 0.6 * same), atol=0.08)
    np.testing.assert_array_equal(
        make_block_gaussian(50, 4, 5, random_state=2).X, make_block_gaussian(50, 4, 5, random_state=2).X
    )
    ordered = make_block_gaussian(50, 3, 2, shuffle=False, random_state=0)
    assert sorted(tuple(sorted(group.members)) for group in ordered.groups) == [(0, 1), (2, 3), (4, 5)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_block_gaussian(correlation=1.0), "correlation=1.0"),
        (lambda: make_block_gaussian(1), "n_samples=1"),
        (lambda: make_support_affiliated(10, 100, n_true=11), "n_true=11"),
        (lambda: make_support_affiliated(10, 100, n_true=73), "n_true=73"),
        (lambda: make_support_affiliated(10, 20), "n_features=20"),
        (lambda: make_feature_groups(10, 1000, n_correlated_groups=201), "n_correlated_groups=201"),
    ],
)
def test_invalid_parameters(call, message):
    with pytest.raises(ValueError, match=message):
        call()
