r"""Kernels of the squared hinge losses: eliminated offsets, and the losses of all outputs in one call."""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# Samples whose terms are added up by themselves: sums over millions lose fewer digits.
_TOGETHER = 512


@kernel()
def hinge_offset(margin, weight, stratum, which, target, guess):
    r"""The :math:`\gamma` with :math:`\sum_i \omega_i (\gamma - m_i)_+ = target` over one stratum of samples.

    The left side is convex, increasing and piecewise linear in :math:`\gamma`, so Newton's method
    goes to the right of the root in its first step, then descends to it monotonically and ends,
    exactly, when the active set stays the same: a handful of linear passes, no sort.
    """
    offset = guess
    n_active = -1
    from_far_right = offset == np.inf
    for _ in range(200):
        total = 0.0
        moment = 0.0
        count = 0
        for i in range(margin.shape[0]):
            if stratum[i] == which and margin[i] < offset and weight[i] > 0.0:
                total += weight[i]
                moment += weight[i] * margin[i]
                count += 1
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
    sums = np.empty(n_strata)
    squares = np.empty(n_strata)
    part = np.empty((2, n_strata))
    value = 0.0
    conjugate = 0.0
    for c in range(n_outputs):
        for i in range(n_samples):
            positive = codes[i] == classes[c]
            margin[i] = outputs[i, c] if positive else -outputs[i, c]
            stratum[i] = 0 if positive else n_strata - 1
        for which in range(n_strata):
            offsets[c, which] = hinge_offset(margin, weight, stratum, which, mass[c, which] / C, guess[c, which])
        sums[:] = 0.0
        squares[:] = 0.0
        for begin in range(0, n_samples, _TOGETHER):
            part[:, :] = 0.0
            for i in range(begin, min(begin + _TOGETHER, n_samples)):
                e = stratum[i]
                slack = offsets[c, e] - margin[i]
                if slack > 0.0:
                    alpha = C * weight[i] * slack
                    residual[c, i] = alpha
                    curvature[c, i] = C * weight[i]
                    part[0, e] += alpha
                    part[1, e] += alpha * slack
                else:
                    residual[c, i] = 0.0
                    curvature[c, i] = 0.0
            for e in range(n_strata):
                sums[e] += part[0, e]
                squares[e] += part[1, e]
        for e in range(n_strata):
            if sums[e] < 1e-9 * mass[c, e]:  # the slack is less than the margin's last digit
                sums[e], squares[e] = _all_on_the_smallest(margin, weight, stratum, e, offsets[c, e], residual[c])
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
        for i in range(n_samples):
            if residual[c, i] != 0.0:
                scaled = residual[c, i] * sums[stratum[i]]
                residual[c, i] = scaled if codes[i] == classes[c] else -scaled
    return value, conjugate


@kernel()
def _all_on_the_smallest(margin, weight, stratum, which, offset, alpha):
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
