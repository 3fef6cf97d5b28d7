"""Samples over two principal components: the points are those of a plain eigendecomposition."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from coterie import FeatureGroup, FeatureGroups
from coterie.baselines import MRMRSelector
from coterie.plots import feature_scatter
from tests.conftest import grouped_matrix


def components(X):
    """The first two principal components, up to their signs, and their shares of the variance."""
    centred = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    return centred @ vectors[:, [-1, -2]], values[[-1, -2]] / values.sum()


def points(figure):
    return np.vstack([one.get_offsets() for one in figure.axes[0].collections])


@pytest.fixture
def data(rng):
    return grouped_matrix(rng)


def test_points_and_shares(data):
    X, y = data
    figure = feature_scatter(X, y, [3, 8, 1, 30])
    expected, shares = components(X[:, [3, 8, 1, 30]])
    expected = np.vstack([expected[y == -1], expected[y == 1]])
    np.testing.assert_allclose(np.abs(points(figure)), np.abs(expected), atol=1e-9)
    ax = figure.axes[0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["-1", "1"]
    assert f"({100 * shares[0]:.0f} %" in ax.get_xlabel()
    assert f"({100 * shares[1]:.0f} %" in ax.get_ylabel()


def test_standardized(data):
    X, y = data
    X = X * np.geomspace(0.1, 1000, X.shape[1])
    figure = feature_scatter(X, y, [3, 8, 1, 30], standardize=True)
    chosen = X[:, [3, 8, 1, 30]]
    expected = components(chosen / chosen.std(axis=0))[0]
    np.testing.assert_allclose(np.sort(np.abs(points(figure)[:, 0])), np.sort(np.abs(expected[:, 0])), atol=1e-9)


def test_all_forms_of_features(data):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    selector = MRMRSelector(3).fit(X, y)
    chosen = np.flatnonzero(selector.get_support())
    expected = points(feature_scatter(X, y, chosen))
    mask = np.isin(np.arange(X.shape[1]), chosen)
    for form, features in [
        (X, selector),
        (X, mask),
        (frame, [f"f{j}" for j in chosen]),
        (sparse.csr_array(X), chosen),
        (X, FeatureGroups([FeatureGroup(j, [0]) for j in chosen])),
    ]:
        np.testing.assert_allclose(points(feature_scatter(form, y, features)), expected, atol=1e-12)
    assert len(points(feature_scatter(X))) == len(X)


def test_classes_have_different_styles(rng):
    y = np.repeat(np.arange(40), 3)
    figure = feature_scatter(rng.standard_normal((120, 5)), y)
    looks = {(one.get_facecolor().tobytes(), one.get_paths()[0].vertices.tobytes()) for one in figure.axes[0].collections}
    assert len(looks) == 40
    assert figure.axes[0].get_legend() is None  # no legend with forty classes
    mixed = np.array(["_b", 1, None, "$c$"] * 5, dtype=object)
    named = feature_scatter(rng.standard_normal((20, 3)), mixed).axes[0].get_legend().get_texts()
    assert len(named) == 4


def test_numbers_get_a_scale(data, axes):
    X, _ = data
    y = X[:, 0] + 0.5
    figure = feature_scatter(X, y, ax=axes[0], title="numbers")
    assert figure is axes[0].figure
    assert len(figure.axes) == 3
    np.testing.assert_allclose(axes[0].collections[0].get_array(), y)
    assert axes[0].get_title() == "numbers"


def test_wrong_input(data):
    X, y = data
    with pytest.raises(ValueError, match=r"features has 1 feature\(s\)\. At least 2 are required"):
        feature_scatter(X, y, [4])
    with pytest.raises(ValueError, match="features has index 99, but X has 40 features"):
        feature_scatter(X, y, [4, 99])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        feature_scatter(X, y[:-1], [4, 5])
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        feature_scatter(X, y, [4, 5])
