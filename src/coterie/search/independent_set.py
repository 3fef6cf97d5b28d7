r"""The most valuable admissible set of features: a bound from above, and an exact search.

A set is admissible when no two of its features are rivals (correlated at the threshold or over it), and its value is the sum
of its features' values, the squared scores. Without rivals the best set of K is simply the first K. With rivals it is a
heaviest independent set, which the greedy walk of the papers does not always find: a feature that is a rival of two others,
each a little worse, keeps both out.

**Bound.** Deal the features, best first, into cliques: each joins the first clique all of whose members are its rivals, or
opens a new one. An admissible set takes at most one feature of a clique, and the first member of a clique is its best, so no
admissible set of K is worth more than the first members of the K best cliques. Cliques are opened in order of falling value,
so nothing after the K-th opening matters. Without rivals this is the sum of the first K.

**Search.** Branch and bound: take the best feature left, or leave it, and drop a branch whose bound is no better than what
is known.
"""

from __future__ import annotations

import numpy as np

# Branches that a search looks at before it gives up, and steps of all their bounds, about a second; what it has not seen is
# in its bound.
_MOST_BRANCHES = 5000
_MOST_STEPS = 10**7


def bound_of_sets(values: np.ndarray, rivals: np.ndarray, size: int, beyond: float = 0.0) -> tuple[float, bool]:
    """What no admissible set of so many features is worth more than, and whether the features were enough to tell.

    Parameters
    ----------
    values : ndarray of shape (n_features,)
        Values of the best features, falling.
    rivals : ndarray of bool of shape (n_features, n_features)
        Which of them exclude each other.
    size : int
        Features of a set.
    beyond : float, default=0.0
        What no other feature is worth more than; if these are not enough, the others may all go together.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.search.independent_set import bound_of_sets
    >>> rivals = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    >>> bound_of_sets(np.array([5.0, 4.0, 1.0]), rivals, 2)
    (6.0, True)
    """
    opened = _openings(list(range(len(values))), _masks(rivals), size)
    known = float(sum(values[k] for k in opened))
    return known + (size - len(opened)) * beyond, len(opened) == size


def best_set(values: np.ndarray, rivals: np.ndarray, size: int, floor: float) -> tuple[np.ndarray, float]:
    """The admissible set of so many features that is worth most, and a bound on all sets.

    The set is empty if none is worth more than ``floor``. The bound is at least ``floor``. It is the value of the set (or
    ``floor``) unless the search had to give up.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.search.independent_set import best_set
    >>> rivals = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=bool)
    >>> chosen, bound = best_set(np.array([5.0, 4.0, 3.0]), rivals, 2, 0.0)
    >>> chosen.tolist(), float(bound)
    ([1, 2], 7.0)
    """
    masks = _masks(rivals)
    best, chosen = floor, tuple[int, ...]()
    # What is left to choose from (best first), what was taken, its value, how many are wanted.
    branches: list[tuple[list[int], tuple[int, ...], float, int]] = [(list(range(len(values))), (), 0.0, size)]
    most = min(_MOST_BRANCHES, _MOST_STEPS // max(len(values) * size, 1))
    looked_at = 0
    while branches:
        left, taken, value, wanted = branches.pop()
        limit = value + sum(values[k] for k in _openings(left, masks, wanted))
        if limit <= best:
            continue
        looked_at += 1
        if looked_at > most:
            open_limits = [
                value + sum(values[k] for k in _openings(left, masks, wanted)) for left, _, value, wanted in branches
            ]
            return np.array(chosen, dtype=np.int64), float(max([best, limit, *open_limits]))
        first, rest = left[0], left[1:]
        branches.append((rest, taken, value, wanted))
        more = value + values[first]
        if more > best:
            best, chosen = more, (*taken, first)
        branches.append(([k for k in rest if not masks[first] >> k & 1], (*taken, first), more, wanted - 1))
    return np.array(chosen, dtype=np.int64), float(best)


def _masks(rivals: np.ndarray) -> list[int]:
    """The rivals of each feature as the bits of a number."""
    return [int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little") for row in rivals]


def _openings(features: list[int], masks: list[int], size: int) -> list[int]:
    """The first members of the first cliques."""
    opened: list[int] = []
    common: list[int] = []  # of each clique with a rival, who is a rival of all its members
    for k in features:
        if len(opened) == size:
            break
        place = next((place for place, shared in enumerate(common) if shared >> k & 1), None) if masks[k] else None
        if place is not None:
            common[place] &= masks[k]
            continue
        opened.append(k)
        if masks[k]:
            common.append(masks[k])
    return opened
