r"""Kernels of the squared hinge losses: eliminated offsets, and the losses of all outputs in one call."""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# Samples whose terms are added up by themselves: sums over millions lose fewer digits.
_TOGETHER = 512


@kernel(reorder=True)
def _active_sums(margin, weight, offset):
    """Number, total weight and weighted sum of the margins under an offset; without branches, which could not be predicted."""
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
    r"""The :math:`\gamma` with :math:`\sum_i \omega_i (\gamma - m_i)_+ = target`, all weights above zero.

    The left side is convex, increasing and piecewise linear in :math:`\gamma`, so Newton's method
    goes to the right of the root in its first step, then descends to it monotonically and ends,
    exactly, when the active set stays the same: a handful of linear passes, no sort.
    """
    offset = guess
    n_active = -1
    from_far_right = offset == np.inf
    for _ in range(200):
        count, total, moment = _active_sums(margin, weight, offset)
        if count == 0:
            if from_far_right:  # the target is less than the last digit of the smallest margin
                break
            offset = np.inf  # left of every margin: start again from the far right
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
    r"""The b that minimises :math:`\sum_i \omega_i (1 - y_i(z_i + b))_+^2`.

    The derivative is increasing and piecewise linear: Newton's method, kept between a point where it is
    negative and one where it is positive, ends exactly when the active set stays the same.
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
        if total == 0.0:  # no loss at all: as good as any
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


@kernel(reorder=True)
def _slacks(margin, stratum, weight, C, offsets, residual, curvature):
    """Dual variables and curvature of some samples of an output; their sums, and with slack, of the first and last stratum."""
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
    """Multiply dual variables by the factor of their stratum, the first or the last, and by the sign of their class."""
    for i in range(residual.shape[0]):
        factor = last if stratum[i] else first
        factor = factor if codes[i] == positive else -factor
        residual[i] = factor * residual[i] if residual[i] != 0.0 else 0.0


@kernel()
def _pack(outputs, codes, positive, weight, margin, stratum, packed, n_packed):
    """Margins and strata of an output's samples, and margins and weights of those that count, stratum after stratum."""
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
    r"""Value and conjugate of the squared hinge losses of some classes against the others, their offsets eliminated.

    Output c is positive for the samples whose code is ``classes[c]``. ``guess`` are offsets to start from; ``offsets``
    (outputs, strata), ``residual`` and ``curvature`` (outputs, samples) are written. The mathematics is that of
    ``SquaredHinge``.
    """
    n_samples, n_outputs = outputs.shape
    n_strata = mass.shape[1]
    margin = np.empty(n_samples)
    stratum = np.empty(n_samples, np.int8)
    packed = np.empty((n_strata, 2, n_samples))  # margins and weights of the samples of each stratum that count
    n_packed = np.empty(n_strata, np.int64)
    sums = np.empty(n_strata)
    squares = np.empty(n_strata)
    value = 0.0
    conjugate = 0.0
    for c in range(n_outputs):
        _pack(outputs[:, c], codes, classes[c], weight, margin, stratum, packed, n_packed)
        for e in range(n_strata):
            n = n_packed[e]  # row by row: a compiler must see that they are contiguous
            offsets[c, e] = hinge_offset(packed[e, 0][:n], packed[e, 1][:n], mass[c, e] / C, guess[c, e])
        sums[:] = 0.0
        squares[:] = 0.0
        for begin in range(0, n_samples, _TOGETHER):
            end = min(begin + _TOGETHER, n_samples)
            alphas, curvatures = residual[c, begin:end], curvature[c, begin:end]
            part = _slacks(margin[begin:end], stratum[begin:end], weight[begin:end], C, offsets[c], alphas, curvatures)
            sums[0] += part[0]
            squares[0] += part[1]
            sums[-1] += part[2]
            squares[-1] += part[3]
        for e in range(n_strata):
            if sums[e] < 1e-9 * mass[c, e]:  # the slack is less than the margin's last digit
                sums[e], squares[e] = _concentrate_on_minimum(margin, weight, stratum, e, offsets[c, e], residual[c])
        # Rounding in the offsets is multiplied by C; the sums must be right for the dual bound to hold.
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
    """Dual variables of 1 for samples of a stratum with the smallest margin, none for others; their sum, and with slack."""
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
