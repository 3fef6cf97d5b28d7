r"""Relevance less redundancy of a whole set of k candidates, and the set that no exchange improves.

.. math:: J(S) = \frac1k \sum_{i \in S} r_i - \lambda\,\frac{1}{k(k-1)} \sum_{i \ne j \in S} A_{ij}.

The convex problem (:mod:`coterie.redundancy.objective`) punishes what resembles *any* candidate with a weight; here only the
members count. Adding the feature that raises J most, one at a time, is the greedy way (mRMR by difference is that with
:math:`\lambda = 1/2` and mutual information), and what it takes first it never gives back. Exchanges do: a set is left when no
candidate outside can replace a member with a gain. Only the rows of A of the members are held.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.order import TIE
from coterie.redundancy.measures import Redundancy


class ChosenSet(NamedTuple):
    """A set of candidates.

    Attributes
    ----------
    members : ndarray of int
        The candidates, that without which J of the rest is highest last, and so on.
    objective : float
        J of the set.
    n_exchanges : int
        Exchanges made since the greedy set.
    converged : bool
        Whether no exchange of one member improves it.
    """

    members: np.ndarray
    objective: float
    n_exchanges: int
    converged: bool


def choose_set(
    relevance: np.ndarray, redundancy: Redundancy, n_wanted: int, strength: float, most_exchanges: int
) -> ChosenSet:
    """Greedy set, then the best exchange as long as one raises J.

    Candidates are expected in an order that does not depend on the data's (best score first): of equal ones the first enters,
    and the last leaves.
    """
    tie = TIE * max(float(relevance.max()), strength)
    members, rows = _greedy(relevance, redundancy, n_wanted, strength, tie)
    factor = 2.0 * strength / max(n_wanted - 1, 1)
    n_exchanges, converged = 0, False
    while True:
        leaving, entering = _best_exchange(relevance, members, rows, factor, tie)
        converged = leaving < 0
        if converged or n_exchanges == most_exchanges:
            break
        members[leaving], rows[leaving] = entering, _row(redundancy, entering)
        n_exchanges += 1
    within = rows[:, members]
    order = _taken_apart(relevance[members], within, strength, members, tie)
    value = float(relevance[members].mean()) - 0.5 * factor * float(within.sum()) / n_wanted
    return ChosenSet(members[order], value, n_exchanges, converged)


def _row(redundancy: Redundancy, candidate: int) -> np.ndarray:
    """Redundancy of all candidates with one, none with itself."""
    row = redundancy.product(np.array([candidate]), np.ones(1))
    row[candidate] = 0.0
    return row


def _greedy(
    relevance: np.ndarray, redundancy: Redundancy, n_wanted: int, strength: float, tie: float
) -> tuple[np.ndarray, np.ndarray]:
    """The set that grows by the candidate that raises J most, and its rows of A."""
    members, rows = np.empty(n_wanted, dtype=np.int64), np.empty((n_wanted, len(relevance)))
    total = np.zeros(len(relevance))
    for place in range(n_wanted):
        value = relevance - (2.0 * strength / max(place, 1)) * total
        value[members[:place]] = -np.inf
        members[place] = np.argmax(value >= value.max() - tie)
        rows[place] = _row(redundancy, int(members[place]))
        total += rows[place]
    return members, rows


def _best_exchange(relevance: np.ndarray, members: np.ndarray, rows: np.ndarray, factor: float, tie: float) -> tuple[int, int]:
    """Place of the member that leaves and the candidate that enters; (-1, -1) where no exchange is a gain."""
    value = relevance - factor * rows.sum(axis=0)
    # An entering candidate is not redundant with the member that makes room for it.
    gains = factor * rows
    gains += value
    gains -= value[members][:, None]
    gains[:, members] = -np.inf
    best = float(gains.max())
    if best <= tie:
        return -1, -1
    leaving, entering = np.nonzero(gains >= best - tie)
    first = int(entering.min())
    able = leaving[entering == first]
    return int(able[np.argmax(members[able])]), first


def _taken_apart(relevance: np.ndarray, within: np.ndarray, strength: float, members: np.ndarray, tie: float) -> np.ndarray:
    """The members in order: from the end, the one without which J of the rest is highest."""
    left = np.argsort(members)
    order: list[int] = []
    while len(left):
        factor = 2.0 * strength / max(len(left) - 2, 1)
        worth = relevance[left] - factor * within[np.ix_(left, left)].sum(axis=1)
        if len(left) == 2:  # of two, redundant with each other alike, the more relevant one stays
            worth = relevance[left]
        last = int(np.flatnonzero(worth <= worth.min() + tie)[-1])
        order.append(int(left[last]))
        left = np.delete(left, last)
    return np.array(order[::-1], dtype=np.int64)
