"""Solvers compared with cvxpy and closed forms, the certificate, and products without the matrix."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from coterie.data import FeatureView, as_source
from coterie.redundancy import solver
from coterie.redundancy.measures import MatrixRedundancy, SquaredCosine
from coterie.redundancy.solver import GroupPenalty, Objective, project_to_simplex, solve, solve_alm
from tests import naive
from tests.conftest import grouped_matrix, sparse_counts


def objective_of(X, scores, groups=None, strength=1.0):
    source = as_source(X)
    n_features = source.shape[1]
    redundancy = SquaredCosine(FeatureView.of(source), np.arange(n_features))
    return Objective(scores, redundancy, None if groups is None else GroupPenalty(groups, n_features, strength))


def pairs_matrix(groups, n_features):
    """The paper's G: one row per pair of a group."""
    rows = []
    for group in groups:
        for a in range(len(group)):
            for b in range(a):
                row = np.zeros(n_features)
                row[group[a]], row[group[b]] = 1, -1
                rows.append(row)
    return np.array(rows).reshape(-1, n_features)


def value(A, s, z):
    return (z @ A @ z) / (s @ z)


def whole(solution, size):
    z = np.zeros(size)
    z[solution.support] = solution.weights
    return z


def cvxpy_optimum(A, s):
    """Quadratic over linear, as a disciplined convex programme."""
    cp = pytest.importorskip("cvxpy")
    values, vectors = np.linalg.eigh(A)
    root = (vectors * np.sqrt(np.maximum(values, 0))).T
    z = cp.Variable(len(s), nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.quad_over_lin(root @ z, s @ z)), [cp.sum(z) == 1])
    with warnings.catch_warnings():  # Its last digits depend on the processor. The comparisons need five.
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        problem.solve(solver="CLARABEL")
    return problem.value


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("strength", [None, 0.3])
def test_three_ways_agree(seed, strength):
    rng = np.random.default_rng(seed)
    X, _ = grouped_matrix(rng, 40, 120, n_factors=12)
    s = rng.random(120) ** 2
    groups = None if strength is None else [rng.choice(120, 4, replace=False) for _ in range(10)]
    objective = objective_of(X, s, groups, strength)
    A = naive.correlation(X) ** 2
    if groups is not None:
        G = pairs_matrix(groups, 120)
        A = A + strength * G.T @ G
    ours, theirs = solve(objective, 1e-9, 100), solve_alm(objective, 1e-5, 100)
    best = cvxpy_optimum(A, s)
    assert ours.converged
    assert ours.objective == pytest.approx(value(A, s, whole(ours, 120)), rel=1e-10)
    assert ours.objective == pytest.approx(best, rel=1e-6)
    assert theirs.objective == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("name", ["glioma", "coil20", "binaryalphadigs", "mfeat"])
def test_three_ways_agree_on_real_data(name, real_data):
    from coterie.filters import fisher_score

    with np.load(real_data / f"{name}.npz") as data:
        X, y = data["X"], data["y"]
    scores = fisher_score(X, y)
    top = np.argsort(-scores, kind="stable")[:200]
    X, s = X[:, top].astype(float), scores[top] / scores.max()
    objective = objective_of(X, s)
    best = cvxpy_optimum(naive.correlation(X) ** 2, s)
    assert solve(objective, 1e-6, 100).objective == pytest.approx(best, rel=1e-4)
    assert solve_alm(objective, 1e-5, 100).objective == pytest.approx(best, rel=1e-4)


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(2, 8), st.floats(1e-3, 0.5))
def test_gap_bounds_the_suboptimality(seed, n_features, n_samples, tol):
    """The bound holds even if the solver stops early."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    s = rng.random(n_features) * (rng.random(n_features) < 0.8)
    s[rng.integers(n_features)] = 1.0
    objective = objective_of(X, s)
    best = solve(objective, 1e-13, 500)
    assert best.gap < 1e-9
    for rough in (solve(objective, tol, 1), solve(objective, tol, 100)):
        assert rough.objective * (1 - rough.gap) <= best.objective * (1 + 1e-9)
        assert best.objective <= rough.objective * (1 + 1e-9)


@given(st.integers(0, 10_000))
def test_certificate_at_any_point(seed):
    rng = np.random.default_rng(seed)
    X, s = rng.standard_normal((6, 9)), rng.random(9) + 0.01
    A = naive.correlation(X) ** 2
    objective = objective_of(X, s)
    best = solve(objective, 1e-12, 200).objective
    support = np.sort(rng.choice(9, rng.integers(1, 10), replace=False))
    weights = rng.random(len(support))
    weights /= weights.sum()
    found = objective.certificate(support, weights)
    z = np.zeros(9)
    z[support] = weights
    assert found.value == pytest.approx(value(A, s, z))
    assert found.bound <= best * (1 + 1e-9) <= found.value * (1 + 1e-8)
    step = 1e-6
    for i in range(9):
        moved = z.copy()
        moved[i] += step
        assert found.gradient[i] == pytest.approx((value(A, s, moved) - value(A, s, z)) / step, rel=1e-3, abs=1e-4)


def test_uncorrelated_features_by_hand():
    """A = I: z_i is proportional to s_i + t, with t = sqrt(s's / d)."""
    s = np.array([1.0, 0.5, 0.1, 0.0])
    solution = solve(Objective(s, MatrixRedundancy(np.eye(4))), 1e-12, 50)
    expected = s + np.sqrt(s @ s / 4)
    np.testing.assert_allclose(whole(solution, 4), expected / expected.sum(), atol=1e-10)


def test_one_feature():
    solution = solve(Objective(np.ones(1), MatrixRedundancy(np.ones((1, 1)))), 1e-12, 5)
    assert solution.weights == pytest.approx([1.0])
    assert solution.objective == pytest.approx(1.0)
    assert solution.gap < 1e-12


def test_scale_of_scores_does_not_matter(rng):
    X, s = rng.standard_normal((20, 15)), rng.random(15)
    a, b = solve(objective_of(X, s), 1e-10, 50), solve(objective_of(X, 1e-3 * s), 1e-10, 50)
    np.testing.assert_allclose(whole(a, 15), whole(b, 15), atol=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("method", [solve, solve_alm])
def test_the_gap_is_relative_to_the_objective(rng, method, scale):
    X, s = rng.standard_normal((20, 15)), scale * rng.random(15)
    for tol, most in ((0.3, 100), (1e-9, 1), (1e-4, 100)):
        found = method(objective_of(X, s), tol, most)
        assert found.bound <= found.objective * (1 + 1e-12)
        assert found.gap == pytest.approx((found.objective - found.bound) / found.objective, abs=1e-12)
        assert found.converged == (found.gap <= tol)
        assert found.n_iter <= most


def test_first_copy_gets_the_weight(rng):
    """Of equal features the first gets the weight, and the objective is that without the copies."""
    X, s = rng.standard_normal((20, 10)), rng.random(10)
    alone = solve(objective_of(X, s), 1e-10, 100)
    twice = solve(objective_of(np.hstack([X, X, -2 * X]), np.tile(s, 3)), 1e-10, 100)
    assert twice.converged
    assert twice.objective == pytest.approx(alone.objective, rel=1e-9)
    np.testing.assert_allclose(whole(twice, 30)[:10], whole(alone, 10), atol=1e-8)


def test_nearly_equal_features(rng):
    base = rng.standard_normal((30, 3))
    X = np.repeat(base, 20, axis=1) + 1e-5 * rng.standard_normal((30, 60))
    s = 1 + 1e-3 * rng.random(60)
    solution = solve(objective_of(X, s), 1e-6, 200)
    assert solution.gap <= 1e-6


@pytest.mark.parametrize("form", ["dense", "few samples", "F", "sparse", "some"])
def test_products_without_the_matrix(form, rng):
    X, _ = sparse_counts(rng, 12 if form == "few samples" else 80, 70, density=0.3)
    X += 0 if form == "sparse" else 3
    features = np.flatnonzero(X.std(axis=0) > 0)
    rng.shuffle(features)
    if form == "some":
        features = features[:30]
    A = naive.correlation(X)[np.ix_(features, features)] ** 2
    source = as_source({"F": np.asfortranarray, "sparse": sparse.csc_array}.get(form, np.asarray)(X))
    measure = SquaredCosine(FeatureView.of(source, n_threads=2), features)
    support = rng.choice(len(features), 25, replace=False)
    weights = rng.random(25)
    np.testing.assert_allclose(measure.product(support, weights), A[:, support] @ weights, atol=1e-10)
    np.testing.assert_allclose(measure.within(support), A[np.ix_(support, support)], atol=1e-10)


def test_groups_are_laplacians(rng):
    groups = [np.array([0, 3, 4]), np.array([3, 7]), np.array([5])]
    G = pairs_matrix(groups, 9)
    penalty = GroupPenalty(groups, 9, 0.7)
    z = rng.random(9)
    np.testing.assert_allclose(penalty.within(np.arange(9)), 0.7 * G.T @ G)
    np.testing.assert_allclose(penalty.within(np.array([3, 4, 8])), (0.7 * G.T @ G)[np.ix_([3, 4, 8], [3, 4, 8])])
    np.testing.assert_allclose(penalty.product(np.arange(9), z), 0.7 * G.T @ G @ z)
    np.testing.assert_allclose(penalty.product(np.array([4, 0]), z[:2]), 0.7 * (G.T @ G)[:, [4, 0]] @ z[:2])


@pytest.mark.parametrize("grouped", [False, True])
def test_without_the_matrix_of_the_working_set(grouped, rng, monkeypatch):
    """Beyond a size the working set has no matrix either; the optimum is the same."""
    X, _ = grouped_matrix(rng, 30, 200, n_factors=15)
    s = rng.random(200)
    groups = [rng.choice(200, 3, replace=False) for _ in range(20)] if grouped else None
    objective = objective_of(X, s, groups, 0.5)
    expected = solve(objective, 1e-10, 100)
    monkeypatch.setattr(solver, "_MAX_MATRIX", 10)
    found = solve(objective, 1e-6, 100)
    assert found.converged
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)


def test_small_working_sets_grow(rng, monkeypatch):
    X, _ = grouped_matrix(rng, 40, 300, n_factors=30)
    s = rng.random(300)
    expected = solve(objective_of(X, s), 1e-10, 100)
    monkeypatch.setattr(solver, "_FIRST", 5)
    found = solve(objective_of(X, s), 1e-10, 100)
    assert found.n_iter > expected.n_iter
    assert found.working_set_size < 300
    np.testing.assert_allclose(whole(found, 300), whole(expected, 300), atol=1e-8)


def test_polish_drops_what_leaves_the_support():
    """From equal weights the exact solution of the whole support is infeasible: one weight must go to zero."""
    A = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    s = np.array([1.0, 0.05, 0.8])
    weights = solver._polish(A, s, np.full(3, 1 / 3))
    assert weights[1] == 0.0
    assert weights.sum() == pytest.approx(1.0)
    best = solve(Objective(s, MatrixRedundancy(A)), 1e-12, 50)
    np.testing.assert_allclose(weights, whole(best, 3), atol=1e-9)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=30))
def test_projection_to_the_simplex(values):
    w = np.array(values)
    z = project_to_simplex(w)
    assert z.min() >= 0
    assert z.sum() == pytest.approx(1.0)
    # Optimal: z - w is constant on the support, and not smaller elsewhere.
    slack = z - w
    assert slack.min() >= slack[z > 1e-12].max() - 1e-9
