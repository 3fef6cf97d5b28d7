"""Residuals of millions of samples that take few distinct values, sent as a table over classes of samples.

Samples with equal selected features and labels have equal residuals, and few of these rows are distinct if the features are
sparse. The client and every worker keep the same partition of the samples into classes of equal residuals. A new residual
splits some classes: the largest part of a class keeps its number, and the samples of the other parts are sent
(:class:`Move`), about as many as a new support feature has nonzeros. The residual is then a table with one row per class. The
expanded residual has exactly the bits of that of the client.

A partition is a pure function of its moves, starting from one class. A worker that has made the first moves makes only the
others; any other worker makes all of them.
"""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coterie.cluster.parts import PartSource, Recipe, Ref, recipe_of
from coterie.kernels.blocks import values_by_label
from coterie.kernels.partition import move_samples, number_pairs

# Bytes from which a residual is encoded. A smaller one is sent as it is.
_MIN_BYTES = 1 << 20
# Maximum number of classes, whose numbers have 16 bits, and minimum mean number of samples per class.
_MAX_CLASSES = 1 << 16
_MIN_CLASS_SAMPLES = 8
# Maximum number of moves, and maximum size of all of them relative to the residual, before a partition starts again.
_MAX_MOVES = 32
_MAX_MOVED_SHARE = 0.5


class Move(NamedTuple):
    """Samples that move to new classes, which are numbered from ``first``.

    Either ``samples`` lists the samples of the new classes, ``counts`` of each, or ``samples`` is a packed mask of all samples
    and ``classes`` has the new class of each sample in it (one number if there is a single new class).
    """

    token: str
    first: int
    samples: np.ndarray
    counts: np.ndarray | None
    classes: np.ndarray | None

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in (self.samples, self.counts, self.classes) if array is not None)


class ResidualTables:
    """Partition of the samples on the client, and the residuals encoded with it.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    share : callable
        Shares a value with the workers and returns its reference.
    """

    def __init__(self, n_samples: int, share: Callable[[Any], Ref]) -> None:
        self._n_samples = n_samples
        self._share = share
        self._lock = threading.RLock()
        self._known: dict[int, tuple[weakref.ref[np.ndarray], Recipe | None]] = {}
        self._restart()

    def _restart(self) -> None:
        """Put all samples into one class."""
        self._owner: np.ndarray | None = None
        self._n_classes = 1
        self._moves: list[Ref] = []
        self._n_bytes = 0

    def recipe(self, value: np.ndarray) -> Recipe | None:
        """Return the recipe by which workers expand an array; None if it is small, or its rows take too many values."""
        if value.ndim != 2 or len(value) != self._n_samples or value.dtype != np.float64 or value.nbytes < _MIN_BYTES:
            return None
        with self._lock:
            known = self._known.get(id(value))
            if known is not None and known[0]() is value:
                return known[1]
            found = self._encode(value)
            key = id(value)
            self._known[key] = weakref.ref(value, lambda _: self._known.pop(key, None)), found
            return found

    def _encode(self, value: np.ndarray) -> Recipe | None:
        if len(self._moves) >= _MAX_MOVES or self._n_bytes > _MAX_MOVED_SHARE * value.nbytes:
            self._restart()
        table = self._split(value)
        if table is None and self._moves:
            self._restart()
            table = self._split(value)
        if table is None:
            self._restart()
            return None
        recipe = recipe_of(expanded_residual, self._n_samples, list(self._moves), self._share(table))
        return replace(recipe, common=True)

    def _split(self, value: np.ndarray) -> np.ndarray | None:
        """Split the classes by the values of an array. Return the values of each class; None if there are too many."""
        n_samples, width = value.shape
        owner = np.zeros(n_samples, dtype=np.uint16) if self._owner is None else self._owner
        most = min(_MAX_CLASSES, n_samples // _MIN_CLASS_SAMPLES)
        pair, pair_owner, counts = np.empty(n_samples, np.uint16), np.empty(most, np.uint16), np.empty(most, np.int64)
        pair_bits = np.empty((most, width), dtype=np.uint64)
        bits = np.ascontiguousarray(value).view(np.uint64)
        n_pairs = number_pairs(owner, bits, pair, pair_owner, pair_bits, counts)
        if n_pairs < 0:
            return None
        pair_owner, pair_bits, counts = pair_owner[:n_pairs], pair_bits[:n_pairs], counts[:n_pairs]
        # The first pair with the most samples of its class keeps the number of the class.
        order = np.lexsort((np.arange(n_pairs), -counts, pair_owner))
        sorted_owner = pair_owner[order]
        stays = np.zeros(n_pairs, dtype=bool)
        stays[order[np.append(True, sorted_owner[1:] != sorted_owner[:-1])]] = True
        new_class = pair_owner.copy()
        new_class[~stays] = np.arange(self._n_classes, n_pairs)
        if not stays.all():
            position = np.full(n_pairs, -1, dtype=np.int64)
            position[~stays] = np.cumsum(counts[~stays]) - counts[~stays]
            moved = np.empty(counts[~stays].sum(), dtype=np.int32 if n_samples < 2**31 else np.int64)
            move_samples(pair, new_class, position, owner, moved)
            self._add(_smallest_move(self._n_classes, moved, counts[~stays], owner))
        self._owner, self._n_classes = owner, n_pairs
        table = np.empty((n_pairs, width))
        table[new_class] = pair_bits.view(np.float64)
        return table

    def _add(self, move: Move) -> None:
        self._moves.append(self._share(move))
        self._n_bytes += move.n_bytes


def _smallest_move(first: int, moved: np.ndarray, counts: np.ndarray, owner: np.ndarray) -> Move:
    """Return the smaller of the two forms of a move."""
    n_class_bytes = 0 if len(counts) == 1 else owner.itemsize * len(moved)
    if moved.nbytes + counts.nbytes <= len(owner) // 8 + n_class_bytes:
        return Move(uuid.uuid4().hex, first, moved, counts, None)
    mask = np.zeros(len(owner), dtype=bool)
    mask[moved] = True
    classes = owner[mask] if len(counts) > 1 else np.array([first], dtype=owner.dtype)
    return Move(uuid.uuid4().hex, first, np.packbits(mask), None, classes)


class _Partition(NamedTuple):
    """Partition of the samples on a worker, after some moves."""

    tokens: tuple[str, ...]
    owner: np.ndarray


# The last partition of this process. Parts and threads share it.
_partition = _Partition((), np.empty(0, dtype=np.uint16))
_lock = threading.Lock()


def expanded_residual(_: PartSource, n_samples: int, moves: Sequence[Move], table: np.ndarray) -> np.ndarray:
    """Return a residual, given the moves to its partition and its value for each class; on a worker."""
    result = np.empty((n_samples, table.shape[1]))
    with _lock:
        values_by_label(_owner_after(n_samples, moves), np.ascontiguousarray(table), result)
    return result


def _owner_after(n_samples: int, moves: Sequence[Move]) -> np.ndarray:
    """Return the class of each sample after some moves. Continues with the last partition if its moves are the first ones."""
    global _partition  # noqa: PLW0603
    tokens, owner = _partition
    if len(owner) != n_samples or tokens != tuple(move.token for move in moves[: len(tokens)]):
        tokens, owner = (), np.zeros(n_samples, dtype=np.uint16)
    _partition = _Partition((), np.empty(0, dtype=np.uint16))  # invalid if a move fails
    for move in moves[len(tokens) :]:
        if move.counts is not None:
            owner[move.samples] = np.repeat(np.arange(move.first, move.first + len(move.counts)), move.counts)
        else:
            owner[np.unpackbits(move.samples, count=n_samples).view(bool)] = move.classes
    _partition = _Partition(tuple(move.token for move in moves), owner)
    return owner
