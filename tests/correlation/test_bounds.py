"""The exact bounds, each tested on the pair that comes closest to it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from coterie.correlation.pearson import PearsonCorrelation
from coterie.data import Exemplar, FeatureView, as_source
from coterie.data.top import CandidateMask
from coterie.search.scores import LazyScores


def strongest_on(samples, z, weight):
    """Return the largest |correlation| with z of a feature that is zero outside some samples (weighted least squares)."""
    n = len(z)
    centring = np.eye(n) - np.outer(np.ones(n), weight / weight.sum())
    root = np.sqrt(weight)[:, None]
    basis = root * (centring @ np.eye(n)[:, samples])
    target = root[:, 0] * (centring @ z)
    coefficients = np.linalg.lstsq(basis, target, rcond=None)[0]
    return np.linalg.norm(basis @ coefficients) / np.linalg.norm(target), coefficients


@given(
    seed=st.integers(0, 10**6),
    n_samples=st.integers(4, 14),
    signed=st.booleans(),
    weighted=st.booleans(),
    threshold=st.sampled_from([0.3, 0.6, 0.8, 0.95]),
    density=st.floats(0.2, 1.0),
)
def test_size_bound_keeps_the_best_feature_of_every_size(seed, n_samples, signed, weighted, threshold, density):
    rng = np.random.default_rng(seed)
    z = rng.exponential(1.0, n_samples) * (rng.random(n_samples) < density)
    if signed:
        z *= rng.choice([-1.0, 1.0], n_samples)
    z[0], z[1] = 1.0, 0.0
    weight = rng.random(n_samples) + 0.1 if weighted else np.ones(n_samples)
    for count in range(1, n_samples):
        # The largest entries, those farthest from the mean, and random ones.
        choices = (np.argsort(-np.abs(z)), np.argsort(-np.abs(z - z.mean())), rng.permutation(n_samples))
        for order in choices:
            samples = order[:count]
            best, values = strongest_on(samples, z, weight)
            if best < threshold + 1e-6:
                continue
            f = np.zeros(n_samples)
            f[samples] = values
            if not signed and (values < 0).any():
                f = np.abs(f)  # The non-negative bound applies to non-negative data only.
            view = FeatureView.of(as_source(sparse.csc_array(np.c_[z, f])), weight if weighted else None)
            if view.moments.norm[1] == 0.0:
                continue
            correlation = PearsonCorrelation(view)
            truth = abs(correlation.between(np.array([1]), np.array([0]))[0, 0])
            feature, _, _ = correlation.strong(np.array([0]), threshold)
            assert (1 in feature) == (truth >= threshold - 1e-10)


@pytest.mark.parametrize("threshold", [0.3, 0.7, 0.95])
@pytest.mark.parametrize("support_angle", [0.05, 0.6, 1.2, 1.55])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_angle_bound_keeps_features_in_the_plane_of_exemplar_and_support(threshold, support_angle, layout):
    rng = np.random.default_rng(0)
    n = 30
    centred = rng.standard_normal((n, 2))
    centred -= centred.mean(axis=0)
    a, b = np.linalg.qr(centred)[0].T
    width = np.arccos(threshold)
    inside = [support_angle + s * width for s in (-0.999, -0.5, 0.5, 0.999)]
    outside = [support_angle + s * width for s in (-1.01, 1.01)]
    angles = [support_angle, *inside, *outside]
    X = np.column_stack([np.cos(t) * a + np.sin(t) * b for t in angles]) * 3.0 + 0.5
    correlation = PearsonCorrelation(FeatureView.of(as_source(X if layout == "dense" else sparse.csc_array(X))))
    exemplar = Exemplar((X - X.mean(axis=0)).T @ a, 0.0, 1.0)
    lowest, highest = correlation._angle_intervals(np.array([0]), threshold, exemplar)
    feature, _, value = correlation.strong(np.array([0]), threshold, exemplar)
    expected = [j for j, t in enumerate(angles) if abs(np.cos(t - support_angle)) >= threshold]
    assert feature.tolist() == expected
    np.testing.assert_allclose(value, np.cos(np.array(angles)[feature] - support_angle), atol=1e-9)
    r = np.abs(np.cos(angles))
    assert ((r >= lowest[0]) & (r <= highest[0]))[expected].all()


def test_angle_bound_excludes_something():
    """A bound that excludes nothing would pass the tests above."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 200))
    a = X[:, 0] - X[:, 0].mean()
    X[:, 1] = X[:, 0] + 0.01 * X[:, 1]
    correlation = PearsonCorrelation(FeatureView.of(as_source(X)))
    exemplar = Exemplar((X - X.mean(axis=0)).T @ a, 0.0, float(np.linalg.norm(a)))
    correlation.strong(np.array([0]), 0.9, exemplar)
    assert correlation.n_evaluated < 20


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_norm_bound_does_not_hide_an_aligned_feature(centred, standardize, weighted):
    """A small feature along the residual attains the bound. Larger features with smaller scores must rank below it."""
    rng = np.random.default_rng(2)
    n = 50
    weight = 0.01 * rng.random(n) + 1e-4 if weighted else np.ones(n)
    # In the weighted inner product: the centred residual over the weights, and columns orthogonal to it.
    exemplar = rng.standard_normal(n)
    exemplar -= np.average(exemplar, weights=weight)
    residual = (weight * exemplar)[:, None]
    unit = exemplar / np.sqrt(weight @ exemplar**2)
    across = rng.standard_normal((n, 6))
    across -= np.average(across, axis=0, weights=weight)
    across -= np.outer(unit, (weight * unit) @ across)
    across /= np.sqrt(weight @ across**2)
    columns = [unit]
    for j, norm in enumerate([1.5, 2.1, 4.3, 9.0, 33.0, 150.0]):
        score = 0.95 - 0.1 * j
        columns.append(score * unit + np.sqrt(norm**2 - score**2) * across[:, j])
    X = np.column_stack(columns)
    view = FeatureView.of(as_source(X), weight if weighted else None, standardize=standardize, centred=centred)
    order = np.concatenate([chunk for chunk, _ in LazyScores(view, residual).descend(CandidateMask(view.moments), 1)])
    assert order.tolist() == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("weighting", ["none", "weights", "fold"])
@pytest.mark.parametrize("ratio", [1e5, 1e7, -1e9])
def test_sparse_features_far_from_zero(ratio, weighting):
    """Products of stored values lose most digits if a mean is a million standard deviations from zero."""
    rng = np.random.default_rng(1)
    n = 120
    common = rng.standard_normal(n)
    far = ratio + common[:, None] * [1.0, -1.0, 0.0] + rng.standard_normal((n, 3))
    near = common[:, None] + rng.standard_normal((n, 2))
    rare = (rng.random((n, 4)) < 0.2) * (1.0 + common[:, None])
    X = np.c_[near, far, rare]
    weight = None if weighting == "none" else rng.random(n) + 0.1
    if weighting == "fold":
        weight = np.repeat([1.0, 0.0], [n - 30, 30])
        X[-30:] = 0.0
    used = np.ones(n) if weight is None else weight
    exact = X.astype(np.longdouble)
    exact = np.sqrt(used)[:, None] * (exact - np.average(exact, axis=0, weights=used))
    exact /= np.sqrt((exact**2).sum(axis=0))
    C = np.asarray(exact.T @ exact, dtype=float)
    correlation = PearsonCorrelation(FeatureView.of(as_source(sparse.csc_array(X)), weight))
    features, supports = np.arange(9), np.array([3, 0, 8, 2])
    np.testing.assert_allclose(correlation.within(features), C, atol=1e-10)
    np.testing.assert_allclose(correlation.between(features, supports), C[:, supports], atol=1e-10)
    # The scores of far features lose most digits, too, so the angle bound must not use them.
    residual = rng.standard_normal(n)
    residual -= np.average(residual, weights=used)
    scores = used * residual @ (X - np.average(X, axis=0, weights=used))
    scores[2:5] = correlation.moments.norm[2:5] * np.sqrt(used @ residual**2)
    exemplar = Exemplar(scores, 0.0, float(np.sqrt(used @ residual**2)))
    for threshold, known, supports in (
        *((threshold, None, np.array([3, 0, 8, 2])) for threshold in (0.0, 0.3, 0.5)),
        (0.3, exemplar, np.array([3, 2])),
    ):
        feature, position, value = correlation.strong(supports, threshold, known)
        expected = np.argwhere(np.abs(C[:, supports]) >= threshold)
        np.testing.assert_array_equal(np.c_[feature, position], expected)
        np.testing.assert_allclose(value, C[feature, supports[position]], atol=1e-10)
