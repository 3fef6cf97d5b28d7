"""Figures that the report also contains."""

import numpy as np
import pytest

from coterie import (
    GroupDiscoveryClassifier,
    GroupDiscoveryClassifierCV,
    GroupDiscoveryRegressor,
    group_confidence,
    group_effects,
)
from coterie.plots import class_effects, effect_confidence, member_correlations, score_curve
from tests.conftest import grouped_matrix


@pytest.fixture(scope="module")
def data():
    return grouped_matrix(np.random.default_rng(0))


def test_score_curve(data):
    model = GroupDiscoveryClassifierCV(5, Cs=[0.1, 1.0], cv=3, nested=True, random_state=0).fit(*data)
    axes = score_curve(model, title="scores").axes[0]
    line = next(line for line in axes.lines if line.get_gid() == "curve")
    own = model.cv_results_["C"] == model.C_
    np.testing.assert_array_equal(line.get_xdata(), model.cv_results_["n_features"][own])
    np.testing.assert_array_equal(line.get_ydata(), model.cv_results_["mean_test_score"][own])
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    shown = ["held-out score", f"chosen: {model.n_features_}", "constant prediction", "nested score, 95% interval"]
    assert sorted(labels) == sorted(shown)
    with pytest.raises(ValueError, match="no cv_results_"):
        score_curve(GroupDiscoveryClassifier(2).fit(*data))


def test_effect_confidence(data):
    model = GroupDiscoveryClassifier(4).fit(*data)
    with pytest.raises(ValueError, match="no confidences or no effects"):
        effect_confidence(model)
    group_confidence(model, *data, n_pairs=3, n_permutations=1, random_state=0).attach_to(model)
    with pytest.raises(ValueError, match="no confidences or no effects"):
        effect_confidence(model)
    group_effects(model, *data).attach_to(model)
    axes = effect_confidence(model).axes[0]
    points = axes.collections[-1].get_offsets()
    expected = [[group.effect, group.confidence] for group in model.groups_]
    np.testing.assert_allclose(points, expected)
    assert any("permuted labels" in text.get_text() for text in axes.texts)
    assert not any("permuted labels" in text.get_text() for text in effect_confidence(model.groups_).axes[0].texts)


def test_member_correlations(data):
    X, y = data
    model = GroupDiscoveryClassifier(2, threshold=0.5).fit(X, y)
    group = model.groups_[1]
    image = member_correlations(model, X, 1).axes[0].images[0].get_array()
    np.testing.assert_allclose(image, np.corrcoef(X[:, group.members].T), atol=1e-9)
    figure = member_correlations(model, X, 1, max_members=2)
    assert figure.axes[0].images[0].get_array().shape == (2, 2)
    assert "not drawn" in figure.axes[0].get_title()
    with pytest.raises(ValueError, match="group=7"):
        member_correlations(model, X, 7)


@pytest.mark.parametrize("predict_with", ["support", "groups"])
def test_class_effects(data, predict_with):
    X = data[0]
    y = np.array(["a", "b$", "c"])[np.digitize(X[:, 0] + X[:, 5], [-0.7, 0.7])]
    model = GroupDiscoveryClassifier(3, threshold=0.5, predict_with=predict_with).fit(X, y)
    found = group_effects(model, X, y)
    image = class_effects(found.attach_to(model)).axes[0].images[0].get_array()
    np.testing.assert_allclose(image, found.effects)
    for wrong in (GroupDiscoveryClassifier(2).fit(*data), GroupDiscoveryRegressor(2).fit(*data)):
        with pytest.raises(ValueError, match="more than two classes"):
            class_effects(group_effects(wrong, *data).attach_to(wrong))


def test_effects_on_several_targets(data):
    X = data[0]
    Y = np.column_stack([X[:, 0] + X[:, 5], 1e5 * (X[:, 5] - X[:, 0])])
    model = GroupDiscoveryRegressor(3).fit(X, Y)
    found = group_effects(model, X, Y)
    figure = class_effects(found.attach_to(model))
    image = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(image, found.effects / np.abs(found.effects).max(axis=0))
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["target_0", "target_1"]
