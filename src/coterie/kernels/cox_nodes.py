r"""The partial likelihood of Cox's model with entry times: sums over the nodes of a tree of event times.

A sample with an entry time is in the risk sets of consecutive event times, from the first one after its entry. A sum over a
risk set is then a difference of two cumulative sums, which would lose all digits if the samples that have not entered yet have
the larger hazards. A segment tree over the event times needs no differences: each sample is added to at most
:math:`2\log_2 K` nodes that together are its event times, and the sum over a risk set is that of the nodes above its event
time. Sums of nodes are kept relative to the largest output of the node, so that no output overflows and none is lost. An
evaluation takes :math:`O(n\log K)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie._numba import kernel, read_only


class NodeRiskSets(NamedTuple):
    """Terms of a partial likelihood over sorted samples with entry times. All arrays are read-only.

    Attributes
    ----------
    order, weight, event, start, mass
        As in :class:`coterie.kernels.cox.RiskSets`.
    n_nodes : int
        Number of nodes.
    sample_start : ndarray of int of shape (n_used + 1,)
        Position of the first node of each sample in ``sample_nodes``.
    sample_nodes : ndarray of int
        Nodes to which the samples are added.
    term_start : ndarray of int of shape (n_terms + 1,)
        Position of the first node of each term in ``term_nodes``.
    term_nodes : ndarray of int
        Nodes of which the sum over the risk set of a term consists.
    factors : ndarray
        Factors of these nodes: 1, or 1 less the share that Efron's rule subtracts for tied events.
    """

    order: np.ndarray
    weight: np.ndarray
    event: np.ndarray
    start: np.ndarray
    mass: np.ndarray
    n_nodes: int
    sample_start: np.ndarray
    sample_nodes: np.ndarray
    term_start: np.ndarray
    term_nodes: np.ndarray
    factors: np.ndarray

    def log_sums(self, outputs: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return logarithms of the sums over the risk sets, and the sums of the terms of the value and of the conjugate."""
        found = np.empty(len(self.mass))
        value, entropy = _log_risk_sums(self, outputs, found)
        return read_only(found), value, entropy

    def spread(self, outputs: np.ndarray, log_sums: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the sum of ``values[k]`` times the probability of each sample in the risk set of term k, over all terms."""
        out = np.zeros((len(outputs), values.shape[1]))
        _spread_over_risk_sets(self, outputs, log_sums, read_only(np.ascontiguousarray(values)), out)
        return out

    def means(self, outputs: np.ndarray, log_sums: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the mean of each column over each risk set, of shape (n_terms, n_columns)."""
        out = np.zeros((len(self.mass), columns.shape[1]))
        _risk_set_means(self, outputs, log_sums, read_only(np.ascontiguousarray(columns)), out)
        return out


def node_risk_sets(
    order: np.ndarray,
    weight: np.ndarray,
    event: np.ndarray,
    start: np.ndarray,
    mass: np.ndarray,
    share: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
) -> NodeRiskSets:
    """Return the terms over sorted samples, of which sample i is at risk at the event times from ``first`` to before ``last``.

    ``start`` contains the position of the first event of each term's time, and ``share`` the share of the events of this time
    that is subtracted.
    """
    times, slot = np.unique(start, return_inverse=True)
    n_slots = len(times)
    # Events that share a time may have a factor of their own at this time, which is then not one of their tree.
    tied = np.bincount(slot, share, minlength=n_slots) > 0.0
    own = np.where(event > 0.0, last - 1, 0)
    beside = np.flatnonzero((event > 0.0) & tied[own]) if n_slots else np.empty(0, dtype=np.int64)
    stop = last.copy()
    stop[beside] -= 1
    samples, nodes = [beside], [2 * n_slots + own[beside]]
    place = np.flatnonzero(first < stop)
    left, right = first[place] + n_slots, stop[place] + n_slots
    while len(place):
        for edge, here in ((left, left & 1 == 1), (right - 1, right & 1 == 1)):
            samples.append(place[here])
            nodes.append(edge[here])
        left, right = (left + 1) >> 1, right >> 1
        open_ = left < right
        left, right, place = left[open_], right[open_], place[open_]
    terms, above, factors = [np.flatnonzero(tied[slot])], [2 * n_slots + slot[tied[slot]]], [1.0 - share[tied[slot]]]
    node, place = slot + n_slots, np.arange(len(start))
    while len(place):
        terms.append(place)
        above.append(node)
        factors.append(np.ones(len(place)))
        place, node = place[node > 1], node[node > 1] >> 1
    sample_start, sample_nodes, _ = _by_owner(len(order), samples, nodes, None)
    term_start, term_nodes, factor = _by_owner(len(start), terms, above, factors)
    return NodeRiskSets(
        read_only(order),
        read_only(weight),
        read_only(event),
        read_only(start),
        read_only(np.ascontiguousarray(mass)),
        3 * n_slots,
        sample_start,
        sample_nodes,
        term_start,
        term_nodes,
        factor,
    )


def _by_owner(
    n_owners: int, owners: list[np.ndarray], nodes: list[np.ndarray], factors: list[np.ndarray] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the start of each owner, its nodes and their factors."""
    owner, node = np.concatenate(owners), np.concatenate(nodes)
    factor = np.ones(len(node)) if factors is None else np.concatenate(factors)
    order = np.argsort(owner, kind="stable")
    start = np.append(0, np.cumsum(np.bincount(owner, minlength=n_owners)))
    return read_only(start), read_only(node[order]), read_only(factor[order])


@kernel()
def _tops(sets, outputs):
    """Return the largest output of each node, minus infinity without samples."""
    top = np.full(sets.n_nodes, -np.inf)
    for i in range(len(sets.order)):
        z = outputs[sets.order[i]]
        for e in range(sets.sample_start[i], sets.sample_start[i + 1]):
            node = sets.sample_nodes[e]
            top[node] = max(top[node], z)
    return top


@kernel()
def _log_risk_sums(sets, outputs, log_sums):
    """Write the logarithms of the sums. Return value and entropy; see :func:`coterie.kernels.cox.log_risk_sums`."""
    value, entropy = 0.0, 0.0
    top = _tops(sets, outputs)
    total, moment = np.zeros(sets.n_nodes), np.zeros(sets.n_nodes)
    for i in range(len(sets.order)):
        z = outputs[sets.order[i]]
        value -= sets.weight[i] * sets.event[i] * z
        for e in range(sets.sample_start[i], sets.sample_start[i + 1]):
            node = sets.sample_nodes[e]
            own = sets.weight[i] * np.exp(z - top[node])
            total[node] += own
            moment[node] += own * (z - top[node])
    for k in range(len(sets.mass)):
        highest = -np.inf
        for e in range(sets.term_start[k], sets.term_start[k + 1]):
            highest = max(highest, top[sets.term_nodes[e]])
        rest, product = 0.0, 0.0
        for e in range(sets.term_start[k], sets.term_start[k + 1]):
            node = sets.term_nodes[e]
            if top[node] > -np.inf:
                below = top[node] - highest
                factor = sets.factors[e] * np.exp(below)
                rest += factor * total[node]
                product += factor * (moment[node] + below * total[node])
        log_rest = np.log(rest)
        log_sums[k] = highest + log_rest
        value += sets.mass[k] * log_sums[k]
        entropy += sets.mass[k] * (product / rest - log_rest)
    return value, entropy


@kernel()
def _spread_over_risk_sets(sets, outputs, log_sums, values, out):
    """Add to each sample the sum of ``values[k]`` times its probability in the risk set of term k, over all terms."""
    n_columns = values.shape[1]
    top = np.full(sets.n_nodes, -np.inf)
    for k in range(len(sets.mass)):
        for e in range(sets.term_start[k], sets.term_start[k + 1]):
            node = sets.term_nodes[e]
            top[node] = max(top[node], -log_sums[k])
    total = np.zeros((sets.n_nodes, n_columns))
    for k in range(len(sets.mass)):
        for e in range(sets.term_start[k], sets.term_start[k + 1]):
            node = sets.term_nodes[e]
            factor = sets.factors[e] * np.exp(-log_sums[k] - top[node])
            for c in range(n_columns):
                total[node, c] += factor * values[k, c]
    for i in range(len(sets.order)):
        sample = sets.order[i]
        for e in range(sets.sample_start[i], sets.sample_start[i + 1]):
            node = sets.sample_nodes[e]
            factor = sets.weight[i] * np.exp(outputs[sample] + top[node])
            for c in range(n_columns):
                out[sample, c] += factor * total[node, c]


@kernel()
def _risk_set_means(sets, outputs, log_sums, columns, out):
    """Add the mean of each column over each risk set, with the probabilities of its samples, to ``out`` (n_terms, p)."""
    n_columns = columns.shape[1]
    top = _tops(sets, outputs)
    total = np.zeros((sets.n_nodes, n_columns))
    for i in range(len(sets.order)):
        sample = sets.order[i]
        for e in range(sets.sample_start[i], sets.sample_start[i + 1]):
            node = sets.sample_nodes[e]
            own = sets.weight[i] * np.exp(outputs[sample] - top[node])
            for c in range(n_columns):
                total[node, c] += own * columns[sample, c]
    for k in range(len(sets.mass)):
        for e in range(sets.term_start[k], sets.term_start[k + 1]):
            node = sets.term_nodes[e]
            if top[node] > -np.inf:
                factor = sets.factors[e] * np.exp(top[node] - log_sums[k])
                for c in range(n_columns):
                    out[k, c] += factor * total[node, c]
