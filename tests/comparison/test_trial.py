"""One method on the folds, compared with naive code."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import coterie
from coterie import GroupDiscoveryClassifier
from coterie.baselines import SVMRFESelector
from coterie.comparison.trial import DEFAULT, read_methods, selector_named
from coterie.filters.selector import FilterSelector
from coterie.methods import METHODS
from tests.comparison.misbehaving import CallsExit, HasNoMemory, Raises, Selector, SelectsNothing, Warns
from tests.conftest import grouped_matrix, sparse_counts

NESTED = [name for name, method in METHODS.items() if method.nested]
COLUMNS = [
    "method", "n_features", "fold", "n_selected", "accuracy", "redundancy_rate", "squared_redundancy", "fit_seconds", "status",
    "message",
]  # fmt: skip


@pytest.fixture
def data():
    return grouped_matrix(np.random.default_rng(5), n_samples=90, n_features=30)


def naive(X, y, selector, size, classifier, folds, score=None):
    """Compute accuracies and redundancies in a plain loop over the folds."""
    found = []
    for train, test in folds:
        mask = clone(selector).set_params(k=size).fit(X[train], y[train]).get_support()
        scaler = StandardScaler().fit(X[train][:, mask])
        model = clone(classifier).fit(scaler.transform(X[train][:, mask]), y[train])
        predicted = model.predict(scaler.transform(X[test][:, mask]))
        rho = np.corrcoef(X[train][:, mask].T)[np.triu_indices(size, 1)]
        value = np.mean(predicted == y[test]) if score is None else score(y[test], predicted)
        found.append([mask.sum(), value, np.abs(rho).mean(), (rho**2).mean()])
    return np.array(found)


def test_equals_the_naive_loop(inline, data):
    X, y = data
    folds = list(StratifiedKFold(4, shuffle=True, random_state=7).split(X, y))
    comparison = coterie.compare({"best": SelectKBest(f_classif)}, X, y, n_features=[3, 6], cv=folds, classifier="knn")
    assert list(comparison.table.columns) == COLUMNS
    for size in (3, 6):
        expected = naive(X, y, SelectKBest(f_classif), size, KNeighborsClassifier(), folds)
        rows = comparison.table[comparison.table.n_features == size]
        found = rows[["n_selected", "accuracy", "redundancy_rate", "squared_redundancy"]].to_numpy(dtype=float)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert rows.fold.tolist() == [0, 1, 2, 3]
        assert (rows.fit_seconds > 0).all()
    summary = comparison.summary()
    np.testing.assert_allclose(summary.accuracy, comparison.table.groupby("n_features").accuracy.mean())
    np.testing.assert_allclose(summary.accuracy_std, comparison.table.groupby("n_features").accuracy.std())


def test_a_number_of_folds_is_shuffled_and_stratified_by_the_seed(inline, data):
    X, y = data
    folds = list(StratifiedKFold(3, shuffle=True, random_state=4).split(X, y))
    by_number = coterie.compare("fisher", X, y, n_features=2, cv=3, random_state=4)
    by_folds = coterie.compare("fisher", X, y, n_features=2, cv=folds, random_state=4)
    assert by_number.table.drop(columns="fit_seconds").equals(by_folds.table.drop(columns="fit_seconds"))


def test_any_classifier_and_score(inline, data):
    X, y = data
    folds = list(StratifiedKFold(3).split(X, y))
    tree = DecisionTreeClassifier(random_state=0)
    comparison = coterie.compare([SelectKBest()], X, y, n_features=4, cv=folds, classifier=tree, scoring="balanced_accuracy")
    expected = naive(X, y, SelectKBest(), 4, tree, folds, balanced_accuracy_score)
    np.testing.assert_allclose(comparison.table.accuracy, expected[:, 1], atol=0.08)  # the features of the tree are not scaled
    assert comparison.table.method.unique().tolist() == ["SelectKBest"]
    assert "balanced_accurac" in repr(comparison)


def test_selection_uses_the_training_part_only(inline, data):
    X, y = data
    train, test = np.arange(60), np.arange(60, 90)
    spoilt, flipped = X.copy(), y.copy()
    spoilt[test] = 100.0 * np.random.default_rng(0).standard_normal(spoilt[test].shape)
    flipped[test] = -flipped[test]
    methods = [*DEFAULT, "rcfs", "oscar", "relieff"]
    clean = coterie.compare(methods, X, y, n_features=[3, 5], cv=[(train, test)], standardize=True)
    dirty = coterie.compare(methods, spoilt, flipped, n_features=[3, 5], cv=[(train, test)], standardize=True)
    assert set(clean.table.status) == set(dirty.table.status) == {"ok"}
    assert clean.selections.keys() == dirty.selections.keys()
    for key in clean.selections:
        assert clean.selections[key].tolist() == dirty.selections[key].tolist(), key
    assert clean.table.redundancy_rate.equals(dirty.table.redundancy_rate)


def test_noise_has_no_held_out_accuracy(inline):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 2000)), np.repeat([0, 1], 50)
    comparison = coterie.compare(["fisher", "mrmr"], X, y, n_features=20)
    assert (comparison.summary().accuracy < 0.7).all()
    outside = FilterSelector("fisher", 20).fit(X, y).support_features_
    assert coterie.compare("fisher", X[:, outside], y, n_features=20).summary().accuracy[0] > 0.8  # selection on all samples


@pytest.mark.parametrize("make", [grouped_matrix, sparse_counts])
@pytest.mark.parametrize("name", NESTED)
def test_nested_selectors_are_fitted_once(inline, name, make):
    X, y = make(np.random.default_rng(11))
    X = sparse.csr_array(X) if make is sparse_counts else X
    settings = {
        "daf": {"n_probes": 30, "random_state": 0, "sampling": "uniform"},
        "grm": {"n_candidates": None, "solution": "weights"},
        "svm-rfe": {"step": 1},
    }
    method = selector_named(name, **settings.get(name, {}))
    assert read_methods({name: method}, 0)[0].nested
    options = {"n_features": [1, 3, 4, 7, 12], "cv": 2}
    shared = coterie.compare({name: method}, X, y, **options)
    single = coterie.compare({name: method}, X, y, share_fits=False, **options)
    assert set(single.table.status) == {"ok"}
    for key, features in single.selections.items():
        assert sorted(shared.selections[key]) == sorted(features), key
    columns = [column for column in COLUMNS if column not in ("fit_seconds", "message")]
    pd.testing.assert_frame_equal(shared.table[columns], single.table[columns])


@pytest.mark.parametrize(
    "selector",
    [
        GroupDiscoveryClassifier(n_features_per_round=2, cv=3),
        GroupDiscoveryClassifier(n_features_per_round=2, representative="medoid"),
        GroupDiscoveryClassifier(n_features_per_round=2, keep="groups"),
        SVMRFESelector(step="half"),
        selector_named("grm"),
        selector_named("grm", n_candidates=None, solution="set"),
        SelectKBest(),
    ],
)
def test_other_selectors_are_fitted_for_each_number(selector):
    assert read_methods([selector], 0)[0].nested == ""


def test_features_kept_by_transform_are_tested(inline, data):
    X, y = data
    comparison = coterie.compare([GroupDiscoveryClassifier(keep="groups")], X, y, n_features=[2, 4], cv=2)
    assert (comparison.table.n_selected > comparison.table.n_features).all()


def test_selectors_of_scikit_learn(inline, data):
    X, y = data
    methods = [SelectKBest(), SelectFromModel(LogisticRegression(), threshold=-np.inf), RFE(LogisticRegression())]
    comparison = coterie.compare(methods, X, y, n_features=[2, 5], cv=2)
    assert (comparison.table.n_selected == comparison.table.n_features).all()
    assert set(comparison.table.status) == {"ok"}


def test_sparse_frame_and_array_have_equal_results(inline, rng):
    X, y = sparse_counts(rng)
    names = [f"word {j:03}" for j in range(X.shape[1])]  # names break ties between equal columns
    methods = {
        "fisher": "fisher",
        "mrmr": "mrmr",
        "fixed": GroupDiscoveryClassifier(fixed_features=[3]),
    }
    options = {"n_features": [2, 6], "cv": 3, "classifier": LogisticRegression()}
    dense = coterie.compare(methods, X, y, **options)
    assert set(dense.table.status) == {"ok"}
    by_name = {**methods, "fixed": GroupDiscoveryClassifier(fixed_features=["word 003"])}
    for other, theirs in (
        (sparse.csc_matrix(X), methods),
        (sparse.coo_array(X), methods),
        (pd.DataFrame(X, columns=names), by_name),
        (X.astype(np.float32), methods),
    ):
        found = coterie.compare(theirs, other, y, **options)
        for key, features in dense.selections.items():
            assert found.selections[key].tolist() == features.tolist(), key
        np.testing.assert_allclose(found.table.accuracy, dense.table.accuracy)
        np.testing.assert_allclose(found.table.redundancy_rate, dense.table.redundancy_rate, atol=1e-6)


def test_labels_of_any_kind_and_several_classes(inline, rng):
    X, _ = grouped_matrix(rng, n_samples=90)
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], [1 / 3, 2 / 3]))
    numbers = coterie.compare(["gdm", "fisher", "oscar"], X, y, n_features=3, cv=3)
    words = coterie.compare(["gdm", "fisher", "oscar"], X, np.array(["a", "b", "c"])[y], n_features=3, cv=3)
    columns = ["method", "accuracy", "status"]
    assert numbers.table[columns].equals(words.table[columns])
    failed = numbers.table[numbers.table.method == "oscar"]
    assert set(failed.status) == {"failed"}
    assert "3 classes" in failed.message.iloc[0]
    assert (numbers.table[numbers.table.method == "gdm"].accuracy > 0.5).all()


def test_failures_and_warnings_are_rows(inline, data):
    methods = [Selector(), Raises(), HasNoMemory(), CallsExit(), Warns(), SelectsNothing()]
    comparison = coterie.compare(methods, *data, n_features=[2, 3], cv=2)
    found = {method: set(zip(part.status, part.message, strict=True)) for method, part in comparison.table.groupby("method")}
    assert found == {
        "Selector": {("ok", "")},
        "Raises": {("failed", "RuntimeError: no luck")},
        "HasNoMemory": {("out of memory", "MemoryError: Unable to allocate 1 TiB")},
        "CallsExit": {("failed", "SystemExit: 3")},
        "Warns": {("ok", "something is odd")},
        "SelectsNothing": {("failed", "The method selected no features.")},
    }
    assert comparison.table[comparison.table.status != "ok"].accuracy.isna().all()
    summary = comparison.summary().set_index("method")
    assert summary.loc["Raises", "status"].tolist() == ["failed", "failed"]
    assert summary.loc["Raises", "n_ok"].tolist() == [0, 0]
    assert summary.loc["Selector", "weighted_consistency"].notna().all()
    assert "failed (2 of 2): RuntimeError: no luck" in repr(comparison)
    assert comparison.best() in ("Selector", "Warns")


def test_warning_is_in_its_own_rows_only(inline, data):
    X, y = data
    comparison = coterie.compare({"gdm": GroupDiscoveryClassifier(threshold=0.5)}, X, y, n_features=[2, 20, 30], cv=2)
    few, many, most = (comparison.table[comparison.table.n_features == size] for size in (2, 20, 30))
    assert set(few.message) == {""}
    assert (many.n_selected < 20).all()
    assert many.message.str.contains("Only").all()
    assert most.message.str.contains("Only").all()


def test_standardised_results_do_not_depend_on_units(inline, data):
    X, y = data
    scaled = X * np.logspace(-3, 3, X.shape[1])
    plain = coterie.compare(["gdm", "l1-svm", "variance"], X, y, n_features=4, cv=2, standardize=True)
    other = coterie.compare(["gdm", "l1-svm", "variance"], scaled, y, n_features=4, cv=2, standardize=True)
    for key, features in plain.selections.items():
        if key[0] != "variance":  # all variances are 1 up to rounding
            assert sorted(other.selections[key]) == sorted(features), key
    raw = coterie.compare({"gdm": GroupDiscoveryClassifier(standardize=False)}, scaled, y, n_features=4, cv=2)
    assert raw.selections["gdm", 4, 0].tolist() != plain.selections["gdm", 4, 0].tolist()
