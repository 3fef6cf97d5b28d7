r"""The partial likelihood of Cox's model of proportional hazards, with its conjugate and its second derivative.

.. math:: F(z) = C\Big(\sum_k m_k \log\frac{S_k(z)}{c_k} - \sum_i \omega_i \delta_i z_i\Big), \qquad
          S_k(z) = \sum_j a_{kj} e^{z_j}

:math:`\delta_i` is 1 for events, and :math:`a_{kj}` is the weight of sample j in the risk set k. **Breslow**: one term per
event time t, :math:`m_k` the weight of its events, :math:`a_{kj} = \omega_j` for the samples under observation, whose time is
at least t and whose entry time, if any, is below t. **Efron**: one term per event; for the l-th of d tied events,
:math:`a_{kj}` is multiplied by :math:`1 - (l - 1)/d` for these events, and :math:`m_k` is their mean weight. The constants
:math:`c_k` are the sums of :math:`a_{kj}` over the events of the time, so that F is C times half the deviance: 0 for a model
that predicts the order of all events.

**Certificate.** F is a sum of linear and log-sum-exp functions. With the distributions :math:`p_{kj} = a_{kj}e^{z_j}/S_k`, the
residual :math:`\tilde\alpha_i = C(\omega_i\delta_i - \sum_k m_k p_{ki})` is minus the gradient. It lies in the domain of the
conjugate at every z, because it is a sum of distributions over the risk sets, and Fenchel's equality gives

.. math:: F^*(-\tilde\alpha) = C\sum_k m_k\Big(\sum_j p_{kj}\log\frac{p_{kj}}{a_{kj}} + \log c_k\Big),

which is the conjugate of each term, a negative entropy, at its own distribution. The gap is therefore a certificate without
further projections. Residuals sum to zero in each stratum, as with an intercept.

**Second derivative.** It is :math:`\mathrm{diag}(h) - K'K` with :math:`h_j = C\sum_k m_k p_{kj}` and
:math:`K_{kj} = \sqrt{C m_k}\,p_{kj}`. Products with K are cumulative sums (:mod:`coterie.kernels.cox`), or sums
over the nodes of a tree if there are entry times (:mod:`coterie.kernels.cox_nodes`).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from coterie._numba import read_only
from coterie.kernels.cox import COX, RiskSets
from coterie.kernels.cox_nodes import NodeRiskSets, node_risk_sets
from coterie.kernels.losses import NOTHING, Evaluation, LossArrays
from coterie.solver.design import Rows
from coterie.solver.loss import Loss, LossState

TIES = ("breslow", "efron")
AnyRiskSets: TypeAlias = RiskSets | NodeRiskSets


class CoxLoss(Loss):
    """Partial likelihood of Cox's model. See the module for the definition.

    Parameters
    ----------
    targets : structured ndarray of shape (n_samples,)
        Times, events, strata and entry times of the samples (:data:`coterie.inputs.survival.SURVIVAL`).
    weight : ndarray of shape (n_samples,)
        Non-negative weights. With Breslow's rule, a weight of 2 is equivalent to having the sample twice.
    C : float
        Weight of the loss.
    ties : {"breslow", "efron"}
        Rule for tied event times.
    offset : ndarray of shape (n_samples,), optional
        Numbers added to the outputs.
    """

    centred = True
    n_strata = 0

    def __init__(
        self, targets: np.ndarray, weight: np.ndarray, C: float, ties: str = "breslow", offset: np.ndarray | None = None
    ) -> None:
        self.targets, self.weight, self.C, self.ties, self.offset = targets, np.asarray(weight, dtype=float), C, ties, offset
        self.strata = np.zeros((len(self.weight), 1), dtype=np.int8)
        self.signs = np.ones((len(self.weight), 1))
        self._sets, self._keys, self._constant = risk_sets(targets, self.weight, ties)
        if isinstance(self._sets, RiskSets):
            self.risk_sets = self._sets
            self.arrays = self._compiled()

    def evaluate(self, outputs: np.ndarray, previous: LossState | None = None) -> LossState:
        """Return the loss at these outputs."""
        z = np.ascontiguousarray(outputs[:, 0] if self.offset is None else outputs[:, 0] + self.offset)
        log_sums, value, entropy = self._sets.log_sums(read_only(z))
        curvature = self._sets.spread(read_only(z), log_sums, self.C * self._sets.mass[:, None])
        residual = -curvature
        residual[self._sets.order, 0] += self.C * self._sets.weight * self._sets.event
        shift = 0.0 if self.offset is None else float(residual[:, 0] @ self.offset)
        return LossState(
            value=self.C * (value - self._constant),
            conjugate=self.C * (entropy + self._constant) + shift,
            residual=residual,
            curvature=curvature,
            offsets=np.empty((1, 0)),
            intercept=np.zeros(1),
            margin=np.zeros(1),
            coupling=RiskSetCoupling(self._sets, z, log_sums, np.sqrt(self.C * self._sets.mass)),
        )

    def _compiled(self) -> LossArrays:
        none = read_only(np.empty(0, dtype=np.int64))
        return LossArrays(
            COX,
            codes=none,
            classes=none,
            targets=NOTHING,
            weight=read_only(self.weight),
            C=self.C,
            constant=self._constant,
            mass=read_only(np.empty((1, 0))),
            strata=read_only(self.strata),
            signs=read_only(self.signs),
            base=NOTHING if self.offset is None else read_only(np.asarray(self.offset, dtype=np.float64)),
        )

    def state(self, found: Evaluation) -> LossState:
        """Return the state for the results of the kernel, without the coupling, which the kernel has used."""
        return LossState(
            value=found.value,
            conjugate=found.conjugate,
            residual=found.residual.T,
            curvature=found.curvature.T,
            offsets=found.offsets,
            intercept=np.zeros(1),
            margin=np.zeros(1),
        )

    def baseline(self, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return stratum, time and increase of the cumulative baseline hazard of each term, given outputs (n_samples, 1)."""
        z = np.ascontiguousarray(outputs[:, 0] if self.offset is None else outputs[:, 0] + self.offset)
        log_sums, _, _ = self._sets.log_sums(read_only(z))
        first = self.targets[self._sets.order[self._sets.start]]
        return first["stratum"], first["time"], self._sets.mass * np.exp(-log_sums)

    @property
    def term_masses(self) -> np.ndarray:
        """C times the weight of each term of the likelihood."""
        return np.asarray(self.C * self._sets.mass)

    def score_residuals(self, state: LossState, columns: np.ndarray) -> np.ndarray:
        r"""Return the contribution of each sample to minus the gradient in the weights of columns, of shape (n_samples, p).

        With C = 1 it is :math:`\omega_i\delta_i(x_i - \bar x_{k(i)}) - \sum_k m_k p_{ki}(x_i - \bar x_k)`. The contributions
        of different samples are independent in large samples (Lin and Wei 1989), while the residuals are not.
        """
        assert state.coupling is not None
        coupled = state.coupling.apply(columns)
        result = state.residual * columns + state.coupling.adjoint(coupled)
        sets = self._sets
        opens, place = np.unique(sets.start, return_index=True)
        if not len(opens):
            return result
        mass = self.C * sets.mass[:, None]
        means = np.add.reduceat(np.sqrt(mass) * coupled, place, axis=0) / np.add.reduceat(mass, place, axis=0)
        events = np.flatnonzero(sets.event)
        own = means[np.searchsorted(opens, events, side="right") - 1]
        result[sets.order[events]] -= self.C * sets.weight[events, None] * own
        return result

    def scaled(self, factor: float) -> CoxLoss:
        """Return the same loss with C multiplied by ``factor``."""
        return CoxLoss(self.targets, self.weight, factor * self.C, self.ties, self.offset)

    def kinds(self) -> np.ndarray:
        """Return merge keys: samples of the same risk sets may be merged if they are censored or have tied events.

        Events tied by Efron's rule and samples with an offset have keys of their own. Samples censored before the first event
        are in no risk set and are left out.
        """
        if self.offset is None:
            return self._keys
        return np.where(self._keys < 0, -1, np.arange(len(self._keys)))

    def merged(self, rows: Rows) -> CoxLoss:
        """Return the loss with one sample per row, whose weight is the sum of the merged weights."""
        offset = None if self.offset is None else self.offset[rows.first]
        return CoxLoss(self.targets[rows.first], rows.sums(self.weight), self.C, self.ties, offset)

    def spread(self, residual: np.ndarray, rows: Rows) -> np.ndarray:
        """Return the residual of all samples, in proportion to their weights."""
        return rows.divide(residual, self.weight)


class RiskSetCoupling:
    r"""The matrix K of the second derivative :math:`\mathrm{diag}(h) - K'K`, with one row per term of the likelihood."""

    def __init__(self, sets: AnyRiskSets, outputs: np.ndarray, log_sums: np.ndarray, root: np.ndarray) -> None:
        self._sets, self._root = sets, root
        self._outputs, self._log_sums = read_only(outputs), log_sums

    def apply(self, columns: np.ndarray) -> np.ndarray:
        """Return the product of K with columns of shape (n_samples, p)."""
        return np.asarray(self._root[:, None] * self._sets.means(self._outputs, self._log_sums, columns))

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        """Return the product of the transpose of K with values of shape (n_terms, p)."""
        return self._sets.spread(self._outputs, self._log_sums, self._root[:, None] * values)


def risk_sets(targets: np.ndarray, weight: np.ndarray, ties: str) -> tuple[AnyRiskSets, np.ndarray, float]:
    r"""Return the terms of the partial likelihood, the merge key of each sample, and :math:`\sum_k m_k\log c_k`.

    For the keys see :meth:`CoxLoss.kinds`.
    """
    used = np.flatnonzero(weight > 0.0)
    used = used[np.lexsort((~targets["event"][used], targets["time"][used], targets["stratum"][used]))]
    time, event, stratum, own = (*(targets[name][used] for name in ("time", "event", "stratum")), weight[used])
    n = len(used)
    begins = np.append(True, stratum[1:] != stratum[:-1])[:n]  # the first sample of each stratum
    opens = event & (begins | np.append(True, time[1:] != time[:-1])[:n])  # the first event of each event time
    start, latest = np.flatnonzero(opens), np.cumsum(opens) - 1
    total = np.bincount(latest[event], own[event], minlength=len(start))
    # The latest event time of a sample may be that of an earlier stratum.
    earliest = (latest + 1 - opens)[begins][np.cumsum(begins) - 1]
    first = _first_event_times(targets["entry"][used], time[start], earliest, latest + 1)
    has_entries = bool((first > earliest).any())
    key = np.where(latest >= first, 2 * latest + event, -1)
    if has_entries:
        key = np.where(key < 0, -1, np.unique(np.stack([first, key]), axis=1, return_inverse=True)[1])
    stop, share, mass = start, np.zeros(len(start)), total
    if ties == "efron":
        key = np.where(event, 2 * n + np.arange(n), key)
        size = np.bincount(latest[event], minlength=len(start))
        start, stop, total, mass = (np.repeat(part, size) for part in (start, start + size, total, total / size))
        share = (np.arange(len(start)) - np.repeat(np.cumsum(size) - size, size)) / np.repeat(size, size)
    keys = np.full(len(weight), -1)
    keys[used] = key
    constant = float(mass @ np.log(total * (1.0 - share)))
    occurred = event.astype(np.float64)
    if has_entries:
        return node_risk_sets(used, own, occurred, start, mass, share, first, latest + 1), keys, constant
    ends = np.append(begins[1:], True)[:n]
    return RiskSets(*map(read_only, (used, own, occurred, ends, start, stop, share, mass))), keys, constant


def _first_event_times(entry: np.ndarray, times: np.ndarray, earliest: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Return the number of the first event time after the entry of each sample, from ``earliest``; ``stop`` if none is."""
    first = earliest.copy()
    delayed = np.flatnonzero(np.isfinite(entry))
    order = delayed[np.lexsort((entry[delayed], earliest[delayed]))]
    for own in np.split(order, np.flatnonzero(np.diff(earliest[order])) + 1):
        if len(own):
            here = times[earliest[own[0]] : stop[own].max()]
            first[own] = earliest[own] + np.searchsorted(here, entry[own], side="right")
    return np.minimum(first, stop)
