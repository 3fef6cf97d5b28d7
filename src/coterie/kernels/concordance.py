"""Concordance of risks with survival times, by sums over a binary indexed tree."""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel


@kernel()
def _add(tree, place, value):
    k = place + 1
    while k < len(tree):
        tree[k] += value
        k += k & -k


@kernel()
def _sum_below(tree, place):
    total, k = 0.0, place
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@kernel()
def concordance_sums(time, event, place, weight, event_weight, entry, by_entry, agreeing, comparable):
    """Add to each sample the weights of the comparable pairs that contain it, and of those in the right order.

    Samples are sorted by time. A pair is comparable if the earlier sample has an event, at which the later one has entered; of
    two samples of the same time, an event is earlier than a censored sample. It is in the right order if the earlier sample
    has the larger risk, and half if the risks are equal. Its weight is ``event_weight`` of the earlier sample times ``weight``
    of the later one.

    Parameters
    ----------
    place : ndarray of int of shape (n_samples,)
        Rank of the risk of each sample, from 0. Equal risks have the same rank.
    entry : ndarray of shape (n_samples,)
        Entry times, minus infinity for samples observed from the start.
    by_entry : ndarray of int of shape (n_samples,)
        Samples in the order of their entry times.
    """
    n = len(time)
    tree = np.zeros(place.max() + 2)
    total, stop, count, last = 0.0, n, 0, n - 1
    while stop > 0:  # events and the later samples
        start = stop - 1
        while start > 0 and time[start - 1] == time[start]:
            start -= 1
        for i in range(start, stop):
            if not event[i]:
                _add(tree, place[i], weight[i])
                total += weight[i]
                count += 1
        while last >= 0 and entry[by_entry[last]] >= time[start]:  # These have a later time and are in the tree.
            i = by_entry[last]
            _add(tree, place[i], -weight[i])
            total -= weight[i]
            count -= 1
            last -= 1
        for i in range(start, stop):
            if event[i] and count > 0:
                below = _sum_below(tree, place[i])
                equal = _sum_below(tree, place[i] + 1) - below
                agreeing[i] += event_weight[i] * (below + 0.5 * equal)
                comparable[i] += event_weight[i] * total
        for i in range(start, stop):
            if event[i]:
                _add(tree, place[i], weight[i])
                total += weight[i]
                count += 1
        stop = start
    tree[:] = 0.0
    total, start, first = 0.0, 0, 0
    while start < n:  # samples and the earlier events
        stop = start + 1
        while stop < n and time[stop] == time[start]:
            stop += 1
        while first < n and entry[by_entry[first]] < time[start]:  # All events so far are before these entries.
            i = by_entry[first]
            if total > 0.0:
                below = _sum_below(tree, place[i] + 1)
                equal = below - _sum_below(tree, place[i])
                agreeing[i] -= weight[i] * (total - below + 0.5 * equal)
                comparable[i] -= weight[i] * total
            first += 1
        for turn in range(2):  # Events of the same time are not compared with each other.
            for i in range(start, stop):
                if event[i] == (turn == 0):
                    below = _sum_below(tree, place[i] + 1)
                    equal = below - _sum_below(tree, place[i])
                    agreeing[i] += weight[i] * (total - below + 0.5 * equal)
                    comparable[i] += weight[i] * total
            if turn == 0:
                for i in range(start, stop):
                    if event[i]:
                        _add(tree, place[i], event_weight[i])
                        total += event_weight[i]
        start = stop
