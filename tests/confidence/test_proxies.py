"""Features that only represent another group: expected numbers against simulation, and the groups that are selected."""

import numpy as np
import pytest
from scipy import sparse, stats

from coterie import GroupDiscoveryClassifier, GroupDiscoveryRegressor, GroupDiscoverySurvival, group_confidence
from coterie.confidence.association import null_models
from coterie.confidence.evidence import _Association
from coterie.confidence.proxies import Proxies, false_by_proxy, proxies_of, rivals_of
from coterie.data import as_source
from coterie.data.view import FeatureView
from coterie.estimators.base import input_of
from coterie.solver.cox_regression import COX
from coterie.solver.families import CLASSES, LEAST_SQUARES


def unit(columns):
    centred = columns - columns.mean(axis=0)
    return centred / np.linalg.norm(centred, axis=0)


def test_expected_numbers_against_simulation():
    rng = np.random.default_rng(0)
    correlation, z = rng.uniform(0.1, 0.69, 50), 6.0
    proxies = Proxies(correlation * z, np.sqrt(1.0 - correlation**2))
    e = rng.standard_normal((40_000, 50))
    alone = correlation * z + proxies.rest * e
    for threshold, given in ((3.5, 0.5), (3.5, 2.0), (2.0, 2.5), (5.0, 1.0)):
        counts = ((np.abs(alone) >= threshold) & (np.abs(e) >= given)).sum(axis=1)
        error = counts.std() / np.sqrt(len(counts))
        assert proxies.expected(threshold, np.array([given]))[0] == pytest.approx(counts.mean(), abs=4.0 * error)


def test_false_by_proxy_against_its_definition():
    proxies = Proxies(np.array([3.0, 1.0, 2.0]), np.array([0.8, 0.95, 0.9]))
    given = np.array([1e-8, 1e-3, 0.05, 0.7])
    found = false_by_proxy([proxies], 1000, given)
    assert (np.diff(found) >= 0.0).all()

    def admitted(number, p_value):
        z = stats.norm.isf(min(number / 1000, 1.0) / 2.0)
        return proxies.expected(z, stats.norm.isf(np.array([p_value]) / 2.0))[0] <= number

    for number, p_value in zip(found[1:], given[1:], strict=True):
        assert all(admitted(t, p_value) for t in np.geomspace(1.001 * number, 1e3, 50))
        assert not admitted(0.7 * number, p_value)  # the grid has steps of a quarter
    assert (false_by_proxy([Proxies(np.empty(0), np.empty(0))], 1000, given) == 0.0).all()


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_proxies_and_rivals_against_all_correlations(make):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 40))
    X[:, 1:6] = 0.6 * X[:, [0]] + 0.8 * X[:, 1:6]
    X[:, 11] = 0.5 * X[:, 10] + X[:, 11]
    y = unit(X[:, [0]])[:, 0] + unit(X[:, [10]])[:, 0] + 0.5 * unit(rng.standard_normal((200, 1)))[:, 0]
    supports, correlation = np.array([0, 10]), np.abs(unit(X).T @ unit(X[:, [0, 10]]))
    z = np.array([8.0, 5.0])
    view = FeatureView.of(as_source(make(X)), None)
    found = proxies_of(view, supports, unit(X[:, supports]), 1.0, z, np.array([3]), 200)
    large = np.where(correlation >= 3.0 / np.sqrt(200), correlation, 0.0)
    large[supports, [0, 1]] = 0.0
    large[3] = 0.0
    own = np.flatnonzero(large.any(axis=1))
    expected = large[own, (large * z)[own].argmax(axis=1)]
    np.testing.assert_allclose(found.lift, (large * z)[own].max(axis=1), rtol=1e-6)
    np.testing.assert_allclose(found.rest, np.sqrt(1.0 - expected**2), rtol=1e-6)

    statistic = np.abs(unit(X).T @ y)
    near = [np.array([0, 3]), np.array([10])]
    odds = rivals_of(view, np.column_stack([unit(X[:, supports]), y]), 1.0, statistic[supports], near, 0.3)
    for k, support in enumerate(supports):
        rivals = [j for j in range(40) if correlation[j, k] >= 0.3 and j not in near[k]]
        assert rivals
        shrinkage = max(0.0, 1.0 - 1.0 / max(statistic[support] ** 2, 1.0))
        terms = np.exp(0.5 * shrinkage * np.minimum(statistic[rivals] ** 2 - statistic[support] ** 2, 0.0))
        assert odds[k] == pytest.approx(terms.sum())


@pytest.mark.parametrize("outcome", ["numbers", "classes", "times"])
def test_projections_of_each_null_model(outcome):
    """The product of a feature with its own projection is the norm of its unexplained part."""
    rng = np.random.default_rng(3)
    X, covariates = rng.standard_normal((80, 6)), rng.standard_normal((80, 2))
    y = {
        "numbers": X[:, 0] + rng.standard_normal(80),
        "classes": X[:, 0] + rng.standard_normal(80) > 0,
        "times": np.column_stack([rng.random(80) < 0.7, rng.exponential(np.exp(X[:, 0]))]),
    }[outcome]
    names = {"numbers": GroupDiscoveryRegressor, "classes": GroupDiscoveryClassifier, "times": GroupDiscoverySurvival}
    data = input_of(names[outcome](2).fit(X, y, covariates=covariates), X, y, covariates=covariates)
    family = {"numbers": LEAST_SQUARES, "classes": CLASSES, "times": COX}[outcome]
    for model in null_models(data, [1], np.arange(80), family):
        tests = model.tests(X)
        vectors, _ = model.projections(tests.unit, 80)
        np.testing.assert_allclose((X * vectors).sum(axis=0), tests.information, rtol=1e-9, atol=1e-12)


def linked(seed, n_samples, weak):
    """Return blocks of 20 features with correlations of about 0.45, with one cause in each of two blocks."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, 200))
    for block in range(10):
        X[:, 20 * block : 20 * block + 20] += 0.9 * rng.standard_normal((n_samples, 1))
    return X, X[:, 5] - X[:, 45] + weak * rng.standard_normal(n_samples)


@pytest.mark.parametrize("classes", [False, True])
def test_many_weak_proxies_of_a_cause_are_not_selected(classes):
    """A strong effect lifts the nineteen other features of its block over the threshold of the association."""
    false = n_selected = 0
    for seed in range(6):
        X, y = linked(seed, 300, 1.0)
        y = y > 0 if classes else y
        model = (GroupDiscoveryClassifier if classes else GroupDiscoveryRegressor)(2).fit(X, y)
        found = group_confidence(model, X, y, n_pairs=5, random_state=0).select(fdr=0.1)
        supports = {group.support for group in found}
        assert {5, 45} <= supports
        false, n_selected = false + len(supports - {5, 45}), n_selected + len(supports)
    assert false <= 0.15 * n_selected


def correlated_pair(rng, n_samples, correlation, z):
    """Return two features with this correlation, and an outcome with which they have these statistics."""
    columns = rng.standard_normal((n_samples, 3))
    base = np.linalg.qr(columns - columns.mean(axis=0))[0]
    pair = base[:, :2] @ np.array([[1.0, correlation], [0.0, np.sqrt(1.0 - correlation**2)]])
    wanted = np.asarray(z) / np.sqrt(n_samples)
    weights = np.linalg.solve(pair.T @ pair, wanted)
    return pair, pair @ weights + np.sqrt(1.0 - weights @ wanted) * base[:, 2]


@pytest.mark.parametrize(("correlation", "is_ambiguous"), [(0.65, True), (0.3, False)])
def test_a_group_with_a_rival_below_the_threshold_is_less_certain(correlation, is_ambiguous):
    """A feature that is almost as strong, and almost in the group, may be the one with the effect."""
    rng = np.random.default_rng(0)
    pair, y = correlated_pair(rng, 120, correlation, (3.9, 3.1))
    X = np.column_stack(
        [pair, np.linalg.qr(np.column_stack([np.ones(120), pair, y, rng.standard_normal((120, 70))]))[0][:, 4:]]
    )
    found = group_confidence(GroupDiscoveryRegressor(2).fit(X, y), X, y, n_pairs=5, random_state=0).candidates
    assert found[0].support == 0
    assert (found[0].q_value > 0.05) == is_ambiguous


def test_every_other_significant_candidate_can_explain_a_group(monkeypatch):
    calls = []
    original = _Association.given

    def recorded(self, columns, feature, others):
        calls.append((feature, others.tolist()))
        return original(self, columns, feature, others)

    monkeypatch.setattr(_Association, "given", recorded)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 80))
    y = X[:, :4] @ [1.0, 0.9, -0.9, 0.8] + rng.standard_normal(60)
    group_confidence(GroupDiscoveryRegressor(4).fit(X, y), X, y, n_pairs=2, random_state=0)
    n_explaining = max(len(others) for _, others in calls)
    assert n_explaining >= 2
    for feature, others in calls:
        assert feature not in others
        assert others == [k for k in range(max(others) + 1) if k != feature]
    assert any(max(others) > feature for feature, others in calls)
