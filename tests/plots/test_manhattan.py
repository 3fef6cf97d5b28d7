"""Manhattan plots: positions, heights and markers."""

import numpy as np
import pytest

from coterie import FeatureGroup, FeatureGroups, association
from coterie.data import Dataset, annotated, as_source
from coterie.plots import manhattan

PLACES = {"chromosome": ["2", "10", "2", "X", "10"], "position": [50, 7, 10, 3, 1007]}


@pytest.fixture
def data(rng):
    X = rng.integers(0, 3, (60, 5)).astype(np.int8)
    return Dataset(as_source(X), X[:, 2] + rng.standard_normal(60), feature_info=PLACES)


def points(ax):
    return np.vstack([part.get_offsets() for part in ax.collections])


def test_heights_and_order(data):
    found = association(data)
    ax = manhattan(found).axes[0]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2", "10", "X"]
    drawn = points(ax)[np.argsort(points(ax)[:, 0])]
    np.testing.assert_allclose(drawn[:, 1], -np.log10(found.p_value[[2, 0, 1, 4, 3]]))
    assert np.diff(drawn[:, 0])[0] == 40
    assert ax.lines[0].get_ydata()[0] == pytest.approx(-np.log10(5e-8))
    assert not manhattan(found, threshold=None).axes[0].lines


def test_groups_are_marked(data, axes):
    groups = FeatureGroups([FeatureGroup(2, [0], [0.8], names=("rs$2", "rs0"))])
    scores = np.arange(5.0)
    figure = manhattan(scores, data, groups=groups, ax=axes[1], title="scores")
    assert figure is axes[1].figure
    assert [text.get_text() for text in axes[1].texts] == [r"rs\$2"]
    affiliated, support = axes[1].collections[-2:]
    assert affiliated.get_offsets()[:, 1].tolist() == [0.0]
    assert support.get_offsets()[:, 1].tolist() == [2.0]
    assert axes[1].get_ylabel() == "score"
    assert axes[1].get_title() == "scores"
    assert len(manhattan(scores, PLACES, groups=groups).axes[0].texts) == 1
    assert len(manhattan(scores, annotated(as_source(np.eye(5)), PLACES)).axes) == 1


def test_invalid_input(data, rng):
    for arguments, message in [
        ((np.arange(5.0),), r"The features have no chromosome\. Pass data"),
        ((np.arange(6.0), data), "data has 5 features, but values has feature 5"),
        ((np.full(5, np.nan), data), "no finite value"),
        ((np.eye(5), data), "one score per feature"),
    ]:
        with pytest.raises(ValueError, match=message):
            manhattan(*arguments)
    with pytest.raises(ValueError, match="threshold=5 must be a p-value"):
        manhattan(association(data), threshold=5)
