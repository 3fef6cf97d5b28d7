"""Mapped pages that are given back while a pass goes on, so that a store does not count as memory of the process."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

# Bytes of a store after which a pass gives its pages back.
EVERY = 1 << 26


class Pages:
    """The pages that some arrays map; of arrays that are not mapped there are none.

    Parameters
    ----------
    arrays : sequence of ndarray
        Arrays of a store, of the same features.
    """

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._maps = [found for array in arrays if (found := _map_of(array)) is not None]
        self.n_bytes = sum(array.nbytes for array in arrays)

    def n_pieces(self) -> int:
        """Pieces of a pass after which pages are given back."""
        return max(1, -(-self.n_bytes // EVERY)) if self._maps else 1

    def release(self) -> None:
        """Give all pages back; whoever reads them next has them read from the disk (or the system's cache) again."""
        for mapped in self._maps:
            with suppress(AttributeError, OSError, ValueError):  # where there is no such advice, or nothing is mapped any more
                mapped.madvise(mmap.MADV_DONTNEED)


def _map_of(array: np.ndarray) -> mmap.mmap | None:
    """The map under an array, if there is one."""
    base: object = array
    while isinstance(base, np.ndarray):
        found = getattr(base, "_mmap", None)
        if isinstance(found, mmap.mmap):
            return found
        base = base.base
    return base if isinstance(base, mmap.mmap) else None
