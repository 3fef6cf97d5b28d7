"""p-values and q-values of groups, from the outside: ``select``, invariance, and the situations in which claims were false."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from coterie import (
    FeatureGroup,
    FeatureGroups,
    GroupDiscoveryClassifier,
    GroupDiscoveryOneClass,
    GroupDiscoveryRegressor,
    discover,
    group_confidence,
)
from coterie.confidence.evidence import member_probabilities
from coterie.confidence.result import q_values

N_SAMPLES, CAUSES = 200, (5, 30, 61)


def planted(seed=2, n_features=80):
    """Return features and a signal of three of them, each with a copy at a correlation of about 0.9."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_SAMPLES, n_features))
    for cause in CAUSES:
        X[:, cause + 1] = X[:, cause] + 0.45 * rng.standard_normal(N_SAMPLES)
    return X, X[:, list(CAUSES)] @ [1.0, -1.0, 0.8] + rng.standard_normal(N_SAMPLES)


def selected(X, y, *, model=None, fdr=0.1, **options):
    """Return the members of the groups selected at a false discovery rate, as a set of sets of features."""
    model = GroupDiscoveryRegressor(3) if model is None else model
    data = {name: options[name] for name in ("covariates", "groups") if name in options}
    weight = options.pop("sample_weight", None)
    found = group_confidence(model.fit(X, y, weight, **data), X, y, weight, n_pairs=6, random_state=0, **options)
    return {frozenset(group.members.tolist()) for group in found.select(fdr=fdr)}


GROUPS = {frozenset((cause, cause + 1)) for cause in CAUSES}


def test_planted_groups_are_selected_at_both_rates():
    X, y = planted()
    model = GroupDiscoveryRegressor(6).fit(X, y)
    found = group_confidence(model, X, y, n_pairs=10, random_state=0)
    for rate in ({"fdr": 0.1}, {"fwer": 0.05}):
        assert {frozenset(group.members.tolist()) for group in found.select(**rate)} == GROUPS
        own = found.attach_to(model).groups_.select(**rate)
        assert {frozenset(group.members.tolist()) for group in own} == GROUPS
    assert [group.round for group in found.candidates] == list(range(1, len(found.candidates) + 1))
    q = [group.q_value for group in found.candidates]
    assert q == sorted(q)


@pytest.mark.parametrize("C", [0.01, 100.0])
def test_the_selection_does_not_depend_on_the_model(C):
    X, y = planted()
    assert selected(X, y, model=GroupDiscoveryRegressor(1, C=C)) == selected(X, y, model=GroupDiscoveryRegressor(9)) == GROUPS


def test_the_order_of_columns_threads_and_format_do_not_matter():
    X, y = planted()
    X = np.round(X, 3)
    X[:, [70, 75]] = X[:, [5, 5]]  # ties
    order = np.random.default_rng(1).permutation(X.shape[1])
    model = GroupDiscoveryRegressor(4).fit(X, y)
    whole = group_confidence(model, X, y, n_pairs=5, random_state=0, n_jobs=1)
    other = GroupDiscoveryRegressor(4).fit(X[:, order], y)
    found = group_confidence(other, X[:, order], y, n_pairs=5, random_state=0, n_jobs=2)
    assert {frozenset(order[group.members].tolist()) for group in found.candidates} == {
        frozenset(group.members.tolist()) for group in whole.candidates
    }
    np.testing.assert_allclose(
        [group.q_value for group in found.candidates], [group.q_value for group in whole.candidates], rtol=1e-6
    )
    thin = group_confidence(
        GroupDiscoveryRegressor(4, standardize=True).fit(sparse.csc_array(X), y),
        sparse.csc_array(X),
        y,
        n_pairs=5,
        random_state=0,
    )
    assert [set(group.members) for group in thin.select(fdr=0.1)] == [set(group.members) for group in whole.select(fdr=0.1)]


def test_classes():
    X, y = planted()
    assert selected(X, np.where(y > 0, "ill", "well"), model=GroupDiscoveryClassifier(3)) == GROUPS
    codes = np.digitize(X[:, 5] + 0.5 * X[:, 40], [-0.6, 0.6])
    found = selected(X, codes, model=GroupDiscoveryClassifier(3))
    assert frozenset((5, 6)) in found
    assert len(found) <= 2


def test_noise_is_not_selected():
    """At a rate of 0.1, noise is selected in at most one of ten data sets. Here it is none of twelve."""
    for seed in range(12):
        rng = np.random.default_rng([seed, 3])
        X = rng.standard_normal((60, 150))
        assert not selected(X, rng.permutation(np.arange(60) % 2), model=GroupDiscoveryClassifier(2)), seed


def test_rare_values_of_a_rare_class_are_not_selected():
    """Features with three nonzero values and 3 % positives: a normal distribution would select them."""
    n_false = 0
    for seed in range(10):
        rng = np.random.default_rng([seed, 4])
        X = (rng.random((400, 500)) < 0.008).astype(float)
        y = rng.permutation(np.arange(400) < 12).astype(int)
        n_false += bool(selected(X, y, model=GroupDiscoveryClassifier(2)))
    assert n_false <= 1


def test_proxies_of_a_cause_are_not_selected():
    false = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300, 200))
        X[:, 10:20] = 0.6 * X[:, [3]] + 0.8 * X[:, 10:20]
        y = X[:, 3] - X[:, 7] + rng.standard_normal(300)
        found = selected(X, y)
        assert {frozenset([3]), frozenset([7])} <= found
        false += len(found) - 2
    assert false <= 2


def test_covariates_explain_confounded_features():
    rng = np.random.default_rng(0)
    batch = rng.standard_normal(N_SAMPLES)
    X = rng.standard_normal((N_SAMPLES, 60))
    X[:, 20:40] += batch[:, None]
    y = 2.0 * batch + X[:, 3] + rng.standard_normal(N_SAMPLES)
    assert selected(X, y, covariates=batch[:, None]) == {frozenset([3])}
    assert any(member >= 20 for group in selected(X, y) for member in group)


def test_repeated_rows_with_sample_groups_are_not_selected():
    """Forty subjects with five nearly equal rows each, labels per subject, no effect."""
    without = 0
    for seed in range(5):
        rng = np.random.default_rng([seed, 5])
        subject = np.repeat(np.arange(40), 5)
        X = rng.standard_normal((40, 200))[subject] + 0.3 * rng.standard_normal((200, 200))
        y = rng.permutation(np.arange(40) % 2)[subject]
        assert not selected(X, y, model=GroupDiscoveryClassifier(2), groups=subject), seed
        without += bool(selected(X, y, model=GroupDiscoveryClassifier(2)))
    assert without == 5


def test_effects_of_sample_groups_are_selected():
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(80), 3)
    X = rng.standard_normal((80, 50))[subject] + 0.3 * rng.standard_normal((240, 50))
    y = 2.0 * X[:, 4] + rng.standard_normal(80)[subject]
    assert selected(X, y, groups=subject) == {frozenset([4])}


def test_a_weight_of_two_equals_a_repeated_sample():
    X, y = planted()
    weight = np.where(np.arange(N_SAMPLES) % 3 == 0, 2.0, 1.0)
    rows = np.repeat(np.arange(N_SAMPLES), weight.astype(int))
    one, two = (GroupDiscoveryRegressor(2).fit(*data) for data in ((X, y, weight), (X[rows], y[rows])))
    found = group_confidence(one, X, y, weight, n_pairs=2, random_state=0)
    expected = group_confidence(two, X[rows], y[rows], n_pairs=2, random_state=0)
    assert {group.support for group in found.select(fdr=0.1)} == {group.support for group in expected.select(fdr=0.1)}


def test_without_correlation_every_feature_is_a_group():
    X, y = planted()
    found = selected(X, y, model=GroupDiscoveryRegressor(3, correlation=None))
    assert all(len(group) == 1 for group in found)
    assert {next(iter(group)) // 2 * 2 for group in found} <= {4, 30, 60, 6, 32, 62}


def test_fixed_features_have_no_evidence_and_are_given():
    X, y = planted()
    model = GroupDiscoveryRegressor(3, fixed_features=[30]).fit(X, y)
    found = group_confidence(model, X, y, n_pairs=5, random_state=0)
    fixed = [group.round == 0 for group in model.groups_]
    assert np.isnan(found.q_value).tolist() == np.isnan(found.p_value).tolist() == fixed
    assert 30 not in {member for group in found.candidates for member in group.members}
    assert {5, 61} <= {group.support for group in found.select(fdr=0.1)}


def test_few_features_and_few_samples():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, 2)), np.array([0, 1, 0, 1, 0, 1])
    result = group_confidence(GroupDiscoveryClassifier(1).fit(X, y), X, y, n_pairs=2, random_state=0)
    assert len(result.select(fdr=0.1)) == 0
    assert not np.isnan(result.p_value).any()


def test_one_class_has_no_p_values():
    X = np.abs(planted()[0])
    model = GroupDiscoveryOneClass(3).fit(X)
    result = group_confidence(model, X, n_pairs=2, random_state=0)
    assert np.isnan(result.p_value).all()
    with pytest.raises(ValueError, match="require labels"):
        result.select(fdr=0.1)


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ({}, "Pass either fdr or fwer"),
        ({"fdr": 0.1, "fwer": 0.1}, "Pass either fdr or fwer"),
        ({"fdr": 0.0}, "fdr=0.0 must be a number between 0 and 1"),
        ({"fwer": True}, "fwer=True must be a number"),
        ({"fdr": "0.1"}, "fdr='0.1' must be a number"),
    ],
)
def test_rates_are_checked(rates, message):
    groups = FeatureGroups([FeatureGroup(0, [], p_value=0.1, q_value=0.1)])
    with pytest.raises(ValueError, match=message):
        groups.select(**rates)


def test_groups_without_evidence_cannot_be_selected():
    with pytest.raises(ValueError, match="have no q_value yet"):
        FeatureGroups([FeatureGroup(0, [])]).select(fdr=0.1)
    with pytest.raises(ValueError, match=r"q_value of all groups is unknown\. One-class models"):
        FeatureGroups([FeatureGroup(0, [], q_value=np.nan, p_value=np.nan)]).select(fdr=0.1)
    assert len(FeatureGroups([]).select(fdr=0.1)) == 0


def test_discover_marks_what_is_selected():
    X, y = planted()
    found = discover(X, y, n_features_to_select=4, C=1.0, cv=3, n_pairs=5, fdr=0.01)
    assert [group.selected for group in found.groups] == [group.q_value <= 0.01 for group in found.groups]
    assert found.verdict.groups.fdr == 0.01
    assert "significant at a false discovery rate of 1%" in found.judgement
    assert found.verdict.groups.n_found == sum(group.selected for group in found.groups) == 3
    assert {frozenset(group.members.tolist()) for group in found.select(fdr=0.01)} == GROUPS
    assert "fdr=0.01" in found.command
    with pytest.raises(ValueError, match="half-samples were left out"):
        discover(X, y, fast=True).select(fdr=0.1)
    with pytest.raises(ValueError, match="fdr=1 must be a fraction"):
        discover(X, y, fdr=1)


def test_probabilities_of_members_point_to_the_cause():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 40))
    X[:, 11:15] = X[:, [10]] + np.array([0.1, 0.3, 0.5, 0.7]) * rng.standard_normal((500, 4))
    y = 0.6 * X[:, 10] + X[:, 30] + rng.standard_normal(500)
    model = GroupDiscoveryRegressor(2).fit(X, y)
    groups = group_confidence(model, X, y, n_pairs=5, random_state=0).attach_to(model).groups_
    group = next(group for group in groups if 10 in group.members)
    assert group.probabilities.sum() == pytest.approx(1.0)
    assert 10 in group.likely_members()
    assert 14 not in group.likely_members()
    assert len(group.likely_members(0.5)) <= len(group.likely_members()) < len(group)
    with pytest.raises(ValueError, match="coverage=1"):
        group.likely_members(1)
    with pytest.raises(ValueError, match="have no probabilities"):
        FeatureGroup(0, []).likely_members()


def test_probabilities_against_bayes_factors():
    z = np.array([5.0, 4.0, -4.5, 0.1])
    best = max(
        (np.exp(0.5 * np.log(1 / (1 + ratio)) + 0.5 * z**2 * ratio / (1 + ratio)) for ratio in 4.0 ** np.arange(9)),
        key=np.sum,
    )
    np.testing.assert_allclose(member_probabilities(z), best / best.sum())


@given(st.lists(st.floats(0, 20), max_size=12))
def test_q_values_against_their_definition(errors):
    """The smallest rate at which a group is among those with twice the errors over their number."""
    found = q_values(np.array(errors), np.zeros(len(errors)))
    for value, own in zip(found, errors, strict=True):
        shares = [2 * e / sum(other <= e for other in errors) for e in errors if e >= own]
        assert value == pytest.approx(min(1.0, *shares, 1.0))


def test_misplaced_groups_count_as_false():
    errors, misplaced = np.array([0.01, 0.02, 0.03]), np.array([0.0, 0.6, 0.0])
    np.testing.assert_allclose(q_values(errors, misplaced), [0.02, (0.06 + 0.6) / 3, 0.03])
