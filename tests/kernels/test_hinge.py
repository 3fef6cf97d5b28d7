"""Offsets and squared hinge losses compared with naive code."""

import numpy as np
import pytest

from coterie.kernels import hinge as kernels
from tests import naive


@pytest.mark.parametrize("guess", [np.inf, -100.0, 0.0, 100.0])
@pytest.mark.parametrize("target", [1e-6, 0.3, 50.0])
def test_hinge_offset(rng, guess, target):
    margin, weight = rng.standard_normal(50), rng.random(50)
    weight[:5] = 0.0
    margin[:5] = -50.0
    stratum = rng.integers(0, 2, 50).astype(np.int8)
    for which in (0, 1):
        mine = stratum == which
        counted = mine & (weight > 0)
        value = kernels.hinge_offset(margin[counted], weight[counted], target, guess)
        total = (weight[mine] * np.maximum(value - margin[mine], 0)).sum()
        assert total == pytest.approx(target, rel=1e-12)
        assert value == pytest.approx(naive.eliminate(margin[mine], weight[mine], target), abs=1e-9)


@pytest.mark.parametrize("n_strata", [1, 2])
def test_squared_hinges_of_all_classes_at_once(rng, n_strata):
    n, n_classes, C = 40, 3, 0.7
    outputs, codes, weight = rng.standard_normal((n, n_classes)), rng.integers(0, n_classes, n), rng.random(n)
    weight[::7] = 0.0
    mass = np.tile(rng.random((n_classes, 1)) + 0.5, n_strata) / n_strata
    offsets, residual, curvature = np.empty((n_classes, n_strata)), np.empty((n_classes, n)), np.empty((n_classes, n))
    guess = np.full((n_classes, n_strata), np.inf)
    value, conjugate = kernels.squared_hinges(
        outputs, codes, np.arange(n_classes), weight, C, mass, guess, offsets, residual, curvature
    )
    expected = expected_conjugate = 0.0
    for c in range(n_classes):
        label = np.where(codes == c, 1.0, -1.0)
        stratum = np.where(label > 0, 0, n_strata - 1)
        own = [
            naive.eliminate((label * outputs[:, c])[stratum == e], weight[stratum == e], mass[c, e] / C)
            for e in range(n_strata)
        ]
        np.testing.assert_allclose(offsets[c], own, atol=1e-9)
        slack = np.maximum(np.array(own)[stratum] - label * outputs[:, c], 0.0)
        alpha = C * weight * slack
        np.testing.assert_allclose(residual[c], label * alpha, atol=1e-9)
        np.testing.assert_allclose(curvature[c], np.where(slack > 0, C * weight, 0.0))
        expected += 0.5 * alpha @ slack - mass[c].sum() * np.mean(own)
        expected_conjugate += 0.5 * (alpha[weight > 0] ** 2 / (C * weight[weight > 0])).sum()
    assert value == pytest.approx(expected, abs=1e-9)
    assert conjugate == pytest.approx(expected_conjugate, abs=1e-9)


def test_margins_whose_last_digit_is_larger_than_the_slack_keep_the_sums():
    outputs, codes = np.array([[1e20], [2e20], [-1e20]]), np.array([0, 0, 1])
    offsets, residual, curvature = np.empty((1, 2)), np.empty((1, 3)), np.empty((1, 3))
    kernels.squared_hinges(
        outputs, codes, np.zeros(1, dtype=np.int64), np.ones(3), 1.0, np.full((1, 2), 0.5), np.full((1, 2), np.inf),
        offsets, residual, curvature,
    )  # fmt: skip
    np.testing.assert_allclose(residual, [[0.5, 0.0, -0.5]])


@pytest.mark.parametrize("guess", [-1.0, 0.5, 1.5, 2.5, 10.0, np.inf])
@pytest.mark.parametrize("n_samples", [1, 2, 3])
def test_hinge_offset_of_few_samples_does_not_depend_on_the_first_guess(n_samples, guess):
    """A guess with one active sample is not taken for the solution because one sample is active."""
    margin, weight = np.arange(n_samples, dtype=float), np.ones(n_samples)
    found = kernels.hinge_offset(margin, weight, 5.0, guess)
    assert found == pytest.approx(naive.eliminate(margin, weight, 5.0), rel=1e-12)


@pytest.mark.parametrize("guess", [-30.0, -1.0, 0.0, 0.7, 30.0])
def test_the_offset_of_the_unit_hinge_is_the_minimum(rng, guess):
    for n_samples in (2, 3, 40):
        output, weight = 2.0 * rng.standard_normal(n_samples), rng.random(n_samples) + 0.1
        label = np.where(np.arange(n_samples) % 2 == 0, 1.0, -1.0)
        weight[n_samples - 1] *= n_samples != 40  # a sample of weight zero does not count
        offset = kernels.unit_hinge_offset(output, label, weight, guess)

        def slope(b, output=output, label=label, weight=weight):
            return (-weight * label * np.maximum(1.0 - label * (output + b), 0.0)).sum()

        assert slope(offset) == pytest.approx(0.0, abs=1e-12)
