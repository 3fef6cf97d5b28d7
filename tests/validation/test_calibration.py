"""Probabilities: the calibration compared with a generic optimiser and scikit-learn, and models with probabilities."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coterie
from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV
from coterie.validation.calibration import calibration_slope
from tests.estimators.chosen import chosen_estimator


def loss_of(slope, outputs, codes, weight, n_classes):
    """Return the cross entropy with Platt's targets, computed sample by sample."""
    total = 0.0
    unsure = 1 / (weight.sum() + 2)
    for row, code, w in zip(outputs, codes, weight, strict=True):
        logits = slope * (np.append(0.0, row) if n_classes == 2 else row)
        logs = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        total -= w * sum((1 - unsure if k == code else unsure / (n_classes - 1)) * logs[k] for k in range(n_classes))
    return total


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("signal", [0.0, 1.0, 100.0])
def test_the_likelihood_is_at_its_largest(n_classes, weighted, signal):
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(0, n_classes, 60)
    one_hot = np.eye(n_classes)[codes]
    noise = rng.standard_normal((60, 1 if n_classes == 2 else n_classes))
    outputs = (2 * one_hot[:, 1:] - 1 if n_classes == 2 else one_hot) * signal + noise
    weight = rng.integers(0, 3, 60).astype(float) if weighted else np.ones(60)
    slope = calibration_slope(outputs, codes, weight if weighted else None)
    ours = loss_of(slope, outputs, codes, weight, n_classes)
    best = min(loss_of(value, outputs, codes, weight, n_classes) for value in [0.0, *np.geomspace(1e-4, 1e2, 400)])
    assert ours <= best
    for factor in (0.999, 1.001):  # Nearby slopes are worse.
        assert ours <= loss_of(factor * slope, outputs, codes, weight, n_classes)


def test_a_weight_of_two_is_two_samples():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 40)
    outputs = np.eye(3)[codes] + rng.standard_normal((40, 3))
    weight = rng.integers(0, 4, 40)
    repeated = calibration_slope(np.repeat(outputs, weight, axis=0), np.repeat(codes, weight))
    np.testing.assert_allclose(calibration_slope(outputs, codes, weight), repeated, rtol=1e-9)


def test_values_that_contradict_the_classes():
    """A model that is mostly wrong gets equal probabilities, not a reversed sign."""
    codes = np.repeat([0, 1], 20)
    assert calibration_slope(1.0 - 2.0 * codes[:, None], codes) == 0.0
    assert calibration_slope(np.zeros((40, 1)), codes) == 0.0


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_scale_of_the_values_does_not_matter(scale):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, 50)
    outputs = codes[:, None] + rng.standard_normal((50, 1))
    np.testing.assert_allclose(scale * calibration_slope(scale * outputs, codes), calibration_slope(outputs, codes), rtol=1e-9)


def brier_score(y, probability):
    """Return the Brier score for any number of classes, as in scikit-learn since 1.7."""
    n_classes = probability.shape[1]
    return float(((np.eye(n_classes)[y] - probability) ** 2).sum(axis=1).mean()) / (2 if n_classes == 2 else 1)


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_digits])
def test_probabilities_are_as_good_as_those_of_scikit_learn(load):
    """Brier score and log-loss on held-out samples, compared with CalibratedClassifierCV around the same model."""
    X, y = load(return_X_y=True)
    if load is load_digits:
        X, y = X[:600], y[:600]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
    model = GroupDiscoveryClassifierCV(15, Cs=3, cv=3, random_state=0).fit(X, y)
    rival = CalibratedClassifierCV(chosen_estimator(model), ensemble=False, cv=3).fit(X, y)
    chance = np.tile(np.bincount(y) / len(y), (len(y_test), 1))
    ours, theirs, nothing = (
        (log_loss(y_test, p), brier_score(y_test, p))
        for p in (model.predict_proba(X_test), rival.predict_proba(X_test), chance)
    )
    for own, other, blind in zip(ours, theirs, nothing, strict=True):
        assert own < 1.1 * other + 0.01
        assert own < blind / 2


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_most_probable_class_is_the_predicted_one(class_weight, n_classes):
    X, y = make_classification(200, 12, n_informative=4, n_classes=n_classes, class_sep=0.5, random_state=3)
    X, y = X[(y > 0) | (np.arange(200) % 3 == 0)], y[(y > 0) | (np.arange(200) % 3 == 0)]
    model = GroupDiscoveryClassifierCV(4, Cs=2, cv=3, class_weight=class_weight, random_state=0).fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("predict_with", ["support", "groups"])
def test_calibration_uses_held_out_samples(predict_with):
    """The calibration equals that of separate fits without each fold."""
    X, y = make_classification(120, 12, n_informative=4, n_redundant=4, random_state=0)
    folds = [(np.arange(120)[np.arange(120) % 3 != k], np.arange(120)[np.arange(120) % 3 == k]) for k in range(3)]
    model = GroupDiscoveryClassifierCV(4, Cs=2, cv=folds, predict_with=predict_with).fit(X, y)
    outputs = np.empty(120)
    for train, test in folds:
        own = chosen_estimator(model).fit(X[train], y[train])
        outputs[test] = own.decision_function(X[test])
    np.testing.assert_allclose(model.calibration_slope_, calibration_slope(outputs[:, None], y), rtol=1e-4)


def test_models_with_probabilities(tmp_path):
    X, y = make_classification(80, 6, random_state=0)
    labels = np.array(["no", "yes"])[y]
    plain = GroupDiscoveryClassifier(2).fit(X, labels)
    assert not hasattr(plain, "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as caught:
        _ = plain.predict_proba
    assert "Use GroupDiscoveryClassifierCV or" in str(caught.value.__cause__)
    assert hasattr(GroupDiscoveryClassifierCV(), "predict_proba")
    model = GroupDiscoveryClassifierCV(2, Cs=2, cv=2, random_state=0).fit(X, labels)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    coterie.save(model, tmp_path / "model")
    assert np.array_equal(coterie.load(tmp_path / "model").predict_proba(X), model.predict_proba(X))
    pipe = make_pipeline(StandardScaler(), clone(model)).fit(X, labels)
    assert pipe.predict_proba(X).shape == (80, 2)
    del model.calibration_slope_  # as in a file of an earlier version
    assert not hasattr(model, "predict_proba")


def test_an_invalid_calibration_in_a_file_raises(tmp_path):
    X, y = make_classification(80, 6, random_state=0)
    model = GroupDiscoveryClassifierCV(2, Cs=2, cv=2, random_state=0).fit(X, y)
    for value in (np.nan, -1.0, "steep"):
        forged = clone(model)
        vars(forged).update(vars(model) | {"calibration_slope_": value})
        coterie.save(forged, tmp_path / "model")
        with pytest.raises(ValueError, match="'calibration_slope_'"):
            coterie.load(tmp_path / "model")
