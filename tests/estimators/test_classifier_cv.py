"""Validated choice of size, C, threshold and model: one path a fold, equal to a fit for every size."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss, make_scorer
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, group_confidence
from coterie.estimators import base, validated
from coterie.estimators.base import input_of
from coterie.search import lockstep, paths
from coterie.search.lockstep import run_together
from coterie.search.membership import EncounteredFeatures, complete_memberships
from coterie.search.search import Search
from coterie.validation import path_search
from tests.conftest import grouped_matrix, sparse_counts


@parametrize_with_checks([GroupDiscoveryClassifierCV(5, Cs=2, n_features_per_round=2, cv=2)])
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def mean_margin(estimator, X, y):
    """A score that rounding errors in tied decision values do not change."""
    return float((estimator.decision_function(X) * y).mean())


@pytest.mark.parametrize(
    ("is_sparse", "options"),
    [
        (False, {"thresholds": [0.5, 0.9], "standardize": [True, False]}),
        (True, {"thresholds": [0.5, 0.9], "standardize": True}),
        (False, {"correlation": "su", "affiliates": "ranked", "threshold": 0.3}),
        (True, {"fixed_features": [3, 50], "affiliates": "ranked", "fit_intercept": False}),
        (False, {"representative": "medoid", "n_features_per_round": 2}),
        (False, {"correlation": None, "thresholds": [0.5, 0.9]}),
        (False, {"reuse_features": True, "n_features_per_round": 3}),
    ],
)
@pytest.mark.filterwarnings("ignore:.* have the weight 0:UserWarning")
def test_path_scores_equal_separate_fits(rng, is_sparse, options):
    X, y = sparse_counts(rng)
    X = sparse.csc_array(X) if is_sparse else X
    options = {"class_weight": "balanced", **options}
    folds = StratifiedKFold(2, shuffle=True, random_state=1)
    choices = {"Cs": [0.01, 1.0], "predict_with": ["support", "groups"], "cv": folds, "scoring": mean_margin}
    model = GroupDiscoveryClassifierCV(8, **choices, **options).fit(X, y)
    table = pd.DataFrame(model.cv_results_)
    assert set(table["C"]) == {0.01, 1.0}
    assert set(table["predict_with"]) == {"support", "groups"}
    expected_thresholds = options.get("thresholds", [options.get("threshold", 0.7)])
    assert set(table["threshold"]) == set(expected_thresholds if options.get("correlation", "") is not None else [0.5])
    rows = X.tocsr() if is_sparse else X
    fixed = {name: value for name, value in options.items() if name not in ("thresholds", "standardize", "threshold")}
    names = ["C", "threshold", "standardize", "predict_with"]
    for fold, (train, test) in enumerate(folds.split(np.zeros((len(y), 1)), y)):
        for row in table[table["n_features"].isin([2, 5, 8])].to_dict("records"):
            chosen = {name: row[name] for name in names}
            single = GroupDiscoveryClassifier(row["n_features"], **chosen, **fixed).fit(rows[train], y[train])
            expected = mean_margin(single, rows[test], y[test])
            assert row[f"split{fold}_test_score"] == pytest.approx(expected, abs=1e-8)
    best = int(np.argmax(table["mean_test_score"]))
    assert model.best_score_ == table["mean_test_score"][best]
    assert [model.C_, model.threshold_, model.standardize_, model.predict_with_] == table.loc[best, names].tolist()
    chosen = {name: table.loc[best, name] for name in names}
    plain = GroupDiscoveryClassifier(model.n_features_, **chosen, **fixed).fit(X, y)
    assert model.groups_ == plain.groups_
    np.testing.assert_array_equal(model.prediction_coef_, plain.prediction_coef_)


@pytest.mark.parametrize("affiliates", ["complete", "ranked"])
@pytest.mark.filterwarnings("ignore:.* have the weight 0:UserWarning")
def test_members_at_every_size_are_those_of_separate_fits(rng, affiliates):
    X, y = grouped_matrix(rng, n_factors=12)
    weight = np.where(np.arange(len(y)) % 4 == 0, 0.0, 1.0)
    estimators = [
        GroupDiscoveryClassifier(9, affiliates=affiliates, C=C, threshold=threshold, standardize=standardize)
        for C in (0.01, 10.0)
        for threshold in (0.6, 0.75)
        for standardize in (False, True)
    ]
    folds = {"cv": 3, "random_state": 0, "threshold": 0.4}
    estimators += [GroupDiscoveryClassifier(9, affiliates=affiliates, cv_part=part, **folds) for part in ("training", "fold")]
    data = input_of(estimators[0], X, y, weight)
    met = [EncounteredFeatures() for _ in estimators]
    loops, _ = run_together(
        [Search(data, estimator._settings(), 9) for estimator in estimators],
        n_threads=1,
        on_round=lambda position, loop: met[position].record(loop),
    )
    ranked = [own.membership(loop) for own, loop in zip(met, loops, strict=True)]
    members = ranked if affiliates == "ranked" else complete_memberships(loops)
    for estimator, loop, membership in zip(estimators, loops, members, strict=True):
        for entry in loop.history:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                single = clone(estimator).set_params(n_features_to_select=entry.n_support).fit(X, y, sample_weight=weight)
            np.testing.assert_array_equal(membership.at(entry.n_support), single.groups_.members)


def test_groups_are_tried_at_a_few_sizes(planted):
    model = GroupDiscoveryClassifierCV(30, Cs=[1.0], predict_with="groups", cv=2, random_state=0).fit(planted.X, planted.y)
    sizes = model.cv_results_["n_features"].tolist()
    assert sizes[:5] == [1, 2, 3, 5, 8]
    assert len(sizes) < 12
    assert model.predict_with_ == "groups"
    assert len(model.prediction_features_) > model.n_features_


def test_first_support_features_do_not_depend_on_the_number_requested(planted):
    long = GroupDiscoveryClassifier(12, n_features_per_round=3).fit(planted.X, planted.y)
    for size in (3, 6, 9):
        short = GroupDiscoveryClassifier(size, n_features_per_round=3).fit(planted.X, planted.y)
        np.testing.assert_array_equal(short.support_features_, long.support_features_[:size])


def test_finds_the_planted_number(planted):
    model = GroupDiscoveryClassifierCV(30, n_features_per_round=1, Cs=[10.0], random_state=0).fit(planted.X, planted.y)
    assert 4 <= model.n_features_ <= 8
    assert len(model.groups_) == model.n_features_
    again = clone(model).fit(planted.X, planted.y)
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"])


def test_one_standard_error(planted):
    options = {"Cs": 3, "cv": 3, "scoring": "accuracy", "random_state": 0}
    best = GroupDiscoveryClassifierCV(20, **options).fit(planted.X, planted.y)
    few = GroupDiscoveryClassifierCV(20, rule="one_se", **options).fit(planted.X, planted.y)
    results = few.cv_results_
    row = int(np.argmax(results["mean_test_score"]))
    limit = results["mean_test_score"][row] - results["std_test_score"][row] / np.sqrt(3)
    assert best.best_score_ >= few.best_score_ >= limit
    assert few.n_features_ == results["n_features"][results["mean_test_score"] >= limit].min()
    assert few.n_features_ == len(few.groups_)


@pytest.mark.parametrize("standardize", [False, True])
def test_a_number_of_Cs_is_a_grid_over_a_typical_variance(rng, standardize):
    X, y = grouped_matrix(rng)
    X[:, 3] *= 100.0
    options = {"cv": 2, "standardize": standardize}
    groups = GroupDiscoveryClassifierCV(2, Cs=3, **options).fit(X, y)
    model = GroupDiscoveryClassifierCV(2, Cs=4, predict_with=["support", "groups"], **options).fit(X, y)
    variance = X.var(axis=0)
    typical = 1.0 if standardize else (variance**2).sum() / variance.sum()
    np.testing.assert_allclose(np.unique(model.cv_results_["C"]), 10.0 ** np.arange(-3, 1) / typical)
    np.testing.assert_allclose(np.unique(groups.cv_results_["C"]), 10.0 ** np.arange(-3, 0) / typical)
    without = GroupDiscoveryClassifierCV(2, Cs=4, cv=2, fit_intercept=False, standardize=False).fit(
        X + 1.0, y
    )  # judged about zero
    squares = ((X + 1.0) ** 2).mean(axis=0)
    assert without.cv_results_["C"].min() == pytest.approx(1e-3 * squares.sum() / (squares**2).sum())
    assert model.C_ in model.cv_results_["C"]


@pytest.mark.filterwarnings("ignore:The master problem:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e60, 1e-60])
def test_a_grid_for_features_of_any_scale(rng, scale):
    X, y = grouped_matrix(rng)
    model = GroupDiscoveryClassifierCV(2, Cs=3, cv=2).fit(scale * X, y)
    assert ((model.cv_results_["C"] >= 1e-20) & (model.cv_results_["C"] <= 1e20)).all()


def test_threads_and_batches_change_nothing(rng, monkeypatch):
    X, y = grouped_matrix(rng)
    options = {"Cs": 3, "cv": 3, "predict_with": ["support", "groups"], "thresholds": [0.5, 0.8], "random_state": 0}
    models = [GroupDiscoveryClassifierCV(10, n_jobs=n, **options).fit(X, y) for n in (1, 2)]
    monkeypatch.setattr(lockstep, "_MAX_BYTES", 50_000)
    assert len(list(lockstep.batches(range(18), X.shape[1], 10 * len(y)))) > 2
    models.append(GroupDiscoveryClassifierCV(10, n_jobs=1, **options).fit(X, y))
    for model in models[1:]:
        assert all(np.array_equal(values, model.cv_results_[name]) for name, values in models[0].cv_results_.items())
        assert model.groups_ == models[0].groups_


def test_a_signal_ends_the_paths_after_the_round(planted, monkeypatch):
    """Two folds and two values of C: stages of one and two rounds. The signal comes in the third round of the third path."""
    monkeypatch.setattr(paths, "_FIRST_ROUNDS", 1)
    rounds = []

    def stop():
        rounds.append(None)
        return len(rounds) > 9

    monkeypatch.setattr(path_search, "stop_requested", stop)
    for module in (base, validated):
        monkeypatch.setattr(module, "stop_requested", lambda: len(rounds) > 9)
    options = {"Cs": [0.1, 1.0], "cv": 2, "random_state": 0, "n_jobs": 1}
    model = GroupDiscoveryClassifierCV(20, **options).fit(planted.X, planted.y)
    assert set(model.cv_results_["n_features"]) == {1, 2}
    assert 1 <= model.n_features_ == len(model.groups_) <= 2


def test_progress_tells_of_all_paths(planted, capsys):
    GroupDiscoveryClassifierCV(3, Cs=2, cv=2, verbose=1).fit(planted.X, planted.y)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("[GroupDiscoveryClassifierCV, validation] 1/3 support features, 4 paths")
    assert sum("4 paths" in line for line in lines) == 3
    assert lines[-1].startswith("[GroupDiscoveryClassifierCV] ")


def test_sample_weights_reach_the_scores(rng):
    X, y = grouped_matrix(rng)
    test_fold = np.arange(len(y)) % 3
    weight = rng.integers(0, 3, len(y))
    weight[:4] = 1
    model = GroupDiscoveryClassifierCV(6, Cs=3, n_features_per_round=3, cv=PredefinedSplit(test_fold))
    weighted = clone(model).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(len(y)), weight)
    repeated = model.set_params(cv=PredefinedSplit(test_fold[rows])).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.cv_results_["mean_test_score"], repeated.cv_results_["mean_test_score"])


def test_several_classes_names_and_scorers(rng):
    X, _ = grouped_matrix(rng, n_samples=90)
    y = np.array(["low", "mid", "top"])[np.argsort(np.argsort(X[:, 0])) // 30]
    folds = ShuffleSplit(3, test_size=0.3, random_state=0)
    options = {"Cs": [0.1, 1.0], "n_features_per_round": 2, "cv": folds}
    by_name = GroupDiscoveryClassifierCV(6, scoring="balanced_accuracy", predict_with="groups", **options).fit(X, y)
    two = GroupDiscoveryClassifierCV(6, scoring="roc_auc", **options).fit(X, y == "top")
    assert two.best_score_ > 0.9
    assert by_name.best_score_ > 0.6
    assert set(by_name.predict(X)) <= {"low", "mid", "top"}

    def careful(estimator, X, y):
        assert X.shape[1] == 3
        return (estimator.predict(X) == y).mean()

    assert GroupDiscoveryClassifierCV(6, scoring=careful, **options).fit(X, y).best_score_ > 0.6


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_features_to_select": 0}, "max_features_to_select=0 must be a whole number"),
        ({"cv": 1}, "cv=1"),
        ({"Cs": 0}, "Cs=0 must be a whole number of at least 1 and at most 1000 or a nonempty list"),
        ({"Cs": []}, r"Cs=\[\] must be a whole number"),
        ({"Cs": "x"}, "Cs='x' must be a whole number"),
        ({"Cs": -1}, "Cs=-1 must be a whole number"),
        ({"Cs": 1.5}, "Cs=1.5 must be a whole number"),
        ({"Cs": [1.0, float("nan")]}, r"Cs=\[1.0, nan\] must be a whole number"),
        ({"Cs": np.eye(2)}, "must be a whole number"),
        (
            {"thresholds": [2]},
            r"thresholds=\[2\] must be a nonempty list \(each entry must be a number above 0 and at most 1\)",
        ),
        ({"thresholds": 0.5}, "thresholds=0.5 must be a nonempty list"),
        ({"rule": "x"}, "rule='x' must be one of 'auto', 'deviance', 'best', 'one_se'"),
        ({"predict_with": ["x"]}, r"predict_with=\['x'\] must be one of 'auto', 'support', 'groups' or a nonempty list"),
        ({"standardize": [2]}, r"standardize=\[2\] must be True, False, 'auto' or a nonempty list"),
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
    with pytest.raises(ValueError, match="Fold 1 of cv has no training samples of class"):
        GroupDiscoveryClassifierCV(4, n_features_per_round=2, cv=KFold(3)).fit(X, y)


def test_a_fold_without_weight_is_an_error(rng):
    X, y = rng.standard_normal((30, 5)), np.tile([0, 1], 15)
    weight = np.repeat([1.0, 1.0, 0.0], 10)
    with pytest.raises(ValueError, match="All held-out samples of fold 3 of cv have weight 0"):
        GroupDiscoveryClassifierCV(4, Cs=2, cv=KFold(3)).fit(X, y, sample_weight=weight)


def test_confidence_repeats_the_search_that_was_chosen(planted):
    model = GroupDiscoveryClassifierCV(10, Cs=3, cv=2, standardize=True, random_state=0).fit(planted.X, planted.y)
    plain = GroupDiscoveryClassifier(model.n_features_, C=model.C_, standardize=True).fit(planted.X, planted.y)
    options = {"n_pairs": 3, "n_permutations": 1, "random_state": 0}
    found, expected = (group_confidence(fitted, planted.X, planted.y, **options) for fitted in (model, plain))
    assert found.to_dict() == expected.to_dict()
