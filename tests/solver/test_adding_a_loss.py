"""The code of the page on losses works: a new loss in about 40 lines, certified like the others."""

import re
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "development" / "adding-a-loss.md"


@pytest.fixture(scope="module")
def code():
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL):
        exec(compile(block, str(PAGE.name), "exec"), names)
    return names


def test_the_loss_satisfies_the_protocol(code, rng):
    y, weight = rng.standard_normal(30), rng.random(30)
    loss = code["ExpectileLoss"](y, weight, 2.0)
    z, d = rng.standard_normal((30, 1)), rng.standard_normal((30, 1))
    state, up, down = loss.evaluate(z), loss.evaluate(z + 1e-6 * d), loss.evaluate(z - 1e-6 * d)
    assert (up.value - down.value) / 2e-6 == pytest.approx(-(state.residual * d).sum(), rel=1e-5)
    assert state.value + state.conjugate == pytest.approx(-(state.residual * z).sum(), rel=1e-12)


def test_the_estimator_is_optimal(code, rng):
    X = rng.standard_normal((120, 40))
    y = X[:, 3] - 0.5 * X[:, 8] + 0.3 * rng.standard_normal(120)
    model = code["model"].set_params(n_features_to_select=4, n_features_per_round=2, standardize=False, C=1.0).fit(X, y)
    assert {3, 8} <= set(model.support_features_.tolist())
    assert max(r.gap for r in model.history_) <= 1e-9
    Z, w = X[:, model.support_features_], cp.Variable(4)
    error = y - Z @ w
    loss = 0.9 * cp.sum_squares(cp.pos(error)) + 0.1 * cp.sum_squares(cp.neg(error))
    task = cp.Problem(cp.Minimize(0.5 * cp.square(cp.norm(w[:2]) + cp.norm(w[2:])) + loss / 2))
    task.solve(solver=cp.CLARABEL)
    assert -model.objective_ == pytest.approx(task.value, rel=1e-6)
    np.testing.assert_allclose(model.support_coef_[0], w.value, atol=1e-4)
