"""Embedded cross-validation: votes compared with naive code, and rules that hold with and without it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import (
    GroupDiscoveryClassifier,
    GroupDiscoveryClassifierCV,
    GroupDiscoveryOneClass,
    GroupDiscoveryRegressor,
)
from coterie.correlation.pearson import PearsonCorrelation
from coterie.data import FeatureView, as_source
from coterie.metrics import group_recovery
from coterie.search.oracle import Block
from coterie.search.voting import VotingOracle
from coterie.solver.losses import SquaredHinge
from tests import naive
from tests.conftest import grouped_matrix, sparse_counts
from tests.search.test_oracle import as_dict, residual_for


@parametrize_with_checks(
    [
        GroupDiscoveryClassifier("auto", cv=2, random_state=0),
        GroupDiscoveryRegressor("auto", cv=2, cv_part="fold", random_state=0),
    ]
)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.parametrize("cv_part", ["training", "fold"])
@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
def test_first_round_is_that_of_naive_code(rng, is_sparse, fit_intercept, standardize, cv_part):
    X, y = sparse_counts(rng, n_samples=90, n_features=60)
    X = X + 0.01 * rng.standard_normal(X.shape)  # no ties
    folds = StratifiedKFold(4, shuffle=True, random_state=1)
    make = sparse.csc_array if is_sparse else np.asarray
    options = {"fit_intercept": fit_intercept, "standardize": standardize, "cv_part": cv_part}
    model = GroupDiscoveryClassifier(5, n_features_per_round=5, cv=folds, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(max_rounds=1).fit(make(X), y)
    residual = SquaredHinge(y, np.ones(len(y)), 1.0, fit_intercept).evaluate(np.zeros((len(y), 1))).residual[:, 0]
    scale = X.std(axis=0) if standardize else 1.0
    votes = np.zeros(60, dtype=int)
    for train, own in folds.split(X, y):
        seen = train if cv_part == "training" else own
        part = X[seen]
        scores = (part - (part.mean(axis=0) if fit_intercept else 0)).T @ residual[seen] / scale
        new, _ = naive.walk(scores, naive.correlation(part), [], 5, 0.7)
        votes[new] += 1
    np.testing.assert_array_equal(model.votes_, votes)
    whole = np.abs((X - (X.mean(axis=0) if fit_intercept else 0)).T @ residual / scale)
    C, chosen = np.abs(naive.correlation(X)), []
    for j in sorted(np.flatnonzero(votes), key=lambda j: (-votes[j], -whole[j])):
        if len(chosen) < 5 and not any(C[j, z] >= 0.7 for z in chosen):
            chosen.append(int(j))
    assert model.support_features_.tolist() == chosen
    np.testing.assert_allclose(model.history_[0].scores, whole[chosen])


def vote(X, parts, residual, supports, excluded, n_new, threshold):
    """Return the block of one round of TPAMI Algorithm 4, without shortcuts, and all features on the folds' walks."""
    C, votes, walked = naive.correlation(X), {}, set()
    for part in parts:
        own = X[part] - X[part].mean(axis=0)
        new, encountered = naive.walk(own.T @ residual[part], naive.correlation(X[part]), supports, n_new, threshold, excluded)
        walked |= encountered | set(new)
        for j in new:
            votes[j] = votes.get(j, 0) + 1
    whole = (X - X.mean(axis=0)).T @ residual
    block = []
    for j in sorted(votes, key=lambda j: (-votes[j], -abs(whole[j]))):
        if len(block) < n_new and not any(abs(C[j, z]) >= threshold for z in [*supports, *block]):
            block.append(j)
    if not block:
        block, encountered = naive.walk(whole, C, supports, n_new, threshold, excluded)
        walked |= encountered
    return block, walked


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    threshold=st.sampled_from([0.3, 0.5, 0.7]),
    n_new=st.integers(1, 4),
    affiliates=st.sampled_from(["complete", "ranked"]),
    cv_part=st.sampled_from(["training", "fold"]),
    is_sparse=st.booleans(),
)
def test_rounds_and_groups_are_those_of_naive_code(seed, threshold, n_new, affiliates, cv_part, is_sparse):
    """A feature joins a group, and is excluded, only if it is correlated on all data, not merely within a fold."""
    rng = np.random.default_rng(seed)
    X, y = grouped_matrix(rng, n_samples=40, n_features=30, noise=1.0)
    splits = StratifiedKFold(4, shuffle=True, random_state=seed).split(X, y)
    parts = [train if cv_part == "training" else own for train, own in splits]
    view = FeatureView.of(as_source(sparse.csc_array(X) if is_sparse else X))
    folds = [PearsonCorrelation(view.part(part)) for part in parts]
    oracle = VotingOracle(PearsonCorrelation(view), folds, threshold=threshold, affiliates=affiliates)
    C = np.abs(naive.correlation(X))
    supports, walked, excluded = [], set(), set()
    for _ in range(4):
        residual = residual_for(y, rng)
        new, passed = vote(X, parts, residual[:, 0], supports, excluded, n_new, threshold)
        block = oracle.find_block(residual, n_new)
        assert block.features.tolist() == new
        if not new:
            break
        oracle.add_block(block)
        supports, walked = supports + new, walked | passed
        excluded = {j for j in walked - set(supports) if C[j, supports].max() >= threshold}
        assert set(oracle.affiliations.feature.tolist()) == excluded
        for voter in (oracle, *oracle.folds):
            assert set(np.flatnonzero(~voter._candidates.mask).tolist()) == excluded | set(supports)
    complete = naive.complete_groups(X, supports, threshold)
    expected = complete if affiliates == "complete" else naive.ranked_groups(X, supports, walked, threshold)
    found = oracle.collect()
    assert as_dict(supports, found) == expected
    np.testing.assert_allclose(np.abs(found.correlation), C[found.feature, np.array(supports)[found.support]], atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_correlations_by_chance_in_a_fold_are_not_in_the_groups(seed):
    X, y = grouped_matrix(np.random.default_rng(seed), n_samples=40, n_features=60, noise=1.0)
    options = {"n_features_per_round": 2, "cv": 5, "affiliates": "ranked", "threshold": 0.5, "random_state": 0}
    model = GroupDiscoveryClassifier(8, **options).fit(X, y)
    C = naive.correlation(X)
    for group in model.groups_:
        np.testing.assert_allclose(group.correlation, C[group.affiliated, group.support], atol=1e-9)
        assert (np.abs(group.correlation) >= 0.5).all()
        assert (
            np.abs(group.correlation) >= np.abs(C[np.ix_(group.affiliated, model.support_features_)]).max(axis=1) - 1e-9
        ).all()
    assert len(model.groups_.members) > 8


@pytest.mark.parametrize("affiliates", ["complete", "ranked"])
@pytest.mark.parametrize("correlation", ["pearson", "su", None])
def test_rules_hold_with_folds(rng, correlation, affiliates):
    X, y = grouped_matrix(rng, n_samples=120, n_features=60, noise=0.8)
    options = {"n_features_per_round": 4, "correlation": correlation, "affiliates": affiliates, "cv": 3, "random_state": 0}
    model = GroupDiscoveryClassifier(10, **options).fit(X, y)
    assert len(model.support_features_) == len(set(model.support_features_)) == 10
    assert max(r.gap for r in model.history_) <= 1e-4
    theta = np.array([r.objective for r in model.history_])
    assert (np.diff(theta) >= -1e-9 * theta[:-1]).all()
    assert (model.votes_[model.support_features_] > 0).sum() >= 8
    if correlation == "pearson":
        C = np.abs(naive.correlation(X))
        assert (C[np.ix_(model.support_features_, model.support_features_)] - np.eye(10) < 0.7).all()
        complete = naive.complete_groups(X, model.support_features_, 0.7)
        for group in model.groups_:
            if affiliates == "complete":
                assert set(group.affiliated.tolist()) == complete[group.support]
    again = GroupDiscoveryClassifier(10, n_jobs=1, **options).fit(X, y)
    assert again.groups_ == model.groups_
    order = rng.permutation(60)
    permuted = GroupDiscoveryClassifier(10, **options).fit(X[:, order], y)
    assert order[permuted.support_features_].tolist() == model.support_features_.tolist()
    for mine, theirs in zip(model.groups_, permuted.groups_, strict=True):
        assert set(order[theirs.affiliated]) == set(mine.affiliated)
    as_sparse = GroupDiscoveryClassifier(10, **options).fit(sparse.csc_array(X), y)
    assert as_sparse.support_features_.tolist() == model.support_features_.tolist()


def test_planted_groups_are_found_with_folds(planted):
    model = GroupDiscoveryClassifier(4, n_features_per_round=1, cv=5, random_state=0).fit(planted.X, planted.y)
    assert group_recovery(planted.groups, model.groups_) == 1.0


def test_other_estimators_take_folds(rng):
    X, y = sparse_counts(rng)
    several = GroupDiscoveryClassifier(6, cv=3, random_state=0).fit(X, np.arange(len(X)) % 3)
    assert len(several.support_features_) == 6
    weight = rng.random(len(y)) + 0.1
    number = GroupDiscoveryRegressor(6, cv=KFold(3), n_features_per_round=3).fit(X, X[:, 3], sample_weight=weight)
    assert number.support_features_[0] == 3
    assert GroupDiscoveryOneClass(6, cv=3, random_state=0).fit(X).votes_.sum() > 0
    assert not hasattr(several.set_params(cv=None).fit(X, y), "votes_")


@pytest.mark.parametrize(("cv", "message"), [(1, "cv=1"), (1000, "cv=1000"), ("five", "cv='five'"), (0.5, "cv=0.5")])
def test_wrong_folds(rng, cv, message):
    with pytest.raises(ValueError, match=message):
        GroupDiscoveryClassifier(2, cv=cv).fit(*grouped_matrix(rng))


@pytest.mark.parametrize("seed", range(8))
def test_ties_in_votes_do_not_depend_on_the_order_of_the_columns(seed):
    """Copies with their signs changed get the same scores and, from different folds, the same votes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 24))
    X[:, 12:] = -X[:, :12]
    y = X[:, 0] + 0.8 * X[:, 1] - 0.6 * X[:, 2] + 0.5 * rng.standard_normal(80) > 0
    order = rng.permutation(24)
    options = {"n_features_to_select": 6, "n_features_per_round": 2, "cv": 4, "random_state": 0}
    model = GroupDiscoveryClassifier(**options).fit(X, y)
    permuted = GroupDiscoveryClassifier(**options).fit(np.ascontiguousarray(X[:, order]), y)
    assert order[permuted.support_features_].tolist() == model.support_features_.tolist()
    np.testing.assert_array_equal(permuted.votes_, model.votes_[order])
    # All folds propose the same copy, so the copies do not split the votes.
    alone = GroupDiscoveryClassifier(**options).fit(X[:, :12], y)
    assert (model.support_features_ % 12).tolist() == alone.support_features_.tolist()
    np.testing.assert_array_equal(model.votes_[:12] + model.votes_[12:], alone.votes_)
    assert not (model.votes_[:12] * model.votes_[12:]).any()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_equal_columns_share_no_votes(rng, n_jobs):
    X, y = grouped_matrix(rng, n_samples=60, n_features=20)
    names = [f"f{j:02d}" for j in range(40)]
    options = {"n_features_to_select": 6, "n_features_per_round": 2, "cv": 4, "cv_part": "fold", "random_state": 0}
    both = pd.DataFrame(np.hstack([X, X]), columns=names)
    model = GroupDiscoveryClassifier(n_jobs=n_jobs, **options).fit(both, y)
    assert not model.votes_[20:].any()  # Only the first by name has votes.
    order = rng.permutation(40)
    permuted = GroupDiscoveryClassifier(n_jobs=n_jobs, **options).fit(both.iloc[:, order], y)
    assert order[permuted.support_features_].tolist() == model.support_features_.tolist()
    np.testing.assert_array_equal(permuted.votes_, model.votes_[order])


def test_a_fold_sees_its_training_samples_or_its_own(rng):
    X, y = grouped_matrix(rng, n_samples=90, noise=1.0)
    pairs = list(StratifiedKFold(3).split(X, y))
    own = GroupDiscoveryClassifier(6, cv=pairs, cv_part="fold").fit(X, y)
    swapped = GroupDiscoveryClassifier(6, cv=[(test, train) for train, test in pairs]).fit(X, y)
    assert own.groups_ == swapped.groups_
    np.testing.assert_array_equal(own.votes_, swapped.votes_)
    assert GroupDiscoveryClassifier(6, cv=pairs).fit(X, y).votes_.tolist() != own.votes_.tolist()


@pytest.mark.parametrize("cv_part", ["training", "fold"])
def test_folds_divide_the_samples_that_have_a_weight(rng, cv_part):
    X, y = grouped_matrix(rng, n_samples=90, noise=1.0)
    held = np.arange(90) % 3 == 0
    model = GroupDiscoveryClassifier(6, cv=3, cv_part=cv_part, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=np.where(held, 0.0, 1.0))
    absent = model.fit(X[~held], y[~held])
    np.testing.assert_array_equal(weighted.votes_, absent.votes_)
    assert weighted.support_features_.tolist() == absent.support_features_.tolist()


def test_validated_estimators_pass_the_part_on(planted):
    """With the same number of folds and the same seed, validation must not leave a voting fold without samples."""
    options = {"cv_part": "fold", "random_state": 0}
    model = GroupDiscoveryClassifierCV(5, Cs=[1.0], cv=3, embedded_cv=3, **options).fit(planted.X, planted.y)
    plain = GroupDiscoveryClassifier(model.n_features_, C=1.0, cv=3, **options).fit(planted.X, planted.y)
    assert model.groups_ == plain.groups_
    np.testing.assert_array_equal(model.votes_, plain.votes_)


def test_folds_without_anything_to_propose(rng):
    X, y = rng.standard_normal((12, 5)), rng.standard_normal(12)
    with pytest.raises(ValueError, match="No feature varies in the samples of any fold of cv"):
        GroupDiscoveryRegressor(2, cv=12, cv_part="fold").fit(X, y)
    uneven = [(np.arange(1, 12), np.arange(1)), (np.arange(2), np.arange(2, 12))]
    votes = GroupDiscoveryRegressor(2, n_features_per_round=2, cv=uneven, cv_part="fold", threshold=1).fit(X, y).votes_
    assert votes.sum() == 2  # The fold of one sample proposes nothing.


class GivenCorrelation(PearsonCorrelation):
    """Correlation measure with given values."""

    matrix = np.eye(5)

    def within(self, features):
        return self.matrix[np.ix_(features, features)]

    def between(self, features, others):
        return self.matrix[np.ix_(features, others)]


def voting_oracle(X, parts, measure=PearsonCorrelation, **options):
    view = FeatureView.of(as_source(X))
    return VotingOracle(measure(view), [measure(view.part(part)) for part in parts], **options)


@pytest.mark.parametrize(("value", "in_conflict"), [(0.7, True), (-0.7, True), (0.7 - 1e-12, True), (0.7 - 1e-6, False)])
def test_elected_features_are_below_the_threshold(rng, value, in_conflict):
    """Correlations within rounding of the threshold count as conflicts, with each other and with support features."""
    X = rng.standard_normal((12, 5))
    oracle = voting_oracle(X, [np.arange(8), np.arange(4, 12)], GivenCorrelation, threshold=0.7)
    matrix = np.eye(5)
    matrix[3, 1] = matrix[1, 3] = matrix[0, 4] = matrix[4, 0] = value
    oracle.correlation.matrix = matrix
    candidates = np.array([3, 4, 1, 2, 0])
    assert oracle._elect(candidates, 5).tolist() == ([3, 4, 2] if in_conflict else [3, 4, 1, 2, 0])
    assert oracle._elect(candidates, 2).tolist() == [3, 4]
    oracle.add_block(Block(np.array([1]), np.ones(1)))
    assert oracle._elect(candidates, 5).tolist() == ([4, 2] if in_conflict else [3, 4, 2, 0])
    oracle.allow_reuse(True)  # Blocks may then contain features that are correlated with support features.
    assert oracle._elect(candidates, 5).tolist() == ([3, 4, 2] if in_conflict else [3, 4, 1, 2, 0])
    assert all(fold.reuse for fold in oracle.folds)
    free = voting_oracle(X, [np.arange(8)], threshold=np.inf)
    assert free._elect(candidates, 3).tolist() == [3, 4, 1]
    free.add_block(Block(np.array([4]), np.ones(1)))
    free.exclude(np.array([1]))
    assert free._elect(candidates, 3).tolist() == [3, 2, 0]


@pytest.mark.parametrize("representative", ["score", "medoid"])
def test_counts_include_the_folds(rng, representative):
    X, y = grouped_matrix(rng, n_samples=40, n_features=30)
    parts = [np.arange(0, 30), np.arange(10, 40), np.r_[0:10, 20:40]]
    oracle = voting_oracle(X, parts, threshold=0.5, representative=representative)
    n_own = n_proposed = 0
    for number in range(1, 4):
        residual = residual_for(y, rng)
        queries = oracle.queries(residual, 2)
        for query, part in zip(queries, parts, strict=True):
            np.testing.assert_array_equal(np.flatnonzero(query.residual[:, 0]), part)
        block = oracle.find_block(residual, 2)
        n_own += oracle._scores.n_scored
        oracle.add_block(block)
        measures = [oracle.correlation, *(fold.correlation for fold in oracle.folds)]
        assert oracle.n_evaluated == sum(measure.n_evaluated for measure in measures)
        n_read = n_own + sum(measure.n_features_read for measure in measures)
        assert oracle._shared.n_passes == pytest.approx(number)
        assert oracle.n_passes == pytest.approx(number + n_read / 30)
        n_proposed += 2 * len(parts)
        assert oracle.votes.sum() == n_proposed
    assert all(fold.correlation.n_features_read > 0 for fold in oracle.folds)
    assert oracle.votes.shape == (30,)
    assert not oracle.is_exact
    assert oracle.views == [fold.view for fold in oracle.folds]
