"""Null models and joint tests of the families by their definitions."""

import numpy as np
import pytest

from coterie.solver.families import CLASSES, HUBER, LEAST_SQUARES, homogeneous
from coterie.solver.regression import huber_fit, least_squares_tests


@pytest.fixture
def design(rng):
    return np.column_stack([np.ones(60), rng.standard_normal((60, 2))])


def test_homogeneous_moments(rng, design):
    residual, weight = rng.exponential(size=60) - 1.0, rng.integers(1, 4, 60).astype(float)
    found = homogeneous(design, residual, weight)
    assert found.freedom == weight.sum() - 3
    assert found.variance == pytest.approx(np.full(60, weight @ residual**2 / (weight.sum() - 3)))
    assert found.third == pytest.approx(np.full(60, weight @ residual**3 / weight.sum()))


@pytest.mark.parametrize("family", [LEAST_SQUARES, HUBER])
def test_offsets_are_subtracted(rng, design, family):
    y, offset, weight = 3.0 + rng.standard_t(2, 60), rng.standard_normal(60), rng.random(60) + 0.5
    for method in (family.effects, family.tests):
        found, expected = method(design, y, weight, offset=offset), method(design, y - offset, weight)
        assert found.effect == pytest.approx(expected.effect)
        assert found.error == pytest.approx(expected.error)
    found, expected = family.null(design, y, weight, offset), family.null(design, y - offset, weight)
    assert found.residual == pytest.approx(expected.residual)


def test_joint_tests_of_numbers_are_those_of_least_squares(rng, design):
    y, weight = rng.standard_normal(60), np.ones(60)
    expected = least_squares_tests(design, y, weight)
    assert LEAST_SQUARES.tests(design, y, weight).p_value == pytest.approx(expected.p_value)
    assert HUBER.tests(design, y, weight).effect == pytest.approx(huber_fit(design, y, weight).estimate.effect)


def test_residuals_of_the_huber_null_model_are_cut(rng, design):
    y = design[:, 1] + rng.standard_t(1, 60)
    found = HUBER.null(design, y, np.ones(60))
    fit = huber_fit(design, y, np.ones(60))
    error = y - design @ fit.estimate.effect
    limit = np.abs(found.residual).max()
    assert found.residual == pytest.approx(np.clip(error, -limit, limit))
    assert limit < np.abs(error).max()


def test_classes_without_features_have_the_weighted_share(rng):
    labels, weight = (rng.random(30) < 0.3).astype(float), rng.integers(1, 4, 30).astype(float)
    share = weight @ labels / weight.sum()
    found = CLASSES.null(np.ones((30, 1)), labels, weight)
    assert found.residual == pytest.approx(labels - share, abs=1e-14)
    assert found.variance == pytest.approx(np.full(30, share * (1 - share)))
    assert found.third == pytest.approx(np.full(30, share * (1 - share) * (1 - 2 * share)))
