"""Shared fixtures: small data with groups, and real data if available."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from scipy import sparse

from coterie.datasets import make_support_affiliated

# Results of the suite must be reproducible. HYPOTHESIS_PROFILE=search looks for new examples.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(scope="session")
def planted():
    """Return 300 x 80 data with 4 groups of 11 true features, which are easily found completely."""
    return make_support_affiliated(300, 80, n_support=4, n_true=11, random_state=3)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def grouped_matrix(rng, n_samples=60, n_features=40, n_factors=8, noise=0.4):
    """Return a matrix with groups of correlated columns, and labels that depend on some of them."""
    factors = rng.standard_normal((n_samples, n_factors))
    owner = rng.integers(0, n_factors, n_features)
    X = factors[:, owner] * rng.choice([-1.0, 1.0], n_features) + noise * rng.standard_normal((n_samples, n_features))
    y = np.where(factors[:, 0] + 0.5 * factors[:, 1] + 0.3 * rng.standard_normal(n_samples) > 0, 1, -1)
    y[:2], y[2:4] = 1, -1
    return X, y


def sparse_counts(rng, n_samples=80, n_features=120, density=0.08, n_copies=30):
    """Return sparse non-negative counts with near copies of some columns, as in text."""
    X = rng.poisson(1.0, (n_samples, n_features)) * (rng.random((n_samples, n_features)) < density)
    for j in rng.choice(n_features, n_copies, replace=False):
        k = rng.integers(n_features)
        X[:, j] = X[:, k] * (rng.random(n_samples) < 0.9)
    y = np.where(X[:, :5].sum(axis=1) + 0.5 * rng.standard_normal(n_samples) > np.median(X[:, :5].sum(axis=1)), 1, -1)
    y[:2], y[2:4] = 1, -1
    return X.astype(np.float64), y


def data_folder() -> Path | None:
    """Return the folder of the real data sets: $COTERIE_DATA, then ../shared/data."""
    candidates = [os.environ.get("COTERIE_DATA"), Path(__file__).resolve().parents[2] / "shared" / "data"]
    return next((Path(c) for c in candidates if c and Path(c).is_dir()), None)


@pytest.fixture(scope="session")
def real_data():
    folder = data_folder()
    if folder is None:
        pytest.skip("real data sets not found in $COTERIE_DATA or ../shared/data")
    return folder


def random_sparse(rng, shape, **options):
    """Call ``scipy.sparse.random_array``, whose generator argument has another name before SciPy 1.15."""
    name = "rng" if "rng" in inspect.signature(sparse.random_array).parameters else "random_state"
    return sparse.random_array(shape, **{name: rng}, **options)
