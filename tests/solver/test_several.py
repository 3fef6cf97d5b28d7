"""Several targets: the sum of their losses against its definition, cvxpy and separate losses; the compiled form."""

import itertools

import cvxpy as cp
import numpy as np
import pytest

from coterie.data import FeatureView, as_source
from coterie.kernels.losses import evaluate_loss, smooth_marker
from coterie.solver.adjusted import AdjustedLoss
from coterie.solver.design import DenseDesign, Rows, design_of
from coterie.solver.loss import COMPILED, Loss, Targets, require
from coterie.solver.losses import LOSSES, SquaredLoss
from coterie.solver.master import Master
from coterie.solver.ridge import fit_ridge
from coterie.solver.sample_space import SampleProblem
from coterie.solver.several import SeveralTargets, target_scales
from coterie.solver.smooth_losses import Huber

NAMES = sorted(LOSSES["numbers"])


def made(rng, name, *, C=0.7, fit_intercept=True, factors=None, offset=True, n=50):
    """Return the joint loss of three targets, the losses of each, and the targets. Some weights are zero."""
    values = rng.poisson(3.0, (n, 3)) * 1.0 if name == "poisson" else rng.standard_normal((n, 3)) * [1.0, 3.0, 0.2] + 5.0
    values = np.exp(0.3 * (values - 5.0)) if name == "gamma" else values
    weight = rng.random(n) + 0.2
    weight[[3, 11]] = 0.0
    targets = Targets(values, 0, 0.3 * rng.standard_normal((n, 3)) if offset else None, factors)
    loss = LOSSES["numbers"][name]
    own = np.ones(3) if factors is None else factors
    single = [loss.of(targets.target(c), weight, C * own[c], fit_intercept) for c in range(3)]
    return loss.of(targets, weight, C, fit_intercept), single, targets, weight


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("factors", [None, np.array([1.0, 0.2, 5.0])])
@pytest.mark.parametrize("name", NAMES)
def test_the_loss_is_the_sum_of_those_of_the_targets(rng, name, factors, fit_intercept):
    joint, single, _, _ = made(rng, name, fit_intercept=fit_intercept, factors=factors)
    z = rng.standard_normal((50, 3))
    state, parts = joint.evaluate(z), [loss.evaluate(z[:, [c]]) for c, loss in enumerate(single)]
    assert joint.n_outputs == 3
    assert state.value == pytest.approx(sum(part.value for part in parts), rel=1e-13)
    assert state.value + state.conjugate == pytest.approx(-(state.residual * z).sum(), rel=1e-9)
    for c, part in enumerate(parts):
        np.testing.assert_allclose(state.residual[:, [c]], part.residual, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(state.curvature[:, [c]], part.curvature, rtol=1e-12)
        assert state.intercept[c] == pytest.approx(part.intercept[0], rel=1e-12)
    warm = joint.evaluate(z, joint.evaluate(z + 1.0))
    assert warm.value == pytest.approx(state.value, rel=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_compiled_form(rng, name, fit_intercept):
    """One kernel evaluates all targets, with their own factors, limits and offsets."""
    joint, _, _, _ = made(rng, name, fit_intercept=fit_intercept, factors=np.array([1.0, 0.2, 5.0]))
    z = rng.standard_normal((50, 3))
    state, arrays = joint.evaluate(z), joint.arrays
    offsets, residual, curvature = np.empty(arrays.mass.shape), np.empty((3, 50)), np.empty((3, 50))
    value, conjugate = evaluate_loss(
        arrays, smooth_marker(arrays), z, np.full(offsets.shape, np.inf), offsets, residual, curvature
    )
    assert (value, conjugate) == pytest.approx((state.value, state.conjugate), rel=1e-11)
    np.testing.assert_allclose(residual.T, state.residual, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(curvature.T, state.curvature, rtol=1e-9)
    np.testing.assert_allclose(offsets, state.offsets, rtol=1e-9, atol=1e-12)


def with_cvxpy(name, X, blocks, targets, weight, C):
    """Return the optimal value of the master problem for the targets' losses as defined."""
    n, q = targets.values.shape
    W, b = cp.Variable((X.shape[1], q)), cp.Variable(q)
    Z = X @ W + np.ones((n, 1)) @ cp.reshape(b, (1, q), order="C") + targets.offset
    y, total = targets.values, 0
    for c in range(q):
        if name == "poisson":
            log = np.log(np.maximum(y[:, c], 1))
            own = cp.exp(Z[:, c]) - cp.multiply(y[:, c], Z[:, c]) - y[:, c] + y[:, c] * log
        elif name == "gamma":
            own = cp.multiply(y[:, c], cp.exp(-Z[:, c])) + Z[:, c] - 1 - np.log(y[:, c])
        elif name == "squared":
            own = cp.square(y[:, c] - Z[:, c]) / 2
        else:
            width = LOSSES["numbers"][name].of(targets.target(c), weight, 1.0, True).width  # the median has no linear part
            own = cp.huber(y[:, c] - Z[:, c], width) / 2
        total = total + C * targets.factors[c] * (weight @ own)
    norms = sum(cp.norm(W[start:stop], "fro") for start, stop in itertools.pairwise(blocks))
    problem = cp.Problem(cp.Minimize(0.5 * cp.square(norms) + total))
    return problem.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("name", NAMES)
def test_one_gap_certifies_all_targets(rng, name):
    """Blocks have a norm over all targets: the master problem is that of cvxpy."""
    joint, _, targets, weight = made(rng, name, factors=np.array([1.0, 0.6, 2.0]))
    X = rng.standard_normal((50, 5))
    master = Master(joint, design_of(FeatureView.of(as_source(X), weight, centred=True)))
    for features in (np.arange(2), np.arange(2, 5)):
        master.add_block(features)
    solution = master.solve()
    assert solution.gap <= 1e-10
    assert solution.bound == pytest.approx(-with_cvxpy(name, X, [0, 2, 5], targets, weight, 0.7), rel=1e-6)


def test_covariates_of_several_targets(rng):
    """Without a penalty for the squared loss: the residuals are orthogonal to the covariates for every target."""
    joint, single, _, weight = made(rng, "squared")
    covariates = rng.standard_normal((50, 2))
    state = AdjustedLoss(joint, covariates, weight).evaluate(np.zeros((50, 3)))
    for c, loss in enumerate(single):
        part = AdjustedLoss(loss, covariates, weight).evaluate(np.zeros((50, 1)))
        np.testing.assert_allclose(state.covariate_coef[:, [c]], part.covariate_coef, rtol=1e-10)
    assert np.abs(covariates.T @ state.residual).max() <= 1e-10


@pytest.mark.parametrize("name", NAMES)
def test_merged_samples(rng, name):
    """Samples with equal columns, and equal targets if the loss requires them, are merged without a change."""
    joint, _, _, weight = made(rng, name, offset=False)
    column = rng.integers(0, 2, 50) * 1.0
    rows = Rows(joint.kinds())
    rows.refine(column[:, None])
    used = rows.owner >= 0
    assert used.tolist() == (weight > 0).tolist()
    merged = joint.merged(rows)
    z = np.outer(column, [0.5, -1.0, 2.0])
    whole, part = joint.evaluate(z), merged.evaluate(z[rows.first])
    assert part.value == pytest.approx(whole.value, rel=1e-12)
    np.testing.assert_allclose(joint.spread(part.residual, rows), whole.residual, rtol=1e-9, atol=1e-11)


def test_ridge_models_of_several_targets_in_one_problem(rng):
    """Models on whole groups: outputs are independent, and one problem between samples has those of all targets."""
    joint, single, _, _ = made(rng, "squared")
    X = rng.standard_normal((50, 80))
    fit = SampleProblem.of(joint.plain()).fit(X @ X.T)
    assert fit.gap.max() <= 1e-12
    for c, loss in enumerate(single):
        solution = fit_ridge(loss, DenseDesign.of_array(X))
        np.testing.assert_allclose(X.T @ fit.residual[c], solution.coef[:, 0], atol=1e-9)
        assert fit.intercept[c] == pytest.approx(solution.state.intercept[0], abs=1e-9)
        assert fit.conjugate[c] == pytest.approx(solution.state.conjugate, rel=1e-9)


def test_scales(rng):
    """That of the squared loss is the standard deviation; the scale follows the unit, and outliers hardly change Huber's."""
    values, weight = rng.standard_normal((200, 2)) * [1.0, 50.0] + 7.0, rng.random(200)
    scale = target_scales(SquaredLoss, Targets(values, 0), weight)
    centred = values - np.average(values, axis=0, weights=weight)
    np.testing.assert_allclose(scale, np.sqrt(np.average(centred**2, axis=0, weights=weight)))
    values[0] = 1e6
    huber = target_scales(Huber(), Targets(values, 0), weight)
    np.testing.assert_allclose(target_scales(Huber(), Targets(1e3 * values, 0), weight), 1e3 * huber, rtol=1e-9)
    assert (huber < 1.2 * scale).all()
    counts = rng.poisson(9.0, (4000, 1)) * 1.0
    assert target_scales(LOSSES["numbers"]["poisson"], Targets(counts, 0), np.ones(4000))[0] == pytest.approx(3.0, rel=0.05)


class Absent(Loss):
    """A loss without optional parts."""

    centred, n_strata = False, 0

    def __init__(self, n):
        self.strata, self.signs = np.zeros((n, 1), dtype=np.int8), np.ones((n, 1))

    def evaluate(self, outputs, previous=None):
        return SquaredLoss(np.zeros(len(outputs)), np.ones(len(outputs)), 1.0, False).evaluate(outputs)


def test_optional_parts_are_those_of_all_targets():
    squared = SquaredLoss(np.arange(4.0), np.ones(4), 1.0, False)
    assert SeveralTargets([squared, squared]).parts >= set(COMPILED)
    mixed = SeveralTargets([squared, Absent(4)])
    assert mixed.parts == {"plain"}
    assert not mixed.is_quadratic
    with pytest.raises(TypeError, match="requires a loss with kinds"):
        require(mixed, ("kinds",), "Merging")
