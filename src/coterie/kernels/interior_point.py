r"""The interior-point method of the master problem in one call, for the small problems of compiled paths.

The mathematics is that of :mod:`coterie.solver.interior_point`, which holds the general solver. With
:math:`v = \mu^{1/2} ds`, the system of an output becomes symmetric and positive definite,

.. math::
    \begin{pmatrix} I + \mu^{1/2}G\mu^{1/2} & \mu^{1/2}B \\ B'\mu^{1/2} & K \end{pmatrix}
    \begin{pmatrix} v \\ d\nu \end{pmatrix}
    + \begin{pmatrix} \mu^{1/2}G \\ B' \end{pmatrix} S q = r,

and so is that of q, which couples the outputs. Both are solved by Cholesky factorisations.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel
from coterie.kernels.newton import dot, factorise, solve_columns

_MAX_STEPS = 80
# Largest number of consecutive steps that reduce the complementarity by less than a tenth.
_MAX_STALLED = 4


@kernel()
def _signed_outputs(design, signs, coef, out):
    """Compute the outputs of all samples, multiplied by their signs, by outputs."""
    for c in range(coef.shape[0]):
        for i in range(design.shape[0]):
            out[c, i] = signs[i, c] * dot(design[i], coef[c])


@kernel()
def _signed_scores(design, signs, values, out):
    """Compute the products of all columns with dual variables times the signs of their samples, by outputs."""
    for c in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[c, j] = 0.0
        for i in range(design.shape[0]):
            value = signs[i, c] * values[c, i]
            for j in range(out.shape[1]):
                out[c, j] += value * design[i, j]


@kernel()
def _by_block(left, right, blocks, out):
    """Compute the inner product of two arrays of scores in each block."""
    for t in range(out.shape[0]):
        out[t] = 0.0
        for c in range(left.shape[0]):
            for j in range(blocks[t], blocks[t + 1]):
                out[t] += left[c, j] * right[c, j]


@kernel()
def _factorise_system(design, signs, strata, inverse, blocks, mu, root, scores, gap, factors, response, coupled):
    """Factorise the system of a step. Returns False if it is not positive definite.

    Writes the Cholesky factors of the outputs, their solutions for q, and the factor of the system of q.
    """
    size, n_blocks = design.shape[1], gap.shape[0]
    for t in range(n_blocks):
        for u in range(n_blocks):
            coupled[t, u] = 0.0
        coupled[t, t] = gap[t] / mu[t]
    for c in range(factors.shape[0]):
        factor, solved = factors[c], response[c]
        for a in range(factor.shape[0]):
            for b in range(factor.shape[0]):
                factor[a, b] = 0.0
        for i in range(design.shape[0]):
            row, weight = design[i], inverse[c, i]
            link = factor[size + strata[i, c]]
            for a in range(size):
                scaled, products = weight * row[a], factor[a]
                link[a] += signs[i, c] * scaled
                for b in range(a + 1):
                    products[b] += scaled * row[b]
            link[size + strata[i, c]] += weight
        for t in range(n_blocks):
            for a in range(factor.shape[0]):
                value = 0.0
                for j in range(blocks[t], blocks[t + 1]):
                    value += factor[max(a, j), min(a, j)] * scores[c, j]
                solved[a, t] = root[a] * value
        for a in range(factor.shape[0]):
            for b in range(a + 1):
                factor[a, b] *= root[a] * root[b]
            factor[a, a] += 1.0 if a < size else 0.0
        if not factorise(factor):
            return False
        solve_columns(factor, solved)
        for t in range(n_blocks):
            for j in range(blocks[t], blocks[t + 1]):
                for u in range(t + 1):
                    coupled[t, u] += scores[c, j] / root[j] * solved[j, u]
    return factorise(coupled)


@kernel()
def _longest(values, changes, length):
    """Return the largest step, at most ``length``, that keeps values non-negative."""
    for c in range(values.shape[0]):
        for i in range(values.shape[1]):
            if changes[c, i] < 0.0:
                length = min(length, -values[c, i] / changes[c, i])
    return length


@kernel()
def _longest_in_blocks(mu, mu_step, gap, moved, squares, length):
    r"""Return the largest step, at most ``length``, that keeps the blocks' constraints and multipliers non-negative.

    The constraint after a step x is ``gap + x moved - x² squares``, whose positive root is the limit.
    """
    for t in range(mu.shape[0]):
        if mu_step[t] < 0.0:
            length = min(length, -mu[t] / mu_step[t])
        denominator = np.sqrt(max(moved[t] ** 2 + 4.0 * squares[t] * gap[t], 0.0)) - moved[t]
        if denominator > 0.0:
            length = min(length, 2.0 * gap[t] / denominator)
    return length


@kernel()
def _product(left, left_step, right, right_step, length):
    """Return the sum of the products of two arrays after a step."""
    total = 0.0
    for c in range(left.shape[0]):
        for i in range(left.shape[1]):
            total += (left[c, i] + length * left_step[c, i]) * (right[c, i] + length * right_step[c, i])
    return total


@kernel()
def _move(values, changes, length):
    for c in range(values.shape[0]):
        for i in range(values.shape[1]):
            values[c, i] += length * changes[c, i]


@kernel()
def interior_steps(design, weight, strata, signs, mass, blocks, precision, coef, dual):
    r"""Make primal-dual steps until the complementarity is a share ``precision`` of the objective, or rounding prevents it.

    Parameters
    ----------
    design : ndarray of shape (n_samples, n_features)
        The columns.
    weight : ndarray of shape (n_samples,)
        Positive weights of the samples times C.
    strata, signs : ndarray of shape (n_samples, n_outputs)
        Stratum and sign of each sample.
    mass : ndarray of shape (n_outputs, n_strata)
        Sums of the dual variables of the strata.
    blocks : ndarray of shape (n_blocks + 1,)
        Block t consists of the columns ``blocks[t]:blocks[t + 1]``.
    precision : float
        Share of the objective at which the steps end.
    coef : ndarray of shape (n_outputs, n_features)
        Overwritten by the weights.
    dual : ndarray of shape (n_outputs, n_samples)
        Overwritten by the dual variables, without signs.

    Returns
    -------
    int
        Number of steps.
    """
    (n_samples, size), (n_outputs, n_strata), n_blocks = design.shape, mass.shape, blocks.shape[0] - 1
    by_sample, by_feature = (n_outputs, n_samples), (n_outputs, size)
    alpha, lam, alpha_step, lam_step = np.empty(by_sample), np.empty(by_sample), np.empty(by_sample), np.empty(by_sample)
    slope, push, right_alpha, scaled = np.empty(by_sample), np.empty(by_sample), np.empty(by_sample), np.empty(by_sample)
    inverse, outputs = np.empty(by_sample), np.empty(by_sample)
    scores, scores_step, mixed = np.empty(by_feature), np.empty(by_feature), np.empty(by_feature)
    nu, nu_step, sums = np.zeros(mass.shape), np.empty(mass.shape), np.empty(mass.shape)
    mu, mu_step, pull = np.empty(n_blocks), np.empty(n_blocks), np.empty(n_blocks)
    gap, moved, squares = np.empty(n_blocks), np.empty(n_blocks), np.empty(n_blocks)
    owner, root = np.empty(size, np.int64), np.ones(size + n_strata)
    factors, coupled = np.empty((n_outputs, size + n_strata, size + n_strata)), np.empty((n_blocks, n_blocks))
    response, right = np.empty((n_outputs, size + n_strata, n_blocks)), np.empty((n_outputs, size + n_strata, 1))
    inner = np.empty((n_blocks, 2))
    n_constraints = n_outputs * n_samples + n_blocks

    # A strictly interior point, with weights in proportion to the sample weights within each stratum.
    sums[:, :] = 0.0
    for c in range(n_outputs):
        for i in range(n_samples):
            sums[c, strata[i, c]] += weight[i]
    quadratic = 0.0
    for c in range(n_outputs):
        for i in range(n_samples):
            alpha[c, i] = weight[i] * mass[c, strata[i, c]] / sums[c, strata[i, c]]
            quadratic += 0.5 * alpha[c, i] ** 2 / weight[i]
    _signed_scores(design, signs, alpha, scores)
    _by_block(scores, scores, blocks, squares)
    theta, theta_step = quadratic, 0.0
    for t in range(n_blocks):
        theta = max(theta, 0.75 * squares[t] + quadratic)
    total = 0.0
    for t in range(n_blocks):
        gap[t] = theta - 0.5 * squares[t]
        mu[t] = 1.0 / gap[t]
        total += mu[t]
        for j in range(blocks[t], blocks[t + 1]):
            owner[j] = t
    for t in range(n_blocks):
        mu[t] /= total
    for c in range(n_outputs):
        for i in range(n_samples):
            lam[c, i] = theta / n_constraints / alpha[c, i]

    centrality, least, stalled = np.inf, np.inf, 0
    for step in range(_MAX_STEPS):
        # Scores, stationarity and complementarity of the point.
        _signed_scores(design, signs, alpha, scores)
        _by_block(scores, scores, blocks, squares)
        reached, mu_sum = 0.0, 0.0
        for t in range(n_blocks):
            gap[t] = theta - 0.5 * squares[t]
            reached += mu[t] * gap[t]
            mu_sum += mu[t]
            for j in range(blocks[t], blocks[t + 1]):
                root[j] = np.sqrt(mu[t])
                for c in range(n_outputs):
                    mixed[c, j] = mu[t] * scores[c, j]
        _signed_outputs(design, signs, mixed, outputs)
        quadratic, distance = 0.0, 0.0
        for c in range(n_outputs):
            for i in range(n_samples):
                slope[c, i] = alpha[c, i] / weight[i] + outputs[c, i] - lam[c, i] + nu[c, strata[i, c]]
                quadratic += 0.5 * alpha[c, i] ** 2 / weight[i]
                reached += lam[c, i] * alpha[c, i]
                distance += abs(slope[c, i]) * alpha[c, i]
        # One short step is normal if many constraints are close. Several in a row indicate rounding.
        stalled = 0 if reached < 0.9 * centrality else stalled + 1
        if stalled >= _MAX_STALLED or not np.isfinite(reached):
            break
        centrality = reached
        # In the end rounding degrades the multipliers while the complementarity still decreases, so keep the best point.
        distance += reached + abs(mu_sum - 1.0) * theta
        if step == 0 or distance < least:
            least = distance if step else np.inf
            for c in range(n_outputs):
                for j in range(size):
                    coef[c, j] = mixed[c, j]
                for i in range(n_samples):
                    dual[c, i] = alpha[c, i]
        if centrality <= precision * abs(theta + quadratic):
            break
        for c in range(n_outputs):
            for i in range(n_samples):
                inverse[c, i] = 1.0 / (1.0 / weight[i] + lam[c, i] / alpha[c, i])
        if not _factorise_system(design, signs, strata, inverse, blocks, mu, root, scores, gap, factors, response, coupled):
            break
        # Mehrotra's rule: the length of the first (affine) step determines the amount of centring of the second.
        tau, length = 0.0, 0.0
        alpha_step[:, :] = 0.0
        lam_step[:, :] = 0.0
        mu_step[:] = 0.0
        moved[:] = 0.0
        squares[:] = 0.0
        for corrects in range(2):
            right_theta = mu_sum - 1.0
            for t in range(n_blocks):
                correction = mu[t] * squares[t] - mu_step[t] * (moved[t] - squares[t])
                pull[t] = (tau - mu[t] * gap[t] + correction) / gap[t]
                right_theta += pull[t]
                for c in range(n_outputs):
                    for j in range(blocks[t], blocks[t + 1]):
                        mixed[c, j] = pull[t] * scores[c, j]
            _signed_outputs(design, signs, mixed, outputs)
            for c in range(n_outputs):
                for e in range(n_strata):
                    right[c, size + e, 0] = -mass[c, e]
                for i in range(n_samples):
                    push[c, i] = (tau - lam[c, i] * alpha[c, i] - lam_step[c, i] * alpha_step[c, i]) / alpha[c, i]
                    right_alpha[c, i] = push[c, i] - slope[c, i] - outputs[c, i]
                    scaled[c, i] = inverse[c, i] * right_alpha[c, i]
                    right[c, size + strata[i, c], 0] += scaled[c, i] + alpha[c, i]
            _signed_scores(design, signs, scaled, mixed)
            for t in range(n_blocks):
                inner[t, 0] = 0.0
                inner[t, 1] = 1.0
            for c in range(n_outputs):
                for j in range(size):
                    right[c, j, 0] = root[j] * mixed[c, j]
                solve_columns(factors[c], right[c])
                for j in range(size):
                    inner[owner[j], 0] += scores[c, j] / root[j] * right[c, j, 0]
            solve_columns(coupled, inner)
            above, below = right_theta, 0.0
            for t in range(n_blocks):
                above += inner[t, 0]
                below += inner[t, 1]
            theta_step = above / below
            for t in range(n_blocks):
                inner[t, 0] -= theta_step * inner[t, 1]  # q
            for c in range(n_outputs):
                for a in range(size + n_strata):
                    value = right[c, a, 0]
                    for t in range(n_blocks):
                        value -= response[c, a, t] * inner[t, 0]
                    if a < size:
                        mixed[c, a] = root[a] * value + inner[owner[a], 0] * scores[c, a]
                    else:
                        nu_step[c, a - size] = value
            _signed_outputs(design, signs, mixed, outputs)
            for c in range(n_outputs):
                for i in range(n_samples):
                    free = right_alpha[c, i] - outputs[c, i] - nu_step[c, strata[i, c]]
                    alpha_step[c, i] = inverse[c, i] * free
                    lam_step[c, i] = push[c, i] - lam[c, i] / alpha[c, i] * alpha_step[c, i]
            _signed_scores(design, signs, alpha_step, scores_step)
            _by_block(scores, scores_step, blocks, moved)
            _by_block(scores_step, scores_step, blocks, squares)
            for t in range(n_blocks):
                moved[t] = theta_step - moved[t]
                squares[t] *= 0.5
                mu_step[t] = pull[t] + inner[t, 0]  # More accurate than from the change of the constraint.
            length = _longest(lam, lam_step, _longest(alpha, alpha_step, np.inf))
            length = _longest_in_blocks(mu, mu_step, gap, moved, squares, length)
            if not corrects:
                length = min(length, 1.0)
                ahead = _product(lam, lam_step, alpha, alpha_step, length)
                for t in range(n_blocks):
                    ahead += (mu[t] + length * mu_step[t]) * (gap[t] + length * (moved[t] - length * squares[t]))
                tau = min(1.0, max(ahead, 0.0) / centrality) ** 3 * centrality / n_constraints
        length = min(0.99 * length, 1.0)
        if not length >= 1e-8:
            break
        _move(alpha, alpha_step, length)
        _move(lam, lam_step, length)
        _move(nu, nu_step, length)
        for t in range(n_blocks):
            mu[t] += length * mu_step[t]
        theta += length * theta_step
    return step
