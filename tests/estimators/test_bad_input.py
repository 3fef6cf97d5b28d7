"""Every wrong input raises one clear ValueError that names the remedy."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, GroupDiscoveryRegressor
from coterie.data import DenseSource
from coterie.data.source import Moments
from tests.conftest import grouped_matrix


@pytest.fixture
def Xy():
    return grouped_matrix(np.random.default_rng(0), n_features=10)


def test_one_class(Xy):
    with pytest.raises(ValueError, match=r"only one class \(.*1.*\)\. A classifier requires at least two"):
        GroupDiscoveryClassifier(2).fit(Xy[0], np.ones(len(Xy[1])))


def test_one_sample(Xy):
    with pytest.raises(ValueError, match="1 sample"):
        GroupDiscoveryClassifier(2).fit(Xy[0][:1], Xy[1][:1])


def test_one_sample_of_a_class(Xy):
    X, y = Xy
    y = np.ones(len(y))
    y[3] = -1
    with pytest.warns(UserWarning, match=r"Class -1.0 has one sample"):
        model = GroupDiscoveryClassifier(2).fit(X, y)
    assert len(model.groups_) == 2


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sparse.csc_array, sparse.csr_matrix])
def test_bad_values_are_named(Xy, make, bad):
    X = Xy[0].copy()
    X[7, 4] = bad
    with pytest.raises(ValueError, match=r"1 NaN or infinite.*sample 7 of feature 4.*SimpleImputer"):
        GroupDiscoveryClassifier(2).fit(make(X), Xy[1])


def test_bad_values_by_name(Xy):
    frame = pd.DataFrame(Xy[0], columns=[f"c{j}" for j in range(10)])
    frame.loc[5, "c3"] = np.nan
    with pytest.raises(ValueError, match=r"sample 5 of feature 3 \('c3'\)"):
        GroupDiscoveryClassifier(2).fit(frame, Xy[1])


def test_no_features(Xy):
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        GroupDiscoveryClassifier(2).fit(np.empty((len(Xy[1]), 0)), Xy[1])


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_all_constant(Xy, make):
    X = np.tile([1.0, 0.0, 3.0], (len(Xy[1]), 1))
    with pytest.raises(ValueError, match="All features of X are constant"):
        GroupDiscoveryClassifier(2).fit(make(X), Xy[1])


def test_strings(Xy):
    X = np.array([["a", "b"]] * len(Xy[1]))
    for values in (X, X.astype(object)):
        with pytest.raises(ValueError, match=r"Features must be numbers.*[Ee]ncode"):
            GroupDiscoveryClassifier(1).fit(values, Xy[1])


def test_wrong_lengths(Xy):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GroupDiscoveryClassifier(2).fit(Xy[0], Xy[1][:-1])
    with pytest.raises(ValueError, match="sample_weight"):
        GroupDiscoveryClassifier(2).fit(*Xy, sample_weight=np.ones(3))


def test_wrong_weights(Xy):
    weight = np.ones(len(Xy[1]))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        GroupDiscoveryClassifier(2).fit(*Xy, sample_weight=-weight)
    with pytest.raises(ValueError, match=r"Class .* has no sample"):
        GroupDiscoveryClassifier(2).fit(*Xy, sample_weight=(Xy[1] > 0).astype(float))
    with pytest.raises(ValueError, match="class_weight must be positive"):
        GroupDiscoveryClassifier(2, class_weight={-1: 0.0, 1: 1.0}).fit(*Xy)


def test_labels_that_are_sequences(Xy):
    X, y = Xy
    labels = np.empty(len(y), dtype=object)
    labels[:] = [("a", int(label)) for label in y]
    number = GroupDiscoveryClassifierCV(2, Cs=2, cv=3, random_state=0).fit(X, y)
    model = GroupDiscoveryClassifierCV(2, Cs=2, cv=3, random_state=0).fit(X, labels)
    np.testing.assert_array_equal(model.coef_, number.coef_)
    for estimator in (GroupDiscoveryClassifier(2), GroupDiscoveryClassifierCV(2)):
        with pytest.raises(ValueError, match="sequences of different lengths"):
            estimator.fit(X, [[1], [2, 3]] * (len(y) // 2))


def test_missing_or_continuous_labels(Xy):
    y = Xy[1].astype(float)
    y[0] = np.nan
    with pytest.raises(ValueError, match=r"y contains NaN or None: 1 label\(s\) are missing. The first is that of sample 0"):
        GroupDiscoveryClassifier(2).fit(Xy[0], y)
    for nothing in (None, float("nan")):
        labels = np.where(Xy[1] > 0, "yes", "no").astype(object)
        labels[[4, 9]] = nothing
        with pytest.raises(ValueError, match=r"2 label\(s\) are missing\. The first is that of sample 4\. Drop"):
            GroupDiscoveryClassifier(2).fit(Xy[0], labels)
    with pytest.raises(ValueError, match="Unknown label type"):
        GroupDiscoveryClassifier(2).fit(Xy[0], Xy[0][:, 0])
    with pytest.raises(ValueError, match="y"):
        GroupDiscoveryClassifier(2).fit(Xy[0], None)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_features_to_select": 0}, "at least 1"),
        ({"n_features_to_select": -3}, "at least 1"),
        ({"n_features_to_select": 1.5}, r"fraction in \(0, 1\)"),
        ({"n_features_to_select": "all"}, "must be a whole number of at least 1, a fraction in .0, 1. or 'auto'"),
        ({"n_features_to_select": True}, "whole number"),
        ({"n_features_per_round": 0}, "n_features_per_round=0"),
        ({"n_features_per_round": "few"}, "n_features_per_round='few' must be a whole number of at least 1 or 'auto'"),
        ({"threshold": 0.0}, "threshold=0.0 must be a number above 0 and at most 1"),
        ({"threshold": 1.01}, "threshold=1.01"),
        ({"threshold": "high"}, "threshold='high'"),
        ({"threshold": np.nan}, "threshold=nan"),
        ({"correlation": "kendall"}, "correlation='kendall' must be one of 'pearson', 'spearman', 'su', None or a function"),
        ({"n_bins": 1}, "n_bins=1"),
        ({"n_bins": 300}, "at most 255"),
        ({"affiliates": "some"}, "affiliates='some' must be one of 'complete', 'ranked'"),
        ({"keep": "all"}, "keep='all'"),
        ({"cv_part": "half"}, "cv_part='half' must be one of 'training', 'fold'"),
        ({"representative": "mean"}, "representative='mean'"),
        ({"C": 0}, "C=0 must be a number of at least 1e-20"),
        ({"C": np.inf}, "C=inf must be finite"),
        ({"tol": -1e-4}, "tol=-0.0001"),
        ({"max_rounds": 0}, "max_rounds=0"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"n_jobs": "two"}, "n_jobs='two' must be a whole number"),
        ({"verbose": None}, "verbose=None"),
        ({"fixed_features": [10]}, "fixed_features has index 10, but X has 10 features"),
        ({"fixed_features": ["a"]}, "X has no feature names. Pass indices"),
        ({"fixed_features": [1, 1]}, "twice"),
        ({"fixed_features": [True, False]}, "mask of length 2"),
        ({"fixed_features": [[1, 2]]}, "fixed_features must be a flat list"),
        ({"fixed_features": [0, 1, 2]}, "fixed_features has 3 features, more than n_features_to_select=2"),
    ],
)
def test_wrong_parameters(Xy, parameters, message):
    with pytest.raises(ValueError, match=message):
        GroupDiscoveryClassifier(**{"n_features_to_select": 2, **parameters}).fit(*Xy)


def test_fixed_features_by_unknown_name_or_constant(Xy):
    frame = pd.DataFrame(Xy[0], columns=[f"c{j}" for j in range(10)])
    frame["c9"] = 1.0
    with pytest.raises(ValueError, match="contains 'age', which is not a feature of X"):
        GroupDiscoveryClassifier(2, fixed_features=["age"]).fit(frame, Xy[1])
    with pytest.raises(ValueError, match="'c9', which is constant"):
        GroupDiscoveryClassifier(2, fixed_features=["c9"]).fit(frame, Xy[1])
    model = GroupDiscoveryClassifier(2, fixed_features=["c4"]).fit(frame, Xy[1])
    assert model.support_features_[0] == 4


def test_prediction_on_other_data(Xy):
    model = GroupDiscoveryClassifier(2).fit(*Xy)
    with pytest.raises(ValueError, match="expecting 10 features"):
        model.predict(Xy[0][:, :9])
    with pytest.raises(ValueError, match="NaN"):
        model.transform(np.full((2, 10), np.nan))
    with pytest.raises(ValueError, match="shape"):
        model.inverse_transform(sparse.csc_array(np.ones((2, 3))))


def test_a_failed_fit_leaves_a_fitted_model_as_it_was(Xy):
    model = GroupDiscoveryClassifier(2).fit(*Xy)
    before = model.predict(Xy[0])
    model.set_params(threshold=7)
    with pytest.raises(ValueError, match="threshold"):
        model.fit(*Xy)
    np.testing.assert_array_equal(model.predict(Xy[0]), before)
    broken = Xy[0].copy()
    broken[3, 3] = np.nan
    model.set_params(threshold=0.7)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(broken, np.where(Xy[1] > 0, "yes", "no"))
    assert model.classes_.tolist() == [-1, 1]
    np.testing.assert_array_equal(model.predict(Xy[0]), before)


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_what_is_odd_but_right(Xy, make):
    """One feature, constant columns among others, duplicates: no error."""
    X, y = Xy
    one = GroupDiscoveryClassifier(1).fit(make(X[:, :1]), y)
    assert one.support_features_.tolist() == [0]
    odd = np.c_[X, np.ones(len(y)), np.zeros(len(y)), X]
    model = GroupDiscoveryClassifier(3, threshold=1.0).fit(make(odd), y)
    assert not set(model.groups_.members) & {10, 11}
    assert all(len(g) == 2 for g in model.groups_)


@pytest.mark.parametrize("factor", [1e-310, 1e-25, 1e25, 1e300])
def test_factors_out_of_range(Xy, factor):
    """C, and weights, that made the scores 0 or NaN, over which the walk went on for ever."""
    with pytest.raises(ValueError, match=r"C=.* must be a number of at least 1e-20 and at most 1e\+20"):
        GroupDiscoveryClassifier(2, C=factor).fit(*Xy)
    with pytest.raises(ValueError, match=r"sample_weight .* of sample 0 is out of range\. Weights must be 0 or between 1e-20"):
        GroupDiscoveryClassifier(2).fit(*Xy, sample_weight=np.full(len(Xy[1]), factor))


class Poisoned(DenseSource):
    """A source whose moments hide a NaN, as those of a damaged store."""

    def moments(self, sample_weight=None, *, n_threads=1):
        n_samples, n_features = self.shape
        return Moments(np.zeros(n_features), np.sqrt(n_samples) * 2.0 ** -np.arange(n_features), float(n_samples))


@pytest.mark.parametrize("place", [0, 5])
def test_the_walk_ends_where_a_score_is_none(Xy, place):
    X = np.asfortranarray(Xy[0])
    X[3, place] = np.nan
    for options in ({}, {"cv": 2, "random_state": 0}, {"correlation": None}):
        with pytest.raises(ValueError, match=r"The scores of the features are not finite.*coterie info --check"):
            GroupDiscoveryClassifier(8, **options).fit(Poisoned(X), Xy[1])


def test_what_varies_too_little_is_constant_and_what_is_too_large_is_refused(Xy):
    X, y = Xy[0].copy(), Xy[1]
    X[:, 1] *= 1e-80
    model = GroupDiscoveryClassifier(X.shape[1] - 2, threshold=1.0, standardize=True).fit(X, y)
    assert 1 not in model.support_features_
    assert model.groups_.support.size == X.shape[1] - 2
    with pytest.raises(ValueError, match="All features of X are constant"):
        GroupDiscoveryClassifier(2).fit(Xy[0] * 1e-80, y)
    X[:, 1] = Xy[0][:, 1] * 1e80
    with pytest.raises(ValueError, match=r"feature 1 are too large to compute with \(above about 1e\+75\)"):
        GroupDiscoveryClassifier(2).fit(X, y)


@pytest.mark.parametrize("scale", [1e-70, 1e70])
def test_scales_that_floating_point_carries(Xy, scale):
    """Units do not matter where the features are standardised, to the ends of the range."""
    X, y = Xy
    plain = GroupDiscoveryClassifier(3, standardize=True).fit(X, y)
    scaled = GroupDiscoveryClassifier(3, standardize=True).fit(X * scale, y)
    np.testing.assert_array_equal(scaled.support_features_, plain.support_features_)
    np.testing.assert_allclose(scaled.objective_, plain.objective_, rtol=1e-10)
    np.testing.assert_array_equal(scaled.predict(X * scale), plain.predict(X))


def test_masked_values(Xy):
    X, y = Xy
    masked = np.ma.masked_array(X, mask=np.zeros(X.shape, dtype=bool))
    plain = GroupDiscoveryClassifier(2).fit(X, y)
    np.testing.assert_array_equal(GroupDiscoveryClassifier(2).fit(masked, y).support_features_, plain.support_features_)
    masked.mask[4, 1] = True
    with pytest.raises(ValueError, match=r"1 masked \(missing\) value\(s\)\. The first is in sample 4"):
        GroupDiscoveryClassifier(2).fit(masked, y)
    with pytest.raises(ValueError, match="masked"):
        plain.predict(masked)
    with pytest.raises(ValueError, match=r"y contains 1 masked"):
        GroupDiscoveryClassifier(2).fit(X, np.ma.masked_array(y, mask=np.arange(len(y)) == 2))


@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[s]", "U20", "S20"])
def test_what_is_no_number(Xy, kind):
    X, y = Xy
    with pytest.raises(ValueError, match=r"Features must be numbers, but X has (dates|durations|text)"):
        GroupDiscoveryClassifier(2).fit(X.astype(kind), y)
    model = GroupDiscoveryClassifier(2).fit(X, y)
    for method in (model.predict, model.transform, model.decision_function):
        with pytest.raises(ValueError, match="Features must be numbers"):
            method(X.astype(kind))


def test_columns_that_are_no_numbers_are_named(Xy):
    frame = pd.DataFrame(Xy[0]).add_prefix("f").assign(day=pd.Timestamp("2020-01-01"), hours=pd.Timedelta("2h"))
    with pytest.raises(ValueError, match=r"2 of 12 columns of X are not: 'day' \(dates\), 'hours' \(durations\)"):
        GroupDiscoveryClassifier(2).fit(frame, Xy[1])


@pytest.mark.parametrize("cv", [[1], ["ab"], [([0, 1], [99])], [([0.5], [1])], [([], [1])], [], [([0, 1],)], b"x"])
def test_folds_that_are_none(Xy, cv):
    with pytest.raises(ValueError, match="cv"):
        GroupDiscoveryClassifier(2, cv=cv).fit(*Xy)


def test_a_feature_constant_in_a_fold(Xy):
    """It is a support feature on all data; in the fold where it is constant nothing is correlated with it."""
    X, y = Xy[0].copy(), Xy[1]
    half = len(y) // 2
    X[:half, 0] = 0.0
    X[half:, 0] = 5.0 * y[half:]
    folds = [(np.arange(half), np.arange(half, len(y))), (np.arange(half, len(y)), np.arange(half))]
    for values in (X, sparse.csc_array(X)):
        model = GroupDiscoveryClassifier(4, cv=folds, fixed_features=[0]).fit(values, y)
        assert len(model.support_features_) == 4


def test_targets_of_a_regression(Xy):
    X, y = Xy
    for targets, message in ((y * 0.0 + 0.1, "y is constant"), (y * 1e307, "y are too large"), (y * 1e-80, "y is constant")):
        with pytest.raises(ValueError, match=message):
            GroupDiscoveryRegressor(2).fit(X, targets)


def test_one_score(Xy):
    with pytest.raises(ValueError, match="must be a single score"):
        GroupDiscoveryClassifierCV(3, scoring={"a": "accuracy"}).fit(*Xy)


def test_names_that_come_twice(Xy):
    frame = pd.DataFrame(Xy[0], columns=[*"abcdefgbij"])
    with pytest.raises(ValueError, match=r"^X: columns 1 and 7 have the same name 'b'\. Rename or drop one of them\.$"):
        GroupDiscoveryClassifier(2).fit(frame, Xy[1])
