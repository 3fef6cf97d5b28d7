"""Imputation, by each fold from its own training samples and by a model for new samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold

import coterie
from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, imputed
from coterie.data import DenseSource, ImputedSource
from coterie.validation.path_search import PathSearch

STRATEGIES = ["median", "mean", "most_frequent"]


@pytest.fixture
def gappy(rng):
    X = rng.standard_normal((90, 12))
    y = (X[:, 2] + X[:, 7] + 0.3 * rng.standard_normal(90) > 0).astype(int)
    X[rng.random(X.shape) < 0.15] = np.nan
    return X, y


@given(arrays(np.float64, (7, 3), elements=st.sampled_from([0.0, 1.0, 1.5, -2.0, np.nan])), st.sampled_from(STRATEGIES))
def test_as_scikit_learn_fills(X, strategy):
    if np.isnan(X).all(axis=0).any():
        with pytest.raises(ValueError, match="are missing"):
            ImputedSource(X, strategy)
        return
    np.testing.assert_array_equal(ImputedSource(X, strategy).array, SimpleImputer(strategy=strategy).fit_transform(X))
    train = np.array([0, 2, 4, 5])
    if not np.isnan(X[train]).all(axis=0).any():
        expected = SimpleImputer(strategy=strategy).fit(X[train]).transform(X)
        np.testing.assert_array_equal(ImputedSource(X, strategy).refilled(train).array, expected)


def test_a_feature_without_a_value_in_the_training_part_is_constant_there():
    X = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, 5.0]])
    np.testing.assert_array_equal(ImputedSource(X, "mean").refilled(np.array([0, 1])).array[:, 1], [0, 0, 5])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_held_out_samples_do_not_affect_imputation(gappy, strategy, monkeypatch):
    """Validation scores equal those of folds imputed from their training samples only."""
    X, y = gappy
    folds = list(StratifiedKFold(3, shuffle=True, random_state=1).split(X, y))
    options = {
        "max_features_to_select": 4,
        "Cs": [0.1, 1.0],
        "cv": folds,
        "predict_with": ["support", "groups"],
        "nested": True,
    }
    model = GroupDiscoveryClassifierCV(**options).fit(imputed(X, strategy), y)

    def by_hand(self, fold):
        train = fold.weight > 0
        return DenseSource(SimpleImputer(strategy=strategy).fit(X[train]).transform(X))

    monkeypatch.setattr(PathSearch, "_source_of", by_hand)
    expected = GroupDiscoveryClassifierCV(**options).fit(imputed(X, strategy), y)
    monkeypatch.undo()
    leaking = GroupDiscoveryClassifierCV(**options).fit(SimpleImputer(strategy=strategy).fit_transform(X), y)
    np.testing.assert_array_equal(model.nested_scores_, expected.nested_scores_)
    for name in model.cv_results_:
        np.testing.assert_array_equal(model.cv_results_[name], expected.cv_results_[name])
    assert any((model.cv_results_[name] != leaking.cv_results_[name]).any() for name in model.cv_results_)


def test_held_out_values_do_not_change_what_a_fold_learns(gappy):
    """Different values in the held-out samples do not change the fit of a fold."""
    X, _ = gappy
    train = np.arange(60)
    seen = [
        ImputedSource(Z, "median").refilled(train).array[train] for Z in (X, np.where(np.arange(90)[:, None] < 60, X, 1e3))
    ]
    np.testing.assert_array_equal(*seen)


def test_a_model_fills_new_samples(gappy, tmp_path):
    X, y = gappy
    model = GroupDiscoveryClassifier(4).fit(imputed(X), y)
    filled = SimpleImputer(strategy="median").fit_transform(X)
    np.testing.assert_array_equal(model.decision_function(X), model.decision_function(filled))
    plain = GroupDiscoveryClassifier(4).fit(filled, y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(filled))
    np.testing.assert_array_equal(model.transform(X), plain.transform(filled))
    coterie.save(model, tmp_path / "m.coterie")
    again = coterie.load(tmp_path / "m.coterie")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(filled))
    with pytest.raises(ValueError, match="infinity"):
        model.predict(np.full((1, 12), np.inf))
    with pytest.raises(ValueError, match="NaN"):
        plain.predict(X)


@pytest.mark.parametrize(
    ("X", "strategy", "message"),
    [
        (np.eye(3), "modal", "impute='modal' must be one of median, mean, most_frequent"),
        (sparse.eye_array(3), "mean", "applies only to dense features"),
        ([[1.0, np.nan], [2.0, np.nan]], "mean", "All values of feature 1 are missing"),
        ([["a", 1.0]] * 3, "mean", "Features must be numbers"),
    ],
)
def test_bad_input(X, strategy, message):
    with pytest.raises(ValueError, match=message):
        imputed(X, strategy)


def test_infinite_values_are_not_missing(gappy):
    X, y = gappy
    X[5, 3] = np.inf
    with pytest.raises(ValueError, match=r"1 NaN or infinite value\(s\) in 1 .* in sample 5 of feature 3"):
        GroupDiscoveryClassifier(2).fit(imputed(X), y)


def test_integers_and_single_precision():
    ints = np.array([[1, 2], [3, 4]], dtype=np.int8)
    assert ImputedSource(ints, "median").array.dtype == np.int8
    floats = np.array([[0.1], [np.nan], [0.2]], dtype=np.float32)
    source = ImputedSource(floats, "mean")
    assert source.array.dtype == np.float32
    assert np.float32(source.fill_values[0]) == source.fill_values[0] == source.array[1, 0]
