"""Ranks compared with the definition, pair by pair; also with the compiler off."""

import numpy as np
import pytest
from scipy import sparse

from coterie.correlation import SpearmanCorrelation
from coterie.data import FeatureView, as_source


def naive_ranks(x, weight):
    """Return the weight of the smaller values plus half of that of equal values, minus half of the total."""
    return np.array([weight[x < v].sum() + 0.5 * weight[x == v].sum() - 0.5 * weight.sum() for v in x])


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_ranks_are_those_of_the_definition(rng, kind, weighted):
    X = rng.integers(0 if kind is np.uint8 else -2, 4, (15, 6)).astype(kind)
    X[:, 2] = 1
    weight = rng.integers(0, 3, 15) + 0.25 * rng.integers(0, 2, 15) if weighted else np.ones(15)
    for form in (X, sparse.csc_array(X)):
        view = FeatureView.of(as_source(form), weight if weighted else None)
        ranks = SpearmanCorrelation(view)._ranks(np.arange(6), view.columns(np.arange(6)))
        assert ranks.moments.norm[2] == 0.0
        for j in (0, 1, 3, 4, 5):
            expected = naive_ranks(X[:, j], weight)
            values = ranks.source.columns(np.array([j]))
            values = values if isinstance(values, np.ndarray) else values.toarray()
            np.testing.assert_allclose((values[:, 0] - ranks.moments.mean[j])[weight > 0], expected[weight > 0], atol=1e-12)
            assert ranks.moments.norm[j] == pytest.approx(np.sqrt(weight @ expected**2))
            assert np.average(expected, weights=weight) == pytest.approx(0.0, abs=1e-12)
