r"""Kernels of the squared hinge losses: eliminated offsets, and the losses of all outputs in one call."""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# Samples per partial sum. Partial sums lose fewer digits in sums over millions of samples.
_SUM_SAMPLES = 512


@kernel(reorder=True)
def _active_sums(margin, weight, offset):
    """Return number, total weight and weighted sum of the margins below an offset. Has no branches, for speed."""
    count = 0
    total = 0.0
    moment = 0.0
    for i in range(margin.shape[0]):
        active = weight[i] if margin[i] < offset else 0.0
        count += margin[i] < offset
        total += active
        moment += active * margin[i]
    return count, total, moment


@kernel()
def hinge_offset(margin, weight, target, guess):
    r"""Return the :math:`\gamma` with :math:`\sum_i \omega_i (\gamma - m_i)_+ = target`. All weights are positive.

    The left-hand side is convex, increasing and piecewise linear in :math:`\gamma`. So the first step of Newton's method
    goes to the right of the root, the following steps decrease to it monotonically, and the method ends exactly when the
    active set does not change. This takes a few linear passes and no sort.
    """
    offset = guess
    n_active = -1
    from_far_right = offset == np.inf
    for _ in range(200):
        count, total, moment = _active_sums(margin, weight, offset)
        if count == 0:
            if from_far_right:  # The target is less than the last digit of the smallest margin.
                break
            offset = np.inf  # The offset is below every margin: restart from infinity.
            n_active = -1
            from_far_right = True
            continue
        updated = (target + moment) / total
        if count == n_active and updated >= offset:
            break
        if count == n_active and abs(updated - offset) <= 1e-15 * max(abs(updated), abs(offset)):
            break
        offset = updated
        n_active = count
    return offset


@kernel()
def unit_hinge_offset(output, label, weight, guess):
    r"""Return the b that minimises :math:`\sum_i \omega_i (1 - y_i(z_i + b))_+^2`.

    The derivative is increasing and piecewise linear. Newton's method, bracketed between a point with a negative and one with
    a positive derivative, ends exactly when the active set does not change.
    """
    low = -np.inf
    high = np.inf
    offset = guess
    for _ in range(200):
        total = 0.0
        moment = 0.0
        for i in range(output.shape[0]):
            if weight[i] > 0.0 and label[i] * (output[i] + offset) < 1.0:
                total += weight[i]
                moment += weight[i] * (label[i] - output[i])
        if total == 0.0:  # The loss is zero, so this offset is optimal.
            break
        slope = offset * total - moment
        if slope < 0.0:
            low = offset
        elif slope > 0.0:
            high = offset
        else:
            break
        updated = moment / total
        if not low < updated < high:
            if low == -np.inf or high == np.inf:
                break
            updated = 0.5 * (low + high)
        if abs(updated - offset) <= 1e-15 * max(abs(updated), abs(offset)):
            break
        offset = updated
    return offset


@kernel()
def unit_hinge(output, label, weight, C, fit_intercept, guess, residual, curvature):
    r"""Evaluate the squared hinge loss with a margin of 1. Writes ``residual`` and ``curvature``.

    Returns the value, the conjugate and the offset. With an intercept, the dual variables of both classes are rescaled to
    equal sums, which removes the effect of rounding in the offset.
    """
    offset = unit_hinge_offset(output, label, weight, guess) if fit_intercept else 0.0
    value = 0.0
    positive = 0.0
    negative = 0.0
    for i in range(output.shape[0]):
        slack = max(1.0 - label[i] * (output[i] + offset), 0.0)
        alpha = C * weight[i] * slack
        value += 0.5 * alpha * slack
        positive += alpha if label[i] > 0.0 else 0.0
        negative += 0.0 if label[i] > 0.0 else alpha
        residual[i] = alpha * label[i]
        curvature[i] = C * weight[i] if slack > 0.0 else 0.0
    rescale = fit_intercept and min(positive, negative) > 0.0
    up = np.sqrt(negative / positive) if rescale else 1.0
    down = np.sqrt(positive / negative) if rescale else 1.0
    conjugate = 0.0
    for i in range(output.shape[0]):
        residual[i] *= up if label[i] > 0.0 else down
        if weight[i] > 0.0:
            conjugate += 0.5 * residual[i] ** 2 / (C * weight[i]) - residual[i] * label[i]
    return value, conjugate, offset


@kernel(reorder=True)
def _slacks(margin, stratum, weight, C, offsets, residual, curvature):
    """Compute dual variables and curvature of some samples of an output.

    Returns the sums of the dual variables, and of their products with the slack, for the first and the last stratum.
    """
    first, first_squares, last, last_squares = 0.0, 0.0, 0.0, 0.0
    low, high = offsets[0], offsets[-1]
    several = len(offsets) > 1
    for i in range(margin.shape[0]):
        is_first = several and stratum[i] == 0
        slack = max((low if is_first else high) - margin[i], 0.0)
        alpha = C * weight[i] * slack
        residual[i] = alpha
        curvature[i] = C * weight[i] if slack > 0.0 else 0.0
        first += alpha if is_first else 0.0
        first_squares += alpha * slack if is_first else 0.0
        last += 0.0 if is_first else alpha
        last_squares += 0.0 if is_first else alpha * slack
    return first, first_squares, last, last_squares


@kernel()
def _sign(residual, stratum, codes, positive, first, last):
    """Multiply dual variables by the factor of their stratum (first or last) and by the sign of their class."""
    for i in range(residual.shape[0]):
        factor = last if stratum[i] else first
        factor = factor if codes[i] == positive else -factor
        residual[i] = factor * residual[i] if residual[i] != 0.0 else 0.0


@kernel()
def _pack(outputs, codes, positive, weight, margin, stratum, packed, n_packed):
    """Compute margins and strata of an output's samples, and pack margins and weights of those with weight, by stratum."""
    last = len(n_packed) - 1
    n_packed[:] = 0
    for i in range(len(codes)):
        own = codes[i] == positive
        e = 0 if own else last
        margin[i] = outputs[i] if own else -outputs[i]
        stratum[i] = e
        packed[e, 0, n_packed[e]] = margin[i]
        packed[e, 1, n_packed[e]] = weight[i]
        n_packed[e] += weight[i] > 0.0


@kernel()
def squared_hinges(outputs, codes, classes, weight, C, mass, guess, offsets, residual, curvature):
    r"""Return value and conjugate of the squared hinge losses of some classes against the others, with offsets eliminated.

    Output c is positive for the samples whose code is ``classes[c]``. ``guess`` contains initial offsets. ``offsets``
    (outputs, strata), ``residual`` and ``curvature`` (outputs, samples) are written. See ``SquaredHinge`` for the mathematics.
    """
    n_samples, n_outputs = outputs.shape
    n_strata = mass.shape[1]
    margin = np.empty(n_samples)
    stratum = np.empty(n_samples, np.int8)
    packed = np.empty((n_strata, 2, n_samples))  # Margins and weights of the samples with weight, by stratum.
    n_packed = np.empty(n_strata, np.int64)
    sums = np.empty(n_strata)
    squares = np.empty(n_strata)
    value = 0.0
    conjugate = 0.0
    for c in range(n_outputs):
        _pack(outputs[:, c], codes, classes[c], weight, margin, stratum, packed, n_packed)
        for e in range(n_strata):
            n = n_packed[e]  # Indexing row by row shows the compiler that the slices are contiguous.
            offsets[c, e] = hinge_offset(packed[e, 0][:n], packed[e, 1][:n], mass[c, e] / C, guess[c, e])
        sums[:] = 0.0
        squares[:] = 0.0
        for begin in range(0, n_samples, _SUM_SAMPLES):
            end = min(begin + _SUM_SAMPLES, n_samples)
            alphas, curvatures = residual[c, begin:end], curvature[c, begin:end]
            part = _slacks(margin[begin:end], stratum[begin:end], weight[begin:end], C, offsets[c], alphas, curvatures)
            sums[0] += part[0]
            squares[0] += part[1]
            sums[-1] += part[2]
            squares[-1] += part[3]
        for e in range(n_strata):
            if sums[e] < 1e-9 * mass[c, e]:  # The slack is less than the margin's last digit.
                sums[e], squares[e] = _concentrate_on_minimum(margin, weight, stratum, e, offsets[c, e], residual[c])
        # Rounding in the offsets is multiplied by C. The dual bound requires exact sums, so these are corrected.
        gamma = 0.0
        importance = 0.0
        for e in range(n_strata):
            gamma += offsets[c, e] / n_strata
            importance += mass[c, e]
            sums[e] = mass[c, e] / sums[e]
            value += 0.5 * squares[e]
            conjugate += 0.5 * squares[e] * sums[e] ** 2
        value -= importance * gamma
        _sign(residual[c], stratum, codes, classes[c], sums[0], sums[-1])
    return value, conjugate


@kernel()
def _concentrate_on_minimum(margin, weight, stratum, which, offset, alpha):
    """Set the dual variables of a stratum to 1 for samples with the smallest margin, and to 0 for the others.

    Returns the sum of the dual variables, and of their products with the slack.
    """
    smallest = np.inf
    for i in range(margin.shape[0]):
        if stratum[i] == which and weight[i] > 0.0:
            smallest = min(smallest, margin[i])
    total = 0.0
    squares = 0.0
    for i in range(margin.shape[0]):
        if stratum[i] == which:
            chosen = weight[i] > 0.0 and margin[i] == smallest
            alpha[i] = 1.0 if chosen else 0.0
            if chosen:
                total += 1.0
                squares += max(offset - margin[i], 0.0)
    return total, squares
