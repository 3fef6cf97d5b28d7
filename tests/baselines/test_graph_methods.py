"""Graph-guided fused lasso and ncFGS, compared with cvxpy; the graph, compared with the whole matrix."""

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie.baselines import FeatureGroupingSelector, GraphFusedLassoSelector, OSCARSelector
from coterie.baselines.base import TrainingData
from coterie.baselines.fused import ConcavePart, Edges, FusedPenalty
from coterie.baselines.graph import FeatureGraph
from coterie.baselines.penalized import ProximalGradient, SortedL1, StandardizedDesign
from coterie.data import FeatureView, as_source
from tests.baselines.test_oscar import standardized
from tests.conftest import grouped_matrix, sparse_counts


@parametrize_with_checks(
    [GraphFusedLassoSelector(1), FeatureGroupingSelector(1), FeatureGroupingSelector(1, truncated=True, threshold=0.3)]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def graph_of(X, threshold):
    """Return the edges from the whole matrix."""
    rho = np.corrcoef(X.T)
    first, second = np.nonzero(np.triu(np.abs(rho) >= threshold, 1))
    return first, second, rho[first, second]


def solve(expression):
    return cp.Problem(cp.Minimize(expression)).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.02, 0.2])
def test_fused_lasso_against_cvxpy(rng, weighted, alpha):
    X, y = grouped_matrix(rng, n_features=12)
    Z, t = standardized(X, y)
    i, j, rho = graph_of(X, 0.5)
    model = GraphFusedLassoSelector("auto", alpha=alpha, fusion=0.7, threshold=0.5, weighted=weighted, tol=1e-9).fit(X, y)
    assert model.n_edges_ == len(i) > 5
    assert (rho < 0).any()
    w = cp.Variable(12)
    omega = np.abs(rho) if weighted else np.ones(len(rho))
    fused = omega @ cp.abs(w[i] - cp.multiply(np.sign(rho), w[j]))
    best = solve(cp.sum_squares(t - Z @ w) / (2 * len(t)) + alpha * (cp.norm1(w) + 0.7 * fused))
    assert model.objective_ == pytest.approx(best, abs=1e-8)
    assert model.dual_gap_ < 1e-7
    assert model.objective_ - best <= model.dual_gap_ + 1e-8
    np.testing.assert_allclose(model.coef_, w.value, atol=2e-4)


def test_fused_groups_are_correlated_features(rng):
    x, z = rng.standard_normal((2, 150))
    noise = 0.1 * rng.standard_normal((150, 4))
    X = np.column_stack([x + noise[:, 0], -x + noise[:, 1], x + noise[:, 2], z, z + noise[:, 3], rng.standard_normal(150)])
    y = np.where(x + 0.7 * z + 0.2 * rng.standard_normal(150) > 0, "a", "b")
    for model in (
        GraphFusedLassoSelector(5),
        FeatureGroupingSelector(5),
        FeatureGroupingSelector(5, truncated=True),
        GraphFusedLassoSelector(5, edges=[(0, 1), (2, 1), (4, 3), (3, 4)]),
    ):
        model.fit(X, y)
        assert {frozenset(group.members.tolist()) for group in model.groups_} == {frozenset({0, 1, 2}), frozenset({3, 4})}
        assert set(model.support_features_) == {0, 1, 2, 3, 4}
        assert np.sign(model.coef_[:5]).tolist() == [-1, 1, -1, -1, -1]


def naive_objective(Z, t, w, pairs, alpha, fusion, tau):
    def J(x):
        return min(x, tau)

    sizes = sum(J(abs(v)) for v in w)
    differences = sum(J(abs(abs(w[i]) - abs(w[j]))) for i, j in pairs)
    return np.sum((t - Z @ w) ** 2) / (2 * len(t)) + alpha * (sizes + fusion * differences)


@pytest.mark.parametrize("tau", [np.inf, 0.1])
@pytest.mark.filterwarnings("ignore:FeatureGroupingSelector stopped")
def test_grouping_converges_to_a_stationary_point(rng, tau):
    """Each convex problem is solved (as by cvxpy), the objective decreases, and the result is a fixed point."""
    X, y = grouped_matrix(rng, n_features=10)
    Z, t = standardized(X, y)
    i, j, _ = graph_of(X, 0.5)
    alpha, fusion = 0.04, 0.5
    options = {"truncated": True, "tau": tau} if np.isfinite(tau) else {}
    model = FeatureGroupingSelector("auto", alpha=alpha, fusion=fusion, threshold=0.5, tol=1e-9, **options)
    concave = ConcavePart(FeatureGraph(i, j, np.ones(len(i))), alpha, fusion * alpha, tau)

    def convex_problem(tangent):
        w = cp.Variable(10)
        penalty = alpha * (cp.norm1(w) + fusion * cp.sum(cp.abs(w[i] + w[j]) + cp.abs(w[i] - w[j])))
        return solve(cp.sum_squares(t - Z @ w) / (2 * len(t)) + penalty - tangent @ w), w.value

    tangent = np.zeros(10)
    for n_rounds in range(1, 5):
        model.set_params(max_rounds=n_rounds).fit(X, y)
        if len(model.history_) < n_rounds:
            break
        best, _ = convex_problem(tangent)
        coef = model.coef_
        convex = alpha * (np.abs(coef).sum() + 2 * fusion * np.maximum(np.abs(coef[i]), np.abs(coef[j])).sum())
        mine = np.sum((t - Z @ coef) ** 2) / (2 * len(t)) + convex - tangent @ coef
        assert mine == pytest.approx(best, abs=1e-7)
        tangent = concave.slope(coef)
    assert n_rounds > 2
    model.set_params(max_rounds=50).fit(X, y)
    assert len(model.history_) < 50
    assert (np.diff(model.history_) <= 1e-9).all()
    expected = naive_objective(Z, t, model.coef_, list(zip(i, j, strict=True)), alpha, fusion, tau)
    assert model.objective_ == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(model.coef_, convex_problem(concave.slope(model.coef_))[1], atol=1e-4)


@pytest.mark.parametrize("tau", [np.inf, 0.3])
def test_difference_of_convex_functions(rng, tau):
    """The convex minus the concave part is the penalty; the slope is a subgradient of the concave part."""
    pairs = np.array([(0, 1), (1, 2), (0, 3), (4, 5)])
    concave = ConcavePart(FeatureGraph(pairs[:, 0], pairs[:, 1], np.ones(4)), 0.7, 1.3, tau)
    for _ in range(50):
        w, v = rng.standard_normal((2, 6)) * (rng.random((2, 6)) < 0.8)
        convex = 0.7 * np.abs(w).sum() + 1.3 * sum(abs(w[i] + w[j]) + abs(w[i] - w[j]) for i, j in pairs)
        J = np.vectorize(lambda x: min(x, tau))
        expected = 0.7 * J(np.abs(w)).sum() + 1.3 * J(np.abs(np.abs(w[pairs[:, 0]]) - np.abs(w[pairs[:, 1]]))).sum()
        assert convex - concave.value(w) == pytest.approx(expected, abs=1e-12)
        assert concave.value(v) >= concave.value(w) + concave.slope(w) @ (v - w) - 1e-12


def test_proximal_step_of_fusion_against_cvxpy(rng):
    """With conflicting signs (a frustrated triangle) and a linear term."""
    edges = Edges(np.array([0, 1, 0, 3]), np.array([1, 2, 2, 4]), np.array([1.0, 1.0, -1.0, 1.0]), np.array([1, 0.5, 2, 1.0]))
    for _ in range(5):
        v, c = rng.standard_normal((2, 6))
        penalty = FusedPenalty(0.2, 0.3, edges, linear=0.1 * c)
        w = cp.Variable(6)
        fused = edges.weight @ cp.abs(w[edges.first] - cp.multiply(edges.sign, w[edges.second]))
        solve(0.8 * (0.2 * cp.norm1(w) + 0.3 * fused - 0.1 * c @ w) + 0.5 * cp.sum_squares(w - v))
        np.testing.assert_allclose(penalty.prox(v, 0.8), w.value, atol=1e-5)


def test_without_edges_both_are_the_lasso(rng):
    X, y = grouped_matrix(rng, n_features=12)
    Z, t = standardized(X, y)
    lasso = Lasso(0.05, tol=1e-10).fit(Z, t)
    for model in (
        GraphFusedLassoSelector("auto", alpha=0.05, edges=[], tol=1e-8),
        FeatureGroupingSelector("auto", alpha=0.05, fusion=0, tol=1e-8),
        FeatureGroupingSelector("auto", alpha=0.05, edges=[], truncated=True, tau=1e6, tol=1e-8),
    ):
        np.testing.assert_allclose(model.fit(X, y).coef_, lasso.coef_, atol=1e-6)


def test_sparse_data_names_and_threads(rng):
    X, y = sparse_counts(rng, n_features=30, density=0.3)
    X[:, 4] = 3.0
    for method in (GraphFusedLassoSelector, FeatureGroupingSelector):
        dense = method(6, tol=1e-7).fit(X, y)
        other = method(6, tol=1e-7, n_jobs=2).fit(sparse.csc_array(X), y)
        assert dense.n_edges_ == other.n_edges_ > 3
        np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-5)
        assert len(dense.support_features_) == 6
        assert dense.coef_[4] == 0.0
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(X, columns=[f"g{k}" for k in range(30)])
        named = method(6).fit(frame, y)
        assert named.groups_[0].names[0] == f"g{named.groups_[0].support}"


def test_wrong_input(rng):
    X, y = grouped_matrix(rng, n_features=5)
    for edges, match in [
        ([(0, 5)], r"edges\[0\] = \(0, 5\) must be two different features between 0 and 4"),
        ([(0, 1), (2, 2)], r"edges\[1\]"),
        ([0, 1], r"integers of shape \(n_edges, 2\)"),
        ([(0.5, 1)], r"integers of shape \(n_edges, 2\)"),
    ]:
        with pytest.raises(ValueError, match=match):
            GraphFusedLassoSelector(2, edges=edges).fit(X, y)
    for wrong in ({"fusion": -1}, {"tau": 0}, {"threshold": 1.5}, {"max_rounds": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            FeatureGroupingSelector(2, **wrong).fit(X, y)
    with pytest.raises(ValueError, match="binary classification"):
        FeatureGroupingSelector(2).fit(X, np.arange(60) % 3)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
@pytest.mark.parametrize(
    "selector",
    [OSCARSelector(3), GraphFusedLassoSelector(3), FeatureGroupingSelector(3), FeatureGroupingSelector(3, truncated=True)],
)
def test_means_far_above_the_deviations(selector, kind, rng):
    """Features shifted far from zero without rounding have the same coefficients, despite cancellation in products."""
    X, y = grouped_matrix(rng, n_features=12)
    near = np.round(X * 256)
    far = 3.0 + near * 2.0**-40
    assert ((far - 3.0) * 2.0**40 == near).all()
    expected = clone(selector).fit(near, y)
    model = selector.fit(kind(far), y)
    assert model.support_features_.tolist() == expected.support_features_.tolist()
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4 * np.abs(expected.coef_).max())


def test_solver_ends_if_rounding_violates_the_quadratic_bound(rng):
    """The quadratic bound holds at the trace. Beyond it the constant must not be increased for ever."""
    X, y = grouped_matrix(rng, n_features=6)

    class Rough(StandardizedDesign):
        n_products = 0

        def forward(self, coef):
            self.n_products += 1
            assert self.n_products < 1000
            return super().forward(coef) + 1e9 * (self.n_products % 2)

    view = FeatureView.of(as_source(X))
    design = Rough(TrainingData({}, view, np.array([0, 1]), (y > 0).astype(int), 2))
    fit = ProximalGradient(design, 1e-5, 20).solve(SortedL1(np.ones(6)))
    assert not fit.converged
    assert fit.reached > 1e-5


def test_overflow_is_an_error(rng):
    X, y = grouped_matrix(rng, n_features=6)
    data = TrainingData({}, FeatureView.of(as_source(X)), np.array([0, 1]), (y > 0).astype(int), 2)
    solver = ProximalGradient(StandardizedDesign(data), 1e-5, 5)
    penalty = SortedL1(np.full(6, 1e-300))
    penalty.value = lambda coef: np.inf
    with pytest.raises(ValueError, match="cannot be computed, because the scales of its penalties are too far apart"):
        solver.solve(penalty)


def test_stopped_solver_reports_its_criterion(rng):
    X, y = grouped_matrix(rng, n_features=12)
    with pytest.warns(ConvergenceWarning, match=r"stopped at max_iter=2 before .* criterion is .*, above tol=1e-05"):
        GraphFusedLassoSelector(3, max_iter=2).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter=5000 or max_rounds=1 "):
        FeatureGroupingSelector(3, max_rounds=1).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edges": [[1], [1, 2]]}, "edges must be integers .* rows have different lengths"),
        ({"fusion": 1e300}, r"fusion=1e\+300 must be a number of at least 0 and at most 1e\+20"),
    ],
)
def test_wrong_parameters(options, message, rng):
    X, y = grouped_matrix(rng, n_features=5)
    with pytest.raises(ValueError, match=message):
        GraphFusedLassoSelector(2, **options).fit(X, y)
