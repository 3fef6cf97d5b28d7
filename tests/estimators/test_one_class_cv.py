"""Validated choice for one class."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, balanced_accuracy_score, make_scorer, roc_auc_score
from sklearn.model_selection import LeaveOneOut, PredefinedSplit, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import GroupDiscoveryOneClass, GroupDiscoveryOneClassCV, group_confidence, load, save
from coterie.data import FeatureView, as_source
from coterie.search.penalty import similarity_unit
from coterie.validation.metrics import balanced_accuracy, roc_auc
from tests.estimators.chosen import chosen_estimator

SHARE = make_scorer(accuracy_score)  # of accepted samples, where all are normal
NAMES = ["C", "threshold", "standardize", "predict_with"]


def accepts(model, X, y, sample_weight=None):
    """A score that needs no outliers: nine of ten normal samples are to be accepted."""
    return -abs(np.average(model.predict(X) == 1, weights=sample_weight) - 0.9)


class Unlabelled(GroupDiscoveryOneClassCV):
    """scikit-learn's checks hand out labels of any kind, as outlier detectors ignore them; here 1 and -1 have a meaning."""

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, None, sample_weight)


@parametrize_with_checks([Unlabelled(5, Cs=2, n_features_per_round=2, standardize=False, cv=2, scoring=SHARE)])
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.fixture
def mixed(rng):
    """Normal samples have more of the first features; of two correlated ones each."""
    n_normal, n_outliers = 90, 40
    X = np.repeat(rng.gamma(2.0, size=(n_normal + n_outliers, 8)), 2, axis=1) + rng.random((n_normal + n_outliers, 16))
    X[:n_normal, :6] += 1.5
    order = rng.permutation(len(X))
    return X[order], np.repeat([1, -1], [n_normal, n_outliers])[order]


@pytest.mark.parametrize(
    ("scoring", "score", "is_sparse"),
    [("roc_auc", roc_auc_score, True), ("balanced_accuracy", balanced_accuracy_score, False)],
)
@pytest.mark.filterwarnings("ignore:.* have the weight 0:UserWarning")
def test_path_scores_equal_separate_fits_to_normal_samples(mixed, rng, scoring, score, is_sparse):
    X, y = mixed
    rows = sparse.csr_array(np.where(X > 2.0, X, 0.0)) if is_sparse else X
    folds = StratifiedKFold(3, shuffle=True, random_state=1)
    weight = rng.integers(1, 4, len(y)).astype(float)
    model = GroupDiscoveryOneClassCV(
        6, Cs=[3e-3], thresholds=[0.6, 0.9], predict_with=["groups", "support"], cv=folds, scoring=scoring
    ).fit(rows.tocsc() if is_sparse else X, y, sample_weight=weight)
    table = pd.DataFrame(model.cv_results_)
    assert set(table["standardize"]) == {False, True}
    for fold, (train, test) in enumerate(folds.split(y, y)):
        train = train[y[train] == 1]
        for row in table[table["n_features"].isin([1, 5])].to_dict("records"):
            plain = {"n_features_per_round": "auto", "reuse_features": False}
            single = GroupDiscoveryOneClass(row["n_features"], **plain, **{name: row[name] for name in NAMES})
            single.fit(rows[train], sample_weight=weight[train])
            answer = single.decision_function(rows[test]) if scoring == "roc_auc" else single.predict(rows[test])
            expected = score(y[test], answer, sample_weight=weight[test])
            assert row[f"split{fold}_test_score"] == pytest.approx(expected, abs=1e-8)
    best = table.iloc[int(np.argmax(table["mean_test_score"]))]
    assert model.best_score_ == best["mean_test_score"]
    plain = chosen_estimator(model).fit(rows[y == 1], sample_weight=weight[y == 1])
    np.testing.assert_array_equal(model.support_features_, plain.support_features_)
    np.testing.assert_allclose(model.decision_function(rows), plain.decision_function(rows), rtol=1e-7, atol=1e-9)
    assert model.offset_ == pytest.approx(plain.offset_)


def test_outliers_choose_and_are_not_learnt_from(mixed):
    X, y = mixed
    options = {"Cs": [0.01], "scoring": "roc_auc", "min_features_to_select": 5, "standardize": False, "random_state": 0}
    model = GroupDiscoveryOneClassCV(5, **options).fit(X, y)
    elsewhere = X.copy()
    elsewhere[y == -1] *= -100.0
    again = GroupDiscoveryOneClassCV(5, **options).fit(elsewhere, y)
    assert model.groups_ == again.groups_
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert again.best_score_ == 1.0 > model.best_score_ > 0.6


def test_without_outliers(mixed):
    X, y = mixed
    model = GroupDiscoveryOneClassCV(4, Cs=6, scoring=accepts, cv=3, random_state=0).fit(X[y == 1])
    assert -0.05 < model.best_score_ <= 0.0
    assert (model.predict(X[y == 1]) == 1).mean() > 0.8
    np.testing.assert_array_equal(
        model.cv_results_["mean_test_score"], clone(model).fit(X[y == 1], np.ones(90)).cv_results_["mean_test_score"]
    )


def test_the_whole_procedure(mixed):
    X, y = mixed
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    options = {"Cs": [1e-3, 1e-2], "standardize": False, "predict_with": ["support", "groups"]}
    model = GroupDiscoveryOneClassCV(5, cv=folds, nested=True, scoring="roc_auc", **options).fit(X, y)
    np.testing.assert_array_equal(model.constant_scores_, 0.5)
    number = np.full(len(y), -1)
    for k, (_, held_out) in enumerate(folds):
        number[held_out] = k
    for k, (train, held_out) in enumerate(folds):
        inner = clone(model).set_params(cv=PredefinedSplit(number[train]), nested=False).fit(X[train], y[train])
        expected = roc_auc_score(y[held_out], inner.decision_function(X[held_out]))
        assert model.nested_scores_[k] == pytest.approx(expected)
    by_labels = clone(model).set_params(scoring="accuracy").fit(X, y)
    np.testing.assert_allclose(by_labels.constant_scores_, [(y[held_out] == 1).mean() for _, held_out in folds])


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from([1, -1]), st.integers(-2, 2), st.integers(1, 3)), min_size=2))
def test_quick_scores_are_those_of_scikit_learn(rows):
    y, values, weight = (np.array(column) for column in zip(*rows, strict=True))
    predicted = np.where(values >= 0, 1, -1)
    for w in (weight, None):
        if len(set(y)) == 2:
            assert roc_auc(y == 1, values, w) == pytest.approx(roc_auc_score(y, values, sample_weight=w))
            expected = balanced_accuracy_score(y, predicted, sample_weight=w)
            assert balanced_accuracy(y, predicted, w) == pytest.approx(expected)
        else:
            assert np.isnan(roc_auc(y == 1, values, w))


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("factor", [1e-60, 1.0, 1e60])
@pytest.mark.filterwarnings("ignore:.* have the weight 0:UserWarning")
def test_the_grid_goes_from_rejecting_all_to_accepting_most(mixed, standardize, factor):
    X, y = mixed
    X = X[y == 1] * factor
    model = GroupDiscoveryOneClassCV(3, Cs=3, standardize=standardize, scoring=accepts, random_state=0)
    if factor != 1.0 and not standardize:
        Cs = np.unique(model.fit(X).cv_results_["C"])
        assert len(Cs) == 1  # what is left of it within the bounds of C
        return
    Cs = np.unique(model.fit(X).cv_results_["C"])
    options = {"n_features_per_round": 1, "standardize": standardize, "threshold_rule": "margin"}
    shares = [(GroupDiscoveryOneClass(3, C=C, **options).fit(X).predict(X) == 1).mean() for C in Cs]
    assert shares[0] < 0.1 < 0.4 < shares[1] < 0.95 < shares[2] + 0.02


def test_unit_of_the_grid(rng):
    """One feature, by the words of the docstring; and features about zero."""
    x = rng.gamma(3.0, size=(50, 1))
    assert similarity_unit(FeatureView.of(as_source(x), centred=False)) == pytest.approx(50 * x.mean() * x.std(), rel=0.01)
    view = FeatureView.of(as_source(x), centred=False, standardize=True)
    assert similarity_unit(view) == pytest.approx(50 * x.mean() / x.std(), rel=0.01)
    assert similarity_unit(FeatureView.of(as_source(x - x.mean()), centred=False)) == pytest.approx(np.sqrt(50) * x.var())


def test_files_confidence_and_prediction(mixed, tmp_path):
    X, y = mixed
    model = GroupDiscoveryOneClassCV(6, Cs=4, cv=3, rule="one_se", predict_with="groups", random_state=0)
    np.testing.assert_array_equal(model.fit_predict(X, y), model.predict(X))
    save(model, tmp_path / "model.coterie")
    again = load(tmp_path / "model.coterie")
    assert again.get_params() == model.get_params()
    assert pd.DataFrame(again.cv_results_).equals(pd.DataFrame(model.cv_results_))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    sure = group_confidence(model, X, y, n_pairs=4, random_state=0)
    elsewhere = np.where((y == 1)[:, None], X, -100.0)
    np.testing.assert_array_equal(group_confidence(again, elsewhere, y, n_pairs=4, random_state=0).confidence, sure.confidence)
    assert sure.n_permutations == 0


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (None, {}, "no sample is labelled as an outlier. Pass y with 1 for normal samples and -1"),
        (np.ones(130), {"scoring": "accuracy"}, r"pass a function \(estimator, X, y\) as scoring"),
        (np.ones(130), {"scoring": None}, "compares normal samples with outliers"),
        (-np.ones(130), {}, "no normal samples"),
        (np.arange(130) % 2, {}, "y has the label 0. The labels of an outlier detector must be 1"),
        (np.array(["1", "-1"] * 65), {}, "y has the label '-1'"),
        (np.arange(130) % 2 == 0, {}, "y has the label False"),
        (np.ones(7), {}, "inconsistent numbers of samples"),
        (np.where(np.arange(130) < 3, -1, 1), {}, r"cv=5 exceeds the number of outliers \(3\)"),
        (np.where(np.arange(130) < 4, 1, -1), {}, r"cv=5 exceeds the number of normal samples \(4\)"),
        (np.where(np.arange(130) % 2, 1, -1), {"cv": LeaveOneOut()}, "A fold of cv holds out no normal samples"),
        (np.where(np.arange(130) % 2, 1, -1), {"scoring": "nonsense"}, "nonsense"),
        (np.where(np.arange(130) % 2, 1, -1), {"scoring": "neg_log_loss"}, "predict_proba"),
        (np.where(np.arange(130) % 2, 1, -1), {"scoring": ["roc_auc"]}, "must be a single score"),
    ],
)
def test_what_is_refused(mixed, y, options, message):
    X, _ = mixed
    with pytest.raises((ValueError, AttributeError), match=message):
        GroupDiscoveryOneClassCV(3, Cs=[0.01], **options).fit(X, y)


def test_weights_of_zero_are_no_samples(mixed):
    X, y = mixed
    with pytest.raises(ValueError, match="holds out no outliers of positive weight"):
        GroupDiscoveryOneClassCV(3, Cs=[0.01]).fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(ValueError, match="no normal samples"):
        GroupDiscoveryOneClassCV(3, Cs=[0.01]).fit(X, y, sample_weight=(y == -1).astype(float))
