"""Fits of Coterie and of L1 models that can be sent to a fresh process, and the C for a given number of features."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
from _timing import measure
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC, l1_min_c

from coterie import GroupDiscoveryClassifier

Fit = Callable[[Any, np.ndarray], Any]


def fit_ours(X: Any, y: np.ndarray, **parameters: Any) -> GroupDiscoveryClassifier:
    """Fit Coterie's group discovery."""
    return GroupDiscoveryClassifier(**{"C": 1.0, "standardize": False, **parameters}).fit(X, y)  # as in the papers


def fit_l1_svm(X: Any, y: np.ndarray, C: float) -> LinearSVC:
    """Fit the L1-regularised linear SVM of liblinear, which is fastest on sample-major data (CSR, C order)."""
    return LinearSVC(penalty="l1", dual=False, C=C, random_state=0).fit(X, y)


def fit_celer(X: Any, y: np.ndarray, C: float) -> Any:
    """Fit celer's L1 logistic regression, which is fastest on feature-major data (CSC, F order)."""
    from celer import LogisticRegression

    return LogisticRegression(penalty="l1", C=C).fit(X, y)


def fit_slope(X: Any, y: np.ndarray, C: float) -> Any:
    """Fit SLOPE with the logistic loss; ``C`` is the inverse of its penalty."""
    from sortedl1 import Slope

    return Slope(alpha=1.0 / C, loss="logistic").fit(X, (y > 0).astype(np.float64))


def selected_features(model: Any) -> np.ndarray | None:
    """Return the indices of the selected features, in order of selection if the model has one."""
    if hasattr(model, "support_features_"):
        return np.asarray(model.support_features_)
    if hasattr(model, "coef_"):
        return np.flatnonzero(np.ravel(model.coef_))
    if hasattr(model, "get_support"):
        return np.flatnonzero(model.get_support())
    return None


def toy_like(X: Any, n_samples: int = 200, n_features: int = 300) -> tuple[Any, np.ndarray]:
    """Return small random data of the same dtype and layout, to compile kernels and load libraries before timing."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n_samples) % 2, 1, -1)
    if not sparse.issparse(X):
        values = (10 * rng.standard_normal((n_samples, n_features))).astype(X.dtype)
        return np.asarray(values, order="F" if X.flags.f_contiguous else "C"), y
    values = rng.integers(1, 5, size=(n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.2)
    toy = sparse.csc_array(values.astype(X.dtype)).asformat(X.format)
    toy.indices, toy.indptr = toy.indices.astype(X.indices.dtype), toy.indptr.astype(X.indptr.dtype)
    return toy, y


def warm_up(fit: Fit, X: Any) -> None:
    """Fit toy data with the dtype and layout of X once."""
    with warnings_counted():
        fit(*toy_like(X))


@contextmanager
def warnings_counted() -> Iterator[list[Any]]:
    """Suppress warnings; the list of convergence warnings is complete when the block ends."""
    unconverged: list[Any] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield unconverged
    unconverged += [one for one in caught if issubclass(one.category, ConvergenceWarning)]


@dataclass(frozen=True)
class Tuned:
    """A regularised model with about the requested number of features, and the time of its fit."""

    model: Any
    C: float
    n_features: int
    seconds: float
    n_fits: int


def tune(
    fit: Callable[..., Any],
    X: Any,
    y: np.ndarray,
    n_features: int,
    start: float,
    max_fits: int = 16,
    max_seconds: float = np.inf,
) -> Tuned:
    """Choose C by bisection on log C so that ``fit(X, y, C)`` selects about ``n_features``.

    From ``start``, C is doubled or halved until the requested number lies between two fits. A low start is cheap, because
    models with few features are fitted fast. The search ends within 2 % of the number, or when C hardly changes. No fit
    starts after ``max_seconds``.
    """
    low = high = best = None
    C, n_fits, began = start, 0, time.perf_counter()
    while n_fits < max_fits and (not n_fits or time.perf_counter() - began < max_seconds):
        with warnings_counted():
            timing = measure(partial(fit, X, y, C), 1)
        n_fits += 1
        features = selected_features(timing.result)
        count = 0 if features is None else len(features)
        if best is None or abs(count - n_features) < abs(best.n_features - n_features):
            best = Tuned(timing.result, C, count, timing.best, n_fits)
        if abs(count - n_features) <= 0.02 * n_features or (low and high and high / low < 1.002):
            break
        low, high = (C, high) if count < n_features else (low, C)
        C = sqrt(low * high) if low and high else 2.0 * C if low else 0.5 * C
    assert best is not None
    return Tuned(best.model, best.C, best.n_features, best.seconds, n_fits)


def tune_l1_svm(X: Any, y: np.ndarray, n_features: int) -> Tuned:
    """Return an L1-SVM with about ``n_features`` features."""
    return tune(fit_l1_svm, X, y, n_features, 2.0 * l1_min_c(X, y, loss="squared_hinge"))


def tune_celer(X: Any, y: np.ndarray, n_features: int) -> Tuned:
    """Return celer's L1 logistic regression with about ``n_features`` features."""
    return tune(fit_celer, X, y, n_features, 1.5 * l1_min_c(X, y, loss="log", fit_intercept=False))
