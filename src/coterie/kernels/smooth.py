r"""Losses that are sums over the samples: logistic, Poisson, gamma and Huber, with the intercept eliminated.

.. math:: F(Z) = \sum_c \min_b C k_c \sum_i \omega_i \ell(y_{ic}, z_{ic} + b)

:func:`sample_loss` defines each :math:`\ell`. A further loss of this kind adds a constant and a branch there, and a bracket of
its intercept in :func:`_bracket`.

The intercept is the root of an increasing function, found by Newton steps that bisection keeps in a bracket. Its last digits
are replaced by one linear step of the residuals, so that these sum to zero up to rounding. The value of the conjugate follows
from Fenchel's equality :math:`F^*(-\tilde\alpha) = -\langle\tilde\alpha, Z\rangle - F(Z)`, in which the intercept cancels.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

LOGISTIC, POISSON, HUBER, GAMMA = 2, 3, 4, 5

# Samples per partial sum. Partial sums lose fewer digits in sums over millions of samples.
_SUM_SAMPLES = 512
_MAX_STEPS = 200
# Newton step of the intercept, in units of the outputs, that the linear step of the residuals can replace: the logistic,
# the Poisson and the gamma loss have a third derivative of at most the second one. The Huber loss is exact once the step does
# not change.
_LINEAR = 1e-8
# Sum of the residuals, relative to that of their absolute values, that is due to rounding.
_ROUNDING = 1e-15
# Largest exponent. Its square is finite, so that a line search can bracket its minimum.
_MAX_EXPONENT = 300.0
# Logarithm of the expected counts if all counts are zero, for which no intercept is optimal.
_NO_COUNTS = -700.0


@kernel()
def sample_loss(kind, output, target, base, width):
    r"""Return value, first and second derivative of a sample's loss in its output.

    - ``LOGISTIC``: :math:`\log(1 + e^{-yu})` with y = ±1.
    - ``POISSON``: half the deviance, :math:`\mu - y + y\log(y/\mu)`, of a mean :math:`\mu = e^{u + o}` with the offset o.
      ``base`` is :math:`\log y - o`, or :math:`-o` for y = 0, so that the value is precise for large counts.
    - ``GAMMA``: half the deviance, :math:`y/\mu - 1 - \log(y/\mu)`, of a mean :math:`\mu = e^{u + o}`. ``base`` is
      :math:`\log y - o`.
    - ``HUBER``: :math:`\frac12 e^2` for an error :math:`e = y - u` of at most ``width`` :math:`\delta`, else
      :math:`\delta(|e| - \frac12\delta)`, plus :math:`te + \frac12t^2` with the tilt t, which is ``base``. The tilt is 0
      for the Huber loss. Tilts between :math:`-\delta` and :math:`\delta` make smoothed losses of quantiles of it.
    """
    if kind == LOGISTIC:
        margin = target * output
        small = np.exp(-abs(margin))
        wrong = 1.0 / (1.0 + small) if margin < 0.0 else small / (1.0 + small)
        return max(-margin, 0.0) + np.log1p(small), -target * wrong, small / (1.0 + small) ** 2
    if kind == POISSON:
        exponent = min(output - base, _MAX_EXPONENT)
        if target == 0.0:
            mean = np.exp(exponent)
            return mean, mean, mean
        excess = np.expm1(exponent)
        return target * (excess - exponent), target * excess, target * (excess + 1.0)
    if kind == GAMMA:
        exponent = min(base - output, _MAX_EXPONENT)
        excess = np.expm1(exponent)
        return excess - exponent, -excess, excess + 1.0
    error = target - output
    if abs(error) <= width:
        return 0.5 * error * error + base * (error + 0.5 * base), -error - base, 1.0
    value = width * (abs(error) - 0.5 * width) + base * (error + 0.5 * base)
    return value, (-width if error > 0.0 else width) - base, 0.0


@kernel()
def smooth_losses(
    kind, outputs, codes, classes, targets, base, weight, C, factors, widths, guess, offsets, residual, curvature
):
    r"""Return value and conjugate of the losses of some outputs, with the intercepts eliminated.

    For ``LOGISTIC``, output c is positive for samples whose code is ``classes[c]``. For the others, ``targets`` and ``base``
    contain the values of all samples for the first output, then those for the next one. ``factors`` are the :math:`k_c`.
    ``guess`` contains initial intercepts. ``offsets`` (outputs, 1 or 0 with or without an intercept), ``residual`` and
    ``curvature`` (outputs, samples) are written.
    """
    n_samples, n_outputs = outputs.shape
    output, target = np.empty(n_samples), np.empty(n_samples)
    shift = np.zeros(n_samples)
    value, product = 0.0, 0.0
    for c in range(n_outputs):
        width = widths[c] if kind == HUBER else 0.0
        first = c * n_samples
        for i in range(n_samples):
            output[i] = outputs[i, c]
            target[i] = targets[first + i] if kind != LOGISTIC else (1.0 if codes[i] == classes[c] else -1.0)
            if base.shape[0]:
                shift[i] = base[first + i]
        centred = offsets.shape[1] == 1
        intercept = 0.0
        if centred:
            intercept = _intercept(kind, output, target, shift, weight, width, guess[c, 0])
            offsets[c, 0] = intercept
        scale = C * factors[c]
        rest, total = 0.0, 0.0
        for begin in range(0, n_samples, _SUM_SAMPLES):
            part = np.zeros(3)
            for i in range(begin, min(begin + _SUM_SAMPLES, n_samples)):
                residual[c, i], curvature[c, i] = 0.0, 0.0
                if weight[i] > 0.0:
                    own, slope, curved = sample_loss(kind, output[i] + intercept, target[i], shift[i], width)
                    residual[c, i], curvature[c, i] = -scale * weight[i] * slope, scale * weight[i] * curved
                    part[0] += scale * weight[i] * own
                    part[1] += residual[c, i]
                    part[2] += curvature[c, i]
            value += part[0]
            rest += part[1]
            total += part[2]
        # A step that is not small is not one of rounding: all samples are far from their targets, and no digit is missing.
        step = rest / total if centred and total > 0.0 and abs(rest) <= 100.0 * _LINEAR * total else 0.0
        for begin in range(0, n_samples, _SUM_SAMPLES):
            cross = 0.0
            for i in range(begin, min(begin + _SUM_SAMPLES, n_samples)):
                residual[c, i] -= step * curvature[c, i]
                cross += residual[c, i] * output[i]
            product += cross
    return value, -product - value


@kernel()
def _intercept(kind, output, target, base, weight, width, guess):
    """Return the intercept that minimises the loss."""
    low, high, start = _bracket(kind, output, target, base, weight, width)
    if not low < high:
        return low
    point = guess if low < guess < high else start
    if not low < point < high:
        point = 0.5 * (low + high)
    for _ in range(_MAX_STEPS):
        slope, curvature, size = _derivatives(kind, output, target, base, weight, width, point)
        if abs(slope) <= _ROUNDING * size:
            break
        if slope > 0.0:
            high = point
        else:
            low = point
        trial = point - slope / curvature if curvature > 0.0 else np.inf
        if kind != HUBER and abs(trial - point) <= _LINEAR:
            return trial
        if not low < trial < high:
            trial = 0.5 * (low + high)
        if trial == point or not low < trial < high:
            break
        point = trial
    return point


@kernel()
def _bracket(kind, output, target, base, weight, width):
    """Return an interval that contains the intercept, and an initial value. They are equal if there is a closed form."""
    least, most, total, mean, share, counts = np.inf, -np.inf, 0.0, 0.0, 0.0, 0.0
    for i in range(output.shape[0]):
        if weight[i] > 0.0:
            # The output for which the sample alone has the intercept 0.
            own = target[i] - output[i] if kind == HUBER else base[i] - output[i]
            least, most = min(least, own), max(most, own)
            total += weight[i]
            mean += weight[i] * own
            share += weight[i] * (target[i] > 0.0)
            counts += weight[i] * target[i]
    mean /= total
    if kind == POISSON:
        if counts <= 0.0:
            return least + _NO_COUNTS, least + _NO_COUNTS, least + _NO_COUNTS
        expected = 0.0
        for i in range(output.shape[0]):
            if weight[i] > 0.0:
                expected += weight[i] * (target[i] if target[i] > 0.0 else 1.0) * np.exp(least - (base[i] - output[i]))
        found = np.log(counts / expected) + least
        return found, found, found
    if kind == GAMMA:
        ratios = 0.0
        for i in range(output.shape[0]):
            if weight[i] > 0.0:
                ratios += weight[i] * np.exp(base[i] - output[i] - most)
        found = np.log(ratios / total) + most
        return found, found, found
    if kind == LOGISTIC:
        share = min(max(share / total, 1e-15), 1.0 - 1e-15)
        centre = np.log(share / (1.0 - share))
        return centre + least - 1e-9, centre + most + 1e-9, centre + mean
    room = 1e-9 * (1.0 + most - least)
    for i in range(output.shape[0]):
        if base[i] != 0.0:  # A tilted loss of a single sample has its minimum at an error of up to the width.
            room += width
            break
    return least - room, most + room, mean


@kernel()
def _derivatives(kind, output, target, base, weight, width, intercept):
    """Return first and second derivative of the loss in the intercept, and the sum of the absolute first derivatives."""
    first, second, size = 0.0, 0.0, 0.0
    for begin in range(0, output.shape[0], _SUM_SAMPLES):
        part = np.zeros(3)
        for i in range(begin, min(begin + _SUM_SAMPLES, output.shape[0])):
            if weight[i] > 0.0:
                _, slope, curvature = sample_loss(kind, output[i] + intercept, target[i], base[i], width)
                part[0] += weight[i] * slope
                part[1] += weight[i] * curvature
                part[2] += weight[i] * abs(slope)
        first += part[0]
        second += part[1]
        size += part[2]
    return first, second, size
