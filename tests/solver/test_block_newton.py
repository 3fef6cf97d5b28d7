"""Compiled Newton steps of the block problem, compared with the NumPy version for many weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.kernels.blocks import block_newton
from coterie.kernels.newton import _newton_on_blocks
from coterie.solver.block_problem import _newton_on_active_blocks, block_norms, penalty


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 4), st.booleans())
def test_compiled_and_plain_newton_steps_are_the_same(seed, n_features, n_outputs, singular):
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((n_outputs, 3 if singular else n_features + 5, n_features))
    hessian, linear = columns.transpose(0, 2, 1) @ columns, 3.0 * rng.standard_normal((n_features, n_outputs))
    blocks = np.append(np.flatnonzero(np.append(True, rng.random(n_features - 1) < 0.6)), n_features)
    coef = rng.standard_normal((n_features, n_outputs))
    for t in np.flatnonzero(rng.random(len(blocks) - 1) < 0.2):
        coef[blocks[t] : blocks[t + 1]] = 0.0

    def value(coef):
        curved = np.einsum("cij,jc->ic", hessian, coef)
        return penalty(coef, blocks) + float((coef * (linear + 0.5 * curved)).sum())

    compiled = coef.copy()
    _newton_on_blocks(hessian, linear, blocks, compiled)
    if n_outputs == 1:
        single = coef[:, 0].copy()
        block_newton(hessian[0], linear[:, 0].copy(), blocks, single)
        np.testing.assert_allclose(value(single[:, None]), value(compiled), rtol=1e-9)
    plain = _newton_on_active_blocks(hessian, linear, coef, blocks)
    scale = abs(value(coef)) + np.abs(linear).sum() * np.abs(coef).sum()
    assert value(compiled) <= value(coef) + 1e-12 * scale
    np.testing.assert_array_equal(compiled[coef == 0.0], 0.0)
    if not singular:
        assert abs(value(compiled) - value(plain)) <= 1e-9 * scale


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_newton_steps_end_at_full_precision(n_outputs):
    """The last step changes the objective by less than its rounding, and must be made all the same."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        columns = rng.standard_normal((n_outputs, 30, 8))
        hessian = columns.transpose(0, 2, 1) @ columns
        blocks = np.array([0, 1, 4, 5, 6, 8])
        linear = -np.einsum("cij,jc->ic", hessian, 3.0 + rng.random((8, n_outputs)))
        plain = _newton_on_active_blocks(hessian, linear, np.ones((8, n_outputs)), blocks)
        compiled = np.ones((8, n_outputs))
        _newton_on_blocks(hessian, linear, blocks, compiled)
        found = [plain, compiled]
        if n_outputs == 1:
            found.append(np.ones((8, 1)))
            block_newton(hessian[0], linear[:, 0].copy(), blocks, found[-1][:, 0])
        for coef in found:
            norms = block_norms(coef, blocks)
            slope = (
                linear
                + np.einsum("cij,jc->ic", hessian, coef)
                + norms.sum() * coef / np.repeat(norms, np.diff(blocks))[:, None]
            )
            np.testing.assert_allclose(slope, 0.0, atol=1e-13 * np.abs(linear).max())
