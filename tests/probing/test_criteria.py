"""Built-in criteria return exactly the value of cross_val_score on the same folds."""

import ast
import inspect
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from coterie import DependencyAwareSelector
from coterie.baselines import BestIndividualSelector
from coterie.data import as_source
from coterie.methods import CRITERIA
from coterie.probing import EstimatorCriterion, KNNCriterion, LinearSVMCriterion, RidgeCriterion, SVMCriterion
from coterie.probing.criteria import CallableCriterion, as_criterion, criterion_named
from tests.conftest import grouped_matrix, sparse_counts


def subsets_of(rng, n_features, count=6):
    sizes = rng.integers(1, n_features + 1, count)
    return [np.sort(rng.choice(n_features, size, replace=False)) for size in [1, 2, n_features, *sizes]]


def kinds_of_data(rng):
    """Real and integer features, with copies of samples, outliers, large offsets, small and large scales, many classes."""
    X, y = grouped_matrix(rng, n_samples=400, n_features=24)
    yield "real", X, y
    yield "single", X.astype(np.float32), y
    copies = X[rng.integers(0, 60, 400)]
    yield "copies", copies, rng.integers(0, 2, 400)
    yield "offset", X + 1e5, y
    yield "far", copies + 1e7 * np.arange(24), rng.integers(0, 3, 400)
    yield "outliers", X * np.exp(3 * rng.standard_normal((400, 1))), y
    yield "tiny", X * 1e-25, y
    yield "huge", X * 1e60, y
    yield "whole", rng.integers(0, 4, (400, 24)).astype(np.int16), rng.integers(0, 5, 400)
    yield "large whole", rng.integers(-(10**6), 10**6, (400, 24)), y
    yield "flags", rng.integers(0, 2, (400, 24)).astype(bool), np.array(["b", "a"])[rng.integers(0, 2, 400)]
    yield "constant", np.where(np.arange(24) < 20, 1.5, X), y


KINDS = ["real", "single", "copies", "offset", "far", "outliers", "tiny", "huge", "whole", "large whole", "flags", "constant"]


@pytest.mark.parametrize("kind", KINDS)
def test_nearest_neighbours_as_in_scikit_learn(kind, rng):
    X, y = next((X, y) for name, X, y in kinds_of_data(rng) if name == kind)
    for k, cv in ((3, 3), (1, KFold(4, shuffle=True, random_state=0)), (8, ShuffleSplit(2, test_size=0.2, random_state=1))):
        evaluate = KNNCriterion(k).bind(as_source(X), y, cv)
        model = KNeighborsClassifier(k, algorithm="brute")
        for features in subsets_of(rng, 24, count=2):
            with threadpool_limits(1):  # ties in scikit-learn depend on its number of threads
                expected = cross_val_score(model, X[:, features].astype(np.float64), y, cv=evaluate.folds).mean()
            # Distances of copies and of far samples are equal up to rounding, which depends on the processor.
            tolerance = 0.03 if kind in ("copies", "far") else 0.0
            assert evaluate(features) == pytest.approx(expected, rel=0.0, abs=tolerance)


def test_nearest_neighbours_on_sparse_data(rng):
    X, y = sparse_counts(rng, n_samples=300, n_features=40)
    model = KNeighborsClassifier(3, algorithm="brute")
    evaluate = KNNCriterion(3).bind(as_source(sparse.csr_array(X)), y, 3)
    for features in subsets_of(rng, 40):
        with threadpool_limits(1):
            assert evaluate(features) == cross_val_score(model, X[:, features], y, cv=3).mean()
    X = X * rng.random(X.shape) + (X[:, :1] == X[:, :1]) * (np.arange(40) == 0) * rng.random((300, 1))  # removes ties
    evaluate = KNNCriterion(3).bind(as_source(sparse.csr_array(X)), y, 3)
    for size in (1, 5, 40):
        assert evaluate(np.arange(size)) == cross_val_score(model, sparse.csr_array(X[:, :size]), y, cv=3).mean()


def test_nearest_neighbours_few_samples(rng):
    X, y = rng.standard_normal((7, 3)), np.array([0, 1, 0, 1, 0, 1, 1])
    for k in (1, 2, 3, 4):  # 4: all training samples of a fold
        evaluate = KNNCriterion(k).bind(as_source(X), y, KFold(3))
        expected = cross_val_score(KNeighborsClassifier(k, algorithm="brute"), X, y, cv=KFold(3)).mean()
        assert evaluate(np.arange(3)) == expected
    with pytest.raises(ValueError, match="n_neighbors=5 is more than the 4 training samples of a fold"):
        KNNCriterion(5).bind(as_source(X), y, KFold(3))


@pytest.mark.parametrize("parameters", [{}, {"C": 0.1, "loss": "hinge"}, {"class_weight": "balanced"}])
def test_linear_svm_as_in_scikit_learn(parameters, rng):
    X, y = grouped_matrix(rng, n_samples=90, n_features=20)
    y = np.array(["a", "b", "c"])[(y > 0).astype(int) + (X[:, 3] > 1)]
    criterion = LinearSVMCriterion(**parameters, max_iter=10_000)
    for data in (X, X.astype(np.float32), sparse.csc_array(X * (np.abs(X) > 1))):
        evaluate = criterion.bind(as_source(data), y, 3)
        for features in subsets_of(rng, 20, count=1):
            columns = sparse.csr_array(data[:, features]) if sparse.issparse(data) else data[:, features].astype(np.float64)
            model = LinearSVC(**parameters, max_iter=10_000, random_state=0, dual="auto")
            assert evaluate(features) == cross_val_score(model, columns, y, cv=3).mean()


@pytest.mark.parametrize(
    "parameters", [{}, {"C": 5.0, "kernel": "poly", "degree": 2}, {"gamma": 0.1, "class_weight": "balanced"}]
)
def test_svm_as_in_scikit_learn(parameters, rng):
    X, y = grouped_matrix(rng, n_samples=90)
    y = np.where(rng.random(90) < 0.2, "c", np.array(["a", "b"])[(np.asarray(y) == np.unique(y)[0]).astype(int)])
    for data in (X, sparse.csc_array(X)):
        evaluate = SVMCriterion(**parameters).bind(as_source(data), y, 3)
        for features in subsets_of(rng, X.shape[1], 2):
            rows = sparse.csr_array(data)[:, features] if sparse.issparse(data) else X[:, features]
            assert evaluate(features) == cross_val_score(SVC(**parameters), rows, y, cv=3).mean()


def test_names_and_parameters_of_criteria():
    assert {name: place.rpartition(":")[2] for name, place in CRITERIA.items()} == {
        name: type(criterion_named(name)).__name__ for name in CRITERIA
    }
    for name, place in CRITERIA.items():
        assert place == f"{type(as_criterion(name)).__module__}:{type(as_criterion(name)).__name__}"
    with pytest.raises(ValueError, match=r"criterion=3 has no parameters\. Criteria with parameters are knn"):
        criterion_named(3, C=1)
    with pytest.raises(ValueError, match=r"The criterion knn has no parameter C\. Its parameters are n_neighbors"):
        criterion_named("knn", C=1)


@pytest.mark.parametrize("name", CRITERIA)
def test_default_values_are_the_documented_ones(name):
    criterion = type(criterion_named(name))
    for parameter in inspect.signature(criterion).parameters.values():
        if parameter.default is not inspect.Parameter.empty:
            documented = re.search(rf"^ *(\w+, )*{parameter.name}\b[^\n]*default=(\S+)$", criterion.__doc__, re.MULTILINE)
            assert documented is not None, parameter.name
            assert ast.literal_eval(documented[2]) == parameter.default


def test_linear_svm_does_not_warn_about_iterations(rng):
    X, y = grouped_matrix(rng)
    assert 0 <= LinearSVMCriterion(max_iter=1).bind(as_source(100 * X), y, 3)(np.arange(20)) <= 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_ridge_is_leave_one_out(n_classes, rng):
    X, _ = grouped_matrix(rng, n_samples=24, n_features=40)
    y = np.digitize(X[:, 0] + 0.5 * rng.standard_normal(24), [0.0, 1.0][: n_classes - 1])
    for data in (X, sparse.csc_array(X)):
        evaluate = RidgeCriterion(0.7).bind(as_source(data), y, 3)
        for features in [*subsets_of(rng, 40, count=2), np.arange(23), np.arange(24), np.arange(25)]:
            predicted = cross_val_predict(RidgeClassifier(0.7), X[:, features], y, cv=LeaveOneOut())
            assert evaluate(features) == accuracy_score(y, predicted)


def test_ridge_on_numbers(rng):
    X = rng.standard_normal((40, 60))
    y = X[:, 0] - 2 * X[:, 1] + 0.1 * rng.standard_normal(40) + 5
    evaluate = RidgeCriterion(2.0, scoring="r2").bind(as_source(X), y, None)
    for features in subsets_of(rng, 60, count=2):
        predicted = cross_val_predict(Ridge(2.0), X[:, features], y, cv=LeaveOneOut())
        assert evaluate(features) == pytest.approx(r2_score(y, predicted), abs=1e-9)


def test_ridge_with_a_small_penalty_is_linear_discriminant_analysis(rng):
    X, y = grouped_matrix(rng, n_samples=60, n_features=8)
    y[::2] = -y[::2]
    y = np.repeat([-1, 1], 30)  # equal classes: the same threshold
    X[:30] += 0.5
    features = np.arange(5)
    discriminant = LinearDiscriminantAnalysis().fit(X[:, features], y)
    ridge = RidgeClassifier(1e-9).fit(X[:, features], y)
    np.testing.assert_array_equal(discriminant.predict(X[:, features]), ridge.predict(X[:, features]))
    evaluate = RidgeCriterion(1e-9).bind(as_source(X), y, 3)
    assert evaluate(features) == np.mean(cross_val_predict(ridge, X[:, features], y, cv=LeaveOneOut()) == y)


def test_any_estimator_and_scoring(rng):
    X, y = grouped_matrix(rng)
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    evaluate = EstimatorCriterion(LinearDiscriminantAnalysis(), scoring="roc_auc").bind(as_source(X), y, cv)
    expected = cross_val_score(LinearDiscriminantAnalysis(), X[:, [1, 5]], y, cv=cv, scoring="roc_auc").mean()
    assert evaluate(np.array([1, 5])) == expected
    numbers = EstimatorCriterion(Ridge()).bind(as_source(sparse.csc_array(X)), X[:, 0] + y, 4)
    assert numbers(np.array([0, 2])) == pytest.approx(cross_val_score(Ridge(), X[:, [0, 2]], X[:, 0] + y, cv=4).mean())


def test_criteria_can_be_sent_to_other_processes(rng):
    X, y = grouped_matrix(rng)
    for criterion in (KNNCriterion(), LinearSVMCriterion(), RidgeCriterion(), EstimatorCriterion(Ridge())):
        evaluate = criterion.bind(as_source(X), y, 3)
        value = evaluate(np.arange(4))
        assert pickle.loads(pickle.dumps(evaluate))(np.arange(4)) == value


def test_accepted_kinds_of_criteria():
    assert isinstance(as_criterion("knn"), KNNCriterion)
    assert isinstance(as_criterion("ridge"), RidgeCriterion)
    assert isinstance(as_criterion(Ridge()), EstimatorCriterion)
    assert isinstance(as_criterion(len), CallableCriterion)
    same = KNNCriterion(5)
    assert as_criterion(same) is same
    for wrong in ("nonsense", KNNCriterion, None, 3):
        with pytest.raises(ValueError, match="must be one of 'knn', 'linear_svm', 'svm', 'ridge'"):
            as_criterion(wrong)


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        (KNNCriterion(0), "n_neighbors=0 must be a whole number of at least 1"),
        (LinearSVMCriterion(C=-1), "C=-1 must be a number of at least 1e-20"),
        (LinearSVMCriterion(loss="log"), "loss='log' must be one of"),
        (RidgeCriterion(alpha=0), "alpha=0 must be a number of at least 1e-20"),
        (RidgeCriterion(scoring="f1"), "scoring='f1' must be one of"),
        (EstimatorCriterion(Ridge(), scoring="nonsense"), "nonsense"),
    ],
)
def test_wrong_parameters(criterion, message, rng):
    X, y = grouped_matrix(rng)
    with pytest.raises(ValueError, match=message):
        criterion.bind(as_source(X), y, 3)


@pytest.mark.parametrize(("cv", "message"), [(1, "cv=1 must be"), ("x", "cv='x' must be"), (KFold(50), "n_splits=50")])
def test_wrong_folds(cv, message, rng):
    X, y = grouped_matrix(rng, n_samples=40)
    with pytest.raises(ValueError, match=message):
        KNNCriterion().bind(as_source(X), y, cv)


def test_constant_numbers_cannot_be_predicted(rng):
    with pytest.raises(ValueError, match="y is constant"):
        RidgeCriterion(scoring="r2").bind(as_source(rng.standard_normal((9, 2))), np.ones(9), 3)


def test_a_function_must_return_a_number(rng):
    evaluate = CallableCriterion(lambda X, y: "good").bind(as_source(rng.standard_normal((9, 2))), np.arange(9), 3)
    with pytest.raises(ValueError, match="must return a number, but returned 'good'"):
        evaluate(np.array([0]))


def exact_ridge(X, y, alpha, sample):
    """Prediction of a sample by a ridge regression on all others, in rational numbers."""
    others = [i for i in range(len(y)) if i != sample]
    columns = [[Fraction(float(X[i, j])) for i in others] for j in range(X.shape[1])]
    means = [sum(column) / len(others) for column in columns]
    columns = [[value - mean for value in column] for column, mean in zip(columns, means, strict=True)]
    middle = sum(Fraction(float(y[i])) for i in others) / len(others)
    targets = [Fraction(float(y[i])) - middle for i in others]
    rows = [[dot(a, b) + (Fraction(alpha) if a is b else 0) for b in columns] + [dot(a, targets)] for a in columns]
    for k in range(len(rows)):  # Gauss and Jordan; the matrix is positive definite
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i, row in enumerate(rows):
            if i != k:
                rows[i] = [value - row[k] * pivot for value, pivot in zip(row, rows[k], strict=True)]
    left_out = [Fraction(float(X[sample, j])) - means[j] for j in range(X.shape[1])]
    return float(middle + dot(left_out, [row[-1] for row in rows]))


def dot(a, b):
    return sum(x * z for x, z in zip(a, b, strict=True))


@pytest.mark.parametrize("n_features", [3, 9, 10, 14])
@pytest.mark.parametrize(
    "kind", ["plain", "large", "huge", "tiny", "outlier", "huge outlier", "scales", "copies", "small penalty"]
)
def test_ridge_at_any_scale(n_features, kind, rng):
    """Predictions equal those of the fit without the sample even if 1 - leverage is lost to rounding."""
    X, y = rng.standard_normal((10, n_features)), rng.standard_normal(10)
    alpha = 1e-20 if kind == "small penalty" else 1.0
    X *= {"large": 1e8, "huge": 1e30, "tiny": 1e-30}.get(kind, 1.0)
    if kind == "scales":
        X *= np.logspace(-9, 9, n_features)
    if kind == "copies":
        X = np.hstack([X, X[:, :2]]) * 1e10
    if "outlier" in kind:
        X[3, 2] = 1e30 if "huge" in kind else 1e12
    predicted = RidgeCriterion(alpha, scoring="r2").bind(as_source(X), y, 3).predictions(np.arange(X.shape[1]))[:, 0]
    expected = [exact_ridge(X, y, alpha, sample) for sample in (0, 3)]
    np.testing.assert_allclose(predicted[[0, 3]], expected, rtol=1e-6)


def test_linear_svm_with_indices_of_64_bits(rng):
    X, y = sparse_counts(rng, 60, 8, 0.5, n_copies=1)
    X = sparse.csc_array(X)
    long = sparse.csc_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    values = [LinearSVMCriterion(max_iter=10**12).bind(as_source(Z), y, 3)(np.arange(8)) for Z in (X, long)]
    assert values[0] == values[1]


def test_a_classifier_needs_labels_of_classes(rng):
    X, y = grouped_matrix(rng, n_features=3)
    for wrong in (np.ones(len(y)), rng.standard_normal(len(y))):
        with pytest.raises(ValueError, match=r"[Cc]lass|[Ll]abel|continuous"):
            EstimatorCriterion(LinearDiscriminantAnalysis()).bind(as_source(X), wrong, 3)


def test_invalid_estimators_are_refused(rng):
    X, y = grouped_matrix(rng, n_features=3)
    for wrong in (5, "knn", KNeighborsClassifier):
        with pytest.raises(ValueError, match=r"estimator=.* must be a scikit-learn estimator with fit and get_params"):
            EstimatorCriterion(wrong).bind(as_source(X), y, 3)


@pytest.mark.parametrize("value", [1e200, -1e200, np.inf, np.nan])
def test_values_must_have_finite_squares(value, rng):
    X, y = grouped_matrix(rng, n_features=3)
    for selector in (DependencyAwareSelector, BestIndividualSelector):
        with pytest.raises(ValueError, match=r"The criterion returned .* It must return a finite number \(at most 1e\+75\)"):
            selector(lambda X, y: value, n_features_to_select=1).fit(X, y)


@pytest.mark.parametrize("wrong", [3, True, b"x", ["a"], np.nan])
def test_a_checkpoint_is_a_path(wrong, rng):
    X, y = grouped_matrix(rng, n_features=3)
    with pytest.raises(ValueError, match=r"checkpoint=.* must be a path or None"):
        DependencyAwareSelector("ridge", n_features_to_select=1, n_probes=3, checkpoint=wrong).fit(X, y)
