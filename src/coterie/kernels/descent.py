r"""Coordinate descent and proximal steps of the redundancy problem and of penalised least squares.

**Global redundancy minimisation.** Minimising :math:`q(z)/s'z`, :math:`q(z) = z'Az`, over the simplex is equivalent, up to the
scale of x, to minimising the convex function

.. math:: \varphi(x) = \tfrac12 x'Ax - 2\sqrt{(s'x)(1'x)}, \qquad x \ge 0,

whose gradient is :math:`Ax - (s + \tau 1)/\sqrt\tau` with :math:`\tau = s'x/1'x`. Each coordinate in turn takes a Newton step,
truncated at zero. The second derivative of the root term is
:math:`(s_i\,1'x - s'x)^2 / (2 ((s'x)(1'x))^{3/2}) \ge 0`.

**Shrinkage.** Proximal steps of penalties that make coefficients equal: the sorted L1 norm, and fusion over a graph.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel


@kernel()
def _step(value, own, curvature, score, relevance, total):
    """Return the new value of a coordinate, and the relative violation of its optimality condition before the step."""
    root = np.sqrt(relevance * total)
    root_slope = (score * total + relevance) / root
    root_curvature = (score * total - relevance) ** 2 / (2.0 * root * root * root)
    new = max(0.0, value - (own - root_slope) / (curvature + root_curvature))
    if relevance + score * (new - value) < 1e-12 * relevance or total + new - value < 1e-12 * total:
        new = 0.5 * value  # The last relevant feature must not vanish.
    return new, abs(new - value) * (curvature + root_curvature) / root_slope


@kernel()
def _add_scaled(target, row, factor):
    for k in range(target.shape[0]):
        target[k] += factor * row[k]


@kernel()
def descend(matrix, scores, x, product, tol, max_sweeps):
    """Sweep over all coordinates until no violation exceeds ``tol``. Updates ``x`` and ``product`` (= matrix x).

    Returns the number of sweeps.
    """
    relevance, total = 0.0, 0.0
    for i in range(x.shape[0]):
        relevance += scores[i] * x[i]
        total += x[i]
    for sweep in range(max_sweeps):
        largest = 0.0
        for i in range(x.shape[0]):
            new, violation = _step(x[i], product[i], matrix[i, i], scores[i], relevance, total)
            change = new - x[i]
            if change != 0.0:
                largest = max(largest, violation)
                relevance += scores[i] * change
                total += change
                x[i] = new
                _add_scaled(product, matrix[i], change)
        if largest <= tol:
            return sweep + 1
    return max_sweeps


@kernel(reorder=True)
def _dot(a, b):
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@kernel()
def descend_implicit(rows, scores, scatter, x, degree, indptr, indices, strength, sums, tol, max_sweeps):
    r"""Do the same as :func:`descend` without the matrix, for features of unit length in ``rows``.

    In this case :math:`(Ax)_i = f_i'Mf_i` with :math:`M = \sum_i x_i f_i f_i'`. Updates ``scatter`` (M) and ``x``. Prior
    groups are given by the ``indptr`` and ``indices`` of each feature's groups, the sum of their sizes (``degree``), and the
    sum of x over each group (``sums``, which is updated).
    """
    n_samples = rows.shape[1]
    relevance, total = 0.0, 0.0
    for i in range(x.shape[0]):
        relevance += scores[i] * x[i]
        total += x[i]
    for sweep in range(max_sweeps):
        largest = 0.0
        for i in range(x.shape[0]):
            feature = rows[i]
            own = 0.0
            for k in range(n_samples):
                own += feature[k] * _dot(scatter[k], feature)
            curvature = 1.0 + strength * degree[i]
            own += strength * degree[i] * x[i]
            for p in range(indptr[i], indptr[i + 1]):
                own -= strength * sums[indices[p]]
                curvature -= strength
            new, violation = _step(x[i], own, curvature, scores[i], relevance, total)
            change = new - x[i]
            if change != 0.0:
                largest = max(largest, violation)
                relevance += scores[i] * change
                total += change
                x[i] = new
                for k in range(n_samples):
                    _add_scaled(scatter[k], feature, change * feature[k])
                for p in range(indptr[i], indptr[i + 1]):
                    sums[indices[p]] += change
        if largest <= tol:
            return sweep + 1
    return max_sweeps


@kernel()
def decreasing_fit(values, sums, starts):
    """Replace ``values`` by the closest non-increasing, non-negative sequence, by pooling adjacent violators.

    ``sums`` and ``starts`` are buffers with one entry per value.
    """
    n = values.shape[0]
    n_blocks = 0
    for i in range(n):
        sums[n_blocks] = values[i]
        starts[n_blocks] = i
        n_blocks += 1
        end = i + 1
        # A block with a larger mean than the previous block is pooled with it.
        while n_blocks > 1:
            last = sums[n_blocks - 1] / (end - starts[n_blocks - 1])
            before = sums[n_blocks - 2] / (starts[n_blocks - 1] - starts[n_blocks - 2])
            if before > last:
                break
            sums[n_blocks - 2] += sums[n_blocks - 1]
            n_blocks -= 1
    for b in range(n_blocks):
        end = starts[b + 1] if b + 1 < n_blocks else n
        level = max(sums[b] / (end - starts[b]), 0.0)
        for i in range(starts[b], end):
            values[i] = level


@kernel()
def fuse(point, first, second, sign, bound, dual, precision, max_sweeps):
    r"""Apply the proximal step of fusion over a graph to ``point``, by coordinate ascent on the dual.

    The step of :math:`\sum_e b_e |w_{i} - s_e w_{j}|` at v is :math:`u = v - D'z`, where z is the minimiser of
    :math:`\tfrac12\|v - D'z\|^2` over :math:`|z_e| \le b_e`, and edge e has +1 for i and :math:`-s_e` for j. ``point``
    contains v and is replaced by u. ``dual`` contains an initial guess of z and is replaced by z. Stops when no edge changes
    by more than ``precision`` in a sweep. Returns the number of sweeps.
    """
    n_edges = first.shape[0]
    for e in range(n_edges):
        dual[e] = min(max(dual[e], -bound[e]), bound[e])
        point[first[e]] -= dual[e]
        point[second[e]] += sign[e] * dual[e]
    for sweep in range(max_sweeps):
        largest = 0.0
        for e in range(n_edges):
            i = first[e]
            j = second[e]
            old = dual[e]
            new = old + 0.5 * (point[i] - sign[e] * point[j])
            new = min(max(new, -bound[e]), bound[e])
            change = new - old
            if change != 0.0:
                dual[e] = new
                point[i] -= change
                point[j] += sign[e] * change
                largest = max(largest, np.abs(change))
        if largest <= precision:
            return sweep + 1
    return max_sweeps
