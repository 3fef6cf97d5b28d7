"""Tests of groups on several targets: their level for correlated targets without effects, and offsets per target."""

import numpy as np
import pytest

from coterie import GroupDiscoveryRegressor, group_confidence
from coterie.confidence.association import null_models
from coterie.confidence.splits import split_tests
from coterie.data import as_source
from coterie.inputs.opening import Input
from coterie.solver.families import HUBER, LEAST_SQUARES, POISSON


def data_of(X, Y, *, offset=None, groups=None):
    names = {"target_names_": np.array([f"target_{c}" for c in range(Y.shape[1])], dtype=object)}
    return Input(as_source(X), X, Y, Y, None, None, None, None, offset, groups, names)


def noise(rng, family, n=80, q=4):
    """Return correlated targets without effects: normal, heavy-tailed or overdispersed counts of different means."""
    common, own = rng.standard_normal((n, 1)), rng.standard_normal((n, q))
    values = np.sqrt(0.6) * common + np.sqrt(0.4) * own
    if family == "huber":
        return values / np.sqrt(rng.chisquare(3, (n, 1)) / 3)
    return rng.poisson(np.exp([0.5, 1.5, 3.0, 1.0] + 0.3 * values)) * 1.0 if family == "poisson" else values


FAMILIES = {"linear": LEAST_SQUARES, "huber": HUBER, "poisson": POISSON}
SLOW = pytest.mark.slow
LEVELS = [("linear", 100), *(pytest.param(family, 300, marks=SLOW) for family in ("linear", "huber", "poisson"))]


@pytest.mark.parametrize(("family", "n_draws"), LEVELS)
def test_the_smallest_p_value_has_its_level(family, n_draws):
    """The smallest of four targets times four, over ten features times ten: at most 5 % of data sets have one below 5 %."""
    rng = np.random.default_rng(5)
    n_false = n_false_in_halves = 0
    for _ in range(n_draws):
        X, Y = rng.standard_normal((80, 10)), noise(rng, family)
        data = data_of(X, Y)
        models = null_models(data, [], np.arange(80), FAMILIES[family])
        assert len(models) == 4
        found = np.array([model.tests(X).p_value for model in models])
        n_false += found.min() * found.size <= 0.05
        half = (np.arange(80) < 40) * 1.0
        selected, fixed = [np.arange(3), np.arange(3)], np.empty(0, dtype=int)
        tests = split_tests(data, [half, 1.0 - half], selected, fixed, 3, FAMILIES[family])
        n_false_in_halves += tests.smallest(np.arange(3))[0] <= 0.05
    limit = 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_draws)
    assert n_false / n_draws <= limit
    assert n_false_in_halves / n_draws <= limit
    if family == "linear":
        assert n_false > 0  # it is not far below its level


def test_every_target_has_its_offset(rng):
    X, offset = rng.standard_normal((200, 3)), rng.standard_normal((200, 2))
    Y = 2.0 * X[:, [0, 1]] + offset + 0.5 * rng.standard_normal((200, 2))
    joint = null_models(data_of(X, Y, offset=offset), [], np.arange(200), LEAST_SQUARES)
    for c, model in enumerate(joint):
        alone = Input(as_source(X), X, Y[:, c], Y[:, c], None, None, None, None, offset[:, c], None, {})
        (reference,) = null_models(alone, [], np.arange(200), LEAST_SQUARES)
        np.testing.assert_allclose(model.residual, reference.residual)
        np.testing.assert_array_equal(model.tests(X).p_value, reference.tests(X).p_value)


def test_a_group_needs_one_target_only(rng):
    """Group 0 acts on one of three targets, group 1 on all: both are found, and no other."""
    X = rng.standard_normal((150, 20))
    X[:, [10, 11]] = X[:, [0, 1]] + 0.4 * rng.standard_normal((150, 2))
    Y = rng.standard_normal((150, 3)) + 0.5 * X[:, [1]]
    Y[:, 2] += X[:, 0]
    groups = np.repeat(np.arange(75), 2)
    model = GroupDiscoveryRegressor(4).fit(X, Y, groups=groups)
    found = group_confidence(model, X, Y, groups=groups, n_pairs=5, n_permutations=1, random_state=0)
    chosen = found.select(fdr=0.1)
    assert sorted(sorted(group.members.tolist()) for group in chosen) == [[0, 10], [1, 11]]
    np.testing.assert_array_equal(np.isnan(found.q_value), False)
