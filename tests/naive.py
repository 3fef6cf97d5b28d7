"""Slow, simple reference implementations that do not use the package."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def dense(X):
    return np.asarray(X.todense() if sparse.issparse(X) else X, dtype=np.float64)


def mean(X, weight=None):
    return np.average(dense(X), axis=0, weights=weight)


def norm(X, weight=None):
    """Return the norm of each centred column in the weighted inner product."""
    A = dense(X)
    w = np.ones(len(A)) if weight is None else np.asarray(weight, dtype=float)
    centred = A - mean(A, weight)
    result = np.sqrt((w[:, None] * centred**2).sum(axis=0))
    for j in range(A.shape[1]):
        if len(set(A[w > 0, j])) == 1:
            result[j] = 0.0
    return result


def correlation(X, weight=None):
    """Return the matrix of all correlations, 0 for constant columns."""
    A = dense(X)
    w = np.ones(len(A)) if weight is None else np.asarray(weight, dtype=float)
    centred = A - mean(A, weight)
    size = norm(A, weight)
    safe = np.where(size > 0, size, 1.0)
    matrix = (centred.T @ (w[:, None] * centred)) / np.outer(safe, safe)
    matrix[size == 0] = 0.0
    matrix[:, size == 0] = 0.0
    return np.clip(matrix, -1, 1)


def complete_groups(X, supports, threshold, weight=None):
    """Assign every feature to its best support feature: dict support -> set of affiliated features."""
    C = np.abs(correlation(X, weight))
    groups = {int(z): set() for z in supports}
    for j in range(C.shape[0]):
        if j in groups:
            continue
        best = max(C[j, z] for z in supports)
        if best >= threshold - 1e-10:
            winner = next(z for z in supports if C[j, z] >= best - 1e-10)
            groups[int(winner)].add(j)
    return groups


def walk(scores, C, supports, n_new, threshold, excluded=()):
    """Return the new support features and other encountered features of one round of TPAMI Algorithm 2."""
    supports = list(supports)
    new, encountered = [], set()
    for j in np.argsort(-np.abs(scores), kind="stable"):
        if len(new) == n_new:
            break
        if C[j, j] == 0.0 or j in supports or j in excluded:
            continue
        if any(abs(C[j, z]) >= threshold - 1e-10 for z in supports):
            encountered.add(int(j))
        else:
            new.append(int(j))
            supports.append(int(j))
    return new, encountered


def ranked_groups(X, supports, encountered, threshold, weight=None):
    """Assign the encountered features to their best support features: dict support -> set of affiliated features."""
    return {z: members & set(encountered) for z, members in complete_groups(X, supports, threshold, weight).items()}


def eliminate(margin, weight, target):
    """Return gamma with sum w (gamma - margin)_+ = target, by bisection."""
    low, high = margin.min() - 1.0, margin.max() + target / weight[weight > 0].min() + 1.0
    for _ in range(300):
        middle = (low + high) / 2
        if (weight * np.maximum(middle - margin, 0)).sum() > target:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def primal(X, y, coef, blocks, C, weight, fit_intercept):
    """Return the primal objective of the master problem, with offsets eliminated by bisection."""
    output = dense(X) @ coef
    if fit_intercept:
        p = eliminate(output[y > 0], weight[y > 0], 0.5 / C)
        q = eliminate(-output[y < 0], weight[y < 0], 0.5 / C)
        gamma, b = (p + q) / 2, (q - p) / 2
    else:
        gamma, b = eliminate(y * output, weight, 1.0 / C), 0.0
    slack = np.maximum(gamma - y * (output + b), 0)
    norms = sum(np.linalg.norm(coef[block]) for block in blocks)
    return 0.5 * norms**2 - gamma + 0.5 * C * (weight * slack**2).sum()


def dual(X, alpha_signed, blocks, C, weight):
    """Return the dual objective at signed dual variables."""
    scores = dense(X).T @ alpha_signed
    used = weight > 0
    squares = (alpha_signed[used] ** 2 / weight[used]).sum()
    return max(0.5 * (scores[block] ** 2).sum() for block in blocks) + squares / (2 * C)


def content(X):
    """Return the product of each column with a fixed random vector, which breaks ties."""
    A = dense(X)
    return A.T @ np.random.default_rng(20120626).standard_normal(len(A))


def order(X, scores, names=None, tie=1e-10):
    """Return features by decreasing score, ties by content, equal columns by name or position."""
    values, prints = np.asarray(scores, dtype=float), content(X)
    left = sorted(range(len(values)), key=lambda j: -values[j])
    result = []
    while left:
        level = [j for j in left if values[left[0]] - values[j] <= tie * np.abs(values).max()]
        result += sorted(level, key=lambda j: (-prints[j], str(names[j]) if names else j))
        left = [j for j in left if j not in level]
    return result
