"""Figures of held-out predictions show the stored curves."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import coterie
from coterie.plots import calibration_curve, confusion_table, predicted_observed, roc_curves
from coterie.report import HeldOut
from coterie.report.confidential import without_samples


@pytest.fixture(scope="module")
def classes():
    X, y = load_iris(return_X_y=True)
    return coterie.discover(X, np.array(["setosa", "versicolor", "virginica"])[y], n_pairs=0, max_features_to_select=3)


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 8))
    y = pd.DataFrame({"height": X[:, 2] + rng.standard_normal(90), "$yield": X[:, 5] + rng.standard_normal(90)})
    return coterie.discover(X, y, n_pairs=0, max_features_to_select=3), y


def test_roc_curves(classes):
    axes = roc_curves(classes, title="roc").axes[0]
    stored = classes.held_out.diagnostics["roc"]
    assert [own["of"] for own in stored] == ["setosa", "versicolor", "virginica"]
    for line, own in zip(axes.lines[:3], stored, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), own["false_positive_rate"])
        np.testing.assert_array_equal(line.get_ydata(), own["true_positive_rate"])
        assert line.get_label() == f"{own['of']}: {own['area']:.3f}"


def test_calibration(classes):
    axes = calibration_curve(classes).axes[0]
    (stored,) = classes.held_out.diagnostics["calibration"]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), stored["observed"])
    assert axes.get_xlabel() == "predicted probability of the predicted class"


def test_confusion(classes):
    axes = confusion_table(classes).axes[0]
    counts = np.array(classes.held_out.confusion["counts"])
    assert [text.get_text() for text in axes.texts] == [f"{count:g}" for count in counts.ravel()]
    np.testing.assert_allclose(axes.images[0].get_array(), counts / counts.sum(axis=1, keepdims=True))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["setosa", "versicolor", "virginica"]


def test_predicted_observed(numbers):
    found, y = numbers
    first, second = predicted_observed(found, title="two targets").axes
    np.testing.assert_allclose(first.lines[0].get_ydata(), y["height"], rtol=1e-4)
    np.testing.assert_allclose(first.lines[0].get_xdata(), found.model.held_out_predictions_[:, 0], rtol=1e-4)
    assert second.get_ylabel() == r"observed \$yield"
    closed = predicted_observed(without_samples(found)).axes[0]
    assert len(closed.lines[0].get_xdata()) == len(found.held_out.diagnostics["calibration"][0]["observed"])


def test_stored_and_read(numbers, classes):
    for found in (numbers[0], classes):
        assert HeldOut.from_dict(found.held_out.to_dict()).diagnostics == found.held_out.diagnostics


def test_messages(numbers, classes):
    for draw in (roc_curves, calibration_curve):
        with pytest.raises(ValueError, match="There are no held-out predictions of classes"):
            draw(numbers[0])
    with pytest.raises(ValueError, match="There are no held-out classes"):
        confusion_table(numbers[0])
    with pytest.raises(ValueError, match="There are no held-out numbers"):
        predicted_observed(classes)
    with pytest.raises(ValueError, match="There are no held-out predictions of numbers"):
        predicted_observed(replace(numbers[0], held_out=None))
