"""The nested score compared with a direct implementation of nested cross-validation."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit, StratifiedKFold

from coterie import GroupDiscoveryClassifierCV, GroupDiscoveryRegressorCV
from coterie.datasets import make_support_affiliated

OPTIONS = {"Cs": [0.01, 1.0], "predict_with": ["support", "groups"], "nested": True}


@pytest.fixture(scope="module")
def planted():
    return make_support_affiliated(160, 80, n_support=4, n_true=10, random_state=1)


def written_out(model, X, y, folds):
    """Return the score on each fold k of the settings that the other folds choose."""
    scores = []
    for k, (train, held_out) in enumerate(folds):
        number = np.full(len(y), -1)
        for j, (_, other) in enumerate(folds):
            if j != k:
                number[other] = j
        inner = clone(model).set_params(cv=PredefinedSplit(number[train]), nested=False)
        scores.append(inner.fit(X[train], y[train]).score(X[held_out], y[held_out]))
    return scores


@pytest.mark.parametrize("rule", ["best", "one_se", "deviance"])
def test_classifier(planted, rule):
    folds = list(StratifiedKFold(4, shuffle=True, random_state=0).split(planted.X, planted.y))
    model = GroupDiscoveryClassifierCV(12, cv=folds, rule=rule, **OPTIONS).fit(planted.X, planted.y)
    np.testing.assert_allclose(model.nested_scores_, written_out(model, planted.X, planted.y, folds))
    majority = [max(np.mean(planted.y[held_out] == c) for c in [np.median(planted.y[train])]) for train, held_out in folds]
    assert model.constant_scores_.shape == (4,)
    assert np.abs(model.constant_scores_ - majority).max() < 0.2
    plain = clone(model).set_params(nested=False).fit(planted.X, planted.y)
    assert not hasattr(plain, "nested_scores_")
    np.testing.assert_array_equal(plain.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(plain.support_features_, model.support_features_)


def test_regressor(planted):
    y = planted.X[:, planted.groups.support] @ planted.weights + np.random.default_rng(0).standard_normal(160)
    folds = list(KFold(4).split(planted.X))
    model = GroupDiscoveryRegressorCV(10, cv=folds, **OPTIONS).fit(planted.X, y)
    np.testing.assert_allclose(model.nested_scores_, written_out(model, planted.X, y, folds), rtol=1e-7)
    expected = [1 - ((y[o] - y[t].mean()) ** 2).sum() / ((y[o] - y[o].mean()) ** 2).sum() for t, o in folds]
    np.testing.assert_allclose(model.constant_scores_, expected)


def test_constant_prediction_is_the_largest_class(planted):
    rng = np.random.default_rng(0)
    for y in (rng.random(160) < 0.2, rng.choice(3, 160, p=[0.2, 0.7, 0.1])):
        options = {"Cs": [0.1], "nested": True, "random_state": 0, "cv": 3, "scoring": "accuracy"}
        model = GroupDiscoveryClassifierCV(3, **options).fit(planted.X, y)
        assert model.constant_scores_.mean() == pytest.approx(max(np.bincount(y)) / 160, abs=0.01)
        assert model.nested_scores_.mean() < model.constant_scores_.mean() + 0.05  # The features are uninformative.


def test_nested_score_is_unbiased_without_signal():
    """The best of many scores is too optimistic. The nested score is not."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 500)), np.arange(60) % 2
    model = GroupDiscoveryClassifierCV(20, Cs=5, rule="best", nested=True, random_state=0).fit(X, y)
    assert model.nested_scores_.mean() < model.best_score_ - 0.05


def test_given_sizes(planted):
    model = GroupDiscoveryClassifierCV(6, min_features_to_select=6, Cs=[0.1, 1.0], cv=3, nested=True, random_state=0)
    assert model.fit(planted.X, planted.y).n_features_ == 6
    assert model.set_params(min_features_to_select=50).fit(planted.X, planted.y).n_features_ == 6
    assert model.set_params(min_features_to_select=3, max_features_to_select=9).fit(planted.X, planted.y).n_features_ >= 3


@pytest.mark.parametrize("cv", [2, ShuffleSplit(3, test_size=0.9, random_state=0)])
def test_folds_that_cannot_be_nested(planted, cv):
    model = GroupDiscoveryClassifierCV(3, Cs=[1.0], cv=cv, nested=True)
    with pytest.raises(ValueError, match=r"nested=True requires at least three folds|no training samples of class"):
        model.fit(planted.X, planted.y)
