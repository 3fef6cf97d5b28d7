"""Wrong input raises one clear error before any work."""

import numpy as np
import pytest
from sklearn.feature_selection import VarianceThreshold
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import coterie
from coterie.filters.selector import FilterSelector

X = np.random.default_rng(0).standard_normal((20, 6))
y = np.tile([0, 1], 10)


@pytest.mark.parametrize(
    ("methods", "options", "words"),
    [
        ("gdn", {}, "Unknown method 'gdn'. The methods are gdm, fgm"),
        ([], {}, "methods is empty"),
        (["gdm", "gdm"], {}, "'gdm' twice"),
        ([LinearSVC()], {}, "neither a selector with fit and get_support"),
        ([FilterSelector], {}, "neither a selector"),
        ([VarianceThreshold()], {}, "no parameter n_features_to_select, k or max_features"),
        ({"": FilterSelector()}, {}, "name of a method is empty"),
        ("gdm", {"n_features": 7}, "n_features has 7, but X has 6"),
        ("gdm", {"n_features": [2, 0]}, "n_features=0 must be"),
        ("gdm", {"n_features": [2.5]}, "n_features=2.5 must be"),
        ("gdm", {"n_features": []}, "n_features is empty"),
        ("gdm", {"cv": 1}, "cv=1 must be"),
        ("gdm", {"cv": "three"}, "cv='three' must be"),
        ("gdm", {"classifier": "svm"}, "must be one of linear_svm, knn"),
        ("gdm", {"classifier": LinearSVC}, "or a scikit-learn estimator"),
        ("gdm", {"scoring": "auc"}, "Did you mean 'roc_auc'"),
        ("gdm", {"scoring": 3}, "scoring=3"),
        ("gdm", {"time_limit": 0}, "time_limit=0"),
        ("gdm", {"memory_limit": "much"}, "'much' is not a size of memory"),
        ("gdm", {"memory_limit": -1}, "memory_limit=-1"),
    ],
)
def test_wrong_arguments(methods, options, words):
    with pytest.raises(ValueError, match=words):
        coterie.compare(methods, X, y, **options)


def test_wrong_data():
    for bad, labels, words in (
        (X, None, "requires y"),
        (X, y[:-1], "inconsistent numbers of samples"),
        (X, np.zeros(20), "only one class"),
        (X, X[:, 0], "'fisher' requires classes, but the labels are numbers"),
        (np.where(X > 2, np.nan, X), y, "NaN"),
    ):
        with pytest.raises(ValueError, match=words):
            coterie.compare("fisher", bad, labels, n_features=2)


def test_error_names_the_selector_that_cannot_be_pickled():
    class Clinging(FilterSelector):
        def __reduce__(self):
            raise TypeError("cannot pickle me")

    with pytest.raises(ValueError, match="selector 'mine' cannot be sent to another process: cannot pickle me"):
        coterie.compare({"mine": Clinging()}, X, y, n_features=2)


def test_default_numbers_of_features(inline):
    assert coterie.compare("fisher", X, y, cv=2).table.n_features.unique().tolist() == [5]
    assert coterie.compare("fisher", X[:, :3], y, cv=2).table.n_features.unique().tolist() == [3]


@parametrize_with_checks([FilterSelector("fisher", 1), FilterSelector("variance", 1)])
def test_filter_selector_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
