"""Bound on the score of a standardised feature that is constant except in a few samples (see the reference pages)."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coterie import GroupDiscoveryClassifier
from coterie.data import FeatureView, as_source


@given(st.integers(0, 10_000), st.integers(5, 60), st.integers(1, 4), st.floats(-1e3, 1e3))
def test_the_bound(seed, n, k, constant):
    rng = np.random.default_rng(seed)
    residual = rng.standard_normal(n) ** 3
    residual -= residual.mean()
    feature = np.full(n, constant)
    # the worst case: in proportion to the residual where that is largest
    few = np.argsort(-np.abs(residual))[:k]
    feature[few] += residual[few]
    view = FeatureView.of(as_source(feature[:, None]), standardize=True)
    correlation = view.scores(residual[:, None])[0] / (np.sqrt(n) * np.linalg.norm(residual))
    share = np.sort(residual**2)[::-1][:k].sum() / (residual @ residual)
    assert correlation <= np.sqrt(share / (1 - k / n)) + 1e-9
    assert correlation >= 0.9 * np.sqrt(share)  # The bound is tight up to this factor.


def test_true_features_are_found_among_near_constant_ones(rng):
    n = 300
    X = np.zeros((n, 3000))
    X[rng.integers(0, n, 3000), np.arange(3000)] = rng.standard_normal(3000)
    X[:, :6] = rng.standard_normal((n, 6))
    y = X[:, :6].sum(axis=1) + rng.standard_normal(n) > 0
    model = GroupDiscoveryClassifier(6, standardize=True).fit(X, y)
    assert set(model.support_features_.tolist()) == set(range(6))
