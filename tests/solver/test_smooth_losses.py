"""Logistic, Poisson, gamma, Huber and quantile losses: definitions, certificates, cvxpy and scikit-learn as references."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.linear_model import GammaRegressor, HuberRegressor, LogisticRegression, PoissonRegressor

from coterie.data import FeatureView, as_source
from coterie.kernels.losses import evaluate_loss, smooth_marker
from coterie.solver import master as master_module
from coterie.solver.adjusted import AdjustedLoss
from coterie.solver.design import DenseDesign, Rows, design_of
from coterie.solver.gamma import GammaLoss
from coterie.solver.loss import Targets
from coterie.solver.losses import LOSSES
from coterie.solver.master import Master
from coterie.solver.regression import huber_width
from coterie.solver.ridge import fit_ridge
from coterie.solver.smooth_losses import Huber, HuberLoss, LogisticLoss, PoissonLoss

NAMES = ["logistic", "several", "poisson", "exposed", "gamma", "huber", "quantile"]


def made(name, rng, n=60, C=1.0, fit_intercept=True, weight=None, outputs=0.0):
    """Return a loss of random targets whose expectation depends on ``outputs``, and its definition by sample and output."""
    weight = rng.random(n) + 0.2 if weight is None else weight
    outputs = np.broadcast_to(np.asarray(outputs, dtype=float), n)
    if name == "logistic":
        codes = (outputs + rng.logistic(size=n) > 0).astype(int)
        codes[:4] = [0, 1, 0, 1]
        sign = 2.0 * codes[:, None] - 1
        return LogisticLoss(codes, np.array([1]), weight, C, fit_intercept), lambda z: np.logaddexp(0, -sign * z)
    if name == "several":
        codes = np.digitize(outputs + rng.logistic(size=n), [-0.5, 1.5])
        codes[:6] = [0, 1, 2, 0, 1, 2]
        loss = LogisticLoss.of(Targets(codes, 3), weight, C, fit_intercept)
        sign = np.where(codes[:, None] == np.arange(3), 1.0, -1.0)
        share = np.bincount(codes, weight) / weight.sum()
        factors = 1 / np.sqrt(share * (1 - share))
        factors /= np.sqrt(1 / np.mean(share * (1 - share)))
        return loss, lambda z: factors * np.logaddexp(0, -sign * z)
    if name in ("poisson", "exposed"):
        offset = rng.standard_normal(n) if name == "exposed" else np.zeros(n)
        y = rng.poisson(np.exp(np.clip(0.5 + outputs + offset, -8, 8)))
        log = np.log(np.maximum(y, 1))
        loss = PoissonLoss(y, weight, C, fit_intercept, offset if name == "exposed" else None)
        return loss, lambda z: (np.exp(z[:, 0] + offset) - y - y * (z[:, 0] + offset) + y * log)[:, None]
    if name == "gamma":
        offset = rng.standard_normal(n)
        y = rng.gamma(2.0, 0.5 * np.exp(np.clip(0.5 + outputs + offset, -8, 8)))
        loss = GammaLoss(y, weight, C, fit_intercept, offset)
        return loss, lambda z: (y * np.exp(-z[:, 0] - offset) - 1 - np.log(y) + z[:, 0] + offset)[:, None]
    y = outputs + rng.standard_t(1.5, size=n) + 5.0 * fit_intercept
    absolute = lambda z: np.abs(y[:, None] - z)  # noqa: E731
    if name == "quantile":  # 1.6 times the pinball loss of the quantile 0.2 outside ±0.8, tangents in between

        def smoothed(z):
            error = y[:, None] - z
            pinball = np.maximum(0.2 * error, -0.8 * error)
            return np.where(absolute(z) <= 0.8, (error - 0.48) ** 2 / 2, 1.6 * pinball - 0.32 + 0.48**2 / 2)

        return HuberLoss(y, weight, C, fit_intercept, 0.8, -0.48), smoothed
    return (
        HuberLoss(y, weight, C, fit_intercept, 0.8),
        lambda z: np.where(absolute(z) <= 0.8, absolute(z) ** 2 / 2, 0.8 * (absolute(z) - 0.4)),
    )


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("name", NAMES)
def test_value_gradient_curvature_and_conjugate(rng, name, C, fit_intercept):
    weight = rng.random(60) + 0.2
    weight[[7, 20]] = 0.0
    loss, define = made(name, rng, C=C, fit_intercept=fit_intercept, weight=weight)
    z, d = rng.standard_normal((2, 60, loss.n_outputs))
    state = loss.evaluate(z)

    def objective(intercept, c):
        moved = z.copy()
        moved[:, c] += intercept
        return C * float(weight @ define(moved)[:, c])

    value = 0.0
    for c in range(loss.n_outputs):
        if fit_intercept:
            best = optimize.minimize_scalar(objective, (-1, 1), args=(c,), tol=1e-12)
            assert state.intercept[c] == pytest.approx(best.x, abs=1e-6)
            value += best.fun
        else:
            value += objective(0.0, c)
            assert state.intercept[c] == 0.0
    assert state.value == pytest.approx(value, rel=1e-9)
    assert (state.residual[weight == 0.0] == 0.0).all()
    if fit_intercept:
        assert np.abs(state.residual.sum(axis=0)).max() <= 1e-14 * np.abs(state.residual).sum()
    assert state.value + state.conjugate == pytest.approx(-(state.residual * z).sum(), rel=1e-10, abs=1e-10 * C)
    h = 1e-6
    up, down = loss.evaluate(z + h * d, state), loss.evaluate(z - h * d, state)
    assert (up.value - down.value) / (2 * h) == pytest.approx(-(state.residual * d).sum(), rel=1e-5, abs=1e-6 * C)
    expected = (state.curvature * d**2).sum()
    if fit_intercept:
        expected -= ((state.curvature * d).sum(axis=0) ** 2 / state.curvature.sum(axis=0)).sum()
    numeric = -((up.residual - down.residual) * d).sum() / (2 * h)
    assert numeric == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_the_conjugate_is_the_largest_value_of_its_definition(rng, name):
    """F*(-r) = max <-r, z> - F(z), which no other point may exceed."""
    loss, _ = made(name, rng)
    z = rng.standard_normal((60, loss.n_outputs))
    state = loss.evaluate(z)
    for size in (1e-4, 1e-2, 1.0, 10.0):
        other = z + size * rng.standard_normal(z.shape)
        assert -(state.residual * other).sum() - loss.evaluate(other).value <= state.conjugate + 1e-12


@given(seed=st.integers(0, 10**6), name=st.sampled_from(NAMES), size=st.sampled_from([0.1, 30.0, 1e3, 1e6]))
@settings(max_examples=60, deadline=None)
def test_intercepts_at_extreme_outputs(seed, name, size):
    """No overflow: value, residuals and intercept are finite, residuals sum to zero, and a warm start changes nothing."""
    rng = np.random.default_rng(seed)
    loss, _ = made(name, rng)
    z = size * rng.standard_normal((60, loss.n_outputs))
    cold = loss.evaluate(z)
    warm = loss.evaluate(z, loss.evaluate(size * rng.standard_normal((60, loss.n_outputs))))
    for state in (cold, warm):
        assert np.isfinite(state.value)
        assert np.isfinite(state.intercept).all()
        assert np.abs(state.residual.sum(axis=0)).max() <= 1e-9 * np.abs(state.residual).sum()
    assert cold.value == pytest.approx(warm.value, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_residuals_sum_to_zero_beyond_the_digits_of_the_intercept(rng, name):
    """An intercept of -1e7 is known to 1e-9 only; the residuals are corrected by one linear step."""
    loss, _ = made(name, rng)
    z = 1e7 + rng.standard_normal((60, loss.n_outputs))
    for state in (loss.evaluate(z), loss.evaluate(z, loss.evaluate(z + 0.1))):
        assert np.abs(state.residual.sum(axis=0)).max() <= 1e-14 * np.abs(state.residual).sum()


def test_counts_of_zero_have_a_finite_state():
    state = PoissonLoss(np.zeros(5), np.ones(5), 1.0, True).evaluate(np.arange(5.0)[:, None])
    assert np.isfinite(state.intercept).all()
    assert state.value == pytest.approx(0.0, abs=1e-200)
    assert np.abs(state.residual).max() <= 1e-200


def test_large_counts_keep_their_digits(rng):
    """Half a deviance of about 0.5 per sample, from counts of 1e9, whose y log y would lose ten digits."""
    y = 1e9 + 3e4 * rng.standard_normal(50)
    state = PoissonLoss(y, np.ones(50), 1.0, True).evaluate(np.zeros((50, 1)))
    assert state.value == pytest.approx(((y - y.mean()) ** 2).sum() / (2 * y.mean()), rel=1e-4)
    assert state.value + state.conjugate == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_the_compiled_form_is_the_same(rng, name):
    loss, _ = made(name, rng)
    z = rng.standard_normal((60, loss.n_outputs))
    state, own = loss.evaluate(z), loss.arrays
    offsets, residual, curvature = np.empty(own.mass.shape), np.empty((loss.n_outputs, 60)), np.empty((loss.n_outputs, 60))
    value, conjugate = evaluate_loss(own, smooth_marker(own), z, np.full(own.mass.shape, np.inf), offsets, residual, curvature)
    assert (value, conjugate) == (state.value, state.conjugate)
    np.testing.assert_array_equal(residual.T, state.residual)
    np.testing.assert_array_equal(curvature.T, state.curvature)


def weighted_sum(name, loss, Z, W, b):
    """Return the loss as an expression of cvxpy."""
    weight = loss.weight * loss.C
    if isinstance(loss, LogisticLoss):
        parts = []
        for c, label in enumerate(loss.classes):
            sign = np.where(loss.codes == label, 1.0, -1.0)
            parts.append(loss.factors[c] * weight @ cp.logistic(-cp.multiply(sign, Z @ W[:, c] + b[c])))
        return sum(parts)
    u = Z @ W[:, 0] + b[0]
    if isinstance(loss, PoissonLoss):
        y = loss.targets
        constant = weight @ (y * np.log(np.maximum(y, 1)) - y)
        return weight @ (cp.exp(u + loss.offset) - cp.multiply(y, u + loss.offset)) + constant
    if isinstance(loss, GammaLoss):
        margin = u + loss.offset - np.log(loss.targets)
        return weight @ (cp.exp(-margin) + margin - 1)
    error = loss.targets - u
    return weight @ (0.5 * cp.huber(error, loss.width) + loss.tilt * error + 0.5 * loss.tilt**2)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("name", NAMES)
def test_the_master_problem_against_cvxpy(rng, name, C, fit_intercept):
    X = rng.standard_normal((60, 6))
    X -= X.mean(axis=0)
    loss, _ = made(name, rng, C=C, fit_intercept=fit_intercept, outputs=X[:, 0] - X[:, 4])
    master = Master(loss, design_of(FeatureView.of(as_source(X), centred=loss.centred)))
    for features in (np.arange(3), np.arange(3, 6)):
        master.add_block(features)
        solution = master.solve()
        assert solution.gap <= 1e-11
    W, b = cp.Variable((6, loss.n_outputs)), cp.Variable(loss.n_outputs)
    size = cp.norm(W[:3], "fro") + cp.norm(W[3:], "fro")
    fixed = [] if fit_intercept else [b == 0]
    task = cp.Problem(cp.Minimize(0.5 * cp.square(size) + weighted_sum(name, loss, X, W, b)), fixed)
    task.solve(solver=cp.CLARABEL)
    assert -solution.bound == pytest.approx(task.value, rel=1e-6, abs=1e-8)
    np.testing.assert_allclose(solution.coef, W.value, atol=1e-4 * max(1.0, np.abs(W.value).max()))
    np.testing.assert_allclose(solution.state.intercept, b.value, atol=1e-3)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_all_solvers_agree(rng, monkeypatch, name, is_sparse, wide):
    """Dense and sparse designs, few and many columns, on samples with equal rows and weight zero."""
    X = rng.integers(0, 3, (80, 7)).astype(float)
    X[40:] = X[:40]
    weight = rng.random(80)
    weight[::9] = 0.0
    loss, _ = made(name, rng, n=80, weight=weight, outputs=0.5 * X[:, 1])
    if wide:
        for limit in ("_MAX_MATRIX_COLUMNS_SINGLE", "_MAX_MATRIX_COLUMNS"):
            monkeypatch.setattr(master_module, limit, 0)
    view = FeatureView.of(as_source(sparse.csc_array(X) if is_sparse else X), weight, centred=loss.centred)
    master = Master(loss, design_of(view))
    plain = Master(loss, DenseDesign(FeatureView.of(as_source(X), weight, centred=True)))
    plain._rows = None
    plain._merged = loss
    for one in (master, plain):
        one.add_block(np.arange(4))
        one.add_block(np.arange(4, 7))
    first, second = master.solve(), plain.solve()
    assert first.gap <= (1e-9 if wide else 1e-11)
    np.testing.assert_allclose(first.coef, second.coef, atol=1e-5 if wide else 1e-7)
    assert first.residual.shape == (80, loss.n_outputs)
    np.testing.assert_allclose(first.residual, second.residual, atol=1e-4 if wide else 1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_merged_rows_are_exact(rng, name):
    loss, _ = made(name, rng, n=200)
    column = rng.integers(0, 3, 200).astype(float)
    rows = Rows(loss.kinds())
    rows.refine(column[:, None])
    merged = loss.merged(rows)
    z = np.outer(column, rng.standard_normal(loss.n_outputs))
    whole, part = loss.evaluate(z), merged.evaluate(z[rows.first])
    assert name in ("huber", "quantile", "exposed", "gamma") or len(rows.first) < 120
    assert part.value == pytest.approx(whole.value, rel=1e-12)
    assert part.conjugate == pytest.approx(whole.conjugate, rel=1e-9)
    np.testing.assert_allclose(loss.spread(part.residual, rows), whole.residual, atol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_scaling_is_that_of_C(rng, name):
    seed = int(rng.integers(10**6))
    one, five = (made(name, np.random.default_rng(seed), C=C)[0] for C in (1.0, 5.0))
    z = rng.standard_normal((60, one.n_outputs))
    assert one.scaled(5.0).evaluate(z).value == five.evaluate(z).value


@pytest.mark.parametrize("name", NAMES)
def test_covariates_are_nearly_unpenalised_columns(rng, name):
    X, K = rng.standard_normal((60, 3)), rng.standard_normal((60, 2))
    X -= X.mean(axis=0)
    loss, _ = made(name, rng, C=1.0, outputs=X[:, 0] + K[:, 1])
    master = Master(AdjustedLoss(loss, K, loss.weight), design_of(FeatureView.of(as_source(X), centred=True)))
    master.add_block(np.arange(3))
    solution = master.solve()
    assert solution.gap <= 1e-9
    W, b = cp.Variable((5, loss.n_outputs)), cp.Variable(loss.n_outputs)
    # Whitened covariates; see AdjustedLoss.
    adjusted = master.loss
    columns = np.hstack([X, adjusted.covariates])
    penalty = 0.5 * cp.sum_squares(W[:3]) + 0.5 * adjusted.covariate_penalty * cp.sum_squares(W[3:])
    task = cp.Problem(cp.Minimize(penalty + weighted_sum(name, loss, columns, W, b)))
    task.solve(solver=cp.CLARABEL)
    assert -solution.bound == pytest.approx(task.value, rel=1e-6)
    np.testing.assert_allclose(solution.coef, W.value[:3], atol=1e-4)


def ridge(loss, X):
    """Return weights and intercept of the model on all columns with a plain squared norm."""
    solution = fit_ridge(loss, DenseDesign.of_array(X), precision=1e-14)
    assert solution.gap <= 1e-9
    return solution.coef[:, 0], solution.state.intercept[0]


def test_logistic_regression_of_scikit_learn(rng):
    X = rng.standard_normal((150, 8))
    X -= X.mean(axis=0)
    loss, _ = made("logistic", rng, n=150, C=0.3, outputs=X[:, 0])
    reference = LogisticRegression(C=0.3, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    reference.fit(X, loss.codes, loss.weight)
    coef, intercept = ridge(loss, X)
    np.testing.assert_allclose(coef, reference.coef_[0], atol=1e-7)
    assert intercept == pytest.approx(reference.intercept_[0], abs=1e-7)
    outputs = (X @ coef + intercept)[:, None]
    np.testing.assert_allclose(LogisticLoss.probabilities(outputs), reference.predict_proba(X), atol=1e-8)


def test_poisson_regression_of_scikit_learn(rng):
    """Counts with an exposure are rates with the exposure as weight: scikit-learn has no offset."""
    X = rng.standard_normal((150, 8))
    X -= X.mean(axis=0)
    exposure, weight = rng.uniform(0.5, 5, 150), rng.random(150) + 0.5
    y = rng.poisson(exposure * np.exp(0.4 * X[:, 0]))
    reference = PoissonRegressor(alpha=1.0, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    reference.fit(X, y / exposure, weight * exposure)
    C = 1.0 / (weight * exposure).sum()
    for loss in (
        PoissonLoss(y, weight, C, True, np.log(exposure)),
        PoissonLoss(y / exposure, weight * exposure, C, True),
    ):
        coef, intercept = ridge(loss, X)
        np.testing.assert_allclose(coef, reference.coef_, atol=1e-8)
        assert intercept == pytest.approx(reference.intercept_, abs=1e-8)


def test_gamma_regression_of_scikit_learn(rng):
    X = rng.standard_normal((150, 8))
    X -= X.mean(axis=0)
    weight = rng.random(150) + 0.5
    y = rng.gamma(2.0, np.exp(0.4 * X[:, 0]))
    reference = GammaRegressor(alpha=1.0, tol=1e-12, max_iter=10_000, solver="newton-cholesky").fit(X, y, weight)
    coef, intercept = ridge(GammaLoss(y, weight, 1.0 / weight.sum(), True), X)
    np.testing.assert_allclose(coef, reference.coef_, atol=1e-8)
    assert intercept == pytest.approx(reference.intercept_, abs=1e-8)


def test_huber_regression_of_scikit_learn(rng):
    """Its scale is estimated; for the scale it has found, both problems have the same solution.

    For fixed σ, it minimises Σ H(e/σ)σ + α‖w‖² with H(u) = u² up to ε, which is 2σ⁻¹ times the loss with δ = εσ.
    """
    X = rng.standard_normal((200, 5))
    X -= X.mean(axis=0)
    y = 3.0 + X[:, 0] + rng.standard_t(2, 200)
    reference = HuberRegressor(epsilon=1.5, alpha=2.0, tol=1e-10, max_iter=10_000).fit(X, y)
    C = 2.0 / reference.scale_ / (2 * 2.0)
    coef, intercept = ridge(HuberLoss(y, np.ones(200), C, True, 1.5 * reference.scale_), X)
    np.testing.assert_allclose(coef, reference.coef_, atol=1e-5)
    assert intercept == pytest.approx(reference.intercept_, abs=1e-5)


@pytest.mark.parametrize("name", ["logistic", "poisson", "gamma", "huber", "quantile"])
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
def test_more_columns_than_samples(rng, name, C):
    X = rng.standard_normal((50, 120))
    loss, _ = made(name, rng, n=50, C=C / 3.0, outputs=X[:, 0])
    assert fit_ridge(loss, DenseDesign.of_array(X - X.mean(axis=0))).gap <= (1e-8 if C < 1e3 else 1e-4)


def test_separated_classes_converge(rng):
    X = rng.standard_normal((60, 30))
    codes = (X[:, 0] > 0).astype(int)
    for C in (1.0, 1e3, 1e6):
        master = Master(LogisticLoss(codes, np.array([1]), np.ones(60), C, True), design_of(FeatureView.of(as_source(X))))
        master.add_block(np.arange(10))
        master.add_block(np.arange(10, 30))
        assert master.solve().gap <= 1e-10


def test_probabilities(rng):
    outputs = np.array([[0.0, 0.0, 0.0], [-800.0, -900.0, -850.0], [900.0, -900.0, 3.0]])
    found = LogisticLoss.probabilities(outputs)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(found[0], 1 / 3)
    assert found[1].argmax() == 0
    two = LogisticLoss.probabilities(np.array([[-3.0], [0.0], [40.0], [-40.0]]))
    np.testing.assert_allclose(two[:, 1], [1 / (1 + np.exp(3)), 0.5, 1.0, np.exp(-40)], atol=1e-16)
    np.testing.assert_allclose(two[:, 0], [1 / (1 + np.exp(-3)), 0.5, np.exp(-40), 1.0], atol=1e-16)


def test_the_width_of_the_huber_loss(rng):
    y = rng.standard_normal(100_001)
    assert huber_width(y, np.ones(len(y))) == pytest.approx(1.345, rel=0.02)
    assert huber_width(7.0 * y + 3, np.ones(len(y))) == pytest.approx(7 * 1.345, rel=0.02)
    doubled = np.array([0.0, 1.0, 5.0, 6.0, 20.0])
    weight = np.array([1.0, 2.0, 1.0, 1.0, 1.0])
    assert huber_width(doubled, weight) == pytest.approx(huber_width(np.append(doubled, 1.0), np.ones(6)))
    # More than half of the values are equal.
    assert huber_width(np.array([0.0, 0.0, 0.0, 4.0]), np.ones(4)) == pytest.approx(1.345 * 1.2533)
    targets = Targets(rng.standard_normal(20), 0)
    assert Huber(3.0).of(targets, np.ones(20), 1.0, True).width == 3.0
    with pytest.raises(ValueError, match=r"width=0\.0 must be a positive number"):
        Huber(0.0)


@pytest.mark.parametrize("name", ["huber", "quantile", "squared"])
def test_offsets_of_numbers_are_subtracted(rng, name):
    y, offset, weight = rng.standard_normal(30), rng.standard_normal(30), np.ones(30)
    kind = LOSSES["numbers"][name]
    with_offset = kind.of(Targets(y, 0, offset), weight, 1.0, True)
    without = kind.of(Targets(y - offset, 0), weight, 1.0, True)
    z = rng.standard_normal((30, 1))
    assert with_offset.evaluate(z).value == without.evaluate(z).value
    np.testing.assert_array_equal(
        kind.constant_outputs(Targets(y, 0, offset), weight), kind.constant_outputs(Targets(y - offset, 0), weight)
    )
