import numpy as np
import pytest
from scipy import optimize

from coterie.solver.design import DenseDesign
from coterie.solver.interior_point import interior_point
from coterie.solver.loss import COMPILED, MERGING, Loss, LossState, Targets
from coterie.solver.losses import (
    LossRule,
    OneClassHinge,
    OneVsRestHinge,
    SquaredHinge,
    SquaredLoss,
    UnitHinge,
    loss_of,
)
from coterie.solver.wide import wide_master
from tests import naive


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
def test_squared_hinge(rng, fit_intercept, C):
    n = 60
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    y[:2], y[2:4] = 1, -1
    weight = rng.random(n)
    weight[10] = 0.0
    z = rng.standard_normal((n, 1))
    state = SquaredHinge(y, weight, C, fit_intercept).evaluate(z)
    alpha = state.residual[:, 0] * y
    assert (alpha >= 0).all()
    assert alpha[10] == 0.0
    assert alpha.sum() == pytest.approx(1.0, abs=1e-12)
    if fit_intercept:
        assert state.residual.sum() == pytest.approx(0.0, abs=1e-12)
    reference = naive.primal(z, y, np.ones(1), [[0]], C, weight, fit_intercept) - 0.5
    assert state.value == pytest.approx(reference, rel=1e-9)
    used = weight > 0
    assert state.conjugate == pytest.approx((alpha[used] ** 2 / weight[used]).sum() / (2 * C), rel=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_residual_is_minus_the_gradient_and_curvature_is_that_of_the_gradient(rng, fit_intercept):
    n = 40
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    loss = SquaredHinge(y, rng.random(n) + 0.1, 2.0, fit_intercept)
    z, d = rng.standard_normal((n, 1)), rng.standard_normal((n, 1))
    state = loss.evaluate(z)
    h = 1e-6
    up, down = loss.evaluate(z + h * d), loss.evaluate(z - h * d)
    assert (up.value - down.value) / (2 * h) == pytest.approx(-(state.residual * d).sum(), rel=1e-6)
    # Second derivative along d, eliminated offsets projected out.
    expected = (state.curvature * d**2).sum()
    for e in range(loss.n_strata):
        inside = loss.strata[:, 0] == e
        weight = state.curvature[inside, 0]
        expected -= (weight * loss.signs[inside, 0] * d[inside, 0]).sum() ** 2 / weight.sum()
    numeric = -((up.residual - down.residual) * d).sum() / (2 * h)
    assert numeric == pytest.approx(expected, rel=1e-5)


def test_a_previous_state_changes_nothing(rng):
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    loss = SquaredHinge(y, np.ones(30), 1.0, True)
    before = loss.evaluate(100 * rng.standard_normal((30, 1)))
    z = rng.standard_normal((30, 1))
    cold, warm = loss.evaluate(z), loss.evaluate(z, before)
    assert cold.value == pytest.approx(warm.value, rel=1e-13)
    np.testing.assert_allclose(cold.residual, warm.residual, atol=1e-14)


def test_first_dual_variables_are_those_of_the_papers():
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    zero = np.zeros((5, 1))
    with_intercept = SquaredHinge(y, np.ones(5), 1.0, True).evaluate(zero).residual[:, 0]
    np.testing.assert_allclose(with_intercept, [1 / 6, 1 / 6, 1 / 6, -1 / 4, -1 / 4])
    without = SquaredHinge(y, np.ones(5), 1.0, False).evaluate(zero).residual[:, 0]
    np.testing.assert_allclose(without, y / 5)


class Halves(Loss):
    """Half the sum of two squared outputs, without optional parts."""

    n_outputs, n_strata, centred = 2, 0, False

    def __init__(self):
        self.strata, self.signs = np.zeros((5, 2), dtype=np.int8), np.ones((5, 2))

    def evaluate(self, outputs, previous=None):
        half = 0.5 * float((outputs**2).sum())
        return LossState(half, half, -outputs, np.ones_like(outputs), np.empty((2, 0)), np.zeros(2), np.zeros(2))


def test_optional_parts_of_losses():
    labels, weight = np.array([1.0, -1.0]), np.ones(2)
    assert SquaredHinge(labels, weight, 1.0, True).parts == {"mass", "dual_weight", "conjugate", "plain", *MERGING, *COMPILED}
    assert OneVsRestHinge(np.array([0, 1, 2]), 3, np.ones(3), 1.0, True).parts == {
        "mass",
        "dual_weight",
        "conjugate",
        "plain",
        *MERGING,
        *COMPILED,
    }
    assert UnitHinge(labels, weight, 1.0, True).parts == {"plain", "scaled"}
    assert SquaredLoss(labels, weight, 1.0, True).parts == {"plain", *MERGING, *COMPILED}
    assert Halves().parts == set()


def test_merging_is_not_inherited_by_a_loss_with_its_own_evaluate():
    class Other(SquaredLoss):
        def evaluate(self, outputs, previous=None):
            return super().evaluate(2.0 * outputs, previous)

    assert Other(np.array([1.0, 2.0]), np.ones(2), 1.0, True).parts == {"plain"}


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (
            interior_point,
            r"The interior-point method requires a loss with mass and dual_weight, which Halves does not define\.",
        ),
        (lambda *problem: wide_master(*problem, np.zeros((1, 2))), r"The solver for wide blocks requires a loss with plain"),
    ],
)
def test_missing_parts_of_a_loss_raise(solver, message):
    design = DenseDesign.of_array(np.ones((5, 1)))
    with pytest.raises(TypeError, match=message):
        solver(design, Halves(), np.array([0, 1]))


def losses_of(kind, rng, n_samples, fit_intercept):
    labels, weight = rng.choice([-1.0, 1.0], n_samples), rng.random(n_samples) + 0.1
    labels[:2], weight[5] = [1.0, -1.0], 0.0
    if kind == "squared hinge":
        return SquaredHinge(labels, weight, 0.7, fit_intercept, importance=1.3)
    if kind == "unit hinge":
        return UnitHinge(labels, weight, 0.7, fit_intercept)
    if kind == "several classes":
        return OneVsRestHinge(np.r_[0, 1, 2, rng.integers(0, 3, n_samples - 3)], 3, weight, 0.7, fit_intercept)
    return SquaredLoss(5.0 + rng.standard_normal(n_samples), weight, 0.7, fit_intercept)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["squared hinge", "unit hinge", "several classes", "squared loss"])
def test_value_conjugate_residual_and_shapes_agree(rng, kind, fit_intercept):
    """Equality of Fenchel and Young, the directional derivative, and the shapes that ``LossState`` promises."""
    n_samples = 30
    loss = losses_of(kind, rng, n_samples, fit_intercept)
    outputs, direction = rng.standard_normal((2, n_samples, loss.n_outputs))
    state = loss.evaluate(outputs)
    assert state.value + state.conjugate == pytest.approx(-(state.residual * outputs).sum(), rel=1e-10)
    step = 1e-6
    change = loss.evaluate(outputs + step * direction).value - loss.evaluate(outputs - step * direction).value
    assert change / (2 * step) == pytest.approx(-(state.residual * direction).sum(), rel=1e-6)
    assert state.residual.shape == state.curvature.shape == loss.strata.shape == loss.signs.shape == outputs.shape
    assert state.intercept.shape == state.margin.shape == (loss.n_outputs,)
    assert state.offsets.shape == (loss.n_outputs, loss.n_strata)
    assert not state.residual[5].any()  # a sample of weight zero
    if fit_intercept:
        np.testing.assert_allclose(state.residual.sum(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(loss.evaluate(outputs + 2.5).intercept, state.intercept - 2.5, rtol=1e-9)
    else:
        assert not state.intercept.any()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_unit_hinge_is_the_least_loss_over_the_offset(rng, fit_intercept):
    loss = losses_of("unit hinge", rng, 30, fit_intercept)
    outputs = rng.standard_normal((30, 1))

    def value(offset):
        slack = np.maximum(1.0 - loss.labels * (outputs[:, 0] + offset), 0.0)
        return 0.5 * 0.7 * (loss.weight * slack**2).sum()

    state = loss.evaluate(outputs)
    best = optimize.minimize_scalar(value).fun if fit_intercept else value(0.0)
    assert state.value == pytest.approx(best, rel=1e-9)
    assert state.value == pytest.approx(value(state.intercept[0]), rel=1e-12)
    assert state.margin.tolist() == [1.0]
    active = loss.labels * (outputs[:, 0] + state.intercept[0]) < 1.0
    np.testing.assert_allclose(state.curvature[:, 0], np.where(active, 0.7 * loss.weight, 0.0))


def test_predictions_from_outputs():
    outputs = np.array([[-0.5], [0.0], [0.5], [2.0]])
    assert SquaredHinge.predict(outputs).tolist() == [0, 0, 1, 1]
    assert SquaredHinge.predict(np.array([[0.1, 0.3, 0.2], [0.5, 0.5, -1.0]])).tolist() == [1, 0]
    assert OneClassHinge.predict(outputs).tolist() == [-1, 1, 1, 1]
    assert SquaredLoss.predict(outputs).tolist() == [-0.5, 0.0, 0.5, 2.0]


def test_outputs_of_the_best_constant_prediction():
    weight = np.array([1.0, 2.0, 3.0])
    assert SquaredHinge.constant_outputs(Targets(np.array([0, 1, 1]), 2), weight) == pytest.approx([5 / 6 - 1 / 6])
    assert SquaredHinge.constant_outputs(Targets(np.array([0, 1, 2]), 3), weight) == pytest.approx([1 / 6, 2 / 6, 3 / 6])
    assert SquaredLoss.constant_outputs(Targets(np.array([1.0, 2.0, 4.0]), 0), weight) == pytest.approx([17 / 6])
    assert OneClassHinge.predict(OneClassHinge.constant_outputs(Targets(np.ones(3), 0), weight)[None]).tolist() == [1]


def test_the_importance_of_a_class_is_the_root_of_its_relative_size():
    codes, weight = np.array([0, 0, 0, 1, 2]), np.array([1.0, 2.0, 1.0, 1.0, 1.0])
    for fit_intercept, n_strata in ((True, 2), (False, 1)):
        loss = OneVsRestHinge(codes, 3, weight, 1.0, fit_intercept)
        np.testing.assert_allclose(loss.mass.sum(axis=1), np.sqrt([2.0, 0.5, 0.5]))
        np.testing.assert_allclose(loss.mass, np.repeat(np.sqrt([[2.0], [0.5], [0.5]]) / n_strata, n_strata, axis=1))
        assert (loss.n_outputs, loss.n_strata, loss.centred) == (3, n_strata, fit_intercept)
        assert [plain.labels.tolist() for plain in loss.plain()] == [
            [1, 1, 1, -1, -1], [-1, -1, -1, 1, -1], [-1, -1, -1, -1, 1]
        ]  # fmt: skip
    equal = OneVsRestHinge(np.array([0, 1, 2]), 3, np.ones(3), 1.0, True)
    np.testing.assert_allclose(equal.mass, 0.5)


def test_losses_of_targets():
    weight = np.ones(4)
    two = SquaredHinge.of(Targets(np.array([0, 1, 1, 0]), 2), weight, 0.3, True)
    assert (type(two), two.labels.tolist(), two.C, two.centred) == (SquaredHinge, [-1, 1, 1, -1], 0.3, True)
    several = SquaredHinge.of(Targets(np.array([0, 1, 2, 0]), 3), weight, 0.3, False)
    assert (type(several), several.n_outputs, several.centred) == (OneVsRestHinge, 3, False)
    one = OneClassHinge.of(Targets(np.array([1, 1, -1, 1]), 0), weight, 0.3, True)
    assert (one.labels.tolist(), one.centred) == ([1, 1, 1, 1], False)
    numbers = SquaredLoss.of(Targets(np.array([1.0, 2.0, 3.0, 4.0]), 0), weight, 0.3, True)
    assert (type(numbers), numbers.targets.tolist(), numbers.constant) == (SquaredLoss, [1, 2, 3, 4], 0.0)
    with pytest.raises(NotImplementedError, match="Halves cannot be the loss of an estimator"):
        Halves.of(Targets(weight, 0), weight, 1.0, True)


def test_merge_keys_separate_classes_and_mark_weights_of_zero():
    weight, labels = np.array([1.0, 0.0, 2.0, 1e-12]), np.array([1.0, 1.0, -1.0, -1.0])
    assert SquaredHinge(labels, weight, 1.0, True).kinds().tolist() == [1, -1, 0, 0]
    assert OneVsRestHinge(np.array([2, 1, 0, 1]), 3, weight, 1.0, True).kinds().tolist() == [2, -1, 0, 1]
    assert SquaredLoss(labels, weight, 1.0, True).kinds().tolist() == [0, -1, 0, 0]


def test_constants_of_the_squared_loss_cancel_in_the_gap(rng):
    targets, weight = rng.standard_normal(6), np.ones(6)
    plain = SquaredLoss(targets, weight, 2.0, True).evaluate(np.zeros((6, 1)))
    moved = SquaredLoss(targets, weight, 2.0, True, constant=3.0).evaluate(np.zeros((6, 1)))
    assert moved.value - plain.value == pytest.approx(3.0)
    assert moved.conjugate - plain.conjugate == pytest.approx(-3.0)


def test_one_sample_of_a_regression_is_its_own_mean():
    state = SquaredLoss(np.array([7.0]), np.ones(1), 1.0, True).evaluate(np.array([[2.0]]))
    assert (state.value, state.conjugate, state.residual.tolist(), state.intercept.tolist()) == (0.0, 0.0, [[0.0]], [5.0])
    state = SquaredLoss(np.array([7.0]), np.ones(1), 2.0, False).evaluate(np.array([[2.0]]))
    assert (state.value, state.residual.tolist(), state.intercept.tolist()) == (25.0, [[10.0]], [0.0])
    assert state.conjugate == 25.0 - 70.0


def test_one_sample_per_class_has_half_of_the_mass():
    state = SquaredHinge(np.array([1.0, -1.0]), np.ones(2), 0.5, True).evaluate(np.array([[3.0], [1.0]]))
    np.testing.assert_allclose(state.residual[:, 0], [0.5, -0.5])
    # Offsets p - 3 = 1 and q + 1 = 1, so the margin is (4 + 0) / 2 and the intercept (0 - 4) / 2.
    np.testing.assert_allclose(state.offsets, [[4.0, 0.0]])
    assert (state.margin[0], state.intercept[0]) == (pytest.approx(2.0), pytest.approx(-2.0))
    assert state.value == pytest.approx(-2.0 + 0.5 * 0.5 * 2)


def test_valid_losses_of_a_parameter():
    for kind, name, other in (("classes", "squared_hinge", "squared"), ("numbers", "squared", "squared_hinge")):
        rule = LossRule(kind)
        assert rule.allows(name)
        assert not rule.allows(other)
        assert rule.allows(SquaredHinge)
        assert not rule.allows(3)
        assert repr(name) in rule.description()
        assert loss_of(SquaredHinge, kind) is SquaredHinge
    assert loss_of("squared", "numbers") is SquaredLoss

    class Half:
        of = predict = staticmethod(len)

    assert not LossRule("classes").allows(Half())
