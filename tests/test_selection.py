"""Fits of all selectors are atomic: a failed fit leaves the estimator unchanged."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, make_scorer

import coterie
from coterie import baselines
from coterie._parameters import AnyValue, Boolean, Fraction, Function, Integer, NotString, Number, OneOf, check
from coterie.filters.selector import FilterSelector
from coterie.methods import METHODS
from coterie.probing.criteria import CallableCriterion, EstimatorCriterion
from coterie.selection import Selector
from tests.conftest import grouped_matrix

SELECTORS = [
    coterie.GroupDiscoveryClassifier(3),
    coterie.GroupDiscoveryClassifier(3, cv=3, random_state=0),
    coterie.GroupDiscoveryClassifierCV(4, Cs=2, n_features_per_round=2, cv=2, random_state=0),
    coterie.GroupDiscoveryRegressor(3),
    coterie.GroupDiscoveryRegressorCV(4, Cs=2, cv=2, predict_with=["support", "groups"], random_state=0),
    coterie.GroupDiscoverySurvival(3),
    coterie.GroupDiscoverySurvivalCV(4, Cs=2, cv=2, predict_with=["support", "groups"], random_state=0),
    coterie.GroupDiscoveryOneClass(3),
    coterie.GroupDiscoveryOneClassCV(3, Cs=2, cv=2, scoring=make_scorer(accuracy_score), random_state=0),
    coterie.CorrelationGroups(),
    coterie.GlobalRedundancySelector("fisher", 3, fdr=None),
    coterie.DependencyAwareSelector("ridge", n_features_to_select=3, n_probes=30, random_state=0),
    FilterSelector("fisher", 3),
    FilterSelector("variance", 3),
    baselines.BestIndividualSelector("ridge", n_features_to_select=3),
    baselines.FloatingSelector("ridge", n_features_to_select=2, look_ahead=0),
    baselines.MRMRSelector(3),
    baselines.FCBFSelector(3),
    baselines.RCFSSelector(3),
    baselines.SVMRFESelector(3),
    baselines.L1SVMSelector(3),
    baselines.LassoSelector(3),
    baselines.MRMRRegressionSelector(3),
    baselines.OSCARSelector(3),
    baselines.GraphFusedLassoSelector(3),
    baselines.FeatureGroupingSelector(3),
]
CRITERIA = [coterie.KNNCriterion(), coterie.LinearSVMCriterion(), coterie.RidgeCriterion()]


@pytest.fixture(scope="module")
def data():
    X, y = grouped_matrix(np.random.default_rng(7), n_samples=50, n_features=20)
    return X - X.min(), y


def target_of(selector, data):
    """Return the features, and the target in the form that the selector requires."""
    X, y = data
    survival = isinstance(selector, coterie.GroupDiscoverySurvival)
    return X, np.column_stack([np.exp(X[:, 0] / 4) + 1.0, y > 0]) if survival else y


def state(model):
    return {name: value for name, value in vars(model).items() if name not in model.get_params(deep=False)}


def assert_unchanged(model, before, X, transformed):
    after = state(model)
    assert list(after) == list(before)
    assert all(after[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.transform(X), transformed)


class Interruption(KeyboardInterrupt):
    """Distinguishes the simulated interrupt from a real Ctrl-C."""


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_a_failed_refit_leaves_the_model_unchanged(selector, data, monkeypatch):
    """After invalid values, too few features, or a late Ctrl-C, the old model still works on its data."""
    X, y = target_of(selector, data)
    model = clone(selector).fit(X, y)
    before, transformed = state(model), model.transform(X)
    bad = X[:, :7].copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(bad, y)
    assert_unchanged(model, before, X, transformed)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        model.fit(pd.DataFrame(X[:1, :5], columns=list("abcde")), y[:1])
    assert_unchanged(model, before, X, transformed)

    def interrupted(self, data):
        compute(self, data)
        raise Interruption

    compute = type(model)._compute
    monkeypatch.setattr(type(model), "_compute", interrupted)
    with pytest.raises(Interruption):
        model.fit(X[:, :9], y)
    assert_unchanged(model, before, X, transformed)
    fresh = clone(selector)
    with pytest.raises(Interruption):
        fresh.fit(X, y)
    assert not state(fresh)
    with pytest.raises(NotFittedError):
        fresh.transform(X)


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_a_refit_removes_all_earlier_attributes(selector, data):
    X, y = target_of(selector, data)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(20)])
    again = clone(selector).fit(frame, y).fit(X[:, :12], y)
    fresh = clone(selector).fit(X[:, :12], y)
    assert set(state(again)) == set(state(fresh))
    assert not hasattr(again, "feature_names_in_")
    np.testing.assert_array_equal(again.get_support(), fresh.get_support())


def all_kinds():
    kinds, todo = set(), [Selector]
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        if kind.__module__.startswith("coterie.") and not getattr(kind, "__abstractmethods__", None):
            kinds.add(kind)
    return sorted((kind for kind in kinds if "__init__" in vars(kind)), key=lambda kind: kind.__name__)


def test_every_method_is_among_them():
    kinds = {method.load() for method in METHODS.values()}
    assert {kind for kind in kinds if isinstance(kind, type)} <= set(all_kinds())
    assert {type(selector) for selector in SELECTORS} == set(all_kinds())


@pytest.mark.parametrize("estimator", [*SELECTORS, *CRITERIA], ids=repr)
def test_every_parameter_has_its_rule(estimator):
    """There is one rule per parameter. It allows the default and rejects invalid values."""
    table = estimator._allowed
    assert set(table) == set(estimator.get_params(deep=False))
    for name, value in type(estimator)().get_params(deep=False).items():
        assert table[name].allows(value), name
        if not isinstance(table[name], AnyValue):
            wrong = b"nonsense" if name == "checkpoint" else "nonsense"  # Any string is a path.
            with pytest.raises(ValueError, match=rf"^{name}={wrong!r} must be .*\."):
                check(name, wrong, table[name])


def test_criteria_without_numbers_have_no_table():
    assert not EstimatorCriterion(BaseEstimator())._allowed
    assert not CallableCriterion(len)._allowed


@pytest.mark.parametrize(
    ("rule", "good", "bad", "words"),
    [
        (Integer(2, 9), [2, 9, np.int64(3)], [1, 10, 2.0, True, "2", None], "a whole number of at least 2 and at most 9"),
        (Integer(), [-3, 0], [0.5], "a whole number"),
        (Number(), [1e-300, 3, np.float32(2)], [0, -1, np.nan, np.inf, True, "1", None], "a number above 0"),
        (Number(at_least=0, below=1), [0, 0.5], [1, -1e-9], "a number of at least 0 and below 1"),
        (Number(at_most=0.5), [0.5], [0.6], "a number above 0 and at most 0.5"),
        (Fraction(), [0.5], [1, 0, 1.0, 0.0, "0.5"], "a fraction in (0, 1)"),
        (OneOf("a", "b", None), ["a", None], ["c", 1, np.array(["a"])], "one of 'a', 'b', None"),
        (OneOf("auto"), ["auto"], ["Auto"], "'auto'"),
        (Boolean(), [True, np.False_, 0, 1], [2, "yes", None, 1.0], "True or False"),
        (Function(), [len], ["len"], "a function"),
        (NotString("a matrix"), [np.eye(2), 3], ["x", None], "a matrix"),
        (
            Integer(1) | Fraction() | OneOf("auto"),
            [1, 0.5, "auto"],
            [0, 1.5],
            "a whole number of at least 1, a fraction in (0, 1) or 'auto'",
        ),
    ],
)
def test_rules(rule, good, bad, words):
    assert all(rule.allows(value) for value in good)
    assert not any(rule.allows(value) for value in bad)
    with pytest.raises(ValueError, match="must be") as error:
        check("size", bad[0], rule)
    assert str(error.value) == f"size={bad[0]!r} must be {words}."


def test_messages_show_plain_numbers():
    with pytest.raises(ValueError, match=r"^C=-1\.5 must be a number above 0\.$"):
        check("C", np.float64(-1.5), Number())
    with pytest.raises(ValueError, match=r"^C=inf must be finite\.$"):
        check("C", np.inf, Number())


def test_a_subclass_with_a_parameter_of_its_own_works(data):
    """Parameters that a user's subclass adds need no rules."""

    class Mine(coterie.GroupDiscoveryRegressor):
        def __init__(self, n_features_to_select=3, *, colour="red", **others):
            super().__init__(n_features_to_select)
            self.colour = colour

        @classmethod
        def _get_param_names(cls):
            return sorted([*coterie.GroupDiscoveryRegressor._get_param_names(), "colour"])

    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(Mine().fit(X, y.astype(float)).groups_) == 3


@pytest.mark.parametrize(
    "selector",
    [
        baselines.OSCARSelector(2, max_iter=1),
        coterie.DependencyAwareSelector("ridge", n_features_to_select=2, n_probes=1, max_probe_size=1, random_state=0),
        coterie.GlobalRedundancySelector(
            "variance", 5, solution="weights", n_candidates=None, options={"method": "alm", "max_iter": 1, "tol": 1e-300}
        ),
    ],
    ids=repr,
)
def test_warnings_point_to_the_caller_of_fit(selector, data):
    with pytest.warns(ConvergenceWarning) as caught:
        clone(selector).fit(*data)
    assert {warning.filename for warning in caught} == {__file__}
