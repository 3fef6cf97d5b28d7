"""Votes of the k nearest neighbours, from products of samples.

The rank of a training sample j for a test sample i is that of ``|z_j|^2 - 2 z_i.z_j``, the squared distance less a constant of
the row, so BLAS does nearly all the work. Single precision is enough to *find* the neighbours. Whether the k found are
surely those of scikit-learn is decided by the gap behind the k-th one. Without a sure gap (ties, mostly), several sets of
neighbours are possible; where they do not all vote alike, the row is done again, with scikit-learn's own arithmetic and its
own way to break ties.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# Classes of positions modulo this number, whose minima are compared before the values themselves.
_GROUPS = 32
# Positions that are compared at a time to find these minima; a multiple of _GROUPS.
_STRIDE = 128
# Test samples whose products are held at a time: with a thousand training samples they stay in the second-level cache.
_ROWS = 128
# Samples at about the same distance from which on their distances are not found one by one.
_MANY = 128
# Samples whose features are gathered at a time.
_GATHERED = 32
# Samples on each side of a product in scikit-learn (its pairwise_dist_chunk_size): rounding depends on it.
_CHUNK = 256


@kernel()
def insert(values, places, value, place):
    """Put a value that is smaller than the last one in its place of a sorted list."""
    level = len(values) - 1
    while level > 0 and values[level - 1] > value:
        values[level], places[level] = values[level - 1], places[level - 1]
        level -= 1
    values[level], places[level] = value, place


@kernel()
def merge_smaller(values, others):
    """Replace values by others that are smaller; ``others`` may be shorter."""
    for g in range(len(others)):
        values[g] = others[g] if others[g] < values[g] else values[g]


@kernel()
def group_minima(row, stride, minima):
    """Smallest value of each class of positions modulo the number of groups, by vector instructions."""
    n_groups, n_stride = len(minima), len(stride)
    n_whole = len(row) // n_stride * n_stride
    stride[:] = np.inf
    for start in range(0, n_whole, n_stride):
        merge_smaller(stride, row[start : start + n_stride])
    minima[:] = np.inf
    for start in range(0, n_stride, n_groups):
        merge_smaller(minima, stride[start : start + n_groups])
    for start in range(n_whole, len(row), n_groups):
        merge_smaller(minima, row[start : start + n_groups])


@kernel()
def smallest(row, stride, minima, groups, values, places):
    """The smallest values of a row, sorted, and their places; which of equal ones is left open.

    The smallest q values lie in the q groups with the smallest minima, so nearly all of the row is read once and
    not compared any further.
    """
    n_groups = len(minima)
    group_minima(row, stride, minima)
    values[:] = np.inf
    for g in range(n_groups):
        if minima[g] < values[-1]:
            insert(values, groups, minima[g], g)
    limit = values[-1]
    values[:] = np.inf
    for group in groups:
        for j in range(group, len(row), n_groups):
            if row[j] <= limit and row[j] < values[-1]:
                insert(values, places, row[j], j)


@kernel()
def push(values, places, value, place):
    """Replace the root of a max-heap and let the new value sink, as scikit-learn does."""
    size = len(values)
    at = 0
    while True:
        left, right = 2 * at + 1, 2 * at + 2
        if left >= size:
            break
        larger = left if right >= size or values[left] >= values[right] else right
        if values[larger] <= value:
            break
        values[at], places[at] = values[larger], places[larger]
        at = larger
    values[at], places[at] = value, place


@kernel()
def smallest_in_turn(row, turn, values, places):
    """What is left in a heap through which a row goes in turn: of equal values those that scikit-learn keeps."""
    values[:] = np.inf
    for j in turn:
        if row[j] < values[0]:
            push(values, places, row[j], j)


@kernel()
def vote(places, codes, votes):
    """The class of most samples; the first one of several."""
    votes[:] = 0
    for place in places:
        votes[codes[place]] += 1
    return np.argmax(votes)


@kernel()
def product(first, second, buffer):
    """``first @ second.T`` in a part of a buffer."""
    out = buffer[: first.shape[0] * second.shape[0]].reshape(first.shape[0], second.shape[0])
    np.dot(first, second.T, out)
    return out


@kernel()
def squared_norms(columns, centre, norms):
    """Squared norm of each sample, less the centre; ``columns`` holds a feature in each row."""
    norms[:] = 0.0
    for f in range(len(columns)):
        column, middle = columns[f], centre[f]
        for i in range(len(column)):
            difference = column[i] - middle
            norms[i] += difference * difference


@kernel()
def gather_factors(columns, centre, scale, norms, samples, queries, others):
    """Rows of the two factors for some samples: -2 z_i and a one, and z_j and its squared norm, all scaled."""
    n_features = len(columns)
    for start in range(0, len(samples), _GATHERED):
        some = samples[start : start + _GATHERED]
        rows = others[start : start + _GATHERED]
        for f in range(n_features):
            column, middle = columns[f], centre[f]
            for i in range(len(some)):
                rows[i, f] = (column[some[i]] - middle) * scale
        for i in range(len(some)):
            rows[i, n_features] = norms[some[i]] * scale * scale
    minus_two = np.float32(-2.0)
    for i in range(len(samples)):
        query, other = queries[i], others[i]
        for f in range(len(query)):
            query[f] = minus_two * other[f]
        query[n_features] = 1.0


@kernel()
def predict_tied_votes(sure, possible, k, own):
    """Whether the vote of k is for the class ``own``, whichever of the possible ones vote: 1 yes, 0 no, -1 it depends."""
    n_left, n_possible = k - sure.sum(), possible.sum()
    least = sure[own] + max(0, n_left - (n_possible - possible[own]))
    most = sure[own] + min(n_left, possible[own])
    verdict = 1
    for other in range(len(sure)):
        if other == own:
            continue
        first = other < own  # and so it wins when votes are equal
        if sure[other] + max(0, n_left - (n_possible - possible[other])) >= most + (not first):
            return 0
        if sure[other] + min(n_left, possible[other]) >= least + (not first):
            verdict = -1
    return verdict


@kernel()
def count_sure(values, places, codes, slack, sure):
    """Count the classes of those that are surely among the first k; ``values`` are the k + 1 smallest, sorted.

    Two values that are at most ``slack`` apart may change places, so what is smaller than the last of them by more is in.
    """
    sure[:] = 0
    for j in range(len(values) - 1):
        if values[-1] - values[j] > slack:
            sure[codes[places[j]]] += 1
    return values[-1] - slack, values[-2] + slack


@kernel()
def weigh(row, minima, codes, bounds, k, own, sure, possible, places):
    """Count the classes of values within the bounds, note their places, and predict_tied_votes the vote.

    Returns the verdict and the number of places. Stops where it is clear that the vote depends on which of many they are.
    """
    low, high = bounds
    possible[:] = 0
    n_found = 0
    for group in range(len(minima)):
        if minima[group] > high:
            continue
        for j in range(group, len(row), len(minima)):
            if row[j] <= high:
                places[n_found] = j
                n_found += 1
                possible[codes[j]] += row[j] >= low
                if n_found % _MANY == 0 and predict_tied_votes(sure, possible, k, own) < 0:
                    return -1, n_found
    return predict_tied_votes(sure, possible, k, own), n_found


@kernel()
def recompute_weights(columns, sample, samples, codes, slack, k, own, sure, possible, distances, smallest_few, places):
    """The same for a few samples, by squared distances in double precision."""
    smallest_few[:] = np.inf
    for j in range(len(samples)):
        distances[j] = 0.0
        for f in range(len(columns)):
            difference = columns[f, sample] - columns[f, samples[j]]
            distances[j] += difference * difference
        if distances[j] < smallest_few[-1]:
            insert(smallest_few, places, distances[j], j)
    low, high = count_sure(smallest_few, samples[places], codes, slack, sure)
    possible[:] = 0
    for j in range(len(samples)):
        possible[codes[samples[j]]] += low <= distances[j] <= high
    return predict_tied_votes(sure, possible, k, own)


@kernel()
def count_right(queries, others, slack, fine_slack, codes, test, train, turn, columns, n_classes, k, exact, unsure, room):
    """Number of test samples whose neighbours vote for their own class; marks those in ``unsure`` and leaves them out.

    ``queries @ others.T`` are the values to rank, ``slack`` the gap to the next sample that makes the first k sure. Where
    there is no such gap, the vote may still be the same whichever of the samples in question belong to the first k. Where
    it is not, and products are free of rounding (``exact``), it is settled by the products themselves, with the training
    samples in ``turn``. Elsewhere the few samples in question are compared in double precision, from the ``columns``
    themselves, for which ``fine_slack`` is enough. ``test`` and ``train`` tell the samples that the rows of the factors
    stand for; ``room`` holds the products of 128 test samples.
    """
    other_codes = codes[train]
    n_train = len(others)
    wide = min(k + 1, n_train)
    n_groups = min(n_train, max(_GROUPS, 2 * wide))
    stride = np.empty(max(_STRIDE // n_groups, 1) * n_groups, dtype=others.dtype)
    minima, groups = np.empty(n_groups, dtype=others.dtype), np.empty(wide, dtype=np.int64)
    values, places = np.empty(wide, dtype=others.dtype), np.empty(wide, dtype=np.int64)
    near, distances, fine = np.empty(n_train, dtype=np.int64), np.empty(_MANY), np.empty(wide)
    votes, sure, possible = np.empty((3, n_classes), dtype=np.int64)
    n_right = 0
    for start in range(0, len(queries), _ROWS):
        products = product(queries[start : start + _ROWS], others, room)
        for i in range(len(products)):
            row = products[i]
            smallest(row, stride, minima, groups, values, places)
            sample = test[start + i]
            own, gap = codes[sample], slack[sample]
            if wide == k or values[k] - values[k - 1] > gap:
                n_right += vote(places[:k], other_codes, votes) == own
                continue
            bounds = count_sure(values, places, other_codes, gap, sure)
            verdict, n_near = weigh(row, minima, other_codes, bounds, k, own, sure, possible, near)
            if verdict < 0 and exact:
                smallest_in_turn(row, turn, values[:k], places[:k])
                verdict = np.int64(vote(places[:k], other_codes, votes) == own)
            elif verdict < 0 and n_near < _MANY:
                some, gap = train[near[:n_near]], fine_slack[sample]
                verdict = recompute_weights(columns, sample, some, codes, gap, k, own, sure, possible, distances, fine, places)
            if verdict < 0:
                unsure[start + i] = True
            else:
                n_right += verdict
    return n_right


@kernel()
def count_right_again(queries, others, codes, other_codes, n_classes, k, unsure):
    """The same for the ``unsure`` samples, as scikit-learn computes it.

    Squared distances are ``max(0, |x_i|^2 - 2 x_i.x_j + |x_j|^2)`` in this order, the products in double precision and in
    blocks of 256 by 256, which fixes their rounding.
    """
    norms = np.empty(len(others))
    for j in range(len(others)):
        norms[j] = np.dot(others[j], others[j])
    values, places = np.empty(k), np.empty(k, dtype=np.int64)
    votes = np.empty(n_classes, dtype=np.int64)
    turn = np.arange(len(others))
    distances = np.empty((min(_CHUNK, len(queries)), len(others)))
    buffer = np.empty(_CHUNK * _CHUNK)
    n_right = 0
    for start in range(0, len(queries), _CHUNK):
        rows = queries[start : start + _CHUNK]
        marked = unsure[start : start + _CHUNK]
        if not marked.any():
            continue
        for first in range(0, len(others), _CHUNK):
            products = product(rows, others[first : first + _CHUNK], buffer)
            distances[: len(rows), first : first + products.shape[1]] = products
        for i in range(len(rows)):
            if not marked[i]:
                continue
            norm = np.dot(rows[i], rows[i])
            row = distances[i]
            for j in range(len(row)):
                row[j] = max(0.0, norm + -2.0 * row[j] + norms[j])
            smallest_in_turn(row, turn, values, places)
            n_right += vote(places, other_codes, votes) == codes[start + i]
    return n_right


def room_for(n_train: int) -> int:
    """Numbers that :func:`count_right` needs room for."""
    return _ROWS * n_train
