"""The number of features by cross-validation: one path a fold, equal to a fit for every size."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss, make_scorer
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV
from coterie.discovery.size_search import best_size, merge_paths
from tests.conftest import grouped_matrix, sparse_counts


@parametrize_with_checks([GroupDiscoveryClassifierCV(5, n_features_per_round=2, cv=2)])
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def mean_margin(estimator, X, y):
    """A score that rounding errors in tied decision values do not change."""
    return float((estimator.decision_function(X) * y).mean())


@pytest.mark.parametrize("predict_with", ["support", "groups"])
@pytest.mark.parametrize("correlation", ["pearson", "su"])
@pytest.mark.parametrize("is_sparse", [True, False])
def test_path_scores_equal_separate_fits(rng, predict_with, correlation, is_sparse):
    X, y = sparse_counts(rng)
    X = sparse.csc_array(X) if is_sparse else X
    options = {
        "n_features_per_round": 2, "predict_with": predict_with, "correlation": correlation,
        "threshold": 0.5, "class_weight": "balanced", "standardize": True,
    }  # fmt: skip
    folds = StratifiedKFold(3, shuffle=True, random_state=1)
    model = GroupDiscoveryClassifierCV(8, cv=folds, scoring=mean_margin, **options).fit(X, y)
    results = model.cv_results_
    assert results["n_features"].tolist() == [2, 4, 6, 8]
    rows = X.tocsr() if is_sparse else X
    for fold, (train, test) in enumerate(folds.split(np.zeros((len(y), 1)), y)):
        for position, size in enumerate(results["n_features"]):
            single = GroupDiscoveryClassifier(int(size), **options).fit(rows[train], y[train])
            expected = mean_margin(single, rows[test], y[test])
            assert results[f"split{fold}_test_score"][position] == pytest.approx(expected, abs=1e-12)
    best = int(np.argmax(results["mean_test_score"]))
    assert model.n_features_ == results["n_features"][best]
    assert model.best_score_ == results["mean_test_score"][best]
    plain = GroupDiscoveryClassifier(model.n_features_, **options).fit(X, y)
    assert model.groups_ == plain.groups_
    np.testing.assert_array_equal(model.prediction_coef_, plain.prediction_coef_)


def test_first_support_features_do_not_depend_on_the_number_asked_for(planted):
    long = GroupDiscoveryClassifier(12, n_features_per_round=3).fit(planted.X, planted.y)
    for size in (3, 6, 9):
        short = GroupDiscoveryClassifier(size, n_features_per_round=3).fit(planted.X, planted.y)
        np.testing.assert_array_equal(short.support_features_, long.support_features_[:size])


def test_finds_the_planted_number(planted):
    model = GroupDiscoveryClassifierCV(30, n_features_per_round=1, C=10.0, random_state=0).fit(planted.X, planted.y)
    assert 4 <= model.n_features_ <= 8
    assert len(model.groups_) == model.n_features_
    again = clone(model).fit(planted.X, planted.y)
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"])


def test_sample_weights_reach_the_scores(rng):
    X, y = grouped_matrix(rng)
    test_fold = np.arange(len(y)) % 3
    weight = rng.integers(0, 3, len(y))
    weight[:4] = 1
    model = GroupDiscoveryClassifierCV(6, n_features_per_round=3, cv=PredefinedSplit(test_fold))
    weighted = clone(model).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(len(y)), weight)
    repeated = model.set_params(cv=PredefinedSplit(test_fold[rows])).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.cv_results_["mean_test_score"], repeated.cv_results_["mean_test_score"])


def test_several_classes_names_and_scorers(rng):
    X, _ = grouped_matrix(rng, n_samples=90)
    y = np.array(["low", "mid", "top"])[np.argsort(np.argsort(X[:, 0])) // 30]
    folds = ShuffleSplit(3, test_size=0.3, random_state=0)
    by_name = GroupDiscoveryClassifierCV(6, n_features_per_round=2, cv=folds, scoring="balanced_accuracy").fit(X, y)
    two = GroupDiscoveryClassifierCV(6, n_features_per_round=2, cv=folds, scoring="roc_auc").fit(X, y == "top")
    assert two.best_score_ > 0.9
    assert by_name.best_score_ > 0.6
    assert set(by_name.predict(X)) <= {"low", "mid", "top"}

    def careful(estimator, X, y):
        assert X.shape[1] == 3
        return (estimator.predict(X) == y).mean()

    assert GroupDiscoveryClassifierCV(6, n_features_per_round=2, cv=folds, scoring=careful).fit(X, y).best_score_ > 0.6


def test_exhausted_folds_keep_their_last_score():
    results = merge_paths([[(2, 0.5), (4, 0.7)], [(2, 0.6), (4, 0.6), (6, 0.9)], [(3, 0.1), (6, 0.2)]])
    assert results["n_features"].tolist() == [3, 4, 6]
    np.testing.assert_allclose(results["split0_test_score"], [0.5, 0.7, 0.7])
    np.testing.assert_allclose(results["split1_test_score"], [0.6, 0.6, 0.9])
    np.testing.assert_allclose(results["split2_test_score"], [0.1, 0.1, 0.2])
    assert best_size(results) == 2
    assert best_size({"mean_test_score": np.array([0.5, 0.7, 0.7])}) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_features_to_select": 0}, "max_features_to_select=0 must be a whole number"),
        ({"cv": 1}, "cv=1"),
        ({"scoring": "nonsense"}, "nonsense"),
        ({"scoring": make_scorer(log_loss, response_method="predict_proba")}, "predict_proba"),
        ({"predict_with": "everything"}, "predict_with='everything'"),
        ({"max_features_to_select": 3, "fixed_features": [0, 1, 2, 3]}, "more than n_features_to_select=3"),
    ],
)
def test_bad_parameters(rng, parameters, message):
    X, y = grouped_matrix(rng)
    model = GroupDiscoveryClassifierCV(**{"n_features_per_round": 5, **parameters})
    with pytest.raises((ValueError, AttributeError), match=message):
        model.fit(X, y)
    assert not hasattr(model, "groups_")


def test_a_fold_without_a_class_is_an_error(rng):
    X, y = rng.standard_normal((30, 5)), np.repeat([0, 1, 2], 10)
    with pytest.raises(ValueError, match="fold 1 of cv has no samples of class"):
        GroupDiscoveryClassifierCV(4, n_features_per_round=2, cv=KFold(3)).fit(X, y)
