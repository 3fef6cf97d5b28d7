"""Methods for a quantitative trait: a score, mRMR, the lasso, and the criteria of DAF, SFFS and BIF."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import f_regression
from sklearn.linear_model import lars_path
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import coterie
from coterie import baselines
from coterie.baselines import LassoSelector, MRMRRegressionSelector
from coterie.baselines.base import TargetSelector
from coterie.comparison.trial import selector_named
from coterie.data import as_source
from coterie.filters import correlation_score
from coterie.methods import METHODS, REGRESSION, method_named
from coterie.probing.criteria import KNNRegressionCriterion, RidgeCriterion, RidgeRegressionCriterion

SELECTORS = [MRMRRegressionSelector(4), MRMRRegressionSelector(4, scheme="miq"), LassoSelector(4)]


@pytest.fixture
def trait(rng):
    X = rng.standard_normal((80, 15)) * rng.uniform(0.5, 3, 15) + rng.uniform(-3, 3, 15)
    X[:, 9] = X[:, 2] + 0.2 * rng.standard_normal(80)
    y = 2 * X[:, 2] / X[:, 2].std() - X[:, 5] / X[:, 5].std() + 0.5 * rng.standard_normal(80) + 100.0
    return X, y


@parametrize_with_checks([MRMRRegressionSelector(2), LassoSelector(2)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_all_selectors_are_tested():
    public = {getattr(baselines, name) for name in baselines.__all__}
    assert {type(selector) for selector in SELECTORS} == {one for one in public if issubclass(one, TargetSelector)}


def test_correlation_score_is_that_of_the_f_test(trait):
    X, y = trait
    scores = correlation_score(X, y)
    np.testing.assert_allclose(scores, [abs(np.corrcoef(column, y)[0, 1]) for column in X.T], rtol=1e-10)
    np.testing.assert_allclose(78 * scores**2 / (1 - scores**2), f_regression(X, y)[0], rtol=1e-8)
    np.testing.assert_allclose(correlation_score(sparse.csr_array(X), y), scores, rtol=1e-9)
    X[:, 3] = 7.0
    assert correlation_score(X, y)[3] == 0.0


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "correlation_score requires y to be passed"),
        (["a", "b"] * 40, "Targets must be numbers"),
        (np.ones(80), "y is constant"),
        (np.arange(79), "inconsistent numbers of samples"),
        ([np.nan] + [1.0, 2.0, 3.0] * 26 + [4.0], "are missing. The first is that of sample 0"),
    ],
)
def test_bad_targets(trait, y, message):
    X, _ = trait
    with pytest.raises(ValueError, match=message):
        correlation_score(X, y)
    for selector in SELECTORS:
        with pytest.raises(ValueError, match=message.removeprefix("correlation_score ") if y is not None else "requires y"):
            clone(selector).fit(X, y)


@pytest.mark.parametrize("scheme", ["mid", "miq"])
def test_mrmr_against_naive_code(trait, scheme):
    X, y = trait
    correlation = np.abs(np.corrcoef(np.column_stack([X, y]).T))
    relevance, redundancy = correlation[-1, :-1], correlation[:-1, :-1]
    chosen = [int(np.argmax(relevance))]
    while len(chosen) < 6:
        mean = redundancy[:, chosen].mean(axis=1)
        value = relevance - mean if scheme == "mid" else relevance / mean
        value[chosen] = -np.inf
        chosen.append(int(np.argmax(value)))
    model = MRMRRegressionSelector(6, scheme=scheme).fit(X, y)
    assert model.support_features_.tolist() == chosen
    np.testing.assert_allclose(model.relevance_, relevance, rtol=1e-10)


def test_lasso_selects_the_first_features_of_the_path(trait):
    X, y = trait
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for size in (1, 2, 3):
        _, _, coefs = lars_path(Z, y - y.mean(), method="lasso")
        expected = next(set(np.flatnonzero(w).tolist()) for w in coefs.T if np.count_nonzero(w) == size)
        assert set(LassoSelector(size).fit(X, y).support_features_.tolist()) == expected
    many = LassoSelector(15).fit(X[:8], y[:8])  # the path ends before 15 features
    assert sorted(many.support_features_.tolist()) == list(range(15))


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_same_features_in_any_order_unit_and_format(trait, rng, selector):
    X, y = trait
    kept = clone(selector).fit(X, y).support_features_.tolist()
    order = rng.permutation(15)
    assert order[clone(selector).fit(X[:, order], 1e6 * y).support_features_].tolist() == kept
    for data in (np.asfortranarray(X), sparse.csr_array(X), as_source(X), 1e-3 * X):
        assert clone(selector).fit(data, y).support_features_.tolist() == kept


def test_criteria(trait, rng):
    X, y = trait
    source = as_source(X)
    for features in (np.array([2]), np.array([1, 5, 9])):
        knn = cross_val_score(KNeighborsRegressor(4), X[:, features], y, cv=3).mean()
        assert KNNRegressionCriterion(4).bind(source, y, 3)(features) == pytest.approx(knn, rel=1e-12)
        ridge = RidgeCriterion(2.0, scoring="r2").bind(source, y, 3)(features)
        assert RidgeRegressionCriterion(2.0).bind(source, y, 3)(features) == ridge
    with pytest.raises(ValueError, match="more than the 53 training samples"):
        KNNRegressionCriterion(60).bind(source, y, 3)


def test_every_method_for_numbers_finds_them(trait, tmp_path):
    X, y = trait
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for name, method in REGRESSION.items():
        selector = selector_named(name, task="regression").set_params(n_features_to_select=3)
        if name == "daf":
            selector.set_params(n_probes=80, random_state=0)
        model = selector.fit(X, y if method.supervised else None)
        if method.supervised:
            assert {2, 9} & set(model.support_features_.tolist()), name
        coterie.save(model, tmp_path / "m.coterie")
        again = coterie.load(tmp_path / "m.coterie")
        np.testing.assert_array_equal(again.support_features_, model.support_features_)


def test_method_for_the_other_kind_of_target():
    with pytest.raises(ValueError, match=r"'fisher' requires classes, but the labels are numbers .*Methods for numbers: gdm"):
        method_named("fisher", "regression")
    with pytest.raises(ValueError, match="'lasso' requires a numeric target, but the labels are classes"):
        method_named("lasso")
    assert set(METHODS) - set(REGRESSION) >= {"fisher", "relieff", "svm-rfe", "l1-svm", "fcbf"}
