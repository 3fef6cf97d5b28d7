"""Parts of the interior-point method: first point, Newton step, longest step, and the final pair."""

import numpy as np
import pytest

from coterie.solver import interior_point as module
from coterie.solver.adjusted import AdjustedLoss
from coterie.solver.design import DenseDesign
from coterie.solver.interior_point import _ExtendedDesign, _Point, _Problem, interior_point
from coterie.solver.losses import OneVsRestHinge, SquaredHinge

BLOCKS = np.array([0, 2, 5])


def problem(rng, kind="two classes", n_samples=30):
    X, weight = rng.standard_normal((n_samples, 5)), rng.random(n_samples) + 0.3
    weight[::6] = 0.0
    codes = np.r_[0, 1, 2, 0, 1, 2, rng.integers(0, 3, n_samples - 6)]
    if kind == "several classes":
        loss = OneVsRestHinge(codes, 3, weight, 0.8, True)
    else:
        loss = SquaredHinge(np.where(codes == 0, 1.0, -1.0), weight, 0.8, kind != "without intercept")
    if kind == "covariates":
        loss = AdjustedLoss(loss, rng.standard_normal((n_samples, 2)), weight)
    return X, loss, _Problem(DenseDesign.of_array(X), loss, BLOCKS)


KINDS = ["two classes", "several classes", "without intercept", "covariates"]


def strata_sums(loss, alpha):
    rows = [[alpha[loss.strata[:, c] == e, c].sum() for e in range(loss.n_strata)] for c in range(loss.n_outputs)]
    return np.array(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_point_is_strictly_feasible(rng, kind):
    X, loss, task = problem(rng, kind)
    point = task.start()
    used = loss.dual_weight > 0
    assert (point.alpha[used] > 0).all()
    assert (point.lam[used] > 0).all()
    assert not point.alpha[~used].any()
    assert not point.lam[~used].any()
    np.testing.assert_allclose(strata_sums(loss, point.alpha), loss.mass)
    # Within a stratum, the dual variables are proportional to the weights.
    for c in range(loss.n_outputs):
        for e in range(loss.n_strata):
            own = (loss.strata[:, c] == e) & used[:, c]
            ratio = point.alpha[own, c] / loss.dual_weight[own, c]
            np.testing.assert_allclose(ratio, ratio[0])
    scores = X.T @ (loss.signs * point.alpha)
    assert point.theta > 0.5 * max((scores[:2] ** 2).sum(), (scores[2:] ** 2).sum())
    assert point.mu.sum() == pytest.approx(1.0)
    assert (point.mu > 0).all()
    assert point.nu.shape == (loss.n_outputs, loss.n_strata)


@pytest.mark.parametrize("kind", KINDS)
def test_complementarity_and_objective_by_naive_code(rng, kind):
    X, loss, task = problem(rng, kind)
    point = task.start()
    scores = X.T @ (loss.signs * point.alpha)
    gaps = [point.theta - 0.5 * (scores[a:b] ** 2).sum() for a, b in ((0, 2), (2, 5))]
    assert task.complementarity(point) == pytest.approx((point.lam * point.alpha).sum() + point.mu @ gaps)
    used = loss.dual_weight > 0
    expected = point.theta + 0.5 * (point.alpha[used] ** 2 / loss.dual_weight[used]).sum()
    if loss.covariates is not None:
        expected += 0.5 * ((loss.covariates.T @ (loss.signs * point.alpha)) ** 2).sum() / loss.covariate_penalty
    assert task.objective(point) == pytest.approx(expected)
    assert task.n_constraints == used.sum() + 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_without_correction_solves_the_linearised_conditions(rng, kind):
    """Products change to first order by the required amount, sums of strata stay, and multipliers become stationary."""
    _, loss, task = problem(rng, kind)
    point = task.start()
    used = loss.dual_weight > 0
    centring = 0.3 * task.complementarity(point)
    step = task.direction(point, task.factorise(point), centring, None)
    tau = centring / task.n_constraints
    products = point.lam * step.alpha + point.alpha * step.lam
    np.testing.assert_allclose(products[used], (tau - point.lam * point.alpha)[used], rtol=1e-8, atol=1e-10)
    scores, step_scores = task.scores(point), task.scores(step)
    gap = point.theta - task._squares(scores)
    moved = step.theta - task._inner(scores, step_scores)
    np.testing.assert_allclose(point.mu * moved + gap * step.mu, tau - point.mu * gap, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(strata_sums(loss, step.alpha), 0.0, atol=1e-9)
    assert point.mu.sum() + step.mu.sum() == pytest.approx(1.0)
    assert not step.alpha[~used].any()
    # The derivative of the Lagrangian is bilinear: along a short step it decreases in proportion to the step.
    before = task.stationarity(point)
    small = 1e-6
    after = task.stationarity(point + small * step)
    np.testing.assert_allclose((after - before) / small, -before, atol=1e-4 * np.abs(before).max())


def feasible(task, point, step, length):
    """Return True if all constraints and multipliers are non-negative after a step of this length."""
    ahead = _Point(
        point.alpha + length * step.alpha, point.theta + length * step.theta, point.lam + length * step.lam,
        point.mu + length * step.mu, point.nu,
    )  # fmt: skip
    gap = ahead.theta - task._squares(task._scores(ahead.alpha))
    return all((values >= 0).all() for values in (ahead.alpha, ahead.lam, ahead.mu, gap))


@pytest.mark.parametrize("limit", ["alpha", "lam", "mu", "theta", "scores"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_longest_step_ends_at_the_first_constraint(rng, limit, scale):
    """One kind of constraint at a time limits the step."""
    _, _, task = problem(rng)
    point = task.start()
    zero = _Point(0.0 * point.alpha, 0.0, 0.0 * point.lam, 0.0 * point.mu, 0.0 * point.nu)
    step = zero + zero
    if limit == "alpha":
        step.alpha = -scale * point.alpha * rng.random(point.alpha.shape)
        step.theta = 1e6 * scale  # The blocks do not limit the step.
    elif limit in ("lam", "mu"):
        value = getattr(point, limit)
        setattr(step, limit, scale * value * rng.uniform(-1.0, 0.5, value.shape))
    elif limit == "theta":
        step.theta = -scale * point.theta
    else:
        step.alpha = scale * point.alpha * rng.random(point.alpha.shape)
    length = task.longest_step(point, step)
    assert 0.0 < length < np.inf
    assert feasible(task, point, step, 0.999 * length)
    assert not feasible(task, point, step, 1.001 * length)
    assert task.longest_step(point, zero) == np.inf


@pytest.mark.parametrize("kind", KINDS)
def test_steps_stay_feasible_and_reduce_the_complementarity(rng, kind):
    _, loss, task = problem(rng, kind)
    point = task.start()
    centrality = task.complementarity(point)
    for _ in range(6):
        ahead = task.advance(point, centrality)
        assert feasible(task, ahead, 0.0 * ahead, 1.0)
        np.testing.assert_allclose(strata_sums(loss, ahead.alpha), loss.mass, rtol=1e-8)
        assert task.complementarity(ahead) < 0.9 * centrality
        point, centrality = ahead, task.complementarity(ahead)
    assert centrality < 1e-2 * task.objective(point)


def test_infeasibility_is_zero_at_stationary_multipliers(rng):
    _, _, task = problem(rng)
    point = task.start()
    for _ in range(30):
        ahead = task.advance(point, task.complementarity(point))
        if ahead is None or task.complementarity(ahead) < 1e-9:
            break
        point = ahead
    assert task.infeasibility(task.start()) > 1e-2
    assert task.infeasibility(point) < 1e-6
    doubled = _Point(point.alpha, point.theta, point.lam, 2.0 * point.mu, point.nu)
    assert task.infeasibility(doubled) >= 0.99 * point.theta


@pytest.mark.parametrize("kind", KINDS)
def test_a_tighter_precision_gives_a_smaller_gap(rng, kind):
    X, loss, _ = problem(rng, kind)
    design = DenseDesign.of_array(X)
    gaps = []
    for precision in (1e-2, 1e-5, 1e-11):
        coef, residual = interior_point(design, loss, BLOCKS, precision)
        assert coef.shape == (5, loss.n_outputs)
        np.testing.assert_allclose(strata_sums(loss, loss.signs * residual), loss.mass, rtol=1e-12)
        norms = [np.linalg.norm(own) for own in (coef[:2], coef[2:])]
        primal = 0.5 * sum(norms) ** 2 + loss.evaluate(X @ coef).value
        scores = X.T @ residual
        dual = 0.5 * max((scores[:2] ** 2).sum(), (scores[2:] ** 2).sum()) + loss.conjugate(residual)
        gaps.append((primal + dual) / dual)
    assert gaps[0] > gaps[1] > gaps[2] > -1e-12
    assert gaps[2] < 1e-8


def test_the_number_of_steps_is_limited(rng, monkeypatch):
    X, loss, task = problem(rng)
    monkeypatch.setattr(module, "_MAX_STEPS", 0)
    coef, residual = interior_point(DenseDesign.of_array(X), loss, BLOCKS)
    point = task.start()
    np.testing.assert_allclose(coef, np.repeat(point.mu, [2, 3])[:, None] * (X.T @ (loss.signs * point.alpha)))
    np.testing.assert_allclose(residual, loss.signs * point.alpha)


def test_additional_columns_of_a_design(rng):
    X, columns = rng.standard_normal((20, 4)), rng.standard_normal((20, 2))
    extended, whole = _ExtendedDesign(DenseDesign.of_array(X), columns), np.hstack([X, columns])
    coef, residual, weights = rng.standard_normal((6, 3)), rng.standard_normal((20, 3)), rng.random((20, 3))
    assert extended.n_features == 6
    np.testing.assert_allclose(extended.output(coef), whole @ coef)
    np.testing.assert_allclose(extended.scores(residual), whole.T @ residual)
    np.testing.assert_allclose(extended.grams(weights), [whole.T @ (own[:, None] * whole) for own in weights.T])
