r"""The partial likelihood of Cox's model: value, residuals and risk-set means in one pass over the samples each.

Samples are sorted by stratum, then by time, with events before censored samples. The likelihood has terms k with weight
:math:`m_k`, and the sum :math:`S_k` of :math:`\omega_j e^{z_j}` over the samples j from the position ``start[k]`` to the end
of the stratum, less the share ``share[k]`` of the samples before the position ``stop[k]``. With Breslow's rule for ties, there
is one term per event time and no share. With Efron's rule, there is one term per event, and the shares are 0, 1/d, …,
(d - 1)/d.

Sums over risk sets are cumulative sums from the end. They are kept relative to the largest output so far, so that no output
overflows and none is lost. Samples with entry times need other sums (:mod:`coterie.kernels.cox_nodes`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie._numba import kernel, read_only


class RiskSets(NamedTuple):
    """Terms of a partial likelihood over sorted samples, as kernels use them. All arrays are read-only.

    Attributes
    ----------
    order : ndarray of int of shape (n_used,)
        Samples of positive weight in sorted order.
    weight : ndarray of shape (n_used,)
        Their weights.
    event : ndarray of shape (n_used,)
        1 for events, 0 for censored samples.
    is_last : ndarray of bool of shape (n_used,)
        Whether a sample is the last of its stratum.
    start, stop : ndarray of int of shape (n_terms,)
        Positions of the first sample of the risk set, and after the last sample of which a share is subtracted.
    share : ndarray of shape (n_terms,)
        The share.
    mass : ndarray of shape (n_terms,)
        Weight of each term.
    """

    order: np.ndarray
    weight: np.ndarray
    event: np.ndarray
    is_last: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    share: np.ndarray
    mass: np.ndarray

    def log_sums(self, outputs: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return logarithms of the sums over the risk sets, and the sums of the terms of the value and of the conjugate."""
        found = np.empty(len(self.mass))
        value, entropy = log_risk_sums(self, outputs, found)
        return read_only(found), value, entropy

    def spread(self, outputs: np.ndarray, log_sums: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the sum of ``values[k]`` times the probability of each sample in the risk set of term k, over all terms."""
        out = np.zeros((len(outputs), values.shape[1]))
        spread_over_risk_sets(self, outputs, log_sums, read_only(np.ascontiguousarray(values)), out)
        return out

    def means(self, outputs: np.ndarray, log_sums: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the mean of each column over each risk set, of shape (n_terms, n_columns)."""
        out = np.empty((len(self.mass), columns.shape[1]))
        risk_set_means(self, outputs, log_sums, read_only(np.ascontiguousarray(columns)), out)
        return out


@kernel()
def log_risk_sums(sets, outputs, log_sums):
    """Write the logarithms of the sums over the risk sets. Return the sums of the terms of the value and of the conjugate.

    The first is the sum of ``mass * log_sum`` less that of ``weight * event * output``. The second is the sum of ``mass``
    times the negative entropy of the distribution over the risk set.
    """
    value, entropy, k = 0.0, 0.0, len(sets.start) - 1
    top, total, moment, tied, tied_moment = -np.inf, 0.0, 0.0, 0.0, 0.0
    for i in range(len(sets.order) - 1, -1, -1):
        z = outputs[sets.order[i]]
        if sets.is_last[i]:
            top, total, moment = z, 0.0, 0.0
        if k >= 0 and i == sets.stop[k] - 1:
            tied, tied_moment = 0.0, 0.0
        if z > top:
            factor = np.exp(top - z)
            moment, tied_moment = factor * (moment + (top - z) * total), factor * (tied_moment + (top - z) * tied)
            total, tied, top = factor * total, factor * tied, z
        own = sets.weight[i] * np.exp(z - top)
        total += own
        moment += own * (z - top)
        if k >= 0 and i < sets.stop[k]:
            tied += own
            tied_moment += own * (z - top)
        value -= sets.weight[i] * sets.event[i] * z
        while k >= 0 and sets.start[k] == i:
            rest = total - sets.share[k] * tied
            log_rest = np.log(rest)
            log_sums[k] = top + log_rest
            value += sets.mass[k] * log_sums[k]
            entropy += sets.mass[k] * ((moment - sets.share[k] * tied_moment) / rest - log_rest)
            k -= 1
    return value, entropy


@kernel()
def spread_over_risk_sets(sets, outputs, log_sums, values, out):
    """Add to each sample the sum of ``values[k]`` times its probability in the risk set of term k, over all terms.

    ``values`` of shape (n_terms, n_columns) and ``out`` of shape (n_samples, n_columns), zero for samples that are not used.
    """
    n_columns = values.shape[1]
    total, tied = np.zeros(n_columns), np.zeros(n_columns)
    top, k, stop, fresh = -np.inf, 0, -1, True
    for i in range(len(sets.order)):
        if fresh:
            total[:] = 0.0
            top = -np.inf
        if k < len(sets.start) and sets.start[k] == i:
            tied[:] = 0.0
            stop = sets.stop[k]
            while k < len(sets.start) and sets.start[k] == i:
                if -log_sums[k] > top:
                    factor = np.exp(top + log_sums[k])
                    for c in range(n_columns):
                        total[c] *= factor
                        tied[c] *= factor
                    top = -log_sums[k]
                factor = np.exp(-log_sums[k] - top)
                for c in range(n_columns):
                    total[c] += factor * values[k, c]
                    tied[c] += factor * sets.share[k] * values[k, c]
                k += 1
        if top > -np.inf:
            sample = sets.order[i]
            factor = sets.weight[i] * np.exp(outputs[sample] + top)
            for c in range(n_columns):
                out[sample, c] = factor * (total[c] - (tied[c] if i < stop else 0.0))
        fresh = sets.is_last[i]


@kernel()
def risk_set_means(sets, outputs, log_sums, columns, out):
    """Write the mean of each column over each risk set, with the probabilities of its samples, to ``out`` (n_terms, p)."""
    n_columns, k = columns.shape[1], len(sets.start) - 1
    total, tied = np.zeros(n_columns), np.zeros(n_columns)
    top = -np.inf
    for i in range(len(sets.order) - 1, -1, -1):
        sample = sets.order[i]
        z = outputs[sample]
        if sets.is_last[i]:
            total[:] = 0.0
            top = z
        if k >= 0 and i == sets.stop[k] - 1:
            tied[:] = 0.0
        if z > top:
            factor = np.exp(top - z)
            for c in range(n_columns):
                total[c] *= factor
                tied[c] *= factor
            top = z
        own = sets.weight[i] * np.exp(z - top)
        for c in range(n_columns):
            total[c] += own * columns[sample, c]
        if k >= 0 and i < sets.stop[k]:
            for c in range(n_columns):
                tied[c] += own * columns[sample, c]
        while k >= 0 and sets.start[k] == i:
            factor = np.exp(top - log_sums[k])
            for c in range(n_columns):
                out[k, c] = factor * (total[c] - sets.share[k] * tied[c])
            k -= 1


# Kind of a LossArrays whose risk sets are passed beside it.
COX = -1


@kernel()
def _with_offset(outputs, offset):
    """Return the outputs of a loss of one output, plus the offset if there is one."""
    z = np.empty(outputs.shape[0])
    for i in range(outputs.shape[0]):
        z[i] = outputs[i, 0] + offset[i] if offset.shape[0] else outputs[i, 0]
    return z


@kernel()
def cox_loss(sets, loss, outputs, residual, curvature):
    """Return value and conjugate of the partial likelihood. ``residual`` and ``curvature`` (1, samples) are written.

    ``loss`` is a LossArrays, of which ``C``, ``constant`` and the offset ``base`` are used.
    """
    z = _with_offset(outputs, loss.base)
    log_sums = np.empty(len(sets.start))
    value, entropy = log_risk_sums(sets, z, log_sums)
    masses, spread = np.empty((len(sets.start), 1)), np.zeros((len(z), 1))
    for k in range(len(sets.start)):
        masses[k, 0] = loss.C * sets.mass[k]
    spread_over_risk_sets(sets, z, log_sums, masses, spread)
    for i in range(len(z)):
        curvature[0, i] = spread[i, 0]
        residual[0, i] = -spread[i, 0]
    for i in range(len(sets.order)):
        residual[0, sets.order[i]] += loss.C * sets.weight[i] * sets.event[i]
    conjugate = loss.C * (entropy + loss.constant)
    if loss.base.shape[0]:
        for i in range(len(z)):
            conjugate += residual[0, i] * loss.base[i]
    return loss.C * (value - loss.constant), conjugate


@kernel()
def subtract_coupling(sets, loss, outputs, design, hessian):
    r"""Subtract :math:`(KX)'KX` of :mod:`coterie.solver.cox` from a Hessian that contains the curvatures of the samples."""
    z = _with_offset(outputs, loss.base)
    log_sums = np.empty(len(sets.start))
    log_risk_sums(sets, z, log_sums)
    means = np.empty((len(sets.start), design.shape[1]))
    risk_set_means(sets, z, log_sums, design, means)
    for k in range(len(sets.start)):
        for a in range(design.shape[1]):
            scaled = loss.C * sets.mass[k] * means[k, a]
            for b in range(a + 1):
                hessian[a, b] -= scaled * means[k, b]
    for a in range(design.shape[1]):
        for b in range(a):
            hessian[b, a] = hessian[a, b]
