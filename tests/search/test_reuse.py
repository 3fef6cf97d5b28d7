"""Blocks that share features, and bounds on the optimum over all admissible sets, compared with full enumeration."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import coterie
from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, GroupDiscoveryOneClass, GroupDiscoveryRegressor
from coterie.correlation.pearson import PearsonCorrelation
from coterie.data import as_source
from coterie.data.view import FeatureView
from coterie.search import admissible
from coterie.search.admissible import best_set, bound_of_sets
from coterie.search.oracle import Oracle
from coterie.validation.group_models import coarse
from tests import naive
from tests.conftest import grouped_matrix, sparse_counts

C, THRESHOLD, TOL = 0.1, 0.6, 1e-6
SEEDS = range(8)


def make_data(seed, n_samples=50, n_features=10):
    """Return features with three shared factors, correlated for most seeds, and a target from the first four features."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n_samples, 3))[:, rng.integers(0, 3, n_features)]
    X = rng.standard_normal((n_samples, n_features)) + [0.0, 0.9, 1.2, 1.2][seed % 4] * shared
    return X, X[:, :4] @ [1, -1, 0.7, 0.5] + rng.standard_normal(n_samples), rng.uniform(0.2, 2.0, n_samples)


def admissible_sets(X, size, weight=None):
    """Return every set of at most ``size`` features, no two of them correlated, as rows of zeros and ones."""
    correlation = np.abs(naive.correlation(X, weight))
    sets = [s for k in range(1, size + 1) for s in itertools.combinations(range(X.shape[1]), k)]
    allowed = [s for s in sets if all(correlation[i, j] < THRESHOLD for i, j in itertools.combinations(s, 2))]
    return np.array([np.isin(np.arange(X.shape[1]), s) for s in allowed], dtype=float)


def hinge_optimum(X, signs, importance, weight, sets, fit_intercept):
    """Return the minimum over alpha of the largest g of all sets. ``signs`` has one column per class."""
    alpha = cp.Variable(signs.shape, nonneg=True)
    scores = X.T @ cp.multiply(signs, alpha)
    rules = [cp.sum(alpha, axis=0) == importance]
    if fit_intercept:
        rules.append(cp.sum(cp.multiply(signs, alpha), axis=0) == 0)
    rest = cp.sum(cp.multiply(1 / weight[:, None], cp.square(alpha))) / (2 * C)
    return solved(scores, sets, rest, rules)


def squared_optimum(X, y, weight, sets, fit_intercept):
    residual = cp.Variable((len(y), 1))
    rules = [cp.sum(residual) == 0] if fit_intercept else []
    rest = cp.sum(cp.multiply(1 / weight[:, None], cp.square(residual))) / (2 * C) - y @ residual[:, 0]
    return solved(X.T @ residual, sets, rest, rules)


def solved(scores, sets, rest, rules):
    squares = cp.sum(cp.square(scores), axis=1)
    task = cp.Problem(cp.Minimize(cp.max(sets @ squares) / 2 + rest), rules)
    task.solve(solver=cp.CLARABEL)
    return task.value


def case(kind, seed):
    """Return an estimator class, its data and options, and a function from sets to the optimum."""
    X, target, weight = make_data(seed)
    ones, signs = np.ones(len(target)), np.where(target > 0, 1.0, -1.0)[:, None]
    one = np.ones(1)
    if kind == "two classes":
        return GroupDiscoveryClassifier, X, signs[:, 0], None, {}, lambda s: hinge_optimum(X, signs, one, ones, s, True)
    if kind == "weighted":
        optimum = lambda s: hinge_optimum(X, signs, one, weight, s, True)  # noqa: E731
        return GroupDiscoveryClassifier, X, signs[:, 0], weight, {}, optimum
    if kind == "no intercept":
        optimum = lambda s: hinge_optimum(X, signs, one, ones, s, False)  # noqa: E731
        return GroupDiscoveryClassifier, X, signs[:, 0], None, {"fit_intercept": False}, optimum
    if kind == "three classes":
        codes = np.digitize(target, np.quantile(target, [0.3, 0.6]))
        signs = np.where(codes[:, None] == np.arange(3), 1.0, -1.0)
        importance = np.sqrt(3 * np.bincount(codes) / len(codes))
        return GroupDiscoveryClassifier, X, codes, None, {}, lambda s: hinge_optimum(X, signs, importance, ones, s, True)
    if kind == "regression":
        return GroupDiscoveryRegressor, X, target, weight, {}, lambda s: squared_optimum(X, target, weight, s, True)
    X = X + 1.0
    return GroupDiscoveryOneClass, X, None, None, {}, lambda s: hinge_optimum(X, ones[:, None], one, ones, s, False)


KINDS = ["two classes", "weighted", "no intercept", "three classes", "regression", "one class"]


def bounds_of(model):
    """Return all bounds that a fit reports: those of each round and the final ones."""
    return [(r.lower, r.upper) for r in model.history_] + [(model.lower_bound_, model.upper_bound_)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_over_all_sets(kind):
    short = 0
    for seed in SEEDS:
        size = 2 + seed % 2
        make, X, y, weight, options, optimum = case(kind, seed)
        sets = admissible_sets(X, size, weight)
        best = optimum(sets)
        room = 3e-7 * abs(best)  # tolerance of cvxpy
        for reuse in (False, True):
            model = make("auto", n_features_per_round=size, reuse_features=reuse, threshold=THRESHOLD, C=C, tol=TOL, **options)
            model.set_params(standardize=False).fit(X, y, sample_weight=weight)
            for entry in model.history_:
                assert entry.set_size == size
                assert any((row[entry.features] == 1).all() for row in sets)
            for lower, upper in bounds_of(model):
                assert lower - room <= best <= upper + room
            assert (np.diff([lower for lower, _ in bounds_of(model)]) >= 0).all()
            assert (np.diff([upper for _, upper in bounds_of(model)]) <= 0).all()
            missing = best - model.objective_
            if reuse or model.converged_at_ is not None:
                assert model.converged_at_ == model.n_rounds_
                assert abs(missing) <= TOL * abs(best) + room
                assert model.upper_bound_ - model.lower_bound_ <= TOL * abs(model.objective_)
            else:
                assert model.upper_bound_ - model.lower_bound_ > TOL * abs(model.objective_)
                short += missing > 1e-3 * abs(best)
    assert short >= 4  # Without reuse the optimum is missed, and the model does not report convergence.


def test_the_greedy_walk_is_not_enough(monkeypatch):
    """A feature that is correlated with three others excludes them from the walk; only the exact search finds their set."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((50, 5))
    Z = np.linalg.qr(Z - Z.mean(axis=0))[0] * 7
    X = np.column_stack([Z[:, :3].sum(axis=1) / np.sqrt(3), Z[:, :3]])
    y = Z[:, :3] @ [1.4, 1.0, 0.7] + 0.5 * Z[:, 4]
    best = squared_optimum(X, y, np.ones(50), np.array([[1.0, 0, 0, 0], [0, 1, 1, 1]]), True)
    model = GroupDiscoveryRegressor(
        "auto", n_features_per_round=3, reuse_features=True, threshold=0.5, C=C, tol=TOL, standardize=False
    ).fit(X, y)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert model.converged_at_ == model.n_rounds_
    monkeypatch.setattr(Oracle, "is_exact", False)
    model.fit(X, y)
    assert model.lower_bound_ <= best * (1 - 3e-7)  # The optimum is negative.
    assert model.upper_bound_ >= best
    assert model.converged_at_ is None


@pytest.mark.parametrize("seed", range(6))
def test_the_most_violated_set(seed):
    """The search and the bound agree with full enumeration, for arbitrary dual variables."""
    X, _, _ = make_data(seed, n_features=12)
    residual = np.random.default_rng(seed).standard_normal((len(X), 2))
    residual -= residual.mean(axis=0)
    squares = ((X.T @ residual) ** 2).sum(axis=1)
    view = FeatureView.of(as_source(X), None, standardize=False, centred=True, n_threads=1)
    for size in (1, 2, 4):
        best = (admissible_sets(X, size) @ squares).max()
        oracle = Oracle(PearsonCorrelation(view), threshold=THRESHOLD)
        for _ in range(3):
            walked = oracle.find_block(residual, size)
            assert oracle.upper_bound(residual, size) >= best * (1 - 1e-12)
            block, bound = oracle.search(residual, size, 0.0)
            assert bound == pytest.approx(best, rel=1e-12)
            assert squares[block.features].sum() == pytest.approx(best, rel=1e-12)
            assert len(oracle.search(residual, size, best * (1 + 1e-9))[0].features) == 0
            oracle.add_block(walked)  # Sets may contain features that were used before.


def test_single_features_need_no_reuse():
    """With one feature per round, the sets are single features, and only affiliated features can be missing."""
    X, target, _ = make_data(0)
    for reuse in (False, True):
        model = GroupDiscoveryRegressor("auto", n_features_per_round=1, reuse_features=reuse, C=C, tol=TOL, standardize=False)
        model.fit(X, target)
        assert model.converged_at_ == model.n_rounds_ > 3
        best = squared_optimum(X, target, np.ones(len(X)), np.eye(10), True)
        assert model.objective_ == pytest.approx(best, rel=2e-6)


def test_bounds_of_growing_blocks():
    """With the automatic schedule, the bounds are for sets of the size of the largest block so far."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 14))
    y = X @ rng.standard_normal(14) + 0.3 * rng.standard_normal(60)
    model = GroupDiscoveryRegressor(13, standardize=False, C=C, tol=TOL).fit(X, y)
    sizes = [entry.set_size for entry in model.history_]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 2
    best = {
        size: squared_optimum(X, y, np.ones(60), admissible_sets(X, size), True) for size in set(sizes)
    }  # All pairs are admissible here, as checked below, so the threshold does not matter.
    assert np.abs(naive.correlation(X) - np.eye(14)).max() < THRESHOLD
    for entry in model.history_:
        room = 3e-7 * abs(best[entry.set_size])
        assert entry.lower - room <= best[entry.set_size] <= entry.upper + room


# Fitted attributes


@pytest.mark.parametrize("is_sparse", [False, True])
def test_weights_are_sums_over_blocks(rng, is_sparse):
    X, y = sparse_counts(rng)
    model = GroupDiscoveryClassifier("auto", n_features_per_round=4, reuse_features=True, standardize=False, C=0.5)
    model.fit(sparse.csc_array(X) if is_sparse else X, y)
    used = np.concatenate([entry.features for entry in model.history_])
    assert len(used) > len(np.unique(used)) == len(model.support_features_) == model.history_[-1].n_support
    weights = model.block_weights_
    assert len(weights) == len(model.history_)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    # The conditions of the optimum: a block's weights are mu times the scores of its features.
    expected = np.zeros(X.shape[1])
    for entry, weight in zip(model.history_, weights, strict=True):
        expected[entry.features] += weight * (X[:, entry.features].T @ model.dual_coef_[0])
    np.testing.assert_allclose(model.coef_[0], expected, atol=1e-7)
    np.testing.assert_allclose(model.history_[-1].coef[:, 0], model.support_coef_[0])
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_, atol=1e-9)
    for group in model.groups_:
        first = next(entry for entry in model.history_ if group.support in entry.features)
        assert group.round == first.round
        assert group.score == model.scores_[group.support]
        assert group.weight == pytest.approx(model.coef_[0, group.support])


def test_block_weights_without_reuse(rng):
    X, y = grouped_matrix(rng)
    model = GroupDiscoveryClassifier(6, n_features_per_round=3, standardize=False).fit(X, y)
    norms = np.array([np.linalg.norm(model.coef_[0, entry.features]) for entry in model.history_])
    np.testing.assert_allclose(model.block_weights_, norms / norms.sum())


@pytest.mark.parametrize("affiliates", ["complete", "ranked"])
def test_groups_around_correlated_support_features(rng, affiliates):
    X, y = grouped_matrix(rng, n_samples=100, n_factors=4)
    model = GroupDiscoveryClassifier(
        "auto", n_features_per_round=3, reuse_features=True, affiliates=affiliates, standardize=False, C=0.1
    ).fit(X, y)
    supports = model.support_features_
    correlation = np.abs(naive.correlation(X))
    together = correlation[np.ix_(supports, supports)] - np.eye(len(supports))
    assert together.max() >= model.threshold  # Features of different blocks may be correlated, as in the papers.
    for entry in model.history_:
        own = correlation[np.ix_(entry.features, entry.features)] - np.eye(len(entry.features))
        assert own.max() < model.threshold
    assert [group.support for group in model.groups_] == supports.tolist()
    found = {group.support: set(group.affiliated.tolist()) for group in model.groups_}
    everything = naive.complete_groups(X, supports, model.threshold)
    if affiliates == "complete":
        assert found == everything
    for support, members in found.items():
        assert not members & set(supports.tolist())
        np.testing.assert_array_less(model.threshold - 1e-9, correlation[support, list(members)])


# Stopping


@pytest.mark.parametrize("n_features", [1, 7, 20, 33])
@pytest.mark.parametrize("per_round", [1, 5, "auto"])
@pytest.mark.filterwarnings("ignore:.* have the weight 0:UserWarning")
def test_requested_number_of_features(rng, n_features, per_round):
    X, y = sparse_counts(rng)
    model = GroupDiscoveryClassifier(n_features, n_features_per_round=per_round, reuse_features=True, C=0.1).fit(X, y)
    assert len(set(model.support_features_.tolist())) == len(model.support_features_) == n_features
    theta = [entry.objective for entry in model.history_]
    assert (np.diff(theta) >= -1e-9 * np.abs(theta[:-1])).all()


@pytest.mark.filterwarnings("ignore:.* have the weight 0:UserWarning")
def test_features_beyond_the_optimum():
    """Features beyond those of the optimum are new, are in no earlier group, and do not change the objective."""
    X, target, _ = make_data(2, n_features=30)
    options = {"n_features_per_round": 4, "reuse_features": True, "C": 0.01, "standardize": False, "tol": TOL}
    best = GroupDiscoveryRegressor("auto", **options).fit(X, target)
    n_best = len(best.support_features_)
    assert n_best < 20
    more = GroupDiscoveryRegressor(20, **options).fit(X, target)
    assert more.support_features_[:n_best].tolist() == best.support_features_.tolist()
    assert more.converged_at_ == best.converged_at_
    assert more.objective_ == pytest.approx(best.objective_, rel=2 * TOL)
    correlation = np.abs(naive.correlation(X))
    for position in range(n_best, 20):
        assert correlation[more.support_features_[position], more.support_features_[:position]].max() < more.threshold


def test_no_more_features_than_there_are(rng):
    X = rng.standard_normal((40, 6))
    y = np.where(X @ [1, 2, -1, 1, 0, 1] > 0, 1, -1)
    with pytest.warns(UserWarning, match="X has no more features"):
        model = GroupDiscoveryClassifier(9, n_features_per_round=4, reuse_features=True, C=10.0).fit(X, y)
    assert sorted(model.support_features_.tolist()) == list(range(6))


@pytest.mark.parametrize(
    "options",
    [
        {"cv": 3, "random_state": 0},
        {"representative": "medoid"},
        {"fixed_features": [3, 7]},
        {"correlation": "su", "threshold": 0.3},
        {"correlation": None},
        {"max_rounds": 3},
        {"predict_with": "groups", "affiliates": "ranked"},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_features", ["auto", 6])
def test_reuse_with_other_options(rng, options, n_features):
    X, y = grouped_matrix(rng)
    model = GroupDiscoveryClassifier(n_features, n_features_per_round=3, reuse_features=True, C=0.05, tol=1e-5, **options)
    model.fit(X, y)
    assert model.lower_bound_ <= model.objective_ * (1 + 1e-9)
    assert model.upper_bound_ >= model.lower_bound_ * (1 - 1e-9)
    assert (model.converged_at_ is not None) == (model.upper_bound_ - model.lower_bound_ <= 1e-5 * model.objective_)
    if n_features == "auto" and not options.keys() & {"cv", "representative", "max_rounds"}:
        assert model.converged_at_ is not None
    if n_features == 6:
        assert len(model.support_features_) == 6


def test_same_result_for_any_order_of_columns(rng):
    X, y = grouped_matrix(rng)
    order = rng.permutation(X.shape[1])
    options = {"n_features_per_round": 3, "reuse_features": True, "C": 0.05}
    one = GroupDiscoveryClassifier("auto", **options).fit(X, y)
    two = GroupDiscoveryClassifier("auto", **options).fit(np.ascontiguousarray(X[:, order]), y)
    assert [entry.features.tolist() for entry in one.history_] == [order[e.features].tolist() for e in two.history_]
    assert one.upper_bound_ == pytest.approx(two.upper_bound_, rel=1e-12)


def test_sizes_of_a_validated_path(rng):
    """Each size occurs once on a path: the model at which a search for that size would stop."""
    X, y = grouped_matrix(rng)
    options = {"n_features_per_round": 3, "reuse_features": True, "predict_with": "support"}
    model = GroupDiscoveryClassifierCV(12, Cs=[0.05], cv=3, rule="best", random_state=0, **options).fit(X, y)
    sizes = model.cv_results_["n_features"]
    assert len(sizes) == len(np.unique(sizes))
    assert model.reuse_features
    plain = GroupDiscoveryClassifier(model.n_features_, C=0.05, **options).fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert coarse([3, 5, 5, 5, 9]) == [3, 5, 9]


def test_one_class_converges():
    X = np.random.default_rng(0).random((80, 40)) ** 2
    model = GroupDiscoveryOneClass(C=0.1).fit(X)
    assert model.reuse_features
    assert model.converged_at_ == model.n_rounds_
    assert model.upper_bound_ - model.lower_bound_ <= 1e-4 * model.objective_


# Files


def test_files(tmp_path):
    X, target, _ = make_data(1)
    model = GroupDiscoveryRegressor("auto", n_features_per_round=3, reuse_features=True).fit(X, target)
    coterie.save(model, tmp_path / "model.coterie")
    again = coterie.load(tmp_path / "model.coterie")
    np.testing.assert_array_equal(again.block_weights_, model.block_weights_)
    assert bounds_of(again) == bounds_of(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


# Independent sets


def brute_force(values, conflicts, size):
    best = 0.0
    for k in range(1, size + 1):
        for chosen in itertools.combinations(range(len(values)), k):
            if not conflicts[np.ix_(chosen, chosen)].any():
                best = max(best, values[list(chosen)].sum())
    return best


@given(seed=st.integers(0, 10**6), n=st.integers(1, 9), size=st.integers(1, 4), share=st.floats(0, 1))
def test_best_sets(seed, n, size, share):
    rng = np.random.default_rng(seed)
    values = -np.sort(-rng.integers(1, 8, n) * 1.0)
    conflicts = np.triu(rng.random((n, n)) < share, 1)
    conflicts |= conflicts.T
    best = brute_force(values, conflicts, size)
    for known in range(1, n + 1):
        beyond = values[known] if known < n else 0.0
        assert bound_of_sets(values[:known], conflicts[:known, :known], size, beyond)[0] >= best
    chosen, bound = best_set(values, conflicts, size, 0.0)
    assert bound == values[chosen].sum() == best
    assert len(chosen) <= size
    assert not conflicts[np.ix_(chosen, chosen)].any()
    none, same = best_set(values, conflicts, size, best)
    assert (len(none), same) == (0, best)
    if not conflicts.any():
        assert bound_of_sets(values, conflicts, size) == (best, size <= n)


def test_a_search_that_reaches_its_limits(monkeypatch):
    rng = np.random.default_rng(0)
    values = -np.sort(-rng.random(14))
    conflicts = np.triu(rng.random((14, 14)) < 0.5, 1)
    conflicts |= conflicts.T
    best = brute_force(values, conflicts, 5)
    gave_up = 0
    for most in range(1, 40):
        monkeypatch.setattr(admissible, "_MAX_BRANCHES", most)
        chosen, bound = best_set(values, conflicts, 5, 0.0)
        assert bound >= best - 1e-12
        assert values[chosen].sum() <= best + 1e-12
        gave_up += bound > values[chosen].sum()
    assert gave_up


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 12))
def test_the_best_features_of_a_block_and_the_best_of_the_others(seed, n_features, most):
    rng = np.random.default_rng(seed)
    features, values = rng.permutation(50)[:n_features], rng.permutation(n_features).astype(float)
    found = admissible._partition_best(features, values, most)
    order = np.argsort(-values)
    assert sorted(found.features) == sorted(features[order[:most]])
    assert found.beyond == (values[order[most]] if most < n_features else 0.0)
