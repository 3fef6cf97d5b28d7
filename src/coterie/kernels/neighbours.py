"""Votes of the k nearest neighbours, from products of samples.

Training samples j are ranked for a test sample i by ``|z_j|^2 - 2 z_i.z_j``, the squared distance minus a constant of the row,
so BLAS does nearly all the work. Single precision is enough to *find* the neighbours. The gap after the k-th value decides
whether the k found are certainly those of scikit-learn. Without a sufficient gap (mostly because of ties), several sets of
neighbours are possible. If these do not all vote for the same class, the row is recomputed with the arithmetic and the tie
rule of scikit-learn.
"""

from __future__ import annotations

import numpy as np

from coterie._numba import kernel

# Number of groups of positions (position modulo this number), whose minima are compared before single values.
_GROUPS = 32
# Positions compared at a time to find these minima; a multiple of _GROUPS.
_STRIDE = 128
# Test samples whose products are in memory at a time. With a thousand training samples they fit into the second-level cache.
_CHUNK_QUERIES = 128
# Largest number of samples at about the same distance whose distances are computed individually.
_MAX_NEAR = 128
# Number of samples whose features are gathered at a time.
_GATHER_SAMPLES = 32
# Samples per side of a product in scikit-learn (its pairwise_dist_chunk_size). Rounding depends on it.
_SKLEARN_CHUNK = 256


@kernel()
def insert_sorted(values, positions, value, position):
    """Insert a value into a sorted list and drop the last value, which must be larger."""
    level = len(values) - 1
    while level > 0 and values[level - 1] > value:
        values[level], positions[level] = values[level - 1], positions[level - 1]
        level -= 1
    values[level], positions[level] = value, position


@kernel()
def merge_smaller(values, others):
    """Replace each value by the corresponding one of ``others`` if that is smaller. ``others`` may be shorter."""
    for g in range(len(others)):
        values[g] = others[g] if others[g] < values[g] else values[g]


@kernel()
def group_minima(row, stride, minima):
    """Compute the smallest value of each group of positions, with vector instructions."""
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
def smallest(row, stride, minima, groups, values, positions):
    """Find the smallest values of a row, sorted, and their positions. The choice among equal values is unspecified.

    The smallest q values are in the q groups with the smallest minima, so nearly all of the row is read only once.
    """
    n_groups = len(minima)
    group_minima(row, stride, minima)
    values[:] = np.inf
    for g in range(n_groups):
        if minima[g] < values[-1]:
            insert_sorted(values, groups, minima[g], g)
    limit = values[-1]
    values[:] = np.inf
    for group in groups:
        for j in range(group, len(row), n_groups):
            if row[j] <= limit and row[j] < values[-1]:
                insert_sorted(values, positions, row[j], j)


@kernel()
def replace_root(values, positions, value, position):
    """Replace the root of a max-heap and move the new value down, as in scikit-learn."""
    size = len(values)
    node = 0
    while True:
        left, right = 2 * node + 1, 2 * node + 2
        if left >= size:
            break
        larger = left if right >= size or values[left] >= values[right] else right
        if values[larger] <= value:
            break
        values[node], positions[node] = values[larger], positions[larger]
        node = larger
    values[node], positions[node] = value, position


@kernel()
def smallest_in_order(row, order, values, positions):
    """Find the smallest values of a row with a heap, in the given order. Among equal values, keep those of scikit-learn."""
    values[:] = np.inf
    for j in order:
        if row[j] < values[0]:
            replace_root(values, positions, row[j], j)


@kernel()
def vote(positions, codes, votes):
    """Return the most frequent class, the first one in case of ties."""
    votes[:] = 0
    for position in positions:
        votes[codes[position]] += 1
    return np.argmax(votes)


@kernel()
def product(first, second, buffer):
    """Return ``first @ second.T``, computed in a part of a buffer."""
    out = buffer[: first.shape[0] * second.shape[0]].reshape(first.shape[0], second.shape[0])
    np.dot(first, second.T, out)
    return out


@kernel()
def squared_norms(columns, centre, norms):
    """Compute the squared norm of each sample minus the centre. ``columns`` has one row per feature."""
    norms[:] = 0.0
    for f in range(len(columns)):
        column, middle = columns[f], centre[f]
        for i in range(len(column)):
            difference = column[i] - middle
            norms[i] += difference * difference


@kernel()
def gather_factors(columns, centre, scale, norms, samples, queries, others):
    """Fill the rows of the two factors for some samples: (-2 z_i, 1) and (z_j, squared norm of z_j), all scaled."""
    n_features = len(columns)
    for start in range(0, len(samples), _GATHER_SAMPLES):
        some = samples[start : start + _GATHER_SAMPLES]
        rows = others[start : start + _GATHER_SAMPLES]
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
def predict_tied_votes(certain, possible, k, own):
    """Return 1 if k neighbours elect the class ``own`` for every choice of possible ones, 0 if for none, else -1."""
    n_left, n_possible = k - certain.sum(), possible.sum()
    min_own = certain[own] + max(0, n_left - (n_possible - possible[own]))
    max_own = certain[own] + min(n_left, possible[own])
    outcome = 1
    for other in range(len(certain)):
        if other == own:
            continue
        first = other < own  # Then the other class wins ties.
        if certain[other] + max(0, n_left - (n_possible - possible[other])) >= max_own + (not first):
            return 0
        if certain[other] + min(n_left, possible[other]) >= min_own + (not first):
            outcome = -1
    return outcome


@kernel()
def count_certain(values, positions, codes, slack, certain):
    """Count the classes of samples that are certainly among the first k. ``values`` are the k + 1 smallest, sorted.

    The order of two values that differ by at most ``slack`` is uncertain. Samples whose values are below the last one by more
    than ``slack`` are certain.
    """
    certain[:] = 0
    for j in range(len(values) - 1):
        if values[-1] - values[j] > slack:
            certain[codes[positions[j]]] += 1
    return values[-1] - slack, values[-2] + slack


@kernel()
def count_possible(row, minima, codes, bounds, k, own, certain, possible, positions):
    """Count the classes of values within the bounds, record their positions, and predict the vote.

    Returns the result of :func:`predict_tied_votes` and the number of positions. Stops early if the vote depends on the choice
    among many samples.
    """
    low, high = bounds
    possible[:] = 0
    n_found = 0
    for group in range(len(minima)):
        if minima[group] > high:
            continue
        for j in range(group, len(row), len(minima)):
            if row[j] <= high:
                positions[n_found] = j
                n_found += 1
                possible[codes[j]] += row[j] >= low
                if n_found % _MAX_NEAR == 0 and predict_tied_votes(certain, possible, k, own) < 0:
                    return -1, n_found
    return predict_tied_votes(certain, possible, k, own), n_found


@kernel()
def recompute_weights(columns, sample, samples, codes, slack, k, own, certain, possible, distances, smallest_few, positions):
    """Predict the vote of a few samples from squared distances in double precision."""
    smallest_few[:] = np.inf
    for j in range(len(samples)):
        distances[j] = 0.0
        for f in range(len(columns)):
            difference = columns[f, sample] - columns[f, samples[j]]
            distances[j] += difference * difference
        if distances[j] < smallest_few[-1]:
            insert_sorted(smallest_few, positions, distances[j], j)
    low, high = count_certain(smallest_few, samples[positions], codes, slack, certain)
    possible[:] = 0
    for j in range(len(samples)):
        possible[codes[samples[j]]] += low <= distances[j] <= high
    return predict_tied_votes(certain, possible, k, own)


@kernel()
def count_correct(
    queries, others, slack, fine_slack, codes, test, train, order, columns, n_classes, k, exact, uncertain, buffer
):
    """Return the number of test samples whose neighbours vote for their class. Undecided samples are set in ``uncertain``.

    ``queries @ others.T`` are the values to rank, and ``slack`` is the gap to the next sample that makes the first k certain.
    Without such a gap, the vote may still be the same for every choice among the samples in question. If it is not, and
    products have no rounding errors (``exact``), the products decide, with the training samples in the given ``order``.
    Otherwise the few samples in question are compared in double precision, from the ``columns``, for which ``fine_slack`` is
    enough. ``test`` and ``train`` are the samples of the rows of the factors. ``buffer`` has room for the products of 128 test
    samples.
    """
    other_codes = codes[train]
    n_train = len(others)
    n_kept = min(k + 1, n_train)
    n_groups = min(n_train, max(_GROUPS, 2 * n_kept))
    stride = np.empty(max(_STRIDE // n_groups, 1) * n_groups, dtype=others.dtype)
    minima, groups = np.empty(n_groups, dtype=others.dtype), np.empty(n_kept, dtype=np.int64)
    values, positions = np.empty(n_kept, dtype=others.dtype), np.empty(n_kept, dtype=np.int64)
    near, distances, fine = np.empty(n_train, dtype=np.int64), np.empty(_MAX_NEAR), np.empty(n_kept)
    votes, certain, possible = np.empty((3, n_classes), dtype=np.int64)
    n_correct = 0
    for start in range(0, len(queries), _CHUNK_QUERIES):
        products = product(queries[start : start + _CHUNK_QUERIES], others, buffer)
        for i in range(len(products)):
            row = products[i]
            smallest(row, stride, minima, groups, values, positions)
            sample = test[start + i]
            own, gap = codes[sample], slack[sample]
            if n_kept == k or values[k] - values[k - 1] > gap:
                n_correct += vote(positions[:k], other_codes, votes) == own
                continue
            bounds = count_certain(values, positions, other_codes, gap, certain)
            outcome, n_near = count_possible(row, minima, other_codes, bounds, k, own, certain, possible, near)
            if outcome < 0 and exact:
                smallest_in_order(row, order, values[:k], positions[:k])
                outcome = np.int64(vote(positions[:k], other_codes, votes) == own)
            elif outcome < 0 and n_near < _MAX_NEAR:
                some, gap = train[near[:n_near]], fine_slack[sample]
                outcome = recompute_weights(
                    columns, sample, some, codes, gap, k, own, certain, possible, distances, fine, positions
                )
            if outcome < 0:
                uncertain[start + i] = True
            else:
                n_correct += outcome
    return n_correct


@kernel()
def count_correct_exactly(queries, others, codes, other_codes, n_classes, k, uncertain):
    """Return the number of correct votes among the ``uncertain`` samples, computed as in scikit-learn.

    Squared distances are ``max(0, |x_i|^2 - 2 x_i.x_j + |x_j|^2)`` in this order, with products in double precision in
    blocks of 256 by 256, which determines their rounding.
    """
    norms = np.empty(len(others))
    for j in range(len(others)):
        norms[j] = np.dot(others[j], others[j])
    values, positions = np.empty(k), np.empty(k, dtype=np.int64)
    votes = np.empty(n_classes, dtype=np.int64)
    order = np.arange(len(others))
    distances = np.empty((min(_SKLEARN_CHUNK, len(queries)), len(others)))
    buffer = np.empty(_SKLEARN_CHUNK * _SKLEARN_CHUNK)
    n_correct = 0
    for start in range(0, len(queries), _SKLEARN_CHUNK):
        rows = queries[start : start + _SKLEARN_CHUNK]
        marked = uncertain[start : start + _SKLEARN_CHUNK]
        if not marked.any():
            continue
        for first in range(0, len(others), _SKLEARN_CHUNK):
            products = product(rows, others[first : first + _SKLEARN_CHUNK], buffer)
            distances[: len(rows), first : first + products.shape[1]] = products
        for i in range(len(rows)):
            if not marked[i]:
                continue
            norm = np.dot(rows[i], rows[i])
            row = distances[i]
            for j in range(len(row)):
                row[j] = max(0.0, norm + -2.0 * row[j] + norms[j])
            smallest_in_order(row, order, values, positions)
            n_correct += vote(positions, other_codes, votes) == codes[start + i]
    return n_correct


def buffer_size(n_train: int) -> int:
    """Return the size of the buffer of :func:`count_correct`."""
    return _CHUNK_QUERIES * n_train
