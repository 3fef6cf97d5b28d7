"""Held-out predictions of the whole procedure, their scores and the default score."""

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
)
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

import coterie
from coterie import GroupDiscoveryClassifierCV, GroupDiscoveryOneClassCV, GroupDiscoveryRegressorCV
from coterie.validation.calibration import calibrate
from coterie.validation.held_out import default_scoring
from tests.estimators.chosen import chosen_estimator
from tests.validation.test_nested import written_out


def sample(n=150, n_classes=2, rare=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 12))
    y = np.argmax(1.5 * X[:, :n_classes] + rng.gumbel(size=(n, n_classes)), axis=1)
    return (X, y) if not rare else (X, (X[:, 0] + X[:, 1] + rng.logistic(size=n) > rare).astype(int))


def folds_of(y, n_folds=3):
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(np.zeros(len(y)), y))


def nested(X, y, **options):
    return GroupDiscoveryClassifierCV(3, Cs=[0.1, 1.0], nested=True, cv=folds_of(y), **options).fit(X, y)


@pytest.mark.parametrize("weighted", [False, True])
def test_figures_of_two_classes(weighted):
    X, y = sample()
    labels = np.array(["no", "yes"])[y]
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float) if weighted else None
    options = {"nested": True, "cv": folds_of(y), "Cs": [0.1, 1.0]}
    model = GroupDiscoveryClassifierCV(3, **options).fit(X, labels, weight)
    values, scores = model.held_out_predictions_, model.held_out_scores_
    predicted = (values > 0).astype(int)
    assert values.shape == (150,)
    assert scores["accuracy"] == pytest.approx(accuracy_score(y, predicted, sample_weight=weight))
    assert scores["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted, sample_weight=weight))
    np.testing.assert_allclose(model.held_out_confusion_, confusion_matrix(y, predicted, sample_weight=weight))
    ones = np.ones(len(y)) if weight is None else weight
    pairs = right = 0.0
    for _, held_out in options["cv"]:
        w, own = ones[held_out], y[held_out]
        mass = w[own == 1].sum() * w[own == 0].sum()
        pairs, right = pairs + mass, right + mass * roc_auc_score(own, values[held_out], sample_weight=w)
    assert scores["roc_auc"] == pytest.approx(right / pairs)
    assert model.baseline_scores_["roc_auc"] == model.baseline_scores_["balanced_accuracy"] == 0.5
    for name, (low, high) in model.held_out_intervals_.items():
        assert 0.0 <= low < scores[name] < high <= 1.0


def test_brier_score():
    """Each fold has probabilities whose calibration does not use it."""
    X, y = sample()
    folds = folds_of(y)
    options = {"min_features_to_select": 3, "Cs": [0.1], "predict_with": "support"}
    model = GroupDiscoveryClassifierCV(3, nested=True, cv=folds, **options).fit(X, y)
    values = np.empty(len(y))
    for train, held_out in folds:
        own = chosen_estimator(model).fit(X[train], y[train])
        values[held_out] = own.decision_function(X[held_out]) / own.margin_
    shares = np.empty(len(y))
    for train, held_out in folds:
        shares[held_out] = calibrate(values[train, None], y[train]).probabilities(values[held_out, None])[:, 1]
    assert model.held_out_scores_["brier_score"] == pytest.approx(brier_score_loss(y, shares), abs=1e-5)


def test_predictions_are_those_of_models_fitted_without_the_sample():
    X, y = sample()
    folds = folds_of(y)
    model = nested(X, y)
    np.testing.assert_allclose(model.nested_scores_, written_out(model, X, y, folds))
    by_fold = [np.mean((model.held_out_predictions_[held_out] > 0) == y[held_out]) for _, held_out in folds]
    np.testing.assert_allclose(by_fold, model.nested_scores_)
    changed = y.copy()
    changed[folds[0][1]] = 1 - y[folds[0][1]]
    other = GroupDiscoveryClassifierCV(3, Cs=[0.1, 1.0], nested=True, cv=folds).fit(X, changed)
    held_out = folds[0][1]
    np.testing.assert_allclose(other.held_out_predictions_[held_out], model.held_out_predictions_[held_out])


def test_figures_of_several_classes_and_numbers():
    X, y = sample(n_classes=3)
    model = nested(X, y)
    predicted = model.held_out_predictions_.argmax(axis=1)
    assert model.held_out_predictions_.shape == (150, 3)
    assert model.held_out_scores_["accuracy"] == pytest.approx(accuracy_score(y, predicted))
    assert model.held_out_scores_["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted))
    assert set(model.held_out_scores_) == {"accuracy", "balanced_accuracy"}
    np.testing.assert_array_equal(model.held_out_confusion_, confusion_matrix(y, predicted))
    target = 2 * X[:, 0] + np.random.default_rng(0).standard_normal(150)
    number = GroupDiscoveryRegressorCV(3, Cs=[0.1, 1.0], nested=True, cv=3, random_state=0).fit(X, target)
    assert number.scoring_ == "r2"
    assert number.held_out_scores_["r2"] == pytest.approx(r2_score(target, number.held_out_predictions_))
    expected = mean_absolute_error(target, number.held_out_predictions_)
    assert number.held_out_scores_["mean_absolute_error"] == pytest.approx(expected)
    assert not hasattr(number, "held_out_confusion_")
    low, high = number.held_out_intervals_["r2"]
    assert low < number.held_out_scores_["r2"] < high < 1.0


def test_samples_outside_the_folds_and_other_scores():
    X, _ = sample()
    target = 2 * X[:, 0] + np.random.default_rng(0).standard_normal(150)
    cv = ShuffleSplit(4, test_size=0.2, random_state=0)
    model = GroupDiscoveryRegressorCV(3, Cs=[1.0], nested=True, cv=cv, scoring="neg_mean_squared_error").fit(X, target)
    count = np.bincount(np.concatenate([held_out for _, held_out in cv.split(X)]), minlength=150)
    assert np.array_equal(np.isnan(model.held_out_predictions_), count == 0)
    assert count.max() > 1
    assert model.held_out_scores_["neg_mean_squared_error"] == pytest.approx(model.nested_scores_.mean())
    low, high = model.held_out_intervals_["neg_mean_squared_error"]
    assert low < model.nested_scores_.mean() < high


def test_one_class():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 6)) + 2.0
    y = np.where(np.arange(90) % 3 == 0, -1, 1)
    X[y == -1] -= 2.0
    model = GroupDiscoveryOneClassCV(3, Cs=3, nested=True, cv=3, random_state=0).fit(X, y)
    predicted = np.where(model.held_out_predictions_ >= 0, 1, -1)
    assert model.held_out_scores_["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted))
    assert "brier_score" not in model.held_out_scores_
    assert model.baseline_scores_["balanced_accuracy"] == 0.5


@pytest.mark.parametrize(
    ("counts", "name"),
    [
        ([80, 20], "accuracy"), ([81, 19], "roc_auc"), ([19, 81], "roc_auc"), ([40, 40, 20], "accuracy"),
        ([41, 40, 19], "balanced_accuracy"), ([10] * 10, "accuracy"), ([50] * 9 + [20], "balanced_accuracy"),
    ],
)  # fmt: skip
def test_the_default_score_depends_on_the_rarest_class(counts, name):
    codes = np.repeat(np.arange(len(counts)), counts)
    assert default_scoring(codes, len(counts)) == name
    weight = 1.0 / np.array(counts)[codes]
    assert default_scoring(codes, len(counts), weight) == "accuracy"


def test_rare_classes_are_scored_by_the_auc():
    X, y = sample(400, rare=3.5)
    assert y.mean() < 0.15
    model = nested(X, y)
    named = nested(X, y, scoring="roc_auc", rule="deviance")
    assert model.scoring_ == named.scoring_ == "roc_auc"
    np.testing.assert_array_equal(model.nested_scores_, named.nested_scores_)
    assert nested(X, y, scoring="accuracy").scoring_ == "accuracy"


def test_folds_with_one_class():
    """With sample groups, a fold may lack a class. Its AUC is undefined; the choice uses the other folds."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(30), 6)
    y = (group < 4).astype(int)
    X = rng.standard_normal((180, 8))
    X[:, 0] += 2 * y
    held = [np.isin(group, part) for part in (np.r_[0, 4:8], np.r_[1, 8:14], np.r_[2, 14:20], np.r_[3, 20:25], np.r_[25:30])]
    cv = [(np.flatnonzero(~own), np.flatnonzero(own)) for own in held]
    model = GroupDiscoveryClassifierCV(2, Cs=[0.1, 1.0], cv=cv, nested=True).fit(X, y, groups=group)
    assert np.isnan(model.nested_scores_).tolist() == [False] * 4 + [True]
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    values = model.held_out_predictions_
    pairs = [(own & (y == 1)).sum() * (own & (y == 0)).sum() for own in held[:4]]
    expected = np.average([roc_auc_score(y[own], values[own]) for own in held[:4]], weights=pairs)
    assert model.held_out_scores_["roc_auc"] == pytest.approx(expected)
    assert model.baseline_scores_["roc_auc"] == 0.5
    by_row = GroupDiscoveryClassifierCV(2, Cs=[0.1, 1.0], cv=cv, nested=True).fit(X, y)
    assert np.diff(by_row.held_out_intervals_["roc_auc"]) < np.diff(model.held_out_intervals_["roc_auc"])


def test_figures_are_saved(tmp_path):
    X, y = sample()
    model = nested(X, y)
    coterie.save(model, tmp_path / "model")
    read = coterie.load(tmp_path / "model")
    np.testing.assert_array_equal(read.held_out_predictions_, model.held_out_predictions_)
    assert read.held_out_scores_ == model.held_out_scores_
    assert read.held_out_intervals_ == model.held_out_intervals_
    assert read.scoring_ == "accuracy"
