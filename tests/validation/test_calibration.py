"""Probabilities: the calibration compared with a generic optimiser and scikit-learn, and models with probabilities."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coterie
from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV
from coterie.validation import calibration
from coterie.validation.calibration import Calibration, calibrate
from tests.estimators.chosen import chosen_estimator


def logits_of(parameters, outputs, n_classes):
    """Logits for a slope and the offsets of all classes but the first."""
    values = np.hstack([np.zeros((len(outputs), 1)), outputs]) if n_classes == 2 else outputs
    return parameters[0] * values + np.append(0.0, parameters[1:])


def loss_of(parameters, outputs, codes, weight, n_classes):
    """Return the cross entropy with targets mixed with the shares of the classes, computed sample by sample."""
    total = 0.0
    mass = np.bincount(codes, weight, minlength=n_classes)
    mixed = 2 / (mass.sum() + 2)
    for logits, code, w in zip(logits_of(parameters, outputs, n_classes), codes, weight, strict=True):
        logs = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        total -= w * sum(((1 - mixed) * (k == code) + mixed * mass[k] / mass.sum()) * logs[k] for k in range(n_classes))
    return total


def parameters_of(found, n_classes):
    return np.append(found.slope, found.offset if n_classes == 2 else found.offset[1:] - found.offset[0])


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("signal", [0.0, 1.0, 100.0])
def test_the_likelihood_is_at_its_largest(n_classes, weighted, signal):
    rng = np.random.default_rng(n_classes)
    codes = rng.choice(n_classes, 60, p=np.append(0.5, np.full(n_classes - 1, 0.5 / (n_classes - 1))))
    one_hot = np.eye(n_classes)[codes]
    noise = rng.standard_normal((60, 1 if n_classes == 2 else n_classes))
    outputs = (2 * one_hot[:, 1:] - 1 if n_classes == 2 else one_hot) * signal + noise + 3.0
    weight = rng.integers(0, 3, 60).astype(float) if weighted else np.ones(60)
    found = calibrate(outputs, codes, weight if weighted else None)
    best = minimize(
        loss_of,
        np.zeros(n_classes),
        (outputs, codes, weight, n_classes),
        method="L-BFGS-B",
        bounds=[(0, None), *[(None, None)] * (n_classes - 1)],
        options={"ftol": 1e-14, "gtol": 1e-9},
    )
    ours = loss_of(parameters_of(found, n_classes), outputs, codes, weight, n_classes)
    assert ours <= best.fun + 1e-9
    for number in range(n_classes):  # Nearby values are worse.
        for change in (-1e-3, 1e-3):
            near = parameters_of(found, n_classes)
            near[number] += change * max(near[number], 1e-2)
            if near[0] >= 0.0:
                assert ours <= loss_of(near, outputs, codes, weight, n_classes)
    logits = logits_of(parameters_of(found, n_classes), outputs, n_classes)
    np.testing.assert_allclose(found.probabilities(outputs), softmax(logits, axis=1), atol=1e-12)
    assert n_classes == 2 or abs(found.offset.sum()) < 1e-9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_mean_probabilities_are_the_shares_of_the_classes(n_classes):
    rng = np.random.default_rng(0)
    codes = rng.choice(n_classes, 400, p=[0.9, 0.1] if n_classes == 2 else [0.8, 0.15, 0.05])
    outputs = np.eye(n_classes)[codes][:, 1:] if n_classes == 2 else np.eye(n_classes)[codes]
    outputs = outputs + rng.standard_normal(outputs.shape)
    shares = calibrate(outputs, codes).probabilities(outputs).mean(axis=0)
    np.testing.assert_allclose(shares, np.bincount(codes) / 400, rtol=1e-9)


def test_a_weight_of_two_is_two_samples():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 40)
    outputs = np.eye(3)[codes] + rng.standard_normal((40, 3))
    weight = rng.integers(0, 4, 40)
    repeated = calibrate(np.repeat(outputs, weight, axis=0), np.repeat(codes, weight))
    found = calibrate(outputs, codes, weight)
    np.testing.assert_allclose(found.slope, repeated.slope, rtol=1e-9)
    np.testing.assert_allclose(found.offset, repeated.offset, rtol=1e-9)


def test_values_that_contradict_the_classes():
    """A model that is mostly wrong gets the shares of the classes as probabilities, not a reversed sign."""
    codes = np.repeat([0, 1], [30, 10])
    for values in (1.0 - 2.0 * codes[:, None], np.zeros((40, 1)), np.full((40, 1), 7.0)):
        found = calibrate(values, codes)
        assert found.slope == 0.0
        np.testing.assert_allclose(found.probabilities(values)[:, 1], 0.25, atol=0.01)
    several = calibrate(np.tile([3.0, 1.0, 2.0], (40, 1)), np.repeat([0, 1, 2], [20, 15, 5]))
    assert several.slope == 0.0
    np.testing.assert_allclose(several.probabilities(np.ones((1, 3)))[0], [0.5, 0.375, 0.125], atol=0.02)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_scale_of_the_values_does_not_matter(scale):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, 50)
    outputs = codes[:, None] + rng.standard_normal((50, 1))
    found, other = calibrate(outputs, codes), calibrate(scale * outputs, codes)
    np.testing.assert_allclose(scale * other.slope, found.slope, rtol=1e-9)
    np.testing.assert_allclose(other.offset, found.offset, rtol=1e-9)


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
def test_probabilities_follow_the_decision_values(class_weight, n_classes):
    X, y = make_classification(200, 12, n_informative=4, n_classes=n_classes, class_sep=0.5, random_state=3)
    X, y = X[(y > 0) | (np.arange(200) % 3 == 0)], y[(y > 0) | (np.arange(200) % 3 == 0)]
    model = GroupDiscoveryClassifierCV(4, Cs=2, cv=3, class_weight=class_weight, random_state=0).fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))
    assert model.calibration_offset_.shape == (1 if n_classes == 2 else 3,)
    logits = np.log(shares[:, 1:] / shares[:, :1]) if n_classes == 2 else np.log(shares)
    values = model.decision_function(X).reshape(len(X), -1)
    expected = model.calibration_slope_ * values + model.calibration_offset_
    if n_classes > 2:
        logits, expected = (part - part.mean(axis=1, keepdims=True) for part in (logits, expected))
    agreeing = softmax(np.hstack([np.zeros_like(expected), expected]) if n_classes == 2 else expected, axis=1).argmax(axis=1)
    agreeing = model.classes_[agreeing] == model.predict(X)
    assert agreeing.mean() > 0.8
    np.testing.assert_allclose(logits[agreeing], expected[agreeing], rtol=1e-9, atol=1e-9)
    del model.calibration_offset_  # as in a file of an earlier version, with one slope
    model.calibration_slope_ = 1.0
    assert np.array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


def test_the_predicted_class_is_the_most_probable():
    found = Calibration(2.0, np.array([-1.0]))
    values = np.array([[-1.0], [0.1], [0.3], [0.499], [0.501], [2.0]])
    shares = found.probabilities(values, (values[:, 0] > 0).astype(int))[:, 1]
    assert (np.diff(shares) > 0).all()
    np.testing.assert_allclose(shares[[0, 4, 5]], found.probabilities(values)[[0, 4, 5], 1], atol=1e-12)
    np.testing.assert_allclose(shares[1:4], 0.5, atol=1e-8)
    assert (shares[1:] > 0.5).all()
    several = Calibration(1.0, np.array([0.0, 2.0, -2.0]))
    values = np.array([[1.0, 0.5, 0.0], [0.0, 0.0, 1.0]])
    shares = several.probabilities(values, np.array([0, 2]))
    assert shares.argmax(axis=1).tolist() == [0, 2]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_probabilities_of_a_rare_class_have_its_share():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 8))
    y = (X[:, 0] + X[:, 1] + rng.logistic(size=3000) > 3.4).astype(int)
    model = GroupDiscoveryClassifierCV(3, Cs=3, cv=3, random_state=0).fit(X[:1000], y[:1000])
    assert y.mean() < 0.12
    assert abs(model.predict_proba(X[1000:])[:, 1].mean() - y[1000:].mean()) < 0.015


@pytest.mark.parametrize("kept_sparse", [False, True])
@pytest.mark.parametrize("predict_with", ["support", "groups"])
def test_calibration_uses_held_out_samples(predict_with, kept_sparse):
    """The calibration equals that of separate fits without each fold, in units of their margins."""
    X, y = make_classification(120, 12, n_informative=4, n_redundant=4, random_state=0)
    X = sparse.csc_array(X) if kept_sparse else X
    folds = [(np.arange(120)[np.arange(120) % 3 != k], np.arange(120)[np.arange(120) % 3 == k]) for k in range(3)]
    model = GroupDiscoveryClassifierCV(4, Cs=2, cv=folds, predict_with=predict_with).fit(X, y)
    X = sparse.csr_array(X) if kept_sparse else X
    outputs = np.empty(120)
    for train, test in folds:
        own = chosen_estimator(model).fit(X[train], y[train])
        outputs[test] = own.decision_function(X[test]) / own.margin_
    expected = calibrate(outputs[:, None], y)
    np.testing.assert_allclose(model.calibration_slope_, expected.slope / model.margin_[0], rtol=1e-4)
    np.testing.assert_allclose(model.calibration_offset_, expected.offset, rtol=1e-3, atol=1e-4)


def test_models_with_probabilities(tmp_path):
    X, y = make_classification(80, 6, random_state=0)
    labels = np.array(["no", "yes"])[y]
    plain = GroupDiscoveryClassifier(2).fit(X, labels)
    assert not hasattr(plain, "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as caught:
        _ = plain.predict_proba
    assert "Use loss='logistic', GroupDiscoveryClassifierCV or" in str(caught.value.__cause__)
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
    wrong = {
        "calibration_slope_": (np.nan, -1.0, "steep", np.array([-1.0])),
        "calibration_offset_": (0.0, np.zeros(2), np.array([np.inf])),
    }
    for name, values in wrong.items():
        for value in values:
            forged = clone(model)
            vars(forged).update(vars(model) | {name: value})
            coterie.save(forged, tmp_path / "model")
            with pytest.raises(ValueError, match=f"'{name}'"):
                coterie.load(tmp_path / "model")


def test_two_classes_by_the_formulas_of_several(rng):
    """Loss, probabilities and derivatives for two classes are those of the general code, also for extreme logits."""
    values, targets, weight = rng.standard_normal((4, 30)), rng.random(30), rng.random(30)
    found = np.column_stack([10.0 ** np.arange(-1.0, 3.0), np.zeros(4), rng.standard_normal(4)])
    both = np.stack([np.zeros_like(values), values], axis=2), np.column_stack([1.0 - targets, targets])
    share, loss = calibration._loss(found, *both, weight)
    own_share, own_loss = calibration._loss_of_two(found, values, targets, weight)
    np.testing.assert_allclose(own_loss, loss, rtol=1e-12)
    np.testing.assert_allclose(own_share, share[:, :, 1], rtol=1e-12, atol=1e-300)
    expected = calibration._derivatives(both[0], share, both[1], weight)
    for ours, theirs in zip(calibration._derivatives_of_two(values, own_share, targets, weight), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("start", [0.0, -60.0, 60.0])
def test_the_fit_reaches_the_optimum_from_saturated_probabilities(start):
    """The second derivatives vanish there. A Newton step without bound overflows, or its equations are singular."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], [9, 9, 1])
    targets = calibration.target_probabilities(codes, np.ones(19), np.array([0.4, 0.5, 0.1]))
    values = 0.1 * rng.standard_normal((1, 19, 3)) + 0.5 * np.eye(3)[codes]
    weight = np.full(19, 1 / 19)
    found, entropy = calibration._fitted(values, targets, weight, np.array([0.0, 0.0, start]), True, 1e-22)
    expected, least = calibration._fitted(values, targets, weight, np.zeros(3), True, 1e-22)
    assert found == pytest.approx(expected, rel=1e-7)
    assert entropy == pytest.approx(least, rel=1e-12)
